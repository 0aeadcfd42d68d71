//! The head of an answer: a stream is let through, and anything else is read for what it says.

use crate::endpoint::Target;
use crate::frames::Frames;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use http::header;
use reqwest::Response;
use std::time::Duration;
use tokio::time::timeout;
use windlass_kernel::ModelFailure;

/// The most bytes of an answer that is no stream that are read.
pub(crate) const MAX_REFUSAL_BYTES: usize = 64 * 1024;
/// Bytes that tell a stream from anything else: a byte order mark, line ends and the first field.
const MIN_START_BYTES: usize = 32;
/// How long the words of a refusal are waited for.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(10);

/// Lets through what is a stream of events and makes a failure of anything else.
pub(crate) async fn check<F: Frames>(
    target: &Target,
    url: &str,
    mut response: Response,
) -> Result<BoxStream<'static, reqwest::Result<Bytes>>, ModelFailure> {
    let kind = response.headers().get(header::CONTENT_TYPE);
    let kind = kind.map_or("", |kind| kind.to_str().unwrap_or("an unreadable content type")).to_owned();
    // A server that does not say what it sends is believed; its first event will tell.
    let is_stream = kind.is_empty() || kind.to_ascii_lowercase().starts_with(F::MEDIA_TYPE);
    let (status, headers) = (response.status(), response.headers().clone());
    if !status.is_success() {
        let body = read_refusal(response, vec![], target).await;
        return Err(target.refused(url, status, &headers, &body));
    }
    if is_stream {
        return Ok(response.bytes_stream().boxed());
    }
    let wait = Duration::from_millis(target.http.clocks().first_event_ms);
    let first = match timeout(wait, read_start::<F>(&mut response)).await {
        Ok(Ok(first)) if first.is_empty() => return Err(target.cut(url, None)),
        Ok(Ok(first)) => first,
        Ok(Err(error)) => return Err(target.cut(url, Some(&error))),
        Err(_) => return Err(target.silent(url, "the first event", wait)),
    };
    // Some proxies name the type wrongly; the bytes are what counts.
    if F::looks_like(&first) {
        return Ok(stream::iter([Ok(Bytes::from(first))]).chain(response.bytes_stream()).boxed());
    }
    let body = read_refusal(response, first, target).await;
    Err(target.not_a_stream(url, &kind, F::MEDIA_TYPE, &body))
}

/// Reads so much that one can tell whether it is a stream; less only where there is no more.
async fn read_start<F: Frames>(response: &mut Response) -> reqwest::Result<Vec<u8>> {
    let mut start = vec![];
    while start.len() < MIN_START_BYTES
        && !F::looks_like(&start)
        && let Some(chunk) = response.chunk().await?
    {
        start.extend_from_slice(&chunk);
    }
    Ok(start)
}

/// Reads an answer that is no stream, as far as it goes and to its end if it is short.
pub(crate) async fn read_refusal(mut response: Response, mut body: Vec<u8>, target: &Target) -> Vec<u8> {
    let wait = Duration::from_millis(target.http.clocks().headers_ms).min(REFUSAL_TIMEOUT);
    let read = async {
        while body.len() < MAX_REFUSAL_BYTES
            && let Ok(Some(chunk)) = response.chunk().await
        {
            body.extend_from_slice(&chunk);
        }
    };
    let _ = timeout(wait, read).await;
    body.truncate(MAX_REFUSAL_BYTES);
    body
}
