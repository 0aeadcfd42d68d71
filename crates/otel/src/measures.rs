//! The metrics of model calls.

use crate::names;
use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Histogram, Meter};
use windlass_kernel::{Spent, Usage};

/// A model call that is over.
pub(crate) struct Measured<'a> {
    pub provider: &'a str,
    pub model: &'a str,
    pub took_s: f64,
    pub spent: Spent,
    pub error: Option<&'a str>,
}

pub(crate) struct Measures {
    /// Under the present name and the published one.
    duration: [Histogram<f64>; 2],
    first_chunk: [Histogram<f64>; 2],
    token_usage: Histogram<u64>,
    input: Counter<u64>,
    output: Counter<u64>,
    cache_read: Counter<u64>,
    cache_write: Counter<u64>,
    reasoning: Counter<u64>,
}

impl Measures {
    pub fn new(meter: &Meter) -> Measures {
        let seconds = |name| meter.f64_histogram(name).with_unit("s").with_boundaries(names::SECONDS.into()).build();
        let tokens = |name| meter.u64_counter(name).with_unit("{token}").build();
        let usage = meter.u64_histogram(names::OLD_TOKEN_USAGE).with_unit("{token}");
        Measures {
            duration: [names::DURATION, names::OLD_DURATION].map(seconds),
            first_chunk: [names::FIRST_CHUNK, names::OLD_FIRST_CHUNK].map(seconds),
            token_usage: usage.with_boundaries(names::TOKENS.into()).build(),
            input: tokens(names::USAGE_INPUT),
            output: tokens(names::USAGE_OUTPUT),
            cache_read: tokens(names::USAGE_CACHE_READ),
            cache_write: tokens(names::USAGE_CACHE_WRITE),
            reasoning: tokens(names::USAGE_REASONING),
        }
    }

    pub fn take(&self, call: &Measured<'_>) {
        let common = vec![
            KeyValue::new(names::OPERATION, names::CHAT),
            KeyValue::new(names::PROVIDER, call.provider.to_owned()),
            KeyValue::new(names::REQUEST_MODEL, call.model.to_owned()),
        ];
        let mut timed = common.clone();
        timed.extend(call.error.map(|error| KeyValue::new(names::ERROR, error.to_owned())));
        self.duration.iter().for_each(|duration| duration.record(call.took_s, &timed));
        if let Some(first_ms) = call.spent.first_token_ms {
            self.first_chunk.iter().for_each(|first| first.record(first_ms as f64 / 1000.0, &common));
        }
        self.count(&call.spent.usage, &common);
    }

    fn count(&self, usage: &Usage, common: &[KeyValue]) {
        // A call that was not heard out tells no usage: nothing is known of it, which is not the same as zero.
        if *usage == Usage::default() {
            return;
        }
        let with = |more: KeyValue| [common, &[more]].concat();
        // No provider we speak to says which tokens are text and which are pictures.
        let unknown = with(KeyValue::new(names::TOKEN_MODALITY, "unknown"));
        self.input.add(all_input(usage), &unknown);
        self.output.add(usage.output, &unknown);
        self.cache_read.add(usage.cache_read, &unknown);
        self.cache_write.add(usage.cache_write, &unknown);
        self.reasoning.add(usage.reasoning, &unknown);
        self.token_usage.record(all_input(usage), &with(KeyValue::new(names::TOKEN_TYPE, "input")));
        self.token_usage.record(usage.output, &with(KeyValue::new(names::TOKEN_TYPE, "output")));
    }
}

/// Input tokens as the conventions count them: with what the cache gave and took.
pub(crate) fn all_input(usage: &Usage) -> u64 {
    usage.input.saturating_add(usage.cache_read).saturating_add(usage.cache_write)
}
