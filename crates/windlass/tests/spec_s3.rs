//! Stories of the loop with its tools and events: what it is given, what it gathers, and what it tells.

mod common;

use common::*;
use futures_util::StreamExt;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use windlass::Protocol;
use windlass::kernel::*;
use windlass::llm::Prices;
use windlass::policy::Policy;
use windlass::runtime::{DeltaKind, Frame};
use windlass::tools::{Tool, ToolOutput, ToolRun, Tools, Workspace, builtin};

const PROTOCOLS: [Protocol; 2] = [Protocol::Anthropic, Protocol::Chat];

/// Says in which folder it stands; only as a type of its own does it differ from the others.
struct Where;

#[windlass::async_trait]
impl Tool for Where {
    fn name(&self) -> &str {
        "where"
    }

    fn description(&self) -> &str {
        "Says where it is."
    }

    fn schema(&self) -> Value {
        json!({"type": "object", "properties": {}})
    }

    fn plan(&self, _: &Value, _: &Workspace) -> CallPlan {
        CallPlan { access: Access::Read, on_crash: OnCrash::Repeat, ..CallPlan::default() }
    }

    async fn call(&self, _: Value, run: &ToolRun) -> ToolOutput {
        ToolOutput::text(run.workspace.cwd.display().to_string())
    }
}

#[tokio::test]
async fn s3_10_what_the_loop_is_given_counts_and_it_returns_how_it_ended() {
    let script = r#"
        [[step]]
        usage = { input = 1000, output = 100 }
        blocks = [{ tool = "where", id = "w", input = {} }, { tool = "bash", id = "c", input = { command = "until [ -e go ]; do sleep 0.02; done" } }]
        [[step]]
        usage = { input = 2000, output = 10 }
        expect = [{ contains = "and hurry" }]
        blocks = [{ text = "hurried" }]
        [[step]]
        hang = { in_block = 0, after_chars = 3 }
        blocks = [{ text = "and so on" }]
    "#;
    let workshop = Workshop::playing(script);
    let tools = Arc::new(Tools::default());
    tools.register(Arc::new(Where));
    builtin().into_iter().filter(|tool| tool.name() == "bash").for_each(|tool| tools.register(tool));
    let prices = Prices::from_dollars(1.0, 10.0, 1.0, 1.0).unwrap();
    let agent = workshop.agent().tools(tools).profile(Profile { max_turns: 2, ..Profile::default() });
    let agent = agent.prices(move |_| Some(prices)).build().unwrap();
    let session = agent.open().await.unwrap();
    let mut listener = session.handle().follow(Seq(1));

    // Tools, their folder, and a message that came while they ran.
    let turn = session.submit("look around").await.unwrap();
    started(&mut session.rejoin(Seq(1))).await;
    session.submit("and hurry").await.unwrap();
    workshop.write("go", "");
    let outcome = soon(turn.finish()).await.unwrap();
    assert_eq!((outcome.end, outcome.text.as_str()), (End::Done, "hurried"));
    assert_eq!(outcome.tally.cost_micro_usd, Some(1_000 + 1_000 + 2_000 + 100));
    let state = checked(&agent, &session).await;
    let there = workshop.folder.path().canonicalize().unwrap();
    assert!(results(&state)[0].ends_with(&there.display().to_string()), "{:?}", results(&state));
    let offered: Vec<_> =
        workshop.newest()["tools"].as_array().unwrap().iter().map(|tool| tool["name"].clone()).collect();
    assert_eq!(offered, ["bash", "where"]);

    // The messages of before are still there; the signal to stop ends it.
    let mut turn = session.submit("go on").await.unwrap();
    soon(async { while delta(&turn.next().await.unwrap().unwrap()).is_none() {} }).await;
    session.handle().send(Command::Interrupt { by: "story".into() }).await.unwrap();
    assert_eq!(soon(turn.finish()).await.unwrap().end, End::Interrupted);
    assert!(workshop.newest()["messages"].to_string().contains("look around"));
    assert_eq!(checked(&agent, &session).await.totals.user_turns, 3);

    // Who listened heard of both ends.
    let mut ends = vec![];
    while ends.len() < 2 {
        let frame = soon(listener.next()).await.unwrap().unwrap();
        if let Frame::Record(record) = frame
            && let Event::TurnFinished { end, .. } = &record.event
        {
            ends.push(end.clone());
        }
    }
    assert_eq!(ends, [End::Done, End::Interrupted]);
}

#[tokio::test]
async fn s3_10_the_configured_limit_is_an_outcome_too() {
    let workshop = Workshop::playing("[[step]]\nrounds = 9\nblocks = [{ tool = 'ls', input = { path = '.' } }]");
    let agent = workshop.agent().profile(Profile { max_turns: 2, ..Profile::default() }).build().unwrap();
    let session = agent.open().await.unwrap();
    assert_eq!(soon(session.run("go on")).await.unwrap().end, End::MaxTurns { turns: 2 });
    checked(&agent, &session).await;
}

#[tokio::test]
async fn s3_16_thinking_text_and_calls_are_put_together_from_fragments() {
    let script = r#"
        [[step]]
        fragment = 3
        split = 7
        blocks = [
          { thinking = "Where would it be?", signature = "sealed" },
          { text = "I will look – in both." },
          { tool = "ls", id = "c0", input = { path = "." } },
          { tool = "read", id = "c1", input = { path = "a", limit = 5 } },
        ]
        [[step]]
        blocks = [{ text = "there" }]
    "#;
    for protocol in PROTOCOLS {
        let workshop = Workshop::playing(script);
        workshop.write("a", "alpha");
        let agent = workshop.speaking(protocol).build().unwrap();
        let session = agent.open().await.unwrap();
        soon(session.run("where is it?")).await.unwrap();
        let state = checked(&agent, &session).await;
        let content = &state.messages[1].content;
        let kinds: Vec<_> = content.iter().map(ContentBlock::kind).collect();
        assert_eq!(kinds, ["thinking", "text", "tool_use", "tool_use"], "{protocol:?}");
        let ContentBlock::Thinking { thinking, signature, .. } = &content[0] else { panic!("{content:?}") };
        assert_eq!(thinking, "Where would it be?");
        if protocol == Protocol::Anthropic {
            assert_eq!(signature.as_deref(), Some("sealed"));
        }
        assert_eq!(text_of(content), "I will look – in both.");
        let inputs = content.iter().filter_map(|block| match block {
            ContentBlock::ToolUse(call) => Some((call.name.as_str(), call.input.clone())),
            _ => None,
        });
        assert_eq!(
            inputs.collect::<Vec<_>>(),
            [("ls", json!({"path": "."})), ("read", json!({"path": "a", "limit": 5}))]
        );
    }
}

#[tokio::test]
async fn s3_30_what_is_not_blocked_runs_together_writers_too() {
    // Each of the two waits for the other; the third is denied before.
    let script = r#"
        [[step]]
        blocks = [
          { tool = "bash", id = "a", input = { command = "echo a > a; until [ -e b ]; do sleep 0.02; done" } },
          { tool = "bash", id = "denied", input = { command = "touch made" } },
          { tool = "bash", id = "b", input = { command = "echo b > b; until [ -e a ]; do sleep 0.02; done" } },
        ]
        [[step]]
        blocks = [{ text = "met" }]
    "#;
    for protocol in PROTOCOLS {
        let workshop = Workshop::playing(script);
        let policy = Policy::new(&[], &["bash(touch:*)".into()], &[]).unwrap();
        let profile = Profile::named("s3-box").unwrap();
        let agent = workshop.speaking(protocol).policy(policy).profile(profile).build().unwrap();
        let session = agent.open().await.unwrap();
        assert_eq!(soon(session.run("meet")).await.unwrap().text, "met");
        let (story, state) = checked_story(&agent, &session).await;
        assert!(place(&story, "run b") < place(&story, "done a Ok"), "{story:#?}");
        assert!(place(&story, "run a") < place(&story, "done b Ok"), "{story:#?}");
        assert!(!story.contains(&"run denied".to_owned()) && !workshop.folder.path().join("made").exists());
        assert_eq!(results(&state).len(), 3);
    }
}

#[tokio::test]
async fn s3_31_results_come_back_as_a_message_of_the_user() {
    let script = r#"
        [[step]]
        blocks = [{ tool = "read", id = "c0", input = { path = "a" } }, { tool = "read", id = "c1", input = { path = "b" } }]
        [[step]]
        blocks = [{ text = "read" }]
    "#;
    let workshop = Workshop::playing(script);
    workshop.write("a", "alpha");
    workshop.write("b", "beta");
    let agent = workshop.agent().profile(Profile::named("s3-box").unwrap()).build().unwrap();
    let session = agent.open().await.unwrap();
    soon(session.run("read both")).await.unwrap();
    let request = workshop.newest();
    let messages = request["messages"].as_array().unwrap();
    assert_eq!((messages.len(), &messages[1]["role"], &messages[2]["role"]), (3, &json!("assistant"), &json!("user")));
    let blocks = messages[2]["content"].as_array().unwrap();
    let ids: Vec<_> = blocks.iter().map(|block| (block["type"].clone(), block["tool_use_id"].clone())).collect();
    assert_eq!(ids, [(json!("tool_result"), json!("c0")), (json!("tool_result"), json!("c1"))]);
    assert!(blocks[0].to_string().contains("alpha") && blocks[1].to_string().contains("beta"), "{blocks:#?}");
    let state = checked(&agent, &session).await;
    assert_eq!((state.messages[2].role, state.messages[2].content.len()), (Role::User, 2));
}

#[tokio::test]
async fn s3_33_tools_of_any_type_are_found_by_their_names() {
    let script = r#"
        [[step]]
        blocks = [
          { tool = "look", id = "a", input = { n = 4, ms = 1 } },
          { tool = "where", id = "b", input = {} },
          { tool = "odd", id = "c", input = {} },
          { tool = "read", id = "d", input = { path = "a" } },
        ]
        [[step]]
        blocks = [{ text = "found" }]
    "#;
    for protocol in PROTOCOLS {
        let workshop = Workshop::playing(script);
        workshop.write("a", "alpha");
        let agent = workshop.speaking(protocol).tool(Slow::new()).tool(Where);
        let agent = agent.tool(Odd::reader("odd", Act::Say("how odd"))).build().unwrap();
        let session = agent.open().await.unwrap();
        soon(session.run("find them")).await.unwrap();
        let results = results(&checked(&agent, &session).await);
        let folder = workshop.folder.path().canonicalize().unwrap();
        assert_eq!(results[..3], ["a: saw 4".to_owned(), format!("b: {}", folder.display()), "c: how odd".to_owned()]);
        assert!(results[3].starts_with("d: ") && results[3].contains("alpha"), "{results:?}");
    }
}

/// The four events a front end may want, made of the frames of a turn.
#[derive(Debug, PartialEq)]
enum Told {
    Token(String),
    ToolStart { name: String, id: String, input: Value },
    ToolEnd { name: String, id: String, result: String },
    Status(String),
}

#[derive(Default)]
struct Teller {
    calls: BTreeMap<String, ToolUse>,
}

impl Teller {
    fn tell(&mut self, frame: &Frame) -> Option<Told> {
        let record = match frame {
            Frame::Delta(delta) if delta.delta == DeltaKind::Text => return Some(Told::Token(delta.text.clone())),
            Frame::Delta(_) => return None,
            Frame::Record(record) => record,
        };
        match &record.event {
            Event::BlockFinished { block: ContentBlock::ToolUse(call), .. } => {
                self.calls.insert(call.id.0.clone(), call.clone());
                None
            }
            Event::ToolStarted(started) if started.process.is_none() => {
                let call = &self.calls[&started.call.0];
                Some(Told::ToolStart { name: call.name.clone(), id: call.id.0.clone(), input: call.input.clone() })
            }
            Event::ToolFinished(finished) => {
                let call = &self.calls[&finished.call.0];
                let result = text_of(&finished.blocks);
                Some(Told::ToolEnd { name: call.name.clone(), id: call.id.0.clone(), result })
            }
            Event::Began { step: Step::CallModel } | Event::TurnFinished { .. } => {
                Some(Told::Status(line(&record.event)))
            }
            _ => None,
        }
    }
}

/// Tokens that follow each other as one: in how many pieces they come is not the story's matter.
fn joined(all: Vec<Told>) -> Vec<Told> {
    let mut joined: Vec<Told> = vec![];
    for told in all {
        match (joined.last_mut(), told) {
            (Some(Told::Token(text)), Told::Token(more)) => text.push_str(&more),
            (_, told) => joined.push(told),
        }
    }
    joined
}

#[tokio::test]
async fn s3_45_tokens_tool_starts_tool_ends_and_status_can_be_told_from_the_frames() {
    let script = r#"
        [[step]]
        fragment = 6
        blocks = [{ text = "I will look." }, { tool = "bash", id = "c", input = { command = "echo found" } }]
        [[step]]
        blocks = [{ text = "done" }]
    "#;
    for protocol in PROTOCOLS {
        let workshop = Workshop::playing(script);
        let agent = workshop.speaking(protocol).build().unwrap();
        let session = agent.open().await.unwrap();
        let turn = session.submit("look").await.unwrap();
        let mut teller = Teller::default();
        let told = turn.filter_map(|frame| std::future::ready(teller.tell(&frame.unwrap())));
        let told = joined(soon(told.collect()).await);
        let (name, id) = (|| "bash".to_owned(), || "c".to_owned());
        let expected = [
            Told::Status("call model".into()),
            Told::Token("I will look.".into()),
            Told::ToolStart { name: name(), id: id(), input: json!({"command": "echo found"}) },
            Told::ToolEnd { name: name(), id: id(), result: "found\n".into() },
            Told::Status("call model".into()),
            Told::Token("done".into()),
            Told::Status("end Done".into()),
        ];
        assert_eq!(told, expected, "{protocol:?}");
        checked(&agent, &session).await;
    }
}
