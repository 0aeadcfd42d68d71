//! Runs a call, and reports what it did.

use crate::Setup;
use crate::report::{Item, Reporter};
use std::sync::Arc;
use std::time::Instant;
use tokio_util::sync::CancellationToken;
use windlass_kernel::*;
use windlass_tools::{Entry, Reports, ToolReport, ToolRun, Workspace};

/// One call on its way to its tool.
pub(crate) struct Errand {
    entry: Option<Arc<Entry>>,
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
    Errand {
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
    let Errand { entry, call, input, plan, workspace, key, seen, aborts_siblings } = errand;
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
        seen,
        reports: reports(&reporter, call.clone(), plan, key),
    };
    let done = windlass_tools::run(&entry, input, run).await;
    let output = done.output;
    let event = Event::ToolFinished(Box::new(ToolFinished {
        work: reporter.work,
        call,
        outcome: done.outcome,
        blocks: output.blocks,
        value: output.value,
        output: output.output,
        files: output.files,
        aborts_siblings: aborts_siblings && done.outcome == Outcome::Error,
        took_ms: began.elapsed().as_millis() as u64,
    }));
    reporter.send(vec![Item::Fact(event)], output.blobs).await;
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
