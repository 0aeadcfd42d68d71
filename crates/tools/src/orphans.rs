//! What a crash left running: found by the mark of its call, and ended.

use crate::process::{KILL_WAIT, LOOK_EVERY, MARK, Stat, mark, processes, stat};
use std::collections::BTreeSet;
use std::fs;
use std::time::Instant;
use windlass_kernel::{CallId, Process, SessionId};

/// Kills what still runs of a call: the recorded process with its group, if its number was not given to another
/// since, and every process that bears the call's mark. Says how many there were; they are gone on return. Blocks for
/// half a second at most. Where there is no `/proc` (outside Linux), nothing can be told apart, so nothing is killed.
pub fn kill_leftovers(session: SessionId, call: &CallId, process: Option<Process>) -> usize {
    let mark = format!("{MARK}={}", mark(session, call)).into_bytes();
    let group = process.filter(is_still).map(|process| process.pid);
    let mut killed = BTreeSet::new();
    let until = Instant::now() + KILL_WAIT;
    // Again until none is left: a process may have forked between the look and the kill.
    loop {
        let left = leftovers(&mark, group);
        if left.is_empty() {
            return killed.len();
        }
        for process in left {
            if killed.insert((process.pid, process.started)) {
                kill(&process);
            }
        }
        if Instant::now() > until {
            return killed.len();
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

fn is_still(process: &Process) -> bool {
    stat(process.pid).is_some_and(|stat| stat.started == process.started)
}

fn leftovers(mark: &[u8], group: Option<u32>) -> Vec<Stat> {
    let this = std::process::id();
    processes()
        .filter(|process| process.alive && process.pid != this)
        .filter(|process| Some(process.group) == group || bears(process.pid, mark))
        .collect()
}

fn bears(pid: u32, mark: &[u8]) -> bool {
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|variable| variable == mark)
}

/// Kills exactly this process: held by a descriptor, its number cannot be given to another meanwhile.
#[cfg(target_os = "linux")]
fn kill(process: &Stat) {
    use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};
    let Some(pid) = i32::try_from(process.pid).ok().and_then(Pid::from_raw) else { return };
    let held = pidfd_open(pid, PidfdFlags::empty());
    if stat(process.pid).is_none_or(|now| now.started != process.started) {
        return;
    }
    _ = match held {
        Ok(held) => pidfd_send_signal(held, Signal::KILL),
        // Kernels before 5.3 have no such descriptors.
        Err(_) => kill_process(pid, Signal::KILL),
    };
}

#[cfg(not(target_os = "linux"))]
fn kill(_process: &Stat) {}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::process::record;
    use crate::stage::Stage;
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command};

    fn sleeper(marked: Option<&str>) -> Child {
        let mut command = Command::new("sleep");
        command.arg("300").process_group(0);
        if let Some(mark) = marked {
            command.env(MARK, mark);
        }
        command.spawn().unwrap()
    }

    fn alive(child: &Child) -> bool {
        stat(child.id()).is_some_and(|stat| stat.alive)
    }

    #[test]
    fn what_bears_the_mark_of_the_call_is_killed_and_nothing_else() {
        let stage = Stage::new();
        let session = stage.workspace.session;
        let (mine, other) = (mark(session, &"call_1".into()), mark(session, &"call_10".into()));
        let (mut first, mut second) = (sleeper(Some(&mine)), sleeper(Some(&mine)));
        let (mut third, mut fourth) = (sleeper(Some(&other)), sleeper(None));
        assert_eq!(kill_leftovers(session, &"call_1".into(), None), 2);
        assert_eq!([&first, &second, &third, &fourth].map(alive), [false, false, true, true]);
        assert_eq!(kill_leftovers(session, &"call_1".into(), None), 0);
        for child in [&mut first, &mut second, &mut third, &mut fourth] {
            _ = child.kill();
            child.wait().unwrap();
        }
    }

    #[test]
    fn the_recorded_process_is_killed_only_while_it_is_the_same() {
        let stage = Stage::new();
        let (session, call) = (stage.workspace.session, CallId::from("call_1"));
        let mut child = sleeper(None);
        let process = record(child.id());
        let reused = Process { started: process.started + 1, ..process };
        assert_eq!(kill_leftovers(session, &call, Some(reused)), 0);
        assert!(alive(&child));
        assert_eq!(kill_leftovers(session, &call, Some(process)), 1);
        assert!(!alive(&child));
        child.wait().unwrap();
    }
}
