//! The tools there are: registered and taken away at run time, checked before every call.

use crate::schema::{Checker, signature, strangers};
use crate::{Tool, args};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

/// What the configuration says of one tool (`[tools.NAME]`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ToolSettings {
    /// A tool that is not enabled is not offered and cannot be called.
    pub enabled: bool,
    /// Milliseconds a call may take; none: the tool's own limit.
    pub timeout_ms: Option<u64>,
}

impl Default for ToolSettings {
    fn default() -> ToolSettings {
        ToolSettings { enabled: true, timeout_ms: None }
    }
}

/// A registered tool, its settings, and its schema: made once, and compiled only when a call is first checked.
pub struct Entry {
    pub tool: Arc<dyn Tool>,
    pub settings: ToolSettings,
    schema: OnceLock<Value>,
    checker: OnceLock<Result<Checker, String>>,
}

impl Entry {
    pub fn new(tool: Arc<dyn Tool>, settings: ToolSettings) -> Entry {
        Entry { tool, settings, schema: OnceLock::new(), checker: OnceLock::new() }
    }

    pub fn name(&self) -> &str {
        self.tool.name()
    }

    pub fn schema(&self) -> &Value {
        self.schema.get_or_init(|| self.tool.schema())
    }

    /// Whether the tool and its settings both say so.
    pub fn enabled(&self) -> bool {
        self.settings.enabled && self.tool.enabled()
    }

    /// The arguments as they will run, or what is wrong with them and how to fix the call.
    pub fn check(&self, input: &Value) -> Result<Value, String> {
        let name = self.name();
        let input = self.tool.normalise(args::object(name, input)?);
        let checker = self.checker.get_or_init(|| Checker::compile(self.schema())).as_ref();
        let checker = checker.map_err(|error| format!("the schema of {name} is broken: {error}. Use another tool."))?;
        let complaints = checker.complaints(&input);
        if complaints.is_empty() { Ok(input) } else { Err(self.refusal(&complaints, &input)) }
    }

    fn refusal(&self, complaints: &[String], input: &Value) -> String {
        let name = self.name();
        let mut text = format!("wrong arguments for {name}:\n- {}\n", complaints.join("\n- "));
        let strangers = strangers(self.schema(), input);
        if !strangers.is_empty() {
            text += &format!("- {name} has no `{}`\n", strangers.join("`, `"));
        }
        text + &format!("{name} takes: {}. Call it again with these mended.", signature(self.schema()))
    }
}

type Entries = BTreeMap<String, Arc<Entry>>;

/// The registry. Shared by `Arc`; a reader works on a snapshot, so a change never disturbs a running call.
#[derive(Default)]
pub struct Tools {
    settings: BTreeMap<String, ToolSettings>,
    entries: RwLock<Arc<Entries>>,
}

impl Tools {
    /// An empty registry; `settings` are by tool name and hold for tools registered later, too.
    pub fn new(settings: BTreeMap<String, ToolSettings>) -> Tools {
        Tools { settings, entries: RwLock::default() }
    }

    /// Adds a tool; one of the same name is replaced.
    pub fn register(&self, tool: Arc<dyn Tool>) {
        let name = tool.name().to_owned();
        let settings = self.settings.get(&name).cloned().unwrap_or_default();
        let entry = Arc::new(Entry::new(tool, settings));
        self.change(|entries| _ = entries.insert(name, entry));
    }

    /// Takes a tool away; false if there was none of that name. Calls under way run to their end.
    pub fn unregister(&self, name: &str) -> bool {
        let mut found = false;
        self.change(|entries| found = entries.remove(name).is_some());
        found
    }

    pub fn get(&self, name: &str) -> Option<Arc<Entry>> {
        self.snapshot().get(name).cloned()
    }

    /// The names of all registered tools, sorted.
    pub fn names(&self) -> Vec<String> {
        self.snapshot().keys().cloned().collect()
    }

    /// The tools to offer a model of `habits`, sorted by name: enabled, not in `disabled`, and of no other habit.
    pub fn offered(&self, disabled: &BTreeSet<String>, habits: &[String]) -> Vec<Arc<Entry>> {
        let suits = |entry: &Entry| entry.tool.habit().is_none_or(|habit| habits.iter().any(|own| own == habit));
        let offered = |entry: &Entry| entry.enabled() && !disabled.contains(entry.name()) && suits(entry);
        self.snapshot().values().filter(|entry| offered(entry)).cloned().collect()
    }

    /// The arguments as they will run, or the text to answer the model with.
    pub fn check(&self, name: &str, input: &Value) -> Result<Value, String> {
        self.check_offered(name, input, &BTreeSet::new())
    }

    /// As [`Tools::check`]; a tool in `disabled` is as unknown as one that was never registered.
    pub fn check_offered(&self, name: &str, input: &Value, disabled: &BTreeSet<String>) -> Result<Value, String> {
        match self.get(name).filter(|entry| entry.enabled() && !disabled.contains(name)) {
            Some(entry) => entry.check(input),
            None => Err(self.unknown(name, disabled)),
        }
    }

    fn unknown(&self, name: &str, disabled: &BTreeSet<String>) -> String {
        let offered = self.offered(disabled, &[]);
        let names: Vec<&str> = offered.iter().map(|entry| entry.name()).collect();
        match names.as_slice() {
            [] => format!("Unknown tool: {name}\nThere are no tools; answer without."),
            names => format!("Unknown tool: {name}\nThere are: {}", names.join(", ")),
        }
    }

    fn snapshot(&self) -> Arc<Entries> {
        self.entries.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn change(&self, change: impl FnOnce(&mut Entries)) {
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        change(Arc::make_mut(&mut entries));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin;
    use crate::stage::Scripted;
    use serde_json::json;

    fn tools() -> Tools {
        let tools = Tools::default();
        builtin().into_iter().for_each(|tool| tools.register(tool));
        tools
    }

    fn offered(tools: &Tools, disabled: &[&str]) -> Vec<String> {
        let disabled = disabled.iter().map(|name| (*name).to_owned()).collect();
        tools.offered(&disabled, &[]).iter().map(|entry| entry.name().to_owned()).collect()
    }

    #[test]
    fn a_tool_of_a_habit_is_offered_only_to_models_that_have_it() {
        let tools = tools();
        let offered = |disabled: &[&str], habits: &[&str]| {
            let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
            let offered = tools.offered(&owned(disabled).into_iter().collect(), &owned(habits));
            offered.iter().any(|entry| entry.name() == "apply_patch")
        };
        assert!(!offered(&[], &[]) && !offered(&[], &["other"]));
        assert!(offered(&[], &["other", "apply_patch"]));
        assert!(!offered(&["apply_patch"], &["apply_patch"]));
    }

    #[test]
    fn s4_09_tools_come_and_go_at_run_time_and_disabled_ones_are_not_offered() {
        let tools = Arc::new(tools());
        assert_eq!(offered(&tools, &[]), ["ask_user", "bash", "edit", "glob", "grep", "ls", "read", "write"]);

        tools.register(Arc::new(Scripted::named("deploy")));
        assert!(offered(&tools, &[]).contains(&"deploy".to_owned()));
        assert!(!offered(&tools, &["deploy"]).contains(&"deploy".to_owned()));

        assert!(tools.unregister("deploy"));
        assert!(!tools.unregister("deploy"));
        assert!(!offered(&tools, &[]).contains(&"deploy".to_owned()));
    }

    #[test]
    fn s4_09_a_call_under_way_keeps_its_tool() {
        let tools = tools();
        let entry = tools.get("read").unwrap();
        tools.unregister("read");
        assert_eq!(entry.name(), "read");
        assert!(tools.get("read").is_none());
    }

    #[test]
    fn s4_10_settings_disable_a_tool_and_set_its_limit() {
        let settings = |text: &str| serde_json::from_str::<ToolSettings>(text).unwrap();
        let tools = Tools::new(BTreeMap::from([
            ("bash".into(), settings(r#"{"enabled": false}"#)),
            ("read".into(), settings(r#"{"timeout_ms": 5}"#)),
        ]));
        builtin().into_iter().for_each(|tool| tools.register(tool));
        assert!(!offered(&tools, &[]).contains(&"bash".to_owned()));
        assert!(tools.check("bash", &json!({"command": "ls"})).unwrap_err().starts_with("Unknown tool: bash\n"));
        let read = tools.get("read").unwrap();
        assert_eq!(read.tool.limit_ms(&json!({}), read.settings.timeout_ms), 5);
        let ls = tools.get("ls").unwrap();
        assert_eq!(ls.tool.limit_ms(&json!({}), ls.settings.timeout_ms), 30_000);
        assert!(serde_json::from_str::<ToolSettings>(r#"{"timeout": 5}"#).is_err());
    }

    #[test]
    fn s3_32_an_unknown_tool_is_answered_with_the_names_there_are() {
        insta::assert_snapshot!(tools().check("reed", &json!({})).unwrap_err(), @r"
        Unknown tool: reed
        There are: ask_user, bash, edit, glob, grep, ls, read, write
        ");
        insta::assert_snapshot!(Tools::default().check("read", &json!({})).unwrap_err(), @r"
        Unknown tool: read
        There are no tools; answer without.
        ");
    }

    #[test]
    fn a_disabled_tool_is_unknown_to_the_session_that_disabled_it() {
        let disabled = BTreeSet::from(["read".to_owned()]);
        let error = tools().check_offered("read", &json!({"path": "a"}), &disabled).unwrap_err();
        assert!(error.starts_with("Unknown tool: read\n"), "{error}");
        assert!(!error.contains("ls, read"), "{error}");
    }

    #[test]
    fn s4_12_wrong_arguments_are_named_with_what_was_expected() {
        let error = tools().check("read", &json!({"filename": "a", "limit": "ten"})).unwrap_err();
        insta::assert_snapshot!(error, @r#"
        wrong arguments for read:
        - `path` is missing
        - `limit` is "ten", a string; expected integer
        - read has no `filename`
        read takes: path (string, required), offset (integer), limit (integer). Call it again with these mended.
        "#);
        let error = tools().check("grep", &json!({"pattern": "x", "mode": "all", "context": 99})).unwrap_err();
        insta::assert_snapshot!(error, @r#"
        wrong arguments for grep:
        - `mode` is "all"; expected one of ["content","files","count"]
        - `context`: 99 is greater than the maximum of 20
        grep takes: pattern (string, required), path (string), glob (string), case_insensitive (boolean), context (integer), mode (string). Call it again with these mended.
        "#);
        let error = tools().check("bash", &json!({"command": "ls", "timeout_ms": 0})).unwrap_err();
        insta::assert_snapshot!(error, @r"
        wrong arguments for bash:
        - `timeout_ms`: 0 is less than the minimum of 1
        bash takes: command (string, required), timeout_ms (integer), outside_sandbox (string). Call it again with these mended.
        ");
    }

    #[test]
    fn aliases_are_taken_and_come_out_under_the_real_names() {
        let input = json!({"file_path": "a", "old_string": "x", "new_string": "y", "replace_all": null});
        assert_eq!(tools().check("edit", &input), Ok(json!({"path": "a", "old": "x", "new": "y"})));
    }

    #[test]
    fn a_broken_schema_is_told_not_panicked_about() {
        let tools = Tools::default();
        tools.register(Arc::new(Scripted { schema: json!({"type": "no such type"}), ..Scripted::named("odd") }));
        let error = tools.check("odd", &json!({})).unwrap_err();
        assert!(error.starts_with("the schema of odd is broken: "), "{error}");
    }
}
