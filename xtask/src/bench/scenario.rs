//! What is measured: the scripts the model plays, and how each subject is started.

use std::path::PathBuf;

/// Bytes of each file that is read.
pub const FILE_BYTES: usize = 4096;
/// Bytes of the long answer, and of each of its deltas.
const STREAM_BYTES: usize = 2_000_000;
const DELTA_BYTES: usize = 20;
/// Sessions in one process, and their rounds.
pub const SESSIONS: usize = 200;
const SESSION_ROUNDS: usize = 10;

/// One kind of run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scenario {
    /// One short answer.
    Plain,
    /// 20 and 100 rounds, each reading a file of 4 KB.
    Read20,
    Read100,
    /// 20 rounds that each write a file, or run a command: they pay for fsyncs.
    Write20,
    Bash20,
    /// 2 MB of text in deltas of 20 bytes.
    Stream,
    /// 200 sessions of 10 rounds at once in one process.
    Sessions,
}

use Scenario::*;

pub const ALL: [Scenario; 7] = [Plain, Read20, Read100, Write20, Bash20, Stream, Sessions];

impl Scenario {
    pub fn name(self) -> &'static str {
        match self {
            Plain => "plain",
            Read20 => "read20",
            Read100 => "read100",
            Write20 => "write20",
            Bash20 => "bash20",
            Stream => "stream",
            Sessions => "sessions",
        }
    }

    pub fn prompt(self) -> String {
        match self {
            Sessions => "bench sessions as s{sid}.".into(),
            other => format!("bench {}.", other.name()),
        }
    }

    /// The floor reads, and nothing else.
    pub fn suits(self, subject: &Subject) -> bool {
        !subject.is_floor || !matches!(self, Write20 | Bash20)
    }

    /// The script's part for this scenario, found by the prompt.
    fn conversation(self) -> String {
        let reads = |rounds: usize| {
            format!("rounds = {rounds}\nblocks = [{{ tool = \"read\", input = {{ path = \"f${{i}}.txt\" }} }}]")
        };
        let steps = match self {
            Plain => None,
            Read20 => Some(reads(20)),
            Read100 => Some(reads(100)),
            Sessions => Some(reads(SESSION_ROUNDS)),
            Write20 => Some(
                "rounds = 20\nblocks = [{ tool = \"write\", input = { path = \"new${i}.txt\", content = \"line ${i}\\n\" } }]"
                    .to_string(),
            ),
            Bash20 => {
                Some("rounds = 20\nblocks = [{ tool = \"bash\", input = { command = \"echo ${i} >> lines.txt\" } }]".into())
            }
            Stream => None,
        };
        let end = match self {
            Stream => format!("text_bytes = {STREAM_BYTES}\nchunk = {DELTA_BYTES}"),
            _ => "blocks = [{ text = \"Done.\" }]".into(),
        };
        let mut script = format!("[[conversation]]\nname = \"{0}\"\nmatch = 'bench {0}\\b'\n", self.name());
        for step in steps.into_iter().chain([end]) {
            script.push_str(&format!("[[conversation.step]]\n{step}\n"));
        }
        script
    }
}

/// The script for all scenarios. Usage is small and constant, so that nobody thinks of compacting.
pub fn script() -> String {
    let conversations: String = ALL.into_iter().map(Scenario::conversation).collect();
    format!("sid = 'as (s\\d+)\\.'\n\n{conversations}")
        .replace("blocks =", "usage = { input = 100, output = 10 }\nblocks =")
        .replace("text_bytes =", "usage = { input = 100, output = 10 }\ntext_bytes =")
}

/// A program that is measured.
#[derive(Clone, Debug)]
pub struct Subject {
    pub name: &'static str,
    pub program: PathBuf,
    pub is_floor: bool,
}

impl Subject {
    /// The arguments for one run against the model at `url`.
    pub fn args(&self, scenario: Scenario, url: &str) -> Vec<String> {
        let (prompt, sessions) = (scenario.prompt(), SESSIONS.to_string());
        let words: Vec<&str> = match (self.is_floor, scenario) {
            (true, Sessions) => vec![url, "--sessions", &sessions, &prompt],
            (true, _) => vec![url, &prompt],
            (false, Sessions) => vec!["bench", "--sessions", &sessions, "--base-url", url, "--yes", &prompt],
            (false, _) => vec!["-p", &prompt, "--base-url", url, "--yes", "--max-turns", "200"],
        };
        words.into_iter().map(str::to_string).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_has_a_part_for_every_scenario() {
        let script = script();
        for scenario in ALL {
            assert_eq!(script.matches(&format!("name = \"{}\"\n", scenario.name())).count(), 1, "{script}");
        }
        assert_eq!(script.matches("[[conversation.step]]").count(), script.matches("usage =").count());
        assert!(script.contains("match = 'bench read20\\b'"));
    }

    #[test]
    fn the_floor_is_not_asked_to_write() {
        let floor = Subject { name: "floor", program: "floor".into(), is_floor: true };
        let suited: Vec<_> = ALL.into_iter().filter(|scenario| scenario.suits(&floor)).map(Scenario::name).collect();
        assert_eq!(suited, ["plain", "read20", "read100", "stream", "sessions"]);
        assert_eq!(floor.args(Sessions, "http://h")[..3], ["http://h", "--sessions", "200"]);
    }
}
