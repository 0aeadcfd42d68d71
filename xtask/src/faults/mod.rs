//! `cargo xtask faults`: the weather a model's server can make, played by the mock against the real command.
//!
//! A row of `tests/faults/*.toml` is one fault. It is played in every protocol that can say it, and each of these cases
//! is a session: a prompt that meets the fault, and a second one, which must succeed whatever became of the first.

mod case;
mod protocol;
mod row;
mod seen;

use crate::flags::Flags;
use crate::project::{self, Project};
use anyhow::{Context, Result, bail};
use case::Played;
use protocol::Protocol;
use row::{Class, Row};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// Cases that are under way at once for each processor: most of them wait, most of the time.
const JOBS_PER_CORE: usize = 8;

/// What is to be played, and how it is told.
struct Wanted {
    class: Option<String>,
    row: Option<String>,
    protocol: Option<Protocol>,
    tale: Tale,
    jobs: usize,
}

/// How a run is told.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tale {
    EveryCase,
    OnlyFailed,
    /// A JSON object a line, and no totals.
    Json,
}

/// One row in one protocol.
struct Case<'a> {
    class: &'a str,
    row: &'a Row,
    protocol: Protocol,
}

pub fn run(args: &[String]) -> Result<()> {
    let mut flags = Flags::new("faults", args);
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    let protocol = match flags.value::<String>("--protocol")? {
        Some(name) => Some(Protocol::named(&name).with_context(|| unknown("protocol", &name, &Protocol::NAMES))?),
        None => None,
    };
    let wanted = Wanted {
        class: flags.value("--class")?,
        row: flags.value("--row")?,
        protocol,
        tale: match (flags.has("--json"), flags.has("--failed")) {
            (true, _) => Tale::Json,
            (false, true) => Tale::OnlyFailed,
            (false, false) => Tale::EveryCase,
        },
        jobs: flags.value("--jobs")?.unwrap_or(JOBS_PER_CORE * cores).max(1),
    };
    let (list, build) = (flags.has("--list"), !flags.has("--built"));
    flags.end("--class C, --row ID, --protocol P, --list, --json, --failed, --jobs N and --built")?;
    let project = Project::find()?;
    let classes = row::read_all(&project.root.join("tests/faults"))?;
    let cases = chosen(&classes, &wanted)?;
    if list {
        tell_list(&cases);
        return Ok(());
    }
    if build {
        project::run(project.cargo().args(["build", "--package", "windlass-cli"]))?;
    }
    let start = Instant::now();
    let mut folder = project.scratch("faults")?;
    let played = play(&project.built("debug", "windlass"), &folder, &cases, &wanted);
    if played.iter().any(|played| !played.wrong.is_empty()) {
        folder.keep();
        eprintln!("what failed stands in {}", folder.display());
    }
    conclude(&cases, &played, start.elapsed().as_secs_f64(), wanted.tale)
}

fn unknown(what: &str, name: &str, known: &[&str]) -> String {
    format!("there is no {what} {name:?}: known are {}", known.join(", "))
}

/// The cases that were asked for; an error names a word that stands for none.
fn chosen<'a>(classes: &'a [Class], wanted: &Wanted) -> Result<Vec<Case<'a>>> {
    let names: Vec<&str> = classes.iter().map(|class| class.class.as_str()).collect();
    if let Some(name) = wanted.class.as_deref().filter(|name| !names.contains(name)) {
        bail!(unknown("class", name, &names));
    }
    let mut cases = Vec::new();
    for class in classes.iter().filter(|class| wanted.class.as_ref().is_none_or(|name| *name == class.class)) {
        for row in class.row.iter().filter(|row| wanted.row.as_ref().is_none_or(|id| *id == row.id)) {
            let protocols = row.protocols().filter(|own| wanted.protocol.is_none_or(|only| only == *own));
            cases.extend(protocols.map(|protocol| Case { class: &class.class, row, protocol }));
        }
    }
    if cases.is_empty() {
        bail!("no row is played by these words: `cargo xtask faults --list` shows all rows");
    }
    Ok(cases)
}

fn tell_list(cases: &[Case]) {
    let mut rows: Vec<(&str, &Row, Vec<&str>)> = Vec::new();
    for case in cases {
        match rows.last_mut().filter(|(_, row, _)| row.id == case.row.id) {
            Some((_, _, names)) => names.push(case.protocol.name()),
            None => rows.push((case.class, case.row, vec![case.protocol.name()])),
        }
    }
    for (class, row, names) in &rows {
        println!("{class:<14} {:<32} {}", row.id, names.join(" "));
        println!("{:<14} {}", "", row.why);
        for (protocol, why) in &row.without {
            println!("{:<14} not {protocol}: {why}", "");
        }
    }
    println!("{} rows, {} cases", rows.len(), cases.len());
}

/// Plays all cases, side by side; what was seen comes back in the cases' order and is told as soon as it can be.
fn play(binary: &Path, folder: &Path, cases: &[Case], wanted: &Wanted) -> Vec<Played> {
    let next = AtomicUsize::new(0);
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..wanted.jobs.min(cases.len()) {
            let (tell, next) = (tell.clone(), &next);
            scope.spawn(move || {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let own = folder.join(&case.row.id).join(case.protocol.name());
                    let played = case::play(binary, &own, case.row, case.protocol);
                    let id = (case.row.id.as_str(), case.protocol);
                    // The one who listens outlives the cases.
                    _ = tell.send((id, played));
                }
            });
        }
        drop(tell);
        let mut early: BTreeMap<(&str, Protocol), Played> = BTreeMap::new();
        let mut played: Vec<Played> = Vec::new();
        for (id, one) in told {
            early.insert(id, one);
            while let Some(case) = cases.get(played.len())
                && let Some(one) = early.remove(&(case.row.id.as_str(), case.protocol))
            {
                tell_case(case, &one, wanted.tale);
                played.push(one);
            }
        }
        played
    })
}

fn tell_case(case: &Case, played: &Played, tale: Tale) {
    if tale == Tale::OnlyFailed && played.wrong.is_empty() {
        return;
    }
    if tale == Tale::Json {
        let (row, protocol) = (&case.row.id, case.protocol.name());
        println!("{}", played.as_json(case.class, row, protocol));
        return;
    }
    let word = if played.wrong.is_empty() { "ok    " } else { "FAILED" };
    let exit = played.exit.map_or("killed".to_owned(), |code| format!("exit {code}"));
    let second = if played.second_ok { "second ok" } else { "SECOND NOT" };
    println!(
        "{word} {:<32} {:<9} {} requests, {exit}, {second}, {}",
        case.row.id,
        case.protocol.name(),
        played.requests,
        played.events
    );
    if !played.message.is_empty() {
        println!("       {}", case::shortened(&played.message));
    }
    for wrong in &played.wrong {
        println!("       ✗ {wrong}");
    }
}

fn conclude(cases: &[Case], played: &[Played], seconds: f64, tale: Tale) -> Result<()> {
    let mut sums: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for (case, played) in cases.iter().zip(played) {
        let (passed, all) = sums.entry(case.class).or_default();
        *passed += usize::from(played.wrong.is_empty());
        *all += 1;
    }
    let (passed, all) = sums.values().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    if tale != Tale::Json {
        for (class, (passed, all)) in &sums {
            println!("{class:<14} {passed:>4} of {all:>4}");
        }
        println!("{:<14} {passed:>4} of {all:>4}, {seconds:.1} s", "all");
    }
    if passed < all {
        bail!("faults: {} of {all} cases failed", all - passed);
    }
    Ok(())
}
