//! What a person should know before a session begins: what is withheld, what git would run, rules that guard nothing.

use crate::desk::Desk;
use crate::{config, git_settings, near, terminal};

impl Desk {
    /// What the folder brings and nobody has trusted, a line each.
    pub fn notes(&self) -> Vec<String> {
        let withheld = self.settings.config.layers.iter().flat_map(|layer| &layer.withheld);
        let names: Vec<String> = withheld.map(|entry| config::shown(&entry.path)).collect();
        let note = self.settings.project.note(names.iter().map(String::as_str));
        let git = git_settings::running(&self.folder);
        let git = git.iter().find(|told| !self.settings.project.git.contains(*told)).map(|told| {
            format!("git is asked about here, for the repository's own settings would have it run {told}: see `windlass trust`")
        });
        note.into_iter()
            .chain(git)
            .chain(self.rules_of_nobody())
            .map(|line| terminal::harmless(&line).into_owned())
            .collect()
    }

    /// Rules of names that no tool has: they guard nothing.
    fn rules_of_nobody(&self) -> Vec<String> {
        const TAGS: [&str; 7] = ["exec", "fs.read", "fs.write", "net", "search", "ask", "web_search"];
        if self.settings.policy.rules().is_empty() {
            return vec![];
        }
        let tools = self.tools();
        let names = tools.names();
        let is_known =
            |name: &str| names.iter().any(|known| known == name) || TAGS.contains(&name) || name.contains("__");
        let rules = self.settings.policy.rules().iter().map(|rule| rule.text());
        let lost = rules.filter_map(|rule| {
            let name = windlass_policy::tool_name(rule.split('(').next().unwrap_or(rule).trim());
            let hint = near::hint(&name, names.iter().map(String::as_str));
            (!is_known(&name) && !name.ends_with('*'))
                .then(|| format!("the rule `{rule}` is of no tool there is{hint}"))
        });
        lost.collect()
    }
}
