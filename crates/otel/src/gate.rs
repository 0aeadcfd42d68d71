//! The bound on spans that wait: what passes is counted in, and counted out once it was sent or could not be.

use opentelemetry::Context;
use opentelemetry_otlp::SpanExporter as Otlp;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{BatchSpanProcessor, Span, SpanData, SpanExporter, SpanProcessor};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What became of the spans.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub waiting: AtomicUsize,
    pub sent: AtomicU64,
    pub dropped: AtomicU64,
    pub failed: AtomicU64,
    /// Why the last export failed.
    error: Mutex<Option<String>>,
}

impl Counts {
    pub fn error(&self) -> Option<String> {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn settle(&self, spans: usize, result: &OTelSdkResult) {
        self.waiting.fetch_sub(spans, Relaxed);
        let counter = if result.is_ok() { &self.sent } else { &self.failed };
        counter.fetch_add(spans as u64, Relaxed);
        if let Err(error) = result {
            *self.error.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.to_string());
        }
    }
}

/// Lets spans into the queue while there is room. The queue itself drops without saying so.
#[derive(Debug)]
pub(crate) struct Gate {
    pub queue: BatchSpanProcessor,
    pub counts: Arc<Counts>,
    pub limit: usize,
}

impl SpanProcessor for Gate {
    fn on_start(&self, span: &mut Span, context: &Context) {
        self.queue.on_start(span, context);
    }

    fn on_end(&self, span: SpanData) {
        let one_more = |waiting| (waiting < self.limit).then_some(waiting + 1);
        match self.counts.waiting.fetch_update(Relaxed, Relaxed, one_more) {
            Ok(_) => self.queue.on_end(span),
            Err(_) => _ = self.counts.dropped.fetch_add(1, Relaxed),
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.queue.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.queue.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.queue.set_resource(resource);
    }
}

/// Sends, and counts out.
#[derive(Debug)]
pub(crate) struct Exit {
    pub exporter: Otlp,
    pub counts: Arc<Counts>,
}

impl SpanExporter for Exit {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = batch.len();
        let result = self.exporter.export(batch).await;
        self.counts.settle(spans, &result);
        result
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}
