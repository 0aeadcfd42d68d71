//! Runs a call, and reports what it did.

use crate::Setup;
use crate::hooking::{self, Hooking};
use crate::report::{Item, Reporter};
use std::sync::Arc;
use std::time::Instant;
use tokio_util::sync::CancellationToken;
use windlass_hooks::{Decision, EventName, Origin, PostToolUse, ToolResponse};
use windlass_kernel::*;
use windlass_tools::{Entry, Reports, ToolOutput, ToolReport, ToolRun, Workspace};

/// One call on its way to its tool.
pub(crate) struct Errand {
    entry: Option<Arc<Entry>>,
    /// Hooks that want to hear of it once it has run.
    hooks: Option<(Hooking, Origin)>,
    call: CallId,
    input: serde_json::Value,
    plan: CallPlan,
    workspace: Arc<Workspace>,
    key: String,
    seen: Arc<std::collections::BTreeMap<String, String>>,
    aborts_siblings: bool,
}

pub(crate) fn errand(setup: &Setup, workspace: Arc<Workspace>, state: &State, id: &CallId) -> Errand {
    let call = state.call(id);
    let name = call.map_or("", |call| &call.name);
    let hooking = setup.hooking.as_ref().filter(|hooking| hooking.wants(EventName::PostToolUse, name));
    Errand {
        hooks: hooking.map(|hooking| (hooking.clone(), hooking::origin(workspace.session, state))),
        entry: call.and_then(|call| setup.tools.get(&call.name)),
        call: id.clone(),
        input: call.map(|call| call.input.clone()).unwrap_or_default(),
        plan: call.and_then(|call| call.plan.clone()).unwrap_or_default(),
        key: idempotency_key(workspace.session, id),
        workspace,
        seen: state.files.clone(),
        aborts_siblings: state.profile.tools.on_sibling_error == OnSiblingError::AbortSiblings,
    }
}

/// What is known of a call the moment it begins to run.
pub(crate) fn started(session: SessionId, state: &State, work: Seq, id: &CallId) -> Vec<Event> {
    let plan = state.call(id).and_then(|call| call.plan.clone()).unwrap_or_default();
    vec![start(id, plan, work, idempotency_key(session, id), None)]
}

fn start(id: &CallId, plan: CallPlan, work: Seq, idempotency_key: String, process: Option<Process>) -> Event {
    Event::ToolStarted(Box::new(ToolStarted { work, call: id.clone(), plan, idempotency_key, process }))
}

/// A call's id is unique in its log, and the same when the call is run again.
fn idempotency_key(session: SessionId, call: &CallId) -> String {
    format!("{session}:{call}")
}

pub(crate) async fn run(errand: Errand, cancel: CancellationToken, reporter: Reporter) {
    let began = Instant::now();
    let Errand { entry, hooks, call, input, plan, workspace, key, seen, aborts_siblings } = errand;
    let Some(entry) = entry else {
        // It was there when the call was judged, and has been taken away since.
        let text = "the tool was removed before the call could run";
        return reporter.fact(ended(reporter.work, call, Outcome::Error, text)).await;
    };
    let run = ToolRun {
        workspace,
        call: call.clone(),
        idempotency_key: key.clone(),
        cancel,
        paths: plan.paths.clone(),
        seen,
        reports: reports(&reporter, call.clone(), plan, key),
    };
    let told = hooks.is_some().then(|| (input.clone(), run.cancel.clone()));
    let done = windlass_tools::run(&entry, input, run).await;
    let took_ms = began.elapsed().as_millis() as u64;
    let mut output = done.output;
    if let (Some((hooking, origin)), Some((input, cancel))) = (hooks, told) {
        let said = after(&hooking, &origin, &entry, &call, input, &output, &cancel, &reporter).await;
        output.blocks.extend(said.map(ContentBlock::text));
    }
    let event = Event::ToolFinished(Box::new(ToolFinished {
        work: reporter.work,
        call,
        outcome: done.outcome,
        blocks: output.blocks,
        value: output.value,
        output: output.output,
        files: output.files,
        aborts_siblings: aborts_siblings && done.outcome == Outcome::Error,
        took_ms,
    }));
    reporter.send(vec![Item::Fact(event)], output.blobs).await;
}

/// What hooks have the model told of a call that has run.
#[allow(clippy::too_many_arguments)]
async fn after(
    hooking: &Hooking,
    origin: &Origin,
    entry: &Entry,
    call: &CallId,
    input: serde_json::Value,
    output: &ToolOutput,
    cancel: &CancellationToken,
    reporter: &Reporter,
) -> Option<String> {
    let text = text_of(&output.blocks);
    let tool_response = ToolResponse { text, is_error: output.is_error, value: output.value.clone() };
    let event = windlass_hooks::Event::PostToolUse(PostToolUse {
        tool_name: entry.name().to_owned(),
        tool_input: input,
        tool_response,
        tool_use_id: call.to_string(),
    });
    let (outcome, facts) = hooking.ask(event, origin, cancel).await;
    let stop = hooking::stopped(&outcome.decision).filter(|_| !cancel.is_cancelled());
    reporter.send(facts.into_iter().chain(stop).map(Item::Fact).collect(), vec![]).await;
    let blocked = match &outcome.decision {
        Decision::Block { hook, reason } => Some(format!("The hook `{hook}` says of this call: {reason}")),
        _ => None,
    };
    let texts: Vec<String> = blocked.into_iter().chain(hooking::context(&outcome)).collect();
    (!texts.is_empty()).then(|| texts.join("\n"))
}

/// The end of a call that somebody else tells of.
pub(crate) fn ended(work: Seq, call: CallId, outcome: Outcome, text: &str) -> Event {
    Event::ToolFinished(Box::new(ToolFinished {
        work,
        call,
        outcome,
        blocks: vec![ContentBlock::text(text)],
        value: None,
        output: None,
        files: vec![],
        aborts_siblings: false,
        took_ms: 0,
    }))
}

fn reports(reporter: &Reporter, call: CallId, plan: CallPlan, key: String) -> Reports {
    let reporter = reporter.clone();
    Reports(Arc::new(move |report| match report {
        ToolReport::Spawned(process) => {
            reporter.try_fact(start(&call, plan.clone(), reporter.work, key.clone(), Some(process)));
        }
        ToolReport::Progress(text) => reporter.progress(text),
    }))
}

/// Ends what an earlier process of this session left running: nobody waits for it any more.
pub(crate) fn kill_leftovers(session: SessionId, state: &State) {
    let calls = state.turn.iter().flat_map(|turn| &turn.round).flat_map(|round| &round.calls);
    for call in calls {
        if let Phase::Running { process, .. } = &call.phase
            && call.plan.as_ref().is_none_or(|plan| plan.on_crash != OnCrash::Rejoin)
        {
            windlass_tools::kill_leftovers(session, &call.id, process.clone());
        }
    }
}
