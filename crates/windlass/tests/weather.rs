//! Streams that break, people who interrupt, followers who come late: the turn goes on and nothing told is lost.

mod common;

use common::*;
use futures_util::StreamExt;
use std::sync::Arc;
use windlass::kernel::*;
use windlass::store::{MemoryStore, Store};

async fn run(workshop: &Workshop) -> (Vec<String>, State, windlass::Answer) {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let agent = workshop.agent().store(store).build().unwrap();
    let session = agent.open().await.unwrap();
    let answer = session.run("go").await.unwrap();
    let (story, state) = checked_story(&agent, &session).await;
    (story, state, answer)
}

#[tokio::test]
async fn a_stream_cut_inside_text_is_tried_again_and_what_was_told_stays_in_the_log() {
    let workshop = Workshop::playing(
        r#"
        [[step]]
        times = 1
        fragment = 4
        blocks = [{ text = "the beginning of an answer" }]
        cut = { in_block = 0, after_chars = 13 }
        [[step]]
        blocks = [{ text = "the whole answer" }]
    "#,
    );
    let (story, state, answer) = run(&workshop).await;
    assert_eq!(answer.end, End::Done);
    assert_eq!(answer.text, "the whole answer");
    let partial = story.iter().find(|line| line.starts_with("partial")).expect("what was told is in the log");
    assert!(partial.starts_with("partial \"the beg"), "{partial}");
    assert_eq!(state.messages.len(), 2, "the attempt that failed is no message");
    assert_eq!(answer.tally.model_calls, 1);
}

#[tokio::test]
async fn nothing_runs_from_half_arguments() {
    let workshop = Workshop::playing(
        r#"
        [[step]]
        times = 1
        fragment = 4
        blocks = [{ tool = "write", id = "half", input = { path = "half", content = "half of it and the rest" } }]
        cut = { in_block = 0, after_chars = 20 }
        [[step]]
        blocks = [{ text = "gave up" }]
    "#,
    );
    let (story, _, answer) = run(&workshop).await;
    assert_eq!(answer.end, End::Done);
    assert!(!story.iter().any(|line| line.starts_with("run ")), "{story:#?}");
    assert_eq!(workshop.read("half"), "");
}

#[tokio::test]
async fn a_stream_cut_after_a_finished_read_goes_on_from_its_result() {
    let workshop = Workshop::playing(
        r#"
        [[step]]
        fragment = 4
        gap_ms = 10
        blocks = [
          { tool = "read", id = "whole", input = { path = "a.txt" } },
          { tool = "write", id = "cut", input = { path = "b.txt", content = "never, for the message broke off" } },
        ]
        cut = { in_block = 1, after_chars = 20 }
        [[step]]
        expect = [{ tool_result_error = false }]
        blocks = [{ text = "went on" }]
    "#,
    );
    workshop.write("a.txt", "alpha");
    let (story, state, answer) = run(&workshop).await;
    assert_eq!(answer.text, "went on", "{story:#?}");
    assert!(place(&story, "model failed") < story.len());
    assert_eq!(results(&state).len(), 1);
    assert!(results(&state)[0].contains("alpha"));
    assert_eq!(workshop.read("b.txt"), "");
}

#[tokio::test]
async fn a_whole_writer_of_a_cut_message_is_not_trusted() {
    let workshop = Workshop::playing(
        r#"
        [[step]]
        fragment = 4
        blocks = [
          { tool = "write", id = "w", input = { path = "w.txt", content = "x" } },
          { text = "this sentence never comes to its end" },
        ]
        cut = { in_block = 1, after_chars = 9 }
        [[step]]
        blocks = [{ text = "went on" }]
    "#,
    );
    let (story, state, _) = run(&workshop).await;
    assert!(place(&story, "close w MessageCut") > 0);
    assert!(results(&state)[0].contains("broke off"), "{:?}", results(&state));
    assert_eq!(workshop.read("w.txt"), "");
}

#[tokio::test]
async fn s2_11_three_failures_in_a_row_end_the_turn_with_the_first_cause() {
    let workshop = Workshop::playing(
        r#"
        [[step]]
        status = 500
        error = { type = "api_error", message = "the boiler is cold" }
        headers = { "retry-after" = "0" }
        times = 1
        [[step]]
        status = 503
        error = { type = "api_error", message = "something else" }
        headers = { "retry-after" = "0" }
    "#,
    );
    let agent = workshop.agent().profile(Profile::named("s2-query").unwrap()).build().unwrap();
    let answer = agent.open().await.unwrap().run("go").await.unwrap();
    let End::ModelError { message } = &answer.end else { panic!("{:?}", answer.end) };
    assert!(message.contains("the boiler is cold"), "{message}");
    assert_eq!(workshop.server.requests().len(), 3);
}

#[tokio::test]
async fn s1_12_an_interrupt_in_mid_stream_keeps_what_was_read_and_the_session() {
    let workshop = Workshop::playing(
        r#"
        [[step]]
        fragment = 4
        gap_ms = 30
        blocks = [{ text = "a very long story that nobody wants to hear to its end, for it goes on and on and on" }]
        [[step]]
        expect = [{ contains = "a very" }]
        blocks = [{ text = "short then" }]
    "#,
    );
    let session = workshop.agent().build().unwrap().open().await.unwrap();
    let mut turn = session.submit("tell me").await.unwrap();
    let mut heard = String::new();
    while let Some(frame) = turn.next().await {
        heard.push_str(delta(&frame.unwrap()).unwrap_or_default());
        if heard.len() > 10 {
            break;
        }
    }
    session.handle().send(Command::Interrupt { by: "test".into() }).await.unwrap();
    let answer = turn.finish().await.unwrap();
    assert_eq!(answer.end, End::Interrupted);
    let state = session.handle().state().await.unwrap();
    let said = state.messages.last().unwrap().text();
    assert!(said.starts_with(&heard), "{said:?} does not hold {heard:?}");
    assert_eq!(session.run("shorter").await.unwrap().text, "short then");
}

#[tokio::test]
async fn s3_15_a_prompt_while_tools_run_is_shown_at_the_next_round() {
    let workshop = Workshop::playing(
        r#"
        [[step]]
        blocks = [{ tool = "look", id = "c", input = { n = 1, ms = 400 } }]
        [[step]]
        expect = [{ contains = "and hurry" }]
        blocks = [{ text = "hurrying" }]
    "#,
    );
    let session = workshop.agent().tool(Slow::new()).build().unwrap().open().await.unwrap();
    let mut turn = session.submit("look").await.unwrap();
    while let Some(frame) = turn.next().await {
        if let windlass::runtime::Frame::Record(record) = frame.unwrap()
            && matches!(record.event, Event::ToolStarted(_))
        {
            break;
        }
    }
    let second = session.submit("and hurry").await.unwrap();
    assert_eq!(turn.finish().await.unwrap().text, "hurrying");
    assert_eq!(second.finish().await.unwrap().text, "hurrying");
    assert_eq!(workshop.server.requests().len(), 2);
}

#[tokio::test]
async fn a_late_follower_gets_the_partial_block_first_and_no_gap() {
    let text = "0123456789".repeat(30);
    let workshop = Workshop::playing(&format!("[[step]]\nfragment = 5\ngap_ms = 10\nblocks = [{{ text = '{text}' }}]"));
    let session = workshop.agent().build().unwrap().open().await.unwrap();
    let mut turn = session.submit("count").await.unwrap();
    let mut early = String::new();
    while let Some(frame) = turn.next().await {
        early.push_str(delta(&frame.unwrap()).unwrap_or_default());
        if early.len() > 100 {
            break;
        }
    }
    let mut late = session.handle().follow(Seq(1));
    let (mut heard, mut first, mut seqs) = (String::new(), None, vec![]);
    while let Some(frame) = late.next().await {
        match frame.unwrap() {
            windlass::runtime::Frame::Delta(delta) => {
                first.get_or_insert(delta.text.len());
                assert_eq!(delta.offset, heard.len());
                heard.push_str(&delta.text);
            }
            windlass::runtime::Frame::Record(record) => {
                seqs.push(record.seq.0);
                if matches!(record.event, Event::TurnFinished { .. }) {
                    break;
                }
            }
        }
    }
    assert!(first.unwrap() >= early.len(), "the partial block came in one piece");
    assert_eq!(heard, text);
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>());
}

#[tokio::test]
async fn one_connection_serves_a_sessions_calls() {
    let workshop = Workshop::playing(
        "[[step]]\nrounds = 10\nblocks = [{ tool = 'ls', input = { path = '.' } }]\n[[step]]\nblocks = [{ text = 'done' }]",
    );
    let (_, _, answer) = run(&workshop).await;
    assert_eq!(answer.tally.model_calls, 11);
    assert_eq!(workshop.connections(), 1);
}
