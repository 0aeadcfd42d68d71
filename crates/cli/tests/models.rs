//! `windlass models`: what there is, what is new, and what a model can do.

mod common;
use common::*;
use serde_json::Value;
use std::process::Command;

const ABLE: &str = include_str!("../../../docs/scripts/models.toml");
const TEXT: &str = include_str!("../../../docs/scripts/models-text.toml");

fn learnt(stage: &Stage, provider: &str) -> String {
    std::fs::read_to_string(stage.home().join("data/catalog").join(format!("{provider}.toml"))).unwrap_or_default()
}

/// Providers of one's own, at the scripted model, one for each protocol that a key alone opens.
fn configured(script: &str) -> Stage {
    let stage = Stage::new(script);
    let url = stage.server.base_url();
    let provider = |name: &str, protocol: &str, path: &str| {
        format!(
            "[providers.{name}]\nprotocol = \"{protocol}\"\nbase_url = \"{url}{path}\"\nkey_variable = \"MY_KEY\"\n"
        )
    };
    let text = [provider("a", "anthropic", ""), provider("c", "chat", "/v1"), provider("r", "responses", "/v1")]
        .concat()
        + &provider("g", "gemini", "/v1beta");
    stage.configure(&text);
    stage
}

fn with_key(stage: &Stage, arguments: &[&str]) -> Command {
    let mut command = stage.bare(arguments);
    command.env("MY_KEY", "test-key-123");
    command
}

fn run(stage: &Stage, arguments: &[&str]) -> Told {
    told(with_key(stage, arguments).output().expect("the binary runs"))
}

#[test]
fn what_can_be_used_here_is_listed_with_the_model_that_would_speak() {
    let stage = Stage::new(HELLO);
    let list = stage.run(&["models", "list"]).code(0);
    let list =
        list.out_has("anthropic  Anthropic, anthropic (ANTHROPIC_API_KEY is set)").out_has("\n* claude-sonnet-5-5");
    assert!(!list.out.contains("\ngroq "), "{}", list.out);
    stage.run(&["models", "list", "--all"]).code(0).out_has("GROQ_API_KEY is not set");
    let json = stage.run(&["models", "list", "anthropic", "--json"]).code(0);
    let shown: Value = serde_json::from_str(&json.out).expect("the list is JSON");
    let used = shown[0]["models"].as_array().unwrap().iter().find(|model| model["used"] == true).unwrap();
    assert_eq!(used["name"], "claude-sonnet-5-5");
    assert!(used["window"].as_u64() > Some(1_000) && used["input_usd"].as_f64() > Some(0.0), "{used}");
    stage
        .run(&["models", "list", "antropic"])
        .code(2)
        .err_has("there is no provider `antropic` (did you mean `anthropic`?)");
}

#[test]
fn a_refresh_remembers_what_each_protocol_lists() {
    let stage = configured("models = [\"m-1\", \"m-2\"]\n[[step]]\nblocks = []\n");
    let told = run(&stage, &["models", "refresh"]).code(0);
    for name in ["a", "c", "g", "r"] {
        assert!(told.out.contains(&format!("{name}: 2 models; 2 new: m-1, m-2\n")), "{}", told.out);
    }
    assert!(learnt(&stage, "g").contains("window = 1048576"), "{}", learnt(&stage, "g"));
    run(&stage, &["models", "list", "g"]).code(0).out_has("m-1").out_has("1,048,576");
    run(&stage, &["models", "refresh", "c"]).code(0).out_has("c: 2 models\n");
}

#[test]
fn what_is_gone_is_told_and_forgotten() {
    let stage = configured("models = [\"m-2\"]\n[[step]]\nblocks = []\n");
    let file = stage.home().join("data/catalog/c.toml");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, "protocol = \"chat\"\nbase_url = \"http://h/v1\"\n[[model]]\nname = \"m-1\"\nwindow = 7\n")
        .unwrap();
    run(&stage, &["models", "refresh", "c"]).code(0).out_has("c: 1 model; 1 new: m-2; 1 gone: m-1\n");
    assert!(!learnt(&stage, "c").contains("m-1"), "{}", learnt(&stage, "c"));
}

#[test]
fn a_provider_that_fails_is_a_line_and_only_all_of_them_a_failure() {
    let stage = configured("models = [\"m-1\"]\n[[step]]\nblocks = []\n");
    let text = std::fs::read_to_string(stage.home().join("config.toml")).unwrap();
    stage.configure(&(text + "[providers.dead]\nprotocol = \"chat\"\nbase_url = \"http://127.0.0.1:9/v1\"\n"));
    let told = run(&stage, &["models", "refresh"]).code(0).out_has("dead: cannot reach http://127.0.0.1:9/v1/models");
    assert!(told.out.contains("c: 1 model;"), "{}", told.out);
    run(&stage, &["models", "refresh", "dead"]).code(1);
    run(&stage, &["models", "test", "dead/m"]).code(1).err_has("dead/m can't be tested: cannot reach");
    run(&stage, &["models", "test", "sonnet"]).code(2).err_has("`sonnet` names no model: write PROVIDER/NAME");
    run(&stage, &["models", "refresh", "nowhere"]).code(2).err_has("there is no provider `nowhere`");
    stage.run_bare(&["models", "test", "groq/x"]).code(4).err_has("set GROQ_API_KEY");
}

#[test]
fn an_able_model_shows_all_it_can_in_every_protocol() {
    let stage = configured(ABLE);
    for provider in ["a", "c", "r", "g"] {
        let told = run(&stage, &["models", "test", &format!("{provider}/paper-1")]).code(0);
        for check in ["streams", "tools", "parallel", "images", "schema"] {
            let line = told.out.lines().find(|line| line.trim_start().starts_with(check)).unwrap_or_default();
            assert!(line.ends_with(" ok"), "{provider}: {}", told.out);
        }
        let told = told.out_has("tool calls are native").out_has("cost unknown");
        assert!(!told.out.contains("tools as text"), "{}", told.out);
        assert!(learnt(&stage, provider).contains("tool_calls = \"native\""), "{}", learnt(&stage, provider));
    }
    let json = run(&stage, &["models", "test", "c/paper-1", "--json"]).code(0);
    let report: Value = serde_json::from_str(&json.out).expect("the report is JSON");
    assert_eq!((&report["tool_calls"], &report["checks"][0]["outcome"]), (&"native".into(), &"ok".into()));
    assert!(report["usage"]["input"].as_u64() > Some(0), "{report}");
}

#[test]
fn what_a_test_found_holds_for_the_next_run() {
    let stage = Stage::new(TEXT);
    stage.write("notes.txt", "The secret is plum.\n");
    let told = stage.run(&["models", "test", "anthropic/paper-1"]).code(0);
    let told = told
        .out_has("no: no tool was called")
        .out_has("tools as text  ok")
        .out_has("tool calls are read from its text");
    assert!(told.out.contains("schema         no: its answer is no JSON"), "{}", told.out);
    let before = stage.asked().len();
    let told = stage.run(&["-p", "What is the secret?", "--model", "anthropic/paper-1"]).code(0);
    assert_eq!(told.out, "The secret is plum.\n");
    let asked = &stage.asked()[before..];
    assert_eq!(asked.len(), 2);
    let body: Value = serde_json::from_str(&asked[1]).expect("a request is JSON");
    assert!(body["tools"].is_null(), "{body}");
    assert!(body["system"].to_string().contains("# Tools"), "{body}");
    assert!(
        body["messages"][2]["content"].to_string().contains("<tool_result name=\\\"read\\\" id=\\\"call_1\\\">"),
        "{body}"
    );
}

#[test]
fn the_configuration_says_how_calls_arrive_whatever_the_catalog_says() {
    let stage = Stage::new(TEXT);
    stage.write("notes.txt", "The secret is plum.\n");
    stage.configure("[providers.anthropic]\ntool_calls = \"text\"\n");
    let told = stage.run(&["-p", "What is the secret?", "--model", "anthropic/paper-1"]).code(0);
    assert_eq!(told.out, "The secret is plum.\n");
    stage.configure("[providers.anthropic]\ntool_calls = \"words\"\n");
    stage.run(&["models", "list"]).code(2).err_has("one of \"native\", \"text\"");
}
