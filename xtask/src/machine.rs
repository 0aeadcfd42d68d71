//! What a fresh machine may lack, and how it gets it: only the system's packages, by name.

use crate::project::{self, is_installed};
use anyhow::{Context, Result, bail};
use std::path::Path;
use std::process::Command;

/// Programs that must be there, and the Debian packages they come in.
const NEEDED: [(&str, &str); 5] = [
    ("cc", "build-essential"),
    ("git", "git"),
    ("python3", "python3"),
    ("bwrap", "bubblewrap"),
    ("setpriv", "util-linux"),
];

/// The target of WebAssembly components.
const COMPONENTS: &str = "wasm32-wasip2";

/// Puts everything in place that building and testing needs.
pub fn prepare() -> Result<()> {
    for (program, package) in NEEDED {
        if !is_installed(program) {
            install(&[package]).with_context(|| format!("`{program}` is missing"))?;
        }
    }
    for (component, program) in [("rustfmt", "fmt"), ("clippy", "clippy")] {
        if project::output(Command::new("cargo").args([program, "--version"])).is_err() {
            let mut rustup = Command::new("rustup");
            project::run(rustup.args(["component", "add", component]))
                .with_context(|| format!("cargo has no `{program}`: install {component}"))?;
        }
    }
    Ok(())
}

/// What components are built with: the standard library for their target.
pub fn components() -> Result<()> {
    let library = project::output(Command::new("rustc").args(["--print", "target-libdir", "--target", COMPONENTS]))?;
    if Path::new(library.trim()).is_dir() {
        return Ok(());
    }
    let mut rustup = Command::new("rustup");
    project::run(rustup.args(["target", "add", COMPONENTS]))
        .with_context(|| format!("rustc has no target {COMPONENTS}: install its standard library"))
}

/// Installs Debian packages, as root or by sudo without a question.
pub fn install(packages: &[&str]) -> Result<()> {
    let names = packages.join(" ");
    if !is_installed("apt-get") {
        bail!("this machine has no apt-get: install {names} (or what your system calls them) by hand");
    }
    println!("installing {names}");
    let user = project::output(Command::new("id").arg("-u"))?;
    let is_root = user.trim() == "0";
    if !is_root && !is_installed("sudo") {
        bail!("neither root nor sudo: run `apt-get install {names}` as root");
    }
    let apt = |args: &[&str]| {
        let mut command = if is_root { Command::new("apt-get") } else { Command::new("sudo") };
        if !is_root {
            command.args(["--non-interactive", "apt-get"]);
        }
        project::output(command.args(args).env("DEBIAN_FRONTEND", "noninteractive"))
    };
    apt(&["update", "-q"])?;
    let wanted = [&["install", "-q", "-y", "--no-install-recommends"], packages].concat();
    apt(&wanted).with_context(|| format!("run `apt-get install {names}` by hand"))?;
    Ok(())
}
