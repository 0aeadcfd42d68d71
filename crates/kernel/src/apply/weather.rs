//! What becomes of the state when another model speaks, the prompt gets shorter, or a request goes out.

use crate::around::bytes_of;
use crate::*;
use std::sync::Arc;

impl State {
    pub(super) fn model_called(&mut self, called: &ModelCalled) {
        if matches!(called.role, ModelRole::Compaction | ModelRole::Review) {
            return;
        }
        self.window = called.window;
        let is_broken = self.cache_break(called).is_some();
        let before = self.sent.take().filter(|sent| sent.is_for(called));
        // What an attempt that failed has changed is changed for the next one too.
        let intact = !is_broken && before.as_ref().is_none_or(|sent| sent.intact);
        self.sent = Some(Box::new(Sent {
            provider: called.provider.clone(),
            model: called.model.clone(),
            sections: called.sections.clone(),
            tools: called.tools.clone(),
            intact,
            tokens: before.as_ref().map_or(0, |sent| sent.tokens),
            answered_at: before.as_ref().map_or(0, |sent| sent.answered_at),
            is_cached: before.is_some_and(|sent| sent.is_cached),
        }));
    }

    pub(super) fn cached(&mut self, usage: &Usage, at: u64) {
        let Some(sent) = &mut self.sent else { return };
        sent.tokens = usage.input.saturating_add(usage.cache_read).saturating_add(usage.cache_write);
        sent.answered_at = at;
        sent.is_cached |= usage.cache_read > 0 || usage.cache_write > 0;
        sent.intact = true;
    }

    /// The messages were cut or changed on purpose: nobody expects them in a cache.
    pub(super) fn rewrote_messages(&mut self) {
        if let Some(sent) = &mut self.sent {
            sent.tokens = 0;
        }
    }

    pub(super) fn switched_model(&mut self, model: &str) {
        self.speaking = (model != self.model).then(|| model.to_owned());
        let is_back = self.speaking.is_none();
        let Some(turn) = &mut self.turn else { return };
        let cause = turn.failure.take().map(|failure| failure.message);
        turn.fell_back = (!is_back).then(|| cause.unwrap_or_default());
        (turn.model_errors, turn.stalls, turn.overloads) = (0, 0, 0);
        turn.newest_failure = None;
        turn.retry_after_ms = None;
    }

    pub(super) fn snipped(&mut self, calls: &[CallId]) {
        let boundary = self.boundary;
        for message in &mut self.messages[boundary..] {
            let is_hit = |block: &ContentBlock| matches!(block, ContentBlock::ToolResult(result) if calls.contains(&result.tool_use_id));
            if message.content.iter().any(is_hit) {
                *message = Arc::new(without_results(message, calls));
            }
        }
        self.rewrote_messages();
        let Some(turn) = &mut self.turn else { return };
        turn.snips += 1;
        turn.failure = None;
        turn.newest_failure = None;
    }
}

fn without_results(message: &Message, calls: &[CallId]) -> Message {
    let mut message = message.clone();
    for block in &mut message.content {
        if let ContentBlock::ToolResult(result) = block
            && calls.contains(&result.tool_use_id)
        {
            let bytes = bytes_of(&result.content);
            result.content = vec![ContentBlock::text(format!(
                "[This result of {bytes} bytes was left out, for the conversation did not fit the model's window. \
                 Call the tool again for what is still needed, and ask for less at once.]"
            ))];
        }
    }
    message
}
