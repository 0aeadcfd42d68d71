//! State → the messages the model will see. In every state each tool use in it has exactly one result, in order.

use crate::*;
use std::sync::Arc;

const STILL_RUNNING: &str = "(no result yet)";

impl State {
    /// The conversation since the boundary; an open round is closed with placeholders.
    pub fn transcript(&self) -> Vec<Arc<Message>> {
        let mut messages = Vec::with_capacity(self.messages.len() - self.boundary + 3);
        messages.extend(self.summary.clone());
        messages.extend_from_slice(&self.messages[self.boundary..]);
        if let Some(round) = self.turn.as_ref().and_then(|turn| turn.round.as_ref()) {
            messages.extend(round.messages().map(Arc::new));
        }
        messages
    }
}

impl Round {
    /// What the round amounts to: the model's message, if it said anything, and the results of its calls.
    pub fn messages(&self) -> impl Iterator<Item = Message> {
        let said = self.said();
        let said = (!said.is_empty()).then(|| Message::assistant(said));
        let results: Vec<_> = self.calls.iter().map(|call| ContentBlock::ToolResult(call.result())).collect();
        let results = (!results.is_empty()).then(|| Message::user(results));
        said.into_iter().chain(results)
    }

    /// Broken-off text stands only where nothing is going to be said in its place.
    fn said(&self) -> Vec<ContentBlock> {
        let keep_partial = self.ended == Some(Ended::Cancelled);
        let kept = self.blocks.iter().filter(|block| !block.partial || keep_partial);
        let mut said: Vec<_> = kept.map(|block| block.block.clone()).filter(|block| !is_empty(block)).collect();
        // Providers refuse a message that ends in thinking: it belongs to what never came.
        while said.last().is_some_and(ContentBlock::is_thinking) {
            said.pop();
        }
        said
    }
}

fn is_empty(block: &ContentBlock) -> bool {
    matches!(block, ContentBlock::Text { text } if text.is_empty())
}

impl Call {
    fn result(&self) -> ToolResult {
        let (content, is_error) = match &self.phase {
            Phase::Done { outcome, blocks } => (blocks.clone(), *outcome != Outcome::Ok),
            _ => (vec![ContentBlock::text(STILL_RUNNING)], false),
        };
        ToolResult { tool_use_id: self.id.clone(), content, is_error }
    }
}
