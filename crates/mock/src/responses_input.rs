//! An OpenAI Responses request: its items as messages, and the rules they are held to.

use crate::refusal::Refusal;
use crate::request::{Content, Message, Part, Request, Tool, starts_with_error};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::HashSet;

/// Bytes of a tool's output that are looked at for the word that tells an error.
const HEAD_BYTES: usize = 80;

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow, default)]
    model: Option<Cow<'a, str>>,
    #[serde(default)]
    stream: Option<bool>,
    #[serde(default)]
    store: Option<bool>,
    #[serde(borrow, default)]
    previous_response_id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    instructions: Option<&'a RawValue>,
    #[serde(borrow, default)]
    input: Option<&'a RawValue>,
    #[serde(borrow, default)]
    tools: Option<Vec<Tool<'a>>>,
}

#[derive(Deserialize)]
struct Item<'a> {
    #[serde(rename = "type", borrow, default = "message")]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    role: Cow<'a, str>,
    #[serde(borrow, default)]
    content: Content<'a>,
    #[serde(borrow, default)]
    call_id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow, default)]
    output: Option<&'a RawValue>,
    #[serde(borrow, default)]
    summary: Option<&'a RawValue>,
    #[serde(borrow, default)]
    encrypted_content: Option<Cow<'a, str>>,
}

fn message() -> Cow<'static, str> {
    "message".into()
}

pub fn read(text: &str) -> serde_json::Result<Request<'_>> {
    let body: Body = serde_json::from_str(text)?;
    let mut request =
        Request { model: body.model, stream: body.stream, system: body.instructions, ..Request::default() };
    request.tools = body.tools;
    if let Some(id) = body.previous_response_id {
        let rule = format!("Previous response with id '{id}' not found.");
        request.flaw = Some(Refusal::invalid(rule).with_param("previous_response_id"));
    }
    let Some(input) = body.input else { return Ok(request) };
    if input.get().starts_with('"') {
        let content = Content::Text(serde_json::from_str(input.get())?);
        request.messages = Some(vec![Message { role: "user".into(), content, ..Message::default() }]);
        return Ok(request);
    }
    let items: Vec<Item> = serde_json::from_str(input.get())?;
    let flaw = check(&items, body.store).err();
    request.flaw = request.flaw.or(flaw);
    request.messages = Some(messages(items));
    Ok(request)
}

impl Item<'_> {
    fn is_model_made(&self) -> bool {
        match &*self.kind {
            "message" => self.role == "assistant",
            kind => !kind.ends_with("_output"),
        }
    }
}

/// The items as messages: what the model made in one go is one reply.
fn messages(items: Vec<Item>) -> Vec<Message> {
    let mut messages: Vec<Message> = Vec::new();
    for item in items {
        let reply = item.is_model_made();
        let role = if reply { "assistant".into() } else { item.role.clone() };
        if item.kind == "message" && matches!(item.content, Content::Text(_)) && !reply {
            messages.push(Message { role, content: item.content, ..Message::default() });
            continue;
        }
        let role = if role.is_empty() { "user".into() } else { role };
        let parts = parts(item);
        match messages.last_mut().filter(|last| reply && last.role == "assistant") {
            Some(Message { content: Content::Parts(all), .. }) => all.extend(parts),
            _ => messages.push(Message { role, content: Content::Parts(parts), ..Message::default() }),
        }
    }
    messages
}

fn parts(item: Item) -> Vec<Part> {
    let part = match &*item.kind {
        "message" => return message_parts(item.content),
        "function_call" => Part {
            kind: "tool_use".into(),
            id: item.call_id,
            name: item.name,
            input: item.arguments,
            ..Part::default()
        },
        "function_call_output" => Part {
            kind: "tool_result".into(),
            tool_use_id: item.call_id,
            content: item.output,
            is_error: item.output.map(failed),
            ..Part::default()
        },
        _ => Part { kind: item.kind, ..Part::default() },
    };
    vec![part]
}

fn message_parts(content: Content) -> Vec<Part> {
    let Content::Parts(mut parts) = content else { return Vec::new() };
    for part in &mut parts {
        if matches!(&*part.kind, "input_text" | "output_text" | "refusal") {
            part.kind = "text".into();
        }
    }
    parts
}

fn failed(output: &RawValue) -> bool {
    let text = output.get().split_once("\"text\"").map_or(output.get(), |(_, text)| text);
    let text = if output.get().starts_with('"') { output.get() } else { text };
    let head = &text[..text.floor_char_boundary(HEAD_BYTES)];
    starts_with_error(head.trim_start_matches([':', '"', ' ']))
}

/// Refuses items as the vendor would.
fn check(items: &[Item], store: Option<bool>) -> Result<(), Refusal> {
    let mut pairs = Pairs::default();
    for (at, item) in items.iter().enumerate() {
        let wrong = |field: &str, rule: String| Err(Refusal::invalid(rule).with_param(format!("input[{at}].{field}")));
        let missing = |field: &str| wrong(field, format!("Missing required parameter: 'input[{at}].{field}'."));
        match &*item.kind {
            "message" => message_item(at, item)?,
            "function_call" if item.call_id.as_deref().is_none_or(str::is_empty) => return missing("call_id"),
            "function_call" if item.name.as_deref().is_none_or(str::is_empty) => return missing("name"),
            "function_call" if !item.arguments.is_some_and(|raw| raw.get().starts_with('"')) => {
                return wrong("arguments", format!("Invalid type for 'input[{at}].arguments': expected a string."));
            }
            "function_call" => pairs.call(at, item.call_id.as_deref().unwrap_or_default())?,
            "function_call_output" if item.output.is_none() => return missing("output"),
            "function_call_output" => pairs.output(at, item.call_id.as_deref().unwrap_or_default())?,
            "reasoning" if item.summary.is_none() => return missing("summary"),
            "reasoning" if store == Some(false) && item.encrypted_content.is_none() => {
                let rule = "A reasoning item is not persisted when `store` is false: send its `encrypted_content`.";
                return wrong("encrypted_content", rule.into());
            }
            "reasoning" if !items.get(at + 1).is_some_and(Item::is_model_made) => {
                let rule = "Item of type 'reasoning' was provided without its required following item.";
                return wrong("type", rule.into());
            }
            _ => {}
        }
    }
    match pairs.open.first() {
        None => Ok(()),
        Some(id) => Err(Refusal::invalid(format!("No tool output found for function call {id}.")).with_param("input")),
    }
}

/// Which calls have their output.
#[derive(Default)]
struct Pairs<'r> {
    seen: HashSet<&'r str>,
    open: Vec<&'r str>,
}

impl<'r> Pairs<'r> {
    fn call(&mut self, at: usize, id: &'r str) -> Result<(), Refusal> {
        if !self.seen.insert(id) {
            let rule = format!("Duplicate value for 'call_id': '{id}' in input[{at}].");
            return Err(Refusal::invalid(rule).with_param(format!("input[{at}].call_id")));
        }
        self.open.push(id);
        Ok(())
    }

    fn output(&mut self, at: usize, id: &str) -> Result<(), Refusal> {
        let Some(place) = self.open.iter().position(|open| *open == id) else {
            let rule = if self.seen.contains(id) {
                format!("Duplicate function call output with call_id {id}.")
            } else {
                format!("No tool call found for function call output with call_id {id}.")
            };
            return Err(Refusal::invalid(rule).with_param(format!("input[{at}].call_id")));
        };
        self.open.remove(place);
        Ok(())
    }
}

fn message_item(at: usize, item: &Item) -> Result<(), Refusal> {
    let wrong = |field: String, value: &str, known: &str| {
        let rule = format!("Invalid value: '{value}'. Supported values are: {known}.");
        Err(Refusal::invalid(rule).with_param(format!("input[{at}].{field}")))
    };
    if !matches!(&*item.role, "user" | "assistant" | "system" | "developer") {
        return wrong("role".into(), &item.role, "'assistant', 'system', 'developer', and 'user'");
    }
    let parts = match &item.content {
        Content::None => return wrong("content".into(), "null", "a string and a list of parts"),
        Content::Text(_) => return Ok(()),
        Content::Parts(parts) => parts,
    };
    for (index, part) in parts.iter().enumerate() {
        let (known, all): (&[&str], _) = match &*item.role {
            "assistant" => (&["output_text", "refusal"], "'output_text' and 'refusal'"),
            _ => (&["input_text", "input_image", "input_file"], "'input_text', 'input_image', and 'input_file'"),
        };
        if !known.contains(&&*part.kind) {
            return wrong(format!("content[{index}]"), &part.kind, all);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn verdict(input: Value) -> String {
        let body = json!({"model": "m", "store": false, "input": input}).to_string();
        read(&body).unwrap().flaw.map_or_else(|| "ok".into(), |flaw| flaw.message)
    }

    fn call(id: &str) -> Value {
        json!({"type": "function_call", "call_id": id, "name": "read", "arguments": "{}"})
    }

    fn output(id: &str, text: &str) -> Value {
        json!({"type": "function_call_output", "call_id": id, "output": text})
    }

    #[test]
    fn a_run_of_the_models_items_is_one_reply() {
        let say = json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "hm"}]});
        let think = json!({"type": "reasoning", "summary": [], "encrypted_content": "e"});
        let go = json!({"role": "user", "content": "go"});
        let input =
            json!([go, think, say, call("a"), call("b"), output("b", "x"), output("a", "Error: no"), think, say, go]);
        assert_eq!(verdict(input.clone()), "ok");
        let body = json!({"model": "m", "input": input}).to_string();
        let request = read(&body).unwrap();
        assert_eq!((request.round(), request.result_count(), request.messages().len()), (2, 2, 6));
        let body = json!({"model": "m", "input": [go, call("a"), output("a", "Error: no")]}).to_string();
        assert!(read(&body).unwrap().newest_result_failed());
        let listed = json!({"type": "function_call_output", "call_id": "a", "output": [{"type": "input_text", "text": "error"}]});
        let body = json!({"model": "m", "input": [go, call("a"), listed]}).to_string();
        assert!(read(&body).unwrap().newest_result_failed());
    }

    #[test]
    fn broken_items_are_refused_by_name() {
        let go = json!({"role": "user", "content": "go"});
        assert_eq!(verdict(json!([go, call("a")])), "No tool output found for function call a.");
        assert!(verdict(json!([go, output("z", "x")])).starts_with("No tool call found"));
        assert!(verdict(json!([go, call("a"), output("a", ""), output("a", "")])).starts_with("Duplicate function"));
        assert!(verdict(json!([go, call("a"), output("a", ""), call("a")])).starts_with("Duplicate value"));
        let object = json!({"type": "function_call", "call_id": "a", "name": "r", "arguments": {}});
        assert!(verdict(json!([go, object])).contains("expected a string"));
        let think = json!({"type": "reasoning", "summary": [], "encrypted_content": "e"});
        assert!(verdict(json!([think, go])).contains("required following item"));
        assert!(verdict(json!([{"type": "reasoning", "summary": []}, go])).contains("`encrypted_content`"));
        assert!(verdict(json!([{"type": "reasoning", "encrypted_content": "e"}, go])).contains("input[0].summary"));
        let said = json!({"role": "assistant", "content": [{"type": "input_text", "text": "x"}]});
        assert!(verdict(json!([said])).contains("'input_text'. Supported values are: 'output_text'"));
        assert!(verdict(json!([{"role": "tool", "content": "x"}])).starts_with("Invalid value: 'tool'"));
        let body = json!({"model": "m", "input": "x", "previous_response_id": "r"}).to_string();
        assert!(read(&body).unwrap().flaw.is_some());
    }
}
