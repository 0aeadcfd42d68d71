//! The floor under every figure of `cargo xtask bench`: the least an agent can do and still talk to a model.
//!
//! `floor URL [--sessions N] PROMPT` speaks the streaming Messages protocol and offers one tool, `read`. No log, no
//! permissions, no retry. The request's body only grows at its end, and nothing in it is written twice. With many
//! sessions `{sid}` in the prompt is each session's number.

use bytes::{Buf, Bytes, BytesMut};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{Request, Response, body::Incoming};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use std::borrow::Cow;
use std::error::Error;
use tokio::net::TcpStream;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// What stands in the body before the messages.
const OPENING: &str = r#"{"model":"mock","max_tokens":8192,"stream":true,"tools":[{"name":"read","description":"Reads a file.","input_schema":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}],"messages":["#;
const ENDING: &[u8] = b"]}";

fn main() -> Outcome<()> {
    let mut sessions = 1;
    let mut words = Vec::new();
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--sessions" => sessions = args.next().ok_or("--sessions wants a number")?.parse()?,
            _ => words.push(arg),
        }
    }
    let [url, prompt] = words.as_slice() else { return Err("say: floor URL [--sessions N] PROMPT".into()) };
    let address = url.trim_start_matches("http://").trim_end_matches('/').to_string();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let local = tokio::task::LocalSet::new();
    let answer = local.block_on(&runtime, async {
        let mut started = Vec::new();
        for n in 0..sessions {
            // One after the other: more at once than a listener's queue holds would wait for a second.
            let socket = TcpStream::connect(&address).await?;
            let session = converse(socket, address.clone(), prompt.replace("{sid}", &n.to_string()));
            started.push(tokio::task::spawn_local(async { session.await.map_err(|error| error.to_string()) }));
        }
        let mut answer = String::new();
        for session in started {
            answer = session.await??;
        }
        Ok::<_, Box<dyn Error>>(answer)
    })?;
    println!("{answer}");
    Ok(())
}

/// One prompt to its final text, over one connection.
async fn converse(socket: TcpStream, address: String, prompt: String) -> Outcome<String> {
    socket.set_nodelay(true)?;
    let (mut sender, connection) = handshake(TokioIo::new(socket)).await?;
    tokio::task::spawn_local(connection);
    let mut body = BytesMut::from(OPENING);
    body.extend_from_slice(br#"{"role":"user","content":"#);
    body.extend_from_slice(&serde_json::to_vec(&prompt)?);
    body.extend_from_slice(b"}");
    loop {
        let reply = read_reply(send(&mut sender, &address, &body).await?).await?;
        if reply.calls.is_empty() {
            return Ok(reply.text);
        }
        append_round(&mut body, &reply)?;
    }
}

async fn send(sender: &mut SendRequest<Full<Bytes>>, address: &str, body: &BytesMut) -> Outcome<Response<Incoming>> {
    let mut whole = Vec::with_capacity(body.len() + ENDING.len());
    whole.extend_from_slice(body);
    whole.extend_from_slice(ENDING);
    let request = Request::post("/v1/messages")
        .header("host", address)
        .header("content-type", "application/json")
        .header("anthropic-version", "2023-06-01")
        .header("x-api-key", "none")
        .body(Full::new(Bytes::from(whole)))?;
    sender.ready().await?;
    let response = sender.send_request(request).await?;
    match response.status().is_success() {
        true => Ok(response),
        false => Err(format!("the model answers {}", response.status()).into()),
    }
}

#[derive(Default)]
struct Reply {
    text: String,
    calls: Vec<Call>,
}

#[derive(Default)]
struct Call {
    id: String,
    name: String,
    arguments: String,
}

async fn read_reply(mut response: Response<Incoming>) -> Outcome<Reply> {
    let mut reply = Reply::default();
    let mut pending = BytesMut::new();
    while let Some(frame) = response.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        pending.extend_from_slice(&data);
        while let Some(end) = pending.iter().position(|byte| *byte == b'\n') {
            if let Some(event) = pending[..end].strip_prefix(b"data: ") {
                reply.take(serde_json::from_slice(event)?);
            }
            pending.advance(end + 1);
        }
    }
    Ok(reply)
}

/// Just what of an event changes the reply.
#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow)]
    content_block: Option<Opened<'a>>,
    #[serde(borrow)]
    delta: Option<Delta<'a>>,
}

#[derive(Deserialize)]
struct Opened<'a> {
    #[serde(borrow)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow)]
    text: Option<Cow<'a, str>>,
    #[serde(borrow)]
    partial_json: Option<Cow<'a, str>>,
}

impl Reply {
    fn take(&mut self, event: Event) {
        if let Some(Opened { id: Some(id), name: Some(name) }) = event.content_block {
            self.calls.push(Call { id: id.into_owned(), name: name.into_owned(), arguments: String::new() });
        }
        let Some(delta) = event.delta else { return };
        if let Some(text) = delta.text {
            self.text.push_str(&text);
        }
        if let (Some(piece), Some(call)) = (delta.partial_json, self.calls.last_mut()) {
            call.arguments.push_str(&piece);
        }
    }
}

#[derive(Deserialize)]
struct Arguments {
    path: String,
}

/// Runs the reply's calls and adds both messages to the body.
fn append_round(body: &mut BytesMut, reply: &Reply) -> Outcome<()> {
    let (mut uses, mut results) = (Vec::new(), Vec::new());
    for Call { id, name, arguments } in &reply.calls {
        let id = serde_json::to_string(id)?;
        let Arguments { path } = serde_json::from_str(arguments)?;
        let content = std::fs::read_to_string(&path).unwrap_or_else(|error| format!("{path}: {error}"));
        uses.push(format!(r#"{{"type":"tool_use","id":{id},"name":"{name}","input":{arguments}}}"#));
        let content = serde_json::to_string(&content)?;
        results.push(format!(r#"{{"type":"tool_result","tool_use_id":{id},"content":{content}}}"#));
    }
    for (role, blocks) in [("assistant", uses), ("user", results)] {
        body.extend_from_slice(format!(r#",{{"role":"{role}","content":["#).as_bytes());
        body.extend_from_slice(blocks.join(",").as_bytes());
        body.extend_from_slice(ENDING);
    }
    Ok(())
}
