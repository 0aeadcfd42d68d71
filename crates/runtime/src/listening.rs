//! A model's answer as it comes: what each read of the stream amounts to, and what the call took.

use crate::DeltaKind;
use crate::report::{Item, Piece};
use std::time::Instant;
use windlass_kernel::*;
use windlass_llm::{Delta, Model, ModelEvent, ModelStream, Prices, Request};

/// Bytes that are taken for a token where the provider does not count them.
const BYTES_PER_TOKEN: u64 = 4;
/// Tokens that a picture or document is taken for there, however many bytes it has.
const TOKENS_PER_MEDIUM: u64 = 1_600;

/// A stream that is being listened to.
pub(crate) struct Listening {
    pub stream: ModelStream,
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

impl Listening {
    pub fn to(model: &dyn Model, request: Request, prices: Option<Prices>) -> Listening {
        let media = Media::of(&request);
        Listening::new(model.call(request), prices, media)
    }

    fn new(stream: ModelStream, prices: Option<Prices>, media: Media) -> Listening {
        let (sent, heard) = (Instant::now(), Usage::default());
        Listening { stream, sent, first_token_ms: None, prices, heard, sent_bytes: 0, heard_bytes: 0, media }
    }

    /// What one network read amounts to, and whether the call is over with it.
    pub fn hear(&mut self, work: Seq, read: Option<Result<Vec<ModelEvent>, ModelFailure>>) -> (Vec<Item>, bool) {
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
    pub fn reckoned(&self) -> Spent {
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

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::StreamExt;

    #[test]
    fn an_answer_that_nobody_counted_is_reckoned_and_its_pictures_are_not_weighed() {
        let prices = Prices::from_dollars(1.0, 10.0, 1.0, 1.0).unwrap();
        let media = Media { count: 1, bytes: 4_000_000 };
        let mut listening = Listening::new(futures_util::stream::empty().boxed(), Some(prices), media);
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
}
