//! What a hook may print as JSON, and which of its fields mean something at which event.

use crate::event::EventName;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

/// A JSON answer; every field may be left out.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Answer {
    /// False ends the turn.
    pub r#continue: Option<bool>,
    /// Why it ends, for the person.
    pub stop_reason: Option<String>,
    /// True keeps what the hook printed out of the record.
    pub suppress_output: Option<bool>,
    /// A line for the person.
    pub system_message: Option<String>,
    pub decision: Option<Choice>,
    /// Why.
    pub reason: Option<String>,
    pub hook_specific_output: Option<Specific>,
}

/// The older way to decide.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Choice {
    Block,
    Approve,
}

/// What a hook of one event may say.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Specific {
    /// The event that the hook was asked about.
    pub hook_event_name: String,
    pub permission_decision: Option<Permission>,
    /// Why: for the model if it is denied, else for the person.
    pub permission_decision_reason: Option<String>,
    /// Arguments to run the tool with instead: all of them, not only those that change.
    #[schemars(with = "Option<Map<String, Value>>")]
    pub updated_input: Option<Value>,
    /// Text for the model.
    pub additional_context: Option<String>,
}

/// What a hook says of a tool call.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Permission {
    Allow,
    Deny,
    Ask,
}

/// Fields that mean something at every event.
const COMMON: [&str; 4] = ["continue", "stopReason", "suppressOutput", "systemMessage"];
const DECIDING: [&str; 2] = ["decision", "reason"];
const PERMISSION: [&str; 3] = ["permissionDecision", "permissionDecisionReason", "updatedInput"];
pub(crate) const CONTEXT: &str = "additionalContext";
pub(crate) const SPECIFIC: &str = "hookSpecificOutput";
pub(crate) const EVENT: &str = "hookEventName";

/// The fields that mean something at `event`: of the answer, and of its `hookSpecificOutput`.
pub(crate) fn fields(event: EventName) -> (Vec<&'static str>, Vec<&'static str>) {
    use EventName as E;
    let mut outer = COMMON.to_vec();
    let mut inner = Vec::new();
    if event.may_block() {
        outer.extend(DECIDING);
    }
    if event == E::PreToolUse {
        inner.extend(PERMISSION);
    }
    if matches!(event, E::PreToolUse | E::PostToolUse | E::UserPromptSubmit | E::SessionStart) {
        inner.push(CONTEXT);
    }
    if !inner.is_empty() {
        outer.push(SPECIFIC);
        inner.insert(0, EVENT);
    }
    (outer, inner)
}

impl Answer {
    /// Reads what a hook printed at `event`, and names the fields that mean nothing there.
    pub(crate) fn read(text: &[u8], event: EventName) -> Result<(Answer, Vec<String>), String> {
        let value: Value = serde_json::from_slice(text).map_err(|error| format!("its JSON cannot be read: {error}"))?;
        let strangers = strangers(&value, event);
        let answer = Answer::deserialize(value).map_err(|error| format!("its answer is none: {error}"))?;
        if let Some(specific) = &answer.hook_specific_output {
            let (named, expected) = (&specific.hook_event_name, event.text());
            if named != expected {
                return Err(format!("its answer is for `{named}`, and it was asked about {expected}"));
            }
            if specific.updated_input.as_ref().is_some_and(|input| !input.is_object()) {
                return Err("its `updatedInput` is no object: give all arguments of the call".into());
            }
        }
        Ok((answer, strangers))
    }
}

fn strangers(answer: &Value, event: EventName) -> Vec<String> {
    let (outer, inner) = fields(event);
    let names = |value: &Value| -> Vec<String> {
        let fields = value.as_object().into_iter().flatten();
        fields.filter(|(_, value)| !value.is_null()).map(|(name, _)| name.clone()).collect()
    };
    let mut found: Vec<String> = names(answer).into_iter().filter(|name| !outer.contains(&name.as_str())).collect();
    if outer.contains(&SPECIFIC) {
        let unknown = names(&answer[SPECIFIC]).into_iter().filter(|name| !inner.contains(&name.as_str()));
        found.extend(unknown.map(|name| format!("{SPECIFIC}.{name}")));
    }
    found
}
