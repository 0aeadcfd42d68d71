//! Answers to questions: what of them only the tools and the policy can check, and which others they settle.

use crate::Setup;
use crate::plan::{plan, unpanicked};
use windlass_kernel::*;
use windlass_policy::{Ask, Rule};
use windlass_tools::{Confirm, Workspace};

/// The answer as it enters the log: a rule in it can be read, and what it lets run is held to what the mode and the
/// rules deny now, which may be more than when it was asked.
pub(crate) fn check(
    setup: &Setup,
    workspace: &Workspace,
    state: &State,
    mut answer: Box<Answered>,
) -> Result<Box<Answered>, Rejected> {
    let wrong = |problem: String| Rejected::WrongAnswer { call: answer.call.clone(), problem };
    let allows = answer.decision == Decision::Allow;
    let every_time = |question: &Question| question.every_time;
    if answer.scope != Scope::Once && state.asking().any(|(call, asked)| call.id == answer.call && every_time(asked)) {
        return Err(wrong("this is asked every time: it can be allowed once only".into()));
    }
    for rule in answer.rules() {
        if !allows {
            return Err(wrong(format!("only an allow can add a rule: leave {rule} out")));
        }
        Rule::parse(rule).map_err(|error| wrong(error.to_string()))?;
    }
    if !allows && answer.changed.is_some() {
        return Err(wrong("only an allow can change the arguments: leave them out".into()));
    }
    // What is not asked is turned down by the kernel, with its own words.
    let Some(call) = state.call(&answer.call).filter(|_| allows) else { return Ok(answer) };
    let input = answer.changed.as_ref().map_or(&call.input, |changed| &changed.input);
    let planned = plan(setup, workspace, state, &call.name, input).map_err(wrong)?;
    let opinion = setup.policy.decide(&ask(state, &call.name, &planned.input, &planned.plan));
    if opinion.verdict == Verdict::Deny {
        return Err(wrong(opinion.reason));
    }
    if answer.changed.is_some() {
        answer.changed = Some(Changed { input: planned.input, plan: planned.plan });
    }
    Ok(answer)
}

/// Answers for the open questions that a rule just given covers.
pub(crate) fn covered(setup: &Setup, state: &State, answer: &Answered) -> Vec<Event> {
    let rules: Vec<&str> = answer.rules().map(String::as_str).collect();
    if rules.is_empty() || answer.scope == Scope::Once {
        return vec![];
    }
    let approvals = state.asking().filter(|(_, question)| question.kind == QuestionKind::Approval);
    // A hook that wants a person asked is not among the rules, and a rule is no answer to it.
    let covered = approvals.filter(|(call, question)| !question.every_time && is_granted(setup, state, call));
    let by = format!("rule {}", rules.join(", "));
    covered.map(|(call, question)| answered(call, question, Decision::Allow, by.clone())).collect()
}

/// Whether a person's rule lets `call` run. That the mode would is not enough: it was asked about all the same.
fn is_granted(setup: &Setup, state: &State, call: &Call) -> bool {
    let plan = call.plan.clone().unwrap_or_default();
    let opinion = setup.policy.decide(&ask(state, &call.name, &call.input, &plan));
    let Some(entry) = setup.tools.get(&call.name) else { return false };
    let insists = || unpanicked(&call.name, || entry.tool.confirm(&call.input)).map(|wish| wish == Confirm::Always);
    opinion.verdict == Verdict::Allow && opinion.stage == "grant" && insists() == Ok(false)
}

/// Answers for every open question where nobody is there to be asked any more.
pub(crate) fn nobody(state: &State) -> Vec<Event> {
    let no = || Decision::Deny { note: "nobody is there to be asked any more".into() };
    state.asking().map(|(call, question)| answered(call, question, no(), "nobody".into())).collect()
}

fn answered(call: &Call, question: &Question, decision: Decision, by: String) -> Event {
    let (call, hash) = (call.id.clone(), question.hash.clone());
    let answer =
        Answered { call, hash, decision, scope: Scope::Once, rule: None, more_rules: vec![], changed: None, by };
    Event::Answered(Box::new(answer))
}

/// The call as the policy is asked about it; somebody is there, for somebody answers.
fn ask<'a>(state: &'a State, tool: &'a str, input: &'a serde_json::Value, plan: &'a CallPlan) -> Ask<'a> {
    let (mode, workspace, grants) = (state.mode, &state.cwd, &state.grants);
    Ask { tool, input, plan, mode, workspace, interactive: true, grants }
}
