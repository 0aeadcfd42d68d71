//! The ways in which models write tool calls, read character by character.

use super::scan::{Scan, Seen, object};
use crate::ToolSpec;
use serde_json::{Map, Value};

/// The most bytes of one call; what is longer is text.
const MAX_CALL_BYTES: usize = 4 * 1024 * 1024;
/// The most bytes of a tool's or parameter's name.
const MAX_NAME_BYTES: usize = 256;
/// The keys of an object that is a call; any other makes it none.
const KEYS: [&str; 5] = ["name", "arguments", "parameters", "id", "type"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// `<tool_call>{…}</tool_call>`, or with a [`Form::Function`] within.
    Tagged,
    /// `<function=NAME>{…}</function>`, or with `<parameter=NAME>…</parameter>` within.
    Function,
    /// `[TOOL_CALLS] [{…}, {…}]` or `[TOOL_CALLS]NAME{…}`.
    Listed,
    /// `<|python_tag|>{…}`
    Marked,
    /// A fenced block of nothing but `{…}`.
    Fenced,
    /// A message of nothing but `{…}`.
    Bare,
}

/// How each form but the bare one begins. A fence begins a line.
pub(super) const OPENINGS: [(&str, Form); 6] = [
    ("<tool_call>", Form::Tagged),
    ("<function=", Form::Function),
    ("[TOOL_CALLS]", Form::Listed),
    ("<|python_tag|>", Form::Marked),
    ("```json", Form::Fenced),
    ("```tool_call", Form::Fenced),
];

/// A finished call: the tool's name and its arguments as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Call {
    pub name: String,
    pub arguments: String,
}

/// What looks like calls, being read.
pub(super) struct Attempt {
    form: Form,
    at: At,
    scan: Scan,
    /// Where the word, name, value or object that is being read starts in what is held.
    mark: usize,
    /// Of a form that names the tool outside of its arguments.
    name: String,
    parameter: String,
    parameters: Map<String, Value>,
    /// The parameters came as one object, which is whole.
    has_all: bool,
    calls: Vec<Call>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// Behind the opening; blanks may come.
    Body,
    /// In a list, where an object must come.
    Item,
    BehindItem,
    Object,
    /// The tool's name.
    Name,
    Parameter,
    Value,
    BehindValue,
    /// One of these words.
    Word(&'static [Word]),
    /// The calls are whole; blanks may come, then the form's last word.
    Last,
    LastWord,
}

type Word = (&'static str, At);

const FUNCTION: &[Word] = &[("<function=", At::Name)];
const PARAMETERS: &[Word] = &[("<parameter=", At::Parameter), ("</function>", At::Last)];
const ARGUMENTS: &[Word] = &[("[ARGS]", At::Body)];
const VALUE_END: &str = "</parameter>";

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    More,
    /// What is held is all calls.
    Done,
    /// No call: so many bytes of what is held are text, the rest is to be looked at anew.
    Text(usize),
}

impl Attempt {
    pub(super) fn new(form: Form, held: &str) -> Attempt {
        let at = match form {
            Form::Function => At::Name,
            Form::Bare => At::Object,
            _ => At::Body,
        };
        Attempt {
            form,
            at,
            scan: Scan::new(),
            mark: if form == Form::Bare { 0 } else { held.len() },
            name: String::new(),
            parameter: String::new(),
            parameters: Map::new(),
            has_all: false,
            calls: vec![],
        }
    }

    /// The calls, if nothing but a last word is missing.
    pub(super) fn whole(mut self) -> Option<Vec<Call>> {
        if self.has_all && self.calls.is_empty() {
            self.take_call();
        }
        (self.has_all || matches!(self.at, At::Last | At::LastWord)).then_some(self.calls)
    }

    pub(super) fn into_calls(self) -> Vec<Call> {
        self.calls
    }

    /// Reads `c`, the last character of `held`.
    pub(super) fn push(&mut self, held: &str, c: char, tools: &[ToolSpec]) -> Step {
        let before = held.len() - c.len_utf8();
        if held.len() > MAX_CALL_BYTES {
            return Step::Text(held.len());
        }
        let next = match self.at {
            At::Object => return self.object(held, c, tools),
            At::Name | At::Parameter => return self.named(held, c, tools),
            At::Value => return self.value(held, c, tools),
            At::Word(words) => return self.word(words, held),
            At::LastWord => return self.last_word(held),
            _ if c.is_whitespace() => return Step::More,
            At::Body => self.body(c),
            At::Item if c == '{' => Some(At::Object),
            At::BehindItem if c == ',' => Some(At::Item),
            At::BehindItem if c == ']' => return Step::Done,
            At::BehindValue if c == '<' => Some(At::Word(PARAMETERS)),
            At::Last if self.last().is_some_and(|last| last.starts_with(c)) => Some(At::LastWord),
            _ => None,
        };
        let Some(next) = next else { return Step::Text(before) };
        (self.at, self.mark) = (next, before);
        if next == At::Object {
            self.scan = Scan::new();
        }
        Step::More
    }

    /// What the first character of a form's body leads to.
    fn body(&self, c: char) -> Option<At> {
        Some(match (self.form, c) {
            (_, '{') => At::Object,
            (Form::Tagged, '<') if self.name.is_empty() => At::Word(FUNCTION),
            (Form::Tagged | Form::Function, '<') => At::Word(PARAMETERS),
            (Form::Listed, '[') if self.name.is_empty() => At::Item,
            (Form::Listed, '[') => At::Word(ARGUMENTS),
            (Form::Listed, c) if self.name.is_empty() && c.is_alphanumeric() => At::Name,
            _ => return None,
        })
    }

    fn object(&mut self, held: &str, c: char, tools: &[ToolSpec]) -> Step {
        match self.scan.push(c) {
            Seen::More => Step::More,
            Seen::Key if self.name.is_empty() && !KEYS.iter().any(|key| held.ends_with(&format!("\"{key}\""))) => {
                Step::Text(held.len())
            }
            Seen::Key => Step::More,
            Seen::Wrong => Step::Text(held.len() - c.len_utf8()),
            Seen::End => match object(&held[self.mark..]) {
                Some(map) => self.end(map, tools).unwrap_or(Step::Text(held.len())),
                None => Step::Text(held.len()),
            },
        }
    }

    /// Takes an object that is whole; none if it is no call.
    fn end(&mut self, map: Map<String, Value>, tools: &[ToolSpec]) -> Option<Step> {
        if self.name.is_empty() {
            self.calls.push(called(map, self.form, tools)?);
            self.at = if self.form == Form::Listed { At::BehindItem } else { At::Last };
            return Some(if self.form == Form::Marked { Step::Done } else { Step::More });
        }
        self.parameters = map;
        if self.form == Form::Listed {
            self.take_call();
            return Some(Step::Done);
        }
        self.has_all = true;
        self.at = At::BehindValue;
        Some(Step::More)
    }

    /// Makes a call of the name and the parameters.
    fn take_call(&mut self) {
        let arguments = Value::Object(std::mem::take(&mut self.parameters)).to_string();
        self.calls.push(Call { name: self.name.clone(), arguments });
    }

    /// The name of a tool or parameter, up to what ends it.
    fn named(&mut self, held: &str, c: char, tools: &[ToolSpec]) -> Step {
        let in_list = self.form == Form::Listed;
        let is_end = if in_list { matches!(c, '{' | '[') || c.is_whitespace() } else { c == '>' };
        let before = held.len() - c.len_utf8();
        if !is_end {
            let is_long = held.len() - self.mark > MAX_NAME_BYTES;
            return if is_long || c == '\n' { Step::Text(before) } else { Step::More };
        }
        let name = &held[self.mark..before];
        if self.at == At::Parameter {
            self.parameter = name.trim().to_owned();
            (self.at, self.mark) = (At::Value, held.len());
            return Step::More;
        }
        if !tools.iter().any(|tool| tool.name == name.trim()) {
            return Step::Text(before);
        }
        self.name = name.trim().to_owned();
        self.at = At::Body;
        // The brace or bracket that ends a name in a list is the first of what follows.
        if in_list { self.push(held, c, tools) } else { Step::More }
    }

    fn value(&mut self, held: &str, c: char, tools: &[ToolSpec]) -> Step {
        if c == '>'
            && let Some(value) = held[self.mark..].strip_suffix(VALUE_END)
        {
            let schema = tools.iter().find(|tool| tool.name == self.name).map(|tool| &tool.schema);
            let value = argument(schema, &self.parameter, value);
            self.parameters.insert(std::mem::take(&mut self.parameter), value);
            self.at = At::BehindValue;
        }
        Step::More
    }

    fn word(&mut self, words: &'static [Word], held: &str) -> Step {
        let read = &held[self.mark..];
        let Some((word, next)) = words.iter().find(|(word, _)| word.starts_with(read)) else {
            return Step::Text(self.mark);
        };
        if *word != read {
            return Step::More;
        }
        (self.at, self.mark) = (*next, held.len());
        if *next != At::Last {
            return Step::More;
        }
        self.take_call();
        if self.form == Form::Function { Step::Done } else { Step::More }
    }

    fn last_word(&mut self, held: &str) -> Step {
        let read = &held[self.mark..];
        match self.last() {
            Some(last) if last == read => Step::Done,
            Some(last) if last.starts_with(read) => Step::More,
            _ => Step::Text(self.mark),
        }
    }

    /// What closes the form; none where nothing may follow.
    fn last(&self) -> Option<&'static str> {
        match self.form {
            Form::Tagged => Some("</tool_call>"),
            Form::Function => Some("</function>"),
            Form::Fenced => Some("```"),
            Form::Listed | Form::Marked | Form::Bare => None,
        }
    }
}

/// The call that an object is, if it names an offered tool.
fn called(mut map: Map<String, Value>, form: Form, tools: &[ToolSpec]) -> Option<Call> {
    let name = map.get("name")?.as_str()?.to_owned();
    let arguments = map.remove("arguments").or_else(|| map.remove("parameters"));
    let is_marked = !matches!(form, Form::Fenced | Form::Bare);
    let arguments = match arguments {
        Some(Value::Object(map)) => Value::Object(map).to_string(),
        // Some write the arguments as a text of JSON, as they go over some wires.
        Some(Value::String(text)) if is_marked => text,
        Some(Value::Null) | None if is_marked => "{}".into(),
        _ => return None,
    };
    tools.iter().any(|tool| tool.name == name).then_some(Call { name, arguments })
}

/// A parameter's value, which its tag does not type: as its schema has it.
fn argument(schema: Option<&Value>, name: &str, text: &str) -> Value {
    let text = text.strip_prefix('\n').unwrap_or(text);
    let text = text.strip_suffix('\n').unwrap_or(text);
    let kind = schema.map(|schema| &schema["properties"][name]["type"]);
    let is_text = match kind {
        Some(Value::String(kind)) => kind == "string",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "string"),
        _ => false,
    };
    match serde_json::from_str(text.trim()) {
        Ok(value) if !is_text => value,
        _ => Value::String(text.to_owned()),
    }
}
