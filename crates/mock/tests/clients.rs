//! The vendors' own clients, and ours, read the same streams alike.

mod common;

use common::start;
use futures_util::StreamExt;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use windlass_kernel::{ContentBlock, Message, Parameters, Usage};
use windlass_llm::{Anthropic, ApiKey, Endpoint, Http, HttpOptions, Model, ModelEvent, OpenAiChat, Request, ToolSpec};
use windlass_mock::Server;

/// The prompts, and how the answer to each comes.
const PACES: [(&str, &str); 4] = [
    ("plain", ""),
    ("fragments", "fragment = 1\nsplit = 3"),
    ("lines", "fragment = 4\nsplit = 1\ncrlf = true"),
    ("pings", "fragment = 2\nping_every = 2\ngap_ms = 1"),
];

const ANSWER: &str = r#"
usage = { input = 120, output = 45, cache_read = 30 }
blocks = [
  { thinking = "Überlegen… 🤔", signature = "c2ln+/==" },
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
    let blocks = match protocol {
        "anthropic" => vec![
            json!({"type": "thinking", "thinking": "Überlegen… 🤔", "signature": "c2ln+/=="}),
            json!({"type": "redacted_thinking", "data": "b64=="}),
            text,
        ],
        _ => vec![json!({"type": "thinking", "thinking": "Überlegen… 🤔"}), text],
    };
    let blocks: Vec<Value> = blocks.into_iter().chain(calls).collect();
    let stop = if protocol == "anthropic" { "tool_use" } else { "tool_calls" };
    json!({"blocks": blocks, "usage": {"input": 120, "cache_read": 30, "output": 45}, "stop_reason": stop})
}

/// The interpreter that has the pinned clients.
fn python() -> PathBuf {
    std::env::var_os("WINDLASS_CLIENTS_PYTHON")
        .expect("WINDLASS_CLIENTS_PYTHON is not set: run `cargo xtask test`, which installs the vendors' clients")
        .into()
}

/// The answers to all prompts as the vendors' clients understood them.
fn theirs(server: &Server) -> Vec<Value> {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/clients/read_streams.py");
    let prompts = PACES.map(|(prompt, _)| prompt);
    let mut command = Command::new(python());
    command.arg(program).arg(server.base_url()).args(prompts).args(["busy", "breaks"]).env("PYTHONUTF8", "1");
    let output = command.output().expect("the interpreter of WINDLASS_CLIENTS_PYTHON runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn the_vendors_clients_read_what_the_script_says() {
    let server = start(&script());
    let answers = theirs(&server);
    assert_eq!(answers.len(), (PACES.len() + 2) * 4, "every prompt in two protocols, streamed and whole");
    for answer in answers {
        let protocol = answer["protocol"].as_str().unwrap();
        let fault = match (answer["prompt"].as_str().unwrap(), answer["stream"].as_bool().unwrap()) {
            ("busy", _) => Some(("RateLimitError", "slow down")),
            ("breaks", true) => Some((if protocol == "anthropic" { "APIStatusError" } else { "APIError" }, "full")),
            ("breaks", false) => continue, // an answer that does not stream has no place for an error event
            _ => None,
        };
        match fault {
            Some((error, message)) => {
                assert_eq!(answer["error"], error, "{answer}");
                assert!(answer["message"].as_str().unwrap().contains(message), "{answer}");
            }
            None => {
                let Value::Object(expected) = expected(protocol) else { unreachable!("an object, see above") };
                for (key, value) in expected {
                    assert_eq!(answer[&key], value, "{key} of {answer}");
                }
            }
        }
    }
}

/// One streamed answer as our own client understands it.
async fn ours(server: &Server, protocol: &str, prompt: &str) -> Value {
    let http = Http::new(HttpOptions::default()).unwrap();
    let base_url = server.base_url() + if protocol == "anthropic" { "" } else { "/v1" };
    let endpoint =
        Endpoint { provider: protocol.into(), base_url, api_key: Some(ApiKey::new("test")), headers: vec![] };
    let model: Box<dyn Model> = match protocol {
        "anthropic" => Box::new(Anthropic::new(http, endpoint, "mock".into())),
        _ => Box::new(OpenAiChat::new(http, endpoint, "mock".into())),
    };
    let mut stream = model.call(request(prompt));
    let (mut blocks, mut end) = (Vec::new(), Value::Null);
    while let Some(events) = stream.next().await {
        for event in events.unwrap() {
            match event {
                ModelEvent::BlockFinished { block, .. } => blocks.push(block),
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
        blobs: Arc::default(),
        memo: Default::default(),
    }
}

#[tokio::test]
async fn our_client_reads_what_the_script_says() {
    let server = start(&script());
    for protocol in ["anthropic", "openai"] {
        for (prompt, _) in PACES {
            assert_eq!(ours(&server, protocol, prompt).await, expected(protocol), "{protocol}, {prompt}");
        }
    }
}
