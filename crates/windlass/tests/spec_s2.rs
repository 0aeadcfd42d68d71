//! Stories of the query loop: one stream of events, the way of a call, and what ends a turn.

mod common;

use common::*;
use futures_core::Stream;
use futures_util::{StreamExt, stream};
use std::sync::Arc;
use windlass::Protocol;
use windlass::kernel::*;
use windlass::policy::Policy;
use windlass::runtime::{DeltaFrame, DeltaKind, Frame};

const PROTOCOLS: [Protocol; 2] = [Protocol::Anthropic, Protocol::Chat];

/// A consumer: one loop over one type, whoever makes the events.
async fn shown(mut frames: impl Stream<Item = Frame> + Unpin) -> String {
    let mut shown = String::new();
    while let Some(frame) = frames.next().await {
        match frame {
            Frame::Delta(delta) if delta.delta == DeltaKind::Text => shown.push_str(&delta.text),
            Frame::Delta(_) => {}
            Frame::Record(record) => match &record.event {
                Event::ToolStarted(started) => shown.push_str(&format!(" [{}", started.call)),
                Event::ToolFinished(finished) => shown.push_str(&format!(" {:?}] ", finished.outcome)),
                Event::TurnFinished { end, .. } => shown.push_str(&format!(" ({end:?})")),
                _ => {}
            },
        }
    }
    shown
}

fn made_up(event: Event) -> Frame {
    let (session, id) = (SessionId(uuid::Uuid::nil()), EventId(uuid::Uuid::nil()));
    let (v, tenant) = (SCHEMA_VERSION, String::new());
    Frame::Record(Arc::new(Record { v, tenant, session, seq: Seq(1), id, epoch: 1, at: 0, cause: None, event }))
}

fn made_up_text(text: &str) -> Frame {
    let (session, delta, text) = (SessionId(uuid::Uuid::nil()), DeltaKind::Text, text.to_owned());
    Frame::Delta(Arc::new(DeltaFrame { session, work: Seq(1), index: 0, offset: 0, delta, text }))
}

#[tokio::test]
async fn s2_02_one_loop_shows_a_turn_and_a_made_up_one_just_as_well() {
    let script = r#"
        [[step]]
        fragment = 3
        blocks = [{ text = "I will look." }, { tool = "ls", id = "c", input = { path = "." } }]
        [[step]]
        fragment = 3
        blocks = [{ text = "done" }]
    "#;
    let told = "I will look. [c Ok] done (Done)";
    for protocol in PROTOCOLS {
        let workshop = Workshop::playing(script);
        let agent = workshop.speaking(protocol).build().unwrap();
        let session = agent.open().await.unwrap();
        let turn = session.submit("what is here?").await.unwrap();
        assert_eq!(soon(shown(turn.map(|frame| frame.unwrap()))).await, told, "{protocol:?}");
        checked(&agent, &session).await;
    }
    let call = CallId("c".into());
    let started = ToolStarted {
        work: Seq(2),
        call: call.clone(),
        plan: CallPlan::default(),
        idempotency_key: String::new(),
        process: None,
    };
    let finished = ToolFinished {
        work: Seq(2),
        call,
        outcome: Outcome::Ok,
        blocks: vec![],
        value: None,
        output: None,
        files: vec![],
        aborts_siblings: false,
        took_ms: 1,
    };
    let simulated = [
        made_up_text("I will "),
        made_up_text("look."),
        made_up(Event::ToolStarted(Box::new(started))),
        made_up(Event::ToolFinished(Box::new(finished))),
        made_up_text("done"),
        made_up(Event::TurnFinished { work: Seq(3), end: End::Done }),
    ];
    assert_eq!(shown(stream::iter(simulated)).await, told);
}

#[tokio::test]
async fn s2_05_a_call_must_exist_and_be_permitted_before_it_runs_and_is_answered() {
    let script = r#"
        [[step]]
        unoffered = true
        blocks = [
          { tool = "reed", id = "unknown", input = {} },
          { tool = "bash", id = "denied", input = { command = "touch made" } },
          { tool = "read", id = "fine", input = { path = "a" } },
        ]
        [[step]]
        blocks = [{ text = "seen" }]
    "#;
    for protocol in PROTOCOLS {
        let workshop = Workshop::playing(script);
        workshop.write("a", "alpha");
        // A name nobody has is no matter of permission, even where everything else is one.
        let policy = Policy::new(&[], &["bash(touch:*)".into()], &[]).unwrap();
        let agent = workshop.speaking(protocol).policy(policy).build().unwrap();
        let session = agent.open().await.unwrap();
        soon(session.run("try them")).await.unwrap();
        let (story, state) = checked_story(&agent, &session).await;
        let records = log(&agent.setup().store, session.id()).await;
        let verdict = |wanted: &str| {
            let judged = records.iter().find_map(|record| match &record.event {
                Event::Judged(judged) if judged.call.0 == wanted => Some((judged.verdict, record.seq)),
                _ => None,
            });
            judged.unwrap()
        };
        assert_eq!((verdict("unknown").0, verdict("denied").0), (Verdict::Invalid, Verdict::Deny));
        let (allowed, judged_at) = verdict("fine");
        assert_eq!(allowed, Verdict::Allow);
        let run = place(&story, "run fine");
        assert!((judged_at.0 as usize) <= run && run < place(&story, "done fine Ok"), "{story:#?}");
        assert_eq!(story.iter().filter(|line| line.starts_with("run ")).count(), 1, "{story:#?}");
        let results = results(&state);
        assert!(results[0].starts_with("unknown: Unknown tool: reed"), "{results:#?}");
        assert!(results[1].starts_with("denied: ") && results[2].contains("alpha"), "{results:#?}");
        assert_eq!(state.messages[2].role, Role::User);
    }
}

#[tokio::test]
async fn s2_09_a_reply_that_ends_its_turn_ends_ours() {
    for protocol in PROTOCOLS {
        let workshop = Workshop::playing("[[step]]\nrounds = 9\nstop = 'end_turn'\nblocks = [{ text = 'done' }]");
        let agent = workshop.speaking(protocol).build().unwrap();
        let session = agent.open().await.unwrap();
        let answer = soon(session.run("go on")).await.unwrap();
        assert_eq!((answer.end, answer.text.as_str()), (End::Done, "done"));
        let records = log(&agent.setup().store, session.id()).await;
        let stops = records.iter().filter_map(|record| match record.event {
            Event::ModelFinished { stop, .. } => Some(stop),
            _ => None,
        });
        assert_eq!(stops.collect::<Vec<_>>(), [StopReason::EndTurn]);
        assert_eq!(workshop.server.requests().len(), 1);
        checked(&agent, &session).await;
    }
}

#[tokio::test]
async fn s2_13_the_signal_to_stop_ends_a_turn_that_would_never_end() {
    let silent = "[[step]]\nhang = { in_block = 0, after_chars = 3 }\nblocks = [{ text = 'and so on' }]";
    let running = "[[step]]\nblocks = [{ tool = 'bash', id = 'c', input = { command = 'touch begun; sleep 600' } }]";
    for protocol in PROTOCOLS {
        for script in [silent, running] {
            let workshop = Workshop::playing(script);
            let agent = workshop.speaking(protocol).build().unwrap();
            let session = agent.open().await.unwrap();
            let mut turn = session.submit("go on").await.unwrap();
            if script == running {
                started(&mut turn).await;
            } else {
                soon(async { while delta(&turn.next().await.unwrap().unwrap()).is_none() {} }).await;
            }
            session.handle().send(Command::Interrupt { by: "story".into() }).await.unwrap();
            let answer = soon(turn.finish()).await.unwrap();
            assert_eq!(answer.end, End::Interrupted, "{protocol:?}: {script}");
            assert_eq!(workshop.server.requests().len(), 1, "nothing more is asked");
            assert!(checked(&agent, &session).await.is_idle());
        }
    }
}

#[tokio::test]
async fn s2_24_eight_tools_are_run_and_the_model_is_asked_once_more() {
    let script = r#"
        [[step]]
        blocks = [
          { tool = "ls", input = { path = "." } },
          { tool = "glob", input = { pattern = "*" } },
          { tool = "grep", input = { pattern = "alpha" } },
          { tool = "read", input = { path = "a" } },
          { tool = "write", input = { path = "b", content = "beta" } },
          { tool = "edit", input = { path = "a", old = "alpha", new = "gamma" } },
          { tool = "bash", input = { command = "echo one" } },
          { tool = "bash", input = { command = "echo two" } },
        ]
        [[step]]
        blocks = [{ text = "done" }]
    "#;
    for protocol in PROTOCOLS {
        let workshop = Workshop::playing(script);
        workshop.write("a", "alpha");
        let agent = workshop.speaking(protocol).build().unwrap();
        let session = agent.open().await.unwrap();
        let answer = soon(session.run("use them all")).await.unwrap();
        assert_eq!((answer.tally.tool_runs, answer.tally.model_calls), (8, 2));
        assert_eq!(workshop.server.requests().len(), 2);
        let (story, _) = checked_story(&agent, &session).await;
        assert_eq!(story.iter().filter(|line| line.ends_with(" Ok")).count(), 8, "{story:#?}");
    }
}
