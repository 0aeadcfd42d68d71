//! A Gemini request: its contents as messages, and the rules they are held to.

use crate::refusal::Refusal;
use crate::request::{Content, Message, Part, Request, Tool};
use crate::script::Flow;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use base64::{Engine, alphabet};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// What the vendor takes in place of a signature for a call that another model made.
const FOREIGN: [&str; 2] = ["skip_thought_signature_validator", "context_engineering_is_the_way_to_go"];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    #[serde(borrow, default)]
    contents: Option<Vec<Turn<'a>>>,
    #[serde(borrow, default, alias = "system_instruction")]
    system_instruction: Option<Turn<'a>>,
    #[serde(borrow, default)]
    tools: Option<Vec<ToolSet<'a>>>,
}

#[derive(Deserialize)]
struct Turn<'a> {
    #[serde(borrow, default)]
    role: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    parts: Option<Vec<Piece<'a>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Piece<'a> {
    #[serde(borrow, default)]
    text: Option<&'a RawValue>,
    #[serde(default)]
    thought: Option<bool>,
    #[serde(borrow, default, alias = "thought_signature")]
    thought_signature: Option<Cow<'a, str>>,
    #[serde(borrow, default, alias = "function_call")]
    function_call: Option<Call<'a>>,
    #[serde(borrow, default, alias = "function_response")]
    function_response: Option<Answered<'a>>,
    #[serde(default, alias = "inline_data")]
    inline_data: Option<IgnoredAny>,
    #[serde(default, alias = "file_data")]
    file_data: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Call<'a> {
    #[serde(borrow, default)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    args: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Answered<'a> {
    #[serde(borrow, default)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    response: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolSet<'a> {
    #[serde(borrow, default, alias = "function_declarations")]
    function_declarations: Option<Vec<Tool<'a>>>,
}

/// The one key of a response that tells its tool failed.
#[derive(Deserialize)]
struct Failure {
    error: Option<IgnoredAny>,
}

pub fn read(text: &str) -> serde_json::Result<Request<'_>> {
    let body: Body = serde_json::from_str(text)?;
    let contents = body.contents.unwrap_or_default();
    let flaw = check(&contents).err();
    let system = body.system_instruction.filter(|_| !contents.is_empty());
    let system = system.map(|turn| Turn { role: Some("system".into()), ..turn });
    let messages = system.into_iter().chain(contents.into_iter().map(named));
    let messages = Some(messages.map(message).collect());
    let tools = body.tools.map(|sets| sets.into_iter().filter_map(|set| set.function_declarations).flatten().collect());
    Ok(Request { messages, tools, flaw, ..Request::default() })
}

/// A turn by no name is the user's.
fn named(turn: Turn) -> Turn {
    let role = match turn.role.as_deref() {
        Some("model") => "assistant".into(),
        _ => "user".into(),
    };
    Turn { role: Some(role), ..turn }
}

fn message(turn: Turn) -> Message {
    let parts = turn.parts.unwrap_or_default().into_iter().map(part).collect();
    Message { role: turn.role.unwrap_or_default(), content: Content::Parts(parts), ..Message::default() }
}

fn part(piece: Piece) -> Part {
    let signature = piece.thought_signature;
    if let Some(Call { id, name, args }) = piece.function_call {
        return Part { kind: "tool_use".into(), id, name, input: args, signature, ..Part::default() };
    }
    if let Some(Answered { id, name, response }) = piece.function_response {
        let failed = |raw: &RawValue| serde_json::from_str::<Failure>(raw.get()).is_ok_and(|f| f.error.is_some());
        let is_error = response.map(failed);
        let kind = "tool_result".into();
        return Part { kind, tool_use_id: id, name, content: response, is_error, ..Part::default() };
    }
    match piece.text {
        Some(text) if piece.thought != Some(true) => {
            Part { kind: "text".into(), text: Some(text), signature, ..Part::default() }
        }
        Some(_) => Part { kind: "thinking".into(), signature, ..Part::default() },
        None => Part { kind: "data".into(), ..Part::default() },
    }
}

/// Refuses contents as the vendor would.
fn check(contents: &[Turn]) -> Result<(), Refusal> {
    let mut waiting: Vec<&Call> = Vec::new();
    for (at, turn) in contents.iter().enumerate() {
        let pieces = turn.parts.as_deref().unwrap_or_default();
        pieces_check(at, pieces)?;
        let responses: Vec<&Answered> = pieces.iter().filter_map(|piece| piece.function_response.as_ref()).collect();
        match turn.role.as_deref().unwrap_or("user") {
            "user" => answered(at, &waiting, &responses)?,
            "model" if !waiting.is_empty() => answered(at, &waiting, &[])?,
            "model" if !responses.is_empty() => return Err(misplaced(at)),
            "model" => {}
            other => {
                let rule = format!("Please use a valid role: user, model. contents[{at}].role is '{other}'.");
                return Err(Refusal::invalid(rule));
            }
        }
        waiting = pieces.iter().filter_map(|piece| piece.function_call.as_ref()).collect();
        let after_user = at > 0 && contents[at - 1].role.as_deref() != Some("model");
        if !waiting.is_empty() && (turn.role.as_deref() != Some("model") || !after_user) {
            let rule = "Please ensure that function call turn comes immediately after a user turn or after a function \
                        response turn.";
            return Err(Refusal::invalid(format!("{rule} (contents[{at}])")));
        }
    }
    answered(contents.len(), &waiting, &[])
}

fn pieces_check(at: usize, pieces: &[Piece]) -> Result<(), Refusal> {
    let wrong = |rule: String| Err(Refusal::invalid(format!("* GenerateContentRequest.contents[{at}].parts{rule}")));
    if pieces.is_empty() {
        return wrong(": contents.parts must not be empty.".into());
    }
    for (index, piece) in pieces.iter().enumerate() {
        let data = [
            piece.text.is_some(),
            piece.function_call.is_some(),
            piece.function_response.is_some(),
            piece.inline_data.is_some(),
            piece.file_data.is_some(),
        ];
        if data.iter().filter(|given| **given).count() != 1 {
            return wrong(format!("[{index}].data: required oneof field 'data' must have one initialized field"));
        }
        let call = piece.function_call.as_ref().map(|call| (&call.name, call.args));
        let response = piece.function_response.as_ref().map(|response| (&response.name, response.response));
        for (name, object) in [call, response].into_iter().flatten() {
            if name.as_deref().is_none_or(str::is_empty) {
                return wrong(format!("[{index}]: the name of a function cannot be empty."));
            }
            if object.is_some_and(|raw| !raw.get().starts_with('{')) {
                return wrong(format!("[{index}]: `args` and `response` are objects."));
            }
        }
        if piece.function_response.is_some() && response.is_some_and(|(_, object)| object.is_none()) {
            return wrong(format!("[{index}].function_response.response: required field is missing."));
        }
    }
    Ok(())
}

fn misplaced(at: usize) -> Refusal {
    let rule = "Please ensure that function response turn comes immediately after a function call turn.";
    Refusal::invalid(format!("{rule} (contents[{at}])"))
}

/// Every call of the turn before has its response, in order.
fn answered(at: usize, calls: &[&Call], responses: &[&Answered]) -> Result<(), Refusal> {
    if calls.is_empty() && !responses.is_empty() {
        return Err(misplaced(at));
    }
    if calls.len() != responses.len() {
        let rule = "Please ensure that the number of function response parts is equal to the number of function call \
                    parts of the function call turn.";
        return Err(Refusal::invalid(format!("{rule} (contents[{at}]: {} of {})", responses.len(), calls.len())));
    }
    for (call, response) in calls.iter().zip(responses) {
        let same_id = call.id.as_deref().is_none_or(|id| id.is_empty() || response.id.as_deref() == Some(id));
        if call.name != response.name || !same_id {
            let of = |id: &Option<Cow<str>>, name: &Option<Cow<str>>| {
                format!("{} {}", name.as_deref().unwrap_or_default(), id.as_deref().unwrap_or("without an id"))
            };
            let (call, response) = (of(&call.id, &call.name), of(&response.id, &response.name));
            let rule =
                format!("contents[{at}]: function response `{response}` stands where `{call}` is to be answered.");
            return Err(Refusal::invalid(rule));
        }
    }
    Ok(())
}

/// A signature that went out with a call must come back with it. Which did is read from the script: from its steps that
/// make the very calls of the turn.
pub fn signatures(flow: &Flow, request: &Request) -> Result<(), Refusal> {
    for (at, message) in request.messages().iter().enumerate().filter(|(_, message)| message.role == "assistant") {
        let calls: Vec<&Part> = message.parts().iter().filter(|part| part.kind == "tool_use").collect();
        let alike = |made: &Vec<(&str, Option<&str>)>| {
            made.len() == calls.len()
                && made.iter().zip(&calls).all(|((name, _), call)| call.name.as_deref() == Some(name))
        };
        let steps: Vec<_> = flow.steps.iter().map(|step| step.signed_calls()).filter(alike).collect();
        for (k, call) in calls.iter().enumerate() {
            let sent: Vec<&str> = steps.iter().filter_map(|made| made[k].1).collect();
            let name = call.name.as_deref().unwrap_or_default();
            match call.signature.as_deref() {
                _ if sent.is_empty() => {}
                None if sent.len() == steps.len() => {
                    let rule = "Function call is missing a thought_signature in functionCall parts.";
                    return Err(Refusal::invalid(format!("{rule} Function call `{name}` of message {at}.")));
                }
                Some(given) if !FOREIGN.contains(&given) && !sent.iter().any(|sent| same(sent, given)) => {
                    let rule = format!("Thought signature is not valid: function call `{name}` of message {at}.");
                    return Err(Refusal::invalid(rule));
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// Signatures are bytes; either alphabet of base64 may spell them.
fn same(sent: &str, given: &str) -> bool {
    let bytes = |text: &str| {
        let config = GeneralPurposeConfig::new()
            .with_decode_allow_trailing_bits(true)
            .with_decode_padding_mode(DecodePaddingMode::Indifferent);
        let text = text.trim_end_matches('=').replace('-', "+").replace('_', "/");
        GeneralPurpose::new(&alphabet::STANDARD, config).decode(text)
    };
    sent == given || matches!((bytes(sent), bytes(given)), (Ok(sent), Ok(given)) if sent == given)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn verdict(contents: Value) -> String {
        let body = json!({"contents": contents}).to_string();
        read(&body).unwrap().flaw.map_or_else(|| "ok".into(), |flaw| flaw.message)
    }

    fn call(id: &str) -> Value {
        json!({"functionCall": {"id": id, "name": "read", "args": {}}})
    }

    fn response(id: &str) -> Value {
        json!({"functionResponse": {"id": id, "name": "read", "response": {"output": "x"}}})
    }

    #[test]
    fn calls_are_answered_in_order_and_at_once() {
        let user = |parts: Value| json!({"role": "user", "parts": parts});
        let model = |parts: Value| json!({"role": "model", "parts": parts});
        let go = user(json!([{"text": "go"}]));
        let ask = model(json!([call("a"), call("b")]));
        assert_eq!(verdict(json!([go, ask, user(json!([response("a"), response("b"), {"text": "and"}]))])), "ok");
        assert!(
            verdict(json!([go, ask, user(json!([response("b"), response("a")]))])).contains("stands where `read a`")
        );
        assert!(verdict(json!([go, ask, user(json!([response("a")]))])).contains("1 of 2"));
        assert!(verdict(json!([go, ask, go])).contains("0 of 2"));
        assert!(verdict(json!([go, ask])).contains("0 of 2"));
        assert!(verdict(json!([user(json!([response("a")]))])).contains("immediately after a function call turn"));
        assert!(verdict(json!([ask])).contains("after a user turn"));
        assert!(verdict(json!([user(json!([call("a")]))])).contains("after a user turn"));
        assert!(verdict(json!([{"role": "assistant", "parts": [{"text": "x"}]}])).contains("valid role"));
        assert!(verdict(json!([user(json!([]))])).contains("must not be empty"));
        assert!(verdict(json!([user(json!([{}]))])).contains("[0].data: required oneof"));
        let bad = json!({"functionCall": {"name": "r", "args": "half"}});
        assert!(verdict(json!([go, model(json!([bad]))])).contains("are objects"));
    }

    #[test]
    fn a_response_with_an_error_failed() {
        let contents = json!([{"parts": [{"text": "go"}]}, {"role": "model", "parts": [{"functionCall": {"name": "read"}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "read", "response": {"error": "no such file"}}}]}]);
        let body = json!({"contents": contents}).to_string();
        let request = read(&body).unwrap();
        assert_eq!((request.flaw.is_none(), request.newest_results().as_str()), (true, "no such file"));
        assert!(request.newest_result_failed());
    }

    #[test]
    fn signatures_are_compared_by_their_bytes() {
        assert!(same("c2ln+/==", "c2ln-w=="));
        assert!(!same("c2ln", "c2lo"));
    }
}
