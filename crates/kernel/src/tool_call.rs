//! What events say of a tool call: what was decided and asked of it, and what came of it.

use crate::*;
use serde::{Deserialize, Serialize};
use serde_json::Value;

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
    /// What hooks have the model told beside the call's result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// What a model that reviewed the call said, where one was asked in a person's place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review: Option<Box<Review>>,
    #[serde(flatten)]
    pub plan: CallPlan,
}

/// A model's answer in a person's place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Review {
    /// Whether it lets the call run; none: it gave no answer that can be read, and so allowed nothing.
    pub allows: Option<bool>,
    pub reason: String,
    pub spent: Spent,
}

/// A command of the user's that looked at what happens.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HookRan {
    /// The event it was told of: `PreToolUse`, …
    pub on: String,
    /// The command, as configured.
    pub hook: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<CallId>,
    pub outcome: HookOutcome,
    /// What it said for people, or what went wrong with it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// What it printed, clipped; empty if it wanted that left out.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub printed: String,
    /// It changed the call's arguments.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rewrote: bool,
    pub took_ms: u64,
}

/// What a hook had to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookOutcome {
    /// Nothing that changes anything, or only context for the model.
    Passed,
    Allowed,
    Asked,
    Blocked,
    /// It gave no answer that counts: wrong exit code, timeout, unreadable output.
    Failed,
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
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
    /// The folder the call would act in.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub folder: String,
    /// Why it is asked.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Of a command line with several parts: each, and what is said of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<QuestionPart>,
    /// Rules that "always" would add, narrowest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub proposed: Vec<String>,
    /// Each of `proposed` answers for a part, and all of them are needed; else they are to choose from.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub together: bool,
    /// What each of `proposed` would let run besides this call, in a sentence.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub covers: Vec<String>,
    /// It is asked every time: only this one call can be allowed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub every_time: bool,
    /// Answers the model offers to choose from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
}

/// One command of a command line, or a file it uses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuestionPart {
    pub part: String,
    /// Whether it would run unasked by itself.
    pub allowed: bool,
    pub reason: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuestionKind {
    /// May this run?
    #[default]
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
    /// Further rules of the same kind, where a call has several parts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more_rules: Vec<String>,
    /// Arguments changed by who answered, and what they would touch: these run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<Changed>,
    /// Who answered: a person at a front end, a rule given meanwhile, …
    pub by: String,
}

impl Answered {
    /// All rules that the answer adds for its scope.
    pub fn rules(&self) -> impl Iterator<Item = &String> {
        self.rule.iter().chain(&self.more_rules)
    }
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
    /// From now on in this folder. Logs older than this word say `always` for it.
    Project,
    /// From now on, everywhere.
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
