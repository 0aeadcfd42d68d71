//! A collector on loopback that keeps what it is sent, and logs to send from.
#![allow(dead_code)]

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value::Value as Any};
use opentelemetry_proto::tonic::metrics::v1::{Metric, metric::Data, number_data_point};
use opentelemetry_proto::tonic::trace::v1::{Span, span::SpanKind};
use prost::Message;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use windlass_kernel::Record;
use windlass_otel::Options;

/// A request as it came in.
#[derive(Clone, Debug)]
pub struct Seen {
    pub path: String,
    pub headers: BTreeMap<String, String>,
    pub body: Vec<u8>,
}

/// It answers every request with `status`.
pub struct Collector {
    pub address: String,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Collector {
    pub fn start(status: u16) -> Collector {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
        let kept = seen.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, kept) = (stream.unwrap(), kept.clone());
                thread::spawn(move || serve(stream, status, &kept));
            }
        });
        Collector { address, seen }
    }

    pub fn options(&self) -> Options {
        // Nothing is sent but at the end: a test tells when.
        Options { endpoint: self.address.clone(), export_every_ms: 3_600_000, ..Options::default() }
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    pub fn spans(&self) -> Vec<Span> {
        let bodies = self.seen().into_iter().filter(|seen| seen.path == "/v1/traces");
        let requests = bodies.map(|seen| ExportTraceServiceRequest::decode(&*seen.body).unwrap());
        let scopes = requests.flat_map(|request| request.resource_spans).flat_map(|spans| spans.scope_spans);
        scopes.flat_map(|scope| scope.spans).collect()
    }

    pub fn metrics(&self) -> Vec<Metric> {
        let bodies = self.seen().into_iter().filter(|seen| seen.path == "/v1/metrics");
        let requests = bodies.map(|seen| ExportMetricsServiceRequest::decode(&*seen.body).unwrap());
        let scopes = requests.flat_map(|request| request.resource_metrics).flat_map(|found| found.scope_metrics);
        scopes.flat_map(|scope| scope.metrics).collect()
    }

    /// The resource's attributes, of the first request for traces.
    pub fn resource(&self) -> String {
        let first = self.seen().into_iter().find(|seen| seen.path == "/v1/traces").unwrap();
        let request = ExportTraceServiceRequest::decode(&*first.body).unwrap();
        shown(&request.resource_spans[0].resource.as_ref().unwrap().attributes)
    }
}

fn serve(stream: TcpStream, status: u16, kept: &Mutex<Vec<Seen>>) {
    let mut reader = BufReader::new(stream);
    while let Some(seen) = request(&mut reader) {
        kept.lock().unwrap().push(seen);
        let answer = format!("HTTP/1.1 {status} X\r\ncontent-length: 0\r\n\r\n");
        if reader.get_mut().write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

fn request(reader: &mut BufReader<TcpStream>) -> Option<Seen> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.insert(name.to_ascii_lowercase(), value.to_owned());
    }
    let mut body = vec![0; headers.get("content-length")?.parse().ok()?];
    reader.read_exact(&mut body).ok()?;
    Some(Seen { path, headers, body })
}

/// The records of a golden log.
pub fn golden(name: &str) -> Vec<Record> {
    let path = format!("{}/../../tests/logs/{name}.jsonl", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Records of one session, a second apart, from their events as JSON.
pub fn log(session: u8, events: &[&str]) -> Vec<Record> {
    let record = |(at, event): (usize, &&str)| {
        let seq = at + 1;
        let line = format!(
            r#"{{"v":1,"tenant":"local","session":"00000000-0000-0000-0000-0000000000{session:02}","seq":{seq},
            "id":"00000000-0000-0000-0000-000000000000","epoch":1,"at":{},"event":{event}}}"#,
            1_760_000_000_000 + seq * 1000
        );
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{event}: {error}"))
    };
    events.iter().enumerate().map(record).collect()
}

/// Spans as a tree, with times in seconds after the first of all.
pub fn tree(spans: &[Span]) -> String {
    let zero = spans.iter().map(|span| span.start_time_unix_nano).min().unwrap_or(0);
    let ids: Vec<&[u8]> = spans.iter().map(|span| &*span.span_id).collect();
    let mut roots: Vec<&Span> = spans.iter().filter(|span| !ids.contains(&&*span.parent_span_id)).collect();
    roots.sort_by_key(|span| span.start_time_unix_nano);
    let mut text = String::new();
    roots.iter().for_each(|root| branch(&mut text, spans, root, 0, zero));
    text
}

fn branch(text: &mut String, spans: &[Span], span: &Span, depth: usize, zero: u64) {
    let indent = "  ".repeat(depth);
    let seconds = |nanos: u64| (nanos - zero) as f64 / 1e9;
    let kind = SpanKind::try_from(span.kind).unwrap();
    let (from, to) = (seconds(span.start_time_unix_nano), seconds(span.end_time_unix_nano));
    let _ = write!(text, "{indent}{} [{kind:?}] {from} to {to}", span.name);
    if let Some(status) = span.status.as_ref().filter(|status| status.code == 2) {
        let _ = write!(text, " ERROR {:?}", status.message);
    }
    let _ = writeln!(text, "\n{indent}    {}", shown(&span.attributes).replace("; ", &format!("\n{indent}    ")));
    let mut below: Vec<&Span> = spans.iter().filter(|other| other.parent_span_id == span.span_id).collect();
    below.sort_by_key(|span| (span.start_time_unix_nano, span.name.clone()));
    for child in below {
        assert_eq!(child.trace_id, span.trace_id);
        branch(text, spans, child, depth + 1, zero);
    }
}

pub fn shown(attributes: &[KeyValue]) -> String {
    let mut pairs: Vec<String> =
        attributes.iter().map(|pair| format!("{}={}", pair.key, value(pair.value.as_ref()))).collect();
    pairs.sort();
    pairs.join("; ")
}

fn value(value: Option<&AnyValue>) -> String {
    match value.and_then(|value| value.value.as_ref()) {
        Some(Any::StringValue(text)) => text.clone(),
        Some(Any::IntValue(number)) => number.to_string(),
        Some(Any::DoubleValue(number)) => number.to_string(),
        Some(Any::BoolValue(truth)) => truth.to_string(),
        Some(Any::ArrayValue(array)) => {
            let values: Vec<String> = array.values.iter().map(|one| self::value(Some(one))).collect();
            format!("{values:?}")
        }
        other => format!("{other:?}"),
    }
}

/// Metrics, a line per point: its sum and count, and how many of its buckets hold something.
pub fn points(metrics: &[Metric]) -> String {
    let mut lines = vec![];
    for metric in metrics {
        let name = format!("{} ({})", metric.name, metric.unit);
        match metric.data.as_ref().unwrap() {
            Data::Sum(sum) => {
                assert!(sum.is_monotonic);
                lines.extend(sum.data_points.iter().map(|point| {
                    let Some(number_data_point::Value::AsInt(total)) = point.value else { panic!("{point:?}") };
                    format!("{name} = {total}: {}", shown(&point.attributes))
                }));
            }
            Data::Histogram(histogram) => lines.extend(histogram.data_points.iter().map(|point| {
                let (sum, bounds) = (point.sum.unwrap(), &point.explicit_bounds);
                let last = bounds[bounds.len() - 1];
                format!("{name} {sum} of {}, up to {last}: {}", point.count, shown(&point.attributes))
            })),
            other => panic!("{other:?}"),
        }
    }
    lines.sort();
    lines.join("\n")
}
