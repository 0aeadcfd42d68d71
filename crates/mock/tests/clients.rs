//! The vendors' own clients, and ours, read the same streams alike.

mod common;

use common::start;
use futures_util::StreamExt;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use windlass_kernel::{ContentBlock, Message, Parameters, Usage};
use windlass_llm::{
    ApiKey, Auth, AwsKeys, Endpoint, Http, HttpOptions, ModelEvent, Request, ToolSpec, WireProtocol, connect,
};
use windlass_mock::{Options, Script, Server};

/// The prompts, and how the answer to each comes.
const PACES: [(&str, &str); 4] = [
    ("plain", ""),
    ("fragments", "fragment = 1\nsplit = 3"),
    ("lines", "fragment = 4\nsplit = 1\ncrlf = true"),
    ("pings", "fragment = 2\nping_every = 2\ngap_ms = 1"),
];

const ANSWER: &str = r#"
usage = { input = 120, output = 45, cache_read = 30, reasoning = 5 }
blocks = [
  { thinking = "Überlegen… 🤔", signature = "c2ln+w==" },
  { redacted_thinking = "b64==" },
  { text = "Zwei Dateien: naïve 😀 \"日本語\"\n" },
  { tool = "read", id = "toolu_a", input = { path = "a b/ü.txt", from = 3, deep = { list = [1, 2.5, true] } } },
  { tool = "edit", id = "toolu_b", input = { path = "ü", old = "\"x\"\\\n", new = "😀" } },
]
"#;

const FAULTS: &str = r#"
[[conversation]]
match = '^busy$'
[[conversation.step]]
status = 429
error = { message = "slow down" }

[[conversation]]
match = '^breaks$'
[[conversation.step]]
blocks = [{ text = "half" }]
error_event = { after_events = 3, type = "overloaded_error", message = "full" }
"#;

fn script() -> String {
    let step =
        |(prompt, pace)| format!("[[conversation]]\nmatch = '^{prompt}$'\n[[conversation.step]]\n{pace}\n{ANSWER}");
    PACES.map(step).concat() + FAULTS
}

/// What the script says, in the protocol's words.
fn expected(protocol: &str) -> Value {
    let calls = [
        json!({"type": "tool_use", "id": "toolu_a", "name": "read",
            "input": {"path": "a b/ü.txt", "from": 3, "deep": {"list": [1, 2.5, true]}}}),
        json!({"type": "tool_use", "id": "toolu_b", "name": "edit",
            "input": {"path": "ü", "old": "\"x\"\\\n", "new": "😀"}}),
    ];
    let text = json!({"type": "text", "text": "Zwei Dateien: naïve 😀 \"日本語\"\n"});
    let signed = json!({"type": "thinking", "thinking": "Überlegen… 🤔", "signature": "c2ln+w=="});
    let redacted = json!({"type": "redacted_thinking", "data": "b64=="});
    let thinking = json!({"type": "thinking", "thinking": "Überlegen… 🤔"});
    let (said, stop) = match protocol {
        "openai" => (vec![thinking, text], "tool_calls"),
        "responses" => (vec![signed, redacted, text], "completed"),
        "gemini" => (vec![thinking, text], "STOP"),
        _ => (vec![signed, redacted, text], "tool_use"),
    };
    let mut calls = calls;
    if protocol == "gemini" {
        calls[0]["signature"] = json!("c2ln+w==");
    }
    let blocks: Vec<Value> = said.into_iter().chain(calls).collect();
    json!({"blocks": blocks, "usage": {"input": 120, "cache_read": 30, "output": 45}, "stop_reason": stop})
}

/// The interpreter that has the pinned clients.
fn python() -> PathBuf {
    std::env::var_os("WINDLASS_CLIENTS_PYTHON")
        .expect("WINDLASS_CLIENTS_PYTHON is not set: run `cargo xtask test`, which installs the vendors' clients")
        .into()
}

/// What a program of ours prints that uses the vendors' clients.
fn run(program: &str, arguments: &[&str]) -> Vec<Value> {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/clients").join(program);
    let mut command = Command::new(python());
    let output = command.arg(program).args(arguments).env("PYTHONUTF8", "1").output();
    let output = output.expect("the interpreter of WINDLASS_CLIENTS_PYTHON runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The error that the vendor's client makes of a prompt's answer; none of one that is no error.
fn fault(prompt: &str, protocol: &str) -> Option<(&'static str, &'static str)> {
    let (refused, broken) = match protocol {
        "gemini" => ("ClientError", "ServerError"),
        "openai" | "responses" => ("RateLimitError", "APIError"),
        _ => ("RateLimitError", "APIStatusError"),
    };
    match prompt {
        "busy" => Some((refused, "slow down")),
        "breaks" => Some((broken, "full")),
        _ => None,
    }
}

#[test]
fn the_vendors_clients_read_what_the_script_says() {
    let server = start(&script());
    let url = server.base_url();
    let prompts: Vec<&str> =
        [url.as_str()].into_iter().chain(PACES.map(|(p, _)| p)).chain(["busy", "breaks"]).collect();
    let answers = run("read_streams.py", &prompts);
    assert_eq!(answers.len(), (PACES.len() + 2) * 12, "every prompt in six protocols, streamed and whole");
    for answer in answers {
        let (prompt, protocol) = (answer["prompt"].as_str().unwrap(), answer["protocol"].as_str().unwrap());
        if prompt == "breaks" && answer["stream"] == false {
            continue; // an answer that does not stream has no place for an error event
        }
        if let Some((error, message)) = fault(prompt, protocol) {
            assert_eq!(answer["error"], error, "{answer}");
            assert!(answer["message"].as_str().unwrap().contains(message), "{answer}");
            continue;
        }
        let Value::Object(expected) = expected(protocol) else { unreachable!("an object, see above") };
        for (key, value) in expected {
            assert_eq!(answer[&key], value, "{key} of {answer}");
        }
        assert_eq!(answer["reasoning"], 5, "{answer}");
    }
}

#[tokio::test]
async fn a_dump_is_enough_to_check_a_signature() {
    let folder = tempfile::tempdir().unwrap();
    let script = Script::parse(&script()).unwrap();
    let dump = Some(folder.path().to_path_buf());
    let server = Server::start(Options { script, dump, ..Options::default() }).unwrap();
    run("read_streams.py", &[&server.base_url(), "plain"]);
    ours(&server, "bedrock", "plain").await;
    let check = |secret: &str| run("check_sigv4.py", &["AKID", secret, folder.path().to_str().unwrap()]);
    let (right, wrong) = (check("secret"), check("other"));
    let results = |entries: &[Value], result: &str| {
        let found = entries.iter().filter(|entry| entry["result"] == result);
        found.map(|entry| entry["path"].as_str().unwrap().to_string()).collect::<Vec<_>>()
    };
    let signed = ["/model/mock/invoke-with-response-stream", "/model/mock/invoke"].map(String::from);
    let ok = results(&right, "ok");
    assert_eq!((&ok[..2], ok.len(), results(&right, "mismatch").len()), (&signed[..], 3, 0), "{right:?}");
    assert_eq!((results(&wrong, "mismatch").len(), results(&wrong, "unsigned").len()), (3, 10));
}

/// One streamed answer as our own client understands it.
async fn ours(server: &Server, protocol: &str, prompt: &str) -> Value {
    let http = Http::new(HttpOptions::default()).unwrap();
    let (wire, folder) = match protocol {
        "anthropic" => (WireProtocol::Anthropic, ""),
        "bedrock" => (WireProtocol::Bedrock, ""),
        "vertex" => (WireProtocol::Vertex, "/v1/projects/test/locations/us-east1"),
        "responses" => (WireProtocol::Responses, "/v1"),
        "gemini" => (WireProtocol::Gemini, "/v1beta"),
        _ => (WireProtocol::Chat, "/v1"),
    };
    let (provider, base_url) = (protocol.into(), server.base_url() + folder);
    let (auth, name) = match wire {
        WireProtocol::Bedrock => (Auth::Aws(aws_keys()), "us.mock-v1:0"),
        _ => (Auth::Key(ApiKey::new("test")), "mock"),
    };
    let model = connect(wire, http, Endpoint { provider, base_url, auth, ..Endpoint::default() }, name);
    let mut stream = model.call(request(prompt));
    let (mut blocks, mut end) = (Vec::new(), Value::Null);
    while let Some(events) = stream.next().await {
        for event in events.unwrap() {
            match event {
                ModelEvent::BlockFinished { block, .. } => {
                    let mut block = json!(block);
                    // Who made it is our own note.
                    block.as_object_mut().unwrap().remove("by");
                    blocks.push(block);
                }
                ModelEvent::Finished { raw_stop, usage, .. } => {
                    let Usage { input, cache_read, output, .. } = usage;
                    let usage = json!({"input": input, "cache_read": cache_read, "output": output});
                    end = json!({"usage": usage, "stop_reason": raw_stop});
                }
                _ => {}
            }
        }
    }
    json!({"blocks": blocks, "usage": end["usage"], "stop_reason": end["stop_reason"]})
}

fn aws_keys() -> AwsKeys {
    let (access_key_id, secret_access_key) = ("AKID".into(), "secret".into());
    AwsKeys { access_key_id, secret_access_key, session_token: None, region: "us-east-1".into() }
}

fn request(prompt: &str) -> Request {
    let tool = |name: &str| ToolSpec {
        name: name.into(),
        description: name.into(),
        schema: json!({"type": "object", "properties": {}}),
    };
    Request {
        system: Arc::new([]),
        messages: vec![Arc::new(Message::user(vec![ContentBlock::text(prompt)]))],
        tools: Arc::new([tool("edit"), tool("read")]),
        parameters: Parameters { max_tokens: 1000, ..Parameters::default() },
        output_schema: None,
        cache_key: "test".into(),
        blobs: Arc::default(),
        memo: Default::default(),
    }
}

/// What both sides call alike: how our client keeps what a model thought for these protocols is its own matter.
fn common_part(protocol: &str, mut answer: Value) -> Value {
    if matches!(protocol, "responses" | "gemini") {
        let blocks = answer["blocks"].as_array_mut().unwrap();
        blocks.retain(|block| block["type"] == "text" || block["type"] == "tool_use");
        blocks.iter_mut().for_each(|block| drop(block.as_object_mut().unwrap().remove("signature")));
    }
    answer
}

#[tokio::test]
async fn our_client_reads_what_the_script_says() {
    let server = start(&script());
    for protocol in ["anthropic", "bedrock", "vertex", "openai", "responses", "gemini"] {
        for (prompt, _) in PACES {
            let ours = common_part(protocol, ours(&server, protocol, prompt).await);
            assert_eq!(ours, common_part(protocol, expected(protocol)), "{protocol}, {prompt}");
        }
    }
}
