//! A model that is overloaded, silent, or given too much: the turn finds its way around.

mod common;

use common::*;
use std::sync::Arc;
use windlass::kernel::*;
use windlass::llm::{Catalog, Clocks, HttpOptions};
use windlass::{Agent, Answer, Protocol, Provider, Providers};

/// Short waits, as nothing here is far away.
fn hasty(profile: Profile) -> Profile {
    Profile { retry: Retry { base_ms: 1, ..profile.retry }, ..profile }
}

fn with_fallback(back: FallbackBack) -> Profile {
    hasty(Profile { fallback: Some(Fallback { model: "mock/second".into(), back }), ..Profile::default() })
}

fn agent(workshop: &Workshop, profile: Profile) -> Agent {
    let clocks = Clocks { progress_ms: 150, first_event_ms: 150, ..Clocks::default() };
    let http = HttpOptions { clocks, ..HttpOptions::default() };
    workshop.agent().model("mock/first").profile(profile).http(http).build().unwrap()
}

async fn run(workshop: &Workshop, profile: Profile) -> (Answer, Vec<String>, State) {
    let agent = agent(workshop, profile);
    let session = agent.open().await.unwrap();
    let answer = soon(session.run("go")).await.unwrap();
    let (story, state) = checked_story(&agent, &session).await;
    (answer, story, state)
}

fn models(workshop: &Workshop) -> Vec<String> {
    workshop.bodies().iter().map(|body| body["model"].as_str().unwrap().to_owned()).collect()
}

const FIRST_IS_BUSY: &str = r#"
    [[step]]
    when = { model = "first" }
    status = 529
    [[step]]
    rounds = 9
    blocks = [{ text = "here I am" }]
"#;

#[tokio::test]
async fn s3_18_an_overloaded_model_gives_way_to_the_fallback_and_speaks_again_in_the_next_turn() {
    let workshop = Workshop::playing(FIRST_IS_BUSY);
    let agent = agent(&workshop, with_fallback(FallbackBack::NextTurn));
    let session = agent.open().await.unwrap();
    for _ in 0..2 {
        let answer = soon(session.run("go")).await.unwrap();
        assert_eq!((answer.text.as_str(), answer.end), ("here I am", End::Done));
    }
    assert_eq!(models(&workshop), ["first", "first", "second", "first", "first", "second"]);
    let records = log(&agent.setup().store, session.id()).await;
    let switches = records.iter().filter_map(|record| match &record.event {
        Event::Began { step: Step::SwitchModel { model, why } } => Some((model.as_str(), *why)),
        _ => None,
    });
    let overloaded = ("mock/second", SwitchReason::Overloaded);
    assert_eq!(switches.collect::<Vec<_>>(), [overloaded, ("mock/first", SwitchReason::Back), overloaded]);
    checked(&agent, &session).await;
}

#[tokio::test]
async fn s3_18_a_profile_may_stay_with_the_fallback() {
    let workshop = Workshop::playing(FIRST_IS_BUSY);
    let agent = agent(&workshop, with_fallback(FallbackBack::Never));
    let session = agent.open().await.unwrap();
    for _ in 0..2 {
        soon(session.run("go")).await.unwrap();
    }
    assert_eq!(models(&workshop), ["first", "first", "second", "second"]);
}

#[tokio::test]
async fn without_a_fallback_the_first_true_cause_ends_the_turn() {
    let workshop = Workshop::playing(FIRST_IS_BUSY);
    let (answer, _, _) = run(&workshop, hasty(Profile { max_model_errors: 3, ..Profile::default() })).await;
    let End::ModelError { message } = answer.end else { panic!("{:?}", answer.end) };
    assert!(message.contains("529") && message.ends_with("(tried 3 times)"), "{message}");
    assert_eq!(models(&workshop).len(), 3);
}

#[tokio::test]
async fn a_wait_that_is_too_long_is_not_sat_out_and_says_when_to_try_again() {
    let workshop = Workshop::playing("[[step]]\nstatus = 429\nheaders = { retry-after = '3600' }");
    let (answer, _, _) = run(&workshop, Profile::default()).await;
    let End::ModelError { message } = answer.end else { panic!("{:?}", answer.end) };
    assert!(message.contains("try again in 3600 s"), "{message}");
    assert_eq!(models(&workshop).len(), 1);
}

#[tokio::test]
async fn s3_19_a_stalled_attempt_is_made_again_at_most_twice_and_is_no_turn() {
    let workshop = Workshop::playing("[[step]]\nhang = { after_events = 2 }\nblocks = [{ text = 'a long answer' }]");
    let (answer, _, state) = run(&workshop, hasty(Profile { max_model_errors: 9, ..Profile::default() })).await;
    let End::ModelError { message } = answer.end else { panic!("{:?}", answer.end) };
    assert!(message.contains("stalled"), "{message}");
    assert_eq!(models(&workshop).len(), 3, "one attempt and two more");
    assert_eq!(state.totals.model_calls, 0);
}

#[tokio::test]
async fn a_prompt_that_is_too_long_loses_its_oldest_results_once() {
    let script = r#"
        [[step]]
        when = { contains = "xxxxxxxxxx", round = 2 }
        status = 400
        error = { type = "invalid_request_error", message = "prompt is too long: 210000 tokens > 200000 maximum" }
        [[step]]
        blocks = [{ tool = "read", input = { path = "old.txt" } }]
        [[step]]
        blocks = [{ tool = "read", input = { path = "new.txt" } }]
        [[step]]
        expect = [{ contains = "did not fit the model's window" }, { contains = "young" }]
        blocks = [{ text = "now it fits" }]
    "#;
    let workshop = Workshop::playing(script);
    workshop.write("old.txt", &"x".repeat(5_000));
    workshop.write("new.txt", &"young ".repeat(100));
    let (answer, story, _) = run(&workshop, Profile::default()).await;
    assert_eq!((answer.text.as_str(), answer.end), ("now it fits", End::Done), "{story:#?}");
    assert_eq!(story.iter().filter(|line| *line == "snip").count(), 1, "{story:#?}");
}

#[tokio::test]
async fn s3_20_after_three_continuations_a_full_window_is_compacted_and_the_turn_goes_on() {
    let script = r#"
        [[step]]
        when = { contains = "no-tools", absent = "never said" }
        blocks = [{ text = "a summary of what was said" }]
        [[step]]
        when = { contains = "a summary of what was said" }
        blocks = [{ text = "and the end" }]
        [[step]]
        rounds = 4
        stop = "max_tokens"
        usage = { input = 950, output = 40 }
        blocks = [{ text = "part " }]
    "#;
    let workshop = Workshop::playing(&script.replace("no-tools", "CRITICAL"));
    let catalog = Catalog::default()
        .with(
            "here",
            "protocol = \"anthropic\"\nbase_url = \"http://x\"\n[[model]]\nname = \"small\"\nwindow = 1_000\n",
        )
        .unwrap();
    let mut providers = Providers::of(catalog, Arc::new(|_| None));
    providers.set("here", Provider::at(Protocol::Anthropic, workshop.server.base_url()).with_key("key"));
    let profile = Profile { keep_last: 1, ..Profile::default() };
    let agent = workshop.agent().providers(providers).model("here/small").profile(profile).build().unwrap();
    let session = agent.open().await.unwrap();
    let answer = soon(session.run("write a book")).await.unwrap();
    let (story, state) = checked_story(&agent, &session).await;
    assert_eq!(answer.end, End::Done, "{story:#?}");
    assert!(state.summary.is_some(), "{story:#?}");
    assert_eq!(story.iter().filter(|line| *line == "compacted").count(), 1);
}
