//! What ends a turn that would otherwise go on. Looked at between rounds only: a round under way is finished.

use crate::*;

impl State {
    /// The limit that forbids another model call, if one does.
    pub(crate) fn over_limit(&self, turn: &Turn) -> Option<End> {
        let profile = &self.profile;
        if let Some(failure) = &turn.failure
            && (turn.model_errors >= profile.max_model_errors || !failure.kind.is_worth_retrying())
        {
            return Some(End::ModelError { message: failure.message.clone() });
        }
        if turn.denials >= profile.max_denials {
            return Some(End::PermissionBlocked { denials: turn.denials });
        }
        if profile.max_tool_error_rounds.is_some_and(|max| turn.tool_error_rounds >= max) {
            return Some(End::ToolErrors { rounds: turn.tool_error_rounds });
        }
        if turn.model_calls >= profile.max_turns {
            return Some(End::MaxTurns { turns: turn.model_calls });
        }
        let used = self.totals.usage.context();
        if profile.max_session_tokens.is_some_and(|max| used >= max) {
            return Some(End::TokenLimit { used });
        }
        None
    }
}

impl FailureKind {
    /// Sending the same again may do better.
    pub fn is_worth_retrying(self) -> bool {
        matches!(self, FailureKind::Transient | FailureKind::Overloaded)
    }
}
