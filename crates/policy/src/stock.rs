//! What runs unasked without any rule of the user's: commands that only look, inside the workspace.
//!
//! These speak only where no rule does, only of commands whose table says that they look (not with options that write
//! or run others), and reading outside the workspace asks all the same.

use crate::rule::{Choice, Rule, Source};

const LOOKING: [&str; 75] = [
    "'['",
    "'[['",
    "basename",
    "cal",
    "cat",
    "cd",
    "cksum",
    "cmp",
    "column",
    "comm",
    "cut",
    "date",
    "df",
    "diff",
    "dirname",
    "du",
    "echo",
    "egrep",
    "expr",
    "false",
    "fd",
    "fgrep",
    "file",
    "find",
    "fold",
    "git blame",
    "git branch",
    "git cat-file",
    "git describe",
    "git diff",
    "git log",
    "git ls-files",
    "git ls-tree",
    "git merge-base",
    "git remote",
    "git rev-list",
    "git rev-parse",
    "git shortlog",
    "git show",
    "git status",
    "git tag",
    "grep",
    "head",
    "hexdump",
    "hostname",
    "id",
    "join",
    "jq",
    "ls",
    "md5sum",
    "nl",
    "od",
    "printf",
    "ps",
    "pwd",
    "readlink",
    "realpath",
    "rg",
    "sha1sum",
    "sha256sum",
    "sleep",
    "sort",
    "stat",
    "strings",
    "tail",
    "test",
    "tr",
    "tree",
    "true",
    "type",
    "uname",
    "uniq",
    "wc",
    "which",
    "whoami",
];

/// The rules, as they are written.
pub fn built_in_rules() -> Vec<String> {
    LOOKING.iter().map(|words| format!("bash({words}:*)")).collect()
}

/// Whether a program alone, with any plain words, is among them.
pub(crate) fn only_looks(program: &str) -> bool {
    LOOKING.contains(&program)
}

pub(crate) fn rules() -> Vec<Rule> {
    let read = |text: String| Rule::deciding(&text, Choice::Allow, Source::BuiltIn).ok();
    built_in_rules().into_iter().filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_rule_can_be_read() {
        assert_eq!(rules().len(), built_in_rules().len());
    }
}
