//! Which step answers a request.

use crate::refusal::Refusal;
use crate::request::Request;
use crate::script::{Flow, Script, Step};
use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Mutex;

/// Most (conversation, step) pairs whose answers are counted for `times`.
const TALLIES: usize = 100_000;

/// How often each step with `times` has answered in each conversation: all that the server remembers.
#[derive(Default)]
pub struct Tally(Mutex<HashMap<(u64, String), u32>>);

impl Tally {
    /// Counts an answer if one of `times` is left.
    fn take(&self, conversation: u64, step: &Step, times: u32) -> Result<bool, Refusal> {
        let mut tally = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let key = (conversation, step.name.clone());
        if tally.len() >= TALLIES && !tally.contains_key(&key) {
            let message =
                format!("the script's steps with `times` have met {TALLIES} conversations: start the server anew");
            return Err(Refusal::invalid(message));
        }
        let used = tally.entry(key).or_insert(0);
        let left = *used < times;
        *used += u32::from(left);
        Ok(left)
    }
}

/// A step chosen for a request.
pub struct Choice<'s> {
    pub step: &'s Step,
    /// Number of the round within the step, from 0.
    pub nth: usize,
}

/// The conversation a request belongs to.
pub struct Talk<'s> {
    pub flow: &'s Flow,
    /// The session's own id, or a hash of its first user text.
    pub sid: String,
    key: u64,
}

/// Finds the conversation by the first user text.
pub fn talk<'s>(script: &'s Script, request: &Request) -> Talk<'s> {
    let first = request.first_user_text();
    let mut hasher = DefaultHasher::new();
    let found = script.sid.as_ref().and_then(|sid| sid.0.captures(&first)).and_then(|captures| captures.get(1));
    found.map_or(first.as_str(), |id| id.as_str()).hash(&mut hasher);
    let key = hasher.finish();
    let sid = found.map_or_else(|| format!("{key:016x}"), |id| id.as_str().to_string());
    let own = script.conversations.iter().find(|conversation| conversation.first_user.0.is_match(&first));
    Talk { flow: own.map_or(&script.default, |conversation| &conversation.flow), sid, key }
}

/// The step for a request: one chosen by content first, then the one whose place is the request's round.
pub fn choose<'s>(talk: &Talk<'s>, request: &Request, tally: &Tally) -> Result<Choice<'s>, Refusal> {
    let round = request.round();
    let left = |step: &Step| step.times.map_or(Ok(true), |times| tally.take(talk.key, step, times));
    for step in &talk.flow.steps {
        let fits = step.when.as_ref().is_some_and(|when| when.unmet(request).is_none());
        if fits && left(step)? {
            return Ok(Choice { step, nth: 0 });
        }
    }
    let mut place = 0;
    let mut last = None;
    for step in talk.flow.steps.iter().filter(|step| step.when.is_none()) {
        if !step.has_place() {
            if place == round && left(step)? {
                return Ok(Choice { step, nth: 0 });
            }
            continue;
        }
        if (place..place + step.rounds).contains(&round) {
            return Ok(Choice { step, nth: round - place });
        }
        place += step.rounds;
        last = Some(step);
    }
    match last.filter(|_| talk.flow.repeat) {
        Some(step) => Ok(Choice { step, nth: round + step.rounds - place }),
        None => Err(none(round, place, talk.flow)),
    }
}

fn none(round: usize, places: usize, flow: &Flow) -> Refusal {
    if flow.steps.is_empty() {
        return Refusal::invalid("the script has no conversation for this request's first user text");
    }
    Refusal::invalid(format!(
        "the script has no step for this request: it holds {round} assistant messages and the script answers {places} rounds"
    ))
}
