//! How a stream is cut into events.

use crate::sse::{SseDecoder, SseEvent};

/// The framing of an answer's stream: bytes in, events out, however the bytes were cut.
pub(crate) trait Frames: Default + Send + 'static {
    /// The media type of the answer.
    const MEDIA_TYPE: &'static str;
    /// Whether an answer without a fitting media type, that begins with `start`, is such a stream all the same.
    fn looks_like(start: &[u8]) -> bool;
    fn push(&mut self, bytes: &[u8]);
    /// Takes in the end of the stream.
    fn finish(&mut self);
    /// The next whole event; none before more bytes are pushed.
    fn next(&mut self) -> Result<Option<SseEvent<'_>>, String>;
}

impl Frames for SseDecoder {
    const MEDIA_TYPE: &'static str = "text/event-stream";

    fn looks_like(start: &[u8]) -> bool {
        let start = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start).trim_ascii_start();
        [b"data:".as_slice(), b"event:", b"id:", b":"].iter().any(|field| start.starts_with(field))
    }

    fn push(&mut self, bytes: &[u8]) {
        SseDecoder::push(self, bytes);
    }

    fn finish(&mut self) {
        SseDecoder::finish(self);
    }

    fn next(&mut self) -> Result<Option<SseEvent<'_>>, String> {
        SseDecoder::next(self).map_err(|error| error.to_string())
    }
}
