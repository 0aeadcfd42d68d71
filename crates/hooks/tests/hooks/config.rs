//! Hooks as people write them, and what is said of those that cannot be read.

use crate::stage::{Stage, bash, read};
use serde_json::{Value, json};
use windlass_hooks::{Decision, EventName, Hooks, MAX_HOOKS};

fn refused(toml: &str) -> String {
    let table: Value = toml::from_str(toml).unwrap();
    Hooks::default().add("/home/me/config.toml", &table["hooks"]).unwrap_err().to_string()
}

/// What is said of one PreToolUse hook with `fields`.
fn refused_fields(fields: &str) -> String {
    refused(&format!("[[hooks.PreToolUse]]\n{fields}"))
}

#[tokio::test]
async fn the_flat_and_the_nested_form_say_the_same() {
    let flat = "[[hooks.PreToolUse]]\nmatcher = \"bash\"\ncommand = \"echo flat >&2; exit 2\"\ntimeout_ms = 5000";
    let nested = r#"
        [[hooks.PreToolUse]]
        matcher = "Bash"
        hooks = [{ type = "command", command = "echo nested >&2; exit 2", timeout = 5 }]
    "#;
    let stage = Stage::new();
    for (hooks, word) in [(flat, "flat"), (nested, "nested")] {
        let Decision::Block { hook, reason } = stage.ask(hooks, bash("ls")).await.decision else { panic!("{word}") };
        assert_eq!((hook, reason), (format!("echo {word} >&2; exit 2"), word.to_owned()));
    }
}

#[tokio::test]
async fn settings_of_another_client_can_be_pasted() {
    let settings = json!({
        "model": "some-model",
        "permissions": {"allow": ["Bash(ls:*)"]},
        "hooks": {
            "PreToolUse": [
                {"matcher": "Bash", "hooks": [{"type": "command", "command": "touch first"}, {"type": "command", "command": "echo no >&2; exit 2", "timeout": 10}]},
                {"matcher": "Edit|MultiEdit|Write", "hooks": [{"type": "command", "command": "touch never"}]},
            ],
            "Stop": [{"matcher": "", "hooks": [{"type": "command", "command": "true"}]}],
        },
    });
    let mut hooks = Hooks::default();
    hooks.add_json("hooks.json", &settings.to_string()).unwrap();
    let stage = Stage::new();
    let outcome = stage.run(&hooks, bash("ls")).await;
    assert!(matches!(outcome.decision, Decision::Block { .. }));
    assert!(stage.path("first").exists() && !stage.path("never").exists());
    assert!(hooks.wants(EventName::Stop, ""));
}

#[test]
fn a_json_file_that_cannot_be_read_says_so() {
    let refused = |text| Hooks::default().add_json("hooks.json", text).unwrap_err().to_string();
    insta::assert_snapshot!(refused("{,}"), @"hooks.json: this is no JSON: key must be a string at line 1 column 2");
    insta::assert_snapshot!(refused(r#"{"PreToolUse": []}"#), @r#"hooks.json: there is no `hooks` in it: write {"hooks": {"PreToolUse": […]}}"#);
    insta::assert_snapshot!(refused(r#"{"hooks": []}"#), @r#"hooks.json: hooks: is no table of events: write `[[hooks.PreToolUse]]`, or in JSON {"PreToolUse": […]}"#);
}

#[test]
fn an_event_that_is_none_is_refused_with_the_nearest() {
    insta::assert_snapshot!(refused("[[hooks.pre_tool_use]]\ncommand = \"true\""), @"/home/me/config.toml: hooks: there is no event `pre_tool_use` (did you mean `PreToolUse`?): take it out, or write one of PreToolUse, PostToolUse, UserPromptSubmit, SessionStart, Stop, SubagentStop, PreCompact, Notification");
    insta::assert_snapshot!(refused("[[hooks.SessionEnd]]\ncommand = \"true\""), @"/home/me/config.toml: hooks: there is no event `SessionEnd`: take it out, or write one of PreToolUse, PostToolUse, UserPromptSubmit, SessionStart, Stop, SubagentStop, PreCompact, Notification");
}

#[test]
fn a_field_that_cannot_be_is_refused_with_its_place() {
    let rows = [
        "matcher = \"bash(\"\ncommand = \"true\"",
        "matcher = 7\ncommand = \"true\"",
        "comand = \"true\"",
        "matcher = \"bash\"",
        "command = \"  \"",
        "command = \"true\"\ntimeout_ms = 0",
        "command = \"true\"\ntimeout = -1",
        "command = \"true\"\ntimeout = 7200",
        "command = \"true\"\ntimeout = 1\ntimeout_ms = 1000",
        "command = \"true\"\ntype = \"prompt\"",
        "command = \"true\"\non_error = \"panic\"",
        "timeout = 5\nhooks = [{ command = \"true\" }]",
        "hooks = [{ command = \"true\" }, { command = \"\" }]",
        "hooks = \"true\"",
    ];
    let lines: Vec<String> = rows.into_iter().map(refused_fields).collect();
    insta::assert_snapshot!(lines.join("\n"), @r"
    /home/me/config.toml: hooks.PreToolUse[0]: matcher: `bash(` is no regular expression (unclosed group): write names with `|` between them, as in `bash|edit`, or `*` for all; a literal bracket is written `\(`
    /home/me/config.toml: hooks.PreToolUse[0]: matcher: 7 is no text
    /home/me/config.toml: hooks.PreToolUse[0]: unknown field `comand`, expected one of `matcher`, `hooks`, `type`, `name`, `command`, `timeout`, `timeout_ms`, `on_error`
    /home/me/config.toml: hooks.PreToolUse[0]: command: there is none: write the command that a shell shall run
    /home/me/config.toml: hooks.PreToolUse[0]: command: there is none: write the command that a shell shall run
    /home/me/config.toml: hooks.PreToolUse[0]: timeout_ms: 0 ms cannot be: it must be 1 to 3600000 ms; leave it out for 60000
    /home/me/config.toml: hooks.PreToolUse[0]: timeout: -1000 ms cannot be: it must be 1 to 3600000 ms; leave it out for 60000
    /home/me/config.toml: hooks.PreToolUse[0]: timeout: 7200000 ms cannot be: it must be 1 to 3600000 ms; leave it out for 60000
    /home/me/config.toml: hooks.PreToolUse[0]: timeout, in seconds, and timeout_ms are both given: keep one
    /home/me/config.toml: hooks.PreToolUse[0]: type: `prompt` is not known: `command` is the only one, and may be left out
    /home/me/config.toml: hooks.PreToolUse[0]: unknown variant `panic`, expected `go_on` or `block`
    /home/me/config.toml: hooks.PreToolUse[0]: `timeout` stands beside `hooks`: write it into each of them
    /home/me/config.toml: hooks.PreToolUse[0].hooks[1]: command: there is none: write the command that a shell shall run
    /home/me/config.toml: hooks.PreToolUse[0]: hooks: is no list
    ");
}

#[test]
fn a_shape_that_cannot_be_is_refused() {
    insta::assert_snapshot!(refused("[hooks.PreToolUse]\ncommand = \"true\""), @"/home/me/config.toml: hooks.PreToolUse: is no list: write `[[hooks.PreToolUse]]` with two brackets");
    insta::assert_snapshot!(refused("hooks = \"true\""), @r#"/home/me/config.toml: hooks: is no table of events: write `[[hooks.PreToolUse]]`, or in JSON {"PreToolUse": […]}"#);
    insta::assert_snapshot!(refused("[[hooks.SessionStart]]\ncommand = \"true\"\non_error = \"block\""), @"/home/me/config.toml: hooks.SessionStart[0]: on_error: SessionStart cannot be blocked: leave it out");
    insta::assert_snapshot!(refused("[[hooks.Stop]]\nmatcher = \"bash\"\ncommand = \"true\""), @"/home/me/config.toml: hooks.Stop[0]: matcher: `bash` has nothing to be compared with at Stop: leave it out");
}

#[test]
fn there_is_a_limit_to_hooks() {
    let rows = vec![json!({"command": "true"}); MAX_HOOKS + 1];
    let table = json!({"Stop": rows[1..]});
    let mut hooks = Hooks::default();
    hooks.add("config.toml", &table).unwrap();
    let error = hooks.add("more.toml", &json!({"Stop": rows[..1]})).unwrap_err();
    assert_eq!(error.to_string(), "more.toml: hooks.Stop: there are more than 64 hooks of this event: join some");
}

#[tokio::test]
async fn files_add_up_in_the_order_they_are_added() {
    let mut hooks = read("[[hooks.PreToolUse]]\nname = \"first\"\ncommand = \"true\"");
    hooks
        .add_json("hooks.json", r#"{"hooks": {"PreToolUse": [{"hooks": [{"name": "second", "command": "true"}]}]}}"#)
        .unwrap();
    let stage = Stage::new();
    let ran = stage.run(&hooks, bash("ls")).await.ran;
    assert_eq!(ran.iter().map(|ran| ran.hook.as_str()).collect::<Vec<_>>(), ["first", "second"]);
}

#[tokio::test]
async fn a_hook_without_a_name_is_called_by_its_command() {
    let stage = Stage::new();
    let ran = stage.ask("[[hooks.PreToolUse]]\ncommand = '''\ntrue\necho more\n'''", bash("ls")).await.ran;
    assert_eq!(ran[0].hook, "true…");
}
