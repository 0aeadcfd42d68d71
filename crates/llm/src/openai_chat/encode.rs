//! Requests as Chat Completions wants them.

use super::details::entries;
use super::opening::opening;
use crate::body::{Segments, write_items, write_json};
use crate::call_ids::hash;
use crate::endpoint::Target;
use crate::media::{Media, Shown, Takes};
use crate::memo::{Encode, Parts, packed};
use crate::protocol::wire_name;
use crate::wording::{DataUrl, NO_OUTPUT, arguments, is_said, joined, result_words};
use crate::{Quirk, Request, SystemSection, ToolSpec, schema};
use bytes::Bytes;
use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::HashMap;
use windlass_kernel::{ContentBlock, Message, Role, ToolResult, ToolUse};

/// What stands in the last part up to which the provider is to keep its work.
const MARK: &[u8] = br#","cache_control":{"type":"ephemeral"}"#;
/// How a message ends whose content is a list of parts, from the last part's brace on.
const PARTS_END: &[u8] = b"}]}";
/// Letters and digits of a short id.
const SHORT_ID: usize = 9;

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "snake_case")]
enum Entry<'a> {
    System {
        content: Words<'a>,
    },
    User {
        content: Words<'a>,
    },
    Assistant {
        content: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning_content: Option<String>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        reasoning_details: Vec<&'a RawValue>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<Call<'a>>,
    },
    Tool {
        tool_call_id: Cow<'a, str>,
        content: Words<'a>,
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
    Text {
        text: Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    ImageUrl {
        image_url: Image<'a>,
    },
    File {
        file: File<'a>,
    },
}

#[derive(Clone, Copy, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum CacheControl {
    Ephemeral,
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

#[derive(Serialize)]
struct Call<'a> {
    id: Cow<'a, str>,
    #[serde(rename = "type")]
    kind: &'static str,
    function: Function<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra_content: Option<Extra<'a>>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: Cow<'a, str>,
    arguments: String,
}

#[derive(Serialize)]
struct Extra<'a> {
    google: Google<'a>,
}

#[derive(Serialize)]
struct Google<'a> {
    thought_signature: &'a str,
}

pub(super) fn encode(target: &Target, request: &Request) -> Segments {
    let wire = Wire::of(target);
    let encoded = request.memo.encode(&wire, request);
    let mut segments = Segments::default();
    segments.push(&opening(target, request));
    segments.share(&encoded.head);
    let told = request.output_schema.as_ref().filter(|_| target.has(Quirk::SchemaAsJson));
    let told = told.map(|schema| schema::sentence(schema));
    let prompt_end = wire.prompt_end(said_sections(&request.system).next().is_some(), told);
    segments.push(&prompt_end);
    let mut is_first = prompt_end.is_empty();
    // Results stand right behind the calls they answer, before anything else of their side's say.
    let says: Vec<&[Parts]> = encoded.messages.chunk_by(|a, b| a.role == b.role).collect();
    let marked = says.iter().rposition(|say| wire.marks && say.iter().any(|parts| parts.markable));
    for (place, say) in says.into_iter().enumerate() {
        let pieces = say.iter().map(|parts| &parts.results).chain(say.iter().map(|parts| &parts.others));
        let pieces: Vec<&Bytes> = pieces.filter(|piece| !piece.is_empty()).collect();
        for (at, piece) in pieces.iter().enumerate() {
            segments.push(if std::mem::take(&mut is_first) { b"" } else { b"," });
            match marked == Some(place) && at + 1 == pieces.len() {
                true => share_marked(&mut segments, piece),
                false => segments.share(piece),
            }
        }
    }
    segments.push(b"]}");
    segments
}

/// The mark is spliced into the last part, so what is kept stays without it.
fn share_marked(segments: &mut Segments, piece: &Bytes) {
    let end = piece.len() - PARTS_END.len();
    debug_assert!(piece.ends_with(PARTS_END));
    segments.share(&piece.slice(..end));
    segments.push(MARK);
    segments.push(PARTS_END);
}

fn said_sections(system: &[SystemSection]) -> impl Iterator<Item = &SystemSection> {
    system.iter().filter(|section| is_said(&section.text))
}

/// How this server wants its messages.
struct Wire<'a> {
    provider: &'a str,
    /// With marks where it is to keep its work.
    marks: bool,
    /// With the model's thoughts.
    thoughts: bool,
    short_ids: bool,
    takes: Takes,
}

impl<'a> Wire<'a> {
    fn of(target: &'a Target) -> Wire<'a> {
        Wire {
            provider: &target.endpoint.provider,
            marks: target.has(Quirk::CacheMarks),
            thoughts: target.has(Quirk::ReasoningBack),
            short_ids: target.has(Quirk::ShortIds),
            takes: Takes::of(target),
        }
    }

    /// Ends the system prompt, with a sentence that may differ from call to call.
    fn prompt_end(&self, has_prompt: bool, told: Option<String>) -> Vec<u8> {
        let mut out = Vec::new();
        match (has_prompt, told) {
            (false, None) => {}
            (false, Some(told)) => write_json(&mut out, &Entry::System { content: Words::Text(told) }),
            (true, told) if self.marks => {
                if let Some(told) = told {
                    out.push(b',');
                    write_json(&mut out, &Part::Text { text: told.into(), cache_control: None });
                }
                out.extend_from_slice(b"]}");
            }
            (true, told) => {
                let told = told.map_or_else(String::new, |told| format!("\n\n{told}"));
                let mut text = Vec::new();
                write_json(&mut text, &told);
                out.extend_from_slice(&text[1..]); // its opening quote stands before the prompt
                out.push(b'}');
            }
        }
        out
    }

    fn call_id<'b>(&self, id: &'b str) -> Cow<'b, str> {
        if self.short_ids { short_id(id) } else { Cow::Borrowed(id) }
    }

    fn text(&self, text: String) -> Words<'static> {
        match self.marks {
            true => Words::Parts(vec![plain(text.into())]),
            false => Words::Text(text),
        }
    }
}

impl Encode for Wire<'_> {
    const PROTOCOL: &'static str = "chat";

    fn provider(&self) -> &str {
        self.provider
    }

    fn manner(&self) -> u32 {
        let own = u32::from(self.marks) | u32::from(self.thoughts) << 1 | u32::from(self.short_ids) << 2;
        own | self.takes.bits() << 3
    }

    /// Ends inside of the system prompt, if there is one: see [`Wire::prompt_end`].
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
        let sections: Vec<&SystemSection> = said_sections(system).collect();
        if sections.is_empty() {
            return out;
        }
        let content = if self.marks {
            Words::Parts(marked_sections(&sections))
        } else {
            Words::Text(sections.iter().map(|section| section.text.trim()).collect::<Vec<_>>().join("\n\n"))
        };
        write_json(&mut out, &Entry::System { content });
        out.truncate(out.len() - 2);
        out
    }

    fn message(&self, message: &Message, blobs: &HashMap<String, Bytes>) -> Parts {
        let media = self.takes.among(blobs);
        let (mut results, mut others) = (Vec::new(), Vec::new());
        match message.role {
            Role::Assistant => write_items(&mut others, self.assistant(message, media)),
            Role::User => {
                write_items(&mut results, results_of(message).map(|result| self.tool_result(result, media)));
                write_items(&mut others, self.user(message, media));
            }
        }
        let markable = message.role == Role::User && !(results.is_empty() && others.is_empty());
        Parts { role: message.role, results: packed(results), others: packed(others), markable }
    }
}

impl Wire<'_> {
    /// Words, thoughts and calls. What only some other provider knows has no place in this protocol.
    fn assistant<'b>(&self, message: &'b Message, media: Media<'b>) -> Option<Entry<'b>> {
        let calls = message.content.iter().filter_map(|block| match block {
            ContentBlock::ToolUse(call) => Some(self.tool_call(call)),
            _ => None,
        });
        let tool_calls: Vec<Call<'b>> = calls.collect();
        let content = Some(joined(&message.content, "\n\n", media)).filter(|text| !text.is_empty());
        if content.is_none() && tool_calls.is_empty() {
            return None;
        }
        let reasoning_details =
            self.thoughts(message).filter_map(|(_, signature)| signature).flat_map(entries).collect();
        let reasoning_content =
            self.thoughts.then(|| self.reasoning_content(message, !tool_calls.is_empty())).flatten();
        Some(Entry::Assistant { content, reasoning_content, reasoning_details, tool_calls })
    }

    /// The thoughts of a message, that its server wants back: those before a call in every later request too, which is
    /// refused without the field; those before an answer are not looked at, and sent so that what was once sent never
    /// changes.
    fn reasoning_content(&self, message: &Message, has_calls: bool) -> Option<String> {
        let thoughts: String = self.thoughts(message).map(|(thinking, _)| thinking).collect();
        (has_calls || is_said(&thoughts)).then_some(thoughts)
    }

    /// Thoughts that are this provider's own, or nobody's in particular, with their signatures.
    fn thoughts<'b>(&self, message: &'b Message) -> impl Iterator<Item = (&'b str, Option<&'b str>)> {
        message.content.iter().filter_map(|block| match block {
            ContentBlock::Thinking { thinking, signature, by } if by.as_ref().is_none_or(|by| by == self.provider) => {
                Some((thinking.as_str(), signature.as_deref()))
            }
            _ => None,
        })
    }

    fn tool_call<'b>(&self, call: &'b ToolUse) -> Call<'b> {
        let signature = call.signature.as_ref().filter(|signature| signature.by == self.provider);
        Call {
            id: self.call_id(&call.id.0),
            kind: "function",
            function: Function { name: wire_name(&call.name), arguments: arguments(&call.input) },
            extra_content: signature.map(|signature| Extra { google: Google { thought_signature: &signature.text } }),
        }
    }

    fn tool_result<'b>(&self, result: &'b ToolResult, media: Media<'b>) -> Entry<'b> {
        let has_more = result.content.iter().any(|block| media.shows(block));
        let words = result_words(result, if has_more { "(shown in the next message)" } else { NO_OUTPUT }, media);
        Entry::Tool { tool_call_id: self.call_id(&result.tool_use_id.0), content: self.text(words) }
    }

    /// What a person says, and the pictures and documents that results show, for which a tool's message has no place.
    fn user<'b>(&self, message: &'b Message, media: Media<'b>) -> Option<Entry<'b>> {
        let of_results = results_of(message).flat_map(|result| &result.content).filter(|block| media.shows(block));
        let blocks: Vec<&ContentBlock> = of_results.chain(&message.content).collect();
        if !blocks.iter().any(|block| media.shows(block)) {
            let text = joined(&message.content, "\n\n", media);
            return (!text.is_empty()).then(|| Entry::User { content: self.text(text) });
        }
        let parts = blocks.into_iter().filter_map(|block| part(block, media)).collect();
        Some(Entry::User { content: Words::Parts(parts) })
    }
}

/// The prompt with a mark behind what stays the same for the session.
fn marked_sections<'b>(sections: &[&'b SystemSection]) -> Vec<Part<'b>> {
    let last_fixed = sections.iter().rposition(|section| section.fixed);
    let part = |(place, section): (usize, &&'b SystemSection)| Part::Text {
        text: Cow::Borrowed(section.text.trim()),
        cache_control: (Some(place) == last_fixed).then_some(CacheControl::Ephemeral),
    };
    sections.iter().enumerate().map(part).collect()
}

/// An id of nine letters and digits: `id` itself if it is one, and always the same for the same id.
fn short_id(id: &str) -> Cow<'_, str> {
    if id.len() == SHORT_ID && id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Cow::Borrowed(id);
    }
    let mut hash = hash(id);
    let digit = |_| {
        let digit = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"[(hash % 62) as usize];
        hash /= 62;
        char::from(digit)
    };
    Cow::Owned((0..SHORT_ID).map(digit).collect())
}

fn results_of(message: &Message) -> impl Iterator<Item = &ToolResult> {
    message.content.iter().filter_map(|block| match block {
        ContentBlock::ToolResult(result) => Some(result),
        _ => None,
    })
}

fn plain(text: Cow<'_, str>) -> Part<'_> {
    Part::Text { text, cache_control: None }
}

fn part<'b>(block: &'b ContentBlock, media: Media<'b>) -> Option<Part<'b>> {
    if let ContentBlock::Text { text } = block {
        return is_said(text).then(|| plain(text.into()));
    }
    Some(match media.show(block)? {
        Shown::Image { media_type, bytes } => {
            Part::ImageUrl { image_url: Image { url: DataUrl { media_type, bytes } } }
        }
        Shown::Document { media_type, bytes, title } => {
            let filename = title.unwrap_or("document.pdf");
            Part::File { file: File { filename, file_data: DataUrl { media_type, bytes } } }
        }
        Shown::Words(words) => plain(words.into()),
    })
}
