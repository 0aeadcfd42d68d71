//! The commands beside the chat: sessions, log, state, send, tool, mock, doctor, bench.

mod common;
use common::*;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

fn with_a_session() -> Stage {
    let stage = Stage::new(READER);
    stage.write("notes.txt", "The secret is plum.\n");
    stage.run(&["-p", "What is the secret?"]).code(0);
    stage
}

#[test]
fn sessions_are_listed_by_folder() {
    let stage = with_a_session();
    stage.run(&["sessions"]).code(0).out_has("What is the secret?");
    let elsewhere = stage.work().join("other");
    std::fs::create_dir(&elsewhere).expect("a folder can be made");
    let list = |arguments: &[&str]| told(stage.command(arguments).current_dir(&elsewhere).output().expect("it runs"));
    list(&["sessions"]).code(0).out_has("no sessions in").out_has("--all");
    list(&["sessions", "--all"]).code(0).out_has("What is the secret?");
}

#[test]
fn the_log_is_a_line_an_event() {
    let stage = with_a_session();
    let id = stage.newest();
    let log = stage.run(&["log", &id[..13]]).code(0);
    let log = log.out_has("opened ").out_has("tool_finished    read notes.txt").out_has("turn_finished    done");
    assert_eq!(log.out.lines().count(), stage.events().len());
    let tail = stage.run(&["log", &id, "--from", "5"]).code(0);
    assert_eq!(tail.out.lines().count(), stage.events().len() - 4);
    stage.run(&["log", "nonsense"]).code(2).err_has("there is no session `nonsense`");
}

#[test]
fn s1_08_the_state_has_the_eight_fields_now_and_at_any_event() {
    let stage = with_a_session();
    let id = stage.newest();
    let state = |arguments: &[&str]| -> Value {
        let told = stage.run(&[&["state", &id, "--json"], arguments].concat()).code(0);
        serde_json::from_str(&told.out).expect("the state is JSON")
    };
    let now = state(&[]);
    let mut fields: Vec<&str> = now.as_object().expect("an object").keys().map(String::as_str).collect();
    fields.sort_unstable();
    assert_eq!(
        fields,
        [
            "auto_compact_tracking",
            "has_attempted_reactive_compact",
            "max_output_recovery_count",
            "messages",
            "pending_tool_summary",
            "stop_hook_active",
            "transition_reason",
            "turn_count",
        ]
    );
    assert_eq!((&now["turn_count"], now["messages"].as_array().map(Vec::len)), (&Value::from(2), Some(4)));
    let started =
        stage.events().iter().position(|record| record["event"]["type"] == "tool_started").expect("it ran") + 1;
    let then = state(&["--at", &started.to_string()]);
    assert_eq!(then["pending_tool_summary"][0]["name"], "read");
    assert_eq!(then["pending_tool_summary"][0]["phase"], "running");
    stage.run(&["state", &id, "--at", "9999"]).code(2).err_has("has the events 1 to");
    stage.run(&["state", &id]).code(0).out_has("turn_count                      2");
}

#[test]
fn a_prompt_left_for_a_session_is_taken_up() {
    let stage = Stage::new(HELLO);
    stage.run(&["-p", "one"]).code(0);
    let id = stage.newest();
    stage.run(&["send", &id, "left behind"]).code(0).out_has("nobody has the session open");
    stage.run(&["send", &id, "  "]).code(2).err_has("the prompt is empty");
    // A chat takes the session up, and with it what was left.
    let mut chat = stage.command(&["resume", &id]).stdin(Stdio::piped()).spawn().expect("the binary runs");
    wait_for(|| stage.asked().len() >= 2);
    drop(chat.stdin.take());
    told(chat.wait_with_output().expect("it ends")).code(0).out_has("> left behind");
    assert!(stage.asked()[1].contains("left behind"));
}

#[test]
fn a_session_that_another_process_has_open_is_refused_by_name() {
    let stage = Stage::new("[[step]]\ndelay_ms = 60000\nblocks = [{ text = \"late\" }]\n");
    let child = stage.start_until_asked(&["-p", "slow"], 1);
    let pid = child.id().to_string();
    stage.run(&["-c", "-p", "me too"]).code(5).err_has("is open in process").err_has(&pid).err_has("windlass send");
    stage.run(&["send", &stage.newest(), "later"]).code(0).out_has(&format!("process {pid} has the session open"));
    signal(&child, "INT");
    signal(&child, "TERM");
    told(child.wait_with_output().expect("it ends")).code(130);
}

#[test]
fn a_store_that_cannot_be_used_is_named() {
    let stage = Stage::new(HELLO);
    stage.write("file", "");
    let told = stage.run(&["-p", "hi", "--config", "store.path=file/windlass.db"]).code(5);
    told.err_has("file/windlass.db");
    stage.write("text.db", &"this is no database ".repeat(500));
    stage.run(&["-p", "hi", "--config", "store.path=text.db"]).code(5).err_has("text.db");
    assert!(stage.server.requests().is_empty());
}

#[test]
fn tools_are_listed_with_their_arguments() {
    let stage = Stage::new(HELLO);
    stage.run(&["tool", "list"]).code(0).out_has("edit(path, old, new, [replace_all])").out_has("bash(command");
    let list = stage.run(&["tool", "list", "--json"]).code(0);
    let list: Value = serde_json::from_str(&list.out).expect("the list is JSON");
    assert!(list.as_array().is_some_and(|tools| tools.iter().all(|tool| tool["input_schema"].is_object())));
}

#[test]
fn a_tool_runs_by_hand_through_the_same_checks() {
    let stage = Stage::new(HELLO);
    stage.write("notes.txt", "one\ntwo\n");
    stage.run(&["tool", "run", "read", r#"{"path": "notes.txt"}"#]).code(0).out_has("two");
    stage.run(&["tool", "run", "read", r#"{"path": "missing.txt"}"#]).code(1).err_has("missing.txt");
    stage.run(&["tool", "run", "read", r#"{"file": 3}"#]).code(1).err_has("wrong arguments for read");
    stage.run(&["tool", "run", "raed", "{}"]).code(2).err_has("Unknown tool: raed");
    stage.run(&["tool", "run", "read", "notes.txt"]).code(2).err_has("it is no JSON");
    stage.run(&["tool", "run", "bash", r#"{"command": "touch made"}"#]).code(3).err_has("--allow").err_has("--yes");
    assert!(!stage.work().join("made").exists());
    stage.run(&["tool", "run", "bash", r#"{"command": "exit 3"}"#, "--yes"]).code(1);
    stage.run(&["tool", "run", "bash", r#"{"command": "rm -rf /"}"#, "--yes"]).code(3);
    let edit = r#"{"path": "notes.txt", "old": "two", "new": "2"}"#;
    let told = stage.run(&["tool", "run", "edit", edit, "--json", "--permission-mode", "accept-edits"]).code(0);
    let result: Value = serde_json::from_str(&told.out).expect("the result is JSON");
    assert_eq!((&result["outcome"], &result["value"]["added"]), (&Value::from("ok"), &Value::from(1)));
    assert_eq!(stage.read("notes.txt"), "one\n2\n");
}

#[test]
fn the_scripted_model_serves_alone_and_ends_with_a_signal() {
    let stage = Stage::new(HELLO);
    stage.write("hello.toml", HELLO);
    let mut command = stage.bare(&["mock", "--script", "hello.toml", "--log", "mock.jsonl"]);
    let mut model = command.spawn().expect("the binary runs");
    let mut address = String::new();
    BufReader::new(model.stdout.take().expect("stdout is piped"))
        .read_line(&mut address)
        .expect("it tells its address");
    let mut asks = stage.bare(&["-p", "hi", "--base-url", address.trim()]);
    asks.env("ANTHROPIC_API_KEY", "k");
    assert_eq!(told(asks.output().expect("the binary runs")).code(0).out, "Hello from the model.\n");
    signal(&model, "TERM");
    assert_eq!(model.wait().expect("it ends").code(), Some(0));
    assert_eq!(stage.read("mock.jsonl").lines().count(), 1);
    stage.write("broken.toml", "[[step]]\nblock = 3\n");
    stage.run_bare(&["mock", "--script", "broken.toml"]).code(2).err_has("script line 2");
}

#[test]
fn the_doctor_looks_at_everything() {
    let stage = with_a_session();
    let told = stage.run(&["doctor"]).code(0).out_has("event schema 1").out_has("1 newest log folded: whole");
    told.out_has("1 session").out_has("Ollama").out_has("anthropic/claude-sonnet-5-5");
}

#[test]
fn the_doctor_says_what_it_can_even_if_the_store_fails() {
    let stage = Stage::new(HELLO);
    stage.write("text.db", &"this is no database ".repeat(500));
    let told = stage.run(&["doctor", "--config", "store.path=text.db"]).code(5).err_has("text.db");
    told.out_has("ANTHROPIC_API_KEY is set");
    stage.run(&["config", "--config", "store.path=text.db"]).code(0).out_has("store.path = \"text.db\"");
}

#[test]
fn many_sessions_run_at_once_in_one_process() {
    let script = "sid = 'number (\\d+)'\n[[step]]\nblocks = [{ tool = \"ls\", input = {} }]\n\
                  [[step]]\nblocks = [{ text = \"Done.\" }]\n";
    let stage = Stage::new(script);
    let base = stage.server.base_url();
    stage.run(&["bench", "--sessions", "8", "--base-url", &base, "number {sid}"]).code(0).out_has("done 8\n");
    assert_eq!(stage.server.requests().len(), 16);
    let listed = stage.run(&["sessions"]).code(0).out;
    assert_eq!(listed.lines().count(), 8);
    assert!(listed.contains("number 7"), "{listed}");
}
