//! The keeper: this program, started once more around each command. It puts the wall up, waits, ends everything when
//! the command, its caller or the whole program is gone, and takes away what the wall left behind.

use crate::fence;
use crate::guarded::{self, Guarded};
use crate::placeholder::Placeholder;
use crate::plan::{Plan, Reach};
use crate::settings::Kind;
use crate::snapshot::Snapshot;
use crate::{bubblewrap, inside, namespaces, raw, relay};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, getpid, kill_process, kill_process_group, pidfd_open, set_child_subreaper,
    setsid, wait, waitpid,
};
use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

/// The first argument of a program that is started as a keeper.
pub const KEEPER: &str = "__wall";
/// The first argument of the last step behind bubblewrap's wall.
pub(crate) const INNER: &str = "__wall-inside";
/// Exit code of a keeper that could not put the wall up: nothing ran.
pub(crate) const NO_WALL: i32 = 125;
/// Exit code where the program could not be started.
pub(crate) const NOT_FOUND: i32 = 127;
/// Time that processes asked to end have before they are killed.
const GRACE: Duration = Duration::from_millis(400);
/// Time killed processes have to be gone.
const KILL_WAIT: Duration = Duration::from_secs(5);
/// Bytes of what one side says of itself.
const REPORT_BYTES: u64 = 4 << 10;

/// What became of the program behind the wall.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// The raw status it ended with.
    Ended(i32),
    /// It was not started.
    Failed(String),
}

/// The way from the first process behind the wall to the keeper, and from the keeper to who started it.
pub(crate) struct Report(UnixStream);

impl Report {
    /// Nobody to tell any more is no failure: then nobody waits.
    pub fn send(mut self, told: &Told) {
        _ = match told {
            Told::Ended(status) => self.0.write_all(&status.to_le_bytes()),
            Told::Failed(why) => self.0.write_all(format!("FAIL{why}").as_bytes()),
        };
    }
}

impl From<OwnedFd> for Report {
    fn from(inherited: OwnedFd) -> Report {
        Report(UnixStream::from(inherited))
    }
}

impl AsRawFd for Report {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// None: nothing was said.
fn hear(from: UnixStream) -> Option<Told> {
    let mut said = Vec::new();
    from.take(REPORT_BYTES).read_to_end(&mut said).ok()?;
    match said.strip_prefix(b"FAIL") {
        Some(why) => Some(Told::Failed(String::from_utf8_lossy(why).into_owned())),
        None => said.try_into().ok().map(i32::from_le_bytes).map(Told::Ended),
    }
}

/// Does what a keeper is started for, if the first of `arguments` (without the program's name) says that this process is
/// one; it never returns then. To be called first of all in `main`, while there is only one thread.
pub fn enter(mut arguments: impl Iterator<Item = OsString>) {
    let Some(first) = arguments.next() else { return };
    if first != KEEPER && first != INNER {
        return;
    }
    let plan = arguments.next().and_then(|plan| serde_json::from_slice::<Plan>(plan.as_encoded_bytes()).ok());
    let command: Vec<OsString> = arguments.collect();
    let code = match plan {
        None => refuse("it was started without a plan: this is no command for people"),
        Some(plan) if first == INNER => bubblewrap::inner(&plan, &command),
        Some(plan) => front(&plan, &command),
    };
    std::process::exit(code);
}

pub(crate) fn refuse(why: &str) -> i32 {
    eprintln!("windlass: the sandbox could not be put up, nothing ran: {why}");
    NO_WALL
}

/// The process that the caller knows: it may be killed at any time, and the keeper beside it clears up.
fn front(plan: &Plan, command: &[OsString]) -> i32 {
    let Ok((here, there)) = UnixStream::pair() else { return refuse("no pair of sockets could be made") };
    match raw::fork(0) {
        Err(error) => refuse(&format!("no process could be made: {error}")),
        Ok(raw::Side::Child) => {
            drop(here);
            let told = keep(plan, command, &there).unwrap_or_else(Told::Failed);
            Report(there).send(&told);
            std::process::exit(0);
        }
        Ok(raw::Side::Parent(_)) => {
            drop(there);
            match hear(here) {
                Some(Told::Ended(status)) => end_as(ExitStatus::from_raw(status)),
                Some(Told::Failed(why)) => refuse(&why),
                None => refuse("its keeper was killed"),
            }
        }
    }
}

/// Ends this process as another ended.
fn end_as(status: ExitStatus) -> i32 {
    if let Some(signal) = status.signal().and_then(Signal::from_named_raw) {
        _ = kill_process(getpid(), signal);
    }
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

/// Puts the wall up, runs the command behind it, and leaves nothing.
fn keep(plan: &Plan, command: &[OsString], caller: &UnixStream) -> Result<Told, String> {
    let raw_parent = i32::try_from(plan.parent).ok().and_then(Pid::from_raw).ok_or("the plan names no parent")?;
    let parent = pidfd_open(raw_parent, PidfdFlags::empty()).map_err(|error| format!("the caller is gone: {error}"))?;
    setsid().map_err(|error| error.to_string())?;
    set_child_subreaper(Some(getpid())).map_err(|error| error.to_string())?;
    std::fs::create_dir_all(&plan.temp).map_err(|error| format!("{}: {error}", plan.temp.display()))?;
    let proxy = match &plan.reach {
        Reach::Proxy(name) => Some(relay::reach(name)?),
        _ => None,
    };
    let mut guarded = guarded::look(plan);
    let (placeholders, snapshot) = match plan.kind.is_full() {
        true => (stand_in(&guarded)?, Snapshot::take(guarded.watched.clone())),
        false => (vec![], Snapshot::take(all_of(&mut guarded))),
    };
    let snapshot = snapshot.map_err(|error| error.to_string())?;
    let (report, hearing) = UnixStream::pair().map_err(|error| error.to_string())?;
    let outside = proxy.as_ref().and_then(|proxy| proxy.try_clone().ok());
    let first = match plan.kind {
        Kind::Namespaces => namespaces::start(plan, &guarded, command, outside, Report(report))?,
        Kind::Bubblewrap => bubblewrap::start(plan, &guarded, command, outside, Report(report))?,
        Kind::Landlock => fence::start(plan, command, Report(report))?,
    };
    let status = attend(first, &parent, caller);
    end_rest();
    let told = hear(hearing).unwrap_or(Told::Ended(status));
    for path in snapshot.restore() {
        eprintln!("windlass: {} is protected by the sandbox: what the command did to it was undone", path.display());
    }
    drop(placeholders);
    Ok(told)
}

fn stand_in(guarded: &Guarded) -> Result<Vec<Placeholder>, String> {
    let mut held = Vec::new();
    for (path, shape) in &guarded.fixed {
        let placeholder = Placeholder::hold(path, *shape);
        held.extend(placeholder.map_err(|error| format!("{} can't be protected: {error}", path.display()))?);
    }
    Ok(held)
}

/// Everything that is guarded, for a look afterwards.
fn all_of(guarded: &mut Guarded) -> Vec<std::path::PathBuf> {
    let fixed = guarded.fixed.drain(..).map(|(path, _)| path);
    fixed.chain(guarded.watched.drain(..)).collect()
}

/// Waits for `first`; ends it when the caller is gone (asked first), or the whole program (killed at once). Gives its raw
/// status.
fn attend(first: Pid, parent: &OwnedFd, caller: &UnixStream) -> i32 {
    let Ok(ended) = pidfd_open(first, PidfdFlags::empty()) else { return bury(first) };
    let mut kill_at: Option<Instant> = None;
    loop {
        let left = kill_at.map(|at| at.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            kill_all(first);
            return bury(first);
        }
        let mut watched = vec![PollFd::new(&ended, PollFlags::IN)];
        if kill_at.is_none() {
            watched.push(PollFd::new(parent, PollFlags::IN));
            watched.push(PollFd::new(caller, PollFlags::IN));
        }
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        // Interrupted or out of time: looked at again.
        _ = poll(&mut watched, left.as_ref());
        let ready: Vec<bool> = watched.iter().map(|one| !one.revents().is_empty()).collect();
        match ready[..] {
            [true, ..] => return bury(first),
            [_, true, _] => kill_at = Some(Instant::now()),
            [_, _, true] => {
                _ = kill_process_group(first, Signal::TERM);
                kill_at = Some(Instant::now() + GRACE);
            }
            _ => {}
        }
    }
}

fn kill_all(first: Pid) {
    _ = kill_process_group(first, Signal::KILL);
    _ = kill_process(first, Signal::KILL);
}

fn bury(first: Pid) -> i32 {
    loop {
        match waitpid(Some(first), WaitOptions::empty()) {
            Ok(Some((_, status))) => return status.as_raw(),
            Err(rustix::io::Errno::INTR) | Ok(None) => {}
            Err(_) => return 0,
        }
    }
}

/// Kills what is left of the command: orphans come to this process, so it ends when there is none. Behind a wall of
/// namespaces nothing is left by now.
fn end_rest() {
    let until = Instant::now() + KILL_WAIT;
    loop {
        match wait(WaitOptions::NOHANG) {
            Err(_) => return,
            Ok(Some(_)) => continue,
            Ok(None) if Instant::now() > until => return,
            Ok(None) => {}
        }
        descendants(getpid()).into_iter().for_each(|pid| _ = kill_process(pid, Signal::KILL));
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// All processes that come from `root`, itself apart.
fn descendants(root: Pid) -> Vec<Pid> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let all: Vec<(Pid, Pid)> = entries
        .filter_map(|entry| {
            let pid = Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)?;
            let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
            // The name in brackets may hold anything.
            let parent = stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()?;
            Some((pid, Pid::from_raw(parent)?))
        })
        .collect();
    let mut family = vec![root];
    let mut next = 0;
    while let Some(parent) = family.get(next).copied() {
        family.extend(all.iter().filter(|(_, of)| *of == parent).map(|(pid, _)| *pid));
        next += 1;
    }
    family.split_off(1)
}

/// Forks the process that becomes the program behind a wall that it puts around itself.
pub(crate) fn walled(
    plan: &Plan,
    command: &[OsString],
    report: Report,
    wall: impl FnOnce(&Report) -> Result<(), String>,
) -> Result<Pid, String> {
    match raw::fork(0).map_err(|error| format!("no process could be made: {error}"))? {
        raw::Side::Parent(first) => Ok(first),
        raw::Side::Child => {
            let up = setsid().map_err(|error| error.to_string()).and_then(|_| wall(&report));
            match up {
                Ok(()) if plan.trial => report.send(&Told::Ended(0)),
                Ok(()) => {
                    eprintln!("windlass: {}", inside::become_program(plan, command));
                    std::process::exit(NOT_FOUND);
                }
                Err(why) => report.send(&Told::Failed(why)),
            }
            std::process::exit(0);
        }
    }
}
