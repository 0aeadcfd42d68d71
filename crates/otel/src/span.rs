//! A span under way, with the times of the records.

use crate::names;
use opentelemetry::trace::{Span as _, SpanContext, SpanKind, Status, TraceContextExt, Tracer};
use opentelemetry::{Context, KeyValue, Value};
use opentelemetry_sdk::trace::{SdkTracer, Span as SdkSpan};
use std::time::{Duration, SystemTime};

/// What a span begins with.
pub(crate) struct Start {
    pub operation: &'static str,
    /// What is done it to; the span's name without it where it is not known.
    pub of: Option<String>,
    pub kind: SpanKind,
    pub at: u64,
}

/// A span that has begun and not ended.
pub(crate) struct Open {
    span: SdkSpan,
    /// Milliseconds since the Unix epoch.
    pub began: u64,
}

impl Open {
    pub fn begin(tracer: &SdkTracer, parent: Option<&SpanContext>, start: Start) -> Open {
        let name = match &start.of {
            Some(of) => format!("{} {of}", start.operation),
            None => start.operation.to_owned(),
        };
        let builder = tracer.span_builder(name).with_kind(start.kind).with_start_time(time(start.at));
        let above = parent.map_or_else(Context::new, |parent| Context::new().with_remote_span_context(parent.clone()));
        let mut span = tracer.build_with_context(builder, &above);
        span.set_attribute(KeyValue::new(names::OPERATION, start.operation));
        Open { span, began: start.at }
    }

    pub fn set(&mut self, name: &'static str, value: impl Into<Value>) {
        self.span.set_attribute(KeyValue::new(name, value));
    }

    pub fn set_some(&mut self, name: &'static str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.set(name, value);
        }
    }

    /// That it went wrong: the class, and the words if there are any.
    pub fn fail(&mut self, class: &str, words: &str) {
        self.set(names::ERROR, class.to_owned());
        self.span.set_status(Status::error(words.to_owned()));
    }

    pub fn context(&self) -> &SpanContext {
        self.span.span_context()
    }

    /// Ends it; never before it began, even if the clock went back.
    pub fn end(mut self, at: u64) {
        self.span.end_with_timestamp(time(at.max(self.began)));
    }
}

fn time(ms: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(ms)
}
