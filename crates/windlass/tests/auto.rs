//! Mode `auto`: a model answers in a person's place, and what it does not clearly allow does not run.

mod common;

use common::*;
use windlass::kernel::*;
use windlass::policy::Policy;
use windlass::{Agent, Session};

/// The agent asks to touch a file; the reviewing model, told apart by its task, says `review`.
fn play(review: &str) -> Workshop {
    Workshop::playing(&format!(
        "[[step]]\nwhen = {{ system = 'safety review' }}\n{review}\n\
         [[step]]\nblocks = [{{ tool = 'bash', id = 'c0', input = {{ command = 'touch made' }} }}]\n\
         [[step]]\nblocks = [{{ text = 'done' }}]"
    ))
}

async fn judged(agent: &Agent, session: &Session) -> Judged {
    checked(agent, session).await;
    let records = log(&agent.setup().store, session.id()).await;
    let judged = records.into_iter().find_map(|record| match record.event {
        Event::Judged(judged) => Some(*judged),
        _ => None,
    });
    judged.expect("a call was judged")
}

#[tokio::test]
async fn a_clear_yes_lets_the_call_run_and_stands_in_the_log_and_the_ledger() {
    let workshop = play("blocks = [{ text = '{\"allow\": true, \"reason\": \"it was asked for\"}' }]");
    let agent = workshop.agent().mode(PermissionMode::Auto).build().unwrap();
    let session = agent.open().await.unwrap();
    soon(session.run("make the file")).await.unwrap();
    let judged = judged(&agent, &session).await;
    assert_eq!((judged.verdict, &*judged.stage), (Verdict::Allow, "auto"));
    let review = judged.review.expect("a review");
    assert_eq!((review.allows, &*review.reason), (Some(true), "it was asked for"));
    assert!(workshop.folder.path().join("made").exists());
    let asked = workshop.bodies().into_iter().find(|body| body.to_string().contains("safety review")).unwrap();
    assert!(asked.to_string().contains("touch made") && asked.to_string().contains("make the file"), "{asked}");
    let roles = log(&agent.setup().store, session.id()).await.into_iter().filter_map(|record| match record.event {
        Event::ModelCalled(called) => Some(called.role),
        _ => None,
    });
    assert_eq!(roles.collect::<Vec<_>>(), [ModelRole::Main, ModelRole::Review, ModelRole::Main]);
}

#[tokio::test]
async fn without_a_clear_yes_nothing_runs() {
    for (review, stage) in [
        ("blocks = [{ text = '{\"allow\": false, \"reason\": \"it is not needed\"}' }]", "auto"),
        ("blocks = [{ text = 'Sure, go ahead!' }]", "auto"),
        ("status = 500\nerror = { message = 'out of order' }", "auto"),
    ] {
        let workshop = play(review);
        let agent = workshop.agent().mode(PermissionMode::Auto).build().unwrap();
        let session = agent.open().await.unwrap();
        soon(session.run("make the file")).await.unwrap();
        let judged = judged(&agent, &session).await;
        assert_eq!((judged.verdict, &*judged.stage), (Verdict::Deny, stage), "{review}");
        assert!(!workshop.folder.path().join("made").exists(), "{review}");
    }
}

#[tokio::test]
async fn where_the_model_gives_no_answer_a_person_is_asked() {
    let workshop = play("blocks = [{ text = 'Sure, go ahead!' }]");
    let agent = workshop.agent().mode(PermissionMode::Auto).interactive(true).build().unwrap();
    let session = agent.open().await.unwrap();
    let mut turn = session.submit("make the file").await.unwrap();
    let (call, asked) = question(&mut turn).await;
    assert!(asked.preview.contains("touch made"));
    send(&session, answer(&call, &asked, Decision::Allow)).await.unwrap();
    soon(turn.finish()).await.unwrap();
    assert!(workshop.folder.path().join("made").exists());
    checked(&agent, &session).await;
}

#[tokio::test]
async fn a_deny_rule_and_what_is_asked_every_time_are_not_the_models_to_answer() {
    let yes = "blocks = [{ text = '{\"allow\": true, \"reason\": \"fine\"}' }]";
    let workshop = play(yes);
    let policy = Policy::new(&[], &["bash(touch:*)".to_owned()], &[]).unwrap();
    let agent = workshop.agent().mode(PermissionMode::Auto).policy(policy).build().unwrap();
    let session = agent.open().await.unwrap();
    soon(session.run("make the file")).await.unwrap();
    assert_eq!(judged(&agent, &session).await.rule.as_deref(), Some("bash(touch:*)"));

    let workshop = play(yes);
    let rule = windlass::policy::Rule::deciding(
        "bash(touch:*)",
        windlass::policy::Choice::AlwaysAsk,
        windlass::policy::Source::User,
    );
    let policy = Policy::default().with_rule(rule.unwrap());
    let agent = workshop.agent().mode(PermissionMode::Auto).policy(policy).interactive(true).build().unwrap();
    let session = agent.open().await.unwrap();
    let mut turn = session.submit("make the file").await.unwrap();
    let (call, asked) = question(&mut turn).await;
    assert!(asked.every_time);
    let lasting = Box::new(Answered { scope: Scope::Session, ..*answer(&call, &asked, Decision::Allow) });
    let error = send(&session, lasting).await.unwrap_err().to_string();
    assert!(error.contains("asked every time"), "{error}");
    send(&session, answer(&call, &asked, Decision::Deny { note: String::new() })).await.unwrap();
    soon(turn.finish()).await.unwrap();
    assert!(!workshop.folder.path().join("made").exists());
}
