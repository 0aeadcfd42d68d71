//! Decides whether a call may run, in one row: enabled and offered, schema, hooks, rules, the tool's own wish, mode,
//! and who is asked then. Where no hook and no reviewing model is wanted it needs no task: its verdict stands in the
//! batch that begins it.

use crate::hooking::{self, Hooking};
use crate::plan::{self, Planned};
use crate::report::{Item, Reporter};
use crate::review::{self, Reviewer};
use crate::{Setup, question};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use windlass_hooks::{Decision, EventName, PreToolUse};
use windlass_kernel::*;
use windlass_policy::{Ask, Opinion};
use windlass_tools::{Confirm, Tool, Workspace};

/// What hooks said of a call before the policy does.
#[derive(Default)]
struct Heard {
    decision: Decision,
    context: Option<String>,
}

/// The verdict, if nobody else has to be heard first; none: it takes a room.
pub(crate) fn judge(setup: &Setup, workspace: &Workspace, state: &State, work: Seq, id: &CallId) -> Option<Vec<Event>> {
    let Some(call) = state.call(id) else { return Some(vec![]) };
    let planned = match plan::plan(setup, workspace, state, &call.name, &call.input) {
        Ok(planned) => planned,
        Err(reason) => return Some(vec![invalid(work, id, reason)]),
    };
    if hooks_for(setup, &call.name).is_some() {
        return None;
    }
    let weighed = weighed(setup, workspace, state, &planned, &Decision::GoOn);
    match weighed {
        Ok((opinion, _)) if is_reviewed(state, &opinion) => None,
        Ok((opinion, question)) => Some(told(work, call, planned, opinion, question, None, None)),
        Err(reason) => Some(vec![invalid(work, id, reason)]),
    }
}

/// All that the room needs.
pub(crate) struct Case {
    pub setup: Arc<Setup>,
    pub workspace: Arc<Workspace>,
    pub state: State,
    pub call: CallId,
    pub reviewer: Reviewer,
}

/// Hears the hooks, then the policy, then, in a person's place, the reviewing model.
pub(crate) async fn deliberate(case: Case, cancel: CancellationToken, reporter: Reporter) {
    let Case { setup, workspace, state, call: id, reviewer } = &case;
    let work = reporter.work;
    let Some(call) = state.call(id) else { return };
    let planned = match plan::plan(setup, workspace, state, &call.name, &call.input) {
        Ok(planned) => planned,
        Err(reason) => return reporter.fact(invalid(work, id, reason)).await,
    };
    let (planned, heard) = match hooks_for(setup, &call.name) {
        Some(hooking) => match hear(hooking, &case, planned, &cancel, &reporter).await {
            Ok(heard) => heard,
            Err(verdict) => return reporter.send(verdict.into_iter().map(Item::Fact).collect(), vec![]).await,
        },
        None => (planned, Heard::default()),
    };
    let (opinion, question) = match weighed(setup, workspace, state, &planned, &heard.decision) {
        Ok(weighed) => weighed,
        Err(reason) => return reporter.fact(invalid(work, id, reason)).await,
    };
    let (opinion, question, reviewed) = match is_reviewed(state, &opinion) {
        true => review::ask(reviewer, &case, &planned, opinion, question, &cancel, &reporter).await,
        false => (opinion, question, None),
    };
    let events = told(work, call, planned, opinion, question, heard.context, reviewed);
    reporter.send(events.into_iter().map(Item::Fact).collect(), vec![]).await;
}

/// What the hooks say, and the call as they would have it; or the verdict, if they are against it.
async fn hear(
    hooking: &Hooking,
    case: &Case,
    planned: Planned,
    cancel: &CancellationToken,
    reporter: &Reporter,
) -> Result<(Planned, Heard), Vec<Event>> {
    let (work, id) = (reporter.work, &case.call);
    let event = windlass_hooks::Event::PreToolUse(PreToolUse {
        tool_name: planned.entry.name().to_owned(),
        tool_input: planned.input.clone(),
        tool_use_id: id.to_string(),
    });
    let origin = hooking::origin(case.workspace.session, &case.state);
    let (outcome, facts) = hooking.ask(event, &origin, cancel).await;
    reporter.send(facts.into_iter().map(Item::Fact).collect(), vec![]).await;
    let context = hooking::context(&outcome);
    if let Decision::Block { hook, reason } | Decision::Stop { hook, reason } = &outcome.decision {
        let reason = format!("the hook `{hook}` does not let it run: {reason}");
        let opinion = Opinion::new(Verdict::Deny, "hook", reason);
        let call = case.state.call(id).ok_or_else(Vec::new)?;
        let stop = hooking::stopped(&outcome.decision).filter(|_| !cancel.is_cancelled());
        let events = told(work, call, planned, opinion, None, context, None);
        return Err(events.into_iter().chain(stop).collect());
    }
    let planned = match outcome.updated_input {
        None => planned,
        Some(input) => plan::plan(&case.setup, &case.workspace, &case.state, planned.entry.name(), &input)
            .map_err(|reason| vec![invalid(work, id, format!("a hook changed the arguments, and now: {reason}"))])?,
    };
    Ok((planned, Heard { decision: outcome.decision, context }))
}

fn hooks_for<'a>(setup: &'a Setup, tool: &str) -> Option<&'a Hooking> {
    setup.hooking.as_ref().filter(|hooking| hooking.wants(EventName::PreToolUse, tool))
}

/// Whether a model answers in a person's place. What the tool itself wants to hear from a person, it cannot say.
fn is_reviewed(state: &State, opinion: &Opinion) -> bool {
    let is_asked = opinion.verdict == Verdict::Ask && !opinion.always_ask;
    is_asked && state.mode == PermissionMode::Auto && opinion.stage != "confirm"
}

pub(crate) fn invalid(work: Seq, id: &CallId, reason: String) -> Event {
    let plan = CallPlan { access: Access::Read, on_crash: OnCrash::Repeat, ..CallPlan::default() };
    Event::Judged(Box::new(Judged {
        work,
        call: id.clone(),
        verdict: Verdict::Invalid,
        stage: "tool".into(),
        rule: None,
        reason,
        input: None,
        context: None,
        review: None,
        plan,
    }))
}

fn told(
    work: Seq,
    call: &Call,
    planned: Planned,
    opinion: Opinion,
    question: Option<Question>,
    context: Option<String>,
    review: Option<Review>,
) -> Vec<Event> {
    let asked = question.map(|question| Event::Asked { call: call.id.clone(), question: Box::new(question) });
    let judged = Judged {
        work,
        call: call.id.clone(),
        verdict: opinion.verdict,
        stage: opinion.stage,
        rule: opinion.rule,
        reason: opinion.reason,
        input: (planned.input != call.input).then_some(planned.input),
        context,
        review: review.map(Box::new),
        plan: planned.plan,
    };
    [Event::Judged(Box::new(judged))].into_iter().chain(asked).collect()
}

/// The policy's opinion of the plan with the tool's own wish heard, and the question if one is to be asked. A tool that
/// panics over it fails by itself.
fn weighed(
    setup: &Setup,
    workspace: &Workspace,
    state: &State,
    planned: &Planned,
    hooks: &Decision,
) -> Result<(Opinion, Option<Question>), String> {
    let tool = &*planned.entry.tool;
    plan::unpanicked(tool.name(), || {
        let opinion = weigh(setup, state, tool, planned, hooks);
        let question =
            (opinion.verdict == Verdict::Ask).then(|| question::put(tool, &planned.input, workspace, &opinion));
        (opinion, question)
    })
}

fn weigh(setup: &Setup, state: &State, tool: &dyn Tool, planned: &Planned, hooks: &Decision) -> Opinion {
    let ask = Ask {
        tool: tool.name(),
        input: &planned.input,
        plan: &planned.plan,
        mode: state.mode,
        workspace: &state.cwd,
        interactive: setup.interactive,
        grants: &state.grants,
    };
    let is_there = setup.interactive && state.mode != PermissionMode::DontAsk;
    let opinion = by_hooks(setup.policy.decide(&ask), hooks, is_there);
    let by_rule = matches!(&*opinion.stage, "rule" | "grant");
    let wish = tool.confirm(&planned.input);
    let wanted = match wish {
        Confirm::AsPolicySays => false,
        Confirm::UnlessRuled => !by_rule && state.mode != PermissionMode::Bypass,
        Confirm::Always => true,
    };
    match opinion.verdict {
        Verdict::Allow if wanted && is_there => asks(tool, wish),
        Verdict::Allow if wanted => nobody_there(tool, &planned.plan),
        // Neither a rule nor a model can answer for a person here, whatever else asks.
        Verdict::Ask if wish == Confirm::Always && !is_there => nobody_there(tool, &planned.plan),
        Verdict::Ask if wish == Confirm::Always => Opinion { always_ask: true, proposed: vec![], ..opinion },
        _ => opinion,
    }
}

/// A hook's yes satisfies an ask, and its ask stands beside the rules'; a no of the policy stands.
fn by_hooks(opinion: Opinion, hooks: &Decision, is_there: bool) -> Opinion {
    match hooks {
        Decision::Allow { hook, reason } if opinion.verdict == Verdict::Ask && !opinion.always_ask => {
            Opinion::new(Verdict::Allow, "hook", format!("the hook `{hook}` allows it: {reason}"))
        }
        Decision::Ask { hook, reason } if opinion.verdict == Verdict::Allow => {
            let reason = format!("the hook `{hook}` wants a person to be asked: {reason}");
            let verdict = if is_there { Verdict::Ask } else { Verdict::Deny };
            Opinion { always_ask: true, ..Opinion::new(verdict, "hook", reason) }
        }
        // What a rule asks as well is not for a rule or a model to answer then.
        Decision::Ask { .. } if opinion.verdict == Verdict::Ask && is_there => {
            Opinion { always_ask: true, proposed: vec![], ..opinion }
        }
        Decision::Ask { hook, reason } if opinion.verdict == Verdict::Ask => {
            let reason = format!("the hook `{hook}` wants a person to be asked, and nobody is there: {reason}");
            Opinion::new(Verdict::Deny, "hook", reason)
        }
        _ => opinion,
    }
}

fn asks(tool: &dyn Tool, wish: Confirm) -> Opinion {
    let reason = format!("{} asks before it acts", tool.name());
    Opinion { always_ask: wish == Confirm::Always, ..Opinion::new(Verdict::Ask, "confirm", reason) }
}

fn nobody_there(tool: &dyn Tool, plan: &CallPlan) -> Opinion {
    let way_on = match plan.tags.iter().any(|tag| tag == "ask") {
        true => "go on with what you know, and say what you assumed",
        false => "do it another way, or say what you would have needed",
    };
    let reason = format!("{} asks a person about this, and nobody can be asked here: {way_on}", tool.name());
    Opinion::new(Verdict::Deny, "confirm", reason)
}
