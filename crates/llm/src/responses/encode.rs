//! Requests as the Responses API wants them.

use crate::body::{Segments, opened, write_items};
use crate::call_ids::wire_id;
use crate::effort::{effort_of, word};
use crate::endpoint::Target;
use crate::media::{Media, Shown, Takes};
use crate::memo::{Encode, Parts, packed};
use crate::protocol::wire_name;
use crate::wording::{DataUrl, NO_OUTPUT, arguments, is_said, result_words, set_sampling};
use crate::{Quirk, Request, SystemSection, ToolSpec, schema};
use bytes::Bytes;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::HashMap;
use windlass_kernel::{ContentBlock, Message, Role, ToolChoice, ToolResult};

/// An item of the input.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Item<'a> {
    Message { role: &'static str, content: Vec<Part<'a>> },
    FunctionCall { call_id: Cow<'a, str>, name: Cow<'a, str>, arguments: String },
    FunctionCallOutput { call_id: Cow<'a, str>, output: Output<'a> },
}

/// An item of ours, or one that goes back as it came.
#[derive(Serialize)]
#[serde(untagged)]
enum Entry<'a> {
    Item(Item<'a>),
    Reasoning(&'a RawValue),
    Native(&'a Value),
}

/// Words alone go as a string, which every server takes.
#[derive(Serialize)]
#[serde(untagged)]
enum Output<'a> {
    Text(String),
    Parts(Vec<Part<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part<'a> {
    InputText { text: Cow<'a, str> },
    OutputText { text: &'a str },
    InputImage { image_url: DataUrl<'a>, detail: &'static str },
    InputFile { filename: &'a str, file_data: DataUrl<'a> },
}

#[derive(Serialize)]
struct Tool<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
    strict: bool,
}

pub(super) fn encode(target: &Target, request: &Request) -> Segments {
    let wire = Wire::of(target);
    let encoded = request.memo.encode(&wire, request);
    let mut segments = Segments::default();
    segments.push(&opening(target, request));
    segments.share(&encoded.head);
    let mut is_first = encoded.head.ends_with(b"[");
    let mut add = |segments: &mut Segments, piece: &Bytes| {
        if !piece.is_empty() {
            segments.push(if std::mem::take(&mut is_first) { b"" } else { b"," });
            segments.share(piece);
        }
    };
    if let Some(schema) = request.output_schema.as_ref().filter(|_| target.has(Quirk::SchemaAsJson)) {
        let mut told = Vec::new();
        write_items(&mut told, [developer(schema::sentence(schema))]);
        add(&mut segments, &told.into());
    }
    // Outputs stand right behind the calls they answer, before anything else of their side's say.
    for say in encoded.messages.chunk_by(|a, b| a.role == b.role) {
        let pieces = say.iter().map(|parts| &parts.results).chain(say.iter().map(|parts| &parts.others));
        pieces.for_each(|piece| add(&mut segments, piece));
    }
    segments.push(b"]}");
    segments
}

/// What may differ from call to call.
fn opening(target: &Target, request: &Request) -> Vec<u8> {
    let parameters = &request.parameters;
    let mut body = json!({
        "model": target.model,
        "stream": true,
        "store": false,
        "max_output_tokens": parameters.max_tokens,
    });
    if !target.has(Quirk::NoThinking) {
        body["include"] = json!(["reasoning.encrypted_content"]);
        body["reasoning"] = json!({ "summary": "auto" });
        let known = target.endpoint.efforts.as_deref();
        if let Some(word) = effort_of(parameters).and_then(|effort| word(effort, known)) {
            body["reasoning"]["effort"] = word.into();
        }
    }
    if !target.has(Quirk::NoTemperature) {
        set_sampling(&mut body, parameters);
    }
    if target.has(Quirk::CacheKey) && !request.cache_key.is_empty() {
        body["prompt_cache_key"] = request.cache_key.as_str().into();
    }
    if let Some(schema) = &request.output_schema {
        let mut format = json!({ "type": "json_object" });
        if !target.has(Quirk::SchemaAsJson) {
            format = schema::named(schema);
            format["type"] = "json_schema".into();
        }
        body["text"] = json!({ "format": format });
    }
    if !request.tools.is_empty() {
        body["tool_choice"] = tool_choice(&parameters.tool_choice);
        body["parallel_tool_calls"] = true.into();
    }
    opened(&body)
}

fn tool_choice(choice: &ToolChoice) -> Value {
    match choice {
        ToolChoice::Auto => "auto".into(),
        ToolChoice::None => "none".into(),
        ToolChoice::Any => "required".into(),
        ToolChoice::Tool { name } => json!({ "type": "function", "name": name }),
    }
}

struct Wire<'a> {
    provider: &'a str,
    /// The model takes reasoning back; one that does not think refuses a request that holds any.
    thinks: bool,
    takes: Takes,
}

impl Encode for Wire<'_> {
    const PROTOCOL: &'static str = "responses";

    fn provider(&self) -> &str {
        self.provider
    }

    fn manner(&self) -> u32 {
        u32::from(self.thinks) | self.takes.bits() << 1
    }

    /// The prompt stands in the input, which every server takes; what may change in a message of its own, so that the
    /// one before it stays the beginning of every request.
    fn head(&self, system: &[SystemSection], tools: &[ToolSpec]) -> Vec<u8> {
        let mut out = Vec::new();
        if !tools.is_empty() {
            out.extend_from_slice(br#""tools":["#);
            let tools = tools.iter().map(|tool| Tool {
                kind: "function",
                name: &tool.name,
                description: &tool.description,
                parameters: &tool.schema,
                strict: false,
            });
            write_items(&mut out, tools);
            out.extend_from_slice(b"],");
        }
        out.extend_from_slice(br#""input":["#);
        for fixed in [true, false] {
            let sections = system.iter().filter(|section| section.fixed == fixed).map(|section| section.text.trim());
            let text = sections.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n");
            if !text.is_empty() {
                write_items(&mut out, [developer(text)]);
            }
        }
        out
    }

    fn message(&self, message: &Message, blobs: &HashMap<String, Bytes>) -> Parts {
        let media = self.takes.among(blobs);
        let (mut results, mut others) = (Vec::new(), Vec::new());
        match message.role {
            Role::Assistant => write_items(&mut others, self.assistant(message)),
            Role::User => {
                let outputs = message.content.iter().filter_map(|block| match block {
                    ContentBlock::ToolResult(result) => Some(output(result, media)),
                    _ => None,
                });
                write_items(&mut results, outputs);
                let content: Vec<Part<'_>> = message.content.iter().filter_map(|block| part(block, media)).collect();
                write_items(&mut others, (!content.is_empty()).then_some(Item::Message { role: "user", content }));
            }
        }
        // No breakpoints here: the provider finds common beginnings on its own.
        Parts { role: message.role, results: packed(results), others: packed(others), markable: false }
    }
}

impl<'a> Wire<'a> {
    fn of(target: &'a Target) -> Wire<'a> {
        let (provider, thinks) = (target.endpoint.provider.as_str(), !target.has(Quirk::NoThinking));
        Wire { provider, thinks, takes: Takes::of(target) }
    }

    /// The items of a message in their order. Reasoning that nothing follows, for the message was cut, is left out: the
    /// API refuses it.
    fn assistant<'b>(&self, message: &'b Message) -> Vec<Entry<'b>> {
        let mut items: Vec<Entry<'b>> = message.content.iter().filter_map(|block| self.entry(block)).collect();
        while let Some(Entry::Reasoning(_)) = items.last() {
            items.pop();
        }
        items
    }

    fn entry<'b>(&self, block: &'b ContentBlock) -> Option<Entry<'b>> {
        Some(Entry::Item(match block {
            ContentBlock::Text { text } if is_said(text) => {
                Item::Message { role: "assistant", content: vec![Part::OutputText { text }] }
            }
            ContentBlock::ToolUse(call) => {
                let name = wire_name(&call.name);
                Item::FunctionCall { call_id: wire_id(&call.id.0), name, arguments: arguments(&call.input) }
            }
            ContentBlock::Thinking { signature, by, .. }
                if self.thinks && by.as_ref().is_none_or(|by| by == self.provider) =>
            {
                return Some(Entry::Reasoning(reasoning(signature.as_deref()?)?));
            }
            ContentBlock::Native { provider, value } => {
                return (provider == self.provider).then_some(Entry::Native(value));
            }
            _ => return None,
        }))
    }
}

/// The item that a signature holds; none if it is another protocol's.
fn reasoning(signature: &str) -> Option<&RawValue> {
    if !signature.starts_with('{') {
        return None;
    }
    serde_json::from_str(signature).ok()
}

fn developer(text: String) -> Item<'static> {
    Item::Message { role: "developer", content: vec![Part::InputText { text: text.into() }] }
}

fn output<'b>(result: &'b ToolResult, media: Media<'b>) -> Item<'b> {
    let call_id = wire_id(&result.tool_use_id.0);
    if !result.content.iter().any(|block| media.shows(block)) {
        return Item::FunctionCallOutput { call_id, output: Output::Text(result_words(result, NO_OUTPUT, media)) };
    }
    let words = result_words(result, "", media);
    let words = is_said(&words).then_some(Part::InputText { text: words.into() });
    let shown = result.content.iter().filter(|block| media.shows(block)).filter_map(|block| part(block, media));
    Item::FunctionCallOutput { call_id, output: Output::Parts(words.into_iter().chain(shown).collect()) }
}

/// What a person may say.
fn part<'b>(block: &'b ContentBlock, media: Media<'b>) -> Option<Part<'b>> {
    if let ContentBlock::Text { text } = block {
        return is_said(text).then(|| Part::InputText { text: text.into() });
    }
    Some(match media.show(block)? {
        Shown::Image { media_type, bytes } => {
            Part::InputImage { image_url: DataUrl { media_type, bytes }, detail: "auto" }
        }
        Shown::Document { media_type, bytes, title } => {
            let filename = title.unwrap_or("document.pdf");
            Part::InputFile { filename, file_data: DataUrl { media_type, bytes } }
        }
        Shown::Words(words) => Part::InputText { text: words.into() },
    })
}
