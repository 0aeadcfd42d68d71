//! Which step answers, what it demands, and what it quotes.

mod common;

use common::*;
use serde_json::{Value, json};

#[test]
fn s3_21_the_edit_quotes_what_was_really_read() {
    for path in ALL {
        for port in ["8080", "7171"] {
            let server =
                start(&include_str!("../scripts/demo.toml").replace("delay_ms = 120", "").replace("= 15", "= 0"));
            let mut talk = Talk::new(path, "change the port to 9090");
            assert!(talk.turn(&server).to_string().contains("config.toml"));
            talk.results(&format!("1\t[server]\n2\tport = {port}\n"), false);
            let edit = talk.turn(&server).to_string();
            assert!(edit.contains(&format!("port = {port}")) && edit.contains("port = 9090"), "{edit}");
            talk.results("edited", false);
            let last = talk.turn(&server).to_string();
            assert!(last.contains(&format!("was changed from {port} to 9090")), "{last}");
            assert_eq!(server.requests().len(), 3);
        }
    }
}

#[test]
fn s3_21_the_demo_fails_where_read_is_not_offered_or_fails() {
    let server = start(include_str!("../scripts/demo.toml"));
    let mut talk = Talk::new(ANTHROPIC, "change the port");
    talk.tools = vec!["edit"];
    assert_eq!(
        talk.ask(&server).error(),
        "400 the script calls tool \"read\", which the request does not offer (look)"
    );
    talk.tools = vec!["read", "edit"];
    talk.turn(&server);
    talk.results("no such file", true);
    let error = talk.ask(&server).error();
    assert_eq!(
        error,
        "400 the script expects of the request (edit): tool_result_error = false: a tool failed: \"no such file\""
    );
}

#[test]
fn a_capture_that_matches_nothing_is_named() {
    let server =
        start("[[step]]\nblocks = [{ text = \"${p}\" }]\ncapture = { p = { regex = 'p=(\\d+)', from = \"user\" } }");
    let error = Talk::new(OPENAI, "hello").ask(&server).error();
    assert_eq!(
        error,
        "400 the script's capture `p` = 'p=(\\d+)' matches nothing in the last user text: \"hello\" (step 1)"
    );
    assert_eq!(Talk::new(OPENAI, "p=7").ask(&server).said(), "7");
}

#[test]
fn a_round_is_chosen_by_the_replies_it_follows_so_a_killed_client_can_go_on() {
    let script = "[[step]]\nrounds = 2\nparallel = 2\n\
        blocks = [{ text = \"round ${i}\" }, { tool = \"read\", input = { path = \"f${n}.txt\", of = \"${k}\" } }]\n\
        [[step]]\nblocks = [{ text = \"done\" }]";
    for path in ALL {
        let server = start(script);
        let mut talk = Talk::new(path, "go");
        let first = talk.clone().turn(&server);
        assert_eq!(first, talk.turn(&server), "the same request gets the same answer again");
        talk.results("x", false);
        let second = talk.turn(&server).to_string().replace('\\', "");
        for part in [
            "round 1",
            "toolu_1_0",
            "toolu_1_1",
            "{\"path\":\"f2.txt\",\"of\":\"0\"}",
            "{\"path\":\"f3.txt\",\"of\":\"1\"}",
        ] {
            assert!(second.contains(part), "{part} in {second}");
        }
        talk.results("x", false);
        assert!(talk.turn(&server).to_string().contains("done"));
        talk.say("and now?");
        assert_eq!(
            talk.ask(&server).error(),
            "400 the script has no step for this request: it holds 3 assistant messages and the script answers 3 rounds"
        );
    }
}

#[test]
fn the_last_step_repeats_if_told_and_ids_stay_unique() {
    let server = start("repeat = true\n[[step]]\nblocks = [{ tool = \"bash\", input = { n = \"${n}\" } }]");
    let mut talk = Talk::new(ANTHROPIC, "go");
    for round in 0..3 {
        let reply = talk.turn(&server);
        assert_eq!(reply["content"][0]["input"]["n"], round.to_string());
        talk.results("x", false);
    }
    // What a summary leaves: fewer replies, and an id that this round had before.
    talk.messages.drain(1..5);
    talk.messages[1]["content"][0]["id"] = json!("toolu_1_0");
    talk.messages[2]["content"][0]["tool_use_id"] = json!("toolu_1_0");
    assert_eq!(talk.turn(&server)["content"][0]["id"], "toolu_1_0_2");
}

#[test]
fn times_counts_per_conversation_and_then_falls_through() {
    let script = "sid = 'session (\\w+)'\n[[step]]\ntimes = 2\nstatus = 529\n\
        [[step]]\nblocks = [{ text = \"hello ${sid}\" }]";
    let server = start(script);
    for sid in ["a", "b"] {
        let talk = Talk::new(ANTHROPIC, &format!("session {sid}"));
        let statuses: Vec<u16> = (0..4).map(|_| talk.ask(&server).status).collect();
        assert_eq!(statuses, [529, 529, 200, 200]);
        assert_eq!(talk.ask(&server).said(), format!("hello {sid}"));
    }
}

#[test]
fn conversations_have_their_own_steps() {
    let script = "[[step]]\nblocks = [{ text = \"main\" }]\n\
        [[conversation]]\nname = \"side\"\nmatch = '^summarise'\n\
        [[conversation.step]]\nblocks = [{ text = \"side 1\" }]\n[[conversation.step]]\nblocks = [{ text = \"side 2\" }]";
    let server = start(script);
    let mut side = Talk::new(OPENAI, "summarise this");
    assert_eq!(side.turn(&server)["content"], "side 1");
    side.messages.push(json!({"role": "user", "content": "more"}));
    assert_eq!(side.ask(&server).said(), "side 2");
    assert_eq!(Talk::new(OPENAI, "please summarise").ask(&server).said(), "main");
    let steps: Vec<_> = server.requests().into_iter().filter_map(|seen| seen.step).collect();
    assert_eq!(steps, ["side/step 1", "side/step 2", "step 1"]);
}

#[test]
fn without_a_conversation_for_it_a_request_is_refused() {
    let server = start("[[conversation]]\nmatch = 'x'\n[[conversation.step]]\nblocks = []");
    let error = Talk::new(OPENAI, "y").ask(&server).error();
    assert_eq!(error, "400 the script has no conversation for this request's first user text");
}

#[test]
fn when_chooses_by_content_before_any_place() {
    let step = |when: &str, name: &str| format!("[[step]]\nwhen = {when}\nblocks = [{{ text = \"{name}\" }}]\n");
    let script = [
        step("{ tool_result_error = true }", "failed"),
        step("{ tool_result = 'port = \\d+' }", "port"),
        step("{ last_user = '^stop' }", "stop"),
        step("{ absent_tools = [\"read\"] }", "no read"),
        step("{ system = 'pirate', model = 'm' }", "arr"),
        step("{ contains = \"q(\", round = 0 }", "literal"),
        "[[step]]\nblocks = [{ tool = \"read\" }]\n[[step]]\nblocks = [{ text = \"place 1\" }]".to_string(),
    ];
    let server = start(&script.concat());
    let mut talk = Talk::new(ANTHROPIC, "go");
    talk.turn(&server);
    let with = |text: &str, is_error| {
        let mut talk = talk.clone();
        talk.results(text, is_error);
        talk.stream = true;
        talk.ask(&server).said()
    };
    assert_eq!(with("port = 1", false), "port");
    assert_eq!(with("port = 1", true), "failed");
    assert_eq!(with("nothing", false), "place 1");
    assert_eq!(Talk::new(ANTHROPIC, "stop it").ask(&server).said(), "stop");
    assert_eq!(Talk::new(ANTHROPIC, "q(").ask(&server).said(), "literal");
    assert_eq!(Talk { tools: vec!["edit"], ..Talk::new(ANTHROPIC, "go") }.ask(&server).said(), "no read");
    let mut pirate = Talk::new(ANTHROPIC, "go").body();
    pirate["system"] = json!("be a pirate");
    assert_eq!(post(&server, ANTHROPIC, &pirate).said(), "arr");
}

#[test]
fn what_a_step_expects_is_named_when_it_is_missing() {
    let expect = |condition: &str| {
        let server = start(&format!("[[step]]\nexpect = [{condition}]\nblocks = [{{ text = \"ok\" }}]"));
        let answer = Talk::new(OPENAI, "hello world").ask(&server);
        if answer.status == 200 { answer.said() } else { answer.error() }
    };
    assert_eq!(expect("{ last_user = 'world' }, { tools = [\"read\", \"edit\"] }, { absent = \"moon\" }"), "ok");
    let of = |what: &str| format!("400 the script expects of the request (step 1): {what}");
    assert_eq!(expect("{ tools = [\"fly\"] }"), of("tools: the request does not offer `fly`"));
    assert_eq!(expect("{ absent_tools = [\"edit\"] }"), of("absent_tools: the request offers `edit`"));
    assert_eq!(expect("{ system = 'x' }"), of("system = 'x' matches nothing in: \"\""));
    assert_eq!(expect("{ absent = \"hello\" }"), of("absent = \"hello\": it stands in the request"));
    assert_eq!(expect("{ contains = \"moon\" }"), of("contains = \"moon\": it stands nowhere in the request"));
    assert_eq!(expect("{ regex = 'moo+n' }"), of("regex = 'moo+n' matches nothing in the request"));
    assert_eq!(expect("{ round = 3 }"), of("round = 3: the request is of round 0"));
    assert_eq!(
        expect("{ tool_result_error = true }"),
        of("tool_result_error = true: no newest tool result is an error")
    );
}

#[test]
fn a_call_that_is_not_offered_needs_to_be_meant() {
    let server = start("[[step]]\nunoffered = true\nblocks = [{ tool = \"fly\" }]");
    assert!(Talk::new(ANTHROPIC, "go").ask(&server).text().contains("\"fly\""));
    let server = start("[[step]]\nneeds_tools = [\"fly\"]\nblocks = [{ text = \"x\" }]");
    assert!(Talk::new(ANTHROPIC, "go").ask(&server).error().contains("calls tool \"fly\""));
}

#[test]
fn every_request_is_held_to_the_vendors_rules() {
    let server = start("repeat = true\n[[step]]\nblocks = [{ tool = \"read\" }]");
    for path in ALL {
        let mut talk = Talk::new(path, "go");
        talk.turn(&server);
        talk.say("never mind");
        let answer = talk.ask(&server);
        let error = answer.error();
        assert!(error.starts_with("400 "), "{error}");
        assert!(error.contains(if path == GEMINI { "(contents[2]: 0 of 1)" } else { "toolu_0_0" }), "{error}");
        let kind = if path == GEMINI { "INVALID_ARGUMENT" } else { "invalid_request_error" };
        assert!(path == BEDROCK || answer.text().contains(kind), "{}", answer.text());
        assert_eq!(answer.json()["type"] == "error", [ANTHROPIC, VERTEX].contains(&path), "the vendor's own shape");
    }
    let broken = exchange(&server, "POST", OPENAI, "authorization: Bearer x\r\n", "{\"model\":");
    assert!(broken.error().starts_with("400 the body is not the JSON of a request: EOF"), "{}", broken.error());
}

#[test]
fn a_key_is_wanted_unless_the_script_says_none() {
    let body = Talk::new(ANTHROPIC, "go").body().to_string();
    let version = "anthropic-version: 2023-06-01\r\n";
    let ask = |script: &str, path: &str, headers: &str| {
        let server = start(&format!("{script}\n[[step]]\nblocks = [{{ text = \"ok\" }}]"));
        exchange(&server, "POST", path, headers, &body).status
    };
    assert_eq!(ask("", ANTHROPIC, version), 401);
    assert_eq!(ask("", ANTHROPIC, &format!("{version}x-api-key: k\r\n")), 200);
    assert_eq!(ask("", ANTHROPIC, "x-api-key: k\r\n"), 400, "the version header is missing");
    assert_eq!(ask("key = \"k\"", ANTHROPIC, &format!("{version}x-api-key: other\r\n")), 401);
    assert_eq!(ask("key = \"k\"", ANTHROPIC, &format!("{version}authorization: Bearer k\r\n")), 200);
    assert_eq!(ask("", OPENAI, ""), 401);
    assert_eq!(ask("", OPENAI, "x-api-key: k\r\n"), 401);
    assert_eq!(ask("auth = \"none\"", OPENAI, ""), 200);
}

#[test]
fn fifty_sessions_at_once_each_hear_their_own() {
    let script = "sid = 'session (\\d+)'\n[[step]]\ntimes = 1\nstatus = 503\n\
        [[step]]\nrounds = 5\nblocks = [{ text = \"${sid} in ${i}\" }, { tool = \"read\", input = { path = \"${sid}/${i}\" } }]\n\
        [[step]]\nblocks = [{ text = \"${sid} done\" }]";
    let server = start(script);
    std::thread::scope(|scope| {
        for sid in 0..50 {
            let server = &server;
            scope.spawn(move || session(server, sid));
        }
    });
    let refused = server.requests().iter().filter(|seen| seen.status == 503).count();
    assert_eq!((server.requests().len(), refused), (50 * 7, 50));
}

fn session(server: &windlass_mock::Server, sid: usize) {
    let mut talk = Talk::new(ALL[sid % ALL.len()], &format!("session {sid}"));
    assert_eq!(talk.ask(server).status, 503);
    for round in 0..5 {
        let reply = talk.turn(server).to_string();
        assert!(reply.contains(&format!("{sid} in {round}")), "{reply}");
        talk.results("x", false);
    }
    assert!(talk.turn(server).to_string().contains(&format!("{sid} done")));
}

#[test]
fn what_was_seen_is_kept_and_logged() {
    let folder = tempfile::tempdir().unwrap();
    let (log, dump) = (folder.path().join("log"), folder.path().join("dump"));
    let script =
        windlass_mock::Script::parse("[[step]]\nblocks = [{ tool = \"read\" }]\n[[step]]\nhang = { after_events = 0 }");
    let options = windlass_mock::Options {
        script: script.unwrap(),
        log: Some(log.clone()),
        dump: Some(dump.clone()),
        keep: 1,
        ..Default::default()
    };
    let server = windlass_mock::Server::start(options).unwrap();
    let mut talk = Talk::new(ANTHROPIC, "go");
    talk.turn(&server);
    talk.results("x", false);
    talk.stream = true;
    let body = talk.body().to_string();
    let mut stream = send(&server, "POST", "/base/v1/messages", "anthropic-version: 1\r\nx-api-key: k\r\n", &body);
    std::io::Read::read_exact(&mut stream, &mut [0; 12]).unwrap();
    drop(stream);
    let lines = wait_for_lines(&log, 2);
    let facts = |line: &Value| {
        let at = |name: &str| line["at"][name].as_u64().unwrap();
        assert!(at("arrive") <= at("body") && at("body") <= at("last") && at("arrive") > 0, "{line}");
        ["path", "step", "status", "messages", "tool_results", "round", "conn", "gone"]
            .map(|key| line[key].to_string())
            .join(" ")
    };
    assert_eq!(facts(&lines[0]), r#""/v1/messages" "step 1" 200 1 0 0 1 false"#);
    assert_eq!(facts(&lines[1]), r#""/base/v1/messages" "step 2" 200 3 1 1 2 true"#);
    let seen = server.requests();
    assert_eq!((seen.len(), seen[0].seq, &seen[0].json()["messages"][0]["content"]), (1, 2, &json!("go")));
    assert_eq!(std::fs::read_to_string(dump.join("00002.json")).unwrap(), body);
    server.stop();
}

/// The log's lines, once there are so many: the server notes a client's going when it notices it.
fn wait_for_lines(log: &std::path::Path, count: usize) -> Vec<Value> {
    for _ in 0..1000 {
        let text = std::fs::read_to_string(log).unwrap();
        if text.lines().count() >= count {
            return text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("the log never had {count} lines");
}

#[test]
fn other_routes() {
    let server = start("models = [\"a\", \"b\"]\n[[step]]\nblocks = []");
    assert_eq!(exchange(&server, "GET", "/", "", "").json()["ok"], true);
    assert_eq!(exchange(&server, "GET", "/v1/models", "", "").json()["data"][1]["id"], "b");
    assert_eq!(exchange(&server, "POST", "/v1/messages/count_tokens", "", "12345").json()["input_tokens"], 2);
    let lost = exchange(&server, "GET", "/v2/x", "", "");
    assert!(lost.error().starts_with("404 no route for GET /v2/x: there are POST"), "{}", lost.error());
    let taken = windlass_mock::Options { addr: server.addr(), ..Default::default() };
    let error = windlass_mock::Server::start(taken).err().unwrap().to_string();
    assert!(error.starts_with(&format!("cannot listen on {}", server.addr())), "{error}");
}
