//! What a request begins with, and how it is told that this changed or was lost.

use super::habits::Habits;
use super::random::Random;
use windlass_kernel::*;

/// Sections a system prompt grows to.
const MAX_SECTIONS: usize = 4;

/// The system prompt's sections, and the tool list.
pub struct Outline {
    sections: Vec<Section>,
    tools: BlobRef,
}

impl Default for Outline {
    fn default() -> Outline {
        Outline { sections: vec![], tools: blob(0) }
    }
}

impl Outline {
    /// It changes under the session, once in so many times.
    pub fn drift(&mut self, random: &mut Random, drift_in: usize) {
        if !random.one_in(drift_in) {
            return;
        }
        let (at, blob) = (random.below(MAX_SECTIONS + 1), blob(random.draw()));
        match self.sections.get_mut(at) {
            Some(section) => section.blob = blob,
            None if at == MAX_SECTIONS => self.tools = blob,
            None => self.sections.push(Section { name: format!("s{}", self.sections.len()), blob }),
        }
    }

    /// A request goes out, and it is looked at whether it begins as the one before.
    pub fn goes_out(&self, state: &State, habits: &Habits, work: Seq, role: ModelRole) -> Vec<Event> {
        let (provider, model) = state.speaking_model().split_once('/').unwrap_or_default();
        let (provider, model, parameters) = (provider.into(), model.into(), Parameters::default());
        let (sections, tools) = (self.sections.clone(), self.tools.clone());
        let window = Some(habits.window * habits.scale).filter(|window| *window > 0);
        let called = ModelCalled { work, role, provider, model, parameters, attempt: 1, sections, tools, window };
        let tokens = state.sent.as_ref().map_or(0, |sent| sent.tokens);
        let cause = state.cache_break(&called).filter(|_| role == ModelRole::Main);
        let broke = cause.map(|cause| Event::CacheBroke(Box::new(CacheBroke { work, cause, tokens })));
        [Event::ModelCalled(Box::new(called))].into_iter().chain(broke).collect()
    }
}

/// Of an answer to the open call: that the provider has lost what it kept.
pub fn missed(state: &State, event: &Event) -> Option<CacheBroke> {
    let Event::ModelFinished { work, spent, .. } = event else { return None };
    let round = state.turn.as_ref()?.round.as_ref()?;
    let is_open = round.work == *work && round.ended.is_none();
    state.cache_miss(*work, &spent.usage, state.head.0).filter(|_| is_open)
}

fn blob(of: u64) -> BlobRef {
    BlobRef { hash: format!("{of:064x}"), bytes: 1 }
}
