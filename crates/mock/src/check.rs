//! The rules a vendor holds every request to, whatever the script says.

use crate::refusal::Refusal;
use crate::request::{Content, Message, Part, Request};
use crate::route::Protocol;
use serde_json::value::RawValue;
use std::collections::HashSet;

/// Longest text that is looked into for being blank; a longer one is hardly so.
const BLANK_BYTES: usize = 64;

/// Refuses a request as the protocol's vendor would.
pub fn check(protocol: Protocol, request: &Request) -> Result<(), Refusal> {
    if request.model.as_deref().unwrap_or_default().is_empty() {
        return Err(Refusal::invalid("model: Field required").with_param("model"));
    }
    if request.messages().is_empty() {
        let key = match protocol {
            Protocol::Responses => "input",
            Protocol::Gemini => "contents",
            _ => "messages",
        };
        return Err(Refusal::invalid(format!("{key}: at least one message is required")).with_param(key));
    }
    tools(protocol, request)?;
    if let Some(flaw) = &request.flaw {
        return Err(flaw.clone());
    }
    match protocol {
        Protocol::Anthropic | Protocol::Bedrock | Protocol::Vertex => anthropic(request),
        Protocol::OpenAi => openai(request),
        // Their rules are on their own shapes: what is wrong is found while a request is read.
        Protocol::Responses | Protocol::Gemini => Ok(()),
    }
}

fn tools(protocol: Protocol, request: &Request) -> Result<(), Refusal> {
    let (longest, signs) = match protocol {
        Protocol::Gemini => (128, "_.:-"),
        _ if protocol.is_messages() => (128, "_-"),
        _ => (64, "_-"),
    };
    let mut seen = HashSet::new();
    for (at, tool) in request.tools.iter().flatten().enumerate() {
        if protocol == Protocol::Responses && tool.kind.as_deref() != Some("function") {
            continue; // the vendor's own tools have no name
        }
        let param = || format!("tools.{at}.name");
        let name = tool.name().unwrap_or_default();
        let known = name.bytes().all(|b| b.is_ascii_alphanumeric() || signs.as_bytes().contains(&b));
        let begins =
            protocol != Protocol::Gemini || !name.starts_with(|c: char| c.is_ascii_digit() || ".:-".contains(c));
        if !known || !begins || !(1..=longest).contains(&name.len()) {
            let rule = format!("tools.{at}.name: `{name}` should match '^[a-zA-Z0-9{signs}]{{1,{longest}}}$'");
            return Err(Refusal::invalid(rule).with_param(param()));
        }
        if !seen.insert(name) {
            return Err(Refusal::invalid(format!("tools: Tool names must be unique: `{name}`")).with_param(param()));
        }
    }
    Ok(())
}

fn is_name(name: &str, longest: usize) -> bool {
    (1..=longest).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}

fn anthropic(request: &Request) -> Result<(), Refusal> {
    if request.max_tokens.is_none_or(|n| n == 0) {
        return Err(Refusal::invalid("max_tokens: Field required"));
    }
    if request.messages()[0].role != "user" {
        return Err(Refusal::invalid("messages: first message must use the \"user\" role"));
    }
    let mut pairs = Pairs::default();
    for (at, message) in request.messages().iter().enumerate() {
        match &*message.role {
            "user" => user_message(at, message, &mut pairs)?,
            "assistant" => assistant_message(at, message, &mut pairs)?,
            other => {
                let rule = "Input should be 'user' or 'assistant'";
                return Err(Refusal::invalid(format!("messages.{at}.role: {rule}, not '{other}'")));
            }
        }
    }
    pairs.settle()
}

/// Which calls wait for their results while the messages go by.
#[derive(Default)]
struct Pairs<'r> {
    seen: HashSet<&'r str>,
    /// Where the waiting calls stand, and their ids.
    open: Option<(usize, Vec<&'r str>)>,
    /// Calls of the newest reply that have their result.
    closed: Vec<&'r str>,
    /// The user has said something else since the newest reply.
    spoken: bool,
}

impl<'r> Pairs<'r> {
    /// Before the model's next message, and at the end, no call may wait.
    fn settle(&self) -> Result<(), Refusal> {
        match &self.open {
            Some((at, ids)) if !ids.is_empty() => Err(Refusal::invalid(format!(
                "messages.{at}: `tool_use` ids were found without `tool_result` blocks immediately after: {}. Each \
                 `tool_use` block must have a corresponding `tool_result` block in the next message.",
                ids.join(", ")
            ))),
            _ => Ok(()),
        }
    }

    fn result(&mut self, place: &str, id: &'r str) -> Result<(), Refusal> {
        if self.closed.contains(&id) {
            let rule = "each tool_use must have a single result. Found multiple `tool_result` blocks with id";
            return Err(Refusal::invalid(format!("{place}: {rule}: {id}")));
        }
        let open = self.open.as_mut().and_then(|(_, ids)| Some(ids.swap_remove(ids.iter().position(|o| *o == id)?)));
        match open {
            None => Err(Refusal::invalid(format!(
                "{place}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each `tool_result` block must \
                 have a corresponding `tool_use` block in the previous message."
            ))),
            Some(_) if self.spoken => Err(Refusal::invalid(format!(
                "{place}: `tool_result` blocks must come before any other content of the message: {id}"
            ))),
            Some(id) => {
                self.closed.push(id);
                Ok(())
            }
        }
    }
}

fn user_message<'r>(at: usize, message: &'r Message, pairs: &mut Pairs<'r>) -> Result<(), Refusal> {
    not_empty(at, message)?;
    pairs.spoken |= matches!(message.content, Content::Text(_));
    for (index, part) in message.parts().iter().enumerate() {
        let place = format_place(at, index);
        match &*part.kind {
            "" => return Err(Refusal::invalid(format!("{}.type: Field required", place()))),
            "tool_result" => {
                let id = part.tool_use_id.as_deref();
                let id = id.ok_or_else(|| Refusal::invalid(format!("{}.tool_use_id: Field required", place())))?;
                pairs.result(&place(), id)?;
            }
            "tool_use" | "thinking" | "redacted_thinking" => {
                let rule = format!("{}: `{}` blocks can only be in `assistant` messages", place(), part.kind);
                return Err(Refusal::invalid(rule));
            }
            _ => pairs.spoken = true,
        }
        not_blank(part, &place)?;
    }
    Ok(())
}

fn assistant_message<'r>(at: usize, message: &'r Message, pairs: &mut Pairs<'r>) -> Result<(), Refusal> {
    not_empty(at, message)?;
    pairs.settle()?;
    let mut ids = Vec::new();
    for (index, part) in message.parts().iter().enumerate() {
        let place = format_place(at, index);
        match &*part.kind {
            "" => return Err(Refusal::invalid(format!("{}.type: Field required", place()))),
            "tool_use" => {
                let id = call(part, &place)?;
                if !pairs.seen.insert(id) {
                    let rule = format!("{}: `tool_use` ids must be unique: {id}", place());
                    return Err(Refusal::invalid(rule));
                }
                ids.push(id);
            }
            "tool_result" => {
                let rule = format!("{}: `tool_result` blocks can only be in `user` messages", place());
                return Err(Refusal::invalid(rule));
            }
            "thinking" => match part.signature.as_deref() {
                None => return Err(Refusal::invalid(format!("{}.thinking.signature: Field required", place()))),
                Some("") => {
                    return Err(Refusal::invalid(format!("{}: Invalid `signature` in `thinking` block", place())));
                }
                Some(_) => {}
            },
            _ => {}
        }
        not_blank(part, &place)?;
    }
    pairs.open = Some((at, ids));
    pairs.closed.clear();
    pairs.spoken = false;
    Ok(())
}

/// Where a block stands; made only if something is wrong with it.
fn format_place(at: usize, index: usize) -> impl Fn() -> String {
    move || format!("messages.{at}.content.{index}")
}

fn call<'r>(part: &'r Part, place: &dyn Fn() -> String) -> Result<&'r str, Refusal> {
    let id = part.id.as_deref().unwrap_or_default();
    if !is_name(id, usize::MAX) {
        let rule = format!("{}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$': `{id}`", place());
        return Err(Refusal::invalid(rule));
    }
    if !is_name(part.name.as_deref().unwrap_or_default(), 200) {
        return Err(Refusal::invalid(format!("{}.tool_use.name: String should match the tool name pattern", place())));
    }
    if !part.input.is_some_and(|raw| raw.get().starts_with('{')) {
        return Err(Refusal::invalid(format!("{}.tool_use.input: Input should be a valid dictionary", place())));
    }
    Ok(id)
}

fn not_empty(at: usize, message: &Message) -> Result<(), Refusal> {
    let empty = match &message.content {
        Content::None => return Err(Refusal::invalid(format!("messages.{at}.content: Field required"))),
        Content::Text(text) => text.trim().is_empty(),
        Content::Parts(parts) => parts.is_empty(),
    };
    if !empty {
        return Ok(());
    }
    let rule = "all messages must have non-empty content";
    Err(Refusal::invalid(format!("messages.{at}: {rule}")))
}

fn not_blank(part: &Part, place: &dyn Fn() -> String) -> Result<(), Refusal> {
    let blank = |raw: &RawValue| {
        raw.get().len() <= BLANK_BYTES
            && serde_json::from_str::<String>(raw.get()).is_ok_and(|text| text.trim().is_empty())
    };
    if part.kind != "text" {
        return Ok(());
    }
    match part.text {
        None => Err(Refusal::invalid(format!("{}.text.text: Field required", place()))),
        Some(text) if blank(text) => {
            Err(Refusal::invalid(format!("{}: text content blocks must be non-empty", place())))
        }
        Some(_) => Ok(()),
    }
}

fn openai(request: &Request) -> Result<(), Refusal> {
    let mut seen = HashSet::new();
    let mut open: Vec<&str> = Vec::new();
    let mut answered: Vec<&str> = Vec::new();
    for (at, message) in request.messages().iter().enumerate() {
        let param = || format!("messages.[{at}].role");
        if message.role == "tool" {
            tool_message(message, &mut open, &mut answered)
                .map_err(|rule| Refusal::invalid(rule).with_param(param()))?;
            continue;
        }
        unanswered(&open).map_err(|rule| rule.with_param(param()))?;
        answered.clear();
        match &*message.role {
            "assistant" => open = tool_calls(at, message, &mut seen)?,
            "system" | "developer" | "user" if matches!(message.content, Content::None) => {
                let rule = format!("Invalid value for 'content': expected a string, got null in messages[{at}].");
                return Err(Refusal::invalid(rule).with_param(format!("messages.[{at}].content")));
            }
            "system" | "developer" | "user" => {}
            other => {
                let rule = "Supported values are: 'system', 'developer', 'user', 'assistant' and 'tool'.";
                return Err(Refusal::invalid(format!("Invalid value: '{other}'. {rule}")).with_param(param()));
            }
        }
    }
    unanswered(&open).map_err(|rule| rule.with_param("messages"))
}

fn tool_message<'r>(m: &'r Message, open: &mut Vec<&'r str>, answered: &mut Vec<&'r str>) -> Result<(), String> {
    let id = m.tool_call_id.as_deref().ok_or("Missing required parameter: 'tool_call_id' of a 'tool' message.")?;
    if answered.contains(&id) {
        return Err(format!("Each 'tool_call_id' must have a single 'tool' message: '{id}' has more."));
    }
    let Some(at) = open.iter().position(|waiting| *waiting == id) else {
        return Err(format!(
            "messages with role 'tool' must be a response to a preceding message with 'tool_calls': '{id}'."
        ));
    };
    answered.push(open.swap_remove(at));
    Ok(())
}

fn unanswered(open: &[&str]) -> Result<(), Refusal> {
    if open.is_empty() {
        return Ok(());
    }
    Err(Refusal::invalid(format!(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The \
         following tool_call_ids did not have response messages: {}",
        open.join(", ")
    )))
}

fn tool_calls<'r>(at: usize, m: &'r Message, seen: &mut HashSet<&'r str>) -> Result<Vec<&'r str>, Refusal> {
    let calls = m.tool_calls.as_deref().unwrap_or_default();
    if m.tool_calls.is_some() && calls.is_empty() {
        let rule =
            format!("Invalid 'messages[{at}].tool_calls': empty array. Expected an array with minimum length 1.");
        return Err(Refusal::invalid(rule));
    }
    let silent = matches!(m.content, Content::None);
    if calls.is_empty() && silent {
        let rule = "Invalid value for 'content': expected a string, got null";
        return Err(Refusal::invalid(format!("{rule} in messages[{at}].")));
    }
    for call in calls {
        let place = format!("messages[{at}].tool_calls");
        if call.id.is_empty() || call.function.name.is_empty() {
            return Err(Refusal::invalid(format!("Missing required parameter: '{place}' id or name.")));
        }
        if !call.function.arguments.is_some_and(|raw| raw.get().starts_with('"')) {
            let rule = format!("Invalid type for '{place}.function.arguments': expected a string.");
            return Err(Refusal::invalid(rule));
        }
        if !seen.insert(&*call.id) {
            return Err(Refusal::invalid(format!(
                "Duplicate value for 'tool_call_id' of '{}' in message[{at}]",
                call.id
            )));
        }
    }
    Ok(calls.iter().map(|call| &*call.id).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::route::Route;
    use serde_json::{Value, json};

    fn verdict(protocol: Protocol, messages: Value) -> String {
        let body = json!({"model": "m", "max_tokens": 10, "messages": messages}).to_string();
        let route = Route { protocol, model: None, stream: false };
        let request = Request::read(&route, body.as_bytes()).unwrap();
        check(protocol, &request).err().map(|r| r.message).unwrap_or_else(|| "ok".into())
    }

    fn anthropic(messages: Value) -> String {
        verdict(Protocol::Anthropic, messages)
    }

    fn call(id: &str) -> Value {
        json!({"type": "tool_use", "id": id, "name": "read", "input": {}})
    }

    fn result(id: &str) -> Value {
        json!({"type": "tool_result", "tool_use_id": id, "content": "x"})
    }

    #[test]
    fn paired_calls_pass_in_any_order_of_results() {
        let ok = json!([{"role": "user", "content": "go"}, {"role": "assistant", "content": [call("a"), call("b")]},
            {"role": "user", "content": [result("b"), result("a"), {"type": "text", "text": "and more"}]},
            {"role": "assistant", "content": "done"}, {"role": "user", "content": "thanks"}]);
        assert_eq!(anthropic(ok), "ok");
        let two_messages = json!([{"role": "user", "content": "go"}, {"role": "assistant", "content": [call("a"), call("b")]},
            {"role": "user", "content": [result("a")]}, {"role": "user", "content": [result("b")]}]);
        assert_eq!(anthropic(two_messages), "ok", "the vendor joins messages of one role");
    }

    #[test]
    fn broken_pairs_are_refused_by_name() {
        let go = json!({"role": "user", "content": "go"});
        let ask = json!({"role": "assistant", "content": [call("a"), call("b")]});
        let user = |parts: Value| json!({"role": "user", "content": parts});
        let one = anthropic(json!([go, ask, user(json!([result("a")]))]));
        assert!(
            one.starts_with("messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: b")
        );
        let late = anthropic(json!([go, ask, user(json!([result("a"), {"type": "text", "text": "x"}, result("b")]))]));
        assert!(late.contains("must come before any other content"), "{late}");
        let twice = anthropic(json!([go, ask, user(json!([result("a"), result("a"), result("b")]))]));
        assert!(twice.contains("Found multiple `tool_result` blocks with id: a"), "{twice}");
        let alone = anthropic(json!([user(json!([result("z")]))]));
        assert!(alone.contains("unexpected `tool_use_id` found in `tool_result` blocks: z"), "{alone}");
        let same = json!({"role": "assistant", "content": [call("a")]});
        let reused = anthropic(json!([go, same, user(json!([result("a")])), same, user(json!([result("a")]))]));
        assert!(reused.contains("messages.3.content.0: `tool_use` ids must be unique: a"), "{reused}");
    }

    #[test]
    fn anthropic_rules_on_content() {
        let go = json!({"role": "user", "content": "go"});
        let says = |part: Value| anthropic(json!([go, {"role": "assistant", "content": [part]}, go]));
        assert_eq!(says(json!({"type": "text", "text": "x"})), "ok");
        assert!(
            says(json!({"type": "text", "text": " "}))
                .contains("messages.1.content.0: text content blocks must be non-empty")
        );
        assert!(says(json!({"type": "thinking", "thinking": "x"})).ends_with("thinking.signature: Field required"));
        assert!(says(json!({"type": "thinking", "thinking": "x", "signature": ""})).contains("Invalid `signature`"));
        assert!(
            says(json!({"type": "tool_use", "id": "a", "name": "r", "input": "half"})).contains("valid dictionary")
        );
        assert!(says(json!({"type": "tool_use", "id": "a:b", "name": "r", "input": {}})).contains("`a:b`"));
        assert!(
            anthropic(json!([{"role": "assistant", "content": "x"}]))
                .contains("first message must use the \"user\" role")
        );
        assert!(anthropic(json!([go, {"role": "system", "content": "x"}])).contains("not 'system'"));
        assert!(anthropic(json!([])).contains("at least one message"));
        assert!(anthropic(json!([{"role": "user", "content": ""}])).contains("non-empty content"));
    }

    #[test]
    fn openai_calls_are_answered_before_anything_else() {
        let openai = |messages: Value| verdict(Protocol::OpenAi, messages);
        let go = json!({"role": "user", "content": "go"});
        let call = |id: &str| json!({"id": id, "type": "function", "function": {"name": "read", "arguments": "{}"}});
        let ask = json!({"role": "assistant", "content": null, "tool_calls": [call("a"), call("b")]});
        let tool = |id: &str| json!({"role": "tool", "tool_call_id": id, "content": "x"});
        assert_eq!(openai(json!([go, ask, tool("b"), tool("a"), go])), "ok");
        assert!(openai(json!([go, ask, tool("a"), go])).ends_with("did not have response messages: b"));
        assert!(openai(json!([go, ask, tool("a")])).ends_with("did not have response messages: b"));
        assert!(openai(json!([go, ask, tool("a"), tool("a"), tool("b")])).contains("single 'tool' message: 'a'"));
        assert!(openai(json!([go, tool("z")])).contains("must be a response to a preceding message"));
        assert!(
            openai(json!([go, ask, tool("a"), tool("b"), ask])).contains("Duplicate value for 'tool_call_id' of 'a'")
        );
        let object =
            json!({"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "r", "arguments": {}}}]});
        assert!(openai(json!([go, object])).contains("expected a string"));
    }
}
