//! A provider that caches prompts, and what the watch expects to hear of it.

use super::watch::Seen;
use std::collections::BTreeMap;
use std::sync::Arc;
use windlass_kernel::*;

/// The fewest tokens whose loss is told.
const WORTH_A_WORD: u64 = 2_048;
/// What a prompt takes before its first message, in messages.
const PREAMBLE: usize = 10;

/// The prompts a provider has kept, by model. It outlives the process.
#[derive(Default)]
pub struct Provider {
    kept: BTreeMap<String, Kept>,
}

struct Kept {
    sections: Vec<Section>,
    tools: BlobRef,
    messages: Vec<Arc<Message>>,
}

impl Provider {
    /// What the request that just went out takes, at `scale` tokens a message; a forgetful provider reads all of it
    /// anew.
    pub fn take(&mut self, state: &State, scale: u64, forgets: bool) -> Usage {
        let Some(sent) = &state.sent else { return Usage { input: scale, output: scale, ..Usage::default() } };
        let messages = state.transcript();
        let kept = self.kept.remove(&sent.model);
        let alike = kept.filter(|kept| !forgets && (&kept.sections, &kept.tools) == (&sent.sections, &sent.tools));
        let same = |(kept, now): &(&Arc<Message>, &Arc<Message>)| Arc::ptr_eq(kept, now) || kept == now;
        let read = alike.map_or(0, |kept| PREAMBLE + kept.messages.iter().zip(&messages).take_while(same).count());
        let all = PREAMBLE + messages.len();
        let (sections, tools) = (sent.sections.clone(), sent.tools.clone());
        self.kept.insert(sent.model.clone(), Kept { sections, tools, messages });
        let (cache_read, cache_write) = (scale * read as u64, scale * (all - read) as u64);
        Usage { input: scale, cache_read, cache_write, output: scale, reasoning: 0 }
    }
}

/// What the watch keeps of requests: only what the log tells.
#[derive(Default)]
pub struct CacheBooks {
    request: Option<ModelCalled>,
    /// Tokens of the newest answer that the next request repeats.
    tokens: u64,
    /// The model that is asked now has answered before, in a row.
    answered: bool,
    caches: bool,
    /// The beginning changed since the newest answer.
    changed: bool,
    /// A change that must be told of the request that is out.
    due: Option<CacheBreak>,
    told_change: Option<CacheBreak>,
    told_miss: bool,
}

impl CacheBooks {
    pub fn messages_were_cut(&mut self) {
        self.tokens = 0;
    }

    pub fn called(&mut self, called: &ModelCalled) {
        if called.role != ModelRole::Main {
            return;
        }
        let before = self.request.take().filter(|before| before.model == called.model);
        if before.is_none() {
            *self = CacheBooks::default();
        }
        self.due = before.filter(|_| self.answered).and_then(|before| first_change(&before, called));
        self.changed |= self.due.is_some();
        (self.told_change, self.told_miss) = (None, false);
        self.request = Some(called.clone());
    }

    pub fn broke(&mut self, broke: &CacheBroke) -> Seen {
        if self.request.as_ref().is_none_or(|request| request.work != broke.work) {
            return Err(format!("a cache broke for work {}, which asks nothing", broke.work));
        }
        let is_twice = match &broke.cause {
            CacheBreak::Miss { .. } => std::mem::replace(&mut self.told_miss, true),
            cause => self.told_change.replace(cause.clone()).is_some(),
        };
        if is_twice { Err(format!("{:?} is told twice", broke.cause)) } else { Ok(()) }
    }

    /// The request `work` is over; `usage` of a whole answer.
    pub fn ended(&mut self, work: Seq, usage: Option<&Usage>) -> Seen {
        if self.request.as_ref().is_none_or(|request| request.work != work) {
            return Ok(());
        }
        if self.told_change != self.due {
            return Err(format!("the beginning changed: {:?}, and it was told: {:?}", self.due, self.told_change));
        }
        let Some(usage) = usage else { return Ok(()) };
        let expects = self.caches && !self.changed && self.tokens >= WORTH_A_WORD;
        let miss = expects && usage.cache_read < self.tokens / 2;
        if self.told_miss != miss {
            let read = usage.cache_read;
            return Err(format!("{read} of {} tokens read, missed: {miss}, told: {}", self.tokens, self.told_miss));
        }
        self.tokens = usage.input + usage.cache_read + usage.cache_write;
        self.caches |= usage.cache_read + usage.cache_write > 0;
        (self.answered, self.changed) = (true, false);
        Ok(())
    }
}

/// Where the beginnings of two requests part: the order of the sections, then their text, then the tools.
fn first_change(before: &ModelCalled, now: &ModelCalled) -> Option<CacheBreak> {
    let longest = before.sections.len().max(now.sections.len());
    let pairs = || (0..longest).map(|at| (before.sections.get(at), now.sections.get(at)));
    for (before, now) in pairs() {
        let name = |section: Option<&Section>| section.map(|section| section.name.clone());
        if name(before) != name(now) {
            return Some(CacheBreak::Order { name: name(now).or(name(before)).unwrap_or_default() });
        }
    }
    let other = pairs().find(|(before, now)| before != now).and_then(|(_, now)| now);
    let section = other.map(|section| CacheBreak::Section { name: section.name.clone() });
    section.or_else(|| (before.tools != now.tools).then_some(CacheBreak::Tools))
}
