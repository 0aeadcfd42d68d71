//! Files opened beneath a folder that is held open, by paths on which no link is followed: what was judged is what is
//! opened, whatever is put in its place meanwhile.

use crate::hidden::Hidden;
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, openat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

/// A handle that tells of a file without opening it: a pipe, a socket or a device is not woken.
#[cfg(target_os = "linux")]
const PROBE: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
const PROBE: OFlags = OFlags::NONBLOCK;

const FOLDER: OFlags = PROBE.union(OFlags::DIRECTORY);
/// Never waits, should a pipe have taken the place of the file.
const READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY);
const NEW: OFlags = OFlags::WRONLY.union(OFlags::CREATE).union(OFlags::EXCL);
/// Said where the workspace's folder is no longer the one that was opened.
pub(crate) const GONE: &str = "the workspace's folder was removed or replaced; open a new session in it";
/// The longest step a file system's clock takes, and some.
const SETTLING: Duration = Duration::from_secs(3);
/// Names tried for a file in the making before it is given up.
const MAX_TRIES: u32 = 16;

/// The workspace's folder, held open for as long as the session lasts, and the file system's top, for the paths outside.
///
/// Its methods take absolute paths without `.` and `..`; a link on one, its last part too, is an error (`ELOOP`).
#[derive(Debug)]
pub struct Root {
    folder: PathBuf,
    held: OnceLock<Held>,
    pub(crate) hidden: Hidden,
}

#[derive(Debug)]
struct Held {
    /// Where the folder is, every link followed.
    real: PathBuf,
    workspace: OwnedFd,
    top: OwnedFd,
}

/// How a file or folder was when it was looked at; times since 1970.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Stamp {
    inode: i128,
    bytes: i128,
    written_ns: i128,
    changed_ns: i128,
}

impl Stamp {
    /// Whether it was as it is for a while before `now`, so that the next change will have another time.
    pub(crate) fn is_before(&self, now: SystemTime) -> bool {
        let now = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        self.changed_ns.saturating_add(SETTLING.as_nanos() as i128) < now.as_nanos() as i128
    }
}

impl Root {
    /// The root of a workspace in `folder`, an absolute path; opened when it is first needed.
    pub fn new(folder: impl Into<PathBuf>) -> Root {
        Root { folder: folder.into(), held: OnceLock::new(), hidden: Hidden::default() }
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where the workspace's folder is, every link followed.
    pub(crate) fn real(&self) -> io::Result<&Path> {
        Ok(&self.held()?.real)
    }

    fn held(&self) -> io::Result<&Held> {
        if let Some(held) = self.held.get() {
            return Ok(held);
        }
        let top = openat(CWD, "/", FOLDER | OFlags::CLOEXEC, Mode::empty())?;
        let real = self.folder.canonicalize()?;
        let workspace = open_beneath(top.as_fd(), below(&real, Path::new("/")), FOLDER, Mode::empty())?;
        Ok(self.held.get_or_init(|| Held { real, workspace, top }))
    }

    /// Whether the folder was taken away since it was opened; one made in its place is another.
    pub(crate) fn is_gone(&self) -> bool {
        let links = self.held.get().and_then(|held| rustix::fs::fstat(&held.workspace).ok());
        links.is_some_and(|stat| stat.st_nlink == 0)
    }

    /// The workspace's folder as it is held open, for who hands it on.
    pub fn handle(&self) -> io::Result<OwnedFd> {
        match self.held()?.workspace.try_clone() {
            Ok(_) if self.is_gone() => Err(io::Error::other(GONE)),
            handle => handle,
        }
    }

    fn open(&self, path: &Path, flags: OFlags, mode: Mode) -> io::Result<OwnedFd> {
        let held = self.held()?;
        let (from, rest) = match path.strip_prefix(&self.folder) {
            Ok(rest) => (&held.workspace, rest),
            Err(_) => (&held.top, below(path, Path::new("/"))),
        };
        let rest = if rest.as_os_str().is_empty() { Path::new(".") } else { rest };
        Ok(open_beneath(from.as_fd(), rest, flags, mode)?)
    }

    /// What is at `path`, without opening it.
    pub(crate) fn probe(&self, path: &Path) -> io::Result<Metadata> {
        File::from(self.open(path, PROBE, Mode::empty())?).metadata()
    }

    /// The same, of the link itself if `path` is one.
    pub(crate) fn probe_link(&self, path: &Path) -> io::Result<Metadata> {
        match self.open(path, PROBE | OFlags::NOFOLLOW, Mode::empty()) {
            Ok(file) => File::from(file).metadata(),
            Err(error) => Err(error),
        }
    }

    /// What changes when the file or folder at `path` does. A link is followed: nothing but this is learnt of it.
    pub(crate) fn stamp(&self, path: &Path) -> Option<Stamp> {
        let rest = path.strip_prefix(&self.folder).ok()?;
        let rest = if rest.as_os_str().is_empty() { Path::new(".") } else { rest };
        let stat = rustix::fs::statat(&self.held().ok()?.workspace, rest, AtFlags::empty()).ok()?;
        let number = |seconds: i128, nanos: i128| seconds * 1_000_000_000 + nanos;
        Some(Stamp {
            inode: stat.st_ino.into(),
            bytes: stat.st_size.into(),
            written_ns: number(stat.st_mtime.into(), stat.st_mtime_nsec.into()),
            changed_ns: number(stat.st_ctime.into(), stat.st_ctime_nsec.into()),
        })
    }

    /// Opens the regular file at `path` for reading.
    pub(crate) fn read(&self, path: &Path) -> io::Result<(File, Metadata)> {
        let file = File::from(self.open(path, READ, Mode::empty())?);
        let meta = file.metadata()?;
        match meta.is_file() {
            true => Ok((file, meta)),
            false => Err(io::Error::other("it is no regular file")),
        }
    }

    /// The names in the folder at `path`, in no order.
    pub(crate) fn names(&self, path: &Path) -> io::Result<impl Iterator<Item = std::ffi::OsString> + use<>> {
        let folder = self.open(path, READ | OFlags::DIRECTORY, Mode::empty())?;
        let entries = Dir::new(folder)?.filter_map(Result::ok);
        let names = entries.map(|entry| OsStr::from_bytes(entry.file_name().to_bytes()).to_owned());
        Ok(names.filter(|name| name != "." && name != ".."))
    }

    /// Writes the file whole or not at all, on disk before it bears its name, and makes the folders above it. It is a
    /// new file always: another name of the old one keeps the old content. `mode` is what it gets; if none is given,
    /// that of the file it replaces, whose owner stays where permitted.
    pub(crate) fn write(&self, path: &Path, bytes: &[u8], mode: Option<u32>) -> io::Result<()> {
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(Errno::ISDIR.into());
        };
        if self.is_gone() && path.starts_with(&self.folder) {
            return Err(io::Error::other(GONE));
        }
        let folder = self.make_folders(folder)?;
        let before = replaceable(folder.as_fd(), name)?;
        let kept = mode.or(before.as_ref().map(|before| before.st_mode & 0o7777));
        let mut draft = Draft::new(folder.as_fd(), Mode::from_raw_mode(kept.unwrap_or(0o666)))?;
        draft.file.write_all(bytes)?;
        if let Some(before) = before {
            // Only the superuser may give a file away; for all others the owner is the same already, or cannot be.
            _ = std::os::unix::fs::fchown(&draft.file, Some(before.st_uid), Some(before.st_gid));
        }
        if let Some(kept) = kept {
            // After the owner (changing that clears set-id bits), and again: the first time, the umask took its share.
            rustix::fs::fchmod(&draft.file, Mode::from_raw_mode(kept))?;
        }
        draft.file.sync_all()?;
        draft.becomes(name)
    }

    /// The folder at `path`, made if need be with those above it.
    fn make_folders(&self, path: &Path) -> io::Result<OwnedFd> {
        let mut lacking = Vec::new();
        let mut at = path;
        let mut folder = loop {
            match (self.open(at, FOLDER, Mode::empty()), at.parent(), at.file_name()) {
                (Err(error), Some(parent), Some(name)) if error.kind() == io::ErrorKind::NotFound => {
                    lacking.push(name);
                    at = parent;
                }
                (opened, ..) => break opened?,
            }
        };
        for name in lacking.into_iter().rev() {
            match rustix::fs::mkdirat(&folder, name, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            folder = open_beneath(folder.as_fd(), Path::new(name), FOLDER, Mode::empty())?;
        }
        Ok(folder)
    }

    /// Takes the file away that is at `path`.
    pub(crate) fn remove(&self, path: &Path) -> io::Result<()> {
        self.unlink(path, AtFlags::empty())
    }

    /// Takes the folder away that is at `path`, if it is empty.
    pub(crate) fn remove_folder(&self, path: &Path) -> io::Result<()> {
        self.unlink(path, AtFlags::REMOVEDIR)
    }

    fn unlink(&self, path: &Path, flags: AtFlags) -> io::Result<()> {
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(Errno::BUSY.into());
        };
        let folder = self.open(folder, FOLDER, Mode::empty())?;
        Ok(rustix::fs::unlinkat(folder, name, flags)?)
    }
}

/// A file in the making, in the folder it will stand in; gone if it never gets its name.
struct Draft<'a> {
    folder: BorrowedFd<'a>,
    name: String,
    file: File,
    named: bool,
}

impl<'a> Draft<'a> {
    fn new(folder: BorrowedFd<'a>, mode: Mode) -> io::Result<Draft<'a>> {
        for _ in 0..MAX_TRIES {
            let name = format!(".windlass-{:016x}", chance());
            match openat(folder, &name, NEW | OFlags::NOFOLLOW | OFlags::CLOEXEC, mode) {
                Ok(file) => return Ok(Draft { folder, name, file: file.into(), named: false }),
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(Errno::EXIST.into())
    }

    fn becomes(mut self, name: &OsStr) -> io::Result<()> {
        rustix::fs::renameat(self.folder, &self.name, self.folder, name)?;
        self.named = true;
        Ok(())
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        if !self.named {
            _ = rustix::fs::unlinkat(self.folder, &self.name, AtFlags::empty());
        }
    }
}

/// A number nobody can foresee: the standard library seeds its hash tables with it.
fn chance() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish()
}

/// What a new file called `name` would take the place of; refused unless it is a regular file.
fn replaceable(folder: BorrowedFd<'_>, name: &OsStr) -> io::Result<Option<rustix::fs::Stat>> {
    let stat = match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => stat,
        Err(Errno::NOENT) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok(Some(stat)),
        FileType::Directory => Err(Errno::ISDIR.into()),
        FileType::Symlink => Err(Errno::LOOP.into()),
        _ => Err(io::Error::other("a device, pipe or socket has that name")),
    }
}

/// Whether a link stood in the way.
pub(crate) fn is_link(error: &io::Error) -> bool {
    Errno::from_io_error(error) == Some(Errno::LOOP)
}

fn below<'a>(path: &'a Path, top: &Path) -> &'a Path {
    path.strip_prefix(top).unwrap_or(path)
}

/// Opens `path`, relative, without following any link on it; the system sees to it in one call where it can.
fn open_beneath(from: BorrowedFd<'_>, path: &Path, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{ResolveFlags, openat2};
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        match openat2(from, path, flags | OFlags::CLOEXEC, mode, resolve) {
            // An old kernel, or a filter that does not know the call; and where others rename on the way, it may give up.
            Err(Errno::NOSYS | Errno::PERM | Errno::AGAIN) => {}
            other => return other,
        }
    }
    open_by_steps(from, path, flags, mode)
}

/// The same, folder by folder.
fn open_by_steps(from: BorrowedFd<'_>, path: &Path, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
    let mut held: Option<OwnedFd> = None;
    let mut parts = path.components().peekable();
    while let Some(part) = parts.next() {
        let name = match part {
            Component::Normal(name) => name,
            Component::CurDir => OsStr::new("."),
            _ => return Err(Errno::XDEV),
        };
        let folder = held.as_ref().map_or(from, AsFd::as_fd);
        let last = parts.peek().is_none();
        let is_link = || match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => FileType::from_raw_mode(stat.st_mode) == FileType::Symlink,
            Err(_) => false,
        };
        let step = if last { flags } else { FOLDER };
        let opened = match openat(folder, name, step | OFlags::NOFOLLOW | OFlags::CLOEXEC, mode) {
            // A link asked for as a folder is told of as no folder.
            Err(Errno::NOTDIR) if is_link() => return Err(Errno::LOOP),
            // A handle that only tells of a file can be had of a link, too; it is given to who asked for that.
            Ok(_) if last && step.contains(PROBE) && !flags.contains(OFlags::NOFOLLOW) && is_link() => {
                return Err(Errno::LOOP);
            }
            opened => opened?,
        };
        held = Some(opened);
    }
    held.ok_or(Errno::INVAL)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
    use std::sync::atomic::{AtomicBool, Ordering};

    /// Reads before a plain one must have been led astray.
    const MOST: usize = 1_000_000;

    struct Ground {
        _folder: tempfile::TempDir,
        work: PathBuf,
        root: Root,
    }

    /// `work/a.txt`, `work/sub/b.txt`, and `outside/secret` beside them.
    fn ground() -> Ground {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        fs::create_dir_all(top.join("work/sub")).unwrap();
        fs::create_dir(top.join("outside")).unwrap();
        fs::write(top.join("work/a.txt"), "a").unwrap();
        fs::write(top.join("work/sub/b.txt"), "b").unwrap();
        fs::write(top.join("outside/secret"), "secret").unwrap();
        let work = top.join("work");
        Ground { _folder: folder, root: Root::new(&work), work }
    }

    fn code<T>(result: io::Result<T>) -> Option<Errno> {
        result.err().as_ref().and_then(Errno::from_io_error)
    }

    #[test]
    fn no_link_is_followed_wherever_it_stands() {
        let ground = ground();
        let at = |name: &str| ground.work.join(name);
        symlink("a.txt", at("link")).unwrap();
        symlink("sub", at("folder")).unwrap();
        symlink("../outside", at("out")).unwrap();
        for name in ["link", "folder", "folder/b.txt", "out/secret", "out"] {
            assert_eq!(code(ground.root.read(&at(name))), Some(Errno::LOOP), "{name}");
            assert_eq!(code(ground.root.probe(&at(name))), Some(Errno::LOOP), "{name}");
            assert_eq!(code(ground.root.write(&at(name).join("x"), b"", None)), Some(Errno::LOOP), "{name}");
        }
        assert!(ground.root.probe_link(&at("link")).unwrap().is_symlink());
        assert!(ground.root.read(&at("sub/b.txt")).is_ok() && ground.root.probe(&at("sub")).unwrap().is_dir());
        assert_eq!(code(ground.root.read(Path::new("/proc/self/root/etc"))), Some(Errno::LOOP));
    }

    #[test]
    fn step_by_step_comes_to_the_same() {
        let ground = ground();
        symlink("a.txt", ground.work.join("link")).unwrap();
        symlink("sub", ground.work.join("folder")).unwrap();
        let from = fs::File::open(&ground.work).unwrap();
        let open = |path: &str, flags| open_by_steps(from.as_fd(), Path::new(path), flags, Mode::empty());
        for (path, flags, expected) in [
            ("a.txt", READ, None),
            ("./sub/b.txt", READ, None),
            (".", FOLDER, None),
            ("link", READ, Some(Errno::LOOP)),
            ("link", PROBE, Some(Errno::LOOP)),
            ("link", PROBE | OFlags::NOFOLLOW, None),
            ("folder", FOLDER, Some(Errno::LOOP)),
            ("folder/b.txt", READ, Some(Errno::LOOP)),
            ("a.txt/b", READ, Some(Errno::NOTDIR)),
            ("gone", READ, Some(Errno::NOENT)),
            ("../outside/secret", READ, Some(Errno::XDEV)),
            ("/etc/hostname", READ, Some(Errno::XDEV)),
        ] {
            let here = open(path, flags).err();
            assert_eq!(here, expected, "{path}");
            let there = open_beneath(from.as_fd(), Path::new(path), flags, Mode::empty()).err();
            assert_eq!(there, expected, "{path} at once");
        }
    }

    #[test]
    fn a_file_replaced_keeps_its_mode_and_leaves_its_other_names_alone() {
        let ground = ground();
        let (path, other) = (ground.work.join("a.txt"), ground.work.join("../outside/other"));
        fs::hard_link(&path, &other).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o751)).unwrap();
        ground.root.write(&path, b"new", None).unwrap();
        assert_eq!((fs::read(&path).unwrap(), fs::read(&other).unwrap()), (b"new".to_vec(), b"a".to_vec()));
        let meta = fs::metadata(&path).unwrap();
        assert_eq!((meta.mode() & 0o7777, meta.nlink()), (0o751, 1));
        assert_eq!(fs::read_dir(&ground.work).unwrap().count(), 2, "no draft is left");
    }

    #[test]
    fn a_workspace_that_was_replaced_is_not_mistaken_for_the_new_one() {
        let ground = ground();
        let path = ground.work.join("a.txt");
        ground.root.probe(&path).unwrap();
        fs::remove_dir_all(&ground.work).unwrap();
        fs::create_dir(&ground.work).unwrap();
        assert!(ground.root.is_gone());
        assert_eq!(ground.root.write(&path, b"x", None).unwrap_err().to_string(), GONE);
        assert!(!path.exists());
    }

    #[test]
    fn a_write_that_fails_leaves_nothing_behind() {
        let ground = ground();
        rustix::fs::mkfifoat(CWD, ground.work.join("pipe"), Mode::from_raw_mode(0o600)).unwrap();
        let error = |name: &str| ground.root.write(&ground.work.join(name), b"x", None).unwrap_err().to_string();
        assert_eq!(error("pipe"), "a device, pipe or socket has that name");
        assert!(error("sub").starts_with("Is a directory"), "{}", error("sub"));
        assert!(error("a.txt/below").starts_with("Not a directory"));
        assert!(error(&"x".repeat(300)).starts_with("File name too long"));
        assert_eq!(fs::read_dir(&ground.work).unwrap().count(), 3);
    }

    #[test]
    fn new_folders_and_files_have_ordinary_modes() {
        let ground = ground();
        ground.root.write(&ground.work.join("deep/er/new"), b"x", None).unwrap();
        fs::write(ground.work.join("plain"), "x").unwrap();
        let mode = |name: &str| fs::metadata(ground.work.join(name)).unwrap().mode();
        assert_eq!((mode("deep/er/new"), mode("deep")), (mode("plain"), mode("sub")));
    }

    /// Swaps a file and a link to what lies outside, as fast as it can, while `act` goes on.
    fn while_swapped(ground: &Ground, act: impl FnOnce(&Path)) {
        let (draft, swapped) = (ground.work.join("draft"), ground.work.join("swapped"));
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    fs::write(&draft, "apple").unwrap();
                    fs::rename(&draft, &swapped).unwrap();
                    symlink("../outside/secret", &draft).unwrap();
                    fs::rename(&draft, &swapped).unwrap();
                }
            });
            // Also when it panics: else the test would wait for ever.
            let _end = Ends(&stop);
            act(&swapped);
        });
    }

    struct Ends<'a>(&'a AtomicBool);

    impl Drop for Ends<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_path_swapped_for_a_link_as_it_is_opened_gives_the_file_or_nothing() {
        let ground = ground();
        while_swapped(&ground, |path| {
            let plainly = (0..MOST).find(|_| fs::read(path).is_ok_and(|bytes| bytes == b"secret"));
            assert!(plainly.is_some(), "a plain read is led astray");
            let (mut read, mut refused) = (0, 0);
            while read < 500 || refused < 500 {
                match ground.root.read(path).map(|(file, _)| io::read_to_string(file).unwrap()) {
                    Ok(text) => read += usize::from(["apple", ""].contains(&&text[..]) || panic!("{text}")),
                    Err(error) => refused += usize::from(is_link(&error) || error.kind() == io::ErrorKind::NotFound),
                }
            }
            for _ in 0..500 {
                _ = ground.root.write(path, b"overwritten", None);
            }
        });
        assert_eq!(fs::read(ground.work.join("../outside/secret")).unwrap(), b"secret");
    }
}
