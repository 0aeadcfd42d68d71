//! Gemini on the wire: the stream's responses and the whole one.

use crate::answer::{Answer, Block, Kind, Usage};
use crate::player::{Event, Wire};
use serde_json::{Map, Value, json};
use std::io::Write;

/// Writes one event, with its blank line; an event that this protocol does not have writes nothing.
pub fn write(wire: &Wire, event: Event, out: &mut Vec<u8>) {
    match event {
        Event::Delta(_, Block { kind: Kind::Tool { .. }, .. }, _) => {}
        Event::Delta(_, block, piece) => delta(wire, block, piece, out),
        Event::Close(_, block) => {
            // A call comes whole, a signature in a part of its own after the text's pieces.
            let part = match &block.kind {
                Kind::Tool { .. } => call(block),
                _ => block.carried.as_ref().map(|signature| json!({"text": "", "thoughtSignature": signature})),
            };
            if let Some(part) = part {
                let candidate = json!({"content": {"parts": [part], "role": "model"}, "index": 0});
                let _ = write!(out, "data: {{\"candidates\":[{candidate}]{}", wire.chunk_tail);
            }
        }
        Event::Finish(answer) => {
            let candidate = candidate(answer, vec![json!({"text": ""})]);
            data(out, &response(wire, candidate, usage(&answer.usage)));
        }
        Event::Error(error) => data(out, &json!({"error": error})),
        _ => {}
    }
}

fn data(out: &mut Vec<u8>, data: &Value) {
    // Writing to memory cannot fail.
    let _ = write!(out, "data: {data}\n\n");
}

/// The one event there are many of: written without a tree in between.
fn delta(wire: &Wire, block: &Block, piece: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(wire.chunk_head.as_bytes());
    let _ = serde_json::to_writer(&mut *out, piece);
    if matches!(block.kind, Kind::Thinking { .. }) {
        out.extend_from_slice(b",\"thought\":true");
    }
    out.extend_from_slice(b"}],\"role\":\"model\"},\"index\":0}]");
    out.extend_from_slice(wire.chunk_tail.as_bytes());
}

/// What stands before every text.
pub fn chunk_head() -> String {
    "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":".into()
}

/// What stands after the candidates of every response but the last.
pub fn chunk_tail(id: &str, model: &str, usage: &Usage) -> String {
    let so_far = json!({"promptTokenCount": usage.prompt(), "totalTokenCount": usage.prompt()});
    format!(",\"usageMetadata\":{so_far},\"modelVersion\":{},\"responseId\":{}}}\n\n", json!(model), json!(id))
}

fn response(wire: &Wire, candidate: Value, usage: Value) -> Value {
    json!({"candidates": [candidate], "usageMetadata": usage, "modelVersion": wire.model, "responseId": wire.id})
}

fn candidate(answer: &Answer, parts: Vec<Value>) -> Value {
    let reason = finish_reason(answer);
    let mut candidate = json!({"content": {"parts": parts, "role": "model"}, "finishReason": reason, "index": 0});
    if reason == MALFORMED {
        candidate["finishMessage"] = json!("Malformed function call: its arguments are no JSON object");
    }
    candidate
}

const MALFORMED: &str = "MALFORMED_FUNCTION_CALL";

/// Anthropic's words for a stop in Gemini's; a word of neither goes out as it is.
fn finish_reason(answer: &Answer) -> &str {
    let malformed = |block: &Block| matches!(block.kind, Kind::Tool { .. }) && call(block).is_none();
    match answer.stop.as_str() {
        "tool_use" if answer.blocks.iter().any(malformed) => MALFORMED,
        "end_turn" | "tool_use" | "stop_sequence" | "pause_turn" => "STOP",
        "max_tokens" => "MAX_TOKENS",
        "refusal" => "SAFETY",
        other => other,
    }
}

fn usage(usage: &Usage) -> Value {
    let candidates = usage.output.saturating_sub(usage.reasoning);
    let mut tokens = json!({"promptTokenCount": usage.prompt(), "candidatesTokenCount": candidates,
        "totalTokenCount": usage.prompt() + candidates + usage.reasoning});
    // The vendor leaves out what is none.
    for (name, count) in [("cachedContentTokenCount", usage.cache_read), ("thoughtsTokenCount", usage.reasoning)] {
        if count > 0 {
            tokens[name] = json!(count);
        }
    }
    tokens
}

/// A call's part; none if its arguments are no JSON object, which this protocol cannot say.
fn call(block: &Block) -> Option<Value> {
    let Kind::Tool { id, name, .. } = &block.kind else { return None };
    let args: Map<String, Value> = serde_json::from_str(&block.said.whole()).ok()?;
    let mut call = json!({"name": name, "args": args});
    if !id.is_empty() {
        call["id"] = json!(id);
    }
    let mut part = json!({"functionCall": call});
    if let Some(signature) = &block.carried {
        part["thoughtSignature"] = json!(signature);
    }
    Some(part)
}

/// The answer to a request that does not stream.
pub fn whole(wire: &Wire, answer: &Answer) -> Value {
    let mut parts = Vec::new();
    for block in &answer.blocks {
        let said = block.said.whole();
        match &block.kind {
            Kind::Text => parts.push(json!({"text": said})),
            Kind::Thinking { .. } => parts.push(json!({"text": said, "thought": true})),
            Kind::Tool { .. } => parts.extend(call(block)),
            Kind::Redacted | Kind::Native(_) => {}
        }
        match (&block.kind, &block.carried, parts.last_mut()) {
            (Kind::Text, Some(signature), Some(part)) => part["thoughtSignature"] = json!(signature),
            (Kind::Thinking { .. }, Some(signature), _) => {
                parts.push(json!({"text": "", "thoughtSignature": signature}));
            }
            _ => {}
        }
    }
    response(wire, candidate(answer, parts), usage(&answer.usage))
}
