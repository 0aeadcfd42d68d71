//! A workshop for stories: a scripted model behind real HTTP, an agent in a folder of its own, and the log as text.
#![allow(dead_code)] // each test file uses its part

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use windlass::kernel::*;
use windlass::runtime::{Frame, SendError};
use windlass::store::{SqliteOptions, SqliteStore, Store, Worker};
use windlass::tools::{Confirm, Tool, ToolOutput, ToolRun, Workspace};
use windlass::{Agent, AgentBuilder, Protocol, Provider, Providers, Session, Turn};
use windlass_mock::{Options, Script, Server};

/// Longer than anything in a story takes: a story that would hang fails instead.
pub const TOO_LONG: Duration = Duration::from_secs(20);

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
        self.speaking(Protocol::Anthropic)
    }

    /// The same over any protocol.
    pub fn speaking(&self, protocol: Protocol) -> AgentBuilder {
        let base = self.server.base_url();
        let url = match protocol {
            Protocol::Anthropic | Protocol::Bedrock => base,
            Protocol::Chat | Protocol::Responses => format!("{base}/v1"),
            Protocol::Gemini => format!("{base}/v1beta"),
            Protocol::Vertex => format!("{base}/v1/projects/p/locations/l"),
        };
        let mut providers = Providers::default();
        providers.set("mock", Provider::at(protocol, url).with_key("key"));
        let env = BTreeMap::from([("PATH".to_owned(), std::env::var("PATH").unwrap())]);
        let builder = Agent::builder().cwd(self.folder.path()).providers(providers).model("mock/model");
        builder.mode(PermissionMode::Bypass).scratch(self.folder.path().join(".scratch")).env(env)
    }

    /// An agent that asks before it changes anything, and somebody to be asked.
    pub fn asking(&self) -> AgentBuilder {
        self.agent().mode(PermissionMode::Default).interactive(true)
    }

    /// A store on disk, as this process opens it.
    pub fn store(&self) -> Arc<dyn Store> {
        self.store_with(SqliteOptions::default())
    }

    pub fn store_with(&self, options: SqliteOptions) -> Arc<dyn Store> {
        let worker = Worker { id: "story".into(), pid: std::process::id(), started: 0, boot_id: "here".into() };
        let path = self.folder.path().join(".store/windlass.db");
        Arc::new(SqliteStore::open_with(&path, worker, options).unwrap())
    }

    /// The bodies of all requests, oldest first.
    pub fn bodies(&self) -> Vec<serde_json::Value> {
        self.server.requests().iter().map(windlass_mock::Seen::json).collect()
    }

    /// What stands before the messages in each request, byte for byte: what a provider may keep.
    pub fn heads(&self) -> Vec<String> {
        let head = |seen: &windlass_mock::Seen| {
            let body = String::from_utf8(seen.body.to_vec()).unwrap();
            let (head, _) = body.split_once("\"messages\":[").expect("a request has messages");
            head.to_owned()
        };
        self.server.requests().iter().map(head).collect()
    }

    /// What went out with the newest request.
    pub fn newest(&self) -> serde_json::Value {
        self.bodies().pop().expect("no request yet")
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

/// The session's state, once it is known to be what its log folds to and to break no invariant.
pub async fn checked(agent: &Agent, session: &Session) -> State {
    let state = session.handle().state().await.unwrap();
    let records = agent.setup().store.read(session.id(), Seq(1), state.head.0 as usize).await.unwrap();
    let places: Vec<_> = records.iter().map(|record| record.seq.0).collect();
    assert_eq!(places, (1..=state.head.0).collect::<Vec<_>>());
    assert_eq!(State::fold(&records), state, "the state is not what the log folds to");
    state.check().unwrap();
    state
}

/// The same, with what happened.
pub async fn checked_story(agent: &Agent, session: &Session) -> (Vec<String>, State) {
    let state = checked(agent, session).await;
    (story(&log(&agent.setup().store, session.id()).await), state)
}

/// Fails where `future` takes too long.
pub async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(TOO_LONG, future).await.expect("it takes too long")
}

/// Follows the turn to the first event that `wanted` finds something in.
pub async fn until<T>(turn: &mut Turn, wanted: impl Fn(&Event) -> Option<T>) -> T {
    use futures_util::StreamExt;
    let found = async {
        while let Some(frame) = turn.next().await {
            if let Frame::Record(record) = frame.unwrap()
                && let Some(found) = wanted(&record.event)
            {
                return found;
            }
        }
        panic!("the turn ended before")
    };
    soon(found).await
}

/// The next question that is asked.
pub async fn question(turn: &mut Turn) -> (CallId, Box<Question>) {
    until(turn, |event| match event {
        Event::Asked { call, question } => Some((call.clone(), question.clone())),
        _ => None,
    })
    .await
}

/// The call that begins to run next.
pub async fn started(turn: &mut Turn) -> CallId {
    until(turn, |event| match event {
        Event::ToolStarted(started) => Some(started.call.clone()),
        _ => None,
    })
    .await
}

/// An answer to `question`, for this once.
pub fn answer(call: &CallId, question: &Question, decision: Decision) -> Box<Answered> {
    let (call, hash) = (call.clone(), question.hash.clone());
    let (scope, by) = (Scope::Once, "story".into());
    Box::new(Answered { call, hash, decision, scope, rule: None, more_rules: vec![], changed: None, by })
}

pub async fn send(session: &Session, answer: Box<Answered>) -> Result<Seq, SendError> {
    session.handle().send(Command::Answer(answer)).await
}

/// A tool made of a few words: what it does stands in its `act`.
pub struct Odd {
    pub name: &'static str,
    pub access: Access,
    pub confirm: Confirm,
    pub act: Act,
}

pub enum Act {
    Say(&'static str),
    Panic,
    PanicInPlan,
    PanicInNormalise,
    /// Until it is cancelled.
    Wait,
}

impl Odd {
    pub fn reader(name: &'static str, act: Act) -> Odd {
        Odd { name, access: Access::Read, confirm: Confirm::AsPolicySays, act }
    }
}

#[windlass::async_trait]
impl Tool for Odd {
    fn name(&self) -> &str {
        self.name
    }

    fn description(&self) -> &str {
        "Does something odd."
    }

    fn schema(&self) -> serde_json::Value {
        serde_json::json!({"type": "object", "properties": {"n": {"type": "integer"}}})
    }

    fn normalise(&self, input: serde_json::Value) -> serde_json::Value {
        assert!(!matches!(self.act, Act::PanicInNormalise), "it fell apart");
        input
    }

    fn plan(&self, _: &serde_json::Value, _: &Workspace) -> CallPlan {
        assert!(!matches!(self.act, Act::PanicInPlan), "the plan fell apart");
        let on_crash = if self.access == Access::Read { OnCrash::Repeat } else { OnCrash::Unknown };
        CallPlan { access: self.access, on_crash, ..CallPlan::default() }
    }

    fn confirm(&self, _: &serde_json::Value) -> Confirm {
        self.confirm
    }

    async fn call(&self, _: serde_json::Value, run: &ToolRun) -> ToolOutput {
        match self.act {
            Act::Say(text) => ToolOutput::text(text),
            Act::Wait => {
                run.cancel.cancelled().await;
                ToolOutput::error("called back")
            }
            _ => panic!("the wheels came off"),
        }
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
