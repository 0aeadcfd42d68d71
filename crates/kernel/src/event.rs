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

/// One attempt at a model call, as it goes out: what the ledger needs to tell what was asked of whom.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelCalled {
    pub work: Seq,
    pub role: ModelRole,
    pub provider: String,
    pub model: String,
    pub parameters: Parameters,
    /// 1 for the first, counted anew after each whole answer.
    pub attempt: u32,
    /// The prompt's sections in order, by name and hash; their text is in blobs.
    pub sections: Vec<Section>,
    /// The tool list offered, by hash; its JSON is a blob.
    pub tools: BlobRef,
    /// Tokens the model's window holds, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
}

/// What a model call was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelRole {
    Main,
    Compaction,
    Subagent,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Parameters {
    pub max_tokens: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// Token budget for thinking; none: the provider's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking_tokens: Option<u32>,
    /// How hard the model is to think; none: the provider's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    #[serde(default, skip_serializing_if = "ToolChoice::is_auto")]
    pub tool_choice: ToolChoice,
}

/// How hard a model thinks, in the vendors' common words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effort {
    /// Not at all, where the model can be told so.
    None,
    Minimal,
    Low,
    Medium,
    High,
    Max,
}

/// Whether the model must, may or may not call a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToolChoice {
    #[default]
    Auto,
    None,
    /// Some tool.
    Any,
    Tool {
        name: String,
    },
}

impl ToolChoice {
    pub fn is_auto(&self) -> bool {
        *self == ToolChoice::Auto
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Section {
    pub name: String,
    pub blob: BlobRef,
}

/// What a model call took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Spent {
    pub usage: Usage,
    /// Millionths of a US dollar; none where no price is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_micro_usd: Option<u64>,
    /// Milliseconds from sending the request to the first content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_token_ms: Option<u64>,
    /// The provider never said what the call took: `usage` is reckoned from what was sent and heard.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
}

/// Money and tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spending {
    /// Millionths of a US dollar, of the calls whose price is known.
    pub micro_usd: u64,
    /// Of all classes.
    pub tokens: u64,
}

/// Why the beginning of a request is not what the provider keeps from the one before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheBroke {
    pub work: Seq,
    pub cause: CacheBreak,
    /// Tokens of the call before that could have been read from the cache.
    pub tokens: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum CacheBreak {
    /// A section of the system prompt has other text than in the call before.
    Section { name: String },
    /// Sections were added, left out or put in another order; the first that differs.
    Order { name: String },
    /// The tool list changed.
    Tools,
    /// The request began as the one before, and the provider read only `read` tokens of it from its cache.
    Miss {
        read: u64,
        /// Milliseconds since the call before ended.
        idle_ms: u64,
    },
}

/// Why a model call failed, told by what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelFailure {
    pub kind: FailureKind,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The provider asked to wait this long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// Try again: the network, the server, a stream that broke.
    Transient,
    /// Try again later: rate limit or overload.
    Overloaded,
    /// Nothing came for as long as one waits.
    Stalled,
    /// The prompt does not fit the model's window.
    TooLong,
    /// The key is missing, wrong or not allowed.
    Auth,
    /// The request is wrong; sending it again changes nothing.
    Invalid,
}

/// What the policy said of a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    pub work: Seq,
    pub call: CallId,
    pub verdict: Verdict,
    /// The stage that decided: `tool`, `schema`, `rule`, `mode`, `default`, …
    pub stage: String,
    /// The rule that decided, as written, where one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Why, in a sentence: of a denial, what the model is told.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The arguments that will run, where they differ from the model's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    #[serde(flatten)]
    pub plan: CallPlan,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Allow,
    Ask,
    Deny,
    /// It cannot run as it was made: no such tool, or wrong arguments. A failure, not a refusal.
    Invalid,
}

/// What a call would touch, asked of its tool per input.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CallPlan {
    pub access: Access,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// Capability tags: `fs.read`, `fs.write`, `exec`, `net`, `search`, `ask`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    pub on_crash: OnCrash,
}

/// Whether a call changes anything; what is not known to read is taken to write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    Read,
    #[default]
    Write,
}

/// What a crash in mid-call means for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnCrash {
    /// Run it again: it only looked.
    Repeat,
    /// Never run it again in silence: say that the outcome is unknown.
    #[default]
    Unknown,
    /// It lives on elsewhere: take it up where it is.
    Rejoin,
}

/// What a person is asked before a call may run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// SHA-256 over exactly what is asked (tool, input, folder): an answer names it.
    pub hash: String,
    pub kind: QuestionKind,
    /// What would happen: the command, the diff, the question itself.
    pub preview: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub impact: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Rules that "always" would add, narrowest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub proposed: Vec<String>,
    /// Answers the model offers to choose from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuestionKind {
    /// May this run?
    Approval,
    /// The model asks; the words of the answer are the call's result.
    Words,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answered {
    pub call: CallId,
    /// The hash of the question this answers.
    pub hash: String,
    pub decision: Decision,
    pub scope: Scope,
    /// The rule the answer adds for its scope.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Arguments changed by who answered, and what they would touch: these run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<Changed>,
    /// Who answered: a person at a front end, a rule given meanwhile, …
    pub by: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Changed {
    pub input: Value,
    #[serde(flatten)]
    pub plan: CallPlan,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Decision {
    Allow,
    /// With a word to the model, if one was given.
    Deny {
        #[serde(default, skip_serializing_if = "String::is_empty")]
        note: String,
    },
    /// The answer to a question of words.
    Words {
        text: String,
    },
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    #[default]
    Once,
    Session,
    Always,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolStarted {
    pub work: Seq,
    pub call: CallId,
    #[serde(flatten)]
    pub plan: CallPlan,
    /// `session:call`: the same for every attempt to make this one effect.
    pub idempotency_key: String,
    /// Told in a second event, as soon as there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<Process>,
}

/// A process, told from a later one that got the same number by its start time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    pub pid: u32,
    /// Clock ticks after boot, as in `/proc/PID/stat`.
    pub started: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolFinished {
    pub work: Seq,
    pub call: CallId,
    pub outcome: Outcome,
    /// What the model sees.
    pub blocks: Vec<ContentBlock>,
    /// The same for programs, where the tool has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// The whole output, where `blocks` hold only a part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<BlobRef>,
    /// The files it read or changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileSeen>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub aborts_siblings: bool,
    /// Milliseconds it ran.
    pub took_ms: u64,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Ok,
    Error,
    Denied,
    Cancelled,
    /// It never began.
    NotRun,
    /// It began and nobody knows what it did.
    Unknown,
}

/// A file by SHA-256 of its content before and after a call; none: it was not there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSeen {
    pub path: String,
    pub before: Option<String>,
    pub after: Option<String>,
}
