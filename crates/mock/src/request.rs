//! A light look at a request: one pass over the body, long texts skipped and read only if a script asks for them.

use crate::refusal::Refusal;
use crate::route::{Protocol, Route};
use crate::{gemini_input, responses_input};
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// The version of Anthropic's own interface, which its clients send on Bedrock and Vertex, too.
const API_VERSION: &str = "2026-10-21";

/// A request of any protocol, borrowed from its body. Its shape is that of Messages and Chat Completions; the other
/// protocols are read into it.
#[derive(Debug, Default, Deserialize)]
pub struct Request<'a> {
    #[serde(borrow, default)]
    pub model: Option<Cow<'a, str>>,
    #[serde(default)]
    pub stream: Option<bool>,
    #[serde(default)]
    pub max_tokens: Option<u64>,
    #[serde(default)]
    pub stream_options: Option<StreamOptions>,
    #[serde(borrow, default)]
    pub system: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub messages: Option<Vec<Message<'a>>>,
    #[serde(borrow, default)]
    pub tools: Option<Vec<Tool<'a>>>,
    /// Bedrock and Vertex only, which have no header for it.
    #[serde(borrow, default)]
    pub anthropic_version: Option<Cow<'a, str>>,
    /// What the vendor would not take, seen while the request was read.
    #[serde(skip)]
    pub flaw: Option<Refusal>,
}

#[derive(Debug, Deserialize)]
pub struct StreamOptions {
    #[serde(default)]
    pub include_usage: bool,
}

#[derive(Debug, Default, Deserialize)]
pub struct Message<'a> {
    #[serde(borrow, default)]
    pub role: Cow<'a, str>,
    #[serde(borrow, default)]
    pub content: Content<'a>,
    #[serde(borrow, default)]
    pub tool_calls: Option<Vec<ToolCall<'a>>>,
    #[serde(borrow, default)]
    pub tool_call_id: Option<Cow<'a, str>>,
}

#[derive(Debug, Default)]
pub enum Content<'a> {
    #[default]
    None,
    Text(Cow<'a, str>),
    Parts(Vec<Part<'a>>),
}

/// One content block; what it does not have is `None`.
#[derive(Debug, Default, Deserialize)]
pub struct Part<'a> {
    #[serde(rename = "type", borrow, default)]
    pub kind: Cow<'a, str>,
    #[serde(borrow, default)]
    pub text: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub name: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub input: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub tool_use_id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub content: Option<&'a RawValue>,
    #[serde(default)]
    pub is_error: Option<bool>,
    #[serde(borrow, default)]
    pub signature: Option<Cow<'a, str>>,
    /// Responses: the text of a part in which the model refuses.
    #[serde(borrow, default)]
    pub refusal: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
pub struct ToolCall<'a> {
    #[serde(borrow, default)]
    pub id: Cow<'a, str>,
    #[serde(borrow)]
    pub function: Function<'a>,
}

#[derive(Debug, Deserialize)]
pub struct Function<'a> {
    #[serde(borrow, default)]
    pub name: Cow<'a, str>,
    #[serde(borrow, default)]
    pub arguments: Option<&'a RawValue>,
}

/// A tool that the request offers: Chat Completions have the name inside `function`, the others in the tool itself.
#[derive(Debug, Deserialize)]
pub struct Tool<'a> {
    #[serde(rename = "type", borrow, default)]
    pub kind: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    function: Option<Named<'a>>,
}

#[derive(Debug, Deserialize)]
struct Named<'a> {
    #[serde(borrow, default)]
    name: Cow<'a, str>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Content<'de>;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("content: a string or a list of blocks")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Content<'de>, E> {
                Ok(Content::Text(Cow::Borrowed(text)))
            }
            fn visit_str<E>(self, text: &str) -> Result<Content<'de>, E> {
                Ok(Content::Text(Cow::Owned(text.to_string())))
            }
            fn visit_unit<E>(self) -> Result<Content<'de>, E> {
                Ok(Content::None)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Content<'de>, A::Error> {
                let mut parts = Vec::new();
                while let Some(part) = seq.next_element()? {
                    parts.push(part);
                }
                Ok(Content::Parts(parts))
            }
            fn visit_map<A: MapAccess<'de>>(self, _: A) -> Result<Content<'de>, A::Error> {
                Err(serde::de::Error::custom("content: Input should be a valid string or list"))
            }
        }
        from.deserialize_any(Either)
    }
}

impl<'a> Request<'a> {
    /// Reads a body; the error is the JSON reader's own words.
    pub fn read(route: &Route, body: &'a [u8]) -> Result<Request<'a>, String> {
        let text = std::str::from_utf8(body).map_err(|e| format!("the body is not UTF-8: {e}"))?;
        let read = match route.protocol {
            Protocol::Responses => responses_input::read(text),
            Protocol::Gemini => gemini_input::read(text),
            _ => serde_json::from_str(text),
        };
        let mut request = read.map_err(|e| e.to_string())?;
        request.hosted(route);
        Ok(request)
    }

    /// Where the path names the model, the body must not, and has the protocol's version.
    fn hosted(&mut self, route: &Route) {
        let version = match route.protocol {
            Protocol::Bedrock => Some("bedrock-2023-05-31"),
            Protocol::Vertex => Some("vertex-2023-10-16"),
            _ => None,
        };
        if let Some(version) = version {
            let streamed = self.stream.filter(|_| route.protocol == Protocol::Bedrock);
            let extra = [("model", self.model.is_some()), ("stream", streamed.is_some())];
            if let Some((name, _)) = extra.into_iter().find(|(_, given)| *given) {
                self.flaw = Some(Refusal::invalid(format!("{name}: Extra inputs are not permitted")));
            }
            let given = self.anthropic_version.as_deref().unwrap_or_default();
            if self.flaw.is_none() && given != version && given != API_VERSION {
                let rule = format!("anthropic_version: Input should be '{version}' or '{API_VERSION}', not '{given}'");
                self.flaw = Some(Refusal::invalid(rule));
            }
        }
        if route.model.is_some() {
            self.model = route.model.clone().map(Cow::Owned);
            self.stream = Some(route.stream);
        }
    }

    pub fn messages(&self) -> &[Message<'a>] {
        self.messages.as_deref().unwrap_or_default()
    }

    /// How many messages the model has said: the number of the round this request asks for, from 0.
    pub fn round(&self) -> usize {
        self.messages().iter().filter(|m| m.role == "assistant").count()
    }

    pub fn result_count(&self) -> usize {
        self.messages().iter().map(|m| m.results().count()).sum()
    }

    pub fn tool_names(&self) -> impl Iterator<Item = &str> {
        self.tools.iter().flatten().filter_map(Tool::name)
    }

    pub fn offers(&self, tool: &str) -> bool {
        self.tool_names().any(|name| name == tool)
    }

    /// The system prompt's text, wherever the protocol puts it.
    pub fn system_text(&self) -> String {
        let mut texts: Vec<String> = self.system.iter().map(|raw| text_of(raw)).collect();
        let system = self.messages().iter().filter(|m| m.role == "system" || m.role == "developer");
        texts.extend(system.map(Message::own_text));
        texts.join("\n")
    }

    /// The text of the first thing a person said.
    pub fn first_user_text(&self) -> String {
        self.messages().iter().find(|m| m.is_person()).map(Message::own_text).unwrap_or_default()
    }

    /// The text of the last thing a person (or the client in their place) said.
    pub fn last_user_text(&self) -> String {
        self.messages().iter().rfind(|m| m.is_person()).map(Message::own_text).unwrap_or_default()
    }

    /// The messages after the model's last one.
    fn newest(&self) -> &[Message<'a>] {
        let messages = self.messages();
        let from = messages.iter().rposition(|m| m.role == "assistant").map_or(0, |at| at + 1);
        &messages[from..]
    }

    /// The text of the tool results that answer the model's last message, one per line.
    pub fn newest_results(&self) -> String {
        join_results(self.newest())
    }

    /// Whether one of the newest tool results is an error. OpenAI has no flag for it: there, a text beginning with
    /// `error` counts as one.
    pub fn newest_result_failed(&self) -> bool {
        self.newest().iter().flat_map(Message::results).any(|result| result.failed())
    }

    /// The text of all tool results, oldest first, one per line.
    pub fn all_results(&self) -> String {
        join_results(self.messages())
    }

    /// Everything in the request that is text: system prompt, messages, results and arguments, one per line.
    pub fn all_text(&self) -> String {
        let mut out = self.system_text();
        for message in self.messages().iter().filter(|m| m.role != "system" && m.role != "developer") {
            out.push('\n');
            out.push_str(&message.all_text());
        }
        out
    }
}

/// Where a protocol has no flag for a failed tool, its text tells.
pub fn starts_with_error(text: &str) -> bool {
    text.trim_start_matches(['[', '<', ' ', '\n']).get(..5).is_some_and(|head| head.eq_ignore_ascii_case("error"))
}

fn join_results(messages: &[Message]) -> String {
    messages.iter().flat_map(Message::results).map(|result| result.text()).collect::<Vec<_>>().join("\n")
}

/// One tool's answer: a block of a message, or a whole message.
pub enum ResultView<'m, 'a> {
    Block(&'m Part<'a>),
    Message(&'m Message<'a>),
}

impl ResultView<'_, '_> {
    fn text(&self) -> String {
        match self {
            ResultView::Block(part) => part.content.map(text_of).unwrap_or_default(),
            ResultView::Message(message) => message.own_text(),
        }
    }

    fn failed(&self) -> bool {
        match self {
            ResultView::Block(part) => part.is_error == Some(true),
            ResultView::Message(message) => starts_with_error(&message.own_text()),
        }
    }
}

impl<'a> Message<'a> {
    pub fn parts(&self) -> &[Part<'a>] {
        match &self.content {
            Content::Parts(parts) => parts,
            _ => &[],
        }
    }

    /// The tool results that the message holds, or is.
    pub fn results(&self) -> impl Iterator<Item = ResultView<'_, 'a>> {
        let own = (self.role == "tool").then_some(ResultView::Message(self));
        let inner = self.parts().iter().filter(|part| part.kind == "tool_result").map(ResultView::Block);
        own.into_iter().chain(inner)
    }

    /// A user's message that is more than tool results.
    fn is_person(&self) -> bool {
        let speaks = match &self.content {
            Content::None => false,
            Content::Text(_) => true,
            Content::Parts(parts) => parts.iter().any(|part| part.kind == "text"),
        };
        self.role == "user" && speaks
    }

    /// The message's own text: its text blocks, one per line.
    pub fn own_text(&self) -> String {
        match &self.content {
            Content::None => String::new(),
            Content::Text(text) => text.to_string(),
            Content::Parts(parts) => parts.iter().filter_map(Part::own_text).collect::<Vec<_>>().join("\n"),
        }
    }

    fn all_text(&self) -> String {
        let mut texts = Vec::new();
        match &self.content {
            Content::None => {}
            Content::Text(text) => texts.push(text.to_string()),
            Content::Parts(parts) => texts.extend(parts.iter().filter_map(Part::any_text)),
        }
        let calls = self.tool_calls.iter().flatten();
        texts.extend(calls.filter_map(|call| call.function.arguments).map(text_of));
        texts.join("\n")
    }
}

impl Part<'_> {
    fn own_text(&self) -> Option<String> {
        self.text.or(self.refusal).map(text_of)
    }

    fn any_text(&self) -> Option<String> {
        match &*self.kind {
            "tool_result" => self.content.map(text_of),
            // Arguments are an object, or a text that holds one.
            "tool_use" => {
                self.input.map(|raw| serde_json::from_str(raw.get()).unwrap_or_else(|_| raw.get().to_string()))
            }
            _ => self.own_text(),
        }
    }
}

impl Tool<'_> {
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref().or_else(|| self.function.as_ref().map(|f| &*f.name))
    }
}

/// The text of a raw content value: a string, a list of blocks of which the texts are taken, or an object of which the
/// values are.
fn text_of(raw: &RawValue) -> String {
    match serde_json::from_str::<Content>(raw.get()) {
        Ok(Content::Text(text)) => text.into_owned(),
        Ok(Content::Parts(parts)) => parts.iter().filter_map(Part::own_text).collect::<Vec<_>>().join("\n"),
        _ => values_of(raw),
    }
}

fn values_of(raw: &RawValue) -> String {
    let Ok(Value::Object(object)) = serde_json::from_str(raw.get()) else { return String::new() };
    let text = |value: Value| match value {
        Value::String(text) => text,
        other => other.to_string(),
    };
    object.into_iter().map(|(_, value)| text(value)).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(protocol: Protocol, body: &str) -> Request<'_> {
        let hosted = protocol == Protocol::Gemini;
        let route = Route { protocol, model: hosted.then(|| "m".into()), stream: hosted };
        Request::read(&route, body.as_bytes()).unwrap()
    }

    #[test]
    fn reads_all_protocols_alike() {
        let anthropic = r#"{"model":"m","stream":true,"system":[{"type":"text","text":"be \"brief\""}],"messages":[
            {"role":"user","content":[{"type":"text","text":"go\non"}]},
            {"role":"assistant","content":[{"type":"tool_use","id":"a","name":"read","input":{"path":"x"}}]},
            {"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"port = 1"}]}]}],
            "tools":[{"name":"read","input_schema":{}}]}"#;
        let openai = r#"{"model":"m","stream":true,"messages":[{"role":"system","content":"be \"brief\""},
            {"role":"user","content":"go\non"},
            {"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"read","arguments":"{\"path\":\"x\"}"}}]},
            {"role":"tool","tool_call_id":"a","content":"port = 1"}],
            "tools":[{"type":"function","function":{"name":"read","parameters":{}}}]}"#;
        let responses = r#"{"model":"m","stream":true,"instructions":"be \"brief\"","input":[
            {"role":"user","content":[{"type":"input_text","text":"go\non"}]},
            {"type":"reasoning","id":"r","summary":[],"encrypted_content":"e"},
            {"type":"function_call","call_id":"a","name":"read","arguments":"{\"path\":\"x\"}"},
            {"type":"function_call_output","call_id":"a","output":"port = 1"}],
            "tools":[{"type":"function","name":"read","parameters":{}},{"type":"web_search"}]}"#;
        let gemini = r#"{"systemInstruction":{"parts":[{"text":"be \"brief\""}]},"contents":[
            {"role":"user","parts":[{"text":"go\non"}]},
            {"role":"model","parts":[{"text":"hm","thought":true},{"functionCall":{"name":"read","args":{"path":"x"}},"thoughtSignature":"e"}]},
            {"role":"user","parts":[{"functionResponse":{"name":"read","response":{"output":"port = 1"}}}]}],
            "tools":[{"functionDeclarations":[{"name":"read"}]},{"googleSearch":{}}]}"#;
        let bodies = [
            (Protocol::Anthropic, anthropic),
            (Protocol::OpenAi, openai),
            (Protocol::Responses, responses),
            (Protocol::Gemini, gemini),
        ];
        for (protocol, body) in bodies {
            let request = read(protocol, body);
            assert_eq!(request.flaw, None);
            assert_eq!((request.model.as_deref(), request.stream), (Some("m"), Some(true)));
            assert_eq!((request.round(), request.result_count()), (1, 1));
            assert_eq!(request.system_text(), "be \"brief\"");
            assert_eq!(request.first_user_text(), "go\non");
            assert_eq!(request.last_user_text(), "go\non");
            assert_eq!(request.newest_results(), "port = 1");
            assert!(request.offers("read") && !request.offers("edit"));
            assert_eq!(request.all_text(), "be \"brief\"\ngo\non\n{\"path\":\"x\"}\nport = 1");
        }
    }

    #[test]
    fn newest_results_are_those_after_the_last_reply() {
        let body = r#"{"messages":[{"role":"user","content":"a"},
            {"role":"assistant","content":"x"},{"role":"tool","tool_call_id":"1","content":"old"},
            {"role":"assistant","content":"y"},{"role":"tool","tool_call_id":"2","content":"Error: gone"}]}"#;
        let request = read(Protocol::OpenAi, body);
        assert_eq!(request.newest_results(), "Error: gone");
        assert_eq!(request.all_results(), "old\nError: gone");
        assert!(request.newest_result_failed());
    }
}
