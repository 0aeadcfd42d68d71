//! A state in the words of other people's specifications.

use crate::*;
use serde::Serialize;
use std::sync::Arc;

/// The eight fields that the runtime-loop specification asks for (S1-08).
#[derive(Clone, Debug, Serialize)]
pub struct QueryState {
    pub messages: Vec<Arc<Message>>,
    /// Completed model calls of the open turn, or of the last one.
    pub turn_count: u32,
    pub auto_compact_tracking: CompactTracking,
    /// Calls of the open round that have no result yet.
    pub pending_tool_summary: Vec<PendingTool>,
    pub stop_hook_active: bool,
    pub max_output_recovery_count: u32,
    pub has_attempted_reactive_compact: bool,
    /// Why the next model call will be, or the last one was, made.
    pub transition_reason: Option<&'static str>,
}

#[derive(Clone, Debug, Serialize)]
pub struct CompactTracking {
    pub boundary: usize,
    pub context_tokens: u64,
    pub compacting: bool,
}

#[derive(Clone, Debug, Serialize)]
pub struct PendingTool {
    pub id: CallId,
    pub name: String,
    pub phase: &'static str,
}

impl State {
    pub fn view(&self) -> QueryState {
        let turn = self.turn.as_ref().or(self.last_turn.as_ref());
        let calls = turn.iter().flat_map(|turn| &turn.round).flat_map(|round| &round.calls);
        QueryState {
            messages: self.transcript(),
            turn_count: turn.map_or(0, |turn| turn.model_calls),
            auto_compact_tracking: CompactTracking {
                boundary: self.boundary,
                context_tokens: self.context_tokens,
                compacting: self.compacting.is_some() || self.compaction_asked.is_some(),
            },
            pending_tool_summary: calls.filter(|call| !call.is_done()).map(PendingTool::of).collect(),
            stop_hook_active: turn.is_some_and(|turn| turn.stop_blocks > 0),
            max_output_recovery_count: turn.map_or(0, |turn| turn.continuations),
            has_attempted_reactive_compact: turn.is_some_and(|turn| turn.snips > 0),
            transition_reason: turn.map(|turn| turn.last.reason()),
        }
    }
}

impl PendingTool {
    fn of(call: &Call) -> PendingTool {
        PendingTool { id: call.id.clone(), name: call.name.clone(), phase: call.phase.name() }
    }
}

impl Phase {
    pub fn name(&self) -> &'static str {
        match self {
            Phase::New => "new",
            Phase::Judging { .. } => "judging",
            Phase::Asking { .. } => "asking",
            Phase::Allowed => "allowed",
            Phase::Running { .. } => "running",
            Phase::Lost { .. } => "lost",
            Phase::Done { .. } => "done",
        }
    }
}

impl Last {
    fn reason(self) -> &'static str {
        match self {
            Last::Input => "input",
            Last::ToolRound => "tool_round",
            Last::Said(StopReason::MaxTokens) => "max_tokens",
            Last::Said(_) => "said",
            Last::Retry => "retry",
            Last::StopBlocked => "stop_hook",
        }
    }
}
