//! The event stream of the Responses API.

use crate::ModelEvent;
use crate::assembly::{Assembly, Content, Open};
use crate::protocol::{Decode, Progress, Text, Unreadable};
use crate::said::said;
use crate::sse::SseEvent;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use windlass_kernel::{StopReason, Usage};

pub(crate) struct Decoder {
    provider: String,
    assembly: Assembly,
    started: bool,
    /// The items that are not told to be over yet, in order.
    items: Vec<Heard>,
    next_index: u32,
    has_calls: bool,
    refused: bool,
}

/// An item being heard.
struct Heard {
    /// Its place in the output, by which fragments name it.
    output_index: u32,
    /// Its block.
    block: u32,
    /// It is whole, and waits for the ones before it.
    done: bool,
}

/// Any event of the stream; borrowed, so that a delta costs its own bytes and nothing else.
#[derive(Deserialize)]
struct Frame<'a> {
    #[serde(rename = "type", borrow)]
    kind: Option<Text<'a>>,
    #[serde(default)]
    output_index: u32,
    #[serde(default)]
    summary_index: u32,
    /// Text in the events that are read here; what others hold in it is not looked at.
    #[serde(borrow)]
    delta: Option<&'a RawValue>,
    #[serde(borrow)]
    item: Option<&'a RawValue>,
    #[serde(borrow)]
    response: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ItemFrame<'a> {
    #[serde(rename = "type", borrow)]
    kind: Option<Text<'a>>,
    #[serde(borrow)]
    call_id: Option<Text<'a>>,
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    name: Option<Text<'a>>,
    #[serde(borrow)]
    arguments: Option<Text<'a>>,
    #[serde(borrow)]
    content: Option<Vec<PartFrame<'a>>>,
    #[serde(borrow)]
    summary: Option<Vec<PartFrame<'a>>>,
    #[serde(borrow)]
    encrypted_content: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct PartFrame<'a> {
    #[serde(borrow)]
    text: Option<Text<'a>>,
    #[serde(borrow)]
    refusal: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct ResponseFrame<'a> {
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    model: Option<Text<'a>>,
    usage: Option<UsageFrame>,
    #[serde(borrow)]
    incomplete_details: Option<IncompleteFrame<'a>>,
    #[serde(borrow)]
    output: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
struct IncompleteFrame<'a> {
    #[serde(borrow)]
    reason: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct UsageFrame {
    input_tokens: Option<u64>,
    input_tokens_details: Option<InputDetails>,
    output_tokens: Option<u64>,
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Default, Deserialize)]
struct InputDetails {
    cached_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct OutputDetails {
    reasoning_tokens: Option<u64>,
}

impl Decoder {
    pub(crate) fn new(provider: &str) -> Decoder {
        Decoder {
            provider: provider.to_owned(),
            assembly: Assembly::new(provider),
            started: false,
            items: vec![],
            next_index: 0,
            has_calls: false,
            refused: false,
        }
    }

    fn response_began(&mut self, response: Option<&RawValue>) -> Result<(), Unreadable> {
        if std::mem::replace(&mut self.started, true) {
            return Ok(());
        }
        let response: Option<ResponseFrame<'_>> = response.map(RawValue::get).map(serde_json::from_str).transpose()?;
        let (id, model) = response.map(|response| (response.id, response.model)).unwrap_or_default();
        let (id, model) = (Text::or_empty(&id).to_owned(), Text::or_empty(&model).to_owned());
        self.assembly.tell(ModelEvent::Started { id, model, usage: Usage::default() });
        Ok(())
    }

    fn item_began(&mut self, output_index: u32, item: Option<&RawValue>) -> Result<(), Unreadable> {
        let Some(item) = item else { return Err(Unreadable::broken("an item that is not there")) };
        self.response_began(None)?;
        let frame: ItemFrame<'_> = serde_json::from_str(item.get())?;
        let content = match Text::or_empty(&frame.kind) {
            "message" => Content::Text,
            "reasoning" => Content::Thinking { signature: None },
            "function_call" => {
                self.has_calls = true;
                let id = frame.call_id.as_ref().or(frame.id.as_ref());
                let id = id.filter(|id| !id.0.is_empty()).ok_or_else(|| Unreadable::broken("a call without an id"))?;
                let name = Text::or_empty(&frame.name).to_owned();
                Content::ToolUse { id: id.0.to_string(), name, signature: None }
            }
            // Only the provider knows this kind: it is kept as it came.
            _ => Content::Native { provider: self.provider.clone(), value: serde_json::from_str(item.get())? },
        };
        let block = self.next_index;
        self.next_index += 1;
        self.assembly.start(block, content);
        self.items.push(Heard { output_index, block, done: false });
        Ok(())
    }

    /// The block of the newest item at `output_index`.
    fn open(&mut self, output_index: u32) -> Result<&mut Open, Unreadable> {
        let heard = self.items.iter().rev().find(|heard| heard.output_index == output_index);
        let block = heard.and_then(|heard| self.assembly.block(heard.block));
        block.ok_or_else(|| Unreadable::Broken(format!("item {output_index} was never started, or is over")))
    }

    fn fragment(&mut self, output_index: u32, delta: Option<&RawValue>) -> Result<(), Unreadable> {
        let Some(delta) = delta else { return Ok(()) };
        let text: Option<Text<'_>> = serde_json::from_str(delta.get())?;
        let open = self.open(output_index)?;
        if !matches!(open.content, Content::Native { .. }) {
            open.text.push_str(Text::or_empty(&text));
        }
        Ok(())
    }

    /// Takes in the whole item, and ends every block that has none before it to wait for.
    fn item_ended(&mut self, output_index: u32, item: Option<&RawValue>) -> Result<(), Unreadable> {
        if !self.items.iter().any(|heard| heard.output_index == output_index && !heard.done) {
            self.item_began(output_index, item)?;
        }
        if let Some(item) = item {
            let frame: ItemFrame<'_> = serde_json::from_str(item.get())?;
            self.refused |= frame.content.iter().flatten().any(|part| part.refusal.is_some());
            complete(self.open(output_index)?, &frame, item)?;
        }
        if let Some(heard) = self.items.iter_mut().rev().find(|heard| heard.output_index == output_index) {
            heard.done = true;
        }
        while self.items.first().is_some_and(|heard| heard.done) {
            let heard = self.items.remove(0);
            self.assembly.finish(heard.block);
        }
        Ok(())
    }

    /// A further part of a summary is a further paragraph.
    fn paragraph(&mut self, output_index: u32, summary_index: u32) -> Result<(), Unreadable> {
        if summary_index > 0 {
            self.open(output_index)?.text.push_str("\n\n");
        }
        Ok(())
    }

    fn response_ended(&mut self, kind: &str, response: Option<&RawValue>) -> Result<(), Unreadable> {
        self.response_began(response)?;
        let response = response.ok_or_else(|| Unreadable::broken("the end of a response without the response"))?;
        let response: ResponseFrame<'_> = serde_json::from_str(response.get())?;
        if let Some(usage) = response.usage {
            self.count(usage);
        }
        // Some servers send nothing but the end.
        let unheard = response.output.filter(|_| self.next_index == 0).unwrap_or_default();
        for (place, item) in (0..).zip(unheard) {
            self.item_ended(place, Some(item))?;
        }
        let reason = response.incomplete_details.and_then(|details| details.reason);
        let reason = reason.map_or_else(|| kind.to_owned(), |reason| reason.0.into_owned());
        self.assembly.raw_stop = Some(reason);
        self.assembly.progress = Progress::Ended;
        Ok(())
    }

    fn count(&mut self, usage: UsageFrame) {
        let input = usage.input_tokens.unwrap_or(0);
        let details = usage.input_tokens_details.unwrap_or_default();
        let cache_read = details.cached_tokens.unwrap_or(0).min(input);
        let cache_write = details.cache_write_tokens.unwrap_or(0).min(input - cache_read);
        let reasoning = usage.output_tokens_details.and_then(|details| details.reasoning_tokens).unwrap_or(0);
        self.assembly.usage = Usage {
            input: input - cache_read - cache_write,
            cache_read,
            cache_write,
            output: usage.output_tokens.unwrap_or(0),
            reasoning,
        };
    }
}

/// What the whole item adds to what was heard of it: servers may send no fragments, and only the whole one has its seal.
fn complete(open: &mut Open, frame: &ItemFrame<'_>, item: &RawValue) -> Result<(), Unreadable> {
    let texts = match &mut open.content {
        Content::Thinking { signature } => {
            // Without its encrypted form the provider would look for an item that it never kept.
            *signature = frame.encrypted_content.as_ref().map(|_| compact(item)).transpose()?;
            [&frame.summary, &frame.content]
        }
        Content::ToolUse { .. } => {
            if open.text.is_empty() {
                open.text.push_str(Text::or_empty(&frame.arguments));
            }
            return Ok(());
        }
        Content::Native { value, .. } => {
            *value = serde_json::from_str(item.get())?;
            return Ok(());
        }
        Content::Text | Content::Redacted { .. } => [&frame.content, &None],
    };
    if open.text.is_empty() {
        let parts = texts.into_iter().flatten().flatten();
        let parts = parts.filter_map(|part| part.text.as_ref().or(part.refusal.as_ref()));
        open.text = parts.map(|text| text.0.as_ref()).collect::<Vec<_>>().join("\n\n");
    }
    Ok(())
}

/// The item as it came, without the white space that some servers set it in.
fn compact(item: &RawValue) -> Result<String, Unreadable> {
    match item.get().contains('\n') {
        true => Ok(serde_json::from_str::<Value>(item.get())?.to_string()),
        false => Ok(item.get().to_owned()),
    }
}

impl Decode for Decoder {
    fn event(&mut self, event: &SseEvent<'_>) -> Result<(), Unreadable> {
        if event.data.trim_ascii() == b"[DONE]" {
            return Ok(());
        }
        let frame: Frame<'_> = serde_json::from_slice(event.data)?;
        let kind = match &frame.kind {
            Some(kind) => kind.0.as_bytes(),
            None => event.event,
        };
        match kind {
            b"response.output_text.delta"
            | b"response.function_call_arguments.delta"
            | b"response.reasoning_summary_text.delta"
            | b"response.reasoning_text.delta" => self.fragment(frame.output_index, frame.delta),
            b"response.refusal.delta" => {
                self.refused = true;
                self.fragment(frame.output_index, frame.delta)
            }
            b"response.created" | b"response.in_progress" => self.response_began(frame.response),
            b"response.output_item.added" => self.item_began(frame.output_index, frame.item),
            b"response.output_item.done" => self.item_ended(frame.output_index, frame.item),
            b"response.reasoning_summary_part.added" => self.paragraph(frame.output_index, frame.summary_index),
            b"response.completed" => self.response_ended("completed", frame.response),
            b"response.incomplete" => self.response_ended("incomplete", frame.response),
            b"response.failed" | b"response.cancelled" => {
                let response = frame.response.map_or(event.data, |response| response.get().as_bytes());
                Err(Unreadable::Reported(said(response)))
            }
            b"error" => Err(Unreadable::Reported(said(event.data))),
            // What says again what was said by fragments, signs of life, and what later versions of the API may add.
            _ => Ok(()),
        }
    }

    fn assembly(&mut self) -> &mut Assembly {
        &mut self.assembly
    }

    fn stop_reason(&self, raw: Option<&str>) -> StopReason {
        match raw {
            Some("max_output_tokens") => StopReason::MaxTokens,
            Some("content_filter") => StopReason::Refusal,
            _ if self.refused => StopReason::Refusal,
            Some("completed") if self.has_calls => StopReason::ToolUse,
            Some("completed") => StopReason::EndTurn,
            _ => StopReason::Other,
        }
    }
}
