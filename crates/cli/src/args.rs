//! The command line as it is typed. What the flags amount to, together with the configuration, is in `settings`.

use crate::exit;
use crate::keys::{EFFORTS, MAX_PAGE_BYTES};
use crate::trust_command;
use clap::builder::PossibleValuesParser;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;
use windlass_kernel::Profile;

/// An agent at the command line: every step is stored, nothing runs unasked.
#[derive(Debug, Parser)]
#[command(name = "windlass", version, after_help = exit::HELP, disable_help_subcommand = true)]
pub struct Line {
    #[command(subcommand)]
    pub noun: Option<Noun>,
    #[command(flatten)]
    pub ask: Ask,
    #[command(flatten)]
    pub flags: Flags,
}

/// What is asked, and of which session.
#[derive(Clone, Debug, Default, PartialEq, Args)]
pub struct Ask {
    /// Run one prompt without a person; what comes on stdin is joined after it
    #[arg(short = 'p', long = "print", value_name = "PROMPT", num_args = 0..=1)]
    pub prompt: Option<Option<String>>,
    /// Go on with the newest session of this folder
    #[arg(short = 'c', long = "continue", conflicts_with = "resume")]
    pub go_on: bool,
    /// Go on with a session; the beginning of its id will do if it is the only one
    #[arg(short = 'r', long, value_name = "ID")]
    pub resume: Option<String>,
    /// What a headless run prints
    #[arg(long, value_name = "FORMAT", value_enum, requires = "prompt")]
    pub output_format: Option<Format>,
    /// Structured data the prompt is about: a JSON file
    #[arg(long, value_name = "FILE", requires = "prompt")]
    pub data: Option<PathBuf>,
    /// JSON Schema that the answer must satisfy: a file, or the schema itself
    #[arg(long, value_name = "SCHEMA", requires = "prompt")]
    pub json_schema: Option<String>,
    /// What is wanted, in short; else it is taken from the prompt
    #[arg(long, value_name = "TEXT", requires = "prompt")]
    pub intent: Option<String>,
    /// A picture to go with the prompt (png, jpeg, gif, webp); may be repeated
    #[arg(long = "image", value_name = "FILE", requires = "prompt")]
    pub images: Vec<PathBuf>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// The final text
    #[default]
    Text,
    /// One object at the end
    Json,
    /// One stored event a line
    Events,
}

/// What wins over the configuration, for every command that opens a session.
#[derive(Clone, Debug, Default, PartialEq, Args)]
pub struct Flags {
    /// The model, for example anthropic/claude-sonnet-4-5 or ollama/qwen3
    #[arg(long, global = true, value_name = "PROVIDER/NAME")]
    pub model: Option<String>,
    /// Where the model is: with /v1 at its end OpenAI's protocol, without Anthropic's
    #[arg(long, global = true, value_name = "URL")]
    pub base_url: Option<String>,
    /// What may be done unasked
    #[arg(long, global = true, value_name = "MODE", value_parser = PossibleValuesParser::new(MODES))]
    pub permission_mode: Option<String>,
    /// Allow everything but what a rule denies or the hard floor refuses
    #[arg(long, global = true, conflicts_with = "permission_mode")]
    pub yes: bool,
    /// Allow what the rule matches, for example 'bash(cargo test:*)'; may be repeated
    #[arg(long, global = true, value_name = "RULE")]
    pub allow: Vec<String>,
    /// Deny what the rule matches, for example 'edit(/etc/**)'; may be repeated
    #[arg(long, global = true, value_name = "RULE")]
    pub deny: Vec<String>,
    /// Model calls a turn may take
    #[arg(long, global = true, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..))]
    pub max_turns: Option<u32>,
    /// The model that speaks while the first is overloaded or out of reach
    #[arg(long, global = true, value_name = "PROVIDER/NAME")]
    pub fallback_model: Option<String>,
    /// How hard the model thinks
    #[arg(long, global = true, value_name = "EFFORT", value_parser = PossibleValuesParser::new(EFFORTS))]
    pub effort: Option<String>,
    /// Dollars the session may cost before it pauses and asks
    #[arg(long, global = true, value_name = "USD", allow_negative_numbers = true, value_parser = dollars)]
    pub max_cost: Option<f64>,
    /// How the loop behaves
    #[arg(long, global = true, value_name = "NAME", value_parser = PossibleValuesParser::new(Profile::NAMES))]
    pub profile: Option<String>,
    /// Text after the system prompt
    #[arg(long, global = true, value_name = "TEXT")]
    pub append_system_prompt: Option<String>,
    /// Text in place of the system prompt
    #[arg(long, global = true, value_name = "TEXT")]
    pub system_prompt: Option<String>,
    /// Show the model's thinking
    #[arg(long, global = true)]
    pub show_thinking: bool,
    /// Show more: the diff of every edit, the output of every command
    #[arg(short = 'v', long, global = true)]
    pub verbose: bool,
    /// Set one key of the configuration, for example tools.bash.timeout_ms=600000; may be repeated
    #[arg(long, global = true, value_name = "KEY=VALUE")]
    pub config: Vec<String>,
    /// The language the model is addressed in
    #[arg(long, global = true, value_name = "LOCALE", value_parser = PossibleValuesParser::new(LOCALES))]
    pub locale: Option<String>,
    /// When what is stored is also safe from power loss
    #[arg(long, global = true, value_name = "WHEN", value_parser = PossibleValuesParser::new(FSYNC))]
    pub fsync: Option<String>,
    /// Where sessions are kept; in memory they end with the process
    #[arg(long, global = true, hide = true, value_enum, value_name = "KIND")]
    pub store: Option<Shelf>,
}

/// An amount of money.
fn dollars(text: &str) -> Result<f64, String> {
    let amount = text.trim_start_matches('$').parse::<f64>().ok().filter(|amount| (0.0..=1e6).contains(amount));
    amount.ok_or_else(|| "give US dollars from 0 to 1000000, for example 0.50".to_owned())
}

pub const MODES: [&str; 6] = ["default", "accept-edits", "plan", "auto", "dont-ask", "bypass"];
pub const LOCALES: [&str; 2] = ["en", "zh"];
pub const FSYNC: [&str; 2] = ["effects", "always"];

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Shelf {
    #[default]
    Sqlite,
    Memory,
}

#[derive(Clone, Debug, Subcommand)]
pub enum Noun {
    /// List the sessions of this folder
    Sessions {
        /// Sessions of every folder
        #[arg(long)]
        all: bool,
        /// As a JSON array
        #[arg(long)]
        json: bool,
    },
    /// Go on with a session in a chat
    Resume { id: String },
    /// Show what happened in a session, one line an event
    Log {
        id: String,
        /// Every event as it is stored
        #[arg(long)]
        json: bool,
        /// Begin with this event
        #[arg(long, value_name = "SEQ", default_value_t = 1)]
        from: u64,
    },
    /// Show what a session's log amounts to
    State {
        id: String,
        /// As of this event
        #[arg(long, value_name = "SEQ")]
        at: Option<u64>,
        /// As one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Show what model calls cost: each call of a session, or sums of all sessions
    Cost(Bill),
    /// Leave a prompt for a session, whoever has it open
    Send { id: String, text: String },
    /// List the tools, or run one by hand
    Tool {
        #[command(subcommand)]
        verb: ToolVerb,
    },
    /// Ask the permission policy: why, whether, and what it would have said
    Policy {
        #[command(subcommand)]
        verb: PolicyVerb,
    },
    /// Look at what this folder brings (.windlass, git settings that run programs), and trust it
    Trust(trust_command::Wish),
    /// Fetch a page behind the checks of the web_fetch tool
    Fetch(PageWish),
    /// List models, ask the providers for new ones, or try one out
    Models {
        #[command(subcommand)]
        verb: ModelsVerb,
    },
    /// Serve a scripted model and print its address
    Mock(Stage),
    /// Watch an agent change a file, without a key: the model is scripted, all the rest is real
    Demo(Wish),
    /// Look at the configuration, the keys, the store and the sessions
    Doctor,
    /// Print the configuration that holds here, and where each value comes from
    Config,
    /// Run a prompt in many sessions at once
    #[command(hide = true)]
    Bench {
        #[arg(long, value_name = "N", default_value_t = 200)]
        sessions: u32,
        prompt: String,
    },
}

/// Which costs are shown.
#[derive(Clone, Debug, Args)]
pub struct Bill {
    /// The session; without --by and without one, the newest of this folder
    pub session: Option<String>,
    /// Add up all calls of the store, or of the session
    #[arg(long, value_name = "WHAT", value_enum)]
    pub by: Option<By>,
    /// With --by: calls of this day (UTC) and later, as 2026-11-21
    #[arg(long, value_name = "DAY", requires = "by")]
    pub since: Option<String>,
    /// As a JSON array
    #[arg(long)]
    pub json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum By {
    /// A line a day of UTC
    Day,
    /// A line a model
    Model,
    /// A line an agent
    Agent,
}

/// Which page is fetched, and how far that may reach.
#[derive(Clone, Debug, Args)]
pub struct PageWish {
    pub url: String,
    /// A host that may be reached: docs.rs, *.rust-lang.org, pages.lan:8080, 127.0.0.1, 10.0.0.0/8, or * for any public
    /// host; may be repeated
    #[arg(long, value_name = "HOST", value_delimiter = ',')]
    pub allow_host: Vec<String>,
    /// Answer look-ups of a host with these addresses, one after the other; A+B is one answer of two; may be repeated
    #[arg(long, value_name = "HOST=ADDR,…")]
    pub resolve: Vec<String>,
    /// As one JSON object
    #[arg(long)]
    pub json: bool,
    /// Bytes of the page that are read
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=MAX_PAGE_BYTES))]
    pub max_bytes: Option<u64>,
    /// Milliseconds the whole fetch may take
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=86_400_000))]
    pub timeout_ms: Option<u64>,
    /// The source as it is, not as Markdown
    #[arg(long)]
    pub raw: bool,
}

/// What the scripted model plays.
#[derive(Clone, Debug, Args)]
pub struct Stage {
    /// What the model says, in TOML: see crates/mock/SCRIPT.md
    #[arg(long, value_name = "FILE")]
    pub script: PathBuf,
    /// 0 takes a free one
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub port: u16,
    /// Append one JSON line a request
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// Write each request's body into this folder
    #[arg(long, value_name = "DIR")]
    pub dump: Option<PathBuf>,
    /// End when stdin does: no server outlives who started it
    #[arg(long, hide = true)]
    pub until_stdin_closes: bool,
}

/// How the demo goes.
#[derive(Clone, Debug, Args)]
pub struct Wish {
    /// Keep the folder it worked in
    #[arg(long)]
    pub keep: bool,
    /// The port that stands in the file at first
    #[arg(long, value_name = "N", default_value_t = 8080)]
    pub port_in_file: u16,
    /// Run without this tool
    #[arg(long, value_name = "NAME")]
    pub disable_tool: Option<String>,
}

#[derive(Clone, Debug, Subcommand)]
pub enum ModelsVerb {
    /// List the providers that can be used here and their models; * marks the one that would be used now
    List {
        /// This provider alone
        provider: Option<String>,
        /// Every provider
        #[arg(long)]
        all: bool,
        /// As a JSON array
        #[arg(long)]
        json: bool,
    },
    /// Ask the providers which models they have, and remember what they tell
    Refresh {
        /// This provider alone
        provider: Option<String>,
    },
    /// Try out what a model can do, and remember it; takes some calls
    Test {
        #[arg(value_name = "PROVIDER/NAME")]
        model: String,
        /// As one JSON object
        #[arg(long)]
        json: bool,
    },
}

#[derive(Clone, Debug, Subcommand)]
pub enum PolicyVerb {
    /// Show how a decision comes about: the parse, each part, each rule that matches, and what decides
    Explain {
        /// A command line; or, with JSON behind it, a tool's name
        #[arg(value_name = "COMMAND|TOOL")]
        what: String,
        /// The tool's arguments, a JSON object
        #[arg(value_name = "JSON")]
        input: Option<String>,
        /// As one JSON object
        #[arg(long)]
        json: bool,
        /// Decide so many times, and print what it takes
        #[arg(long, value_name = "N", hide = true)]
        times: Option<usize>,
    },
    /// Hold rules against rows of calls with the decision that is expected
    Test {
        /// JSON lines of {id, rules: {allow, deny, ask}, mode, tool, input, expect: allow|deny|ask|not-allow, why}
        file: PathBuf,
        /// As one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Show what today's policy would say of each call of a session
    Replay {
        session: String,
        /// As a JSON array
        #[arg(long)]
        json: bool,
    },
}

#[derive(Clone, Debug, Subcommand)]
pub enum ToolVerb {
    /// List the tools and their arguments
    List {
        /// As a JSON array
        #[arg(long)]
        json: bool,
    },
    /// Run one tool: its arguments are checked, the rules are asked, and then it runs as in a session
    Run {
        name: String,
        /// Its arguments, a JSON object
        #[arg(value_name = "JSON")]
        input: String,
        /// The result as an object
        #[arg(long)]
        json: bool,
    },
    /// Make a tool of your own: a Rust project for a WebAssembly component, with its manifest
    New {
        name: String,
        /// The folder to make it in; else the working folder
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
    /// Install a tool: shows what it may reach, and asks
    Install {
        /// The folder with its tool.toml
        #[arg(value_name = "PATH")]
        folder: PathBuf,
        /// Its component; else NAME.wasm beside tool.toml, or where cargo builds it
        #[arg(long, value_name = "FILE")]
        component: Option<PathBuf>,
        /// For this project alone, in .windlass/extensions
        #[arg(long)]
        project: bool,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        Line::command().debug_assert();
    }

    #[test]
    fn a_prompt_may_be_left_to_stdin() {
        let line = Line::parse_from(["windlass", "-p"]);
        assert_eq!(line.ask.prompt, Some(None));
        let line = Line::parse_from(["windlass", "-p", "hello", "--yes"]);
        assert_eq!(line.ask.prompt, Some(Some("hello".into())));
        assert!(line.flags.yes);
    }

    #[test]
    fn money_below_nothing_is_refused_in_words() {
        let refused = Line::try_parse_from(["windlass", "--max-cost", "-1"]).unwrap_err().to_string();
        assert!(refused.contains("give US dollars from 0 to 1000000, for example 0.50"), "{refused}");
    }

    #[test]
    fn flags_may_stand_behind_a_noun() {
        let line = Line::parse_from(["windlass", "tool", "run", "ls", "{}", "--allow", "ls"]);
        assert_eq!(line.flags.allow, ["ls"]);
    }
}
