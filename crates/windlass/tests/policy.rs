//! What must not run does not, whatever changes between the question and the run.

mod common;

use common::*;
use std::sync::Arc;
use windlass::kernel::*;
use windlass::policy::{Choice, Policy, Rule, Source};
use windlass::tools::sandbox::{self, Limits, Network, Settings, Wall};
use windlass::{Agent, Session};

const DONE: &str = "[[step]]\nblocks = [{ text = 'done' }]";
const YES: &str = "[[step]]\nwhen = { system = 'safety review' }\nblocks = [{ text = '{\"allow\": true}' }]\n";
const OUTSIDE: &str = "[[step]]\nblocks = [{ tool = 'bash', id = 'out', input = { command = 'echo x >> made', outside_sandbox = 'the wall is in the way' } }]\n";

fn commands(commands: &[&str]) -> String {
    let call =
        |(n, command): (usize, &&str)| format!("{{ tool = 'bash', id = 'c{n}', input = {{ command = '{command}' }} }}");
    let calls: Vec<_> = commands.iter().enumerate().map(call).collect();
    format!("[[step]]\nblocks = [{}]\n", calls.join(", "))
}

fn allowing(rules: &[&str]) -> Policy {
    Policy::new(&rules.iter().map(|rule| (*rule).to_owned()).collect::<Vec<_>>(), &[], &[]).unwrap()
}

/// A wall behind which nothing can start at all: what runs has run without it.
fn no_way() -> Arc<Wall> {
    Arc::new(Wall::new(Settings {
        program: "/nowhere".into(),
        choice: sandbox::Choice::Auto,
        require: true,
        home: None,
        writable: vec![],
        protected: vec![],
        unreadable: vec![],
        network: Network::Off,
        hosts: vec![],
        limits: Limits::default(),
    }))
}

/// The verdicts of `call`, in order, with the stages that decided.
async fn verdicts(agent: &Agent, session: &Session, call: &str) -> Vec<(Verdict, String)> {
    let records = log(&agent.setup().store, session.id()).await;
    let judged = records.into_iter().filter_map(|record| match record.event {
        Event::Judged(judged) if judged.call.0 == call => Some((judged.verdict, judged.stage)),
        _ => None,
    });
    judged.collect()
}

async fn mode(session: &Session, mode: PermissionMode) {
    let change = Configured { mode: Some(mode), ..Configured::default() };
    session.handle().send(Command::Configure(Box::new(change))).await.unwrap();
}

#[tokio::test]
async fn plan_mode_lets_look_what_a_rule_lets_look_and_nothing_be_changed() {
    let workshop = Workshop::playing(&format!("{}{DONE}", commands(&["ls", "touch made"])));
    let policy = allowing(&["bash(ls:*)", "bash(touch:*)"]);
    let agent = workshop.agent().mode(PermissionMode::Plan).policy(policy).build().unwrap();
    let session = agent.open().await.unwrap();
    soon(session.run("go")).await.unwrap();
    assert_eq!(verdicts(&agent, &session, "c0").await, [(Verdict::Allow, "rule".into())]);
    assert_eq!(verdicts(&agent, &session, "c1").await, [(Verdict::Deny, "mode".into())]);
    assert!(!workshop.folder.path().join("made").exists());
    checked(&agent, &session).await;
}

#[tokio::test]
async fn a_command_that_wants_out_of_the_sandbox_asks_even_where_all_is_allowed_and_runs_without_it() {
    let workshop = Workshop::playing(&format!("{}{OUTSIDE}{DONE}", commands(&["echo x >> inside"])));
    let agent = workshop.agent().mode(PermissionMode::Bypass).interactive(true).wall(no_way()).build().unwrap();
    let session = agent.open().await.unwrap();
    let mut turn = session.submit("go").await.unwrap();
    let (call, asked) = question(&mut turn).await;
    assert!(asked.every_time && asked.impact.contains("OUTSIDE THE SANDBOX"), "{asked:?}");
    assert!(!workshop.folder.path().join("inside").exists(), "the wall holds for all others");
    assert!(!workshop.folder.path().join("made").exists());
    send(&session, answer(&call, &asked, Decision::Allow)).await.unwrap();
    soon(turn.finish()).await.unwrap();
    assert_eq!(workshop.read("made"), "x\n");
    checked(&agent, &session).await;

    // Where nobody is there, it does not run.
    let workshop = Workshop::playing(&format!("{OUTSIDE}{DONE}"));
    let agent = workshop.agent().mode(PermissionMode::Bypass).wall(no_way()).build().unwrap();
    let session = agent.open().await.unwrap();
    soon(session.run("go")).await.unwrap();
    assert_eq!(verdicts(&agent, &session, "out").await, [(Verdict::Deny, "confirm".into())]);
    assert!(!workshop.folder.path().join("made").exists());
}

#[tokio::test]
async fn no_model_lets_a_command_out_of_the_sandbox() {
    let workshop = Workshop::playing(&format!("{YES}{OUTSIDE}{DONE}"));
    let agent = workshop.agent().mode(PermissionMode::Auto).interactive(true).build().unwrap();
    let session = agent.open().await.unwrap();
    let mut turn = session.submit("go").await.unwrap();
    let (_, asked) = question(&mut turn).await;
    assert!(asked.every_time && asked.proposed.is_empty(), "{asked:?}");
    session.handle().close().await;

    let workshop = Workshop::playing(&format!("{YES}{OUTSIDE}{DONE}"));
    let agent = workshop.agent().mode(PermissionMode::Auto).build().unwrap();
    let session = agent.open().await.unwrap();
    soon(session.run("go")).await.unwrap();
    assert_eq!(verdicts(&agent, &session, "out").await, [(Verdict::Deny, "confirm".into())]);
    assert!(!workshop.folder.path().join("made").exists());
}

#[tokio::test]
async fn what_is_asked_every_time_waits_for_nobody_where_nobody_is_there() {
    let workshop = Workshop::playing(&format!("{YES}{}{DONE}", commands(&["touch made"])));
    let rule = Rule::deciding("bash(touch:*)", Choice::AlwaysAsk, Source::User).unwrap();
    let policy = Policy::default().with_rule(rule);
    let agent = workshop.agent().mode(PermissionMode::Auto).policy(policy).build().unwrap();
    let session = agent.open().await.unwrap();
    assert_eq!(soon(session.run("go")).await.unwrap().end, End::Done);
    assert_eq!(verdicts(&agent, &session, "c0").await, [(Verdict::Deny, "rule".into())]);
    assert!(!workshop.folder.path().join("made").exists());
}

#[tokio::test]
async fn a_mode_set_while_calls_wait_holds_for_them() {
    let workshop = Workshop::playing(&format!("{}{DONE}", commands(&["touch asked", "touch allowed"])));
    let agent = workshop.asking().policy(allowing(&["bash(touch allowed)"])).build().unwrap();
    let session = agent.open().await.unwrap();
    let mut turn = session.submit("go").await.unwrap();
    let (call, asked) = question(&mut turn).await;
    while verdicts(&agent, &session, "c1").await.is_empty() {
        tokio::task::yield_now().await;
    }
    mode(&session, PermissionMode::Plan).await;

    // What was asked before cannot be allowed now; to deny it is fine.
    let error = send(&session, answer(&call, &asked, Decision::Allow)).await.unwrap_err().to_string();
    assert!(error.contains("plan mode"), "{error}");
    send(&session, answer(&call, &asked, Decision::Deny { note: String::new() })).await.unwrap();
    soon(turn.finish()).await.unwrap();
    let judged = [(Verdict::Allow, "rule".into()), (Verdict::Deny, "mode".into())];
    assert_eq!(verdicts(&agent, &session, "c1").await, judged);
    for file in ["asked", "allowed"] {
        assert!(!workshop.folder.path().join(file).exists(), "{file}");
    }
    checked(&agent, &session).await;
}

#[tokio::test]
async fn a_question_outlives_a_process_that_died_and_another_hears_the_answer() {
    let workshop = Workshop::playing(&format!("{}{DONE}", commands(&["echo x >> made"])));
    let first = workshop.asking().store(workshop.store()).build().unwrap();
    let session = first.open().await.unwrap();
    let mut turn = session.submit("go").await.unwrap();
    let (call, asked) = question(&mut turn).await;

    // Taken over without a word, as after a kill.
    let second = workshop.asking().store(workshop.store()).build().unwrap();
    let again = second.resume(session.id()).await.unwrap();
    assert!(!workshop.folder.path().join("made").exists());
    let turn = again.rejoin(Seq(1));
    send(&again, answer(&call, &asked, Decision::Allow)).await.unwrap();
    assert_eq!(soon(turn.finish()).await.unwrap().end, End::Done);
    assert_eq!(workshop.read("made"), "x\n");
    checked(&second, &again).await;
}
