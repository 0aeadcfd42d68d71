//! Patterns over commands: `words`, `words:*`, and `*` for one or more words.

use crate::arguments::{Part, matches};
use crate::segments::{Reading, Segment, base};
use crate::words::{Word, simple};

/// Options by which a program writes files or runs others: a wildcard does not grant them, only their own name does.
const SHARP_OPTIONS: [(&str, &[&str]); 7] = [
    ("find", &["-exec", "-execdir", "-ok", "-okdir", "-delete", "-fls", "-fprint", "-fprint0", "-fprintf"]),
    ("fd", &["-x", "-X", "--exec", "--exec-batch"]),
    ("git", &["-c", "--config-env", "--exec-path", "--upload-pack", "--receive-pack", "--output", "--ext-diff"]),
    ("rg", &["--pre", "--hostname-bin"]),
    ("sort", &["-o", "--output", "--compress-program"]),
    ("tar", &["-I", "-F", "--use-compress-program", "--checkpoint-action", "--to-command", "--info-script"]),
    ("sed", &["-i", "--in-place"]),
];

#[derive(Clone, Debug)]
pub(crate) struct CommandPattern(Vec<Part<String>>);

impl CommandPattern {
    /// Reads a pattern; says what is wrong with it and the way out.
    pub(crate) fn parse(text: &str) -> Result<CommandPattern, String> {
        let (fixed, open) = match text.strip_suffix(":*") {
            Some(fixed) => (fixed, true),
            None => (text, false),
        };
        let words = simple(fixed).ok_or(
            "it is not one simple command, so it could never match: write words and plain quotes only, \
             and one rule for each command",
        )?;
        let mut parts = Vec::new();
        for word in words {
            match word {
                Word { text, quoted: false } if text == "*" && parts.is_empty() => {
                    return Err(
                        "`*` stands for words after a program: name the program, or write the tool alone".into()
                    );
                }
                Word { text, quoted: false } if text == "*" => parts.extend([Part::One, Part::Many]),
                Word { text, quoted: false } if text.contains('*') => {
                    return Err(format!(
                        "`*` stands for whole words: in `{text}` it is a part of one; end the rule with `:*` to allow \
                         further words, or quote the word if it means the sign itself"
                    ));
                }
                Word { text, .. } => parts.push(Part::Is(text)),
            }
        }
        if open {
            parts.push(Part::Many);
        }
        Ok(CommandPattern(parts))
    }

    /// Whether the words of one simple command are surely meant.
    pub(crate) fn covers(&self, words: &[Word]) -> bool {
        matches(&self.0, words.len(), |at, want| words[at].text == *want) && self.spells_sharp_options(words)
    }

    /// Whether anything in the command may be meant.
    pub(crate) fn catches(&self, reading: &Reading) -> bool {
        reading.segments().any(|segment| segment.programs.iter().any(|start| self.catches_at(segment, *start)))
    }

    fn catches_at(&self, segment: &Segment, start: usize) -> bool {
        let words = &segment.words[start..];
        let as_named = matches(&self.0, words.len(), |at, want| words[at] == *want);
        as_named
            || matches(&self.0, words.len(), |at, want| *want == if at == 0 { base(&words[0]) } else { &words[at] })
    }

    fn spells_sharp_options(&self, words: &[Word]) -> bool {
        let name = words.first().map_or("", |word| base(&word.text));
        let Some((_, sharp)) = SHARP_OPTIONS.iter().find(|(program, _)| *program == name) else { return true };
        words[1..].iter().all(|word| {
            let harmless = !sharp.iter().any(|option| may_be_option(&word.text, option));
            harmless || self.0.iter().any(|part| matches!(part, Part::Is(own) if *own == word.text))
        })
    }
}

/// Whether a program may take `word` for `option`: long ones may be shortened and carry `=value`, short ones a value.
fn may_be_option(word: &str, option: &str) -> bool {
    let name = word.split_once('=').map_or(word, |(name, _)| name);
    if option.starts_with("--") {
        return name.len() > 2 && option.starts_with(name);
    }
    name == option || option.len() == 2 && !word.starts_with("--") && word.starts_with(option)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> CommandPattern {
        CommandPattern::parse(text).unwrap_or_else(|problem| panic!("{text}: {problem}"))
    }

    #[test]
    fn an_allow_pattern_covers_simple_commands_only() {
        for (text, command, expected) in [
            ("cargo test", "cargo test", true),
            ("cargo test", "cargo  'test'", true),
            ("cargo test", "cargo test --all", false),
            ("cargo test:*", "cargo test", true),
            ("cargo test:*", "cargo test -p \"a b\"", true),
            ("cargo test:*", "cargo tests", false),
            ("cargo test:*", "cargo test; rm x", false),
            ("cargo test:*", "cargo test $(rm x)", false),
            ("cargo test:*", "cargo test > /etc/passwd", false),
            ("cargo test:*", "RUSTFLAGS=x cargo test", false),
            ("cargo test:*", "/tmp/cargo test", false),
            ("git * --stat", "git diff --stat", true),
            ("git * --stat", "git --stat", false),
            ("git * --stat", "git log -3 --stat", true),
            ("git diff *", "git diff", false),
            ("git diff *", "git diff a b", true),
            ("ls '*'", "ls *", true),
            ("git commit -m 'fix it'", "git commit -m \"fix it\"", true),
            ("find:*", "find . -name '*.rs'", true),
            ("find:*", "find . -delete", false),
            ("find:*", "find . -exec rm -rf x ';'", false),
            ("find . -delete", "find . -delete", true),
            ("git:*", "git log", true),
            ("git:*", "git -c alias.log=!sh log", false),
            ("git:*", "git -c 'core.pager=sh' log", false),
            ("sort:*", "sort --outp=x y", false),
            ("tar:*", "tar xf a --checkpoint-act=exec=sh", false),
            ("sed:*", "sed -i.bak s/a/b/ x", false),
            ("sed:*", "sed -n 1p x", true),
        ] {
            let words = simple(command).unwrap_or_default();
            assert_eq!(pattern(text).covers(&words), expected, "{text} on {command}");
        }
    }

    #[test]
    fn a_deny_pattern_catches_what_might_be_meant() {
        for (text, command, expected) in [
            ("rm:*", "cargo test; rm -rf x", true),
            ("rm:*", "/bin/rm x", true),
            ("rm:*", "sudo rm x", true),
            ("rm:*", "rmdir x", false),
            ("rm:*", "echo 'rm x'", false),
            ("git push * --force", "true && git push origin --force", true),
            ("git push:*", "git pull", false),
        ] {
            assert_eq!(pattern(text).catches(&Reading::of(command)), expected, "{text} on {command}");
        }
    }

    #[test]
    fn a_pattern_that_could_never_match_is_refused() {
        for (text, problem) in [
            ("cargo test && rm x", "not one simple command"),
            ("X=1 cargo", "not one simple command"),
            ("'open", "not one simple command"),
            (":*", "not one simple command"),
            ("* --version", "name the program"),
            ("npm run test*", "whole words"),
            ("git:* push", "whole words"),
        ] {
            let error = CommandPattern::parse(text).unwrap_err();
            assert!(error.contains(problem), "{text}: {error}");
        }
    }
}
