//! Putting an agent together. Nothing here does I/O: connections are made, and TLS is loaded, at the first call.

use crate::{Agent, Provider, Providers, world};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use windlass_hooks::EventName;
use windlass_kernel::{Parameters, PermissionMode, Profile, Record, Scope, SessionId, State};
use windlass_llm::{
    Auth, AwsKeys, Http, HttpError, HttpOptions, KeySource, Model, Prices, ToolCalls, connect, text_tools,
};
use windlass_policy::Policy;
use windlass_prompt::Facts;
use windlass_runtime::{
    FindFacts, FindModel, Hooking, KeepRule, ModelFacts, Models, NewSession, Observer, Setup, StopCheck, World,
};
use windlass_store::{MemoryStore, Store};
use windlass_tools::sandbox::Wall;
use windlass_tools::{Secrets, Tool, Tools};

/// Prices by `PROVIDER/NAME`, in the place of the catalog's.
type FindPrices = Arc<dyn Fn(&str) -> Option<Prices> + Send + Sync>;

/// Output tokens asked for where nothing else is said.
const MAX_OUTPUT_TOKENS: u32 = 16_384;

pub struct AgentBuilder {
    cwd: PathBuf,
    store: Option<Arc<dyn Store>>,
    providers: Providers,
    model: String,
    own_model: Option<Arc<dyn Model>>,
    tools: Option<Arc<Tools>>,
    own_tools: Vec<Arc<dyn Tool>>,
    policy: Policy,
    mode: PermissionMode,
    profile: Profile,
    parameters: Parameters,
    facts: Facts,
    interactive: bool,
    stop_checks: Vec<StopCheck>,
    prices: FindPrices,
    scratch: Option<PathBuf>,
    env: BTreeMap<String, String>,
    always_sync: bool,
    world: World,
    worker: String,
    keep_rule: KeepRule,
    hooking: Option<Hooking>,
    reviewer: Option<String>,
    secrets: Arc<Secrets>,
    wall: Arc<Wall>,
    observers: Vec<Observer>,
    http: HttpOptions,
}

#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    #[error("no model is given: name one as PROVIDER/NAME, for example anthropic/claude-sonnet-4-5 or ollama/qwen3")]
    NoModel,
    #[error("{0:?} names no model: write PROVIDER/NAME, for example anthropic/claude-sonnet-4-5 or ollama/qwen3")]
    BadModel(String),
    #[error("there is no provider {name:?}: known are {known}; give others their address with `[providers.{name}]`")]
    NoProvider { name: String, known: String },
    #[error("the folder {0:?} is not absolute: give the whole path with `cwd`, for rules and sessions depend on it")]
    RelativeCwd(PathBuf),
    #[error("{0}")]
    Unreachable(String),
    #[error(transparent)]
    Http(#[from] HttpError),
}

impl Default for AgentBuilder {
    fn default() -> AgentBuilder {
        AgentBuilder {
            cwd: PathBuf::new(),
            store: None,
            providers: Providers::default(),
            model: String::new(),
            own_model: None,
            tools: None,
            own_tools: vec![],
            policy: Policy::default(),
            mode: PermissionMode::Default,
            profile: Profile::default(),
            parameters: Parameters { max_tokens: MAX_OUTPUT_TOKENS, ..Parameters::default() },
            facts: Facts::default(),
            interactive: false,
            stop_checks: vec![],
            prices: Arc::new(|_| None),
            scratch: None,
            env: BTreeMap::new(),
            always_sync: false,
            world: world::of_this_machine(),
            worker: "library".into(),
            keep_rule: Arc::new(|_, _| {}),
            hooking: None,
            reviewer: None,
            secrets: Arc::default(),
            wall: Arc::default(),
            observers: vec![],
            http: HttpOptions::default(),
        }
    }
}

impl AgentBuilder {
    /// The folder sessions work in, as an absolute path: relative paths of tools start here, and it is the workspace
    /// that rules speak of.
    pub fn cwd(mut self, cwd: impl Into<PathBuf>) -> Self {
        self.cwd = cwd.into();
        self
    }

    /// Where sessions are stored; in memory, and gone with the process, if nothing is said.
    pub fn store(mut self, store: Arc<dyn Store>) -> Self {
        self.store = Some(store);
        self
    }

    pub fn providers(mut self, providers: Providers) -> Self {
        self.providers = providers;
        self
    }

    /// The model of new sessions, as `PROVIDER/NAME`.
    pub fn model(mut self, name: impl Into<String>) -> Self {
        self.model = name.into();
        self
    }

    /// A model of one's own, whatever sessions name.
    pub fn model_of(mut self, model: Arc<dyn Model>) -> Self {
        self.model = format!("{}/{}", model.provider(), model.name());
        self.own_model = Some(model);
        self
    }

    /// Adds a tool to the registry.
    pub fn tool(mut self, tool: impl Tool + 'static) -> Self {
        self.own_tools.push(Arc::new(tool));
        self
    }

    /// The registry, in place of the built-in tools.
    pub fn tools(mut self, tools: Arc<Tools>) -> Self {
        self.tools = Some(tools);
        self
    }

    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    pub fn mode(mut self, mode: PermissionMode) -> Self {
        self.mode = mode;
        self
    }

    pub fn profile(mut self, profile: Profile) -> Self {
        self.profile = profile;
        self
    }

    pub fn parameters(mut self, parameters: Parameters) -> Self {
        self.parameters = parameters;
        self
    }

    /// What the system prompt is made of.
    pub fn facts(mut self, facts: Facts) -> Self {
        self.facts = facts;
        self
    }

    /// Somebody follows the session and answers its questions; otherwise what would be asked is denied.
    pub fn interactive(mut self, interactive: bool) -> Self {
        self.interactive = interactive;
        self
    }

    /// A check before a turn ends; the text it gives sends the model back to work.
    pub fn stop_check(mut self, check: impl Fn(&State) -> Option<String> + Send + Sync + 'static) -> Self {
        self.stop_checks.push(Arc::new(check));
        self
    }

    /// Prices by `PROVIDER/NAME` that win over the catalog's; without any a call's cost is unknown, never zero.
    pub fn prices(mut self, prices: impl Fn(&str) -> Option<Prices> + Send + Sync + 'static) -> Self {
        self.prices = Arc::new(prices);
        self
    }

    /// Where outputs too long for the model go.
    pub fn scratch(mut self, scratch: impl Into<PathBuf>) -> Self {
        self.scratch = Some(scratch.into());
        self
    }

    /// The environment of child processes; empty if nothing is said.
    pub fn env(mut self, env: BTreeMap<String, String>) -> Self {
        self.env = env;
        self
    }

    /// fsync at every step, not only before side effects and at the end of a turn.
    pub fn always_sync(mut self, always: bool) -> Self {
        self.always_sync = always;
        self
    }

    pub fn world(mut self, world: World) -> Self {
        self.world = world;
        self
    }

    /// The name of this process in the log.
    pub fn worker(mut self, worker: impl Into<String>) -> Self {
        self.worker = worker.into();
        self
    }

    /// Called with each rule that an answer of scope "always" added.
    pub fn keep_rule(mut self, keep: impl Fn(&str, Scope) + Send + Sync + 'static) -> Self {
        self.keep_rule = Arc::new(keep);
        self
    }

    /// Commands of the user's that look at what happens, and how they are started. Where they want to hear of a turn's
    /// end, new sessions look at it once more after a hook (or a stop check) sent the model back to work.
    pub fn hooking(mut self, hooking: Hooking) -> Self {
        self.hooking = Some(hooking);
        self
    }

    /// The model that answers in a person's place in mode `auto`, as `PROVIDER/NAME`; else the session's own does.
    pub fn reviewer(mut self, model: impl Into<String>) -> Self {
        self.reviewer = Some(model.into());
        self
    }

    /// What is kept out of the log, of what followers are told, and of what models are given: secrets found by their
    /// value or by what they look like. The keys of the models that are used are added by themselves.
    pub fn secrets(mut self, secrets: Arc<Secrets>) -> Self {
        self.secrets = secrets;
        self
    }

    /// What the processes of tools are kept in by; none unless given. A program that gives one begins its `main` with
    /// [`windlass_tools::sandbox::enter`].
    pub fn wall(mut self, wall: Arc<Wall>) -> Self {
        self.wall = wall;
        self
    }

    /// Called with each record of every session once it is durable, on the session's own thread: it must neither wait nor
    /// panic.
    pub fn observer(mut self, observer: impl Fn(&Record) + Send + Sync + 'static) -> Self {
        self.observers.push(Arc::new(observer));
        self
    }

    pub fn http(mut self, http: HttpOptions) -> Self {
        self.http = http;
        self
    }

    pub fn build(self) -> Result<Agent, BuildError> {
        if self.model.is_empty() {
            return Err(BuildError::NoModel);
        }
        if !self.cwd.is_absolute() {
            return Err(BuildError::RelativeCwd(self.cwd));
        }
        if self.own_model.is_none() {
            provider_of(&self.providers, &self.model)?;
            if let Some(fallback) = &self.profile.fallback {
                provider_of(&self.providers, &fallback.model)?;
            }
        }
        let tools = self.tools.unwrap_or_else(|| {
            let tools = Tools::default();
            windlass_tools::builtin().into_iter().for_each(|tool| tools.register(tool));
            Arc::new(tools)
        });
        self.own_tools.into_iter().for_each(|tool| tools.register(tool));
        let facts = find_facts(self.providers.clone(), self.prices);
        let http = Http::new(self.http)?;
        let find = find_models(self.own_model, self.providers, http, self.secrets.clone());
        let mut prompt = self.facts;
        prompt.interactive = self.interactive;
        let profile = heard_twice(self.profile, self.hooking.as_ref());
        let setup = Setup {
            store: self.store.unwrap_or_else(|| Arc::new(MemoryStore::new())),
            models: Models { find, facts },
            tools,
            policy: Arc::new(self.policy),
            prompt,
            parameters: self.parameters,
            offers: Default::default(),
            stop_checks: self.stop_checks,
            world: self.world,
            tenant: "local".into(),
            worker: self.worker,
            interactive: self.interactive,
            always_sync: self.always_sync,
            scratch: self.scratch.unwrap_or_else(|| self.cwd.join(".windlass/scratch")),
            env: Arc::new(self.env),
            wall: self.wall,
            keep_rule: self.keep_rule,
            hooking: self.hooking,
            reviewer: self.reviewer,
            secrets: self.secrets,
            observers: self.observers,
        };
        let defaults = NewSession {
            session: SessionId(uuid::Uuid::nil()),
            cwd: self.cwd,
            agent: "main".into(),
            model: self.model,
            mode: self.mode,
            profile,
        };
        Ok(Agent { setup: Arc::new(setup), defaults })
    }
}

/// A hook that sent the model back to work is asked again at the end, and told that it was.
fn heard_twice(profile: Profile, hooking: Option<&Hooking>) -> Profile {
    let wants = |hooking: &&Hooking| hooking.hooks.wants(EventName::Stop, "");
    match hooking.filter(wants) {
        Some(_) => Profile { max_stop_blocks: profile.max_stop_blocks.max(2), ..profile },
        None => profile,
    }
}

fn find_models(own: Option<Arc<dyn Model>>, providers: Providers, http: Http, secrets: Arc<Secrets>) -> FindModel {
    Arc::new(move |name| {
        if let Some(model) = &own {
            return Ok(model.clone());
        }
        let (provider, model, known) = provider_of(&providers, name).map_err(|error| error.to_string())?;
        if known.needs_key && !known.has_key() {
            let hint = &known.key_hint;
            return Err(format!("{provider} needs a key: set {hint}, or choose another model with --model"));
        }
        let info = providers.model(name);
        let mut endpoint = known.endpoint(&providers.name_of(provider), info.as_ref());
        endpoint.auth = overheard(endpoint.auth, provider, &secrets);
        let connected = connect(known.protocol, http.clone(), endpoint, model);
        Ok(match known.tool_calls.or(info.map(|info| info.tool_calls)).unwrap_or_default() {
            ToolCalls::Native => connected,
            ToolCalls::Text => text_tools(connected),
        })
    })
}

/// The same way in, whose keys are secrets from the moment they are known.
fn overheard(auth: Auth, provider: &str, secrets: &Arc<Secrets>) -> Auth {
    let name = format!("{provider} key");
    match &auth {
        Auth::None => {}
        Auth::Key(key) => secrets.learn(&name, key.expose()),
        Auth::Aws(keys) => {
            let AwsKeys { secret_access_key, session_token, .. } = keys;
            secrets.learn(&name, secret_access_key);
            session_token.iter().for_each(|token| secrets.learn(&name, token));
        }
        Auth::Source(source) => {
            let (source, secrets) = (source.clone(), secrets.clone());
            return Auth::Source(KeySource(Arc::new(move || {
                let (given, secrets, name) = ((source.0)(), secrets.clone(), name.clone());
                Box::pin(async move { given.await.inspect(|key| secrets.learn(&name, key.expose())) })
            })));
        }
    }
    auth
}

fn find_facts(providers: Providers, prices: FindPrices) -> FindFacts {
    Arc::new(move |name| {
        let own = prices(name);
        let Some(info) = providers.model(name) else { return ModelFacts { prices: own, ..ModelFacts::default() } };
        ModelFacts { window: info.window, max_output: info.max_output, prices: own.or(info.prices), habits: info.tools }
    })
}

fn provider_of<'a>(providers: &Providers, name: &'a str) -> Result<(&'a str, &'a str, Provider), BuildError> {
    let parts = name.split_once('/').filter(|(provider, model)| !provider.is_empty() && !model.is_empty());
    let Some((provider, model)) = parts else { return Err(BuildError::BadModel(name.to_owned())) };
    let known = providers.get(provider).map_err(BuildError::Unreachable)?;
    let known = known
        .ok_or_else(|| BuildError::NoProvider { name: provider.to_owned(), known: providers.names().join(", ") })?;
    Ok((provider, model, known))
}
