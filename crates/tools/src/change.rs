//! A change to one file: worked out first, shown to a person if need be, then made in one stroke.

use crate::diff::{Diff, diff};
use crate::file::{HUGE_BYTES, failed, open, shown, whole};
use crate::output::{hash, lossy};
use crate::place::{Place, Reach};
use crate::{Confirmation, ToolOutput, Workspace};
use serde_json::json;
use windlass_kernel::{FileSeen, QuestionKind};

/// A file as it is now.
pub(crate) struct Current {
    pub bytes: Vec<u8>,
    pub hash: String,
}

impl Current {
    /// Takes in the regular file at `place`.
    pub(crate) fn take(reach: Reach<'_>, place: &Place) -> Result<Current, String> {
        let (file, bytes) = open(reach.workspace, place)?;
        let name = || shown(reach.workspace, &place.named);
        if bytes > HUGE_BYTES {
            let name = name();
            return Err(format!("{name} has {bytes} bytes; over {HUGE_BYTES}, change it with bash (sed, or a script)"));
        }
        let bytes = whole(file, bytes).map_err(|error| failed("read", &name(), &error))?;
        let hash = hash(&bytes);
        Ok(Current { bytes, hash })
    }

    /// Refuses a file that this session has not read, or that was changed since.
    pub(crate) fn known(&self, reach: Reach<'_>, place: &Place) -> Result<(), String> {
        let name = shown(reach.workspace, &place.named);
        match reach.seen(place) {
            Some(hash) if *hash == self.hash => Ok(()),
            Some(_) => Err(format!("{name} has changed since this session read it; read it again, then change it")),
            None => Err(format!("{name} exists and this session has not read it; read it first, then change it")),
        }
    }

    /// Refuses a text with the mark of a secret that the file holds: the mark would take the secret's place.
    pub(crate) fn keeps_secrets(&self, reach: Reach<'_>, place: &Place, after: &str) -> Result<(), String> {
        let marks = reach.workspace.secrets.marks(&self.bytes);
        let Some(mark) = marks.iter().find(|mark| after.contains(*mark)) else { return Ok(()) };
        let name = shown(reach.workspace, &place.named);
        Err(format!("{mark} stands for a secret in {name}, which would be lost; change the lines around it with edit"))
    }
}

/// What is to become of a file.
pub(crate) struct Change {
    pub place: Place,
    /// SHA-256 of what is there now; none: nothing.
    pub before: Option<String>,
    pub after: Vec<u8>,
    pub diff: Diff,
}

impl Change {
    pub(crate) fn new(workspace: &Workspace, place: Place, current: Option<Current>, after: Vec<u8>) -> Change {
        let name = shown(workspace, &place.named);
        let old = current.as_ref().map_or("".into(), |current| lossy(&current.bytes));
        let diff = diff(&name, &old, &lossy(&after));
        Change { place, before: current.map(|current| current.hash), after, diff }
    }

    /// Writes the file; `verb` heads the words for the model.
    pub(crate) fn make(self, workspace: &Workspace, verb: &str) -> ToolOutput {
        let name = shown(workspace, &self.place.named);
        if let Err(error) = workspace.root.write(&self.place.real, &self.after, None) {
            return ToolOutput::error(failed("write", &name, &error) + "; nothing was changed");
        }
        let Diff { added, removed, text } = self.diff;
        let path = self.place.real.to_string_lossy().into_owned();
        let seen = FileSeen { path, before: self.before, after: Some(hash(&self.after)) };
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
