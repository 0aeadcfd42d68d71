//! `windlass -p`: one prompt without a person.

mod common;
use common::*;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::process::Stdio;

#[test]
fn stdout_gets_the_final_text_alone() {
    let stage = Stage::new(READER);
    stage.write("notes.txt", "The secret is plum.\n");
    let told = stage.run(&["-p", "What is the secret?", "--model", "anthropic/unpriced"]).code(0);
    assert_eq!(told.out, "The secret is plum.\n");
    told.err_has("Let me look.").err_has("  read notes.txt").err_has("2 rounds, 1 tool run,").err_has("cost unknown");
}

#[test]
fn json_is_one_object_at_the_end() {
    let stage = Stage::new(HELLO);
    let told = stage.run(&["-p", "hi", "--output-format", "json", "--model", "anthropic/unpriced"]).code(0);
    let object: Value = serde_json::from_str(&told.out).expect("stdout is one object");
    assert_eq!(object["text"], "Hello from the model.");
    assert_eq!(object["end"], json!({"type": "done"}));
    assert_eq!((&object["model_calls"], &object["tool_runs"]), (&json!(1), &json!(0)));
    assert_eq!((&object["cost_usd"], &object["estimated"]), (&Value::Null, &json!(false)));
    assert!(object["usage"]["input"].as_u64() > Some(0) && object["took_ms"].is_u64());
    assert_eq!(object["session"], stage.newest());
}

#[test]
fn events_are_the_log_line_by_line() {
    let stage = Stage::new(READER);
    stage.write("notes.txt", "The secret is plum.\n");
    let told = stage.run(&["-p", "What is the secret?", "--output-format", "events"]).code(0);
    let log = stage.run(&["log", &stage.newest(), "--json"]).code(0);
    assert_eq!(told.out, log.out);
    assert!(told.out.lines().next().is_some_and(|line| line.contains("\"opened\"")), "{}", told.out);
}

#[test]
fn events_of_a_session_that_is_taken_up_begin_where_it_was_left() {
    let stage = Stage::new(HELLO);
    let first = stage.run(&["-p", "one", "--output-format", "events"]).code(0);
    let second = stage.run(&["-c", "-p", "two", "--output-format", "events"]).code(0);
    let log = stage.run(&["log", &stage.newest(), "--json"]).code(0);
    assert_eq!(first.out + &second.out, log.out);
}

#[test]
fn what_comes_on_stdin_is_joined_after_the_prompt() {
    let stage = Stage::new(HELLO);
    stage.type_in(&["-p", "Summarise:"], "the piped text\n").code(0);
    stage.type_in(&["-p"], "only piped\n").code(0);
    let asked = stage.asked();
    assert!(asked[0].contains(r"Summarise:\n\nthe piped text"), "{}", asked[0]);
    assert!(asked[1].contains("only piped"), "{}", asked[1]);
}

#[test]
fn an_empty_prompt_is_refused() {
    let stage = Stage::new(HELLO);
    stage.run(&["-p", "  "]).code(2).err_has("the prompt is empty");
    stage.run(&["-p"]).code(2).err_has("the prompt is empty");
}

#[test]
fn a_session_goes_on_where_it_was() {
    let stage = Stage::new(HELLO);
    stage.run(&["-p", "my name is Ada"]).code(0);
    let id = stage.newest();
    stage.run(&["-c", "-p", "what is my name?"]).code(0);
    stage.run(&["-r", &id, "-p", "again?"]).code(0);
    stage.run(&["-p", "a fresh start"]).code(0);
    let asked = stage.asked();
    assert!(asked[1].contains("my name is Ada") && asked[1].contains("what is my name?"));
    assert!(asked[2].contains("my name is Ada") && asked[2].contains("again?"));
    assert!(!asked[3].contains("my name is Ada"));
}

#[test]
fn there_must_be_something_to_go_on_with() {
    let stage = Stage::new(HELLO);
    stage.run(&["-c", "-p", "hi"]).code(2).err_has("there is no session in").err_has("leave -c away");
    stage.run(&["-r", "0193", "-p", "hi"]).code(2).err_has("there is no session `0193`");
    stage.run(&["-p", "hi"]).code(0);
    stage.run(&["-c", "-p"]).code(2).err_has("nothing is under way in session");
}

#[test]
fn s0_03_commands_work_without_a_person_too() {
    let stage = Stage::new(HELLO);
    stage.run(&["-p", "my name is Ada"]).code(0);
    stage.run(&["-c", "-p", "/clear"]).code(0).err_has("forgotten");
    stage.run(&["-c", "-p", "who am I?"]).code(0);
    let asked = stage.asked();
    assert_eq!(asked.len(), 2, "/clear asks no model (S0-05)");
    assert!(!asked[1].contains("Ada"), "{}", asked[1]);
    stage.run(&["-c", "-p", "/claer"]).code(2).err_has("did you mean /clear?");
}

#[test]
fn what_would_be_asked_is_denied_and_names_the_flag() {
    let stage = Stage::new(&runner("touch made.txt"));
    stage.run(&["-p", "go"]).code(0).err_has("bash touch made.txt  denied").err_has("--allow").err_has("--yes");
    assert!(!stage.work().join("made.txt").exists());
}

#[test]
fn a_rule_or_yes_allows_it() {
    for flags in [["--allow", "bash(touch:*)"], ["--yes", "--verbose"], ["--permission-mode", "bypass"]] {
        let stage = Stage::new(&runner("touch made.txt"));
        stage.run(&["-p", "go", flags[0], flags[1]]).code(0).err_has("  bash touch made.txt");
        assert!(stage.work().join("made.txt").exists(), "{flags:?}");
    }
}

#[test]
fn yes_does_not_lift_the_hard_floor() {
    let stage = Stage::new(&runner("rm -rf /"));
    stage.run(&["-p", "go", "--yes"]).code(0).err_has("bash rm -rf /  denied");
    let judged = stage.events().into_iter().find(|record| record["event"]["type"] == "judged").expect("it was judged");
    assert_eq!(judged["event"]["stage"], "floor");
}

#[test]
fn a_deny_rule_stands_against_yes() {
    let stage = Stage::new(&runner("touch made.txt"));
    stage.run(&["-p", "go", "--yes", "--deny", "bash(touch:*)"]).code(0).err_has("denied");
    assert!(!stage.work().join("made.txt").exists());
}

#[test]
fn bypass_does_not_outlive_its_run() {
    let script = format!("{}{}", runner("touch one.txt"), runner("touch two.txt"));
    let stage = Stage::new(&script);
    stage.run(&["-p", "go", "--yes"]).code(0);
    stage.run(&["-c", "-p", "go on"]).code(0).err_has("bash touch two.txt  denied");
    assert!(stage.work().join("one.txt").exists() && !stage.work().join("two.txt").exists());
}

#[test]
fn denied_again_and_again_it_stops_with_its_own_code() {
    let script = "repeat = true\n[[step]]\nblocks = [{ tool = \"bash\", input = { command = 'touch x' } }]\n";
    Stage::new(script).run(&["-p", "go"]).code(3).err_has("3 calls in a row were denied");
}

#[test]
fn max_turns_is_a_limit_with_its_own_code() {
    let script = "repeat = true\n[[step]]\nblocks = [{ tool = \"ls\", input = {} }]\n";
    let stage = Stage::new(script);
    stage.run(&["-p", "go", "--max-turns", "2"]).code(6).err_has("stopped after 2 model calls (--max-turns)");
    assert_eq!(stage.server.requests().len(), 2);
}

#[test]
fn a_model_that_refuses_the_request_is_told_once_with_its_words() {
    let script = "repeat = true\n[[step]]\nstatus = 400\nerror = { message = \"no such model: sonnet-9\" }\n";
    let told = Stage::new(script).run(&["-p", "go"]).code(1).err_has("no such model: sonnet-9");
    assert_eq!(told.err.matches("no such model").count(), 1, "{}", told.err);
}

#[test]
fn s3_48_the_cost_is_tracked_where_the_price_is_known() {
    let script = "[[step]]\nblocks = [{ text = \"Hi.\" }]\nusage = { input = 1000, output = 100 }\n";
    let stage = Stage::new(script);
    stage.configure("model = \"anthropic/priced\"\n[prices.\"anthropic/priced\"]\ninput = 3\noutput = 15\n");
    let told = stage.run(&["-p", "hi", "--output-format", "json"]).code(0);
    let object: Value = serde_json::from_str(&told.out).expect("stdout is one object");
    assert_eq!(object["cost_usd"], json!(0.0045));
    let stage = Stage::new(script);
    stage.configure("model = \"anthropic/priced\"\n[prices.\"anthropic/priced\"]\ninput = 3\noutput = 15\n");
    stage.run(&["-p", "hi"]).code(0).err_has("1,000 tokens in, 100 out, $0.0045");
}

#[test]
fn what_the_model_says_cannot_steer_the_terminal() {
    let script = "[[step]]\nblocks = [{ text = \"a\\u001b[2Jb\\u0007\" }]\n";
    assert_eq!(Stage::new(script).run(&["-p", "hi"]).code(0).out, "a␛[2Jb␇\n");
}

#[test]
fn thinking_is_shown_if_wanted() {
    let script = "repeat = true\n[[step]]\nblocks = [{ thinking = \"hmm, well\" }, { text = \"Yes.\" }]\n";
    let stage = Stage::new(script);
    assert!(!stage.run(&["-p", "hi"]).code(0).err.contains("hmm, well"));
    let told = stage.run(&["-p", "hi", "--show-thinking"]).code(0).err_has("hmm, well");
    assert_eq!(told.out, "Yes.\n");
}

#[test]
fn an_interrupt_keeps_the_session() {
    let script = "[[step]]\nwhen = { absent = 'quick' }\ndelay_ms = 60000\nblocks = [{ text = \"late\" }]\n\
                  [[step]]\nblocks = [{ text = \"Here.\" }]\n";
    let stage = Stage::new(script);
    let child = stage.start_until_asked(&["-p", "slow"], 1);
    signal(&child, "INT");
    told(child.wait_with_output().expect("it ends")).code(130).err_has("interrupted; the session is kept");
    assert_eq!(stage.run(&["-c", "-p", "quick"]).code(0).out, "Here.\n");
    assert!(stage.asked()[1].contains("slow"));
}

#[test]
fn a_turn_that_was_cut_off_goes_on_without_a_new_prompt() {
    let script = "[[step]]\nname = \"first\"\ntimes = 1\ndelay_ms = 60000\nblocks = [{ text = \"late\" }]\n\
                  [[step]]\nblocks = [{ text = \"Done after all.\" }]\n";
    let stage = Stage::new(script);
    let mut child = stage.start_until_asked(&["-p", "work"], 1);
    child.kill().expect("it can be killed");
    child.wait().expect("it ends");
    assert_eq!(stage.run(&["-c", "-p"]).code(0).out, "Done after all.\n");
}

#[test]
fn a_reader_that_goes_away_ends_the_run_quietly() {
    let script = "repeat = true\n[[step]]\nblocks = [{ tool = \"ls\", input = {} }]\n";
    let stage = Stage::new(script);
    let mut command = stage.command(&["-p", "go", "--output-format", "events", "--max-turns", "500"]);
    let mut child = command.stdout(Stdio::piped()).spawn().expect("the binary runs");
    let mut first = String::new();
    BufReader::new(child.stdout.take().expect("stdout is piped")).read_line(&mut first).expect("a line comes");
    let told = told(child.wait_with_output().expect("it ends"));
    assert_eq!((told.code, told.err.as_str()), (130, ""));
    assert!(stage.server.requests().len() < 400);
}

#[test]
fn s0_04_pictures_and_data_go_with_the_prompt() {
    let stage = Stage::new(HELLO);
    std::fs::write(stage.work().join("dot.png"), b"\x89PNG\r\n\x1a\n-not-much-").expect("the file can be written");
    stage.write("data.json", r#"{"cities": [{"name": "Riga"}]}"#);
    stage.write("broken.json", "{");
    stage.run(&["-p", "look", "--image", "dot.png", "--data", "data.json", "--intent", "find a city"]).code(0);
    let asked = &stage.asked()[0];
    assert!(asked.contains("image/png") && asked.contains("find a city") && asked.contains("Riga"), "{asked}");
    stage.run(&["-p", "look", "--image", "data.json"]).code(2).err_has("--image data.json: it is no png");
    stage.run(&["-p", "look", "--data", "broken.json"]).code(2).err_has("--data broken.json: it is no JSON");
}

#[test]
fn the_project_and_the_flags_shape_the_system_prompt() {
    let stage = Stage::new(HELLO);
    stage.write("AGENTS.md", "Always say please.");
    stage.run(&["-p", "hi", "--append-system-prompt", "Be brief."]).code(0);
    stage.run(&["-p", "hi", "--system-prompt", "You are a parrot."]).code(0);
    let asked = stage.asked();
    assert!(asked[0].contains("Always say please.") && asked[0].contains("Be brief."));
    assert!(asked[1].contains("You are a parrot."));
}

#[test]
fn a_key_goes_to_the_model_and_to_no_child() {
    let stage = Stage::new(&runner("env"));
    stage.run(&["-p", "go", "--yes"]).code(0);
    let requests = stage.server.requests();
    assert_eq!(requests[0].headers["x-api-key"], "test-key-123");
    let asked = &stage.asked()[1];
    assert!(asked.contains("PATH=") && !asked.contains("test-key-123"), "{asked}");
}

fn json_of(told: &Told) -> Value {
    serde_json::from_str(&told.out).unwrap_or_else(|error| panic!("{error}: {}", told.out))
}

#[test]
fn the_end_of_a_turn_that_failed_once_is_told_with_all_it_says() {
    let script = "repeat = true\n[[step]]\nstatus = 429\nheaders = { retry-after = \"3600\" }\n\
                  error = { message = \"slow down\" }\n";
    let stage = Stage::new(script);
    let told = stage.run(&["-p", "go"]).code(1);
    let told = told.err_has("  attempt 1 failed (status 429): ").err_has("slow down; asked to wait 3600 s\n");
    told.err_has("the model failed: ").err_has("try again in 3600 s");
    stage.type_in(&[], "go\nexit\n").code(0).out_has("attempt 1 failed").out_has("try again in 3600 s");
    assert_eq!(stage.server.requests().len(), 2, "nobody waits for an hour");
}

#[test]
fn attempts_are_told_by_number_and_a_fallback_by_name() {
    let script = "[[step]]\nwhen = { model = 'busy' }\nstatus = 529\nerror = { message = \"no room\" }\n\
                  [[step]]\nblocks = [{ text = \"Here.\" }]\n";
    let stage = Stage::new(script);
    stage.configure("[retry]\nbase_ms = 1\n");
    let flags = ["-p", "go", "--model", "anthropic/busy", "--fallback-model", "anthropic/calm"];
    let told = stage.run(&flags).code(0);
    let told = told.err_has("attempt 1 failed (status 529): ").err_has("attempt 2 failed (status 529): ");
    assert_eq!(told.out, "Here.\n");
    let object = json_of(&stage.run(&[&flags[..], &["--output-format", "json"]].concat()).code(0));
    assert_eq!((&object["text"], &object["models"]), (&json!("Here."), &json!(["anthropic/calm"])));
    let state = stage.run(&["state", &stage.newest()]).code(0);
    state.out_has("model                           anthropic/calm, in the place of anthropic/busy\n");
    let state = json_of(&stage.run(&["state", &stage.newest(), "--json"]).code(0));
    assert_eq!(state["speaking"], "anthropic/calm");
}

#[test]
fn a_fallback_that_fails_as_well_is_said_at_the_end() {
    let script = "repeat = true\n[[step]]\nstatus = 529\nerror = { message = \"no room\" }\n";
    let stage = Stage::new(script);
    stage.configure("[retry]\nbase_ms = 1\n");
    let told = stage.run(&["-p", "go", "--model", "anthropic/busy", "--fallback-model", "anthropic/calm"]).code(1);
    let told = told.err_has("the fallback model anthropic/calm failed as well");
    told.err_has("0 tokens in, 0 out, no cost,");
}

#[test]
fn json_that_the_model_fenced_comes_alone() {
    let script = "repeat = true\n[[step]]\nblocks = [{ text = \"```json\\n{\\\"age\\\": 7}\\n```\" }]\n";
    let stage = Stage::new(script);
    let flags = ["-p", "how old?", "--json-schema", r#"{"type": "object", "required": ["age"]}"#];
    assert_eq!(stage.run(&flags).code(0).out, "{\"age\": 7}\n");
    let object = json_of(&stage.run(&[&flags[..], &["--output-format", "json"]].concat()).code(0));
    assert_eq!(object["text"], "{\"age\": 7}");
    assert!(stage.run(&["-p", "how old?"]).code(0).out.starts_with("```json\n"), "without a schema nothing is cut");
}

#[test]
fn prose_that_fits_no_schema_stays_off_stdout() {
    let script = "repeat = true\n[[step]]\nblocks = [{ text = \"About seven.\" }]\n";
    let told = Stage::new(script).run(&["-p", "how old?", "--json-schema", r#"{"type": "object"}"#]).code(1);
    assert_eq!(told.out, "");
    let told = told.err_has("does not satisfy the JSON Schema");
    assert_eq!(told.err.lines().filter(|line| *line == "About seven.").count(), 2, "{}", told.err);
}

#[test]
fn what_broke_off_is_no_answer() {
    let script = "repeat = true\n[[step]]\ntext_bytes = 400\ncut = { in_block = 0, after_chars = 40 }\n";
    let stage = Stage::new(script);
    stage.configure("[retry]\nbase_ms = 1\n");
    let told = stage.run(&["-p", "go"]).code(1).err_has(" [broken off]\n  attempt 1 failed");
    assert_eq!(told.out, "");
    let object = json_of(&stage.run(&["-p", "go", "--output-format", "json"]).code(1));
    assert_eq!((&object["text"], &object["models"]), (&json!(""), &json!([])));
    assert_eq!(object["broken_off"].as_str().map(str::len), Some(40));
}

#[test]
fn what_was_said_before_an_interrupt_is_no_answer() {
    let script = "[[step]]\ntext_bytes = 400\nhang = { in_block = 0, after_chars = 40 }\n";
    for format in ["text", "json"] {
        let stage = Stage::new(script);
        let child = stage.start_until_asked(&["-p", "slow", "--output-format", format], 1);
        std::thread::sleep(std::time::Duration::from_millis(300));
        signal(&child, "INT");
        let told = told(child.wait_with_output().expect("it ends")).code(130).err_has("interrupted");
        if format == "text" {
            assert_eq!(told.out, "");
            continue;
        }
        let object = json_of(&told);
        assert_eq!((&object["text"], &object["end"]), (&json!(""), &json!({"type": "interrupted"})));
    }
}
