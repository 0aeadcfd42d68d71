//! Tools as a session has them: coming and going at run time, called wrongly, breaking, taking too long.

mod common;

use common::*;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use windlass::kernel::*;
use windlass::runtime::SendError;
use windlass::tools::{Confirm, ToolSettings, Tools, builtin};
use windlass::{Agent, Session};

const DONE: &str = "[[step]]\nblocks = [{ text = 'done' }]";

fn call(tool: &str, input: &str, rest: &str) -> String {
    format!("[[step]]\nunoffered = true\nblocks = [{{ tool = '{tool}', id = 'c', input = {input} }}]\n{rest}")
}

/// Runs one prompt; what happened, and the result of the call.
async fn called(agent: &Agent) -> (Vec<String>, String) {
    let session = agent.open().await.unwrap();
    assert_eq!(soon(session.run("go on")).await.unwrap().end, End::Done);
    let (story, state) = checked_story(agent, &session).await;
    (story, results(&state).remove(0))
}

fn offered(body: &Value) -> Vec<&str> {
    body["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

fn registry(settings: &[(&str, ToolSettings)]) -> Arc<Tools> {
    let settings = settings.iter().map(|(name, settings)| ((*name).to_owned(), settings.clone()));
    let tools = Tools::new(settings.collect::<BTreeMap<_, _>>());
    builtin().into_iter().for_each(|tool| tools.register(tool));
    Arc::new(tools)
}

async fn change(session: &Session, change: ToolsChange, tools: &[&str]) -> Result<Seq, SendError> {
    let tools = tools.iter().map(|tool| (*tool).to_owned()).collect();
    session.handle().send(Command::ChangeTools { change, tools }).await
}

#[tokio::test]
async fn s4_09_tools_come_and_go_at_run_time_and_the_next_request_shows_it() {
    let workshop = Workshop::playing("repeat = true\n[[step]]\nblocks = [{ text = 'seen' }]");
    let agent = workshop.agent().store(workshop.store()).build().unwrap();
    let session = agent.open().await.unwrap();
    let builtin = ["ask_user", "bash", "edit", "glob", "grep", "ls", "read", "write"];
    soon(session.run("one")).await.unwrap();
    assert_eq!(offered(&workshop.newest()), builtin, "sorted by name");

    agent.setup().tools.register(Arc::new(Odd::reader("deploy", Act::Say("deployed"))));
    change(&session, ToolsChange::Registered, &["deploy"]).await.unwrap();
    soon(session.run("two")).await.unwrap();
    let with = ["ask_user", "bash", "deploy", "edit", "glob", "grep", "ls", "read", "write"];
    assert_eq!(offered(&workshop.newest()), with);

    change(&session, ToolsChange::Disabled, &["bash", "deploy"]).await.unwrap();
    soon(session.run("three")).await.unwrap();
    let without = ["ask_user", "edit", "glob", "grep", "ls", "read", "write"];
    assert_eq!(offered(&workshop.newest()), without);
    assert!(!workshop.newest()["system"].to_string().contains("deploy"), "nor does the tool guide speak of it");
    let nothing = change(&session, ToolsChange::Disabled, &["bash"]).await.unwrap_err();
    assert!(matches!(nothing, SendError::Rejected(Rejected::NoChange)), "{nothing}");

    // Disabled is the session's own, and stays over a restart; another session has the tools.
    session.handle().close().await;
    let session = agent.resume(session.id()).await.unwrap();
    soon(session.run("four")).await.unwrap();
    assert_eq!(offered(&workshop.newest()), without);
    soon(agent.open().await.unwrap().run("other")).await.unwrap();
    assert_eq!(offered(&workshop.newest()), with);

    change(&session, ToolsChange::Enabled, &["bash", "deploy"]).await.unwrap();
    agent.setup().tools.unregister("deploy");
    change(&session, ToolsChange::Unregistered, &["deploy"]).await.unwrap();
    soon(session.run("five")).await.unwrap();
    assert_eq!(offered(&workshop.newest()), builtin);
    let (story, state) = checked_story(&agent, &session).await;
    assert_eq!(story.iter().filter(|line| *line == "tools_changed").count(), 4);
    assert_eq!(state.disabled_tools.into_iter().collect::<Vec<_>>(), ["deploy"]);
}

#[tokio::test]
async fn s4_09_a_tool_nobody_has_cannot_be_turned_on_or_off() {
    let workshop = Workshop::playing(DONE);
    let agent = workshop.agent().build().unwrap();
    let session = agent.open().await.unwrap();
    for wrong in [ToolsChange::Disabled, ToolsChange::Registered] {
        let error = change(&session, wrong, &["read", "bsah"]).await.unwrap_err().to_string();
        assert!(error.contains("bsah") && error.contains("ask_user, bash"), "{error}");
    }
    assert!(checked(&agent, &session).await.disabled_tools.is_empty());
}

#[tokio::test]
async fn s4_09_a_tool_disabled_while_the_model_speaks_does_not_run() {
    let script = r#"
        [[step]]
        gap_ms = 100
        fragment = 10
        blocks = [
          { tool = "look", id = "first", input = { n = 1, ms = 10 } },
          { text = "and so on and so on and so on" },
          { tool = "bash", id = "second", input = { command = "touch made" } },
        ]
        [[step]]
        expect = [{ contains = "Unknown tool: bash" }, { absent_tools = ["bash"] }]
        blocks = [{ text = "done" }]
    "#;
    let workshop = Workshop::playing(script);
    let agent = workshop.agent().tool(Slow::new()).build().unwrap();
    let session = agent.open().await.unwrap();
    let mut turn = session.submit("go on").await.unwrap();
    started(&mut turn).await;
    change(&session, ToolsChange::Disabled, &["bash"]).await.unwrap();
    assert_eq!(soon(turn.finish()).await.unwrap().text, "done");
    assert!(!workshop.folder.path().join("made").exists());
    checked(&agent, &session).await;
}

#[tokio::test]
async fn s3_32_an_unknown_tool_is_a_result_and_the_loop_goes_on() {
    let rest = "[[step]]\nexpect = [{ tool_result = '^Unknown tool: reed', tool_result_error = true }]\nblocks = [{ text = 'oh' }]";
    let workshop = Workshop::playing(&call("reed", "{}", rest));
    let (story, result) = called(&workshop.agent().build().unwrap()).await;
    assert!(result.contains("There are: ask_user, bash"), "{result}");
    assert!(!story.contains(&"run c".to_owned()), "{story:#?}");
}

#[tokio::test]
async fn s0_24_s4_12_wrong_arguments_are_told_with_how_to_mend_them() {
    let mended = r#"
        [[step]]
        expect = [{ tool_result = "`path` is missing", tool_result_error = true }]
        blocks = [{ tool = "read", id = "d", input = { path = "a" } }]
        [[step]]
        expect = [{ tool_result = "alpha", tool_result_error = false }]
        blocks = [{ text = "done" }]
    "#;
    let workshop = Workshop::playing(&call("read", "{ file = 'a' }", mended));
    workshop.write("a", "alpha");
    let (story, _) = called(&workshop.agent().build().unwrap()).await;
    assert!(place(&story, "run d") > 0 && !story.contains(&"run c".to_owned()), "{story:#?}");
}

#[tokio::test]
async fn arguments_that_are_no_json_do_not_run() {
    let script =
        format!("[[step]]\nblocks = [{{ tool = 'bash', id = 'c', raw_input = '{{\"command\": \"touch ma' }}]\n{DONE}");
    let workshop = Workshop::playing(&script);
    let (story, result) = called(&workshop.agent().build().unwrap()).await;
    assert!(!story.contains(&"run c".to_owned()), "{story:#?}");
    assert!(result.contains("bash"), "{result}");
    assert!(!workshop.folder.path().join("ma").exists());
}

#[tokio::test]
async fn s0_24_a_tool_that_panics_anywhere_is_a_failed_call_and_the_session_lives() {
    for (act, words) in [
        (Act::Panic, "the tool panicked: the wheels came off"),
        (Act::PanicInPlan, "the tool odd panicked while planning"),
        (Act::PanicInNormalise, "the tool odd panicked while planning"),
    ] {
        let workshop = Workshop::playing(&call("odd", "{ n = 1 }", DONE));
        let agent = workshop.agent().tool(Odd::reader("odd", act)).build().unwrap();
        let (_, result) = called(&agent).await;
        assert!(result.contains(words), "{result}");
        assert!(workshop.newest().to_string().contains(r#""is_error":true"#));
    }
}

#[tokio::test]
async fn s4_10_a_call_that_takes_too_long_is_called_back() {
    let workshop = Workshop::playing(&call("bash", "{ command = 'echo begun; sleep 30' }", DONE));
    let limit = ToolSettings { timeout_ms: Some(300), ..ToolSettings::default() };
    let agent = workshop.agent().tools(registry(&[("bash", limit)])).build().unwrap();
    let (story, result) = called(&agent).await;
    assert!(place(&story, "done c Error") > 0);
    assert!(result.contains("timed out after 300 ms") && result.contains("tools.bash.timeout_ms"), "{result}");
    assert!(result.contains("begun"), "what it had said is kept: {result}");
}

#[tokio::test]
async fn s4_10_a_tool_that_is_not_enabled_is_not_offered_and_not_run() {
    let workshop = Workshop::playing(&call("bash", "{ command = 'touch made' }", DONE));
    let off = ToolSettings { enabled: false, ..ToolSettings::default() };
    let (_, result) = called(&workshop.agent().tools(registry(&[("bash", off)])).build().unwrap()).await;
    assert!(result.starts_with("c: Unknown tool: bash"), "{result}");
    assert!(!offered(&workshop.newest()).contains(&"bash"));
    assert!(!workshop.folder.path().join("made").exists());
}

#[tokio::test]
async fn s4_08_s4_11_a_tool_that_wants_to_be_confirmed_is_unless_a_rule_or_the_mode_says_yes() {
    use windlass::policy::Policy;
    let asks = |policy: Policy, mode: PermissionMode, confirm: Confirm| async move {
        let workshop = Workshop::playing(&call("odd", "{ n = 1 }", DONE));
        let odd = Odd { confirm, ..Odd::reader("odd", Act::Say("done")) };
        let agent = workshop.asking().tool(odd).policy(policy).mode(mode).build().unwrap();
        let session = agent.open().await.unwrap();
        let mut turn = session.submit("go on").await.unwrap();
        let asked = until(&mut turn, |event| match event {
            Event::Judged(judged) => Some((judged.verdict, judged.stage.clone())),
            _ => None,
        });
        asked.await
    };
    let rule = || Policy::new(&["odd".into()], &[], &[]).unwrap();
    let (none, default, bypass) = (Policy::default, PermissionMode::Default, PermissionMode::Bypass);
    let allowed = |stage: &str| (Verdict::Allow, stage.to_owned());
    let asked = (Verdict::Ask, "confirm".to_owned());
    assert_eq!(asks(none(), default, Confirm::AsPolicySays).await, allowed("mode"));
    assert_eq!(asks(none(), default, Confirm::UnlessRuled).await, asked);
    assert_eq!(asks(rule(), default, Confirm::UnlessRuled).await, allowed("rule"));
    assert_eq!(asks(none(), bypass, Confirm::UnlessRuled).await, allowed("mode"));
    assert_eq!(asks(rule(), default, Confirm::Always).await, asked);
    assert_eq!(asks(rule(), bypass, Confirm::Always).await, asked);
}

#[tokio::test]
async fn the_fixed_part_of_the_request_is_the_same_bytes_in_every_round() {
    let workshop = Workshop::playing(
        "[[step]]\nrounds = 3\nblocks = [{ tool = 'ls', input = { path = '.' } }]\n[[step]]\nblocks = [{ text = 'done' }]",
    );
    let agent = workshop.agent().build().unwrap();
    let session = agent.open().await.unwrap();
    soon(session.run("go on")).await.unwrap();
    let heads = workshop.heads();
    assert_eq!(heads.len(), 4);
    assert!(heads.iter().all(|head| *head == heads[0]), "{heads:#?}");
    assert!(heads[0].contains("cache_control") && heads[0].contains("\"tools\":["), "{}", heads[0]);
}

#[tokio::test]
async fn a_picture_that_a_tool_read_is_shown_to_the_model() {
    let png = b"\x89PNG\r\n\x1a\n a boat, for all we know";
    let workshop = Workshop::playing(&call("read", "{ path = 'a.png' }", DONE));
    std::fs::write(workshop.folder.path().join("a.png"), png).unwrap();
    let agent = workshop.agent().store(workshop.store()).build().unwrap();
    let session = agent.open().await.unwrap();
    soon(session.run("look")).await.unwrap();
    let shown = workshop.newest()["messages"].to_string();
    assert!(shown.contains("iVBORw0KGgogYSBib2F0LCBmb3IgYWxsIHdlIGtub3c="), "{shown}");
    checked(&agent, &session).await;
}

#[tokio::test]
async fn s1_17_s1_18_every_end_of_a_call_is_in_the_log_and_in_the_next_request() {
    let script = r#"
        [[step]]
        unoffered = true
        blocks = [
          { tool = "read", id = "good", input = { path = "a" } },
          { tool = "read", id = "missing", input = { path = "nowhere" } },
          { tool = "reed", id = "unknown", input = {} },
          { tool = "bash", id = "denied", input = { command = "touch made" } },
        ]
        [[step]]
        blocks = [{ text = "done" }]
    "#;
    let workshop = Workshop::playing(script);
    workshop.write("a", "alpha");
    let agent = workshop.agent().mode(PermissionMode::Default).build().unwrap();
    let session = agent.open().await.unwrap();
    soon(session.run("go on")).await.unwrap();
    let newest = workshop.newest();
    let shown = newest["messages"].as_array().unwrap().last().unwrap()["content"].as_array().unwrap();
    let ends = shown.iter().map(|block| (block["tool_use_id"].as_str().unwrap(), block["is_error"] == true));
    let expected = [("good", false), ("missing", true), ("unknown", true), ("denied", true)];
    assert_eq!(ends.collect::<Vec<_>>(), expected);
    checked(&agent, &session).await;
}
