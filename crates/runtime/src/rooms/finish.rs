//! Asks whether the turn may end: the stop checks, and the schema the answer must satisfy.

use crate::StopCheck;
use crate::report::Reporter;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use windlass_kernel::*;
use windlass_tools::Checker;

pub(crate) async fn check(checks: Vec<StopCheck>, state: State, cancel: CancellationToken, reporter: Reporter) {
    let work = reporter.work;
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

fn answer(state: &State) -> String {
    let said = state.messages.last().filter(|message| message.role == Role::Assistant);
    said.map(|message| message.text()).unwrap_or_default()
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
    fn a_misfit_is_named() {
        let schema = json!({"type": "object", "required": ["port"], "properties": {"port": {"type": "integer"}}});
        assert_eq!(misfit(&schema, "{\"port\": 80}"), None);
        assert!(misfit(&schema, "eighty").unwrap().starts_with("it is no JSON"));
        assert!(misfit(&schema, "{}").unwrap().contains("port"));
        assert!(misfit(&schema, "{\"port\": \"x\"}").unwrap().contains("port"));
    }
}
