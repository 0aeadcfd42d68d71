//! The log as a person reads it: a line an event.

use crate::exit::explain;
use crate::terminal::{harmless, one_line};
use crate::view::{View, changes, failure, mode_name, outcome};
use crate::words;
use serde_json::Value;
use windlass_kernel::*;

/// An event of the log in a line: its type, and what it is about.
pub fn event(view: &mut View, event: &Event) -> String {
    view.note(event);
    let kind = serde_json::to_value(event).ok();
    let kind = kind.as_ref().and_then(|value| value.get("type")).and_then(Value::as_str).unwrap_or("event");
    let about = about(view, event);
    format!("{kind:<16} {about}").trim_end().to_owned()
}

fn about(view: &View, event: &Event) -> String {
    match event {
        Event::Opened { cwd, model, mode, profile, .. } => {
            format!("{model}, mode {}, profile {}, in {}", mode_name(*mode), profile.name, harmless(cwd))
        }
        Event::Reopened { worker } => format!("by {worker}"),
        Event::Configured(change) => configured(change),
        Event::ToolsChanged { change, tools } => format!("{change:?} {}", tools.join(", ")).to_lowercase(),
        Event::Prompted(prompted) => one_line(&text_of(&prompted.blocks), 100),
        Event::Noted { text, .. } | Event::StopBlocked { text, .. } => one_line(text, 100),
        Event::CompactionAsked { instructions } => one_line(instructions.as_deref().unwrap_or_default(), 100),
        Event::Interrupted { by } => format!("by {by}"),
        Event::Began { step } => began(view, step),
        Event::ModelCalled(called) => format!("{}/{}, attempt {}", called.provider, called.model, called.attempt),
        Event::BlockFinished { block, partial, .. } => {
            format!("{}{}", block_in_a_line(block), if *partial { " (broken off)" } else { "" })
        }
        Event::ModelFinished { stop, spent, .. } => format!("{}, {}", stop_name(*stop), spent_in_words(spent)),
        Event::ModelFailed { error, spent, .. } if spent.usage == Usage::default() => failure(error),
        Event::ModelFailed { error, spent, .. } => format!("{}; {}", failure(error), spent_in_words(spent)),
        Event::ModelCancelled { spent, .. } => spent_in_words(spent),
        Event::Judged(judged) => {
            let verdict = format!("{:?}", judged.verdict).to_lowercase();
            format!("{}: {verdict} by {}: {}", view.call(&judged.call), judged.stage, one_line(&judged.reason, 100))
        }
        Event::HookRan(ran) => hook_ran(ran),
        Event::Asked { call, question } => format!("{}: {}", view.call(call), one_line(&question.preview, 80)),
        Event::Answered(answer) => {
            format!("{}: {} by {}", view.call(&answer.call), decision(&answer.decision), answer.by)
        }
        Event::ToolStarted(started) => match &started.process {
            Some(process) => format!("{}: process {}", view.call(&started.call), process.pid),
            None => view.call(&started.call),
        },
        Event::ToolFinished(finished) => tool_finished(view, finished),
        Event::Compacted { upto, spent, .. } => format!("{upto} messages, {}", spent_in_words(spent)),
        Event::CompactionFailed { message, .. } => one_line(message, 100),
        Event::TurnFinished { end, .. } => explain(end).unwrap_or_else(|| "done".into()),
        Event::CacheBroke(broke) => cache_broke(broke),
        Event::SpendingSeen { scope, spent } => {
            format!("{scope:?}: {}, {} tokens", Dollars(spent.micro_usd), words::grouped(spent.tokens)).to_lowercase()
        }
        Event::Cleared { .. } | Event::DeadlinePassed => String::new(),
    }
}

pub fn hook_ran(ran: &HookRan) -> String {
    let outcome = match ran.outcome {
        HookOutcome::Passed => "passed",
        HookOutcome::Allowed => "allows",
        HookOutcome::Asked => "wants a person asked",
        HookOutcome::Blocked => "blocks",
        HookOutcome::Failed => "failed",
    };
    let said = if ran.message.is_empty() { String::new() } else { format!(": {}", one_line(&ran.message, 100)) };
    let (hook, took) = (one_line(&ran.hook, 60), words::duration(ran.took_ms));
    format!("{} {hook} {outcome}{said}  {took}", ran.on)
}

fn tool_finished(view: &View, finished: &ToolFinished) -> String {
    let changed = changes(finished).map(|(added, removed)| format!("  +{added} −{removed}")).unwrap_or_default();
    let why = match finished.outcome {
        Outcome::Ok => String::new(),
        other => format!("  {}: {}", outcome(other), one_line(&text_of(&finished.blocks), 100)),
    };
    format!("{}{changed}{why}  {}", view.call(&finished.call), words::duration(finished.took_ms))
}

fn began(view: &View, step: &Step) -> String {
    match step {
        Step::CallModel => "call the model".into(),
        Step::Judge { call } => format!("judge {}", view.call(call)),
        Step::RunTool { call } => format!("run {}", view.call(call)),
        Step::Close { calls, why } => {
            let calls: Vec<String> = calls.iter().map(|call| view.call(call)).collect();
            format!("close {} ({why:?})", calls.join(", "))
        }
        Step::Cancel { work } => format!("cancel {work}"),
        Step::Compact => "sum up".into(),
        Step::Snip { calls } => snipped(calls.len()),
        Step::SwitchModel { model, why } => switched(view.model(), model, *why),
        Step::Pause { cap } => format!("pause: {cap}"),
        Step::Finish { .. } => "finish".into(),
    }
}

fn configured(change: &Configured) -> String {
    let mode = change.mode.map(|mode| format!("mode {}", mode_name(mode)));
    let profile =
        change.profile.as_ref().map(|profile| format!("profile {}, {} turns", profile.name, profile.max_turns));
    let model = change.model.as_ref().map(|model| format!("model {model}"));
    let caps =
        change.caps.filter(|caps| *caps != Caps::default()).map(|caps| format!("caps: {}", caps_in_words(&caps)));
    [model, mode, profile, caps].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

pub fn caps_in_words(caps: &Caps) -> String {
    let of = |scope: CapScope| {
        let (name, Cap { micro_usd, tokens }) = (format!("{scope:?}").to_lowercase(), caps.of(scope));
        let money = micro_usd.map(|micro| format!("{name} {}", Dollars(micro)));
        [money, tokens.map(|tokens| format!("{name} {} tokens", words::grouped(tokens)))]
    };
    Caps::SCOPES.into_iter().flat_map(of).flatten().collect::<Vec<_>>().join(", ")
}

fn block_in_a_line(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text { text } => one_line(text, 100),
        ContentBlock::Thinking { thinking, .. } => format!("thinking: {}", one_line(thinking, 90)),
        ContentBlock::RedactedThinking { .. } => "thinking, encrypted".into(),
        ContentBlock::Image { media_type, .. } | ContentBlock::Document { media_type, .. } => media_type.clone(),
        ContentBlock::ToolUse(call) => words::call(&call.name, &call.input),
        ContentBlock::ToolResult(result) => one_line(&text_of(&result.content), 100),
        ContentBlock::Native { provider, .. } => format!("a block of {provider}'s own"),
    }
}

fn stop_name(stop: StopReason) -> String {
    serde_json::to_value(stop).ok().and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default()
}

fn spent_in_words(spent: &Spent) -> String {
    let usage = spent.usage;
    let input = words::grouped(usage.input + usage.cache_read + usage.cache_write);
    let cost = words::cost_of(&usage, spent.cost_micro_usd, spent.estimated);
    format!("{input} tokens in, {} out, {cost}", words::grouped(usage.output))
}

fn decision(decision: &Decision) -> String {
    match decision {
        Decision::Allow => "allowed".into(),
        Decision::Deny { note } if note.is_empty() => "denied".into(),
        Decision::Deny { note } => format!("denied ({})", one_line(note, 80)),
        Decision::Words { text } => one_line(text, 80),
    }
}

/// That another model speaks, and why.
pub fn switched(before: &str, model: &str, why: SwitchReason) -> String {
    let before = if before.is_empty() { "the model" } else { before };
    let text = match why {
        SwitchReason::Overloaded => format!("{before} is overloaded: going on with {model}"),
        SwitchReason::Failed => format!("{before} is out of reach: going on with {model}"),
        SwitchReason::Back => format!("back to {model}"),
    };
    harmless(&text).into_owned()
}

pub fn snipped(results: usize) -> String {
    format!("the prompt was too long: {} left out", words::count(results as u64, "old result"))
}

/// What the provider has to read anew, and whose doing it is.
pub fn cache_broke(broke: &CacheBroke) -> String {
    let why = match &broke.cause {
        CacheBreak::Section { name } => format!("section `{name}` changed"),
        CacheBreak::Order { name } => format!("the sections stand otherwise from `{name}` on"),
        CacheBreak::Tools => "the tools changed".into(),
        CacheBreak::Miss { read, idle_ms } => {
            let (read, idle) = (words::grouped(*read), words::duration(*idle_ms));
            format!("the request began as before, {idle} ago, and the provider had kept {read} tokens")
        }
    };
    match broke.tokens {
        0 => format!("the prompt cache is lost: {why}"),
        tokens => format!("the prompt cache is lost: {why}; about {} tokens are read anew", words::grouped(tokens)),
    }
}
