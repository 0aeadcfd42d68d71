//! What a tool is.

use crate::Root;
use crate::Secrets;
use crate::sandbox::Wall;
use async_trait::async_trait;
use bytes::Bytes;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use windlass_kernel::{BlobRef, CallId, CallPlan, ContentBlock, FileSeen, Process, QuestionKind, SessionId};

/// Something a model can have done. Failure is data: `call` never panics on purpose and never returns an error.
#[async_trait]
pub trait Tool: Send + Sync {
    fn name(&self) -> &str;
    fn description(&self) -> &str;
    /// JSON Schema of the arguments.
    fn schema(&self) -> Value;
    /// What this input would touch; asked before every call. Must not change anything.
    fn plan(&self, input: &Value, workspace: &Workspace) -> CallPlan;
    /// A tool that is not enabled is not offered.
    fn enabled(&self) -> bool {
        true
    }
    /// Only models of this habit, by the catalog, are offered the tool; none: all are.
    fn habit(&self) -> Option<&'static str> {
        None
    }
    /// Puts arguments into the form the schema states, before they are checked: other names for a field, say.
    fn normalise(&self, input: Value) -> Value {
        input
    }
    /// Whether a person must be asked, whatever the mode says.
    fn confirm(&self, _input: &Value) -> Confirm {
        Confirm::AsPolicySays
    }
    /// What to put before a person if the call must be confirmed: the tool's own words.
    fn confirmation(&self, _input: &Value, _workspace: &Workspace) -> Option<Confirmation> {
        None
    }
    /// Milliseconds a call may take where the configuration says nothing.
    fn timeout_ms(&self) -> u64 {
        30_000
    }
    /// Milliseconds this call may take; `configured` is what the configuration says for the tool.
    fn limit_ms(&self, _input: &Value, configured: Option<u64>) -> u64 {
        configured.unwrap_or_else(|| self.timeout_ms())
    }
    /// Bytes of text a call may give the model; what is longer is cut in the middle.
    fn output_limit_bytes(&self) -> usize {
        crate::OUTPUT_LIMIT_BYTES
    }
    /// Does it. Cancelled through `run.cancel`; must then stop everything it started and return soon.
    async fn call(&self, input: Value, run: &ToolRun) -> ToolOutput;
}

/// Where a session works.
#[derive(Clone, Debug)]
pub struct Workspace {
    pub session: SessionId,
    /// The folder the session was opened in: relative paths start here, and it is the workspace's root.
    pub cwd: PathBuf,
    /// The same folder, held open: what file tools reach their files by.
    pub root: Arc<Root>,
    /// Where outputs too long for the model are written, one file a call.
    pub scratch: PathBuf,
    /// The environment of child processes.
    pub env: Arc<BTreeMap<String, String>>,
    /// What child processes are kept in by.
    pub wall: Arc<Wall>,
    /// What must not be told or kept of what a call gives.
    pub secrets: Arc<Secrets>,
}

/// One call of a tool, while it runs.
#[derive(Clone)]
pub struct ToolRun {
    pub workspace: Arc<Workspace>,
    pub call: CallId,
    /// The same for every attempt to make this one effect.
    pub idempotency_key: String,
    pub cancel: CancellationToken,
    /// The paths of the plan that was judged: file tools open no others.
    pub paths: Vec<String>,
    /// Content hashes of the files this session has read or written, by absolute path.
    pub seen: Arc<BTreeMap<String, String>>,
    pub reports: Reports,
}

/// The way back from a running tool; never blocks, and drops progress nobody has time for.
#[derive(Clone)]
pub struct Reports(pub Arc<dyn Fn(ToolReport) + Send + Sync>);

#[derive(Clone, Debug, PartialEq)]
pub enum ToolReport {
    /// A child process runs; told at once, so that it can be found after a crash.
    Spawned(Process),
    /// Something to show meanwhile.
    Progress(String),
}

/// A tool's own wish to be confirmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confirm {
    AsPolicySays,
    /// Asked, unless a rule allows the call.
    UnlessRuled,
    /// Always asked, even where a rule or the mode would allow the call.
    Always,
}

/// What a person is asked, and what is at stake.
#[derive(Clone, Debug, PartialEq)]
pub struct Confirmation {
    pub kind: QuestionKind,
    /// What would happen: the command, the diff, the question.
    pub preview: String,
    pub impact: String,
    /// Answers to choose from, for a question of words.
    pub options: Vec<String>,
}

/// What a call gave.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolOutput {
    pub is_error: bool,
    /// What the model sees.
    pub blocks: Vec<ContentBlock>,
    /// The same for programs.
    pub value: Option<Value>,
    /// The whole output, where `blocks` hold only a part.
    pub output: Option<BlobRef>,
    /// Bytes that `blocks` and `output` refer to.
    pub blobs: Vec<(BlobRef, Bytes)>,
    pub files: Vec<FileSeen>,
}

impl ToolOutput {
    /// What went well, in words.
    pub fn text(text: impl Into<String>) -> ToolOutput {
        ToolOutput { blocks: vec![ContentBlock::text(text)], ..ToolOutput::default() }
    }

    /// What went wrong, in words that say the way out.
    pub fn error(text: impl Into<String>) -> ToolOutput {
        ToolOutput { is_error: true, ..ToolOutput::text(text) }
    }
}

impl Reports {
    /// Nobody listens.
    pub fn none() -> Reports {
        Reports(Arc::new(|_| {}))
    }

    pub fn spawned(&self, process: Process) {
        (self.0)(ToolReport::Spawned(process));
    }

    pub fn progress(&self, text: String) {
        (self.0)(ToolReport::Progress(text));
    }
}
