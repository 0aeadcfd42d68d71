//! `cargo xtask shell`: calls with the rules given for each, held against the policy by the real command.
//!
//! A row of `tests/shell/*.jsonl` is what `windlass policy test` reads. Two figures count, over all files: rows that
//! must not run silently and did (none may), and rows that must run and did (of them nearly all).

use crate::flags::Flags;
use crate::project::{self, Project};
use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Percent of the benign rows that must pass.
const BENIGN_PERCENT: usize = 95;
/// Letters of a miss's input that are shown.
const MAX_SHOWN: usize = 160;

/// What `windlass policy test --json` says of one file.
#[derive(Default, Deserialize)]
struct Report {
    rows: usize,
    right: usize,
    run_silently: usize,
    benign: usize,
    benign_passed: usize,
    misses: Vec<Miss>,
}

#[derive(Deserialize)]
struct Miss {
    id: Value,
    tool: String,
    input: Value,
    expected: String,
    /// None: a rule of the row can't be read.
    got: Option<String>,
    reason: String,
    why: Option<String>,
}

pub fn run(args: &[String]) -> Result<()> {
    let mut flags = Flags::new("shell", args);
    let (file, build) = (flags.value::<PathBuf>("--file")?, !flags.has("--built"));
    flags.end("--file FILE and --built")?;
    let project = Project::find()?;
    if build {
        project::run(project.cargo().args(["build", "--package", "windlass-cli"]))?;
    }
    let files = match file {
        Some(file) => vec![file],
        None => corpus(&project.root.join("tests/shell"))?,
    };
    conclude(&judged(&project, &files)?)
}

/// The corpus, in the order of its names.
fn corpus(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
    let paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    let mut files: Vec<PathBuf> =
        paths.into_iter().filter(|path| path.extension().is_some_and(|end| end == "jsonl")).collect();
    files.sort();
    if files.is_empty() {
        bail!("{} holds no .jsonl file", folder.display());
    }
    Ok(files)
}

/// Holds each file against the policy and tells of it; the sum of all.
fn judged(project: &Project, files: &[PathBuf]) -> Result<Report> {
    let home = project.scratch("shell")?;
    let workspace = home.join("workspace");
    std::fs::create_dir_all(&workspace).with_context(|| format!("making {}", workspace.display()))?;
    let mut sum = Report::default();
    for file in files {
        let file = std::path::absolute(file)?;
        let mut command = Command::new(project.built("debug", "windlass"));
        command.args(["policy", "test", "--json"]).arg(&file).current_dir(&workspace).env("HOME", &*home);
        let report = report(&mut command).with_context(|| file.display().to_string())?;
        println!("{:<14} {}", file.file_stem().unwrap_or_default().to_string_lossy(), report.figures());
        report.misses.iter().for_each(Miss::tell);
        sum.add(report);
    }
    println!("{:<14} {}", "all", sum.figures());
    Ok(sum)
}

fn report(command: &mut Command) -> Result<Report> {
    let out = command.stdin(Stdio::null()).output().with_context(|| format!("starting {}", project::shown(command)))?;
    // Exit code 1 only says that some row is wrong.
    serde_json::from_slice(&out.stdout).with_context(|| {
        format!("no report, but exit code {:?}: {}", out.status.code(), String::from_utf8_lossy(&out.stderr).trim())
    })
}

fn conclude(sum: &Report) -> Result<()> {
    println!();
    println!("dangerous commands run silently: {} of {}", sum.run_silently, sum.rows - sum.benign);
    println!("benign commands passed: {} of {} ({})", sum.benign_passed, sum.benign, sum.share());
    if sum.run_silently > 0 {
        bail!("{} rows that must not run unasked do", sum.run_silently);
    }
    if sum.is_strict() {
        bail!("fewer than {BENIGN_PERCENT} % of the benign rows pass");
    }
    Ok(())
}

impl Report {
    fn add(&mut self, other: Report) {
        self.rows += other.rows;
        self.right += other.right;
        self.run_silently += other.run_silently;
        self.benign += other.benign;
        self.benign_passed += other.benign_passed;
    }

    /// Too many of what should run are asked about.
    fn is_strict(&self) -> bool {
        self.benign_passed * 100 < self.benign * BENIGN_PERCENT
    }

    fn share(&self) -> String {
        match self.benign {
            0 => "none".into(),
            all => format!("{:.1} %", 100.0 * self.benign_passed as f64 / all as f64),
        }
    }

    fn figures(&self) -> String {
        format!(
            "{:>4} rows, {:>4} right; run silently {:>2}; benign passed {:>3} of {:>3} ({})",
            self.rows,
            self.right,
            self.run_silently,
            self.benign_passed,
            self.benign,
            self.share()
        )
    }
}

impl Miss {
    fn tell(&self) {
        let input = match self.input.get("command") {
            Some(command) => command.to_string(),
            None => self.input.to_string(),
        };
        let input: String = input.chars().take(MAX_SHOWN).collect();
        let id = self.id.as_str().map_or_else(|| self.id.to_string(), str::to_owned);
        let got = self.got.as_deref().unwrap_or("an error");
        println!("  {id}: expected {}, got {got}: {} {input}", self.expected, self.tool);
        println!("    {}", self.reason.replace('\n', " "));
        println!("    because {}", self.why.as_deref().unwrap_or("(the row does not say why)"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_reached_and_not_rounded_up() {
        let report = |benign_passed| Report { benign: 200, benign_passed, ..Report::default() };
        assert!(report(189).is_strict());
        assert!(!report(190).is_strict());
        assert!(!Report::default().is_strict());
        assert_eq!(report(190).share(), "95.0 %");
    }

    #[test]
    fn one_silent_row_fails_the_run() {
        let report = |run_silently| Report { rows: 3, benign: 2, benign_passed: 2, run_silently, ..Report::default() };
        assert!(conclude(&report(0)).is_ok());
        assert!(conclude(&report(1)).is_err());
    }
}
