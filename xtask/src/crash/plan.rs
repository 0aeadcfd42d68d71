//! When to kill: what is waited for, and how long after it. Everything random comes from the session's seed.

use crate::sim::random::Random;
use std::time::Duration;

/// Where in a session's life a process dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// While the model speaks.
    MidStream,
    /// A tool's child lives.
    ToolAlive,
    /// A command has done its work, and its result is not stored.
    EffectDone,
    /// All results are stored, and the next request is not sent.
    ResultStored,
    /// A batch is being stored, or stored and not yet told.
    Commit,
    /// Anywhere else: at start, between an answer and its calls, at the end.
    Elsewhere,
}

use Phase::*;

/// The phases that must be hit.
pub const WANTED: [Phase; 5] = [MidStream, ToolAlive, EffectDone, ResultStored, Commit];

impl Phase {
    pub fn words(self) -> &'static str {
        match self {
            MidStream => "mid-stream",
            ToolAlive => "tool child alive",
            EffectDone => "effect done, result not stored",
            ResultStored => "result stored, next request not sent",
            Commit => "inside a commit (stored or half stored, not told)",
            Elsewhere => "elsewhere",
        }
    }
}

/// What is seen from outside before the kill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// Events of this type on stdout.
    Told(&'static str),
    /// Lines of the ledger.
    Ledger,
    /// The same, and after it a write of the store's journal.
    Stored,
    /// Answers that the model has finished.
    Answer,
}

/// One kill: after the `count`th new `sign` since the process began, and `delay` more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kill {
    pub aim: Phase,
    pub sign: Sign,
    pub count: usize,
    pub delay: Duration,
}

/// Most kills of one session: fewer than the crash loop guard allows in a row.
const MAX_KILLS: usize = 4;
/// Most signs that are let pass.
const MAX_COUNT: usize = 3;

/// The kills of one session. They begin with the phase that the seed's number stands for, so that seeds share the
/// phases out evenly.
pub fn kills(seed: u64) -> Vec<Kill> {
    let mut random = Random::new(seed);
    let first = seed as usize % WANTED.len();
    let number = 1 + random.below(MAX_KILLS);
    (0..number).map(|at| kill(WANTED[(first + at) % WANTED.len()], &mut random)).collect()
}

/// A kill that is likely to fall into `aim`; where it really fell is seen afterwards.
fn kill(aim: Phase, random: &mut Random) -> Kill {
    let (sign, most_us) = match aim {
        MidStream => (Sign::Told("model_called"), 20_000),
        ToolAlive => (Sign::Told("tool_started"), 3_000),
        EffectDone => (Sign::Ledger, 400),
        ResultStored => (Sign::Stored, 300),
        Commit | Elsewhere => match random.below(3) {
            0 => (Sign::Answer, 3_000),
            1 => (Sign::Ledger, 4_000),
            _ => (Sign::Told("block_finished"), 2_000),
        },
    };
    let count = 1 + random.below(MAX_COUNT);
    Kill { aim, sign, count, delay: Duration::from_micros(random.below(most_us) as u64) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_the_same_plan_again_and_five_seeds_begin_in_five_phases() {
        assert_eq!(kills(7), kills(7));
        assert_ne!(kills(7), kills(12));
        let first: Vec<Phase> = (0..5).map(|seed| kills(seed)[0].aim).collect();
        assert_eq!(first, WANTED);
        assert!((0..200).all(|seed| (1..=MAX_KILLS).contains(&kills(seed).len())));
    }
}
