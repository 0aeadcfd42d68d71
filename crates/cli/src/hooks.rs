//! The hooks that configuration amounts to: from files of the user's own, and from a project's only once it is trusted.

use crate::config::Config;
use crate::environment::Environment;
use crate::exit::Failure;
use crate::keys::Value;
use serde_json::json;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use tokio::process::Command;
use windlass_hooks::{Hooks, Launch, Walled};
use windlass_runtime::Hooking;
use windlass_sandbox::{Spec, Wall};

/// Hooks in the form other clients write them, beside `config.toml`.
const FILE: &str = "hooks.json";

/// The folder below the scratch that is temp for hooks.
const TEMP: &str = "hooks/tmp";

/// `hooks` as sessions in `folder` ask them; none: there are none.
pub fn hooking(
    hooks: &Arc<Hooks>,
    environment: &Environment,
    folder: &Path,
    env: &BTreeMap<String, String>,
    wall: &Arc<Wall>,
) -> Option<Hooking> {
    let (wall, workspace) = (wall.clone(), folder.to_owned());
    let temp = environment.data_dir.join("scratch").join(TEMP);
    let spec = Spec { workspace, temp };
    let wall = Arc::new(move |command: Command| {
        wall.enclose(command.into_std(), &spec).map(|walled| Walled::bare(Command::from(walled)))
    });
    let launch = Launch { env: Arc::new(env.clone()), project_dir: folder.to_owned(), wall };
    (!hooks.is_empty()).then(|| Hooking { hooks: hooks.clone(), launch })
}

/// All hooks, those of the machine's owner last.
pub fn read(config: &Config, environment: &Environment) -> Result<Hooks, Failure> {
    let mut hooks = Hooks::default();
    let told = |error: windlass_hooks::ConfigError| Failure::usage(error.to_string());
    let file = environment.config_dir.join(FILE);
    match std::fs::read_to_string(&file) {
        Ok(text) => hooks.add_json(&file.display().to_string(), &text).map_err(told)?,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {}
        Err(error) => return Err(Failure::usage(format!("{} can't be read: {error}", file.display()))),
    }
    for entry in config.layers.iter().flat_map(|layer| &layer.entries) {
        if let (["hooks", event], Value::Tables(rows)) =
            (&entry.path.iter().map(String::as_str).collect::<Vec<_>>()[..], &entry.value)
        {
            hooks.add(&entry.source, &json!({ *event: rows })).map_err(told)?;
        }
    }
    Ok(hooks)
}
