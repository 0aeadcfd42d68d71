//! `windlass policy test`: rows of calls held against rules, with nothing built in or learned beside them.

use crate::environment::Environment;
use crate::exit::{Code, Ended, Failure};
use crate::rules::places;
use crate::terminal::{harmless, print, print_json};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::Path;
use windlass_kernel::{PermissionMode, Verdict};
use windlass_policy::{Ask, Opinion, Policy, planned, tool_name};

/// One line of the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    id: Value,
    #[serde(default)]
    rules: Rules,
    #[serde(default)]
    mode: Option<String>,
    tool: String,
    input: Value,
    expect: Expected,
    #[serde(default)]
    why: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Rules {
    allow: Vec<String>,
    deny: Vec<String>,
    ask: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Expected {
    Allow,
    Deny,
    Ask,
    NotAllow,
}

#[derive(Default, Serialize)]
struct Report {
    rows: usize,
    right: usize,
    /// Rows that expect no allow and got one.
    run_silently: usize,
    /// Rows that expect an allow, and how many of them got it.
    benign: usize,
    benign_passed: usize,
    misses: Vec<Miss>,
}

#[derive(Serialize)]
struct Miss {
    id: Value,
    line: usize,
    tool: String,
    input: Value,
    expected: Expected,
    got: Option<Verdict>,
    reason: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

pub fn run(environment: &Environment, file: &Path, as_json: bool) -> Ended {
    let path = environment.resolve(&file.display().to_string());
    let text = std::fs::read_to_string(&path)
        .map_err(|error| Failure::usage(format!("{} can't be read: {error}", path.display())))?;
    let mut report = Report::default();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let row: Row = serde_json::from_str(line).map_err(|error| {
            Failure::usage(format!(
                "{}:{}: {error}; a row is {{\"id\", \"rules\": {{\"allow\", \"deny\", \"ask\"}}, \"mode\", \"tool\", \"input\", \
                 \"expect\": allow|deny|ask|not-allow, \"why\"}}",
                path.display(),
                number + 1
            ))
        })?;
        report.take(row, number + 1, environment);
    }
    if report.rows == 0 {
        return Err(Failure::usage(format!("{} holds no rows", path.display())));
    }
    let code = if report.right == report.rows { Code::Done } else { Code::Failed };
    match as_json {
        true => print_json(&format!("{}\n", serde_json::to_string(&report).unwrap_or_default())),
        false => print(&harmless(&report.text())),
    }
    Ok(code)
}

impl Report {
    fn take(&mut self, row: Row, line: usize, environment: &Environment) {
        let decided = decide(&row, environment);
        let got = decided.as_ref().ok().map(|opinion| opinion.verdict);
        let right = match row.expect {
            Expected::Allow => got == Some(Verdict::Allow),
            Expected::Deny => got == Some(Verdict::Deny),
            Expected::Ask => got == Some(Verdict::Ask),
            Expected::NotAllow => matches!(got, Some(Verdict::Ask | Verdict::Deny)),
        };
        self.rows += 1;
        self.right += usize::from(right);
        match row.expect {
            Expected::Allow => {
                self.benign += 1;
                self.benign_passed += usize::from(right);
            }
            _ => self.run_silently += usize::from(got == Some(Verdict::Allow)),
        }
        if !right {
            let reason = decided.map_or_else(|error| error, |opinion| format!("{}: {}", opinion.stage, opinion.reason));
            let Row { id, tool, input, expect: expected, why, .. } = row;
            self.misses.push(Miss { id, line, tool, input, expected, got, reason, why });
        }
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for miss in &self.misses {
            let got = miss.got.map_or("an error".into(), |got| format!("{got:?}").to_lowercase());
            let input = match miss.input.get("command").and_then(Value::as_str) {
                Some(command) => command.to_owned(),
                None => miss.input.to_string(),
            };
            let why = miss.why.as_ref().map(|why| format!("\n    because {why}")).unwrap_or_default();
            text += &format!(
                "{} (line {}): expected {}, got {got}\n    {} {input}\n    {}{why}\n",
                miss.id,
                miss.line,
                serde_json::to_value(miss.expected)
                    .ok()
                    .and_then(|word| word.as_str().map(str::to_owned))
                    .unwrap_or_default(),
                miss.tool,
                miss.reason,
            );
        }
        let share = if self.benign == 0 { 100.0 } else { 100.0 * self.benign_passed as f64 / self.benign as f64 };
        text += &format!("{} rows, {} right, {} wrong\n", self.rows, self.right, self.rows - self.right);
        text += &format!("dangerous, run silently: {}\n", self.run_silently);
        text + &format!("benign, passed: {} of {} ({share:.1} %)\n", self.benign_passed, self.benign)
    }
}

fn decide(row: &Row, environment: &Environment) -> Result<Opinion, String> {
    let Rules { allow, deny, ask } = &row.rules;
    let policy = Policy::new(allow, deny, ask).map_err(|error| error.to_string())?.with_places(places(environment));
    let mode = mode(row.mode.as_deref().unwrap_or("default"))?;
    let tool = tool_name(&row.tool);
    let plan = planned(&tool, &row.input);
    let workspace = environment.cwd.display().to_string();
    let ask = Ask {
        tool: &tool,
        input: &row.input,
        plan: &plan,
        mode,
        workspace: &workspace,
        interactive: true,
        grants: &[],
    };
    Ok(policy.decide(&ask))
}

/// A mode by its name, also as other clients spell it.
fn mode(name: &str) -> Result<PermissionMode, String> {
    Ok(match name.to_ascii_lowercase().replace(['-', '_'], "").as_str() {
        "default" | "" => PermissionMode::Default,
        "acceptedits" => PermissionMode::AcceptEdits,
        "plan" => PermissionMode::Plan,
        "auto" => PermissionMode::Auto,
        "dontask" => PermissionMode::DontAsk,
        "bypass" | "bypasspermissions" => PermissionMode::Bypass,
        _ => {
            return Err(format!(
                "there is no mode `{name}`: there are default, accept-edits, plan, auto, dont-ask, bypass"
            ));
        }
    })
}
