//! The examples of the guide, read from it and played.

use crate::stage::{Stage, bash, prompt, read, stop};
use std::os::unix::fs::PermissionsExt;
use windlass_hooks::{Decision, EventName, Hooks};

const PAGE: &str = include_str!("../../../../docs/guide/hooks.md");

/// The fenced blocks of a language.
fn blocks(language: &str) -> Vec<&'static str> {
    let fence = format!("```{language}\n");
    PAGE.split(&fence).skip(1).map(|rest| rest.split("\n```").next().unwrap()).collect()
}

/// The example whose first line is this.
fn example(event: EventName) -> &'static str {
    let first = format!("[[hooks.{}]]", event.text());
    blocks("toml").into_iter().rfind(|block| block.starts_with(&first)).unwrap()
}

fn block(hook: &str, reason: &str) -> Decision {
    Decision::Block { hook: hook.into(), reason: reason.into() }
}

#[test]
fn every_configuration_of_the_page_can_be_read() {
    let read_toml: Vec<Hooks> = blocks("toml").into_iter().map(read).collect();
    assert_eq!(read_toml.len(), 4);
    let mut hooks = Hooks::default();
    hooks.add_json("hooks.json", blocks("json")[0]).unwrap();
    assert!(hooks.wants(EventName::PreToolUse, "write") && !hooks.wants(EventName::PreToolUse, "bash"));
}

#[test]
fn every_event_and_limit_stands_on_the_page() {
    for event in EventName::ALL {
        assert!(PAGE.contains(&format!("\n| `{}` |", event.text())), "{event:?}");
    }
    assert!(PAGE.contains(&format!("| hooks of one event | {} |", windlass_hooks::MAX_HOOKS)));
    assert!(PAGE.contains(&format!("| notifications on their way | {};", windlass_hooks::MAX_NOTICES)));
}

#[tokio::test]
async fn the_json_answer_of_the_page_ends_the_turn() {
    let stage = Stage::new();
    std::fs::write(stage.path("answer.json"), blocks("json")[1]).unwrap();
    let outcome = stage.ask_one("cat answer.json", bash("ls")).await;
    assert_eq!(outcome.decision, Decision::Stop { hook: "guard".into(), reason: "the release is frozen".into() });
    assert_eq!(outcome.messages.iter().map(|message| message.text.as_str()).collect::<Vec<_>>(), ["a line for you"]);
    assert_eq!(outcome.contexts, ["a text for the model"]);
}

#[tokio::test]
async fn a_command_is_refused_with_what_to_do_instead() {
    let stage = Stage::new();
    let refused = block("pnpm", "this project uses pnpm: run the same with pnpm");
    for (command, expected) in [
        ("npm install", refused.clone()),
        ("cd web && npm test", refused),
        ("pnpm install", Decision::GoOn),
        ("ls", Decision::GoOn),
    ] {
        assert_eq!(stage.ask(example(EventName::PreToolUse), bash(command)).await.decision, expected, "{command}");
    }
}

#[tokio::test]
async fn the_branch_comes_with_each_prompt() {
    let stage = Stage::new();
    let git = std::process::Command::new("git")
        .args(["init", "-q", "-b", "rainy"])
        .current_dir(stage.folder.path())
        .status()
        .unwrap();
    assert!(git.success());
    let outcome = stage.ask(example(EventName::UserPromptSubmit), prompt("go")).await;
    assert_eq!(outcome.contexts, ["The current branch is rainy."]);
}

#[tokio::test]
async fn no_turn_ends_with_failing_tests_but_the_second_time_it_does() {
    let stage = Stage::new();
    let script = |text: &str| {
        std::fs::write(stage.path("test.sh"), text).unwrap();
        std::fs::set_permissions(stage.path("test.sh"), std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    let hooks = example(EventName::Stop);
    script("#!/bin/sh\necho 1 test failed; exit 1\n");
    assert_eq!(stage.ask(hooks, stop(false)).await.decision, block("tests", "1 test failed"));
    assert_eq!(stage.ask(hooks, stop(true)).await.decision, Decision::GoOn);
    script("#!/bin/sh\necho all tests pass\n");
    assert_eq!(stage.ask(hooks, stop(false)).await.decision, Decision::GoOn);
}
