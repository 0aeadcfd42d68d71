//! One call: send the request, read the stream, hand out what it says once per network read.

use crate::auth::{authorize, with_key};
use crate::endpoint::Target;
use crate::frames::Frames;
use crate::head::{MAX_REFUSAL_BYTES, check};
use crate::post::{address, answer, client, without_credentials};
use crate::protocol::{Decode, Progress, Protocol, Unreadable};
use crate::said::{Said, said};
use crate::{Delta, ModelEvent, ModelStream, Request};
use bytes::Bytes;
use futures_util::stream::{self, BoxStream};
use futures_util::{FutureExt, StreamExt};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout};
use windlass_kernel::ModelFailure;

/// The most bytes decoded before their events are handed out.
const MAX_BATCH_BYTES: usize = 64 * 1024;
/// The most bytes of an unreadable event that are shown.
const MAX_SHOWN_BYTES: usize = 200;
/// How long a whole message waits for its usage, which comes behind it.
const TAIL_TIMEOUT: Duration = Duration::from_secs(5);
/// How long an ended message waits for the end of its HTTP answer, so that the connection serves the next call.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(50);
/// The most reads spent on that.
const MAX_DRAIN_READS: usize = 64;

pub(crate) fn call<P: Protocol>(target: Arc<Target>, request: Request) -> ModelStream {
    stream::unfold(Phase::<P>::Ask(target, Box::new(request)), Phase::step).boxed()
}

enum Phase<P: Protocol> {
    Ask(Arc<Target>, Box<Request>),
    Read(Box<Reading<P::Frames, P::Decoder>>),
    Failed(ModelFailure),
    Over,
}

/// A stream being read.
struct Reading<F, D> {
    target: Arc<Target>,
    url: String,
    body: BoxStream<'static, reqwest::Result<Bytes>>,
    frames: F,
    decoder: D,
    /// An event came, and since when the message has not come on.
    has_begun: bool,
    heard_at: Instant,
    /// Since when the message is whole.
    whole_at: Option<Instant>,
    /// What came before the first event: an error, maybe, that is no event.
    start: Vec<u8>,
    has_events: bool,
}

type Batch = Result<Vec<ModelEvent>, ModelFailure>;

impl<P: Protocol> Phase<P> {
    async fn step(self) -> Option<(Batch, Phase<P>)> {
        let mut reading = match self {
            Phase::Ask(target, request) => {
                return Some(match open::<P>(target, &request).await {
                    Ok((reading, body_bytes)) => {
                        (Ok(vec![ModelEvent::Accepted { body_bytes }]), Phase::Read(Box::new(reading)))
                    }
                    Err(failure) => (Err(failure), Phase::Over),
                });
            }
            Phase::Read(reading) => reading,
            Phase::Failed(failure) => return Some((Err(failure), Phase::Over)),
            Phase::Over => return None,
        };
        loop {
            let mut outcome = reading.gather().await;
            let mut events = reading.decoder.take();
            reading.hear(&events);
            // A server that never pauses leaves no read to run out of time.
            if matches!(outcome, Ok(false)) && reading.is_overdue() {
                outcome = reading.give_up();
                // A message that is whole has its end still to tell.
                events.extend(reading.decoder.take());
            }
            return Some(match outcome {
                Ok(true) => (Ok(events), Phase::Over),
                Ok(false) if events.is_empty() => continue,
                Ok(false) => (Ok(events), Phase::Read(reading)),
                Err(failure) if events.is_empty() => (Err(failure), Phase::Over),
                // What was heard before the failure is told first.
                Err(failure) => (Ok(events), Phase::Failed(failure)),
            });
        }
    }
}

/// Sends the request and waits for the head of a stream; gives also the bytes of its body.
async fn open<P: Protocol>(
    target: Arc<Target>,
    request: &Request,
) -> Result<(Reading<P::Frames, P::Decoder>, u64), ModelFailure> {
    let target = with_key(target).await?;
    if request.parameters.max_tokens == 0 {
        return Err(target.invalid("max_tokens is 0, so no answer fits: give at least 1".into()));
    }
    let url = address(&target, &target.endpoint.base_url, &P::path(&target))?;
    let shown = without_credentials(url.clone());
    let body = P::encode(&target, request).into_body();
    let body_bytes = body.bytes();
    let mut headers = headers::<P>(&target)?;
    authorize::<P>(&target, &url, &body, &mut headers).await?;
    let asked = client(&target, &url)?.post(url).headers(headers).body(reqwest::Body::wrap(body));
    let response = answer(&target, &shown, asked).await?;
    let body = check::<P::Frames>(&target, &shown, response).await?;
    let decoder = P::decoder(&target, request);
    let reading = Reading {
        target,
        url: shown,
        body,
        frames: P::Frames::default(),
        decoder,
        has_begun: false,
        heard_at: Instant::now(),
        whole_at: None,
        start: vec![],
        has_events: false,
    };
    Ok((reading, body_bytes))
}

pub(crate) fn headers<P: Protocol>(target: &Target) -> Result<HeaderMap, ModelFailure> {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::ACCEPT, HeaderValue::from_static(P::Frames::MEDIA_TYPE));
    for (name, value) in P::HEADERS {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    for (name, value) in &target.endpoint.headers {
        let bad = || target.invalid(format!("the header `{name}` is malformed: check its name and value"));
        let name = HeaderName::try_from(name).map_err(|_| bad())?;
        headers.insert(name, HeaderValue::try_from(value).map_err(|_| bad())?);
    }
    if let Some((name, value)) = P::quirk_header(target) {
        let value =
            HeaderValue::try_from(value).map_err(|_| target.invalid(format!("the header `{name}` is malformed")))?;
        headers.insert(HeaderName::from_static(name), value);
    }
    Ok(headers)
}

impl<F: Frames, D: Decode> Reading<F, D> {
    /// Starts the clock anew if the message came on.
    fn hear(&mut self, events: &[ModelEvent]) {
        if events.iter().any(brings_on) {
            self.has_begun = true;
            self.heard_at = Instant::now();
        }
    }

    /// How long the next read may take, and what it is waited for.
    fn patience(&mut self) -> (Duration, Duration, &'static str) {
        let clocks = self.target.http.clocks();
        let (limit, what) = match self.has_begun {
            false => (clocks.first_event_ms, "the first event"),
            true => (clocks.progress_ms, "anything new"),
        };
        let limit = Duration::from_millis(limit);
        if self.decoder.progress() == Progress::Going {
            return (limit.saturating_sub(self.heard_at.elapsed()), limit, what);
        }
        // Counted from the end of the content: pings behind it must not make it wait for ever.
        let whole_at = *self.whole_at.get_or_insert_with(Instant::now);
        (limit.min(TAIL_TIMEOUT).saturating_sub(whole_at.elapsed()), limit, what)
    }

    fn is_overdue(&mut self) -> bool {
        self.patience().0.is_zero()
    }

    /// Ends a message that is whole, and calls any other stalled.
    fn give_up(&mut self) -> Result<bool, ModelFailure> {
        let (_, limit, what) = self.patience();
        self.close(|reading| reading.target.silent(&reading.url, what, limit))
    }

    /// Reads what is there, waiting for the first of it; true at the end of the message.
    async fn gather(&mut self) -> Result<bool, ModelFailure> {
        let (wait, ..) = self.patience();
        let Ok(mut read) = timeout(wait, self.body.next()).await else { return self.give_up() };
        let mut bytes = 0;
        loop {
            let chunk = match read {
                Some(Ok(chunk)) => chunk,
                Some(Err(error)) => return self.close(|reading| reading.target.cut(&reading.url, Some(&error))),
                None => return self.finish(),
            };
            if let Err(failure) = self.decode(&chunk) {
                // What breaks behind the reason to stop takes nothing away from the message.
                return self.close(|_| failure);
            }
            if self.decoder.progress() == Progress::Ended {
                self.drain().await;
                return self.close(|reading| reading.target.cut(&reading.url, None));
            }
            bytes += chunk.len();
            if bytes >= MAX_BATCH_BYTES {
                return Ok(false);
            }
            match self.ready().await {
                Some(next) => read = next,
                None => return Ok(false),
            }
        }
    }

    /// The next chunk, if it is there. The connection's own task hands over one at a time, so it gets one chance
    /// to bring another before the batch is closed.
    async fn ready(&mut self) -> Option<Option<reqwest::Result<Bytes>>> {
        if let Some(next) = self.body.next().now_or_never() {
            return Some(next);
        }
        tokio::task::yield_now().await;
        self.body.next().now_or_never()
    }

    fn decode(&mut self, chunk: &[u8]) -> Result<(), ModelFailure> {
        if !self.has_events && self.start.len() < MAX_REFUSAL_BYTES {
            self.start.extend_from_slice(chunk);
        }
        self.frames.push(chunk);
        self.decode_pushed()
    }

    fn decode_pushed(&mut self) -> Result<(), ModelFailure> {
        let Reading { target, url, frames, decoder, .. } = self;
        while decoder.progress() != Progress::Ended {
            let event = match frames.next() {
                Ok(Some(event)) => event,
                Ok(None) => break,
                Err(cause) => return Err(target.unreadable(url, &cause)),
            };
            self.has_events = true;
            decoder.event(&event).map_err(|error| match error {
                Unreadable::Reported(said) => target.reported(said),
                Unreadable::Broken(cause) => {
                    let start = String::from_utf8_lossy(&event.data[..event.data.len().min(MAX_SHOWN_BYTES)]);
                    target.unreadable(url, &format!("{cause}, in: {start}"))
                }
            })?;
        }
        if self.has_events {
            self.start = vec![];
        }
        Ok(())
    }

    /// The connection ended: a last event without its blank line counts if it is whole.
    fn finish(&mut self) -> Result<bool, ModelFailure> {
        self.frames.finish();
        let outcome = self.decode_pushed();
        if let Some(said) = self.said_plainly() {
            return Err(self.target.reported(said));
        }
        let cut = self.target.cut(&self.url, None);
        match outcome {
            Err(failure) if failure.kind != cut.kind => Err(failure),
            _ => self.close(|_| cut),
        }
    }

    /// The error that a server sent in the place of a stream.
    fn said_plainly(&self) -> Option<Said> {
        let start = self.start.trim_ascii_start();
        (!self.has_events && matches!(start.first(), Some(b'{' | b'['))).then(|| said(start))
    }

    /// Ends the message if it is whole, and fails otherwise.
    fn close(&mut self, failure: impl FnOnce(&Self) -> ModelFailure) -> Result<bool, ModelFailure> {
        match self.decoder.end() {
            true => Ok(true),
            false => Err(failure(self)),
        }
    }

    /// Reads on to the end of the HTTP answer, without which the connection could not be used again.
    async fn drain(&mut self) {
        let rest = async {
            for _ in 0..MAX_DRAIN_READS {
                if !matches!(self.body.next().await, Some(Ok(_))) {
                    // The connection's task puts it back into the pool.
                    tokio::task::yield_now().await;
                    break;
                }
            }
        };
        let _ = timeout(DRAIN_TIMEOUT, rest).await;
    }
}

/// Whether the message came on: white space is said by models that hang, too.
fn brings_on(event: &ModelEvent) -> bool {
    match event {
        ModelEvent::Delta { delta: Delta::Text(text) | Delta::Thinking(text) | Delta::Input(text), .. } => {
            !text.trim().is_empty()
        }
        _ => true,
    }
}
