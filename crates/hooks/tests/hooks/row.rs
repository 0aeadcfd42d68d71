//! Several hooks of one event: order, who ends the row, what the next one sees.

use crate::stage::{Stage, after, agent_stop, bash, call, prompt, read, table};
use serde_json::json;
use tokio_util::sync::CancellationToken;
use windlass_hooks::{Agent, Decision, EventName, Hooks, Outcome};

fn ran(outcome: &Outcome) -> Vec<&str> {
    outcome.ran.iter().map(|ran| ran.hook.as_str()).collect()
}

/// A hook that gives the command `$0 more` for the command it sees.
const APPENDS: &str = r#"
read -r told; word=$(echo "$told" | sed 's/.*"command":"\([^"]*\)".*/\1/')
echo "{\"hookSpecificOutput\": {\"hookEventName\": \"PreToolUse\", \"updatedInput\": {\"command\": \"$word more\"}}}"
"#;

fn says(decision: &str) -> String {
    format!(
        "echo '{{\"hookSpecificOutput\": {{\"hookEventName\": \"PreToolUse\", \"permissionDecision\": \"{decision}\"}}}}'"
    )
}

#[tokio::test]
async fn s3_29_hooks_run_one_after_the_other_in_the_order_of_the_configuration() {
    let stage = Stage::new();
    let row = |name: &str| json!({"name": name, "command": format!("echo {name} in >> log; sleep 0.05; echo {name} out >> log")});
    let hooks = table(EventName::PreToolUse, json!([row("c"), row("a"), row("b")]));
    let outcome = stage.run(&hooks, bash("ls")).await;
    assert_eq!(stage.read("log"), "c in\nc out\na in\na out\nb in\nb out\n");
    assert_eq!(ran(&outcome), ["c", "a", "b"]);
}

#[tokio::test]
async fn s3_29_the_first_that_blocks_a_call_is_the_last_that_is_asked() {
    let stage = Stage::new();
    let hooks = r#"
        [[hooks.PreToolUse]]
        name = "context"
        command = "echo '{\"hookSpecificOutput\": {\"hookEventName\": \"PreToolUse\", \"additionalContext\": \"early\"}}'"
        [[hooks.PreToolUse]]
        name = "guard"
        command = "echo no >&2; exit 2"
        [[hooks.PreToolUse]]
        name = "late"
        command = "touch late"
    "#;
    let outcome = stage.ask(hooks, bash("ls")).await;
    assert_eq!(outcome.decision, Decision::Block { hook: "guard".into(), reason: "no".into() });
    assert_eq!(ran(&outcome), ["context", "guard"]);
    assert_eq!(outcome.contexts, ["early"]);
    assert!(!stage.path("late").exists());
}

#[tokio::test]
async fn each_hook_sees_what_the_one_before_it_made_of_the_input() {
    let stage = Stage::new();
    let hooks = table(
        EventName::PreToolUse,
        json!([{"command": APPENDS}, {"command": APPENDS}, {"command": "cat > told"}, {"command": APPENDS}]),
    );
    let outcome = stage.run(&hooks, bash("one")).await;
    assert_eq!(outcome.updated_input, Some(json!({"command": "one more more more"})));
    assert!(stage.read("told").contains(r#""tool_input":{"command":"one more more"}"#), "{}", stage.read("told"));
    let rewrote: Vec<bool> = outcome.ran.iter().map(|ran| ran.rewrote).collect();
    assert_eq!(rewrote, [true, true, false, true]);
}

#[tokio::test]
async fn what_was_allowed_before_a_rewrite_is_not_allowed_after_it() {
    let stage = Stage::new();
    let ask = async |commands: [&str; 2]| {
        let hooks = table(EventName::PreToolUse, json!([{"command": commands[0]}, {"command": commands[1]}]));
        stage.run(&hooks, bash("ls")).await.decision
    };
    let allow = says("allow");
    assert_eq!(ask([&allow, APPENDS]).await, Decision::GoOn);
    assert!(matches!(ask([APPENDS, &allow]).await, Decision::Allow { .. }));
}

#[tokio::test]
async fn the_stricter_word_wins_in_any_order() {
    let stage = Stage::new();
    let (allow, ask, deny) = (says("allow"), says("ask"), says("deny"));
    let mut decisions = Vec::new();
    for row in [[&allow, &ask], [&ask, &allow], [&allow, &deny], [&ask, &deny]] {
        let rows: Vec<_> = row.iter().map(|command| json!({"command": command})).collect();
        let hooks = table(EventName::PreToolUse, json!(rows));
        decisions.push(match stage.run(&hooks, bash("ls")).await.decision {
            Decision::Ask { .. } => "ask",
            Decision::Block { .. } => "block",
            _ => "other",
        });
    }
    assert_eq!(decisions, ["ask", "ask", "block", "block"]);
}

#[tokio::test]
async fn after_a_tool_every_hook_is_asked_and_all_complaints_are_heard() {
    let rows = json!([{"name": "lint", "command": "echo two lints >&2; exit 2"}, {"name": "test", "command": "echo one test >&2; exit 2"}]);
    let stage = Stage::new();
    let outcome = stage.run(&table(EventName::PostToolUse, rows), after()).await;
    assert_eq!(outcome.decision, Decision::Block { hook: "lint".into(), reason: "two lints\none test".into() });
}

#[tokio::test]
async fn contexts_come_in_order() {
    let rows = json!([{"command": "echo one"}, {"command": "true"}, {"command": "echo two"}]);
    let stage = Stage::new();
    let outcome = stage.run(&table(EventName::UserPromptSubmit, rows), prompt("go")).await;
    assert_eq!(outcome.contexts, ["one", "two"]);
}

#[tokio::test]
async fn a_failure_does_not_end_the_row_unless_it_blocks() {
    let stage = Stage::new();
    for (on_error, expected) in [("go_on", 2), ("block", 1)] {
        let rows = json!([{"command": "exit 1", "on_error": on_error}, {"command": "true"}]);
        let outcome = stage.run(&table(EventName::PreToolUse, rows), bash("ls")).await;
        assert_eq!(outcome.ran.len(), expected, "{on_error}");
    }
}

#[tokio::test]
async fn only_hooks_that_match_are_asked() {
    let hooks = r#"
        [[hooks.PreToolUse]]
        matcher = "Edit|Write"
        name = "files"
        command = "true"
        [[hooks.PreToolUse]]
        name = "all"
        command = "true"
        [[hooks.PostToolUse]]
        name = "after"
        command = "true"
    "#;
    let stage = Stage::new();
    assert_eq!(ran(&stage.ask(hooks, bash("ls")).await), ["all"]);
    assert_eq!(ran(&stage.ask(hooks, call("apply_patch", json!({}))).await), ["files", "all"]);
    assert_eq!(stage.ask(hooks, prompt("go")).await, Outcome::default());
    let hooks = read(hooks);
    assert!(hooks.wants(EventName::PreToolUse, "bash") && hooks.wants(EventName::PostToolUse, "edit"));
    assert!(!hooks.wants(EventName::Stop, "") && !hooks.is_empty());
    assert!(Hooks::default().is_empty() && !Hooks::default().wants(EventName::PreToolUse, "bash"));
}

#[tokio::test]
async fn hooks_of_a_sub_agents_end_match_its_kind() {
    let stage = Stage::new();
    let hooks = table(EventName::SubagentStop, json!([{"matcher": "explore|plan", "command": "cat > told"}]));
    let mut asked = Vec::new();
    for kind in ["explore", "build"] {
        let agent = Some(Agent { agent_id: "a1".into(), agent_type: kind.into() });
        let origin = windlass_hooks::Origin { agent, ..stage.origin() };
        asked.push(hooks.run(agent_stop(), &origin, &stage.launch(), &CancellationToken::new()).await.ran.len());
    }
    assert_eq!(asked, [1, 0]);
    assert!(stage.read("told").contains(r#""agent_id":"a1","agent_type":"explore""#), "{}", stage.read("told"));
}
