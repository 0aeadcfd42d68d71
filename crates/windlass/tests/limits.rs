//! What ends a turn that would otherwise go on, what keeps one going that would end, and what it all cost.

mod common;

use common::*;
use futures_util::StreamExt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use windlass::kernel::*;
use windlass::llm::Prices;
use windlass::runtime::Frame;
use windlass::{Answer, Protocol};

const FOR_EVER: &str = "[[step]]\nrounds = 200\nblocks = [{ tool = 'ls', input = { path = '.' } }]";
const CONTINUE_TEXT: &str = "Output token limit hit. Resume directly — no apology, no recap of what you were doing. \
     Pick up mid-thought if that is where the cut happened. Break remaining work into smaller pieces.";
const PROTOCOLS: [Protocol; 2] = [Protocol::Anthropic, Protocol::Chat];

async fn run(workshop: &Workshop, profile: Profile, protocol: Protocol) -> (Answer, State) {
    let agent = workshop.speaking(protocol).profile(profile).build().unwrap();
    let session = agent.open().await.unwrap();
    let answer = soon(session.run("go on")).await.unwrap();
    (answer, checked(&agent, &session).await)
}

#[tokio::test]
async fn s0_12_s1_11_s2_12_s4_06_a_turn_ends_at_its_last_model_call() {
    for protocol in PROTOCOLS {
        let workshop = Workshop::playing(FOR_EVER);
        let profile = Profile { max_turns: 4, ..Profile::default() };
        let (answer, state) = run(&workshop, profile, protocol).await;
        assert_eq!(answer.end, End::MaxTurns { turns: 4 });
        assert_eq!(workshop.server.requests().len(), 4);
        assert_eq!((answer.tally.model_calls, answer.tally.tool_runs), (4, 4), "the last round's tools ran");
        assert_eq!(state.messages.len(), 1 + 4 * 2);
    }
}

#[tokio::test]
async fn s0_12_the_limits_of_the_profiles_hold() {
    for (name, turns) in [("s0-general", 20), ("s4-framework", 10), ("s2-query", 100), ("default", 50)] {
        let workshop = Workshop::playing(FOR_EVER);
        let (answer, _) = run(&workshop, Profile::named(name).unwrap(), Protocol::Anthropic).await;
        assert_eq!(answer.end, End::MaxTurns { turns }, "{name}");
    }
}

#[tokio::test]
async fn a_limit_is_a_turns_own_and_the_next_prompt_goes_on() {
    let workshop = Workshop::playing(
        "[[step]]\nrounds = 2\nblocks = [{ tool = 'ls', input = { path = '.' } }]\n[[step]]\nblocks = [{ text = 'done' }]",
    );
    let profile = Profile { max_turns: 2, ..Profile::default() };
    let agent = workshop.agent().profile(profile).build().unwrap();
    let session = agent.open().await.unwrap();
    assert_eq!(soon(session.run("go on")).await.unwrap().end, End::MaxTurns { turns: 2 });
    let answer = soon(session.run("and on")).await.unwrap();
    assert_eq!((answer.end, answer.text.as_str()), (End::Done, "done"));
    checked(&agent, &session).await;
}

#[tokio::test]
async fn a_turn_whose_time_is_over_is_called_back_in_mid_stream_and_in_mid_call() {
    let stream = format!("[[step]]\nfragment = 5\ngap_ms = 1\nblocks = [{{ text = '{}' }}]", "on and ".repeat(10_000));
    let call = "[[step]]\nblocks = [{ tool = 'bash', input = { command = 'echo $$ > pid; sleep 30' } }]";
    for script in [stream.as_str(), call] {
        let workshop = Workshop::playing(script);
        let profile = Profile { turn_timeout_ms: Some(500), ..Profile::default() };
        let (answer, state) = run(&workshop, profile, Protocol::Anthropic).await;
        assert_eq!(answer.end, End::Deadline, "{script:.60}");
        assert!(state.is_idle());
        let pid = workshop.read("pid").trim().to_owned();
        assert!(pid.is_empty() || !std::path::Path::new(&format!("/proc/{pid}/cwd")).exists());
    }
}

#[tokio::test]
async fn s3_13_a_session_that_has_spent_its_tokens_asks_the_model_nothing_more() {
    let script = "[[step]]\nrounds = 9\nusage = { input = 300, output = 100 }\nblocks = [{ tool = 'ls', input = { path = '.' } }]";
    let workshop = Workshop::playing(script);
    let profile = Profile { max_session_tokens: Some(1_000), ..Profile::default() };
    let agent = workshop.agent().profile(profile).build().unwrap();
    let session = agent.open().await.unwrap();
    let answer = soon(session.run("go on")).await.unwrap();
    assert_eq!(answer.end, End::TokenLimit { used: 1_200 });
    assert_eq!(workshop.server.requests().len(), 3);
    // A later prompt is kept, and answered with the same limit at once.
    let later = soon(session.run("and on")).await.unwrap();
    assert_eq!((later.end, later.tally.model_calls), (End::TokenLimit { used: 1_200 }, 0));
    assert_eq!(workshop.server.requests().len(), 3);
    checked(&agent, &session).await;

    // Somebody who raises it has it answered.
    let raised = Profile { max_session_tokens: Some(1_500), ..Profile::default() };
    let change = Configured { profile: Some(Box::new(raised)), ..Configured::default() };
    session.handle().send(Command::Configure(Box::new(change))).await.unwrap();
    assert_eq!(soon(session.run("and on")).await.unwrap().end, End::TokenLimit { used: 1_600 });
    assert_eq!(workshop.server.requests().len(), 4);
}

#[tokio::test]
async fn s2_04_a_request_asks_for_no_more_output_than_the_budget_holds() {
    let script = "[[step]]\nrounds = 9\nusage = { input = 300, output = 100 }\nblocks = [{ tool = 'ls', input = { path = '.' } }]";
    let workshop = Workshop::playing(script);
    let profile = Profile { max_session_tokens: Some(1_000), ..Profile::default() };
    let session = workshop.agent().profile(profile).build().unwrap().open().await.unwrap();
    soon(session.run("go on")).await.unwrap();
    let asked: Vec<_> = workshop.server.requests().iter().map(|seen| seen.json()["max_tokens"].clone()).collect();
    // 1,000, less the 400 that each answer takes.
    assert_eq!(asked, [1_000, 600, 200]);
}

#[tokio::test]
async fn s3_20_a_reply_that_hit_its_limit_is_continued_three_times_with_these_words() {
    for protocol in PROTOCOLS {
        let workshop =
            Workshop::playing("[[step]]\nrounds = 9\nstop = 'max_tokens'\nblocks = [{ text = 'and then ' }]");
        let (answer, state) = run(&workshop, Profile::default(), protocol).await;
        assert_eq!(answer.end, End::OutputLimit { continuations: 3 });
        assert_eq!(workshop.server.requests().len(), 4);
        let said: Vec<_> = state.messages.iter().map(|message| (message.role, message.text())).collect();
        assert_eq!(said.len(), 8);
        for pair in said[1..7].chunks(2) {
            assert_eq!(pair[0], (Role::Assistant, "and then ".into()));
            assert_eq!(pair[1], (Role::User, CONTINUE_TEXT.into()));
        }
        let sent = workshop.newest().to_string();
        assert_eq!(sent.matches(CONTINUE_TEXT).count(), 3, "{sent}");
    }
}

#[tokio::test]
async fn s3_17_a_reply_that_is_continued_may_still_end_well() {
    let script = "[[step]]\nstop = 'max_tokens'\nblocks = [{ text = 'one, ' }]\n[[step]]\nblocks = [{ text = 'two' }]";
    let workshop = Workshop::playing(script);
    let (answer, _) = run(&workshop, Profile::default(), Protocol::Anthropic).await;
    assert_eq!((answer.end, answer.text.as_str(), answer.tally.model_calls), (End::Done, "one, two", 2));
}

#[tokio::test]
async fn s2_25_a_stop_check_sends_the_model_back_to_work_once() {
    let script = r#"
        [[step]]
        blocks = [{ text = "done" }]
        [[step]]
        expect = [{ last_user = "^the tests have not run$" }]
        blocks = [{ text = "done, I say" }]
    "#;
    let workshop = Workshop::playing(script);
    let asked = std::sync::Arc::new(AtomicU32::new(0));
    let counted = asked.clone();
    let agent = workshop.agent().stop_check(move |state| {
        counted.fetch_add(1, Ordering::SeqCst);
        let ran = state.totals.tool_runs > 0;
        (!ran).then(|| "the tests have not run".to_owned())
    });
    let agent = agent.build().unwrap();
    let session = agent.open().await.unwrap();
    let answer = soon(session.run("go on")).await.unwrap();
    assert_eq!((answer.end, answer.text.as_str()), (End::Done, "done, I say"));
    assert_eq!((workshop.server.requests().len(), asked.load(Ordering::SeqCst)), (2, 1));
    let (story, state) = checked_story(&agent, &session).await;
    assert!(place(&story, "stop_blocked") > 0);
    assert_eq!(state.view().transition_reason, Some("said"));
}

#[tokio::test]
async fn s2_25_a_stop_check_that_is_content_or_breaks_ends_nothing_and_holds_nothing_up() {
    let workshop = Workshop::playing("repeat = true\n[[step]]\nblocks = [{ text = 'done' }]");
    let seen = std::sync::Arc::new(Mutex::new(vec![]));
    let told = seen.clone();
    let content = workshop.agent().stop_check(move |state| {
        told.lock().unwrap().push(state.messages.last().unwrap().text());
        None
    });
    let broken = workshop.agent().stop_check(|_| panic!("the check fell apart"));
    for agent in [content, broken] {
        let agent = agent.build().unwrap();
        let session = agent.open().await.unwrap();
        assert_eq!(soon(session.run("go on")).await.unwrap().end, End::Done);
        checked(&agent, &session).await;
    }
    assert_eq!(*seen.lock().unwrap(), ["done"], "it sees the answer");
}

#[tokio::test]
async fn s3_21_s4_07_the_worked_example_takes_three_calls_and_two_runs_over_either_protocol() {
    let script = r#"
        [[step]]
        blocks = [{ text = "I will read it." }, { tool = "read", input = { path = "config.toml" } }]
        [[step]]
        capture = { port = 'port = (\d+)' }
        blocks = [{ tool = "edit", input = { path = "config.toml", old = "port = ${port}", new = "port = 9090" } }]
        [[step]]
        expect = [{ absent = "error" }]
        blocks = [{ text = "The port is 9090 now." }]
    "#;
    for protocol in PROTOCOLS {
        let workshop = Workshop::playing(script);
        workshop.write("config.toml", "host = \"a\"\nport = 8080\n");
        let (answer, state) = run(&workshop, Profile::default(), protocol).await;
        assert_eq!((answer.end, answer.text.as_str()), (End::Done, "The port is 9090 now."));
        assert_eq!((answer.tally.model_calls, answer.tally.tool_runs), (3, 2));
        assert_eq!(workshop.read("config.toml"), "host = \"a\"\nport = 9090\n");
        assert_eq!((state.totals.model_calls, state.totals.tool_runs, state.totals.tool_rounds), (3, 2, 2));
        let path = if protocol == Protocol::Anthropic { "/v1/messages" } else { "/v1/chat/completions" };
        assert!(workshop.server.requests().iter().all(|seen| seen.path == path && seen.status == 200));
    }
}

#[tokio::test]
async fn s4_06_stop_gives_the_answer_and_tool_calls_are_run_and_told_in_their_own_role() {
    let script = r#"
        [[step]]
        blocks = [{ tool = "ls", id = "call_a", input = { path = "." } }, { tool = "read", id = "call_b", input = { path = "a" } }]
        [[step]]
        blocks = [{ text = "a file called a" }]
    "#;
    let workshop = Workshop::playing(script);
    workshop.write("a", "alpha");
    let (answer, _) = run(&workshop, Profile::named("s4-framework").unwrap(), Protocol::Chat).await;
    assert_eq!(answer.text, "a file called a");
    let newest = workshop.newest();
    let roles = newest["messages"].as_array().unwrap().iter().map(|message| {
        (message["role"].as_str().unwrap().to_owned(), message["tool_call_id"].as_str().map(str::to_owned))
    });
    let role = |role: &str, id: Option<&str>| (role.to_owned(), id.map(str::to_owned));
    let expected = [
        role("system", None),
        role("user", None),
        role("assistant", None),
        role("tool", Some("call_a")),
        role("tool", Some("call_b")),
    ];
    assert_eq!(roles.collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn s3_48_cost_is_known_where_the_price_is_and_unknown_where_it_is_not() {
    let script = "[[step]]\nusage = { input = 1000, output = 200, cache_read = 5000 }\nblocks = [{ tool = 'ls', input = { path = '.' } }]\n[[step]]\nusage = { input = 100, output = 10 }\nblocks = [{ text = 'done' }]";
    let prices = Prices::from_dollars(3.0, 15.0, 0.3, 3.75).unwrap();
    let workshop = Workshop::playing(script);
    for (known, expected) in [("mock/model", Some(3_000 + 3_000 + 1_500 + 300 + 150)), ("mock/other", None)] {
        let agent = workshop.agent().prices(move |name| (name == known).then_some(prices)).build().unwrap();
        let session = agent.open().await.unwrap();
        let answer = soon(session.run("go on")).await.unwrap();
        assert_eq!(answer.tally.cost_micro_usd, expected, "{known}");
        let usage = answer.tally.usage;
        assert_eq!((usage.input, usage.output, usage.cache_read), (1_100, 210, 5_000));
        assert_eq!(checked(&agent, &session).await.totals.usage, usage);
    }
}

#[tokio::test]
async fn s1_28_the_reason_for_the_next_round_can_be_read_while_it_runs() {
    let script = "[[step]]\nblocks = [{ tool = 'ls', input = { path = '.' } }]\n[[step]]\ngap_ms = 20\nfragment = 4\nblocks = [{ text = 'a slow answer, so that it can be looked at' }]";
    let workshop = Workshop::playing(script);
    let agent = workshop.agent().build().unwrap();
    let session = agent.open().await.unwrap();
    let mut turn = session.submit("go on").await.unwrap();
    let mut reasons = vec![];
    let looking = async {
        while let Some(frame) = turn.next().await {
            if matches!(frame.unwrap(), Frame::Delta(_)) {
                reasons.push(session.handle().state().await.unwrap().view().transition_reason.unwrap());
            }
        }
    };
    soon(looking).await;
    assert_eq!(reasons.last(), Some(&"tool_round"), "{reasons:?}");
    checked(&agent, &session).await;
}
