//! Where wishes become facts: slash commands are expanded, prompts get their context, answers reach their likes.

use crate::Setup;
use bytes::Bytes;
use serde_json::Value;
use windlass_kernel::*;
use windlass_policy::Ask;
use windlass_prompt::{Slash, UserContext};

/// What a command from outside amounts to: a slash command in a prompt is the command it names.
pub(crate) fn expand(setup: &Setup, command: Command, blobs: &[(BlobRef, Bytes)]) -> Result<Command, Rejected> {
    let Command::Prompt(mut prompt) = command else { return Ok(command) };
    let text = text_of(&prompt.blocks);
    match windlass_prompt::parse_slash(&text) {
        Slash::Clear => return Ok(Command::Clear { input: prompt.input }),
        Slash::Compact { instructions } => return Ok(Command::Compact { instructions }),
        Slash::FrontEnd { name, .. } => {
            let hint = "it is a command of the terminal, not of the session".to_owned();
            return Err(Rejected::UnknownCommand { name, hint });
        }
        Slash::Unknown { name, near } => {
            let hint = near.map_or("/help lists those there are".to_owned(), |near| format!("did you mean /{near}?"));
            return Err(Rejected::UnknownCommand { name, hint });
        }
        Slash::NotACommand => {}
    }
    if prompt.intent.is_none() {
        prompt.intent = windlass_prompt::extract_intent(&text);
    }
    if prompt.context.is_none() {
        prompt.context = Some(context(setup, &prompt, blobs));
    }
    Ok(Command::Prompt(prompt))
}

fn context(setup: &Setup, prompt: &Prompted, blobs: &[(BlobRef, Bytes)]) -> String {
    let bytes = prompt.data.as_ref().and_then(|data| blobs.iter().find(|(blob, _)| *blob == data.blob));
    let data: Option<Value> = bytes.and_then(|(_, bytes)| serde_json::from_slice(bytes).ok());
    windlass_prompt::user_context(&UserContext {
        current_time: (setup.world.local_time)((setup.world.now)()),
        intent: prompt.intent.as_deref(),
        data: data.as_ref(),
        constraints: &prompt.constraints,
    })
}

/// Answers for the open questions that a rule just given covers.
pub(crate) fn covered(setup: &Setup, state: &State, answer: &Answered) -> Vec<Event> {
    let Some(rule) = answer.rule.as_ref().filter(|_| answer.scope != Scope::Once) else { return vec![] };
    let allowed = |call: &Call| {
        let plan = call.plan.clone().unwrap_or_default();
        let ask = Ask {
            tool: &call.name,
            input: &call.input,
            plan: &plan,
            mode: state.mode,
            workspace: &state.cwd,
            interactive: setup.interactive,
            grants: &state.grants,
        };
        setup.policy.decide(&ask).verdict == Verdict::Allow
    };
    let approvals = state.asking().filter(|(_, question)| question.kind == QuestionKind::Approval);
    let answers = approvals.filter(|(call, _)| allowed(call)).map(|(call, question)| {
        Event::Answered(Box::new(Answered {
            call: call.id.clone(),
            hash: question.hash.clone(),
            decision: Decision::Allow,
            scope: Scope::Once,
            rule: None,
            changed: None,
            by: format!("rule {rule}"),
        }))
    });
    answers.collect()
}
