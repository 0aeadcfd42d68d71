//! What happened: past tense, small, for ever. This one schema is log line, frame and dashboard type.
//! Add variants and optional fields; never repurpose one (old logs pass through `store::upcast`).

use crate::*;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// The version of the event schema that this build writes.
pub const SCHEMA_VERSION: u16 = 1;

/// One event in its place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Schema version the event was written with.
    pub v: u16,
    pub tenant: String,
    pub session: SessionId,
    pub seq: Seq,
    pub id: EventId,
    /// The lease under which it was written; never falls within a log.
    pub epoch: u64,
    /// Milliseconds since the Unix epoch.
    pub at: u64,
    /// The event that led to this one: a report names the `Began` of its work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Seq>,
    pub event: Event,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    // The session's own life.
    Opened {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<Parent>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        forked_from: Option<Fork>,
        cwd: String,
        agent: String,
        model: String,
        mode: PermissionMode,
        profile: Box<Profile>,
    },
    /// A process took the session up (again): whatever was in flight under an earlier one is not any more.
    Reopened {
        worker: String,
    },
    Configured(Box<Configured>),
    ToolsChanged {
        change: ToolsChange,
        tools: Vec<String>,
    },

    // What came from outside.
    Prompted(Box<Prompted>),
    /// News for the model that no person typed. With `wakes` it opens a turn of its own.
    Noted {
        input: InputId,
        text: String,
        wakes: bool,
    },
    /// The model is to forget what was said so far.
    Cleared {
        input: InputId,
    },
    CompactionAsked {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        instructions: Option<String>,
    },
    Interrupted {
        by: String,
    },
    /// A timer of the turn ran out.
    DeadlinePassed,

    /// A step was decided; its `seq` is the work that every report of it names.
    Began {
        step: Step,
    },

    // The model.
    ModelCalled(Box<ModelCalled>),
    /// The provider has to read again what it had kept from the call before: most often that costs ten times as much.
    CacheBroke(Box<CacheBroke>),
    /// What was spent in the whole scope of a cap, this session's share included.
    SpendingSeen {
        scope: CapScope,
        spent: Spending,
    },
    /// A whole content block; `partial` marks text that broke off (a cut or an interrupt).
    BlockFinished {
        work: Seq,
        index: u32,
        block: ContentBlock,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        partial: bool,
    },
    ModelFinished {
        work: Seq,
        stop: StopReason,
        /// The provider's own word for `stop`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        raw_stop: Option<String>,
        #[serde(flatten)]
        spent: Spent,
    },
    ModelFailed {
        work: Seq,
        error: ModelFailure,
        #[serde(flatten)]
        spent: Spent,
    },
    /// The call was called back; what had been heard stands in earlier blocks.
    ModelCancelled {
        work: Seq,
        #[serde(flatten)]
        spent: Spent,
    },

    // A tool call's life.
    HookRan(Box<HookRan>),
    Judged(Box<Judged>),
    Asked {
        call: CallId,
        question: Box<Question>,
    },
    Answered(Box<Answered>),
    ToolStarted(Box<ToolStarted>),
    ToolFinished(Box<ToolFinished>),

    // The end of things.
    Compacted {
        work: Seq,
        /// How many messages, from the log's first, the summary stands for.
        upto: usize,
        summary: String,
        #[serde(flatten)]
        spent: Spent,
    },
    CompactionFailed {
        work: Seq,
        message: String,
        /// Where the model failed: one that may do better is asked again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<Box<ModelFailure>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        spent: Option<Box<Spent>>,
    },
    /// A stop check sent the model back to work; with `repair`, because its answer does not fit the wanted schema.
    StopBlocked {
        work: Seq,
        text: String,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        repair: bool,
    },
    TurnFinished {
        work: Seq,
        end: End,
    },
}

/// The session and call that opened this one as a sub-agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parent {
    pub session: SessionId,
    pub call: CallId,
}

/// The session and place this one was copied from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fork {
    pub session: SessionId,
    pub at: Seq,
}

/// What is set anew; what is `None` stays.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Configured {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<PermissionMode>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Box<Profile>>,
    /// Caps of the profile that holds: those that are said replace its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caps: Option<Caps>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolsChange {
    Registered,
    Unregistered,
    Enabled,
    Disabled,
}

/// Who may do what without being asked; the policy reads it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PermissionMode {
    #[default]
    Default,
    AcceptEdits,
    Plan,
    Bypass,
    /// A reviewing model answers what a person would be asked.
    Auto,
    /// What a person would be asked is refused.
    DontAsk,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Prompted {
    pub input: InputId,
    pub origin: Origin,
    /// What the person said and attached.
    pub blocks: Vec<ContentBlock>,
    /// The user context rendered for this prompt, as the model sees it before `blocks`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<DataRef>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intent: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub constraints: Vec<String>,
    /// JSON Schema that the final answer must satisfy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Arc<Value>>,
}

/// The front door an input came through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    Terminal,
    Headless,
    Library,
    /// Left for the session by another process.
    Inbox,
}

/// Structured data given with a prompt: its bytes are a blob, its shape a JSON Schema.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DataRef {
    pub blob: BlobRef,
    pub schema: Value,
}
