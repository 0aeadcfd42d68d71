//! What a row of hooks amounts to.

use crate::event::EventName;
use serde::Serialize;
use serde_json::Value;

/// What to do. Later ones win over earlier ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Decision {
    /// As if there were no hook.
    #[default]
    GoOn,
    /// PreToolUse: what would be asked need not be; no rule's deny is overridden.
    Allow { hook: String, reason: String },
    /// PreToolUse: a person is to be asked.
    Ask { hook: String, reason: String },
    /// The tool does not run, the prompt is dropped, the turn goes on, the compaction is left out; of a tool that has
    /// run: the model is told why that was wrong.
    Block { hook: String, reason: String },
    /// The turn ends here; the reason is for the person.
    Stop { hook: String, reason: String },
}

impl Decision {
    fn rank(&self) -> u8 {
        match self {
            Decision::GoOn => 0,
            Decision::Allow { .. } => 1,
            Decision::Ask { .. } => 2,
            Decision::Block { .. } => 3,
            Decision::Stop { .. } => 4,
        }
    }

    /// The stronger of the two; of two blocks, both reasons.
    pub(crate) fn join(self, later: Decision) -> Decision {
        match (self, later) {
            (Decision::Block { hook, reason }, Decision::Block { reason: more, .. }) => {
                Decision::Block { hook, reason: format!("{reason}\n{more}") }
            }
            (earlier, later) if later.rank() > earlier.rank() => later,
            (earlier, _) => earlier,
        }
    }
}

/// A line for the person, and the hook that it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub hook: String,
    pub text: String,
}

/// How a hook's run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    WentOn,
    Allowed,
    Asked,
    Blocked,
    Stopped,
    /// It gave no answer that counts; `on_error` said what then.
    Failed,
}

/// One hook that ran, for the record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Ran {
    pub hook: String,
    pub event: EventName,
    /// The call it was asked about.
    pub tool_use_id: Option<String>,
    pub verdict: Verdict,
    /// Why: the hook's words, or what went wrong.
    pub reason: Option<String>,
    /// None if it did not start or was ended by a signal.
    pub exit_code: Option<i32>,
    pub took_ms: u64,
    /// Whether it changed the input.
    pub rewrote: bool,
    /// What it printed, clipped; empty if it wanted that left out.
    pub stdout: String,
}

/// What a row of hooks amounts to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    pub decision: Decision,
    /// PreToolUse: the arguments to go on with, if a hook changed them.
    pub updated_input: Option<Value>,
    /// Texts for the model, in the order of the hooks.
    pub contexts: Vec<String>,
    /// Lines for the person: a hook's own, and what went wrong with it.
    pub messages: Vec<Message>,
    /// What ran, in order.
    pub ran: Vec<Ran>,
}
