//! Ways around a model that fails: another model, or a shorter prompt.

use crate::*;

/// Results of fewer bytes are not worth leaving out.
const MIN_SNIPPED_BYTES: usize = 256;

impl State {
    /// The model that speaks now, as `PROVIDER/NAME`.
    pub fn speaking_model(&self) -> &str {
        self.speaking.as_deref().unwrap_or(&self.model)
    }

    pub(crate) fn way_around(&self, turn: &Turn) -> Option<Step> {
        self.way_back(turn).or_else(|| self.other_model(turn)).or_else(|| self.shorter_prompt(turn))
    }

    fn way_back(&self, turn: &Turn) -> Option<Step> {
        let back = self.profile.fallback.as_ref().is_none_or(|fallback| fallback.back == FallbackBack::NextTurn);
        let is_new = turn.last == Last::Input && turn.model_calls == 0 && turn.fell_back.is_none();
        let model = self.model.clone();
        (self.speaking.is_some() && back && is_new).then_some(Step::SwitchModel { model, why: SwitchReason::Back })
    }

    /// The fallback model, once in a turn, where trying on would be in vain or take too long.
    fn other_model(&self, turn: &Turn) -> Option<Step> {
        let fallback = self.profile.fallback.as_ref()?;
        let failure = turn.newest_failure.filter(|kind| kind.is_worth_retrying())?;
        if turn.fell_back.is_some() || fallback.model == self.speaking_model() {
            return None;
        }
        let is_overloaded = turn.overloads >= self.profile.retry.overloads_before_fallback;
        let is_hopeless = self.is_tried_too_often(turn) || self.is_wait_too_long(turn);
        let why = if failure == FailureKind::Overloaded { SwitchReason::Overloaded } else { SwitchReason::Failed };
        let model = fallback.model.clone();
        (is_overloaded || is_hopeless).then_some(Step::SwitchModel { model, why })
    }

    /// Once in a turn, the oldest results make up to half of their bytes free.
    fn shorter_prompt(&self, turn: &Turn) -> Option<Step> {
        if turn.newest_failure != Some(FailureKind::TooLong) || turn.snips > 0 {
            return None;
        }
        let blocks = self.messages[self.boundary..].iter().flat_map(|message| &message.content);
        let results: Vec<(&CallId, usize)> = blocks
            .filter_map(|block| match block {
                ContentBlock::ToolResult(result) => Some((&result.tool_use_id, bytes_of(&result.content))),
                _ => None,
            })
            .filter(|(_, bytes)| *bytes >= MIN_SNIPPED_BYTES)
            .collect();
        let total = results.iter().fold(0, |total: usize, (_, bytes)| total.saturating_add(*bytes));
        let mut free: usize = 0;
        let calls: Vec<CallId> = results
            .into_iter()
            .take_while(|(_, bytes)| {
                let wanted = free < total.div_ceil(2);
                free = free.saturating_add(*bytes);
                wanted
            })
            .map(|(call, _)| call.clone())
            .collect();
        (!calls.is_empty()).then_some(Step::Snip { calls })
    }

    pub(crate) fn is_tried_too_often(&self, turn: &Turn) -> bool {
        turn.model_errors >= self.profile.max_model_errors || turn.stalls > self.profile.retry.max_stalls
    }

    pub(crate) fn is_wait_too_long(&self, turn: &Turn) -> bool {
        turn.retry_after_ms.is_some_and(|asked| asked > self.profile.retry.max_wait_ms)
    }

    /// The newest answer's context is over the share of the window at which a compaction is due.
    pub(crate) fn is_over_trigger(&self) -> bool {
        let percent = u64::from(self.profile.compact_at_percent);
        self.window.is_some_and(|window| self.context_tokens.saturating_mul(100) >= window.saturating_mul(percent))
    }
}

/// What a result weighs: its text, and its pictures and documents by their bytes.
pub(crate) fn bytes_of(content: &[ContentBlock]) -> usize {
    let weigh = |block: &ContentBlock| match block {
        ContentBlock::Text { text } => text.len(),
        ContentBlock::Image { blob, .. } | ContentBlock::Document { blob, .. } => blob.bytes as usize,
        _ => 0,
    };
    content.iter().map(weigh).fold(0, usize::saturating_add)
}
