//! One command, run to its end within its limits; nothing of it outlives the run.

use crate::launch::{Launch, Walled};
use rustix::process::{Pid, Signal, kill_process_group};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::Child;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// Bytes that one hook may be told; more than this and it is not started.
const INPUT_LIMIT_BYTES: usize = 16 << 20;
/// Bytes that a hook may write to its standard output: a rewritten input must fit.
const STDOUT_LIMIT_BYTES: usize = 8 << 20;
/// Bytes that a hook may write to its standard error.
const STDERR_LIMIT_BYTES: usize = 1 << 20;
/// Bytes read at once.
const READ_BYTES: usize = 16 << 10;
/// How long output is awaited after the shell has ended: a background child may hold the pipe for ever.
const DRAIN: Duration = Duration::from_millis(100);
/// How long a hook past its time may take to end itself before it is killed.
const TERM_GRACE: Duration = Duration::from_millis(500);
/// How long to wait for a killed shell to be gone.
const KILL_WAIT: Duration = Duration::from_millis(500);

/// How a hook ended.
#[derive(Debug)]
pub(crate) enum End {
    Code(i32),
    Signal(i32),
    TimedOut(Duration),
    CalledBack,
    Flood {
        stream: &'static str,
        limit_bytes: usize,
    },
    /// It could not be started or followed, and why.
    Lost(String),
}

/// A hook that ended, and what it wrote until then.
#[derive(Debug)]
pub(crate) struct Finished {
    pub end: End,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    pub took_ms: u64,
}

impl Finished {
    /// Of a hook that never ran.
    pub(crate) fn lost(why: String) -> Finished {
        Finished { end: End::Lost(why), stdout: Vec::new(), stderr: Vec::new(), took_ms: 0 }
    }
}

/// A command to run.
pub(crate) struct Order<'a> {
    pub line: &'a str,
    pub limit: Duration,
    pub cwd: &'a Path,
    pub launch: &'a Launch,
    pub cancel: &'a CancellationToken,
}

impl Order<'_> {
    /// Runs it in a shell with `input` on its standard input. Nothing of it runs afterwards.
    pub(crate) async fn run(&self, input: &[u8]) -> Finished {
        let begun = Instant::now();
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let end = if input.len() > INPUT_LIMIT_BYTES {
            let bytes = input.len();
            End::Lost(format!("its input has {bytes} bytes, and {INPUT_LIMIT_BYTES} are the most; it was not started"))
        } else if self.cancel.is_cancelled() {
            End::CalledBack
        } else {
            match self.start() {
                Ok(running) => self.follow(running, input, [&mut stdout, &mut stderr]).await,
                Err(_) if !self.cwd.is_dir() => {
                    End::Lost(format!("not started: the folder {} is gone", self.cwd.display()))
                }
                Err(error) => End::Lost(format!("not started: {error}")),
            }
        };
        let took_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        Finished { end, stdout, stderr, took_ms }
    }

    fn start(&self) -> io::Result<Running> {
        let Walled { mut command, guard } = self.launch.command(self.line, self.cwd)?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.process_group(0).kill_on_drop(true).spawn()?;
        let pid = child.id().and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
        let group = Group(pid.ok_or_else(|| io::Error::other("the shell ended at once"))?);
        Ok(Running { group, child, _guard: guard })
    }

    async fn follow(&self, mut running: Running, input: &[u8], said: [&mut Vec<u8>; 2]) -> End {
        let end = tokio::select! {
            end = converse(&mut running.child, input, said) => end,
            () = tokio::time::sleep(self.limit) => Ok(End::TimedOut(self.limit)),
            () = self.cancel.cancelled() => Ok(End::CalledBack),
        };
        if let Ok(End::TimedOut(_) | End::CalledBack) = end {
            running.group.signal(Signal::TERM);
            _ = timeout(TERM_GRACE, running.child.wait()).await;
        }
        running.group.signal(Signal::KILL);
        _ = timeout(KILL_WAIT, running.child.wait()).await;
        end.unwrap_or_else(|error| End::Lost(format!("its end could not be awaited: {error}")))
    }
}

/// A command that runs, its parts in the order in which they are to be dropped.
struct Running {
    group: Group,
    child: Child,
    _guard: Box<dyn Send>,
}

/// Writes, reads and waits at once, as a hook may read late, or never, or talk first.
async fn converse(child: &mut Child, input: &[u8], said: [&mut Vec<u8>; 2]) -> io::Result<End> {
    let (Some(mut stdin), Some(stdout), Some(stderr)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err(io::Error::other("the wall took its pipes"));
    };
    let [out, err] = said;
    let write = async move {
        // A hook need not read what it is told.
        _ = stdin.write_all(input).await;
        Ok(())
    };
    let read_out = gather(stdout, out, "stdout", STDOUT_LIMIT_BYTES);
    let read_err = gather(stderr, err, "stderr", STDERR_LIMIT_BYTES);
    let talk = async { tokio::try_join!(write, read_out, read_err) };
    tokio::pin!(talk);
    let status = tokio::select! {
        said = &mut talk => match said {
            Ok(_) => child.wait().await?,
            Err(flood) => return Ok(flood),
        },
        status = child.wait() => match timeout(DRAIN, &mut talk).await {
            Ok(Err(flood)) => return Ok(flood),
            // Time running out is no failure: what it left behind holds a pipe, and is ended with its group.
            _ => status?,
        },
    };
    Ok(end(status))
}

/// Reads a stream to its end, or until it is a flood.
async fn gather(
    mut stream: impl AsyncRead + Unpin,
    into: &mut Vec<u8>,
    name: &'static str,
    limit_bytes: usize,
) -> Result<(), End> {
    let mut buffer = vec![0; READ_BYTES];
    while let Ok(n @ 1..) = stream.read(&mut buffer).await {
        into.extend_from_slice(&buffer[..n]);
        if into.len() > limit_bytes {
            return Err(End::Flood { stream: name, limit_bytes });
        }
    }
    Ok(())
}

fn end(status: ExitStatus) -> End {
    match (status.code(), status.signal()) {
        (Some(code), _) => End::Code(code),
        (None, Some(signal)) => End::Signal(signal),
        (None, None) => End::Lost("it ended in an unknown way".into()),
    }
}

/// A process group that dies with this value.
struct Group(Pid);

impl Group {
    fn signal(&self, signal: Signal) {
        _ = kill_process_group(self.0, signal);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}
