//! The server: a thread of its own with one runtime, so that it serves any caller and waits for none.

use crate::choose::Tally;
use crate::log::{At, Entry, Line, Log, now};
use crate::play::{Cut, Play};
use crate::refusal::Refusal;
use crate::respond::{self, Asked};
use crate::route;
use crate::route::Protocol;
use crate::script::{Fault, Place, Script};
use crate::socket::{Gauge, Socket};
use bytes::Bytes;
use http::HeaderMap;
use http::request::Parts;
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use std::collections::VecDeque;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

/// Largest request body, as the vendors have it; a larger one is answered 413.
const BODY_BYTES: usize = 32 << 20;

/// Most connections at once; more wait in the listener's queue.
const CONNECTIONS: usize = 4096;

/// How a server is started.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where to listen; port 0 takes a free one.
    pub addr: SocketAddr,
    pub script: Script,
    /// One JSON line per request is appended to this file.
    pub log: Option<PathBuf>,
    /// Requests are written into this folder: bodies as `NNNNN.json`, heads as `NNNNN.head.json`.
    pub dump: Option<PathBuf>,
    /// How many of the newest requests are kept for [`Server::requests`].
    pub keep: usize,
}

impl Default for Options {
    fn default() -> Options {
        let addr = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Options { addr, script: Script::default(), log: None, dump: None, keep: 1000 }
    }
}

/// A request that the server has seen.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Number of the request, from 1.
    pub seq: u64,
    /// Number of the connection, from 1.
    pub conn: u64,
    pub method: String,
    pub path: String,
    /// Without its question mark; empty if there is none.
    pub query: String,
    pub protocol: Option<Protocol>,
    pub headers: HeaderMap,
    pub body: Bytes,
    pub status: u16,
    /// The step that answered.
    pub step: Option<String>,
    /// Why it was refused.
    pub error: Option<String>,
}

impl Seen {
    /// The body as JSON, null if it is none.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

/// A running server; dropping it ends it.
pub struct Server {
    addr: SocketAddr,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    script: Script,
    tally: Tally,
    log: Option<Arc<Log>>,
    dump: Option<PathBuf>,
    keep: usize,
    seq: AtomicU64,
    seen: Mutex<VecDeque<Seen>>,
}

impl Server {
    /// Binds the address and serves from a thread of its own.
    pub fn start(options: Options) -> io::Result<Server> {
        let Options { addr, script, log, dump, keep } = options;
        if let Some(dump) = &dump {
            std::fs::create_dir_all(dump).map_err(|e| named(e, "dump folder", dump))?;
        }
        let log = log.map(|path| Log::open(&path).map_err(|e| named(e, "log", &path))).transpose()?;
        let listener = std::net::TcpListener::bind(addr)
            .map_err(|e| io::Error::new(e.kind(), format!("cannot listen on {addr}: {e}; port 0 takes a free one")))?;
        listener.set_nonblocking(true)?;
        let addr = listener.local_addr()?;
        let (seq, seen) = (AtomicU64::new(0), Mutex::default());
        let shared =
            Arc::new(Shared { script, tally: Tally::default(), log: log.map(Arc::new), dump, keep, seq, seen });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel();
        let serving = shared.clone();
        let serve = move || {
            runtime.block_on(async {
                let Ok(listener) = TcpListener::from_std(listener) else { return };
                tokio::select! {
                    () = accept(listener, serving) => {}
                    _ = stopped => {}
                }
            });
        };
        let thread = std::thread::Builder::new().name("mock".into()).spawn(serve)?;
        Ok(Server { addr, shared, stop: Some(stop), thread: Some(thread) })
    }

    /// The address it listens on.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// `http://HOST:PORT`, without `/v1`.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// The newest requests, oldest first.
    pub fn requests(&self) -> Vec<Seen> {
        self.shared.seen.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).iter().cloned().collect()
    }

    /// Closes every connection and waits for the thread's end.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        // A thread that has ended by itself no longer listens.
        let _ = self.stop.take().map(|stop| stop.send(()));
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

fn named(e: io::Error, what: &str, path: &std::path::Path) -> io::Error {
    io::Error::new(e.kind(), format!("cannot open the {what} {}: {e}", path.display()))
}

/// Takes connections until it is dropped, and they with it.
async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    let mut number = 0;
    loop {
        tokio::select! {
            Some(_) = connections.join_next() => {}
            accepted = listener.accept(), if connections.len() < CONNECTIONS => match accepted {
                Ok((stream, _)) => {
                    number += 1;
                    connections.spawn(connection(stream, number, shared.clone()));
                }
                // Out of file descriptors, mostly: some are given back soon.
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            },
        }
    }
}

async fn connection(stream: TcpStream, number: u64, shared: Arc<Shared>) {
    let gauge = Arc::new(Gauge::default());
    let socket = Socket::new(stream, gauge.clone());
    let service = service_fn(move |request| {
        let entry = entry(&request, number, &shared);
        serve(request, entry, shared.clone(), gauge.clone())
    });
    // A connection's end, by whomever, is in the log of the request it ended.
    let _ = hyper::server::conn::http1::Builder::new().serve_connection(socket, service).await;
}

/// A request's line in the log, from the moment its head is read: the client may leave before anything else runs.
fn entry(request: &hyper::Request<Incoming>, conn: u64, shared: &Shared) -> Entry {
    let at = At { arrive: now(), ..At::default() };
    let seq = shared.seq.fetch_add(1, Relaxed) + 1;
    let (method, path) = (request.method().to_string(), request.uri().path().to_string());
    Entry::new(Line { seq, conn, at, method, path, ..Line::default() }, shared.log.clone())
}

async fn serve(
    request: hyper::Request<Incoming>,
    mut entry: Entry,
    shared: Arc<Shared>,
    gauge: Arc<Gauge>,
) -> Result<hyper::Response<Play>, Cut> {
    let (head, body) = request.into_parts();
    let seq = entry.line.seq;
    let collected = Limited::new(body, BODY_BYTES).collect().await;
    entry.line.at.body = now();
    let too_large = collected.as_ref().is_err_and(|e| e.is::<http_body_util::LengthLimitError>());
    if collected.is_err() && !too_large {
        return Err(Cut);
    }
    let body = collected.map(|whole| whole.to_bytes()).unwrap_or_default();
    entry.line.body_bytes = body.len();
    let (method, uri, headers) = (&head.method, &head.uri, &head.headers);
    let asked = Asked { method, path: uri.path(), query: uri.query().unwrap_or_default(), headers, body: &body, seq };
    let response = if too_large {
        let refusal = Refusal::new(413, format!("Request exceeds the maximum size of {BODY_BYTES} bytes"));
        respond::refuse(&refusal, &asked, &mut entry.line)
    } else {
        respond::respond(&shared.script, &shared.tally, &asked, &mut entry.line)
    };
    shared.keep(head, body, &entry.line);
    if response.pace.delay_ms > 0 {
        tokio::time::sleep(Duration::from_millis(response.pace.delay_ms)).await;
    }
    if response.fault.as_ref().is_some_and(|fault| fault.at == Place::BeforeAnswer) {
        return before_answer(response.fault.as_ref(), &gauge).await;
    }
    let play = Play::new(response.source, response.pace, response.fault, gauge, entry);
    let mut answer = hyper::Response::new(play);
    *answer.status_mut() = response.status;
    *answer.headers_mut() = response.headers;
    Ok(answer)
}

/// Breaks without a single byte: the connection closes, or the client waits for the head.
async fn before_answer(fault: Option<&Fault>, gauge: &Gauge) -> Result<hyper::Response<Play>, Cut> {
    match fault.map(|fault| &fault.how) {
        Some(crate::script::Break::Hang) => std::future::pending().await,
        Some(crate::script::Break::Reset) => gauge.reset.store(true, Relaxed),
        _ => {}
    }
    Err(Cut)
}

/// A request's head as JSON, letter by letter: a signature is made of it.
fn head_text(head: &Parts, path: &str, query: &str) -> String {
    let pair = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
        serde_json::json!([name.as_str(), String::from_utf8_lossy(value.as_bytes())])
    };
    let headers: Vec<serde_json::Value> = head.headers.iter().map(pair).collect();
    serde_json::json!({"method": head.method.as_str(), "path": path, "query": query, "headers": headers}).to_string()
}

impl Shared {
    fn keep(&self, head: Parts, body: Bytes, line: &Line) {
        let query = head.uri.query().unwrap_or_default().to_string();
        if let Some(dump) = &self.dump {
            // A dump that cannot be written must not change what the client sees.
            let text = head_text(&head, &line.path, &query);
            let _ = std::fs::write(dump.join(format!("{:05}.head.json", line.seq)), text);
            let _ = std::fs::write(dump.join(format!("{:05}.json", line.seq)), &body);
        }
        if self.keep == 0 {
            return;
        }
        let seen = Seen {
            seq: line.seq,
            conn: line.conn,
            method: line.method.clone(),
            path: line.path.clone(),
            query,
            protocol: route::route(&line.path).filter(|_| line.protocol.is_some()).map(|route| route.protocol),
            headers: head.headers,
            body,
            status: line.status,
            step: line.step.clone(),
            error: line.error.clone(),
        };
        let mut all = self.seen.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        while all.len() >= self.keep {
            all.pop_front();
        }
        all.push_back(seen);
    }
}
