//! A rule held against the examples it carries, when it is read.

use crate::ask::Ask;
use crate::call::Call;
use crate::places::Places;
use crate::predicate::Fit;
use crate::rule::{Choice, FileAt, Part, Rule, RuleSpec};
use serde_json::{Value, json};
use windlass_kernel::{CallPlan, PermissionMode};

/// The folder examples are thought to happen in.
const WORKSPACE: &str = "/work";

/// Whether `rule` means what its examples say it does; what is wrong, if not.
pub(crate) fn check(rule: &Rule, spec: &RuleSpec) -> Result<(), String> {
    for (examples, wanted) in [(&spec.matches, true), (&spec.not_match, false)] {
        for example in examples {
            if means(rule, example) != wanted {
                let word = if wanted { "match" } else { "not_match" };
                let found = if wanted { "it does not match" } else { "it matches" };
                return Err(format!("its `{word}` example `{example}` fails: {found}; mend the rule or the example"));
            }
        }
    }
    Ok(())
}

fn means(rule: &Rule, example: &str) -> bool {
    let (tool, _) = rule.text().split_once('(').unwrap_or((rule.text(), ""));
    let tool = crate::subject::tool_name(tool.trim());
    let is_command = matches!(&*tool, "bash" | "exec");
    let input = match serde_json::from_str::<Value>(example) {
        Ok(input @ Value::Object(_)) => input,
        _ if is_command => json!({ "command": example }),
        _ if matches!(&*tool, "web_fetch" | "net") => json!({ "url": example }),
        _ => json!({ "path": example }),
    };
    let plan = planned(&tool, &input);
    let (mode, interactive) = (spec_mode(rule), rule.wants_person());
    let tool = if tool == "exec" { "bash" } else { &tool };
    let ask = Ask { tool, input: &input, plan: &plan, mode, workspace: WORKSPACE, interactive, grants: &[] };
    let places = Places { home: Some("/home/user".into()), temporary: vec!["/tmp".into()] };
    let call = Call::new(&ask, &places);
    // What allows must be sure; what asks or denies may mean it.
    let enough = if rule.choice == Choice::Allow { Fit::Sure } else { Fit::Maybe };
    let fits = |part: Part| rule.fit(&call, part) >= enough;
    match call.reading() {
        None => fits(Part::Whole),
        Some(reading) if rule.choice == Choice::Allow => {
            !reading.deeds.is_empty() && reading.deeds.iter().all(|deed| fits(Part::Deed(deed)))
        }
        Some(reading) => reading.deeds.iter().any(|deed| {
            let file = |found: &crate::call::Found| {
                let at: FileAt = found.at();
                fits(Part::Writes(at)) || fits(Part::Reads(at))
            };
            fits(Part::Deed(deed)) || call.files(deed).iter().any(file)
        }),
    }
}

/// What a call of a built-in tool touches, told from its arguments alone: where the tool itself is not at hand.
pub fn planned(tool: &str, input: &Value) -> CallPlan {
    use windlass_kernel::Access::{Read, Write};
    let (access, tags): (_, &[&str]) = match tool {
        "bash" | "exec" => (Write, &["exec"]),
        "read" => (Read, &["fs.read"]),
        "ls" | "glob" | "grep" => (Read, &["fs.read", "search"]),
        "edit" | "write" | "apply_patch" => (Write, &["fs.read", "fs.write"]),
        "web_fetch" | "web_search" => (Read, &["net"]),
        "ask_user" => (Read, &["ask"]),
        _ => (Write, &[]),
    };
    let named = ["path", "file_path", "notebook_path", "filename", "directory"];
    let paths = named.iter().filter_map(|key| input.get(key)?.as_str());
    let mut paths: Vec<String> = paths.map(str::to_owned).collect();
    if paths.is_empty() && matches!(tool, "ls" | "glob" | "grep") {
        paths.push(".".into());
    }
    let tags = tags.iter().map(|tag| tag.to_string()).collect();
    CallPlan { access, tags, paths: if tags_files(tool) { paths } else { vec![] }, ..CallPlan::default() }
}

fn tags_files(tool: &str) -> bool {
    matches!(tool, "read" | "ls" | "glob" | "grep" | "edit" | "write" | "apply_patch")
}

fn spec_mode(rule: &Rule) -> PermissionMode {
    rule.only_mode().unwrap_or_default()
}
