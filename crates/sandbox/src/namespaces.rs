//! The wall of our own: a process that is the first in namespaces of its own, and takes all others with it.

use crate::guarded::Guarded;
use crate::keeper::{Report, Told};
use crate::plan::{Plan, Reach};
use crate::{inside, mounts, raw, relay};
use rustix::process::{Pid, Signal, WaitOptions, getegid, geteuid, set_parent_process_death_signal, setsid, wait};
use rustix::thread::{CapabilitySet, capabilities};
use std::ffi::OsString;
use std::fs;
use std::os::unix::net::UnixStream;

/// Whether this process may make namespaces by a right of its own, and needs no user namespace for it.
pub(crate) fn has_own_rights() -> bool {
    capabilities(None).is_ok_and(|now| now.effective.contains(CapabilitySet::SYS_ADMIN))
}

/// Starts the first process of the new namespaces; it reports how the program ended through `report`.
pub(crate) fn start(
    plan: &Plan,
    guarded: &Guarded,
    command: &[OsString],
    proxy: Option<UnixStream>,
    report: Report,
) -> Result<Pid, String> {
    let own_rights = has_own_rights();
    let mut flags = libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_NEWIPC;
    if plan.reach != Reach::Everything {
        flags |= libc::CLONE_NEWNET;
    }
    if !own_rights {
        flags |= libc::CLONE_NEWUSER;
    }
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    match raw::fork(flags).map_err(|error| format!("no namespaces can be made: {error}"))? {
        raw::Side::Parent(first) => Ok(first),
        raw::Side::Child => {
            let told = match set_up(plan, guarded, proxy, (!own_rights).then_some((user, group))) {
                Ok(()) if plan.trial => Told::Ended(0),
                Ok(()) => first_process(plan, command),
                Err(why) => Told::Failed(why),
            };
            report.send(&told);
            std::process::exit(0);
        }
    }
}

fn set_up(plan: &Plan, guarded: &Guarded, proxy: Option<UnixStream>, mapped: Option<(u32, u32)>) -> Result<(), String> {
    // A new session: no terminal to read from or type into.
    setsid().map_err(|error| error.to_string())?;
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(|error| error.to_string())?;
    if let Some((user, group)) = mapped {
        let map = |file: &str, line: &str| fs::write(file, line).map_err(|error| format!("{file}: {error}"));
        map("/proc/self/setgroups", "deny")?;
        map("/proc/self/uid_map", &format!("{user} {user} 1"))?;
        map("/proc/self/gid_map", &format!("{group} {group} 1"))?;
    }
    mounts::build(plan, guarded, user_is_root())?;
    if plan.reach != Reach::Everything {
        raw::loopback_up().map_err(|error| format!("the loopback interface did not come up: {error}"))?;
    }
    if let Some(proxy) = proxy {
        relay::hand_over(&proxy)?;
    }
    inside::harden(plan, mapped.is_none())?;
    inside::check(plan)
}

fn user_is_root() -> bool {
    geteuid().is_root()
}

/// Starts the program, and waits until it has ended; orphans come to this process and are buried.
fn first_process(plan: &Plan, command: &[OsString]) -> Told {
    let program = match raw::fork(0) {
        Err(error) => return Told::Failed(format!("no process could be made: {error}")),
        Ok(raw::Side::Child) => {
            eprintln!("windlass: {}", inside::become_program(plan, command));
            std::process::exit(crate::keeper::NOT_FOUND);
        }
        Ok(raw::Side::Parent(program)) => program,
    };
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == program => return Told::Ended(status.as_raw()),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Told::Failed(format!("the program's end could not be awaited: {error}")),
        }
    }
}
