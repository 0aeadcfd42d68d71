//! The wall around processes that the configuration amounts to, and what `doctor` says of it.

use crate::config::Config;
use crate::desk::Desk;
use crate::environment::Environment;
use crate::exit::Failure;
use crate::project;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use windlass_sandbox::{Choice, HostPattern, Kind, Limits, Network, Settings, Spec, Wall};

/// This program, started once more as the keeper of a wall.
const PROGRAM: &str = "/proc/self/exe";
/// Files of the configuration's folder that decide what runs.
const OWN_FILES: [&str; 3] = ["config.toml", "rules.toml", "hooks.json"];
/// The files of a store: the database and what SQLite keeps beside it.
const STORE_ENDINGS: [&str; 3] = ["", "-wal", "-shm"];

pub fn wall(config: &Config, environment: &Environment, store: &Path, folder: &Path) -> Result<Arc<Wall>, Failure> {
    let paths = |path: &str| -> Vec<PathBuf> {
        config.texts(path).into_iter().map(|(path, _)| environment.resolve(&path)).collect()
    };
    let mut hosts = Vec::new();
    for (host, source) in config.texts("sandbox.hosts") {
        let host: Result<HostPattern, _> = host.parse();
        hosts.push(host.map_err(|error| Failure::usage(format!("{source}: {error}")))?);
    }
    let mut unreadable = paths("sandbox.unreadable");
    unreadable.push(environment.user_config());
    unreadable.extend(STORE_ENDINGS.iter().map(|ending| PathBuf::from(format!("{}{ending}", store.display()))));
    let own = OWN_FILES.iter().map(|name| environment.config_dir.join(name));
    let truth = |path: &str| config.get(path).and_then(|entry| entry.value.as_truth()).unwrap_or_default();
    Ok(Arc::new(Wall::new(Settings {
        program: PROGRAM.into(),
        choice: choice(config.text("sandbox.wall").unwrap_or_default()),
        require: truth("sandbox.require"),
        home: environment.variable("HOME").map(PathBuf::from),
        writable: writable(config, environment)?.into_iter().chain(project::git_outside(folder)).collect(),
        protected: own.chain([environment.config_dir.clone()]).collect(),
        unreadable,
        network: if config.text("sandbox.network") == Some("on") { Network::On } else { Network::Off },
        hosts,
        limits: limits(config),
    })))
}

/// Folders that commands may write in besides the workspace.
fn writable(config: &Config, environment: &Environment) -> Result<Vec<PathBuf>, Failure> {
    let mut folders = Vec::new();
    for (path, source) in config.texts("sandbox.writable") {
        let folder = environment.resolve(&path);
        if path.trim().is_empty() || folder == Path::new("/") {
            return Err(Failure::usage(format!(
                "{source}: sandbox.writable: `{path}` is no folder to open; name the folders that commands must write in, \
                 or set sandbox.wall to none"
            )));
        }
        folders.push(folder);
    }
    Ok(folders)
}

fn choice(word: &str) -> Choice {
    match word {
        "none" => Choice::Off,
        name => Kind::ALL.into_iter().find(|kind| kind.name() == name).map_or(Choice::Auto, Choice::Only),
    }
}

fn limits(config: &Config) -> Limits {
    let usual = Limits::default();
    Limits {
        processes: config.whole("sandbox.processes").unwrap_or(usual.processes),
        open_files: config.whole("sandbox.open_files").unwrap_or(usual.open_files),
        file_bytes: config.whole("sandbox.file_mib").map_or(usual.file_bytes, |mib| mib << 20),
        memory_bytes: config.whole("sandbox.memory_mib").map(|mib| mib << 20),
    }
}

/// The variables that may be inherited besides the stock.
pub fn further_variables(config: &Config) -> Vec<String> {
    config.texts("sandbox.env").into_iter().map(|(name, _)| name).collect()
}

/// Which wall stands, whether it refuses what it should, and what it does not cover.
pub fn report(desk: &Desk) -> String {
    let folder = desk.environment.data_dir.join("scratch").join(format!("doctor-{}", std::process::id()));
    let spec = Spec { workspace: desk.folder.clone(), temp: folder.join("tmp") };
    let wall = &desk.settings.wall;
    let mut text = String::from("\nsandbox\n");
    if wall.is_wanted() {
        let found = wall.found(&spec);
        for (kind, why) in &found.fallen {
            text += &format!("  {} does not stand: {why}\n", kind.name());
        }
        if let Some(kind) = found.kind {
            text += &format!("  {} stands; {}\n", kind.name(), attempt(wall, &spec, &folder));
        }
    } else {
        text += "  there is none: sandbox.wall is none\n";
    }
    wall.gaps(&spec).into_iter().for_each(|gap| text += &format!("  {gap}\n"));
    // What stays is an empty folder of this program's own.
    _ = std::fs::remove_dir_all(&folder);
    text
}

/// Tries, behind the wall, to write where it must not.
fn attempt(wall: &Wall, spec: &Spec, folder: &Path) -> String {
    let forbidden = folder.join("forbidden");
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", ": > \"$0\""]).arg(&forbidden).current_dir(&spec.workspace);
    let tried = wall.enclose(shell, spec).and_then(|mut shell| shell.output());
    match tried {
        Err(error) => format!("but nothing runs behind it: {error}"),
        Ok(_) if forbidden.exists() => "but IT DOES NOT HOLD: a command wrote outside".into(),
        Ok(output) if output.status.success() => "but a command that wrote outside was not told so".into(),
        Ok(_) => "a command that tried to write outside was refused".into(),
    }
}
