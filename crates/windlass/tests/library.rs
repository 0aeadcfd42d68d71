//! Windlass in somebody else's program: agents built, prompts submitted, answers had.

mod common;

use common::*;
use futures_util::StreamExt;
use windlass::kernel::*;
use windlass::llm::HttpOptions;
use windlass::runtime::Frame;
use windlass::{Agent, Prompt, Protocol, Provider, Providers};

const DONE: &str = "repeat = true\n[[step]]\nblocks = [{ text = 'done' }]";

#[test]
fn s4_05_one_prompt_runs_to_its_answer_on_a_plain_thread() {
    let workshop = Workshop::playing(
        "[[step]]\nblocks = [{ tool = 'ls', input = { path = '.' } }]\n[[step]]\nblocks = [{ text = 'nothing here' }]",
    );
    let answer = workshop.agent().build().unwrap().run("what is here?").unwrap();
    assert_eq!((answer.text.as_str(), answer.end), ("nothing here", End::Done));
    assert_eq!((answer.tally.model_calls, answer.tally.tool_runs), (2, 1));
}

#[test]
fn s4_05_a_run_that_fails_says_why_and_the_next_one_works() {
    let script = "[[step]]\ntimes = 1\nstatus = 400\nerror = { message = 'no such flag' }\n[[step]]\nblocks = [{ text = 'done' }]";
    let workshop = Workshop::playing(script);
    let agent = workshop.agent().build().unwrap();
    let failed = agent.run("go on").unwrap();
    let End::ModelError { message } = &failed.end else { panic!("{:?}", failed.end) };
    assert!(message.contains("no such flag"), "{message}");
    assert_eq!(agent.run("go on").unwrap().text, "done");
}

#[tokio::test]
async fn s0_02_the_stream_begins_with_the_prompt_and_ends_with_the_end_of_its_turn() {
    let script = "[[step]]\nfragment = 3\nblocks = [{ text = 'I will look.' }, { tool = 'ls', input = { path = '.' } }]\n[[step]]\nblocks = [{ text = 'done' }]";
    let workshop = Workshop::playing(script);
    let agent = workshop.agent().build().unwrap();
    let session = agent.open().await.unwrap();
    let turn = session.submit("what is here?").await.unwrap();
    let frames: Vec<Frame> = soon(turn.map(|frame| frame.unwrap()).collect()).await;
    let records: Vec<_> = frames
        .iter()
        .filter_map(|frame| match frame {
            Frame::Record(record) => Some(record),
            Frame::Delta(_) => None,
        })
        .collect();
    assert!(matches!(records[0].event, Event::Prompted(_)), "{:?}", records[0].event);
    assert!(matches!(frames.first(), Some(Frame::Record(_))) && matches!(frames.last(), Some(Frame::Record(_))));
    assert!(matches!(records.last().unwrap().event, Event::TurnFinished { end: End::Done, .. }));
    let (begun, first_delta) = (
        frames.iter().position(|frame| matches!(frame, Frame::Delta(_))).unwrap(),
        frames
            .iter()
            .position(
                |frame| matches!(frame, Frame::Record(record) if matches!(record.event, Event::BlockFinished { .. })),
            )
            .unwrap(),
    );
    assert!(begun < first_delta, "progress comes before the whole");
    let heard: String = frames.iter().filter_map(delta).collect();
    assert!(heard.starts_with("I will look."), "{heard}");
    checked(&agent, &session).await;
}

#[tokio::test]
async fn s0_01_history_totals_and_files_live_over_several_prompts() {
    let script = r#"
        [[step]]
        blocks = [{ tool = "read", input = { path = "a" } }]
        [[step]]
        blocks = [{ text = "alpha" }]
        [[step]]
        blocks = [{ tool = "edit", input = { path = "a", old = "alpha", new = "beta" } }]
        [[step]]
        expect = [{ contains = "what is in a?" }, { tool_result_error = false }]
        blocks = [{ text = "beta now" }]
    "#;
    let workshop = Workshop::playing(script);
    workshop.write("a", "alpha");
    let agent = workshop.agent().build().unwrap();
    let session = agent.open().await.unwrap();
    let first = soon(session.run("what is in a?")).await.unwrap();
    let files = checked(&agent, &session).await.files.len();
    // The edit is allowed because the read of the turn before is remembered.
    let second = soon(session.run("make it beta")).await.unwrap();
    assert_eq!((first.text.as_str(), second.text.as_str(), files), ("alpha", "beta now", 1));
    assert_eq!(workshop.read("a"), "beta");
    let state = checked(&agent, &session).await;
    assert_eq!((state.totals.user_turns, state.totals.model_calls), (2, 4));
    assert_eq!(state.totals.usage.input, first.tally.usage.input + second.tally.usage.input);
}

#[tokio::test]
async fn sessions_of_one_agent_know_nothing_of_each_other() {
    let workshop = Workshop::playing(DONE);
    let agent = workshop.agent().build().unwrap();
    let (one, other) = (agent.open().await.unwrap(), agent.open().await.unwrap());
    let (first, second) = tokio::join!(one.run("one"), other.run("other"));
    assert_eq!((first.unwrap().end, second.unwrap().end), (End::Done, End::Done));
    for body in workshop.bodies() {
        assert_eq!(body["messages"].as_array().unwrap().len(), 1);
    }
    assert_ne!(one.id(), other.id());
    checked(&agent, &one).await;
    checked(&agent, &other).await;
}

#[tokio::test]
async fn two_prompts_at_once_are_both_answered() {
    let workshop = Workshop::playing(DONE);
    let agent = workshop.agent().build().unwrap();
    let session = agent.open().await.unwrap();
    let (first, second) = soon(async { tokio::join!(session.run("one"), session.run("two")) }).await;
    assert_eq!((first.unwrap().text.as_str(), second.unwrap().text.as_str()), ("done", "done"));
    let state = checked(&agent, &session).await;
    assert_eq!(state.totals.user_turns, 2);
    assert!(state.is_idle() && state.pending.is_empty());
}

#[tokio::test]
async fn a_session_lies_down_with_its_last_handle() {
    let workshop = Workshop::playing(DONE);
    let store = workshop.store();
    let agent = workshop.agent().store(store.clone()).build().unwrap();
    let session = agent.open().await.unwrap();
    soon(session.run("hello")).await.unwrap();
    let id = session.id();
    drop(session);
    let free = async {
        loop {
            let sessions = store.sessions(Default::default()).await.unwrap();
            if sessions.iter().all(|info| info.held_by.is_none()) {
                break sessions;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    let sessions = soon(free).await;
    assert_eq!((sessions[0].session, sessions[0].title.as_str()), (id, "hello"));
}

fn here() -> windlass::AgentBuilder {
    Agent::builder().cwd("/")
}

#[test]
fn what_cannot_be_built_says_what_is_wrong_and_the_way_out() {
    let error = |agent: windlass::AgentBuilder| agent.build().err().unwrap().to_string();
    let proxy = HttpOptions { proxy: Some("not a proxy".into()), ..HttpOptions::default() };
    let errors = [
        error(Agent::builder()),
        error(Agent::builder().model("ollama/qwen3")),
        error(here().model("claude")),
        error(here().model("/x")),
        error(here().model("acme/x")),
        error(here().model("ollama/qwen3").http(proxy)),
    ];
    insta::assert_snapshot!(errors.join("\n"), @r#"
    no model is given: name one as PROVIDER/NAME, for example anthropic/claude-sonnet-4-5 or ollama/qwen3
    the folder "" is not absolute: give the whole path with `cwd`, for rules and sessions depend on it
    "claude" names no model: write PROVIDER/NAME, for example anthropic/claude-sonnet-4-5 or ollama/qwen3
    "/x" names no model: write PROVIDER/NAME, for example anthropic/claude-sonnet-4-5 or ollama/qwen3
    there is no provider "acme": known are anthropic, azure, baidu, bedrock, cerebras, cohere, deepinfra, deepseek, fireworks, github-models, google, groq, huggingface, llamacpp, lmstudio, minimax, mistral, moonshot, novita, nvidia, ollama, openai, openai-chat, openrouter, perplexity, qwen, qwen-intl, sambanova, siliconflow, together, vertex, vllm, volcengine, xai, zai, zhipu; give others their address with `[providers.acme]`
    the proxy `not a proxy` cannot be used: relative URL without a base; give an address like http://127.0.0.1:3128
    "#);
}

#[test]
fn a_key_that_is_missing_is_named_before_anything_is_sent() {
    let agent = here().model("anthropic/claude").build().unwrap();
    let answer = agent.run("hello").unwrap();
    let End::ModelError { message } = &answer.end else { panic!("{:?}", answer.end) };
    assert_eq!(message, "anthropic needs a key: set ANTHROPIC_API_KEY, or choose another model with --model");
}

#[test]
fn a_server_that_is_not_there_is_named_with_the_way_out() {
    let mut providers = Providers::default();
    // Nobody listens on the discard port.
    providers.set("here", Provider::at(Protocol::Chat, "http://127.0.0.1:9/v1"));
    let profile = Profile { max_model_errors: 1, ..Profile::default() };
    let agent = here().providers(providers).model("here/x").profile(profile).build().unwrap();
    let answer = agent.run("hello").unwrap();
    let End::ModelError { message } = &answer.end else { panic!("{:?}", answer.end) };
    assert!(message.contains("127.0.0.1:9"), "{message}");
}

#[tokio::test]
async fn s3_09_a_session_can_change_its_model_between_turns() {
    let workshop = Workshop::playing(DONE);
    let agent = workshop.agent().build().unwrap();
    let session = agent.open().await.unwrap();
    soon(session.run("one")).await.unwrap();
    let change = Configured { model: Some("mock/bigger".into()), ..Configured::default() };
    session.handle().send(Command::Configure(Box::new(change))).await.unwrap();
    soon(session.run("two")).await.unwrap();
    let models: Vec<_> = workshop.bodies().iter().map(|body| body["model"].as_str().unwrap().to_owned()).collect();
    assert_eq!(models, ["model", "bigger"]);
    assert_eq!(checked(&agent, &session).await.model, "mock/bigger");
}

#[tokio::test]
async fn a_note_is_shown_with_the_next_round_and_one_that_wakes_opens_a_turn() {
    let workshop = Workshop::playing(DONE);
    let agent = workshop.agent().build().unwrap();
    let session = agent.open().await.unwrap();
    let note = |n: u64, text: &str, wakes| Command::Note {
        input: InputId(uuid::Uuid::from_u64_pair(9, n)),
        text: text.into(),
        wakes,
    };
    session.handle().send(note(1, "it rains", false)).await.unwrap();
    assert_eq!(workshop.server.requests().len(), 0);
    let woken = session.handle().send(note(2, "the build is done", true)).await.unwrap();
    soon(session.rejoin(woken).finish()).await.unwrap();
    let said = workshop.newest()["messages"].to_string();
    assert!(said.contains("it rains") && said.contains("the build is done"), "{said}");
    checked(&agent, &session).await;
}

#[tokio::test]
async fn what_is_given_with_a_prompt_can_be_any_of_these() {
    let workshop = Workshop::playing(DONE);
    let agent = workshop.agent().build().unwrap();
    let session = agent.open().await.unwrap();
    soon(session.run(String::from("owned"))).await.unwrap();
    soon(session.run(Prompt::new("made").origin(Origin::Terminal))).await.unwrap();
    let records = log(&agent.setup().store, session.id()).await;
    let origins = records.iter().filter_map(|record| match &record.event {
        Event::Prompted(prompt) => Some(prompt.origin),
        _ => None,
    });
    assert_eq!(origins.collect::<Vec<_>>(), [Origin::Library, Origin::Terminal]);
}
