//! `cargo xtask walls`: every attempt to get through the sandbox, against every wall of this machine.

use crate::project::{self, Project};
use anyhow::Result;

pub fn run(args: &[String]) -> Result<()> {
    crate::flags::Flags::new("walls", args).end("no arguments")?;
    check(&Project::find()?)
}

/// Prints the walls that were tried and `N tests, 0 skipped`.
pub fn check(project: &Project) -> Result<()> {
    project::run(project.cargo().args(["test", "--quiet", "-p", "windlass-sandbox", "--test", "attempts"]))
}
