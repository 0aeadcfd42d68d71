//! What is said between a person, a model and its tools; the words of the Messages API.

use crate::CallId;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One side's say. A closed message never changes, so it is shared, not copied.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    pub role: Role,
    pub content: Vec<ContentBlock>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    User,
    Assistant,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ContentBlock {
    Text {
        text: String,
    },
    /// The model's reasoning. `signature` is the provider's (or its encrypted form) and goes back unchanged, to `by`
    /// only; `by` is none in older logs.
    Thinking {
        thinking: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    },
    RedactedThinking {
        data: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    },
    /// A picture, by the hash of its bytes; the bytes are a blob beside the log.
    Image {
        media_type: String,
        blob: BlobRef,
    },
    /// A document (PDF), by the hash of its bytes.
    Document {
        media_type: String,
        blob: BlobRef,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
    },
    ToolUse(ToolUse),
    ToolResult(ToolResult),
    /// A block of a kind that only `provider` knows, kept and sent back to it verbatim.
    Native {
        provider: String,
        value: Value,
    },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolUse {
    pub id: CallId,
    pub name: String,
    /// The arguments. Text that is no JSON object is kept as a JSON string, for the schema check to refuse.
    pub input: Value,
    /// What the provider wants back with the call, unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<Box<Signature>>,
}

/// A provider's seal on a call, meaningless to any other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signature {
    pub by: String,
    pub text: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    pub tool_use_id: CallId,
    pub content: Vec<ContentBlock>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
}

/// A blob's name: the SHA-256 of its bytes, in hex, and how many there are.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct BlobRef {
    pub hash: String,
    pub bytes: u64,
}

/// Why the model stopped speaking.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    EndTurn,
    ToolUse,
    MaxTokens,
    StopSequence,
    Refusal,
    /// The provider paused a long turn of its own; send the message back to go on.
    Pause,
    /// A reason this version has no word for; the provider's own word is in the event's `raw_stop`.
    Other,
}

/// Tokens by class. Classes do not overlap: `input` excludes what was read from or written to the cache,
/// `output` includes `reasoning`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    pub input: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub cache_read: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub cache_write: u64,
    pub output: u64,
    /// The part of `output` spent on reasoning, where the provider says it.
    #[serde(skip_serializing_if = "is_zero")]
    pub reasoning: u64,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

impl Usage {
    pub fn add(&mut self, other: &Usage) {
        self.input = self.input.saturating_add(other.input);
        self.cache_read = self.cache_read.saturating_add(other.cache_read);
        self.cache_write = self.cache_write.saturating_add(other.cache_write);
        self.output = self.output.saturating_add(other.output);
        self.reasoning = self.reasoning.saturating_add(other.reasoning);
    }

    /// Tokens the request's context took: what the next request starts from.
    pub fn context(&self) -> u64 {
        self.input.saturating_add(self.cache_read).saturating_add(self.cache_write).saturating_add(self.output)
    }
}

impl Message {
    pub fn user(content: Vec<ContentBlock>) -> Message {
        Message { role: Role::User, content }
    }

    pub fn assistant(content: Vec<ContentBlock>) -> Message {
        Message { role: Role::Assistant, content }
    }

    /// The message's plain text: its text blocks joined.
    pub fn text(&self) -> String {
        text_of(&self.content)
    }
}

impl ContentBlock {
    pub fn text(text: impl Into<String>) -> ContentBlock {
        ContentBlock::Text { text: text.into() }
    }

    /// What a person or a program may say; the rest is the model's and its tools'.
    pub fn is_input(&self) -> bool {
        matches!(self, ContentBlock::Text { .. } | ContentBlock::Image { .. } | ContentBlock::Document { .. })
    }

    /// Its type's name, as written.
    pub fn kind(&self) -> &'static str {
        match self {
            ContentBlock::Text { .. } => "text",
            ContentBlock::Thinking { .. } => "thinking",
            ContentBlock::RedactedThinking { .. } => "redacted_thinking",
            ContentBlock::Image { .. } => "image",
            ContentBlock::Document { .. } => "document",
            ContentBlock::ToolUse(_) => "tool_use",
            ContentBlock::ToolResult(_) => "tool_result",
            ContentBlock::Native { .. } => "native",
        }
    }

    pub fn is_thinking(&self) -> bool {
        matches!(self, ContentBlock::Thinking { .. } | ContentBlock::RedactedThinking { .. })
    }
}

/// The text blocks of `blocks`, joined by nothing.
pub fn text_of(blocks: &[ContentBlock]) -> String {
    blocks
        .iter()
        .filter_map(|block| match block {
            ContentBlock::Text { text } => Some(text.as_str()),
            _ => None,
        })
        .collect()
}
