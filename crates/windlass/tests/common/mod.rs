//! A workshop for stories: a scripted model behind real HTTP, an agent in a folder of its own, and the log as text.
#![allow(dead_code)] // each test file uses its part

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use windlass::kernel::*;
use windlass::runtime::Frame;
use windlass::store::Store;
use windlass::tools::{Tool, ToolOutput, ToolRun, Workspace};
use windlass::{Agent, AgentBuilder, Protocol, Provider, Providers};
use windlass_mock::{Options, Script, Server};

/// A server playing `script`, and a folder for the agent to work in.
pub struct Workshop {
    pub server: Server,
    pub folder: tempfile::TempDir,
}

impl Workshop {
    pub fn playing(script: &str) -> Workshop {
        let script = Script::parse(script).unwrap();
        let server = Server::start(Options { script, ..Options::default() }).unwrap();
        Workshop { server, folder: tempfile::tempdir().unwrap() }
    }

    pub fn write(&self, path: &str, text: &str) {
        std::fs::write(self.folder.path().join(path), text).unwrap();
    }

    pub fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(path)).unwrap_or_default()
    }

    /// An agent that may do everything the hard floor does not forbid.
    pub fn agent(&self) -> AgentBuilder {
        let mut providers = Providers::default();
        providers.set("mock", Provider::at(Protocol::Anthropic, self.server.base_url()).with_key("key"));
        let env = BTreeMap::from([("PATH".to_owned(), std::env::var("PATH").unwrap())]);
        let builder = Agent::builder().cwd(self.folder.path()).providers(providers).model("mock/model");
        builder.mode(PermissionMode::Bypass).scratch(self.folder.path().join(".scratch")).env(env)
    }

    /// How many connections the server has seen.
    pub fn connections(&self) -> usize {
        let conns: std::collections::BTreeSet<_> = self.server.requests().iter().map(|seen| seen.conn).collect();
        conns.len()
    }
}

/// A reader that takes its time, and counts how many of it run at once.
#[derive(Clone)]
pub struct Slow {
    pub running: Arc<AtomicUsize>,
    pub most: Arc<AtomicUsize>,
}

impl Slow {
    pub fn new() -> Slow {
        Slow { running: Arc::default(), most: Arc::default() }
    }
}

#[windlass::async_trait]
impl Tool for Slow {
    fn name(&self) -> &str {
        "look"
    }

    fn description(&self) -> &str {
        "Looks at something for a while."
    }

    fn schema(&self) -> serde_json::Value {
        serde_json::json!({"type": "object", "properties": {"n": {"type": "integer"}, "ms": {"type": "integer"}}})
    }

    fn plan(&self, _: &serde_json::Value, _: &Workspace) -> CallPlan {
        CallPlan { access: Access::Read, on_crash: OnCrash::Repeat, ..CallPlan::default() }
    }

    async fn call(&self, input: serde_json::Value, run: &ToolRun) -> ToolOutput {
        let now = self.running.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        let ms = input["ms"].as_u64().unwrap_or(300);
        tokio::select! {
            _ = tokio::time::sleep(Duration::from_millis(ms)) => {}
            _ = run.cancel.cancelled() => {}
        }
        self.running.fetch_sub(1, Ordering::SeqCst);
        ToolOutput { blocks: vec![ContentBlock::text(format!("saw {}", input["n"]))], ..ToolOutput::default() }
    }
}

/// All records of a session, read back from its store.
pub async fn log(store: &Arc<dyn Store>, session: SessionId) -> Vec<Record> {
    store.read(session, Seq(1), usize::MAX >> 1).await.unwrap()
}

/// The log's events by name, calls by id: what happened, in order.
pub fn story(records: &[Record]) -> Vec<String> {
    records.iter().map(|record| line(&record.event)).collect()
}

pub fn line(event: &Event) -> String {
    match event {
        Event::Began { step: Step::RunTool { call } } => format!("run {call}"),
        Event::Began { step: Step::CallModel } => "call model".into(),
        Event::Began { step: Step::Close { calls, why } } => {
            format!("close {} {why:?}", calls.iter().map(|call| call.0.as_str()).collect::<Vec<_>>().join(" "))
        }
        Event::Began { step } => format!("{step:?}").split([' ', '{']).next().unwrap_or_default().to_lowercase(),
        Event::BlockFinished { block: ContentBlock::ToolUse(tool_use), .. } => format!("use {}", tool_use.id),
        Event::BlockFinished { block: ContentBlock::Text { text }, partial, .. } => {
            format!("{} {text:?}", if *partial { "partial" } else { "text" })
        }
        Event::ToolFinished(finished) => format!("done {} {:?}", finished.call, finished.outcome),
        Event::ModelFinished { .. } => "model finished".into(),
        Event::ModelFailed { .. } => "model failed".into(),
        Event::TurnFinished { end, .. } => format!("end {end:?}"),
        other => {
            let json = serde_json::to_value(other).unwrap();
            json["type"].as_str().unwrap_or_default().to_owned()
        }
    }
}

/// Where `wanted` stands in the story.
pub fn place(story: &[String], wanted: &str) -> usize {
    story.iter().position(|line| line == wanted).unwrap_or_else(|| panic!("no {wanted:?} in\n{}", story.join("\n")))
}

/// Results of the newest message that has any, as `id: text`.
pub fn results(state: &State) -> Vec<String> {
    let is_result = |message: &&Arc<Message>| matches!(message.content.first(), Some(ContentBlock::ToolResult(_)));
    let message = state.messages.iter().rev().find(is_result).expect("no results yet");
    let result = |block: &ContentBlock| match block {
        ContentBlock::ToolResult(result) => format!("{}: {}", result.tool_use_id, text_of(&result.content)),
        other => format!("{other:?}"),
    };
    message.content.iter().map(result).collect()
}

/// The text of a frame's delta.
pub fn delta(frame: &Frame) -> Option<&str> {
    match frame {
        Frame::Delta(delta) => Some(&delta.text),
        Frame::Record(_) => None,
    }
}
