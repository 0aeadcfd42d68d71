//! What must hold of a session after it was killed and taken up again, whatever happened in between.

use super::evidence::{kind, seq};
use super::script;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Every line that was told stands in the log, byte for byte.
pub fn told_is_stored(told: &[String], log: &[String]) -> Result<(), String> {
    let stored: BTreeSet<&str> = log.iter().map(String::as_str).collect();
    match told.iter().find(|line| !stored.contains(line.as_str())) {
        Some(line) => Err(format!("told and not in the log: {line}")),
        None => Ok(()),
    }
}

/// The log has no gap, and no call of it has two results.
pub fn log_is_whole(records: &[Value]) -> Result<(), String> {
    for (at, record) in records.iter().enumerate() {
        if seq(record) != at as u64 + 1 {
            return Err(format!("record {} stands where {} belongs", seq(record), at + 1));
        }
    }
    let mut finished = BTreeSet::new();
    for record in records.iter().filter(|record| kind(record) == "tool_finished") {
        let call = record["event"]["call"].as_str().unwrap_or_default();
        if !finished.insert(call) {
            return Err(format!("call {call} has two results in the log"));
        }
    }
    Ok(())
}

/// The text of each call's result in a request; an error if any call has none, or two, or another's stands there.
pub fn results(request: &Value) -> Result<BTreeMap<String, CallResult>, String> {
    let messages: &[Value] = request["messages"].as_array().map_or(&[], Vec::as_slice);
    let mut results = BTreeMap::new();
    for (at, message) in messages.iter().enumerate() {
        let asked: Vec<&str> = blocks(message, "tool_use").filter_map(|block| block["id"].as_str()).collect();
        let next = messages.get(at + 1);
        let answers: Vec<&Value> = next.iter().flat_map(|next| blocks(next, "tool_result")).collect();
        if message["role"] != "assistant" {
            continue;
        }
        let answered: Vec<&str> = answers.iter().filter_map(|block| block["tool_use_id"].as_str()).collect();
        if asked != answered {
            return Err(format!("the calls {asked:?} of message {at} are answered by {answered:?}"));
        }
        for answer in answers {
            let id = answer["tool_use_id"].as_str().unwrap_or_default().to_string();
            let result = CallResult { text: text(&answer["content"]), is_error: answer["is_error"] == true };
            if results.insert(id.clone(), result).is_some() {
                return Err(format!("the call id {id} stands twice in one request"));
            }
        }
    }
    Ok(results)
}

/// What the model was told of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallResult {
    pub text: String,
    pub is_error: bool,
}

fn blocks<'a>(message: &'a Value, kind: &'a str) -> impl Iterator<Item = &'a Value> {
    message["content"].as_array().into_iter().flatten().filter(move |block| block["type"] == kind)
}

/// A content's text, whether it is a string or blocks.
fn text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        content => content.as_array().into_iter().flatten().filter_map(|block| block["text"].as_str()).collect(),
    }
}

/// The facts among the lines told stand in the first request after the crash. The text of an answer that was broken
/// off before it called anything is none: that answer is asked for again, and is in the log only.
pub fn facts_are_known(told: &[String], request: &Value) -> Result<(), String> {
    let results = results(request)?;
    let said: String =
        request["messages"].as_array().into_iter().flatten().map(|message| text(&message["content"])).collect();
    let records: Result<Vec<Value>, _> = told.iter().map(|line| serde_json::from_str::<Value>(line)).collect();
    let records = records.map_err(|error| format!("told, and no JSON: {error}"))?;
    let standing: BTreeSet<u64> = records.iter().filter_map(standing_answer).collect();
    for (line, record) in told.iter().zip(&records) {
        let event = &record["event"];
        let stands = event["work"].as_u64().is_some_and(|work| standing.contains(&work));
        let known = match kind(record) {
            "prompted" => said.contains(&text(&event["blocks"])),
            "tool_finished" => {
                let result = event["call"].as_str().and_then(|call| results.get(call));
                result.is_some_and(|result| result.text == text(&event["blocks"]))
            }
            "block_finished" if event["block"]["type"] == "tool_use" => {
                event["block"]["id"].as_str().is_some_and(|id| results.contains_key(id))
            }
            "block_finished" if event["block"]["type"] == "text" && stands => {
                said.contains(event["block"]["text"].as_str().unwrap_or_default())
            }
            _ => true,
        };
        if !known {
            return Err(format!("told and not in the next request: {line}"));
        }
    }
    Ok(())
}

/// The answer that a record makes stand for good: its message is whole, or it has called something.
fn standing_answer(record: &Value) -> Option<u64> {
    let event = &record["event"];
    let stands = match kind(record) {
        "model_finished" => true,
        "block_finished" => event["block"]["type"] == "tool_use",
        _ => false,
    };
    event["work"].as_u64().filter(|_| stands)
}

/// No command ran twice, none ran that was answered otherwise, and what was answered well has run.
pub fn effects_fit(ledger: &[String], last_request: &Value) -> Result<(), String> {
    let mut lines: BTreeMap<&str, usize> = BTreeMap::new();
    ledger.iter().for_each(|line| *lines.entry(line).or_default() += 1);
    if let Some((line, times)) = lines.iter().find(|(_, times)| **times > 1) {
        return Err(format!("{line} stands {times} times in the ledger"));
    }
    let results = results(last_request)?;
    let messages = last_request["messages"].as_array().into_iter().flatten();
    for call in messages.flat_map(|message| blocks(message, "tool_use")) {
        let Some(line) = call["input"]["command"].as_str().and_then(script::line_of) else { continue };
        let Some(result) = call["id"].as_str().and_then(|id| results.get(id)) else { continue };
        let ran = lines.contains_key(line.as_str());
        if !result.is_error && !ran {
            return Err(format!("{line} is not in the ledger, and the model was told {:?}", result.text));
        }
        if ran && result.is_error && !owns_up(&result.text) {
            return Err(format!("{line} is in the ledger, and the model was told {:?}", result.text));
        }
    }
    Ok(())
}

/// Whether a failed result says that the command may have run.
fn owns_up(text: &str) -> bool {
    text.to_lowercase().contains("outcome unknown")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn request(results: Value) -> Value {
        json!({ "messages": [
            { "role": "user", "content": "Go through the list." },
            { "role": "assistant", "content": [
                { "type": "text", "text": "Round 0." },
                { "type": "tool_use", "id": "a", "input": { "command": "echo call-0-end >> ledger.txt" } },
            ] },
            { "role": "user", "content": results },
        ] })
    }

    fn answered(text: &str, is_error: bool) -> Value {
        request(json!([{ "type": "tool_result", "tool_use_id": "a", "content": text, "is_error": is_error }]))
    }

    #[test]
    fn a_call_has_exactly_one_result() {
        assert!(results(&answered("ok", false)).is_ok());
        assert!(results(&request(json!([]))).is_err());
        let twice =
            json!([{ "type": "tool_result", "tool_use_id": "a" }, { "type": "tool_result", "tool_use_id": "a" }]);
        assert!(results(&request(twice)).is_err());
    }

    #[test]
    fn a_line_told_and_lost_is_found() {
        let log = ["{\"seq\":1}".to_string(), "{\"seq\":2}".to_string()];
        assert!(told_is_stored(&log[..1], &log).is_ok());
        assert!(told_is_stored(&["{\"seq\": 1}".to_string()], &log).is_err());
        let records: Vec<Value> = vec![json!({ "seq": 1 }), json!({ "seq": 3 })];
        assert!(log_is_whole(&records).unwrap_err().contains("where 2 belongs"));
        let finished = |seq: u64| json!({ "seq": seq, "event": { "type": "tool_finished", "call": "a" } });
        assert!(log_is_whole(&[finished(1), finished(2)]).unwrap_err().contains("two results"));
    }

    #[test]
    fn what_was_told_must_be_known_to_the_model() {
        let finished = |text: &str| {
            let event = json!({ "type": "tool_finished", "call": "a", "blocks": [{ "type": "text", "text": text }] });
            json!({ "seq": 1, "event": event }).to_string()
        };
        assert!(facts_are_known(&[finished("ok")], &answered("ok", false)).is_ok());
        assert!(facts_are_known(&[finished("ok")], &answered("outcome unknown", true)).is_err());
    }

    #[test]
    fn what_an_answer_that_stands_has_said_must_be_known() {
        let said = |text: &str| {
            let block = json!({ "type": "text", "text": text });
            json!({ "seq": 1, "event": { "type": "block_finished", "work": 7, "block": block } }).to_string()
        };
        let whole = json!({ "seq": 2, "event": { "type": "model_finished", "work": 7 } }).to_string();
        assert!(facts_are_known(&[said("Round 0."), whole.clone()], &answered("ok", false)).is_ok());
        assert!(facts_are_known(&[said("Round 1."), whole], &answered("ok", false)).is_err());
        assert!(facts_are_known(&[said("Round 1.")], &answered("ok", false)).is_ok());
    }

    #[test]
    fn an_effect_that_was_kept_quiet_or_made_twice_is_found() {
        let line = || script::line(0);
        assert!(effects_fit(&[line()], &answered("", false)).is_ok());
        assert!(effects_fit(&[line()], &answered("Outcome unknown: it may have run.", true)).is_ok());
        assert!(effects_fit(&[], &answered("Outcome unknown: it may have run.", true)).is_ok());
        assert!(effects_fit(&[], &answered("", false)).is_err());
        assert!(effects_fit(&[line()], &answered("it was not run", true)).is_err());
        assert!(effects_fit(&[line(), line()], &answered("", false)).is_err());
    }
}
