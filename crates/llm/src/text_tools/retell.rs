//! A request told without tools, in words that a model without them understands.

use crate::calls::Calls;
use crate::{Request, SystemSection, ToolSpec};
use serde_json::{Value, json};
use std::fmt::Write;
use std::sync::{Arc, Mutex, PoisonError};
use windlass_kernel::{CallId, ContentBlock, Message, Role, ToolChoice, ToolResult, ToolUse};

const HOW: &str = r#"# Tools

You have the tools listed below, one in a line: its name, what it is for, and the JSON Schema of its arguments. To call a tool, write exactly this into your answer, and not within a code block:

<tool_call>{"name": "NAME", "arguments": {…}}</tool_call>

- `arguments` is one JSON object that satisfies the tool's schema; line ends within strings are written as \n.
- For several calls write several such elements, one after the other.
- End your answer behind your last call. The next message brings each call's result as `<tool_result name="NAME" id="ID">…</tool_result>`; never write such an element yourself.
- Where no tool is needed, just answer.
"#;

/// What was retold for a session before. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct Retold {
    kept: Arc<Mutex<Kept>>,
    /// Of the messages as they were, for what is sent has no calls.
    pub(super) calls: Calls,
}

#[derive(Default)]
struct Kept {
    system: Option<KeptSystem>,
    messages: Vec<KeptMessage>,
}

struct KeptSystem {
    of: Arc<[SystemSection]>,
    tools: Arc<[ToolSpec]>,
    told: Arc<[SystemSection]>,
}

/// A side's say, which may have come in several messages.
struct KeptMessage {
    of: Vec<Arc<Message>>,
    told: Arc<Message>,
}

/// The tools whose calls are looked for.
pub(super) fn offered(request: &Request) -> Arc<[ToolSpec]> {
    match request.parameters.tool_choice {
        ToolChoice::None => Arc::default(),
        _ => request.tools.clone(),
    }
}

/// The request without tools; only what was not retold before costs work.
pub(super) fn retell(mut request: Request) -> Request {
    let retold = request.memo.retold().clone();
    // A panic leaves whole entries only, so a poisoned lock guards nothing broken.
    let mut kept = retold.kept.lock().unwrap_or_else(PoisonError::into_inner);
    let system = kept.system(&request);
    request.messages = kept.messages(&request.messages);
    drop(kept);
    request.system = match wishes(&mut request) {
        Some(wishes) => system.iter().cloned().chain([wishes]).collect(),
        None => system,
    };
    request.tools = Arc::default();
    request.parameters.tool_choice = ToolChoice::Auto;
    request
}

impl Kept {
    fn system(&mut self, request: &Request) -> Arc<[SystemSection]> {
        let (of, tools) = (&request.system, &request.tools);
        let same = |kept: &&KeptSystem| {
            (Arc::ptr_eq(&kept.of, of) || kept.of == *of) && (Arc::ptr_eq(&kept.tools, tools) || kept.tools == *tools)
        };
        if let Some(kept) = self.system.as_ref().filter(same) {
            return kept.told.clone();
        }
        let told = with_tools(of, tools);
        self.system = Some(KeptSystem { of: of.clone(), tools: tools.clone(), told: told.clone() });
        told
    }

    fn messages(&mut self, messages: &[Arc<Message>]) -> Vec<Arc<Message>> {
        let says: Vec<&[Arc<Message>]> = messages.chunk_by(|a, b| a.role == b.role).collect();
        let is_same = |kept: &KeptMessage, say: &[Arc<Message>]| {
            kept.of.len() == say.len() && kept.of.iter().zip(say).all(|(had, now)| Arc::ptr_eq(had, now))
        };
        let known = self.messages.iter().zip(&says).take_while(|(kept, say)| is_same(kept, say)).count();
        self.messages.truncate(known);
        for (place, say) in says.iter().enumerate().skip(known) {
            let told = match say {
                [only] if is_plain(only) => only.clone(),
                _ => Arc::new(told(say, &says[..place])),
            };
            self.messages.push(KeptMessage { of: say.to_vec(), told });
        }
        self.messages.iter().map(|kept| kept.told.clone()).collect()
    }
}

/// The system prompt with the tools behind what is fixed, for they change as seldom.
fn with_tools(system: &Arc<[SystemSection]>, tools: &[ToolSpec]) -> Arc<[SystemSection]> {
    if tools.is_empty() {
        return system.clone();
    }
    let mut text = HOW.to_owned();
    for tool in tools {
        let line = json!({ "name": tool.name, "description": tool.description, "arguments": tool.schema });
        // Writing to a string cannot fail.
        let _ = write!(text, "\n{line}");
    }
    let place = system.iter().rposition(|section| section.fixed).map_or(0, |last| last + 1);
    let mut told = system.to_vec();
    told.insert(place, SystemSection { name: "tools".into(), text, fixed: true });
    told.into()
}

/// What the parameters ask for that no server could hold a model to here. A schema for the answer would keep it from
/// writing calls, so it becomes words as well, unless there are no tools.
fn wishes(request: &mut Request) -> Option<SystemSection> {
    if request.tools.is_empty() {
        return None;
    }
    let mut lines = vec![];
    match &request.parameters.tool_choice {
        ToolChoice::Auto => {}
        ToolChoice::None => lines.push("Answer without calling any tool.".to_owned()),
        ToolChoice::Any => lines.push("Call at least one tool in this answer.".to_owned()),
        ToolChoice::Tool { name } => lines.push(format!("Call the tool `{name}` in this answer.")),
    }
    if let Some(schema) = request.output_schema.take() {
        let what = "Once no more tools are needed, answer with nothing but JSON that satisfies this JSON Schema";
        lines.push(format!("{what}: {schema}"));
    }
    let text = lines.join("\n\n");
    (!text.is_empty()).then(|| SystemSection { name: "answer".into(), text, fixed: false })
}

/// Whether nothing of a message needs other words.
fn is_plain(message: &Message) -> bool {
    !message.content.iter().any(|block| matches!(block, ContentBlock::ToolUse(_) | ContentBlock::ToolResult(_)))
}

/// One message for the whole say: many models' templates refuse two of one side in a row.
fn told(say: &[Arc<Message>], earlier: &[&[Arc<Message>]]) -> Message {
    let mut blocks = Vec::new();
    for block in say.iter().flat_map(|message| &message.content) {
        match block {
            ContentBlock::ToolUse(call) => join(&mut blocks, &written(call)),
            ContentBlock::ToolResult(result) => answered(&mut blocks, result, name_of(&result.tool_use_id, earlier)),
            ContentBlock::Text { text } => join(&mut blocks, text),
            other => blocks.push(other.clone()),
        }
    }
    Message { role: say.first().map_or(Role::User, |message| message.role), content: blocks }
}

/// Puts `text` on a line of its own behind the text before it.
fn join(blocks: &mut Vec<ContentBlock>, text: &str) {
    match blocks.last_mut() {
        Some(ContentBlock::Text { text: before }) => {
            if !before.ends_with('\n') {
                before.push('\n');
            }
            before.push_str(text);
        }
        _ => blocks.push(ContentBlock::text(text)),
    }
}

fn written(call: &ToolUse) -> String {
    let arguments: &Value = &call.input;
    format!("<tool_call>{}</tool_call>", json!({ "name": call.name, "arguments": arguments }))
}

/// A call's result; pictures and documents stay what they are, between its tags.
fn answered(blocks: &mut Vec<ContentBlock>, result: &ToolResult, name: Option<&str>) {
    let name = name.map(|name| format!(" name=\"{}\"", attribute(name))).unwrap_or_default();
    let error = if result.is_error { " error=\"true\"" } else { "" };
    join(blocks, &format!("<tool_result{name} id=\"{}\"{error}>", attribute(&result.tool_use_id.0)));
    for block in &result.content {
        match block {
            ContentBlock::Text { text } => join(blocks, &enclosed(text)),
            other => blocks.push(other.clone()),
        }
    }
    join(blocks, "</tool_result>");
}

/// Text that cannot end the element it stands in: a file must not be able to speak as the user.
fn enclosed(text: &str) -> String {
    text.replace("</tool_result", "<\\/tool_result")
}

fn attribute(text: &str) -> String {
    text.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;")
}

fn name_of<'a>(id: &CallId, earlier: &[&'a [Arc<Message>]]) -> Option<&'a str> {
    let blocks = earlier.iter().rev().copied().flatten().flat_map(|message| &message.content);
    let mut names = blocks.filter_map(|block| match block {
        ContentBlock::ToolUse(call) if call.id == *id => Some(call.name.as_str()),
        _ => None,
    });
    names.next()
}
