//! What a folder brings of its own that can loosen or run something: all files below its `.windlass`, and the settings of
//! its repository that have git run programs. Read once: what was hashed is what is shown, kept and used.

use crate::git_settings::{self, Told};
use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, openat};
use rustix::io::Errno;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::Path;

/// Where a project keeps what is Windlass's.
pub const FOLDER: &str = ".windlass";
/// Its configuration, below that.
pub const CONFIG: &str = "config.toml";
/// Files that may be trusted together.
const MAX_FILES: usize = 2_000;
/// Bytes of all of them.
const MAX_BYTES: u64 = 256 << 20;
/// Bytes of a configuration.
const CONFIG_BYTES: u64 = 1 << 20;
/// Folders within folders.
const MAX_DEPTH: usize = 16;

/// What was found, by paths below `.windlass`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Brought {
    pub files: BTreeMap<String, Vec<u8>>,
    pub git: Vec<Told>,
}

impl Brought {
    /// Everything that `folder` brings; an error is a sentence that says why it can't be trusted.
    pub fn look(folder: &Path) -> Result<Brought, String> {
        let mut brought = Brought { git: git_settings::running(folder), ..Brought::default() };
        if let Some(dir) = open_folder(folder)? {
            let mut left = MAX_BYTES;
            brought.take(&dir, "", &mut left, 0)?;
        }
        Ok(brought)
    }

    pub fn is_nothing(&self) -> bool {
        self.files.is_empty() && self.git.is_empty()
    }

    /// One number for all names and all bytes.
    pub fn hash(&self) -> String {
        let mut all = Sha256::new();
        all.update(b"windlass trust 1\n");
        for (name, bytes) in &self.files {
            part(&mut all, name.as_bytes());
            part(&mut all, bytes);
        }
        all.update(b"git\n");
        self.git.iter().for_each(|told| part(&mut all, told.as_bytes()));
        hex(&all.finalize())
    }

    fn take(&mut self, dir: &OwnedFd, below: &str, left: &mut u64, depth: usize) -> Result<(), String> {
        let failed = |error: Errno| format!("{}: it can't be listed: {error}", shown(below));
        let entries = Dir::read_from(dir).map_err(failed)?;
        for entry in entries {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let Ok(name) = name.to_str() else {
                let name = format!("{below}{}", name.to_string_lossy());
                return Err(format!("{}: its name is no UTF-8; give it another", shown(&name)));
            };
            let path = format!("{below}{name}");
            match open(dir, name).map_err(|why| format!("{}: {why}", shown(&path)))? {
                Opened::File(file) => self.keep(file, path, left)?,
                Opened::Folder(_) if depth == MAX_DEPTH => {
                    return Err(format!("{}: more than {MAX_DEPTH} folders deep; take some away", shown(&path)));
                }
                Opened::Folder(inner) => self.take(&inner, &format!("{path}/"), left, depth + 1)?,
            }
        }
        Ok(())
    }

    fn keep(&mut self, file: File, path: String, left: &mut u64) -> Result<(), String> {
        let bytes = read(file, *left).map_err(|why| format!("{}: {why}", shown(&path)))?;
        *left -= bytes.len() as u64;
        self.files.insert(path, bytes);
        if self.files.len() > MAX_FILES {
            return Err(format!("{FOLDER} holds more than {MAX_FILES} files; keep there only what Windlass uses"));
        }
        Ok(())
    }
}

/// The configuration in `folder` alone.
pub fn config(folder: &Path) -> Result<Option<Vec<u8>>, String> {
    let Some(dir) = open_folder(folder)? else { return Ok(None) };
    let said = |why: String| format!("{}: {why}", shown(CONFIG));
    match openat(&dir, CONFIG, OFlags::PATH | OFlags::NOFOLLOW, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(None),
        other => drop(other),
    }
    match open(&dir, CONFIG).map_err(said)? {
        Opened::File(file) => read(file, CONFIG_BYTES).map(Some).map_err(said),
        Opened::Folder(_) => Err(said("it is no file: a configuration is one, take this away".into())),
    }
}

fn shown(path: &str) -> String {
    format!("{FOLDER}/{path}")
}

enum Opened {
    File(File),
    Folder(OwnedFd),
}

/// `.windlass` itself; none if there is none.
fn open_folder(folder: &Path) -> Result<Option<OwnedFd>, String> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
    match openat(CWD, folder.join(FOLDER), flags, Mode::empty()) {
        Ok(dir) => Ok(Some(dir)),
        Err(Errno::NOENT) => Ok(None),
        // The folder itself may be none.
        Err(Errno::NOTDIR) if folder.join(FOLDER).symlink_metadata().is_err() => Ok(None),
        Err(Errno::NOTDIR | Errno::LOOP) => Err(format!(
            "{FOLDER} is a link or no folder: what it stands for could change unseen; make it a folder of its own"
        )),
        Err(error) => Err(format!("{FOLDER} can't be opened: {error}")),
    }
}

/// What lies in `dir` by `name`, never followed out of it.
fn open(dir: &OwnedFd, name: &str) -> Result<Opened, String> {
    let flags = OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
    // A pipe in a file's place must not hold anybody up.
    let opened = openat(dir, name, flags | OFlags::NONBLOCK, Mode::empty()).map_err(|error| match error {
        Errno::LOOP => "it is a link: what it stands for could change unseen; put the file itself there".to_owned(),
        error => format!("it can't be opened: {error}"),
    })?;
    let stat = rustix::fs::fstat(&opened).map_err(|error| format!("it can't be looked at: {error}"))?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok(Opened::File(File::from(opened))),
        FileType::Directory => Ok(Opened::Folder(opened)),
        _ => Err("it is neither file nor folder; take it away".into()),
    }
}

fn read(file: File, limit_bytes: u64) -> Result<Vec<u8>, String> {
    let mut bytes = vec![];
    file.take(limit_bytes + 1).read_to_end(&mut bytes).map_err(|error| format!("it can't be read: {error}"))?;
    match bytes.len() as u64 > limit_bytes {
        true => Err(format!("with it there are more than {limit_bytes} bytes left to read; make it smaller")),
        false => Ok(bytes),
    }
}

fn part(all: &mut Sha256, bytes: &[u8]) {
    all.update((bytes.len() as u64).to_be_bytes());
    all.update(bytes);
}

/// The SHA-256 of `bytes`, in hexadecimal.
pub fn digest(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = dir.path().join(FOLDER).join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        dir
    }

    #[test]
    fn every_name_and_every_byte_counts() {
        let hash = |files: &[(&str, &str)]| Brought::look(folder(files).path()).unwrap().hash();
        let usual = hash(&[("config.toml", "a"), ("extensions/x/x.wasm", "b")]);
        assert_eq!(usual, hash(&[("extensions/x/x.wasm", "b"), ("config.toml", "a")]));
        for other in [
            &[("config.toml", "a"), ("extensions/x/x.wasm", "c")][..],
            &[("config.toml", "a"), ("extensions/y/x.wasm", "b")],
            &[("config.toml", "a")],
            &[("config.toml", "ab"), ("extensions/x/x.wasm", "")],
        ] {
            assert_ne!(usual, hash(other), "{other:?}");
        }
    }

    #[test]
    fn links_pipes_and_depth_are_refused_by_name() {
        let dir = folder(&[("config.toml", "a")]);
        let refused = || Brought::look(dir.path()).unwrap_err();
        let link = dir.path().join(".windlass/more");
        symlink("/etc/passwd", &link).unwrap();
        assert!(refused().starts_with(".windlass/more: it is a link"), "{}", refused());
        fs::remove_file(&link).unwrap();
        let made = std::process::Command::new("mkfifo").arg(&link).status().unwrap();
        assert!(made.success() && refused().contains("neither file nor folder"));
        fs::remove_file(&link).unwrap();
        fs::create_dir_all(dir.path().join(FOLDER).join("d/".repeat(MAX_DEPTH + 1))).unwrap();
        assert!(refused().contains("folders deep"), "{}", refused());
        let whole = tempfile::tempdir().unwrap();
        symlink(dir.path().join(FOLDER), whole.path().join(FOLDER)).unwrap();
        assert!(Brought::look(whole.path()).unwrap_err().contains("is a link or no folder"));
        assert!(config(whole.path()).unwrap_err().contains("is a link or no folder"));
    }

    #[test]
    fn a_folder_may_bring_nothing() {
        let dir = tempfile::tempdir().unwrap();
        assert!(Brought::look(dir.path()).unwrap().is_nothing());
        assert_eq!(config(dir.path()), Ok(None));
        assert_eq!(config(folder(&[("x", "")]).path()), Ok(None));
        assert_eq!(config(folder(&[("config.toml", "a = 1")]).path()), Ok(Some(b"a = 1".to_vec())));
    }
}
