//! Asks the model, and reports what it says as it says it.

use crate::DeltaKind;
use crate::briefing::Speech;
use crate::report::{Item, Piece, Reporter};
use futures_util::StreamExt;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;
use windlass_kernel::*;
use windlass_llm::{Delta, ModelEvent, ModelStream, Prices, Request};

/// Bytes that are taken for a token where the provider does not count them.
const BYTES_PER_TOKEN: u64 = 4;
/// Tokens that a picture or document is taken for there, however many bytes it has.
const TOKENS_PER_MEDIUM: u64 = 1_600;
/// Time a stream has, after the message is whole, to end by itself so that its connection can be used again.
const DRAIN: Duration = Duration::from_millis(500);

/// A stream that is being listened to.
struct Listening {
    stream: ModelStream,
    sent: Instant,
    first_token_ms: Option<u64>,
    prices: Option<Prices>,
    /// What the provider said of the request before it answered, and the bytes of both: all that is known of a call
    /// that breaks off.
    heard: Usage,
    sent_bytes: u64,
    heard_bytes: u64,
    media: Media,
}

/// The pictures and documents of a request: how many there are, and their bytes as they are written into it.
#[derive(Clone, Copy, Default)]
struct Media {
    count: u64,
    bytes: u64,
}

pub(crate) async fn speak(speech: Speech, cancel: CancellationToken, reporter: Reporter) {
    let work = reporter.work;
    let wait = backoff(&speech.retry, speech.failed, speech.retry_after_ms, work);
    if !wait.is_zero() && cancel.run_until_cancelled(tokio::time::sleep(wait)).await.is_none() {
        return reporter.fact(Event::ModelCancelled { work, spent: Spent::default() }).await;
    }
    let model = match speech.model {
        Ok(model) => model,
        Err(message) => return reporter.fact(failed(work, FailureKind::Invalid, message)).await,
    };
    let media = Media::of(&speech.request);
    let (stream, sent) = (model.call(speech.request), Instant::now());
    let mut listening = Listening::new(stream, sent, speech.prices, media);
    loop {
        let read = tokio::select! {
            biased;
            _ = cancel.cancelled() => {
                let spent = listening.reckoned();
                return reporter.fact(Event::ModelCancelled { work, spent }).await;
            }
            read = listening.stream.next() => read,
        };
        let (items, over) = listening.hear(work, read);
        reporter.send(items, vec![]).await;
        if over {
            break;
        }
    }
    let _ = tokio::time::timeout(DRAIN, async { while listening.stream.next().await.is_some() {} }).await;
}

impl Listening {
    fn new(stream: ModelStream, sent: Instant, prices: Option<Prices>, media: Media) -> Listening {
        let heard = Usage::default();
        Listening { stream, sent, first_token_ms: None, prices, heard, sent_bytes: 0, heard_bytes: 0, media }
    }

    /// What one network read amounts to, and whether the call is over with it.
    fn hear(&mut self, work: Seq, read: Option<Result<Vec<ModelEvent>, ModelFailure>>) -> (Vec<Item>, bool) {
        let events = match read {
            Some(Ok(events)) => events,
            Some(Err(error)) => {
                let spent = self.reckoned();
                return (vec![Item::Fact(Event::ModelFailed { work, error, spent })], true);
            }
            None => {
                let message = "the stream ended before the message was whole".into();
                let error = ModelFailure { kind: FailureKind::Transient, message, status: None, retry_after_ms: None };
                let spent = self.reckoned();
                return (vec![Item::Fact(Event::ModelFailed { work, error, spent })], true);
            }
        };
        let mut over = false;
        let mut items = Vec::with_capacity(events.len());
        for event in events {
            over |= matches!(event, ModelEvent::Finished { .. });
            items.extend(self.item(work, event));
        }
        (items, over)
    }

    fn item(&mut self, work: Seq, event: ModelEvent) -> Option<Item> {
        let item = match event {
            ModelEvent::Accepted { body_bytes } => {
                self.sent_bytes = body_bytes;
                return None;
            }
            ModelEvent::Started { usage, .. } => {
                self.heard = usage;
                return None;
            }
            ModelEvent::BlockStarted { .. } => {
                self.first_token();
                return None;
            }
            ModelEvent::Delta { index, delta } => {
                self.first_token();
                let (kind, text) = match delta {
                    Delta::Text(text) => (DeltaKind::Text, text),
                    Delta::Thinking(text) => (DeltaKind::Thinking, text),
                    Delta::Input(text) => (DeltaKind::Input, text),
                };
                self.heard_bytes += text.len() as u64;
                Item::Delta(Piece { work, index, kind, text })
            }
            ModelEvent::BlockFinished { index, block } => {
                Item::Fact(Event::BlockFinished { work, index, block, partial: false })
            }
            ModelEvent::Finished { stop, raw_stop, usage } => {
                // Some servers do not count, and a connection may break right before the count.
                let spent = if usage == Usage::default() { self.reckoned() } else { self.spent(usage) };
                Item::Fact(Event::ModelFinished { work, stop, raw_stop, spent })
            }
        };
        Some(item)
    }

    fn first_token(&mut self) {
        if self.first_token_ms.is_none() {
            self.first_token_ms = Some(self.sent.elapsed().as_millis() as u64);
        }
    }

    fn spent(&self, usage: Usage) -> Spent {
        // No usage is no price: nobody said what the call took.
        let prices = self.prices.filter(|_| usage != Usage::default());
        let cost_micro_usd = prices.map(|prices| prices.cost_micro_usd(&usage));
        Spent { usage, cost_micro_usd, first_token_ms: self.first_token_ms, estimated: false }
    }

    /// What a call that broke off took: what the provider counted, and for the rest a token for every four bytes. A
    /// call of which nothing was heard is taken to cost nothing.
    fn reckoned(&self) -> Spent {
        let is_counted = self.heard != Usage::default();
        if !is_counted && self.heard_bytes == 0 {
            return self.spent(Usage::default());
        }
        let mut usage = self.heard;
        if !is_counted {
            usage.input = self.media.tokens_of(self.sent_bytes);
        }
        usage.output = usage.output.max(self.heard_bytes.div_ceil(BYTES_PER_TOKEN));
        Spent { estimated: true, ..self.spent(usage) }
    }
}

impl Media {
    fn of(request: &Request) -> Media {
        // In base 64.
        let bytes = request.blobs.values().map(|blob| (blob.len() as u64).div_ceil(3) * 4).sum();
        Media { count: request.blobs.len() as u64, bytes }
    }

    /// What a body of so many bytes is taken for.
    fn tokens_of(self, sent_bytes: u64) -> u64 {
        match sent_bytes.checked_sub(self.bytes) {
            Some(text) => text.div_ceil(BYTES_PER_TOKEN) + self.count * TOKENS_PER_MEDIUM,
            // They were not all sent: the session has forgotten some.
            None => sent_bytes.div_ceil(BYTES_PER_TOKEN),
        }
    }
}

/// How long to wait before an attempt that follows `failed` others. Spread by up to a quarter, so that sessions that
/// failed together do not come back together; by the work's number, for nothing here rolls dice.
fn backoff(retry: &Retry, failed: u32, retry_after_ms: Option<u64>, work: Seq) -> Duration {
    if failed == 0 {
        return Duration::ZERO;
    }
    // Asked to wait for nothing, one would use all attempts up at once.
    let wait_ms = retry_after_ms.filter(|asked| *asked > 0).unwrap_or_else(|| {
        let doubled = retry.base_ms.saturating_mul(1 << (failed - 1).min(20));
        doubled.saturating_add((doubled / 4).saturating_mul(work.0.wrapping_mul(0x9E37_79B9) % 256) / 256)
    });
    Duration::from_millis(wait_ms.min(retry.max_wait_ms))
}

fn failed(work: Seq, kind: FailureKind, message: String) -> Event {
    let error = ModelFailure { kind, message, status: None, retry_after_ms: None };
    Event::ModelFailed { work, error, spent: Spent::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_nobody_counted_is_reckoned_and_its_pictures_are_not_weighed() {
        let prices = Prices::from_dollars(1.0, 10.0, 1.0, 1.0).unwrap();
        let media = Media { count: 1, bytes: 4_000_000 };
        let mut listening = Listening::new(futures_util::stream::empty().boxed(), Instant::now(), Some(prices), media);
        let finished = |usage| ModelEvent::Finished { stop: StopReason::EndTurn, raw_stop: None, usage };
        let delta = ModelEvent::Delta { index: 0, delta: Delta::Text("twelve bytes".into()) };
        let mut spent = |usage| {
            let events = [ModelEvent::Accepted { body_bytes: 4_000_400 }, delta.clone(), finished(usage)];
            let (items, over) = listening.hear(Seq(7), Some(Ok(events.into())));
            assert!(over);
            listening.heard_bytes = 0;
            let Some(Item::Fact(Event::ModelFinished { spent, .. })) = items.into_iter().last() else { panic!() };
            spent
        };
        let counted = Usage { input: 9, output: 2, ..Usage::default() };
        assert_eq!((spent(counted).usage, spent(counted).estimated), (counted, false));
        let reckoned = spent(Usage::default());
        // 100 for the text and 1,600 for the picture at $1, 3 for the answer at $10, per million.
        assert_eq!(reckoned.usage, Usage { input: 1_700, output: 3, ..Usage::default() });
        assert_eq!((reckoned.cost_micro_usd, reckoned.estimated), (Some(1_730), true));
    }

    #[test]
    fn waits_double_and_stay_within_a_quarter_and_the_limit() {
        let retry = Retry::default();
        let backoff = |failed, asked, work| backoff(&retry, failed, asked, Seq(work)).as_millis();
        assert_eq!(backoff(0, Some(5_000), 1), 0);
        for work in 1..100 {
            for (failed, base) in [(1, 500), (2, 1_000), (3, 2_000)] {
                let wait = backoff(failed, None, work);
                assert!((base..=base * 5 / 4).contains(&wait), "{failed} failures: {wait} ms");
            }
        }
        assert_eq!(backoff(1, Some(1_500), 9), 1_500);
        assert_eq!(backoff(2, Some(0), 9), backoff(2, None, 9));
        assert_eq!(backoff(1_000, None, 9), 60_000);
    }
}
