//! What git may do unasked in a repository whose own settings have it run programs: nothing.

use crate::git_settings::{self, Told};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use windlass_kernel::Verdict;
use windlass_policy::deed::{self, Deed};
use windlass_policy::shell::Word;
use windlass_policy::{Ask, Check, Opinion};

/// Asks of every git command that a repository's settings would make run something nobody has trusted.
pub struct GitCheck {
    /// What was trusted together with the workspace.
    pub trusted: BTreeSet<Told>,
    pub home: Option<PathBuf>,
}

impl Check for GitCheck {
    fn check(&self, ask: &Ask) -> Option<Opinion> {
        if ask.tool != "bash" {
            return None;
        }
        let command = ask.input.get("command")?.as_str()?;
        let deeds = deed::read(command, ask.workspace).deeds;
        let gits = || deeds.iter().filter(|deed| is_git(deed));
        if gits().flat_map(|deed| &deed.argv).any(|word| word.text.starts_with("--submodule")) {
            let reason = "git would look into repositories within this one, whose settings may run programs";
            return Some(Opinion::new(Verdict::Ask, "check", reason));
        }
        let folders: BTreeSet<PathBuf> = gits().filter_map(|deed| self.folder(deed)).collect();
        let told =
            folders.iter().flat_map(|folder| git_settings::running(folder)).find(|one| !self.trusted.contains(one))?;
        let reason = format!(
            "the repository's own settings would have git run {told}; `windlass trust` shows all of them, and once they \
             are trusted git is judged as everywhere"
        );
        Some(Opinion { always_ask: true, ..Opinion::new(Verdict::Ask, "check", reason) })
    }
}

impl GitCheck {
    /// Where git would look for its repository; none if that is only known when it runs, which is asked about anyway.
    fn folder(&self, deed: &Deed) -> Option<PathBuf> {
        let folder = deed.folder.as_deref()?;
        let mut folder = match (folder.strip_prefix('~'), &self.home) {
            (Some(rest), Some(home)) => home.join(rest.trim_start_matches('/')),
            _ => PathBuf::from(folder),
        };
        // Options that go before the subcommand were taken out of the words, and stand in another spelling.
        let whole = deed.also.iter().chain([&deed.argv]).max_by_key(|words| words.len())?;
        let mut words = whole.iter().skip_while(|word| !is_program(word)).skip(1);
        while let Some(word) = words.next().filter(|word| word.text.starts_with('-')) {
            if word.text == "-C" {
                folder.push(words.next()?.value()?);
            }
        }
        Some(folder)
    }
}

fn is_git(deed: &Deed) -> bool {
    deed.argv.first().is_some_and(is_program)
}

fn is_program(word: &Word) -> bool {
    word.text.rsplit('/').next() == Some("git")
}

/// Settings for every git that is started below this process: no watcher and no pager of a repository's own, and no
/// index written by a command that only looks. A variable wins over every file.
pub fn calm(variables: &mut BTreeMap<String, String>) {
    let count = variables.get("GIT_CONFIG_COUNT").and_then(|count| count.parse::<u32>().ok()).unwrap_or(0);
    for (name, value) in [
        ("GIT_OPTIONAL_LOCKS".to_owned(), "0".to_owned()),
        ("GIT_PAGER".into(), "cat".into()),
        ("GIT_CONFIG_COUNT".into(), (count + 1).to_string()),
        (format!("GIT_CONFIG_KEY_{count}"), "core.fsmonitor".into()),
        (format!("GIT_CONFIG_VALUE_{count}"), "false".into()),
    ] {
        variables.insert(name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn git_looks_where_it_is_told_to_and_nowhere_else() {
        let check = GitCheck { trusted: BTreeSet::new(), home: Some("/home/ada".into()) };
        let folders = |command: &str| -> Vec<Option<PathBuf>> {
            let deeds = deed::read(command, "/w").deeds;
            deeds.iter().filter(|deed| is_git(deed)).map(|deed| check.folder(deed)).collect()
        };
        let at = |folder: &str| vec![Some(PathBuf::from(folder))];
        assert_eq!(folders("git status"), at("/w"));
        assert_eq!(folders("ls && g\"i\"t diff | cat"), at("/w"));
        assert_eq!(folders("cd a && git -C b --no-pager -C c log"), at("/w/a/b/c"));
        assert_eq!(folders("git diff -C b"), at("/w"));
        assert_eq!(folders("timeout 5 /usr/bin/git -C a log"), at("/w/a"));
        assert_eq!(folders("git -C $X log"), [None]);
        assert_eq!(folders("gitk; echo git"), []);
    }

    #[test]
    fn what_git_was_told_before_stays() {
        let mut variables = BTreeMap::from([("GIT_CONFIG_COUNT".to_owned(), "2".to_owned())]);
        calm(&mut variables);
        assert_eq!(variables["GIT_CONFIG_COUNT"], "3");
        assert_eq!((&*variables["GIT_CONFIG_KEY_2"], &*variables["GIT_CONFIG_VALUE_2"]), ("core.fsmonitor", "false"));
    }
}
