//! What a wall is to keep, and what it is asked to let through.

use crate::hosts::HostPattern;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Which wall is wished for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// The strongest that stands.
    #[default]
    Auto,
    /// This one or none.
    Only(Kind),
    /// None at all.
    Off,
}

/// The walls there are, strongest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Namespaces of our own for mounts, processes and the network; seccomp.
    Namespaces,
    /// The same, built by the `bwrap` program, which some systems allow what they refuse others.
    Bubblewrap,
    /// Landlock and seccomp: no process of its own kind of view, so some things are only looked at afterwards.
    Landlock,
}

impl Kind {
    pub const ALL: [Kind; 3] = [Kind::Namespaces, Kind::Bubblewrap, Kind::Landlock];

    pub fn name(self) -> &'static str {
        match self {
            Kind::Namespaces => "namespaces",
            Kind::Bubblewrap => "bubblewrap",
            Kind::Landlock => "landlock",
        }
    }

    /// Whether it keeps all that is promised, before the fact.
    pub fn is_full(self) -> bool {
        self != Kind::Landlock
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Network {
    /// None but the listed hosts.
    #[default]
    Off,
    /// All of it.
    On,
}

/// What one call may take; of the whole call where the kernel counts so, else of each process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Processes and threads of the user at once.
    pub processes: u64,
    /// Open files of a process.
    pub open_files: u64,
    /// Bytes of the largest file that may be written.
    pub file_bytes: u64,
    /// Bytes of address space of a process. None: as much as there is, since programs with a garbage collector reserve
    /// far more than they use.
    pub memory_bytes: Option<u64>,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { processes: 4_096, open_files: 65_536, file_bytes: 16 << 30, memory_bytes: None }
    }
}

/// What holds for every process behind the wall.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The program that is started as the wall's keeper: one whose `main` begins with [`crate::enter`].
    pub program: PathBuf,
    pub choice: Choice,
    /// Without a full wall nothing runs.
    pub require: bool,
    /// The user's home: its shell start files are protected, its secrets unreadable.
    pub home: Option<PathBuf>,
    /// Folders that may be written besides the workspace and temp; what is not there is passed over.
    pub writable: Vec<PathBuf>,
    /// What may not be written even where it lies in something writable: folders, and, by names with an extension, the
    /// files in them that matter. A full wall keeps the folders, the other puts the files back.
    pub protected: Vec<PathBuf>,
    /// Files and folders that may not be read, besides the stock of [`crate::secrets`].
    pub unreadable: Vec<PathBuf>,
    pub network: Network,
    /// Hosts that may be reached while the network is off.
    pub hosts: Vec<HostPattern>,
    pub limits: Limits,
}

/// What one process is started for.
#[derive(Clone, Debug)]
pub struct Spec {
    /// The folder that may be written. It must be there, and absolute.
    pub workspace: PathBuf,
    /// A folder of the session's own, made if need be: it is `/tmp` behind a full wall, `TMPDIR` behind Landlock.
    pub temp: PathBuf,
}
