//! The demo: a real turn, on the ordinary way, with a scripted model in a process of its own.

mod common;
use common::*;

fn demo(arguments: &[&str]) -> Told {
    let stage = Stage::new(HELLO);
    let temp = stage.work();
    let mut command = stage.bare(&["demo"]);
    // Its folders go where the test's own do.
    told(command.args(arguments).env("TMPDIR", &temp).output().expect("the binary runs"))
}

#[test]
fn s3_21_the_demo_takes_three_model_calls_and_two_tool_runs() {
    let told =
        demo(&[]).code(0).out_has("3 model calls, 2 tool runs\n").out_has("-port = 8080\n").out_has("+port = 9090\n");
    told.out_has("edit config.toml  +1 −1").out_has("see every step: WINDLASS_HOME=");
}

#[test]
fn the_edit_quotes_what_was_really_read() {
    demo(&["--port-in-file", "7171"]).code(0).out_has("-port = 7171\n").out_has("3 model calls, 2 tool runs\n");
}

#[test]
fn without_the_tool_to_read_with_it_fails_and_says_why() {
    let told = demo(&["--disable-tool", "read"]).code(1);
    told.out_has("0 tool runs").out_has("does not offer").err_has("the file was not changed");
}

#[test]
fn the_pointer_to_the_log_leads_to_the_log() {
    let stage = Stage::new(HELLO);
    let shown = told(stage.bare(&["demo"]).env("TMPDIR", stage.work()).output().expect("the binary runs"));
    let pointer = shown.out.lines().find_map(|line| line.strip_prefix("see every step: ")).expect("there is a pointer");
    let words: Vec<&str> = pointer.split_whitespace().collect();
    let home = words[0].strip_prefix("WINDLASS_HOME=").expect("the home stands first");
    let log = told(stage.bare(&words[2..]).env("WINDLASS_HOME", home).output().expect("the binary runs"));
    log.code(0).out_has("tool_finished    edit config.toml  +1 −1");
}
