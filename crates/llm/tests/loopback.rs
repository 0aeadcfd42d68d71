//! Calls over real connections to a small server on loopback.

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use http_body_util::{BodyExt, Full, StreamBody, combinators::BoxBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use windlass_kernel::{ContentBlock, FailureKind, Message, ModelFailure, Parameters};
use windlass_llm::{
    ApiKey, Auth, Clocks, Delta, Endpoint, Http, HttpOptions, KeySource, Memo, Model, ModelEvent, ModelStream,
    WireProtocol, connect,
};

const MESSAGE: &str = concat!(
    "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"model\":\"large-1\"}}\n\n",
    "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
    "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Hi\"}}\n\n",
    "data: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
    "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":1}}\n\n",
    "data: {\"type\":\"message_stop\"}\n\n",
);

const CHUNKS: &str = concat!(
    "data: {\"id\":\"c\",\"model\":\"large-1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"}}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
    "data: [DONE]\n\n",
);

type Answer = Response<BoxBody<Bytes, io::Error>>;

/// What the server saw of a request.
#[derive(Debug)]
struct Seen {
    path: String,
    headers: http::HeaderMap,
    body: Bytes,
}

struct Server {
    base: String,
    connections: Arc<AtomicUsize>,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Server {
    /// A server that answers every request with what `answer` makes.
    async fn start(answer: impl Fn() -> Answer + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let (connections, seen) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
        let server = Server { base, connections: connections.clone(), seen: seen.clone() };
        let answer = Arc::new(answer);
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                connections.fetch_add(1, Ordering::SeqCst);
                let (answer, seen) = (answer.clone(), seen.clone());
                let service = service_fn(move |request: Request<Incoming>| {
                    let (answer, seen) = (answer.clone(), seen.clone());
                    async move {
                        let (head, body) = request.into_parts();
                        let body = body.collect().await?.to_bytes();
                        seen.lock().unwrap().push(Seen { path: head.uri.path().into(), headers: head.headers, body });
                        Ok::<_, hyper::Error>(answer())
                    }
                });
                let mut server = hyper::server::conn::http1::Builder::new();
                tokio::spawn(server.auto_date_header(false).serve_connection(TokioIo::new(socket), service));
            }
        });
        server
    }

    fn anthropic(&self) -> Arc<dyn Model> {
        self.anthropic_with(Clocks::default())
    }

    fn anthropic_with(&self, clocks: Clocks) -> Arc<dyn Model> {
        anthropic(endpoint("anthropic", &self.base), clocks)
    }

    fn openai(&self) -> Arc<dyn Model> {
        let endpoint = endpoint("openai", &format!("{}/v1/", self.base));
        connect(WireProtocol::Chat, Http::new(HttpOptions::default()).unwrap(), endpoint, "large-1")
    }

    fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

fn endpoint(provider: &str, base_url: &str) -> Endpoint {
    Endpoint {
        provider: provider.into(),
        base_url: base_url.into(),
        auth: Auth::Key(ApiKey::new("sk-secret")),
        key_hint: "ANTHROPIC_API_KEY".into(),
        headers: vec![("x-team".into(), "blue".into())],
        ..Endpoint::default()
    }
}

fn anthropic(endpoint: Endpoint, clocks: Clocks) -> Arc<dyn Model> {
    let http = Http::new(HttpOptions { clocks, ..HttpOptions::default() }).unwrap();
    connect(WireProtocol::Anthropic, http, endpoint, "large-1")
}

fn request() -> windlass_llm::Request {
    windlass_llm::Request {
        system: [].into(),
        messages: vec![Arc::new(Message::user(vec![ContentBlock::text("Hello")]))],
        tools: [].into(),
        parameters: Parameters { max_tokens: 100, ..Parameters::default() },
        output_schema: None,
        cache_key: "session-1".into(),
        blobs: Arc::new(HashMap::new()),
        memo: Memo::default(),
    }
}

fn answer(status: u16, content_type: &str, body: BoxBody<Bytes, io::Error>) -> Answer {
    Response::builder().status(status).header("content-type", content_type).body(body).unwrap()
}

fn whole(text: &'static str) -> BoxBody<Bytes, io::Error> {
    Full::new(Bytes::from_static(text.as_bytes())).map_err(|never| match never {}).boxed()
}

/// A body that comes in pieces, each in a chunk of its own.
fn pieces(pieces: BoxStream<'static, io::Result<Bytes>>) -> BoxBody<Bytes, io::Error> {
    BodyExt::boxed(StreamBody::new(sync(pieces.map(|piece| piece.map(Frame::data)).boxed())))
}

/// Bodies must be `Sync`; a lock that nobody else holds makes a stream so.
fn sync<T: Send + 'static>(stream: BoxStream<'static, T>) -> impl futures_core::Stream<Item = T> + Send + Sync {
    let stream = Mutex::new(stream);
    stream::poll_fn(move |context| stream.lock().unwrap().poll_next_unpin(context))
}

fn events(text: &'static str) -> Answer {
    answer(200, "text/event-stream; charset=utf-8", whole(text))
}

/// The start of `MESSAGE`, up to and with its first delta, and then what `rest` brings.
fn broken_off(rest: BoxStream<'static, io::Result<Bytes>>) -> Answer {
    let end = MESSAGE.find("data: {\"type\":\"content_block_stop\"").unwrap();
    let start = stream::once(async move { Ok(Bytes::from_static(&MESSAGE.as_bytes()[..end])) });
    answer(200, "text/event-stream", pieces(start.chain(rest).boxed()))
}

/// Closes the connection in the middle of the answer, once what came before was sent.
fn cut() -> BoxStream<'static, io::Result<Bytes>> {
    let cut = async {
        tokio::task::yield_now().await;
        Err(io::Error::other("cut"))
    };
    stream::once(cut).boxed()
}

/// Everything a call brings; a test that waits for ever fails instead.
async fn all(stream: ModelStream) -> (Vec<ModelEvent>, Option<ModelFailure>) {
    let batches: Vec<_> = within(stream.collect()).await;
    let (mut events, mut failure) = (Vec::new(), None);
    for batch in batches {
        assert!(failure.is_none(), "something came after a failure");
        match batch {
            Ok(batch) => events.extend(batch),
            Err(error) => failure = Some(error),
        }
    }
    (events, failure)
}

async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(30), future).await.expect("the test hangs")
}

async fn failure(stream: ModelStream) -> ModelFailure {
    all(stream).await.1.expect("the call was to fail")
}

/// What `broken_off` brings before the rest.
const BEGUN: [&str; 4] = ["accepted", "started", "block started", "delta"];

fn kinds(events: &[ModelEvent]) -> Vec<&'static str> {
    let kind = |event: &ModelEvent| match event {
        ModelEvent::Accepted { .. } => "accepted",
        ModelEvent::Started { .. } => "started",
        ModelEvent::BlockStarted { .. } => "block started",
        ModelEvent::Delta { .. } => "delta",
        ModelEvent::BlockFinished { .. } => "block finished",
        ModelEvent::Finished { .. } => "finished",
    };
    events.iter().map(kind).collect()
}

fn is_finished(events: &[ModelEvent]) -> bool {
    matches!(events.last(), Some(ModelEvent::Finished { .. }))
}

#[tokio::test]
async fn one_connection_serves_successive_calls() {
    for chunked in [false, true] {
        let server = Server::start(move || match chunked {
            false => events(MESSAGE),
            true => {
                let lines = MESSAGE.split_inclusive("\n\n").map(|event| Ok(Bytes::from_static(event.as_bytes())));
                answer(200, "text/event-stream", pieces(stream::iter(lines).boxed()))
            }
        })
        .await;
        let model = server.anthropic();
        for _ in 0..10 {
            let (events, failure) = all(model.call(request())).await;
            assert_eq!(failure, None);
            assert!(is_finished(&events));
        }
        assert_eq!(server.connections(), 1);
    }
}

#[tokio::test]
async fn refusals_leave_the_connection_usable() {
    let server = Server::start(|| answer(500, "application/json", whole(r#"{"error":{"message":"oh"}}"#))).await;
    let model = server.anthropic();
    for _ in 0..3 {
        assert_eq!(failure(model.call(request())).await.message, "anthropic answered 500 Internal Server Error: oh");
    }
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn requests_have_their_headers_and_an_exact_length() {
    let server = Server::start(|| events(MESSAGE)).await;
    all(server.anthropic().call(request())).await;
    let chat = Server::start(|| events(CHUNKS)).await;
    let (events, _) = all(chat.openai().call(request())).await;
    assert!(is_finished(&events));
    let text = |seen: &Seen, name: &str| {
        seen.headers.get(name).map_or("none".into(), |value| value.to_str().unwrap().to_owned())
    };
    for (server, path, key) in
        [(&server, "/v1/messages", "x-api-key"), (&chat, "/v1/chat/completions", "authorization")]
    {
        let seen = server.seen.lock().unwrap();
        assert_eq!(seen[0].path, path);
        assert_eq!(text(&seen[0], "content-length"), seen[0].body.len().to_string());
        assert_eq!(text(&seen[0], "transfer-encoding"), "none");
        assert_eq!(text(&seen[0], "content-type"), "application/json");
        assert_eq!(text(&seen[0], "x-team"), "blue");
        assert!(text(&seen[0], "user-agent").starts_with("windlass/"));
        assert!(text(&seen[0], key).ends_with("sk-secret"));
    }
    assert_eq!(text(&server.seen.lock().unwrap()[0], "anthropic-version"), "2023-06-01");
    assert_eq!(text(&chat.seen.lock().unwrap()[0], "authorization"), "Bearer sk-secret");
}

#[tokio::test]
async fn nothing_is_sent_before_the_stream_is_polled() {
    let server = Server::start(|| events(MESSAGE)).await;
    drop(server.anthropic().call(request()));
    let (events, _) = all(server.anthropic().call(request())).await;
    assert!(is_finished(&events));
    assert_eq!(server.seen.lock().unwrap().len(), 1);
}

/// Tells when it is dropped.
struct Dropped(Option<oneshot::Sender<()>>);

impl Drop for Dropped {
    fn drop(&mut self) {
        let _ = self.0.take().unwrap().send(());
    }
}

/// A server whose answer never ends, and word of when the answer's connection is gone.
async fn endless() -> (Server, oneshot::Receiver<()>) {
    let (gone, heard) = oneshot::channel();
    let dropped = Mutex::new(Some(Dropped(Some(gone))));
    let server = Server::start(move || {
        let dropped = dropped.lock().unwrap().take();
        let never = stream::once(async move {
            let _dropped = dropped;
            std::future::pending().await
        });
        broken_off(never.boxed())
    })
    .await;
    (server, heard)
}

#[tokio::test]
async fn s0_13_s2_26_dropping_a_call_closes_its_connection() {
    let (server, gone) = endless().await;
    let mut stream = server.anthropic().call(request());
    let accepted = within(stream.next()).await.unwrap().unwrap();
    let [ModelEvent::Accepted { body_bytes }] = accepted[..] else { panic!("{accepted:?}") };
    assert_eq!(body_bytes, server.seen.lock().unwrap()[0].body.len() as u64);
    let batch = within(stream.next()).await.unwrap().unwrap();
    assert!(batch.contains(&ModelEvent::Delta { index: 0, delta: Delta::Text("Hi".into()) }));
    drop(stream);
    within(gone).await.unwrap();
}

/// Clocks of which one is short, and the others are longer than the test.
fn clocks(set: impl Fn(&mut Clocks) -> &mut u64) -> Clocks {
    let mut clocks = Clocks { connect_ms: 60_000, headers_ms: 60_000, first_event_ms: 60_000, progress_ms: 60_000 };
    *set(&mut clocks) = 50;
    clocks
}

/// The failure of a call whose message had begun, and went on with `rest`.
async fn stalled(rest: &'static [u8], clocks: Clocks) -> ModelFailure {
    let server = Server::start(move || broken_off(again_and_again(rest))).await;
    let (events, failure) = all(server.anthropic_with(clocks).call(request())).await;
    assert_eq!(kinds(&events)[..4], BEGUN, "what was heard before is told");
    let failure = failure.unwrap();
    let shown = failure.message.replace(&server.base, "");
    ModelFailure { message: shown, ..failure }
}

fn again_and_again(piece: &'static [u8]) -> BoxStream<'static, io::Result<Bytes>> {
    let pieces = stream::unfold((), move |()| async move {
        tokio::time::sleep(Duration::from_millis(5)).await;
        Some((Ok(Bytes::from_static(piece)), ()))
    });
    pieces.boxed()
}

const PING: &[u8] = b"event: ping\ndata: {\"type\":\"ping\"}\n\n";
const NO_PROGRESS: &str = "/v1/messages stalled: 50 ms passed without anything new";

#[tokio::test]
async fn silence_ends_a_call() {
    let (server, _gone) = endless().await;
    let (events, failure) = all(server.anthropic_with(clocks(|clocks| &mut clocks.progress_ms)).call(request())).await;
    assert_eq!(kinds(&events), BEGUN, "what was heard before is told");
    let failure = failure.unwrap();
    assert_eq!(failure.kind, FailureKind::Stalled);
    assert_eq!(failure.message, format!("{}{NO_PROGRESS}", server.base));
}

#[tokio::test]
async fn pings_and_comments_are_no_progress() {
    for piece in [PING, b": still here\n\n"] {
        let failure = stalled(piece, clocks(|clocks| &mut clocks.progress_ms)).await;
        assert_eq!((failure.kind, &*failure.message), (FailureKind::Stalled, NO_PROGRESS));
    }
}

#[tokio::test]
async fn white_space_is_no_progress() {
    let blank: &[u8] =
        b"data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\" \\n\"}}\n\n";
    let failure = stalled(blank, clocks(|clocks| &mut clocks.progress_ms)).await;
    assert_eq!((failure.kind, &*failure.message), (FailureKind::Stalled, NO_PROGRESS));
}

#[tokio::test]
async fn a_server_that_answers_and_says_nothing_is_not_waited_for() {
    for piece in [PING, b""] {
        let server = Server::start(move || answer(200, "text/event-stream", pieces(again_and_again(piece)))).await;
        let model = server.anthropic_with(clocks(|clocks| &mut clocks.first_event_ms));
        let (events, failure) = all(model.call(request())).await;
        assert_eq!(kinds(&events), ["accepted"]);
        let failure = failure.unwrap();
        assert_eq!(failure.kind, FailureKind::Stalled);
        let message = format!("{}/v1/messages stalled: 50 ms passed without the first event", server.base);
        assert_eq!(failure.message, message);
    }
}

#[tokio::test]
async fn a_server_that_accepts_and_does_not_answer_is_not_waited_for() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let model = anthropic(endpoint("anthropic", &base), clocks(|clocks| &mut clocks.headers_ms));
    let failure = failure(model.call(request())).await;
    assert_eq!(failure.kind, FailureKind::Stalled);
    assert_eq!(failure.message, format!("{base}/v1/messages stalled: 50 ms passed without the head of its answer"));
}

/// Elsewhere a full queue refuses, which is no wait.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_server_that_does_not_accept_is_not_waited_for() {
    use tokio::net::{TcpSocket, TcpStream};
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    let mut queue = Vec::new();
    while let Ok(connection) = tokio::time::timeout(Duration::from_millis(200), TcpStream::connect(address)).await {
        queue.push(connection.unwrap());
        assert!(queue.len() < 16, "the queue is never full");
    }
    let model = anthropic(endpoint("anthropic", &format!("http://{address}")), clocks(|clocks| &mut clocks.connect_ms));
    let failure = failure(model.call(request())).await;
    assert_eq!(failure.kind, FailureKind::Stalled);
    assert_eq!(failure.message, format!("http://{address}/v1/messages stalled: 50 ms passed without a connection"));
}

#[tokio::test]
async fn a_stream_that_is_cut_is_transient_and_what_was_heard_is_told() {
    let server = Server::start(|| broken_off(cut())).await;
    let (events, failure) = all(server.anthropic().call(request())).await;
    assert_eq!(kinds(&events), BEGUN);
    let failure = failure.unwrap();
    assert_eq!(failure.kind, FailureKind::Transient);
    let start = format!("the stream ended before the message was whole ({}/v1/messages): ", server.base);
    assert!(failure.message.starts_with(&start), "{}", failure.message);
}

#[tokio::test]
async fn a_stream_that_ends_too_early_is_transient() {
    let server = Server::start(|| broken_off(stream::empty().boxed())).await;
    let failure = failure(server.anthropic().call(request())).await;
    assert_eq!(failure.kind, FailureKind::Transient);
    let message = format!("the stream ended before the message was whole ({}/v1/messages)", server.base);
    assert_eq!(failure.message, message);
}

#[tokio::test]
async fn a_cut_behind_the_reason_to_stop_loses_nothing() {
    let server = Server::start(|| {
        let end = CHUNKS.find("data: [DONE]").unwrap();
        let start = stream::once(async move { Ok(Bytes::from_static(&CHUNKS.as_bytes()[..end])) });
        answer(200, "text/event-stream", pieces(start.chain(cut()).boxed()))
    })
    .await;
    let (events, failure) = all(server.openai().call(request())).await;
    assert_eq!(failure, None);
    assert!(is_finished(&events));
}

#[tokio::test]
async fn a_server_that_goes_on_behind_the_reason_to_stop_is_not_listened_to_for_ever() {
    for piece in [b": still here\n\n".as_slice(), b"data: {\"choices\":[]}\n\n"] {
        let server = Server::start(move || {
            let end = CHUNKS.find("data: [DONE]").unwrap();
            let start = stream::once(async move { Ok(Bytes::from_static(&CHUNKS.as_bytes()[..end])) });
            answer(200, "text/event-stream", pieces(start.chain(again_and_again(piece)).boxed()))
        })
        .await;
        let http =
            Http::new(HttpOptions { clocks: clocks(|clocks| &mut clocks.progress_ms), ..HttpOptions::default() });
        let model = connect(WireProtocol::Chat, http.unwrap(), endpoint("openai", &server.base), "large-1");
        let (events, failure) = within(all(model.call(request()))).await;
        assert_eq!(failure, None);
        assert!(is_finished(&events));
    }
}

#[tokio::test]
async fn pings_that_never_pause_are_no_progress_either() {
    let flood = || stream::repeat_with(|| Ok(Bytes::from_static(PING))).boxed();
    let server = Server::start(move || broken_off(flood())).await;
    let model = server.anthropic_with(clocks(|clocks| &mut clocks.progress_ms));
    let failure = within(all(model.call(request()))).await.1.unwrap();
    assert_eq!(failure.kind, FailureKind::Stalled);
}

#[tokio::test]
async fn an_error_in_the_stream_ends_it_at_once() {
    let error = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n";
    let server = Server::start(move || {
        let error = stream::once(async move { Ok(Bytes::from_static(error.as_bytes())) });
        broken_off(error.chain(stream::pending()).boxed())
    })
    .await;
    let (events, failure) = all(server.anthropic().call(request())).await;
    assert_eq!(kinds(&events), BEGUN);
    let failure = failure.unwrap();
    assert_eq!(failure.kind, FailureKind::Overloaded);
    assert_eq!(failure.message, "anthropic broke off its answer: overloaded_error: Overloaded");
}

#[tokio::test]
async fn a_wrong_key_is_told_with_the_way_out() {
    let body = r#"{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}"#;
    let server = Server::start(move || answer(401, "application/json", whole(body))).await;
    let failure = failure(server.anthropic().call(request())).await;
    assert_eq!((failure.kind, failure.status), (FailureKind::Auth, Some(401)));
    let message =
        "anthropic answered 401 Unauthorized: invalid x-api-key; check the key in ANTHROPIC_API_KEY, or --base-url";
    assert!(failure.message.starts_with(message), "{}", failure.message);
}

#[tokio::test]
async fn a_rate_limit_names_its_wait() {
    let body = r#"{"error":{"message":"slow down","type":"requests","code":"rate_limit_exceeded"}}"#;
    let server = Server::start(move || {
        let mut answer = answer(429, "application/json", whole(body));
        answer.headers_mut().insert("retry-after", "3".parse().unwrap());
        answer
    })
    .await;
    let failure = failure(server.openai().call(request())).await;
    assert_eq!((failure.kind, failure.retry_after_ms), (FailureKind::Overloaded, Some(3_000)));
    assert_eq!(failure.message, "openai answered 429 Too Many Requests: slow down");
}

#[tokio::test]
async fn answers_that_are_no_stream_are_named() {
    let html = Server::start(|| answer(200, "text/html", whole("<html>Log in to the network</html>"))).await;
    let failed = failure(html.anthropic().call(request())).await;
    assert_eq!(failed.kind, FailureKind::Invalid);
    let parts = ["`text/html` instead of `text/event-stream`", "--base-url", "<html>Log in to the network</html>"];
    assert!(parts.iter().all(|part| failed.message.contains(part)), "{}", failed.message);

    let json =
        Server::start(|| answer(200, "application/json", whole(r#"{"error":{"message":"no such model"}}"#))).await;
    assert_eq!(failure(json.openai().call(request())).await.message, "openai broke off its answer: no such model");

    let plain = Server::start(|| answer(200, "application/json", whole(r#"{"id":"c","choices":[]}"#))).await;
    let failed = failure(plain.openai().call(request())).await;
    assert!(failed.message.contains("it began with: {\"id\":\"c\""), "{}", failed.message);
}

#[tokio::test]
async fn a_key_is_not_sent_on_to_another_host() {
    let other = Server::start(|| events(MESSAGE)).await;
    let to = other.base.clone();
    let server = Server::start(move || {
        let mut answer = answer(307, "text/plain", whole(""));
        answer.headers_mut().insert("location", to.parse().unwrap());
        answer
    })
    .await;
    let failure = failure(server.anthropic().call(request())).await;
    assert!(failure.message.contains(&format!("to {}: give the right address", other.base)), "{}", failure.message);
    assert_eq!(other.connections(), 0);
}

#[tokio::test]
async fn nobody_at_the_address_is_transient_with_the_true_cause() {
    let port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let base = format!("http://user:password@127.0.0.1:{port}");
    let failure = failure(anthropic(endpoint("anthropic", &base), Clocks::default()).call(request())).await;
    assert_eq!(failure.kind, FailureKind::Transient);
    let start = format!("cannot reach http://127.0.0.1:{port}/v1/messages: Connection refused");
    assert!(failure.message.starts_with(&start), "{}", failure.message);
}

#[tokio::test]
async fn a_tls_alert_passes_and_is_no_matter_of_trust() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("https://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut header = [0; 5];
        socket.read_exact(&mut header).await.unwrap();
        let mut hello = vec![0; usize::from(u16::from_be_bytes([header[3], header[4]]))];
        socket.read_exact(&mut hello).await.unwrap();
        // A record of type alert: fatal, internal error.
        socket.write_all(&[21, 3, 3, 0, 2, 2, 80]).await.unwrap();
    });
    let failure = failure(anthropic(endpoint("anthropic", &base), Clocks::default()).call(request())).await;
    assert_eq!(failure.kind, FailureKind::Transient);
    let shown = failure.message.replace(&base, "");
    insta::assert_snapshot!(shown, @r#"cannot reach /v1/messages: received fatal alert: InternalError"#);
}

#[tokio::test]
async fn bad_input_is_refused_before_anything_is_sent() {
    let said = async |endpoint: Endpoint, request| {
        let failure = failure(anthropic(endpoint, Clocks::default()).call(request)).await;
        assert_eq!(failure.kind, FailureKind::Invalid);
        failure.message
    };
    let base = "http://127.0.0.1:1";
    assert!(
        said(endpoint("anthropic", "localhost"), request()).await.starts_with("the base URL `localhost` cannot be")
    );
    assert!(said(endpoint("anthropic", "ftp://host"), request()).await.contains("`ftp`, not http or https"));
    let bad_key = Endpoint { auth: Auth::Key(ApiKey::new("a\nb")), ..endpoint("anthropic", base) };
    assert!(said(bad_key, request()).await.starts_with("the API key holds a character"));
    let bad_header = Endpoint { headers: vec![("a b".into(), "c".into())], ..endpoint("anthropic", base) };
    assert!(said(bad_header, request()).await.starts_with("the header `a b` is malformed"));
    let mut no_room = request();
    no_room.parameters.max_tokens = 0;
    assert!(said(endpoint("anthropic", base), no_room).await.starts_with("max_tokens is 0"));
}

#[tokio::test]
async fn a_stream_under_a_wrong_type_is_read_all_the_same() {
    for kind in ["application/json", "text/plain; charset=utf-8"] {
        let server = Server::start(move || answer(200, kind, whole(MESSAGE))).await;
        let (events, failure) = all(server.anthropic().call(request())).await;
        assert_eq!(failure, None);
        assert_eq!(kinds(&events)[..4], BEGUN);
        assert!(is_finished(&events));
    }
}

#[tokio::test]
async fn an_error_in_the_place_of_a_stream_is_told() {
    let body = r#"{"error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    let server = Server::start(move || answer(200, "text/event-stream", whole(body))).await;
    let failure = failure(server.anthropic().call(request())).await;
    assert_eq!(failure.kind, FailureKind::Overloaded);
    assert_eq!(failure.message, "anthropic broke off its answer: overloaded_error: Overloaded");
}

#[tokio::test]
async fn a_wait_until_a_date_is_counted_from_now_where_the_answer_has_no_date() {
    let server = Server::start(|| {
        let until = httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(3_600));
        let mut answer = answer(503, "application/json", whole(r#"{"error":{"message":"later"}}"#));
        answer.headers_mut().insert("retry-after", until.parse().unwrap());
        answer
    })
    .await;
    let failure = failure(server.anthropic().call(request())).await;
    assert_eq!(failure.kind, FailureKind::Overloaded);
    let wait_ms = failure.retry_after_ms.unwrap();
    assert!((3_000_000..=3_600_000).contains(&wait_ms), "{wait_ms}");
}

#[tokio::test]
async fn a_key_is_asked_for_before_each_call_and_a_lack_of_it_is_told() {
    let server = Server::start(|| events(MESSAGE)).await;
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let source = KeySource(Arc::new(move || {
        let number = count.fetch_add(1, Ordering::SeqCst);
        Box::pin(
            async move { if number < 2 { Ok(ApiKey::new(format!("key-{number}"))) } else { Err("logged out".into()) } },
        )
    }));
    let model =
        anthropic(Endpoint { auth: Auth::Source(source), ..endpoint("anthropic", &server.base) }, Clocks::default());
    for _ in 0..2 {
        assert!(is_finished(&all(model.call(request())).await.0));
    }
    let failed = failure(model.call(request())).await;
    assert_eq!(failed.kind, FailureKind::Auth);
    assert_eq!(failed.message, "no key for anthropic: logged out");
    let keys: Vec<String> =
        server.seen.lock().unwrap().iter().map(|seen| seen.headers["x-api-key"].to_str().unwrap().into()).collect();
    assert_eq!(keys, ["key-0", "key-1"]);
}

#[tokio::test]
async fn an_address_that_cannot_be_used_is_told_without_its_password() {
    let failed =
        failure(anthropic(endpoint("anthropic", "ftp://me:secret@host/v1"), Clocks::default()).call(request()));
    let message = failed.await.message;
    assert!(message.contains("`…@host/v1` cannot be used") && !message.contains("secret"), "{message}");
}

#[tokio::test]
async fn a_key_that_was_asked_for_is_in_no_message() {
    let said = r#"{"type":"error","error":{"type":"authentication_error","message":"ya29.long-token is over"}}"#;
    let server = Server::start(move || answer(401, "application/json", whole(said))).await;
    let source = KeySource(Arc::new(|| Box::pin(async { Ok(ApiKey::new("ya29.long-token")) })));
    let endpoint = Endpoint { auth: Auth::Source(source), ..endpoint("vertex", &server.base) };
    let failed = failure(anthropic(endpoint, Clocks::default()).call(request())).await;
    assert_eq!(failed.kind, FailureKind::Auth);
    assert!(failed.message.contains("[key] is over") && !failed.message.contains("ya29"), "{}", failed.message);
}

#[tokio::test]
async fn a_compressed_stream_is_read() {
    let server = Server::start(|| {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(MESSAGE.as_bytes()).unwrap();
        let bytes = encoder.finish().unwrap();
        let body = Full::new(Bytes::from(bytes)).map_err(|never| match never {}).boxed();
        let mut answer = answer(200, "text/event-stream", body);
        answer.headers_mut().insert("content-encoding", "gzip".parse().unwrap());
        answer
    })
    .await;
    let (events, failure) = all(server.anthropic().call(request())).await;
    assert_eq!(failure, None);
    assert!(is_finished(&events));
    assert!(server.seen.lock().unwrap()[0].headers["accept-encoding"].to_str().unwrap().contains("gzip"));
}

#[tokio::test]
async fn a_response_that_fails_names_its_wait() {
    let failed = concat!(
        "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"id\":\"r\",\"model\":\"large-1\"}}\n\n",
        "event: response.failed\ndata: {\"type\":\"response.failed\",\"response\":{\"id\":\"r\",\"error\":{\"code\":",
        "\"rate_limit_exceeded\",\"message\":\"Rate limit reached. Please try again in 1.2s.\"}}}\n\n",
    );
    let server = Server::start(move || events(failed)).await;
    let http = Http::new(HttpOptions::default()).unwrap();
    let endpoint = endpoint("openai", &format!("{}/v1", server.base));
    let (events, failure) = all(connect(WireProtocol::Responses, http, endpoint, "large-1").call(request())).await;
    assert_eq!(kinds(&events), ["accepted", "started"]);
    let failure = failure.unwrap();
    assert_eq!((failure.kind, failure.retry_after_ms), (FailureKind::Overloaded, Some(1_200)));
    let seen = server.seen.lock().unwrap();
    assert_eq!(seen[0].path, "/v1/responses");
    assert_eq!(seen[0].headers["authorization"], "Bearer sk-secret");
}
