//! `windlass models test`: tries a model out and remembers what it can do.

use super::checks::{Outcome, Subject};
use super::learnt::Learnt;
use super::list::unknown;
use super::{http, provider};
use crate::choose;
use crate::desk::Desk;
use crate::exit::{Code, Ended, Failure};
use crate::terminal::{one_line, print, print_json};
use crate::words::{cost, grouped};
use serde_json::json;
use windlass::llm::{Ability, ModelInfo, Prices, Quirk, ToolCalls, connect, text_tools};
use windlass_kernel::{FailureKind, Usage};

/// Characters of an outcome's reason.
const REASON_CHARS: usize = 160;

/// What was found.
struct Report {
    model: String,
    lines: Vec<(&'static str, Outcome)>,
    tool_calls: Option<ToolCalls>,
    usage: Usage,
    cost_micro_usd: Option<u64>,
}

const STREAMS: &str = "streams";
const TOOLS: &str = "tools";
const PARALLEL: &str = "parallel";
const IMAGES: &str = "images";
const SCHEMA: &str = "schema";
const TEXT: &str = "tools as text";

pub async fn test(desk: &Desk, model: &str, json: bool) -> Ended {
    let mut providers = choose::providers(&desk.settings.config, &desk.environment)?;
    let Some((given, model)) = model.split_once('/').filter(|(given, model)| !given.is_empty() && !model.is_empty())
    else {
        return Err(Failure::usage(format!(
            "`{model}` names no model: write PROVIDER/NAME, for example ollama/qwen3; `windlass models list` shows them"
        )));
    };
    choose::to_address(&desk.settings.config, &mut providers, given)?;
    let here = provider(&providers, given)?;
    let name = providers.name_of(given);
    choose::check_key(&format!("{name}/{model}"), &providers)?;
    let known = providers.model(&format!("{name}/{model}"));
    let mut endpoint = here.endpoint(&name, known.as_ref());
    // What the model takes is tried out, whatever was known of it before.
    endpoint.quirks.retain(|quirk| !matches!(quirk, Quirk::NoImages | Quirk::NoPdfs));
    let info = known.unwrap_or_else(|| unknown(&name, model));
    let own_price = desk.settings.prices.get(&format!("{name}/{model}")).copied();
    let mut subject = Subject::new(connect(here.protocol, http(desk, &here)?, endpoint, model), info.max_output);
    let report = try_out(&mut subject, format!("{name}/{model}"), own_price.or(info.prices)).await?;
    let mut learnt = Learnt::read(&desk.environment, &name)?;
    remember(&mut learnt, &info, &report);
    learnt.place(providers.catalog(), &name, &here);
    learnt.write()?;
    match json {
        true => print_json(&as_json(&report)),
        false => print(&table(&report, &learnt)),
    }
    let works = matches!(report.outcome(STREAMS), Some(Outcome::Ok | Outcome::No(_)));
    Ok(if works { Code::Done } else { Code::Failed })
}

/// All checks in order; an error of the first that no other could be without ends the run.
async fn try_out(subject: &mut Subject, model: String, prices: Option<Prices>) -> Result<Report, Failure> {
    let streams = subject.streams().await;
    if let Outcome::Failed(failure) = &streams {
        let code = if failure.kind == FailureKind::Auth { Code::NoModel } else { Code::Failed };
        return Err(Failure::new(code, format!("{model} can't be tested: {}", failure.message)));
    }
    let native = subject.calls_tools().await;
    let mut tool_calls = (native == Outcome::Ok).then_some(ToolCalls::Native);
    // An overload or a broken line says nothing of how calls arrive.
    let is_refuted = says_no(&native);
    let mut lines = vec![(STREAMS, streams), (TOOLS, native)];
    if is_refuted {
        let before = subject.model.clone();
        subject.model = text_tools(before.clone());
        let as_text = subject.calls_tools().await;
        if as_text == Outcome::Ok {
            tool_calls = Some(ToolCalls::Text);
        } else {
            subject.model = before;
        }
        lines.push((TEXT, as_text));
    }
    lines.push((PARALLEL, subject.calls_several().await));
    lines.push((IMAGES, subject.sees_images().await));
    lines.push((SCHEMA, subject.keeps_schema().await));
    let cost_micro_usd = prices.map(|prices| prices.cost_micro_usd(&subject.usage));
    Ok(Report { model, lines, tool_calls, usage: subject.usage, cost_micro_usd })
}

impl Report {
    fn outcome(&self, check: &str) -> Option<&Outcome> {
        self.lines.iter().find(|(name, _)| *name == check).map(|(_, outcome)| outcome)
    }
}

/// Whether the model showed that it can't: it answered with something else, or refused to be asked so.
fn says_no(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Ok => false,
        Outcome::No(_) => true,
        Outcome::Failed(failure) => failure.kind == FailureKind::Invalid,
    }
}

/// Puts down what the model showed; what failed on the way says nothing of it.
fn remember(learnt: &mut Learnt, info: &ModelInfo, report: &Report) {
    let mut can = info.can.clone();
    let abilities = [
        (TOOLS, Ability::Tools),
        (TEXT, Ability::Tools),
        (PARALLEL, Ability::Parallel),
        (IMAGES, Ability::Images),
        (SCHEMA, Ability::Schema),
    ];
    for (check, ability) in abilities {
        match report.outcome(check) {
            Some(Outcome::Ok) => drop(can.insert(ability)),
            Some(outcome) if says_no(outcome) => drop(can.remove(&ability)),
            _ => {}
        }
    }
    learnt.showed(&info.name, &can, report.tool_calls);
}

fn table(report: &Report, learnt: &Learnt) -> String {
    let mut text = format!("{}\n", report.model);
    for (check, outcome) in &report.lines {
        let said = match outcome {
            Outcome::Ok => "ok".to_owned(),
            Outcome::No(instead) => format!("no: {}", one_line(instead, REASON_CHARS)),
            Outcome::Failed(failure) => format!("error: {}", one_line(&failure.message, REASON_CHARS)),
        };
        text += &format!("  {check:<14} {said}\n");
    }
    let mode = match report.tool_calls {
        Some(ToolCalls::Native) => "tool calls are native",
        Some(ToolCalls::Text) => "tool calls are read from its text",
        None => "how its tool calls arrive is not known",
    };
    let Usage { input, cache_read, cache_write, output, .. } = report.usage;
    let (input, output) = (grouped(input + cache_read + cache_write), grouped(output));
    let cost = cost(report.cost_micro_usd);
    text + &format!("  {input} tokens in, {output} out, {cost}\n  {mode}; remembered in {}\n", learnt.file().display())
}

fn as_json(report: &Report) -> String {
    let lines = report.lines.iter().map(|(check, outcome)| match outcome {
        Outcome::Ok => json!({ "check": check, "outcome": "ok" }),
        Outcome::No(instead) => json!({ "check": check, "outcome": "no", "reason": instead }),
        Outcome::Failed(failure) => json!({ "check": check, "outcome": "error", "reason": failure.message }),
    });
    let lines: Vec<_> = lines.collect();
    let report = json!({
        "model": report.model, "checks": lines, "tool_calls": report.tool_calls, "usage": report.usage,
        "cost_micro_usd": report.cost_micro_usd
    });
    format!("{report:#}\n")
}
