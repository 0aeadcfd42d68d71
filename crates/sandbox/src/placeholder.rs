//! Stand-ins for what is protected and not there: made before a call, gone after the last one that needs them.

use crate::guarded::Shape;
use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, flock, fstat, mkdirat, open, openat, unlinkat};
use rustix::io::Errno;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

/// Times a folder's lock is tried for, and the wait between two tries.
const LOCK_TRIES: u32 = 500;
const LOCK_WAIT: Duration = Duration::from_millis(2);

/// A stand-in that this process holds. Several walls may hold the same one: each has a shared lock on it, and the last
/// to let go takes it away. Making and taking away happen under a lock on the folder around it.
#[derive(Debug)]
pub(crate) struct Placeholder {
    folder: OwnedFd,
    name: OsString,
    shape: Shape,
    held: OwnedFd,
}

impl Placeholder {
    /// Stands in for `path` if it is not there, or if another wall's stand-in is; none if it is really there.
    pub fn hold(path: &Path, shape: Shape) -> Result<Option<Placeholder>, Errno> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Ok(None) };
        let folder = open(parent, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        lock(&folder)?;
        let held = hold_in(&folder, name.as_ref(), shape);
        flock(&folder, FlockOperation::Unlock)?;
        let held = held?;
        Ok(held.map(|held| Placeholder { folder, name: name.to_owned(), shape, held }))
    }

    fn let_go(&self) -> Result<(), Errno> {
        lock(&self.folder)?;
        if flock(&self.held, FlockOperation::NonBlockingLockExclusive).is_ok() {
            match self.shape {
                // Fails if something was put into it, which is then not ours to take away.
                Shape::Folder => unlinkat(&self.folder, &self.name, AtFlags::REMOVEDIR)?,
                Shape::File if fstat(&self.held)?.st_size == 0 => {
                    unlinkat(&self.folder, &self.name, AtFlags::empty())?;
                }
                Shape::File => {}
            }
        }
        flock(&self.folder, FlockOperation::Unlock)
    }
}

impl Drop for Placeholder {
    fn drop(&mut self) {
        // What cannot be taken away stays as an empty file or folder: nothing can be done about it here.
        _ = self.let_go();
    }
}

/// Locks a folder, which nobody has locked for long unless to be in the way.
fn lock(folder: &OwnedFd) -> Result<(), Errno> {
    for _ in 0..LOCK_TRIES {
        match flock(folder, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => std::thread::sleep(LOCK_WAIT),
            done => return done,
        }
    }
    Err(Errno::BUSY)
}

fn hold_in(folder: &OwnedFd, name: &Path, shape: Shape) -> Result<Option<OwnedFd>, Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let made = match shape {
        Shape::Folder => mkdirat(folder, name, Mode::from_raw_mode(0o755)),
        Shape::File => {
            let make = flags | OFlags::CREATE | OFlags::EXCL;
            openat(folder, name, make, Mode::from_raw_mode(0o644)).map(drop)
        }
    };
    let held = match made {
        Ok(()) => openat(folder, name, flags, Mode::empty())?,
        Err(Errno::EXIST) => {
            let Ok(there) = openat(folder, name, flags | OFlags::NONBLOCK, Mode::empty()) else { return Ok(None) };
            // Nobody's stand-in is locked exclusively: whose lock stands in the way is another wall.
            match flock(&there, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(None),
                Err(_) => there,
            }
        }
        Err(error) => return Err(error),
    };
    flock(&held, FlockOperation::LockShared)?;
    Ok(Some(held))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_to_let_go_takes_it_away_and_what_was_there_stays() {
        let root = tempfile::tempdir().unwrap();
        let (folder, file, own) = (root.path().join("a"), root.path().join("b"), root.path().join("own"));
        std::fs::create_dir(&own).unwrap();
        for (path, shape) in [(&folder, Shape::Folder), (&file, Shape::File)] {
            let first = Placeholder::hold(path, shape).unwrap().unwrap();
            let second = Placeholder::hold(path, shape).unwrap().unwrap();
            drop(first);
            assert!(path.exists());
            drop(second);
            assert!(!path.exists());
        }
        assert!(Placeholder::hold(&own, Shape::Folder).unwrap().is_none());
        assert!(own.exists());
    }

    #[test]
    fn what_was_put_into_it_is_left() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("config");
        let held = Placeholder::hold(&file, Shape::File).unwrap();
        std::fs::write(&file, "mine").unwrap();
        drop(held);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
    }
}
