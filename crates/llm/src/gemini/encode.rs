//! Requests as `generateContent` wants them.

use super::part::{Outcome, Part, Response, function_call, id, plain, text};
use super::schema;
use super::thinking::{Thinking, is_newer};
use crate::body::{Segments, opened, write_items, write_json};
use crate::calls::Known;
use crate::endpoint::Target;
use crate::media::{Media, Takes};
use crate::memo::{Encode, Parts, packed};
use crate::protocol::wire_name;
use crate::schema::sentence;
use crate::wording::{NO_OUTPUT, is_said, joined};
use crate::{Quirk, Request, SystemSection, ToolSpec};
use bytes::Bytes;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::MutexGuard;
use windlass_kernel::{ContentBlock, Message, Role, ToolChoice, ToolResult, ToolUse};

/// What the API takes in the place of a signature for calls that another model made.
const FOREIGN_CALL: &str = "skip_thought_signature_validator";
/// What a result says that consists of media.
const ATTACHED: &str = "(attached)";

pub(super) fn encode(target: &Target, request: &Request) -> Segments {
    let encoded = request.memo.encode(&Wire::new(target, request), request);
    let mut segments = Segments::default();
    segments.push(&opening(target, request));
    segments.share(&encoded.head);
    segments.push(&end_of_system(target, request));
    segments.push(br#""contents":["#);
    let messages: Vec<&Parts> = encoded.messages.iter().filter(|parts| !parts.is_empty()).collect();
    for (place, say) in messages.chunk_by(|a, b| a.role == b.role).enumerate() {
        segments.push(if place == 0 { b"" } else { b"," });
        write_say(&mut segments, say);
    }
    segments.push(b"]}");
    segments
}

/// What differs from call to call; it stands first so that all behind it can be kept.
fn opening(target: &Target, request: &Request) -> Vec<u8> {
    let parameters = &request.parameters;
    let thinking = Thinking::of(target, parameters);
    let mut config = json!({ "maxOutputTokens": thinking.limit(parameters.max_tokens) });
    if !target.has(Quirk::NoTemperature) {
        for (name, value) in [("temperature", parameters.temperature), ("topP", parameters.top_p)] {
            if let Some(value) = value {
                config[name] = value.into();
            }
        }
    }
    if let Some(thinking) = thinking.config {
        config["thinkingConfig"] = thinking;
    }
    if let Some(schema) = request.output_schema.as_deref().filter(|_| takes_format(target, request)) {
        config["responseMimeType"] = "application/json".into();
        if !target.has(Quirk::SchemaAsJson) {
            config["responseJsonSchema"] = schema::without_references(schema);
        }
    }
    let mut body = json!({ "generationConfig": config });
    if let Some(config) = tool_config(&parameters.tool_choice).filter(|_| !request.tools.is_empty()) {
        body["toolConfig"] = json!({ "functionCallingConfig": config });
    }
    opened(&body)
}

fn tool_config(choice: &ToolChoice) -> Option<Value> {
    match choice {
        ToolChoice::Auto => None,
        ToolChoice::None => Some(json!({ "mode": "NONE" })),
        ToolChoice::Any => Some(json!({ "mode": "ANY" })),
        ToolChoice::Tool { name } => Some(json!({ "mode": "ANY", "allowedFunctionNames": [name] })),
    }
}

/// Whether the answer's format may be given. Models before the third generation refuse one beside tools.
fn takes_format(target: &Target, request: &Request) -> bool {
    request.tools.is_empty() || is_newer(&target.model)
}

/// Ends the system prompt, which the head leaves open for what this call adds to it: the schema of the answer in words,
/// where the API does not take it otherwise.
fn end_of_system(target: &Target, request: &Request) -> Vec<u8> {
    let in_words = target.has(Quirk::SchemaAsJson) || !takes_format(target, request);
    let words = request.output_schema.as_deref().filter(|_| in_words).map(sentence);
    let mut out = Vec::new();
    match (has_system(&request.system), &words) {
        (false, None) => return out,
        (true, None) => {}
        (true, Some(_)) => out.push(b','),
        (false, Some(_)) => out.extend_from_slice(OPEN_SYSTEM),
    }
    if let Some(words) = words {
        write_json(&mut out, &text(format!("\n\n{words}").into()));
    }
    out.extend_from_slice(b"]},");
    out
}

const OPEN_SYSTEM: &[u8] = br#""systemInstruction":{"parts":["#;

fn has_system(system: &[SystemSection]) -> bool {
    system.iter().any(|section| is_said(&section.text))
}

/// One side's say, which may be several messages of ours; results of calls stand first, as the API demands.
fn write_say(segments: &mut Segments, say: &[&Parts]) {
    segments.push(match say[0].role {
        Role::User => br#"{"role":"user","parts":["#,
        Role::Assistant => br#"{"role":"model","parts":["#,
    });
    let pieces = say.iter().map(|parts| &parts.results).chain(say.iter().map(|parts| &parts.others));
    for (place, piece) in pieces.filter(|piece| !piece.is_empty()).enumerate() {
        segments.push(if place == 0 { b"" } else { b"," });
        segments.share(piece);
    }
    segments.push(b"]}");
}

struct Wire<'a> {
    provider: &'a str,
    is_newer: bool,
    takes: Takes,
    /// Results go by the names of the tools, which stand in the calls before them.
    calls: MutexGuard<'a, Known>,
}

impl Encode for Wire<'_> {
    const PROTOCOL: &'static str = "gemini";

    fn provider(&self) -> &str {
        self.provider
    }

    fn manner(&self) -> u32 {
        u32::from(self.is_newer) | self.takes.bits() << 1
    }

    fn head(&self, system: &[SystemSection], tools: &[ToolSpec]) -> Vec<u8> {
        let mut out = Vec::new();
        if !tools.is_empty() {
            out.extend_from_slice(br#""tools":[{"functionDeclarations":["#);
            write_items(&mut out, tools.iter().map(declaration));
            out.extend_from_slice(b"]}],");
        }
        if has_system(system) {
            let texts = system.iter().map(|section| section.text.trim()).filter(|text| !text.is_empty());
            out.extend_from_slice(OPEN_SYSTEM);
            write_json(&mut out, &text(texts.collect::<Vec<_>>().join("\n\n").into()));
        }
        out
    }

    fn message(&self, message: &Message, blobs: &HashMap<String, Bytes>) -> Parts {
        let media = self.takes.among(blobs);
        let (mut results, mut others) = (Vec::new(), Vec::new());
        for result in results_of(message) {
            write_items(&mut results, [self.response(result, media)]);
        }
        if !self.is_newer {
            let shown = results_of(message).flat_map(|result| &result.content).filter(|block| media.shows(block));
            write_items(&mut others, shown.flat_map(|block| plain(block, media)));
        }
        let mut foreign = Some(FOREIGN_CALL).filter(|_| self.is_newer && !self.has_signed_call(message));
        for (place, block) in message.content.iter().enumerate() {
            match block {
                ContentBlock::ToolUse(call) => {
                    let thought_signature = self.call_signature(call).or_else(|| foreign.take());
                    write_items(&mut others, [Part::Call { function_call: function_call(call), thought_signature }]);
                }
                ContentBlock::Text { text } => {
                    let seal = message.content.get(place + 1).and_then(|next| self.seal(next));
                    write_items(&mut others, self.text(text, seal));
                }
                // It went with the text.
                block if self.seal(block).is_some() && follows_text(&message.content, place) => {}
                block if block.is_thinking() => write_items(&mut others, self.thought(block)),
                ContentBlock::Native { provider, value } if provider == self.provider => {
                    write_items(&mut others, [Part::Native(value)]);
                }
                block => write_items(&mut others, plain(block, media)),
            }
        }
        Parts { role: message.role, results: packed(results), others: packed(others), markable: false }
    }
}

impl<'a> Wire<'a> {
    fn new(target: &'a Target, request: &'a Request) -> Wire<'a> {
        let (provider, is_newer) = (target.endpoint.provider.as_str(), is_newer(&target.model));
        Wire { provider, is_newer, takes: Takes::of(target), calls: request.memo.calls().of(&request.messages) }
    }

    /// Every signature that was ever kept of this protocol names its provider.
    fn is_ours(&self, by: &Option<String>) -> bool {
        by.as_deref() == Some(self.provider)
    }

    fn call_signature<'b>(&self, call: &'b ToolUse) -> Option<&'b str> {
        let signature = call.signature.as_deref().filter(|signature| signature.by == self.provider)?;
        Some(&signature.text)
    }

    /// Of calls made together only the first is signed.
    fn has_signed_call(&self, message: &Message) -> bool {
        let is_signed = |call: &ToolUse| self.call_signature(call).is_some();
        message.content.iter().any(|block| matches!(block, ContentBlock::ToolUse(call) if is_signed(call)))
    }

    /// The signature of the text that the block stands behind.
    fn seal<'b>(&self, block: &'b ContentBlock) -> Option<&'b str> {
        match block {
            ContentBlock::Thinking { thinking, signature, by } if thinking.is_empty() && self.is_ours(by) => {
                signature.as_deref()
            }
            _ => None,
        }
    }

    fn text<'b>(&self, text: &'b str, seal: Option<&'b str>) -> Option<Part<'b>> {
        let part = Part::Text { text: text.into(), thought: false, thought_signature: seal };
        (is_said(text) || seal.is_some()).then_some(part)
    }

    /// Signed thinking. Without a signature it is of no use to the model, or another's.
    fn thought<'b>(&self, block: &'b ContentBlock) -> Option<Part<'b>> {
        let (text, signature) = match block {
            ContentBlock::Thinking { thinking, signature, by } if self.is_ours(by) => {
                (thinking.as_str(), signature.as_deref()?)
            }
            ContentBlock::RedactedThinking { data, by } if self.is_ours(by) => ("", data.as_str()),
            _ => return None,
        };
        let thought = !text.is_empty();
        Some(Part::Text { text: text.into(), thought, thought_signature: Some(signature) })
    }

    fn response<'b>(&'b self, result: &'b ToolResult, media: Media<'b>) -> Part<'b> {
        let mut said = joined(&result.content, "\n", media);
        let mut parts = Vec::new();
        let shown = result.content.iter().filter(|block| media.shows(block));
        let has_media = shown.clone().next().is_some();
        for part in shown.filter(|_| self.is_newer).flat_map(|block| plain(block, media)) {
            match part {
                // Only data may stand there.
                Part::Text { text, .. } => said = format!("{said}\n{text}").trim_start().to_owned(),
                data => parts.push(data),
            }
        }
        if !is_said(&said) {
            said = if has_media { ATTACHED } else { NO_OUTPUT }.into();
        }
        Part::Response {
            function_response: Response {
                id: id(&result.tool_use_id.0),
                name: wire_name(self.calls.name(&result.tool_use_id.0).unwrap_or_default()),
                response: if result.is_error { Outcome::Error(said) } else { Outcome::Output(said) },
                parts,
            },
        }
    }
}

fn declaration(tool: &ToolSpec) -> Value {
    let mut declaration = json!({ "name": tool.name, "description": tool.description });
    if let Some(schema) = schema::parameters(&tool.schema) {
        declaration["parametersJsonSchema"] = schema;
    }
    declaration
}

fn results_of(message: &Message) -> impl Iterator<Item = &ToolResult> {
    message.content.iter().filter_map(|block| match block {
        ContentBlock::ToolResult(result) => Some(result),
        _ => None,
    })
}

fn follows_text(content: &[ContentBlock], place: usize) -> bool {
    place > 0 && matches!(content[place - 1], ContentBlock::Text { .. })
}
