//! The policy that configuration amounts to: rules by whose they are, answers that were kept, and what is built in.

use crate::config::{Config, Owner};
use crate::environment::Environment;
use crate::exit::Failure;
use crate::keys::Value;
use serde::Deserialize;
use windlass_kernel::Verdict;
use windlass_policy::{Choice, Places, Policy, Rule, RuleSpec, Source};

/// Folders for temporary files, besides what `TMPDIR` says.
const TEMPORARY: [&str; 2] = ["/tmp", "/var/tmp"];
/// Where answers kept for longer than a session stand among the keys; no file may set it.
pub const KEPT: [&str; 2] = ["rules", "kept"];

pub fn policy(config: &Config, environment: &Environment) -> Result<Policy, Failure> {
    let mut policy = Policy::default().with_places(places(environment));
    for layer in &config.layers {
        let source = source(layer.owner);
        for entry in &layer.entries {
            let path: Vec<&str> = entry.path.iter().map(String::as_str).collect();
            let told = |error: String| Failure::usage(format!("{}: {error}", entry.source));
            match (&path[..], &entry.value) {
                (["rules", list @ ("allow" | "deny" | "ask" | "always_ask")], Value::Texts(rules)) => {
                    for rule in rules {
                        let rule = Rule::deciding(rule, choice(list), source);
                        policy = policy.with_rule(rule.map_err(|error| told(error.to_string()))?);
                    }
                }
                (["rules", "rule"], Value::Tables(tables)) => {
                    for table in tables {
                        policy = policy.with_rule(read(table, source).map_err(told)?);
                    }
                }
                (["rules", "kept"], Value::Texts(rules)) => {
                    for rule in rules {
                        policy = policy.with_answer(rule).map_err(|error| told(error.to_string()))?;
                    }
                }
                _ => {}
            }
        }
    }
    if config.get("rules.built_in").and_then(|entry| entry.value.as_truth()) == Some(true) {
        policy = policy.with_built_in();
    }
    Ok(match config.text("rules.default") {
        Some("allow") => policy.with_default(Verdict::Allow),
        Some("deny") => policy.with_default(Verdict::Deny),
        _ => policy,
    })
}

/// A `[[rules.rule]]` table.
fn read(table: &serde_json::Value, source: Source) -> Result<Rule, String> {
    const FORM: &str = "a rule has tool, decision (allow, deny, ask or always_ask), and may have args, when, priority, \
         description, mode, interactive, match and not_match";
    let spec = RuleSpec::deserialize(table).map_err(|error| format!("[[rules.rule]] {table}: {error}; {FORM}"))?;
    if spec.tool.is_empty() {
        return Err(format!("[[rules.rule]] {table} names no tool; {FORM}"));
    }
    Rule::read(&spec, source).map_err(|error| error.to_string())
}

fn choice(list: &str) -> Choice {
    match list {
        "allow" => Choice::Allow,
        "deny" => Choice::Deny,
        "always_ask" => Choice::AlwaysAsk,
        _ => Choice::Ask,
    }
}

fn source(owner: Owner) -> Source {
    match owner {
        Owner::Managed => Source::Managed,
        Owner::User => Source::User,
        Owner::Project | Owner::TrustedProject => Source::Project,
        Owner::Session => Source::Session,
    }
}

/// Home and the folders for temporary files, as they are called here.
pub fn places(environment: &Environment) -> Places {
    let variable = |name| environment.variable(name).filter(|path| path.starts_with('/')).map(str::to_owned);
    let temporary = variable("TMPDIR").into_iter().chain(TEMPORARY.map(str::to_owned));
    Places { home: variable("HOME"), temporary: temporary.collect() }
}
