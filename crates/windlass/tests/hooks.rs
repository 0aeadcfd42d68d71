//! Commands of the user's that look at what happens, in whole sessions.

mod common;

use common::*;
use serde_json::{Value, json};
use std::sync::Arc;
use windlass::hooks::{Hooks, Launch, Walled};
use windlass::kernel::*;
use windlass::policy::Policy;
use windlass::runtime::{Hooking, SendError};
use windlass::{Agent, AgentBuilder, Session};

const DONE: &str = "[[step]]\nblocks = [{ text = 'done' }]";
const TOUCH: &str = "[[step]]\nblocks = [{ tool = 'bash', id = 'c0', input = { command = 'touch made' } }]\n";

/// The builder with these hooks, as a table of events.
fn hooked(workshop: &Workshop, builder: AgentBuilder, hooks: Value) -> AgentBuilder {
    let mut all = Hooks::default();
    all.add("hooks.json", &hooks).unwrap();
    let env = [("PATH".to_owned(), std::env::var("PATH").unwrap())].into();
    let launch = Launch {
        env: Arc::new(env),
        project_dir: workshop.folder.path().into(),
        wall: Arc::new(|command| Ok(Walled::bare(command))),
    };
    builder.hooking(Hooking { hooks: Arc::new(all), launch })
}

async fn records(agent: &Agent, session: &Session) -> Vec<Record> {
    checked(agent, session).await;
    log(&agent.setup().store, session.id()).await
}

fn judged(records: &[Record]) -> Judged {
    let judged = records.iter().find_map(|record| match &record.event {
        Event::Judged(judged) => Some((**judged).clone()),
        _ => None,
    });
    judged.expect("a call was judged")
}

fn hooks_that_ran(records: &[Record]) -> Vec<(String, HookOutcome)> {
    let ran = records.iter().filter_map(|record| match &record.event {
        Event::HookRan(ran) => Some((ran.on.clone(), ran.outcome)),
        _ => None,
    });
    ran.collect()
}

#[tokio::test]
async fn s3_29_a_hook_before_a_call_may_block_it() {
    let workshop = Workshop::playing(&format!("{TOUCH}{DONE}"));
    let hook = json!({"PreToolUse": [{"matcher": "Bash", "command": "echo 'not on Fridays' >&2; exit 2"}]});
    let agent = hooked(&workshop, workshop.agent(), hook).build().unwrap();
    let session = agent.open().await.unwrap();
    soon(session.run("go")).await.unwrap();
    let records = records(&agent, &session).await;
    let judged = judged(&records);
    assert_eq!((judged.verdict, &*judged.stage), (Verdict::Deny, "hook"));
    assert!(judged.reason.contains("not on Fridays"), "{}", judged.reason);
    assert_eq!(hooks_that_ran(&records), [("PreToolUse".to_owned(), HookOutcome::Blocked)]);
    assert!(!workshop.folder.path().join("made").exists());
    assert!(workshop.newest().to_string().contains("not on Fridays"), "the model is told why");
}

#[tokio::test]
async fn a_hook_may_rewrite_the_arguments_and_what_it_wrote_is_judged() {
    let workshop = Workshop::playing(&format!("{TOUCH}{DONE}"));
    let answer =
        r#"{"hookSpecificOutput": {"hookEventName": "PreToolUse", "updatedInput": {"command": "touch other"}}}"#;
    let hook = json!({"PreToolUse": [{"matcher": "bash", "command": format!("echo '{answer}'")}]});
    let agent = hooked(&workshop, workshop.agent(), hook.clone()).build().unwrap();
    let session = agent.open().await.unwrap();
    soon(session.run("go")).await.unwrap();
    assert_eq!(judged(&records(&agent, &session).await).input, Some(json!({"command": "touch other"})));
    assert!(workshop.folder.path().join("other").exists() && !workshop.folder.path().join("made").exists());

    // A rule that denies what the hook made of it stands.
    let workshop = Workshop::playing(&format!("{TOUCH}{DONE}"));
    let policy = Policy::new(&[], &["bash(touch other)".to_owned()], &[]).unwrap();
    let agent = hooked(&workshop, workshop.agent().policy(policy), hook).build().unwrap();
    let session = agent.open().await.unwrap();
    soon(session.run("go")).await.unwrap();
    assert_eq!(judged(&records(&agent, &session).await).rule.as_deref(), Some("bash(touch other)"));
    assert!(!workshop.folder.path().join("other").exists());
}

#[tokio::test]
async fn a_hooks_yes_satisfies_an_ask_and_overrides_no_deny() {
    let answer = r#"{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow", "permissionDecisionReason": "it is fine"}}"#;
    let hook = json!({"PreToolUse": [{"matcher": "bash", "command": format!("echo '{answer}'")}]});
    for (deny, verdict, made) in [(&[][..], Verdict::Allow, true), (&["bash(touch:*)"], Verdict::Deny, false)] {
        let workshop = Workshop::playing(&format!("{TOUCH}{DONE}"));
        let deny: Vec<String> = deny.iter().map(|rule| rule.to_string()).collect();
        let builder = workshop.agent().mode(PermissionMode::Default).policy(Policy::new(&[], &deny, &[]).unwrap());
        let agent = hooked(&workshop, builder.interactive(true), hook.clone()).build().unwrap();
        let session = agent.open().await.unwrap();
        soon(session.run("go")).await.unwrap();
        assert_eq!(judged(&records(&agent, &session).await).verdict, verdict);
        assert_eq!(workshop.folder.path().join("made").exists(), made);
    }
}

#[tokio::test]
async fn what_hooks_add_reaches_the_model_beside_the_result() {
    let workshop = Workshop::playing(&format!("{TOUCH}{DONE}"));
    let answer = |event: &str, text: &str| {
        let json = json!({"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}});
        json!([{"matcher": "bash", "command": format!("echo '{json}'")}])
    };
    let hooks = json!({
        "PreToolUse": answer("PreToolUse", "said before"),
        "PostToolUse": answer("PostToolUse", "said after"),
    });
    let agent = hooked(&workshop, workshop.agent(), hooks).build().unwrap();
    let session = agent.open().await.unwrap();
    soon(session.run("go")).await.unwrap();
    let told = workshop.newest().to_string();
    assert!(told.contains("said before") && told.contains("said after"), "{told}");
    let ran = hooks_that_ran(&records(&agent, &session).await);
    assert_eq!(ran.iter().map(|(on, _)| &**on).collect::<Vec<_>>(), ["PreToolUse", "PostToolUse"]);
}

#[tokio::test]
async fn a_prompt_passes_the_hooks_first() {
    let workshop = Workshop::playing("repeat = true\n[[step]]\nblocks = [{ text = 'done' }]");
    let hooks = json!({
        "SessionStart": [{"matcher": "startup", "command": "echo 'the moon is full'"}],
        "UserPromptSubmit": [{"command": "grep -q secret && { echo 'say nothing of it' >&2; exit 2; }; echo 'it is late'"}],
    });
    let agent = hooked(&workshop, workshop.agent(), hooks).build().unwrap();
    let session = agent.open().await.unwrap();
    soon(session.run("hello")).await.unwrap();
    let told = workshop.newest().to_string();
    assert!(told.contains("the moon is full") && told.contains("it is late"), "{told}");

    let error = soon(session.submit("the secret word")).await.err().expect("it is not let through");
    let text = error.to_string();
    assert!(matches!(error, SendError::Rejected(Rejected::Blocked { .. })), "{text}");
    assert!(text.contains("say nothing of it"), "{text}");
    soon(session.run("again")).await.unwrap();
    assert_eq!(workshop.newest().to_string().matches("the moon is full").count(), 1, "a session starts once");
    assert!(!workshop.newest().to_string().contains("secret word"), "what was blocked never came in");
    checked(&agent, &session).await;
}

#[tokio::test]
async fn a_hook_keeps_the_model_at_work_once() {
    let workshop = Workshop::playing("[[step]]\nblocks = [{ text = 'one' }]\n[[step]]\nblocks = [{ text = 'two' }]");
    let hook = json!({"Stop": [{"command": "echo '{\"decision\": \"block\", \"reason\": \"run the tests\"}'"}]});
    let agent = hooked(&workshop, workshop.agent(), hook).build().unwrap();
    let session = agent.open().await.unwrap();
    let answer = soon(session.run("go")).await.unwrap();
    assert_eq!((answer.end, &*answer.text), (End::Done, "two"));
    assert!(workshop.newest().to_string().contains("run the tests"));
    let records = records(&agent, &session).await;
    let blocks = records.iter().filter(|record| matches!(record.event, Event::StopBlocked { .. })).count();
    assert_eq!((blocks, hooks_that_ran(&records).len()), (1, 2));
}

#[tokio::test]
async fn a_hook_may_end_the_turn() {
    let workshop = Workshop::playing(&format!("{TOUCH}{DONE}"));
    let hook = json!({"PreToolUse": [{"command": "echo '{\"continue\": false, \"stopReason\": \"enough\"}'"}]});
    let agent = hooked(&workshop, workshop.agent(), hook).build().unwrap();
    let session = agent.open().await.unwrap();
    assert_eq!(soon(session.run("go")).await.unwrap().end, End::Interrupted);
    assert!(!workshop.folder.path().join("made").exists());
    checked(&agent, &session).await;
}

#[tokio::test]
async fn an_interrupt_ends_a_hook_that_thinks_for_long() {
    let workshop = Workshop::playing(&format!("{TOUCH}{DONE}"));
    let hook = json!({"PreToolUse": [{"command": "echo > thinking; sleep 600"}]});
    let agent = hooked(&workshop, workshop.agent(), hook).build().unwrap();
    let session = agent.open().await.unwrap();
    let turn = session.submit("go").await.unwrap();
    while !workshop.folder.path().join("thinking").exists() {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    session.handle().send(Command::Interrupt { by: "test".into() }).await.unwrap();
    assert_eq!(soon(turn.finish()).await.unwrap().end, End::Interrupted);
    assert!(!workshop.folder.path().join("made").exists());
    checked(&agent, &session).await;
}

#[tokio::test]
async fn hooks_hear_when_a_person_is_wanted() {
    let workshop = Workshop::playing(&format!("{TOUCH}{DONE}"));
    let hook = json!({"Notification": [{"matcher": "permission_prompt", "command": "cat > noticed"}]});
    let agent = hooked(&workshop, workshop.asking(), hook).build().unwrap();
    let session = agent.open().await.unwrap();
    let mut turn = session.submit("go").await.unwrap();
    let (call, asked) = question(&mut turn).await;
    let noticed = || workshop.read("noticed");
    while !noticed().contains("permission_prompt") {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    let told: Value = serde_json::from_str(&noticed()).unwrap();
    assert!(told["message"].as_str().unwrap().contains("touch made"), "{told}");
    send(&session, answer(&call, &asked, Decision::Deny { note: String::new() })).await.unwrap();
    soon(turn.finish()).await.unwrap();
    session.handle().close().await;
    let records = log(&agent.setup().store, session.id()).await;
    assert_eq!(hooks_that_ran(&records), [("Notification".to_owned(), HookOutcome::Passed)]);
}

#[tokio::test]
async fn a_compaction_a_person_asked_for_can_be_blocked() {
    let workshop = Workshop::playing("repeat = true\n[[step]]\nblocks = [{ text = 'done' }]");
    let hook = json!({"PreCompact": [{"matcher": "manual", "command": "echo 'not now' >&2; exit 2"}]});
    let profile = Profile { keep_last: 1, ..Profile::default() };
    let agent = hooked(&workshop, workshop.agent().profile(profile), hook).build().unwrap();
    let session = agent.open().await.unwrap();
    for prompt in ["one", "two", "three"] {
        soon(session.run(prompt)).await.unwrap();
    }
    session.handle().send(Command::Compact { instructions: None }).await.unwrap();
    let failed = async {
        loop {
            let records = log(&agent.setup().store, session.id()).await;
            let failed = records.into_iter().find_map(|record| match record.event {
                Event::CompactionFailed { message, .. } => Some(message),
                _ => None,
            });
            match failed {
                Some(message) => return message,
                None => tokio::time::sleep(std::time::Duration::from_millis(5)).await,
            }
        }
    };
    assert!(soon(failed).await.contains("not now"));
    assert_eq!(workshop.bodies().len(), 3, "no model was asked to sum up");
}

const ASKS: &str = r#"echo '{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "ask", "permissionDecisionReason": "look twice"}}'"#;

#[tokio::test]
async fn where_nobody_is_asked_a_hook_that_wants_it_is_a_no() {
    for builder in [
        |workshop: &Workshop| workshop.agent(),
        |workshop: &Workshop| {
            let policy = Policy::new(&["bash(touch:*)".to_owned()], &[], &[]).unwrap();
            workshop.asking().mode(PermissionMode::DontAsk).policy(policy)
        },
    ] {
        let workshop = Workshop::playing(&format!("{TOUCH}{DONE}"));
        let hook = json!({"PreToolUse": [{"matcher": "bash", "command": ASKS}]});
        let agent = hooked(&workshop, builder(&workshop), hook).build().unwrap();
        let session = agent.open().await.unwrap();
        soon(session.run("go")).await.unwrap();
        let judged = judged(&records(&agent, &session).await);
        assert_eq!((judged.verdict, &*judged.stage), (Verdict::Deny, "hook"));
        assert!(!workshop.folder.path().join("made").exists());
    }
}

#[tokio::test]
async fn neither_a_rule_nor_a_model_answers_a_hook_that_wants_a_person() {
    let yes = "[[step]]\nwhen = { system = 'safety review' }\nblocks = [{ text = '{\"allow\": true}' }]\n";
    let workshop = Workshop::playing(&format!("{yes}{TOUCH}{DONE}"));
    let hook = json!({"PreToolUse": [{"matcher": "bash", "command": ASKS}]});
    let agent = hooked(&workshop, workshop.asking().mode(PermissionMode::Auto), hook).build().unwrap();
    let session = agent.open().await.unwrap();
    let mut turn = session.submit("go").await.unwrap();
    let (call, asked) = question(&mut turn).await;
    assert!(asked.every_time, "{asked:?}");
    let lasting = Answered {
        scope: Scope::Session,
        rule: Some("bash(touch:*)".into()),
        ..*answer(&call, &asked, Decision::Allow)
    };
    let error = send(&session, Box::new(lasting)).await.unwrap_err().to_string();
    assert!(error.contains("asked every time"), "{error}");
    assert!(!workshop.folder.path().join("made").exists());
}

#[tokio::test]
async fn a_hook_called_back_by_the_end_of_the_process_has_not_said_no() {
    let workshop = Workshop::playing(&format!("{TOUCH}{DONE}"));
    let slow = json!({"PreToolUse": [{"command": "echo > thinking; sleep 600"}]});
    let agent = hooked(&workshop, workshop.agent().store(workshop.store()), slow).build().unwrap();
    let session = agent.open().await.unwrap();
    let _turn = session.submit("go").await.unwrap();
    while !workshop.folder.path().join("thinking").exists() {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    session.handle().close().await;
    let before = log(&agent.setup().store, session.id()).await;
    assert!(!before.iter().any(|record| matches!(record.event, Event::Judged(_))), "nobody has said anything");

    let agent = workshop.agent().store(workshop.store()).build().unwrap();
    let session = agent.resume(session.id()).await.unwrap();
    assert_eq!(soon(session.rejoin(Seq(1)).finish()).await.unwrap().end, End::Done);
    assert!(workshop.folder.path().join("made").exists());
    checked(&agent, &session).await;
}

#[tokio::test]
async fn prompts_keep_their_order_past_the_hooks() {
    let workshop = Workshop::playing("repeat = true\n[[step]]\nblocks = [{ text = 'done' }]");
    // The first waits for a hook that no later one has to wait for.
    let hook = json!({"SessionStart": [{"command": "echo > thinking; while [ ! -e go ]; do sleep 0.01; done"}]});
    let agent = hooked(&workshop, workshop.agent(), hook).build().unwrap();
    let session = agent.open().await.unwrap();
    let both = async { tokio::join!(session.submit("first"), session.submit("second"), session.submit("/clear")) };
    let free = async {
        while !workshop.folder.path().join("thinking").exists() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        // Time for the others to overtake it, if they could.
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        workshop.write("go", "");
    };
    let ((first, second, _), ()) = soon(async { tokio::join!(both, free) }).await;
    soon(first.unwrap().finish()).await.unwrap();
    drop(second.unwrap());
    let said = log(&agent.setup().store, session.id()).await.into_iter().filter_map(|record| match record.event {
        Event::Prompted(prompt) => Some(text_of(&prompt.blocks)),
        Event::Cleared { .. } => Some("cleared".into()),
        _ => None,
    });
    assert_eq!(said.take(2).collect::<Vec<_>>(), ["first", "second"]);
}

#[tokio::test]
async fn an_interrupt_calls_a_hook_back_that_holds_a_prompt() {
    let workshop = Workshop::playing(DONE);
    let hook = json!({"UserPromptSubmit": [{"command": "echo > thinking; sleep 600"}]});
    let agent = hooked(&workshop, workshop.agent(), hook).build().unwrap();
    let session = agent.open().await.unwrap();
    let interrupt = async {
        while !workshop.folder.path().join("thinking").exists() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        let _ = session.handle().send(Command::Interrupt { by: "test".into() }).await;
    };
    let (sent, ()) = soon(async { tokio::join!(session.submit("go"), interrupt) }).await;
    let error = sent.err().expect("it went no further");
    assert!(matches!(error, SendError::Rejected(Rejected::Blocked { .. })), "{error}");
    checked(&agent, &session).await;
}
