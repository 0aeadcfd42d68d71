//! What must hold in every state that can be loaded; the simulator and `doctor` ask.

use crate::*;
use std::collections::BTreeSet;
use std::sync::Arc;

impl State {
    /// The first invariant that does not hold, in words.
    pub fn check(&self) -> Result<(), String> {
        check_pairs(&self.transcript())?;
        if self.boundary > self.messages.len() {
            return Err(format!("boundary {} lies beyond {} messages", self.boundary, self.messages.len()));
        }
        let mut works = BTreeSet::new();
        for work in self.in_flight() {
            if !works.insert(work) {
                return Err(format!("work {work} is in flight twice"));
            }
        }
        let wakers = self.pending.iter().any(|input| input.wakes && input.by_person);
        if wakers && self.turn.is_none() {
            return Err("a prompt waits and no turn is open to take it up".into());
        }
        Ok(())
    }
}

/// Every tool use is answered exactly once, in the very next message, in call order; nothing else is answered.
pub fn check_pairs(messages: &[Arc<Message>]) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    let mut open: Vec<&CallId> = Vec::new();
    for (place, message) in messages.iter().enumerate() {
        let results: Vec<_> = message.content.iter().filter_map(as_result).map(|result| &result.tool_use_id).collect();
        if results != open {
            return Err(format!("message {place} answers {results:?} where {open:?} were called"));
        }
        open = message.content.iter().filter_map(as_use).map(|tool_use| &tool_use.id).collect();
        if let Some(twice) = open.iter().find(|id| !seen.insert((**id).clone())) {
            return Err(format!("message {place} calls {twice} a second time"));
        }
        if message.content.is_empty() {
            return Err(format!("message {place} is empty"));
        }
    }
    if open.is_empty() { Ok(()) } else { Err(format!("the calls {open:?} are never answered")) }
}

fn as_result(block: &ContentBlock) -> Option<&ToolResult> {
    match block {
        ContentBlock::ToolResult(result) => Some(result),
        _ => None,
    }
}

fn as_use(block: &ContentBlock) -> Option<&ToolUse> {
    match block {
        ContentBlock::ToolUse(tool_use) => Some(tool_use),
        _ => None,
    }
}
