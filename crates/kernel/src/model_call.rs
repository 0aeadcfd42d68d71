//! What events say of a model call: what was asked of whom, what it took, and how it failed.

use crate::*;
use serde::{Deserialize, Serialize};

/// One attempt at a model call, as it goes out: what the ledger needs to tell what was asked of whom.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelCalled {
    pub work: Seq,
    pub role: ModelRole,
    pub provider: String,
    pub model: String,
    pub parameters: Parameters,
    /// 1 for the first, counted anew after each whole answer.
    pub attempt: u32,
    /// The prompt's sections in order, by name and hash; their text is in blobs.
    pub sections: Vec<Section>,
    /// The tool list offered, by hash; its JSON is a blob.
    pub tools: BlobRef,
    /// Tokens the model's window holds, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
}

/// What a model call was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelRole {
    Main,
    Compaction,
    Subagent,
    /// It answers in a person's place whether a call may run.
    Review,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Parameters {
    pub max_tokens: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// Token budget for thinking; none: the provider's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking_tokens: Option<u32>,
    /// How hard the model is to think; none: the provider's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    #[serde(default, skip_serializing_if = "ToolChoice::is_auto")]
    pub tool_choice: ToolChoice,
}

/// How hard a model thinks, in the vendors' common words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effort {
    /// Not at all, where the model can be told so.
    None,
    Minimal,
    Low,
    Medium,
    High,
    Max,
}

/// Whether the model must, may or may not call a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToolChoice {
    #[default]
    Auto,
    None,
    /// Some tool.
    Any,
    Tool {
        name: String,
    },
}

impl ToolChoice {
    pub fn is_auto(&self) -> bool {
        *self == ToolChoice::Auto
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Section {
    pub name: String,
    pub blob: BlobRef,
}

/// What a model call took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Spent {
    pub usage: Usage,
    /// Millionths of a US dollar; none where no price is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_micro_usd: Option<u64>,
    /// Milliseconds from sending the request to the first content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_token_ms: Option<u64>,
    /// The provider never said what the call took: `usage` is reckoned from what was sent and heard.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
}

/// Money and tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spending {
    /// Millionths of a US dollar, of the calls whose price is known.
    pub micro_usd: u64,
    /// Of all classes.
    pub tokens: u64,
}

/// Why the beginning of a request is not what the provider keeps from the one before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheBroke {
    pub work: Seq,
    pub cause: CacheBreak,
    /// Tokens of the call before that could have been read from the cache.
    pub tokens: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum CacheBreak {
    /// A section of the system prompt has other text than in the call before.
    Section { name: String },
    /// Sections were added, left out or put in another order; the first that differs.
    Order { name: String },
    /// The tool list changed.
    Tools,
    /// The request began as the one before, and the provider read only `read` tokens of it from its cache.
    Miss {
        read: u64,
        /// Milliseconds since the call before ended.
        idle_ms: u64,
    },
}

/// Why a model call failed, told by what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelFailure {
    pub kind: FailureKind,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The provider asked to wait this long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// Try again: the network, the server, a stream that broke.
    Transient,
    /// Try again later: rate limit or overload.
    Overloaded,
    /// Nothing came for as long as one waits.
    Stalled,
    /// The prompt does not fit the model's window.
    TooLong,
    /// The key is missing, wrong or not allowed.
    Auth,
    /// The request is wrong; sending it again changes nothing.
    Invalid,
}
