//! One session through all its kills to its end, and what was seen of each.

use super::evidence::{Evidence, is_torn, kind, seq};
use super::life::{self, Outside};
use super::plan::{self, Kill, Phase};
use super::{check, script};
use crate::mock::{self, Mock};
use crate::project;
use anyhow::{Context, Result};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Milliseconds that the model server gets to notice that its client is gone.
const NOTICE_MS: u64 = 500;
/// Milliseconds that processes get to end after a run that is over.
const QUIET_MS: u64 = 1000;

/// Where sessions are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shelf {
    Sqlite,
    Memory,
}

/// A kill that was made, where it fell, and why it was not survived.
pub struct Outcome {
    pub phase: Phase,
    pub broken: Option<String>,
}

/// A session's folder, its model, and what has been told so far.
pub struct Session {
    binary: PathBuf,
    shelf: Shelf,
    folder: PathBuf,
    mock: Mock,
    told: Vec<String>,
    /// Requests that earlier lives sent.
    earlier: usize,
}

/// How far a session has come.
enum Standing {
    New,
    /// It was opened, and the prompt is not stored.
    Unasked(String),
    UnderWay(String),
    Over,
}

/// What a kill left to be looked at once the next request is there.
struct Pending {
    phase: Phase,
    /// Requests before the kill.
    requests: usize,
    /// Lines told before the kill.
    told: usize,
    broken: Option<String>,
}

impl Session {
    pub fn set_up(binary: &Path, shelf: Shelf, folder: PathBuf) -> Result<Session> {
        let work = folder.join("project");
        std::fs::create_dir_all(&work)?;
        for file in 0..script::FILES {
            project::write(&work.join(format!("f{file}.txt")), format!("This is file {file}.\n").repeat(20))?;
        }
        project::write(&folder.join("script.toml"), script::script())?;
        let dump = folder.join("requests");
        let mock = Mock::start(binary, &folder.join("script.toml"), &folder.join("requests.jsonl"), Some(&dump))?;
        Ok(Session { binary: binary.to_path_buf(), shelf, folder, mock, told: Vec::new(), earlier: 0 })
    }

    /// Lives through the seed's kills and then to the end; one outcome per kill that was made.
    pub fn play(mut self, seed: u64) -> Result<Vec<Outcome>> {
        let mut pending = Vec::new();
        for kill in plan::kills(seed) {
            match self.live(Some(&kill)) {
                Ok(true) => {
                    let found = self.look()?;
                    let lost = found.broken.is_some();
                    pending.push(found);
                    if lost {
                        break;
                    }
                }
                // The session came to its end before the kill: there is nothing more to kill.
                Ok(false) => break,
                Err(error) => {
                    self.blame(&mut pending, &format!("{error:#}"));
                    return Ok(outcomes(pending));
                }
            }
        }
        if pending.iter().all(|kill| kill.broken.is_none()) {
            let end = self.live(None).map_err(|error| format!("{error:#}")).and_then(|_| self.finish(&pending));
            if let Err(broken) = end {
                self.blame(&mut pending, &broken);
            }
        }
        Ok(outcomes(pending))
    }

    /// What is found wrong is held against the last kill.
    fn blame(&self, pending: &mut [Pending], broken: &str) {
        if let Some(last) = pending.last_mut().filter(|last| last.broken.is_none()) {
            last.broken = Some(broken.to_string());
        }
    }

    fn ledger(&self) -> PathBuf {
        self.folder.join("project").join(script::LEDGER)
    }

    /// The store's write-ahead log.
    fn journal(&self) -> PathBuf {
        self.folder.join("home/data/windlass.db-wal")
    }

    /// One process: begun or taken up, and killed (true) or run to its end.
    fn live(&mut self, kill: Option<&Kill>) -> Result<bool> {
        self.earlier = self.dumps()?.len();
        let mut command = self.windlass();
        command.args(["--yes", "--output-format", "events", "--base-url", &self.mock.url]);
        command.args(["--store", if self.shelf == Shelf::Memory { "memory" } else { "sqlite" }]);
        match self.standing() {
            Standing::New => _ = command.args(["-p", script::PROMPT]),
            Standing::Unasked(id) => _ = command.args(["-r", &id, "-p", script::PROMPT]),
            // Without words: what was under way goes on.
            Standing::UnderWay(id) => _ = command.args(["-r", &id, "-p"]),
            Standing::Over => return Ok(false),
        }
        let errors = std::fs::File::create(self.folder.join("stderr.txt"))?;
        command.stderr(errors);
        let (ledger, requests, journal) = (self.ledger(), self.folder.join("requests.jsonl"), self.journal());
        let outside = Outside { ledger: &ledger, requests: &requests, journal: &journal };
        let ended = life::live(&mut command, &outside, kill)?;
        self.told.extend(ended.told);
        match ended.status {
            None => Ok(true),
            Some(status) if status.success() => Ok(false),
            Some(status) => {
                let said = project::read(&self.folder.join("stderr.txt")).unwrap_or_default();
                anyhow::bail!("the run ended with {status}: {}", said.trim())
            }
        }
    }

    fn windlass(&self) -> Command {
        let mut command = Command::new(&self.binary);
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command
            .env("WINDLASS_HOME", self.folder.join("home"))
            .env("HOME", &self.folder)
            .env("ANTHROPIC_API_KEY", "dummy");
        command.current_dir(self.folder.join("project"));
        command
    }

    /// How far the session has come, by what is stored of it.
    fn standing(&self) -> Standing {
        let Some(id) = self.id() else { return Standing::New };
        let Ok(records) = self.log(&id).and_then(|log| parsed(&log)) else { return Standing::UnderWay(id) };
        let last = |wanted: &str| records.iter().rposition(|record| kind(record) == wanted);
        match (last("prompted"), last("turn_finished")) {
            (None, _) => Standing::Unasked(id),
            (Some(prompted), Some(finished)) if finished > prompted => Standing::Over,
            _ => Standing::UnderWay(id),
        }
    }

    /// The session's id, once anything was told of it.
    fn id(&self) -> Option<String> {
        let first: Value = serde_json::from_str(self.told.first()?).ok()?;
        first["session"].as_str().map(str::to_string)
    }

    /// Looks at what a kill left: the phase, and what can be seen to be broken already.
    fn look(&self) -> Result<Pending> {
        let requests = self.settled_requests()?;
        let (told, count) = (self.told.len(), self.dumps()?.len());
        let wal = std::fs::read(self.journal()).unwrap_or_default();
        let pending = |phase, broken| Pending { phase, requests: count, told, broken };
        let Some(id) = self.id() else { return Ok(pending(Phase::Elsewhere, None)) };
        let log = match self.log(&id) {
            Ok(log) => log,
            Err(error) => return Ok(pending(Phase::Elsewhere, Some(format!("{error:#}")))),
        };
        let stored = parsed(&log)?;
        let told_to = parsed(&self.told)?.iter().map(seq).max().unwrap_or(0);
        let requests = requests.into_iter().skip(self.earlier).collect();
        let broken = check::told_is_stored(&self.told, &log).and_then(|()| check::log_is_whole(&stored)).err();
        let ledger = lines(&self.ledger());
        let evidence = Evidence { stored, told_to, ledger, requests, torn: is_torn(&wal) };
        Ok(pending(evidence.phase(), broken))
    }

    fn log(&self, id: &str) -> Result<Vec<String>> {
        let mut command = self.windlass();
        let said = project::output(command.args(["log", id, "--json"]))?;
        Ok(said.lines().map(str::to_string).collect())
    }

    /// The model's log once it has a line for every request that came in.
    fn settled_requests(&self) -> Result<Vec<mock::Request>> {
        let start = Instant::now();
        loop {
            let requests = mock::log(&self.folder.join("requests.jsonl"))?;
            if requests.len() >= self.dumps()?.len() || start.elapsed() > Duration::from_millis(NOTICE_MS) {
                return Ok(requests);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// The bodies of all requests, in order.
    fn dumps(&self) -> Result<Vec<PathBuf>> {
        let mut files = project::files(&self.folder.join("requests"), &["json"])?;
        // A request's head stands beside its body.
        files.retain(|file| !file.to_string_lossy().ends_with(".head.json"));
        Ok(files)
    }

    /// What must hold at the end, of the whole session and of each kill.
    fn finish(&self, kills: &[Pending]) -> Result<(), String> {
        let wrong = |error: anyhow::Error| format!("{error:#}");
        let id = self.id().ok_or("nothing was ever told")?;
        let log = self.log(&id).map_err(wrong)?;
        check::told_is_stored(&self.told, &log)?;
        check::log_is_whole(&parsed(&log).map_err(wrong)?)?;
        let mut requests = Vec::new();
        for dump in self.dumps().map_err(wrong)? {
            let request: Value =
                serde_json::from_str(&project::read(&dump).map_err(wrong)?).map_err(|e| e.to_string())?;
            check::results(&request)?;
            requests.push(request);
        }
        for kill in kills {
            // None: the kill fell after the last answer.
            if let Some(next) = requests.get(kill.requests) {
                check::facts_are_known(&self.told[..kill.told], next)?;
            }
        }
        let last = requests.last().ok_or("no request was ever sent")?;
        check::effects_fit(&lines(&self.ledger()), last)?;
        if !log.iter().any(|line| line.contains(script::LAST_WORD)) {
            return Err("the run ended before the model's last word".into());
        }
        self.is_quiet()
    }

    /// No process of the session's is left.
    fn is_quiet(&self) -> Result<(), String> {
        let start = Instant::now();
        loop {
            let left = processes_in(&self.folder.join("project"));
            if left.is_empty() {
                return Ok(());
            }
            if start.elapsed() > Duration::from_millis(QUIET_MS) {
                return Err(format!("processes are left over: {}", left.join("; ")));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

fn outcomes(pending: Vec<Pending>) -> Vec<Outcome> {
    pending.into_iter().map(|kill| Outcome { phase: kill.phase, broken: kill.broken }).collect()
}

fn parsed(lines: &[String]) -> Result<Vec<Value>> {
    lines.iter().map(|line| serde_json::from_str(line).with_context(|| format!("reading {line:?}"))).collect()
}

fn lines(path: &Path) -> Vec<String> {
    std::fs::read_to_string(path).unwrap_or_default().lines().map(str::to_string).collect()
}

/// Living processes that work in `folder`, as `pid command line`.
fn processes_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf());
    let living =
        entries.filter(|entry| std::fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(&folder)));
    living
        .map(|entry| {
            let words = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let words = String::from_utf8_lossy(&words).replace('\0', " ");
            format!("{} {}", entry.file_name().to_string_lossy(), words.trim())
        })
        .collect()
}
