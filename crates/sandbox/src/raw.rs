//! The few system calls that have no safe form: forks, flags of mounts, blocked signals, the loopback interface.

#![allow(unsafe_code)]

use rustix::process::Pid;
use std::ffi::CString;
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Which side of a fork this is.
pub(crate) enum Side {
    Parent(Pid),
    Child,
}

/// Forks; `namespaces` are the `CLONE_NEW…` flags of what the child has for itself, 0 for a plain child. The process
/// must have one thread.
pub(crate) fn fork(namespaces: i32) -> io::Result<Side> {
    let flags = libc::c_long::from(namespaces | libc::SIGCHLD);
    let none: libc::c_long = 0;
    // SAFETY: without a stack of its own the child goes on here on a copy of this one, as after `fork`; there is no
    // other thread that could hold a lock the child waits for.
    let pid = unsafe { libc::syscall(libc::SYS_clone, flags, none, none, none, none) };
    match pid {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Side::Child),
        pid => i32::try_from(pid).ok().and_then(Pid::from_raw).map(Side::Parent).ok_or_else(io::Error::last_os_error),
    }
}

/// What a flag of a mount is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attributes {
    /// Nothing may be written, and no program gains rights.
    ReadOnly,
    /// The same, for this mount alone and not for those below it.
    ReadOnlyHere,
    /// Nor may a device be opened.
    Closed,
    /// May be written; no program gains rights.
    Writable,
}

/// Sets flags of the mount at `path` below `folder`, or of `folder` itself where `path` is empty.
pub(crate) fn set_attributes(folder: BorrowedFd<'_>, path: &Path, attributes: Attributes) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let (set, clear) = match attributes {
        Attributes::ReadOnly | Attributes::ReadOnlyHere => (libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID, 0),
        Attributes::Closed => (libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV, 0),
        Attributes::Writable => (libc::MOUNT_ATTR_NOSUID, libc::MOUNT_ATTR_RDONLY),
    };
    let mut flags = libc::AT_EMPTY_PATH;
    if attributes != Attributes::ReadOnlyHere {
        flags |= libc::AT_RECURSIVE;
    }
    let wanted = libc::mount_attr { attr_set: set, attr_clr: clear, propagation: 0, userns_fd: 0 };
    // SAFETY: the path ends with NUL and the structure has the size that is told; the kernel only reads both.
    let done = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            folder.as_raw_fd(),
            path.as_ptr(),
            flags,
            &raw const wanted,
            mem::size_of_val(&wanted),
        )
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Brings the loopback interface of this network namespace up.
pub(crate) fn loopback_up() -> io::Result<()> {
    let socket = rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::DGRAM, None)?;
    // SAFETY: the structure is plain data, for which zeros are a value.
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
        *to = *from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: this request reads a structure of exactly this type.
    let done = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS as _, &raw const request) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Takes over a descriptor that was inherited under this number and is used by nothing else here.
pub(crate) fn inherited(number: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: only looks whether the descriptor is open.
    if unsafe { libc::fcntl(number, libc::F_GETFD) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it is open, and this process was started with it for this one use.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Has every descriptor from `first` on closed by the next program that is started.
pub(crate) fn close_on_exec_from(first: u32) -> io::Result<()> {
    // SAFETY: only sets a flag of descriptors, whoever owns them.
    let done = unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Has the next program inherit the descriptor `from` under the number `to`, in place of what was open there.
pub(crate) fn give(from: RawFd, to: RawFd) -> io::Result<()> {
    // SAFETY: only called in a fresh child right before its `exec`, where nothing else uses that number.
    if unsafe { libc::dup2(from, to) } == to { Ok(()) } else { Err(io::Error::last_os_error()) }
}
