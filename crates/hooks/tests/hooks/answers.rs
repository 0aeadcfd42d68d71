//! What a hook may answer, at each event, and what comes of it.

use crate::stage::{Stage, after, agent_stop, bash, begin, compact, events, notice, prompt, stop};
use serde_json::{Value, json};
use windlass_hooks::{Decision, Event, EventName, Outcome, Trigger, Verdict};

/// The outcome in a line: decision, contexts, messages, how the run ended.
fn told(outcome: &Outcome) -> String {
    let decision = match &outcome.decision {
        Decision::GoOn => "go on".to_owned(),
        Decision::Allow { reason, .. } => format!("allow ({reason})"),
        Decision::Ask { reason, .. } => format!("ask ({reason})"),
        Decision::Block { reason, .. } => format!("block ({reason})"),
        Decision::Stop { reason, .. } => format!("stop ({reason})"),
    };
    let mut told = format!("{decision}; {:?}", outcome.ran[0].verdict);
    for context in &outcome.contexts {
        told += &format!("; context: {context}");
    }
    for message in &outcome.messages {
        told += &format!("; {}: {}", message.hook, message.text);
    }
    if let Some(input) = &outcome.updated_input {
        told += &format!("; input: {input}");
    }
    told
}

async fn at_each(command: &str) -> String {
    let stage = Stage::new();
    let mut lines = Vec::new();
    for event in events() {
        let name = event.name().text();
        lines.push(format!("{name}: {}", told(&stage.ask_one(command, event).await)));
    }
    lines.join("\n")
}

async fn answered(answer: Value, event: Event) -> String {
    told(&Stage::new().ask_answer(&answer, event).await)
}

fn permission(decision: &str) -> Value {
    let event = "PreToolUse";
    json!({"hookSpecificOutput": {"hookEventName": event, "permissionDecision": decision, "permissionDecisionReason": "because"}})
}

#[tokio::test]
async fn silence_and_success_change_nothing() {
    insta::assert_snapshot!(at_each("true").await, @r"
    PreToolUse: go on; WentOn
    PostToolUse: go on; WentOn
    UserPromptSubmit: go on; WentOn
    SessionStart: go on; WentOn
    Stop: go on; WentOn
    SubagentStop: go on; WentOn
    PreCompact: go on; WentOn
    Notification: go on; WentOn
    ");
}

#[tokio::test]
async fn plain_text_is_context_where_a_conversation_or_a_prompt_begins() {
    insta::assert_snapshot!(at_each("echo the build is red").await, @r"
    PreToolUse: go on; WentOn
    PostToolUse: go on; WentOn
    UserPromptSubmit: go on; WentOn; context: the build is red
    SessionStart: go on; WentOn; context: the build is red
    Stop: go on; WentOn
    SubagentStop: go on; WentOn
    PreCompact: go on; WentOn
    Notification: go on; WentOn
    ");
}

#[tokio::test]
async fn exit_code_2_blocks_what_can_be_blocked() {
    insta::assert_snapshot!(at_each("echo printed; echo not so >&2; exit 2").await, @r"
    PreToolUse: block (not so); Blocked
    PostToolUse: block (not so); Blocked
    UserPromptSubmit: block (not so); Blocked
    SessionStart: go on; Failed; guard: failed: exit code 2, which blocks nothing at SessionStart: not so; SessionStart goes on without it
    Stop: block (not so); Blocked
    SubagentStop: block (not so); Blocked
    PreCompact: block (not so); Blocked
    Notification: go on; Failed; guard: failed: exit code 2, which blocks nothing at Notification: not so; Notification goes on without it
    ");
}

#[tokio::test]
async fn exit_code_2_without_a_word_still_has_a_reason() {
    let outcome = Stage::new().ask_one("exit 2", bash("ls")).await;
    insta::assert_snapshot!(told(&outcome), @"block (the hook `guard` gave no reason); Blocked");
}

#[tokio::test]
async fn another_exit_code_is_an_error_that_is_told_and_holds_nothing_up() {
    insta::assert_snapshot!(at_each("echo oh no >&2; exit 1").await, @r"
    PreToolUse: go on; Failed; guard: failed: exit code 1: oh no; PreToolUse goes on without it
    PostToolUse: go on; Failed; guard: failed: exit code 1: oh no; PostToolUse goes on without it
    UserPromptSubmit: go on; Failed; guard: failed: exit code 1: oh no; UserPromptSubmit goes on without it
    SessionStart: go on; Failed; guard: failed: exit code 1: oh no; SessionStart goes on without it
    Stop: go on; Failed; guard: failed: exit code 1: oh no; Stop goes on without it
    SubagentStop: go on; Failed; guard: failed: exit code 1: oh no; SubagentStop goes on without it
    PreCompact: go on; Failed; guard: failed: exit code 1: oh no; PreCompact goes on without it
    Notification: go on; Failed; guard: failed: exit code 1: oh no; Notification goes on without it
    ");
}

#[tokio::test]
async fn on_error_block_makes_a_failure_a_refusal() {
    let hooks = "[[hooks.PreToolUse]]\nname = \"guard\"\ncommand = \"exit 7\"\non_error = \"block\"";
    let outcome = Stage::new().ask(hooks, bash("ls")).await;
    insta::assert_snapshot!(told(&outcome), @"block (the hook `guard` failed, and nothing is done without its consent: exit code 7); Failed; guard: failed: exit code 7; PreToolUse is blocked, as its on_error says");
    assert_eq!((outcome.ran[0].verdict, outcome.ran[0].exit_code), (Verdict::Failed, Some(7)));
}

#[tokio::test]
async fn a_signal_is_an_error() {
    let outcome = Stage::new().ask_one("kill -9 $$", bash("ls")).await;
    insta::assert_snapshot!(told(&outcome), @"go on; Failed; guard: failed: ended by signal 9; PreToolUse goes on without it");
    assert_eq!(outcome.ran[0].exit_code, None);
}

#[tokio::test]
async fn a_call_is_denied_asked_or_allowed() {
    let mut lines = Vec::new();
    for decision in ["deny", "ask", "allow"] {
        lines.push(answered(permission(decision), bash("ls")).await);
    }
    insta::assert_snapshot!(lines.join("\n"), @r"
    block (because); Blocked
    ask (because); Asked
    allow (because); Allowed
    ");
}

#[tokio::test]
async fn the_older_words_decide_a_call_too_and_the_newer_ones_win() {
    let older = |decision| json!({"decision": decision, "reason": "older"});
    let mut both = permission("ask");
    both["decision"] = json!("block");
    let lines = [
        answered(older("block"), bash("ls")).await,
        answered(older("approve"), bash("ls")).await,
        answered(both, bash("ls")).await,
    ];
    insta::assert_snapshot!(lines.join("\n"), @r"
    block (older); Blocked
    allow (older); Allowed
    ask (because); Asked
    ");
}

#[tokio::test]
async fn a_call_gets_another_input_and_a_context() {
    let specific =
        json!({"hookEventName": "PreToolUse", "updatedInput": {"command": "ls -l"}, "additionalContext": "long lists"});
    let outcome = Stage::new().ask_answer(&json!({"hookSpecificOutput": specific}), bash("ls")).await;
    insta::assert_snapshot!(told(&outcome), @r#"go on; WentOn; context: long lists; input: {"command":"ls -l"}"#);
    assert!(outcome.ran[0].rewrote);
}

#[tokio::test]
async fn a_denied_call_has_no_other_input() {
    let mut answer = permission("deny");
    answer["hookSpecificOutput"]["updatedInput"] = json!({"command": "true"});
    let outcome = Stage::new().ask_answer(&answer, bash("ls")).await;
    assert_eq!((outcome.updated_input, outcome.ran[0].rewrote), (None, false));
}

#[tokio::test]
async fn after_a_tool_a_hook_adds_context_or_says_what_was_wrong() {
    let context = json!({"hookSpecificOutput": {"hookEventName": "PostToolUse", "additionalContext": "formatted"}});
    let lines = [
        answered(context, after()).await,
        answered(json!({"decision": "block", "reason": "two lints"}), after()).await,
        answered(json!({"decision": "approve"}), after()).await,
    ];
    insta::assert_snapshot!(lines.join("\n"), @r"
    go on; WentOn; context: formatted
    block (two lints); Blocked
    go on; WentOn
    ");
}

#[tokio::test]
async fn a_prompt_is_blocked_or_gets_a_context() {
    let context = json!({"hookSpecificOutput": {"hookEventName": "UserPromptSubmit", "additionalContext": "on main"}});
    let lines = [
        answered(json!({"decision": "block", "reason": "it holds a key"}), prompt("key")).await,
        answered(context, prompt("hello")).await,
    ];
    insta::assert_snapshot!(lines.join("\n"), @r"
    block (it holds a key); Blocked
    go on; WentOn; context: on main
    ");
}

#[tokio::test]
async fn a_session_begins_with_a_context() {
    let context = json!({"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": "read NOTES"}});
    insta::assert_snapshot!(answered(context, begin()).await, @"go on; WentOn; context: read NOTES");
}

#[tokio::test]
async fn s2_25_a_stop_hook_has_the_turn_go_on_once() {
    let answer = json!({"decision": "block", "reason": "run the tests"});
    let lines = [
        answered(answer.clone(), stop(false)).await,
        answered(answer.clone(), stop(true)).await,
        answered(answer, agent_stop()).await,
    ];
    insta::assert_snapshot!(lines.join("\n"), @r"
    block (run the tests); Blocked
    go on; Blocked; guard: wants the turn to go on once more, and it has gone on once: it ends here
    block (run the tests); Blocked
    ");
}

#[tokio::test]
async fn a_wanted_compaction_can_be_blocked_and_a_needed_one_cannot() {
    let stage = Stage::new();
    let lines = [
        told(&stage.ask_one("echo not now >&2; exit 2", compact(Trigger::Manual)).await),
        told(&stage.ask_one("echo not now >&2; exit 2", compact(Trigger::Auto)).await),
    ];
    insta::assert_snapshot!(lines.join("\n"), @r"
    block (not now); Blocked
    go on; Blocked; guard: would keep the conversation as it is, but the model's window is full: it is compacted
    ");
}

#[tokio::test]
async fn continue_false_ends_the_turn_whatever_else_is_said() {
    let mut answer = permission("allow");
    answer["continue"] = json!(false);
    answer["stopReason"] = json!("the freeze is on");
    let lines = [
        answered(answer.clone(), bash("ls")).await,
        answered(json!({"continue": false, "decision": "block"}), stop(false)).await,
        answered(json!({"continue": false}), Event::Notification(notice())).await,
        answered(json!({"continue": true}), bash("ls")).await,
    ];
    insta::assert_snapshot!(lines.join("\n"), @r#"
    stop (the freeze is on); Stopped
    stop (the hook `guard` gave no reason); Stopped
    go on; WentOn; guard: answered with `"continue": false`, which ends nothing at Notification
    go on; WentOn
    "#);
}

#[tokio::test]
async fn a_line_for_the_person_comes_with_any_answer() {
    let mut answer = permission("deny");
    answer["systemMessage"] = json!("I looked twice");
    insta::assert_snapshot!(answered(answer, bash("ls")).await, @"block (because); Blocked; guard: I looked twice");
}

#[tokio::test]
async fn what_a_hook_printed_is_kept_for_the_record_unless_it_wants_not() {
    let stage = Stage::new();
    assert_eq!(stage.ask_one("echo checked 3 files", bash("ls")).await.ran[0].stdout, "checked 3 files");
    assert_eq!(stage.ask_one(r#"echo '{"suppressOutput": true}'"#, bash("ls")).await.ran[0].stdout, "");
    let long = stage.ask_one("printf '%5000d' 7", after()).await;
    assert!(long.ran[0].stdout.len() < 2_200, "{}", long.ran[0].stdout.len());
}

#[tokio::test]
async fn an_answer_that_cannot_be_read_is_an_error() {
    let stage = Stage::new();
    let answers = [
        r#"{"decision": "block""#,
        r#"{"decision": "maybe"}"#,
        r#"{"continue": "no"}"#,
        r#"{"hookSpecificOutput": {"permissionDecision": "deny"}}"#,
        r#"{"hookSpecificOutput": {"hookEventName": "PostToolUse", "permissionDecision": "deny"}}"#,
        r#"{"hookSpecificOutput": {"hookEventName": "PreToolUse", "updatedInput": "ls"}}"#,
    ];
    let mut lines = Vec::new();
    for answer in answers {
        std::fs::write(stage.path("answer"), answer).unwrap();
        lines.push(told(&stage.ask_one("cat answer", bash("ls")).await));
    }
    insta::assert_snapshot!(lines.join("\n"), @r#"
    go on; Failed; guard: failed: its JSON cannot be read: EOF while parsing an object at line 1 column 20; PreToolUse goes on without it
    go on; Failed; guard: failed: its answer is none: unknown variant `maybe`, expected `block` or `approve`; PreToolUse goes on without it
    go on; Failed; guard: failed: its answer is none: invalid type: string "no", expected a boolean; PreToolUse goes on without it
    go on; Failed; guard: failed: its answer is none: missing field `hookEventName`; PreToolUse goes on without it
    go on; Failed; guard: failed: its answer is for `PostToolUse`, and it was asked about PreToolUse; PreToolUse goes on without it
    go on; Failed; guard: failed: its `updatedInput` is no object: give all arguments of the call; PreToolUse goes on without it
    "#);
}

#[tokio::test]
async fn fields_that_mean_nothing_are_told_and_the_rest_counts() {
    let mut misspelt = permission("deny");
    misspelt["hookSpecificOutput"]["updatedinput"] = json!({});
    let lines = [
        answered(misspelt, bash("ls")).await,
        answered(json!({"permissionDecision": "deny"}), bash("ls")).await,
        answered(json!({"decision": "block", "reason": "no"}), begin()).await,
        answered(json!({"stopReason": null, "more": null}), bash("ls")).await,
    ];
    insta::assert_snapshot!(lines.join("\n"), @r"
    block (because); Blocked; guard: answered with `hookSpecificOutput.updatedinput`, which means nothing at PreToolUse
    go on; WentOn; guard: answered with `permissionDecision`, which means nothing at PreToolUse
    go on; WentOn; guard: answered with `decision`, `reason`, which means nothing at SessionStart
    go on; WentOn
    ");
}

#[tokio::test]
async fn a_guard_that_must_not_fail_is_not_misread() {
    let stage = Stage::new();
    let mut lines = Vec::new();
    for answer in [r#"{"permissionDecision": "deny"}"#, r#"{"decision": "approve", "more": 1}"#] {
        std::fs::write(stage.path("answer"), answer).unwrap();
        let hooks = "[[hooks.PreToolUse]]\nname = \"guard\"\ncommand = \"cat answer\"\non_error = \"block\"";
        lines.push(told(&stage.ask(hooks, bash("ls")).await));
    }
    insta::assert_snapshot!(lines.join("\n"), @r"
    block (the hook `guard` failed, and nothing is done without its consent: nothing in its answer decides anything); Failed; guard: answered with `permissionDecision`, which means nothing at PreToolUse; guard: failed: nothing in its answer decides anything; PreToolUse is blocked, as its on_error says
    allow (the hook `guard` gave no reason); Allowed; guard: answered with `more`, which means nothing at PreToolUse
    ");
}

#[tokio::test]
async fn a_long_context_is_cut() {
    let outcome = Stage::new().ask_one("head -c 100000 /dev/zero | tr '\\0' x", prompt("hello")).await;
    assert!(outcome.contexts[0].ends_with("x… [67232 bytes left out]"), "{}", outcome.contexts[0].len());
}

#[tokio::test]
async fn bytes_that_are_no_text_do_no_harm() {
    let outcome = Stage::new().ask_one(r"printf 'a\377b'", prompt("hello")).await;
    assert_eq!(outcome.contexts, ["a\u{fffd}b"]);
    let outcome = Stage::new().ask_one(r"printf '{\377}'", prompt("hello")).await;
    assert_eq!(outcome.ran[0].verdict, Verdict::Failed);
}

#[tokio::test]
async fn the_record_says_what_ran() {
    let outcome = Stage::new().ask_one("echo no >&2; exit 2", bash("ls")).await;
    let mut ran = serde_json::to_value(&outcome.ran[0]).unwrap();
    ran["took_ms"] = json!(0);
    insta::assert_snapshot!(ran, @r#"{"hook":"guard","event":"PreToolUse","tool_use_id":"call_1","verdict":"blocked","reason":"no","exit_code":2,"took_ms":0,"rewrote":false,"stdout":""}"#);
    assert_eq!(outcome.ran[0].event, EventName::PreToolUse);
}
