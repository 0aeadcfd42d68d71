//! Trust of what a folder brings: of its very content, given by a person, kept in a file of the user's own.

use crate::brought::{self, Brought};
use crate::environment::Environment;
use crate::exit::Failure;
use crate::git_settings::Told;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The file, beside `config.toml`.
const FILE: &str = "trust.json";
/// Copies of extensions that were trusted, below the folder for data.
const COPIES: &str = "trusted";
/// Where extensions lie, below `.windlass`.
pub const EXTENSIONS: &str = "extensions/";
/// Bytes of a file whose text is kept, so that a change can be shown, and of all texts of a folder.
const TEXT_BYTES: usize = 64 << 10;
const TEXTS_BYTES: usize = 1 << 20;
/// Names that one line tells.
const TOLD: usize = 8;

/// What stands of a folder's own files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Standing {
    /// Nobody has looked at them.
    #[default]
    Untrusted,
    /// They were trusted, and are others now.
    Changed,
    Trusted,
}

/// A folder's own files, as far as they count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Project {
    pub standing: Standing,
    /// The bytes of its configuration: of a trusted folder those that were hashed.
    pub config: Option<Vec<u8>>,
    /// Of a trusted folder: where its extensions lie as they were trusted.
    pub extensions: Option<PathBuf>,
    /// What git may run here.
    pub git: BTreeSet<Told>,
    /// Why what was trusted can't even be looked at now.
    pub problem: Option<String>,
}

/// What was trusted, by folder.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ledger {
    folders: BTreeMap<String, Trusted>,
}

/// One folder's content, when it was trusted.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trusted {
    pub hash: String,
    pub files: BTreeMap<String, Known>,
    pub git: Vec<Told>,
}

/// One file, when it was trusted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Known {
    pub sha256: String,
    pub bytes: u64,
    /// None: it is no text, or too long to be kept.
    pub text: Option<String>,
}

impl Project {
    /// What `folder` brings, and whether it is trusted.
    pub fn read(environment: &Environment, folder: &Path) -> Result<Project, Failure> {
        let told = |why: String| Failure::usage(format!("{}: {why}", folder.display()));
        let Some(trusted) = Ledger::read(environment)?.folders.remove(&key(folder)) else {
            return Ok(Project { config: brought::config(folder).map_err(told)?, ..Project::default() });
        };
        let changed = Project { standing: Standing::Changed, ..Project::default() };
        match Brought::look(folder) {
            Ok(brought) if brought.hash() == trusted.hash => {
                let extensions = copy(environment, &trusted.hash, &brought).map_err(|error| {
                    told(format!("its extensions can't be kept in {}: {error}", environment.data_dir.display()))
                })?;
                let Brought { mut files, git } = brought;
                let (config, git) = (files.remove(brought::CONFIG), git.into_iter().collect());
                Ok(Project { standing: Standing::Trusted, config, extensions, git, problem: None })
            }
            // What is there no more is no change that matters.
            Ok(brought) if brought.is_nothing() => Ok(Project::default()),
            Ok(mut brought) => Ok(Project { config: brought.files.remove(brought::CONFIG), ..changed }),
            Err(problem) => {
                let config = brought::config(folder).map_err(told)?;
                Ok(Project { config, problem: Some(problem), ..changed })
            }
        }
    }

    /// One line on what is not in use, of which the settings are named; none if nothing is.
    pub fn note<'a>(&self, withheld: impl Iterator<Item = &'a str>) -> Option<String> {
        let names: BTreeSet<&str> = withheld.collect();
        let shown: Vec<&str> = names.iter().take(TOLD).copied().collect();
        let more = match names.len().saturating_sub(TOLD) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let what = match (&*shown, &self.problem) {
            (_, Some(problem)) => format!("what this folder brings can't be trusted any more ({problem})"),
            ([], None) if self.standing == Standing::Changed => "what this folder brings".into(),
            ([], None) => return None,
            (names, None) => format!("{}/{} sets {}{more}, which", brought::FOLDER, brought::CONFIG, names.join(", ")),
        };
        let why = if self.standing == Standing::Changed {
            "it changed since it was trusted"
        } else {
            "nobody has trusted it"
        };
        Some(format!("{what} is not in use, for {why}: `windlass trust` shows it and asks"))
    }
}

impl Ledger {
    pub fn read(environment: &Environment) -> Result<Ledger, Failure> {
        let file = file(environment);
        let told = |why: &str| Failure::usage(format!("{}: {why}; mend it or move it away", file.display()));
        match fs::read_to_string(&file) {
            Ok(text) => serde_json::from_str(&text).map_err(|error| told(&error.to_string())),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                Ok(Ledger::default())
            }
            Err(error) => Err(told(&error.to_string())),
        }
    }

    pub fn of(&self, folder: &Path) -> Option<&Trusted> {
        self.folders.get(&key(folder))
    }
}

/// Keeps that `folder` is trusted as it was `brought`; with none, that it no longer is.
pub fn keep(environment: &Environment, folder: &Path, brought: Option<&Brought>) -> Result<(), Failure> {
    let dir = &environment.config_dir;
    let failed = |error: io::Error| Failure::usage(format!("{}: {error}", file(environment).display()));
    fs::create_dir_all(dir).map_err(failed)?;
    // One at a time: a trust taken back must not come again with another's write.
    let lock = File::open(dir).map_err(failed)?;
    lock.lock().map_err(failed)?;
    let mut ledger = Ledger::read(environment)?;
    let before = match brought {
        Some(brought) => ledger.folders.insert(key(folder), Trusted::of(brought)),
        None => ledger.folders.remove(&key(folder)),
    };
    let text = serde_json::to_string_pretty(&ledger).map_err(|error| failed(error.into()))?;
    let mut fresh = tempfile::NamedTempFile::new_in(dir).map_err(failed)?;
    fresh.write_all(text.as_bytes()).map_err(failed)?;
    fresh.persist(file(environment)).map_err(|error| failed(error.error))?;
    let is_used = |hash: &str| ledger.folders.values().any(|other| other.hash == hash);
    if let Some(old) = before.filter(|old| !is_used(&old.hash)) {
        // A copy that stays is of no use to anybody.
        _ = fs::remove_dir_all(environment.data_dir.join(COPIES).join(old.hash));
    }
    Ok(())
}

impl Trusted {
    fn of(brought: &Brought) -> Trusted {
        let mut left = TEXTS_BYTES;
        let files = brought.files.iter().map(|(path, bytes)| {
            let text = Some(bytes).filter(|bytes| bytes.len() <= TEXT_BYTES.min(left));
            let text = text.and_then(|bytes| String::from_utf8(bytes.clone()).ok());
            left -= text.as_ref().map_or(0, String::len);
            (path.clone(), Known { sha256: brought::digest(bytes), bytes: bytes.len() as u64, text })
        });
        Trusted { files: files.collect(), hash: brought.hash(), git: brought.git.clone() }
    }
}

/// The extensions as they were trusted: who changes them afterwards changes nothing that runs.
fn copy(environment: &Environment, hash: &str, brought: &Brought) -> io::Result<Option<PathBuf>> {
    let extensions: Vec<_> = brought.files.iter().filter(|(path, _)| path.starts_with(EXTENSIONS)).collect();
    if extensions.is_empty() {
        return Ok(None);
    }
    let copies = environment.data_dir.join(COPIES);
    let place = copies.join(hash);
    if !place.exists() {
        fs::create_dir_all(&copies)?;
        let fresh = tempfile::Builder::new().prefix(".new-").tempdir_in(&copies)?;
        for (path, bytes) in extensions {
            let path = fresh.path().join(path);
            path.parent().map_or(Ok(()), fs::create_dir_all)?;
            fs::write(path, bytes)?;
        }
        // Another process may have been first, with the same bytes.
        if fs::rename(fresh.path(), &place).is_ok() {
            _ = fresh.keep();
        }
    }
    Ok(Some(place.join(EXTENSIONS)))
}

pub fn file(environment: &Environment) -> PathBuf {
    environment.config_dir.join(FILE)
}

/// A folder as trust knows it: where it really is. A copy elsewhere is another.
pub fn key(folder: &Path) -> String {
    let real = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    // Two names that are no UTF-8 must not be one here.
    real.to_str().map_or_else(|| format!("{real:?}"), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::Look;
    use std::os::unix::fs::PermissionsExt;

    struct Stage {
        dir: tempfile::TempDir,
        environment: Environment,
    }

    fn stage() -> Stage {
        let dir = tempfile::tempdir().unwrap();
        let environment = Environment {
            variables: BTreeMap::new(),
            cwd: dir.path().into(),
            managed_config: dir.path().join("managed"),
            config_dir: dir.path().join("c"),
            data_dir: dir.path().join("d"),
            stdin_is_terminal: false,
            stdout: Look::default(),
            stderr: Look::default(),
        };
        fs::create_dir_all(dir.path().join("p/.windlass/extensions/x")).unwrap();
        fs::write(dir.path().join("p/.windlass/config.toml"), "max_turns = 3\n").unwrap();
        fs::write(dir.path().join("p/.windlass/extensions/x/x.wasm"), "code").unwrap();
        Stage { dir, environment }
    }

    impl Stage {
        fn folder(&self) -> PathBuf {
            self.dir.path().join("p")
        }

        fn standing(&self) -> Standing {
            Project::read(&self.environment, &self.folder()).unwrap().standing
        }

        fn trust(&self) {
            keep(&self.environment, &self.folder(), Some(&Brought::look(&self.folder()).unwrap())).unwrap();
        }
    }

    #[test]
    fn trust_is_gone_with_one_byte_and_comes_back_with_it() {
        let stage = stage();
        assert_eq!(stage.standing(), Standing::Untrusted);
        stage.trust();
        assert_eq!(stage.standing(), Standing::Trusted);
        let wasm = stage.folder().join(".windlass/extensions/x/x.wasm");
        fs::write(&wasm, "Code").unwrap();
        assert_eq!(stage.standing(), Standing::Changed);
        fs::write(&wasm, "code").unwrap();
        assert_eq!(stage.standing(), Standing::Trusted);
        keep(&stage.environment, &stage.folder(), None).unwrap();
        assert_eq!(stage.standing(), Standing::Untrusted);
    }

    #[test]
    fn a_folder_that_moved_is_another_and_a_link_to_it_is_the_same() {
        let stage = stage();
        stage.trust();
        let link = stage.dir.path().join("link");
        std::os::unix::fs::symlink(stage.folder(), &link).unwrap();
        assert_eq!(Project::read(&stage.environment, &link).unwrap().standing, Standing::Trusted);
        let moved = stage.dir.path().join("moved");
        fs::rename(stage.folder(), &moved).unwrap();
        assert_eq!(Project::read(&stage.environment, &moved).unwrap().standing, Standing::Untrusted);
    }

    #[test]
    fn what_runs_is_the_copy_that_was_trusted() {
        let stage = stage();
        stage.trust();
        let project = Project::read(&stage.environment, &stage.folder()).unwrap();
        fs::write(stage.folder().join(".windlass/extensions/x/x.wasm"), "evil").unwrap();
        let copy = project.extensions.unwrap();
        assert_eq!(fs::read_to_string(copy.join("x/x.wasm")).unwrap(), "code");
        stage.trust();
        assert!(!copy.exists(), "the copy of what is no longer trusted is gone");
    }

    #[test]
    fn the_ledger_is_the_users_alone_and_a_broken_one_is_kept() {
        let stage = stage();
        stage.trust();
        let file = file(&stage.environment);
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        fs::write(&file, "{").unwrap();
        let refused = keep(&stage.environment, &stage.folder(), None).unwrap_err().message;
        assert!(refused.contains("trust.json: ") && refused.contains("mend it or move it away"), "{refused}");
        assert_eq!(fs::read_to_string(&file).unwrap(), "{");
    }

    #[test]
    fn a_note_names_a_few_and_counts_the_rest() {
        let names: Vec<String> = (0..11).map(|n| format!("k{n:02}")).collect();
        let note = Project::default().note(names.iter().map(String::as_str)).unwrap();
        assert!(note.contains("sets k00, k01, k02, k03, k04, k05, k06, k07 and 3 more, which is not in use"), "{note}");
        assert_eq!(Project::default().note([].into_iter()), None);
    }
}
