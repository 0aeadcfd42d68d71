//! The mistakes about bad weather, caps and caches: what each of them leaves in the state.

use super::mutant::Mutant;
use windlass_kernel::*;

/// Applies `record` with the mistake; any other mutant applies it as it is.
pub fn apply(mutant: Mutant, state: &mut State, record: &Record) {
    let before = Before::of(state);
    match (mutant, &record.event) {
        (Mutant::PauseForgotten, Event::Reopened { .. }) => {
            if let Some(turn) = &mut state.turn {
                turn.paused = None;
            }
            state.apply(record);
        }
        (Mutant::SwitchKeepsCounts, Event::Began { step: Step::SwitchModel { .. } }) => {
            state.apply(record);
            before.restore_counts(state);
        }
        (Mutant::SnipsAgain, Event::Began { step: Step::Snip { .. } }) => {
            state.apply(record);
            change(state, |turn| turn.snips = 0);
        }
        (Mutant::StallsWithoutEnd, Event::ModelFailed { error, .. }) if error.kind == FailureKind::Stalled => {
            state.apply(record);
            before.restore_counts(state);
        }
        (Mutant::StallIsATurn, Event::ModelFailed { error, .. }) if error.kind == FailureKind::Stalled => {
            let is_open = !state.in_flight().is_empty();
            state.apply(record);
            change(state, |turn| turn.model_calls += u32::from(is_open));
        }
        (Mutant::RetryForgetsChange, Event::ModelCalled(_)) => {
            state.apply(record);
            if let Some(sent) = state.sent.as_mut().filter(|sent| before.began_alike(sent)) {
                sent.intact = true;
            }
        }
        (Mutant::CutIsExpectedCached, Event::Began { step: Step::Snip { .. } } | Event::Compacted { .. }) => {
            state.apply(record);
            if let (Some(sent), Some(before)) = (&mut state.sent, &before.sent) {
                sent.tokens = before.tokens;
            }
        }
        (Mutant::RepairIsAnObjection, Event::StopBlocked { work, text, .. }) => {
            let event = Event::StopBlocked { work: *work, text: text.clone(), repair: false };
            state.apply(&Record { event, ..record.clone() });
        }
        _ => state.apply(record),
    }
}

/// The step with the mistake.
pub fn step(mutant: Mutant, step: Step) -> Step {
    match (mutant, step) {
        (Mutant::NoWayBack, Step::SwitchModel { why: SwitchReason::Back, .. }) => Step::CallModel,
        (Mutant::CapsIgnored, Step::Pause { .. }) => Step::CallModel,
        (Mutant::WantedIsTaken, Step::Finish { end: End::Done, .. }) => Step::Finish { end: End::Done, checks: false },
        (_, step) => step,
    }
}

/// What a mistake may bring back.
struct Before {
    turn: Option<Box<Turn>>,
    sent: Option<Box<Sent>>,
}

impl Before {
    fn of(state: &State) -> Before {
        Before { turn: state.turn.clone(), sent: state.sent.clone() }
    }

    fn restore_counts(self, state: &mut State) {
        let Some(before) = self.turn else { return };
        change(state, |turn| {
            (turn.model_errors, turn.stalls, turn.overloads) = (before.model_errors, before.stalls, before.overloads);
            (turn.newest_failure, turn.retry_after_ms) = (before.newest_failure, before.retry_after_ms);
        });
    }

    fn began_alike(&self, now: &Sent) -> bool {
        let alike = |sent: &Sent| (&sent.model, &sent.sections, &sent.tools) == (&now.model, &now.sections, &now.tools);
        self.sent.as_deref().is_some_and(alike)
    }
}

fn change(state: &mut State, change: impl FnOnce(&mut Turn)) {
    if let Some(turn) = &mut state.turn {
        change(turn);
    }
}
