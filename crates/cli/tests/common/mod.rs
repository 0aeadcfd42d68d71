//! A stage for command-line stories: a home of one's own, a scripted model, and the real binary.
#![allow(dead_code)]

use serde_json::Value;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use windlass_mock::{Options, Script, Server};

/// How long anything may take before a test gives up.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub struct Stage {
    dir: tempfile::TempDir,
    pub server: Server,
}

/// What a run printed, and its code.
#[derive(Debug)]
pub struct Told {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Stage {
    pub fn new(script: &str) -> Stage {
        let script = Script::parse(script).expect("the script can be read");
        let server = Server::start(Options { script, ..Options::default() }).expect("the model serves");
        let dir = tempfile::tempdir().expect("a folder can be made");
        fs::create_dir(dir.path().join("work")).expect("a folder can be made");
        Stage { dir, server }
    }

    /// The same folders, with another script.
    pub fn playing(self, script: &str) -> Stage {
        let script = Script::parse(script).expect("the script can be read");
        Stage { server: Server::start(Options { script, ..Options::default() }).expect("the model serves"), ..self }
    }

    pub fn work(&self) -> PathBuf {
        self.dir.path().join("work")
    }

    pub fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    pub fn write(&self, name: &str, text: &str) {
        let path = self.work().join(name);
        fs::create_dir_all(path.parent().expect("a file lies in a folder")).expect("the folder can be made");
        fs::write(path, text).expect("the file can be written");
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.work().join(name)).unwrap_or_default()
    }

    pub fn configure(&self, text: &str) {
        fs::create_dir_all(self.home()).expect("the folder can be made");
        fs::write(self.home().join("config.toml"), text).expect("the file can be written");
    }

    /// The binary, with nothing of this machine's in its environment, and no model.
    pub fn bare(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
        command.args(arguments).current_dir(self.work()).env_clear();
        command.env("PATH", std::env::var("PATH").unwrap_or_default());
        command.env("HOME", self.dir.path()).env("WINDLASS_HOME", self.home());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// The binary, with the scripted model.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.bare(arguments);
        command.env("ANTHROPIC_BASE_URL", self.server.base_url()).env("ANTHROPIC_API_KEY", "test-key-123");
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Told {
        told(self.command(arguments).output().expect("the binary runs"))
    }

    pub fn run_bare(&self, arguments: &[&str]) -> Told {
        told(self.bare(arguments).output().expect("the binary runs"))
    }

    /// Runs it with `input` on stdin.
    pub fn type_in(&self, arguments: &[&str], input: &str) -> Told {
        let mut child = self.command(arguments).stdin(Stdio::piped()).spawn().expect("the binary runs");
        let mut stdin = child.stdin.take().expect("stdin is piped");
        // One that ends early does not read all of it.
        let _ = stdin.write_all(input.as_bytes());
        drop(stdin);
        told(child.wait_with_output().expect("the binary ends"))
    }

    /// Starts it and waits until the model was asked `times`.
    pub fn start_until_asked(&self, arguments: &[&str], times: usize) -> Child {
        let child = self.command(arguments).spawn().expect("the binary runs");
        wait_for(|| self.server.requests().len() >= times);
        child
    }

    /// The texts of every request's body, oldest first.
    pub fn asked(&self) -> Vec<String> {
        self.server.requests().iter().map(|seen| String::from_utf8_lossy(&seen.body).into_owned()).collect()
    }

    /// The id of the newest session here.
    pub fn newest(&self) -> String {
        let told = self.run(&["sessions", "--json"]);
        let sessions: Value = serde_json::from_str(&told.out).expect("sessions are JSON");
        sessions[0]["session"].as_str().expect("there is a session").to_owned()
    }

    /// The newest session's events.
    pub fn events(&self) -> Vec<Value> {
        let told = self.run(&["log", &self.newest(), "--json"]);
        told.out.lines().map(|line| serde_json::from_str(line).expect("a line is an event")).collect()
    }
}

pub fn told(output: Output) -> Told {
    Told {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).expect("stdout is UTF-8"),
        err: String::from_utf8(output.stderr).expect("stderr is UTF-8"),
    }
}

impl Told {
    #[track_caller]
    pub fn code(self, code: i32) -> Told {
        assert_eq!(self.code, code, "stdout:\n{}\nstderr:\n{}", self.out, self.err);
        self
    }

    #[track_caller]
    pub fn err_has(self, text: &str) -> Told {
        assert!(self.err.contains(text), "stderr lacks {text:?}:\n{}", self.err);
        self
    }

    #[track_caller]
    pub fn out_has(self, text: &str) -> Told {
        assert!(self.out.contains(text), "stdout lacks {text:?}:\n{}", self.out);
        self
    }
}

/// Waits until `holds`, or gives up loudly.
#[track_caller]
pub fn wait_for(holds: impl Fn() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < until, "it never came to it");
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").arg(format!("-{name}")).arg(child.id().to_string()).status().expect("kill runs");
    assert!(sent.success());
}

/// One answer in words, whatever is asked.
pub const HELLO: &str = r#"
repeat = true
[[step]]
blocks = [{ text = "Hello from the model." }]
"#;

/// Reads `notes.txt`, then answers with what it says.
pub const READER: &str = r#"
[[step]]
blocks = [{ text = "Let me look." }, { tool = "read", input = { path = "notes.txt" } }]
[[step]]
capture = { word = 'secret is (\w+)' }
blocks = [{ text = "The secret is ${word}." }]
"#;

/// Runs one command with bash, then says so.
pub fn runner(command: &str) -> String {
    format!(
        "[[step]]\nblocks = [{{ tool = \"bash\", input = {{ command = '{command}' }} }}]\n\
         [[step]]\nblocks = [{{ text = \"That was it.\" }}]\n"
    )
}
