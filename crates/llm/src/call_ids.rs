//! Ids of tool calls, made here where a provider gives none.

use std::sync::Arc;
use windlass_kernel::{ContentBlock, Message};

const PREFIX: &str = "call_";

/// Gives ids that none of a session's calls has.
pub(crate) struct CallIds {
    next: u64,
}

impl CallIds {
    /// Ids behind those of the calls in `messages`.
    pub(crate) fn behind(messages: &[Arc<Message>]) -> CallIds {
        let blocks = messages.iter().flat_map(|message| &message.content);
        let numbers = blocks.filter_map(|block| match block {
            ContentBlock::ToolUse(call) => number(&call.id.0),
            _ => None,
        });
        CallIds { next: numbers.max().unwrap_or(0).saturating_add(1) }
    }

    pub(crate) fn make(&mut self) -> String {
        self.next += 1;
        format!("{PREFIX}{}", self.next - 1)
    }
}

/// Whether the id may have been made here, so that its provider does not know it.
pub(crate) fn is_made_here(id: &str) -> bool {
    number(id).is_some()
}

fn number(id: &str) -> Option<u64> {
    id.strip_prefix(PREFIX)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::call;
    use serde_json::json;

    #[test]
    fn ids_made_here_come_behind_those_of_the_conversation() {
        assert_eq!(CallIds::behind(&[]).make(), "call_1");
        let calls = ["call_7", "call_x", "z9"].map(|id| call(id, "ls", json!({})));
        let mut ids = CallIds::behind(&[Arc::new(Message::assistant(calls.into()))]);
        assert_eq!([ids.make(), ids.make()], ["call_8", "call_9"]);
        assert!(is_made_here("call_8") && !is_made_here("call_x"));
    }
}
