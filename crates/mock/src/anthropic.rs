//! Anthropic Messages on the wire: the stream's events and the whole message.

use crate::answer::{Answer, Block, Kind, Usage};
use crate::player::{Event, Wire};
use serde_json::{Value, json};
use std::io::Write;

/// Writes one event, with its blank line.
pub fn write(wire: &Wire, event: Event, out: &mut Vec<u8>) {
    match event {
        Event::Start(answer) => {
            let mut message = envelope(wire, answer, json!([]));
            message["stop_reason"] = Value::Null;
            message["usage"]["output_tokens"] = json!(1);
            named(out, "message_start", json!({"type": "message_start", "message": message}));
        }
        Event::Open(index, block) => {
            let shell = shell(block);
            let event = json!({"type": "content_block_start", "index": index, "content_block": shell});
            named(out, "content_block_start", event);
        }
        Event::Delta(index, block, piece) => delta(index, block, piece, out),
        Event::Sign(index, signature) => {
            let delta = json!({"type": "signature_delta", "signature": signature});
            let event = json!({"type": "content_block_delta", "index": index, "delta": delta});
            named(out, "content_block_delta", event);
        }
        Event::Close(index, _) => {
            named(out, "content_block_stop", json!({"type": "content_block_stop", "index": index}));
        }
        Event::Finish(answer) => {
            let delta = json!({"stop_reason": answer.stop, "stop_sequence": null});
            let event = json!({"type": "message_delta", "delta": delta, "usage": usage(&answer.usage)});
            named(out, "message_delta", event);
        }
        Event::Begun | Event::OpenPart(..) | Event::Said(..) | Event::ClosePart(..) | Event::Usage(_) => {}
        Event::Done => named(out, "message_stop", json!({"type": "message_stop"})),
        Event::Ping => named(out, "ping", json!({"type": "ping"})),
        Event::Error(error) => named(out, "error", json!({"type": "error", "error": error})),
    }
}

fn named(out: &mut Vec<u8>, name: &str, data: Value) {
    // Writing to memory cannot fail.
    let _ = write!(out, "event: {name}\ndata: {data}\n\n");
}

/// The one event there are many of: written without a tree in between.
fn delta(index: usize, block: &Block, piece: &str, out: &mut Vec<u8>) {
    let (kind, field) = match block.kind {
        Kind::Tool { .. } => ("input_json_delta", "partial_json"),
        Kind::Thinking { .. } => ("thinking_delta", "thinking"),
        _ => ("text_delta", "text"),
    };
    let _ = write!(
        out,
        "event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\"index\":{index},\"delta\":{{\"type\":\"{kind}\",\"{field}\":"
    );
    let _ = serde_json::to_writer(&mut *out, piece);
    out.extend_from_slice(b"}}\n\n");
}

/// A block as its start event shows it: without what the deltas bring.
fn shell(block: &Block) -> Value {
    match &block.kind {
        Kind::Text => json!({"type": "text", "text": ""}),
        Kind::Thinking { .. } => json!({"type": "thinking", "thinking": "", "signature": ""}),
        Kind::Tool { id, name, .. } => json!({"type": "tool_use", "id": id, "name": name, "input": {}}),
        Kind::Redacted | Kind::Native(_) => whole(block),
    }
}

fn whole(block: &Block) -> Value {
    let said = block.said.whole();
    match &block.kind {
        Kind::Text => json!({"type": "text", "text": said}),
        Kind::Thinking { signature } => {
            json!({"type": "thinking", "thinking": said, "signature": signature.as_deref().unwrap_or_default()})
        }
        Kind::Redacted => json!({"type": "redacted_thinking", "data": said}),
        Kind::Tool { id, name, .. } => {
            // Arguments that are no JSON have no place in a whole message but as the text they are.
            let input = serde_json::from_str(&said).unwrap_or_else(|_| json!(said));
            json!({"type": "tool_use", "id": id, "name": name, "input": input})
        }
        Kind::Native(value) => value.clone(),
    }
}

fn envelope(wire: &Wire, answer: &Answer, content: Value) -> Value {
    json!({"id": format!("msg_{}", wire.id), "type": "message", "role": "assistant", "model": wire.model,
        "content": content, "stop_reason": answer.stop, "stop_sequence": null, "usage": usage(&answer.usage)})
}

fn usage(usage: &Usage) -> Value {
    let mut tokens = json!({"input_tokens": usage.input, "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read, "output_tokens": usage.output});
    if usage.reasoning > 0 {
        tokens["output_tokens_details"] = json!({"thinking_tokens": usage.reasoning});
    }
    tokens
}

/// The answer to a request that does not stream.
pub fn message(wire: &Wire, answer: &Answer) -> Value {
    envelope(wire, answer, answer.blocks.iter().map(whole).collect())
}
