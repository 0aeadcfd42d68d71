//! The chunk stream of Chat Completions, as OpenAI and its many imitators send it.

use crate::ModelEvent;
use crate::assembly::{Assembly, Content, is_whole};
use crate::failure::said;
use crate::protocol::{Decode, Progress, Text, Unreadable};
use crate::sse::SseEvent;
use serde::de::{Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, de};
use serde_json::value::RawValue;
use std::fmt;
use std::sync::Arc;
use windlass_kernel::{ContentBlock, Message, StopReason, Usage};

/// How ids begin that are made here because the server gave none.
const CALL_PREFIX: &str = "call_";

pub(crate) struct Decoder {
    assembly: Assembly,
    progress: Progress,
    started: bool,
    /// The text or thinking block being heard.
    speaking: Option<(u32, Voice)>,
    calls: Vec<Call>,
    next_index: u32,
    /// The number of the next id made here.
    next_call: u64,
    stop: Option<String>,
    refused: bool,
    usage: Usage,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Voice {
    Text,
    Thinking,
}

/// A call of this message.
struct Call {
    /// The server's number for it, where it numbers calls.
    number: Option<u32>,
    /// The id as the server gave it; empty if it gave none.
    given_id: String,
    /// Its id, the server's or one made here.
    id: String,
    /// Its block; none before its name is known.
    block: Option<u32>,
    /// Arguments that came before the name.
    early: String,
}

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    model: Option<Text<'a>>,
    #[serde(borrow)]
    object: Option<Text<'a>>,
    #[serde(borrow)]
    choices: Option<First<'a>>,
    usage: Option<UsageFrame>,
    error: Option<IgnoredAny>,
}

/// The first of the choices; there is only ever one, and no list is built for it.
struct First<'a>(Option<Choice<'a>>);

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    delta: Option<DeltaFrame<'a>>,
    #[serde(borrow)]
    finish_reason: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct DeltaFrame<'a> {
    #[serde(borrow)]
    content: Option<Text<'a>>,
    #[serde(borrow)]
    reasoning_content: Option<Text<'a>>,
    #[serde(borrow)]
    reasoning: Option<Text<'a>>,
    #[serde(borrow)]
    refusal: Option<Text<'a>>,
    #[serde(borrow)]
    tool_calls: Option<Vec<CallFrame<'a>>>,
}

#[derive(Deserialize)]
struct CallFrame<'a> {
    index: Option<u32>,
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    function: Option<FunctionFrame<'a>>,
}

#[derive(Default, Deserialize)]
struct FunctionFrame<'a> {
    #[serde(borrow)]
    name: Option<Text<'a>>,
    /// A fragment of JSON text, or from some servers the object itself.
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct UsageFrame {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    prompt_tokens_details: Option<PromptDetails>,
    completion_tokens_details: Option<CompletionDetails>,
    /// DeepSeek's word for the cached part.
    prompt_cache_hit_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct PromptDetails {
    cached_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct CompletionDetails {
    reasoning_tokens: Option<u64>,
}

impl<'de: 'a, 'a> Deserialize<'de> for First<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<First<'a>, D::Error> {
        struct Seen;
        impl<'de> Visitor<'de> for Seen {
            type Value = First<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of choices")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<First<'de>, A::Error> {
                let first = list.next_element()?;
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok(First(first))
            }

            fn visit_unit<E: de::Error>(self) -> Result<First<'de>, E> {
                Ok(First(None))
            }
        }
        deserializer.deserialize_seq(Seen)
    }
}

/// The first number for an id made here: behind those of the calls in `messages`, so that none comes twice.
pub(crate) fn first_free_call(messages: &[Arc<Message>]) -> u64 {
    let blocks = messages.iter().flat_map(|message| &message.content);
    let numbers = blocks.filter_map(|block| match block {
        ContentBlock::ToolUse(call) => call.id.0.strip_prefix(CALL_PREFIX)?.parse::<u64>().ok(),
        _ => None,
    });
    numbers.max().unwrap_or(0).saturating_add(1)
}

impl Decoder {
    pub(crate) fn new(next_call: u64) -> Decoder {
        Decoder {
            assembly: Assembly::default(),
            progress: Progress::Going,
            started: false,
            speaking: None,
            calls: Vec::new(),
            next_index: 0,
            next_call,
            stop: None,
            refused: false,
            usage: Usage::default(),
        }
    }

    fn choice(&mut self, choice: Choice<'_>) -> Result<(), Unreadable> {
        if let Some(delta) = choice.delta {
            // Some servers send the same thinking under both names.
            let thinking = delta.reasoning_content.as_ref().or(delta.reasoning.as_ref());
            self.speak(Voice::Thinking, thinking);
            self.speak(Voice::Text, delta.content.as_ref());
            self.refused |= !Text::or_empty(&delta.refusal).is_empty();
            self.speak(Voice::Text, delta.refusal.as_ref());
            for call in delta.tool_calls.into_iter().flatten() {
                self.call(call)?;
            }
        }
        if let Some(reason) = choice.finish_reason.filter(|reason| !reason.0.is_empty()) {
            self.stop = Some(reason.0.into_owned());
            self.progress = Progress::Whole;
            self.check_names()?;
            self.assembly.finish_all();
            self.speaking = None;
        }
        Ok(())
    }

    /// Adds to the text or the thinking, in a new block if something else was heard last.
    fn speak(&mut self, voice: Voice, text: Option<&Text<'_>>) {
        let Some(text) = text.filter(|text| !text.0.is_empty()) else { return };
        let index = match self.speaking {
            Some((index, speaking)) if speaking == voice => index,
            _ => {
                let content = match voice {
                    Voice::Text => Content::Text,
                    Voice::Thinking => Content::Thinking { signature: None },
                };
                let index = self.start(content);
                self.speaking = Some((index, voice));
                index
            }
        };
        self.assembly.block(index).expect("the block spoken in is open").text.push_str(&text.0);
    }

    /// Starts a block, which ends the ones before it.
    fn start(&mut self, content: Content) -> u32 {
        self.speaking = None;
        self.settle();
        let index = self.next_index;
        self.next_index += 1;
        self.assembly.start(index, content);
        index
    }

    /// Ends open blocks in order, up to the first call whose arguments are not all there: servers that mix the
    /// fragments of several calls may go on with it.
    fn settle(&mut self) {
        while let Some(open) = self.assembly.open().first() {
            if matches!(open.content, Content::ToolUse { .. }) && !is_whole(&open.text) {
                return;
            }
            let index = open.index;
            self.assembly.finish(index);
        }
    }

    fn call(&mut self, frame: CallFrame<'_>) -> Result<(), Unreadable> {
        let id = Text::or_empty(&frame.id).to_owned();
        let function = frame.function.unwrap_or_default();
        let name = Text::or_empty(&function.name);
        let place = match self.known(frame.index, &id, !name.is_empty()) {
            Some(place) => place,
            None => self.new_call(frame.index, id),
        };
        if !name.is_empty() && self.calls[place].block.is_none() {
            let id = self.calls[place].id.clone();
            let block = self.start(Content::ToolUse { id, name: name.to_owned() });
            let early = std::mem::take(&mut self.calls[place].early);
            self.assembly.block(block).expect("the call was just started").text = early;
            self.calls[place].block = Some(block);
        }
        match function.arguments {
            Some(arguments) if arguments.get() != "null" => self.fragment(place, arguments.get()),
            _ => Ok(()),
        }
    }

    /// The call a fragment belongs to; none: it begins a new one.
    fn known(&mut self, number: Option<u32>, id: &str, is_named: bool) -> Option<usize> {
        let place = match number {
            Some(_) => self.calls.iter().rposition(|call| call.number == number)?,
            None if !id.is_empty() => return self.calls.iter().rposition(|call| call.given_id == id),
            None if is_named => return None,
            None => self.calls.len().checked_sub(1)?,
        };
        // Some servers give every call the same number: then the ids tell them apart, or that one is whole.
        let given = &self.calls[place].given_id;
        let is_other = match id.is_empty() {
            true => is_named && self.has_all(place),
            false => !given.is_empty() && given != id,
        };
        (!is_other).then_some(place)
    }

    /// Whether the arguments of a call are all there.
    fn has_all(&mut self, place: usize) -> bool {
        let Some(index) = self.calls[place].block else { return false };
        self.assembly.block(index).is_none_or(|open| is_whole(&open.text))
    }

    fn new_call(&mut self, number: Option<u32>, given_id: String) -> usize {
        let is_free = !given_id.is_empty() && self.calls.iter().all(|call| call.id != given_id);
        let id = if is_free { given_id.clone() } else { self.make_id() };
        self.calls.push(Call { number, given_id, id, block: None, early: String::new() });
        self.calls.len() - 1
    }

    fn make_id(&mut self) -> String {
        self.next_call += 1;
        format!("{CALL_PREFIX}{}", self.next_call - 1)
    }

    fn fragment(&mut self, place: usize, arguments: &str) -> Result<(), Unreadable> {
        let text = match arguments.starts_with('"') {
            true => serde_json::from_str::<Text<'_>>(arguments)?,
            false => Text(arguments.into()),
        };
        let Some(index) = self.calls[place].block else {
            self.calls[place].early.push_str(&text.0);
            return Ok(());
        };
        match self.assembly.block(index) {
            Some(open) => open.text.push_str(&text.0),
            None if text.0.trim().is_empty() => {}
            None => return Err(Unreadable::Broken("arguments for a call that had ended".into())),
        }
        Ok(())
    }

    fn count(&mut self, usage: UsageFrame) {
        let prompt = usage.prompt_tokens.unwrap_or(0);
        let cached = usage.prompt_tokens_details.and_then(|details| details.cached_tokens);
        let cached = cached.or(usage.prompt_cache_hit_tokens).unwrap_or(0);
        let reasoning = usage.completion_tokens_details.and_then(|details| details.reasoning_tokens);
        self.usage = Usage {
            input: prompt.saturating_sub(cached),
            cache_read: cached.min(prompt),
            cache_write: 0,
            output: usage.completion_tokens.unwrap_or(0),
            reasoning: reasoning.unwrap_or(0),
        };
    }

    /// A call that never got a name is no call.
    fn check_names(&self) -> Result<(), Unreadable> {
        match self.calls.iter().all(|call| call.block.is_some()) {
            true => Ok(()),
            false => Err(Unreadable::Broken("a tool call without a name".into())),
        }
    }

    fn stop_reason(&self) -> StopReason {
        let has_calls = !self.calls.is_empty();
        match self.stop.as_deref() {
            _ if self.refused => StopReason::Refusal,
            Some("length") => StopReason::MaxTokens,
            Some("content_filter") => StopReason::Refusal,
            // Servers disagree on which of these words goes with calls; the calls themselves tell.
            Some("stop" | "tool_calls" | "function_call") | None if has_calls => StopReason::ToolUse,
            Some("stop" | "tool_calls" | "function_call") | None => StopReason::EndTurn,
            Some(_) => StopReason::Other,
        }
    }
}

impl Decode for Decoder {
    fn event(&mut self, event: &SseEvent<'_>) -> Result<(), Unreadable> {
        if event.event == b"error" {
            return Err(Unreadable::Reported(said(event.data)));
        }
        if event.data.trim_ascii() == b"[DONE]" {
            // The server says that it is over; without a reason to stop, having said something is enough.
            if self.progress == Progress::Whole || self.next_index > 0 {
                self.check_names()?;
                self.progress = Progress::Ended;
            }
            return Ok(());
        }
        let chunk: Chunk<'_> = serde_json::from_slice(event.data)?;
        if chunk.error.is_some() || Text::or_empty(&chunk.object) == "error" {
            return Err(Unreadable::Reported(said(event.data)));
        }
        if !std::mem::replace(&mut self.started, true) {
            let (id, model) = (Text::or_empty(&chunk.id).to_owned(), Text::or_empty(&chunk.model).to_owned());
            self.assembly.tell(ModelEvent::Started { id, model, usage: Usage::default() });
        }
        if let Some(usage) = chunk.usage {
            self.count(usage);
        }
        match chunk.choices {
            Some(First(Some(choice))) => self.choice(choice),
            _ => Ok(()),
        }
    }

    fn progress(&self) -> Progress {
        self.progress
    }

    fn take(&mut self) -> Vec<ModelEvent> {
        self.assembly.take()
    }

    fn end(&mut self) -> bool {
        if self.progress == Progress::Going {
            return false;
        }
        self.assembly.finish_all();
        let (stop, usage) = (self.stop_reason(), self.usage);
        self.assembly.tell(ModelEvent::Finished { stop, raw_stop: self.stop.take(), usage });
        true
    }
}
