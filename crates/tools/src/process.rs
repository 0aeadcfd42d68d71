//! Processes: found by number, group and mark, and stopped with all they started.

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use std::fs;
use std::time::Duration;
use windlass_kernel::{CallId, Process, SessionId};

/// The variable in a child's environment that says which call it belongs to: its children inherit it.
pub(crate) const MARK: &str = "WINDLASS_CALL";
/// How long a group may take to end itself before it is killed.
const TERM_GRACE: Duration = Duration::from_millis(500);
/// How long to wait for killed processes to be gone.
pub(crate) const KILL_WAIT: Duration = Duration::from_millis(500);
/// Time between two looks at whether processes are gone.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(5);

/// What marks the processes of a call. A NUL cannot stand in an environment.
pub(crate) fn mark(session: SessionId, call: &CallId) -> String {
    format!("{session}/{}", call.0.replace('\0', ""))
}

/// What `/proc/PID/stat` says of a process.
#[derive(Debug)]
pub(crate) struct Stat {
    pub pid: u32,
    pub group: u32,
    pub started: u64,
    /// It runs or could; a zombie does not.
    pub alive: bool,
}

/// The process numbered `pid`; none if there is none, or no `/proc`.
pub(crate) fn stat(pid: u32) -> Option<Stat> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the program's name in brackets, and may hold anything, brackets too.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let alive = !matches!(*fields.first()?, "Z" | "X");
    Some(Stat { pid, group: fields.get(2)?.parse().ok()?, started: fields.get(19)?.parse().ok()?, alive })
}

/// All processes there are; none where there is no `/proc`.
pub(crate) fn processes() -> impl Iterator<Item = Stat> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| stat(entry.file_name().to_str()?.parse().ok()?))
}

/// How a log records the process `pid`; its start is 0 where it cannot be told.
pub(crate) fn record(pid: u32) -> Process {
    Process { pid, started: stat(pid).map_or(0, |stat| stat.started) }
}

/// A process group that dies with this value, unless it was let go.
pub(crate) struct Group {
    pid: Pid,
    held: bool,
}

impl Group {
    /// The group led by the child `pid`; none if that is no process number.
    pub(crate) fn of(pid: u32) -> Option<Group> {
        let pid = Pid::from_raw(i32::try_from(pid).ok()?)?;
        Some(Group { pid, held: true })
    }

    /// From here on the group may outlive this value.
    pub(crate) fn let_go(&mut self) {
        self.held = false;
    }

    pub(crate) fn number(&self) -> u32 {
        self.pid.as_raw_pid().unsigned_abs()
    }

    fn kill(&self) {
        _ = kill_process_group(self.pid, Signal::KILL);
    }

    /// Whether anything in the group still runs.
    pub(crate) fn alive(&self) -> bool {
        match test_kill_process_group(self.pid) {
            Err(Errno::SRCH) => false,
            // A zombie nobody has waited for still counts for `kill`, but it runs no more.
            _ if cfg!(target_os = "linux") => {
                processes().any(|process| process.group == self.number() && process.alive)
            }
            _ => true,
        }
    }

    /// Asks the group to end, then kills what is left of it. It is dead afterwards.
    pub(crate) async fn stop(&self) {
        _ = kill_process_group(self.pid, Signal::TERM);
        if !self.gone_within(TERM_GRACE).await {
            self.kill();
            self.gone_within(KILL_WAIT).await;
        }
    }

    async fn gone_within(&self, limit: Duration) -> bool {
        let gone = async {
            while self.alive() {
                tokio::time::sleep(LOOK_EVERY).await;
            }
        };
        tokio::time::timeout(limit, gone).await.is_ok()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if self.held {
            self.kill();
        }
    }
}
