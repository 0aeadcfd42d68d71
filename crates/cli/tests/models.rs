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

#[test]
fn an_address_on_the_command_line_is_where_a_provider_is_asked() {
    let stage = Stage::new("models = [\"m-1\"]\n[[step]]\nblocks = []\n");
    let url = stage.server.base_url();
    let keyed = |arguments: &[&str]| {
        let mut command = stage.bare(arguments);
        command.env("GROQ_API_KEY", "sk-groq").env("OPENAI_API_KEY", "sk-open");
        told(command.output().expect("the binary runs"))
    };
    let address = format!("{url}/v1");
    keyed(&["models", "refresh", "groq", "--base-url", &address]).code(0).out_has("groq: 1 model; 1 new: m-1");
    assert_eq!(stage.server.requests().last().unwrap().headers["authorization"], "Bearer sk-groq");
    keyed(&["models", "refresh", "--base-url", &address]).code(0).out_has("openai: 1 model;");
    assert_eq!(stage.server.requests().last().unwrap().path, "/v1/models");
    keyed(&["models", "list", "nonesuch", "--base-url", &address]).code(2).err_has("there is no provider `nonesuch`");
    keyed(&["models", "list", "groq", "--base-url", "http://h:99999"]).code(2).err_has("from 1 to 65535");
    let stage = Stage::new(ABLE);
    let url = format!("{}/v1", stage.server.base_url());
    for provider in ["groq", "chat"] {
        let mut command = stage.bare(&["models", "test", &format!("{provider}/paper-1"), "--base-url", &url]);
        command.env("GROQ_API_KEY", "sk-groq").env("OPENAI_API_KEY", "sk-open");
        told(command.output().expect("the binary runs")).code(0).out_has("tool calls are native");
    }
    assert_eq!(stage.server.requests().last().unwrap().headers["authorization"], "Bearer sk-open");
    // What was remembered of it takes the key from nobody.
    let before = stage.asked().len();
    let mut command = stage.bare(&["-p", "hi", "--model", "chat/paper-1", "--base-url", &url]);
    let _ = command.env("OPENAI_API_KEY", "sk-open").output().expect("the binary runs");
    assert_eq!(stage.server.requests()[before].headers["authorization"], "Bearer sk-open");
}

/// Whether the process whose number the file holds still runs.
fn runs(pid: &std::path::Path) -> bool {
    let pid = std::fs::read_to_string(pid).expect("the file can be read");
    let state = Command::new("ps").args(["-o", "stat=", "-p", pid.trim()]).output().expect("ps runs");
    let state = String::from_utf8_lossy(&state.stdout).trim().to_owned();
    !state.is_empty() && !state.starts_with('Z')
}

#[test]
fn no_command_for_a_key_outlives_an_interrupt() {
    for arguments in
        [&["models", "test", "mine/m"][..], &["models", "refresh", "mine"], &["-p", "hi", "--model", "mine/m"]]
    {
        let stage = Stage::new(HELLO);
        let pid = stage.home().join("pid");
        let command = format!("sleep 1000 & echo $! > '{0}.new'; mv '{0}.new' '{0}'; wait", pid.display());
        let base = stage.server.base_url();
        stage.configure(&format!("[providers.mine]\nbase_url = \"{base}\"\nkey_command = \"\"\"{command}\"\"\"\n"));
        let child = stage.bare(arguments).spawn().expect("the binary runs");
        wait_for(|| pid.exists());
        assert!(runs(&pid), "{arguments:?}");
        signal(&child, "INT");
        assert_eq!(told(child.wait_with_output().expect("it ends")).code, 130, "{arguments:?}");
        wait_for(|| !runs(&pid));
    }
}
