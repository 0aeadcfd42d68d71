//! May this run? Who is asked what, and what comes of each answer.

mod common;

use common::*;
use futures_util::FutureExt;
use serde_json::json;
use std::sync::{Arc, Mutex};
use windlass::kernel::*;
use windlass::runtime::SendError;
use windlass::store::MemoryStore;
use windlass::tools::Confirm;
use windlass::{Agent, Session, Turn};

/// One message that runs `commands`, calls c0, c1, …; then `rest`.
fn commands(commands: &[&str], rest: &str) -> String {
    let call =
        |(n, command): (usize, &&str)| format!("{{ tool = 'bash', id = 'c{n}', input = {{ command = '{command}' }} }}");
    let calls: Vec<_> = commands.iter().enumerate().map(call).collect();
    format!("[[step]]\nblocks = [{}]\n{rest}", calls.join(", "))
}

const DONE: &str = "[[step]]\nblocks = [{ text = 'done' }]";

async fn begun(agent: &Agent) -> (Session, Turn) {
    let session = agent.open().await.unwrap();
    let turn = session.submit("go on").await.unwrap();
    (session, turn)
}

fn lasting(scope: Scope, rule: &str, call: &CallId, question: &Question) -> Box<Answered> {
    Box::new(Answered { scope, rule: Some(rule.into()), ..*answer(call, question, Decision::Allow) })
}

/// Who answered for `call`, as the log has it.
async fn answered_by(agent: &Agent, session: &Session, call: &str) -> Option<String> {
    let records = log(&agent.setup().store, session.id()).await;
    records.into_iter().find_map(|record| match record.event {
        Event::Answered(answer) if answer.call.0 == call => Some(answer.by),
        _ => None,
    })
}

fn waiting(state: &State) -> Vec<&str> {
    state.asking().map(|(call, _)| call.id.0.as_str()).collect()
}

#[tokio::test]
async fn s0_22_a_question_shows_what_would_run_and_what_is_at_stake_and_nothing_runs_before() {
    let workshop = Workshop::playing(&commands(&["touch made"], DONE));
    let agent = workshop.asking().build().unwrap();
    let (session, mut turn) = begun(&agent).await;
    let (call, asked) = question(&mut turn).await;
    assert_eq!((asked.kind, asked.preview.as_str()), (QuestionKind::Approval, "touch made"));
    assert_eq!(asked.impact, format!("runs in {}", workshop.folder.path().display()));
    assert_eq!(asked.proposed, ["bash(touch made)"]);
    assert_eq!(asked.hash.len(), 64, "{}", asked.hash);
    assert_eq!(waiting(&checked(&agent, &session).await), ["c0"]);
    assert!(!workshop.folder.path().join("made").exists());

    send(&session, answer(&call, &asked, Decision::Allow)).await.unwrap();
    assert_eq!(soon(turn.finish()).await.unwrap().end, End::Done);
    assert!(workshop.folder.path().join("made").exists());
    assert!(checked(&agent, &session).await.grants.is_empty(), "once is once");
}

#[tokio::test]
async fn s4_11_a_write_is_asked_about_with_its_difference() {
    let workshop = Workshop::playing(&format!(
        "[[step]]\nblocks = [{{ tool = 'write', input = {{ path = 'new.txt', content = \"first line\\n\" }} }}]\n{DONE}"
    ));
    let agent = workshop.asking().build().unwrap();
    let (session, mut turn) = begun(&agent).await;
    let (call, asked) = question(&mut turn).await;
    assert!(asked.preview.contains("+first line"), "{}", asked.preview);
    assert_eq!(asked.proposed, ["write(new.txt)"]);
    send(&session, answer(&call, &asked, Decision::Allow)).await.unwrap();
    soon(turn.finish()).await.unwrap();
    assert_eq!(workshop.read("new.txt"), "first line\n");
    checked(&agent, &session).await;
}

#[tokio::test]
async fn readers_inside_the_folder_are_not_asked_about() {
    let workshop =
        Workshop::playing(&format!("[[step]]\nblocks = [{{ tool = 'read', input = {{ path = 'a' }} }}]\n{DONE}"));
    workshop.write("a", "alpha");
    let agent = workshop.asking().build().unwrap();
    let session = agent.open().await.unwrap();
    assert_eq!(soon(session.run("go on")).await.unwrap().end, End::Done);
    let (story, _) = checked_story(&agent, &session).await;
    assert!(!story.contains(&"asked".to_owned()), "{story:#?}");
}

#[tokio::test]
async fn a_rule_for_the_session_covers_what_waits_already_and_what_comes() {
    let more = "[[step]]\nblocks = [{ tool = 'bash', id = 'later', input = { command = 'echo three' } }]";
    let workshop = Workshop::playing(&commands(&["echo one", "echo two", "touch made"], &format!("{more}\n{DONE}")));
    let agent = workshop.asking().build().unwrap();
    let (session, mut turn) = begun(&agent).await;
    let (first, asked) = question(&mut turn).await;
    let (_, _) = question(&mut turn).await;
    let (third, other) = question(&mut turn).await;
    send(&session, lasting(Scope::Session, "bash(echo:*)", &first, &asked)).await.unwrap();
    let state = checked(&agent, &session).await;
    assert_eq!(waiting(&state), ["c2"], "the rule says nothing of touch");
    assert_eq!(state.grants, ["bash(echo:*)"]);
    assert_eq!(answered_by(&agent, &session, "c1").await.unwrap(), "rule bash(echo:*)");

    send(&session, answer(&third, &other, Decision::Allow)).await.unwrap();
    assert_eq!(soon(turn.finish()).await.unwrap().end, End::Done);
    let (story, state) = checked_story(&agent, &session).await;
    assert!(place(&story, "done later Ok") > 0);
    assert_eq!(story.iter().filter(|line| *line == "asked").count(), 3, "{story:#?}");
    assert_eq!(results(&state), ["later: three\n"]);
}

#[tokio::test]
async fn a_rule_answers_nothing_that_it_does_not_cover() {
    let calls = "{ tool = 'bash', id = 'shell', input = { command = 'echo one' } }, { tool = 'gentle', id = 'gentle', input = {} }";
    let workshop = Workshop::playing(&format!("[[step]]\nblocks = [{calls}]\n{DONE}"));
    // It only reads, so the mode would let it pass: that it is asked about is its own wish.
    let gentle = Odd { confirm: Confirm::UnlessRuled, ..Odd::reader("gentle", Act::Say("done gently")) };
    let agent = workshop.asking().tool(gentle).build().unwrap();
    let (session, mut turn) = begun(&agent).await;
    let (shell, asked) = question(&mut turn).await;
    let (_, _) = question(&mut turn).await;
    send(&session, lasting(Scope::Session, "bash(echo:*)", &shell, &asked)).await.unwrap();
    assert_eq!(waiting(&checked(&agent, &session).await), ["gentle"]);
}

#[tokio::test]
async fn a_tool_that_always_asks_is_not_answered_for_by_a_rule() {
    let calls =
        "{ tool = 'strict', id = 'one', input = { n = 1 } }, { tool = 'strict', id = 'two', input = { n = 2 } }";
    let workshop = Workshop::playing(&format!("[[step]]\nblocks = [{calls}]\n{DONE}"));
    let strict = Odd { confirm: Confirm::Always, ..Odd::reader("strict", Act::Say("done")) };
    let agent = workshop.asking().tool(strict).build().unwrap();
    let (session, mut turn) = begun(&agent).await;
    let (one, asked) = question(&mut turn).await;
    let (_, _) = question(&mut turn).await;
    let error = send(&session, lasting(Scope::Session, "strict", &one, &asked)).await.unwrap_err();
    assert!(error.to_string().contains("asked every time"), "{error}");
    send(&session, answer(&one, &asked, Decision::Allow)).await.unwrap();
    assert_eq!(waiting(&checked(&agent, &session).await), ["two"]);
}

#[tokio::test]
async fn a_rule_for_ever_is_kept_once_it_is_in_the_log() {
    let workshop = Workshop::playing(&commands(&["echo one"], DONE));
    let store = Arc::new(MemoryStore::new());
    let kept: Arc<Mutex<Vec<(String, bool)>>> = Arc::default();
    let (shelf, seen) = (store.clone(), kept.clone());
    let session_of = Arc::new(Mutex::new(SessionId(uuid())));
    let id = session_of.clone();
    let keep = move |rule: &str, _scope| {
        use windlass::store::Store;
        let session = *id.lock().unwrap();
        let records = shelf.read(session, Seq(1), 1_000).now_or_never().unwrap().unwrap();
        let durable = records.iter().any(|record| matches!(record.event, Event::Answered(_)));
        seen.lock().unwrap().push((rule.to_owned(), durable));
    };
    let agent = workshop.asking().store(store).keep_rule(keep).build().unwrap();
    let (session, mut turn) = begun(&agent).await;
    *session_of.lock().unwrap() = session.id();
    let (call, asked) = question(&mut turn).await;
    send(&session, lasting(Scope::Always, "bash(echo one)", &call, &asked)).await.unwrap();
    soon(turn.finish()).await.unwrap();
    assert_eq!(*kept.lock().unwrap(), [("bash(echo one)".to_owned(), true)]);
    assert_eq!(checked(&agent, &session).await.grants, ["bash(echo one)"]);
}

fn uuid() -> uuid::Uuid {
    uuid::Uuid::nil()
}

#[tokio::test]
async fn s0_25_a_no_with_a_word_reaches_the_model_as_a_failed_call_and_the_loop_goes_on() {
    let rest = r#"
        [[step]]
        expect = [{ tool_result_error = true, tool_result = "use make instead" }]
        blocks = [{ text = "make it is" }]
    "#;
    let workshop = Workshop::playing(&commands(&["touch made"], rest));
    let agent = workshop.asking().build().unwrap();
    let (session, mut turn) = begun(&agent).await;
    let (call, asked) = question(&mut turn).await;
    let no = Decision::Deny { note: "use make instead".into() };
    send(&session, answer(&call, &asked, no)).await.unwrap();
    assert_eq!(soon(turn.finish()).await.unwrap().text, "make it is");
    assert!(!workshop.folder.path().join("made").exists());
    let state = checked(&agent, &session).await;
    assert_eq!((state.denials.len(), state.denials[0].tool.as_str()), (1, "bash"));
}

#[tokio::test]
async fn a_no_gives_no_rule() {
    let workshop = Workshop::playing(&commands(&["echo one"], DONE));
    let kept: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = kept.clone();
    let agent =
        workshop.asking().keep_rule(move |rule, _scope| seen.lock().unwrap().push(rule.into())).build().unwrap();
    let (session, mut turn) = begun(&agent).await;
    let (call, asked) = question(&mut turn).await;
    let no = Decision::Deny { note: String::new() };
    let answer = Answered { decision: no, ..*lasting(Scope::Always, "bash(echo:*)", &call, &asked) };
    let error = send(&session, Box::new(answer)).await.unwrap_err();
    assert!(error.to_string().contains("bash(echo:*)"), "{error}");
    let state = checked(&agent, &session).await;
    assert_eq!((waiting(&state), state.grants.len(), kept.lock().unwrap().len()), (vec!["c0"], 0, 0));
}

#[tokio::test]
async fn a_rule_that_cannot_be_read_is_turned_down() {
    let workshop = Workshop::playing(&commands(&["echo one"], DONE));
    let agent = workshop.asking().build().unwrap();
    let (session, mut turn) = begun(&agent).await;
    let (call, asked) = question(&mut turn).await;
    let error = send(&session, lasting(Scope::Session, "bash(echo", &call, &asked)).await.unwrap_err();
    assert!(error.to_string().contains("the closing `)` is missing"), "{error}");
    assert_eq!(waiting(&checked(&agent, &session).await), ["c0"]);
}

#[tokio::test]
async fn changed_arguments_are_what_runs() {
    let workshop = Workshop::playing(&commands(&["echo wrong > out"], DONE));
    let agent = workshop.asking().build().unwrap();
    let (session, mut turn) = begun(&agent).await;
    let (call, asked) = question(&mut turn).await;
    let changed = Changed { input: json!({"command": "echo right > out"}), plan: CallPlan::default() };
    let answer = Answered { changed: Some(changed), ..*answer(&call, &asked, Decision::Allow) };
    send(&session, Box::new(answer)).await.unwrap();
    assert_eq!(soon(turn.finish()).await.unwrap().end, End::Done);
    assert_eq!(workshop.read("out"), "right\n");
    checked(&agent, &session).await;
}

#[tokio::test]
async fn changed_arguments_are_checked_as_the_models_are() {
    let workshop = Workshop::playing(&commands(&["echo one"], DONE));
    let agent = workshop.asking().build().unwrap();
    let (session, mut turn) = begun(&agent).await;
    let (call, asked) = question(&mut turn).await;
    for (input, complaint) in
        [(json!({"comand": "echo"}), "`command` is missing"), (json!({"command": "rm -rf /"}), "refused in every mode")]
    {
        let changed = Some(Changed { input, plan: CallPlan::default() });
        let answer = Answered { changed, ..*answer(&call, &asked, Decision::Allow) };
        let error = send(&session, Box::new(answer)).await.unwrap_err().to_string();
        assert!(error.contains(complaint) && error.contains("c0"), "{error}");
    }
    assert_eq!(waiting(&checked(&agent, &session).await), ["c0"]);
}

#[tokio::test]
async fn an_answer_must_name_the_very_question_and_the_first_one_wins() {
    let workshop = Workshop::playing(&commands(&["echo one", "echo two"], DONE));
    let agent = workshop.asking().build().unwrap();
    let (session, mut turn) = begun(&agent).await;
    let (first, asked) = question(&mut turn).await;
    let (second, other) = question(&mut turn).await;

    let crossed = send(&session, answer(&first, &other, Decision::Allow)).await.unwrap_err();
    let SendError::Rejected(Rejected::OtherQuestion { expected, .. }) = &crossed else { panic!("{crossed}") };
    assert_eq!(*expected, asked.hash);
    let words = send(&session, answer(&first, &asked, Decision::Words { text: "yes".into() })).await.unwrap_err();
    assert!(matches!(words, SendError::Rejected(Rejected::WantsDecision { .. })), "{words}");

    send(&session, answer(&first, &asked, Decision::Deny { note: String::new() })).await.unwrap();
    let late = send(&session, answer(&first, &asked, Decision::Allow)).await.unwrap_err();
    assert_eq!(late.to_string(), "call c0 is not waiting for an answer");
    send(&session, answer(&second, &other, Decision::Allow)).await.unwrap();
    soon(turn.finish()).await.unwrap();
    let (story, state) = checked_story(&agent, &session).await;
    assert!(!story.contains(&"run c0".to_owned()), "{story:#?}");
    assert_eq!(results(&state)[1], "c1: two\n");
}

#[tokio::test]
async fn a_question_outlives_the_process() {
    let workshop = Workshop::playing(&commands(&["echo one >> out"], DONE));
    let agent = workshop.asking().store(workshop.store()).build().unwrap();
    let (session, mut turn) = begun(&agent).await;
    let (call, asked) = question(&mut turn).await;
    session.handle().close().await;
    drop(agent);

    let agent = workshop.asking().store(workshop.store()).build().unwrap();
    let session = agent.resume(session.id()).await.unwrap();
    let state = checked(&agent, &session).await;
    assert_eq!((waiting(&state), state.reopens), (vec!["c0"], 0));
    let turn = session.rejoin(state.head);
    send(&session, answer(&call, &asked, Decision::Allow)).await.unwrap();
    assert_eq!(soon(turn.finish()).await.unwrap().end, End::Done);
    assert_eq!(workshop.read("out"), "one\n");
    checked(&agent, &session).await;
}

#[tokio::test]
async fn a_question_nobody_can_answer_any_more_is_a_no() {
    let rest = r#"
        [[step]]
        expect = [{ tool_result_error = true, tool_result = "nobody" }]
        blocks = [{ text = "then not" }]
    "#;
    let workshop = Workshop::playing(&commands(&["touch made"], rest));
    let agent = workshop.asking().store(workshop.store()).build().unwrap();
    let (session, mut turn) = begun(&agent).await;
    question(&mut turn).await;
    session.handle().close().await;

    let agent = workshop.asking().interactive(false).store(workshop.store()).build().unwrap();
    let session = agent.resume(session.id()).await.unwrap();
    assert_eq!(soon(session.rejoin(Seq(1)).finish()).await.unwrap().text, "then not");
    assert!(!workshop.folder.path().join("made").exists());
    checked(&agent, &session).await;
}

#[tokio::test]
async fn s0_37_the_words_of_an_answer_are_the_result_of_the_models_question() {
    let script = r#"
        [[step]]
        blocks = [{ tool = "ask_user", input = { question = "Which port?", options = ["80", "8080"] } }]
        [[step]]
        expect = [{ tool_result_error = false, tool_result = "^8081, as always$" }]
        blocks = [{ text = "8081 then" }]
    "#;
    let workshop = Workshop::playing(script);
    // Even where everything is allowed, a question is a question.
    let agent = workshop.agent().interactive(true).build().unwrap();
    let (session, mut turn) = begun(&agent).await;
    let (call, asked) = question(&mut turn).await;
    assert_eq!((asked.kind, asked.preview.as_str()), (QuestionKind::Words, "Which port?"));
    assert_eq!(asked.options, ["80", "8080"]);
    let yes = send(&session, answer(&call, &asked, Decision::Allow)).await.unwrap_err();
    assert!(matches!(yes, SendError::Rejected(Rejected::WantsWords { .. })), "{yes}");
    let words = Decision::Words { text: "8081, as always".into() };
    send(&session, answer(&call, &asked, words)).await.unwrap();
    assert_eq!(soon(turn.finish()).await.unwrap().text, "8081 then");
    checked(&agent, &session).await;
}

#[tokio::test]
async fn s0_26_where_nobody_can_be_asked_the_call_is_denied_recorded_and_the_way_out_named() {
    let rest = r#"
        [[step]]
        expect = [{ tool_result_error = true, tool_result = "--allow 'bash\\(touch made\\)'" }]
        blocks = [{ text = "I may not" }]
    "#;
    let workshop = Workshop::playing(&commands(&["touch made"], rest));
    let agent = workshop.agent().mode(PermissionMode::Default).build().unwrap();
    let session = agent.open().await.unwrap();
    let answer = soon(session.run("go on")).await.unwrap();
    assert_eq!((answer.end, answer.text.as_str()), (End::Done, "I may not"));
    assert!(!workshop.folder.path().join("made").exists());
    let state = checked(&agent, &session).await;
    let [denial] = &state.denials[..] else { panic!("{:?}", state.denials) };
    assert_eq!((denial.call.0.as_str(), denial.tool.as_str()), ("c0", "bash"));
    assert!(denial.reason.contains("--yes"), "{}", denial.reason);
}

#[tokio::test]
async fn a_models_question_nobody_can_hear_is_answered_so() {
    let script = r#"
        [[step]]
        blocks = [{ tool = "ask_user", input = { question = "Which port?" } }]
        [[step]]
        expect = [{ tool_result_error = true, tool_result = "nobody can be asked here" }]
        blocks = [{ text = "8080, I assume" }]
    "#;
    let workshop = Workshop::playing(script);
    for mode in [PermissionMode::Default, PermissionMode::Bypass] {
        let agent = workshop.agent().mode(mode).build().unwrap();
        let session = agent.open().await.unwrap();
        assert_eq!(soon(session.run("go on")).await.unwrap().text, "8080, I assume");
        checked(&agent, &session).await;
    }
}

#[tokio::test]
async fn s1_13_three_denials_in_a_row_end_the_turn() {
    let workshop =
        Workshop::playing("[[step]]\nrounds = 9\nblocks = [{ tool = 'bash', input = { command = 'touch made' } }]");
    let agent = workshop.agent().mode(PermissionMode::Default).build().unwrap();
    let session = agent.open().await.unwrap();
    let answer = soon(session.run("go on")).await.unwrap();
    assert_eq!(answer.end, End::PermissionBlocked { denials: 3 });
    assert_eq!(workshop.server.requests().len(), 3);
    let state = checked(&agent, &session).await;
    assert_eq!(state.denials.len(), 3);
    // They stand in the session's record over its turns.
    soon(session.run("go on")).await.unwrap();
    assert_eq!(checked(&agent, &session).await.denials.len(), 6);
}

#[tokio::test]
async fn what_is_asked_can_be_interrupted_and_never_runs() {
    let workshop = Workshop::playing(&commands(&["touch made"], DONE));
    let agent = workshop.asking().build().unwrap();
    let (session, mut turn) = begun(&agent).await;
    let (call, asked) = question(&mut turn).await;
    session.handle().send(Command::Interrupt { by: "story".into() }).await.unwrap();
    assert_eq!(soon(turn.finish()).await.unwrap().end, End::Interrupted);
    let late = send(&session, answer(&call, &asked, Decision::Allow)).await.unwrap_err();
    assert!(matches!(late, SendError::Rejected(Rejected::NotAsked { .. })), "{late}");
    let state = checked(&agent, &session).await;
    assert_eq!(results(&state), ["c0: Not run: the user interrupted the turn."]);
    assert!(!workshop.folder.path().join("made").exists());
}
