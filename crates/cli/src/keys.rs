//! The keys a configuration may hold, and what each wants.

use crate::args::{FSYNC, LOCALES, MODES};
use std::fmt;
use windlass_kernel::Profile;
use windlass_web::Backend;

/// What may stand behind a key.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Want {
    Text,
    OneOf(&'static [&'static str]),
    Truth,
    /// A whole number from the first to the second.
    Whole(u64, u64),
    /// A number from the first to the second.
    Number(f64, f64),
    Texts,
    /// Tables, as `[[KEY]]` writes them.
    Tables,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Text(String),
    Truth(bool),
    Whole(u64),
    Number(f64),
    Texts(Vec<String>),
    Tables(Vec<serde_json::Value>),
}

/// A known key; `*` stands for a name of the user's.
pub struct Key {
    pub path: &'static str,
    pub want: Want,
    pub says: &'static str,
    /// Whether a repository's own file may set it: only what cannot loosen anything.
    pub in_project: bool,
}

const PROTOCOLS: [&str; 7] = ["anthropic", "chat", "responses", "gemini", "bedrock", "vertex", "openai"];
/// The words of effort, weakest first.
pub const EFFORTS: [&str; 6] = ["none", "minimal", "low", "medium", "high", "max"];
const PATTERNS: [&str; 3] = ["outputs", "everywhere", "off"];
const DECISIONS: [&str; 3] = ["allow", "ask", "deny"];
const BOXES: [&str; 2] = ["none", "wasm"];
const WALLS: [&str; 5] = ["auto", "namespaces", "bubblewrap", "landlock", "none"];
const BACK: [&str; 2] = ["next-turn", "never"];
/// The longest wait that may be set, in milliseconds: a day.
const DAY_MS: u64 = 86_400_000;
/// The most bytes of a page that may be asked for.
pub const MAX_PAGE_BYTES: u64 = 32 << 20;

const fn key(path: &'static str, want: Want, says: &'static str) -> Key {
    Key { path, want, says, in_project: false }
}

const fn project(path: &'static str, want: Want, says: &'static str) -> Key {
    Key { path, want, says, in_project: true }
}

pub const KEYS: [Key; 84] = [
    key("model", Want::Text, "the model, as PROVIDER/NAME"),
    key("base_url", Want::Text, "where the model is: with /v1 OpenAI's protocol, without Anthropic's"),
    key("permission_mode", Want::OneOf(&MODES), "what may be done unasked"),
    key("profile", Want::OneOf(&Profile::NAMES), "how the loop behaves"),
    key("max_turns", Want::Whole(1, 1_000_000), "model calls a turn may take"),
    key("max_output_tokens", Want::Whole(1, 10_000_000), "tokens one answer may have"),
    key("temperature", Want::Number(0.0, 2.0), "how freely the model chooses its words"),
    key("thinking_tokens", Want::Whole(1, 10_000_000), "tokens the model may think with"),
    key("top_p", Want::Number(0.0, 1.0), "the share of likely words the model chooses from"),
    key("effort", Want::OneOf(&EFFORTS), "how hard the model thinks"),
    key("tool_choice", Want::Text, "auto, none, any, or a tool's name: what a turn's first answer must call"),
    key("fallback_model", Want::Text, "the model that speaks while the first is overloaded or out of reach"),
    key("fallback_back", Want::OneOf(&BACK), "when the first model speaks again"),
    key("turn_timeout_ms", Want::Whole(1, 30 * DAY_MS), "milliseconds a turn may take"),
    key(
        "compact_at_percent",
        Want::Whole(1, 100),
        "per cent of the window above which an answer that is too long leads to a compaction",
    ),
    key("retry.connect_ms", Want::Whole(1, DAY_MS), "milliseconds until a connection must stand"),
    key("retry.headers_ms", Want::Whole(1, DAY_MS), "milliseconds until a request is answered"),
    key("retry.first_event_ms", Want::Whole(1, DAY_MS), "milliseconds from there to the first event"),
    key("retry.progress_ms", Want::Whole(1, DAY_MS), "milliseconds between events that bring the answer on"),
    key("retry.max_attempts", Want::Whole(1, 1_000), "attempts at one model call"),
    key("retry.max_stalls", Want::Whole(0, 1_000), "times a stalled attempt is made again"),
    key(
        "retry.base_ms",
        Want::Whole(1, DAY_MS),
        "milliseconds before the second attempt; they double with each further one",
    ),
    key(
        "retry.max_wait_ms",
        Want::Whole(1, DAY_MS),
        "milliseconds waited at most; who asks for more is not waited for",
    ),
    key(
        "retry.overloads_before_fallback",
        Want::Whole(1, 1_000),
        "overloads in a row after which the fallback model speaks",
    ),
    key("caps.session_usd", Want::Number(0.0, 1e6), "dollars a session may cost before it asks"),
    key("caps.session_tokens", Want::Whole(1, 1 << 50), "tokens a session may take before it asks"),
    key("caps.day_usd", Want::Number(0.0, 1e6), "dollars all sessions of a day (UTC) may cost before they ask"),
    key("caps.day_tokens", Want::Whole(1, 1 << 50), "tokens all sessions of a day may take before they ask"),
    key("caps.tree_usd", Want::Number(0.0, 1e6), "dollars an agent and its sub-agents may cost before they ask"),
    key("caps.tree_tokens", Want::Whole(1, 1 << 50), "tokens an agent and its sub-agents may take before they ask"),
    project("locale", Want::OneOf(&LOCALES), "the language the model is addressed in"),
    key("show_thinking", Want::Truth, "show the model's thinking"),
    key("system_prompt", Want::Text, "text in place of the system prompt"),
    key("append_system_prompt", Want::Text, "text after the system prompt"),
    project("tools.*.enabled", Want::Truth, "whether the tool is offered"),
    key("tools.*.timeout_ms", Want::Whole(1, 86_400_000), "milliseconds a call of the tool may take"),
    key(
        "tools.*.sandbox",
        Want::OneOf(&BOXES),
        "where the tool runs: wasm, in a component (read, write, edit), or none",
    ),
    key("tools.web_fetch.allowed_hosts", Want::Texts, "the hosts that may be fetched from, and no others"),
    key("tools.web_fetch.max_bytes", Want::Whole(1, MAX_PAGE_BYTES), "bytes of a page that are read"),
    key("tools.web_fetch.connect_ms", Want::Whole(1, DAY_MS), "milliseconds until a page's server is connected"),
    key("tools.web_fetch.max_redirects", Want::Whole(0, 20), "redirects that are followed"),
    key(
        "web_search.backend",
        Want::OneOf(&Backend::NAMES),
        "what searches the web; without one there is no web_search",
    ),
    key("web_search.base_url", Want::Text, "where it is, up to the path of the search"),
    key("web_search.key_variable", Want::Text, "the environment variable its key is in"),
    key("web_search.key_command", Want::Text, "a command that prints its key"),
    key("rules.allow", Want::Texts, "what may be done unasked"),
    project("rules.deny", Want::Texts, "what may not be done"),
    project("rules.ask", Want::Texts, "what must be asked, whatever allows it"),
    project("rules.always_ask", Want::Texts, "what is asked every time: no mode and no earlier answer satisfies it"),
    project("rules.rule", Want::Tables, "rules with conditions, priority and examples"),
    key("rules.default", Want::OneOf(&DECISIONS), "what is decided where no rule and no mode speaks"),
    key("rules.built_in", Want::Truth, "let commands that only look inside the workspace run unasked"),
    key("auto.model", Want::Text, "the model that answers in mode auto, as PROVIDER/NAME"),
    key("hooks.*", Want::Tables, "commands that look at what happens, by event"),
    key("secrets.patterns", Want::OneOf(&PATTERNS), "where what only looks like a secret is one"),
    key("secrets.prefixes", Want::Texts, "beginnings of tokens of your own"),
    key("secrets.variables", Want::Texts, "further environment variables whose values are secret"),
    key("secrets.plain", Want::Texts, "environment variables whose values are no secret, whatever they are called"),
    key("sandbox.wall", Want::OneOf(&WALLS), "what keeps the processes of tools in"),
    key("sandbox.require", Want::Truth, "start no process of a tool without a full wall"),
    key("sandbox.writable", Want::Texts, "files and folders that commands may write besides the workspace and temp"),
    project("sandbox.unreadable", Want::Texts, "files and folders that commands may not read"),
    key("sandbox.network", Want::OneOf(&["off", "on"]), "whether commands reach the network"),
    key("sandbox.hosts", Want::Texts, "hosts that commands reach while the network is off"),
    key("sandbox.env", Want::Texts, "further environment variables that commands inherit"),
    key("sandbox.processes", Want::Whole(16, 1 << 22), "processes and threads that may be there at once"),
    key("sandbox.open_files", Want::Whole(64, 1 << 20), "files a process may have open"),
    key("sandbox.file_mib", Want::Whole(1, 1 << 30), "MiB of the largest file that a command may write"),
    key("sandbox.memory_mib", Want::Whole(64, 1 << 30), "MiB of address space of a process; no limit unless set"),
    key("prices.*.input", Want::Number(0.0, 1e6), "dollars per million tokens of input"),
    key("prices.*.output", Want::Number(0.0, 1e6), "dollars per million tokens of output"),
    key("prices.*.cache_read", Want::Number(0.0, 1e6), "dollars per million tokens read from the cache"),
    key("prices.*.cache_write", Want::Number(0.0, 1e6), "dollars per million tokens written to the cache"),
    key("store.path", Want::Text, "the file sessions are kept in"),
    key("store.fsync", Want::OneOf(&FSYNC), "when what is stored is safe from power loss: before effects, or always"),
    key("otel.endpoint", Want::Text, "the OpenTelemetry collector's base address; without one nothing is sent"),
    key("otel.headers", Want::Texts, "headers for the collector, each as name=value"),
    key("otel.capture_content", Want::Truth, "send prompts, answers, arguments and results along"),
    key("providers.*.protocol", Want::OneOf(&PROTOCOLS), "what a provider of your own speaks"),
    key("providers.*.base_url", Want::Text, "where it is"),
    key("providers.*.key_variable", Want::Text, "the environment variable its key is in"),
    key("providers.*.key_command", Want::Text, "a command that prints its key"),
    key("providers.*.headers", Want::Texts, "further headers of its requests, as NAME: VALUE"),
    key(
        "providers.*.tool_calls",
        Want::OneOf(&["native", "text"]),
        "how its models' tool calls arrive, whatever the catalog says",
    ),
];

/// What a path leads to.
pub enum Found {
    Key(&'static Key),
    /// Keys go on below it.
    Table,
    /// There is no such key; these could stand in its place.
    Unknown(Vec<&'static str>),
}

pub fn find(path: &[&str]) -> Found {
    let fits = |key: &&Key| key.path.split('.').zip(path).all(|(known, given)| known == "*" || known == *given);
    let depth = |key: &Key| key.path.split('.').count();
    let mut fitting = KEYS.iter().filter(fits).filter(|key| depth(key) >= path.len());
    match fitting.clone().find(|key| depth(key) == path.len()) {
        Some(key) => Found::Key(key),
        None if fitting.next().is_some() => Found::Table,
        None => Found::Unknown(siblings(path)),
    }
}

/// The names that could stand where the last of `path` stands.
fn siblings(path: &[&str]) -> Vec<&'static str> {
    let Some((_, above)) = path.split_last() else { return vec![] };
    let below = KEYS.iter().filter_map(|key| {
        let mut parts = key.path.split('.');
        let fits = above.iter().all(|given| parts.next().is_some_and(|known| known == "*" || known == *given));
        parts.next().filter(|_| fits)
    });
    let mut names: Vec<&str> = below.collect();
    names.dedup();
    names
}

impl fmt::Display for Want {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Want::Text => f.write_str("a text"),
            Want::OneOf(words) => write!(f, "one of \"{}\"", words.join("\", \"")),
            Want::Truth => f.write_str("true or false"),
            Want::Whole(least, most) => write!(f, "a whole number from {least} to {most}"),
            Want::Number(least, most) => write!(f, "a number from {least} to {most}"),
            Want::Texts => f.write_str("a list of texts"),
            Want::Tables => f.write_str("a list of tables, each written as [[KEY]]"),
        }
    }
}

impl fmt::Display for Value {
    /// As TOML.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Text(text) => toml::Value::from(text.as_str()).fmt(f),
            Value::Truth(truth) => truth.fmt(f),
            Value::Whole(number) => number.fmt(f),
            Value::Number(number) => write!(f, "{number:?}"),
            Value::Texts(texts) => toml::Value::from(texts.clone()).fmt(f),
            Value::Tables(tables) => {
                let tables: Vec<toml::Value> =
                    tables.iter().filter_map(|table| toml::Value::try_from(table).ok()).collect();
                toml::Value::from(tables).fmt(f)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_to_keys_tables_or_nowhere() {
        assert!(matches!(find(&["model"]), Found::Key(key) if key.path == "model"));
        assert!(matches!(find(&["tools", "bash", "timeout_ms"]), Found::Key(_)));
        assert!(matches!(find(&["prices", "a/b"]), Found::Table));
        assert!(
            matches!(find(&["tools", "bash", "timeout"]), Found::Unknown(near) if near == ["enabled", "timeout_ms", "sandbox"])
        );
        assert!(matches!(find(&["rulez"]), Found::Unknown(near) if near.contains(&"rules")));
    }

    /// A key that a repository nobody has trusted may set needs a reason here.
    #[test]
    fn what_an_untrusted_project_may_set_only_tightens() {
        let reasons = [
            ("locale", "words of Windlass to the model, in one of two languages"),
            ("tools.*.enabled", "false takes a tool away; true is withheld"),
            ("rules.deny", "a no more"),
            ("rules.ask", "a question more"),
            ("rules.always_ask", "a question more"),
            ("rules.rule", "each rule is looked at: none that allows, none that takes the place of a stronger one"),
            ("sandbox.unreadable", "a file less that commands read"),
        ];
        for key in KEYS.iter().filter(|key| key.in_project) {
            assert!(reasons.iter().any(|(path, _)| *path == key.path), "why may a repository set `{}`?", key.path);
        }
        // These choose who hears the conversation, what it costs, and how long it may go on.
        for path in ["model", "profile", "base_url", "fallback_model", "permission_mode", "sandbox.wall", "hooks.*"] {
            let key = KEYS.iter().find(|key| key.path == path);
            assert!(key.is_some_and(|key| !key.in_project), "{path}");
        }
    }

    /// The guide's table of keys is this one.
    #[test]
    fn the_guide_tells_of_every_key() {
        let guide = include_str!("../../../docs/guide/cli.md");
        for key in &KEYS {
            let name = key.path.replace('*', "NAME").replace("prices.NAME", "prices.\"PROVIDER/NAME\"");
            let row = guide.lines().find(|line| line.starts_with(&format!("| `{name}` |")));
            let row = row.unwrap_or_else(|| panic!("docs/guide/cli.md has no row for `{name}`"));
            assert!(row.contains(key.says), "{row}\nshould say: {}", key.says);
            assert_eq!(row.contains("| yes |"), key.in_project, "{row}");
        }
    }
}
