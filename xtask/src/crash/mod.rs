//! `cargo xtask crash`: kills the agent at random instants and looks whether anything of its work was lost.
//!
//! The model server and what was told on stdout survive; the process does not. A seed is one session with its kills.

mod check;
mod evidence;
mod life;
mod plan;
mod script;
mod session;

use crate::flags::Flags;
use crate::project::{self, Project};
use anyhow::{Result, bail};
use plan::{Phase, WANTED};
use session::{Outcome, Session, Shelf};
use std::collections::BTreeMap;

/// Kills, unless told otherwise.
const KILLS: usize = 200;
/// Kills that each phase must have had, of the full number; a shorter run asks for its share.
const PER_PHASE: usize = 10;
/// How many times the wanted kills are made at most in order to hit every phase.
const PATIENCE: usize = 4;

/// What the kills of one phase came to.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    kills: usize,
    survived: usize,
}

struct Wanted {
    seed: u64,
    kills: usize,
    shelf: Shelf,
}

pub fn run(args: &[String]) -> Result<()> {
    let mut flags = Flags::new("crash", args);
    let seed = flags.value("--seed")?.unwrap_or(1);
    let kills = flags.value("--kills")?.unwrap_or(KILLS).max(1);
    let shelf = match flags.value::<String>("--store")?.as_deref() {
        None | Some("sqlite") => Shelf::Sqlite,
        Some("memory") => Shelf::Memory,
        Some(other) => bail!("--store cannot be {other:?}: it is sqlite or memory"),
    };
    let build = !flags.has("--built");
    flags.end("--seed S, --kills N, --store sqlite|memory and --built")?;
    let project = Project::find()?;
    if build {
        project::run(project.cargo().args(["build", "--package", "windlass-cli"]))?;
    }
    let wanted = Wanted { seed, kills, shelf };
    let (counts, seeds) = play(&project, &wanted)?;
    conclude(&wanted, &counts, seeds)
}

/// Plays seeds until there are kills enough, and enough of each phase.
fn play(project: &Project, wanted: &Wanted) -> Result<(BTreeMap<Phase, Count>, u64)> {
    let binary = project.built("debug", "windlass");
    let mut folder = project.scratch("crash")?;
    let mut counts: BTreeMap<Phase, Count> = BTreeMap::new();
    let mut seed = wanted.seed;
    while !is_enough(&counts, wanted) {
        let own = folder.join(format!("seed-{seed}"));
        let outcomes = Session::set_up(&binary, wanted.shelf, own.clone())?.play(seed)?;
        let mut survived = true;
        for Outcome { phase, broken } in outcomes {
            let count = counts.entry(phase).or_default();
            count.kills += 1;
            count.survived += usize::from(broken.is_none());
            if let Some(broken) = broken {
                survived = false;
                println!("seed {seed}, killed {}: {broken}", phase.words());
            }
        }
        if survived {
            std::fs::remove_dir_all(&own)?;
        } else if wanted.shelf == Shelf::Sqlite {
            folder.keep();
            println!("  it stands in {}; again: cargo xtask crash --seed {seed} --kills 1", own.display());
        }
        seed += 1;
    }
    Ok((counts, seed))
}

fn is_enough(counts: &BTreeMap<Phase, Count>, wanted: &Wanted) -> bool {
    let total: usize = counts.values().map(|count| count.kills).sum();
    let share = PER_PHASE * wanted.kills.min(KILLS) / KILLS;
    let every = WANTED.iter().all(|phase| counts.get(phase).map_or(0, |count| count.kills) >= share);
    // What is kept in memory is gone: nothing tells the phases apart.
    let hit = every || wanted.shelf == Shelf::Memory;
    total >= wanted.kills && (hit || total >= wanted.kills * PATIENCE)
}

fn conclude(wanted: &Wanted, counts: &BTreeMap<Phase, Count>, end: u64) -> Result<()> {
    println!("{:<52} {:>5} {:>9}", "killed", "kills", "survived");
    let mut sum = Count::default();
    for (phase, count) in counts {
        println!("{:<52} {:>5} {:>9}", phase.words(), count.kills, count.survived);
        sum.kills += count.kills;
        sum.survived += count.survived;
    }
    let rate = 100.0 * sum.survived as f64 / sum.kills.max(1) as f64;
    println!("{:<52} {:>5} {:>9}  {rate:.1} %, seeds {} to {}", "all", sum.kills, sum.survived, wanted.seed, end - 1);
    let missed = WANTED.iter().find(|phase| wanted.shelf == Shelf::Sqlite && !counts.contains_key(phase));
    match (wanted.shelf, missed) {
        (Shelf::Sqlite, _) if sum.survived < sum.kills => {
            bail!("crash: {} of {} kills were not survived", sum.kills - sum.survived, sum.kills)
        }
        (Shelf::Sqlite, Some(phase)) if wanted.kills >= KILLS / PER_PHASE => {
            bail!("crash: no kill fell {}; more of them with --kills", phase.words())
        }
        (Shelf::Memory, _) if sum.survived == sum.kills => {
            bail!("crash: with the store in memory nothing was lost, so this test sees nothing")
        }
        (Shelf::Memory, _) => println!("as it must be: what is kept in memory does not survive, and this test sees it"),
        _ => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(kills: usize) -> BTreeMap<Phase, Count> {
        WANTED.iter().map(|phase| (*phase, Count { kills, survived: kills })).collect()
    }

    #[test]
    fn there_are_kills_enough_when_every_phase_has_its_share() {
        let wanted = Wanted { seed: 1, kills: 200, shelf: Shelf::Sqlite };
        assert!(!is_enough(&counts(30), &wanted));
        assert!(is_enough(&counts(40), &wanted));
        let mut uneven = counts(48);
        uneven.insert(Phase::Commit, Count { kills: 9, survived: 9 });
        assert!(!is_enough(&uneven, &wanted));
        uneven.insert(Phase::Elsewhere, Count { kills: 600, survived: 600 });
        assert!(is_enough(&uneven, &wanted));
        assert!(is_enough(&counts(8), &Wanted { kills: 40, ..wanted }));
    }

    #[test]
    fn one_kill_not_survived_is_a_failure_and_in_memory_it_is_wanted() {
        let mut counts = counts(40);
        let sqlite = Wanted { seed: 1, kills: 200, shelf: Shelf::Sqlite };
        let memory = Wanted { seed: 1, kills: 200, shelf: Shelf::Memory };
        assert!(conclude(&sqlite, &counts, 2).is_ok());
        assert!(conclude(&memory, &counts, 2).is_err());
        counts.insert(Phase::MidStream, Count { kills: 40, survived: 39 });
        assert!(conclude(&sqlite, &counts, 2).is_err());
        assert!(conclude(&memory, &counts, 2).is_ok());
    }
}
