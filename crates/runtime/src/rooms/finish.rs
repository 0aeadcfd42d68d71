//! Asks whether the turn may end: the stop checks, and the schema the answer must satisfy.

use crate::hooking;
use crate::report::{Item, Reporter};
use crate::{Setup, StopCheck};
use serde_json::Value;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use windlass_hooks::{Decision, EventName, Stop, SubagentStop};
use windlass_kernel::*;
use windlass_tools::Checker;

pub(crate) async fn check(
    setup: Arc<Setup>,
    session: SessionId,
    state: State,
    cancel: CancellationToken,
    reporter: Reporter,
) {
    let work = reporter.work;
    if let Some(event) = hooked(&setup, session, &state, &cancel, &reporter).await {
        return reporter.fact(event).await;
    }
    let checks = setup.stop_checks.clone();
    let end = state.turn.as_ref().and_then(|turn| turn.finishing.as_ref()).map_or(End::Done, |it| it.end.clone());
    // A check may look at files or run tests: it has a thread of its own, and may be left behind there.
    let asked = tokio::task::spawn_blocking(move || objection(&checks, &state));
    let event = tokio::select! {
        _ = cancel.cancelled() => Event::TurnFinished { work, end: End::Interrupted },
        objection = asked => match objection {
            Ok(Some(Objection::Check(text))) => Event::StopBlocked { work, text, repair: false },
            Ok(Some(Objection::Repair(problem))) => Event::StopBlocked { work, text: repair(&problem), repair: true },
            Ok(Some(Objection::Invalid(problem))) => Event::TurnFinished { work, end: End::InvalidAnswer { problem } },
            // A check that panics has no objection to make.
            Ok(None) | Err(_) => Event::TurnFinished { work, end },
        },
    };
    reporter.fact(event).await;
}

/// The event of a turn's end, as hooks know it.
pub(crate) fn stop_event(state: &State) -> EventName {
    if state.parent.is_some() { EventName::SubagentStop } else { EventName::Stop }
}

/// What hooks say of the end: a block sends the model back to work, once a turn.
async fn hooked(
    setup: &Setup,
    session: SessionId,
    state: &State,
    cancel: &CancellationToken,
    reporter: &Reporter,
) -> Option<Event> {
    let name = stop_event(state);
    let hooking = setup.hooking.as_ref().filter(|hooking| hooking.wants(name, &state.agent))?;
    let stop_hook_active = state.turn.as_ref().is_some_and(|turn| turn.stop_blocks > 0);
    let last_assistant_message = Some(answer(state)).filter(|text| !text.is_empty());
    let event = match name {
        EventName::SubagentStop => {
            windlass_hooks::Event::SubagentStop(SubagentStop { stop_hook_active, last_assistant_message })
        }
        _ => windlass_hooks::Event::Stop(Stop { stop_hook_active, last_assistant_message }),
    };
    let (outcome, facts) = hooking.ask(event, &hooking::origin(session, state), cancel).await;
    reporter.send(facts.into_iter().map(Item::Fact).collect(), vec![]).await;
    match outcome.decision {
        Decision::Block { reason, .. } if !stop_hook_active && !cancel.is_cancelled() => {
            Some(Event::StopBlocked { work: reporter.work, text: reason, repair: false })
        }
        _ => None,
    }
}

/// Why the turn does not end as the model would have it.
enum Objection {
    Check(String),
    /// The answer does not fit, and the model is told so.
    Repair(String),
    /// It does not fit now, either.
    Invalid(String),
}

fn objection(checks: &[StopCheck], state: &State) -> Option<Objection> {
    let turn = state.turn.as_ref()?;
    if turn.stop_blocks < state.profile.max_stop_blocks
        && let Some(text) = checks.iter().find_map(|check| check(state))
    {
        return Some(Objection::Check(text));
    }
    let problem = misfit(turn.output_schema.as_deref()?, &answer(state))?;
    Some(if turn.repairs == 0 { Objection::Repair(problem) } else { Objection::Invalid(problem) })
}

/// What the model said last: a message, and those before it that it goes on from because they hit their output limit.
fn answer(state: &State) -> String {
    let mut parts = vec![];
    for pair in state.messages.rchunks(2) {
        let Some(said) = pair.last().filter(|message| message.role == Role::Assistant) else { break };
        parts.push(said.text());
        if pair.len() < 2 || pair[0].text() != CONTINUE_TEXT {
            break;
        }
    }
    parts.into_iter().rev().collect()
}

/// In what `answer` fails `schema`.
fn misfit(schema: &Value, answer: &str) -> Option<String> {
    let value: Value = match serde_json::from_str(json_part(answer)) {
        Ok(value) => value,
        Err(error) => return Some(format!("it is no JSON: {error}")),
    };
    match Checker::compile(schema) {
        Ok(checker) => Some(checker.complaints(&value)).filter(|wrong| !wrong.is_empty()).map(|wrong| wrong.join("; ")),
        Err(problem) => Some(format!("the wanted schema is none: {problem}")),
    }
}

/// The JSON of an answer: all of it, or what stands in its one code fence.
pub fn json_part(answer: &str) -> &str {
    let answer = answer.trim();
    let fenced = answer.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    let inside = fenced.and_then(|fenced| fenced.split_once('\n')).map(|(_, inside)| inside.trim());
    inside.filter(|inside| !inside.contains("```")).unwrap_or(answer)
}

fn repair(problem: &str) -> String {
    format!(
        "Your answer does not satisfy the JSON Schema that was asked for: {problem}. Answer again with the corrected \
         JSON document alone: no other words, no code fence."
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_answer_is_json_alone_or_in_one_fence() {
        assert_eq!(json_part(" {\"a\": 1}\n"), "{\"a\": 1}");
        assert_eq!(json_part("```json\n{\"a\": 1}\n```"), "{\"a\": 1}");
        assert_eq!(json_part("Here:\n```json\n{}\n```"), "Here:\n```json\n{}\n```");
    }

    #[test]
    fn an_answer_that_went_on_is_one() {
        let (user, assistant) = (
            |text: &str| Message::user(vec![ContentBlock::text(text)]),
            |text: &str| Message::assistant(vec![ContentBlock::text(text)]),
        );
        let of = |messages: Vec<Message>| {
            answer(&State { messages: messages.into_iter().map(Arc::new).collect(), ..State::default() })
        };
        let begun =
            vec![user("go"), assistant("Before."), user("which port?"), assistant("{\"po"), user(CONTINUE_TEXT)];
        assert_eq!(of(begun.iter().cloned().chain([assistant("rt\": 80}")]).collect()), "{\"port\": 80}");
        assert_eq!(of(begun), "");
        assert_eq!(of(vec![assistant("Alone.")]), "Alone.");
    }

    #[test]
    fn a_misfit_is_named() {
        let schema = json!({"type": "object", "required": ["port"], "properties": {"port": {"type": "integer"}}});
        assert_eq!(misfit(&schema, "{\"port\": 80}"), None);
        assert!(misfit(&schema, "eighty").unwrap().starts_with("it is no JSON"));
        assert!(misfit(&schema, "{}").unwrap().contains("port"));
        assert!(misfit(&schema, "{\"port\": \"x\"}").unwrap().contains("port"));
    }
}
