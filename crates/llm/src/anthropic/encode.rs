//! Requests as the Messages API wants them.

use super::parameters::opening;
use super::{Dialect, is_cited};
use crate::body::{Base64, Segments, write_items};
use crate::call_ids::wire_id;
use crate::endpoint::Target;
use crate::media::{Media, Shown, Takes};
use crate::memo::{Encode, Parts, packed};
use crate::protocol::wire_name;
use crate::{Request, SystemSection, ToolSpec};
use bytes::Bytes;
use serde::Serialize;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::HashMap;
use windlass_kernel::{ContentBlock, Message, Role, ToolResult};

/// What stands in the last block up to which the provider is to keep its work.
const MARK: &[u8] = br#","cache_control":{"type":"ephemeral"}}"#;

/// A block as the API writes it; borrowed, so that it is written once and never built.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block<'a> {
    Text {
        text: Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    Thinking {
        thinking: &'a str,
        signature: &'a str,
    },
    RedactedThinking {
        data: &'a str,
    },
    Image {
        source: Source<'a>,
    },
    Document {
        source: Source<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<&'a str>,
    },
    ToolUse {
        id: Cow<'a, str>,
        name: Cow<'a, str>,
        input: Input<'a>,
    },
    ToolResult {
        tool_use_id: Cow<'a, str>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        content: Vec<Block<'a>>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
}

/// A block of ours, or one that goes back as it came.
#[derive(Serialize)]
#[serde(untagged)]
enum Entry<'a> {
    Block(Block<'a>),
    Native(&'a Value),
}

#[derive(Clone, Copy, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum CacheControl {
    Ephemeral,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Source<'a> {
    Base64 { media_type: &'a str, data: Base64<'a> },
}

/// Arguments. The API takes objects only, so text that was none goes back inside of one.
#[derive(Serialize)]
#[serde(untagged)]
enum Input<'a> {
    Object(&'a Value),
    Unparsed { unparsed: &'a Value },
}

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

pub(super) fn encode(target: &Target, request: &Request, dialect: Dialect) -> Segments {
    let encoded = request.memo.encode(&Wire::of(target), request);
    let mut segments = Segments::default();
    segments.push(&opening(target, request, dialect));
    segments.share(&encoded.head);
    let messages: Vec<&Parts> = encoded.messages.iter().filter(|parts| !parts.is_empty()).collect();
    let says: Vec<&[&Parts]> = messages.chunk_by(|a, b| a.role == b.role).collect();
    let newest = says.len().saturating_sub(1);
    // The say that was the newest at the call before: a breakpoint finds what was kept over twenty blocks and no more,
    // and a round of tools may have more.
    let before = says.iter().take(newest).rposition(|say| say[0].role == Role::User);
    for (place, say) in says.into_iter().enumerate() {
        segments.push(if place == 0 { b"" } else { b"," });
        write_say(&mut segments, say, place == newest || Some(place) == before);
    }
    segments.push(b"]}");
    segments
}

/// One side's say, which may be several messages of ours; results of calls stand first, as the API demands.
fn write_say(segments: &mut Segments, say: &[&Parts], is_marked: bool) {
    segments.push(match say[0].role {
        Role::User => br#"{"role":"user","content":["#,
        Role::Assistant => br#"{"role":"assistant","content":["#,
    });
    let pieces: Vec<(&Bytes, bool)> = (say.iter().map(|parts| (&parts.results, true)))
        .chain(say.iter().map(|parts| (&parts.others, parts.markable)))
        .filter(|(piece, _)| !piece.is_empty())
        .collect();
    for (place, (piece, markable)) in pieces.iter().enumerate() {
        segments.push(if place == 0 { b"" } else { b"," });
        if is_marked && *markable && place + 1 == pieces.len() {
            // The mark is spliced in before the last brace, so what is kept stays without it.
            segments.share(&piece.slice(..piece.len() - 1));
            segments.push(MARK);
        } else {
            segments.share(piece);
        }
    }
    segments.push(b"]}");
}

struct Wire<'a> {
    provider: &'a str,
    takes: Takes,
}

impl Encode for Wire<'_> {
    const PROTOCOL: &'static str = "messages";

    fn provider(&self) -> &str {
        self.provider
    }

    fn manner(&self) -> u32 {
        self.takes.bits()
    }

    fn head(&self, system: &[SystemSection], tools: &[ToolSpec]) -> Vec<u8> {
        let mut out = Vec::new();
        let sections: Vec<&SystemSection> = system.iter().filter(|section| is_said(&section.text)).collect();
        let last_fixed = sections.iter().rposition(|section| section.fixed);
        let marks = [last_fixed, sections.len().checked_sub(1)];
        let mark = |is_marked: bool| is_marked.then_some(CacheControl::Ephemeral);
        if !sections.is_empty() {
            out.extend_from_slice(br#""system":["#);
            let blocks = sections.iter().enumerate().map(|(place, section)| Block::Text {
                text: Cow::Borrowed(&section.text),
                cache_control: mark(marks.contains(&Some(place))),
            });
            write_items(&mut out, blocks);
            out.extend_from_slice(b"],");
        }
        if !tools.is_empty() {
            out.extend_from_slice(br#""tools":["#);
            // The tools stand before the system prompt for the provider, so its first mark covers them.
            let marked = tools.len().checked_sub(1).filter(|_| last_fixed.is_none());
            let tools = tools.iter().enumerate().map(|(place, tool)| Tool {
                name: &tool.name,
                description: &tool.description,
                input_schema: &tool.schema,
                cache_control: mark(Some(place) == marked),
            });
            write_items(&mut out, tools);
            out.extend_from_slice(b"],");
        }
        out.extend_from_slice(br#""messages":["#);
        out
    }

    fn message(&self, message: &Message, blobs: &HashMap<String, Bytes>) -> Parts {
        let media = self.takes.among(blobs);
        let (mut results, mut others, mut markable) = (Vec::new(), Vec::new(), false);
        for (place, block) in message.content.iter().enumerate() {
            let next = message.content.get(place + 1);
            if next.is_some_and(|next| is_cited(block, next, self.provider)) {
                // The same text comes next, with its sources.
            } else if let ContentBlock::ToolResult(result) = block {
                write_items(&mut results, [tool_result(result, media)]);
            } else if let Some(entry) = self.entry(block, media) {
                write_items(&mut others, [entry]);
                markable = !block.is_thinking() && !matches!(block, ContentBlock::Native { .. });
            }
        }
        Parts { role: message.role, results: packed(results), others: packed(others), markable }
    }
}

impl<'a> Wire<'a> {
    fn of(target: &'a Target) -> Wire<'a> {
        Wire { provider: &target.endpoint.provider, takes: Takes::of(target) }
    }

    /// Signatures are the provider's own; older logs do not say whose they are.
    fn is_ours(&self, by: &Option<String>) -> bool {
        by.as_ref().is_none_or(|by| by == self.provider)
    }

    /// A block as it is sent; none if it is not: empty text, thinking nobody signed, what only another provider knows.
    fn entry<'b>(&self, block: &'b ContentBlock, media: Media<'b>) -> Option<Entry<'b>> {
        Some(Entry::Block(match block {
            ContentBlock::Thinking { by, .. } | ContentBlock::RedactedThinking { by, .. } if !self.is_ours(by) => {
                return None;
            }
            ContentBlock::Thinking { thinking, signature, .. } => {
                Block::Thinking { thinking, signature: signature.as_deref()? }
            }
            ContentBlock::RedactedThinking { data, .. } => Block::RedactedThinking { data },
            ContentBlock::ToolUse(call) => {
                let input = match &call.input {
                    Value::Object(_) => Input::Object(&call.input),
                    other => Input::Unparsed { unparsed: other },
                };
                Block::ToolUse { id: wire_id(&call.id.0), name: wire_name(&call.name), input }
            }
            ContentBlock::Native { provider, value } => {
                return (provider == self.provider).then_some(Entry::Native(value));
            }
            other => plain(other, media)?,
        }))
    }
}

fn tool_result<'b>(result: &'b ToolResult, media: Media<'b>) -> Block<'b> {
    let mut content: Vec<Block<'b>> = result.content.iter().filter_map(|block| plain(block, media)).collect();
    // The API refuses an error that says nothing.
    if result.is_error && content.is_empty() {
        content.push(note("the tool failed without a word".into()));
    }
    Block::ToolResult { tool_use_id: wire_id(&result.tool_use_id.0), content, is_error: result.is_error }
}

/// Text, pictures and documents: what may stand anywhere.
fn plain<'b>(block: &'b ContentBlock, media: Media<'b>) -> Option<Block<'b>> {
    if let ContentBlock::Text { text } = block {
        return is_said(text).then_some(Block::Text { text: Cow::Borrowed(text), cache_control: None });
    }
    let source = |media_type, bytes| Source::Base64 { media_type, data: Base64(bytes) };
    Some(match media.show(block)? {
        Shown::Image { media_type, bytes } => Block::Image { source: source(media_type, bytes) },
        Shown::Document { media_type, bytes, title } => Block::Document { source: source(media_type, bytes), title },
        Shown::Words(words) => note(words),
    })
}

fn note(text: String) -> Block<'static> {
    Block::Text { text: Cow::Owned(text), cache_control: None }
}

/// The API refuses text blocks that hold nothing but white space.
fn is_said(text: &str) -> bool {
    !text.trim().is_empty()
}
