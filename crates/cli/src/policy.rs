//! `windlass policy explain` and `replay`: how a decision comes about, and what today's policy says of a session.

use crate::desk::{self, Desk};
use crate::exit::{Code, Ended, Failure};
use crate::terminal::{harmless, one_line, print, print_json};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Instant;
use windlass_kernel::{CallId, CallPlan, ContentBlock, Event, PermissionMode, Record, Verdict};
use windlass_policy::{Ask, Choice, ExplainedRule, Explanation, Policy, planned, tool_name};

/// How an explanation is given.
pub struct Form {
    pub as_json: bool,
    /// Decide so often, and tell only what it takes.
    pub times: Option<usize>,
}

pub fn explain(desk: &Desk, what: &str, input: Option<&str>, form: Form) -> Ended {
    let (tool, input) = match input {
        None => ("bash".to_owned(), json!({ "command": what })),
        Some(text) => {
            let input: Value = serde_json::from_str(text).map_err(|error| {
                Failure::usage(format!(
                    "{text}: it is no JSON ({error}); write the arguments like {{\"path\": \"README.md\"}}"
                ))
            })?;
            (tool_name(what), input)
        }
    };
    let plan = plan(desk, &tool, &input);
    let workspace = desk.folder.display().to_string();
    let mode = desk.settings.mode;
    let ask =
        Ask { tool: &tool, input: &input, plan: &plan, mode, workspace: &workspace, interactive: true, grants: &[] };
    if let Some(times) = form.times {
        let (median, slow) = timed(&desk.settings.policy, &ask, times.max(1));
        print(&format!("{}\n", json!({ "times": times.max(1), "median_us": median, "p99_us": slow })));
        return Ok(Code::Done);
    }
    let explanation = desk.settings.policy.explain(&ask);
    match form.as_json {
        true => print_json(&format!("{}\n", serde_json::to_string(&explanation).unwrap_or_default())),
        false => print(&harmless(&in_words(&explanation, desk))),
    }
    Ok(Code::Done)
}

/// The median and the 99th percentile of `times` decisions, in microseconds.
fn timed(policy: &Policy, ask: &Ask, times: usize) -> (f64, f64) {
    let once = || {
        let began = Instant::now();
        std::hint::black_box(policy.decide(ask));
        began.elapsed().as_secs_f64() * 1e6
    };
    let mut all: Vec<f64> = (0..times).map(|_| once()).collect();
    all.sort_by(f64::total_cmp);
    (all[times / 2], all[times * 99 / 100])
}

/// What the tool itself says it would touch, where it is one of ours and its arguments are whole.
fn plan(desk: &Desk, tool: &str, input: &Value) -> CallPlan {
    let tools = desk.tools();
    let checked = tools.check(tool, input).ok();
    let asked = tools.get(tool).zip(checked).zip(crate::tool::workspace(desk).ok());
    asked.map_or_else(|| planned(tool, input), |((entry, input), workspace)| entry.tool.plan(&input, &workspace))
}

fn in_words(explanation: &Explanation, desk: &Desk) -> String {
    let mut text = String::new();
    if let Some(tree) = &explanation.tree {
        text += &format!("parsed\n{}\n", indented(tree));
    }
    for part in &explanation.parts {
        let mark = if part.decides { "→" } else { " " };
        text += &format!("{mark} {}\n    {} by {}: {}\n", part.part, word(part.verdict), part.stage, part.reason);
        for rule in &part.rules {
            text += &format!("    {}\n", rule_line(rule));
        }
    }
    let opinion = &explanation.opinion;
    let rule = opinion.rule.as_ref().map(|rule| format!(", rule {rule}")).unwrap_or_default();
    text += &format!(
        "\n{} ({}{rule}; mode {}): {}\n",
        word(opinion.verdict),
        opinion.stage,
        crate::view::mode_name(desk.settings.mode),
        opinion.reason
    );
    for proposal in &opinion.proposed {
        text += &format!("  \"always\" would add {}: {}\n", proposal.rule, proposal.covers);
    }
    text
}

fn rule_line(rule: &ExplainedRule) -> String {
    let choice = match rule.decision {
        Choice::Allow => "allow",
        Choice::Deny => "deny",
        Choice::Ask => "ask",
        Choice::AlwaysAsk => "always ask",
    };
    let source = serde_json::to_value(rule.source).ok().and_then(|word| word.as_str().map(str::to_owned));
    let priority = if rule.priority == 0 { String::new() } else { format!(", priority {}", rule.priority) };
    let may = if rule.may { ", may mean it" } else { "" };
    let mark = if rule.decides { "*" } else { "-" };
    format!("{mark} {choice} {} ({}{priority}{may})", rule.rule, source.unwrap_or_default())
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}\n")).collect()
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Allow => "allow",
        Verdict::Ask => "ask",
        Verdict::Deny => "deny",
        Verdict::Invalid => "invalid",
    }
}

/// One call of a session, judged then and now.
#[derive(Serialize)]
struct Then {
    seq: u64,
    tool: String,
    input: Value,
    then: Verdict,
    then_by: String,
    now: Verdict,
    now_by: String,
    now_because: String,
}

pub async fn replay(desk: &Desk, session: &str, as_json: bool) -> Ended {
    let found = desk::find(&*desk.store, session).await?.session;
    let (records, damage) = desk.store.salvage(found).await;
    if let Some(damage) = damage {
        return Err(damage.into());
    }
    let calls = judged_again(desk, &records);
    if as_json {
        print_json(&format!("{}\n", serde_json::to_string(&calls).unwrap_or_default()));
        return Ok(Code::Done);
    }
    let mut text = String::new();
    for call in &calls {
        let mark = if call.then == call.now { " " } else { "!" };
        let input = call.input.get("command").and_then(Value::as_str).map_or(call.input.to_string(), str::to_owned);
        text += &format!("{mark} {:>5}  {} {}\n", call.seq, call.tool, one_line(&input, 100));
        text += &format!("         then {} by {}", word(call.then), call.then_by);
        text += &match call.then == call.now {
            true => format!(", now the same by {}\n", call.now_by),
            false => format!(", now {} by {}: {}\n", word(call.now), call.now_by, call.now_because),
        };
    }
    let other = calls.iter().filter(|call| call.then != call.now).count();
    text += &format!("{} calls judged, {other} would be decided otherwise today\n", calls.len());
    print(&harmless(&text));
    Ok(Code::Done)
}

fn judged_again(desk: &Desk, records: &[Record]) -> Vec<Then> {
    let mut uses: BTreeMap<CallId, (String, Value)> = BTreeMap::new();
    let said = desk.settings.config.get("permission_mode").is_some_and(|entry| entry.source.starts_with("--"));
    let (mut mode, mut cwd) = (PermissionMode::default(), String::new());
    let mut calls = vec![];
    for record in records {
        match &record.event {
            Event::Opened { mode: first, cwd: folder, .. } => (mode, cwd) = (*first, folder.clone()),
            Event::Configured(change) => mode = change.mode.unwrap_or(mode),
            Event::BlockFinished { block: ContentBlock::ToolUse(call), .. } => {
                uses.insert(call.id.clone(), (call.name.clone(), call.input.clone()));
            }
            Event::Judged(judged) if judged.verdict != Verdict::Invalid => {
                let Some((tool, input)) = uses.get(&judged.call) else { continue };
                let input = judged.input.as_ref().unwrap_or(input);
                let mode = if said { desk.settings.mode } else { mode };
                let (plan, workspace) = (&judged.plan, &*cwd);
                let ask = Ask { tool, input, plan, mode, workspace, interactive: true, grants: &[] };
                let now = desk.settings.policy.decide(&ask);
                calls.push(Then {
                    seq: record.seq.0,
                    tool: tool.clone(),
                    input: input.clone(),
                    then: judged.verdict,
                    then_by: judged.rule.clone().unwrap_or_else(|| judged.stage.clone()),
                    now: now.verdict,
                    now_by: now.rule.unwrap_or(now.stage),
                    now_because: now.reason,
                });
            }
            _ => {}
        }
    }
    calls
}
