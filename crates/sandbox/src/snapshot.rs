//! What no mount can hold is read before a call, and put back after it.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// Files and folders of one snapshot.
const ENTRIES: usize = 2_000;
/// Bytes of all of them.
const BYTES: u64 = 16 << 20;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Thing {
    File { content: Vec<u8>, mode: u32 },
    Link(PathBuf),
    Folder { mode: u32 },
}

/// How things stood at some paths: all that was there, and what was not.
#[derive(Debug, Default)]
pub(crate) struct Snapshot {
    roots: Vec<PathBuf>,
    things: BTreeMap<PathBuf, Thing>,
    bytes: u64,
}

impl Snapshot {
    /// Reads everything at and below `paths`; more than the limits is an error, for what is not read cannot be put back.
    pub fn take(paths: Vec<PathBuf>) -> io::Result<Snapshot> {
        let mut snapshot = Snapshot::default();
        for path in &paths {
            snapshot.read(path)?;
        }
        snapshot.roots = paths;
        Ok(snapshot)
    }

    fn read(&mut self, path: &Path) -> io::Result<()> {
        let Ok(there) = fs::symlink_metadata(path) else { return Ok(()) };
        let mode = there.permissions().mode();
        let thing = if there.is_symlink() {
            Thing::Link(fs::read_link(path)?)
        } else if there.is_dir() {
            for entry in fs::read_dir(path)? {
                self.read(&entry?.path())?;
            }
            Thing::Folder { mode }
        } else if there.is_file() {
            self.bytes = self.bytes.saturating_add(there.len());
            if self.bytes > BYTES {
                return Err(self.too_much(path));
            }
            Thing::File { content: fs::read(path)?, mode }
        } else {
            return Ok(());
        };
        if self.things.len() >= ENTRIES {
            return Err(self.too_much(path));
        }
        self.things.insert(path.to_owned(), thing);
        Ok(())
    }

    fn too_much(&self, path: &Path) -> io::Error {
        io::Error::other(format!(
            "{} is protected and too big to be put back after a call ({ENTRIES} files, {} MiB at most)",
            path.display(),
            BYTES >> 20
        ))
    }

    /// Puts everything back, and says what was not as it had been.
    pub fn restore(&self) -> Vec<PathBuf> {
        // What has grown beyond the limits has been changed; it is cleared away unread.
        let now = Snapshot::take(self.roots.clone());
        let Ok(now) = now else { return self.rebuild() };
        if now.things == self.things {
            return vec![];
        }
        let mut changed: Vec<PathBuf> =
            now.things.keys().filter(|path| !self.things.contains_key(*path)).cloned().collect();
        changed.extend(
            self.things
                .iter()
                .filter(|(path, thing)| now.things.get(*path) != Some(thing))
                .map(|(path, _)| path.clone()),
        );
        // Inner ones first.
        for path in changed.iter().rev() {
            let replaced =
                self.things.get(path).is_none_or(|thing| !matches!(thing, Thing::Folder { .. }) || !path.is_dir());
            if replaced {
                clear(path);
            }
        }
        self.write();
        changed
    }

    fn rebuild(&self) -> Vec<PathBuf> {
        self.roots.iter().for_each(|root| clear(root));
        self.write();
        self.roots.clone()
    }

    /// Outer ones come first in the order of paths.
    fn write(&self) {
        for (path, thing) in &self.things {
            // What cannot be written is told as changed all the same.
            _ = match thing {
                Thing::Folder { mode } => {
                    fs::create_dir_all(path).and_then(|()| fs::set_permissions(path, Permissions::from_mode(*mode)))
                }
                Thing::Link(target) if fs::read_link(path).is_ok_and(|now| now == *target) => Ok(()),
                Thing::Link(target) => symlink(target, path),
                Thing::File { content, mode } => {
                    let same = fs::symlink_metadata(path).is_ok_and(|there| there.is_file())
                        && fs::read(path).is_ok_and(|now| now == *content);
                    let written = if same { Ok(()) } else { fs::write(path, content) };
                    written.and_then(|()| fs::set_permissions(path, Permissions::from_mode(*mode)))
                }
            };
        }
    }
}

fn clear(path: &Path) {
    let Ok(there) = fs::symlink_metadata(path) else { return };
    // What cannot be removed is told as changed all the same.
    _ = if there.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_changed_removed_added_or_swapped_is_as_before() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("hooks")).unwrap();
        fs::write(at("hooks/kept"), "kept").unwrap();
        fs::write(at("hooks/gone"), "gone").unwrap();
        fs::write(at("config"), "old").unwrap();
        symlink("hooks", at("link")).unwrap();
        let roots = ["hooks", "config", "link", "absent"].map(at).to_vec();
        let snapshot = Snapshot::take(roots).unwrap();
        assert_eq!(snapshot.restore(), Vec::<PathBuf>::new());
        fs::write(at("hooks/pre-commit"), "evil").unwrap();
        fs::set_permissions(at("hooks/kept"), Permissions::from_mode(0o755)).unwrap();
        fs::remove_file(at("hooks/gone")).unwrap();
        fs::remove_file(at("config")).unwrap();
        symlink("/etc/passwd", at("config")).unwrap();
        fs::remove_file(at("link")).unwrap();
        fs::create_dir_all(at("absent/deep")).unwrap();
        let mut changed: Vec<String> =
            snapshot.restore().iter().map(|path| path.strip_prefix(&folder).unwrap().display().to_string()).collect();
        changed.sort();
        assert_eq!(
            changed,
            ["absent", "absent/deep", "config", "hooks/gone", "hooks/kept", "hooks/pre-commit", "link"]
        );
        assert_eq!(snapshot.restore(), Vec::<PathBuf>::new());
        assert_eq!(fs::read_to_string(at("config")).unwrap(), "old");
    }
}
