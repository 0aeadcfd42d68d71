//! What the runtime is to do now. Steps are stored for ever inside `Began`, so they hold ids only.

use crate::{CallId, ReachedCap, Seq};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Step {
    /// Ask the model to speak.
    CallModel,
    /// Decide whether a call may run.
    Judge { call: CallId },
    /// Run a call that may.
    RunTool { call: CallId },
    /// Answer calls that will never run. Needs no room: its `Began` is the whole fact.
    Close { calls: Vec<CallId>, why: CloseReason },
    /// Call back the room doing `work`.
    Cancel { work: Seq },
    /// Replace the older part of the transcript by a summary.
    Compact,
    /// Leave the oldest results out of the transcript, for the prompt is too long. Needs no room.
    Snip { calls: Vec<CallId> },
    /// Go on with another model. Needs no room.
    SwitchModel { model: String, why: SwitchReason },
    /// Wait until somebody raises the cap, or calls the turn back. Needs no room.
    Pause { cap: ReachedCap },
    /// End the turn; with `checks`, ask the stop checks first whether the work is done.
    Finish { end: End, checks: bool },
}

/// Why a call is answered without having run to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CloseReason {
    Interrupted,
    SiblingFailed,
    /// The message broke off before it was whole, so its writers are not trusted.
    MessageCut,
    /// The process died while the call ran; what it did is not known.
    OutcomeUnknown,
    /// A limit of the turn was reached.
    Limit,
}

/// Why another model speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SwitchReason {
    /// It was overloaded, or asked to wait too long.
    Overloaded,
    /// It could not be reached or understood.
    Failed,
    /// A new turn began: the session's own model again.
    Back,
}

/// How a turn ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum End {
    /// The model had nothing more to do.
    Done,
    MaxTurns {
        turns: u32,
    },
    Interrupted,
    /// The turn's time was over.
    Deadline,
    /// The model refused to answer.
    Refused,
    /// The model could not be reached or understood; `message` is the first true cause.
    ModelError {
        message: String,
    },
    /// The answer did not fit the wanted schema, also after the model was told so.
    InvalidAnswer {
        problem: String,
    },
    /// The reply hit its output limit again and again.
    OutputLimit {
        continuations: u32,
    },
    /// Too many rounds in a row in which every call failed.
    ToolErrors {
        rounds: u32,
    },
    /// Too many calls denied in a row: nothing the model tries is permitted.
    PermissionBlocked {
        denials: u32,
    },
    /// The session's token budget is spent.
    TokenLimit {
        used: u64,
    },
    /// The process died again and again on this turn without getting anywhere.
    CrashLoop {
        reopened: u32,
    },
}
