//! Windlass's own configuration as a tool may touch it: what is trusted and what is allowed is written by a person.

use std::path::{Component, Path, PathBuf};
use windlass_kernel::{Access, PermissionMode, Verdict};
use windlass_policy::deed::{self, Deed, FileHow};
use windlass_policy::{Ask, Check, Opinion};

/// Asks of every call that would write there, also where the workspace is above it; where nobody wants to be asked, it
/// says no.
pub struct OwnCheck {
    /// The folder of the configuration.
    pub folder: PathBuf,
    /// The folder for data, which may lie in that: what is put aside for the model is there.
    pub data: PathBuf,
    pub home: Option<PathBuf>,
}

impl Check for OwnCheck {
    fn check(&self, ask: &Ask) -> Option<Opinion> {
        let command = ask.input.get("command").and_then(|command| command.as_str()).filter(|_| ask.tool == "bash");
        let touched = match command {
            Some(command) => {
                let deeds = deed::read(command, ask.workspace).deeds;
                deeds.iter().find_map(|deed| self.written(deed, ask.workspace))
            }
            None if ask.plan.access == Access::Read => None,
            None => ask.plan.paths.iter().map(PathBuf::from).find(|path| self.holds(path, ask.workspace)),
        };
        let path = touched?.display().to_string();
        let reason = format!("`{path}` is Windlass's own configuration, by which it is decided what may run");
        Some(match ask.mode {
            PermissionMode::Bypass => {
                Opinion::new(Verdict::Deny, "check", format!("{reason}; no tool writes it unasked, in any mode"))
            }
            _ => Opinion { always_ask: true, ..Opinion::new(Verdict::Ask, "check", reason) },
        })
    }
}

impl OwnCheck {
    /// The first file there that the command is known to write.
    fn written(&self, deed: &Deed, workspace: &str) -> Option<PathBuf> {
        let folder = deed.folder.as_deref().map(Path::new);
        let written = deed.files.iter().filter(|file| file.how != FileHow::Read);
        written
            .filter_map(|file| match (file.path.tilde, &self.home) {
                (true, Some(home)) => Some(home.join(file.path.text.trim_start_matches('~').trim_start_matches('/'))),
                (true, None) => None,
                (false, _) => Some(folder.unwrap_or(Path::new("/")).join(&file.path.text)),
            })
            .find(|path| self.holds(path, workspace))
    }

    /// Whether the path lies there, and not in what is open to tools within.
    fn holds(&self, path: &Path, workspace: &str) -> bool {
        let (path, folder, workspace) = (plain(path), plain(&self.folder), plain(Path::new(workspace)));
        let is_open = path.starts_with(&plain(&self.data)) && path.starts_with(&folder)
            || workspace.len() > folder.len() && workspace.starts_with(&folder) && path.starts_with(&workspace);
        path.starts_with(&folder) && !is_open
    }
}

/// The names of a path without `.` and `..`, in lower case, for some file systems make no difference.
fn plain(path: &Path) -> Vec<String> {
    let mut names = vec![];
    for part in path.components() {
        match part {
            Component::ParentDir => _ = names.pop(),
            Component::Normal(name) => names.push(name.to_string_lossy().to_lowercase()),
            _ => {}
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use windlass_kernel::CallPlan;

    fn verdict(tool: &str, input: Value, access: Access, paths: &[&str], mode: PermissionMode) -> Option<Verdict> {
        let paths = paths.iter().map(|path| (*path).to_owned()).collect();
        let plan = CallPlan { access, paths, ..CallPlan::default() };
        let folder = PathBuf::from("/h/.config/windlass");
        let check = OwnCheck { data: folder.join("data"), folder, home: Some("/h".into()) };
        let ask = Ask { tool, input: &input, plan: &plan, mode, workspace: "/h", interactive: true, grants: &[] };
        check.check(&ask).map(|opinion| opinion.verdict)
    }

    #[test]
    fn a_workspace_above_the_configuration_does_not_hand_it_over() {
        let (edits, bypass) = (PermissionMode::AcceptEdits, PermissionMode::Bypass);
        let write = |path: &str, mode| verdict("write", json!({}), Access::Write, &[path], mode);
        assert_eq!(write("/h/.config/windlass/trust.json", edits), Some(Verdict::Ask));
        assert_eq!(write("/h/.config/Windlass/../windlass/rules.toml", bypass), Some(Verdict::Deny));
        assert_eq!(write("/h/.config/windlass2/x", edits), None);
        assert_eq!(write("/h/.config/windlass/data/scratch/x", edits), None);
        assert_eq!(verdict("read", json!({}), Access::Read, &["/h/.config/windlass/config.toml"], edits), None);
        let bash = |command: &str| verdict("bash", json!({ "command": command }), Access::Write, &[], edits);
        assert_eq!(bash("echo x > .config/windlass/trust.json"), Some(Verdict::Ask));
        assert_eq!(bash("ls && cp x ~/.config/windlass/trust.json"), Some(Verdict::Ask));
        assert_eq!(bash("cat .config/windlass/config.toml"), None);
    }
}
