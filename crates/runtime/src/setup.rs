//! What a session is given from outside.

pub use crate::briefing::Offers;
use crate::{Frame, Hooking};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use uuid::Uuid;
use windlass_kernel::{Parameters, PermissionMode, Profile, Record, Scope, SessionId, State};
use windlass_llm::{Model, Prices};
use windlass_policy::Policy;
use windlass_prompt::Facts;
use windlass_store::Store;
use windlass_tools::sandbox::Wall;
use windlass_tools::{Secrets, Tools};

/// Everything sessions of one process share.
pub struct Setup {
    pub store: Arc<dyn Store>,
    pub models: Models,
    pub tools: Arc<Tools>,
    pub policy: Arc<Policy>,
    /// What the system prompt is made of; the tools are added per call.
    pub prompt: Facts,
    pub parameters: Parameters,
    pub offers: Offers,
    pub stop_checks: Vec<StopCheck>,
    pub world: World,
    pub tenant: String,
    /// The name of this process in the log.
    pub worker: String,
    /// Somebody is there who can be asked.
    pub interactive: bool,
    /// fsync at every step, not only before side effects and at the end of a turn.
    pub always_sync: bool,
    /// Where outputs too long for the model go.
    pub scratch: PathBuf,
    /// The environment of child processes.
    pub env: Arc<BTreeMap<String, String>>,
    /// What child processes are kept in by.
    pub wall: Arc<Wall>,
    /// Called with each rule that an answer gave for longer than a session, once it is durable.
    pub keep_rule: KeepRule,
    /// Commands of the user's that look at what happens.
    pub hooking: Option<Hooking>,
    /// The model that answers asks in mode `auto`, as `PROVIDER/NAME`; none: the session's own.
    pub reviewer: Option<String>,
    /// What is never stored, told or given to a model.
    pub secrets: Arc<Secrets>,
    pub observers: Vec<Observer>,
}

/// Keeps a rule for this folder ([`Scope::Project`]) or for all ([`Scope::Always`]).
pub type KeepRule = Arc<dyn Fn(&str, Scope) + Send + Sync>;

/// Called with each record once it is durable, on the session's own thread: it must neither wait nor panic.
pub type Observer = Arc<dyn Fn(&Record) + Send + Sync>;

impl Setup {
    pub(crate) fn observe(&self, frames: &[Frame]) {
        for observer in &self.observers {
            frames.iter().filter_map(Frame::record).for_each(|record| observer(record));
        }
    }
}

/// Finds models by `PROVIDER/NAME`, and what is known of them.
#[derive(Clone)]
pub struct Models {
    pub find: FindModel,
    pub facts: FindFacts,
}

/// What is known of a model; what is not known is none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelFacts {
    /// Tokens its window holds.
    pub window: Option<u64>,
    /// Tokens one answer may have at most.
    pub max_output: Option<u64>,
    pub prices: Option<Prices>,
    /// Tools of its own habit, besides those that every model is offered.
    pub habits: Vec<String>,
}

/// The model of that name, or why there is none, with the way out.
pub type FindModel = Arc<dyn Fn(&str) -> Result<Arc<dyn Model>, String> + Send + Sync>;
/// What is known of the model of that name.
pub type FindFacts = Arc<dyn Fn(&str) -> ModelFacts + Send + Sync>;

/// Looks at the state of a turn that is about to end; a text sends the model back to work with it.
pub type StopCheck = Arc<dyn Fn(&State) -> Option<String> + Send + Sync>;

/// Time and identity, as values.
#[derive(Clone)]
pub struct World {
    /// Milliseconds since the Unix epoch.
    pub now: Arc<dyn Fn() -> u64 + Send + Sync>,
    /// A new unique id.
    pub id: Arc<dyn Fn() -> Uuid + Send + Sync>,
    /// A time as ISO 8601 with the user's offset.
    pub local_time: Arc<dyn Fn(u64) -> String + Send + Sync>,
}

/// What a new session is opened with.
#[derive(Clone, Debug)]
pub struct NewSession {
    pub session: SessionId,
    pub cwd: PathBuf,
    pub agent: String,
    /// `PROVIDER/NAME`.
    pub model: String,
    pub mode: PermissionMode,
    pub profile: Profile,
}
