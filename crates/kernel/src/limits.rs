//! What ends a turn that would otherwise go on. Looked at between rounds only: a round under way is finished.

use crate::*;

impl State {
    /// The limit that forbids another model call, if one does.
    pub(crate) fn over_limit(&self, turn: &Turn) -> Option<End> {
        let profile = &self.profile;
        if let Some(message) = turn.failure.as_ref().and_then(|failure| self.gives_up(turn, failure)) {
            return Some(End::ModelError { message });
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

    /// Why the model is not asked again; none if it is.
    fn gives_up(&self, turn: &Turn, failure: &ModelFailure) -> Option<String> {
        let message = match &turn.fell_back {
            Some(cause) => {
                &format!("{cause}; the fallback model {} failed as well: {}", self.speaking_model(), failure.message)
            }
            None => &failure.message,
        };
        if !failure.kind.is_worth_retrying() {
            return Some(message.clone());
        }
        if self.is_wait_too_long(turn) {
            let asked = turn.retry_after_ms.unwrap_or_default().div_ceil(1000);
            let most = self.profile.retry.max_wait_ms.div_ceil(1000);
            return Some(format!(
                "{message}; the provider asks to wait {asked} s, longer than the {most} s that are waited \
                 (retry.max_wait_ms): try again in {asked} s, or with another model"
            ));
        }
        if !self.is_tried_too_often(turn) {
            return None;
        }
        Some(match turn.model_errors {
            0 | 1 => message.clone(),
            tries => format!("{message} (tried {tries} times)"),
        })
    }
}

impl FailureKind {
    /// Sending the same again may do better.
    pub fn is_worth_retrying(self) -> bool {
        matches!(self, FailureKind::Transient | FailureKind::Overloaded | FailureKind::Stalled)
    }
}
