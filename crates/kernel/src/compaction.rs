//! Where a history may be cut so that a summary can stand for its older part.

use crate::*;

impl State {
    /// The newest place that keeps `profile.keep_last` messages and parts no call from its result.
    pub fn split(&self) -> Option<usize> {
        let wanted = self.messages.len().saturating_sub(self.profile.keep_last);
        (self.boundary + 1..=wanted).rev().find(|place| self.is_safe_split(*place))
    }

    /// No result after `place` belongs to a call before it.
    pub(crate) fn is_safe_split(&self, place: usize) -> bool {
        let begins_with_results = self
            .messages
            .get(place)
            .is_some_and(|message| message.content.iter().any(|block| matches!(block, ContentBlock::ToolResult(_))));
        place <= self.messages.len() && !begins_with_results
    }
}
