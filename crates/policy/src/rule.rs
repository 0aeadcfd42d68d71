//! Rules as people write them, `tool` or `tool(pattern)`, and the rungs that read them.

use crate::arguments::{ArgumentPattern, canonical};
use crate::ask::{Ask, Check, Opinion};
use crate::command::CommandPattern;
use crate::path::PathPattern;
use crate::segments::Reading;
use crate::words::{Word, simple};
use std::cell::OnceCell;
use windlass_kernel::Verdict;

/// The built-in tools whose names may be written in any case.
const ALIASES: [&str; 8] = ["apply_patch", "bash", "read", "edit", "write", "ls", "glob", "grep"];
/// Tags of what changes something or goes out; a yes to looking is none to these.
const STRONG_TAGS: [&str; 3] = ["fs.write", "exec", "net"];

/// One rule, read.
#[derive(Clone, Debug)]
pub struct Rule {
    text: String,
    /// A tool's name or a capability tag.
    tool: String,
    pattern: Pattern,
}

#[derive(Clone, Debug)]
enum Pattern {
    Any,
    Command(CommandPattern),
    Path(PathPattern),
    Arguments(ArgumentPattern),
}

/// A rule that cannot be read: which one, what is wrong, and the way out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("rule `{rule}`: {problem}")]
pub struct RuleError {
    pub rule: String,
    pub problem: String,
}

impl Rule {
    pub fn parse(text: &str) -> Result<Rule, RuleError> {
        let text = text.trim();
        let error = |problem: String| RuleError { rule: text.into(), problem };
        let (name, pattern) = split(text).map_err(error)?;
        let alias = name.to_ascii_lowercase();
        let tool = if ALIASES.contains(&&alias[..]) { alias } else { name.into() };
        let pattern = match pattern {
            None => Pattern::Any,
            Some(pattern) => read_pattern(&tool, pattern).map_err(error)?,
        };
        Ok(Rule { text: text.into(), tool, pattern })
    }

    /// The rule as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether the rule surely means this call: every path, and a command that is simple for sure.
    pub(crate) fn allows(&self, call: &Call) -> bool {
        self.surely_names(call.ask)
            && match &self.pattern {
                Pattern::Any => true,
                Pattern::Command(pattern) => call.simple().is_some_and(|words| pattern.covers(words)),
                Pattern::Path(pattern) => {
                    let paths = &call.ask.plan.paths;
                    !paths.is_empty() && paths.iter().all(|path| pattern.matches(call.ask.workspace, path))
                }
                Pattern::Arguments(pattern) => pattern.matches(call.arguments()),
            }
    }

    /// Whether the rule may mean this call: any path, any part of a command.
    fn catches(&self, call: &Call) -> bool {
        self.names(call.ask)
            && match &self.pattern {
                Pattern::Any => true,
                Pattern::Command(pattern) => call.reading().is_some_and(|reading| pattern.catches(reading)),
                Pattern::Path(pattern) => {
                    call.ask.plan.paths.iter().any(|path| pattern.matches(call.ask.workspace, path))
                }
                Pattern::Arguments(pattern) => pattern.matches(call.arguments()),
            }
    }

    /// A tag speaks for a call only if it says the most that the call does: `edit` reads, too.
    fn surely_names(&self, ask: &Ask) -> bool {
        let is_more = |tag: &&str| **tag != self.tool && ask.has_tag(tag);
        self.tool == ask.tool || (ask.has_tag(&self.tool) && !STRONG_TAGS.iter().any(is_more))
    }

    fn names(&self, ask: &Ask) -> bool {
        self.tool == ask.tool || ask.has_tag(&self.tool)
    }
}

/// The name and, in parentheses, the pattern of a rule.
fn split(text: &str) -> Result<(&str, Option<&str>), String> {
    let (name, pattern) = match text.split_once('(') {
        None => (text, None),
        Some((name, rest)) => {
            let pattern = rest.strip_suffix(')').ok_or("the closing `)` is missing: write `tool(pattern)`")?;
            (name, Some(pattern.trim()))
        }
    };
    let is_name = |sign: char| sign.is_ascii_alphanumeric() || matches!(sign, '_' | '-' | '.');
    if name.is_empty() || !name.chars().all(is_name) {
        return Err(format!("`{name}` is no tool's name: write `tool` or `tool(pattern)`, as in `bash(cargo test:*)`"));
    }
    if pattern == Some("") {
        return Err(format!("the pattern is empty: write `{name}` for every call of it"));
    }
    Ok((name, pattern))
}

fn read_pattern(tool: &str, pattern: &str) -> Result<Pattern, String> {
    match tool {
        "bash" | "exec" if pattern == "*" => Ok(Pattern::Any),
        "bash" | "exec" => CommandPattern::parse(pattern).map(Pattern::Command),
        "read" | "write" | "edit" | "apply_patch" | "ls" | "glob" | "grep" | "fs.read" | "fs.write" | "search" => {
            PathPattern::parse(pattern).map(Pattern::Path)
        }
        _ => ArgumentPattern::parse(pattern).map(Pattern::Arguments),
    }
}

/// One call as rules look at it; each view is made once, when a rule first wants it.
pub(crate) struct Call<'a> {
    ask: &'a Ask<'a>,
    simple: OnceCell<Option<Vec<Word>>>,
    reading: OnceCell<Option<Reading>>,
    arguments: OnceCell<String>,
}

impl<'a> Call<'a> {
    pub(crate) fn new(ask: &'a Ask<'a>) -> Call<'a> {
        Call { ask, simple: OnceCell::new(), reading: OnceCell::new(), arguments: OnceCell::new() }
    }

    fn simple(&self) -> Option<&[Word]> {
        self.simple.get_or_init(|| self.ask.command().and_then(simple)).as_deref()
    }

    fn reading(&self) -> Option<&Reading> {
        self.reading.get_or_init(|| self.ask.command().map(Reading::of)).as_ref()
    }

    fn arguments(&self) -> &str {
        self.arguments.get_or_init(|| canonical(self.ask.input))
    }
}

fn parse_all(rules: &[String]) -> Result<Vec<Rule>, RuleError> {
    rules.iter().map(|rule| Rule::parse(rule)).collect()
}

/// The first of `rules` that may mean the call, as an opinion.
fn caught(rules: &[Rule], ask: &Ask, opinion: impl Fn(&Rule) -> Opinion) -> Option<Opinion> {
    let call = Call::new(ask);
    rules.iter().find(|rule| rule.catches(&call)).map(opinion)
}

/// Rules that refuse: they also catch what only may be meant.
#[derive(Clone, Debug, Default)]
pub struct DenyRules(Vec<Rule>);

/// Rules that have a person asked: they also catch what only may be meant.
#[derive(Clone, Debug, Default)]
pub struct AskRules(Vec<Rule>);

/// Rules that allow: they match only what is surely meant.
#[derive(Clone, Debug, Default)]
pub struct AllowRules(Vec<Rule>);

/// What a person has allowed for this session; the rules come with the [`Ask`]. One that cannot be read allows
/// nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Grants;

impl DenyRules {
    pub fn parse(rules: &[String]) -> Result<DenyRules, RuleError> {
        parse_all(rules).map(DenyRules)
    }
}

impl AskRules {
    pub fn parse(rules: &[String]) -> Result<AskRules, RuleError> {
        parse_all(rules).map(AskRules)
    }
}

impl AllowRules {
    pub fn parse(rules: &[String]) -> Result<AllowRules, RuleError> {
        parse_all(rules).map(AllowRules)
    }
}

impl Check for DenyRules {
    fn check(&self, ask: &Ask) -> Option<Opinion> {
        caught(&self.0, ask, |rule| {
            let reason = format!("the rule `{}` denies it; do without it or tell the person what you need", rule.text);
            Opinion::by_rule(Verdict::Deny, "rule", &rule.text, reason)
        })
    }
}

impl Check for AskRules {
    fn check(&self, ask: &Ask) -> Option<Opinion> {
        caught(&self.0, ask, |rule| {
            let reason = format!("the rule `{}` wants a person to be asked", rule.text);
            Opinion::by_rule(Verdict::Ask, "rule", &rule.text, reason)
        })
    }
}

impl Check for AllowRules {
    fn check(&self, ask: &Ask) -> Option<Opinion> {
        let call = Call::new(ask);
        let rule = self.0.iter().find(|rule| rule.allows(&call))?;
        let reason = format!("the rule `{}` allows it", rule.text);
        Some(Opinion::by_rule(Verdict::Allow, "rule", &rule.text, reason))
    }
}

impl Check for Grants {
    fn check(&self, ask: &Ask) -> Option<Opinion> {
        let call = Call::new(ask);
        // A grant for another tool is passed over before its pattern is built.
        let rules = ask.grants.iter().filter(|grant| may_name(grant, ask)).filter_map(|grant| Rule::parse(grant).ok());
        let rule = rules.into_iter().find(|rule| rule.allows(&call))?;
        let reason = format!("a person allowed `{}` for this session", rule.text);
        Some(Opinion::by_rule(Verdict::Allow, "grant", &rule.text, reason))
    }
}

fn may_name(grant: &str, ask: &Ask) -> bool {
    let name = grant.split('(').next().unwrap_or(grant).trim();
    name.eq_ignore_ascii_case(ask.tool) || ask.has_tag(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_the_rule_and_the_way_out() {
        let errors: Vec<String> =
            ["", "(x)", "bash(rm", "bash()", "two words", "edit(~/x)", "edit(src/)", "edit(../x)"]
                .into_iter()
                .chain(["edit(a[)", "bash(a | b)", "bash(npm run t*)", "web_fetch(docs.rs)", "bash(*x)"])
                .map(|rule| Rule::parse(rule).unwrap_err().to_string())
                .collect();
        insta::assert_snapshot!(errors.join("\n"), @r#"
        rule ``: `` is no tool's name: write `tool` or `tool(pattern)`, as in `bash(cargo test:*)`
        rule `(x)`: `` is no tool's name: write `tool` or `tool(pattern)`, as in `bash(cargo test:*)`
        rule `bash(rm`: the closing `)` is missing: write `tool(pattern)`
        rule `bash()`: the pattern is empty: write `bash` for every call of it
        rule `two words`: `two words` is no tool's name: write `tool` or `tool(pattern)`, as in `bash(cargo test:*)`
        rule `edit(~/x)`: `~` is not expanded here: write the absolute path
        rule `edit(src/)`: a rule matches files: write `src/**` for everything below
        rule `edit(../x)`: it leaves the workspace: write the absolute path
        rule `edit(a[)`: unclosed character class; missing ']' (escape a literal sign as in `[*]`)
        rule `bash(a | b)`: it is not one simple command, so it could never match: write words and plain quotes only, and one rule for each command
        rule `bash(npm run t*)`: `*` stands for whole words: in `t*` it is a part of one; end the rule with `:*` to allow further words, or quote the word if it means the sign itself
        rule `web_fetch(docs.rs)`: it can never match: arguments are compared as compact JSON with sorted keys, where only `*` is special; write for example `*"NAME":"docs.rs"*`
        rule `bash(*x)`: `*` stands for whole words: in `*x` it is a part of one; end the rule with `:*` to allow further words, or quote the word if it means the sign itself
        "#);
    }

    #[test]
    fn built_in_tools_may_be_written_in_any_case() {
        for (text, tool) in [("Bash(ls)", "bash"), ("LS", "ls"), ("Edit(src/**)", "edit"), ("mcp__x__Do", "mcp__x__Do")]
        {
            assert_eq!(Rule::parse(text).unwrap().tool, tool, "{text}");
        }
    }
}
