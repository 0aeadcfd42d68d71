//! Sessions that are laid down, taken up, taken over, and run out of room: what was stored goes on, once.

mod common;

use common::*;
use futures_util::StreamExt;
use serde_json::Value;
use windlass::kernel::*;
use windlass::runtime::SendError;
use windlass::store::{Input, SqliteOptions, StoreError};
use windlass::{Agent, Prompt, RunError, Session};

const DONE: &str = "[[step]]\nblocks = [{ text = 'done' }]";

/// Another process takes the session up, with a store of its own.
async fn again(workshop: &Workshop, session: SessionId) -> (Agent, Session) {
    let agent = workshop.agent().tool(Slow::new()).store(workshop.store()).build().unwrap();
    let session = agent.resume(session).await.unwrap();
    (agent, session)
}

fn count(story: &[String], wanted: &str) -> usize {
    story.iter().filter(|line| *line == wanted).count()
}

/// A prompt as another process leaves it for a session.
fn left(text: &str) -> Input {
    let id = InputId(uuid::Uuid::now_v7());
    let (command, _) = Prompt::new(text).origin(Origin::Inbox).into_command(|| id);
    Input { id, command, at: 1 }
}

/// The messages of a request, without the marks that say what the provider is to keep.
fn messages(body: &Value) -> Vec<Value> {
    fn unmark(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                fields.remove("cache_control");
                fields.values_mut().for_each(unmark);
            }
            Value::Array(items) => items.iter_mut().for_each(unmark),
            _ => {}
        }
    }
    let mut messages = body["messages"].as_array().unwrap().clone();
    messages.iter_mut().for_each(unmark);
    messages
}

#[tokio::test]
async fn a_reader_that_was_cut_off_runs_again() {
    let script = r#"
        [[step]]
        blocks = [{ tool = "look", id = "r", input = { n = 7, ms = 500 } }]
        [[step]]
        expect = [{ tool_result = "^saw 7$", tool_result_error = false }]
        blocks = [{ text = "done" }]
    "#;
    let workshop = Workshop::playing(script);
    let agent = workshop.agent().tool(Slow::new()).store(workshop.store()).build().unwrap();
    let session = agent.open().await.unwrap();
    let mut turn = session.submit("look").await.unwrap();
    started(&mut turn).await;
    session.handle().close().await;

    let (agent, session) = again(&workshop, session.id()).await;
    assert_eq!(soon(session.rejoin(Seq(1)).finish()).await.unwrap().text, "done");
    let (story, _) = checked_story(&agent, &session).await;
    assert_eq!((count(&story, "run r"), count(&story, "done r Ok")), (2, 1), "{story:#?}");
}

/// A session whose `bash` call `w` has written a line and goes on for long.
async fn writing(workshop: &Workshop) -> (Agent, Session) {
    let agent = workshop.agent().store(workshop.store()).build().unwrap();
    let session = agent.open().await.unwrap();
    session.submit("write").await.unwrap();
    let written = async {
        while workshop.read("ledger").is_empty() {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    soon(written).await;
    (agent, session)
}

/// A script whose first step writes a line, and whose second wants `result` as what came of it.
fn write_once(result: &str) -> String {
    let command = "echo once >> ledger; echo $$ > pid; sleep 30";
    format!(
        "[[step]]\nblocks = [{{ tool = 'bash', id = 'w', input = {{ command = '{command}' }} }}]\n\
         [[step]]\nexpect = [{{ tool_result = '{result}', tool_result_error = true }}]\nblocks = [{{ text = 'let me look' }}]"
    )
}

#[tokio::test]
async fn a_writer_that_was_called_back_says_so_and_never_runs_again() {
    let workshop = Workshop::playing(&write_once("^cancelled while it ran"));
    let (_, session) = writing(&workshop).await;
    session.handle().close().await;

    let (agent, session) = again(&workshop, session.id()).await;
    assert_eq!(soon(session.rejoin(Seq(1)).finish()).await.unwrap().text, "let me look");
    assert_eq!(workshop.read("ledger"), "once\n");
    let (story, _) = checked_story(&agent, &session).await;
    assert_eq!((count(&story, "run w"), count(&story, "done w Cancelled")), (1, 1), "{story:#?}");
}

#[tokio::test]
async fn a_writer_whose_process_is_gone_never_runs_again_and_its_outcome_is_unknown() {
    let workshop = Workshop::playing(&write_once("^Outcome unknown"));
    let (_first, session) = writing(&workshop).await;

    // Taken over in the middle, as after a crash: nobody heard what came of the call.
    let (agent, second) = again(&workshop, session.id()).await;
    assert_eq!(soon(second.rejoin(Seq(1)).finish()).await.unwrap().text, "let me look");
    assert_eq!(workshop.read("ledger"), "once\n");
    let (story, _) = checked_story(&agent, &second).await;
    assert_eq!(count(&story, "run w"), 1, "{story:#?}");
    assert!(place(&story, "close w OutcomeUnknown") > place(&story, "run w"));
    let pid = workshop.read("pid").trim().to_owned();
    assert!(!std::path::Path::new(&format!("/proc/{pid}/cwd")).exists(), "nothing is left running");
}

#[tokio::test]
async fn an_answer_that_was_cut_off_is_asked_for_again() {
    let workshop =
        Workshop::playing("[[step]]\nfragment = 4\ngap_ms = 30\nblocks = [{ text = 'one two three four five six' }]");
    let agent = workshop.agent().store(workshop.store()).build().unwrap();
    let session = agent.open().await.unwrap();
    let mut turn = session.submit("count").await.unwrap();
    while let Some(frame) = turn.next().await {
        if delta(&frame.unwrap()).is_some() {
            break;
        }
    }
    session.handle().close().await;

    let (agent, session) = again(&workshop, session.id()).await;
    let answer = soon(session.rejoin(Seq(1)).finish()).await.unwrap();
    assert_eq!(answer.text, "one two three four five six");
    assert_eq!(checked(&agent, &session).await.messages.len(), 2);
    assert_eq!(workshop.server.requests().len(), 2);
}

#[tokio::test]
async fn a_turn_that_was_about_to_end_ends_as_it_would_have() {
    let workshop = Workshop::playing(DONE);
    let slow = |_: &State| {
        std::thread::sleep(std::time::Duration::from_millis(300));
        None
    };
    let agent = workshop.agent().store(workshop.store()).stop_check(slow).build().unwrap();
    let session = agent.open().await.unwrap();
    let mut turn = session.submit("go on").await.unwrap();
    until(&mut turn, |event| matches!(event, Event::Began { step: Step::Finish { .. } }).then_some(())).await;
    session.handle().close().await;

    let (agent, session) = again(&workshop, session.id()).await;
    assert_eq!(soon(session.rejoin(Seq(1)).finish()).await.unwrap().end, End::Done);
    assert_eq!(workshop.server.requests().len(), 1);
    checked(&agent, &session).await;
}

#[tokio::test]
async fn a_compaction_that_was_cut_off_is_made_again() {
    let ask = "when = { last_user = 'six headings' }";
    let script = format!(
        "[[step]]\n{ask}\nhang = {{ before_answer = true }}\n[[step]]\nrounds = 9\nblocks = [{{ text = 'yes' }}]"
    );
    let workshop = Workshop::playing(&script);
    let agent = workshop.agent().store(workshop.store()).build().unwrap();
    let session = agent.open().await.unwrap();
    for _ in 0..7 {
        soon(session.run("is it?")).await.unwrap();
    }
    let mut turn = session.submit("/compact").await.unwrap();
    until(&mut turn, |event| matches!(event, Event::ModelCalled(_)).then_some(())).await;
    session.handle().close().await;

    let (_agent, session) = again(&workshop, session.id()).await;
    let state = session.handle().state().await.unwrap();
    assert!(state.compacting.is_some(), "the wish is still there");
}

#[tokio::test]
async fn s1_37_a_session_taken_up_again_tells_the_model_all_that_was_said() {
    let script = r#"
        [[step]]
        blocks = [{ text = "I will look." }, { tool = "ls", input = { path = "." } }]
        [[step]]
        blocks = [{ text = "Nothing there." }]
        [[step]]
        blocks = [{ text = "As I said." }]
    "#;
    let workshop = Workshop::playing(script);
    let agent = workshop.agent().store(workshop.store()).build().unwrap();
    let session = agent.open().await.unwrap();
    soon(session.run("what is here?")).await.unwrap();
    let before = checked(&agent, &session).await;
    session.handle().close().await;

    let (agent, session) = again(&workshop, session.id()).await;
    let taken_up = checked(&agent, &session).await;
    assert!(taken_up.is_idle());
    assert_eq!((&taken_up.messages, taken_up.totals), (&before.messages, before.totals));
    assert_eq!(soon(session.run("are you sure?")).await.unwrap().text, "As I said.");
    let bodies = workshop.bodies();
    let (old, new) = (messages(&bodies[1]), messages(&bodies[2]));
    assert_eq!((old.len(), new.len()), (3, 5));
    assert_eq!(new[..3], old[..]);
    assert_eq!(new[3]["content"][0]["text"], "Nothing there.");
    checked(&agent, &session).await;
}

#[tokio::test]
async fn a_picture_in_a_prompt_that_waited_outlives_the_process() {
    let script = r#"
        [[step]]
        blocks = [{ tool = "look", input = { n = 1, ms = 400 } }]
        [[step]]
        blocks = [{ text = "a boat" }]
    "#;
    let workshop = Workshop::playing(script);
    let agent = workshop.agent().tool(Slow::new()).store(workshop.store()).build().unwrap();
    let session = agent.open().await.unwrap();
    let mut turn = session.submit("look").await.unwrap();
    started(&mut turn).await;
    session.submit(Prompt::new("and at this").image("image/png", &b"a boat"[..])).await.unwrap();
    session.handle().close().await;

    let (agent, session) = again(&workshop, session.id()).await;
    soon(session.rejoin(Seq(1)).finish()).await.unwrap();
    assert!(workshop.newest().to_string().contains("YSBib2F0"), "{}", workshop.newest());
    checked(&agent, &session).await;
}

#[tokio::test]
async fn who_takes_a_session_over_is_its_only_writer() {
    let script = format!(
        "[[step]]\nblocks = [{{ tool = 'bash', id = 'c', input = {{ command = 'echo one >> out' }} }}]\n{DONE}"
    );
    let workshop = Workshop::playing(&script);
    let agent = workshop.asking().store(workshop.store()).build().unwrap();
    let first = agent.open().await.unwrap();
    let mut turn = first.submit("go on").await.unwrap();
    let (call, asked) = question(&mut turn).await;

    let agent = workshop.asking().store(workshop.store()).build().unwrap();
    let second = agent.resume(first.id()).await.unwrap();
    // The first does not know yet: what it is told now must not be stored, and so not be done.
    let error = send(&first, answer(&call, &asked, Decision::Allow)).await.unwrap_err();
    let SendError::Failed(why) = &error else { panic!("{error}") };
    assert!(matches!(**why, StoreError::Fenced { .. }), "{why}");
    assert!(error.to_string().contains("was taken over by another process"), "{error}");
    assert!(matches!(soon(turn.finish()).await, Err(RunError::Send(SendError::Failed(_)))));
    let later = first.submit("hello?").await.err().unwrap();
    assert_eq!(later.to_string(), error.to_string());
    assert_eq!(workshop.read("out"), "");

    let state = checked(&agent, &second).await;
    assert_eq!(state.asking().count(), 1);
    send(&second, answer(&call, &asked, Decision::Allow)).await.unwrap();
    assert_eq!(soon(second.rejoin(state.head).finish()).await.unwrap().end, End::Done);
    assert_eq!(workshop.read("out"), "one\n");
    checked(&agent, &second).await;
}

#[tokio::test]
async fn a_full_store_stops_the_turn_loudly_before_the_next_side_effect_and_room_lets_it_go_on() {
    let script = format!(
        "[[step]]\nrounds = 30\ntext_bytes = 20_000\nblocks = [{{ tool = 'bash', input = {{ command = 'echo ${{n}} >> ledger' }} }}]\n{DONE}"
    );
    let workshop = Workshop::playing(&script);
    let small = workshop.store_with(SqliteOptions { max_pages: Some(120) });
    let agent = workshop.agent().store(small.clone()).build().unwrap();
    let session = agent.open().await.unwrap();
    let mut follower = session.handle().follow(Seq(1));
    let error = soon(session.run("write a lot")).await.unwrap_err();
    let RunError::Send(SendError::Failed(why)) = &error else { panic!("{error}") };
    assert!(matches!(**why, StoreError::Full { .. }), "{why}");
    assert!(error.to_string().contains("the disk is full"), "{error}");
    let heard = soon(async {
        loop {
            match follower.next().await {
                Some(Ok(_)) => {}
                other => break other,
            }
        }
    });
    assert!(matches!(heard.await, Some(Err(SendError::Failed(_)))), "followers hear it too");
    let refused = session.submit("and more").await.err().unwrap();
    assert!(refused.to_string().contains("the disk is full"), "{refused}");

    let records = log(&small, session.id()).await;
    let begun =
        records.iter().filter(|record| matches!(record.event, Event::Began { step: Step::RunTool { .. } })).count();
    let written = workshop.read("ledger").lines().count();
    assert!(written > 0 && written <= begun && begun < 30, "{written} lines, {begun} begun");
    State::fold(&records).check().unwrap();
    drop((agent, session, follower, small));

    let (agent, session) = again(&workshop, records[0].session).await;
    let answer = soon(session.rejoin(Seq(1)).finish()).await.unwrap();
    assert_eq!(answer.end, End::Done);
    let ledger = workshop.read("ledger");
    let lines: std::collections::BTreeSet<_> = ledger.lines().collect();
    assert_eq!(lines.len(), ledger.lines().count(), "no line twice");
    let (story, _) = checked_story(&agent, &session).await;
    // What did not run, or may not have: the model was told of each.
    let told = story.iter().filter(|line| line.starts_with("close ")).count();
    assert!(lines.len() + told >= 30, "{} lines, {told} told of", lines.len());
}

#[tokio::test]
async fn what_another_process_left_is_taken_up_once_by_a_session_that_runs() {
    let script = r#"
        [[step]]
        blocks = [{ text = "first" }]
        [[step]]
        expect = [{ last_user = "from afar" }]
        blocks = [{ text = "second" }]
        [[step]]
        blocks = [{ text = "third" }]
    "#;
    let workshop = Workshop::playing(script);
    let agent = workshop.agent().store(workshop.store()).build().unwrap();
    let session = agent.open().await.unwrap();
    soon(session.run("hello")).await.unwrap();

    let (afar, input) = (workshop.store(), left("from afar"));
    let mut turn = session.rejoin(session.handle().state().await.unwrap().head.next());
    assert!(afar.enqueue(session.id(), input.clone()).await.unwrap());
    assert!(!afar.enqueue(session.id(), input.clone()).await.unwrap(), "it waits already");
    let origin = until(&mut turn, |event| match event {
        Event::Prompted(prompt) => Some((prompt.origin, prompt.context.is_some())),
        _ => None,
    });
    assert_eq!(origin.await, (Origin::Inbox, true));
    assert_eq!(soon(turn.finish()).await.unwrap().text, "second");
    assert!(!afar.enqueue(session.id(), input).await.unwrap(), "it is in the log already");
    assert_eq!(afar.inbox(session.id()).await.unwrap(), []);
    assert_eq!(soon(session.run("bye")).await.unwrap().text, "third");
    assert_eq!(checked(&agent, &session).await.totals.user_turns, 3);
}

#[tokio::test]
async fn what_another_process_left_is_taken_up_however_busy_the_stream_is() {
    let words = "a word and ".repeat(60);
    let script = format!("[[step]]\nfragment = 11\ngap_ms = 50\nblocks = [{{ text = '{words}' }}]\n{DONE}");
    let workshop = Workshop::playing(&script);
    let agent = workshop.agent().store(workshop.store()).build().unwrap();
    let session = agent.open().await.unwrap();
    let turn = session.submit("talk").await.unwrap();
    workshop.store().enqueue(session.id(), left("from afar")).await.unwrap();
    assert_eq!(soon(turn.finish()).await.unwrap().text, "done", "the turn had it shown");
    let (story, _) = checked_story(&agent, &session).await;
    assert_eq!(count(&story, "prompted"), 2);
    let last = story.iter().rposition(|line| line == "prompted").unwrap();
    assert!(last < place(&story, "model finished"), "{story:#?}");
}

#[tokio::test]
async fn what_was_left_for_a_session_that_lay_down_is_in_its_first_request() {
    let script = r#"
        [[step]]
        blocks = [{ text = "first" }]
        [[step]]
        expect = [{ contains = "from afar" }, { contains = "and here" }]
        blocks = [{ text = "second" }]
    "#;
    let workshop = Workshop::playing(script);
    let agent = workshop.agent().store(workshop.store()).build().unwrap();
    let session = agent.open().await.unwrap();
    soon(session.run("hello")).await.unwrap();
    let before = checked(&agent, &session).await.head;
    session.handle().close().await;
    workshop.store().enqueue(session.id(), left("from afar")).await.unwrap();
    workshop.store().enqueue(session.id(), left("and here")).await.unwrap();

    let (_agent, session) = again(&workshop, session.id()).await;
    assert!(!session.handle().state().await.unwrap().is_idle(), "it is taken up at once");
    assert_eq!(soon(session.rejoin(before.next()).finish()).await.unwrap().text, "second");
    session.handle().close().await;
    let (agent, session) = again(&workshop, session.id()).await;
    let state = checked(&agent, &session).await;
    assert!(state.is_idle());
    assert_eq!(state.totals.user_turns, 3);
}

#[tokio::test]
async fn a_session_nobody_knows_is_a_clear_error() {
    let workshop = Workshop::playing(DONE);
    let agent = workshop.agent().store(workshop.store()).build().unwrap();
    let nobody = SessionId(uuid::Uuid::nil());
    let error = agent.resume(nobody).await.err().unwrap();
    assert!(error.to_string().contains(&nobody.to_string()), "{error}");
    let session = agent.open().await.unwrap();
    session.handle().close().await;
    let closed = session.submit("hello").await.err().unwrap();
    assert_eq!(closed.to_string(), "the session is closed: resume it first");
    let mut follower = session.handle().follow(Seq(1));
    assert!(matches!(follower.next().await, Some(Ok(_))), "what is stored can still be read");
    assert!(follower.next().await.is_none());
}
