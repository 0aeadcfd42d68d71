//! Rules that a person answered with for longer than a session: kept in a file of the user's own, for the folder they
//! were given in, or for all.

use crate::config::{Entry, Layer};
use crate::environment::Environment;
use crate::exit::Failure;
use crate::keys::Value;
use crate::rules::KEPT;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The file, beside `config.toml`.
const FILE: &str = "rules.toml";

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Kept {
    /// In every folder.
    always: Vec<String>,
    folders: BTreeMap<String, Rules>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rules {
    allow: Vec<String>,
}

pub fn file(environment: &Environment) -> PathBuf {
    environment.config_dir.join(FILE)
}

/// The rules kept for `folder`.
pub fn layer(environment: &Environment, folder: &Path) -> Result<Layer, Failure> {
    let file = file(environment);
    let mut kept = read(&file)
        .map_err(|error| Failure::usage(format!("{}: {error}; mend the file or move it away", file.display())))?;
    let here = kept.folders.remove(&folder.display().to_string()).unwrap_or_default();
    let rules: Vec<String> = kept.always.into_iter().chain(here.allow).collect();
    if rules.is_empty() {
        return Ok(Layer::default());
    }
    let (path, source) = (KEPT.map(str::to_owned).to_vec(), file.display().to_string());
    let entries = vec![Entry { path, value: Value::Texts(rules), source }];
    Ok(Layer { file: Some(file), entries, ..Layer::default() })
}

/// Keeps `rule`: for `folder`, or for all if there is none.
pub fn keep(file: &Path, folder: Option<&Path>, rule: &str) -> io::Result<()> {
    let mut kept = read(file)?;
    let rules = match folder {
        Some(folder) => &mut kept.folders.entry(folder.display().to_string()).or_default().allow,
        None => &mut kept.always,
    };
    if rules.iter().any(|known| known == rule) {
        return Ok(());
    }
    rules.push(rule.to_owned());
    let text = toml::to_string(&kept).map_err(io::Error::other)?;
    let dir = file.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(dir)?;
    let mut fresh = tempfile::NamedTempFile::new_in(dir)?;
    let head = "# Rules you answered with: \"always\" in every folder, \"project\" by the folder they hold in.\n\
                # Take out what you no longer want.\n\n";
    fresh.write_all(head.as_bytes())?;
    fresh.write_all(text.as_bytes())?;
    fresh.persist(file).map(drop).map_err(|error| error.error)
}

fn read(file: &Path) -> io::Result<Kept> {
    match fs::read_to_string(file) {
        Ok(text) => {
            toml::from_str(&text).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))
        }
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(Kept::default())
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_kept_once_and_for_its_folder_alone() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("new/rules.toml");
        for rule in ["bash(ls:*)", "edit(src/**)", "bash(ls:*)"] {
            keep(&file, Some(Path::new("/work/a")), rule).unwrap();
        }
        let kept = read(&file).unwrap();
        assert_eq!(kept.folders["/work/a"].allow, ["bash(ls:*)", "edit(src/**)"]);
        assert!(!kept.folders.contains_key("/work/b"));
        keep(&file, None, "bash(pwd)").unwrap();
        assert_eq!(read(&file).unwrap().always, ["bash(pwd)"]);
    }

    #[test]
    fn a_broken_file_is_not_written_over() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("rules.toml");
        fs::write(&file, "folders = 3").unwrap();
        assert!(keep(&file, Some(Path::new("/work")), "bash").is_err());
        assert_eq!(fs::read_to_string(&file).unwrap(), "folders = 3");
    }
}
