//! OpenAI Chat Completions on the wire: the stream's chunks and the whole completion.

use crate::answer::{Answer, Block, Kind, Usage};
use crate::player::{Event, Wire};
use serde_json::{Value, json};
use std::io::Write;

/// No client reads it, and a constant keeps answers alike.
const CREATED: u64 = 1_700_000_000;

/// Writes one event, with its blank line; an event that this protocol does not have writes nothing.
pub fn write(wire: &Wire, event: Event, out: &mut Vec<u8>) {
    match event {
        Event::Start(answer) => {
            let content =
                if answer.blocks.iter().any(|b| matches!(b.kind, Kind::Text)) { json!("") } else { Value::Null };
            chunk(wire, json!({"role": "assistant", "content": content, "refusal": null}), Value::Null, out);
        }
        Event::Open(_, Block { kind: Kind::Tool { id, name, ordinal }, .. }) => {
            let function = json!({"name": name, "arguments": ""});
            let call = json!({"index": ordinal, "id": id, "type": "function", "function": function});
            chunk(wire, json!({"tool_calls": [call]}), Value::Null, out);
        }
        Event::Delta(_, block, piece) => delta(wire, block, piece, out),
        Event::Finish(answer) => chunk(wire, json!({}), json!(finish_reason(&answer.stop)), out),
        Event::Usage(answer) if wire.include_usage => {
            let mut chunk = envelope(wire, "chat.completion.chunk", json!([]));
            chunk["usage"] = usage(&answer.usage);
            data(out, &chunk);
        }
        Event::Done => out.extend_from_slice(b"data: [DONE]\n\n"),
        Event::Ping => out.extend_from_slice(b": ping\n\n"),
        Event::Error(error) => data(out, &json!({"error": error})),
        _ => {}
    }
}

fn data(out: &mut Vec<u8>, data: &Value) {
    // Writing to memory cannot fail.
    let _ = write!(out, "data: {data}\n\n");
}

fn chunk(wire: &Wire, delta: Value, finish_reason: Value, out: &mut Vec<u8>) {
    let choice = json!({"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish_reason});
    let mut chunk = envelope(wire, "chat.completion.chunk", json!([choice]));
    if wire.include_usage {
        chunk["usage"] = Value::Null;
    }
    data(out, &chunk);
}

/// The one event there are many of: written without a tree in between.
fn delta(wire: &Wire, block: &Block, piece: &str, out: &mut Vec<u8>) {
    let head = &wire.chunk_head;
    let (_, end) = match &block.kind {
        Kind::Tool { ordinal, .. } => {
            (write!(out, "{head}{{\"tool_calls\":[{{\"index\":{ordinal},\"function\":{{\"arguments\":"), "}}]}")
        }
        Kind::Thinking { .. } => (write!(out, "{head}{{\"reasoning_content\":"), "}"),
        _ => (write!(out, "{head}{{\"content\":"), "}"),
    };
    let _ = serde_json::to_writer(&mut *out, piece);
    out.extend_from_slice(end.as_bytes());
    out.extend_from_slice(wire.chunk_tail.as_bytes());
}

/// What stands after every delta.
pub fn chunk_tail(include_usage: bool) -> String {
    let usage = if include_usage { ",\"usage\":null" } else { "" };
    format!(",\"logprobs\":null,\"finish_reason\":null}}]{usage}}}\n\n")
}

/// What stands before every delta.
pub fn chunk_head(id: &str, model: &str) -> String {
    let (id, model) = (json!(format!("chatcmpl-{id}")), json!(model));
    format!(
        "data: {{\"id\":{id},\"object\":\"chat.completion.chunk\",\"created\":{CREATED},\"model\":{model},\"choices\":[{{\"index\":0,\"delta\":"
    )
}

fn envelope(wire: &Wire, object: &str, choices: Value) -> Value {
    json!({"id": format!("chatcmpl-{}", wire.id), "object": object, "created": CREATED, "model": wire.model,
        "choices": choices})
}

/// Anthropic's words for a stop in OpenAI's; a word of neither goes out as it is.
fn finish_reason(stop: &str) -> &str {
    match stop {
        "end_turn" | "stop_sequence" | "pause_turn" => "stop",
        "tool_use" => "tool_calls",
        "max_tokens" => "length",
        "refusal" => "content_filter",
        other => other,
    }
}

fn usage(usage: &Usage) -> Value {
    let prompt = usage.prompt();
    json!({"prompt_tokens": prompt, "completion_tokens": usage.output, "total_tokens": prompt + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning}})
}

/// The answer to a request that does not stream.
pub fn completion(wire: &Wire, answer: &Answer) -> Value {
    let said = |wanted: fn(&Kind) -> bool| -> Option<String> {
        let blocks = answer.blocks.iter().filter(|block| wanted(&block.kind));
        let texts: Vec<_> = blocks.map(|block| block.said.whole()).collect();
        (!texts.is_empty()).then(|| texts.concat())
    };
    let mut message = json!({"role": "assistant", "content": said(|kind| matches!(kind, Kind::Text)), "refusal": null});
    if let Some(thinking) = said(|kind| matches!(kind, Kind::Thinking { .. })) {
        message["reasoning_content"] = json!(thinking);
    }
    let calls: Vec<Value> = answer.blocks.iter().filter_map(call).collect();
    if !calls.is_empty() {
        message["tool_calls"] = json!(calls);
    }
    let finish = finish_reason(&answer.stop);
    let choice = json!({"index": 0, "message": message, "logprobs": null, "finish_reason": finish});
    let mut completion = envelope(wire, "chat.completion", json!([choice]));
    completion["usage"] = usage(&answer.usage);
    completion
}

fn call(block: &Block) -> Option<Value> {
    let Kind::Tool { id, name, .. } = &block.kind else { return None };
    let function = json!({"name": name, "arguments": block.said.whole()});
    Some(json!({"id": id, "type": "function", "function": function}))
}
