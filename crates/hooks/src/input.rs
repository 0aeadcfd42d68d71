//! What a hook is told on its standard input: one JSON object, with the field names that are widely used.

use crate::event::{EventName, NotificationKind, SessionSource, Trigger};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Where an event comes from; part of every input.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Origin {
    pub session_id: String,
    /// A file with the conversation so far; absent where the session is kept in a database.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transcript_path: Option<String>,
    /// The workspace, and the folder that hooks run in.
    #[serde(serialize_with = "lossy")]
    pub cwd: PathBuf,
    pub permission_mode: Mode,
    /// The sub-agent that it happens in; absent in the main conversation.
    #[serde(flatten)]
    pub agent: Option<Agent>,
}

/// A sub-agent.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Agent {
    pub agent_id: String,
    /// The name of its definition, which matchers of `SubagentStop` are compared with.
    pub agent_type: String,
}

/// The permission mode, spelled as scripts for other clients expect it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Mode {
    Default,
    AcceptEdits,
    Plan,
    Auto,
    DontAsk,
    BypassPermissions,
}

/// A tool call that is about to be judged.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PreToolUse {
    pub tool_name: String,
    /// The call's arguments, as earlier hooks left them.
    pub tool_input: Value,
    pub tool_use_id: String,
}

/// A tool call that has run.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PostToolUse {
    pub tool_name: String,
    /// The arguments that it ran with.
    pub tool_input: Value,
    pub tool_response: ToolResponse,
    pub tool_use_id: String,
}

/// What a tool gave back.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ToolResponse {
    /// The text that the model gets.
    pub text: String,
    pub is_error: bool,
    /// The result as data, of tools that have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
}

/// A prompt that the person sent.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct UserPromptSubmit {
    pub prompt: String,
}

/// A session that begins.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SessionStart {
    pub source: SessionSource,
    /// The model that will be called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// A turn that the model wants to end.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Stop {
    /// Whether the turn already goes on because a hook wanted it; it does so once only.
    pub stop_hook_active: bool,
    /// The text of the model's last message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_assistant_message: Option<String>,
}

/// A sub-agent that wants to end; the origin says which.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SubagentStop {
    /// Whether it already goes on because a hook wanted it; it does so once only.
    pub stop_hook_active: bool,
    /// The text of its last message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_assistant_message: Option<String>,
}

/// A conversation that is about to be compacted.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PreCompact {
    pub trigger: Trigger,
    /// What the person asked to be kept; empty if nothing.
    pub custom_instructions: String,
}

/// A person is wanted.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Notification {
    pub message: String,
    pub notification_type: NotificationKind,
}

/// Something that hooks are asked about.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    PreToolUse(PreToolUse),
    PostToolUse(PostToolUse),
    UserPromptSubmit(UserPromptSubmit),
    SessionStart(SessionStart),
    Stop(Stop),
    SubagentStop(SubagentStop),
    PreCompact(PreCompact),
    Notification(Notification),
}

impl Event {
    pub fn name(&self) -> EventName {
        match self {
            Event::PreToolUse(_) => EventName::PreToolUse,
            Event::PostToolUse(_) => EventName::PostToolUse,
            Event::UserPromptSubmit(_) => EventName::UserPromptSubmit,
            Event::SessionStart(_) => EventName::SessionStart,
            Event::Stop(_) => EventName::Stop,
            Event::SubagentStop(_) => EventName::SubagentStop,
            Event::PreCompact(_) => EventName::PreCompact,
            Event::Notification(_) => EventName::Notification,
        }
    }

    /// What a matcher is compared with; empty where there is nothing.
    pub(crate) fn subject<'a>(&'a self, origin: &'a Origin) -> &'a str {
        match self {
            Event::PreToolUse(call) => &call.tool_name,
            Event::PostToolUse(call) => &call.tool_name,
            Event::SessionStart(start) => start.source.text(),
            Event::SubagentStop(_) => origin.agent.as_ref().map_or("", |agent| &agent.agent_type),
            Event::PreCompact(compaction) => compaction.trigger.text(),
            Event::Notification(notice) => notice.notification_type.text(),
            Event::UserPromptSubmit(_) | Event::Stop(_) => "",
        }
    }

    pub(crate) fn tool_use_id(&self) -> Option<&str> {
        match self {
            Event::PreToolUse(call) => Some(&call.tool_use_id),
            Event::PostToolUse(call) => Some(&call.tool_use_id),
            _ => None,
        }
    }

    /// The JSON that a hook reads.
    pub(crate) fn told(&self, origin: &Origin) -> serde_json::Result<Vec<u8>> {
        let name = self.name();
        match self {
            Event::PreToolUse(event) => told(origin, name, event),
            Event::PostToolUse(event) => told(origin, name, event),
            Event::UserPromptSubmit(event) => told(origin, name, event),
            Event::SessionStart(event) => told(origin, name, event),
            Event::Stop(event) => told(origin, name, event),
            Event::SubagentStop(event) => told(origin, name, event),
            Event::PreCompact(event) => told(origin, name, event),
            Event::Notification(event) => told(origin, name, event),
        }
    }
}

/// An input whole.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Told<'a, E> {
    #[serde(flatten)]
    origin: &'a Origin,
    hook_event_name: EventName,
    #[serde(flatten)]
    event: &'a E,
}

fn told<E: Serialize>(origin: &Origin, hook_event_name: EventName, event: &E) -> serde_json::Result<Vec<u8>> {
    serde_json::to_vec(&Told { origin, hook_event_name, event })
}

/// A path as text: a name that is no UTF-8 must not keep a hook from running.
fn lossy<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}
