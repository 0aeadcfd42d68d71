//! Where things are, and how a program is run: what every chore needs.

use anyhow::{Context, Result, bail};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The checkout, and the folder that everything is built into.
#[derive(Clone, Debug)]
pub struct Project {
    pub root: PathBuf,
    /// Cargo's target folder: `CARGO_TARGET_DIR` is respected.
    pub target: PathBuf,
}

impl Project {
    /// The project this program belongs to.
    pub fn find() -> Result<Project> {
        let own = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
        let root = Path::new(&own).parent().context("the xtask folder stands in no checkout")?.to_path_buf();
        let mut cargo = cargo(&root);
        let facts = output(cargo.args(["metadata", "--no-deps", "--format-version", "1"]))?;
        let facts: serde_json::Value = serde_json::from_str(&facts).context("reading what `cargo metadata` says")?;
        let target = facts["target_directory"].as_str().context("`cargo metadata` names no target folder")?;
        Ok(Project { target: PathBuf::from(target), root })
    }

    pub fn cargo(&self) -> Command {
        cargo(&self.root)
    }

    /// A program that has been built with `profile` (`debug`, `release`, …).
    pub fn built(&self, profile: &str, name: &str) -> PathBuf {
        self.target.join(profile).join(format!("{name}{}", std::env::consts::EXE_SUFFIX))
    }

    /// An empty folder of this run's own, under the target folder.
    pub fn scratch(&self, name: &str) -> Result<Scratch> {
        let folder = self.target.join("xtask").join(format!("{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
        Ok(Scratch { folder, kept: false })
    }

    /// The path as it is spoken of: relative to the checkout.
    pub fn relative<'a>(&self, path: &'a Path) -> &'a Path {
        path.strip_prefix(&self.root).unwrap_or(path)
    }
}

/// A folder that is gone when it is dropped, unless it is kept.
pub struct Scratch {
    folder: PathBuf,
    kept: bool,
}

impl Scratch {
    /// Leaves the folder for a person to look at.
    pub fn keep(&mut self) {
        self.kept = true;
    }
}

impl Deref for Scratch {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.folder
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !self.kept {
            // What cannot be removed lies in the target folder, where it does no harm.
            _ = std::fs::remove_dir_all(&self.folder);
        }
    }
}

fn cargo(root: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root);
    // What `cargo run` set for this program is not meant for the next one.
    for name in ["CARGO_MANIFEST_DIR", "CARGO_MANIFEST_PATH", "CARGO_PKG_NAME", "CARGO_PKG_VERSION"] {
        command.env_remove(name);
    }
    command
}

/// Runs to the end; a failure names the command.
pub fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("starting {}", shown(command)))?;
    if !status.success() {
        bail!("{} ended with {status}", shown(command));
    }
    Ok(())
}

/// Runs to the end and returns stdout; a failure holds stderr.
pub fn output(command: &mut Command) -> Result<String> {
    let out = command.stdin(Stdio::null()).output().with_context(|| format!("starting {}", shown(command)))?;
    if !out.status.success() {
        bail!("{} ended with {}:\n{}", shown(command), out.status, String::from_utf8_lossy(&out.stderr).trim_end());
    }
    Ok(String::from_utf8_lossy(&out.stdout).into_owned())
}

/// The command as a person would type it.
pub fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let words = std::iter::once(program).chain(command.get_args());
    words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}

/// Whether a program of this name is found in PATH.
pub fn is_installed(program: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).any(|folder| folder.join(program).is_file())
}

/// Every file under `folder` with one of `extensions`, sorted; a folder that is not there has none.
pub fn files(folder: &Path, extensions: &[&str]) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        if !folder.exists() {
            continue;
        }
        for entry in std::fs::read_dir(&folder).with_context(|| format!("reading {}", folder.display()))? {
            let path = entry?.path();
            let hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
            if path.is_dir() && !hidden && !path.ends_with("target") {
                folders.push(path);
            } else if path.extension().is_some_and(|found| extensions.iter().any(|wanted| found == *wanted)) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

pub fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))
}

pub fn write(path: &Path, text: impl AsRef<[u8]>) -> Result<()> {
    std::fs::write(path, text).with_context(|| format!("writing {}", path.display()))
}
