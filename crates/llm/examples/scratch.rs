use std::sync::Arc; use std::collections::HashMap; use futures_util::StreamExt;
use windlass_kernel::*; use windlass_llm::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
fn cpu() -> f64 { let s = std::fs::read_to_string("/proc/self/stat").unwrap(); let f: Vec<&str> = s.rsplit(") ").next().unwrap().split(' ').collect(); (f[11].parse::<f64>().unwrap()+f[12].parse::<f64>().unwrap())/100.0 }
fn frame(chunked: bool, t: &str) -> String { if chunked { format!("{:x}\r\n{t}\r\n", t.len()) } else { t.to_owned() } }
#[tokio::main(flavor="multi_thread", worker_threads=2)]
async fn main() {
    let args: Vec<String> = std::env::args().collect();
    let mode = args[1].as_str(); // server-each | server-bulk | client URL
    if mode == "server" {
        let batch: usize = args[2].parse().unwrap();
        let l = tokio::net::TcpListener::bind("127.0.0.1:7877").await.unwrap();
        loop { let (mut s,_) = l.accept().await.unwrap(); s.set_nodelay(true).unwrap(); tokio::spawn(async move { loop {
            let mut buf = vec![0u8; 65536]; let mut got = Vec::new();
            loop { let n = s.read(&mut buf).await.unwrap_or(0); if n==0 {return;} got.extend_from_slice(&buf[..n]); if got.ends_with(b"]}") || got.ends_with(b"]}]}]}") {break;} }
            let mut out = String::from("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n");
            out += &frame(true, "data: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"model\":\"x\"}}\n\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n");
            let d = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"twenty bytes of text\"}}\n\n";
            let n = 100_000; let mut i = 0;
            while i < n { out += &frame(true, d); i += 1; if i % batch == 0 { s.write_all(out.as_bytes()).await.unwrap(); out.clear(); } }
            out += &frame(true, "data: {\"type\":\"content_block_stop\",\"index\":0}\n\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":1}}\n\ndata: {\"type\":\"message_stop\"}\n\n");
            out += "0\r\n\r\n"; s.write_all(out.as_bytes()).await.unwrap();
        }}); }
    }
    let http = Http::new(HttpOptions::default()).unwrap();
    let m = Anthropic::new(http, Endpoint{provider:"anthropic".into(), base_url: "http://127.0.0.1:7877".into(), api_key: None, headers: vec![]}, "x".into());
    let req = || Request { system: [].into(), messages: vec![Arc::new(Message::user(vec![ContentBlock::text("hi")]))], tools: [].into(), parameters: Parameters{max_tokens:1,..Default::default()}, blobs: Arc::new(HashMap::new()), memo: Memo::default() };
    let runs = 10; let c = cpu(); let t = std::time::Instant::now(); let (mut batches, mut bytes) = (0, 0);
    for _ in 0..runs { let mut s = m.call(req()); while let Some(b) = s.next().await { batches += 1; for e in b.unwrap() { if let ModelEvent::Delta{delta: Delta::Text(t),..} = e { bytes += t.len(); } } } }
    println!("cpu/run {:.4}s wall/run {:.4}s batches/run {} bytes/run {}", (cpu()-c)/runs as f64, t.elapsed().as_secs_f64()/runs as f64, batches/runs, bytes/runs);
}
