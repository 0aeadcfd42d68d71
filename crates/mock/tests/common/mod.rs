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
        format!("{} {}", self.status, self.json()["error"]["message"].as_str().unwrap())
    }

    /// The data of the stream's events.
    pub fn events(&self) -> Vec<Value> {
        let text = self.text().replace("\r\n", "\n");
        let data = text.lines().filter_map(|line| line.strip_prefix("data: ")).filter(|data| *data != "[DONE]");
        data.map(|data| serde_json::from_str(data).unwrap()).collect()
    }

    /// Everything that an Anthropic stream's or an OpenAI stream's deltas say, joined.
    pub fn said(&self) -> String {
        let fields = [
            "/delta/text",
            "/delta/thinking",
            "/delta/partial_json",
            "/choices/0/delta/content",
            "/choices/0/delta/reasoning_content",
            "/choices/0/delta/tool_calls/0/function/arguments",
        ];
        let events = self.events();
        let texts = events.iter().flat_map(|event| fields.iter().filter_map(|field| event.pointer(field)?.as_str()));
        texts.collect()
    }
}

/// A conversation of either protocol, grown turn by turn as a client would.
#[derive(Clone)]
pub struct Talk {
    pub path: &'static str,
    pub messages: Vec<Value>,
    pub tools: Vec<&'static str>,
    pub stream: bool,
}

impl Talk {
    pub fn new(path: &'static str, prompt: &str) -> Talk {
        let messages = vec![json!({"role": "user", "content": prompt})];
        Talk { path, messages, tools: vec!["read", "edit", "bash"], stream: true }
    }

    pub fn body(&self) -> Value {
        let tool = |name: &&str| match self.path {
            ANTHROPIC => json!({"name": name, "description": "d", "input_schema": {"type": "object"}}),
            _ => json!({"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}),
        };
        let tools: Vec<Value> = self.tools.iter().map(tool).collect();
        json!({"model": "m", "max_tokens": 100, "stream": self.stream, "messages": self.messages, "tools": tools})
    }

    pub fn ask(&self, server: &Server) -> Answer {
        post(server, self.path, &self.body())
    }

    /// Asks without streaming and takes the reply into the conversation.
    pub fn turn(&mut self, server: &Server) -> Value {
        let answer = Talk { stream: false, ..self.clone() }.ask(server);
        assert_eq!(answer.status, 200, "{}", answer.text());
        let message = match self.path {
            ANTHROPIC => json!({"role": "assistant", "content": answer.json()["content"]}),
            _ => answer.json()["choices"][0]["message"].clone(),
        };
        self.messages.push(message.clone());
        message
    }

    /// Answers the calls of the last reply, all alike.
    pub fn results(&mut self, text: &str, is_error: bool) {
        let last = self.messages.last().unwrap().clone();
        if self.path == ANTHROPIC {
            let ids = last["content"].as_array().unwrap().iter().filter_map(|block| block["id"].as_str());
            let result = |id| json!({"type": "tool_result", "tool_use_id": id, "content": text, "is_error": is_error});
            let results: Vec<Value> = ids.map(result).collect();
            self.messages.push(json!({"role": "user", "content": results}));
            return;
        }
        for call in last["tool_calls"].as_array().unwrap() {
            self.messages.push(json!({"role": "tool", "tool_call_id": call["id"], "content": text}));
        }
    }
}
