//! What flags and configuration amount to: typed values, each checked.

use crate::args::{Flags, Shelf};
use crate::config::{self, Config, Entry, Layer, Owner};
use crate::environment::Environment;
use crate::exit::Failure;
use crate::extensions;
use crate::git_check::GitCheck;
use crate::hooks;
use crate::kept;
use crate::keys::Value;
use crate::own_check::OwnCheck;
use crate::rules;
use crate::sandbox;
use crate::telemetry::Wish;
use crate::trust::{Project, Standing};
use crate::web::Web;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use windlass::llm::{Clocks, Prices};
use windlass_hooks::Hooks;
use windlass_kernel::{Cap, Caps, Effort, Fallback, FallbackBack, Parameters, PermissionMode, Profile, ToolChoice};
use windlass_policy::Policy;
use windlass_prompt::Locale;
use windlass_sandbox::{Limits, Wall};
use windlass_tools::ToolSettings;

/// Where a repository keeps its own configuration.
pub const PROJECT_CONFIG: &str = ".windlass/config.toml";

/// What holds for the sessions this process opens.
#[derive(Clone, Debug)]
pub struct Settings {
    /// All layers, for what is looked up by name and for showing.
    pub config: Config,
    /// What the folder itself brings, as far as it counts.
    pub project: Project,
    pub mode: PermissionMode,
    pub profile: Profile,
    pub parameters: Parameters,
    pub clocks: Clocks,
    /// Caps that hold from now on, also for a session that is taken up.
    pub caps: Caps,
    pub locale: Locale,
    pub show_thinking: bool,
    pub verbose: bool,
    pub tools: BTreeMap<String, ToolSettings>,
    /// Built-in tools that run in a component.
    pub boxed: Vec<&'static str>,
    pub policy: Policy,
    pub hooks: Arc<Hooks>,
    pub prices: BTreeMap<String, Prices>,
    pub shelf: Shelf,
    pub store_path: PathBuf,
    /// What processes are kept in by.
    pub wall: Arc<Wall>,
    pub always_sync: bool,
    pub telemetry: Wish,
    pub web: Web,
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
        let project = Project::read(environment, folder)?;
        let config = layers(flags, environment, folder, &project)?;
        let home = environment.variable("HOME").map(PathBuf::from);
        let git = GitCheck { trusted: project.git.clone(), home: home.clone() };
        let own = OwnCheck { folder: environment.config_dir.clone(), data: environment.data_dir.clone(), home };
        let policy = rules::policy(&config, environment)?.with_check(Arc::new(git)).with_check(Arc::new(own));
        let store_path = environment.resolve(config.text("store.path").unwrap_or_default());
        let truth = |path: &str| config.get(path).and_then(|entry| entry.value.as_truth()).unwrap_or_default();
        let said = |path: &str| config.get(path).is_some_and(|entry| entry.source.starts_with("--"));
        Ok(Settings {
            mode: mode(config.text("permission_mode").unwrap_or_default()),
            profile: profile(&config),
            parameters: parameters(&config),
            clocks: clocks(&config),
            caps: caps(&config),
            locale: if config.text("locale") == Some("zh") { Locale::Zh } else { Locale::En },
            show_thinking: truth("show_thinking"),
            verbose: flags.verbose,
            tools: tools(&config),
            boxed: extensions::boxed(&config)?,
            policy,
            hooks: Arc::new(hooks::read(&config, environment)?),
            prices: prices(&config)?,
            shelf: flags.store.unwrap_or_default(),
            wall: sandbox::wall(&config, environment, &store_path, folder)?,
            store_path,
            always_sync: config.text("store.fsync") == Some("always"),
            telemetry: Wish::read(&config, environment)?,
            web: Web::read(&config, environment)?,
            said: Said { model: said("model") || said("base_url"), profile: LOOP_KEYS.iter().any(|key| said(key)) },
            config,
            project,
        })
    }
}

/// The keys that make a session's profile, but for its caps.
const LOOP_KEYS: [&str; 11] = [
    "profile",
    "max_turns",
    "turn_timeout_ms",
    "compact_at_percent",
    "fallback_model",
    "fallback_back",
    "retry.max_attempts",
    "retry.max_stalls",
    "retry.base_ms",
    "retry.max_wait_ms",
    "retry.overloads_before_fallback",
];

/// Tokens of one answer, where nothing else is said.
const MAX_OUTPUT_TOKENS: u64 = 16_384;

fn layers(flags: &Flags, environment: &Environment, folder: &Path, project: &Project) -> Result<Config, Failure> {
    let mut config = Config {
        layers: vec![
            defaults(environment),
            config::read(&environment.user_config(), Owner::User)?,
            kept::layer(environment, folder)?,
            projects_own(folder, project)?,
            config::from_flags(&flags.config)?,
            typed(flags),
            config::read(&environment.managed_config, Owner::Managed)?,
        ],
    };
    // They depend on what the layers above them say, and so come last.
    let retries = of_profile(&config);
    config.layers[0].entries.extend(retries);
    Ok(config)
}

/// What the folder itself says: the bytes that were looked at when it was found trusted or not.
fn projects_own(folder: &Path, project: &Project) -> Result<Layer, Failure> {
    let file = folder.join(PROJECT_CONFIG);
    let Some(bytes) = &project.config else { return Ok(Layer::default()) };
    let text = std::str::from_utf8(bytes).map_err(|error| {
        Failure::usage(format!("{} is no UTF-8 ({error}); mend it or move it away", file.display()))
    })?;
    let owner = if project.standing == Standing::Trusted { Owner::TrustedProject } else { Owner::Project };
    config::of_text(text, &file, owner)
}

/// What the profile that was chosen says of failed calls.
fn of_profile(config: &Config) -> Vec<Entry> {
    let profile = config.text("profile").and_then(Profile::named).unwrap_or_default();
    let retry = &profile.retry;
    let values = [
        ("retry.max_attempts", profile.max_model_errors.into()),
        ("retry.max_stalls", retry.max_stalls.into()),
        ("retry.base_ms", retry.base_ms),
        ("retry.max_wait_ms", retry.max_wait_ms),
        ("retry.overloads_before_fallback", retry.overloads_before_fallback.into()),
    ];
    values.into_iter().map(|(path, value)| entry(path, Value::Whole(value), "default")).collect()
}

fn entry(path: &str, value: Value, source: &str) -> Entry {
    Entry { path: path.split('.').map(str::to_owned).collect(), value, source: source.to_owned() }
}

/// What holds where nothing is said.
fn defaults(environment: &Environment) -> Layer {
    let text = |text: &str| Value::Text(text.to_owned());
    let (clocks, limits) = (Clocks::default(), Limits::default());
    let store = environment.data_dir.join("windlass.db");
    let values = [
        ("permission_mode", text("default")),
        ("profile", text("default")),
        ("max_output_tokens", Value::Whole(MAX_OUTPUT_TOKENS)),
        ("fallback_back", text("next-turn")),
        ("retry.connect_ms", Value::Whole(clocks.connect_ms)),
        ("retry.headers_ms", Value::Whole(clocks.headers_ms)),
        ("retry.first_event_ms", Value::Whole(clocks.first_event_ms)),
        ("retry.progress_ms", Value::Whole(clocks.progress_ms)),
        ("locale", text("en")),
        ("show_thinking", Value::Truth(false)),
        ("store.path", text(&store.display().to_string())),
        ("store.fsync", text("effects")),
        ("sandbox.wall", text("auto")),
        ("sandbox.require", Value::Truth(false)),
        ("sandbox.network", text("off")),
        ("sandbox.processes", Value::Whole(limits.processes)),
        ("sandbox.open_files", Value::Whole(limits.open_files)),
        ("sandbox.file_mib", Value::Whole(limits.file_bytes >> 20)),
        ("rules.built_in", Value::Truth(true)),
    ];
    Layer {
        entries: values.into_iter().map(|(path, value)| entry(path, value, "default")).collect(),
        ..Layer::default()
    }
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
        text("fallback_model", "--fallback-model", &flags.fallback_model),
        text("effort", "--effort", &flags.effort),
        flags.max_cost.map(|dollars| entry("caps.session_usd", Value::Number(dollars), "--max-cost")),
        text("append_system_prompt", "--append-system-prompt", &flags.append_system_prompt),
        text("system_prompt", "--system-prompt", &flags.system_prompt),
        flags.show_thinking.then(|| entry("show_thinking", Value::Truth(true), "--show-thinking")),
        text("locale", "--locale", &flags.locale),
        text("store.fsync", "--fsync", &flags.fsync),
    ];
    Layer { owner: Owner::Session, entries: entries.into_iter().flatten().collect(), ..Layer::default() }
}

fn mode(name: &str) -> PermissionMode {
    match name {
        "accept-edits" => PermissionMode::AcceptEdits,
        "plan" => PermissionMode::Plan,
        "auto" => PermissionMode::Auto,
        "dont-ask" => PermissionMode::DontAsk,
        "bypass" => PermissionMode::Bypass,
        _ => PermissionMode::Default,
    }
}

fn profile(config: &Config) -> Profile {
    let mut profile = config.text("profile").and_then(Profile::named).unwrap_or_default();
    let count = |path: &str| config.whole(path).map(|count| u32::try_from(count).unwrap_or(u32::MAX));
    profile.max_turns = count("max_turns").unwrap_or(profile.max_turns);
    profile.max_model_errors = count("retry.max_attempts").unwrap_or(profile.max_model_errors);
    profile.turn_timeout_ms = config.whole("turn_timeout_ms").or(profile.turn_timeout_ms);
    let percent = config.whole("compact_at_percent").and_then(|percent| u8::try_from(percent).ok());
    profile.compact_at_percent = percent.unwrap_or(profile.compact_at_percent);
    let retry = &mut profile.retry;
    retry.base_ms = config.whole("retry.base_ms").unwrap_or(retry.base_ms);
    retry.max_wait_ms = config.whole("retry.max_wait_ms").unwrap_or(retry.max_wait_ms);
    retry.max_stalls = count("retry.max_stalls").unwrap_or(retry.max_stalls);
    let overloads = count("retry.overloads_before_fallback");
    retry.overloads_before_fallback = overloads.unwrap_or(retry.overloads_before_fallback);
    profile.fallback = config.text("fallback_model").map(|model| Fallback {
        model: model.to_owned(),
        back: if config.text("fallback_back") == Some("never") { FallbackBack::Never } else { FallbackBack::NextTurn },
    });
    profile.caps = caps(config);
    profile
}

fn caps(config: &Config) -> Caps {
    let cap = |scope: &str| Cap {
        micro_usd: config
            .at(&["caps", &format!("{scope}_usd")])
            .and_then(|entry| entry.value.as_number())
            .map(micro_usd),
        tokens: config.at(&["caps", &format!("{scope}_tokens")]).and_then(|entry| entry.value.as_whole()),
    };
    Caps { session: cap("session"), day: cap("day"), tree: cap("tree") }
}

fn micro_usd(dollars: f64) -> u64 {
    (dollars * 1_000_000.0).round() as u64
}

fn clocks(config: &Config) -> Clocks {
    let usual = Clocks::default();
    let clock =
        |name: &str, usual: u64| config.at(&["retry", name]).and_then(|entry| entry.value.as_whole()).unwrap_or(usual);
    Clocks {
        connect_ms: clock("connect_ms", usual.connect_ms),
        headers_ms: clock("headers_ms", usual.headers_ms),
        first_event_ms: clock("first_event_ms", usual.first_event_ms),
        progress_ms: clock("progress_ms", usual.progress_ms),
    }
}

fn parameters(config: &Config) -> Parameters {
    let tokens = |path: &str| config.whole(path).and_then(|tokens| u32::try_from(tokens).ok());
    let number = |path: &str| config.get(path).and_then(|entry| entry.value.as_number());
    Parameters {
        max_tokens: tokens("max_output_tokens").unwrap_or(MAX_OUTPUT_TOKENS as u32),
        temperature: number("temperature"),
        top_p: number("top_p"),
        thinking_tokens: tokens("thinking_tokens"),
        effort: config.text("effort").and_then(effort),
        tool_choice: config.text("tool_choice").map_or(ToolChoice::Auto, tool_choice),
    }
}

fn effort(word: &str) -> Option<Effort> {
    Some(match word {
        "none" => Effort::None,
        "minimal" => Effort::Minimal,
        "low" => Effort::Low,
        "medium" => Effort::Medium,
        "high" => Effort::High,
        "max" => Effort::Max,
        _ => return None,
    })
}

fn tool_choice(word: &str) -> ToolChoice {
    match word {
        "auto" => ToolChoice::Auto,
        "none" => ToolChoice::None,
        "any" => ToolChoice::Any,
        name => ToolChoice::Tool { name: name.to_owned() },
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
            managed_config: "/nowhere/managed.toml".into(),
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
            ["--max-turns", "10", "--config", "tools.bash.timeout_ms=60000", "--config", "retry.progress_ms=60000"];
        let settings = load(&flags).unwrap();
        assert_eq!(settings.profile.max_turns, 10);
        assert_eq!(settings.tools["bash"].timeout_ms, Some(60_000));
        assert_eq!(settings.clocks.progress_ms, 60_000);
        assert_eq!(settings.store_path, Path::new("/nowhere/d/windlass.db"));
    }

    #[test]
    fn a_profiles_limit_holds_unless_another_is_given() {
        assert_eq!(load(&["--profile", "s4-framework"]).unwrap().profile.max_turns, 10);
        assert_eq!(load(&["--profile", "s4-framework", "--max-turns", "3"]).unwrap().profile.max_turns, 3);
        assert_eq!(load(&["--yes"]).unwrap().mode, PermissionMode::Bypass);
    }

    #[test]
    fn what_holds_of_failed_calls_is_shown_and_told_by_the_guide() {
        let settings = load(&[]).unwrap();
        let (profile, clocks) = (Profile::default(), Clocks::default());
        let wait = |ms: u64| if ms.is_multiple_of(1_000) { format!("{} s", ms / 1_000) } else { format!("{ms} ms") };
        let whole = |path: &str| settings.config.whole(path).unwrap_or_else(|| panic!("{path} has no default"));
        assert_eq!(whole("retry.max_attempts"), u64::from(profile.max_model_errors));
        assert_eq!(whole("retry.first_event_ms"), clocks.first_event_ms);
        let guide = include_str!("../../../docs/guide/cli.md").replace('\n', " ");
        for key in crate::keys::KEYS.iter().filter(|key| key.path.starts_with("retry.")) {
            let value = whole(key.path);
            let value = if key.path.ends_with("_ms") { wait(value) } else { value.to_string() };
            let told = format!("`{}` ({value})", key.path);
            assert!(guide.contains(&told), "docs/guide/cli.md should say: {told}");
        }
        let framework = load(&["--profile", "s4-framework"]).unwrap();
        let own = Profile::named("s4-framework").unwrap();
        assert_eq!(framework.profile.max_model_errors, own.max_model_errors);
        assert_eq!(framework.config.whole("retry.max_attempts"), Some(own.max_model_errors.into()));
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
