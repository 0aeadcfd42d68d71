//! Files in the folders that the host has opened; they bear the absolute names they have outside.

use std::collections::BTreeSet;
use std::error::Error;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Said where the folder is no longer the one that was opened.
pub(crate) const GONE: &str = "the workspace's folder was removed or replaced; open a new session in it";
/// Names tried for a file in the making before it is given up.
const MAX_TRIES: u32 = 16;

/// The workspace's folder. Its methods take absolute paths without `.` and `..`; a link on one is an error.
#[derive(Debug)]
pub struct Root {
    folder: PathBuf,
    /// A path, and where it leads with every link followed.
    end: (PathBuf, PathBuf),
}

/// Secrets are known to the host alone; of the file that is meant, it tells their marks.
#[derive(Debug, Default)]
pub struct Secrets {
    marks: BTreeSet<String>,
}

impl Secrets {
    pub fn new(marks: BTreeSet<String>) -> Secrets {
        Secrets { marks }
    }

    pub(crate) fn marks(&self, _text: &[u8]) -> &BTreeSet<String> {
        &self.marks
    }
}

impl Root {
    /// `end`: the path that is meant, and where it leads with every link followed.
    pub fn new(folder: PathBuf, end: (PathBuf, PathBuf)) -> Root {
        Root { folder, end }
    }

    pub(crate) fn end(&self) -> (&Path, &Path) {
        (&self.end.0, &self.end.1)
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where `path` begins in a folder of the host's: above, nothing can be looked at.
    fn top(&self, path: &Path) -> Option<&Path> {
        path.starts_with(&self.folder).then_some(&self.folder)
    }

    /// What is at `path`, no link being on it.
    pub(crate) fn probe(&self, path: &Path) -> io::Result<Metadata> {
        if path == self.end.0 && self.end.0 != self.end.1 {
            return Err(io::Error::other(InTheWay));
        }
        let mut at = self.top(path).unwrap_or(path.parent().unwrap_or(path)).to_owned();
        let rest: Vec<OsString> = path.strip_prefix(&at).unwrap_or(path).iter().map(OsStr::to_owned).collect();
        let mut meta = fs::symlink_metadata(&at)?;
        for part in rest {
            at.push(part);
            meta = fs::symlink_metadata(&at)?;
            if meta.is_symlink() {
                return Err(io::Error::other(InTheWay));
            }
        }
        Ok(meta)
    }

    /// Opens the regular file at `path` for reading.
    pub(crate) fn read(&self, path: &Path) -> io::Result<(File, Metadata)> {
        self.probe(path)?;
        let file = File::open(path)?;
        let meta = file.metadata()?;
        match meta.is_file() {
            true => Ok((file, meta)),
            false => Err(io::Error::other("it is no regular file")),
        }
    }

    /// The names in the folder at `path`, in no order.
    pub(crate) fn names(&self, path: &Path) -> io::Result<impl Iterator<Item = OsString> + use<>> {
        self.probe(path)?;
        Ok(fs::read_dir(path)?.filter_map(|entry| Some(entry.ok()?.file_name())))
    }

    /// Writes the file whole or not at all, and makes the folders above it. There are no modes in here: that of the
    /// file that is replaced, the host gives to the new one.
    pub(crate) fn write(&self, path: &Path, bytes: &[u8], _mode: Option<u32>) -> io::Result<()> {
        let (Some(folder), Some(top)) = (path.parent(), self.top(path)) else {
            return Err(io::ErrorKind::PermissionDenied.into());
        };
        let mut at = top.to_owned();
        for part in folder.strip_prefix(top).unwrap_or(folder) {
            at.push(part);
            match self.probe(&at) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => fs::create_dir(&at)?,
                found => _ = found?,
            }
        }
        match self.probe(path) {
            Ok(meta) if meta.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Ok(meta) if !meta.is_file() => return Err(io::Error::other("a device, pipe or socket has that name")),
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let draft = draft(folder, bytes)?;
        fs::rename(&draft, path).inspect_err(|_| _ = fs::remove_file(&draft))
    }

    /// A folder that was taken away is not handed in.
    pub(crate) fn is_gone(&self) -> bool {
        false
    }

    /// Ignore files are heeded by the host, before a component is asked.
    pub(crate) fn hidden_by(&self, _path: &Path, _is_folder: bool) -> Option<String> {
        None
    }
}

/// A new file in `folder` that holds `bytes`, on disk.
fn draft(folder: &Path, bytes: &[u8]) -> io::Result<PathBuf> {
    for _ in 0..MAX_TRIES {
        let path = folder.join(format!(".windlass-{:016x}", chance()));
        let mut file = match OpenOptions::new().write(true).create_new(true).open(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            file => file?,
        };
        let written = file.write_all(bytes).and_then(|()| file.sync_all());
        written.inspect_err(|_| _ = fs::remove_file(&path))?;
        return Ok(path);
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// A number nobody can foresee: the standard library seeds its hash tables with it.
fn chance() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish()
}

/// A link stood in the way.
#[derive(Debug)]
struct InTheWay;

impl fmt::Display for InTheWay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a link is in the way")
    }
}

impl Error for InTheWay {}

/// Whether a link stood in the way.
pub(crate) fn is_link(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<InTheWay>())
}
