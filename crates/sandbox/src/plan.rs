//! What the wall's keeper is told: everything about one process, decided before it is started.

use crate::settings::{Kind, Limits};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What reaches the world from behind the wall.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Reach {
    Nothing,
    Everything,
    /// The proxy whose socket has this name, among the abstract ones.
    Proxy(String),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Plan {
    pub kind: Kind,
    /// The process that asked; with it, all dies.
    pub parent: u32,
    pub cwd: PathBuf,
    pub workspace: PathBuf,
    pub temp: PathBuf,
    /// Further writable folders and files, all of them there.
    pub writable: Vec<PathBuf>,
    pub protected: Vec<PathBuf>,
    /// What may not be read and is there.
    pub unreadable: Vec<PathBuf>,
    pub home: Option<PathBuf>,
    pub reach: Reach,
    pub limits: Limits,
    /// Put the wall up, try it, and take it down.
    pub trial: bool,
}

impl Plan {
    /// What may be written, but for temp.
    pub fn roots(&self) -> impl Iterator<Item = &PathBuf> {
        std::iter::once(&self.workspace).chain(&self.writable)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::path::Path;

    /// A plan for `workspace` and nothing else.
    pub(crate) fn plan(workspace: &Path) -> Plan {
        Plan {
            kind: Kind::Namespaces,
            parent: std::process::id(),
            cwd: workspace.to_owned(),
            workspace: workspace.to_owned(),
            temp: workspace.with_extension("temp"),
            writable: vec![],
            protected: vec![],
            unreadable: vec![],
            home: None,
            reach: Reach::Nothing,
            limits: Limits::default(),
            trial: false,
        }
    }
}
