//! Commands of the user that look at what an agent does: told by JSON, answered by JSON or exit code.
//!
//! [`Hooks`] is read from configuration once; [`Hooks::run`] asks those that want an [`Event`], one after the other in
//! the order of the configuration, and gives an [`Outcome`]: what to do, what to add, whom to tell, and what ran. A row
//! that is called back ends its command first; one whose future is dropped kills it.
//!
//! What is absent: no decision about trust (the caller passes trusted configuration only), no wall of its own (the
//! caller's [`Launch`] builds it around each command), no permission (a hook's `allow` is only reported), no record, no
//! environment, home or working folder of this process, and no crash recovery: what survives the death of the whole
//! program is the wall's to end. Processes are Unix processes.

mod answer;
mod child;
mod config;
mod event;
mod input;
mod launch;
mod matcher;
mod notices;
mod outcome;
mod reply;
mod row;
mod schema;
mod words;

pub use config::{ConfigError, Hooks, MAX_HOOKS, OnError};
pub use event::{EventName, NotificationKind, SessionSource, Trigger};
pub use input::{
    Agent, Event, Mode, Notification, Origin, PostToolUse, PreCompact, PreToolUse, SessionStart, Stop, SubagentStop,
    ToolResponse, UserPromptSubmit,
};
pub use launch::{Launch, Wall, Walled};
pub use notices::{MAX_NOTICES, Notices};
pub use outcome::{Decision, Message, Outcome, Ran, Verdict};
pub use schema::schemas;
