//! The event stream of the Messages API.
//!
//! Text with citations becomes two blocks: the text as everybody knows it, and behind it the provider's own block,
//! which goes back to it in the text's place.

use crate::ModelEvent;
use crate::assembly::{Assembly, Content, Open};
use crate::protocol::{Decode, Progress, Text, Unreadable};
use crate::said::said;
use crate::sse::SseEvent;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use windlass_kernel::{StopReason, Usage};

pub(crate) struct Decoder {
    provider: String,
    assembly: Assembly,
    has_blocks: bool,
    has_calls: bool,
    /// Of the text blocks that have not ended, by index.
    citations: BTreeMap<u32, Vec<Value>>,
}

/// The bit that an index of our own has and none of the API's: of the block behind a text with citations.
const CITED: u32 = 1 << 31;

/// Any event of the stream; borrowed, so that a delta costs its own bytes and nothing else.
#[derive(Deserialize)]
struct Frame<'a> {
    #[serde(rename = "type", borrow)]
    kind: Option<Text<'a>>,
    #[serde(default)]
    index: u32,
    #[serde(borrow)]
    delta: Option<DeltaFrame<'a>>,
    #[serde(borrow)]
    content_block: Option<&'a RawValue>,
    #[serde(borrow)]
    message: Option<MessageFrame<'a>>,
    usage: Option<UsageFrame>,
}

#[derive(Deserialize)]
struct DeltaFrame<'a> {
    #[serde(borrow)]
    text: Option<Text<'a>>,
    #[serde(borrow)]
    thinking: Option<Text<'a>>,
    #[serde(borrow)]
    partial_json: Option<Text<'a>>,
    #[serde(borrow)]
    signature: Option<Text<'a>>,
    #[serde(borrow)]
    citation: Option<&'a RawValue>,
    #[serde(borrow)]
    stop_reason: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct MessageFrame<'a> {
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    model: Option<Text<'a>>,
    usage: Option<UsageFrame>,
}

/// Counts so far; each report replaces the ones it names.
#[derive(Default, Deserialize)]
struct UsageFrame {
    input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    output_tokens_details: Option<DetailsFrame>,
}

#[derive(Deserialize)]
struct DetailsFrame {
    thinking_tokens: Option<u64>,
}

impl Decoder {
    pub(crate) fn new(provider: String) -> Decoder {
        Decoder {
            assembly: Assembly::new(&provider),
            provider,
            has_blocks: false,
            has_calls: false,
            citations: BTreeMap::new(),
        }
    }

    fn message_started(&mut self, message: Option<MessageFrame<'_>>) -> Result<(), Unreadable> {
        let Some(message) = message else { return Err(broken("message_start without a message")) };
        let (id, model) = (Text::or_empty(&message.id).to_owned(), Text::or_empty(&message.model).to_owned());
        self.count(message.usage);
        let usage = Usage { output: 0, reasoning: 0, ..self.assembly.usage };
        self.assembly.tell(ModelEvent::Started { id, model, usage });
        Ok(())
    }

    fn block_started(&mut self, index: u32, block: Option<&RawValue>) -> Result<(), Unreadable> {
        let Some(block) = block else { return Err(broken("content_block_start without a block")) };
        let mut value: Value = serde_json::from_str(block.get())?;
        if !value.is_object() {
            return Err(broken("a content block that is no object"));
        }
        if let Value::Array(citations) = value["citations"].take()
            && !citations.is_empty()
        {
            self.citations.insert(index, citations);
        }
        let mut text = |name: &str| match value[name].take() {
            Value::String(text) => text,
            _ => String::new(),
        };
        let (content, first) = match text("type").as_str() {
            "text" => (Content::Text, text("text")),
            "thinking" => (Content::Thinking { signature: some(text("signature")) }, text("thinking")),
            "redacted_thinking" => (Content::Redacted { data: text("data") }, String::new()),
            "tool_use" => {
                self.has_calls = true;
                // Arguments come as deltas; a server that has them at once may send them here.
                let call = Content::ToolUse { id: text("id"), name: text("name"), signature: None };
                let whole = value["input"].as_object().filter(|input| !input.is_empty());
                (call, whole.map_or_else(String::new, |_| value["input"].to_string()))
            }
            // Only the provider knows this kind: it is kept as it came.
            _ => {
                let value = serde_json::from_str(block.get())?;
                (Content::Native { provider: self.provider.clone(), value }, String::new())
            }
        };
        self.has_blocks = true;
        self.assembly.start(index, content);
        self.open(index)?.text = first;
        Ok(())
    }

    fn open(&mut self, index: u32) -> Result<&mut Open, Unreadable> {
        self.assembly.block(index).ok_or_else(|| broken(&format!("block {index} was never started")))
    }

    fn delta(&mut self, index: u32, delta: Option<DeltaFrame<'_>>, data: &[u8]) -> Result<(), Unreadable> {
        let Some(delta) = delta else { return Err(broken("content_block_delta without a delta")) };
        if let Some(citation) = delta.citation
            && matches!(self.open(index)?.content, Content::Text)
        {
            self.citations.entry(index).or_default().push(serde_json::from_str(citation.get())?);
        }
        let open = self.open(index)?;
        let fragment = match &mut open.content {
            Content::Text => &delta.text,
            Content::Thinking { signature } => {
                if let Some(given) = &delta.signature {
                    *signature = some(given.0.to_string());
                }
                &delta.thinking
            }
            Content::Redacted { .. } => return Ok(()),
            Content::ToolUse { .. } => &delta.partial_json,
            Content::Native { value, .. } if delta.partial_json.is_none() => {
                let mut event: Value = serde_json::from_slice(data)?;
                absorb(value, event["delta"].take());
                return Ok(());
            }
            Content::Native { .. } => &delta.partial_json,
        };
        open.text.push_str(Text::or_empty(fragment));
        Ok(())
    }

    fn block_stopped(&mut self, index: u32) {
        let cited = self.citations.remove(&index).and_then(|citations| match self.assembly.block(index)? {
            Open { content: Content::Text, text, .. } => {
                Some(json!({ "type": "text", "text": text, "citations": citations }))
            }
            _ => None,
        });
        self.assembly.finish(index);
        if let Some(value) = cited {
            self.assembly.start(index | CITED, Content::Native { provider: self.provider.clone(), value });
            self.assembly.finish(index | CITED);
        }
    }

    fn message_changed(&mut self, delta: Option<DeltaFrame<'_>>, usage: Option<UsageFrame>) {
        self.count(usage);
        if let Some(reason) = delta.and_then(|delta| delta.stop_reason) {
            self.assembly.raw_stop = Some(reason.0.into_owned());
            self.assembly.progress = Progress::Whole;
        }
    }

    fn count(&mut self, usage: Option<UsageFrame>) {
        let Some(usage) = usage else { return };
        let set = |count: &mut u64, said: Option<u64>| *count = said.unwrap_or(*count);
        let so_far = &mut self.assembly.usage;
        set(&mut so_far.input, usage.input_tokens);
        set(&mut so_far.cache_read, usage.cache_read_input_tokens);
        set(&mut so_far.cache_write, usage.cache_creation_input_tokens);
        set(&mut so_far.output, usage.output_tokens);
        set(&mut so_far.reasoning, usage.output_tokens_details.and_then(|details| details.thinking_tokens));
    }
}

impl Decode for Decoder {
    fn event(&mut self, event: &SseEvent<'_>) -> Result<(), Unreadable> {
        if event.event == b"error" {
            return Err(Unreadable::Reported(said(event.data)));
        }
        let frame: Frame<'_> = serde_json::from_slice(event.data)?;
        match Text::or_empty(&frame.kind) {
            "content_block_delta" => return self.delta(frame.index, frame.delta, event.data),
            "message_start" => return self.message_started(frame.message),
            "content_block_start" => return self.block_started(frame.index, frame.content_block),
            "content_block_stop" => {
                self.open(frame.index)?;
                self.block_stopped(frame.index);
            }
            "message_delta" => self.message_changed(frame.delta, frame.usage),
            // Without a reason to stop, having said something is enough; an end before all else ends nothing.
            "message_stop" if self.has_blocks || self.assembly.progress == Progress::Whole => {
                self.assembly.progress = Progress::Ended;
            }
            "error" => return Err(Unreadable::Reported(said(event.data))),
            // `ping`, and what later versions of the API may add.
            _ => {}
        }
        Ok(())
    }

    fn assembly(&mut self) -> &mut Assembly {
        &mut self.assembly
    }

    fn stop_reason(&self, raw: Option<&str>) -> StopReason {
        match raw {
            Some("end_turn") => StopReason::EndTurn,
            Some("tool_use") => StopReason::ToolUse,
            Some("max_tokens" | "model_context_window_exceeded") => StopReason::MaxTokens,
            Some("stop_sequence") => StopReason::StopSequence,
            Some("refusal") => StopReason::Refusal,
            Some("pause_turn") => StopReason::Pause,
            Some(_) => StopReason::Other,
            None if self.has_calls => StopReason::ToolUse,
            None => StopReason::EndTurn,
        }
    }
}

/// Adds a delta of an unknown kind to its block: text is appended, lists are extended, the rest is set.
fn absorb(block: &mut Value, delta: Value) {
    let Value::Object(fields) = delta else { return };
    for (name, fresh) in fields {
        match (name.as_str(), fresh) {
            ("type", _) => {}
            // The one delta that names its field in the singular.
            ("citation", fresh) => match &mut block["citations"] {
                Value::Array(had) => had.push(fresh),
                had => *had = Value::Array(vec![fresh]),
            },
            (_, fresh) => match (&mut block[name.as_str()], fresh) {
                (Value::String(had), Value::String(fresh)) => had.push_str(&fresh),
                (Value::Array(had), Value::Array(fresh)) => had.extend(fresh),
                (had, fresh) => *had = fresh,
            },
        }
    }
}

fn some(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}

fn broken(cause: &str) -> Unreadable {
    Unreadable::Broken(cause.to_owned())
}
