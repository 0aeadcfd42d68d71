//! Decides whether a call may run. Pure but for what the tool itself looks at, so it needs no task: its verdict
//! stands in the batch that begins it.

use crate::Setup;
use crate::plan::{self, Planned};
use sha2::{Digest, Sha256};
use windlass_kernel::*;
use windlass_policy::{Ask, Opinion};
use windlass_tools::{Confirm, Tool, Workspace};

pub(crate) fn judge(setup: &Setup, workspace: &Workspace, state: &State, work: Seq, id: &CallId) -> Vec<Event> {
    let Some(call) = state.call(id) else { return vec![] };
    let invalid = |reason: String| {
        let plan = CallPlan { access: Access::Read, on_crash: OnCrash::Repeat, ..CallPlan::default() };
        let (call, stage) = (id.clone(), "tool".to_owned());
        let judged = Judged { work, call, verdict: Verdict::Invalid, stage, rule: None, reason, input: None, plan };
        vec![Event::Judged(Box::new(judged))]
    };
    let Planned { entry, input, plan } = match plan::plan(setup, workspace, state, &call.name, &call.input) {
        Ok(planned) => planned,
        Err(reason) => return invalid(reason),
    };
    let weighed = plan::unpanicked(&call.name, || weigh(setup, workspace, state, &*entry.tool, &input, &plan));
    let (opinion, question) = match weighed {
        Ok(weighed) => weighed,
        Err(reason) => return invalid(reason),
    };
    let asked = question.map(|question| Event::Asked { call: id.clone(), question: Box::new(question) });
    let judged = Judged {
        work,
        call: id.clone(),
        verdict: opinion.verdict,
        stage: opinion.stage,
        rule: opinion.rule,
        reason: opinion.reason,
        input: (input != call.input).then_some(input),
        plan,
    };
    [Event::Judged(Box::new(judged))].into_iter().chain(asked).collect()
}

/// The policy's opinion of the plan with the tool's own wish heard, and the question if one is to be asked.
fn weigh(
    setup: &Setup,
    workspace: &Workspace,
    state: &State,
    tool: &dyn Tool,
    input: &serde_json::Value,
    plan: &CallPlan,
) -> (Opinion, Option<Question>) {
    let ask = Ask {
        tool: tool.name(),
        input,
        plan,
        mode: state.mode,
        workspace: &state.cwd,
        interactive: setup.interactive,
        grants: &state.grants,
    };
    let mut opinion = setup.policy.decide(&ask);
    let by_rule = opinion.stage == "rule" || opinion.stage == "grant";
    let wanted = match tool.confirm(input) {
        Confirm::AsPolicySays => false,
        Confirm::UnlessRuled => !by_rule && state.mode != PermissionMode::Bypass,
        Confirm::Always => true,
    };
    if wanted && opinion.verdict == Verdict::Allow {
        opinion = if setup.interactive { asks(tool) } else { nobody_there(tool) };
    }
    let question = (opinion.verdict == Verdict::Ask).then(|| question(tool, input, workspace, &opinion));
    (opinion, question)
}

fn asks(tool: &dyn Tool) -> Opinion {
    let reason = format!("{} asks before it acts", tool.name());
    Opinion { verdict: Verdict::Ask, stage: "confirm".into(), rule: None, reason, proposed: vec![] }
}

fn nobody_there(tool: &dyn Tool) -> Opinion {
    let reason = format!(
        "{} asks a person, and nobody can be asked here: go on with what you know, and say what you assumed",
        tool.name()
    );
    Opinion { verdict: Verdict::Deny, stage: "confirm".into(), rule: None, reason, proposed: vec![] }
}

fn question(tool: &dyn Tool, input: &serde_json::Value, workspace: &Workspace, opinion: &Opinion) -> Question {
    let asked = serde_json::json!([tool.name(), input, workspace.cwd]);
    let hash = Sha256::digest(asked.to_string().as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    let confirmation = tool.confirmation(input, workspace);
    let (kind, preview, impact, options) = match confirmation {
        Some(it) => (it.kind, it.preview, it.impact, it.options),
        None => (QuestionKind::Approval, format!("{} {input}", tool.name()), String::new(), vec![]),
    };
    Question { hash, kind, preview, impact, rule: opinion.rule.clone(), proposed: opinion.proposed.clone(), options }
}
