//! Telemetry as a whole: what is made of records, and the threads that send it.

use crate::book::Book;
use crate::gate::{Counts, Exit, Gate};
use crate::measures::Measures;
use crate::wire::{Wire, address};
use crate::{Options, StartError};
use opentelemetry::metrics::MeterProvider as _;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_otlp::{MetricExporter, Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::metrics::{PeriodicReader, SdkMeterProvider};
use opentelemetry_sdk::trace::{BatchConfigBuilder, BatchSpanProcessor, Sampler, SdkTracerProvider, SpanLimits};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use windlass_kernel::Record;

/// Spans of one request.
const SPANS_PER_EXPORT: usize = 512;

/// A follower of sessions that tells a collector what happens in them.
pub struct Telemetry {
    book: Mutex<Book>,
    traces: SdkTracerProvider,
    metrics: SdkMeterProvider,
    counts: Arc<Counts>,
    over: AtomicBool,
}

/// What became of the spans, once telemetry was shut down.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delivery {
    pub sent: u64,
    /// The collector did not take them.
    pub failed: u64,
    /// There was no room for them.
    pub dropped: u64,
    /// Still on their way when the time was over.
    pub unsent: u64,
    /// Why the last export failed.
    pub error: Option<String>,
}

impl Telemetry {
    /// Starts the threads that send; nothing is sent before something was observed.
    pub fn start(options: Options) -> Result<Telemetry, StartError> {
        let wire = Wire::new(&options)?;
        let counts = Arc::new(Counts::default());
        let resource = Resource::builder_empty()
            .with_service_name(options.service_name.clone())
            .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
            .with_attributes(options.resource.iter().map(|(name, value)| KeyValue::new(name.clone(), value.clone())))
            .build();
        let traces = traces(&options, &wire, &counts, resource.clone())?;
        let metrics = metrics(&options, wire, resource)?;
        let scope = || InstrumentationScope::builder("windlass").with_version(env!("CARGO_PKG_VERSION")).build();
        let book = Book {
            tracer: traces.tracer_with_scope(scope()),
            measures: Measures::new(&metrics.meter_with_scope(scope())),
            capture: options.capture_content,
            sessions: HashMap::new(),
        };
        Ok(Telemetry { book: Mutex::new(book), traces, metrics, counts, over: AtomicBool::new(false) })
    }

    /// Takes a record in. It waits for nothing but other sessions' records: what there is no room for is dropped, and
    /// counted.
    pub fn observe(&self, record: &Record) {
        let mut book = self.book.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.over.load(Relaxed) && !book.read(record) {
            self.counts.dropped.fetch_add(1, Relaxed);
        }
    }

    /// Spans, and records of sessions too many, that were dropped so far.
    pub fn dropped(&self) -> u64 {
        self.counts.dropped.load(Relaxed)
    }

    /// Ends what is open and sends what waits, for at most `within`. What is observed later is nowhere.
    pub fn shutdown(&self, within: Duration) -> Delivery {
        if !self.over.swap(true, Relaxed) {
            self.book.lock().unwrap_or_else(PoisonError::into_inner).close();
            let until = Instant::now() + within;
            let (traces, metrics) = (self.traces.clone(), self.metrics.clone());
            // An export under way is not to be interrupted, so it is left behind on its thread when the time is over.
            let ends = [
                apart(move || traces.shutdown_with_timeout(within)),
                apart(move || metrics.shutdown_with_timeout(within)),
            ];
            for end in ends {
                let _ = end.recv_timeout(until.saturating_duration_since(Instant::now()));
            }
        }
        Delivery {
            sent: self.counts.sent.load(Relaxed),
            failed: self.counts.failed.load(Relaxed),
            dropped: self.counts.dropped.load(Relaxed),
            unsent: self.counts.waiting.load(Relaxed) as u64,
            error: self.counts.error(),
        }
    }
}

impl Delivery {
    /// Spans that were made and did not arrive.
    pub fn lost(&self) -> u64 {
        self.failed + self.dropped + self.unsent
    }
}

fn apart(work: impl FnOnce() -> OTelSdkResult + Send + 'static) -> Receiver<OTelSdkResult> {
    let (to, end) = sync_channel(1);
    thread::spawn(move || to.send(work()));
    end
}

fn traces(
    options: &Options,
    wire: &Wire,
    counts: &Arc<Counts>,
    resource: Resource,
) -> Result<SdkTracerProvider, StartError> {
    let exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(wire.clone())
        .with_endpoint(address(&options.endpoint, "traces")?)
        .with_protocol(Protocol::HttpBinary)
        .with_timeout(Duration::from_millis(options.export_timeout_ms))
        .build()
        .map_err(|error| StartError::Client(error.to_string()))?;
    // Everything is set, so that nothing is left to the environment.
    let config = BatchConfigBuilder::default()
        .with_max_queue_size(options.max_waiting_spans)
        .with_max_export_batch_size(SPANS_PER_EXPORT.min(options.max_waiting_spans))
        .with_scheduled_delay(Duration::from_millis(options.export_every_ms))
        .build();
    let queue = BatchSpanProcessor::new(Exit { exporter, counts: counts.clone() }, config);
    let gate = Gate { queue, counts: counts.clone(), limit: options.max_waiting_spans };
    let provider = SdkTracerProvider::builder().with_span_processor(gate).with_resource(resource);
    Ok(provider.with_sampler(Sampler::AlwaysOn).with_span_limits(SpanLimits::default()).build())
}

fn metrics(options: &Options, wire: Wire, resource: Resource) -> Result<SdkMeterProvider, StartError> {
    let exporter = MetricExporter::builder()
        .with_http()
        .with_http_client(wire)
        .with_endpoint(address(&options.endpoint, "metrics")?)
        .with_protocol(Protocol::HttpBinary)
        .with_timeout(Duration::from_millis(options.export_timeout_ms))
        .build()
        .map_err(|error| StartError::Client(error.to_string()))?;
    let every = Duration::from_millis(options.export_every_ms);
    let reader = PeriodicReader::builder(exporter).with_interval(every).build();
    Ok(SdkMeterProvider::builder().with_reader(reader).with_resource(resource).build())
}
