//! What is said to a session: commands it carries out itself, and prompts with all that goes with them.

mod common;

use common::*;
use serde_json::{Value, json};
use windlass::kernel::*;
use windlass::runtime::SendError;
use windlass::{Agent, Prompt, Protocol, RunError, Session};

async fn opened(workshop: &Workshop) -> (Agent, Session) {
    let agent = workshop.agent().store(workshop.store()).build().unwrap();
    let session = agent.open().await.unwrap();
    (agent, session)
}

/// `count` rounds that answer with their number, from 1.
fn numbered(count: usize) -> String {
    let step = |n: usize| format!("[[step]]\nblocks = [{{ text = 'answer {n}' }}]\n");
    (1..=count).map(step).collect()
}

/// A session with `count` exchanges behind it.
async fn talked(workshop: &Workshop, count: usize) -> (Agent, Session) {
    let (agent, session) = opened(workshop).await;
    for n in 1..=count {
        soon(session.run(format!("question {n}"))).await.unwrap();
    }
    (agent, session)
}

/// The texts of each message of a request.
fn texts(body: &Value) -> Vec<Vec<String>> {
    let of_message = |message: &Value| match &message["content"] {
        Value::String(text) => vec![text.clone()],
        blocks => {
            blocks.as_array().unwrap().iter().filter_map(|block| block["text"].as_str().map(Into::into)).collect()
        }
    };
    body["messages"].as_array().unwrap().iter().map(of_message).collect()
}

#[tokio::test]
async fn s0_03_s0_05_clear_calls_no_model_and_the_next_request_holds_nothing_of_before() {
    // The conversation begins anew, and so does the script.
    let workshop = Workshop::playing(&numbered(2));
    let (agent, session) = talked(&workshop, 2).await;
    let answer = soon(session.run("/clear")).await.unwrap();
    assert_eq!((answer.end, answer.text.as_str(), answer.tally.model_calls), (End::Done, "", 0));
    assert_eq!(workshop.server.requests().len(), 2);

    assert_eq!(soon(session.run("who are you?")).await.unwrap().text, "answer 1");
    let newest = workshop.newest();
    assert_eq!(newest["messages"].as_array().unwrap().len(), 1);
    assert!(!newest.to_string().contains("question 1") && !newest.to_string().contains("answer 2"));
    let state = checked(&agent, &session).await;
    assert_eq!((state.messages.len(), state.boundary), (6, 4), "what was said is still in the log");
}

#[tokio::test]
async fn clear_waits_for_nothing_but_must_not_cut_a_turn() {
    let workshop = Workshop::playing("[[step]]\ngap_ms = 50\nfragment = 1\nblocks = [{ text = 'slow answer' }]");
    let (agent, session) = opened(&workshop).await;
    let turn = session.submit("talk").await.unwrap();
    let busy = session.submit("/clear").await.err().unwrap();
    assert!(matches!(busy, SendError::Rejected(Rejected::Busy)), "{busy}");
    assert_eq!(soon(turn.finish()).await.unwrap().text, "slow answer");
    checked(&agent, &session).await;
}

#[tokio::test]
async fn s0_03_s0_29_s3_28_compact_puts_a_summary_in_place_of_all_but_the_last_ten_messages() {
    let workshop = Workshop::playing(&format!(
        "{}\n[[step]]\nname = 'summary'\nwhen = {{ last_user = 'six headings' }}\nblocks = [{{ text = 'THE SUMMARY' }}]\n\
         [[step]]\nname = 'after'\nwhen = {{ contains = 'THE SUMMARY' }}\nblocks = [{{ text = 'I remember' }}]",
        numbered(7)
    ));
    let (agent, session) = talked(&workshop, 7).await;
    let compacted = soon(session.run("/compact keep the numbers")).await.unwrap();
    assert_eq!((compacted.end, compacted.text.as_str()), (End::Done, ""));
    let asked = texts(&workshop.newest());
    let flat = asked.concat().join("\n");
    assert!(flat.contains("question 2") && !flat.contains("question 3"), "only what is put away is summed up: {flat}");
    assert!(flat.contains("The person asks of this summary: keep the numbers"), "{flat}");

    let before = texts(&workshop.bodies()[6]);
    assert_eq!(soon(session.run("go on")).await.unwrap().text, "I remember");
    let shown = texts(&workshop.newest());
    // The summary and the first kept message are both a user's, and so one on the wire; and so are the last two.
    assert!(shown[0][0].contains("THE SUMMARY"), "{shown:#?}");
    assert!(!shown.concat().concat().contains("question 2"));
    assert_eq!(shown[0][1..], before[4][..]);
    assert_eq!(shown[1..=8], before[5..=12]);
    assert_eq!((shown.len(), shown[9][0].as_str()), (11, "answer 7"));
    let state = checked(&agent, &session).await;
    assert_eq!(state.boundary, 4);
}

#[tokio::test]
async fn s2_23_a_compaction_leaves_the_fixed_part_of_the_request_as_it_was() {
    let workshop = Workshop::playing(&format!(
        "{}\n[[step]]\nwhen = {{ last_user = 'six headings' }}\nblocks = [{{ text = 'THE SUMMARY' }}]\n\
         [[step]]\nwhen = {{ contains = 'THE SUMMARY' }}\nblocks = [{{ text = 'I remember' }}]",
        numbered(7)
    ));
    let (_, session) = talked(&workshop, 7).await;
    soon(session.run("/compact")).await.unwrap();
    soon(session.run("go on")).await.unwrap();
    let heads = workshop.heads();
    assert_eq!(heads.len(), 9);
    assert!(heads.iter().all(|head| *head == heads[0] && head.contains("bash")), "{heads:#?}");
}

#[tokio::test]
async fn a_model_that_must_call_a_tool_may_sum_up_without() {
    let workshop = Workshop::playing(&numbered(7));
    let forced = Parameters { max_tokens: 1_000, tool_choice: ToolChoice::Any, ..Parameters::default() };
    let session = workshop.agent().parameters(forced).build().unwrap().open().await.unwrap();
    for n in 1..=6 {
        soon(session.run(format!("question {n}"))).await.unwrap();
    }
    assert_eq!(workshop.newest()["tool_choice"]["type"], "any");
    soon(session.run("/compact")).await.unwrap();
    assert!(workshop.newest()["tool_choice"].is_null(), "{}", workshop.newest());
}

#[tokio::test]
async fn s0_30_s0_31_what_was_compacted_stays_in_the_log_and_a_session_goes_on_from_the_boundary() {
    let workshop = Workshop::playing(&format!(
        "{}\n[[step]]\nwhen = {{ last_user = 'six headings' }}\nblocks = [{{ text = 'THE SUMMARY' }}]\n\
         [[step]]\nwhen = {{ contains = 'THE SUMMARY' }}\nblocks = [{{ text = 'I remember' }}]",
        numbered(7)
    ));
    let (agent, session) = talked(&workshop, 7).await;
    soon(session.run("/compact")).await.unwrap();
    let before = checked(&agent, &session).await;
    session.handle().close().await;
    drop(agent);

    let agent = workshop.agent().store(workshop.store()).build().unwrap();
    let session = agent.resume(session.id()).await.unwrap();
    let state = checked(&agent, &session).await;
    assert_eq!((state.messages.len(), state.boundary), (14, 4));
    assert_eq!(text_of(&state.messages[0].content[1..]), "question 1");
    assert_eq!((state.transcript(), state.transcript().len()), (before.transcript(), 11));
    assert_eq!(soon(session.run("go on")).await.unwrap().text, "I remember");
    assert!(!workshop.newest().to_string().contains("question 2"));
    checked(&agent, &session).await;
}

#[tokio::test]
async fn s1_23_what_the_model_sees_after_a_restart_begins_at_the_boundary() {
    let workshop = Workshop::playing(&numbered(2));
    let (_, session) = talked(&workshop, 2).await;
    soon(session.run("/clear")).await.unwrap();
    session.handle().close().await;
    let agent = workshop.agent().store(workshop.store()).build().unwrap();
    let session = agent.resume(session.id()).await.unwrap();
    assert_eq!(checked(&agent, &session).await.transcript().len(), 0);
    soon(session.run("hello")).await.unwrap();
    assert_eq!(workshop.newest()["messages"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn s3_26_a_call_in_the_summary_does_no_harm() {
    let summary = "[[step]]\nwhen = { last_user = 'six headings' }\nblocks = [{ text = 'THE SUMMARY' }, { tool = 'bash', input = { command = 'touch made' } }]";
    let after = "[[step]]\nwhen = { contains = 'THE SUMMARY' }\nblocks = [{ text = 'I remember' }]";
    let workshop = Workshop::playing(&format!("{}\n{summary}\n{after}", numbered(7)));
    let (agent, session) = talked(&workshop, 7).await;
    soon(session.run("/compact")).await.unwrap();
    let asked = texts(&workshop.newest());
    assert!(asked.last().unwrap().last().unwrap().starts_with("CRITICAL: Respond with TEXT ONLY."), "{asked:#?}");
    assert_eq!(soon(session.run("go on")).await.unwrap().text, "I remember");
    assert!(!workshop.folder.path().join("made").exists());
    assert_eq!(checked(&agent, &session).await.totals.tool_runs, 0);
}

#[tokio::test]
async fn a_compaction_that_cannot_be_says_why_and_changes_nothing() {
    let failing = "[[step]]\nwhen = { last_user = 'six headings' }\nblocks = [{ tool = 'ls', input = {} }]";
    let workshop = Workshop::playing(&format!("{}\n{failing}", numbered(8)));
    let (agent, session) = opened(&workshop).await;
    let nothing = session.run("/compact").await.unwrap_err();
    assert_eq!(nothing.to_string(), "there is nothing to compact yet");

    soon(session.run("question 1")).await.unwrap();
    let short = soon(session.run("/compact")).await.unwrap_err();
    assert!(short.to_string().contains("no place to cut"), "{short}");
    assert_eq!(workshop.server.requests().len(), 1, "that needs no model");

    for n in 2..=7 {
        soon(session.run(format!("question {n}"))).await.unwrap();
    }
    let before = checked(&agent, &session).await;
    let empty = soon(session.run("/compact")).await.unwrap_err();
    assert!(matches!(empty, RunError::NotCompacted(_)));
    assert_eq!(empty.to_string(), "the conversation was not compacted: the model gave no summary");
    assert_eq!(checked(&agent, &session).await.transcript(), before.transcript());
    assert_eq!(soon(session.run("question 8")).await.unwrap().text, "answer 8");
}

#[tokio::test]
async fn a_command_nobody_knows_is_turned_down_with_the_nearest_one() {
    let workshop = Workshop::playing(&numbered(1));
    let (agent, session) = opened(&workshop).await;
    let mut answers = vec![];
    for wrong in ["/claer", "/deploy now", "/clear the cache", "/history"] {
        answers.push(session.submit(wrong).await.err().unwrap().to_string());
    }
    insta::assert_snapshot!(answers.join("\n"), @r"
    there is no command /claer: did you mean /clear?
    there is no command /deploy: /help lists those there are
    there is no command /clear the cache: did you mean /clear?
    there is no command /history: it is a command of the terminal, not of the session
    ");
    assert_eq!(workshop.server.requests().len(), 0);
    assert!(checked(&agent, &session).await.is_idle());
    soon(session.run("/etc/hosts is what?")).await.unwrap();
    assert_eq!(workshop.server.requests().len(), 1, "a path is no command");
}

#[tokio::test]
async fn s0_06_s0_17_s0_32_data_intent_and_constraints_stand_in_the_user_context_and_not_in_the_words() {
    let workshop = Workshop::playing(&numbered(1));
    let (agent, session) = opened(&workshop).await;
    let prompt = Prompt::new("Which of these sold best? Say it in one line.")
        .data(json!([{"item": "rope", "sold": 7}, {"item": "sail", "sold": 3}]))
        .constraint("no more than one line");
    soon(session.run(prompt)).await.unwrap();
    let request = workshop.newest();
    let content = texts(&request).concat();
    assert_eq!(content.len(), 2, "{content:#?}");
    let context = &content[0];
    assert!(context.starts_with("<userContext>\n  <currentTime>") && context.ends_with("</userContext>"), "{context}");
    assert!(context.contains("<userIntent>Which of these sold best?</userIntent>"), "{context}");
    let data = context.split_once("<structuredData>").unwrap().1.split_once("</structuredData>").unwrap().0;
    assert_eq!(serde_json::from_str::<Value>(data).unwrap()[1]["item"], "sail");
    assert!(context.contains("<constraints>\n    - no more than one line\n  </constraints>"), "{context}");
    assert_eq!(content[1], "Which of these sold best? Say it in one line.");
    assert!(request["system"].to_string().contains("<structuredData>"), "the system prompt says how to read it");

    let state = checked(&agent, &session).await;
    let records = log(&agent.setup().store, session.id()).await;
    let prompted = records.iter().find_map(|record| match &record.event {
        Event::Prompted(prompted) => Some(prompted),
        _ => None,
    });
    let data = prompted.unwrap().data.clone().unwrap();
    assert_eq!(data.schema["items"]["required"], json!(["item", "sold"]));
    let kept = agent.setup().store.blob(&data.blob.hash).await.unwrap().unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&kept).unwrap()[0]["sold"], 7);
    assert_eq!(state.totals.user_turns, 1);
}

#[tokio::test]
async fn an_intent_that_is_given_is_taken_as_it_is() {
    let workshop = Workshop::playing(&numbered(1));
    let (_, session) = opened(&workshop).await;
    soon(session.run(Prompt::new("Hello there. Look at this.").intent("find the fault"))).await.unwrap();
    let content = texts(&workshop.newest()).concat();
    assert!(content[0].contains("<userIntent>find the fault</userIntent>"), "{content:#?}");
}

#[tokio::test]
async fn s0_04_pictures_and_documents_go_out_with_the_prompt_and_again_after_a_restart() {
    for protocol in [Protocol::Anthropic, Protocol::Chat] {
        let workshop = Workshop::playing(&numbered(2));
        let agent = || workshop.speaking(protocol).store(workshop.store()).build().unwrap();
        let session = agent().open().await.unwrap();
        let prompt = Prompt::new("what is this?").image("image/png", &b"a boat"[..]).document(
            "application/pdf",
            Some("log.pdf".into()),
            &b"a log"[..],
        );
        soon(session.run(prompt)).await.unwrap();
        session.handle().close().await;

        let agent = agent();
        let session = agent.resume(session.id()).await.unwrap();
        soon(session.run("are you sure?")).await.unwrap();
        for body in workshop.bodies() {
            let said = body["messages"].to_string();
            assert!(said.contains("YSBib2F0") && said.contains("YSBsb2c="), "{protocol:?}: {said}");
        }
        checked(&agent, &session).await;
    }
}

#[tokio::test]
async fn the_same_input_enters_the_log_once() {
    let workshop = Workshop::playing(&numbered(2));
    let (agent, session) = opened(&workshop).await;
    let input = InputId(uuid::Uuid::from_u64_pair(1, 2));
    soon(session.run(Prompt::new("hello").input(input))).await.unwrap();
    let twice = session.submit(Prompt::new("hello").input(input)).await.err().unwrap();
    assert!(matches!(twice, SendError::Rejected(Rejected::Repeated(id)) if id == input), "{twice}");
    let empty = session.submit("  \n").await.err().unwrap();
    assert_eq!(empty.to_string(), "the input is empty: say what is to be done");
    assert_eq!(checked(&agent, &session).await.totals.user_turns, 1);
}
