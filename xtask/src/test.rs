//! `cargo xtask test`: everything a change must pass, from a fresh machine to the last line.

use crate::mock::Mock;
use crate::project::{self, Project, shown};
use crate::{clients, crash, docs, faults, machine, shell, sim, tidy, walls};
use anyhow::{Context, Result, bail};
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Instant;

/// Seeds of the short simulation.
const SIM_RUNS: &str = "2000";
/// What the command can do beyond its default, so that all of it is tested.
const WHOLE: [&str; 2] = ["--features", "windlass-cli/otel,windlass-cli/wasm"];
/// The same where the target of components can't be had.
const WITHOUT_COMPONENTS: [&str; 6] =
    ["--features", "windlass-cli/otel", "--exclude", "windlass-wasm", "--exclude", "windlass-files"];
/// Whether components can be built here; asked once.
static COMPONENTS: OnceLock<bool> = OnceLock::new();
/// Kills of the short crash test.
const CRASH_KILLS: &str = "40";

/// What a stage counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sum {
    passed: usize,
    failed: usize,
}

/// A stage that holds as a whole or not at all.
const HELD: Sum = Sum { passed: 1, failed: 0 };

type Stage = (&'static str, fn(&Project) -> Result<Sum>);

const STAGES: [Stage; 15] = [
    ("set-up", set_up),
    ("formatting", formatting),
    ("clippy", clippy),
    ("tidy", |_| tidy::run(&[]).map(|()| HELD)),
    ("tests", tests),
    ("walls", |project| walls::check(project).map(|()| HELD)),
    ("doc tests", doc_tests),
    ("programs and examples", programs),
    ("the docs' commands", |project| docs::check(project).map(|sum| Sum { passed: sum.passed, failed: sum.failed })),
    ("example", example),
    ("simulation", |_| sim::run(&words(&["--runs", SIM_RUNS])).map(|()| HELD)),
    ("mutants of the simulation", |_| sim::run(&words(&["--mutants"])).map(|()| HELD)),
    ("crashes", |_| crash::run(&words(&["--built", "--kills", CRASH_KILLS])).map(|()| HELD)),
    ("shell", |_| shell::run(&words(&["--built"])).map(|()| HELD)),
    ("faults", |_| faults::run(&words(&["--built", "--failed"])).map(|()| HELD)),
];

pub fn run(args: &[String]) -> Result<()> {
    crate::flags::Flags::new("test", args).end("no arguments")?;
    let project = Project::find()?;
    let mut sum = Sum::default();
    let mut failed = Vec::new();
    for (name, stage) in STAGES {
        println!("\n=== {name}");
        let start = Instant::now();
        let counted = stage(&project).unwrap_or_else(|error| {
            println!("{error:#}");
            Sum { passed: 0, failed: 1 }
        });
        let word = if counted.failed > 0 { "FAILED" } else { "ok" };
        println!("=== {name}: {word}, {:.1} s", start.elapsed().as_secs_f64());
        sum.passed += counted.passed;
        sum.failed += counted.failed;
        if counted.failed > 0 {
            failed.push(name);
        }
    }
    println!();
    if !failed.is_empty() {
        println!("failed: {}", failed.join(", "));
    }
    if !has_components() {
        println!("NOT TESTED: WebAssembly components, for their target could not be installed (see set-up)");
    }
    println!("{} passed, {} failed", sum.passed, sum.failed);
    if !failed.is_empty() {
        bail!("failed: {}", failed.join(", "));
    }
    Ok(())
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| word.to_string()).collect()
}

/// What is compiled, in whole workspaces.
fn whole() -> &'static [&'static str] {
    if has_components() { &WHOLE } else { &WITHOUT_COMPONENTS }
}

fn has_components() -> bool {
    *COMPONENTS.get_or_init(|| machine::components().inspect_err(|error| println!("{error:#}")).is_ok())
}

fn set_up(project: &Project) -> Result<Sum> {
    machine::prepare()?;
    has_components();
    clients::python(project)?;
    Ok(HELD)
}

fn formatting(project: &Project) -> Result<Sum> {
    project::run(project.cargo().args(["fmt", "--all", "--check"])).context("run `cargo fmt --all`")?;
    Ok(HELD)
}

fn clippy(project: &Project) -> Result<Sum> {
    let mut command = project.cargo();
    command.args(["clippy", "--workspace", "--all-targets", "--features", "xtask/bench"]);
    command.args(whole()).args(["--", "-D", "warnings"]);
    project::run(&mut command)?;
    Ok(HELD)
}

/// With nextest where it is installed, else with cargo's own runner.
fn tests(project: &Project) -> Result<Sum> {
    let mut command = project.cargo();
    if project::output(project.cargo().args(["nextest", "--version"])).is_ok() {
        command.args(["nextest", "run", "--workspace", "--no-fail-fast", "--status-level", "slow"]);
    } else {
        command.args(["test", "--workspace", "--no-fail-fast", "--lib", "--bins", "--tests"]);
    }
    command.args(whole());
    clients::offer(project, &mut command)?;
    counted(&mut command)
}

fn doc_tests(project: &Project) -> Result<Sum> {
    counted(project.cargo().args(["test", "--doc", "--workspace", "--no-fail-fast"]).args(whole()))
}

/// What the stages after this one start; already built by the tests, as a rule.
fn programs(project: &Project) -> Result<Sum> {
    project::run(project.cargo().args(["build", "--workspace", "--bins", "--examples"]).args(whole()))?;
    Ok(HELD)
}

/// The library's example, against a scripted model without a key.
fn example(project: &Project) -> Result<Sum> {
    let home = project.scratch("example")?;
    let script = project.root.join("docs/scripts/dice.toml");
    let mock = Mock::start(&project.built("debug", "windlass"), &script, &home.join("mock.jsonl"), None)?;
    let mut example = Command::new(project.built("debug/examples", "minimal"));
    example.arg(format!("{}/v1", mock.url)).args(["mock", "Roll three dice."]);
    let said = project::output(example.current_dir(&*home).env("HOME", &*home))?;
    print!("{said}");
    if !said.contains("The dice show [") {
        bail!("the example did not say what the dice show");
    }
    Ok(HELD)
}

/// Runs a test command, passes on what it says, and adds up what its closing lines count.
fn counted(command: &mut Command) -> Result<Sum> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("starting {}", shown(command)))?;
    let errors = child.stderr.take().context("no stderr")?;
    let errors = std::thread::spawn(move || pass_on(errors, |line| eprintln!("{line}")));
    let mut sum = child.stdout.take().map_or(Sum::default(), |out| pass_on(out, |line| println!("{line}")));
    let more = errors.join().unwrap_or_default();
    let status = child.wait()?;
    sum.passed += more.passed;
    sum.failed += more.failed;
    if !status.success() && sum.failed == 0 {
        bail!("{} ended with {status}", shown(command));
    }
    Ok(sum)
}

fn pass_on(from: impl Read, tell: fn(&str)) -> Sum {
    let mut sum = Sum::default();
    for line in BufReader::new(from).lines().map_while(Result::ok) {
        tell(&line);
        if let Some(counted) = closing_line(&line) {
            sum.passed += counted.passed;
            sum.failed += counted.failed;
        }
    }
    sum
}

/// What a runner's closing line counts.
fn closing_line(line: &str) -> Option<Sum> {
    let line = line.trim_start();
    if !line.starts_with("test result:") && !line.starts_with("Summary [") {
        return None;
    }
    let before = |word: &str| {
        let (head, _) = line.split_once(word)?;
        head.rsplit(|c: char| !c.is_ascii_digit()).find(|digits| !digits.is_empty())?.parse().ok()
    };
    let late = before(" timed out").unwrap_or(0);
    Some(Sum { passed: before(" passed").unwrap_or(0), failed: before(" failed").unwrap_or(0) + late })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closing_lines_of_both_runners_are_counted() {
        let counted = |line: &str| closing_line(line).map(|sum| (sum.passed, sum.failed));
        let cargo = "test result: FAILED. 23 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out";
        assert_eq!(counted(cargo), Some((23, 2)));
        let nextest = "     Summary [   1.203s] 125 tests run: 121 passed (1 slow), 3 failed, 1 timed out, 0 skipped";
        assert_eq!(counted(nextest), Some((121, 4)));
        assert_eq!(counted("     Summary [   0.004s] 5 tests run: 5 passed, 0 skipped"), Some((5, 0)));
        assert_eq!(counted("test a ... ok"), None);
    }
}
