//! The knobs of the loop, and the named settings that satisfy each source document.

use crate::Caps;
use serde::{Deserialize, Serialize};

/// How a session's loop behaves; stored in its `Opened`, so a log folds the same for ever.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Profile {
    pub name: String,
    /// Completed model calls per turn.
    pub max_turns: u32,
    /// Failed model calls in a row before the turn ends.
    pub max_model_errors: u32,
    /// Rounds in a row in which a call failed and none succeeded, before the turn ends; none: no limit.
    pub max_tool_error_rounds: Option<u32>,
    /// Calls denied in a row before the turn ends.
    pub max_denials: u32,
    /// Times a reply that hit its output limit is continued.
    pub max_continuations: u32,
    /// Times the stop checks may send the model back to work in one turn.
    pub max_stop_blocks: u32,
    /// Times in a row a session may be taken up again without any progress.
    pub max_reopens: u32,
    /// Milliseconds a turn may take; none: no limit.
    pub turn_timeout_ms: Option<u64>,
    /// Tokens, of all classes, a session may spend; none: no limit.
    pub max_session_tokens: Option<u64>,
    /// Messages kept verbatim at a compaction, before moving back to a safe split.
    pub keep_last: usize,
    pub tools: ToolProfile,
    #[serde(skip_serializing_if = "is_usual")]
    pub retry: Retry,
    /// The model that speaks while the session's own is overloaded or out of reach.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fallback: Option<Fallback>,
    #[serde(skip_serializing_if = "is_usual")]
    pub caps: Caps,
    /// Per cent of the model's window above which an answer that hit its output limit again and again is followed by a
    /// compaction.
    #[serde(skip_serializing_if = "is_compact_at")]
    pub compact_at_percent: u8,
}

/// How failed model calls are tried again. Clocks are the HTTP client's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Retry {
    /// Milliseconds before the second attempt; they double with each further one, spread by up to a quarter.
    pub base_ms: u64,
    /// Milliseconds that are waited at most; a provider that asks for more ends the turn, or its model's part in it.
    pub max_wait_ms: u64,
    /// Times in a row that a stalled attempt is made again.
    pub max_stalls: u32,
    /// Overloads in a row after which the fallback model speaks.
    pub overloads_before_fallback: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fallback {
    /// `PROVIDER/NAME`.
    pub model: String,
    pub back: FallbackBack,
}

/// When the session's own model speaks again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FallbackBack {
    #[default]
    NextTurn,
    Never,
}

impl Default for Retry {
    fn default() -> Retry {
        Retry { base_ms: 500, max_wait_ms: 60_000, max_stalls: 2, overloads_before_fallback: 2 }
    }
}

fn is_usual<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

const COMPACT_AT_PERCENT: u8 = 90;

fn is_compact_at(percent: &u8) -> bool {
    *percent == COMPACT_AT_PERCENT
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ToolProfile {
    /// Calls that may run at once; 0 is taken as 1.
    pub max_parallel: u32,
    pub order: ToolOrder,
    pub start: ToolStart,
    pub on_sibling_error: OnSiblingError,
}

/// Which calls of one message may run side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolOrder {
    /// Readers together; each writer alone, in its place.
    Partition,
    /// All together.
    All,
    /// One after another.
    Serial,
}

/// When a call may start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolStart {
    /// When the whole message has arrived.
    MessageEnd,
    /// Readers when their block ends, writers when the message does.
    ReadersAtBlockEnd,
    /// When its block ends.
    BlockEnd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnSiblingError {
    Continue,
    /// One failure cancels the other calls of its message.
    AbortSiblings,
}

impl Default for ToolProfile {
    fn default() -> ToolProfile {
        ToolProfile {
            max_parallel: 5,
            order: ToolOrder::Partition,
            start: ToolStart::ReadersAtBlockEnd,
            on_sibling_error: OnSiblingError::Continue,
        }
    }
}

impl Default for Profile {
    fn default() -> Profile {
        Profile {
            name: "default".into(),
            max_turns: 50,
            max_model_errors: 5,
            max_tool_error_rounds: None,
            max_denials: 3,
            max_continuations: 3,
            max_stop_blocks: 1,
            max_reopens: 5,
            turn_timeout_ms: None,
            max_session_tokens: None,
            keep_last: 10,
            tools: ToolProfile::default(),
            retry: Retry::default(),
            fallback: None,
            caps: Caps::default(),
            compact_at_percent: COMPACT_AT_PERCENT,
        }
    }
}

impl Profile {
    pub const NAMES: [&str; 6] = ["default", "s0-general", "s1-spec08", "s2-query", "s3-box", "s4-framework"];

    /// The profile called `name`; none if there is no such profile.
    pub fn named(name: &str) -> Option<Profile> {
        let tools = |order, start, on_sibling_error| ToolProfile { max_parallel: 5, order, start, on_sibling_error };
        use {OnSiblingError::*, ToolOrder::*, ToolStart::*};
        let base = Profile { name: name.into(), ..Profile::default() };
        Some(match name {
            "default" => base,
            "s0-general" => Profile { max_turns: 20, tools: tools(Partition, MessageEnd, Continue), ..base },
            "s1-spec08" => Profile { tools: tools(Serial, MessageEnd, Continue), ..base },
            "s2-query" => Profile {
                max_turns: 100,
                max_model_errors: 3,
                max_tool_error_rounds: Some(3),
                keep_last: 0,
                tools: tools(All, BlockEnd, AbortSiblings),
                ..base
            },
            "s3-box" => Profile { tools: tools(All, MessageEnd, Continue), ..base },
            "s4-framework" => Profile { max_turns: 10, tools: tools(All, MessageEnd, Continue), ..base },
            _ => return None,
        })
    }
}
