//! Everything a command needs at hand: the settings, the store, and the agent made of them.

use crate::args::{Flags, Shelf};
use crate::environment::{self, Environment};
use crate::exit::{Code, Failure};
use crate::extensions::{Extensions, ProjectTools};
use crate::settings::Settings;
use crate::telemetry::{self, Telemetry};
use crate::{choose, clock, hooks, kept, project, sandbox, secrets, terminal};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Arc, OnceLock};
use windlass::llm::HttpOptions;
use windlass::runtime::World;
use windlass::{Agent, Providers, Session};
use windlass_kernel::{Configured, Event, InputId, Profile, Rejected, Scope, Seq, SessionId, State};
use windlass_prompt::Facts;
use windlass_runtime::SendError;
use windlass_store::{MemoryStore, SessionFilter, SessionInfo, SqliteStore, Store, StoreError, Worker};
use windlass_tools::{Tools, builtin};

/// What a process works with; the folder is that of its session.
pub struct Desk {
    pub environment: Environment,
    pub flags: Flags,
    pub settings: Settings,
    pub store: Arc<dyn Store>,
    pub worker: Worker,
    pub folder: PathBuf,
    /// Started with the first agent; sends what waits when the desk is cleared.
    pub telemetry: OnceLock<Telemetry>,
    /// Tools that lie in folders.
    pub extensions: Extensions,
}

/// Which session is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Which {
    New,
    /// The newest of this folder.
    Newest,
    Id(String),
}

/// A session that was opened or taken up here.
pub struct Open {
    pub session: Session,
    /// The head of its log before this process wrote to it.
    pub before: Seq,
}

/// What an agent is made for.
struct Choice {
    model: String,
    providers: Providers,
    profile: Profile,
}

impl Desk {
    pub fn new(flags: Flags, environment: Environment) -> Result<Desk, Failure> {
        let folder = environment.cwd.clone();
        let settings = Settings::load(&flags, &environment, &folder)?;
        let worker = environment::worker();
        let store = open_store(&settings, worker.clone())?;
        let (telemetry, extensions) = (OnceLock::new(), Extensions::new(&environment));
        Ok(Desk { environment, flags, settings, store, worker, folder, telemetry, extensions })
    }

    /// A desk for what needs no session: a store that cannot be used is no reason to fail.
    pub fn without_store(flags: Flags, environment: Environment) -> Result<Desk, Failure> {
        Desk::new(Flags { store: Some(Shelf::Memory), ..flags }, environment)
    }

    /// Reads the configuration anew: a flag has changed.
    pub fn reload(&mut self) -> Result<(), Failure> {
        self.settings = Settings::load(&self.flags, &self.environment, &self.folder)?;
        Ok(())
    }

    /// Moves to the folder that `session` was opened in, whose rules hold for it.
    pub fn move_to(&mut self, session: &SessionInfo) -> Result<(), Failure> {
        let folder = Path::new(&session.cwd);
        if folder == self.folder {
            return Ok(());
        }
        if !folder.is_dir() {
            return Err(Failure::usage(format!(
                "the folder of session {} is gone: {}; make it again, or begin a new session",
                session.session, session.cwd
            )));
        }
        self.settings = Settings::load(&self.flags, &self.environment, folder)?;
        self.folder = folder.to_owned();
        Ok(())
    }

    /// The agent for new sessions in this folder, and its model.
    pub fn agent(&self, interactive: bool) -> Result<(Agent, String), Failure> {
        let choice = self.choose(None)?;
        let model = choice.model.clone();
        Ok((self.agent_of(choice, interactive)?, model))
    }

    /// Which model speaks, and where. A session that is taken up brings its own, and the one it falls back on, unless
    /// the command line names another.
    fn choose(&self, sessions_own: Option<&str>) -> Result<Choice, Failure> {
        let (config, environment) = (&self.settings.config, &self.environment);
        let mut providers = choose::providers(config, environment)?;
        let model = match sessions_own.filter(|_| !self.settings.said.model) {
            Some(own) => own.to_owned(),
            None => choose::model(config, environment, &mut providers)?,
        };
        choose::check_key(&model, &providers)?;
        self.check_caps(&model, &providers)?;
        let mut profile = self.settings.profile.clone();
        let holds = sessions_own.is_none() || self.settings.said.profile;
        profile.fallback = profile.fallback.filter(|_| holds);
        if let Some(fallback) = &mut profile.fallback {
            let source = choose::source(config, "fallback_model");
            fallback.model = choose::fallback(&fallback.model, &model, &providers, &source)?;
            self.check_caps(&fallback.model, &providers)?;
        }
        Ok(Choice { model, providers, profile })
    }

    fn agent_of(&self, choice: Choice, interactive: bool) -> Result<Agent, Failure> {
        let (config, environment) = (&self.settings.config, &self.environment);
        let Choice { model, providers, profile } = choice;
        let address = model.split_once('/').and_then(|(name, _)| providers.get(name).ok().flatten());
        let proxy = address.and_then(|provider| environment.proxy_for(&provider.base_url)).map(str::to_owned);
        let mut secret = choose::key_variables(config, environment, &providers);
        secret.push(telemetry::HEADERS_VARIABLE);
        let secrets = secrets::load(config, environment);
        let env = environment.for_children(secret, &sandbox::further_variables(config));
        let (prices, rules, folder) = (self.settings.prices.clone(), kept::file(environment), self.folder.clone());
        let builder = Agent::builder()
            .cwd(&self.folder)
            .store(self.store.clone())
            .providers(providers)
            .model(&model)
            .tools(self.tools())
            .policy(self.settings.policy.clone())
            .mode(self.settings.mode)
            .profile(profile)
            .parameters(self.settings.parameters.clone())
            .facts(self.facts())
            .interactive(interactive)
            .prices(move |model| prices.get(model).copied())
            .scratch(environment.data_dir.join("scratch"))
            .env(env.clone())
            .secrets(secrets)
            .wall(self.settings.wall.clone())
            .always_sync(self.settings.always_sync)
            .world(World {
                now: Arc::new(clock::now_ms),
                id: Arc::new(uuid::Uuid::now_v7),
                local_time: Arc::new(clock::iso),
            })
            .worker(self.worker.id.clone())
            .keep_rule(move |rule, scope| {
                let folder = (scope == Scope::Project).then_some(&*folder);
                if let Err(error) = kept::keep(&rules, folder, rule) {
                    terminal::tell(&format!(
                        "the rule {rule} holds for this session, but can't be kept in {}: {error}",
                        rules.display()
                    ));
                }
            })
            .http(HttpOptions { clocks: self.settings.clocks, proxy, ..HttpOptions::default() });
        let builder = match hooks::hooking(&self.settings.hooks, environment, &self.folder, &env, &self.settings.wall) {
            Some(hooking) => builder.hooking(hooking),
            None => builder,
        };
        let builder = match config.text("auto.model") {
            Some(model) => builder.reviewer(model),
            None => builder,
        };
        self.telemetry()?.watch(builder).build().map_err(|error| Failure::usage(error.to_string()))
    }

    /// What follows the sessions of this desk, started when it is first asked for.
    fn telemetry(&self) -> Result<&Telemetry, Failure> {
        if let Some(running) = self.telemetry.get() {
            return Ok(running);
        }
        let started = Telemetry::start(&self.settings.telemetry)?;
        Ok(self.telemetry.get_or_init(|| started))
    }

    pub fn tools(&self) -> Arc<Tools> {
        let tools = Tools::new(self.settings.tools.clone());
        builtin().into_iter().for_each(|tool| tools.register(tool));
        self.settings.web.tools().into_iter().for_each(|tool| tools.register(tool));
        self.extensions.enclose(&tools, &self.settings.boxed);
        self.extensions.register(&tools, &self.environment, &self.places());
        Arc::new(tools)
    }

    /// Where tools lie that the folder brings.
    pub fn places(&self) -> ProjectTools<'_> {
        ProjectTools { folder: &self.folder, trusted: self.settings.project.extensions.as_deref() }
    }

    fn facts(&self) -> Facts {
        let text = |key: &str| self.settings.config.text(key).map(str::to_owned);
        Facts {
            system_prompt: text("system_prompt"),
            append: text("append_system_prompt"),
            project: project::files(&self.folder),
            platform: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
            date: clock::day(clock::now_ms()),
            git: project::branch(&self.folder),
            locale: self.settings.locale,
            ..Facts::default()
        }
    }

    /// That a cap in money can be held: it needs a price.
    fn check_caps(&self, model: &str, providers: &Providers) -> Result<(), Failure> {
        let caps = [self.settings.caps.session, self.settings.caps.day, self.settings.caps.tree];
        let is_priced = |model: &str| {
            let local = providers.catalog().provider(providers_part(model)).is_some_and(|info| info.local);
            let known = providers.model(model).is_some_and(|info| info.prices.is_some());
            local || known || self.settings.prices.contains_key(model)
        };
        if is_priced(model) || caps.iter().all(|cap| cap.micro_usd.is_none()) {
            return Ok(());
        }
        Err(Failure::usage(format!(
            "a cap in dollars can't be held: no price of {model} is known; give one as \
             [prices.\"{model}\"] input = …, output = …, or cap the tokens (caps.session_tokens)"
        )))
    }

    /// A session's own model to fall back on may be of no use here; that is no reason not to go on with it.
    async fn tell_of_fallback(&self, session: &Session, providers: &Providers) -> Result<(), Failure> {
        let state = session.handle().state().await.map_err(failed_send)?;
        let Some(fallback) = &state.profile.fallback else { return Ok(()) };
        let looked_at = choose::fallback(&fallback.model, &state.model, providers, "the session's fallback model");
        if let Err(failure) = looked_at.and_then(|full| self.check_caps(&full, providers)) {
            let text =
                format!("windlass: {}; until then there is none, or name one with --fallback-model", failure.message);
            terminal::tell(&terminal::harmless(&text));
        }
        Ok(())
    }

    /// Opens a new session, or takes up the one that is meant; then the process works in its folder.
    pub async fn open(&mut self, which: &Which, interactive: bool) -> Result<Open, Failure> {
        let Some(found) = self.find(which).await? else {
            let (agent, _) = self.agent(interactive)?;
            return Ok(Open { session: agent.open().await?, before: Seq(0) });
        };
        let before = (self.folder.clone(), self.settings.clone());
        let taken_up = self.take_up(&found, interactive).await;
        if taken_up.is_err() {
            (self.folder, self.settings) = before;
        }
        taken_up
    }

    async fn take_up(&mut self, found: &SessionInfo, interactive: bool) -> Result<Open, Failure> {
        self.move_to(found)?;
        let opened_with = first_model(&*self.store, found.session).await?;
        let choice = self.choose(Some(&opened_with))?;
        let (change, providers) = (self.change(&choice), choice.providers.clone());
        let session = self.agent_of(choice, interactive)?.resume_with(found.session, change).await?;
        self.tell_of_fallback(&session, &providers).await?;
        Ok(Open { session, before: Seq(found.events) })
    }

    /// Who may do what is always as said now; the model and the limits only if the command line says so.
    fn change(&self, choice: &Choice) -> Configured {
        let said = self.settings.said;
        Configured {
            model: said.model.then(|| choice.model.clone()),
            mode: Some(self.settings.mode),
            profile: said.profile.then(|| Box::new(choice.profile.clone())),
            caps: Some(self.settings.caps),
        }
    }

    /// The session that is meant; none for a new one.
    pub async fn find(&self, which: &Which) -> Result<Option<SessionInfo>, Failure> {
        match which {
            Which::New => Ok(None),
            Which::Id(id) => find(&*self.store, id).await.map(Some),
            Which::Newest => {
                let cwd = self.environment.cwd.display().to_string();
                let filter = SessionFilter { cwd: Some(cwd.clone()), limit: Some(1) };
                let newest = self.store.sessions(filter).await?.into_iter().next();
                newest.map(Some).ok_or_else(|| {
                    Failure::usage(format!(
                        "there is no session in {cwd} to go on with: leave -c away to begin one; `windlass sessions --all` \
                         lists those of other folders"
                    ))
                })
            }
        }
    }
}

/// The session whose id is `id` or alone begins with it.
pub async fn find(store: &dyn Store, id: &str) -> Result<SessionInfo, Failure> {
    let sessions = store.sessions(SessionFilter::default()).await?;
    let wanted = id.trim().to_ascii_lowercase();
    let mut fitting = sessions.iter().filter(|session| session.session.to_string().starts_with(&wanted));
    match (fitting.next(), fitting.next()) {
        (Some(only), None) if !wanted.is_empty() => Ok(only.clone()),
        (Some(_), Some(_)) => {
            let ids: Vec<String> = sessions
                .iter()
                .filter(|session| session.session.to_string().starts_with(&wanted))
                .take(5)
                .map(|session| format!("\n  {}  {}", session.session, terminal::one_line(&session.title, 60)))
                .collect();
            Err(Failure::usage(format!("several sessions begin with `{id}`: give more of the id{}", ids.concat())))
        }
        _ => match uuid::Uuid::from_str(&wanted) {
            Ok(whole) => unlisted(store, SessionId(whole)).await,
            Err(_) => Err(Failure::usage(format!(
                "there is no session `{id}`: `windlass sessions --all` lists those there are"
            ))),
        },
    }
}

/// A session that is in no list: that of a sub-agent.
async fn unlisted(store: &dyn Store, session: SessionId) -> Result<SessionInfo, Failure> {
    let records = store.salvage(session).await.0;
    let (Some(first), Some(last)) = (records.first(), records.last()) else {
        return Err(StoreError::NoSuchSession(session).into());
    };
    let state = State::fold(&records);
    Ok(SessionInfo {
        session,
        cwd: state.cwd,
        title: String::new(),
        created_at: first.at,
        updated_at: last.at,
        events: last.seq.0,
        held_by: None,
    })
}

/// The model that a session was opened with.
async fn first_model(store: &dyn Store, session: SessionId) -> Result<String, Failure> {
    let records = store.read(session, Seq(1), 1).await?;
    Ok(match records.first().map(|record| &record.event) {
        Some(Event::Opened { model, .. }) => model.clone(),
        _ => String::new(),
    })
}

pub fn new_input() -> InputId {
    InputId(uuid::Uuid::now_v7())
}

/// A command that was not taken: the session's reason, or the store's.
pub fn failed_send(error: SendError) -> Failure {
    match error {
        SendError::Rejected(Rejected::Blocked { .. }) => Failure::new(Code::Denied, error.to_string()),
        SendError::Rejected(rejected) => Failure::usage(rejected.to_string()),
        SendError::Failed(_) | SendError::Closed => Failure::new(Code::Store, error.to_string()),
        SendError::Broke(_) => Failure::new(Code::Failed, error.to_string()),
    }
}

fn open_store(settings: &Settings, worker: Worker) -> Result<Arc<dyn Store>, Failure> {
    let store: Arc<dyn Store> = match settings.shelf {
        Shelf::Memory => Arc::new(MemoryStore::new()),
        Shelf::Sqlite => Arc::new(SqliteStore::open(&settings.store_path, worker)?),
    };
    // Closing a store would wait for a checkpoint. What is acknowledged is safe without it, so it ends with the process.
    std::mem::forget(store.clone());
    Ok(store)
}

fn providers_part(model: &str) -> &str {
    model.split_once('/').map_or(model, |(provider, _)| provider)
}
