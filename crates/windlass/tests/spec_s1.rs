//! Stories of the runtime loop's specification: it goes on, it takes results into account, and it can be traced.

mod common;

use common::*;
use serde_json::Value;
use std::collections::BTreeMap;
use windlass::kernel::*;
use windlass::policy::Policy;
use windlass::{Agent, Protocol, Session};

const PROTOCOLS: [Protocol; 2] = [Protocol::Anthropic, Protocol::Chat];

/// Everything is allowed but `touch`.
fn no_touching() -> Policy {
    Policy::new(&[], &["bash(touch:*)".into()], &[]).unwrap()
}

async fn interrupt(session: &Session) {
    session.handle().send(Command::Interrupt { by: "story".into() }).await.unwrap();
}

#[tokio::test]
async fn s1_01_one_prompt_is_worked_on_round_after_round_until_it_is_done() {
    let script = r#"
        [[step]]
        rounds = 12
        blocks = [{ tool = "bash", input = { command = "echo ${n} >> lines" } }]
        [[step]]
        blocks = [{ text = "twelve lines" }]
    "#;
    for protocol in PROTOCOLS {
        let workshop = Workshop::playing(script);
        let agent = workshop.speaking(protocol).build().unwrap();
        let session = agent.open().await.unwrap();
        let answer = soon(session.run("write twelve lines")).await.unwrap();
        assert_eq!((answer.end, answer.text.as_str()), (End::Done, "twelve lines"));
        assert_eq!((answer.tally.model_calls, answer.tally.tool_runs), (13, 12));
        let lines: Vec<_> = (0..12).map(|n| format!("{n}\n")).collect();
        assert_eq!(workshop.read("lines"), lines.concat());
        assert_eq!(checked(&agent, &session).await.totals.user_turns, 1);
    }
}

#[tokio::test]
async fn s1_02_the_next_step_is_decided_by_what_the_tool_found() {
    let script = r#"
        [[step]]
        blocks = [{ tool = "read", input = { path = "weather" } }]
        [[step]]
        when = { tool_result = "rain" }
        blocks = [{ tool = "write", input = { path = "bag", content = "cape" } }]
        [[step]]
        when = { tool_result = "sun" }
        blocks = [{ tool = "write", input = { path = "bag", content = "hat" } }]
        [[step]]
        rounds = 2
        blocks = [{ text = "ready" }]
    "#;
    for (weather, bag, calls) in [("rain", "cape", 3), ("sun", "hat", 3), ("fog", "", 2)] {
        let workshop = Workshop::playing(script);
        workshop.write("weather", weather);
        let agent = workshop.agent().build().unwrap();
        let session = agent.open().await.unwrap();
        let answer = soon(session.run("pack the bag")).await.unwrap();
        assert_eq!((answer.text.as_str(), answer.tally.model_calls), ("ready", calls), "{weather}");
        assert_eq!(workshop.read("bag"), bag);
        checked(&agent, &session).await;
    }
}

#[tokio::test]
async fn s1_34_a_result_goes_into_the_next_call() {
    let script = r#"
        [[step]]
        blocks = [{ tool = "bash", input = { command = "cat berth" } }]
        [[step]]
        capture = { berth = 'berth (\w+)' }
        blocks = [{ tool = "write", input = { path = "book", content = "she lies at ${berth}" } }]
        [[step]]
        blocks = [{ text = "booked" }]
    "#;
    for protocol in PROTOCOLS {
        for berth in ["north7", "south2"] {
            let workshop = Workshop::playing(script);
            workshop.write("berth", &format!("berth {berth}"));
            let agent = workshop.speaking(protocol).build().unwrap();
            let session = agent.open().await.unwrap();
            assert_eq!(soon(session.run("book her in")).await.unwrap().text, "booked");
            assert_eq!(workshop.read("book"), format!("she lies at {berth}"));
            checked(&agent, &session).await;
        }
    }
}

#[tokio::test]
async fn s1_03_a_denial_a_failing_tool_and_a_compaction_leave_the_session_in_hand() {
    let script = r#"
        [[step]]
        when = { last_user = "six headings" }
        blocks = [{ text = "THE SUMMARY" }]
        [[step]]
        when = { contains = "THE SUMMARY", tool_result = "a" }
        blocks = [{ text = "I see a" }]
        [[step]]
        when = { contains = "THE SUMMARY", last_user = "look" }
        blocks = [{ tool = "ls", input = { path = "." } }]
        [[step]]
        when = { last_user = "wait" }
        hang = { after_events = 3 }
        blocks = [{ text = "Well then" }]
        [[step]]
        blocks = [{ tool = "bash", id = "denied", input = { command = "touch made" } }]
        [[step]]
        expect = [{ tool_result_error = true }]
        blocks = [{ tool = "read", id = "failed", input = { path = "nowhere" } }]
        [[step]]
        expect = [{ tool_result_error = true }]
        blocks = [{ text = "I can do neither" }]
    "#;
    let workshop = Workshop::playing(script);
    workshop.write("a", "alpha");
    let profile = Profile { keep_last: 1, ..Profile::default() };
    let agent = workshop.agent().policy(no_touching()).profile(profile).build().unwrap();
    let session = agent.open().await.unwrap();
    let answer = soon(session.run("make it, or read it")).await.unwrap();
    assert_eq!((answer.end, answer.text.as_str()), (End::Done, "I can do neither"));
    assert!(!workshop.folder.path().join("made").exists());
    let (story, state) = checked_story(&agent, &session).await;
    assert!(!story.contains(&"run denied".to_owned()), "{story:#?}");
    assert!(place(&story, "done failed Error") > 0);
    assert_eq!(state.denials.len(), 1);

    soon(session.run("/compact")).await.unwrap();
    assert_eq!(soon(session.run("look")).await.unwrap().text, "I see a");
    let mut turn = session.submit("wait").await.unwrap();
    until(&mut turn, |event| matches!(event, Event::Began { step: Step::CallModel }).then_some(())).await;
    interrupt(&session).await;
    assert_eq!(soon(turn.finish()).await.unwrap().end, End::Interrupted);
    assert_eq!(soon(session.run("look")).await.unwrap().text, "I see a");
    assert!(checked(&agent, &session).await.is_idle());
}

/// A session in which a model call, a tool, a permission and a compaction fail, and that is answered nevertheless.
async fn misfortunes(workshop: &Workshop) -> (Agent, Session, Vec<Record>) {
    let agent = workshop.agent().policy(no_touching()).profile(Profile::named("s1-spec08").unwrap()).build().unwrap();
    let session = agent.open().await.unwrap();
    assert_eq!(soon(session.run("do it")).await.unwrap().text, "it is not to be");
    soon(session.run("/compact")).await.unwrap_err();
    checked(&agent, &session).await;
    let records = log(&agent.setup().store, session.id()).await;
    (agent, session, records)
}

const MISFORTUNES: &str = r#"
    [[step]]
    times = 1
    status = 500
    error = { type = "api_error", message = "the boiler is cold" }
    headers = { "retry-after" = "0" }
    [[step]]
    blocks = [
      { tool = "bash", id = "fails", input = { command = "exit 3" } },
      { tool = "bash", id = "denied", input = { command = "touch made" } },
      { tool = "read", id = "wrong", input = { file = "a" } },
    ]
    [[step]]
    blocks = [{ text = "it is not to be" }]
"#;

#[tokio::test]
async fn s1_05_every_report_leads_back_to_what_it_answers() {
    let workshop = Workshop::playing(MISFORTUNES);
    let (_, session, records) = misfortunes(&workshop).await;
    let mut reports = 0;
    for record in &records {
        let event = serde_json::to_value(&record.event).unwrap();
        let Some(work) = event["work"].as_u64() else { continue };
        assert_eq!(record.cause, Some(Seq(work)), "{event}");
        let began = &records[work as usize - 1];
        assert!(began.seq < record.seq && matches!(began.event, Event::Began { .. }), "{event}");
        reports += 1;
    }
    assert!(reports > 10, "{reports}");
    // The stream tells the log itself, whoever comes, whenever.
    let mut follower = session.handle().follow(Seq(1));
    for record in &records {
        match soon(follower.next()).await.unwrap().unwrap() {
            windlass::runtime::Frame::Record(told) => assert_eq!(*told, *record),
            delta => panic!("{delta:?}"),
        }
    }
    let said: Vec<_> = session.handle().state().await.unwrap().transcript().iter().map(|said| said.role).collect();
    assert_eq!(said, [Role::User, Role::Assistant, Role::User, Role::Assistant]);
}

/// What failed, and the work it failed in.
fn failure(record: &Record, records: &[Record]) -> Option<String> {
    let what = match &record.event {
        Event::ModelFailed { error, .. } => format!("{:?} {:?} {}", error.kind, error.status, error.message),
        Event::ToolFinished(finished) if finished.outcome != Outcome::Ok => {
            format!("{:?} {}", finished.outcome, text_of(&finished.blocks).trim())
        }
        Event::Judged(judged) if judged.verdict != Verdict::Allow => {
            format!("{:?} by {}: {}", judged.verdict, judged.rule.as_ref().unwrap_or(&judged.stage), judged.reason)
        }
        Event::CompactionFailed { message, .. } => message.clone(),
        _ => return None,
    };
    let began = &records[record.cause?.0 as usize - 1].event;
    let Event::Began { step } = began else { panic!("{began:?}") };
    let what = what.lines().map(str::trim).collect::<Vec<_>>().join(" ");
    Some(format!("{}: {what}", serde_json::to_string(step).unwrap()))
}

#[tokio::test]
async fn s1_31_a_failure_names_the_step_it_happened_in_and_its_cause() {
    let workshop = Workshop::playing(MISFORTUNES);
    let (_, _, records) = misfortunes(&workshop).await;
    let failures: Vec<_> = records.iter().filter_map(|record| failure(record, &records)).collect();
    insta::assert_snapshot!(failures.join("\n"), @r#"
    {"type":"call_model"}: Transient Some(500) mock answered 500 Internal Server Error: the boiler is cold
    {"type":"judge","call":"denied"}: Deny by bash(touch:*): `touch made`: the rule `bash(touch:*)` denies it; do not try it again, do without it or tell the person what you need
    {"type":"judge","call":"wrong"}: Invalid by tool: wrong arguments for read: - `path` is missing - read has no `file` read takes: path (string, required), offset (integer), limit (integer). Call it again with these mended.
    {"type":"run_tool","call":"fails"}: Error [no output] [exit code 3]
    {"type":"compact"}: there is no place to cut: the newest messages are kept as they are
    "#);
}

#[tokio::test]
async fn s1_32_every_step_follows_from_the_log_before_it_and_from_nothing_else() {
    let workshop = Workshop::playing(MISFORTUNES);
    let (_, _, records) = misfortunes(&workshop).await;
    let mut steps = 0;
    for (n, record) in records.iter().enumerate() {
        let Event::Began { step } = &record.event else { continue };
        let before = State::fold(&records[..n]);
        assert_eq!(before.next_step().as_ref(), Some(step), "before {}", record.seq);
        before.check().unwrap();
        steps += 1;
    }
    assert!(steps > 6, "{steps}");
    assert_eq!(State::fold(&records).next_step(), None, "and then it rests");
}

/// Results as a request tells them: text by call.
fn told(body: &Value) -> BTreeMap<String, String> {
    let text = |content: &Value| match content {
        Value::String(text) => text.clone(),
        blocks => blocks.as_array().unwrap().iter().filter_map(|block| block["text"].as_str()).collect(),
    };
    let mut told = BTreeMap::new();
    for message in body["messages"].as_array().unwrap() {
        if let Some(id) = message["tool_call_id"].as_str() {
            told.insert(id.to_owned(), text(&message["content"]));
        }
        for block in message["content"].as_array().into_iter().flatten() {
            if let Some(id) = block["tool_use_id"].as_str() {
                told.insert(id.to_owned(), text(&block["content"]));
            }
        }
    }
    told
}

#[tokio::test]
async fn s1_19_whatever_is_shown_of_a_call_is_in_the_next_request() {
    let script = r#"
        [[step]]
        unoffered = true
        blocks = [
          { tool = "read", id = "fine", input = { path = "a" } },
          { tool = "bash", id = "fails", input = { command = "echo broken; exit 3" } },
          { tool = "bash", id = "denied", input = { command = "touch made" } },
          { tool = "reed", id = "unknown", input = {} },
          { tool = "read", id = "wrong", input = { file = "a" } },
        ]
        [[step]]
        blocks = [{ text = "seen" }]
    "#;
    for protocol in PROTOCOLS {
        let workshop = Workshop::playing(script);
        workshop.write("a", "alpha");
        let agent = workshop.speaking(protocol).policy(no_touching()).build().unwrap();
        let session = agent.open().await.unwrap();
        soon(session.run("try them all")).await.unwrap();
        checked(&agent, &session).await;
        let shown = log(&agent.setup().store, session.id()).await.into_iter().filter_map(|record| match record.event {
            Event::ToolFinished(finished) => Some((finished.call.0, text_of(&finished.blocks))),
            Event::Judged(judged) if judged.verdict != Verdict::Allow => Some((judged.call.0, judged.reason)),
            _ => None,
        });
        let (shown, told) = (shown.collect::<BTreeMap<_, _>>(), told(&workshop.newest()));
        assert_eq!(shown.len(), 5, "{shown:#?}");
        for (call, text) in shown {
            assert!(!text.is_empty() && told[&call].contains(&text), "{protocol:?} {call}: {text:?} not in {told:#?}");
        }
    }
}

/// The third turn runs a tool that waits; meanwhile a compaction is asked for.
async fn compacted_in_mid_turn(max_session_tokens: Option<u64>) -> Vec<String> {
    let script = r#"
        [[step]]
        when = { last_user = "six headings" }
        blocks = [{ text = "THE SUMMARY" }]
        [[step]]
        when = { contains = "THE SUMMARY" }
        blocks = [{ text = "done" }]
        [[step]]
        rounds = 2
        blocks = [{ text = "yes" }]
        [[step]]
        usage = { input = 1000000 }
        blocks = [{ tool = "bash", id = "c", input = { command = "until [ -e go ]; do sleep 0.02; done" } }]
    "#;
    let workshop = Workshop::playing(script);
    let spec = Profile::named("s1-spec08").unwrap();
    let agent = workshop.agent().profile(Profile { keep_last: 2, max_session_tokens, ..spec }).build().unwrap();
    let session = agent.open().await.unwrap();
    soon(session.run("one")).await.unwrap();
    soon(session.run("two")).await.unwrap();
    let begins = checked(&agent, &session).await.head.0 as usize;
    let turn = session.submit("three").await.unwrap();
    started(&mut session.rejoin(Seq(begins as u64 + 1))).await;
    let compaction = session.submit("/compact").await.unwrap();
    workshop.write("go", "");
    soon(compaction.finish()).await.unwrap();
    soon(turn.finish()).await.unwrap();
    let (story, _) = checked_story(&agent, &session).await;
    story[begins..].to_vec()
}

#[tokio::test]
async fn s1_09_a_round_takes_its_steps_in_order_a_compaction_that_was_asked_for_among_them() {
    let story = compacted_in_mid_turn(None).await;
    let steps = [
        "prompted",
        "call model",
        "use c",
        "run c",
        "done c Ok",
        "compact",
        "compacted",
        "call model",
        "text \"done\"",
        "end Done",
    ];
    let mut rest = story.as_slice();
    for step in steps {
        rest = &rest[place(rest, step) + 1..];
    }
    // The budget is looked at between the compaction and the next call, which it forbids.
    let story = compacted_in_mid_turn(Some(1_000_000)).await;
    let rest = &story[place(&story, "compacted") + 1..];
    assert!(rest.last().unwrap().starts_with("end TokenLimit"), "{story:#?}");
    assert!(!rest.contains(&"call model".to_owned()), "{story:#?}");
}
