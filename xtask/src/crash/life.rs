//! One process's life: started, watched from outside, and killed at the planned moment or run to its end.

use super::plan::{Kill, Sign};
use anyhow::{Context, Result, bail};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Seconds that a life may take.
const LIFE_SECONDS: u64 = 60;
/// Microseconds between looks.
const LOOK_US: u64 = 40;

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
}

pub fn live(command: &mut Command, outside: &Outside, kill: Option<&Kill>) -> Result<Ended> {
    let mut child = command.stdout(Stdio::piped()).stdin(Stdio::null()).spawn().context("starting windlass")?;
    let told = Arc::new(Mutex::new(Vec::new()));
    let reader = read_lines(&mut child, told.clone());
    let ended = watch(&mut child, &told, outside, kill);
    // Whatever happened, nothing of this life is left behind.
    _ = child.kill();
    child.wait()?;
    if let Some(reader) = reader {
        _ = reader.join();
    }
    let status = ended?;
    let told = std::mem::take(&mut *told.lock().unwrap_or_else(|poisoned| poisoned.into_inner()));
    Ok(Ended { status, told })
}

fn read_lines(child: &mut Child, told: Arc<Mutex<Vec<String>>>) -> Option<JoinHandle<()>> {
    let mut out = BufReader::new(child.stdout.take()?);
    Some(std::thread::spawn(move || {
        let mut line = String::new();
        while out.read_line(&mut line).is_ok_and(|read| read > 0) {
            // A line cut by the kill was not told.
            if line.ends_with('\n') {
                let whole = std::mem::take(&mut line);
                told.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(whole.trim_end().to_string());
            }
        }
    }))
}

/// Waits for the sign and kills, or for the end.
fn watch(
    child: &mut Child,
    told: &Mutex<Vec<String>>,
    outside: &Outside,
    kill: Option<&Kill>,
) -> Result<Option<ExitStatus>> {
    let start = Instant::now();
    let before = kill.map_or(0, |kill| signs(kill.sign, told, outside));
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if let Some(kill) = kill.filter(|kill| signs(kill.sign, told, outside) >= before + kill.count) {
            spin(kill.delay);
            child.kill()?;
            return Ok(None);
        }
        if start.elapsed() > Duration::from_secs(LIFE_SECONDS) {
            bail!("it hangs: no end within {LIFE_SECONDS} s");
        }
        std::thread::sleep(Duration::from_micros(LOOK_US));
    }
}

/// Sleeps by looking at the clock: the scheduler's own grain is coarser than what is wanted here.
fn spin(delay: Duration) {
    let start = Instant::now();
    while start.elapsed() < delay {
        std::hint::spin_loop();
    }
}

fn signs(sign: Sign, told: &Mutex<Vec<String>>, outside: &Outside) -> usize {
    match sign {
        Sign::Told(kind) => {
            let mark = format!("\"event\":{{\"type\":\"{kind}\"");
            let told = told.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            told.iter().filter(|line| line.contains(&mark)).count()
        }
        Sign::Ledger => lines(outside.ledger),
        Sign::Answer => lines(outside.requests),
    }
}

fn lines(path: &Path) -> usize {
    std::fs::read(path).unwrap_or_default().iter().filter(|byte| **byte == b'\n').count()
}
