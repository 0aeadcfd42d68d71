//! The knobs of the loop, and the named settings that satisfy each source document.

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
            max_model_errors: 3,
            max_tool_error_rounds: None,
            max_denials: 3,
            max_continuations: 3,
            max_stop_blocks: 1,
            max_reopens: 5,
            turn_timeout_ms: None,
            max_session_tokens: None,
            keep_last: 10,
            tools: ToolProfile::default(),
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
