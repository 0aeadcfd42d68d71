//! Which calls a hook is meant for: a regular expression over one word, with the names that other clients use.

use crate::event::{EventName, Subject};
use regex::Regex;

/// Names of other clients for the tools here. Those for changing files cover every tool that changes files, so that a
/// hook which guards them there guards them here.
const ALIASES: [(&str, &[&str]); 10] = [
    ("apply_patch", &["Edit", "MultiEdit", "Write"]),
    ("ask_user", &["AskUserQuestion"]),
    ("bash", &["Bash"]),
    ("edit", &["Edit", "MultiEdit"]),
    ("glob", &["Glob"]),
    ("grep", &["Grep"]),
    ("ls", &["LS"]),
    ("read", &["Read"]),
    ("web_fetch", &["WebFetch"]),
    ("write", &["Write"]),
];

/// One matcher, read.
#[derive(Clone, Debug)]
pub(crate) enum Matcher {
    Any,
    Pattern(Regex),
}

impl Matcher {
    /// Reads a matcher for `event`; `*` and nothing mean all.
    pub(crate) fn read(text: &str, event: EventName) -> Result<Matcher, String> {
        let text = text.trim();
        if matches!(text, "" | "*") {
            return Ok(Matcher::Any);
        }
        let subject = event.subject();
        if matches!(subject, Subject::Nothing) {
            return Err(format!("`{text}` has nothing to be compared with at {}: leave it out", event.text()));
        }
        let matcher = Matcher::Pattern(whole(text)?);
        match subject {
            Subject::OneOf(choices) if !choices.iter().any(|choice| matcher.matches(choice)) => {
                Err(format!("`{text}` matches none of the words that {} has: {}", event.text(), choices.join(", ")))
            }
            _ => Ok(matcher),
        }
    }

    /// Whether it means `word`, or a tool that other clients call so.
    pub(crate) fn matches(&self, word: &str) -> bool {
        let Matcher::Pattern(regex) = self else { return true };
        let aliases = ALIASES.iter().find(|(name, _)| *name == word).map_or(&[][..], |(_, aliases)| aliases);
        regex.is_match(word) || aliases.iter().any(|alias| regex.is_match(alias))
    }
}

/// `text` as an expression that must match from beginning to end.
fn whole(text: &str) -> Result<Regex, String> {
    // Alone first: `a)|(b` is wrong, though it would be right within brackets.
    Regex::new(text).and_then(|_| Regex::new(&format!(r"\A(?:{text})\z"))).map_err(|error| {
        let why = error.to_string();
        let why = why.lines().last().unwrap_or_default().trim_start_matches("error: ").trim().to_owned();
        format!(
            "`{text}` is no regular expression ({why}): write names with `|` between them, as in `bash|edit`, or `*` \
             for all; a literal bracket is written `\\(`"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matcher_means_whole_names_and_the_names_that_other_clients_use() {
        let rows = [
            ("", "bash", true),
            ("*", "anything", true),
            (" * ", "bash", true),
            ("bash", "bash", true),
            ("bash", "bashful", false),
            ("bash", "my_bash", false),
            ("Bash", "bash", true),
            ("BASH", "bash", false),
            ("(?i)BASH", "bash", true),
            ("Edit|Write", "edit", true),
            ("Edit|Write", "write", true),
            ("Edit|Write", "apply_patch", true),
            ("Edit|Write", "bash", false),
            ("edit|write", "apply_patch", false),
            ("MultiEdit", "edit", true),
            ("bash|edit", "edit", true),
            ("mcp__.*", "mcp__files__read", true),
            ("mcp__files", "mcp__files__read", false),
            ("WebFetch", "web_fetch", true),
            ("AskUserQuestion", "ask_user", true),
            ("Read|Grep|Glob|LS", "ls", true),
            ("ba", "bash", false),
            ("ba.*", "bash", true),
            (".*", "bash", true),
            ("^bash$", "bash", true),
            ("a|bash", "bash", true),
        ];
        for (matcher, tool, expected) in rows {
            let read = Matcher::read(matcher, EventName::PreToolUse).unwrap();
            assert_eq!(read.matches(tool), expected, "{matcher} {tool}");
        }
    }

    #[test]
    fn a_matcher_that_can_mean_nothing_is_refused() {
        let refused = |text, event| Matcher::read(text, event).unwrap_err();
        insta::assert_snapshot!(refused("bash(", EventName::PreToolUse), @r"`bash(` is no regular expression (unclosed group): write names with `|` between them, as in `bash|edit`, or `*` for all; a literal bracket is written `\(`");
        assert!(refused("a)|(b", EventName::PreToolUse).contains("unopened group"));
        insta::assert_snapshot!(refused("startp", EventName::SessionStart), @"`startp` matches none of the words that SessionStart has: startup, resume, clear, compact");
        insta::assert_snapshot!(refused("bash", EventName::Stop), @"`bash` has nothing to be compared with at Stop: leave it out");
        assert!(Matcher::read("*", EventName::Stop).is_ok());
        assert!(Matcher::read("startup|resume", EventName::SessionStart).unwrap().matches("resume"));
        assert!(!Matcher::read("manual", EventName::PreCompact).unwrap().matches("auto"));
    }
}
