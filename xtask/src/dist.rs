//! `cargo xtask dist`: the archive that is handed out, and a look at whether what is in it works.

use crate::flags::Flags;
use crate::machine;
use crate::project::{Project, output, run as run_command};
use anyhow::{Context, Result, bail};
use std::path::Path;
use std::process::Command;

/// What goes into the archive beside the binary.
const PAPERS: [&str; 3] = ["README.md", "LICENSE-MIT", "LICENSE-APACHE"];
/// With everything the command can do.
const BUILD: [&str; 7] = ["build", "--profile", "dist", "--package", "windlass-cli", "--features", "otel,wasm"];
/// Largest binary we promise, in MB.
const PROMISED_MB: f64 = 40.0;

pub fn run(args: &[String]) -> Result<()> {
    Flags::new("dist", args).end("no arguments")?;
    let project = Project::find()?;
    machine::components()?;
    run_command(project.cargo().args(BUILD))?;
    let binary = project.built("dist", "windlass");
    let version = version(&binary)?;
    let name = format!("windlass-{version}-{}", host()?);
    let stage = project.scratch("dist")?;
    let folder = stage.join(&name);
    std::fs::create_dir(&folder)?;
    std::fs::copy(&binary, folder.join("windlass")).context("copying the binary")?;
    for paper in PAPERS {
        std::fs::copy(project.root.join(paper), folder.join(paper)).with_context(|| format!("copying {paper}"))?;
    }
    let archive = project.target.join("dist").join(format!("{name}.tar.gz"));
    run_command(Command::new("tar").arg("-C").arg(&*stage).arg("-czf").arg(&archive).arg(&name))?;
    try_out(&stage, &archive, &name, &version)?;
    println!("binary   {:.1} MB (aim: at most {PROMISED_MB} MB)", megabytes(&binary)?);
    println!("archive  {:.1} MB  {}", megabytes(&archive)?, archive.display());
    Ok(())
}

/// Unpacks the archive elsewhere and lets what comes out of it tell its version and run the demo.
fn try_out(stage: &Path, archive: &Path, name: &str, version: &str) -> Result<()> {
    let fresh = stage.join("unpacked");
    std::fs::create_dir(&fresh)?;
    run_command(Command::new("tar").arg("-C").arg(&fresh).arg("-xzf").arg(archive))?;
    let binary = fresh.join(name).join("windlass");
    if self::version(&binary)? != version {
        bail!("{} does not say version {version}", binary.display());
    }
    let demo = output(Command::new(&binary).arg("demo").current_dir(&fresh).env("HOME", &fresh))?;
    print!("{demo}");
    Ok(())
}

/// `windlass X.Y.Z`
fn version(binary: &Path) -> Result<String> {
    let said = output(Command::new(binary).arg("--version"))?;
    let version = said.split_whitespace().nth(1);
    version.map(str::to_string).with_context(|| format!("`windlass --version` says {said:?}"))
}

/// The target this machine builds for.
fn host() -> Result<String> {
    let said = output(Command::new("rustc").arg("-vV"))?;
    let host = said.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_string).context("`rustc -vV` names no host")
}

fn megabytes(path: &Path) -> Result<f64> {
    let bytes = std::fs::metadata(path).with_context(|| format!("looking at {}", path.display()))?.len();
    Ok(bytes as f64 / 1e6)
}
