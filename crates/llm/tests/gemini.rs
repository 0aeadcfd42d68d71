//! A Gemini call over a real connection to loopback.

use futures_util::StreamExt;
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use windlass_kernel::{ContentBlock, FailureKind, Message, ModelFailure, Parameters, StopReason};
use windlass_llm::{ApiKey, Auth, Endpoint, Http, HttpOptions, Memo, ModelEvent, Request, WireProtocol, connect};

const CALLS: &str = include_str!("../streams/gemini/calls.sse");

/// Answers one request and closes; gives the base URL and, at its end, the request's head.
fn serve(status: &str, kind: &str, body: &str) -> (String, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}/v1beta", listener.local_addr().unwrap());
    let answer = format!("HTTP/1.1 {status}\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n{body}");
    let server = thread::spawn(move || {
        let (connection, _) = listener.accept().unwrap();
        let mut reader = BufReader::new(&connection);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert_ne!(reader.read_line(&mut head).unwrap(), 0, "the request ended within its head");
        }
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap().parse().unwrap();
        reader.read_exact(&mut vec![0; length]).unwrap();
        (&connection).write_all(answer.as_bytes()).unwrap();
        head
    });
    (base, server)
}

async fn call(base_url: String) -> Vec<Result<ModelEvent, ModelFailure>> {
    let endpoint = Endpoint {
        provider: "google".into(),
        base_url,
        auth: Auth::Key(ApiKey::new("secret-key")),
        key_hint: "GEMINI_API_KEY".into(),
        ..Endpoint::default()
    };
    let http = Http::new(HttpOptions::default()).unwrap();
    let request = Request {
        system: [].into(),
        messages: vec![Arc::new(Message::user(vec![ContentBlock::text("Hi")]))],
        tools: [].into(),
        parameters: Parameters { max_tokens: 100, ..Parameters::default() },
        output_schema: None,
        cache_key: String::new(),
        blobs: Arc::new(HashMap::new()),
        memo: Memo::default(),
    };
    let batches = connect(WireProtocol::Gemini, http, endpoint, "gemini-3.8-flash").call(request);
    let told = batches.flat_map(|batch| {
        futures_util::stream::iter(match batch {
            Ok(events) => events.into_iter().map(Ok).collect(),
            Err(failure) => vec![Err(failure)],
        })
    });
    told.collect().await
}

#[tokio::test]
async fn a_message_ends_with_its_connection() {
    let (base, server) = serve("200 OK", "text/event-stream", CALLS);
    let events = call(base).await;
    let head = server.join().unwrap();
    assert!(
        head.starts_with("POST /v1beta/models/gemini-3.8-flash:streamGenerateContent?alt=sse HTTP/1.1\r\n"),
        "{head}"
    );
    assert!(head.contains("x-goog-api-key: secret-key\r\n"), "{head}");
    let last = events.last().unwrap().as_ref().unwrap();
    assert!(matches!(last, ModelEvent::Finished { stop: StopReason::ToolUse, .. }), "{last:?}");
}

#[tokio::test]
async fn a_stream_without_its_last_chunk_is_cut() {
    let (cut, _) = CALLS.rsplit_once("data: ").unwrap();
    let (base, server) = serve("200 OK", "text/event-stream", cut);
    let failure = call(base).await.pop().unwrap().unwrap_err();
    server.join().unwrap();
    assert_eq!(failure.kind, FailureKind::Transient);
    assert!(failure.message.contains("ended before the message was whole"), "{failure:?}");
}

#[tokio::test]
async fn a_wrong_key_is_told_as_such() {
    let body = r#"{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID"}]}}"#;
    let (base, server) = serve("400 Bad Request", "application/json", body);
    let failure = call(base).await.pop().unwrap().unwrap_err();
    server.join().unwrap();
    assert_eq!((failure.kind, failure.status), (FailureKind::Auth, Some(400)));
    assert!(failure.message.contains("check the key in GEMINI_API_KEY"), "{}", failure.message);
}
