//! The moments at which hooks are asked, and the words that a matcher may choose among.

use schemars::JsonSchema;
use serde::Serialize;

/// When a hook is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub enum EventName {
    /// Before a tool call is judged.
    PreToolUse,
    /// After a tool has run.
    PostToolUse,
    /// Before a prompt of the person reaches the model.
    UserPromptSubmit,
    /// When a session is made, taken up, cleared, or compacted.
    SessionStart,
    /// When the model wants to end the turn.
    Stop,
    /// When a sub-agent wants to end.
    SubagentStop,
    /// Before the conversation is compacted.
    PreCompact,
    /// When a person is wanted.
    Notification,
}

/// What a matcher of an event is compared with.
pub(crate) enum Subject {
    Tool,
    Agent,
    OneOf(&'static [&'static str]),
    Nothing,
}

impl EventName {
    /// All events, in the order of a session's life within each kind.
    pub const ALL: [EventName; 8] = [
        EventName::PreToolUse,
        EventName::PostToolUse,
        EventName::UserPromptSubmit,
        EventName::SessionStart,
        EventName::Stop,
        EventName::SubagentStop,
        EventName::PreCompact,
        EventName::Notification,
    ];

    /// Its name in configuration, inputs and answers.
    pub fn text(self) -> &'static str {
        match self {
            EventName::PreToolUse => "PreToolUse",
            EventName::PostToolUse => "PostToolUse",
            EventName::UserPromptSubmit => "UserPromptSubmit",
            EventName::SessionStart => "SessionStart",
            EventName::Stop => "Stop",
            EventName::SubagentStop => "SubagentStop",
            EventName::PreCompact => "PreCompact",
            EventName::Notification => "Notification",
        }
    }

    /// Whether a hook may block what the event is about.
    pub fn may_block(self) -> bool {
        !matches!(self, EventName::SessionStart | EventName::Notification)
    }

    /// Whether a hook may end the turn with `"continue": false`.
    pub fn may_stop(self) -> bool {
        self.may_block() && self != EventName::PreCompact
    }

    /// Whether plain text that a hook prints is context for the model.
    pub(crate) fn takes_text(self) -> bool {
        matches!(self, EventName::UserPromptSubmit | EventName::SessionStart)
    }

    pub(crate) fn subject(self) -> Subject {
        match self {
            EventName::PreToolUse | EventName::PostToolUse => Subject::Tool,
            EventName::SubagentStop => Subject::Agent,
            EventName::SessionStart => Subject::OneOf(&["startup", "resume", "clear", "compact"]),
            EventName::PreCompact => Subject::OneOf(&["manual", "auto"]),
            EventName::Notification => Subject::OneOf(&["permission_prompt", "idle_prompt", "elicitation_dialog"]),
            EventName::UserPromptSubmit | EventName::Stop => Subject::Nothing,
        }
    }
}

/// How a session came to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionSource {
    Startup,
    Resume,
    Clear,
    Compact,
}

impl SessionSource {
    pub(crate) fn text(self) -> &'static str {
        match self {
            SessionSource::Startup => "startup",
            SessionSource::Resume => "resume",
            SessionSource::Clear => "clear",
            SessionSource::Compact => "compact",
        }
    }
}

/// Who wants a compaction: the person, or the limit of the model's window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Trigger {
    Manual,
    Auto,
}

impl Trigger {
    pub(crate) fn text(self) -> &'static str {
        match self {
            Trigger::Manual => "manual",
            Trigger::Auto => "auto",
        }
    }
}

/// Why a person is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NotificationKind {
    /// A tool call waits for approval.
    PermissionPrompt,
    /// The turn is over, and the agent waits for the next prompt.
    IdlePrompt,
    /// A tool asks a question.
    ElicitationDialog,
}

impl NotificationKind {
    pub(crate) fn text(self) -> &'static str {
        match self {
            NotificationKind::PermissionPrompt => "permission_prompt",
            NotificationKind::IdlePrompt => "idle_prompt",
            NotificationKind::ElicitationDialog => "elicitation_dialog",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words as they are written into inputs.
    fn written<T: Serialize>(values: &[T]) -> Vec<String> {
        let text = |value| serde_json::to_value(value).unwrap().as_str().unwrap().to_owned();
        values.iter().map(text).collect()
    }

    fn choices(event: EventName) -> &'static [&'static str] {
        match event.subject() {
            Subject::OneOf(choices) => choices,
            _ => panic!("{event:?} has no choices"),
        }
    }

    #[test]
    fn a_matcher_sees_the_words_that_the_input_has() {
        let sources = [SessionSource::Startup, SessionSource::Resume, SessionSource::Clear, SessionSource::Compact];
        assert_eq!(written(&sources), sources.map(SessionSource::text));
        assert_eq!(sources.map(SessionSource::text), choices(EventName::SessionStart));
        let triggers = [Trigger::Manual, Trigger::Auto];
        assert_eq!(written(&triggers), triggers.map(Trigger::text));
        assert_eq!(triggers.map(Trigger::text), choices(EventName::PreCompact));
        let kinds =
            [NotificationKind::PermissionPrompt, NotificationKind::IdlePrompt, NotificationKind::ElicitationDialog];
        assert_eq!(written(&kinds), kinds.map(NotificationKind::text));
        assert_eq!(kinds.map(NotificationKind::text), choices(EventName::Notification));
        assert_eq!(written(&EventName::ALL), EventName::ALL.map(EventName::text));
    }
}
