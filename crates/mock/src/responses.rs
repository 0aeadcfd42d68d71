//! OpenAI Responses on the wire: the stream's events and the whole response.

use crate::answer::{Answer, Block, Kind, Usage};
use crate::player::{Event, Wire};
use serde_json::{Value, json};
use std::io::Write;

/// No client reads it, and a constant keeps answers alike.
const CREATED: u64 = 1_700_000_000;

/// An `error_event` of this type is the end of the response instead of an event of its own.
const FAILED: &str = "response.failed";

/// Writes one event, with its blank line; an event that this protocol does not have writes nothing.
pub fn write(wire: &Wire, event: Event, out: &mut Vec<u8>) {
    match event {
        Event::Start(_) => named(wire, out, "response.created", json!({"response": shell(wire, "in_progress")})),
        Event::Begun => named(wire, out, "response.in_progress", json!({"response": shell(wire, "in_progress")})),
        Event::Open(at, block) => {
            let item = item(wire, at, block, false);
            named(wire, out, "response.output_item.added", json!({"output_index": at, "item": item}));
        }
        Event::OpenPart(at, block) => part(wire, at, block, false, out),
        Event::Delta(at, block, piece) => delta(wire, at, block, piece, out),
        Event::Said(at, block) => said(wire, at, block, out),
        Event::ClosePart(at, block) => part(wire, at, block, true, out),
        Event::Close(at, block) => {
            let item = item(wire, at, block, true);
            named(wire, out, "response.output_item.done", json!({"output_index": at, "item": item}));
        }
        Event::Finish(answer) => {
            let response = response(wire, answer);
            let name = if response["status"] == "completed" { "response.completed" } else { "response.incomplete" };
            named(wire, out, name, json!({"response": response}));
        }
        Event::Ping => out.extend_from_slice(b": ping\n\n"),
        Event::Error(error) => failure(wire, &error, out),
        Event::Sign(..) | Event::Usage(_) | Event::Done => {}
    }
}

fn named(wire: &Wire, out: &mut Vec<u8>, name: &str, rest: Value) {
    let mut data = json!({"type": name, "sequence_number": next(wire)});
    if let (Value::Object(data), Value::Object(rest)) = (&mut data, rest) {
        data.extend(rest);
    }
    // Writing to memory cannot fail.
    let _ = write!(out, "event: {name}\ndata: {data}\n\n");
}

fn next(wire: &Wire) -> u64 {
    let number = wire.sequence.get();
    wire.sequence.set(number + 1);
    number
}

fn failure(wire: &Wire, error: &Value, out: &mut Vec<u8>) {
    let code = error["code"].as_str().unwrap_or("server_error");
    if error["type"] != FAILED {
        let event = json!({"code": code, "message": error["message"], "param": error["param"]});
        return named(wire, out, "error", event);
    }
    let mut response = shell(wire, "failed");
    response["error"] = json!({"code": code, "message": error["message"]});
    named(wire, out, FAILED, json!({"response": response}));
}

/// The name of what a block says: its events and its field.
fn field(wire: &Wire, block: &Block) -> (&'static str, &'static str) {
    match block.kind {
        Kind::Tool { .. } => ("function_call_arguments", "arguments"),
        Kind::Thinking { .. } => ("reasoning_summary_text", "text"),
        _ if wire.refuses => ("refusal", "refusal"),
        _ => ("output_text", "text"),
    }
}

/// The one event there are many of: written without a tree in between.
fn delta(wire: &Wire, at: usize, block: &Block, piece: &str, out: &mut Vec<u8>) {
    let (name, _) = field(wire, block);
    let (number, prefix, round) = (next(wire), prefix(block), wire.round);
    let place = match block.kind {
        Kind::Tool { .. } => "",
        Kind::Thinking { .. } => ",\"summary_index\":0",
        _ => ",\"content_index\":0",
    };
    let _ = write!(
        out,
        "event: response.{name}.delta\ndata: {{\"type\":\"response.{name}.delta\",\"sequence_number\":{number},\
         \"item_id\":\"{prefix}_{round}_{at}\",\"output_index\":{at}{place},\"delta\":"
    );
    let _ = serde_json::to_writer(&mut *out, piece);
    out.extend_from_slice(if name == "output_text" { b",\"logprobs\":[]}\n\n" } else { b"}\n\n" });
}

/// All that the deltas said.
fn said(wire: &Wire, at: usize, block: &Block, out: &mut Vec<u8>) {
    let (name, key) = field(wire, block);
    let mut event = json!({"item_id": item_id(wire, at, block), "output_index": at});
    match block.kind {
        Kind::Tool { .. } => {}
        Kind::Thinking { .. } if block.said.bytes() == 0 => return,
        Kind::Thinking { .. } => event["summary_index"] = json!(0),
        _ => event["content_index"] = json!(0),
    }
    event[key] = json!(block.said.whole());
    if name == "output_text" {
        event["logprobs"] = json!([]);
    }
    named(wire, out, &format!("response.{name}.done"), event);
}

/// The part that holds the text, before it is said and after; a call has none.
fn part(wire: &Wire, at: usize, block: &Block, done: bool, out: &mut Vec<u8>) {
    let (stem, index, part) = match block.kind {
        Kind::Text => ("content_part", "content_index", content(wire, block, done)),
        Kind::Thinking { .. } if block.said.bytes() > 0 => {
            ("reasoning_summary_part", "summary_index", summary(block, done))
        }
        _ => return,
    };
    let name = format!("response.{stem}.{}", if done { "done" } else { "added" });
    let event = json!({"item_id": item_id(wire, at, block), "output_index": at, index: 0, "part": part});
    named(wire, out, &name, event);
}

fn content(wire: &Wire, block: &Block, done: bool) -> Value {
    let text = if done { block.said.whole() } else { "".into() };
    match wire.refuses {
        true => json!({"type": "refusal", "refusal": text}),
        false => json!({"type": "output_text", "annotations": [], "logprobs": [], "text": text}),
    }
}

fn summary(block: &Block, done: bool) -> Value {
    json!({"type": "summary_text", "text": if done { block.said.whole() } else { "".into() }})
}

fn prefix(block: &Block) -> &'static str {
    match block.kind {
        Kind::Tool { .. } => "fc",
        Kind::Thinking { .. } | Kind::Redacted => "rs",
        _ => "msg",
    }
}

fn item_id(wire: &Wire, at: usize, block: &Block) -> String {
    format!("{}_{}_{at}", prefix(block), wire.round)
}

/// A block as an item of the output, before it is said or after.
fn item(wire: &Wire, at: usize, block: &Block, done: bool) -> Value {
    let (id, status) = (item_id(wire, at, block), if done { "completed" } else { "in_progress" });
    match &block.kind {
        Kind::Text => {
            let content = if done { json!([content(wire, block, true)]) } else { json!([]) };
            json!({"id": id, "type": "message", "status": status, "content": content, "role": "assistant"})
        }
        Kind::Thinking { signature } => {
            let parts = if done && block.said.bytes() > 0 { json!([summary(block, true)]) } else { json!([]) };
            let mut item = json!({"id": id, "type": "reasoning", "summary": parts});
            if let Some(signature) = signature.as_ref().filter(|_| done) {
                item["encrypted_content"] = json!(signature);
            }
            item
        }
        Kind::Redacted => {
            json!({"id": id, "type": "reasoning", "summary": [], "encrypted_content": block.said.whole()})
        }
        Kind::Tool { id: call_id, name, .. } => {
            let arguments = if done { block.said.whole() } else { "".into() };
            json!({"id": id, "type": "function_call", "status": status, "arguments": arguments, "call_id": call_id,
                "name": name})
        }
        Kind::Native(value) => value.clone(),
    }
}

fn shell(wire: &Wire, status: &str) -> Value {
    json!({"id": format!("resp_{}", wire.id), "object": "response", "created_at": CREATED, "status": status,
        "error": null, "incomplete_details": null, "instructions": null, "metadata": {}, "model": wire.model,
        "output": [], "parallel_tool_calls": true, "temperature": 1.0, "tool_choice": "auto", "tools": [],
        "top_p": 1.0, "usage": null})
}

/// Anthropic's words for a stop as what left the response incomplete, if anything did.
fn incomplete(stop: &str) -> Option<&str> {
    match stop {
        "end_turn" | "tool_use" | "stop_sequence" | "pause_turn" | "refusal" => None,
        "max_tokens" => Some("max_output_tokens"),
        other => Some(other),
    }
}

fn usage(usage: &Usage) -> Value {
    let prompt = usage.prompt();
    json!({"input_tokens": prompt,
        "input_tokens_details": {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write},
        "output_tokens": usage.output, "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": prompt + usage.output})
}

/// The whole response: the end of a stream, and the answer to a request that does not stream.
pub fn response(wire: &Wire, answer: &Answer) -> Value {
    let reason = incomplete(&answer.stop);
    let mut response = shell(wire, if reason.is_some() { "incomplete" } else { "completed" });
    response["incomplete_details"] = reason.map_or(Value::Null, |reason| json!({"reason": reason}));
    response["output"] = answer.blocks.iter().enumerate().map(|(at, block)| item(wire, at, block, true)).collect();
    response["usage"] = usage(&answer.usage);
    response
}
