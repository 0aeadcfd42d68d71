//! The chunk stream of `generateContent`.
//!
//! The chunks' text parts are fragments of one text, so they are joined; the signature of a text is kept as a thinking
//! block without words right behind it, and an empty part that brings nothing but a signature as redacted thinking.

use crate::ModelEvent;
use crate::assembly::{Assembly, Content};
use crate::call_ids::CallIds;
use crate::protocol::{Decode, Progress, Text, Unreadable};
use crate::said::{Said, said};
use crate::sse::SseEvent;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::value::RawValue;
use windlass_kernel::{StopReason, Usage};

pub(crate) struct Decoder {
    provider: String,
    assembly: Assembly,
    started: bool,
    /// The text or thinking block being heard.
    speaking: Option<(u32, Voice)>,
    /// The signature of that text.
    seal: Option<String>,
    next_index: u32,
    ids: CallIds,
    /// The ids of this message's calls.
    calls: Vec<String>,
    counts: Counts,
    /// The prompt was refused.
    is_blocked: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Voice {
    Text,
    Thinking,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Chunk<'a> {
    #[serde(borrow)]
    response_id: Option<Text<'a>>,
    #[serde(borrow)]
    model_version: Option<Text<'a>>,
    #[serde(borrow)]
    candidates: Option<Vec<Candidate<'a>>>,
    #[serde(borrow)]
    prompt_feedback: Option<Feedback<'a>>,
    usage_metadata: Option<Counts>,
    error: Option<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate<'a> {
    #[serde(borrow)]
    content: Option<Say<'a>>,
    #[serde(borrow)]
    finish_reason: Option<Text<'a>>,
    #[serde(borrow)]
    finish_message: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct Say<'a> {
    #[serde(borrow)]
    parts: Option<Vec<Part<'a>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Part<'a> {
    #[serde(borrow)]
    text: Option<Text<'a>>,
    thought: Option<bool>,
    #[serde(borrow)]
    thought_signature: Option<Text<'a>>,
    #[serde(borrow)]
    function_call: Option<Call<'a>>,
}

#[derive(Deserialize)]
struct Call<'a> {
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    name: Option<Text<'a>>,
    #[serde(borrow)]
    args: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Feedback<'a> {
    #[serde(borrow)]
    block_reason: Option<Text<'a>>,
}

/// Tokens so far; each report replaces the counts it names.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Counts {
    /// With what was read from the cache.
    prompt_token_count: Option<u64>,
    cached_content_token_count: Option<u64>,
    /// What tools that ran at the provider put into the prompt.
    tool_use_prompt_token_count: Option<u64>,
    /// Without the thoughts.
    candidates_token_count: Option<u64>,
    thoughts_token_count: Option<u64>,
}

impl Counts {
    fn update(&mut self, news: Counts) {
        let set = |count: &mut Option<u64>, said: Option<u64>| *count = said.or(*count);
        set(&mut self.prompt_token_count, news.prompt_token_count);
        set(&mut self.cached_content_token_count, news.cached_content_token_count);
        set(&mut self.tool_use_prompt_token_count, news.tool_use_prompt_token_count);
        set(&mut self.candidates_token_count, news.candidates_token_count);
        set(&mut self.thoughts_token_count, news.thoughts_token_count);
    }

    fn usage(&self) -> Usage {
        let of = |count: Option<u64>| count.unwrap_or(0);
        let (prompt, cached) = (of(self.prompt_token_count), of(self.cached_content_token_count));
        let reasoning = of(self.thoughts_token_count);
        Usage {
            input: prompt.saturating_sub(cached).saturating_add(of(self.tool_use_prompt_token_count)),
            cache_read: cached.min(prompt),
            cache_write: 0,
            output: of(self.candidates_token_count).saturating_add(reasoning),
            reasoning,
        }
    }
}

impl Decoder {
    pub(crate) fn new(provider: &str, ids: CallIds) -> Decoder {
        Decoder {
            provider: provider.to_owned(),
            assembly: Assembly::new(provider),
            started: false,
            speaking: None,
            seal: None,
            next_index: 0,
            ids,
            calls: Vec::new(),
            counts: Counts::default(),
            is_blocked: false,
        }
    }

    fn begin(&mut self, chunk: &Chunk<'_>) {
        if !std::mem::replace(&mut self.started, true) {
            let id = Text::or_empty(&chunk.response_id).to_owned();
            let model = Text::or_empty(&chunk.model_version).to_owned();
            let usage = Usage { output: 0, reasoning: 0, ..self.assembly.usage };
            self.assembly.tell(ModelEvent::Started { id, model, usage });
        }
    }

    fn candidate(&mut self, candidate: Candidate<'_>, data: &[u8]) -> Result<(), Unreadable> {
        let parts = candidate.content.and_then(|content| content.parts).unwrap_or_default();
        for (place, part) in parts.into_iter().enumerate() {
            self.part(part, data, place)?;
        }
        match Text::or_empty(&candidate.finish_reason) {
            "" | "FINISH_REASON_UNSPECIFIED" => Ok(()),
            // The model's slip, or ours: there is no message to speak of.
            reason @ ("MALFORMED_FUNCTION_CALL"
            | "MALFORMED_RESPONSE"
            | "UNEXPECTED_TOOL_CALL"
            | "MISSING_THOUGHT_SIGNATURE") => {
                let message = match Text::or_empty(&candidate.finish_message) {
                    "" => "the model's message cannot be used",
                    message => message,
                };
                let (words, message) = (reason.to_owned(), message.to_owned());
                Err(Unreadable::Reported(Said { words, message, ..Said::default() }))
            }
            reason => {
                self.finish(reason);
                Ok(())
            }
        }
    }

    fn finish(&mut self, reason: &str) {
        self.assembly.raw_stop = Some(reason.to_owned());
        self.assembly.progress = Progress::Whole;
    }

    fn part(&mut self, part: Part<'_>, data: &[u8], place: usize) -> Result<(), Unreadable> {
        let signature =
            part.thought_signature.map(|signature| signature.0.into_owned()).filter(|text| !text.is_empty());
        match (part.function_call, &part.text) {
            (Some(call), _) => self.call(call, signature)?,
            (None, Some(text)) if part.thought != Some(true) => self.say(&text.0, signature),
            (None, Some(text)) if !text.0.is_empty() || signature.is_none() || self.is_thinking() => {
                self.think(&text.0, signature);
            }
            _ => self.native(data, place)?,
        }
        Ok(())
    }

    fn say(&mut self, text: &str, signature: Option<String>) {
        match (text, signature) {
            ("", None) => {}
            ("", Some(data)) => self.whole(Content::Redacted { data }),
            (text, signature) => {
                if self.seal.is_some() && signature.is_some() {
                    self.pause();
                }
                self.speak(Voice::Text, text);
                self.seal = self.seal.take().or(signature);
            }
        }
    }

    fn think(&mut self, text: &str, signature: Option<String>) {
        if text.is_empty() && signature.is_none() {
            return;
        }
        let index = self.speak(Voice::Thinking, text);
        if signature.is_some() {
            if let Some(open) = self.assembly.block(index) {
                open.content = Content::Thinking { signature };
            }
            self.pause();
        }
    }

    fn is_thinking(&self) -> bool {
        matches!(self.speaking, Some((_, Voice::Thinking)))
    }

    /// Adds to the block of that voice.
    fn speak(&mut self, voice: Voice, text: &str) -> u32 {
        let index = match self.speaking {
            Some((index, speaking)) if speaking == voice => index,
            _ => {
                self.pause();
                let index = self.start(match voice {
                    Voice::Text => Content::Text,
                    Voice::Thinking => Content::Thinking { signature: None },
                });
                self.speaking = Some((index, voice));
                index
            }
        };
        self.assembly.block(index).expect("the block spoken in is open").text.push_str(text);
        index
    }

    /// Ends the block being heard, and puts its seal behind it.
    fn pause(&mut self) {
        if let Some((index, _)) = self.speaking.take() {
            self.assembly.finish(index);
        }
        if self.seal.is_some() {
            let signature = self.seal.take();
            self.whole(Content::Thinking { signature });
        }
    }

    fn start(&mut self, content: Content) -> u32 {
        let index = self.next_index;
        self.next_index += 1;
        self.assembly.start(index, content);
        index
    }

    /// A block that comes all at once.
    fn whole(&mut self, content: Content) {
        self.pause();
        let index = self.start(content);
        self.assembly.finish(index);
    }

    fn call(&mut self, call: Call<'_>, signature: Option<String>) -> Result<(), Unreadable> {
        let name = Text::or_empty(&call.name).to_owned();
        if name.is_empty() {
            return Err(Unreadable::broken("a function call without a name"));
        }
        let id = match Text::or_empty(&call.id) {
            given if !given.is_empty() && self.calls.iter().all(|id| id != given) => given.to_owned(),
            _ => self.ids.make(),
        };
        self.calls.push(id.clone());
        self.pause();
        let index = self.start(Content::ToolUse { id, name, signature });
        if let (Some(args), Some(open)) = (call.args, self.assembly.block(index)) {
            open.text.push_str(args.get());
        }
        self.assembly.finish(index);
        Ok(())
    }

    /// A part of a kind that only the provider knows; an empty one is nothing.
    fn native(&mut self, data: &[u8], place: usize) -> Result<(), Unreadable> {
        let mut chunk: Value = serde_json::from_slice(data)?;
        let value = chunk["candidates"][0]["content"]["parts"][place].take();
        let says = |(name, value): (&String, &Value)| name != "thought" && !value.is_null();
        if value.as_object().is_some_and(|fields| fields.iter().any(says)) {
            self.whole(Content::Native { provider: self.provider.clone(), value });
        }
        Ok(())
    }
}

impl Decode for Decoder {
    fn event(&mut self, event: &SseEvent<'_>) -> Result<(), Unreadable> {
        let mut chunk: Chunk<'_> = serde_json::from_slice(event.data)?;
        if chunk.error.is_some() {
            return Err(Unreadable::Reported(said(event.data)));
        }
        if let Some(counts) = chunk.usage_metadata.take() {
            self.counts.update(counts);
            self.assembly.usage = self.counts.usage();
        }
        self.begin(&chunk);
        if let Some(candidate) = chunk.candidates.and_then(|candidates| candidates.into_iter().next()) {
            self.candidate(candidate, event.data)?;
        }
        let blocked = chunk.prompt_feedback.and_then(|feedback| feedback.block_reason);
        if let Some(reason) = blocked.filter(|_| self.assembly.progress == Progress::Going) {
            self.is_blocked = true;
            self.finish(&reason.0);
        }
        if self.assembly.progress == Progress::Whole {
            self.pause();
        }
        Ok(())
    }

    fn assembly(&mut self) -> &mut Assembly {
        &mut self.assembly
    }

    fn stop_reason(&self, raw: Option<&str>) -> StopReason {
        match raw {
            _ if self.is_blocked => StopReason::Refusal,
            Some("STOP") if !self.calls.is_empty() => StopReason::ToolUse,
            Some("STOP") => StopReason::EndTurn,
            Some("MAX_TOKENS") => StopReason::MaxTokens,
            Some(
                "SAFETY"
                | "RECITATION"
                | "LANGUAGE"
                | "BLOCKLIST"
                | "PROHIBITED_CONTENT"
                | "SPII"
                | "IMAGE_SAFETY"
                | "IMAGE_PROHIBITED_CONTENT"
                | "IMAGE_RECITATION"
                | "MODEL_ARMOR"
                | "ESCALATION"
                | "PUP_LIMITED_DISABLED",
            ) => StopReason::Refusal,
            _ => StopReason::Other,
        }
    }
}
