//! One process's life: started, watched from outside, and killed at the planned moment or run to its end.

use super::plan::{Kill, Sign};
use anyhow::{Context, Result, bail};
use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Seconds that a life may take.
const LIFE_SECONDS: u64 = 60;
/// Microseconds between looks at files.
const LOOK_US: u64 = 40;
/// Milliseconds between looks at whether the process has ended by itself.
const END_MS: u64 = 2;

/// Milliseconds after which all is stored that a command's start leads to.
const SETTLE_MS: u64 = 8;
/// Milliseconds that a command's end is waited for.
const WRITE_MS: u64 = 500;

/// How a life ended, and what stood on its stdout.
pub struct Ended {
    /// None: it was killed as planned.
    pub status: Option<ExitStatus>,
    /// Whole lines only.
    pub told: Vec<String>,
}

/// What the watcher looks at beside stdout.
pub struct Outside<'a> {
    pub ledger: &'a Path,
    pub requests: &'a Path,
    /// The store's write-ahead log.
    pub journal: &'a Path,
}

/// The process, held so that its number cannot come to mean another one.
struct Victim(OwnedFd);

impl Victim {
    fn of(child: &Child) -> Result<Victim> {
        let pid = Pid::from_raw(child.id() as i32).context("a process without a number")?;
        Ok(Victim(pidfd_open(pid, PidfdFlags::empty())?))
    }

    /// As late as planned, and then at once. It may have ended by itself meanwhile.
    fn kill(&self, after: Duration) {
        let start = Instant::now();
        // The scheduler's own grain is coarser than what is wanted here.
        while start.elapsed() < after {
            std::hint::spin_loop();
        }
        _ = pidfd_send_signal(&self.0, Signal::KILL);
    }
}

pub fn live(command: &mut Command, outside: &Outside, kill: Option<&Kill>) -> Result<Ended> {
    let mut child = command.stdout(Stdio::piped()).stdin(Stdio::null()).spawn().context("starting windlass")?;
    let victim = Victim::of(&child)?;
    let out = child.stdout.take().context("no stdout")?;
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| read_lines(out, kill, &victim));
        let ended = watch(&mut child, outside, kill, &victim);
        // Whatever happened, nothing of this life is left behind.
        _ = child.kill();
        child.wait()?;
        let told = reader.join().unwrap_or_default();
        let status = ended?;
        let killed = kill.is_some() && status.signal() == Some(Signal::KILL.as_raw());
        Ok(Ended { status: (!killed).then_some(status), told })
    })
}

/// Keeps what is told and, where that is the sign, kills at once.
fn read_lines(out: ChildStdout, kill: Option<&Kill>, victim: &Victim) -> Vec<String> {
    let mark = match kill.map(|kill| kill.sign) {
        Some(Sign::Told(kind)) => Some(format!("\"event\":{{\"type\":\"{kind}\"")),
        _ => None,
    };
    let mut left = kill.map_or(0, |kill| kill.count);
    let mut out = BufReader::new(out);
    let (mut told, mut line) = (Vec::new(), String::new());
    // A line cut by the kill was not told.
    while out.read_line(&mut line).is_ok_and(|_| line.ends_with('\n')) {
        if let (Some(mark), Some(kill)) = (&mark, kill)
            && line.contains(mark)
        {
            left = left.saturating_sub(1);
            if left == 0 {
                victim.kill(kill.delay);
            }
        }
        told.push(std::mem::take(&mut line).trim_end().to_string());
    }
    told
}

/// Waits for the end; where a file gives the sign, kills.
fn watch(child: &mut Child, outside: &Outside, kill: Option<&Kill>, victim: &Victim) -> Result<ExitStatus> {
    let file = match kill.map(|kill| kill.sign) {
        Some(Sign::Ledger | Sign::Stored) => Some(outside.ledger),
        Some(Sign::Answer) => Some(outside.requests),
        _ => None,
    };
    let start = Instant::now();
    let before = file.map_or(0, lines);
    let pause = if file.is_some() { Duration::from_micros(LOOK_US) } else { Duration::from_millis(END_MS) };
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if let (Some(file), Some(kill)) = (file, kill)
            && lines(file) >= before + kill.count
        {
            if kill.sign == Sign::Stored {
                next_write(outside.journal);
            }
            victim.kill(kill.delay);
            return Ok(child.wait()?);
        }
        if start.elapsed() > Duration::from_secs(LIFE_SECONDS) {
            bail!("it hangs: no end within {LIFE_SECONDS} s");
        }
        std::thread::sleep(pause);
    }
}

/// Waits until the journal is written to, after the command's own news have been.
fn next_write(journal: &Path) {
    let written = || std::fs::metadata(journal).and_then(|facts| facts.modified()).ok();
    std::thread::sleep(Duration::from_millis(SETTLE_MS));
    let (start, before) = (Instant::now(), written());
    while written() == before && start.elapsed() < Duration::from_millis(WRITE_MS) {
        std::hint::spin_loop();
    }
}

fn lines(path: &Path) -> usize {
    std::fs::read(path).unwrap_or_default().iter().filter(|byte| **byte == b'\n').count()
}
