//! `cargo xtask bench`: what the agent itself costs, the model taken out, beside the floor. Figures, no verdict.

mod sample;
mod scenario;
mod table;

use crate::flags::Flags;
use crate::mock::{self, Mock};
use crate::project::{self, Project, Scratch};
use anyhow::{Context, Result, bail};
use sample::{Report, Sample};
use scenario::{ALL, FILE_BYTES, Scenario, Subject};
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs of each scenario and subject, unless told otherwise.
const RUNS: usize = 7;
/// Files there are to read.
const FILES: usize = 100;

/// All samples, by scenario and the subject's name.
pub type Samples = BTreeMap<(Scenario, &'static str), Vec<Sample>>;

pub fn run(args: &[String]) -> Result<()> {
    let mut flags = Flags::new("bench", args);
    let runs = flags.value("--runs")?.unwrap_or(RUNS);
    let only: Option<String> = flags.value("--only")?;
    let json: Option<PathBuf> = flags.value("--json")?;
    flags.end("--runs N, --only SCENARIO and --json FILE")?;
    let with_policy = only.as_deref().is_none_or(|only| only == "policy");
    let scenarios: Vec<Scenario> =
        ALL.into_iter().filter(|scenario| only.as_ref().is_none_or(|only| only == scenario.name())).collect();
    if scenarios.is_empty() && !with_policy {
        bail!("there is no scenario {only:?}: known are {}, policy", ALL.map(Scenario::name).join(", "));
    }
    let bench = Bench::set_up(Project::find()?)?;
    let samples = bench.measure(&scenarios, runs)?;
    let binary_mb = std::fs::metadata(&bench.subjects[1].program)?.len() as f64 / 1e6;
    table::print(&samples, binary_mb);
    if with_policy {
        bench.decisions()?;
    }
    if let Some(file) = json {
        let told = samples.iter().map(|((scenario, subject), samples)| {
            serde_json::json!({ "scenario": scenario.name(), "subject": subject, "samples": samples })
        });
        let told = told.collect::<Vec<_>>();
        project::write(&file, serde_json::to_string_pretty(&told)?)?;
    }
    Ok(())
}

/// Commands that are decided about, as people and agents write them.
const DECIDED: [&str; 4] = [
    "git status",
    "cargo test -p windlass-policy 2>&1 | tail -20",
    "cd src && grep -rn 'fn main' --include='*.rs' . | head -5 > /dev/null",
    "for f in a b c; do wc -l \"$f\"; done && git commit -m 'count' && npm run test -- --watch=false",
];
/// Decisions about each.
const DECISIONS: &str = "5001";

/// The programs, and where they are let loose.
struct Bench {
    subjects: [Subject; 2],
    measure: PathBuf,
    folder: Scratch,
}

impl Bench {
    /// What a decision of the policy takes, with the built-in rules and some of one's own.
    fn decisions(&self) -> Result<()> {
        println!("\npolicy: microseconds a decision (aim: median 100)");
        for command in DECIDED {
            let rules = ["bash(cargo test:*)", "bash(npm run test:*)", "bash(git commit:*)", "edit(src/**)"];
            let mut run = Command::new(&self.subjects[1].program);
            run.args(["policy", "explain", command, "--times", DECISIONS]);
            run.args(rules.iter().flat_map(|rule| ["--allow", rule])).args(["--deny", "bash(rm -rf:*)"]);
            let output = run.current_dir(&*self.folder).output().context("the policy can't be asked")?;
            let told: serde_json::Value = serde_json::from_slice(&output.stdout)
                .with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())?;
            println!(
                "  {:>7.1} median  {:>7.1} p99   {command}",
                told["median_us"].as_f64().unwrap_or(f64::NAN),
                told["p99_us"].as_f64().unwrap_or(f64::NAN)
            );
        }
        Ok(())
    }

    fn set_up(project: Project) -> Result<Bench> {
        project::run(project.cargo().args(["build", "--release", "--package", "windlass-cli"]))?;
        let mut own = project.cargo();
        own.args([
            "build",
            "--release",
            "--package",
            "xtask",
            "--features",
            "bench",
            "--bin",
            "floor",
            "--bin",
            "measure",
        ]);
        project::run(&mut own)?;
        let folder = project.scratch("bench")?;
        let subject = |name| Subject { name, program: project.built("release", name), is_floor: name == "floor" };
        let subjects = [subject("floor"), subject("windlass")];
        Ok(Bench { subjects, measure: project.built("release", "measure"), folder })
    }

    /// Runs everything, the subjects in turn, so that noise hits both alike.
    fn measure(&self, scenarios: &[Scenario], runs: usize) -> Result<Samples> {
        let script = self.folder.join("script.toml");
        project::write(&script, scenario::script())?;
        let log = self.folder.join("requests.jsonl");
        let mock = Mock::start(&self.subjects[1].program, &script, &log, None)?;
        let mut samples = Samples::new();
        let mut seen = 0;
        for run in 0..runs {
            for scenario in scenarios {
                for subject in self.subjects.iter().filter(|subject| scenario.suits(subject)) {
                    if std::io::stderr().is_terminal() {
                        eprint!("\rrun {} of {runs}: {} {}          ", run + 1, scenario.name(), subject.name);
                    }
                    let (report, home) = self.start(subject, *scenario, &mock.url)?;
                    let requests = mock::log(&log)?.split_off(seen);
                    seen += requests.len();
                    if let Some(refused) = requests.iter().find(|request| request.status != 200) {
                        let why = refused.error.clone().unwrap_or_default();
                        bail!("{} {}: the model refused a request: {why}", subject.name, scenario.name());
                    }
                    let mut sample = Sample::of(report, &requests);
                    if !subject.is_floor && *scenario != Scenario::Sessions {
                        sample.syncs = Some(syncs(&subject.program, &home)?);
                    }
                    samples.entry((*scenario, subject.name)).or_default().push(sample);
                }
            }
        }
        if std::io::stderr().is_terminal() {
            eprintln!();
        }
        Ok(samples)
    }

    /// One run in a home and a folder of its own.
    fn start(&self, subject: &Subject, scenario: Scenario, url: &str) -> Result<(Report, PathBuf)> {
        let home = self.folder.join("home");
        if home.exists() {
            std::fs::remove_dir_all(&home)?;
        }
        let work = home.join("project");
        std::fs::create_dir_all(&work)?;
        for file in 0..FILES {
            project::write(&work.join(format!("f{file}.txt")), text(file))?;
        }
        let report = home.join("report.json");
        let mut command = Command::new(&self.measure);
        command.arg(&report).arg(&subject.program).args(subject.args(scenario, url)).current_dir(&work);
        outfit(&mut command, &home);
        project::output(&mut command)?;
        let told: Report = serde_json::from_str(&project::read(&report)?).context("reading what `measure` wrote")?;
        if told.code != 0 {
            bail!("{} {} ended with code {}", subject.name, scenario.name(), told.code);
        }
        Ok((told, home))
    }
}

/// No environment but what a program needs to start.
fn outfit(command: &mut Command, home: &Path) {
    command.env_clear().env("HOME", home).env("ANTHROPIC_API_KEY", "dummy");
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
}

/// The `number`th file to read: lines of text, 4 KB in all.
fn text(number: usize) -> String {
    let mut text: String =
        (0..FILE_BYTES / 20).map(|line| format!("file {number:>3}, line {line:>3} of many.\n")).collect();
    text.truncate(FILE_BYTES);
    text
}

/// How many commits of the run's one session were fsynced: each intent of a side effect, and the end of the turn.
fn syncs(program: &Path, home: &Path) -> Result<usize> {
    let ask = |args: &[&str]| {
        let mut command = Command::new(program);
        command.args(args).current_dir(home.join("project"));
        outfit(&mut command, home);
        project::output(&mut command)
    };
    let sessions = ask(&["sessions", "--json"])?;
    let id = first_id(&sessions).with_context(|| format!("`windlass sessions --json` names no session: {sessions}"))?;
    let log = ask(&["log", &id, "--json"])?;
    let events = log.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    Ok(events.filter(|record| wants_sync(&record["event"])).count())
}

/// The first session's id: of a list, or of one object a line.
pub fn first_id(sessions: &str) -> Option<String> {
    let told: serde_json::Value = serde_json::Deserializer::from_str(sessions).into_iter().next()?.ok()?;
    let first = told.as_array().map_or(&told, |list| list.first().unwrap_or(&told));
    ["session", "id"].iter().find_map(|key| first[*key].as_str()).map(str::to_string)
}

fn wants_sync(event: &serde_json::Value) -> bool {
    let first_word_of_a_process = event["process"].is_null();
    match event["type"].as_str() {
        Some("turn_finished") => true,
        Some("tool_started") => event["on_crash"] != "repeat" && first_word_of_a_process,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_session_is_found_in_either_form() {
        assert_eq!(first_id("[{\"session\":\"a\"},{\"session\":\"b\"}]").as_deref(), Some("a"));
        assert_eq!(first_id("{\"id\":\"a\"}\n{\"id\":\"b\"}\n").as_deref(), Some("a"));
        assert_eq!(first_id("[]"), None);
    }

    #[test]
    fn intents_of_side_effects_and_ends_of_turns_are_fsynced() {
        let events = [
            r#"{"type":"tool_started","on_crash":"unknown"}"#,
            r#"{"type":"tool_started","on_crash":"unknown","process":{"pid":7,"started":1}}"#,
            r#"{"type":"tool_started","on_crash":"repeat"}"#,
            r#"{"type":"turn_finished"}"#,
        ];
        let wants: Vec<bool> = events.iter().map(|event| wants_sync(&serde_json::from_str(event).unwrap())).collect();
        assert_eq!(wants, [true, false, false, true]);
    }

    #[test]
    fn a_file_has_four_kilobytes() {
        assert_eq!(text(7).len(), FILE_BYTES);
        assert_ne!(text(7), text(8));
    }
}
