//! What a hook may take, and that nothing of it is left behind.

use crate::stage::{Stage, alive, bash, call, gone, prompt, table};
use serde_json::json;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use windlass_hooks::{Decision, EventName, Launch, Outcome, Verdict, Walled};

async fn within(stage: &Stage, timeout_ms: u64, command: &str) -> Outcome {
    let row = json!([{"name": "guard", "command": command, "timeout_ms": timeout_ms}]);
    stage.run(&table(EventName::PreToolUse, row), bash("ls")).await
}

fn why(outcome: &Outcome) -> &str {
    assert_eq!(outcome.ran[0].verdict, Verdict::Failed, "{outcome:?}");
    outcome.ran[0].reason.as_deref().unwrap()
}

const FAMILY: &str = "sleep 300 & echo $! >> pids; (sleep 300; :) & echo $! >> pids; echo $$ >> pids; wait";

#[tokio::test]
async fn a_hook_past_its_time_dies_with_all_it_started() {
    let stage = Stage::new();
    let outcome = within(&stage, 3_000, FAMILY).await;
    assert_eq!(why(&outcome), "it took longer than 3000 ms");
    assert_eq!(outcome.decision, Decision::GoOn);
    gone(&stage.numbers("pids", 3).await).await;
}

#[tokio::test]
async fn a_hook_that_is_deaf_to_asking_is_killed() {
    let stage = Stage::new();
    let outcome = within(&stage, 3_000, &format!("trap '' TERM; {FAMILY}")).await;
    assert_eq!(why(&outcome), "it took longer than 3000 ms");
    gone(&stage.numbers("pids", 3).await).await;
}

#[tokio::test]
async fn a_hook_past_its_time_may_tidy_up_and_its_words_are_kept() {
    let stage = Stage::new();
    let outcome = within(&stage, 3_000, "trap ': > tidy; exit 0' TERM; echo slow network >&2; sleep 300 & wait").await;
    assert_eq!(why(&outcome), "it took longer than 3000 ms: slow network");
    assert!(stage.path("tidy").exists());
}

#[tokio::test]
async fn a_timeout_blocks_where_on_error_says_so() {
    let stage = Stage::new();
    let row = json!([{"name": "guard", "command": "sleep 300", "timeout": 0.2, "on_error": "block"}]);
    let outcome = stage.run(&table(EventName::PreToolUse, row), bash("ls")).await;
    let reason = "the hook `guard` failed, and nothing is done without its consent: it took longer than 200 ms";
    assert_eq!(outcome.decision, Decision::Block { hook: "guard".into(), reason: reason.into() });
}

#[tokio::test]
async fn a_background_child_neither_holds_the_hook_up_nor_outlives_it() {
    let stage = Stage::new();
    let outcome = within(&stage, 60_000, "sleep 300 & echo $! > pids; echo no >&2; exit 2").await;
    assert_eq!(outcome.decision, Decision::Block { hook: "guard".into(), reason: "no".into() });
    gone(&stage.numbers("pids", 1).await).await;
}

#[tokio::test]
async fn a_daemon_that_left_the_group_does_not_hold_the_hook_up() {
    let stage = Stage::new();
    let outcome = within(
        &stage,
        60_000,
        "setsid sh -c 'echo $$ > pids; exec sleep 300' & while [ ! -s pids ]; do sleep 0.01; done",
    )
    .await;
    assert_eq!(outcome.ran[0].verdict, Verdict::WentOn);
    // It is the wall's to end it: here is none.
    let daemon = stage.numbers("pids", 1).await;
    assert!(alive(&daemon[0]));
    let killed = std::process::Command::new("kill").args(["-9", &daemon[0].to_string()]).status().unwrap();
    assert!(killed.success());
}

#[tokio::test]
async fn a_row_that_is_called_back_ends_its_command_and_asks_no_other() {
    let stage = Stage::new();
    let deaf = format!("trap '' TERM; {FAMILY}");
    let hooks = table(EventName::PreToolUse, json!([{"name": "slow", "command": deaf}, {"command": "touch late"}]));
    let (origin, launch, cancel) = (stage.origin(), stage.launch(), CancellationToken::new());
    let (outcome, pids) = tokio::join!(hooks.run(bash("ls"), &origin, &launch, &cancel), async {
        let pids = stage.numbers("pids", 3).await;
        cancel.cancel();
        pids
    });
    let reason = "called back before it answered".to_owned();
    assert_eq!(outcome.decision, Decision::Stop { hook: "slow".into(), reason });
    assert_eq!((outcome.ran.len(), stage.path("late").exists()), (1, false));
    gone(&pids).await;
    let outcome = hooks.run(bash("ls"), &origin, &launch, &cancel).await;
    assert!(matches!(outcome.decision, Decision::Stop { .. }));
    assert_eq!(stage.numbers("pids", 3).await, pids, "it was started though it had been called back");
}

#[tokio::test]
async fn a_row_that_is_dropped_takes_its_command_along() {
    let stage = Stage::new();
    let hooks = table(EventName::PreToolUse, json!([{"command": FAMILY}]));
    let (origin, launch) = (stage.origin(), stage.launch());
    let row = tokio::spawn(async move { hooks.run(bash("ls"), &origin, &launch, &CancellationToken::new()).await });
    let pids = stage.numbers("pids", 3).await;
    row.abort();
    gone(&pids).await;
}

#[tokio::test]
async fn a_flood_is_cut_off_and_told() {
    let stage = Stage::new();
    assert_eq!(why(&within(&stage, 60_000, "yes").await), "it wrote more than 8388608 bytes to stdout");
    assert_eq!(why(&within(&stage, 60_000, "yes >&2").await), "it wrote more than 1048576 bytes to stderr");
}

#[tokio::test]
async fn much_output_within_the_limit_is_read_whole() {
    let stage = Stage::new();
    let answer = json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "updatedInput": {"content": "y".repeat(5 << 20)}}});
    let outcome = stage.ask_answer(&answer, call("write", json!({}))).await;
    assert_eq!(outcome.updated_input.unwrap()["content"].as_str().unwrap().len(), 5 << 20);
}

#[tokio::test]
async fn an_input_of_five_megabytes_arrives_whole() {
    let stage = Stage::new();
    let outcome = stage.ask_one("wc -c > count", call("write", json!({"content": "x".repeat(5_000_000)}))).await;
    assert_eq!(outcome.ran[0].verdict, Verdict::WentOn);
    let count: usize = stage.read("count").trim().parse().unwrap();
    assert!((5_000_000..5_003_000).contains(&count), "{count}");
}

#[tokio::test]
async fn a_hook_need_not_read_what_it_is_told() {
    let stage = Stage::new();
    let large = || call("write", json!({"content": "x".repeat(5_000_000)}));
    assert_eq!(stage.ask_one("true", large()).await.ran[0].verdict, Verdict::WentOn);
    assert_eq!(stage.ask_one("exec <&-; echo no >&2; exit 2", large()).await.ran[0].verdict, Verdict::Blocked);
    // A child keeps the pipe open and never reads: the shell's end counts.
    assert_eq!(stage.ask_one("sleep 300 <&0 & exit 0", large()).await.ran[0].verdict, Verdict::WentOn);
}

#[tokio::test]
async fn a_hook_that_talks_before_it_reads_does_not_block_itself() {
    let stage = Stage::new();
    let large = call("write", json!({"content": "x".repeat(5_000_000)}));
    let outcome =
        stage.ask_one("head -c 1000000 /dev/zero; head -c 1000000 /dev/zero >&2; cat > /dev/null", large).await;
    assert_eq!(outcome.ran[0].verdict, Verdict::WentOn);
}

#[tokio::test]
async fn an_input_beyond_the_limit_is_not_told_and_the_hook_not_started() {
    let stage = Stage::new();
    let outcome = stage.ask_one("touch started", call("write", json!({"content": "x".repeat(17 << 20)}))).await;
    assert!(why(&outcome).ends_with("and 16777216 are the most; it was not started"), "{}", why(&outcome));
    assert!(!stage.path("started").exists());
}

#[tokio::test]
async fn the_environment_is_what_the_caller_gives_and_the_projects_folder() {
    let stage = Stage::new();
    let outcome = stage.ask_one("env | grep -vE '^(PATH|PWD|OLDPWD|SHLVL|_)=' | sort; pwd", prompt("go")).await;
    let root = stage.folder.path().canonicalize().unwrap().display().to_string();
    let text = outcome.contexts[0].replace(&root, "ROOT").replace(&stage.folder.path().display().to_string(), "ROOT");
    insta::assert_snapshot!(text, @r"
    CLAUDE_PROJECT_DIR=ROOT/project
    COLOR=blue
    WINDLASS_PROJECT_DIR=ROOT/project
    ROOT
    ");
}

#[tokio::test]
async fn the_wall_is_around_the_shell_and_without_it_nothing_runs() {
    let stage = Stage::new();
    let around = |command: tokio::process::Command| {
        let mut walled = tokio::process::Command::new("/usr/bin/env");
        walled.arg("WALL=yes").arg(command.as_std().get_program()).args(command.as_std().get_args());
        walled.current_dir(command.as_std().get_current_dir().unwrap());
        Ok(Walled::bare(walled))
    };
    let hooks = table(EventName::UserPromptSubmit, json!([{"command": "echo $WALL"}]));
    let launch = Launch { wall: Arc::new(around), ..stage.launch() };
    let cancel = CancellationToken::new();
    assert_eq!(hooks.run(prompt("go"), &stage.origin(), &launch, &cancel).await.contexts, ["yes"]);
    let none = |_| Err(io::Error::other("no wall can be built here"));
    let launch = Launch { wall: Arc::new(none), ..stage.launch() };
    let outcome = hooks.run(prompt("go"), &stage.origin(), &launch, &cancel).await;
    assert_eq!(why(&outcome), "not started: no wall can be built here");
}

#[tokio::test]
async fn what_guards_a_command_lasts_until_it_is_dead() {
    struct Guard(PathBuf);
    impl Drop for Guard {
        fn drop(&mut self) {
            let pids = std::fs::read_to_string(self.0.join("pids")).unwrap_or_default();
            let alive = pids.split_whitespace().filter(|pid| alive(&pid.parse().unwrap())).count();
            std::fs::write(self.0.join("seen"), format!("{alive} of {}", pids.split_whitespace().count())).unwrap();
        }
    }
    let stage = Stage::new();
    let folder = stage.folder.path().to_owned();
    let wall = move |command| Ok(Walled { command, guard: Box::new(Guard(folder.clone())) });
    let launch = Launch { wall: Arc::new(wall), ..stage.launch() };
    let row = json!([{"command": "trap '' TERM; echo $$ > pids; while :; do sleep 1; done", "timeout_ms": 2_000}]);
    let hooks = table(EventName::PreToolUse, row);
    let outcome = hooks.run(bash("ls"), &stage.origin(), &launch, &CancellationToken::new()).await;
    assert_eq!(why(&outcome), "it took longer than 2000 ms");
    assert_eq!(stage.read("seen"), "0 of 1");
}

#[tokio::test]
async fn a_missing_folder_and_a_missing_program_are_said() {
    let stage = Stage::new();
    let hooks = table(EventName::PreToolUse, json!([{"command": "no_such_program"}]));
    let outcome = stage.run(&hooks, bash("ls")).await;
    assert!(why(&outcome).starts_with("exit code 127: ") && why(&outcome).contains("no_such_program"));
    let origin = windlass_hooks::Origin { cwd: stage.path("gone"), ..stage.origin() };
    let outcome = hooks.run(bash("ls"), &origin, &stage.launch(), &CancellationToken::new()).await;
    assert!(why(&outcome).starts_with("not started: the folder ") && why(&outcome).ends_with("gone is gone"));
}

#[tokio::test]
async fn the_time_it_took_is_in_the_record() {
    let stage = Stage::new();
    let (outcome, ()) = tokio::join!(stage.ask_one("while [ ! -e go ]; do sleep 0.01; done", bash("ls")), async {
        tokio::time::sleep(Duration::from_millis(60)).await;
        std::fs::write(stage.path("go"), "").unwrap();
    });
    assert!(outcome.ran[0].took_ms >= 60, "{}", outcome.ran[0].took_ms);
}
