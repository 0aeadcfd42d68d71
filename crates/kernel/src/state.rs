//! What a log amounts to. Serialisable, and a function of the log alone.

use crate::*;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Denials kept for the session's record; older ones are in the log.
pub const MAX_DENIALS_KEPT: usize = 100;

/// The fold of a session's log.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
    pub head: Seq,
    pub epoch: u64,
    pub cwd: String,
    pub agent: String,
    pub model: String,
    pub mode: PermissionMode,
    pub profile: Profile,
    pub parent: Option<Parent>,
    pub forked_from: Option<Fork>,
    pub disabled_tools: BTreeSet<String>,
    /// Rules that answers added for this session.
    pub grants: Vec<String>,
    /// Closed rounds and inputs; an open round lives in `turn`.
    pub messages: Vec<Arc<Message>>,
    /// Messages before this are stood for by `summary`, or forgotten.
    pub boundary: usize,
    pub summary: Option<Arc<Message>>,
    /// Inputs the model has not been shown yet.
    pub pending: Vec<Pending>,
    pub turn: Option<Box<Turn>>,
    /// The turn before, as it ended.
    pub last_turn: Option<Box<Turn>>,
    pub last_end: Option<End>,
    pub compacting: Option<Task>,
    pub compaction_asked: Option<CompactionWish>,
    /// Failed attempts at it in a row, and how long the provider asked to wait.
    pub compaction_errors: u32,
    pub compaction_wait_ms: Option<u64>,
    pub inputs: BTreeSet<InputId>,
    pub call_ids: BTreeSet<CallId>,
    /// Content hashes of the files the session has read or written, by path.
    pub files: Arc<BTreeMap<String, String>>,
    pub denials: Vec<Denial>,
    pub totals: Totals,
    /// Tokens the newest whole answer's context took.
    pub context_tokens: u64,
    /// Tokens the window of the model last called holds, where that is known.
    pub window: Option<u64>,
    /// The model that speaks in the place of `model`.
    pub speaking: Option<String>,
    /// The request that went out last.
    pub sent: Option<Box<Sent>>,
    /// What was last seen to be spent in the scopes of caps that other sessions share.
    pub seen: BTreeMap<CapScope, Seen>,
    /// Times taken up again since anything last got done.
    pub reopens: u32,
}

/// What a session has spent and done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    pub user_turns: u32,
    pub model_calls: u32,
    pub tool_rounds: u32,
    pub tool_runs: u32,
    pub usage: Usage,
    /// Of the calls whose price is known.
    pub cost_micro_usd: u64,
    /// Calls that took something at a price nobody knows.
    pub unpriced_calls: u32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pending {
    pub message: Arc<Message>,
    /// JSON Schema of the answer it wants.
    pub output_schema: Option<Arc<serde_json::Value>>,
    /// Opens a turn of its own if none is open.
    pub wakes: bool,
    /// A person said it: worth a turn even after an interrupt.
    pub by_person: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompactionWish {
    pub instructions: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Denial {
    pub call: CallId,
    pub tool: String,
    pub reason: String,
}

/// From a person's prompt to `TurnFinished`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// The event that opened it.
    pub opened_by: Seq,
    /// Milliseconds since the Unix epoch.
    pub opened_at: u64,
    pub round: Option<Round>,
    pub last: Last,
    pub halt: Option<End>,
    pub finishing: Option<Finishing>,
    /// Completed model calls.
    pub model_calls: u32,
    pub tool_rounds: u32,
    pub continuations: u32,
    /// Failed model calls in a row, and the first of them.
    pub model_errors: u32,
    pub failure: Option<ModelFailure>,
    /// The newest of them.
    pub newest_failure: Option<FailureKind>,
    /// How long the provider asked to wait before the next attempt.
    pub retry_after_ms: Option<u64>,
    /// Of the failures in a row: those of silence, and the overloads that came last.
    pub stalls: u32,
    pub overloads: u32,
    /// Another model speaks in this turn, for this cause.
    pub fell_back: Option<String>,
    /// Times the oldest results were left out, and the history was compacted without being asked.
    pub snips: u32,
    pub compactions: u32,
    /// The cap it waits at.
    pub paused: Option<ReachedCap>,
    pub denials: u32,
    pub tool_error_rounds: u32,
    pub stop_blocks: u32,
    /// JSON Schema of the wanted answer, and times the model was told that its own does not fit.
    pub output_schema: Option<Arc<serde_json::Value>>,
    pub repairs: u32,
}

/// What the turn last came to: why the next step is what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Last {
    Input,
    ToolRound,
    /// The model spoke and called nothing.
    Said(StopReason),
    Retry,
    StopBlocked,
}

/// One model call with its tools.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Round {
    pub work: Seq,
    pub blocks: Vec<Block>,
    pub ended: Option<Ended>,
    pub cancelling: bool,
    pub calls: Vec<Call>,
    /// A call failed and takes its siblings with it.
    pub aborted: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Block {
    pub block: ContentBlock,
    pub partial: bool,
}

/// How a model's message ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    Whole(StopReason),
    /// It broke off after a call had been made: what is whole of it stands.
    Cut,
    Cancelled,
}

/// One tool use's life.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Call {
    pub id: CallId,
    pub name: String,
    /// The arguments that will run: the model's, a hook's, or the answerer's.
    pub input: serde_json::Value,
    /// The model's own, where what was judged differs: judged anew, a call is judged as it was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made: Option<serde_json::Value>,
    /// Known once judged.
    pub plan: Option<CallPlan>,
    /// What hooks have the model told beside the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    pub phase: Phase,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    New,
    Judging {
        work: Seq,
    },
    Asking {
        question: Option<Box<Question>>,
    },
    Allowed,
    Running {
        work: Seq,
        cancelling: bool,
        process: Option<Process>,
    },
    /// It ran when the process died.
    Lost {
        process: Option<Process>,
    },
    Done {
        outcome: Outcome,
        blocks: Vec<ContentBlock>,
    },
}

/// A step outside the round that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    pub work: Seq,
    pub cancelling: bool,
    pub halted: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finishing {
    pub work: Seq,
    pub end: End,
    pub checks: bool,
    pub cancelling: bool,
}

impl State {
    /// Folds `records` from nothing.
    pub fn fold<'a>(records: impl IntoIterator<Item = &'a Record>) -> State {
        let mut state = State::default();
        for record in records {
            state.apply(record);
        }
        state
    }

    /// Every work a room must be doing now: a room whose work is not here is to be called back.
    pub fn in_flight(&self) -> Vec<Seq> {
        let mut works = Vec::new();
        if let Some(turn) = &self.turn {
            if let Some(round) = &turn.round {
                if round.ended.is_none() {
                    works.push(round.work);
                }
                works.extend(round.calls.iter().filter_map(|call| call.work()));
            }
            works.extend(turn.finishing.as_ref().map(|finishing| finishing.work));
        }
        works.extend(self.compacting.map(|task| task.work));
        works
    }

    /// Nothing to do and nothing under way.
    pub fn is_idle(&self) -> bool {
        self.turn.is_none() && self.compacting.is_none() && self.compaction_asked.is_none()
    }

    /// Calls that wait for a person.
    pub fn asking(&self) -> impl Iterator<Item = (&Call, &Question)> {
        let calls = self.turn.iter().flat_map(|turn| &turn.round).flat_map(|round| &round.calls);
        calls.filter_map(|call| match &call.phase {
            Phase::Asking { question: Some(question) } => Some((call, &**question)),
            _ => None,
        })
    }

    /// The call `id` of the open round.
    pub fn call(&self, id: &CallId) -> Option<&Call> {
        self.turn.as_ref()?.round.as_ref()?.calls.iter().find(|call| call.id == *id)
    }
}

impl Call {
    pub fn is_done(&self) -> bool {
        matches!(self.phase, Phase::Done { .. })
    }

    /// How it ended, once it has.
    pub fn outcome(&self) -> Option<Outcome> {
        match self.phase {
            Phase::Done { outcome, .. } => Some(outcome),
            _ => None,
        }
    }

    /// Neither running nor done: closing it undoes nothing.
    pub fn is_unbegun(&self) -> bool {
        matches!(self.phase, Phase::New | Phase::Judging { .. } | Phase::Asking { .. } | Phase::Allowed)
    }

    /// What is not known to read is taken to write.
    pub fn writes(&self) -> bool {
        self.plan.as_ref().is_none_or(|plan| plan.access == Access::Write)
    }

    fn work(&self) -> Option<Seq> {
        match self.phase {
            Phase::Judging { work } | Phase::Running { work, .. } => Some(work),
            _ => None,
        }
    }
}
