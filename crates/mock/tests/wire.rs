//! What comes over the wire: shapes, pace and faults.

mod common;

use common::*;
use serde_json::{Value, json};

const MIXED: &str = r#"
[[step]]
blocks = [
  { thinking = "hm", signature = "sig" },
  { redacted_thinking = "x9" },
  { text = "naïve 😀" },
  { tool = "read", id = "t1", input = { path = "a" } },
  { tool = "bash", raw_input = '{"command": "l' },
]
usage = { input = 7, output = 9, cache_read = 3, cache_write = 2, reasoning = 1 }
"#;

#[test]
fn an_anthropic_stream() {
    let answer = Talk::new(ANTHROPIC, "go").ask(&start(MIXED));
    assert!(answer.head.contains("content-type: text/event-stream") && answer.whole);
    insta::assert_snapshot!(answer.text(), @r#"
    event: message_start
    data: {"type":"message_start","message":{"id":"msg_000001","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":7,"cache_creation_input_tokens":2,"cache_read_input_tokens":3,"output_tokens":1,"output_tokens_details":{"thinking_tokens":1}}}}

    event: content_block_start
    data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}

    event: content_block_delta
    data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}

    event: content_block_delta
    data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"sig"}}

    event: content_block_stop
    data: {"type":"content_block_stop","index":0}

    event: content_block_start
    data: {"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"x9"}}

    event: content_block_stop
    data: {"type":"content_block_stop","index":1}

    event: content_block_start
    data: {"type":"content_block_start","index":2,"content_block":{"type":"text","text":""}}

    event: content_block_delta
    data: {"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"naïve 😀"}}

    event: content_block_stop
    data: {"type":"content_block_stop","index":2}

    event: content_block_start
    data: {"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"t1","name":"read","input":{}}}

    event: content_block_delta
    data: {"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{\"path\":\"a\"}"}}

    event: content_block_stop
    data: {"type":"content_block_stop","index":3}

    event: content_block_start
    data: {"type":"content_block_start","index":4,"content_block":{"type":"tool_use","id":"toolu_0_1","name":"bash","input":{}}}

    event: content_block_delta
    data: {"type":"content_block_delta","index":4,"delta":{"type":"input_json_delta","partial_json":"{\"command\": \"l"}}

    event: content_block_stop
    data: {"type":"content_block_stop","index":4}

    event: message_delta
    data: {"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"input_tokens":7,"cache_creation_input_tokens":2,"cache_read_input_tokens":3,"output_tokens":9,"output_tokens_details":{"thinking_tokens":1}}}

    event: message_stop
    data: {"type":"message_stop"}
    "#);
}

#[test]
fn an_openai_stream() {
    let mut body = Talk::new(OPENAI, "go").body();
    body["stream_options"] = json!({"include_usage": true});
    let answer = post(&start(MIXED), OPENAI, &body);
    insta::assert_snapshot!(answer.text(), @r#"
    data: {"id":"chatcmpl-000001","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}],"usage":null}

    data: {"id":"chatcmpl-000001","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[{"index":0,"delta":{"reasoning_content":"hm"},"logprobs":null,"finish_reason":null}],"usage":null}

    data: {"id":"chatcmpl-000001","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[{"index":0,"delta":{"content":"naïve 😀"},"logprobs":null,"finish_reason":null}],"usage":null}

    data: {"id":"chatcmpl-000001","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"t1","type":"function","function":{"name":"read","arguments":""}}]},"logprobs":null,"finish_reason":null}],"usage":null}

    data: {"id":"chatcmpl-000001","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"path\":\"a\"}"}}]},"logprobs":null,"finish_reason":null}],"usage":null}

    data: {"id":"chatcmpl-000001","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"toolu_0_1","type":"function","function":{"name":"bash","arguments":""}}]},"logprobs":null,"finish_reason":null}],"usage":null}

    data: {"id":"chatcmpl-000001","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"function":{"arguments":"{\"command\": \"l"}}]},"logprobs":null,"finish_reason":null}],"usage":null}

    data: {"id":"chatcmpl-000001","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"tool_calls"}],"usage":null}

    data: {"id":"chatcmpl-000001","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[],"usage":{"prompt_tokens":12,"completion_tokens":9,"total_tokens":21,"prompt_tokens_details":{"cached_tokens":3},"completion_tokens_details":{"reasoning_tokens":1}}}

    data: [DONE]
    "#);
    let without = Talk::new(OPENAI, "go").ask(&start(MIXED));
    assert!(!without.text().contains("usage") && without.text().ends_with("data: [DONE]\n\n"));
}

#[test]
fn whole_answers() {
    let server = start(MIXED);
    let mut texts = Vec::new();
    for path in [ANTHROPIC, OPENAI] {
        let answer = Talk { stream: false, ..Talk::new(path, "go") }.ask(&server);
        assert!(answer.head.contains("content-type: application/json"));
        texts.push(answer.text());
    }
    insta::assert_snapshot!(texts.join("\n"), @r#"
    {"id":"msg_000001","type":"message","role":"assistant","model":"m","content":[{"type":"thinking","thinking":"hm","signature":"sig"},{"type":"redacted_thinking","data":"x9"},{"type":"text","text":"naïve 😀"},{"type":"tool_use","id":"t1","name":"read","input":{"path":"a"}},{"type":"tool_use","id":"toolu_0_1","name":"bash","input":"{\"command\": \"l"}],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":7,"cache_creation_input_tokens":2,"cache_read_input_tokens":3,"output_tokens":9,"output_tokens_details":{"thinking_tokens":1}}}
    {"id":"chatcmpl-000002","object":"chat.completion","created":1700000000,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"naïve 😀","refusal":null,"reasoning_content":"hm","tool_calls":[{"id":"t1","type":"function","function":{"name":"read","arguments":"{\"path\":\"a\"}"}},{"id":"toolu_0_1","type":"function","function":{"name":"bash","arguments":"{\"command\": \"l"}}]},"logprobs":null,"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":12,"completion_tokens":9,"total_tokens":21,"prompt_tokens_details":{"cached_tokens":3},"completion_tokens_details":{"reasoning_tokens":1}}}
    "#);
}

#[test]
fn usage_is_computed_from_bytes() {
    let server = start("[[step]]\nblocks = [{ text = \"12345\" }]");
    let mut talk = Talk::new(ANTHROPIC, "go");
    talk.stream = false;
    let usage = talk.ask(&server).json()["usage"].clone();
    assert_eq!(usage["output_tokens"], 2);
    assert_eq!(usage["input_tokens"], talk.body().to_string().len().div_ceil(4));
}

#[test]
fn a_stop_reason_is_said_in_each_vendors_words() {
    let server = start("[[step]]\nstop = \"max_tokens\"\nblocks = [{ text = \"x\" }]");
    let stop = |path| Talk::new(path, "go").ask(&server).text();
    assert!(stop(ANTHROPIC).contains(r#""stop_reason":"max_tokens""#));
    assert!(stop(OPENAI).contains(r#""finish_reason":"length""#));
}

#[test]
fn a_native_block_goes_out_as_it_is() {
    let script =
        "[[step]]\nblocks = [{ native = { type = \"server_tool_use\", id = \"s\", input = { q = [1, 2.5] } } }]";
    let server = start(script);
    let events = Talk::new(ANTHROPIC, "go").ask(&server).events();
    assert_eq!(events[1]["content_block"], json!({"type": "server_tool_use", "id": "s", "input": {"q": [1, 2.5]}}));
    assert!(Talk::new(OPENAI, "go").ask(&server).error().contains("`native` block"));
}

#[test]
fn fragments_splits_and_line_ends_change_no_word() {
    let plain = start(MIXED);
    let expected = |path| Talk::new(path, "go").ask(&plain);
    for path in [ANTHROPIC, OPENAI] {
        for (pace, longest) in
            [("fragment = 1", usize::MAX), ("split = 7", 7), ("split = 1\ncrlf = true\nfragment = 2", 1)]
        {
            let server = start(&MIXED.replace("[[step]]", &format!("[[step]]\n{pace}")));
            let answer = Talk::new(path, "go").ask(&server);
            assert_eq!(answer.said(), expected(path).said(), "{pace}");
            assert!(answer.chunks.iter().all(|size| *size <= longest), "{pace}: {:?}", answer.chunks);
            assert_eq!(answer.text().contains("\r\n\r\n"), pace.contains("crlf"));
        }
    }
}

#[test]
fn with_a_gap_every_event_comes_alone() {
    let server = start("[[step]]\ngap_ms = 1\nfragment = 1\nblocks = [{ text = \"abcde\" }]");
    let answer = Talk::new(ANTHROPIC, "go").ask(&server);
    assert_eq!((answer.events().len(), answer.chunks.len()), (10, 10));
    let at_once = start("[[step]]\nfragment = 1\nblocks = [{ text = \"abcde\" }]");
    assert_eq!(Talk::new(ANTHROPIC, "go").ask(&at_once).chunks.len(), 1);
}

#[test]
fn a_delayed_answer_is_passed_by_a_quick_one() {
    let script = "[[step]]\nwhen = { last_user = 'slow' }\ndelay_ms = 400\nblocks = []\n[[step]]\nblocks = []";
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let script = windlass_mock::Script::parse(script).unwrap();
    let options = windlass_mock::Options { script, log: Some(log.clone()), ..Default::default() };
    let server = windlass_mock::Server::start(options).unwrap();
    std::thread::scope(|scope| {
        let slow = scope.spawn(|| Talk::new(OPENAI, "slow").ask(&server));
        while server.requests().is_empty() {
            std::thread::yield_now();
        }
        assert!(Talk::new(OPENAI, "quick").ask(&server).whole);
        assert!(slow.join().unwrap().whole);
    });
    let order: Vec<u64> = std::fs::read_to_string(&log)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["seq"].as_u64().unwrap())
        .collect();
    assert_eq!(order, [2, 1]);
}

#[test]
fn pings_come_between_events() {
    let server = start("[[step]]\nping_every = 2\nblocks = [{ text = \"a\" }]");
    let kinds: Vec<String> =
        Talk::new(ANTHROPIC, "go").ask(&server).events().iter().map(|e| e["type"].to_string()).collect();
    let expected = [
        "message_start",
        "content_block_start",
        "ping",
        "content_block_delta",
        "content_block_stop",
        "ping",
        "message_delta",
        "message_stop",
    ];
    assert_eq!(kinds, expected.map(|kind| format!("\"{kind}\"")));
    assert_eq!(Talk::new(OPENAI, "go").ask(&server).text().matches(": ping\n\n").count(), 1);
}

#[test]
fn made_up_text_has_the_wanted_size() {
    let server = start("[[step]]\nblocks = [{ text = \"so: \" }]\ntext_bytes = 200_000\nchunk = 20");
    for path in [ANTHROPIC, OPENAI] {
        let answer = Talk::new(path, "go").ask(&server);
        assert_eq!(answer.said().len(), 200_004);
        let deltas = answer.text().matches(if path == ANTHROPIC { "text_delta" } else { "\"content\":" }).count();
        assert!((10_001..=10_002).contains(&deltas), "{deltas}");
    }
}

#[test]
fn a_cut_falls_where_it_was_told_to() {
    let cut = |path, place: &str| {
        let script = format!(
            "[[step]]\ncut = {{ {place} }}\nfragment = 4\n\
             blocks = [{{ text = \"hello\" }}, {{ tool = \"read\", input = {{ path = \"ünder\" }} }}]"
        );
        let answer = Talk::new(path, "go").ask(&start(&script));
        assert!(!answer.whole, "{place} on {path}");
        answer
    };
    for path in [ANTHROPIC, OPENAI] {
        assert_eq!(cut(path, "after_bytes = 100").body.len(), 100);
        assert_eq!(cut(path, "in_block = 0, after_chars = 3").said(), "hel");
        assert_eq!(cut(path, "in_block = 1, after_chars = 11").said(), "hello{\"path\":\"ün");
        assert_eq!(cut(path, "in_block = 1, after_chars = 99").said(), "hello{\"path\":\"ünder\"}");
        assert_eq!(cut(path, "after_events = 2").events().len(), 2);
        assert_eq!(cut(path, "after_events = 0").status, 200);
        assert_eq!(cut(path, "after_events = 0").body, b"");
        assert_eq!(cut(path, "before_answer = true").status, 0);
        let reset = cut(path, "after_events = 3, reset = true");
        assert_eq!((reset.reset, reset.events().len()), (true, 3));
        assert!(!cut(path, "after_events = 3").reset);
    }
    let whole = cut_whole("after_bytes = 30");
    assert_eq!(whole.body.len(), 30);
    assert!(!cut_whole("after_events = 1").body.is_empty());
}

fn cut_whole(place: &str) -> Answer {
    let server = start(&format!("[[step]]\nblocks = [{{ text = \"hello\" }}]\ncut = {{ {place} }}"));
    let answer = Talk { stream: false, ..Talk::new(OPENAI, "go") }.ask(&server);
    assert!(!answer.whole);
    answer
}

#[test]
fn a_cut_of_a_long_stream_loses_nothing_before_it() {
    // The client reads nothing until the server has filled every buffer on the way.
    let server = start("[[step]]\ntext_bytes = 8_000_000\nchunk = 4000\ncut = { after_bytes = 7_000_000 }");
    let body = Talk::new(ANTHROPIC, "go").body().to_string();
    let mut stream = send(&server, "POST", ANTHROPIC, "anthropic-version: 1\r\nx-api-key: k\r\n", &body);
    std::thread::sleep(std::time::Duration::from_millis(100));
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut stream, &mut bytes).unwrap();
    assert!(bytes.len() > 7_000_000 && bytes.len() < 7_100_000, "{}", bytes.len());
    assert!(!bytes.ends_with(b"0\r\n\r\n"));
}

#[test]
fn a_hanging_answer_stays_silent_until_the_client_leaves() {
    for place in ["after_events = 2", "before_answer = true"] {
        let server = start(&format!("[[step]]\nhang = {{ {place} }}\nblocks = [{{ text = \"x\" }}]"));
        let body = Talk::new(ANTHROPIC, "go").body().to_string();
        let mut stream = send(&server, "POST", ANTHROPIC, "anthropic-version: 1\r\nx-api-key: k\r\n", &body);
        stream.set_read_timeout(Some(std::time::Duration::from_millis(200))).unwrap();
        let mut bytes = Vec::new();
        let error = std::io::Read::read_to_end(&mut stream, &mut bytes).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
        let events = String::from_utf8(bytes).unwrap().matches("event: ").count();
        assert_eq!(events, if place.contains("events") { 2 } else { 0 });
    }
}

#[test]
fn errors_have_the_vendors_shape() {
    let script = "[[step]]\nstatus = 429\nheaders = { retry-after = \"1\" }\nerror = { message = \"slow down\" }";
    let server = start(script);
    let anthropic = Talk::new(ANTHROPIC, "go").ask(&server);
    assert!(anthropic.status == 429 && anthropic.head.contains("retry-after: 1"));
    let error = json!({"type": "rate_limit_error", "message": "slow down"});
    assert_eq!(anthropic.json(), json!({"type": "error", "error": error, "request_id": "req_000001"}));
    let openai = Talk::new(OPENAI, "go").ask(&server).json();
    let error =
        json!({"message": "slow down", "type": "rate_limit_error", "param": null, "code": "rate_limit_exceeded"});
    assert_eq!(openai, json!({"error": error}));
    let own = start("[[step]]\nerror = { type = \"odd\", code = \"c\", param = \"p\" }");
    let error = json!({"message": "the script answers 500", "type": "odd", "param": "p", "code": "c"});
    assert_eq!(Talk::new(OPENAI, "go").ask(&own).json()["error"], error);
}

#[test]
fn an_error_event_comes_in_mid_stream() {
    let server = start(
        "[[step]]\nblocks = [{ text = \"x\" }]\nerror_event = { after_events = 3, type = \"overloaded_error\", message = \"full\" }",
    );
    let anthropic = Talk::new(ANTHROPIC, "go").ask(&server);
    let events = anthropic.events();
    let error = json!({"type": "error", "error": {"type": "overloaded_error", "message": "full"}});
    assert_eq!((events.len(), &events[3], anthropic.whole), (4, &error, true));
    let openai = Talk::new(OPENAI, "go").ask(&server).events();
    assert_eq!((openai.len(), openai[3]["error"]["message"].as_str()), (4, Some("full")));
}

#[test]
fn a_raw_answer_is_whatever_it_is() {
    let server = start("[[step]]\nstatus = 502\ncontent_type = \"text/html\"\nbody = \"<h1>${i}</h1>\"\nsplit = 3");
    let answer = Talk::new(ANTHROPIC, "go").ask(&server);
    assert_eq!((answer.status, answer.text().as_str(), answer.whole), (502, "<h1>0</h1>", true));
    assert!(answer.head.contains("content-type: text/html"));
    let sse =
        start("[[step]]\ncontent_type = \"text/event-stream\"\nbody = \"data: {\\n\\n\"\ncut = { after_bytes = 4 }");
    let answer = Talk::new(OPENAI, "go").ask(&sse);
    assert_eq!((answer.text().as_str(), answer.whole), ("data", false));
    let empty = start("[[step]]\nbody = \"\"");
    assert!(Talk::new(OPENAI, "go").ask(&empty).whole);
}

#[test]
fn connections_are_kept_alive() {
    use std::io::{Read, Write};
    let server = start("[[step]]\nblocks = [{ text = \"x\" }]");
    let body = Talk::new(ANTHROPIC, "go").body().to_string();
    let mut stream = std::net::TcpStream::connect(server.addr()).unwrap();
    for _ in 0..3 {
        let head = format!(
            "POST {ANTHROPIC} HTTP/1.1\r\nhost: m\r\nx-api-key: k\r\nanthropic-version: 1\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(body.as_bytes()).unwrap();
        let (mut read, mut buffer) = (Vec::new(), [0; 4096]);
        while !read.ends_with(b"0\r\n\r\n") {
            let count = stream.read(&mut buffer).unwrap();
            read.extend_from_slice(&buffer[..count]);
        }
    }
    let conns: Vec<u64> = server.requests().iter().map(|seen| seen.conn).collect();
    assert_eq!(conns, [1, 1, 1]);
}
