//! The catalog that holds here: what comes with the program, what it learnt, and what the user says.

use crate::environment::Environment;
use crate::exit::Failure;
use std::io;
use std::path::{Path, PathBuf};
use windlass::llm::Catalog;

/// The folder of such files, one a provider, among the user's configuration and among the data.
const FOLDER: &str = "catalog";

/// Ours, then what `models refresh` and `models test` remembered, then the user's own: the later wins.
pub fn load(environment: &Environment) -> Result<Catalog, Failure> {
    let mut catalog = Catalog::default();
    for folder in [learnt(environment), environment.config_dir.join(FOLDER)] {
        for file in files(&folder)? {
            let text = std::fs::read_to_string(&file).map_err(|error| unreadable(&file, &error))?;
            let name = file.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
            catalog =
                catalog.with(name, &text).map_err(|error| Failure::usage(format!("{}: {error}", file.display())))?;
        }
    }
    Ok(catalog)
}

/// Where what was learnt of models is kept.
pub fn learnt(environment: &Environment) -> PathBuf {
    environment.data_dir.join(FOLDER)
}

fn files(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(vec![]);
        }
        Err(error) => return Err(unreadable(folder, &error)),
    };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut files: Vec<PathBuf> = paths.filter(|path| path.extension().is_some_and(|kind| kind == "toml")).collect();
    files.sort();
    Ok(files)
}

fn unreadable(path: &Path, error: &io::Error) -> Failure {
    Failure::usage(format!("{} can't be read: {error}; mend it or move it away", path.display()))
}
