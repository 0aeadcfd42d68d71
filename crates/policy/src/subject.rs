//! Whom a rule speaks of: a tool's name, one of its other names, a family of tools, or a capability.

use crate::ask::Ask;

/// Names the tools are known by elsewhere, in lower case, and ours.
const OTHER_NAMES: [(&str, &str); 13] = [
    ("applypatch", "apply_patch"),
    ("askuserquestion", "ask_user"),
    ("fetch", "web_fetch"),
    ("list", "ls"),
    ("multiedit", "edit"),
    ("notebookedit", "edit"),
    ("run_shell_command", "bash"),
    ("shell", "bash"),
    ("str_replace_based_edit_tool", "edit"),
    ("webfetch", "web_fetch"),
    ("websearch", "web_search"),
    ("read_file", "read"),
    ("write_file", "write"),
];
/// The built-in tools, whose names may be written in any case.
const OURS: [&str; 11] =
    ["apply_patch", "ask_user", "bash", "edit", "glob", "grep", "ls", "read", "web_fetch", "web_search", "write"];
/// Tags of what changes something or goes out; a yes to looking is none to these.
const STRONG_TAGS: [&str; 3] = ["fs.write", "exec", "net"];

/// A rule's tool, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    /// Every tool.
    All,
    /// A name, or a capability tag.
    Named(String),
    /// All names that begin so: `mcp__github__*`.
    Prefix(String),
}

impl Subject {
    pub fn parse(name: &str) -> Subject {
        if name == "*" {
            return Subject::All;
        }
        if let Some(prefix) = name.strip_suffix('*') {
            return Subject::Prefix(prefix.into());
        }
        let is_server = name.strip_prefix("mcp__").is_some_and(|rest| !rest.is_empty() && !rest.contains("__"));
        if is_server { Subject::Prefix(format!("{name}__")) } else { Subject::Named(tool_name(name)) }
    }

    /// The built-in tool or tag that is named; of a prefix, nothing.
    pub fn name(&self) -> &str {
        match self {
            Subject::Named(name) => name,
            _ => "",
        }
    }

    /// Whether the call is surely meant. A tag speaks for a call only if it says the most that the call does: `edit`
    /// reads, too.
    pub fn surely_names(&self, ask: &Ask) -> bool {
        let is_more = |name: &str| STRONG_TAGS.iter().any(|tag| *tag != name && ask.has_tag(tag));
        match self {
            Subject::All => true,
            Subject::Prefix(prefix) => ask.tool.starts_with(prefix),
            Subject::Named(name) if name == ask.tool => true,
            Subject::Named(name) if name == "edit" => ask.has_tag("fs.write") && !is_more("fs.write"),
            Subject::Named(name) if name == "read" => ask.only_reads() && !ask.plan.paths.is_empty(),
            Subject::Named(name) => ask.has_tag(name) && !is_more(name),
        }
    }

    /// Whether the call may be meant: who refuses writing to a file means every tool that writes, and who refuses
    /// reading it every tool that shows it.
    pub fn may_name(&self, ask: &Ask) -> bool {
        self.surely_names(ask)
            || match self.name() {
                "" => false,
                "edit" | "write" | "apply_patch" => ask.has_tag("fs.write"),
                "read" => ask.has_tag("fs.read") || ask.has_tag("search"),
                name => ask.has_tag(name),
            }
    }

    /// Whether it speaks of writing files, whichever tool does.
    pub fn is_edit(&self, broadly: bool) -> bool {
        matches!(self.name(), "edit" | "fs.write") || broadly && matches!(self.name(), "write" | "apply_patch")
    }

    /// Whether it speaks of reading files, whichever tool does.
    pub fn is_read(&self) -> bool {
        matches!(self.name(), "read" | "fs.read")
    }
}

/// Our name of a tool that is also known by others; any other name as it is.
pub fn tool_name(name: &str) -> String {
    let lower = name.to_ascii_lowercase();
    match OTHER_NAMES.iter().find(|(other, _)| *other == lower) {
        Some((_, ours)) => (*ours).into(),
        None if OURS.contains(&&*lower) => lower,
        None => name.into(),
    }
}
