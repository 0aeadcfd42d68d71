//! Commands behind the wall, as the whole program starts them. Attempts to get through it are the sandbox's own tests.
#![cfg(target_os = "linux")]

mod common;

use common::{Stage, wait_for};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

const HELLO: &str = include_str!("../../../docs/scripts/hello.toml");

/// What a command gave, run by hand with everything allowed.
fn run(stage: &Stage, command: &str, flags: &[&str]) -> Value {
    let input = json!({"command": command}).to_string();
    let told = stage.run(&[&["tool", "run", "bash", &input, "--yes", "--json"], flags].concat());
    serde_json::from_str(&told.out).unwrap_or_else(|_| panic!("no JSON: {told:?}"))
}

fn text(result: &Value) -> &str {
    result["text"].as_str().expect("a result has a text")
}

#[test]
fn a_command_writes_in_the_workspace_and_is_told_of_the_wall_elsewhere() {
    let stage = Stage::new(HELLO);
    let fine = run(&stage, "echo one > file; cat file; echo two > /tmp/own; cat /tmp/own", &[]);
    assert_eq!((&fine["outcome"], text(&fine)), (&json!("ok"), "one\ntwo\n"));
    assert!(["namespaces", "bubblewrap", "landlock"].contains(&fine["value"]["sandbox"].as_str().unwrap()));
    let refused = run(&stage, "echo three > ../outside", &[]);
    assert!(!stage.work().with_file_name("outside").exists());
    let text = text(&refused);
    assert!(text.contains("[sandbox (") && text.contains("outside_sandbox"), "{text}");
    // Without a wall the same command does it.
    let free = run(&stage, "echo three > ../outside", &["--config", "sandbox.wall=none"]);
    assert_eq!((&free["outcome"], &free["value"]["sandbox"]), (&json!("ok"), &Value::Null));
    assert_eq!(fs::read_to_string(stage.work().with_file_name("outside")).unwrap(), "three\n");
}

#[test]
fn keys_are_not_inherited_and_the_configuration_can_not_be_read() {
    let stage = Stage::new(HELLO);
    stage.configure("sandbox.env = [\"NAMED\", \"ANTHROPIC_API_KEY\"]\n");
    let input = json!({"command": "env; cat \"$HOME/home/config.toml\""}).to_string();
    let mut command = stage.command(&["tool", "run", "bash", &input, "--yes", "--json"]);
    command.env("AWS_SECRET_ACCESS_KEY", "hidden-1").env("NAMED", "seen-1").env("OTHER", "hidden-2");
    let told = common::told(command.output().unwrap());
    assert!(told.out.contains("NAMED=seen-1"), "{told:?}");
    for hidden in ["hidden-1", "hidden-2", "test-key-123", "sandbox.env"] {
        assert!(!told.out.contains(hidden), "{told:?}");
    }
}

#[test]
fn what_is_left_behind_ends_with_the_call_and_the_time_it_has() {
    let stage = Stage::new(HELLO);
    let beat = "(while :; do echo x >> beat; sleep 0.02; done) > /dev/null 2>&1 &";
    let grows = || {
        let length = || fs::metadata(stage.work().join("beat")).map_or(0, |there| there.len());
        let before = length();
        std::thread::sleep(std::time::Duration::from_millis(150));
        length() > before
    };
    let left = run(&stage, &format!("setsid sh -c '{beat}'; sleep 0.1"), &[]);
    assert_eq!((&left["outcome"], &left["value"]["background_group"]), (&json!("ok"), &Value::Null));
    assert!(stage.read("beat").starts_with('x') && !grows());
    let late = run(&stage, &format!("setsid sh -c '{beat}'; sleep 300"), &["--config", "tools.bash.timeout_ms=500"]);
    assert!(text(&late).starts_with("timed out after 500 ms"), "{late}");
    assert!(!grows());
    wait_for(|| !stage.work().join(".windlass").exists());
    assert!(!stage.work().join(".git").exists());
}

#[test]
fn the_way_out_is_a_persons_to_give() {
    let stage = Stage::new(HELLO);
    let input = json!({"command": "touch made", "outside_sandbox": "I would like to"}).to_string();
    stage.run(&["tool", "run", "bash", &input, "--yes"]).code(3).err_has("outside_sandbox asks a person");
    assert!(!stage.work().join("made").exists());
}

#[test]
fn a_wall_that_is_required_and_does_not_stand_lets_nothing_run() {
    let stage = Stage::new(HELLO);
    let flags = ["--config", "sandbox.require=true", "--config", "sandbox.wall=landlock"];
    let result = run(&stage, "touch made", &flags);
    assert_eq!(result["outcome"], "error");
    assert!(text(&result).contains("no wall as strong as was asked for stands"), "{result}");
    assert!(!stage.work().join("made").exists());
    stage.run(&["tool", "list", "--config", "sandbox.hosts=[\"http://x\"]"]).code(2).err_has("`http://x` is no host");
}

#[test]
fn doctor_says_which_wall_stands_and_what_it_does_not_cover() {
    let stage = Stage::new(HELLO);
    let told = stage.run(&["doctor"]).code(0);
    assert!(told.out.contains(" stands; a command that tried to write outside was refused\n"), "{}", told.out);
    assert!(told.out.contains("Memory and processor time are not shared out."), "{}", told.out);
    let told = stage.run(&["doctor", "--config", "sandbox.wall=none"]).code(0);
    assert!(told.out.contains("Nothing is kept: a command can do whatever you can do yourself."), "{}", told.out);
    assert!(!Path::new(&stage.home().join("data/scratch/forbidden")).exists());
}
