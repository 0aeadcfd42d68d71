//! One call: send the request, read the stream, hand out what it says once per network read.

use crate::endpoint::Target;
use crate::protocol::{Decode, Progress, Protocol, Unreadable};
use crate::sse::SseDecoder;
use crate::{ModelEvent, ModelStream, Request};
use bytes::Bytes;
use futures_util::stream::{self, BoxStream};
use futures_util::{FutureExt, StreamExt};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use reqwest::{Response, Url};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout};
use windlass_kernel::ModelFailure;

/// The most bytes of an answer that is no stream that are read.
const MAX_REFUSAL_BYTES: usize = 64 * 1024;
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
    Read(Box<Reading<P::Decoder>>),
    Failed(ModelFailure),
    Over,
}

/// A stream being read.
struct Reading<D> {
    target: Arc<Target>,
    url: String,
    body: BoxStream<'static, reqwest::Result<Bytes>>,
    sse: SseDecoder,
    decoder: D,
    /// When the answer last came on.
    heard_at: Instant,
}

type Batch = Result<Vec<ModelEvent>, ModelFailure>;

impl<P: Protocol> Phase<P> {
    async fn step(self) -> Option<(Batch, Phase<P>)> {
        let mut reading = match self {
            Phase::Ask(target, request) => match open::<P>(target, &request).await {
                Ok(reading) => Box::new(reading),
                Err(failure) => return Some((Err(failure), Phase::Over)),
            },
            Phase::Read(reading) => reading,
            Phase::Failed(failure) => return Some((Err(failure), Phase::Over)),
            Phase::Over => return None,
        };
        loop {
            let outcome = reading.gather().await;
            let events = reading.decoder.take();
            return Some(match outcome {
                Ok(true) => (Ok(events), Phase::Over),
                Ok(false) if events.is_empty() => continue,
                Ok(false) => {
                    reading.heard_at = Instant::now();
                    (Ok(events), Phase::Read(reading))
                }
                Err(failure) if events.is_empty() => (Err(failure), Phase::Over),
                // What was heard before the failure is told first.
                Err(failure) => (Ok(events), Phase::Failed(failure)),
            });
        }
    }
}

/// Sends the request and waits for the head of a stream.
async fn open<P: Protocol>(target: Arc<Target>, request: &Request) -> Result<Reading<P::Decoder>, ModelFailure> {
    if request.parameters.max_tokens == 0 {
        return Err(target.invalid("max_tokens is 0, so no answer fits: give at least 1".into()));
    }
    let url = address::<P>(&target)?;
    let shown = without_credentials(url.clone());
    let headers = headers::<P>(&target)?;
    let body = reqwest::Body::wrap(P::encode(&target, request).into_body());
    let client = target.http.client(&url).map_err(|cause| {
        target.invalid(format!("no TLS client for {shown} can be built: {cause}; check the root certificates"))
    })?;
    let idle = target.http.idle_timeout();
    let response = match timeout(idle, client.post(url).headers(headers).body(body).send()).await {
        Ok(Ok(response)) => response,
        Ok(Err(error)) => return Err(target.unreachable(&shown, &error)),
        Err(_) => return Err(target.silent(&shown, idle)),
    };
    let response = check(&target, &shown, response).await?;
    let decoder = P::decoder(&target, request);
    let body = response.bytes_stream().boxed();
    Ok(Reading { target, url: shown, body, sse: SseDecoder::default(), decoder, heard_at: Instant::now() })
}

fn address<P: Protocol>(target: &Target) -> Result<Url, ModelFailure> {
    let base = &target.endpoint.base_url;
    let bad = |cause: String| {
        target.invalid(format!("the base URL `{base}` cannot be used: {cause}; give one like https://host/path"))
    };
    let url = Url::parse(&target.endpoint.url(P::PATH)).map_err(|error| bad(error.to_string()))?;
    match url.scheme() {
        "http" | "https" => Ok(url),
        scheme => Err(bad(format!("its scheme is `{scheme}`, not http or https"))),
    }
}

fn without_credentials(mut url: Url) -> String {
    // These fail only for addresses without a host, which have no credentials either.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_query(None);
    url.into()
}

fn headers<P: Protocol>(target: &Target) -> Result<HeaderMap, ModelFailure> {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::ACCEPT, HeaderValue::from_static("text/event-stream"));
    for (name, value) in P::HEADERS {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    if let Some(key) = &target.endpoint.api_key {
        let (name, value) = P::key_header(key.expose());
        let mut value = HeaderValue::try_from(value).map_err(|_| {
            target.invalid("the API key holds a character that no header may hold: check where it is set".into())
        })?;
        value.set_sensitive(true);
        headers.insert(HeaderName::from_static(name), value);
    }
    for (name, value) in &target.endpoint.headers {
        let bad = || target.invalid(format!("the header `{name}` is malformed: check its name and value"));
        let name = HeaderName::try_from(name).map_err(|_| bad())?;
        headers.insert(name, HeaderValue::try_from(value).map_err(|_| bad())?);
    }
    Ok(headers)
}

/// Lets through what is a stream of events and makes a failure of anything else.
async fn check(target: &Target, url: &str, response: Response) -> Result<Response, ModelFailure> {
    let kind = response.headers().get(header::CONTENT_TYPE);
    let kind = kind.map_or("", |kind| kind.to_str().unwrap_or("an unreadable content type")).to_owned();
    // A server that does not say what it sends is believed; its first event will tell.
    let is_stream = kind.is_empty() || kind.to_ascii_lowercase().starts_with("text/event-stream");
    let (status, headers) = (response.status(), response.headers().clone());
    if status.is_success() && is_stream {
        return Ok(response);
    }
    let body = read_refusal(response, target.http.idle_timeout()).await;
    Err(match status.is_success() {
        true => target.not_a_stream(url, &kind, &body),
        false => target.refused(url, status, &headers, &body),
    })
}

/// Reads an answer that is no stream, as far as it goes and to its end if it is short.
async fn read_refusal(mut response: Response, idle: Duration) -> Vec<u8> {
    let mut body = Vec::new();
    while body.len() < MAX_REFUSAL_BYTES
        && let Ok(Ok(Some(chunk))) = timeout(idle, response.chunk()).await
    {
        body.extend_from_slice(&chunk);
    }
    body.truncate(MAX_REFUSAL_BYTES);
    body
}

impl<D: Decode> Reading<D> {
    /// Reads what is there, waiting for the first of it; true at the end of the message.
    async fn gather(&mut self) -> Result<bool, ModelFailure> {
        let wait = match self.decoder.progress() {
            // Pings and white space are no progress.
            Progress::Going => self.target.http.idle_timeout().saturating_sub(self.heard_at.elapsed()),
            _ => self.target.http.idle_timeout().min(TAIL_TIMEOUT),
        };
        let Ok(mut read) = timeout(wait, self.body.next()).await else {
            let idle = self.target.http.idle_timeout();
            return self.close(|reading| reading.target.silent(&reading.url, idle));
        };
        let mut bytes = 0;
        loop {
            let chunk = match read {
                Some(Ok(chunk)) => chunk,
                Some(Err(error)) => return self.close(|reading| reading.target.cut(&reading.url, Some(&error))),
                None => return self.finish(),
            };
            self.decode(&chunk)?;
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
        self.sse.push(chunk);
        self.decode_pushed()
    }

    fn decode_pushed(&mut self) -> Result<(), ModelFailure> {
        let Reading { target, url, sse, decoder, .. } = self;
        while decoder.progress() != Progress::Ended {
            let event = match sse.next() {
                Ok(Some(event)) => event,
                Ok(None) => break,
                Err(error) => return Err(target.unreadable(url, &error.to_string())),
            };
            decoder.event(&event).map_err(|error| match error {
                Unreadable::Reported(said) => target.reported(said),
                Unreadable::Broken(cause) => {
                    let start = String::from_utf8_lossy(&event.data[..event.data.len().min(MAX_SHOWN_BYTES)]);
                    target.unreadable(url, &format!("{cause}, in: {start}"))
                }
            })?;
        }
        Ok(())
    }

    /// The connection ended: a last event without its blank line counts if it is whole.
    fn finish(&mut self) -> Result<bool, ModelFailure> {
        self.sse.finish();
        let outcome = self.decode_pushed();
        let cut = self.target.cut(&self.url, None);
        match outcome {
            Err(failure) if failure.kind != cut.kind => Err(failure),
            _ => self.close(|_| cut),
        }
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
