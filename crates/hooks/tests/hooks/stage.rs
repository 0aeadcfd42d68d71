//! A folder with hooks, and events to ask them about.

use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use windlass_hooks::{
    Event, EventName, Hooks, Launch, Mode, Notification, NotificationKind, Origin, Outcome, PostToolUse, PreCompact,
    PreToolUse, SessionSource, SessionStart, Stop, SubagentStop, ToolResponse, Trigger, UserPromptSubmit, Walled,
};

pub struct Stage {
    pub folder: TempDir,
}

impl Stage {
    pub fn new() -> Stage {
        Stage { folder: TempDir::new().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    pub fn origin(&self) -> Origin {
        Origin {
            session_id: "0190".into(),
            transcript_path: None,
            cwd: self.folder.path().into(),
            permission_mode: Mode::AcceptEdits,
            agent: None,
        }
    }

    pub fn launch(&self) -> Launch {
        let path = std::env::var("PATH").unwrap();
        let env = [("PATH".to_owned(), path), ("COLOR".to_owned(), "blue".to_owned())].into();
        Launch {
            env: Arc::new(env),
            project_dir: self.path("project"),
            wall: Arc::new(|command| Ok(Walled::bare(command))),
        }
    }

    /// Asks hooks about an event, here and without a wall.
    pub async fn run(&self, hooks: &Hooks, event: Event) -> Outcome {
        hooks.run(event, &self.origin(), &self.launch(), &CancellationToken::new()).await
    }

    /// Asks hooks given as TOML.
    pub async fn ask(&self, hooks: &str, event: Event) -> Outcome {
        self.run(&read(hooks), event).await
    }

    /// Asks one hook, which runs `command`.
    pub async fn ask_one(&self, command: &str, event: Event) -> Outcome {
        let hooks = table(event.name(), json!([{"name": "guard", "command": command}]));
        self.run(&hooks, event).await
    }

    /// Asks one hook, which prints `answer`.
    pub async fn ask_answer(&self, answer: &Value, event: Event) -> Outcome {
        std::fs::write(self.path("answer.json"), answer.to_string()).unwrap();
        self.ask_one("cat answer.json", event).await
    }

    /// Waits until a file holds `count` words, and gives them as numbers.
    pub async fn numbers(&self, name: &str, count: usize) -> Vec<u32> {
        while self.read(name).split_whitespace().count() < count {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        self.read(name).split_whitespace().map(|number| number.parse().unwrap()).collect()
    }
}

pub fn read(hooks: &str) -> Hooks {
    let table: Value = toml::from_str(hooks).unwrap();
    let mut read = Hooks::default();
    read.add("config.toml", &table["hooks"]).unwrap();
    read
}

pub fn table(event: EventName, rows: Value) -> Hooks {
    let mut read = Hooks::default();
    read.add("config.toml", &json!({event.text(): rows})).unwrap();
    read
}

/// Whether a process runs; a zombie does not.
pub fn alive(pid: &u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

/// Waits until none of the processes runs.
pub async fn gone(pids: &[u32]) {
    while pids.iter().any(alive) {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

pub fn bash(command: &str) -> Event {
    call("bash", json!({"command": command}))
}

pub fn call(tool: &str, input: Value) -> Event {
    Event::PreToolUse(PreToolUse { tool_name: tool.into(), tool_input: input, tool_use_id: "call_1".into() })
}

pub fn after() -> Event {
    Event::PostToolUse(PostToolUse {
        tool_name: "edit".into(),
        tool_input: json!({"path": "src/lib.rs"}),
        tool_response: ToolResponse { text: "edited".into(), is_error: false, value: Some(json!({"added": 1})) },
        tool_use_id: "call_1".into(),
    })
}

pub fn prompt(text: &str) -> Event {
    Event::UserPromptSubmit(UserPromptSubmit { prompt: text.into() })
}

pub fn begin() -> Event {
    Event::SessionStart(SessionStart { source: SessionSource::Startup, model: Some("some-model".into()) })
}

pub fn stop(stop_hook_active: bool) -> Event {
    Event::Stop(Stop { stop_hook_active, last_assistant_message: Some("All done.".into()) })
}

pub fn agent_stop() -> Event {
    Event::SubagentStop(SubagentStop { stop_hook_active: false, last_assistant_message: None })
}

pub fn compact(trigger: Trigger) -> Event {
    Event::PreCompact(PreCompact { trigger, custom_instructions: "keep the names".into() })
}

pub fn notice() -> Notification {
    Notification { message: "bash needs approval".into(), notification_type: NotificationKind::PermissionPrompt }
}

/// One of each.
pub fn events() -> Vec<Event> {
    vec![
        bash("ls"),
        after(),
        prompt("Fix it"),
        begin(),
        stop(false),
        agent_stop(),
        compact(Trigger::Manual),
        Event::Notification(notice()),
    ]
}
