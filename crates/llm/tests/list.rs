//! Lists of models over a real connection: paths, keys, pages and refusals.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};
use windlass_kernel::FailureKind;
use windlass_llm::{ApiKey, Auth, Clocks, Endpoint, Http, HttpOptions, WireProtocol, list};

/// Answers one request after the other with `answers`, and tells the head of each.
fn serve(answers: Vec<(u16, &'static str)>) -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (tell, heads) = channel();
    std::thread::spawn(move || {
        for (status, body) in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let lines = BufReader::new(stream.try_clone().unwrap()).lines().map(Result::unwrap);
            let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
            tell.send(head.join("\n").to_lowercase()).unwrap();
            let length = body.len();
            write!(stream, "HTTP/1.1 {status} X\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}")
                .unwrap();
        }
    });
    (url, heads)
}

fn endpoint(provider: &str, base_url: String) -> Endpoint {
    Endpoint { provider: provider.into(), base_url, auth: Auth::Key(ApiKey::new("k-1")), ..Endpoint::default() }
}

fn http() -> Http {
    Http::new(HttpOptions::default()).unwrap()
}

#[tokio::test]
async fn pages_are_asked_for_until_the_last_and_each_model_is_told_once() {
    let (url, heads) = serve(vec![
        (200, r#"{"data": [{"id": "b"}, {"id": "a"}], "has_more": true, "last_id": "a"}"#),
        (200, r#"{"data": [{"id": "a"}, {"id": "c"}], "has_more": false, "last_id": "c"}"#),
    ]);
    let models = list(&http(), WireProtocol::Anthropic, endpoint("anthropic", url)).await.unwrap();
    assert_eq!(models.iter().map(|model| model.name.as_str()).collect::<Vec<_>>(), ["a", "b", "c"]);
    let (first, second) = (heads.recv().unwrap(), heads.recv().unwrap());
    assert!(first.starts_with("get /v1/models?limit=1000 "), "{first}");
    assert!(first.contains("x-api-key: k-1") && first.contains("anthropic-version: "), "{first}");
    assert!(second.starts_with("get /v1/models?limit=1000&after_id=a "), "{second}");
}

#[tokio::test]
async fn each_vendor_is_asked_at_its_path_with_its_key() {
    let cases = [
        (WireProtocol::Chat, "x", "/v1", "get /v1/models ", "authorization: bearer k-1"),
        (WireProtocol::Responses, "openai", "/v1/", "get /v1/models ", "authorization: bearer k-1"),
        (WireProtocol::Gemini, "google", "/v1beta", "get /v1beta/models?pagesize=1000 ", "x-goog-api-key: k-1"),
        (WireProtocol::Chat, "ollama", "/v1", "get /api/tags ", "accept: application/json"),
    ];
    for (protocol, provider, path, line, header) in cases {
        let (url, heads) = serve(vec![(200, r#"{"models": [{"name": "m"}]}"#)]);
        let models = list(&http(), protocol, endpoint(provider, url + path)).await.unwrap();
        assert_eq!(models.len(), 1);
        let head = heads.recv().unwrap();
        assert!(head.starts_with(line) && head.contains(header), "{head}");
    }
}

#[tokio::test]
async fn what_fails_says_why() {
    let ask = |status, body| async move {
        let (url, _heads) = serve(vec![(status, body)]);
        list(&http(), WireProtocol::Chat, endpoint("x", url)).await.unwrap_err()
    };
    let refused = ask(401, r#"{"error": {"message": "bad key"}}"#).await;
    assert_eq!((refused.kind, refused.status), (FailureKind::Auth, Some(401)));
    assert!(refused.message.contains("bad key"), "{}", refused.message);
    let page = ask(200, "<html>").await;
    assert!(page.message.contains("cannot be read"), "{}", page.message);
    let other = ask(200, r#"{"hello": 1}"#).await;
    assert!(other.message.contains("no list of models: check the base URL"), "{}", other.message);
    let none = list(&http(), WireProtocol::Bedrock, endpoint("bedrock", "https://h".into())).await.unwrap_err();
    assert!(none.message.contains("bedrock lists no models"), "{}", none.message);
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let clocks = Clocks { headers_ms: 50, ..Clocks::default() };
    let hasty = Http::new(HttpOptions { clocks, ..HttpOptions::default() }).unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let stalled = list(&hasty, WireProtocol::Chat, endpoint("x", url)).await.unwrap_err();
    assert_eq!(stalled.kind, FailureKind::Stalled);
}
