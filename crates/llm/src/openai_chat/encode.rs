//! Requests as Chat Completions wants them.

use crate::body::{Segments, write_items, write_json};
use crate::endpoint::Target;
use crate::memo::{Encode, Parts, missing, packed};
use crate::protocol::wire_name;
use crate::{Request, SystemSection, ToolSpec};
use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::HashMap;
use windlass_kernel::{BlobRef, ContentBlock, Message, Parameters, Role, ToolResult, ToolUse};

/// What a tool that said nothing is taken to have said: some servers refuse an empty message.
const NO_OUTPUT: &str = "(no output)";

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "snake_case")]
enum Entry<'a> {
    System {
        content: &'a str,
    },
    User {
        content: Words<'a>,
    },
    Assistant {
        content: Option<String>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<Call<'a>>,
    },
    Tool {
        tool_call_id: &'a str,
        content: String,
    },
}

/// Words alone go as a string, which every server takes.
#[derive(Serialize)]
#[serde(untagged)]
enum Words<'a> {
    Text(String),
    Parts(Vec<Part<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part<'a> {
    Text { text: Cow<'a, str> },
    ImageUrl { image_url: Image<'a> },
    File { file: File<'a> },
}

#[derive(Serialize)]
struct Image<'a> {
    url: DataUrl<'a>,
}

#[derive(Serialize)]
struct File<'a> {
    filename: &'a str,
    file_data: DataUrl<'a>,
}

struct DataUrl<'a> {
    media_type: &'a str,
    bytes: &'a Bytes,
}

impl Serialize for DataUrl<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let data = Base64Display::new(self.bytes, &STANDARD);
        serializer.collect_str(&format_args!("data:{};base64,{data}", self.media_type))
    }
}

#[derive(Serialize)]
struct Call<'a> {
    id: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: Cow<'a, str>,
    arguments: String,
}

pub(super) fn encode(target: &Target, request: &Request) -> Segments {
    let provider = &target.endpoint.provider;
    let encoded = request.memo.encode(&Wire { provider }, request);
    let mut segments = Segments::default();
    segments.push(&opening(provider, &target.model, &request.parameters));
    segments.share(&encoded.head);
    let mut is_first = encoded.head.ends_with(b"[");
    // Results stand right behind the calls they answer, before anything else of their side's say.
    for say in encoded.messages.chunk_by(|a, b| a.role == b.role) {
        let pieces = say.iter().map(|parts| &parts.results).chain(say.iter().map(|parts| &parts.others));
        for piece in pieces.filter(|piece| !piece.is_empty()) {
            segments.push(if std::mem::take(&mut is_first) { b"" } else { b"," });
            segments.share(piece);
        }
    }
    segments.push(b"]}");
    segments
}

/// What differs from call to call. A thinking budget has no word in this protocol and is left out.
fn opening(provider: &str, model: &str, parameters: &Parameters) -> Vec<u8> {
    let mut body = json!({ "model": model, "stream": true, "stream_options": { "include_usage": true } });
    // OpenAI's newer models know only the second word, its imitators often only the first.
    let limit = if provider == "openai" { "max_completion_tokens" } else { "max_tokens" };
    body[limit] = parameters.max_tokens.into();
    if let Some(temperature) = parameters.temperature {
        body["temperature"] = temperature.into();
    }
    let mut out = Vec::new();
    write_json(&mut out, &body);
    out.pop(); // the closing brace: more follows
    out.push(b',');
    out
}

struct Wire<'a> {
    provider: &'a str,
}

impl Encode for Wire<'_> {
    const PROTOCOL: &'static str = "chat";

    fn provider(&self) -> &str {
        self.provider
    }

    fn head(&self, system: &[SystemSection], tools: &[ToolSpec]) -> Vec<u8> {
        let mut out = Vec::new();
        if !tools.is_empty() {
            out.extend_from_slice(br#""tools":["#);
            let tools = tools.iter().map(|tool| {
                let function = json!({ "name": tool.name, "description": tool.description, "parameters": tool.schema });
                json!({ "type": "function", "function": function })
            });
            write_items(&mut out, tools);
            out.extend_from_slice(b"],");
        }
        out.extend_from_slice(br#""messages":["#);
        let sections: Vec<&str> =
            system.iter().map(|section| section.text.trim()).filter(|text| !text.is_empty()).collect();
        if !sections.is_empty() {
            write_items(&mut out, [Entry::System { content: &sections.join("\n\n") }]);
        }
        out
    }

    fn message(&self, message: &Message, blobs: &HashMap<String, Bytes>) -> Parts {
        let (mut results, mut others) = (Vec::new(), Vec::new());
        match message.role {
            Role::Assistant => write_items(&mut others, assistant(message)),
            Role::User => {
                write_items(&mut results, results_of(message).map(tool_result));
                write_items(&mut others, user(message, blobs));
            }
        }
        // No breakpoints here: the servers find common beginnings on their own.
        Parts { role: message.role, results: packed(results), others: packed(others), markable: false }
    }
}

/// Words and calls. Thinking and what only some provider knows have no place in this protocol.
fn assistant(message: &Message) -> Option<Entry<'_>> {
    let text = joined(&message.content, "\n\n");
    let calls = message.content.iter().filter_map(|block| match block {
        ContentBlock::ToolUse(call) => Some(tool_call(call)),
        _ => None,
    });
    let tool_calls: Vec<Call<'_>> = calls.collect();
    let content = Some(text).filter(|text| !text.is_empty());
    (content.is_some() || !tool_calls.is_empty()).then_some(Entry::Assistant { content, tool_calls })
}

fn tool_call(call: &ToolUse) -> Call<'_> {
    let arguments = match &call.input {
        Value::Object(_) => call.input.to_string(),
        // Many servers parse the arguments again, so text that was no object goes back inside of one.
        other => json!({ "unparsed": other }).to_string(),
    };
    Call { id: &call.id.0, kind: "function", function: Function { name: wire_name(&call.name), arguments } }
}

fn results_of(message: &Message) -> impl Iterator<Item = &ToolResult> {
    message.content.iter().filter_map(|block| match block {
        ContentBlock::ToolResult(result) => Some(result),
        _ => None,
    })
}

fn tool_result(result: &ToolResult) -> Entry<'_> {
    let mut content = joined(&result.content, "\n");
    if content.is_empty() {
        let has_more = result.content.iter().any(is_medium);
        content = if has_more { "(shown in the next message)" } else { NO_OUTPUT }.into();
    }
    if result.is_error && !content.trim_start().get(..5).is_some_and(|start| start.eq_ignore_ascii_case("error")) {
        content.insert_str(0, "error: ");
    }
    Entry::Tool { tool_call_id: &result.tool_use_id.0, content }
}

/// What a person says, and the pictures and documents of results, for which a tool's message has no place.
fn user<'b>(message: &'b Message, blobs: &'b HashMap<String, Bytes>) -> Option<Entry<'b>> {
    let of_results = results_of(message).flat_map(|result| &result.content).filter(|block| is_medium(block));
    let blocks: Vec<&ContentBlock> = of_results.chain(&message.content).collect();
    if !blocks.iter().any(|block| is_medium(block)) {
        let text = joined(&message.content, "\n\n");
        return (!text.is_empty()).then_some(Entry::User { content: Words::Text(text) });
    }
    let parts = blocks.into_iter().filter_map(|block| part(block, blobs)).collect();
    Some(Entry::User { content: Words::Parts(parts) })
}

fn part<'b>(block: &'b ContentBlock, blobs: &'b HashMap<String, Bytes>) -> Option<Part<'b>> {
    let data = |media_type: &'b str, blob: &BlobRef| Some(DataUrl { media_type, bytes: blobs.get(&blob.hash)? });
    let lost = |what, media_type, blob| Part::Text { text: Cow::Owned(missing(what, media_type, blob)) };
    Some(match block {
        ContentBlock::Text { text } if is_said(text) => Part::Text { text: Cow::Borrowed(text) },
        ContentBlock::Image { media_type, blob } => match data(media_type, blob) {
            Some(url) => Part::ImageUrl { image_url: Image { url } },
            None => lost("image", media_type, blob),
        },
        ContentBlock::Document { media_type, blob, title } => match data(media_type, blob) {
            Some(file_data) => {
                let filename = title.as_deref().unwrap_or("document.pdf");
                Part::File { file: File { filename, file_data } }
            }
            None => lost("document", media_type, blob),
        },
        _ => return None,
    })
}

fn is_medium(block: &ContentBlock) -> bool {
    matches!(block, ContentBlock::Image { .. } | ContentBlock::Document { .. })
}

fn is_said(text: &str) -> bool {
    !text.trim().is_empty()
}

/// The texts of `blocks` that say something.
fn joined(blocks: &[ContentBlock], separator: &str) -> String {
    let texts = blocks.iter().filter_map(|block| match block {
        ContentBlock::Text { text } if is_said(text) => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join(separator)
}
