//! A change to one file: worked out first, shown to a person if need be, then made in one stroke.

use crate::diff::{Diff, diff};
use crate::file::{HUGE_BYTES, failed, identity, regular, shown, write_whole};
use crate::output::{hash, lossy};
use crate::{Confirmation, ToolOutput, Workspace};
use serde_json::json;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use windlass_kernel::{FileSeen, QuestionKind};

/// A file as it is now.
pub(crate) struct Current {
    pub path: PathBuf,
    pub bytes: Vec<u8>,
    pub hash: String,
}

impl Current {
    /// Takes in the regular file at `path`.
    pub(crate) fn take(workspace: &Workspace, path: PathBuf) -> Result<Current, String> {
        let name = shown(workspace, &path);
        let bytes = regular(workspace, &path)?.len();
        if bytes > HUGE_BYTES {
            return Err(format!("{name} has {bytes} bytes; over {HUGE_BYTES}, change it with bash (sed, or a script)"));
        }
        let bytes = fs::read(&path).map_err(|error| failed("read", &name, &error))?;
        let hash = hash(&bytes);
        Ok(Current { path, bytes, hash })
    }

    /// Refuses a file that this session has not read, or that was changed since.
    pub(crate) fn known(&self, workspace: &Workspace, seen: &BTreeMap<String, String>) -> Result<(), String> {
        let name = shown(workspace, &self.path);
        match seen.get(&identity(workspace, &self.path)) {
            Some(hash) if *hash == self.hash => Ok(()),
            Some(_) => Err(format!("{name} has changed since this session read it; read it again, then change it")),
            None => Err(format!("{name} exists and this session has not read it; read it first, then change it")),
        }
    }
}

/// What is to become of a file.
pub(crate) struct Change {
    pub path: PathBuf,
    /// SHA-256 of what is there now; none: nothing.
    pub before: Option<String>,
    pub after: Vec<u8>,
    pub diff: Diff,
}

impl Change {
    pub(crate) fn new(workspace: &Workspace, path: PathBuf, current: Option<Current>, after: Vec<u8>) -> Change {
        let name = shown(workspace, &path);
        let old = current.as_ref().map_or("".into(), |current| lossy(&current.bytes));
        let diff = diff(&name, &old, &lossy(&after));
        Change { path, before: current.map(|current| current.hash), after, diff }
    }

    /// Writes the file; `verb` heads the words for the model.
    pub(crate) fn make(self, workspace: &Workspace, verb: &str) -> ToolOutput {
        let name = shown(workspace, &self.path);
        // Before writing: a link that leads nowhere yet leads to the new file after.
        let identity = identity(workspace, &self.path);
        if let Err(error) = write_whole(&self.path, &self.after) {
            return ToolOutput::error(failed("write", &name, &error) + "; nothing was changed");
        }
        let Diff { added, removed, text } = self.diff;
        let seen = FileSeen { path: identity, before: self.before, after: Some(hash(&self.after)) };
        ToolOutput {
            value: Some(json!({"path": name, "added": added, "removed": removed, "diff": text})),
            files: vec![seen],
            ..ToolOutput::text(format!("{verb} {name} (+{added} −{removed})"))
        }
    }
}

/// What a person is shown of a change, or of why it cannot be made.
pub(crate) fn confirmation(workspace: &Workspace, name: &str, change: Result<Change, String>) -> Confirmation {
    let (preview, impact) = match change {
        Ok(Change { before, diff, .. }) => {
            let what = if before.is_some() { "changes" } else { "creates" };
            let impact = format!("{what} {name} in {} (+{} −{})", workspace.cwd.display(), diff.added, diff.removed);
            (diff.text, impact)
        }
        Err(why) => (format!("this would fail: {why}"), format!("would change {name}, but cannot")),
    };
    Confirmation { kind: QuestionKind::Approval, preview, impact, options: Vec::new() }
}
