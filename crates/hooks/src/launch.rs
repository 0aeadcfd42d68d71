//! What surrounds a hook's command: its environment and the wall.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::process::Command;

/// The variable with the project's folder, and the name that scripts for other clients know it by.
pub(crate) const PROJECT_VARIABLES: [&str; 2] = ["WINDLASS_PROJECT_DIR", "CLAUDE_PROJECT_DIR"];

/// Puts a wall around a prepared command, or says why none can be had, and then the hook does not run. Program,
/// arguments, folder and environment are set; input, outputs and process group are set on what is returned.
pub type Wall = Arc<dyn Fn(Command) -> io::Result<Walled> + Send + Sync>;

/// A command behind its wall.
pub struct Walled {
    pub command: Command,
    /// What has to last as long as the command: dropped once its process group is dead.
    pub guard: Box<dyn Send>,
}

impl Walled {
    /// A command that has no wall.
    pub fn bare(command: Command) -> Walled {
        Walled { command, guard: Box::new(()) }
    }
}

/// How hooks are started.
#[derive(Clone)]
pub struct Launch {
    /// The environment, whole: nothing is inherited.
    pub env: Arc<BTreeMap<String, String>>,
    /// The project's root folder.
    pub project_dir: PathBuf,
    pub wall: Wall,
}

impl Launch {
    /// The command that runs `line` in a shell, without its pipes.
    pub(crate) fn command(&self, line: &str, cwd: &Path) -> io::Result<Walled> {
        let mut shell = Command::new("/bin/sh");
        shell.arg("-c").arg(line).current_dir(cwd).env_clear().envs(self.env.iter());
        for name in PROJECT_VARIABLES {
            shell.env(name, &self.project_dir);
        }
        (self.wall)(shell)
    }
}
