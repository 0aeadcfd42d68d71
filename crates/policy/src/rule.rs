//! Rules as people write them: `tool`, `tool(pattern)`, or a table with conditions.

use crate::arguments::ArgumentPattern;
use crate::call::Call;
use crate::command::CommandPattern;
use crate::host::HostPattern;
use crate::path::PathPattern;
use crate::predicate::{Fit, Predicate};
use crate::subject::Subject;
use regex::Regex;
use serde::{Deserialize, Serialize};
use windlass_kernel::{PermissionMode, Verdict};

/// Bytes a rule's regular expression may take once compiled.
const REGEX_BYTES: usize = 1 << 20;

/// Who wrote a rule; the first has the last word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// Whoever runs the machine.
    Managed,
    #[default]
    User,
    /// A repository's own file: until it is trusted, only what tightens is taken from it.
    Project,
    /// The command line.
    Session,
    /// What Windlass itself knows to be harmless.
    BuiltIn,
}

/// A rule as configuration states it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RuleSpec {
    /// `tool` or `tool(pattern)`.
    pub tool: String,
    pub decision: Choice,
    /// A regular expression over the arguments as compact JSON with sorted keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub args: Option<String>,
    /// Conditions, all of which must hold: `args.amount > 100000`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub when: Vec<String>,
    /// Of the rules that match, those with the highest decide.
    pub priority: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Only in these modes; empty: in all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mode: Vec<PermissionMode>,
    /// Only where somebody is there to be asked, or only where nobody is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interactive: Option<bool>,
    /// Commands (or arguments as JSON) that the rule must match, checked when it is read.
    #[serde(rename = "match", skip_serializing_if = "Vec::is_empty")]
    pub matches: Vec<String>,
    /// The same, that it must not match.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_match: Vec<String>,
}

/// What a rule decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    Allow,
    Deny,
    #[default]
    #[serde(alias = "ask_user")]
    Ask,
    /// Asked every time: no earlier answer and no mode satisfies it.
    AlwaysAsk,
}

/// One rule, read.
#[derive(Clone, Debug)]
pub struct Rule {
    text: String,
    subject: Subject,
    pattern: Pattern,
    args: Option<Regex>,
    when: Vec<Predicate>,
    modes: Vec<PermissionMode>,
    interactive: Option<bool>,
    pub(crate) choice: Choice,
    pub(crate) priority: i64,
    pub(crate) description: Option<String>,
    pub(crate) source: Source,
}

#[derive(Clone, Debug)]
enum Pattern {
    Any,
    Command(CommandPattern),
    Path(PathPattern),
    Host(HostPattern),
    Arguments(ArgumentPattern),
}

/// A rule that cannot be read: which one, what is wrong, and the way out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("rule `{rule}`: {problem}")]
pub struct RuleError {
    pub rule: String,
    pub problem: String,
}

/// The part of a call that a rule is held against.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Part<'a> {
    /// The call as a whole: its tool, paths, host and arguments.
    Whole,
    /// One command of a command line.
    Deed(&'a crate::deed::Deed),
    /// A file that a command writes.
    Writes(FileAt<'a>),
    /// A file that a command reads.
    Reads(FileAt<'a>),
}

/// A file of a command, where it lies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileAt<'a> {
    /// Absolute; none: only known when it runs.
    pub path: Option<&'a str>,
    /// Everything below is meant, or a pattern's folder is all that is known.
    pub and_below: bool,
}

impl Rule {
    /// Reads `tool` or `tool(pattern)`; it asks until it is told what to decide.
    pub fn parse(text: &str) -> Result<Rule, RuleError> {
        Rule::read(&RuleSpec { tool: text.into(), ..RuleSpec::default() }, Source::default())
    }

    /// Reads a rule with its conditions, and holds it against its own examples.
    pub fn read(spec: &RuleSpec, source: Source) -> Result<Rule, RuleError> {
        let text = spec.tool.trim();
        let error = |problem: String| RuleError { rule: text.into(), problem };
        let (name, pattern) = split(text).map_err(error)?;
        let subject = Subject::parse(name);
        let pattern = match pattern {
            None => Pattern::Any,
            Some(pattern) => read_pattern(&subject, pattern).map_err(error)?,
        };
        let args = spec.args.as_deref().map(|text| regex(text).map_err(error)).transpose()?;
        let when = spec.when.iter().map(|text| Predicate::parse(text).map_err(error)).collect::<Result<_, _>>()?;
        let rule = Rule {
            text: text.into(),
            subject,
            pattern,
            args,
            when,
            modes: spec.mode.clone(),
            interactive: spec.interactive,
            choice: spec.decision,
            priority: spec.priority,
            description: spec.description.clone(),
            source,
        };
        crate::example::check(&rule, spec).map_err(error)?;
        Ok(rule)
    }

    /// The rule as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whom it speaks of, for lists of tools: a tool's own name, if it is denied without a pattern or condition.
    pub(crate) fn denies_wholly(&self, tool: &str) -> bool {
        let is_bare = matches!(self.pattern, Pattern::Any) && self.args.is_none() && self.when.is_empty();
        let always = self.modes.is_empty() && self.interactive.is_none();
        let named = match &self.subject {
            Subject::All => true,
            Subject::Prefix(prefix) => tool.starts_with(prefix),
            Subject::Named(name) if name == "edit" => matches!(tool, "edit" | "write" | "apply_patch"),
            Subject::Named(name) => name == tool,
        };
        self.choice == Choice::Deny && is_bare && always && named
    }

    /// A mode it holds in, where it does not hold in all.
    pub(crate) fn only_mode(&self) -> Option<PermissionMode> {
        self.modes.first().copied()
    }

    /// Whether it holds where somebody is there to be asked.
    pub(crate) fn wants_person(&self) -> bool {
        self.interactive.unwrap_or(true)
    }

    /// It speaks of some commands.
    pub(crate) fn is_of_commands(&self) -> bool {
        matches!(self.pattern, Pattern::Command(_))
    }

    /// It allows every command.
    pub(crate) fn is_bare(&self) -> bool {
        matches!(self.pattern, Pattern::Any)
    }

    pub(crate) fn verdict(&self) -> Verdict {
        match self.choice {
            Choice::Allow => Verdict::Allow,
            Choice::Deny => Verdict::Deny,
            Choice::Ask | Choice::AlwaysAsk => Verdict::Ask,
        }
    }

    /// Whether the rule means this part of the call. What allows must mean it for sure; what asks or denies may.
    pub(crate) fn fit(&self, call: &Call, part: Part) -> Fit {
        let ask = call.ask;
        let out_of_place = !self.modes.is_empty() && !self.modes.contains(&ask.mode)
            || self.interactive.is_some_and(|wanted| wanted != ask.interactive);
        if out_of_place {
            return Fit::No;
        }
        let fit = match part {
            Part::Whole => self.fit_whole(call),
            Part::Deed(deed) => self.fit_deed(call, deed),
            Part::Writes(file) => self.fit_file(call, file, self.subject.is_edit(self.choice != Choice::Allow)),
            Part::Reads(file) => self.fit_file(call, file, self.subject.is_read()),
        };
        if fit == Fit::No || self.args.is_none() && self.when.is_empty() {
            return fit;
        }
        let args = self.args.as_ref().is_none_or(|args| args.is_match(call.arguments()));
        self.when.iter().map(|condition| condition.fit(ask.input)).chain([fit, Fit::of(args)]).min().unwrap_or(fit)
    }

    fn fit_whole(&self, call: &Call) -> Fit {
        let ask = call.ask;
        let sure = self.subject.surely_names(ask);
        if !sure && !self.subject.may_name(ask) {
            return Fit::No;
        }
        let place = call.place();
        let paths = &ask.plan.paths;
        let allows = self.choice == Choice::Allow;
        let matches = match &self.pattern {
            Pattern::Any => true,
            Pattern::Command(_) => false,
            Pattern::Path(pattern) if allows => {
                !paths.is_empty() && paths.iter().all(|path| pattern.matches(&place, path))
            }
            Pattern::Path(pattern) => paths.iter().any(|path| pattern.matches(&place, path)),
            Pattern::Host(_) if allows && !crate::host::is_plain(ask.input) => false,
            Pattern::Host(pattern) => call.host().is_some_and(|host| pattern.matches(host)),
            Pattern::Arguments(pattern) => pattern.matches(call.arguments()),
        };
        match (matches, sure) {
            (false, _) => Fit::No,
            (true, false) if allows => Fit::No,
            (true, _) => Fit::Sure,
        }
    }

    fn fit_deed(&self, call: &Call, deed: &crate::deed::Deed) -> Fit {
        let names = self.subject.surely_names(call.ask) || self.subject.may_name(call.ask);
        match &self.pattern {
            _ if !names => Fit::No,
            Pattern::Any => Fit::Sure,
            Pattern::Command(pattern) if self.choice == Choice::Allow => Fit::of(pattern.covers(deed)),
            Pattern::Command(pattern) => pattern.catches(deed),
            Pattern::Arguments(pattern) => Fit::of(pattern.matches(call.arguments())),
            Pattern::Path(_) | Pattern::Host(_) => Fit::No,
        }
    }

    fn fit_file(&self, call: &Call, file: FileAt, speaks_of_it: bool) -> Fit {
        if !speaks_of_it {
            return Fit::No;
        }
        match (&self.pattern, file.path) {
            (Pattern::Any, _) => Fit::Sure,
            (Pattern::Path(_), None) => Fit::Maybe,
            (Pattern::Path(pattern), Some(path)) => {
                let place = call.place();
                match pattern.matches(&place, path) && !(file.and_below && self.choice == Choice::Allow) {
                    true => Fit::Sure,
                    false if file.and_below && pattern.reaches_into(&place, path) => Fit::Maybe,
                    false => Fit::No,
                }
            }
            _ => Fit::No,
        }
    }

    /// Whether the rule's own words name what makes `path` one that runs as code later.
    pub(crate) fn spells(&self, path: &str) -> bool {
        matches!(&self.pattern, Pattern::Path(pattern) if pattern.spells_protected(&self.text, path))
    }
}

fn regex(text: &str) -> Result<Regex, String> {
    regex::RegexBuilder::new(text).size_limit(REGEX_BYTES).build().map_err(|error| {
        format!("`args` is no regular expression: {}", error.to_string().lines().last().unwrap_or_default())
    })
}

/// The name and, in parentheses, the pattern of a rule.
fn split(text: &str) -> Result<(&str, Option<&str>), String> {
    let (name, pattern) = match text.split_once('(') {
        None => (text, None),
        Some((name, rest)) => {
            let pattern = rest.strip_suffix(')').ok_or("the closing `)` is missing: write `tool(pattern)`")?;
            (name.trim_end(), Some(pattern.trim()))
        }
    };
    let is_name = |sign: char| sign.is_ascii_alphanumeric() || matches!(sign, '_' | '-' | '.');
    let (plain, star) = name.strip_suffix('*').map_or((name, false), |plain| (plain, true));
    if plain.is_empty() && !star || !plain.chars().all(is_name) {
        return Err(format!("`{name}` is no tool's name: write `tool` or `tool(pattern)`, as in `bash(cargo test:*)`"));
    }
    if pattern == Some("") {
        return Err(format!("the pattern is empty: write `{name}` for every call of it"));
    }
    Ok((name, pattern))
}

fn read_pattern(subject: &Subject, pattern: &str) -> Result<Pattern, String> {
    match subject.name() {
        _ if pattern == "*" => Ok(Pattern::Any),
        "bash" | "exec" if matches!(pattern, ":*" | "**") => Ok(Pattern::Any),
        "bash" | "exec" => CommandPattern::parse(pattern).map(Pattern::Command),
        "read" | "write" | "edit" | "apply_patch" | "ls" | "glob" | "grep" | "fs.read" | "fs.write" | "search" => {
            PathPattern::parse(pattern).map(Pattern::Path)
        }
        "web_fetch" | "net" if pattern.starts_with("domain:") => {
            HostPattern::parse(&pattern["domain:".len()..]).map(Pattern::Host)
        }
        "web_fetch" if !pattern.starts_with(['{', '*']) => {
            Err(format!("write the host as `web_fetch(domain:docs.rs)`; `{pattern}` is none"))
        }
        _ => ArgumentPattern::parse(pattern).map(Pattern::Arguments),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_the_rule_and_the_way_out() {
        let errors: Vec<String> = ["", "(x)", "bash(rm", "bash()", "two words", "edit(~x)", "edit(src/)", "edit(../x)"]
            .into_iter()
            .chain(["edit(a[)", "bash(a | b)", "bash($x)", "web_fetch(docs.rs)", "bash(*x)"])
            .map(|rule| Rule::parse(rule).unwrap_err().to_string())
            .collect();
        insta::assert_snapshot!(errors.join("\n"), @r"
        rule ``: `` is no tool's name: write `tool` or `tool(pattern)`, as in `bash(cargo test:*)`
        rule `(x)`: `` is no tool's name: write `tool` or `tool(pattern)`, as in `bash(cargo test:*)`
        rule `bash(rm`: the closing `)` is missing: write `tool(pattern)`
        rule `bash()`: the pattern is empty: write `bash` for every call of it
        rule `two words`: `two words` is no tool's name: write `tool` or `tool(pattern)`, as in `bash(cargo test:*)`
        rule `edit(~x)`: only `~/` is known, the home of who runs this: write the absolute path
        rule `edit(src/)`: a rule matches files: write `src/**` for everything below
        rule `edit(../x)`: it leaves the workspace: write the absolute path
        rule `edit(a[)`: unclosed character class; missing ']' (escape a literal sign as in `[*]`)
        rule `bash(a | b)`: it is not one simple command, so it could never match: write words and plain quotes only, and one rule for each command
        rule `bash($x)`: it is not one simple command, so it could never match: write words and plain quotes only, and one rule for each command
        rule `web_fetch(docs.rs)`: write the host as `web_fetch(domain:docs.rs)`; `docs.rs` is none
        rule `bash(*x)`: `*` stands for words after a program: name the program, or write the tool alone
        ");
    }

    #[test]
    fn tools_are_known_by_their_other_names() {
        for (text, name) in
            [("Bash(ls)", "bash"), ("LS", "ls"), ("Edit(src/**)", "edit"), ("WebFetch(domain:x.org)", "web_fetch")]
        {
            assert_eq!(Rule::parse(text).unwrap().subject.name(), name, "{text}");
        }
        assert_eq!(Rule::parse("mcp__x__Do").unwrap().subject, Subject::Named("mcp__x__Do".into()));
        assert_eq!(Rule::parse("mcp__x").unwrap().subject, Subject::Prefix("mcp__x__".into()));
    }
}
