//! The scripted model server as a process of its own.

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

/// A running `windlass mock`; dropping it ends it.
pub struct Mock {
    process: Child,
    /// Held, so that the server may go on printing.
    _out: Option<BufReader<ChildStdout>>,
    /// `http://127.0.0.1:PORT`
    pub url: String,
}

/// One request, as the server's log tells it.
#[derive(Clone, Debug, Deserialize)]
pub struct Request {
    pub conn: u64,
    pub at: At,
    pub sid: String,
    /// The script's step that answered; none if the server refused the request by itself.
    #[serde(default)]
    pub step: Option<String>,
    pub status: u16,
    pub gone: bool,
    #[serde(default)]
    pub error: Option<String>,
}

/// CLOCK_MONOTONIC in nanoseconds.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub struct At {
    pub body: u64,
    pub last: u64,
}

impl Mock {
    /// Starts the server from `binary` on a free port; `dump` gets every request's body.
    pub fn start(binary: &Path, script: &Path, log: &Path, dump: Option<&Path>) -> Result<Mock> {
        let mut command = Command::new(binary);
        command.args(["mock", "--until-stdin-closes", "--port", "0", "--script"]).arg(script).arg("--log").arg(log);
        if let Some(dump) = dump {
            command.arg("--dump").arg(dump);
        }
        let home = log.parent().unwrap_or(Path::new("/"));
        command.env("HOME", home).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().with_context(|| format!("starting {} mock", binary.display()))?;
        let mut line = String::new();
        let mut out = process.stdout.take().map(BufReader::new);
        if let Some(out) = &mut out {
            out.read_line(&mut line)?;
        }
        let mut mock = Mock { process, _out: out, url: String::new() };
        match line.find("http://") {
            Some(at) => {
                mock.url = line[at..].split_whitespace().next().unwrap_or_default().trim_end_matches('/').into()
            }
            None => bail!("the mock server on {} did not print its address but {line:?}", script.display()),
        }
        Ok(mock)
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        _ = self.process.kill();
        _ = self.process.wait();
    }
}

/// Reads a server's log; a last line without its end is left out.
pub fn log(path: &Path) -> Result<Vec<Request>> {
    let text = if path.exists() { crate::project::read(path)? } else { String::new() };
    let whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    whole.map(|line| serde_json::from_str(line).with_context(|| format!("reading {line:?}"))).collect()
}
