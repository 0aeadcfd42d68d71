//! The vendors' own Python clients, in a virtual environment under the target folder.

use crate::machine;
use crate::project::{self, Project};
use anyhow::{Context, Result};
use std::path::PathBuf;
use std::process::Command;

/// Where tests look for the interpreter that has the clients.
const VARIABLE: &str = "WINDLASS_CLIENTS_PYTHON";

/// Installs the clients if they are not there yet, and tells `command` where.
pub fn offer(project: &Project, command: &mut Command) -> Result<()> {
    command.env(VARIABLE, python(project)?);
    Ok(())
}

/// The interpreter that has the pinned clients; they are installed at the first call.
pub fn python(project: &Project) -> Result<PathBuf> {
    let pins = project.root.join("tests/clients/requirements.txt");
    let wanted = project::read(&pins)?;
    let venv = project.target.join("xtask").join("clients");
    let python = venv.join("bin").join("python");
    let stamp = venv.join("installed.txt");
    if python.exists() && std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(python);
    }
    println!("installing {} into {}", wanted.split_whitespace().collect::<Vec<_>>().join(", "), venv.display());
    make_venv(&venv)?;
    let mut pip = Command::new(&python);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input", "-r"]).arg(&pins);
    project::run(&mut pip).with_context(|| format!("installing what {} pins", pins.display()))?;
    project::write(&stamp, wanted)?;
    Ok(python)
}

fn make_venv(venv: &std::path::Path) -> Result<()> {
    let make = || project::output(Command::new("python3").args(["-m", "venv", "--clear"]).arg(venv));
    if make().is_ok() {
        return Ok(());
    }
    // Debian ships Python without what makes virtual environments.
    machine::install(&["python3-venv", "python3-pip"])?;
    make().context("python3 cannot make a virtual environment")?;
    Ok(())
}
