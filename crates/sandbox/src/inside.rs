//! The last steps on the inner side of every wall: limits, rights, refused system calls, a look whether it holds, and
//! the program itself.

use crate::filter::{self, Sockets};
use crate::plan::{Plan, Reach};
use crate::raw;
use crate::settings::{Kind, Limits};
use rustix::fs::{Mode, OFlags, StatVfsMountFlags, statvfs};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{
    CapabilitySet, CapabilitySets, UnshareFlags, capabilities, clear_ambient_capability_set, no_new_privs,
    remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
};
use std::ffi::OsString;
use std::fs;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// What is left of root's rights: those over files that may be written anyway, and over its own processes.
const KEPT: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::NET_BIND_SERVICE);

/// Takes from this process what it must not have; `own_rights` says whether root's are its own and no namespace's.
pub(crate) fn harden(plan: &Plan, own_rights: bool) -> Result<(), String> {
    set_limits(&plan.limits)?;
    drop_rights(own_rights).map_err(|error| format!("rights could not be given up: {error}"))?;
    raw::close_on_exec_from(3).map_err(|error| format!("open files could not be closed: {error}"))?;
    let sockets = match (plan.kind, &plan.reach) {
        (Kind::Landlock, Reach::Everything) => Sockets::Network,
        (Kind::Landlock, _) => Sockets::None,
        _ => Sockets::Usual,
    };
    filter::apply(sockets)
}

fn set_limits(limits: &Limits) -> Result<(), String> {
    let wanted = [
        (Resource::Nproc, Some(limits.processes)),
        (Resource::Nofile, Some(limits.open_files)),
        (Resource::Fsize, Some(limits.file_bytes)),
        (Resource::As, limits.memory_bytes),
        (Resource::Core, Some(0)),
    ];
    for (resource, most) in wanted.into_iter().filter_map(|(resource, most)| Some((resource, most?))) {
        // A limit that is lower already stays.
        let most = getrlimit(resource).maximum.map_or(most, |now| now.min(most));
        let limit = Rlimit { current: Some(most), maximum: Some(most) };
        setrlimit(resource, limit)
            .map_err(|error| format!("the limit {resource:?} could not be set to {most}: {error}"))?;
    }
    Ok(())
}

fn drop_rights(own_rights: bool) -> Result<(), Errno> {
    set_no_new_privs(true)?;
    let kept = if own_rights { KEPT } else { CapabilitySet::empty() };
    clear_ambient_capability_set()?;
    let now = capabilities(None)?;
    if now.effective.contains(CapabilitySet::SETPCAP) {
        for right in CapabilitySet::all().difference(kept).iter() {
            match remove_capability_from_bounding_set(right) {
                // The kernel does not know it.
                Ok(()) | Err(Errno::INVAL) => {}
                Err(error) => return Err(error),
            }
        }
    }
    let kept = now.permitted.intersection(kept);
    set_capabilities(None, CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() })
}

/// Tries the wall from within, in some microseconds: whatever starts has been tried.
pub(crate) fn check(plan: &Plan) -> Result<(), String> {
    let holds =
        |what: &str, holds: bool| if holds { Ok(()) } else { Err(format!("the sandbox does not hold: {what}")) };
    let rights = capabilities(None).map_err(|error| error.to_string())?;
    holds("it leaves rights to gain more rights", no_new_privs().is_ok_and(|set| set))?;
    holds("it leaves rights over the system", !rights.effective.contains(CapabilitySet::SYS_ADMIN))?;
    #[allow(deprecated)]
    let unshared = rustix::thread::unshare(UnshareFlags::NEWUSER);
    holds("it lets namespaces be made", unshared == Err(Errno::PERM))?;
    if plan.kind.is_full() {
        let root = statvfs("/").map_err(|error| error.to_string())?;
        holds("/ may be written", root.f_flag.contains(StatVfsMountFlags::RDONLY))?;
        holds("other processes can be seen", std::process::id() < 100)?;
        if plan.reach != Reach::Everything {
            let interfaces = fs::read_to_string("/proc/net/dev").unwrap_or_default();
            let only_loopback = interfaces.lines().skip(2).all(|line| line.trim_start().starts_with("lo:"));
            holds("the network can be reached", only_loopback)?;
        }
    } else {
        let nameless = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
        let written = rustix::fs::open("/", nameless, Mode::RUSR);
        holds("/ may be written", written.is_err())?;
        if plan.reach != Reach::Everything {
            let socket = rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::STREAM, None);
            holds("the network can be reached", socket.is_err_and(|error| error == Errno::PERM))?;
        }
    }
    Ok(())
}

/// Becomes the program; returns only to say why it could not.
pub(crate) fn become_program(plan: &Plan, command: &[OsString]) -> String {
    let Some((program, arguments)) = command.split_first() else { return "no program was given".into() };
    let error = Command::new(program).args(arguments).current_dir(&plan.cwd).exec();
    format!("{}: {error}", program.display())
}
