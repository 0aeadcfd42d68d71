//! What is looked at here, ahead of a file tool that runs elsewhere: ignore files, what was judged, secrets.

use crate::ToolRun;
use crate::change::Current;
use crate::place::Reach;
use std::collections::BTreeSet;
use std::path::PathBuf;

impl ToolRun {
    /// What `path` names, and where that leads with every link followed, if this call may open it and tools may know
    /// of it.
    pub fn reach(&self, path: &str) -> Result<(PathBuf, PathBuf), String> {
        let place = Reach::of(self).place(path)?;
        Ok((place.named, place.real))
    }

    /// The marks that stand for the secrets in the file at `path`; none where there is no such file.
    pub fn marks(&self, path: &str) -> BTreeSet<String> {
        let reach = Reach::of(self);
        let current = reach.place(path).and_then(|place| Current::take(reach, &place));
        current.map(|current| self.workspace.secrets.marks(&current.bytes)).unwrap_or_default()
    }
}
