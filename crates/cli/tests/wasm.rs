//! Tools of one's own at the command line: made from the template, built, installed, run by hand and by a model.
#![cfg(feature = "wasm")]

mod common;
use common::*;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Counts the words of `notes.txt`, then says how many it was told of.
const COUNTER: &str = r#"
[[step]]
blocks = [{ tool = "word-count", input = { path = "notes.txt" } }]
[[step]]
capture = { words = 'has (\d+) words' }
blocks = [{ text = "It has ${words}." }]
"#;

/// What `windlass tool new word-count` makes, built.
fn built(stage: &Stage) -> PathBuf {
    stage.run_bare(&["tool", "new", "word-count"]).code(0).out_has("cargo build --target wasm32-wasip2 --release");
    let folder = stage.work().join("word-count");
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("template");
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // Its one dependency is one of this workspace's, too, and so is there.
    cargo.args(["build", "--offline", "--target", "wasm32-wasip2", "--release"]).current_dir(&folder);
    let made = cargo.env("CARGO_TARGET_DIR", &target).output().expect("cargo runs");
    let said = String::from_utf8_lossy(&made.stderr);
    assert!(made.status.success(), "{said}\nis the target there? `rustup target add wasm32-wasip2`");
    // Where it lies if nobody says where to build.
    let usual = folder.join("target/wasm32-wasip2/release");
    fs::create_dir_all(&usual).expect("a folder can be made");
    let file = "wasm32-wasip2/release/word-count.wasm";
    fs::copy(target.join(file), usual.join("word-count.wasm")).expect("it was built");
    folder
}

#[test]
fn s3_34_a_new_tool_is_built_installed_and_run_by_hand_and_by_a_model() {
    let stage = Stage::new(COUNTER);
    stage.write("notes.txt", "four words and two\nmore\n");
    built(&stage);
    let looked = stage.run_bare(&["tool", "install", "word-count"]).code(2).err_has("give --yes");
    looked.out_has("reads all files of the workspace\n").out_has("no network\n").out_has("home/extensions/word-count");
    stage.run_bare(&["tool", "run", "word-count", "{}"]).code(2).err_has("Unknown tool: word-count");

    let mut by_an_agent = stage.bare(&["tool", "install", "word-count", "--yes"]);
    let refused = told(by_an_agent.env("WINDLASS_CALL", "1").output().expect("the binary runs"));
    refused.code(3).err_has("is a person's to grant");

    let installed = stage.run_bare(&["tool", "install", "word-count", "--yes"]).code(0);
    installed.out_has("installed; `windlass tool run word-count JSON` runs it");
    fs::remove_dir_all(stage.work().join("word-count")).expect("it is needed no longer");
    let list = stage.run_bare(&["tool", "list"]).code(0).out_has("word-count(path)\n");
    list.out_has("    Count the words").out_has("    - reads all files of the workspace\n");

    let run = |input: &str| stage.run_bare(&["tool", "run", "word-count", input, "--json"]);
    let told = run(r#"{"path": "notes.txt"}"#).code(0);
    let result: Value = serde_json::from_str(&told.out).expect("one object");
    assert_eq!((&result["outcome"], &result["text"]), (&"ok".into(), &"notes.txt has 5 words\n".into()));
    run(r#"{"path": "/etc/passwd"}"#).code(1).out_has("word-count: /etc/passwd: ");
    run(r#"{"file": "notes.txt"}"#).code(1).err_has("`path` is missing");

    stage.run(&["-p", "How many words?"]).code(0).out_has("It has 5.");
    let told = stage.run_bare(&["tool", "run", "word-count", "{}", "--config", "rules.deny=[\"word-count\"]"]);
    told.code(1).err_has("`path` is missing");
    let input = r#"{"path": "notes.txt"}"#;
    let told = stage.run_bare(&["tool", "run", "word-count", input, "--deny", "word-count"]);
    told.code(3).err_has("word-count");
}

#[test]
fn a_projects_tool_is_loaded_once_it_is_trusted_and_as_it_was_then() {
    let stage = Stage::new(HELLO);
    stage.write("notes.txt", "two words\n");
    built(&stage);
    let installed = stage.run_bare(&["tool", "install", "word-count", "--project", "--yes"]).code(0);
    installed.out_has("it is loaded once this folder is trusted as it is now: `windlass trust`");
    let run = || stage.run_bare(&["tool", "run", "word-count", r#"{"path": "notes.txt"}"#]);
    run().code(2).err_has("Unknown tool: word-count").err_has("not loaded until this folder is trusted: word-count");
    let trusted = stage.run_bare(&["trust", "--yes"]).code(0);
    trusted.out_has("reads all files of the workspace");
    run().code(0).out_has("notes.txt has 2 words");
    stage.write(".windlass/extensions/word-count/tool.toml", "name = \"word-count\"\ndescription = \"Other.\"");
    run().code(2).err_has("not loaded until this folder is trusted: word-count");
}

#[test]
fn names_that_no_tool_can_have_are_refused_and_nothing_is_overwritten() {
    let stage = Stage::new(HELLO);
    for name in ["../evil", "Evil", "1st", ""] {
        stage.run_bare(&["tool", "new", name]).code(2).err_has("can't be a tool's name");
    }
    assert_eq!(fs::read_dir(stage.work()).expect("it is there").count(), 0);
    stage.run_bare(&["tool", "new", "mine", "--dir", "tools"]).code(0).out_has("tools/mine");
    assert!(stage.read("tools/mine/Cargo.toml").contains("name = \"mine\""));
    stage.write("tools/mine/tool.toml", "changed");
    stage.run_bare(&["tool", "new", "mine", "--dir", "tools"]).code(2).err_has("is there already");
    assert_eq!(stage.read("tools/mine/tool.toml"), "changed");
}

#[test]
fn what_can_not_run_is_not_installed() {
    let stage = Stage::new(HELLO);
    let install = |name: &str| stage.run_bare(&["tool", "install", name, "--yes"]).code(2);
    install("nothing").err_has("tool.toml: No such file");
    stage.run_bare(&["tool", "new", "mine"]).code(0);
    install("mine").err_has("there is neither").err_has("cargo build --target wasm32-wasip2 --release");
    stage.write("mine/mine.wasm", "no component");
    install("mine").err_has("the component of mine: it can't be compiled");
    stage.write("mine/tool.toml", "name = \"bash\"\ndescription = \"x\"");
    stage.write("mine/bash.wasm", "no component");
    install("mine").err_has("bash is the name of a built-in tool");
    assert!(!stage.home().join("extensions").exists());
}

#[test]
fn a_broken_manifest_is_told_once_by_name_and_a_projects_tools_wait_for_trust() {
    let stage = Stage::new(HELLO);
    let home = stage.home().join("extensions/broken");
    fs::create_dir_all(&home).expect("a folder can be made");
    fs::write(home.join("tool.toml"), "name = 1").expect("it can be written");
    stage.write(".windlass/extensions/theirs/tool.toml", "name = \"theirs\"\ndescription = \"x\"");
    stage.write(".windlass/extensions/theirs/theirs.wasm", "");
    let told = stage.run_bare(&["tool", "list"]).code(0).out_has("read(path, [offset], [limit])");
    let told = told
        .err_has("extensions/broken is not loaded: tool.toml: ")
        .err_has("not loaded until this folder is trusted: theirs");
    assert!(!told.out.contains("theirs("));
    stage.run(&["trust", "--yes"]).code(0).out_has("its tools may reach").out_has("  | theirs\n").out_has("no network");
    stage.run(&["tool", "list"]).code(0).out_has("theirs(");
    stage.write(".windlass/extensions/theirs/theirs.wasm", "other");
    let told = stage.run(&["tool", "list"]).code(0).err_has("not loaded until this folder is trusted: theirs");
    assert!(!told.out.contains("theirs("));
    let told = stage.run(&["-p", "Hello?"]).code(0);
    assert_eq!(told.err.matches("extensions/broken is not loaded").count(), 1, "{}", told.err);
}

/// Reads a port out of a file and changes it.
const VOYAGE: &str = r#"
[[step]]
blocks = [{ tool = "read", input = { path = "config.toml" } }]
[[step]]
capture = { port = 'port = (\d+)' }
blocks = [{ tool = "edit", input = { path = "config.toml", old = "port = ${port}", new = "port = 9090" } }]
[[step]]
blocks = [{ text = "It is changed." }]
"#;

#[test]
fn s3_21_s3_34_the_worked_example_runs_in_components_under_s3_box() {
    let stage = Stage::new(VOYAGE);
    stage.write("config.toml", "host = \"a\"\nport = 8080\n");
    let told = stage.run(&["-p", "Change the port.", "--profile", "s3-box", "--yes"]).code(0);
    told.out_has("It is changed.");
    assert_eq!(stage.read("config.toml"), "host = \"a\"\nport = 9090\n");
    let count = |kind: &str| stage.events().iter().filter(|record| record["event"]["type"] == kind).count();
    assert_eq!((stage.server.requests().len(), count("tool_finished")), (3, 2));
    let compiled = fs::read_dir(stage.home().join("data/components")).expect("one component was made");
    assert_eq!(compiled.count(), 1);
}

#[test]
fn s3_34_one_tool_is_put_into_a_component_or_left_out_of_it() {
    let stage = Stage::new(HELLO);
    stage.write("a.txt", "inside\n");
    let outside = stage.work().parent().expect("it lies somewhere").join("out.txt");
    fs::write(&outside, "outside\n").expect("it can be written");
    let outside = format!("{{\"path\": {outside:?}}}");
    let run = |input: &str, flags: &[&str]| stage.run_bare(&[&["tool", "run", "read", input, "--yes"], flags].concat());
    let boxed = ["--config", "tools.read.sandbox=wasm"];
    run(r#"{"path": "a.txt"}"#, &boxed).code(0).out_has("1\tinside");
    run(&outside, &boxed).code(1).err_has("lies outside the workspace, and read runs in a component");
    run(&outside, &["--profile", "s3-box"]).code(1).err_has("(tools.read.sandbox)");
    let left = ["--profile", "s3-box", "--config", "tools.read.sandbox=none"];
    run(&outside, &left).code(0).out_has("1\toutside");
    let told = stage.run_bare(&["tool", "list", "--config", "tools.bash.sandbox=wasm"]).code(2);
    told.err_has("tools.bash.sandbox (--config): no component is made of bash; read, write, edit run in one");
}
