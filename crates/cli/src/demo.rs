//! `windlass demo`: an agent changes a file. The model is scripted and serves from a process of its own; the client,
//! the tools, the policy, the store and the terminal are the real ones.

use crate::args::{Flags, Wish};
use crate::desk::{Desk, Which};
use crate::environment::Environment;
use crate::exit::{Code, Ended, Failure};
use crate::output::Output;
use crate::terminal::{Shade, print, tell};
use crate::view::diff;
use crate::{headless, words};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use windlass::Prompt;
use windlass_kernel::{Origin, State};

/// What the model says; its edit quotes what was really read.
const SCRIPT: &str = include_str!("../../mock/scripts/demo.toml");
const PROMPT: &str = "Change the port in config.toml to 9090.";
/// What is to stand in the file at the end.
const WANTED: &str = "port = 9090";
const FILE: &str = "config.toml";

/// Where the demo takes place.
struct Stage {
    /// The folder the agent works in.
    work: PathBuf,
    /// Configuration and store of the demo alone; it stays, so that the log can be looked at.
    home: PathBuf,
    before: String,
}

pub async fn run(wish: Wish, environment: Environment) -> Ended {
    let stage = set(&wish)?;
    let server = Server::start(&stage.home)?;
    let look = environment.stdout;
    print(&format!("{}\n", look.paint(Shade::Bold, &format!("> {PROMPT}"))));
    let desk = desk(&wish, environment, &stage, &server.base_url)?;
    let store = desk.store.clone();
    let prompt = Prompt::new(PROMPT).origin(Origin::Headless);
    let output = Output::shown(&desk);
    let code = headless::carry_out(desk, &Which::New, Some(prompt), output).await?;
    drop(server);
    let session = store.sessions(Default::default()).await?.into_iter().next();
    let session = session.ok_or_else(|| Failure::new(Code::Failed, "the demo's session is not in its store"))?.session;
    let records = store.salvage(session).await.0;
    let totals = State::fold(&records).totals;
    let after = fs::read_to_string(stage.work.join(FILE)).unwrap_or_default();
    let mut text = String::from("\n");
    if after != stage.before {
        let changed =
            similar::TextDiff::from_lines(&stage.before, &after).unified_diff().header(FILE, FILE).to_string();
        text += &format!("{}\n\n", diff(&changed, look));
    }
    text += &format!("{}\n", words::calls(totals.model_calls, totals.tool_runs));
    let (home, windlass) = (stage.home.display(), as_called());
    text += &format!("see every step: WINDLASS_HOME={home} {windlass} log {session}\n");
    if wish.keep {
        text += &format!("the folder it worked in: {}\n", stage.work.display());
    } else {
        // A folder that stays behind does no harm.
        let _ = fs::remove_dir_all(&stage.work);
    }
    print(&text);
    judge(code, &stage.before, &after)
}

fn judge(code: Code, before: &str, after: &str) -> Ended {
    let expected: Vec<&str> =
        before.lines().map(|line| if line.starts_with("port = ") { WANTED } else { line }).collect();
    if after.lines().eq(expected) && code == Code::Done {
        return Ok(Code::Done);
    }
    if code == Code::Interrupted {
        return Ok(code);
    }
    let why = if after == before { "the file was not changed" } else { "the file is not what was asked for" };
    Err(Failure::new(
        Code::Failed,
        format!("the demo did not come to its end: {why}; the lines above say what happened"),
    ))
}

fn set(wish: &Wish) -> Result<Stage, Failure> {
    let failed =
        |error: std::io::Error| Failure::new(Code::Failed, format!("no folder for the demo can be made: {error}"));
    let root = tempfile::Builder::new().prefix("windlass-demo-").tempdir().map_err(failed)?.keep();
    let (work, home) = (root.join("work"), root.join("home"));
    let before = format!("# The server's settings.\nhost = \"127.0.0.1\"\nport = {}\nworkers = 4\n", wish.port_in_file);
    fs::create_dir_all(&work).and_then(|()| fs::create_dir_all(&home)).map_err(failed)?;
    fs::write(work.join(FILE), &before).map_err(failed)?;
    fs::write(home.join("demo.toml"), SCRIPT).map_err(failed)?;
    Ok(Stage { work, home, before })
}

/// The ordinary desk, in the demo's folder, with the demo's home and the demo's model.
fn desk(wish: &Wish, environment: Environment, stage: &Stage, base_url: &str) -> Result<Desk, Failure> {
    let mut config = vec![];
    if let Some(tool) = &wish.disable_tool {
        config.push(format!("tools.{tool}.enabled=false"));
    }
    let flags = Flags {
        // A name without a price: nothing is paid here.
        model: Some("anthropic/scripted".into()),
        base_url: Some(base_url.to_owned()),
        permission_mode: Some("accept-edits".into()),
        config,
        ..Flags::default()
    };
    let mut variables = environment.variables.clone();
    // The scripted model wants a key, as the real one does; the real one is for somebody else.
    variables.insert("ANTHROPIC_API_KEY".into(), "demo".into());
    let environment = Environment {
        variables,
        cwd: stage.work.clone(),
        config_dir: stage.home.clone(),
        data_dir: stage.home.join("data"),
        ..environment
    };
    Desk::new(flags, environment)
}

/// The model's process; it ends with its stdin, and so never outlives this one.
struct Server {
    child: Child,
    base_url: String,
}

impl Server {
    fn start(home: &Path) -> Result<Server, Failure> {
        let failed = |why: String| Failure::new(Code::Failed, format!("the demo's model can't be started: {why}"));
        let program = std::env::current_exe().map_err(|error| failed(error.to_string()))?;
        let mut child = Command::new(program)
            .args(["mock", "--until-stdin-closes", "--script"])
            .arg(home.join("demo.toml"))
            .env("WINDLASS_HOME", home)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| failed(error.to_string()))?;
        let mut line = String::new();
        if let Some(stdout) = child.stdout.take() {
            BufReader::new(stdout).read_line(&mut line).map_err(|error| failed(error.to_string()))?;
        }
        if !line.starts_with("http://") {
            return Err(failed("it did not tell its address".into()));
        }
        Ok(Server { child, base_url: line.trim().to_owned() })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Killed by us or ended by itself: it must only be gone.
        if self.child.kill().is_err() {
            tell("windlass: the demo's model had ended by itself");
        }
        let _ = self.child.wait();
    }
}

/// The name this program was called by: one that the reader can type, whether it is installed or not.
fn as_called() -> String {
    std::env::args().next().unwrap_or_else(|| "windlass".into())
}
