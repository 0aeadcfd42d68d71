//! Server-sent events: bytes in, events out, however the bytes were cut.

use memchr::{memchr, memchr2};
use std::ops::Range;

/// The most bytes one event may have, its field names and line ends included.
pub const MAX_EVENT_BYTES: usize = 16 * 1024 * 1024;

const BOM: &[u8] = b"\xef\xbb\xbf";

/// One event. Both parts lie in the decoder's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SseEvent<'a> {
    /// The event's name; empty if it has none.
    pub event: &'a [u8],
    /// Its data lines, joined by line feeds.
    pub data: &'a [u8],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event of the stream is larger than {limit} bytes")]
pub struct EventTooLarge {
    pub limit: usize,
}

/// Finds the events in a stream of bytes. Every byte is copied in once and looked at once.
pub struct SseDecoder {
    buffer: Vec<u8>,
    limit: usize,
    /// The first byte of the event being gathered.
    start: usize,
    /// The first byte of the line being gathered.
    line: usize,
    /// No line ends before here.
    searched: usize,
    /// The last line ended in CR: a LF right behind it belongs to it.
    after_cr: bool,
    /// The stream's first bytes were looked at for a byte order mark.
    opened: bool,
    /// The fields belong to an event already given out.
    given: bool,
    fields: Fields,
}

/// Where the fields of the event being gathered lie in the buffer.
#[derive(Default)]
struct Fields {
    event: Option<Range<usize>>,
    data: Option<Range<usize>>,
    /// Several data lines, joined; empty as long as there is only one.
    joined: Vec<u8>,
    is_joined: bool,
}

impl Default for SseDecoder {
    fn default() -> SseDecoder {
        SseDecoder::with_limit(MAX_EVENT_BYTES)
    }
}

impl SseDecoder {
    /// A decoder that refuses events of more than `limit` bytes.
    pub fn with_limit(limit: usize) -> SseDecoder {
        SseDecoder {
            buffer: Vec::new(),
            limit,
            start: 0,
            line: 0,
            searched: 0,
            after_cr: false,
            opened: false,
            given: false,
            fields: Fields::default(),
        }
    }

    /// Takes in the next bytes of the stream.
    pub fn push(&mut self, bytes: &[u8]) {
        self.forget_given();
        self.drop_read();
        self.buffer.extend_from_slice(bytes);
    }

    /// Takes in the end of the stream: an event that lacks only its blank line counts.
    pub fn finish(&mut self) {
        self.opened |= !self.skip_bom();
        self.push(b"\n\n");
    }

    /// The next whole event; none before more bytes are pushed.
    #[allow(clippy::should_implement_trait)] // an event borrows the decoder, which no Iterator can say
    pub fn next(&mut self) -> Result<Option<SseEvent<'_>>, EventTooLarge> {
        self.forget_given();
        if !self.skip_bom() {
            return Ok(None);
        }
        while let Some(line) = self.take_line() {
            if self.line - self.start > self.limit {
                return Err(EventTooLarge { limit: self.limit });
            }
            if !line.is_empty() {
                self.take_field(line);
            } else if self.end_event() {
                return Ok(Some(self.event()));
            }
        }
        if self.buffer.len() - self.start > self.limit {
            return Err(EventTooLarge { limit: self.limit });
        }
        Ok(None)
    }

    fn forget_given(&mut self) {
        if std::mem::take(&mut self.given) {
            self.fields.clear();
        }
    }

    /// Moves the unfinished event to the buffer's front. It happens at most once per finished event.
    fn drop_read(&mut self) {
        let read = std::mem::take(&mut self.start);
        if read == 0 {
            return;
        }
        self.buffer.copy_within(read.., 0);
        self.buffer.truncate(self.buffer.len() - read);
        self.line -= read;
        self.searched -= read;
        for range in [&mut self.fields.event, &mut self.fields.data].into_iter().flatten() {
            *range = range.start - read..range.end - read;
        }
    }

    /// Steps over a byte order mark; false if too few bytes are here to tell.
    fn skip_bom(&mut self) -> bool {
        if self.opened {
            return true;
        }
        let head = &self.buffer[..self.buffer.len().min(BOM.len())];
        if head.len() < BOM.len() && BOM.starts_with(head) {
            return false;
        }
        if head == BOM {
            self.start = BOM.len();
            self.line = BOM.len();
            self.searched = BOM.len();
        }
        self.opened = true;
        true
    }

    fn take_line(&mut self) -> Option<Range<usize>> {
        if self.after_cr {
            let first = *self.buffer.get(self.line)?;
            self.line += usize::from(first == b'\n');
            self.searched = self.line;
            self.after_cr = false;
        }
        let Some(found) = memchr2(b'\n', b'\r', &self.buffer[self.searched..]) else {
            self.searched = self.buffer.len();
            return None;
        };
        let end = self.searched + found;
        let line = self.line..end;
        self.after_cr = self.buffer[end] == b'\r';
        self.line = end + 1;
        self.searched = self.line;
        Some(line)
    }

    fn take_field(&mut self, line: Range<usize>) {
        let text = &self.buffer[line.clone()];
        let (name, value) = match memchr(b':', text) {
            Some(colon) => {
                let space = usize::from(text.get(colon + 1) == Some(&b' '));
                (&text[..colon], line.start + colon + 1 + space..line.end)
            }
            None => (text, line.end..line.end),
        };
        match name {
            b"data" => self.fields.add_data(&self.buffer, value),
            b"event" => self.fields.event = Some(value),
            // A comment that stands before any field keeps the connection alive and nothing else.
            b"" if self.fields.is_empty() => self.start = self.line,
            _ => {}
        }
    }

    /// Ends the event at a blank line; false if it has no data, which is no event.
    fn end_event(&mut self) -> bool {
        self.start = self.line;
        self.given = self.fields.data.is_some();
        if !self.given {
            self.fields.clear();
        }
        self.given
    }

    fn event(&self) -> SseEvent<'_> {
        let part = |range: &Option<Range<usize>>| range.clone().map_or(&[][..], |range| &self.buffer[range]);
        let data = if self.fields.is_joined { &self.fields.joined[..] } else { part(&self.fields.data) };
        SseEvent { event: part(&self.fields.event), data }
    }
}

impl Fields {
    fn is_empty(&self) -> bool {
        self.event.is_none() && self.data.is_none()
    }

    fn clear(&mut self) {
        self.event = None;
        self.data = None;
        self.is_joined = false;
        self.joined.clear();
    }

    fn add_data(&mut self, buffer: &[u8], value: Range<usize>) {
        let Some(first) = self.data.clone() else {
            self.data = Some(value);
            return;
        };
        if !std::mem::replace(&mut self.is_joined, true) {
            self.joined.extend_from_slice(&buffer[first]);
        }
        self.joined.push(b'\n');
        self.joined.extend_from_slice(&buffer[value]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Owned = (String, String);

    fn drain(decoder: &mut SseDecoder, events: &mut Vec<Owned>) -> Result<(), EventTooLarge> {
        while let Some(event) = decoder.next()? {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            events.push((text(event.event), text(event.data)));
        }
        Ok(())
    }

    fn decode(pieces: &[&[u8]]) -> Vec<Owned> {
        let (mut decoder, mut events) = (SseDecoder::default(), Vec::new());
        for piece in pieces {
            decoder.push(piece);
            drain(&mut decoder, &mut events).unwrap();
        }
        decoder.finish();
        drain(&mut decoder, &mut events).unwrap();
        events
    }

    const STORY: &str = "\u{feff}: hello\r\n\r\nevent: greeting\r\ndata: gr\u{fc}\u{df} \u{1f44b}\r\n\r\n\
        event:tight\ndata:no space\n\n\
        data: one\rdata\rdata:  two\r\r\
        id: 7\nretry: 10\n: a comment between\ndata: {\"a\": \"b: c\"}\n\n\
        event: without data\n\n\
        data: last, without its blank line";

    #[test]
    fn all_line_ends_comments_and_spacings_are_understood() {
        insta::assert_debug_snapshot!(decode(&[STORY.as_bytes()]), @r#"
        [
            (
                "greeting",
                "grüß 👋",
            ),
            (
                "tight",
                "no space",
            ),
            (
                "",
                "one\n\n two",
            ),
            (
                "",
                "{\"a\": \"b: c\"}",
            ),
            (
                "",
                "last, without its blank line",
            ),
        ]
        "#);
    }

    #[test]
    fn a_cut_at_any_byte_changes_nothing() {
        let bytes = STORY.as_bytes();
        let whole = decode(&[bytes]);
        for at in 0..=bytes.len() {
            assert_eq!(decode(&[&bytes[..at], &bytes[at..]]), whole, "cut at {at}");
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(decode(&single), whole);
    }

    #[test]
    fn an_event_is_given_out_at_its_blank_line_and_not_later() {
        let mut decoder = SseDecoder::default();
        decoder.push(b"data: x\r\n\r");
        assert_eq!(decoder.next().unwrap().unwrap().data, b"x");
        decoder.push(b"\ndata: y\n\n");
        assert_eq!(decoder.next().unwrap().unwrap().data, b"y");
        assert_eq!(decoder.next().unwrap(), None);
    }

    #[test]
    fn an_event_over_the_limit_is_refused_however_it_comes() {
        let event = format!("data: {}\n\n", "x".repeat(100));
        for size in [1, 7, event.len()] {
            let (mut decoder, mut events) = (SseDecoder::with_limit(64), Vec::new());
            let outcome = event.as_bytes().chunks(size).try_for_each(|piece| {
                decoder.push(piece);
                drain(&mut decoder, &mut events)
            });
            assert_eq!(outcome, Err(EventTooLarge { limit: 64 }));
            assert!(events.is_empty());
        }
    }

    #[test]
    fn comments_that_go_on_for_ever_do_not_gather() {
        let mut decoder = SseDecoder::with_limit(64);
        for _ in 0..1_000 {
            decoder.push(b": still here\n");
            assert_eq!(decoder.next(), Ok(None));
        }
        assert!(decoder.buffer.len() < 64);
    }

    /// Bytes that are mostly lines of an event stream, and sometimes anything.
    fn stream() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            4 => Just(b"data: ".to_vec()),
            2 => Just(b"event:".to_vec()),
            1 => Just(b":".to_vec()),
            1 => Just(BOM.to_vec()),
            4 => Just(b"\n".to_vec()),
            2 => Just(b"\r".to_vec()),
            3 => Just(b"\r\n".to_vec()),
            3 => "[a-z\u{e4}\u{20ac}\u{1f600}]{0,6}".prop_map(String::into_bytes),
            1 => proptest::collection::vec(any::<u8>(), 0..4),
        ];
        proptest::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn any_chunking_gives_the_same_events(bytes in stream(), cuts in proptest::collection::vec(0usize..200, 0..20)) {
            let mut cuts: Vec<usize> = cuts.into_iter().filter(|cut| *cut <= bytes.len()).collect();
            cuts.sort_unstable();
            let mut pieces = Vec::new();
            let mut from = 0;
            for cut in cuts {
                pieces.push(&bytes[from..cut]);
                from = cut;
            }
            pieces.push(&bytes[from..]);
            prop_assert_eq!(decode(&pieces), decode(&[&bytes]));
        }
    }
}
