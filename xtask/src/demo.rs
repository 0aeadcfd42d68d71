//! `cargo xtask demo`: builds the command and lets it show itself.

use crate::project::{self, Project};
use anyhow::{Context, Result};
use std::process::Command;

/// Builds with the dev profile, which comes to its first result soonest, and runs `windlass demo` with `args`.
pub fn run(args: &[String]) -> Result<()> {
    let project = Project::find()?;
    eprintln!("building windlass (a few minutes at the first time, seconds after that)");
    project::run(project.cargo().args(["build", "--package", "windlass-cli"]))?;
    let binary = project.built("debug", "windlass");
    let status = Command::new(&binary).arg("demo").args(args).status();
    let status = status.with_context(|| format!("starting {}", binary.display()))?;
    // The demo has said what went wrong; its exit code is the chore's.
    std::process::exit(status.code().unwrap_or(1))
}
