//! A request's body in segments: what was encoded before is sent as it lies, not copied together.

use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use serde::{Serialize, Serializer};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Pieces of fewer bytes are copied together, so that many small messages do not become many small writes.
const SMALL_BYTES: usize = 4 * 1024;
/// The size at which such a collection is closed, in bytes.
const FULL_BYTES: usize = 64 * 1024;

/// A body being put together.
#[derive(Default)]
pub(crate) struct Segments {
    closed: VecDeque<Bytes>,
    open: Vec<u8>,
}

impl Segments {
    /// Adds a piece that is only borrowed.
    pub(crate) fn push(&mut self, piece: &[u8]) {
        self.open.extend_from_slice(piece);
        if self.open.len() >= FULL_BYTES {
            self.close();
        }
    }

    /// Adds a piece that is shared: copied if small, kept as it is otherwise.
    pub(crate) fn share(&mut self, piece: &Bytes) {
        if piece.len() < SMALL_BYTES {
            return self.push(piece);
        }
        self.close();
        self.closed.push_back(piece.clone());
    }

    fn close(&mut self) {
        if !self.open.is_empty() {
            self.closed.push_back(std::mem::take(&mut self.open).into());
        }
    }

    pub(crate) fn into_body(mut self) -> SegmentBody {
        self.close();
        let left = self.closed.iter().map(|segment| segment.len() as u64).sum();
        SegmentBody { segments: self.closed, left }
    }
}

impl SegmentBody {
    /// What is still to be sent.
    pub(crate) fn bytes(&self) -> u64 {
        self.left
    }

    pub(crate) fn segments(&self) -> impl Iterator<Item = &Bytes> {
        self.segments.iter()
    }
}

/// A body of a known length, sent segment by segment.
pub(crate) struct SegmentBody {
    segments: VecDeque<Bytes>,
    left: u64,
}

impl Body for SegmentBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let segment = self.segments.pop_front();
        self.left -= segment.as_ref().map_or(0, |segment| segment.len() as u64);
        Poll::Ready(segment.map(|segment| Ok(Frame::data(segment))))
    }

    fn is_end_stream(&self) -> bool {
        self.segments.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

/// Appends `value` as JSON.
pub(crate) fn write_json(out: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) {
    serde_json::to_writer(out, value).expect("strings, numbers and JSON values always encode");
}

/// The object `body` as JSON without its closing brace and with a comma: more follows.
pub(crate) fn opened(body: &impl Serialize) -> Vec<u8> {
    let mut out = Vec::new();
    write_json(&mut out, body);
    out.pop();
    out.push(b',');
    out
}

/// Bytes that are written in base 64.
pub(crate) struct Base64<'a>(pub &'a Bytes);

impl Serialize for Base64<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&Base64Display::new(self.0, &STANDARD))
    }
}

/// Appends `items` as JSON, with a comma between them and before the first if something stands before it.
pub(crate) fn write_items<T: Serialize>(out: &mut Vec<u8>, items: impl IntoIterator<Item = T>) {
    for item in items {
        if !matches!(out.last(), None | Some(b'[')) {
            out.push(b',');
        }
        write_json(out, &item);
    }
}

#[cfg(test)]
impl SegmentBody {
    pub(crate) fn json(&self) -> serde_json::Value {
        let bytes: Vec<u8> = self.segments.iter().flatten().copied().collect();
        assert_eq!(bytes.len() as u64, self.left);
        serde_json::from_slice(&bytes).unwrap()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_pieces_are_joined_and_large_ones_sent_as_they_lie() {
        let large = Bytes::from(vec![b'x'; SMALL_BYTES]);
        let mut segments = Segments::default();
        for _ in 0..100 {
            segments.push(b"{");
            segments.share(&Bytes::from_static(b"small"));
        }
        segments.share(&large);
        segments.push(b"}");
        let body = segments.into_body();
        assert_eq!(body.size_hint().exact(), Some(600 + SMALL_BYTES as u64 + 1));
        let sizes: Vec<usize> = body.segments().map(Bytes::len).collect();
        assert_eq!(sizes, [600, SMALL_BYTES, 1]);
        assert_eq!(body.segments().nth(1).unwrap().as_ptr(), large.as_ptr());
    }

    #[test]
    fn no_joined_segment_grows_without_end() {
        let mut segments = Segments::default();
        for _ in 0..1_000 {
            segments.push(&[b'x'; 1_000]);
        }
        assert!(segments.into_body().segments().all(|segment| segment.len() < FULL_BYTES + 1_000));
    }

    #[test]
    fn the_length_left_shrinks_as_segments_go() {
        let mut segments = Segments::default();
        segments.share(&Bytes::from(vec![b'x'; SMALL_BYTES]));
        segments.push(b"end");
        let mut body = segments.into_body();
        let mut context = Context::from_waker(std::task::Waker::noop());
        assert!(Pin::new(&mut body).poll_frame(&mut context).is_ready());
        assert_eq!(body.size_hint().exact(), Some(3));
        assert!(!body.is_end_stream());
        assert!(Pin::new(&mut body).poll_frame(&mut context).is_ready());
        assert!(body.is_end_stream());
    }
}
