//! Searches against a server on loopback that speaks the three shapes.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;
use windlass_web::{Backend, Found, Key, Search, SearchError};

/// Answers one request and gives back what it was.
fn serve(answer: String) -> (String, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/api/", listener.local_addr().unwrap());
    let thread = std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let request = read(&stream);
        (&stream).write_all(answer.as_bytes()).unwrap();
        request
    });
    (address, thread)
}

fn read(stream: &TcpStream) -> String {
    let (mut reader, mut head, mut length) = (BufReader::new(stream), String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
        head += &line;
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    head.replace('\r', "") + &String::from_utf8(body).unwrap()
}

fn answer(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
}

fn search(backend: Backend, base: &str, key: Key) -> Search {
    let base_url = Search::base(base).unwrap();
    Search { backend, base_url, key, proxy: None, user_agent: "test".into(), total_ms: 30_000 }
}

/// What was found, and what the server was asked.
async fn ask(backend: Backend, key: Key, answer: String) -> (Result<Vec<Found>, SearchError>, String) {
    let (base, asked) = serve(answer);
    let found = search(backend, &base, key).search("rust & webs", 2).await;
    (found, asked.join().unwrap())
}

fn rows(found: Result<Vec<Found>, SearchError>) -> Vec<String> {
    found.unwrap().into_iter().map(|one| format!("{} | {} | {}", one.title, one.url, one.snippet)).collect()
}

fn key() -> Key {
    Key::Text("sk-1".into())
}

#[tokio::test]
async fn searxng_is_asked_for_json() {
    let body = r#"{"query": "x", "results": [
        {"title": "One", "url": "https://one.example/", "content": "first", "engine": "e"},
        {"title": "Script", "url": "javascript:alert(1)", "content": ""},
        {"title": "Two", "url": "https://two.example/"},
        {"title": "Three", "url": "https://three.example/", "content": "third"}]}"#;
    let (found, asked) = ask(Backend::Searxng, Key::None, answer("200 OK", "", body)).await;
    assert_eq!(rows(found), ["One | https://one.example/ | first", "Two | https://two.example/ | "]);
    assert!(asked.starts_with("GET /api/search?q=rust+%26+webs&format=json HTTP/1.1\n"), "{asked}");
    assert!(!asked.to_ascii_lowercase().contains("authorization"), "{asked}");
}

#[tokio::test]
async fn brave_gets_its_token() {
    let body = r#"{"web": {"results": [{"title": "One", "url": "https://one.example/", "description": "a <strong>b</strong> &amp; c"}]}}"#;
    let (found, asked) = ask(Backend::Brave, key(), answer("200 OK", "", body)).await;
    assert_eq!(rows(found), ["One | https://one.example/ | a b & c"]);
    assert!(asked.starts_with("GET /api/web/search?q=rust+%26+webs&count=2 HTTP/1.1\n"), "{asked}");
    assert!(asked.contains("x-subscription-token: sk-1\n"), "{asked}");
}

#[tokio::test]
async fn tavily_is_posted_to_with_a_key_that_a_command_prints() {
    let source = Key::Source(Arc::new(|| Box::pin(async { Ok("sk-2".to_owned()) })));
    let body = r#"{"results": [{"title": "One", "url": "https://one.example/", "content": "first", "score": 0.9}]}"#;
    let (found, asked) = ask(Backend::Tavily, source, answer("200 OK", "", body)).await;
    assert_eq!(rows(found), ["One | https://one.example/ | first"]);
    assert!(asked.starts_with("POST /api/search HTTP/1.1\n"), "{asked}");
    assert!(asked.contains("authorization: Bearer sk-2\n"), "{asked}");
    assert!(asked.ends_with(r#"{"query":"rust & webs","max_results":2}"#), "{asked}");
}

async fn failure(status: &str, headers: &str, body: &str) -> SearchError {
    ask(Backend::Brave, key(), answer(status, headers, body)).await.0.unwrap_err()
}

#[tokio::test]
async fn failures_say_what_can_be_done() {
    assert!(matches!(failure("401 Unauthorized", "", "").await, SearchError::Key(_)));
    let limited = failure("429 Too Many Requests", "retry-after: 3\r\n", "").await;
    assert_eq!(limited, SearchError::Limited { retry_after_ms: Some(3000) });
    assert_eq!(limited.to_string(), "too many searches; the next may be made in 3 s");
    let limited = failure("429 Too Many Requests", "retry-after: soon\r\n", "").await;
    assert_eq!(limited, SearchError::Limited { retry_after_ms: None });
    assert!(matches!(failure("503 Service Unavailable", "", "").await, SearchError::Unavailable(_)));
    assert!(matches!(failure("422 Unprocessable", "", "").await, SearchError::Refused(_)));
    // A key goes nowhere but to the host it was given for.
    assert!(matches!(failure("302 Found", "location: http://evil.example/\r\n", "").await, SearchError::Refused(_)));
    let malformed = failure("200 OK", "", "<html>").await.to_string();
    assert!(malformed.starts_with("the search failed: the answer of Brave can't be read"), "{malformed}");
}

#[tokio::test]
async fn nobody_there_and_no_key_are_told_apart() {
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let failure = search(Backend::Searxng, &format!("http://{gone}"), Key::None).search("x", 1).await.unwrap_err();
    assert!(matches!(failure, SearchError::Unavailable(_)), "{failure:?}");
    let missing = Key::Missing("BRAVE_API_KEY is not set".into());
    let failure = search(Backend::Brave, &format!("http://{gone}"), missing).search("x", 1).await.unwrap_err();
    assert!(failure.to_string().contains("BRAVE_API_KEY is not set"), "{failure}");
    assert!(!format!("{:?}", key()).contains("sk-1"));
    assert!(Search::base("localhost:8888").unwrap_err().contains("write one like http://127.0.0.1:8888"));
}
