//! A small HTTP client that shows what really came over the wire, and requests to send with it.
#![allow(dead_code)] // each test file uses its part

use serde_json::{Value, json};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use windlass_mock::{Options, Script, Server};

/// An answer as it came.
#[derive(Debug, Default)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
    /// The sizes of the HTTP chunks: one per write of the server.
    pub chunks: Vec<usize>,
    /// The answer came to its proper end.
    pub whole: bool,
    /// The connection ended by a reset.
    pub reset: bool,
}

pub fn start(script: &str) -> Server {
    let script = Script::parse(script).unwrap_or_else(|e| panic!("{e}\n{script}"));
    Server::start(Options { script, ..Options::default() }).expect("a free port")
}

pub const ANTHROPIC: &str = "/v1/messages";
pub const OPENAI: &str = "/v1/chat/completions";
pub const RESPONSES: &str = "/v1/responses";
pub const GEMINI: &str = "/v1beta/models/m:streamGenerateContent?alt=sse";
pub const BEDROCK: &str = "/model/m/invoke-with-response-stream";
pub const VERTEX: &str = "/v1/projects/p/locations/l/publishers/anthropic/models/m:streamRawPredict";

/// Every protocol, streamed.
pub const ALL: [&str; 6] = [ANTHROPIC, OPENAI, RESPONSES, GEMINI, BEDROCK, VERTEX];

/// The path of the answer that does not stream.
fn whole_path(path: &str) -> &str {
    match path {
        GEMINI => "/v1beta/models/m:generateContent",
        BEDROCK => "/model/m/invoke",
        VERTEX => "/v1/projects/p/locations/l/publishers/anthropic/models/m:rawPredict",
        other => other,
    }
}

/// Sends a request with the usual headers.
pub fn post(server: &Server, path: &str, body: &Value) -> Answer {
    let headers = "anthropic-version: 2023-06-01\r\nauthorization: Bearer test\r\n";
    exchange(server, "POST", path, headers, &body.to_string())
}

/// Sends a request and reads until the answer ends, one way or another.
pub fn exchange(server: &Server, method: &str, path: &str, headers: &str, body: &str) -> Answer {
    let mut stream = send(server, method, path, headers, body);
    let mut bytes = Vec::new();
    let reset = stream.read_to_end(&mut bytes).is_err_and(|e| e.kind() == ErrorKind::ConnectionReset);
    Answer { reset, ..decode(&bytes) }
}

/// Sends a request only.
pub fn send(server: &Server, method: &str, path: &str, headers: &str, body: &str) -> TcpStream {
    let mut stream = TcpStream::connect(server.addr()).expect("the server listens");
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: mock\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body.as_bytes()).unwrap();
    stream
}

fn decode(bytes: &[u8]) -> Answer {
    let Some(end) = bytes.windows(4).position(|w| w == b"\r\n\r\n") else { return Answer::default() };
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap().to_lowercase();
    let mut rest = &bytes[end + 4..];
    let status = head[9..12].parse().unwrap();
    let mut answer = Answer { status, ..Answer::default() };
    if head.contains("transfer-encoding: chunked") {
        while let Some(at) = rest.windows(2).position(|w| w == b"\r\n") {
            let size = usize::from_str_radix(std::str::from_utf8(&rest[..at]).unwrap(), 16).unwrap();
            answer.whole = size == 0;
            let Some(data) = rest.get(at + 2..at + 2 + size).filter(|_| size > 0) else { break };
            answer.body.extend_from_slice(data);
            answer.chunks.push(size);
            rest = &rest[at + 4 + size..];
        }
    } else {
        let length = head.split("content-length: ").nth(1).and_then(|l| l.lines().next()).map(|l| l.parse().unwrap());
        answer.body = rest.to_vec();
        answer.whole = length == Some(rest.len());
    }
    answer.head = head;
    answer
}

impl Answer {
    pub fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e}: {}", self.text()))
    }

    /// The message of a vendor's error.
    pub fn error(&self) -> String {
        let json = self.json();
        let message = json.pointer("/error/message").or_else(|| json.get("message"));
        format!("{} {}", self.status, message.and_then(Value::as_str).unwrap())
    }

    /// The data of the stream's events; of a Bedrock exception with its type.
    pub fn events(&self) -> Vec<Value> {
        if self.head.contains("eventstream") {
            return frames(&self.body).into_iter().map(|(headers, data)| frame_data(&headers, &data)).collect();
        }
        let text = self.text().replace("\r\n", "\n").replace('\r', "\n");
        let data = text.lines().filter_map(|line| line.strip_prefix("data: ")).filter(|data| *data != "[DONE]");
        data.map(|data| serde_json::from_str(data).unwrap()).collect()
    }

    /// Everything that a stream's deltas say, joined; a Gemini call's arguments are among it.
    pub fn said(&self) -> String {
        let fields = [
            "/delta/text",
            "/delta/thinking",
            "/delta/partial_json",
            "/delta",
            "/choices/0/delta/content",
            "/choices/0/delta/reasoning_content",
            "/choices/0/delta/tool_calls/0/function/arguments",
            "/candidates/0/content/parts/0/text",
            "/candidates/0/content/parts/0/functionCall/args",
        ];
        let events = self.events();
        let texts = events.iter().flat_map(|event| fields.iter().filter_map(|field| event.pointer(field)));
        let text = |value: &Value| match value {
            Value::String(text) => text.clone(),
            Value::Object(object) if object.contains_key("path") => value.to_string(),
            _ => String::new(),
        };
        texts.map(text).collect()
    }
}

type Headers = Vec<(String, String)>;

/// The frames of an AWS event stream: headers and payload, up to where the bytes end.
pub fn frames(mut bytes: &[u8]) -> Vec<(Headers, Vec<u8>)> {
    let number = |bytes: &[u8]| bytes.iter().fold(0, |n, b| n << 8 | usize::from(*b));
    let mut frames = Vec::new();
    while bytes.len() >= 12 {
        let (all, head) = (number(&bytes[..4]), number(&bytes[4..8]));
        if bytes.len() < all {
            break;
        }
        let crc = |part: &[u8]| {
            let mut crc = flate2::Crc::new();
            crc.update(part);
            crc.sum() as usize
        };
        assert_eq!(number(&bytes[8..12]), crc(&bytes[..8]), "the prelude's checksum");
        assert_eq!(number(&bytes[all - 4..all]), crc(&bytes[..all - 4]), "the frame's checksum");
        let (mut rest, mut headers) = (&bytes[12..12 + head], Vec::new());
        while let Some((&length, tail)) = rest.split_first() {
            let (name, tail) = tail.split_at(length.into());
            assert_eq!(tail[0], 7, "a text");
            let (value, tail) = tail[3..].split_at(number(&tail[1..3]));
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
            headers.push((text(name), text(value)));
            rest = tail;
        }
        frames.push((headers, bytes[12 + head..all - 4].to_vec()));
        bytes = &bytes[all..];
    }
    frames
}

fn frame_data(headers: &Headers, payload: &[u8]) -> Value {
    use base64::Engine;
    let payload: Value = serde_json::from_slice(payload).unwrap();
    match headers.iter().find(|(name, _)| name == ":exception-type") {
        Some((_, kind)) => json!({"exception": kind, "message": payload["message"]}),
        None => {
            let data = base64::engine::general_purpose::STANDARD.decode(payload["bytes"].as_str().unwrap()).unwrap();
            serde_json::from_slice(&data).unwrap()
        }
    }
}

/// A conversation of any protocol, grown turn by turn as a client would.
#[derive(Clone)]
pub struct Talk {
    pub path: &'static str,
    pub messages: Vec<Value>,
    pub tools: Vec<&'static str>,
    pub stream: bool,
}

impl Talk {
    pub fn new(path: &'static str, prompt: &str) -> Talk {
        let mut talk = Talk { path, messages: vec![], tools: vec!["read", "edit", "bash"], stream: true };
        talk.say(prompt);
        talk
    }

    /// Adds what a person says.
    pub fn say(&mut self, text: &str) {
        self.messages.push(match self.path {
            GEMINI => json!({"role": "user", "parts": [{"text": text}]}),
            _ => json!({"role": "user", "content": text}),
        });
    }

    fn is_messages(&self) -> bool {
        matches!(self.path, ANTHROPIC | BEDROCK | VERTEX)
    }

    pub fn body(&self) -> Value {
        let schema = json!({"type": "object"});
        let tool = |name: &&str| match self.path {
            RESPONSES => json!({"type": "function", "name": name, "parameters": schema}),
            GEMINI => json!({"name": name, "parametersJsonSchema": schema}),
            OPENAI => json!({"type": "function", "function": {"name": name, "parameters": schema}}),
            _ => json!({"name": name, "description": "d", "input_schema": schema}),
        };
        let tools: Vec<Value> = self.tools.iter().map(tool).collect();
        let (messages, stream) = (&self.messages, self.stream);
        match self.path {
            RESPONSES => json!({"model": "m", "stream": stream, "store": false, "input": messages, "tools": tools}),
            GEMINI => json!({"contents": messages, "tools": [{"functionDeclarations": tools}]}),
            BEDROCK => {
                json!({"anthropic_version": "bedrock-2023-05-31", "max_tokens": 100, "messages": messages, "tools": tools})
            }
            VERTEX => json!({"anthropic_version": "vertex-2023-10-16", "max_tokens": 100, "stream": stream,
                "messages": messages, "tools": tools}),
            _ => json!({"model": "m", "max_tokens": 100, "stream": stream, "messages": messages, "tools": tools}),
        }
    }

    pub fn ask(&self, server: &Server) -> Answer {
        let path = if self.stream { self.path } else { whole_path(self.path) };
        post(server, path, &self.body())
    }

    /// Asks without streaming and takes the reply into the conversation.
    pub fn turn(&mut self, server: &Server) -> Value {
        let answer = Talk { stream: false, ..self.clone() }.ask(server);
        assert_eq!(answer.status, 200, "{}", answer.text());
        let json = answer.json();
        if self.path == RESPONSES {
            self.messages.extend(json["output"].as_array().unwrap().iter().cloned());
            return json["output"].clone();
        }
        let message = match self.path {
            GEMINI => json["candidates"][0]["content"].clone(),
            OPENAI => json["choices"][0]["message"].clone(),
            _ => json!({"role": "assistant", "content": json["content"]}),
        };
        self.messages.push(message.clone());
        message
    }

    /// Answers the calls of the last reply, all alike.
    pub fn results(&mut self, text: &str, is_error: bool) {
        let last = self.messages.last().unwrap().clone();
        if self.is_messages() {
            let ids = last["content"].as_array().unwrap().iter().filter_map(|block| block["id"].as_str());
            let result = |id| json!({"type": "tool_result", "tool_use_id": id, "content": text, "is_error": is_error});
            let results: Vec<Value> = ids.map(result).collect();
            self.messages.push(json!({"role": "user", "content": results}));
            return;
        }
        match self.path {
            GEMINI => {
                let key = if is_error { "error" } else { "output" };
                let calls = last["parts"].as_array().unwrap().iter().filter_map(|part| part.get("functionCall"));
                let response = |call: &Value| {
                    let response = json!({"id": call["id"], "name": call["name"], "response": {key: text}});
                    json!({"functionResponse": response})
                };
                let parts: Vec<Value> = calls.map(response).collect();
                self.messages.push(json!({"role": "user", "parts": parts}));
            }
            RESPONSES => {
                let outputs = self.messages.iter().filter(|item| item["type"] == "function_call_output");
                let answered: Vec<Value> = outputs.map(|item| item["call_id"].clone()).collect();
                let calls = self.messages.iter().filter(|item| item["type"] == "function_call");
                let open = calls.filter(|call| !answered.contains(&call["call_id"]));
                let output =
                    |call: &Value| json!({"type": "function_call_output", "call_id": call["call_id"], "output": text});
                let outputs: Vec<Value> = open.map(output).collect();
                self.messages.extend(outputs);
            }
            _ => {
                for call in last["tool_calls"].as_array().unwrap() {
                    self.messages.push(json!({"role": "tool", "tool_call_id": call["id"], "content": text}));
                }
            }
        }
    }
}
