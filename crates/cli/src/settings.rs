//! What flags and configuration amount to: typed values, each checked.

use crate::args::{Flags, Shelf};
use crate::config::{self, Config, Entry, Layer, Owner};
use crate::environment::Environment;
use crate::exit::Failure;
use crate::kept;
use crate::keys::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use windlass::llm::Prices;
use windlass_kernel::{Parameters, PermissionMode, Profile};
use windlass_policy::{Policy, Rule};
use windlass_prompt::Locale;
use windlass_tools::ToolSettings;

/// Where a repository keeps its own configuration.
pub const PROJECT_CONFIG: &str = ".windlass/config.toml";

/// What holds for the sessions this process opens.
#[derive(Clone, Debug)]
pub struct Settings {
    /// All layers, for what is looked up by name and for showing.
    pub config: Config,
    pub mode: PermissionMode,
    pub profile: Profile,
    pub parameters: Parameters,
    pub idle_timeout_ms: u64,
    pub locale: Locale,
    pub show_thinking: bool,
    pub verbose: bool,
    pub tools: BTreeMap<String, ToolSettings>,
    pub policy: Policy,
    pub prices: BTreeMap<String, Prices>,
    pub shelf: Shelf,
    pub store_path: PathBuf,
    pub always_sync: bool,
    /// What the command line itself says of a session that is taken up.
    pub said: Said,
}

/// Values that were given on the command line, and so win over what a session was opened with.
#[derive(Clone, Copy, Debug, Default)]
pub struct Said {
    pub model: bool,
    /// The profile or a limit of it.
    pub profile: bool,
}

impl Settings {
    /// The settings for sessions in `folder`.
    pub fn load(flags: &Flags, environment: &Environment, folder: &Path) -> Result<Settings, Failure> {
        let config = layers(flags, environment, folder)?;
        let list = |path: &str| -> Vec<String> { config.texts(path).into_iter().map(|(rule, _)| rule).collect() };
        check_rules(&config)?;
        let policy = Policy::new(&list("rules.allow"), &list("rules.deny"), &list("rules.ask"));
        let policy = policy.map_err(|error| Failure::usage(error.to_string()))?;
        let truth = |path: &str| config.get(path).and_then(|entry| entry.value.as_truth()).unwrap_or_default();
        let said = |path: &str| config.get(path).is_some_and(|entry| entry.source.starts_with("--"));
        Ok(Settings {
            mode: mode(config.text("permission_mode").unwrap_or_default()),
            profile: profile(&config),
            parameters: parameters(&config),
            idle_timeout_ms: config.whole("idle_timeout_ms").unwrap_or(IDLE_TIMEOUT_MS),
            locale: if config.text("locale") == Some("zh") { Locale::Zh } else { Locale::En },
            show_thinking: truth("show_thinking"),
            verbose: flags.verbose,
            tools: tools(&config),
            policy,
            prices: prices(&config)?,
            shelf: flags.store.unwrap_or_default(),
            store_path: environment.resolve(config.text("store.path").unwrap_or_default()),
            always_sync: config.text("store.fsync") == Some("always"),
            said: Said { model: said("model") || said("base_url"), profile: said("profile") || said("max_turns") },
            config,
        })
    }
}

/// Milliseconds of silence after which a model call is given up, where nothing else is said.
const IDLE_TIMEOUT_MS: u64 = 120_000;

/// Tokens of one answer, where nothing else is said.
const MAX_OUTPUT_TOKENS: u64 = 16_384;

fn layers(flags: &Flags, environment: &Environment, folder: &Path) -> Result<Config, Failure> {
    Ok(Config {
        layers: vec![
            defaults(environment),
            config::read(&environment.user_config(), Owner::User)?,
            kept::layer(environment, folder)?,
            config::read(&folder.join(PROJECT_CONFIG), Owner::Project)?,
            config::from_flags(&flags.config)?,
            typed(flags),
        ],
    })
}

fn entry(path: &str, value: Value, source: &str) -> Entry {
    Entry { path: path.split('.').map(str::to_owned).collect(), value, source: source.to_owned() }
}

/// What holds where nothing is said.
fn defaults(environment: &Environment) -> Layer {
    let text = |text: &str| Value::Text(text.to_owned());
    let store = environment.data_dir.join("windlass.db");
    let values = [
        ("permission_mode", text("default")),
        ("profile", text("default")),
        ("max_output_tokens", Value::Whole(MAX_OUTPUT_TOKENS)),
        ("idle_timeout_ms", Value::Whole(IDLE_TIMEOUT_MS)),
        ("locale", text("en")),
        ("show_thinking", Value::Truth(false)),
        ("store.path", text(&store.display().to_string())),
        ("store.fsync", text("effects")),
    ];
    Layer { file: None, entries: values.into_iter().map(|(path, value)| entry(path, value, "default")).collect() }
}

/// The flags that are keys, too.
fn typed(flags: &Flags) -> Layer {
    let text = |path: &str, flag: &str, value: &Option<String>| {
        value.as_ref().map(|value| entry(path, Value::Text(value.clone()), flag))
    };
    let rules = |path: &str, flag: &str, rules: &[String]| {
        (!rules.is_empty()).then(|| entry(path, Value::Texts(rules.to_vec()), flag))
    };
    let entries = [
        text("model", "--model", &flags.model),
        text("base_url", "--base-url", &flags.base_url),
        text("permission_mode", "--permission-mode", &flags.permission_mode),
        flags.yes.then(|| entry("permission_mode", Value::Text("bypass".into()), "--yes")),
        rules("rules.allow", "--allow", &flags.allow),
        rules("rules.deny", "--deny", &flags.deny),
        text("profile", "--profile", &flags.profile),
        flags.max_turns.map(|turns| entry("max_turns", Value::Whole(turns.into()), "--max-turns")),
        text("append_system_prompt", "--append-system-prompt", &flags.append_system_prompt),
        text("system_prompt", "--system-prompt", &flags.system_prompt),
        flags.show_thinking.then(|| entry("show_thinking", Value::Truth(true), "--show-thinking")),
        text("locale", "--locale", &flags.locale),
        text("store.fsync", "--fsync", &flags.fsync),
    ];
    Layer { file: None, entries: entries.into_iter().flatten().collect() }
}

/// Each rule by itself, so that the first that cannot be read is told with the place it was written at.
fn check_rules(config: &Config) -> Result<(), Failure> {
    for path in ["rules.allow", "rules.deny", "rules.ask"] {
        for (rule, source) in config.texts(path) {
            Rule::parse(&rule).map_err(|error| Failure::usage(format!("{source}: {error}")))?;
        }
    }
    Ok(())
}

fn mode(name: &str) -> PermissionMode {
    match name {
        "accept-edits" => PermissionMode::AcceptEdits,
        "plan" => PermissionMode::Plan,
        "bypass" => PermissionMode::Bypass,
        _ => PermissionMode::Default,
    }
}

fn profile(config: &Config) -> Profile {
    let mut profile = config.text("profile").and_then(Profile::named).unwrap_or_default();
    if let Some(turns) = config.whole("max_turns") {
        profile.max_turns = u32::try_from(turns).unwrap_or(u32::MAX);
    }
    profile
}

fn parameters(config: &Config) -> Parameters {
    let tokens = |path: &str| config.whole(path).and_then(|tokens| u32::try_from(tokens).ok());
    Parameters {
        max_tokens: tokens("max_output_tokens").unwrap_or(MAX_OUTPUT_TOKENS as u32),
        temperature: config.get("temperature").and_then(|entry| entry.value.as_number()),
        thinking_tokens: tokens("thinking_tokens"),
    }
}

fn tools(config: &Config) -> BTreeMap<String, ToolSettings> {
    let names = config.names("tools").into_iter();
    names
        .map(|name| {
            let value = |key: &str| config.at(&["tools", name, key]).map(|entry| &entry.value);
            let enabled = value("enabled").and_then(Value::as_truth).unwrap_or(true);
            let timeout_ms = value("timeout_ms").and_then(Value::as_whole);
            (name.to_owned(), ToolSettings { enabled, timeout_ms })
        })
        .collect()
}

fn prices(config: &Config) -> Result<BTreeMap<String, Prices>, Failure> {
    let mut prices = BTreeMap::new();
    for model in config.names("prices") {
        let price = |class: &str| config.at(&["prices", model, class]).and_then(|entry| entry.value.as_number());
        let (Some(input), Some(output)) = (price("input"), price("output")) else {
            return Err(Failure::usage(format!(
                "[prices.\"{model}\"] needs input and output, in dollars per million tokens: a price that is half known \
                 would make a wrong bill"
            )));
        };
        // Providers without a cache of their own bill such tokens as input.
        let (read, write) = (price("cache_read").unwrap_or(input), price("cache_write").unwrap_or(input));
        let price = Prices::from_dollars(input, output, read, write);
        prices
            .insert(model.to_owned(), price.map_err(|error| Failure::usage(format!("[prices.\"{model}\"]: {error}")))?);
    }
    Ok(prices)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Line;
    use crate::terminal::Look;
    use clap::Parser;

    fn load(flags: &[&str]) -> Result<Settings, Failure> {
        let environment = Environment {
            variables: BTreeMap::new(),
            cwd: "/nowhere".into(),
            config_dir: "/nowhere/c".into(),
            data_dir: "/nowhere/d".into(),
            stdin_is_terminal: false,
            stdout: Look::default(),
            stderr: Look::default(),
        };
        let line = Line::parse_from(["windlass"].iter().chain(flags));
        Settings::load(&line.flags, &environment, Path::new("/nowhere"))
    }

    #[test]
    fn s4_03_limits_prompts_tools_and_rules_are_settings() {
        let flags =
            ["--max-turns", "10", "--config", "tools.bash.timeout_ms=60000", "--config", "idle_timeout_ms=60000"];
        let settings = load(&flags).unwrap();
        assert_eq!(settings.profile.max_turns, 10);
        assert_eq!(settings.tools["bash"].timeout_ms, Some(60_000));
        assert_eq!(settings.idle_timeout_ms, 60_000);
        assert_eq!(settings.store_path, Path::new("/nowhere/d/windlass.db"));
    }

    #[test]
    fn a_profiles_limit_holds_unless_another_is_given() {
        assert_eq!(load(&["--profile", "s4-framework"]).unwrap().profile.max_turns, 10);
        assert_eq!(load(&["--profile", "s4-framework", "--max-turns", "3"]).unwrap().profile.max_turns, 3);
        assert_eq!(load(&["--yes"]).unwrap().mode, PermissionMode::Bypass);
    }

    #[test]
    fn a_rule_that_cannot_be_read_is_told_with_its_place() {
        let error = load(&["--allow", "bash("]).unwrap_err();
        assert!(error.message.starts_with("--allow: rule `bash(`: "), "{}", error.message);
    }

    #[test]
    fn s3_48_half_a_price_is_refused() {
        let error = load(&["--config", "prices.\"a/b\".input=3"]).unwrap_err();
        assert!(error.message.contains("[prices.\"a/b\"] needs input and output"), "{}", error.message);
        let both = ["--config", "prices.\"a/b\".input=3", "--config", "prices.\"a/b\".output=15"];
        assert_eq!(load(&both).unwrap().prices["a/b"].output, 15_000_000);
    }
}
