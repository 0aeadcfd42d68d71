//! The tools that reach the web, as the configuration has them.

use crate::config::Config;
use crate::environment::Environment;
use crate::exit::Failure;
use crate::{choose, key_command};
use std::sync::Arc;
use windlass_tools::Tool;
use windlass_web::{Backend, Fetcher, Hosts, Key, Limits, Reach, Resolver, Search, WebFetch, WebSearch};

pub const USER_AGENT: &str = concat!("windlass/", env!("CARGO_PKG_VERSION"));
/// Milliseconds a search may take, where nothing else is said.
const SEARCH_MS: u64 = 20_000;

/// What the web tools are made of.
#[derive(Clone, Debug)]
pub struct Web {
    pub reach: Reach,
    pub limits: Limits,
    /// None: no search is configured.
    pub search: Option<Search>,
}

impl Web {
    pub fn read(config: &Config, environment: &Environment) -> Result<Web, Failure> {
        Ok(Web { reach: reach(config)?, limits: limits(config), search: search(config, environment)? })
    }

    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let fetcher = Fetcher {
            reach: self.reach.clone(),
            resolver: Resolver::default(),
            limits: self.limits,
            user_agent: USER_AGENT.into(),
        };
        let mut tools: Vec<Arc<dyn Tool>> = vec![Arc::new(WebFetch(fetcher))];
        tools.extend(self.search.clone().map(|search| Arc::new(WebSearch(search)) as Arc<dyn Tool>));
        tools
    }
}

/// Lists do not add up here: the last that was written is the one that holds.
fn reach(config: &Config) -> Result<Reach, Failure> {
    let Some(entry) = config.get("tools.web_fetch.allowed_hosts") else { return Ok(Reach::Asked) };
    let hosts = Hosts::parse(entry.value.as_texts().unwrap_or_default());
    hosts.map(Reach::Listed).map_err(|why| Failure::usage(format!("{}: {why}", entry.source)))
}

fn limits(config: &Config) -> Limits {
    let usual = Limits::default();
    let size =
        |path: &str, usual: usize| config.whole(path).and_then(|number| usize::try_from(number).ok()).unwrap_or(usual);
    Limits {
        connect_ms: config.whole("tools.web_fetch.connect_ms").unwrap_or(usual.connect_ms),
        total_ms: config.whole("tools.web_fetch.timeout_ms").unwrap_or(usual.total_ms),
        max_bytes: size("tools.web_fetch.max_bytes", usual.max_bytes),
        max_redirects: size("tools.web_fetch.max_redirects", usual.max_redirects),
    }
}

fn search(config: &Config, environment: &Environment) -> Result<Option<Search>, Failure> {
    let Some(backend) = config.text("web_search.backend").and_then(Backend::named) else { return Ok(None) };
    let Some(url) = config.text("web_search.base_url").or(backend.usual_url()) else {
        return Err(Failure::usage(format!(
            "{}: {backend} is a server of your own: say where, with web_search.base_url = \"http://127.0.0.1:8888\"",
            choose::source(config, "web_search.backend")
        )));
    };
    let source = choose::source(config, "web_search.base_url");
    let base_url = Search::base(url).map_err(|why| Failure::usage(format!("{source}: {why}")))?;
    Ok(Some(Search {
        backend,
        base_url,
        key: key(config, environment, backend),
        proxy: environment.proxy_for(url).map(str::to_owned),
        user_agent: USER_AGENT.into(),
        total_ms: config.whole("tools.web_search.timeout_ms").unwrap_or(SEARCH_MS),
    }))
}

fn key(config: &Config, environment: &Environment, backend: Backend) -> Key {
    if let Some(command) = config.text("web_search.key_command").filter(|_| !is_said(config)) {
        return Key::Source(key_command::text_source(command));
    }
    let Some(variable) = key_variable(config) else { return Key::None };
    match environment.variable(variable) {
        Some(key) => Key::Text(key.to_owned()),
        None if backend.needs_key() || is_said(config) => Key::Missing(format!("{variable} is not set")),
        None => Key::None,
    }
}

fn is_said(config: &Config) -> bool {
    config.get("web_search.key_variable").is_some()
}

/// The environment variable that holds the key of the search.
pub fn key_variable(config: &Config) -> Option<&str> {
    let usual = match config.text("web_search.backend").and_then(Backend::named) {
        Some(Backend::Brave) => Some("BRAVE_API_KEY"),
        Some(Backend::Tavily) => Some("TAVILY_API_KEY"),
        Some(Backend::Searxng) | None => None,
    };
    config.text("web_search.key_variable").or(usual)
}
