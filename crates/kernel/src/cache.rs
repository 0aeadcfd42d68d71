//! Whether a provider can read a request's beginning from its cache, and what is in the way.

use crate::*;
use serde::{Deserialize, Serialize};

/// The fewest tokens whose loss is worth a word; below it the providers do not cache either.
const WORTH_A_WORD: u64 = 2_048;

/// The request that went out last, as far as the next one should begin like it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sent {
    pub provider: String,
    pub model: String,
    pub sections: Vec<Section>,
    pub tools: BlobRef,
    /// It, and every attempt since the newest answer, began as the one before.
    pub intact: bool,
    /// Tokens of the newest answered request whose messages the next one repeats; 0: none does.
    pub tokens: u64,
    /// When that was answered.
    pub answered_at: u64,
    /// The provider has said that it caches.
    pub is_cached: bool,
}

impl State {
    /// What of `called` differs from the request before, where the same model would have read it from its cache.
    pub fn cache_break(&self, called: &ModelCalled) -> Option<CacheBreak> {
        let sent = self.sent.as_ref().filter(|sent| sent.is_for(called) && sent.answered_at > 0)?;
        let names = |sections: &[Section]| sections.iter().map(|section| section.name.clone()).collect::<Vec<_>>();
        let (before, now) = (names(&sent.sections), names(&called.sections));
        if before != now {
            let at = before.iter().zip(&now).take_while(|(before, now)| before == now).count();
            let name = now.get(at).or(before.get(at)).cloned().unwrap_or_default();
            return Some(CacheBreak::Order { name });
        }
        let other = sent.sections.iter().zip(&called.sections).find(|(before, now)| before.blob != now.blob);
        match other {
            Some((_, section)) => Some(CacheBreak::Section { name: section.name.clone() }),
            None => (sent.tools != called.tools).then_some(CacheBreak::Tools),
        }
    }

    /// That the provider read little of what it should still have, by the usage of an answer that came `at`.
    pub fn cache_miss(&self, work: Seq, usage: &Usage, at: u64) -> Option<CacheBroke> {
        let sent = self.sent.as_ref().filter(|sent| sent.intact && sent.is_cached)?;
        let is_of_round = self.turn.iter().flat_map(|turn| &turn.round).any(|round| round.work == work);
        // An answer without counts says nothing of a cache.
        if !is_of_round || *usage == Usage::default() {
            return None;
        }
        if sent.tokens < WORTH_A_WORD || usage.cache_read >= sent.tokens / 2 {
            return None;
        }
        let cause = CacheBreak::Miss { read: usage.cache_read, idle_ms: at.saturating_sub(sent.answered_at) };
        Some(CacheBroke { work, cause, tokens: sent.tokens })
    }
}

impl Sent {
    pub(crate) fn is_for(&self, called: &ModelCalled) -> bool {
        self.provider == called.provider && self.model == called.model
    }
}
