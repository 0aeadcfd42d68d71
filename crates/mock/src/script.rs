//! A script as it is played: checked, compiled, ready.

use crate::capture::Capture;
use crate::condition::{Condition, Pattern};
use crate::refusal::Refusal;
use http::HeaderMap;
use serde_json::Value;
use std::collections::BTreeMap;

/// What a server is to say; see `SCRIPT.md`.
#[derive(Clone, Debug, Default)]
pub struct Script {
    pub(crate) key: Key,
    /// Names of the models that `GET /v1/models` lists.
    pub(crate) models: Vec<String>,
    /// Finds a session's own id in its first user text.
    pub(crate) sid: Option<Pattern>,
    pub(crate) conversations: Vec<Conversation>,
    /// The steps that stand in no conversation.
    pub(crate) default: Flow,
}

/// A mistake in a script.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("script line {line}: {message}")]
pub struct ScriptError {
    /// Counted from 1.
    pub line: usize,
    pub message: String,
}

impl Script {
    /// Reads a script's TOML.
    pub fn parse(toml: &str) -> Result<Script, ScriptError> {
        crate::form::parse(toml)
    }
}

/// What key a request must bring.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Key {
    #[default]
    Any,
    None,
    Exactly(String),
}

#[derive(Clone, Debug)]
pub(crate) struct Conversation {
    pub first_user: Pattern,
    pub flow: Flow,
}

/// The steps of one conversation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flow {
    /// The last step answers every later round, too.
    pub repeat: bool,
    pub steps: Vec<Step>,
}

#[derive(Clone, Debug)]
pub(crate) struct Step {
    /// Its own name, or `step N`.
    pub name: String,
    pub when: Option<Condition>,
    /// Answers per conversation, after which the step is passed over.
    pub times: Option<u32>,
    pub expect: Vec<Condition>,
    pub captures: BTreeMap<String, Capture>,
    /// Tools that the request must offer.
    pub needs_tools: Vec<String>,
    /// Rounds that the step answers.
    pub rounds: usize,
    /// How often each call is made.
    pub parallel: usize,
    pub reply: Reply,
    pub pace: Pace,
    pub fault: Option<Fault>,
}

/// What a step says.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    Message(MessageReply),
    Error { refusal: Refusal, headers: HeaderMap },
    Raw { status: u16, headers: HeaderMap, body: String },
}

#[derive(Clone, Debug)]
pub(crate) struct MessageReply {
    pub blocks: Vec<Block>,
    /// Bytes of made-up text after the blocks, in deltas of `chunk` bytes.
    pub text_bytes: usize,
    pub chunk: usize,
    /// The stop reason in Anthropic's words; none: the one that fits the blocks.
    pub stop: Option<String>,
    pub usage: UsageForm,
    pub headers: HeaderMap,
}

/// A block before its `${…}` are filled.
#[derive(Clone, Debug)]
pub(crate) enum Block {
    Text(String),
    Thinking { text: String, signature: Option<String> },
    Redacted(String),
    Tool { name: String, id: Option<String>, input: Input },
    Native(Value),
}

#[derive(Clone, Debug)]
pub(crate) enum Input {
    Value(Value),
    Raw(String),
}

/// Tokens that the script states itself; the others are computed.
#[derive(Clone, Copy, Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct UsageForm {
    pub input: Option<u64>,
    pub output: Option<u64>,
    pub cache_read: Option<u64>,
    pub cache_write: Option<u64>,
    pub reasoning: Option<u64>,
}

/// How an answer's bytes come.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pace {
    pub delay_ms: u64,
    pub gap_ms: u64,
    /// Most bytes of text or arguments in one delta; none: whole.
    pub fragment: Option<usize>,
    /// Bytes of one write to the socket; none: as it fits.
    pub split: Option<usize>,
    pub crlf: bool,
    /// Events between pings.
    pub ping_every: Option<usize>,
}

/// Where an answer breaks, and how.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    pub at: Place,
    pub how: Break,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Nothing is answered at all.
    BeforeAnswer,
    Events(usize),
    Bytes(usize),
    Block {
        index: usize,
        chars: usize,
    },
}

#[derive(Clone, Debug)]
pub(crate) enum Break {
    Close,
    Reset,
    Hang,
    Event(Refusal),
}

impl Step {
    /// Whether the step has a place in the order of rounds; the others are chosen by content or stand before it.
    pub fn has_place(&self) -> bool {
        self.when.is_none() && self.times.is_none()
    }

    /// Names of the tools it calls.
    pub fn called_tools(&self) -> impl Iterator<Item = &str> {
        let blocks = match &self.reply {
            Reply::Message(message) => message.blocks.as_slice(),
            _ => &[],
        };
        blocks.iter().filter_map(|block| match block {
            Block::Tool { name, .. } => Some(name.as_str()),
            _ => None,
        })
    }
}
