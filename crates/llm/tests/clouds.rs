//! The Messages API behind Bedrock and Vertex, over a connection: what arrives there is what was signed.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_util::StreamExt;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use windlass_kernel::{ContentBlock, Message, ModelFailure, Parameters};
use windlass_llm::{
    ApiKey, Auth, AwsKeys, Endpoint, Http, HttpOptions, Memo, ModelEvent, Request, SystemSection, WireProtocol, connect,
};

const SECRET: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";

const EVENTS: [&str; 6] = [
    r#"{"type":"message_start","message":{"id":"msg_1","model":"large-1","usage":{"input_tokens":3,"output_tokens":0}}}"#,
    r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello."}}"#,
    r#"{"type":"content_block_stop","index":0}"#,
    r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}"#,
    r#"{"type":"message_stop"}"#,
];

/// A request as it came over the connection.
struct Seen {
    path: String,
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

/// Serves one request with `answer` and gives the server's address and what was asked.
async fn serve(kind: &'static str, answer: Vec<u8>) -> (String, tokio::task::JoinHandle<Seen>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let served = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut bytes = vec![];
        let seen = loop {
            assert_ne!(socket.read_buf(&mut bytes).await.unwrap(), 0, "the request ended early");
            if let Some(seen) = parse(&bytes) {
                break seen;
            }
        };
        let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n", answer.len());
        socket.write_all(head.as_bytes()).await.unwrap();
        socket.write_all(&answer).await.unwrap();
        seen
    });
    (address, served)
}

/// The request, if all of it is there.
fn parse(bytes: &[u8]) -> Option<Seen> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&bytes[..end]).unwrap();
    let (first, rest) = head.split_once("\r\n").unwrap();
    let header = |line: &str| line.split_once(':').map(|(name, value)| (name.to_lowercase(), value.trim().to_owned()));
    let headers: BTreeMap<String, String> = rest.lines().filter_map(header).collect();
    let body = &bytes[end + 4..];
    let is_whole = body.len() == headers["content-length"].parse::<usize>().unwrap();
    let path = first.split(' ').nth(1).unwrap().to_owned();
    is_whole.then(|| Seen { path, headers, body: body.to_vec() })
}

fn frame(event: &str) -> Vec<u8> {
    let payload = format!(r#"{{"bytes":"{}"}}"#, STANDARD.encode(event));
    let mut head = vec![];
    for (name, value) in [(":event-type", "chunk"), (":message-type", "event")] {
        head.extend([name.len() as u8]);
        head.extend(name.as_bytes());
        head.extend([7, 0, value.len() as u8]);
        head.extend(value.as_bytes());
    }
    let number = |length: usize| (length as u32).to_be_bytes();
    let mut frame = [number(16 + head.len() + payload.len()), number(head.len())].concat();
    frame.extend(checksum(&frame).to_be_bytes());
    frame.extend(head);
    frame.extend(payload.as_bytes());
    frame.extend(checksum(&frame).to_be_bytes());
    frame
}

fn checksum(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| sum >> 1 ^ if sum & 1 == 1 { 0xedb8_8320 } else { 0 })
    })
}

fn request() -> Request {
    let text = "A long prompt, so that the body goes out in several pieces. ".repeat(400);
    Request {
        system: [SystemSection { name: "base".into(), text, fixed: true }].into(),
        messages: vec![Arc::new(Message::user(vec![ContentBlock::text("Hi, grün? ".repeat(2_000))]))],
        tools: [].into(),
        parameters: Parameters { max_tokens: 100, ..Parameters::default() },
        output_schema: None,
        cache_key: "session-1".into(),
        blobs: Arc::default(),
        memo: Memo::default(),
    }
}

async fn hear(protocol: WireProtocol, endpoint: Endpoint, model: &str) -> Result<String, ModelFailure> {
    let http = Http::new(HttpOptions::default()).unwrap();
    let mut stream = connect(protocol, http, endpoint, model).call(request());
    let mut text = String::new();
    while let Some(batch) = stream.next().await {
        for event in batch? {
            if let ModelEvent::BlockFinished { block, .. } = event {
                text += &Message::assistant(vec![block]).text();
            }
        }
    }
    Ok(text)
}

/// HMAC with SHA-256, by its definition.
fn hmac(key: &[u8], message: &str) -> Vec<u8> {
    let mut block = [0; 64];
    block[..key.len()].copy_from_slice(key);
    let inner = Sha256::new().chain_update(block.map(|byte| byte ^ 0x36)).chain_update(message).finalize();
    Sha256::new().chain_update(block.map(|byte| byte ^ 0x5c)).chain_update(inner).finalize().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The signature that AWS would compute from what it sees, by the description of Signature Version 4.
fn signature(seen: &Seen, scope: &str, signed: &str) -> String {
    let headers: String = signed.split(';').map(|name| format!("{name}:{}\n", seen.headers[name])).collect();
    let path = seen.path.replace('%', "%25");
    let asked = format!("POST\n{path}\n\n{headers}\n{signed}\n{}", hex(&Sha256::digest(&seen.body)));
    let to_sign =
        format!("AWS4-HMAC-SHA256\n{}\n{scope}\n{}", seen.headers["x-amz-date"], hex(&Sha256::digest(&asked)));
    let first = hmac(format!("AWS4{SECRET}").as_bytes(), scope.split('/').next().unwrap());
    let key = scope.split('/').skip(1).fold(first, |key, part| hmac(&key, part));
    hex(&hmac(&key, &to_sign))
}

#[tokio::test]
async fn what_arrives_at_bedrock_bears_its_signature() {
    let names = [
        ("anthropic.claude-haiku-4-5-20251001-v1:0", "/model/anthropic.claude-haiku-4-5-20251001-v1%3A0/"),
        ("arn:aws:bedrock:a:1:inference-profile/b", "/model/arn%3Aaws%3Abedrock%3Aa%3A1%3Ainference-profile%2Fb/"),
    ];
    for (model, path) in names {
        let answer = EVENTS.iter().flat_map(|event| frame(event)).collect();
        let (base_url, served) = serve("application/vnd.amazon.eventstream", answer).await;
        let auth = Auth::Aws(AwsKeys {
            access_key_id: "AKIDEXAMPLE".into(),
            secret_access_key: SECRET.into(),
            session_token: Some("a/session+token=".into()),
            region: "eu-central-1".into(),
        });
        let endpoint = Endpoint { provider: "bedrock".into(), base_url, auth, ..Endpoint::default() };
        assert_eq!(hear(WireProtocol::Bedrock, endpoint, model).await.unwrap(), "Hello.");
        let seen = served.await.unwrap();
        assert_eq!(seen.path, format!("{path}invoke-with-response-stream"));
        assert_eq!(seen.headers["x-amz-security-token"], "a/session+token=");
        let parts: Vec<&str> =
            seen.headers["authorization"].split([' ', ',', '=']).filter(|part| !part.is_empty()).collect();
        let ["AWS4-HMAC-SHA256", "Credential", credential, "SignedHeaders", signed, "Signature", found] = parts[..]
        else {
            panic!("{parts:?}")
        };
        let (id, scope) = credential.split_once('/').unwrap();
        assert_eq!(id, "AKIDEXAMPLE");
        assert!(scope.ends_with("/eu-central-1/bedrock/aws4_request"), "{scope}");
        assert_eq!(signed, "accept;content-type;host;x-amz-date;x-amz-security-token");
        assert_eq!(signature(&seen, scope, signed), found);
    }
}

#[tokio::test]
async fn a_key_to_bedrock_is_a_bearer() {
    let (base_url, served) =
        serve("application/vnd.amazon.eventstream", EVENTS.iter().flat_map(|event| frame(event)).collect()).await;
    let auth = Auth::Key(ApiKey::new("bedrock-key"));
    let endpoint = Endpoint { provider: "bedrock".into(), base_url, auth, ..Endpoint::default() };
    assert_eq!(hear(WireProtocol::Bedrock, endpoint, "m").await.unwrap(), "Hello.");
    let seen = served.await.unwrap();
    assert_eq!(seen.headers["authorization"], "Bearer bedrock-key");
    assert!(!seen.headers.contains_key("x-amz-date"));
}

#[tokio::test]
async fn vertex_is_asked_for_a_raw_stream() {
    let answer: String = EVENTS.iter().map(|event| format!("event: x\ndata: {event}\n\n")).collect();
    let (address, served) = serve("text/event-stream", Bytes::from(answer).into()).await;
    let base_url = format!("{address}/v1/projects/p/locations/global");
    let auth = Auth::Key(ApiKey::new("token"));
    let headers = vec![("anthropic-beta".to_owned(), "one".to_owned())];
    let endpoint = Endpoint { provider: "vertex".into(), base_url, auth, headers, ..Endpoint::default() };
    assert_eq!(hear(WireProtocol::Vertex, endpoint, "claude-sonnet-5@default").await.unwrap(), "Hello.");
    let seen = served.await.unwrap();
    let model = "claude-sonnet-5@default:streamRawPredict";
    assert_eq!(seen.path, format!("/v1/projects/p/locations/global/publishers/anthropic/models/{model}"));
    assert_eq!(seen.headers["authorization"], "Bearer token");
    assert_eq!(seen.headers["anthropic-beta"], "one");
}

#[tokio::test]
async fn a_header_that_cannot_be_signed_is_named() {
    let (access_key_id, region) = ("AKIDEXAMPLE".into(), "eu-central-1".into());
    let auth = Auth::Aws(AwsKeys { access_key_id, secret_access_key: SECRET.into(), session_token: None, region });
    let headers = vec![("x-team".to_owned(), "grün".to_owned())];
    let base_url = "http://127.0.0.1:1".into();
    let endpoint = Endpoint { provider: "bedrock".into(), base_url, auth, headers, ..Endpoint::default() };
    let failure = hear(WireProtocol::Bedrock, endpoint, "m").await.unwrap_err();
    insta::assert_snapshot!(failure.message, @"the request cannot be signed with the AWS key `AKIDEXAMPLE`: the header `x-team` holds more than plain ASCII: change its value");
}
