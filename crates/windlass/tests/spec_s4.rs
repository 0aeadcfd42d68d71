//! Stories of the framework: its layers, calls side by side, and a history that is put away without breaking.

mod common;

use common::*;
use futures_util::StreamExt;
use serde_json::Value;
use windlass::kernel::*;
use windlass::prompts::Facts;
use windlass::runtime::Frame;
use windlass::{Agent, Protocol, Session};

const PROTOCOLS: [Protocol; 2] = [Protocol::Anthropic, Protocol::Chat];

/// Which of our own packages `package` is built on, tests aside.
fn built_on(package: &str) -> Vec<String> {
    let path = format!("{}/../{package}/Cargo.toml", env!("CARGO_MANIFEST_DIR"));
    let manifest = std::fs::read_to_string(path).unwrap();
    let dependencies = manifest.split_once("[dependencies]").unwrap().1.split("\n[").next().unwrap().to_owned();
    let names = dependencies.lines().filter_map(|line| line.split(['.', ' ', '=']).next());
    names.filter(|name| name.starts_with("windlass")).map(str::to_owned).collect()
}

#[test]
fn s4_01_the_layers_know_only_what_lies_below_them() {
    let below = ["windlass-kernel", "windlass-sandbox"];
    assert_eq!(built_on("tools"), below, "tools know neither the loop nor who asks");
    let above = ["windlass", "windlass-cli"];
    for engine in ["kernel", "policy", "prompt", "llm", "store", "runtime"] {
        let below = built_on(engine);
        assert!(!below.iter().any(|name| above.contains(&name.as_str())), "{engine}: {below:?}");
    }
    assert!(built_on("cli").contains(&"windlass".to_owned()));
}

/// A session of an agent for a harbour: its own words, its own tool, and the loop as it is.
fn harbour(workshop: &Workshop) -> Agent {
    let facts = Facts { system_prompt: Some("You keep the harbour book.".into()), ..Facts::default() };
    let tide = Odd::reader("tide", Act::Say("high water at noon"));
    workshop.speaking(Protocol::Chat).facts(facts).tool(tide).build().unwrap()
}

const TIDE: &str = r#"
    [[step]]
    expect = [{ system = "You keep the harbour book" }]
    blocks = [{ tool = "tide", input = {} }]
    [[step]]
    expect = [{ tool_result = "^high water at noon$" }]
    blocks = [{ text = "come at noon" }]
"#;

#[tokio::test]
async fn s4_01_a_new_domain_is_a_tool_and_a_prompt_and_the_engine_stays_as_it_is() {
    let workshop = Workshop::playing(TIDE);
    let agent = harbour(&workshop);
    let session = agent.open().await.unwrap();
    let turn = session.submit("when may I come in?").await.unwrap();
    let frames: Vec<Frame> = soon(turn.map(|frame| frame.unwrap()).collect()).await;
    let heard: String = frames.iter().filter_map(delta).filter(|text| text.contains("noon")).collect();
    assert_eq!(heard, "come at noon");
    checked(&agent, &session).await;
}

#[test]
fn s4_01_another_way_in_meets_the_same_engine() {
    let workshop = Workshop::playing(TIDE);
    let answer = harbour(&workshop).run("when may I come in?").unwrap();
    assert_eq!((answer.end, answer.text.as_str(), answer.tally.tool_runs), (End::Done, "come at noon", 1));
}

#[tokio::test]
async fn s4_13_calls_that_need_nothing_of_each_other_run_at_once() {
    // Each goes on only when all three have begun.
    let call = |n: usize| {
        let command = format!("touch here{n}; until [ -e here0 ] && [ -e here1 ] && [ -e here2 ]; do sleep 0.02; done");
        format!("{{ tool = 'bash', id = 'c{n}', input = {{ command = '{command}' }} }}")
    };
    let calls: Vec<_> = (0..3).map(call).collect();
    let script = format!("[[step]]\nblocks = [{}]\n[[step]]\nblocks = [{{ text = 'all met' }}]", calls.join(", "));
    for protocol in PROTOCOLS {
        let workshop = Workshop::playing(&script);
        let profile = Profile::named("s4-framework").unwrap();
        let agent = workshop.speaking(protocol).profile(profile).build().unwrap();
        let session = agent.open().await.unwrap();
        assert_eq!(soon(session.run("meet")).await.unwrap().text, "all met");
        let (story, _) = checked_story(&agent, &session).await;
        let last_begun = (0..3).map(|n| place(&story, &format!("run c{n}"))).max();
        let first_done = (0..3).map(|n| place(&story, &format!("done c{n} Ok"))).min();
        assert!(last_begun < first_done, "{story:#?}");
    }
}

const PUT_AWAY: &str = r#"
    [[step]]
    when = { last_user = "six headings" }
    blocks = [{ text = "THE SUMMARY" }]
    [[step]]
    when = { contains = "THE SUMMARY" }
    blocks = [{ text = "I remember" }]
    [[step]]
    rounds = 2
    blocks = [{ tool = "ls", input = { path = "." } }, { tool = "read", input = { path = "a" } }]
    [[step]]
    blocks = [{ text = "seen" }]
    [[step]]
    blocks = [{ tool = "ls", input = { path = "." } }]
    [[step]]
    blocks = [{ text = "seen again" }]
"#;

/// A session with calls and results behind it, of whose history `keep_last` messages at least are to stay.
async fn put_away(workshop: &Workshop, protocol: Protocol, keep_last: usize) -> (Agent, Session) {
    workshop.write("a", "alpha");
    let profile = Profile { keep_last, ..Profile::named("s4-framework").unwrap() };
    let agent = workshop.speaking(protocol).profile(profile).build().unwrap();
    let session = agent.open().await.unwrap();
    soon(session.run("look")).await.unwrap();
    soon(session.run("look again")).await.unwrap();
    soon(session.run("/compact")).await.unwrap();
    assert_eq!(soon(session.run("go on")).await.unwrap().text, "I remember");
    (agent, session)
}

#[tokio::test]
async fn s4_26_the_system_message_is_the_same_before_and_after() {
    for protocol in PROTOCOLS {
        let workshop = Workshop::playing(PUT_AWAY);
        let (agent, session) = put_away(&workshop, protocol, 2).await;
        let system = |body: &Value| match protocol {
            Protocol::Anthropic => body["system"].clone(),
            _ => body["messages"][0].clone(),
        };
        let bodies = workshop.bodies();
        let (before, after) = (system(&bodies[0]), system(bodies.last().unwrap()));
        assert!(before.to_string().len() > 100, "{before}");
        assert_eq!(before, after, "{protocol:?}");
        if protocol == Protocol::Chat {
            assert_eq!(after["role"], "system");
        }
        assert!(!bodies.last().unwrap()["messages"].to_string().contains("\"look\""), "the rest was put away");
        checked(&agent, &session).await;
    }
}

#[tokio::test]
async fn s4_27_wherever_the_cut_is_wanted_no_call_is_parted_from_its_result() {
    // Ten messages: prompt, calls, results, calls, results, answer; prompt, call, result, answer.
    let mut boundaries = vec![];
    for keep_last in 0..10 {
        let protocol = PROTOCOLS[keep_last % 2];
        let workshop = Workshop::playing(PUT_AWAY);
        let (agent, session) = put_away(&workshop, protocol, keep_last).await;
        let state = checked(&agent, &session).await;
        let results = |message: &Message| matches!(message.content.first(), Some(ContentBlock::ToolResult(_)));
        assert!(!results(&state.messages[state.boundary]), "{keep_last}: cut at {}", state.boundary);
        // The server refuses a request with a call or a result alone: that it answered says that there was none.
        assert!(workshop.server.requests().iter().all(|seen| seen.status == 200));
        boundaries.push(state.boundary);
    }
    assert_eq!(boundaries, [10, 9, 7, 7, 6, 5, 3, 3, 1, 1]);
}
