//! The chunk stream of Chat Completions, as OpenAI and its many imitators send it.

use super::details::{DetailFrame, Details};
use super::frame::{CallFrame, Choice, Chunk, First, Words};
use crate::ModelEvent;
use crate::assembly::{Assembly, Content, Open, is_whole};
use crate::call_ids::CallIds;
use crate::protocol::{Decode, Progress, Text, Unreadable};
use crate::said::{Said, said};
use crate::sse::SseEvent;
use windlass_kernel::{StopReason, Usage};

/// Reasons to stop that are none: the server broke down.
const FAULTS: [&str; 4] = ["error", "network_error", "insufficient_system_resource", "abort"];

pub(crate) struct Decoder {
    assembly: Assembly,
    started: bool,
    /// The text or thinking block being heard.
    speaking: Option<(u32, Voice)>,
    /// What its provider wants back with the thinking being heard.
    details: Details,
    calls: Vec<Call>,
    next_index: u32,
    ids: CallIds,
    refused: bool,
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
    /// A seal that came before the name.
    early_signature: Option<String>,
}

impl Decoder {
    pub(crate) fn new(provider: &str, ids: CallIds) -> Decoder {
        Decoder {
            assembly: Assembly::new(provider),
            started: false,
            speaking: None,
            details: Details::default(),
            calls: Vec::new(),
            next_index: 0,
            ids,
            refused: false,
        }
    }

    fn choice(&mut self, choice: Choice<'_>) -> Result<(), Unreadable> {
        if let Some(delta) = choice.delta {
            // Some servers send the same thinking under both names.
            let thinking = delta.reasoning_content.as_ref().or(delta.reasoning.as_ref());
            self.speak(Voice::Thinking, thinking);
            for detail in delta.reasoning_details.iter().flatten() {
                self.detail(detail, thinking.is_none());
            }
            self.hear(Voice::Text, delta.content.as_ref());
            self.refused |= !Text::or_empty(&delta.refusal).is_empty();
            self.speak(Voice::Text, delta.refusal.as_ref());
            for call in delta.tool_calls.into_iter().flatten() {
                self.call(call)?;
            }
        }
        if let Some(usage) = choice.usage {
            self.assembly.usage = usage.counted();
        }
        match choice.finish_reason {
            Some(reason) if !reason.0.is_empty() => self.stop(&reason.0),
            _ => Ok(()),
        }
    }

    fn stop(&mut self, reason: &str) -> Result<(), Unreadable> {
        if FAULTS.contains(&reason) {
            let message = "the server gave its answer up".into();
            return Err(Unreadable::Reported(Said { words: reason.into(), message, ..Said::default() }));
        }
        self.assembly.raw_stop = Some(reason.to_owned());
        self.assembly.progress = Progress::Whole;
        self.check_names()?;
        self.seal();
        self.assembly.finish_all();
        self.speaking = None;
        Ok(())
    }

    fn hear(&mut self, voice: Voice, words: Option<&Words<'_>>) {
        match words {
            Some(Words::Text(text)) => self.speak(voice, Some(text)),
            Some(Words::Parts(parts)) => {
                for part in parts {
                    self.hear(Voice::Thinking, part.thinking.as_ref());
                    self.speak(voice, part.text.as_ref());
                }
            }
            None => {}
        }
    }

    /// Keeps a detail of the reasoning, in a block of its own if no thinking is heard now.
    fn detail(&mut self, detail: &DetailFrame<'_>, is_text: bool) {
        if is_text {
            self.speak(Voice::Thinking, detail.words());
        }
        if !matches!(self.speaking, Some((_, Voice::Thinking))) {
            let index = self.start(Content::Thinking { signature: None });
            self.speaking = Some((index, Voice::Thinking));
        }
        self.details.add(detail);
    }

    /// Gives the thinking being heard what its provider wants back with it.
    fn seal(&mut self) {
        let Some((index, Voice::Thinking)) = self.speaking else { return };
        if let Some(Open { content: Content::Thinking { signature }, .. }) = self.assembly.block(index) {
            *signature = self.details.take();
        }
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
        self.seal();
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
        let signature = frame.signature().map(str::to_owned);
        let function = frame.function.unwrap_or_default();
        let name = Text::or_empty(&function.name);
        let place = match self.known(frame.index, &id, !name.is_empty()) {
            Some(place) => place,
            None => self.new_call(frame.index, id),
        };
        if !name.is_empty() && self.calls[place].block.is_none() {
            let id = self.calls[place].id.clone();
            let signature = self.calls[place].early_signature.take();
            let block = self.start(Content::ToolUse { id, name: name.to_owned(), signature });
            let early = std::mem::take(&mut self.calls[place].early);
            self.assembly.block(block).expect("the call was just started").text = early;
            self.calls[place].block = Some(block);
        }
        if signature.is_some() {
            self.sign(place, signature);
        }
        match function.arguments {
            Some(arguments) if arguments.get() != "null" => self.fragment(place, arguments.get()),
            _ => Ok(()),
        }
    }

    fn sign(&mut self, place: usize, given: Option<String>) {
        let open = self.calls[place].block.and_then(|block| self.assembly.block(block));
        match open {
            Some(Open { content: Content::ToolUse { signature, .. }, .. }) => *signature = given,
            _ => self.calls[place].early_signature = given,
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
        let id = if is_free { given_id.clone() } else { self.ids.make() };
        self.calls.push(Call { number, given_id, id, block: None, early: String::new(), early_signature: None });
        self.calls.len() - 1
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

    /// A call that never got a name is no call.
    fn check_names(&self) -> Result<(), Unreadable> {
        match self.calls.iter().all(|call| call.block.is_some()) {
            true => Ok(()),
            false => Err(Unreadable::Broken("a tool call without a name".into())),
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
            if self.assembly.progress == Progress::Whole || self.next_index > 0 {
                self.check_names()?;
                self.seal();
                self.assembly.progress = Progress::Ended;
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
            self.assembly.usage = usage.counted();
        }
        match chunk.choices {
            Some(First(Some(choice))) => self.choice(choice),
            _ => Ok(()),
        }
    }

    fn assembly(&mut self) -> &mut Assembly {
        &mut self.assembly
    }

    fn stop_reason(&self, raw: Option<&str>) -> StopReason {
        let has_calls = !self.calls.is_empty();
        match raw {
            _ if self.refused => StopReason::Refusal,
            Some("length" | "model_length" | "model_context_window_exceeded") => StopReason::MaxTokens,
            Some("content_filter" | "sensitive") => StopReason::Refusal,
            // Servers disagree on which of these words goes with calls; the calls themselves tell.
            Some("stop" | "tool_calls" | "function_call") | None if has_calls => StopReason::ToolUse,
            Some("stop" | "tool_calls" | "function_call") | None => StopReason::EndTurn,
            Some(_) => StopReason::Other,
        }
    }
}
