//! `cargo xtask sim`: the kernel in a world of chance. Reports in any order, rooms that hang or do not hear, streams
//! that die, people who interrupt, and a process that dies at any instant; every promise is looked at after every
//! record. What is absent: time, threads and stores; those have tests of their own.

mod cache;
mod counts;
mod habits;
mod mutant;
mod outside;
mod purse;
pub mod random;
mod request;
mod room;
mod start;
mod storm;
mod tale;
mod watch;
mod watched;
mod weather;
mod world;

use anyhow::{Context, bail};
use counts::Counts;
use mutant::{Brain, Mutant};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use windlass_kernel::Profile;
use world::World;

/// Records of a failing story that are printed.
const STORY_LINES: usize = 30;
/// Seeds per mutant, unless told otherwise.
const MUTANT_RUNS: u64 = 400;

struct Wanted {
    seed: u64,
    runs: Option<u64>,
    mutants: bool,
    profile: Option<String>,
    story: bool,
}

/// What many seeds came to.
#[derive(Default)]
struct Sum {
    counts: Counts,
    bad: u64,
    /// Broken promises by kind: how many seeds, the smallest of them, and what it broke.
    kinds: BTreeMap<String, (u64, u64, String)>,
}

pub fn run(args: &[String]) -> anyhow::Result<()> {
    let wanted = Wanted::read(args)?;
    if wanted.mutants { try_mutants(&wanted) } else { try_kernel(&wanted) }
}

impl Wanted {
    fn read(args: &[String]) -> anyhow::Result<Wanted> {
        let mut wanted = Wanted { seed: 1, runs: None, mutants: false, profile: None, story: false };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let mut value = || args.next().with_context(|| format!("{arg} wants a value"));
            match arg.as_str() {
                "--seed" => wanted.seed = number(arg, value()?)?,
                "--runs" => wanted.runs = Some(number(arg, value()?)?),
                "--profile" => wanted.profile = Some(value()?.clone()),
                "--mutants" => wanted.mutants = true,
                "--story" => wanted.story = true,
                _ => bail!("unknown option {arg:?}: sim takes --seed N, --runs M, --profile NAME, --mutants, --story"),
            }
        }
        if let Some(name) = wanted.profile.as_deref().filter(|name| Profile::named(name).is_none()) {
            bail!("there is no profile {name:?}: take one of {}", Profile::NAMES.join(", "));
        }
        if wanted.story && wanted.runs != Some(1) {
            bail!("--story tells one seed's story: add --runs 1");
        }
        Ok(wanted)
    }
}

fn number(name: &str, value: &str) -> anyhow::Result<u64> {
    value.parse().with_context(|| format!("{name} wants a whole number, not {value:?}"))
}

fn try_kernel(wanted: &Wanted) -> anyhow::Result<()> {
    let began = Instant::now();
    let runs = wanted.runs.unwrap_or(2_000);
    let sum = try_seeds(Brain(None), wanted, runs);
    if wanted.story {
        tell(wanted.seed, Brain(None), wanted, usize::MAX);
    }
    let Counts { events, crashes, rounds, tool_runs, turns, interrupts, rejected, .. } = sum.counts;
    let Counts { switches, snips, pauses, cache_breaks, .. } = sum.counts;
    let rate = runs as f64 / began.elapsed().as_secs_f64();
    println!(
        "{runs} seeds from {}: {events} events, {crashes} crashes, {turns} turns, {rounds} rounds, {tool_runs} tool \
         runs, {interrupts} interrupts, {switches} switches of model, {snips} prompts cut short, {pauses} pauses, \
         {cache_breaks} cache breaks, {rejected} wishes turned down; {rate:.0} seeds/s; {} violations",
        wanted.seed, sum.bad
    );
    let Some((seed, what)) = sum.first() else { return Ok(()) };
    for (times, seed, what) in sum.kinds.values() {
        println!("{times:>5} bad, first {seed}: {what}");
    }
    println!("\nseed {seed}: {what}");
    tell(seed, Brain(None), wanted, STORY_LINES);
    bail!("{} of {runs} seeds broke a promise; replay the first: cargo xtask sim --seed {seed} --runs 1", sum.bad)
}

fn try_mutants(wanted: &Wanted) -> anyhow::Result<()> {
    let runs = wanted.runs.unwrap_or(MUTANT_RUNS);
    let mut wrong = Vec::new();
    println!("{:<70} {:>10}  {:>5}  promise broken first", "mistake put back", "bad", "seed");
    for mutant in Mutant::ALL {
        let sum = try_seeds(Brain(Some(mutant)), wanted, runs);
        let (seed, what) = sum.first().map_or(("-".into(), "none"), |(seed, what)| (seed.to_string(), what));
        let bad = format!("{}/{runs}", sum.bad);
        println!("{:<70} {bad:>10}  {seed:>5}  {what}", mutant.words());
        if (sum.bad == 0) != mutant.is_safe() {
            wrong.push(mutant.words());
        }
    }
    if wrong.is_empty() {
        return Ok(());
    }
    bail!("not as expected: {}", wrong.join("; "))
}

/// Lives through `runs` seeds, on every core.
fn try_seeds(brain: Brain, wanted: &Wanted, runs: u64) -> Sum {
    let next = AtomicU64::new(wanted.seed);
    let sum = Mutex::new(Sum::default());
    let work = || {
        let mut mine = Sum::default();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed - wanted.seed >= runs {
                break;
            }
            let mut world = World::new(seed, brain, wanted.profile.as_deref());
            let lived = world.live();
            mine.add(world.watch.counts, lived.err().map(|what| (seed, what)));
        }
        sum.lock().expect("no thread panics with the sum in hand").join(mine);
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(work);
        }
    });
    sum.into_inner().expect("no thread panics with the sum in hand")
}

impl Sum {
    fn add(&mut self, counts: Counts, broken: Option<(u64, String)>) {
        self.counts.add(&counts);
        let Some((seed, what)) = broken else { return };
        self.bad += 1;
        // The same promise, whatever the numbers in it.
        let kind = what.chars().take(60).filter(|letter| !letter.is_ascii_digit()).collect();
        self.keep(kind, 1, seed, what);
    }

    fn join(&mut self, other: Sum) {
        self.counts.add(&other.counts);
        self.bad += other.bad;
        for (kind, (times, seed, what)) in other.kinds {
            self.keep(kind, times, seed, what);
        }
    }

    fn keep(&mut self, kind: String, times: u64, seed: u64, what: String) {
        let kept = self.kinds.entry(kind).or_insert((0, seed, what.clone()));
        kept.0 += times;
        if seed < kept.1 {
            (kept.1, kept.2) = (seed, what);
        }
    }

    /// The smallest seed that broke a promise, and which.
    fn first(&self) -> Option<(u64, &str)> {
        self.kinds.values().map(|(_, seed, what)| (*seed, what.as_str())).min()
    }
}

/// The newest records of a seed's story.
fn tell(seed: u64, brain: Brain, wanted: &Wanted, lines: usize) {
    let mut world = World::new(seed, brain, wanted.profile.as_deref());
    println!("{:?}", world.habits);
    // How it ends has been said; here only the way there is told.
    let _ = world.live();
    for record in &world.log[world.log.len().saturating_sub(lines)..] {
        println!("{}", tale::line(record));
    }
}
