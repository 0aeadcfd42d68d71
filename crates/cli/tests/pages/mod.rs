//! A web server on loopback that answers well, badly, slowly and without end, and remembers what it was asked.

use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// The same port at three addresses of this machine.
const ADDRESSES: [&str; 3] = ["127.0.0.1", "127.0.0.2", "::1"];

pub struct Pages {
    pub port: u16,
    heard: Arc<Mutex<Vec<String>>>,
}

/// A request as far as it matters.
struct Request {
    path: String,
    query: String,
    head: String,
}

impl Pages {
    /// Its threads end with the test's process.
    pub fn serve() -> Pages {
        let listeners = (0..20).find_map(|_| bind()).expect("a port is free at all addresses");
        let port = listeners[0].local_addr().expect("it is bound").port();
        let heard: Arc<Mutex<Vec<String>>> = Arc::default();
        for listener in listeners {
            let heard = heard.clone();
            std::thread::spawn(move || {
                for stream in listener.incoming().flatten() {
                    let heard = heard.clone();
                    std::thread::spawn(move || answer(&stream, &heard));
                }
            });
        }
        Pages { port, heard }
    }

    /// The requests since it was last told to forget, each as address, path and query.
    pub fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap().clone()
    }

    pub fn forget(&self) {
        self.heard.lock().unwrap().clear();
    }
}

fn bind() -> Option<Vec<TcpListener>> {
    let first = TcpListener::bind((ADDRESSES[0], 0)).ok()?;
    let port = first.local_addr().ok()?.port();
    let others = ADDRESSES[1..].iter().map(|address| {
        let address: IpAddr = address.parse().ok()?;
        TcpListener::bind(SocketAddr::new(address, port)).ok()
    });
    let mut all = vec![first];
    all.extend(others.collect::<Option<Vec<_>>>()?);
    Some(all)
}

fn answer(stream: &TcpStream, heard: &Mutex<Vec<String>>) {
    let Some(request) = read(stream) else { return };
    let address = stream.local_addr().expect("it is connected").ip();
    let query = if request.query.is_empty() { String::new() } else { format!("?{}", request.query) };
    heard.lock().unwrap().push(format!("{address}{}{query}", request.path));
    // Who has read enough closes the connection.
    let _ = respond(stream, &request);
}

fn read(stream: &TcpStream) -> Option<Request> {
    let (mut reader, mut head) = (BufReader::new(stream), String::new());
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let target = head.split(' ').nth(1)?;
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    Some(Request { path: path.to_owned(), query: query.to_owned(), head: head.to_ascii_lowercase() })
}

impl Request {
    fn header(&self, name: &str) -> &str {
        let line = self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        line.unwrap_or("none")
    }

    fn number(&self) -> usize {
        self.query.parse().unwrap_or_default()
    }
}

fn page(mut stream: &TcpStream, head: &str, body: &[u8]) -> io::Result<()> {
    write!(stream, "HTTP/1.1 {head}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len())?;
    stream.write_all(body)
}

fn text(stream: &TcpStream, body: &str) -> io::Result<()> {
    page(stream, "200 OK\r\ncontent-type: text/plain", body.as_bytes())
}

fn to(stream: &TcpStream, status: &str, place: &str) -> io::Result<()> {
    page(stream, &format!("{status} Moved\r\ncontent-type: text/plain\r\nlocation: {place}"), b"moved")
}

fn respond(stream: &TcpStream, request: &Request) -> io::Result<()> {
    match request.path.as_str() {
        "/hello" => text(stream, &format!("hello at {}", request.header("host"))),
        "/secret" => text(stream, "the secret"),
        "/page" => page(stream, "200 OK\r\ncontent-type: text/html; charset=utf-8", PAGE.as_bytes()),
        "/searx/search" => page(stream, "200 OK\r\ncontent-type: application/json", found(request).as_bytes()),
        "/cookie" => to(stream, "302", "/echo\r\nset-cookie: id=1; Path=/"),
        "/echo" => {
            let [cookies, authorization, referer] =
                ["cookie", "authorization", "referer"].map(|name| request.header(name));
            text(stream, &format!("cookies: {cookies}, authorization: {authorization}, referer: {referer}"))
        }
        path if path.starts_with("/to") => {
            to(stream, Some(&path[3..]).filter(|s| !s.is_empty()).unwrap_or("302"), &request.query)
        }
        "/nowhere" => page(stream, "302 Found\r\ncontent-type: text/plain", b"nowhere"),
        "/chain" if request.number() == 0 => text(stream, "the end"),
        "/chain" => to(stream, "302", &format!("/chain?{}", request.number() - 1)),
        "/ring" => to(stream, "302", if request.query == "a" { "/ring?b" } else { "/ring?a" }),
        "/self" => to(stream, "302", "/self"),
        "/404" => page(stream, "404 Not Found\r\ncontent-type: text/plain", b"not here"),
        "/500" => page(stream, "500 Internal Server Error\r\ncontent-type: text/plain", b"trouble"),
        "/headers" | "/header" => headers(stream, request),
        _ => body(stream, request),
    }
}

const PAGE: &str = "<!doctype html><html><head><title>A page &amp; more</title><script>let menu = 1;</script></head>\
    <body><nav>menu</nav><h1>Heading</h1><p>Some <b>bold</b> text and <a href=\"/next\">a link</a>.</p></body></html>";

fn found(request: &Request) -> String {
    let content = format!("all about them ({})", request.header("authorization").replace("bearer", "Bearer"));
    serde_json::json!({"results": [{"title": "Winches", "url": "https://winches.example/", "content": content}]})
        .to_string()
}

fn headers(mut stream: &TcpStream, request: &Request) -> io::Result<()> {
    write!(stream, "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: text/plain\r\n")?;
    if request.path == "/header" {
        write!(stream, "x-long: {}\r\n", "x".repeat(request.number()))?;
    } else {
        (0..request.number()).try_for_each(|n| write!(stream, "x-{n}: {n}\r\n"))?;
    }
    write!(stream, "content-length: 6\r\n\r\nenough")
}

/// Bodies of all kinds.
fn body(mut stream: &TcpStream, request: &Request) -> io::Result<()> {
    let plain = "200 OK\r\ncontent-type: text/plain";
    match request.path.as_str() {
        "/json" => page(stream, "200 OK\r\ncontent-type: application/json", b"{\"a\": [1, 2]}"),
        "/xml" => page(stream, "200 OK\r\ncontent-type: application/rss+xml", b"<feed></feed>"),
        "/latin1" => page(stream, &format!("{plain}; charset=iso-8859-1"), b"caf\xe9"),
        "/utf16" => page(stream, &format!("{plain}; charset=utf-16le"), b"c\0a\0f\0\xe9\0"),
        "/untyped" => page(stream, "200 OK", b"plain words"),
        "/untyped-bytes" => page(stream, "200 OK", b"\x89PNG\0\0\0\0"),
        "/image" => page(stream, "200 OK\r\ncontent-type: image/png", b"\x89PNG\0\0\0\0"),
        "/pdf" => page(stream, "200 OK\r\ncontent-type: application/pdf", b"%PDF-1.7"),
        "/bytes" => page(stream, "200 OK\r\ncontent-type: application/octet-stream", b"\0\x01"),
        "/empty" => page(stream, plain, b""),
        "/big" => page(stream, plain, "x".repeat(request.number()).as_bytes()),
        "/deep" => page(
            stream,
            "200 OK\r\ncontent-type: text/html",
            format!("{}the bottom", "<div>".repeat(300_000)).as_bytes(),
        ),
        "/gzip" => page(stream, &format!("{plain}\r\ncontent-encoding: gzip"), &packed(b"packed words", 1)),
        "/gzip-bomb" => page(stream, &format!("{plain}\r\ncontent-encoding: gzip"), &packed(&[b'x'; 1 << 20], 100)),
        "/not-gzip" => page(stream, &format!("{plain}\r\ncontent-encoding: gzip"), b"not packed at all"),
        "/brotli" => page(stream, &format!("{plain}\r\ncontent-encoding: br"), b"packed"),
        "/chunks" => {
            write!(stream, "HTTP/1.1 {plain}\r\ntransfer-encoding: chunked\r\n\r\n")?;
            ["one ", "two ", "three"].iter().try_for_each(|part| write!(stream, "{:x}\r\n{part}\r\n", part.len()))?;
            write!(stream, "0\r\n\r\n")
        }
        "/endless" => {
            write!(stream, "HTTP/1.1 {plain}\r\ntransfer-encoding: chunked\r\n\r\n")?;
            loop {
                write!(stream, "1000\r\n{}\r\n", "x".repeat(0x1000))?;
            }
        }
        "/broken" => write!(stream, "HTTP/1.1 {plain}\r\ncontent-length: 100\r\n\r\nonly this"),
        "/garbage" => write!(stream, "this is no HTTP\r\n\r\n"),
        "/silent" => until_closed(stream),
        "/slow" => {
            write!(stream, "HTTP/1.1 {plain}\r\ncontent-length: 100\r\n\r\nx")?;
            until_closed(stream)
        }
        "/slow-head" => {
            write!(stream, "HTTP/1.1 {plain}\r\nx-more:")?;
            until_closed(stream)
        }
        _ => page(stream, "404 Not Found\r\ncontent-type: text/plain", b"no such page"),
    }
}

fn until_closed(mut stream: &TcpStream) -> io::Result<()> {
    stream.read_to_end(&mut vec![]).map(|_| ())
}

fn packed(part: &[u8], times: usize) -> Vec<u8> {
    let mut encoder = GzEncoder::new(vec![], Compression::best());
    (0..times).for_each(|_| encoder.write_all(part).expect("memory takes it"));
    encoder.finish().expect("memory takes it")
}
