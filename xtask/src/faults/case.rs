//! One case: a row in one protocol, played from its first prompt to the end of its second.

use super::protocol::{Protocol, SECRET};
use super::row::{Expect, GOOD, PROMPT, Row};
use super::seen::{self, Seen};
use crate::mock::{self, Mock};
use crate::project;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Seconds that a prompt may take: more, and it hangs.
const PROMPT_SECONDS: u64 = 30;
/// Milliseconds between looks at whether a process has ended.
const LOOK_MS: u64 = 4;
/// Milliseconds that the mock gets to notice that its client is gone.
const NOTICE_MS: u64 = 500;
/// Settings of every case: waits are short, and clocks so long that a busy machine does not run them out.
const USUAL: [(&str, i64); 6] = [
    ("retry.base_ms", 10),
    ("retry.max_wait_ms", 3_000),
    ("retry.connect_ms", 15_000),
    ("retry.headers_ms", 15_000),
    ("retry.first_event_ms", 15_000),
    ("retry.progress_ms", 15_000),
];
/// Lines of the file whose reading makes a prompt long.
const LONG_LINES: usize = 200;
/// Characters of a message that are shown.
const SHOWN: usize = 240;

/// What was seen of a case.
#[derive(Default)]
pub struct Played {
    pub requests: usize,
    /// None: it was killed, for it did not end.
    pub exit: Option<i32>,
    pub message: String,
    /// What is stored of the first prompt, in short.
    pub events: String,
    pub second_ok: bool,
    /// What is not as expected.
    pub wrong: Vec<String>,
}

impl Played {
    pub fn as_json(&self, class: &str, row: &str, protocol: &str) -> Value {
        json!({ "class": class, "row": row, "protocol": protocol, "passed": self.wrong.is_empty(),
            "requests": self.requests, "exit": self.exit, "message": self.message, "events": self.events,
            "second_prompt_ok": self.second_ok, "wrong": self.wrong })
    }
}

/// How a run of the command ended.
struct Ended {
    /// None: it was killed.
    exit: Option<i32>,
    said: String,
    errors: String,
}

/// A case's own folder, with its model server and its home.
struct Stage<'a> {
    binary: &'a Path,
    folder: &'a Path,
    row: &'a Row,
    protocol: Protocol,
    mock: Mock,
}

/// Plays the case in `folder`; what keeps it from being played is told as what is wrong.
pub fn play(binary: &Path, folder: &Path, row: &Row, protocol: Protocol) -> Played {
    let played = set_up(binary, folder, row, protocol).and_then(|stage| stage.play());
    let played = played.unwrap_or_else(|error| Played { wrong: vec![format!("{error:#}")], ..Played::default() });
    if played.wrong.is_empty() {
        // What is left of a case that went well lies in the scratch folder, which goes as a whole.
        _ = std::fs::remove_dir_all(folder);
    }
    played
}

fn set_up<'a>(binary: &'a Path, folder: &'a Path, row: &'a Row, protocol: Protocol) -> Result<Stage<'a>> {
    let work = folder.join("project");
    std::fs::create_dir_all(&work).with_context(|| format!("making {}", work.display()))?;
    project::write(&work.join("a.txt"), "The first file.\n")?;
    project::write(&work.join("long.txt"), "A line of a file that is long.\n".repeat(LONG_LINES))?;
    let script = folder.join("script.toml");
    project::write(&script, row.script(protocol)?)?;
    let mock = Mock::start(binary, &script, &folder.join("requests.jsonl"), Some(&folder.join("requests")))?;
    Ok(Stage { binary, folder, row, protocol, mock })
}

impl Stage<'_> {
    fn play(&self) -> Result<Played> {
        let expect = self.row.expect(self.protocol)?;
        let first = self.run("first", &["-p", PROMPT])?;
        let requests = self.requests(&first)?;
        let id = session(&first).with_context(|| format!("no session was begun: {}", first.errors.trim()))?;
        let second = self.run("second", &["-r", &id, "-p", "And now?"])?;
        // An event is told when it is stored, and the second process counts on from what it finds there: where the
        // numbers go through both, both were told all of the log.
        let lines = first.said.lines().chain(second.said.lines());
        let records: Vec<Value> =
            lines.map(serde_json::from_str).collect::<Result<_, _>>().context("reading events")?;
        let (turn, next) = seen::turns(&records);
        let mut played = Played {
            requests: requests.len(),
            exit: first.exit,
            message: told(&first, &turn),
            events: turn.in_short(),
            second_ok: second.exit == Some(0) && next.text() == GOOD,
            wrong: Vec::new(),
        };
        played.wrong.extend(differences(&expect, &played, &turn));
        played.wrong.extend(self.waits(&expect, &requests));
        played.wrong.extend(self.glued(&expect)?);
        played.wrong.extend(requests.iter().filter_map(refused));
        played.wrong.extend(seen::log_is_whole(&records).or_else(|| turn.broken()).or_else(|| next.broken()));
        if !played.second_ok {
            let said = format!("{:?}, {:?}: {}", second.exit, shortened(&next.text()), shortened(&second.errors));
            played.wrong.push(format!("the second prompt ended with {said}"));
        }
        if [&first, &second].into_iter().any(|run| run.errors.contains(SECRET) || run.said.contains(SECRET)) {
            played.wrong.push("the key is shown".into());
        }
        Ok(played)
    }

    /// Runs the command to its end, or kills it where it has none.
    fn run(&self, name: &str, words: &[&str]) -> Result<Ended> {
        let (said, errors) = (self.folder.join(format!("{name}.out")), self.folder.join(format!("{name}.err")));
        let mut command = Command::new(self.binary);
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("WINDLASS_HOME", self.folder.join("home")).env("HOME", self.folder);
        command.envs(self.protocol.variables().iter().copied());
        let address = self.protocol.address(&self.mock.url);
        command.current_dir(self.folder.join("project")).args(words).args(["--output-format", "events", "--yes"]);
        command.args(["--model", self.protocol.model(), "--base-url", &address]);
        command.args(self.settings(&address).iter().flat_map(|setting| ["--config", setting]));
        command.stdin(Stdio::null()).stdout(File::create(&said)?).stderr(File::create(&errors)?);
        let mut child = command.spawn().context("starting windlass")?;
        let start = Instant::now();
        let exit = loop {
            if let Some(status) = child.try_wait()? {
                break status.code();
            }
            if start.elapsed() > Duration::from_secs(PROMPT_SECONDS) {
                child.kill()?;
                child.wait()?;
                break None;
            }
            std::thread::sleep(Duration::from_millis(LOOK_MS));
        };
        Ok(Ended { exit, said: project::read(&said)?, errors: project::read(&errors)? })
    }

    fn settings(&self, address: &str) -> Vec<String> {
        let usual = USUAL.iter().filter(|(key, _)| !self.row.config.contains_key(*key));
        let usual = usual.map(|(key, value)| format!("{key}={value}"));
        let own = self.row.config.iter().map(|(key, value)| format!("{key}={value}"));
        usual.chain(own).chain(self.protocol.settings(address)).collect()
    }

    /// The requests so far, once the mock has noted the end of all that were sent.
    fn requests(&self, first: &Ended) -> Result<Vec<mock::Request>> {
        let sent = first.said.lines().filter(|line| line.contains("\"event\":{\"type\":\"model_called\"")).count();
        let start = Instant::now();
        loop {
            let requests = mock::log(&self.folder.join("requests.jsonl"))?;
            if requests.len() >= sent || start.elapsed() > Duration::from_millis(NOTICE_MS) {
                return Ok(requests);
            }
            std::thread::sleep(Duration::from_millis(LOOK_MS));
        }
    }

    fn waits(&self, expect: &Expect, requests: &[mock::Request]) -> Option<String> {
        let at = |request: Option<&mock::Request>| request.map_or(0, |request| request.at.body / 1_000_000);
        let waited = at(requests.last()).saturating_sub(at(requests.first()));
        (waited < expect.waited_ms).then(|| format!("waited {waited} ms, not the {} ms asked for", expect.waited_ms))
    }

    /// Words of a failed attempt that were sent as if they had been said.
    fn glued(&self, expect: &Expect) -> Result<Option<String>> {
        let Some(unsaid) = &expect.unsaid else { return Ok(None) };
        for dump in self.dumps()?.iter().skip(1) {
            if project::read(dump)?.contains(unsaid) {
                return Ok(Some(format!("{unsaid:?} stands in the request {}", dump.display())));
            }
        }
        Ok(None)
    }

    fn dumps(&self) -> Result<Vec<PathBuf>> {
        let mut dumps = project::files(&self.folder.join("requests"), &["json"])?;
        dumps.retain(|dump| !dump.to_string_lossy().ends_with(".head.json"));
        Ok(dumps)
    }
}

/// What the mock found wrong with a request; what a step says itself is no news.
fn refused(request: &mock::Request) -> Option<String> {
    let error = request.error.as_ref()?;
    let by_mock = request.step.is_none() || request.status == 400 && error.starts_with("the script ");
    by_mock.then(|| format!("the mock refused a request: {error}"))
}

/// The id of the session that a run has told its events of.
fn session(run: &Ended) -> Option<String> {
    let first: Value = serde_json::from_str(run.said.lines().next()?).ok()?;
    first["session"].as_str().map(str::to_owned)
}

/// What a person is told: at the end, or, where it ended well, what the log tells of the failures.
fn told(first: &Ended, turn: &Seen) -> String {
    match first.exit {
        Some(0) => turn.messages().first().map(|message| one_line(message)).unwrap_or_default(),
        _ => one_line(&first.errors),
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// As much of a text as is shown, in one line.
pub fn shortened(text: &str) -> String {
    let line = one_line(text);
    match line.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

fn differences(expect: &Expect, played: &Played, turn: &Seen) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut compare = |what: &str, wanted: String, seen: String| {
        if wanted != seen {
            wrong.push(format!("{what}: {seen}, not {wanted}"));
        }
    };
    compare("requests", expect.requests.to_string(), played.requests.to_string());
    compare("exit code", format!("{:?}", Some(expect.exit)), format!("{:?}", played.exit));
    compare("failures", format!("{:?}", expect.failures), format!("{:?}", turn.failures()));
    if let Some(partial) = expect.partial {
        compare("partial blocks", partial.to_string(), turn.partial().to_string());
    }
    compare("answered calls", expect.calls.to_string(), turn.calls().to_string());
    let text = turn.text();
    match (&expect.text, expect.text_bytes) {
        (_, Some(bytes)) => compare("bytes of the final text", bytes.to_string(), text.len().to_string()),
        (Some(wanted), _) => compare("final text", wanted.clone(), text),
        (None, _) if expect.exit == 0 => compare("final text", GOOD.to_owned(), text),
        _ => {}
    }
    if let Some(message) = expect.message.as_ref().filter(|message| !message.is_match(&played.message)) {
        wrong.push(format!("the message does not match `{message}`"));
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expect(text: &str) -> Expect {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn what_differs_is_named_with_both_values() {
        let played = Played { requests: 3, exit: Some(1), message: "it was cut".into(), ..Played::default() };
        let nothing: [Value; 0] = [];
        let (turn, _) = seen::turns(&nothing);
        let as_seen = expect("requests = 3\nexit = 1\nmessage = 'cut$'");
        assert!(differences(&as_seen, &played, &turn).is_empty());
        let other = expect("requests = 2\nfailures = ['transient']\nmessage = 'whole'");
        let wrong = differences(&other, &played, &turn).join("\n");
        for part in ["requests: 3, not 2", "exit code: Some(1), not Some(0)", "[\"transient\"]", "`whole`"] {
            assert!(wrong.contains(part), "{wrong}");
        }
    }
}
