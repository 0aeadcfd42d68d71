//! The file system as it looks behind a wall of our own: read-only, but for what may be written.

use crate::guarded::Guarded;
use crate::plan::{Plan, Reach};
use crate::raw::{Attributes, set_attributes};
use rustix::fs::CWD;
use rustix::io::Errno;
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, mount, mount_change, move_mount, open_tree,
};
use std::collections::BTreeSet;
use std::ffi::CStr;
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// Folders in which others leave sockets and files: each call has its own in their place.
pub(crate) const OWN_FOLDERS: [&str; 2] = ["/tmp", "/run"];
/// Devices that do no harm.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
/// What is shown of `/run`: programs of systems that keep them there, and how names are resolved.
pub(crate) const OF_RUN: [&str; 3] = ["/run/current-system", "/run/booted-system", "/run/opengl-driver"];
pub(crate) const RESOLVERS: [&str; 3] = ["/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager"];
/// Knobs of the whole machine, which root may turn without any right.
pub(crate) const KNOBS: [&str; 7] =
    ["/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs", "/proc/acpi", "/proc/scsi"];
/// What tells of the whole machine.
const TELLTALES: [&str; 5] = ["/proc/kcore", "/proc/keys", "/proc/kmsg", "/proc/timer_list", "/proc/sched_debug"];

type Built<T> = Result<T, String>;

/// A tree of mounts taken hold of before something is mounted over it, and where it goes.
struct Held {
    tree: OwnedFd,
    target: PathBuf,
}

/// Builds the view. This process must be the first of its own namespaces for mounts and processes.
pub(crate) fn build(plan: &Plan, guarded: &Guarded, conceal_machine: bool) -> Built<()> {
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", private).map_err(|error| format!("mounts could not be made private: {error}"))?;
    let held = hold(plan)?;
    let null = hold_one(Path::new("/dev/null"), Attributes::Closed)?;
    let devices: Vec<Held> = DEVICES.iter().filter_map(|name| clone(&Path::new("/dev").join(name)).ok()).collect();
    let temp = clone(&plan.temp)?;
    set_attributes(CWD, Path::new("/"), Attributes::ReadOnly).map_err(|error| cannot("make read-only", "/", &error))?;
    proc(conceal_machine, &null)?;
    device_folder(devices)?;
    own_folders(plan, temp, &held)?;
    for Held { tree, target } in &held {
        put(tree, target)?;
    }
    guard(guarded)?;
    for path in &plan.unreadable {
        conceal(path, &null)?;
    }
    Ok(())
}

fn cannot(what: &str, path: impl AsRef<Path>, error: &dyn std::fmt::Display) -> String {
    format!("could not {what} {}: {error}", path.as_ref().display())
}

fn clone(path: &Path) -> Built<Held> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE
        | OpenTreeFlags::AT_SYMLINK_NOFOLLOW;
    let tree = open_tree(CWD, path, flags).map_err(|error| cannot("take hold of", path, &error))?;
    Ok(Held { tree, target: path.to_owned() })
}

fn hold_one(path: &Path, attributes: Attributes) -> Built<Held> {
    let held = clone(path)?;
    set_attributes(held.tree.as_fd(), Path::new(""), attributes).map_err(|error| cannot("set", path, &error))?;
    Ok(held)
}

fn put(tree: &OwnedFd, target: &Path) -> Built<()> {
    let done = move_mount(tree, "", CWD, target, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH);
    done.map_err(|error| cannot("mount", target, &error))
}

/// What may be written, and what of `/tmp` and `/run` is shown all the same; outer ones first.
fn hold(plan: &Plan) -> Built<Vec<Held>> {
    let scratch = plan.temp.parent().into_iter().filter(|path| in_own_folder(path));
    let mut shown: BTreeSet<(PathBuf, bool)> = scratch.map(|path| (path.to_owned(), false)).collect();
    let resolvers = RESOLVERS.iter().filter(|_| plan.reach == Reach::Everything);
    shown.extend(
        OF_RUN.iter().chain(resolvers).map(PathBuf::from).filter(|path| path.is_dir()).map(|path| (path, false)),
    );
    shown.extend(plan.roots().map(|path| (path.clone(), true)));
    shown
        .into_iter()
        .map(|(path, writable)| hold_one(&path, if writable { Attributes::Writable } else { Attributes::ReadOnly }))
        .collect()
}

fn in_own_folder(path: &Path) -> bool {
    OWN_FOLDERS.iter().any(|own| path.starts_with(own))
}

fn file_system(kind: &str, target: &str, flags: MountFlags, options: &CStr) -> Built<()> {
    mount(kind, target, kind, flags, options).map_err(|error| cannot("mount", target, &error))
}

const PLAIN: MountFlags = MountFlags::NOSUID.union(MountFlags::NODEV);

/// `/proc` with this call's processes only.
fn proc(conceal_machine: bool, null: &Held) -> Built<()> {
    file_system("proc", "/proc", PLAIN.union(MountFlags::NOEXEC), c"")?;
    if !conceal_machine {
        return Ok(());
    }
    for path in KNOBS.iter().map(Path::new).filter(|path| path.exists()) {
        put(&hold_one(path, Attributes::ReadOnly)?.tree, path)?;
    }
    TELLTALES.iter().map(Path::new).filter(|path| path.exists()).try_for_each(|path| conceal(path, null))
}

fn device_folder(devices: Vec<Held>) -> Built<()> {
    file_system("tmpfs", "/dev", MountFlags::NOSUID, c"mode=755,size=64k")?;
    let made = || -> io::Result<()> {
        for folder in ["/dev/shm", "/dev/pts"] {
            fs::create_dir(folder)?;
        }
        for (link, target) in [
            ("/dev/fd", "/proc/self/fd"),
            ("/dev/stdin", "/proc/self/fd/0"),
            ("/dev/stdout", "/proc/self/fd/1"),
            ("/dev/stderr", "/proc/self/fd/2"),
            ("/dev/ptmx", "pts/ptmx"),
        ] {
            symlink(target, link)?;
        }
        devices.iter().try_for_each(|device| fs::write(&device.target, ""))
    };
    made().map_err(|error| cannot("fill", "/dev", &error))?;
    devices.iter().try_for_each(|device| put(&device.tree, &device.target))?;
    file_system("tmpfs", "/dev/shm", PLAIN, c"mode=1777")?;
    file_system(
        "devpts",
        "/dev/pts",
        MountFlags::NOSUID.union(MountFlags::NOEXEC),
        c"newinstance,ptmxmode=0666,mode=620",
    )?;
    set_attributes(CWD, Path::new("/dev"), Attributes::ReadOnlyHere).map_err(|error| cannot("close", "/dev", &error))
}

/// `/tmp` and `/run` of this call, with places in them for what is shown of the real ones.
fn own_folders(plan: &Plan, temp: Held, held: &[Held]) -> Built<()> {
    for own in OWN_FOLDERS {
        // Who is let write all of it has the real one.
        if plan.roots().any(|root| Path::new(own).starts_with(root)) || !Path::new(own).is_dir() {
            continue;
        }
        match own {
            "/tmp" => put(&temp.tree, Path::new(own))?,
            _ => file_system("tmpfs", own, PLAIN, c"mode=755,size=64k")?,
        }
        let inside: Vec<&Held> = held.iter().filter(|held| held.target.starts_with(own)).collect();
        for Held { tree, target } in &inside {
            place(tree, target).map_err(|error| cannot("make a place for", target, &error))?;
        }
        if own == "/run" {
            set_attributes(CWD, Path::new(own), Attributes::ReadOnlyHere)
                .map_err(|error| cannot("close", own, &error))?;
            continue;
        }
        // What lies around such a place is neither the real thing nor temp: it may not be written.
        let around: BTreeSet<PathBuf> = inside.iter().filter_map(|held| first_below(own, &held.target)).collect();
        for path in around {
            put(&hold_one(&path, Attributes::ReadOnly)?.tree, &path)?;
        }
    }
    Ok(())
}

/// The first folder below `own` on the way to `target`, if it is not the target itself.
fn first_below(own: &str, target: &Path) -> Option<PathBuf> {
    let mut rest = target.strip_prefix(own).ok()?.components();
    let first = Path::new(own).join(rest.next()?);
    rest.next().map(|_| first)
}

fn place(tree: &OwnedFd, target: &Path) -> io::Result<()> {
    let is_folder = rustix::fs::FileType::from_raw_mode(rustix::fs::fstat(tree)?.st_mode).is_dir();
    if is_folder {
        return fs::create_dir_all(target);
    }
    target.parent().map_or(Ok(()), fs::create_dir_all)?;
    fs::OpenOptions::new().append(true).create(true).open(target).map(drop)
}

/// Pins what must stay in its place, and makes read-only what may not be changed.
fn guard(guarded: &Guarded) -> Built<()> {
    for path in &guarded.pinned {
        put(&clone(path)?.tree, path)?;
    }
    for (path, _) in &guarded.fixed {
        put(&hold_one(path, Attributes::ReadOnly)?.tree, path)?;
    }
    Ok(())
}

/// Puts a device that cannot be opened over a file, and an empty folder without rights over a folder.
fn conceal(path: &Path, null: &Held) -> Built<()> {
    let Ok(there) = fs::symlink_metadata(path) else { return Ok(()) };
    if !there.is_dir() {
        let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_EMPTY_PATH;
        let again = open_tree(&null.tree, "", flags).map_err(|error| cannot("conceal", path, &error))?;
        return put(&again, path);
    }
    let flags = PLAIN.union(MountFlags::RDONLY);
    let done = mount("tmpfs", path, "tmpfs", flags, c"mode=000,size=4k");
    done.map_err(|error: Errno| cannot("conceal", path, &error))
}
