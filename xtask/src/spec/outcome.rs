//! Runs the tests named after requirements and reads how each ended.

use crate::project::{Project, shown};
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::process::Stdio;

/// Whether a test passed, by its name without its modules; of two with one name, the worse.
pub type Outcomes = BTreeMap<String, bool>;

/// What nextest runs: names that begin with a requirement.
const FILTER: &str = "test(/(^|::)s[0-4]_[0-9]{2}/)";

/// Runs them with nextest where it is installed, else with cargo's own runner. Failing tests are an outcome, no error.
pub fn run(project: &Project) -> Result<Outcomes> {
    let nextest = project.cargo().args(["nextest", "--version"]).stderr(Stdio::null()).output();
    let nextest = nextest.is_ok_and(|out| out.status.success());
    let mut command = project.cargo();
    if nextest {
        command.args(["nextest", "run", "--workspace", "--no-fail-fast", "-E", FILTER]);
        command.args(["--message-format", "libtest-json"]).env("NEXTEST_EXPERIMENTAL_LIBTEST_JSON", "1");
        command.args(["--status-level", "fail", "--failure-output", "final"]);
    } else {
        command.args(["test", "--workspace", "--no-fail-fast", "--lib", "--bins", "--tests", "--"]);
        command.args(["s0_", "s1_", "s2_", "s3_", "s4_"]);
    }
    crate::clients::offer(project, &mut command)?;
    let out = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let out = out.with_context(|| format!("starting {}", shown(&command)))?;
    let text = String::from_utf8_lossy(&out.stdout);
    let outcomes = if nextest { from_json(&text) } else { from_words(&text) };
    if outcomes.is_empty() {
        bail!("{} ran no test and ended with {}", shown(&command), out.status);
    }
    Ok(outcomes)
}

fn note(outcomes: &mut Outcomes, name: &str, passed: bool) {
    let name = name.rsplit("::").next().unwrap_or(name);
    let known = outcomes.entry(name.to_string()).or_insert(true);
    *known &= passed;
}

/// `{"type":"test","event":"ok","name":"package::binary$module::name"}`, one a line.
fn from_json(text: &str) -> Outcomes {
    let mut outcomes = Outcomes::new();
    for line in text.lines() {
        let Ok(said) = serde_json::from_str::<serde_json::Value>(line) else { continue };
        let (event, name) = (said["event"].as_str(), said["name"].as_str().unwrap_or_default());
        if said["type"] == "test" && matches!(event, Some("ok" | "failed")) {
            note(&mut outcomes, name.rsplit('$').next().unwrap_or(name), event == Some("ok"));
        }
    }
    outcomes
}

/// `test module::name ... ok`, one a line.
fn from_words(text: &str) -> Outcomes {
    let mut outcomes = Outcomes::new();
    for line in text.lines() {
        let Some((name, how)) = line.strip_prefix("test ").and_then(|rest| rest.split_once(" ... ")) else { continue };
        if how == "ok" || how.starts_with("FAILED") {
            note(&mut outcomes, name.trim_end_matches(" - should panic"), how == "ok");
        }
    }
    outcomes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_runners_are_understood() {
        let json = r#"{"type":"suite","event":"started","test_count":2}
{"type":"test","event":"started","name":"windlass-kernel::windlass_kernel$next::tests::s2_07_a"}
{"type":"test","event":"ok","name":"windlass-kernel::windlass_kernel$next::tests::s2_07_a","exec_time":0.1}
{"type":"test","event":"failed","name":"windlass-policy::decide$s0_22_b","exec_time":0.1}"#;
        let expected: Outcomes = [("s0_22_b".to_string(), false), ("s2_07_a".to_string(), true)].into();
        assert_eq!(from_json(json), expected);
        let words = "running 2 tests\ntest next::tests::s2_07_a ... ok\ntest s0_22_b ... FAILED\ntest result: FAILED.";
        assert_eq!(from_words(words), expected);
    }

    #[test]
    fn of_two_tests_with_one_name_the_worse_counts() {
        let words = "test a::s2_07_a ... FAILED\ntest b::s2_07_a ... ok\n";
        assert!(!from_words(words)["s2_07_a"]);
    }
}
