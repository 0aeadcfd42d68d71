//! The request log: one JSON line per request, written when its last byte is handed over or the client has gone.

use serde::Serialize;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// CLOCK_MONOTONIC in nanoseconds: comparable with other processes of the machine.
pub fn now() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

pub struct Log(Mutex<File>);

impl Log {
    /// Opens the log to append to it.
    pub fn open(path: &Path) -> io::Result<Log> {
        let file = File::options().create(true).append(true).open(path)?;
        Ok(Log(Mutex::new(file)))
    }

    fn write(&self, line: &Line) -> io::Result<()> {
        let mut bytes = serde_json::to_vec(line)?;
        bytes.push(b'\n');
        // One write per line, unbuffered: a killed server loses no line.
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).write_all(&bytes)
    }
}

#[derive(Default, Serialize)]
pub struct Line {
    pub seq: u64,
    pub conn: u64,
    pub at: At,
    pub method: String,
    pub path: String,
    pub protocol: Option<&'static str>,
    pub model: String,
    pub stream: bool,
    pub body_bytes: usize,
    pub answer_bytes: usize,
    pub messages: usize,
    pub tool_results: usize,
    /// Assistant messages in the request.
    pub round: usize,
    pub sid: String,
    pub step: Option<String>,
    pub status: u16,
    /// The client went away before the last byte, or the script broke the answer off.
    pub gone: bool,
    /// Why the request was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Monotonic nanoseconds; 0 for what did not happen.
#[derive(Default, Serialize)]
pub struct At {
    /// The request's head was read.
    pub arrive: u64,
    /// Its body was read.
    pub body: u64,
    /// The answer's first byte was handed over.
    pub first: u64,
    /// The answer's last byte was handed over, or the end was noticed.
    pub last: u64,
}

/// A request's line while it is answered; written when it is dropped at the latest.
pub struct Entry {
    pub line: Line,
    log: Option<Arc<Log>>,
}

impl Entry {
    pub fn new(line: Line, log: Option<Arc<Log>>) -> Entry {
        Entry { line, log }
    }

    /// Notes bytes handed over.
    pub fn sent(&mut self, bytes: usize) {
        if self.line.at.first == 0 {
            self.line.at.first = now();
        }
        self.line.answer_bytes += bytes;
    }

    /// The last byte is handed over.
    pub fn finish(&mut self) {
        self.end(false);
    }

    fn end(&mut self, gone: bool) {
        let Some(log) = self.log.take() else { return };
        self.line.at.last = now();
        self.line.gone = gone;
        // A log that cannot be written must not change what the client sees.
        let _ = log.write(&self.line);
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.end(true);
    }
}
