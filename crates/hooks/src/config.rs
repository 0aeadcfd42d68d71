//! Hooks as people write them, and the list that comes of it.

use crate::event::EventName;
use crate::matcher::Matcher;
use crate::words::{clip, nearest};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::time::Duration;

/// Most hooks of one event.
pub const MAX_HOOKS: usize = 64;
/// Milliseconds a hook may take where it does not say otherwise.
const DEFAULT_TIMEOUT_MS: u64 = 60_000;
/// Most milliseconds a hook may ask for: an hour.
const MAX_TIMEOUT_MS: u64 = 3_600_000;
/// Bytes of a command that stand for a hook without a name.
const NAME_BYTES: usize = 60;

/// What happens if a hook gives no answer that counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnError {
    /// As if it were not there; the person is told.
    #[default]
    GoOn,
    /// As if it had blocked.
    Block,
}

/// One hook, read.
#[derive(Clone, Debug)]
pub(crate) struct Hook {
    pub event: EventName,
    /// What it is called to people: its name, or its command in short.
    pub name: String,
    pub matcher: Matcher,
    pub command: String,
    pub timeout: Duration,
    pub on_error: OnError,
}

/// The configured hooks, in their order.
#[derive(Clone, Debug, Default)]
pub struct Hooks {
    pub(crate) all: Vec<Hook>,
}

/// Hooks that cannot be read: where they stand, what is wrong, and the way out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct ConfigError {
    pub place: String,
    pub problem: String,
}

/// What one hook says of itself, in either form.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    r#type: Option<String>,
    name: Option<String>,
    command: Option<String>,
    /// Seconds.
    timeout: Option<f64>,
    timeout_ms: Option<u64>,
    #[serde(default)]
    on_error: OnError,
}

impl Hooks {
    /// Adds the hooks of one `hooks` table; `file` is named in errors.
    pub fn add(&mut self, file: &str, table: &Value) -> Result<(), ConfigError> {
        let place = format!("{file}: hooks");
        let Some(events) = table.as_object() else {
            return Err(wrong(
                &place,
                "is no table of events: write `[[hooks.PreToolUse]]`, or in JSON {\"PreToolUse\": […]}",
            ));
        };
        for (name, rows) in events {
            let event = event(name).map_err(|problem| wrong(&place, problem))?;
            let place = format!("{place}.{name}");
            let Some(rows) = rows.as_array() else {
                return Err(wrong(&place, format!("is no list: write `[[hooks.{name}]]` with two brackets")));
            };
            for (at, row) in rows.iter().enumerate() {
                self.add_row(event, &format!("{place}[{at}]"), row)?;
            }
            if self.all.iter().filter(|hook| hook.event == event).count() > MAX_HOOKS {
                return Err(wrong(&place, format!("there are more than {MAX_HOOKS} hooks of this event: join some")));
            }
        }
        Ok(())
    }

    /// Adds the hooks of a JSON file: `{"hooks": {…}}`; what else stands beside `hooks` is not looked at.
    pub fn add_json(&mut self, file: &str, text: &str) -> Result<(), ConfigError> {
        let value: Value =
            serde_json::from_str(text).map_err(|error| wrong(file, format!("this is no JSON: {error}")))?;
        match value.get("hooks") {
            Some(table) => self.add(file, table),
            None => Err(wrong(file, "there is no `hooks` in it: write {\"hooks\": {\"PreToolUse\": […]}}")),
        }
    }

    /// A matcher and its hooks, or one hook with its matcher.
    fn add_row(&mut self, event: EventName, place: &str, row: &Value) -> Result<(), ConfigError> {
        let Some(row) = row.as_object() else { return Err(wrong(place, "is no table")) };
        let mut row = row.clone();
        let matcher = match row.shift_remove("matcher") {
            None | Some(Value::Null) => "*".into(),
            Some(Value::String(text)) => text,
            Some(other) => return Err(wrong(place, format!("matcher: {other} is no text"))),
        };
        let read = Matcher::read(&matcher, event);
        let matcher = read.map_err(|problem| wrong(place, format!("matcher: {problem}")))?;
        let Some(inner) = row.shift_remove("hooks") else {
            self.all.push(hook(event, matcher, place, row)?);
            return Ok(());
        };
        if let Some(name) = row.keys().next() {
            return Err(wrong(place, format!("`{name}` stands beside `hooks`: write it into each of them")));
        }
        let Value::Array(inner) = inner else { return Err(wrong(place, "hooks: is no list")) };
        for (at, entry) in inner.into_iter().enumerate() {
            let place = format!("{place}.hooks[{at}]");
            let Value::Object(entry) = entry else { return Err(wrong(&place, "is no table")) };
            self.all.push(hook(event, matcher.clone(), &place, entry)?);
        }
        Ok(())
    }

    /// Whether there is no hook at all.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Whether any hook would be asked about `event`; `subject` is what a matcher is compared with: the tool's name,
    /// the agent's, the source, the trigger or the kind, and empty where there is none.
    pub fn wants(&self, event: EventName, subject: &str) -> bool {
        self.wanting(event, subject).next().is_some()
    }

    pub(crate) fn wanting(&self, event: EventName, subject: &str) -> impl Iterator<Item = &Hook> {
        self.all.iter().filter(move |hook| hook.event == event && hook.matcher.matches(subject))
    }
}

fn wrong(place: &str, problem: impl Into<String>) -> ConfigError {
    ConfigError { place: place.into(), problem: problem.into() }
}

fn event(name: &str) -> Result<EventName, String> {
    let known = EventName::ALL.map(EventName::text);
    if let Some(event) = EventName::ALL.into_iter().find(|event| event.text() == name) {
        return Ok(event);
    }
    let near = nearest(name, &known).map(|near| format!(" (did you mean `{near}`?)")).unwrap_or_default();
    Err(format!("there is no event `{name}`{near}: take it out, or write one of {}", known.join(", ")))
}

fn hook(event: EventName, matcher: Matcher, place: &str, fields: Map<String, Value>) -> Result<Hook, ConfigError> {
    let entry = read_entry(fields).map_err(|problem| wrong(place, problem))?;
    if let Some(kind) = entry.r#type.as_deref().filter(|kind| *kind != "command") {
        return Err(wrong(
            place,
            format!("type: `{kind}` is not known: `command` is the only one, and may be left out"),
        ));
    }
    let command = entry.command.as_deref().unwrap_or_default().trim().to_owned();
    if command.is_empty() || command.contains('\0') {
        return Err(wrong(place, "command: there is none: write the command that a shell shall run"));
    }
    let timeout = timeout(&entry).map_err(|problem| wrong(place, problem))?;
    if entry.on_error == OnError::Block && !event.may_block() {
        return Err(wrong(place, format!("on_error: {} cannot be blocked: leave it out", event.text())));
    }
    let name = entry.name.filter(|name| !name.trim().is_empty()).unwrap_or_else(|| short(&command));
    Ok(Hook { event, name, matcher, command, timeout, on_error: entry.on_error })
}

fn read_entry(fields: Map<String, Value>) -> Result<Entry, String> {
    Entry::deserialize(Value::Object(fields)).map_err(|error| {
        let problem = error.to_string();
        // A row has two fields more than what stands within `hooks`.
        problem.replace("expected one of `type`", "expected one of `matcher`, `hooks`, `type`")
    })
}

fn timeout(entry: &Entry) -> Result<Duration, String> {
    let (name, given_ms) = match (entry.timeout, entry.timeout_ms) {
        (None, None) => return Ok(Duration::from_millis(DEFAULT_TIMEOUT_MS)),
        (Some(_), Some(_)) => return Err("timeout, in seconds, and timeout_ms are both given: keep one".into()),
        (Some(seconds), None) => ("timeout", seconds * 1000.0),
        (None, Some(ms)) => ("timeout_ms", ms as f64),
    };
    if !(1.0..=MAX_TIMEOUT_MS as f64).contains(&given_ms) {
        return Err(format!(
            "{name}: {given_ms} ms cannot be: it must be 1 to {MAX_TIMEOUT_MS} ms; leave it out for {DEFAULT_TIMEOUT_MS}"
        ));
    }
    Ok(Duration::from_millis(given_ms as u64))
}

/// The first line of a command, or its beginning.
fn short(command: &str) -> String {
    let line = command.lines().next().unwrap_or_default();
    let end = line.floor_char_boundary(NAME_BYTES);
    let cut = end < command.len();
    clip(&line[..end], NAME_BYTES) + if cut { "…" } else { "" }
}
