//! Lists of models, each in its vendor's shape.

use crate::respond::Asked;
use crate::route;
use serde_json::{Value, json};

const INPUT_TOKENS: u64 = 1_048_576;
const OUTPUT_TOKENS: u64 = 65_536;

/// The list that a path asks for, if it asks for one.
pub fn list(names: &[String], asked: &Asked) -> Option<Value> {
    let path = asked.path.trim_end_matches('/');
    if path.ends_with("/api/tags") {
        return Some(json!({"models": names.iter().map(ollama).collect::<Vec<_>>()}));
    }
    if !path.ends_with("/models") {
        return None;
    }
    let google = asked.headers.contains_key("x-goog-api-key") || route::query(asked.query, "key").is_some();
    if google || path.ends_with("/v1beta/models") {
        return Some(json!({"models": names.iter().map(gemini).collect::<Vec<_>>()}));
    }
    Some(both(names))
}

/// One list that Anthropic's and OpenAI's clients can read.
fn both(names: &[String]) -> Value {
    let model = |name: &String| {
        json!({"id": name, "type": "model", "object": "model", "display_name": name, "owned_by": "mock",
            "created": 1_700_000_000, "created_at": "2023-11-14T22:13:20Z"})
    };
    let data: Vec<Value> = names.iter().map(model).collect();
    json!({"object": "list", "data": data, "has_more": false, "first_id": names.first(), "last_id": names.last()})
}

fn gemini(name: &String) -> Value {
    json!({"name": format!("models/{name}"), "version": "001", "displayName": name,
        "inputTokenLimit": INPUT_TOKENS, "outputTokenLimit": OUTPUT_TOKENS,
        "supportedGenerationMethods": ["generateContent", "countTokens"], "thinking": true})
}

fn ollama(name: &String) -> Value {
    let details = json!({"parent_model": "", "format": "gguf", "family": "mock", "families": ["mock"],
        "parameter_size": "1B", "quantization_level": "Q4_0"});
    json!({"name": name, "model": name, "modified_at": "2023-11-14T22:13:20Z", "size": 1, "digest": "0".repeat(64),
        "details": details})
}
