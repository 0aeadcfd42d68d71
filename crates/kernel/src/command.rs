//! What an outsider may ask of a session. A command is a wish; only the events it leads to are facts.

use crate::*;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Command {
    Prompt(Box<Prompted>),
    Note {
        input: InputId,
        text: String,
        wakes: bool,
    },
    Clear {
        input: InputId,
    },
    Compact {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        instructions: Option<String>,
    },
    Interrupt {
        by: String,
    },
    Answer(Box<Answered>),
    Configure(Box<Configured>),
    ChangeTools {
        change: ToolsChange,
        tools: Vec<String>,
    },
}

/// Why a command was not accepted: what was wrong, and the way out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Rejected {
    #[error("the input is empty: say what is to be done")]
    Empty,
    #[error("a prompt holds text, images and documents: leave out the block of type {kind}")]
    ForeignBlock { kind: String },
    #[error("input {0} is already in the log")]
    #[serde(rename = "repeated")]
    Repeated(InputId),
    #[error("nothing is running that could be interrupted")]
    NothingToInterrupt,
    #[error("the interrupt is already under way")]
    AlreadyInterrupted,
    #[error("call {call} is not waiting for an answer")]
    NotAsked { call: CallId },
    #[error("call {call} was asked something else meanwhile: answer the question with hash {expected}")]
    OtherQuestion { call: CallId, expected: String },
    #[error("call {call} asks for words, not for a permission: answer with text")]
    WantsWords { call: CallId },
    #[error("call {call} asks for a permission: answer allow or deny")]
    WantsDecision { call: CallId },
    #[error("the answer for call {call} can't be taken: {problem}")]
    WrongAnswer { call: CallId, problem: String },
    #[error("a turn or a compaction is under way: wait for its end or interrupt it first")]
    Busy,
    #[error("a compaction is already under way")]
    AlreadyCompacting,
    #[error("there is nothing to compact yet")]
    NothingToCompact,
    #[error("nothing would change")]
    NoChange,
    #[error("there is no tool {name:?}: there are {known}")]
    UnknownTool { name: String, known: String },
    #[error("the prompt was not let through: {reason}")]
    Blocked { reason: String },
    #[error("there is no command /{name}: {hint}")]
    UnknownCommand { name: String, hint: String },
}
