//! What was said, in the conventions' JSON; made only where content is captured.

use serde_json::{Value, json};
use windlass_kernel::{CallId, ContentBlock, text_of};

/// Bytes of one text that are kept; the rest is cut off with a mark.
const TEXT_BYTES: usize = 16 * 1024;
/// Messages kept for one attribute; the oldest go first.
const MESSAGES: usize = 64;

/// Messages on their way into an attribute.
#[derive(Debug, Default)]
pub(crate) struct Messages(Vec<Value>);

impl Messages {
    pub fn push(&mut self, role: &str, parts: Vec<Value>) {
        if parts.is_empty() {
            return;
        }
        if self.0.len() == MESSAGES {
            self.0.remove(0);
        }
        self.0.push(json!({ "role": role, "parts": parts }));
    }

    /// As JSON text, and kept.
    pub fn shown(&self) -> Option<String> {
        (!self.0.is_empty()).then(|| Value::from(self.0.clone()).to_string())
    }

    /// As JSON text; none if nothing was said.
    pub fn take(&mut self) -> Option<String> {
        let said = std::mem::take(&mut self.0);
        (!said.is_empty()).then(|| Value::from(said).to_string())
    }
}

/// A block as a part of a message.
pub(crate) fn part(block: &ContentBlock) -> Value {
    match block {
        ContentBlock::Text { text } => json!({ "type": "text", "content": clipped(text) }),
        ContentBlock::Thinking { thinking, .. } => json!({ "type": "reasoning", "content": clipped(thinking) }),
        ContentBlock::ToolUse(call) => {
            json!({ "type": "tool_call", "id": call.id, "name": call.name, "arguments": clipped_value(&call.input) })
        }
        ContentBlock::Image { media_type, blob } => file("image", media_type, &blob.hash),
        ContentBlock::Document { media_type, blob, .. } => file("document", media_type, &blob.hash),
        // What only the provider can read is named, not shown.
        other => json!({ "type": other.kind() }),
    }
}

/// The parts of what a person said.
pub(crate) fn parts<'a>(blocks: impl IntoIterator<Item = &'a ContentBlock>) -> Vec<Value> {
    blocks.into_iter().map(part).collect()
}

/// A call's result, as the model is told it.
pub(crate) fn response(call: &CallId, blocks: &[ContentBlock]) -> Value {
    json!({ "type": "tool_call_response", "id": call, "response": result(blocks) })
}

pub(crate) fn result(blocks: &[ContentBlock]) -> String {
    clipped(&text_of(blocks))
}

/// Arguments as JSON text.
pub(crate) fn arguments(input: &Value) -> String {
    clipped(&input.to_string())
}

fn file(modality: &str, media_type: &str, hash: &str) -> Value {
    json!({ "type": "file", "modality": modality, "mime_type": media_type, "file_id": hash })
}

fn clipped_value(value: &Value) -> Value {
    let text = value.to_string();
    if text.len() <= TEXT_BYTES { value.clone() } else { Value::from(clipped(&text)) }
}

fn clipped(text: &str) -> String {
    if text.len() <= TEXT_BYTES {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(TEXT_BYTES);
    format!("{}… ({} bytes in all)", &text[..end], text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let said = part(&ContentBlock::text("ä".repeat(TEXT_BYTES)));
        let content = said["content"].as_str().unwrap();
        assert!(content.ends_with("ä… (32768 bytes in all)"), "{}", &content[content.len() - 40..]);
        assert_eq!(content.chars().filter(|c| *c == 'ä').count(), TEXT_BYTES / 2);
    }

    #[test]
    fn the_oldest_messages_give_way() {
        let mut messages = Messages::default();
        for at in 0..MESSAGES + 2 {
            messages.push("user", vec![json!(at)]);
        }
        let text = messages.take().unwrap();
        assert!(text.starts_with(r#"[{"role":"user","parts":[2]}"#), "{text}");
        assert_eq!(messages.take(), None);
    }
}
