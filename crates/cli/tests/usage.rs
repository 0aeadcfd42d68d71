//! Flags, configuration and keys: what is wrong is named, with its place and the way out.

mod common;
use common::*;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};

#[test]
fn s4_03_without_a_key_it_says_what_to_do() {
    // Somebody who runs the tests may have a model of his own running: then there is something to talk to.
    let served = [11434, 1234, 8080, 8000]
        .into_iter()
        .any(|port| TcpStream::connect(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).is_ok());
    if served {
        eprintln!("a server answers at a port that local models use: not tried");
        return;
    }
    let stage = Stage::new(HELLO);
    let told = stage.run_bare(&["-p", "hi"]).code(4).err_has("no model is configured");
    told.err_has("set ANTHROPIC_API_KEY or OPENAI_API_KEY").err_has("windlass demo");
}

#[test]
fn a_missing_key_is_named() {
    let stage = Stage::new(HELLO);
    stage.run_bare(&["-p", "hi", "--model", "groq/llama"]).code(4).err_has("groq needs a key: set GROQ_API_KEY");
}

#[test]
fn unknown_providers_and_models_are_named() {
    let stage = Stage::new(HELLO);
    stage.run(&["-p", "hi", "--model", "antropic/x"]).code(2).err_has("did you mean `anthropic`?");
    stage.run(&["-p", "hi", "--model", "sonnet"]).code(2).err_has("--model: `sonnet` names no model");
    stage.run(&["-p", "hi", "--base-url", "localhost:1"]).code(2).err_has("--base-url: `localhost:1` is no address");
}

#[test]
fn the_address_tells_the_protocol() {
    let stage = Stage::new(HELLO);
    let base = stage.server.base_url();
    for (url, path) in [(base.clone(), "/v1/messages"), (format!("{base}/v1"), "/v1/chat/completions")] {
        let mut command = stage.bare(&["-p", "hi", "--base-url", &url]);
        command.env("ANTHROPIC_API_KEY", "k").env("OPENAI_API_KEY", "k");
        assert_eq!(told(command.output().expect("the binary runs")).code(0).out, "Hello from the model.\n");
        assert_eq!(stage.server.requests().last().expect("it was asked").path, path);
    }
}

#[test]
fn keys_and_addresses_come_from_the_environment() {
    let stage = Stage::new(HELLO);
    let mut command = stage.bare(&["-p", "hi"]);
    command.env("OPENAI_BASE_URL", format!("{}/v1", stage.server.base_url())).env("OPENAI_API_KEY", "sk-open");
    told(command.output().expect("the binary runs")).code(0);
    let request = stage.server.requests().pop().expect("it was asked");
    assert_eq!(request.headers["authorization"], "Bearer sk-open");
}

#[test]
fn a_mistyped_key_is_shown_with_its_line() {
    let stage = Stage::new(HELLO);
    stage.configure("locale = \"en\"\nmax_turn = 5\n");
    let told = stage.run(&["-p", "hi"]).code(2);
    told.err_has("config.toml:2: unknown key `max_turn` (did you mean `max_turns`?)").err_has("2 | max_turn = 5");
    assert!(stage.server.requests().is_empty());
}

#[test]
fn a_repositorys_file_can_only_tighten() {
    let stage = Stage::new(&runner("touch made.txt"));
    stage.write(".windlass/config.toml", "permission_mode = \"bypass\"\n");
    let told = stage.run(&["-p", "go"]).code(0).err_has("sets permission_mode, which is not in use");
    told.err_has("windlass trust").err_has("denied");
    stage.write(".windlass/config.toml", "[rules]\ndeny = [\"bash(touch:*)\"]\n");
    stage.run(&["-p", "go", "--yes"]).code(0).err_has("denied");
    assert!(!stage.work().join("made.txt").exists());
}

#[test]
fn the_layers_win_in_their_order() {
    let stage = Stage::new(HELLO);
    stage.configure("max_turns = 1\nlocale = \"zh\"\n[rules]\nallow = [\"ls\"]\n");
    stage.write(".windlass/config.toml", "max_turns = 2\n");
    let shown = stage.run(&["config", "--config", "max_turns=3", "--allow", "read"]).code(0);
    let line = |key: &str| shown.out.lines().find(|line| line.starts_with(key)).unwrap_or_default().to_owned();
    assert!(line("max_turns = 3").ends_with("# --config"), "{}", shown.out);
    assert!(line("locale = \"zh\"").ends_with("config.toml:2"), "{}", shown.out);
    assert!(shown.out.contains("rules.allow += \"ls\"") && shown.out.contains("rules.allow += \"read\""));
    let shown = stage.run(&["config", "--max-turns", "4"]).code(0);
    shown.out_has("max_turns = 4").out_has("# --max-turns");
}

#[test]
fn a_key_is_never_shown() {
    let stage = Stage::new(HELLO);
    for noun in ["config", "doctor"] {
        let told = stage.run(&[noun]).code(0);
        assert!(!told.out.contains("test-key-123") && !told.err.contains("test-key-123"), "{told:?}");
    }
    stage.run(&["doctor"]).code(0).out_has("ANTHROPIC_API_KEY is set").out_has("OPENAI_API_KEY is not set");
}

#[test]
fn wrong_flags_are_told_by_the_command_line() {
    let stage = Stage::new(HELLO);
    stage.run(&["-p", "hi", "--max-turns", "0"]).code(2).err_has("--max-turns");
    stage.run(&["-p", "hi", "--permission-mode", "yolo"]).code(2).err_has("yolo").err_has("accept-edits");
    stage.run(&["-p", "hi", "--profile", "s9"]).code(2).err_has("s9").err_has("s4-framework");
    stage.run(&["-p", "hi", "--yes", "--permission-mode", "plan"]).code(2).err_has("--yes");
    stage.run(&["-p", "hi", "--allow", "bash("]).code(2).err_has("--allow: rule `bash(`");
    stage.run(&["sesions"]).code(2).err_has("sesions");
    stage.run(&["-p", "hi", "sessions"]).code(2).err_has("leave them or the command away");
    stage.run(&["--output-format", "json"]).code(2).err_has("--print");
}

#[test]
fn the_help_tells_the_exit_codes() {
    let stage = Stage::new(HELLO);
    stage.run_bare(&["--help"]).code(0).out_has("Exit codes:").out_has("130  interrupted");
    stage.run_bare(&["--version"]).code(0).out_has("windlass 0.1.0");
}

#[test]
fn plan_mode_changes_nothing() {
    let stage = Stage::new(&runner("touch made.txt"));
    stage.run(&["-p", "go", "--permission-mode", "plan"]).code(0).err_has("plan mode");
    assert!(!stage.work().join("made.txt").exists());
}

#[test]
fn a_tool_that_is_switched_off_is_not_offered() {
    let stage = Stage::new(HELLO);
    stage.run(&["-p", "hi", "--config", "tools.bash.enabled=false"]).code(0);
    let asked: serde_json::Value = serde_json::from_str(&stage.asked()[0]).expect("a request is JSON");
    let names: Vec<&str> =
        asked["tools"].as_array().into_iter().flatten().filter_map(|it| it["name"].as_str()).collect();
    assert!(names.contains(&"read") && !names.contains(&"bash"), "{names:?}");
}

#[test]
fn a_fallback_of_no_use_is_refused_before_the_first_call() {
    let stage = Stage::new(HELLO);
    for (model, code, told) in [
        ("deepseek/deepseek-chat", 4, "--fallback-model deepseek/deepseek-chat: deepseek needs a key"),
        ("nonesuch/x", 2, "there is no provider `nonesuch`"),
        ("nonesuch", 2, "--fallback-model: `nonesuch` names no model"),
        ("", 2, "--fallback-model: `` names no model"),
        ("claude", 2, "is the model itself"),
    ] {
        stage.run(&["-p", "hi", "--fallback-model", model]).code(code).err_has(told);
        stage.configure(&format!("fallback_model = \"{model}\"\n"));
        stage.run(&["-p", "hi"]).code(code).err_has("config.toml:1");
        std::fs::remove_file(stage.home().join("config.toml")).unwrap();
    }
    assert!(stage.asked().is_empty());
}

#[test]
fn a_session_goes_on_though_its_fallback_is_of_no_use_any_more() {
    let stage = Stage::new(HELLO);
    let mut first = stage.command(&["-p", "hi", "--fallback-model", "deepseek"]);
    told(first.env("DEEPSEEK_API_KEY", "k").output().expect("the binary runs")).code(0);
    let again = stage.run(&["-c", "-p", "hi"]).code(0);
    assert_eq!(again.out, "Hello from the model.\n");
    again.err_has("the session's fallback model deepseek/deepseek-flash: deepseek needs a key");
    stage.configure("fallback_model = \"nonesuch\"\n");
    stage.run(&["-c", "-p", "hi"]).code(0);
}

#[test]
fn what_could_be_a_key_is_not_shown() {
    let stage = Stage::new(HELLO);
    stage.configure(
        "[otel]\nheaders = [\"x-key=secret\"]\n[providers.lab]\nbase_url = \"https://me:secret@lab.example/v1\"\n\
         headers = [\"Authorization: Bearer secret\"]\n",
    );
    let shown = stage.run(&["config", "--base-url", "http://me:secret@127.0.0.1:1/v1"]).code(0);
    assert!(!shown.out.contains("secret"), "{}", shown.out);
    let shown = shown.out_has("base_url = \"http://…@127.0.0.1:1/v1\"").out_has("headers += \"Authorization:…\"");
    shown.out_has("https://…@lab.example/v1").out_has("x-key=…").out_has("retry.max_attempts = 5");
    let refused = stage.run(&["-p", "hi", "--base-url", "http://me:secret@h:99999/v1"]).code(2);
    assert!(!refused.err.contains("secret"), "{}", refused.err);
    let sent = stage.run(&["-p", "hi", "--config", "otel.endpoint=\"ftp://me:secret@h\""]).code(2);
    assert!(!sent.err.contains("secret"), "{}", sent.err);
    let header = ["-p", "hi", "--config", "providers.anthropic.headers=[\"X Team: secret\"]"];
    stage.run(&header).code(2).err_has("--config: the header `X Team:…` has a name that none may have");
    stage.run(&["-p", "hi", "--max-cost", "-1"]).code(2).err_has("give US dollars from 0 to 1000000");
}

#[test]
fn a_protocols_name_goes_by_openais_key() {
    let stage = Stage::new(HELLO);
    let base = format!("{}/v1", stage.server.base_url());
    for name in ["chat", "responses"] {
        let mut command = stage.bare(&["-p", "hi", "--model", &format!("{name}/m"), "--base-url", &base]);
        told(command.env("OPENAI_API_KEY", "sk-open").output().expect("the binary runs")).code(0);
        assert_eq!(stage.server.requests().last().unwrap().headers["authorization"], "Bearer sk-open");
    }
}
