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
    /// What the generated events go through before they are sent.
    pub warp: Warp,
    /// Compressed, if the client takes it.
    pub gzip: bool,
    pub fault: Option<Fault>,
}

/// A stream's events sent otherwise than a vendor would.
#[derive(Clone, Debug, Default)]
pub(crate) struct Warp {
    /// Which of the generated events are sent, and in what order; none: all, as they come.
    pub order: Option<Vec<usize>>,
    pub garble: Option<Garble>,
    /// A byte order mark stands before the first event.
    pub bom: bool,
}

/// One generated event spoilt.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Garble {
    /// Counted from 0, without pings.
    pub event: usize,
    /// The text in place of its data; none: the byte in its middle is turned over.
    pub with: Option<String>,
}

/// What a step says.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    Message(MessageReply),
    Error {
        refusal: Refusal,
        headers: HeaderMap,
    },
    Raw {
        status: u16,
        headers: HeaderMap,
        body: String,
    },
    /// A stream's events in the script's own letters.
    Stream {
        events: Vec<String>,
        headers: HeaderMap,
    },
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
    Text { text: String, signature: Option<String> },
    Thinking { text: String, signature: Option<String> },
    Redacted(String),
    Tool { name: String, id: Option<String>, input: Input, signature: Option<String> },
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
    /// Before the answer's head.
    pub delay_ms: u64,
    /// Between the head and the first byte of the body.
    pub body_delay_ms: u64,
    pub gap_ms: u64,
    /// Most bytes of text or arguments in one delta; none: whole.
    pub fragment: Option<usize>,
    /// Bytes of one write to the socket; none: as it fits.
    pub split: Option<usize>,
    pub line_end: LineEnd,
    /// Events between pings.
    pub ping_every: Option<usize>,
}

/// How the lines of an event stream end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum LineEnd {
    #[default]
    Lf,
    Cr,
    CrLf,
}

impl<'de> serde::Deserialize<'de> for LineEnd {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<LineEnd, D::Error> {
        struct Either;
        impl serde::de::Visitor<'_> for Either {
            type Value = LineEnd;
            fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
                f.write_str("true, false, \"cr\", \"lf\" or \"crlf\"")
            }
            fn visit_bool<E>(self, crlf: bool) -> Result<LineEnd, E> {
                Ok(if crlf { LineEnd::CrLf } else { LineEnd::Lf })
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<LineEnd, E> {
                match text {
                    "lf" => Ok(LineEnd::Lf),
                    "cr" => Ok(LineEnd::Cr),
                    "crlf" => Ok(LineEnd::CrLf),
                    other => Err(E::invalid_value(serde::de::Unexpected::Str(other), &self)),
                }
            }
        }
        from.deserialize_any(Either)
    }
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

    /// The calls of one answer, each with the signature that Gemini sends along.
    pub fn signed_calls(&self) -> Vec<(&str, Option<&str>)> {
        let Reply::Message(message) = &self.reply else { return Vec::new() };
        let mut calls = Vec::new();
        for (block, signature) in message.blocks.iter().zip(message.carried()) {
            let Block::Tool { name, .. } = block else { continue };
            calls.extend((0..self.parallel).map(|copy| (name.as_str(), signature.filter(|_| copy == 0))));
        }
        calls
    }
}

impl MessageReply {
    /// The signature that goes out with each block at Gemini. Thinking has none there: the next call has it, without
    /// one the text before the next thinking or the end, and without that a part of its own.
    pub fn carried(&self) -> Vec<Option<&str>> {
        let mut carried = vec![None; self.blocks.len()];
        let mut thought: Option<(usize, &str)> = None;
        for (at, block) in self.blocks.iter().enumerate() {
            match block {
                Block::Thinking { signature: Some(signature), .. } => {
                    if let Some((place, signature)) = thought.replace((at, signature)) {
                        carried[place] = Some(signature);
                    }
                }
                Block::Text { signature: Some(own), .. } | Block::Tool { signature: Some(own), .. } => {
                    carried[at] = Some(own);
                }
                Block::Text { .. } => thought = thought.map(|(_, signature)| (at, signature)),
                Block::Tool { .. } => carried[at] = thought.take().map(|(_, signature)| signature),
                _ => {}
            }
        }
        if let Some((place, signature)) = thought {
            carried[place] = Some(signature);
        }
        carried
    }
}
