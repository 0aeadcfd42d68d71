//! AWS's event stream: frames with checksums, each of which holds one event of the stream inside.

use crate::frames::Frames;
use crate::protocol::Text;
use crate::sse::{MAX_EVENT_BYTES, SseEvent};
use aws_smithy_eventstream::frame::read_message_from;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};
use std::ops::Range;

/// The most bytes of one frame, headers and checksums included.
const MAX_FRAME_BYTES: usize = MAX_EVENT_BYTES;
/// Two lengths, three checksums' worth of fixed bytes: no frame is shorter.
const MIN_FRAME_BYTES: usize = 16;

/// Finds the frames in a stream of bytes and takes the events out of them.
#[derive(Default)]
pub(crate) struct EventStream {
    buffer: Vec<u8>,
    /// The first byte of the frame being gathered.
    start: usize,
    /// The event given out last.
    data: Vec<u8>,
}

/// What a `chunk` holds: an event, in base 64. What else stands there is padding.
#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow)]
    bytes: Option<Text<'a>>,
}

impl Frames for EventStream {
    const MEDIA_TYPE: &'static str = "application/vnd.amazon.eventstream";

    fn looks_like(start: &[u8]) -> bool {
        let number = |at: usize| start.get(at..at + 4).map(big_endian);
        let (Some(whole), Some(headers)) = (number(0), number(4)) else { return false };
        (MIN_FRAME_BYTES..=MAX_FRAME_BYTES).contains(&whole) && headers <= whole - MIN_FRAME_BYTES
    }

    fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..std::mem::take(&mut self.start));
        self.buffer.extend_from_slice(bytes);
    }

    /// A frame says how long it is, so the end of the stream makes none whole.
    fn finish(&mut self) {}

    fn next(&mut self) -> Result<Option<SseEvent<'_>>, String> {
        while let Some(frame) = self.frame()? {
            let message = read_message_from(&self.buffer[frame.clone()]).map_err(|error| error.to_string())?;
            self.start = frame.end;
            let header = |name: &str| {
                let found = message.headers().iter().find(|header| header.name().as_str() == name)?;
                found.value().as_string().ok().map(|text| text.as_str().to_owned())
            };
            let kind = header(":message-type").unwrap_or_default();
            if kind == "exception" || kind == "error" {
                let word = header(":exception-type").or_else(|| header(":error-code"));
                self.data = refusal(word, header(":error-message"), message.payload());
                return Ok(Some(SseEvent { event: b"error", data: &self.data }));
            }
            if header(":event-type").as_deref() != Some("chunk") {
                continue;
            }
            let chunk: Chunk<'_> = serde_json::from_slice(message.payload()).map_err(|error| error.to_string())?;
            if let Some(bytes) = chunk.bytes {
                self.data.clear();
                let decoded = STANDARD.decode_vec(bytes.0.as_bytes(), &mut self.data);
                decoded.map_err(|error| format!("a chunk that is no base 64: {error}"))?;
                return Ok(Some(SseEvent { event: b"", data: &self.data }));
            }
        }
        Ok(None)
    }
}

impl EventStream {
    /// Where the next frame lies, if all of it is here.
    fn frame(&self) -> Result<Option<Range<usize>>, String> {
        let Some(length) = self.buffer.get(self.start..self.start + 4).map(big_endian) else { return Ok(None) };
        if !(MIN_FRAME_BYTES..=MAX_FRAME_BYTES).contains(&length) {
            return Err(format!(
                "a frame of {length} bytes, which is not between {MIN_FRAME_BYTES} and {MAX_FRAME_BYTES}"
            ));
        }
        let frame = self.start..self.start + length;
        Ok((frame.end <= self.buffer.len()).then_some(frame))
    }
}

fn big_endian(bytes: &[u8]) -> usize {
    bytes.iter().fold(0, |number, byte| number << 8 | usize::from(*byte))
}

/// An exception in the words of the Messages API, for the decoder of the stream inside to report.
fn refusal(word: Option<String>, message: Option<String>, payload: &[u8]) -> Vec<u8> {
    let value: Value = serde_json::from_slice(payload).unwrap_or_default();
    let said = ["originalMessage", "message", "Message"].iter().find_map(|name| value[*name].as_str());
    let message = message.or_else(|| said.map(str::to_owned)).unwrap_or_else(|| payload_text(payload));
    let error = json!({ "type": word, "message": message, "status": value["originalStatusCode"] });
    json!({ "type": "error", "error": error }).to_string().into_bytes()
}

fn payload_text(payload: &[u8]) -> String {
    String::from_utf8_lossy(payload).into_owned()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A frame made by the format's description, without the crate that reads it here.
    pub(crate) fn frame(headers: &[(&str, &str)], payload: &[u8]) -> Vec<u8> {
        let mut head = Vec::new();
        for (name, value) in headers {
            head.push(u8::try_from(name.len()).unwrap());
            head.extend_from_slice(name.as_bytes());
            head.push(7); // text
            head.extend_from_slice(&u16::try_from(value.len()).unwrap().to_be_bytes());
            head.extend_from_slice(value.as_bytes());
        }
        let number = |length: usize| u32::try_from(length).unwrap().to_be_bytes();
        let mut frame = [number(MIN_FRAME_BYTES + head.len() + payload.len()), number(head.len())].concat();
        frame.extend_from_slice(&checksum(&frame).to_be_bytes());
        frame.extend_from_slice(&head);
        frame.extend_from_slice(payload);
        frame.extend_from_slice(&checksum(&frame).to_be_bytes());
        frame
    }

    /// CRC-32 as in Ethernet and zip.
    fn checksum(bytes: &[u8]) -> u32 {
        !bytes.iter().fold(!0, |sum, byte| {
            (0..8).fold(sum ^ u32::from(*byte), |sum, _| sum >> 1 ^ if sum & 1 == 1 { 0xedb8_8320 } else { 0 })
        })
    }

    pub(crate) fn chunk(event: &str) -> Vec<u8> {
        let payload = json!({ "bytes": STANDARD.encode(event), "p": "abcdefg" }).to_string();
        let headers = [(":event-type", "chunk"), (":content-type", "application/json"), (":message-type", "event")];
        frame(&headers, payload.as_bytes())
    }

    pub(crate) fn exception(word: &str, payload: &str) -> Vec<u8> {
        let headers =
            [(":exception-type", word), (":content-type", "application/json"), (":message-type", "exception")];
        frame(&headers, payload.as_bytes())
    }

    fn events(pieces: &[&[u8]]) -> Result<Vec<(String, String)>, String> {
        let (mut stream, mut events) = (EventStream::default(), vec![]);
        for piece in pieces {
            stream.push(piece);
            while let Some(event) = stream.next()? {
                let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
                events.push((text(event.event), text(event.data)));
            }
        }
        stream.finish();
        assert_eq!(stream.next()?, None);
        Ok(events)
    }

    /// Made with Python's `struct` and `zlib.crc32`, and read by botocore's `EventStreamBuffer`.
    const FOREIGN: &str = "000000950000004b9dcaef110b3a6576656e742d747970650700056368756e6b0d3a636f6e74656e742d74797065070010617070\
        6c69636174696f6e2f6a736f6e0d3a6d6573736167652d747970650700056576656e747b226279746573223a202265794a306558426c496a6f\
        67496d316c63334e685a3256666333527663434a39222c202270223a202261626364227dc565b498";

    #[test]
    fn a_frame_of_another_maker_is_read() {
        let bytes: Vec<u8> =
            (0..FOREIGN.len() / 2).map(|at| u8::from_str_radix(&FOREIGN[at * 2..at * 2 + 2], 16).unwrap()).collect();
        assert!(EventStream::looks_like(&bytes));
        assert_eq!(events(&[&bytes]).unwrap(), [(String::new(), r#"{"type": "message_stop"}"#.to_owned())]);
    }

    #[test]
    fn a_cut_at_any_byte_changes_nothing() {
        let silent = frame(&[(":event-type", "initial-response"), (":message-type", "event")], b"");
        let bytes =
            [silent, chunk("one"), chunk("two"), exception("throttlingException", r#"{"message":"slow"}"#)].concat();
        let whole = events(&[&bytes]).unwrap();
        let texts: Vec<&str> = whole.iter().map(|(_, data)| data.as_str()).collect();
        assert_eq!(
            texts,
            ["one", "two", r#"{"type":"error","error":{"type":"throttlingException","message":"slow","status":null}}"#]
        );
        assert_eq!(whole[2].0, "error");
        for at in 0..=bytes.len() {
            assert_eq!(events(&[&bytes[..at], &bytes[at..]]).unwrap(), whole, "cut at {at}");
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(events(&single).unwrap(), whole);
    }

    #[test]
    fn a_changed_byte_is_noticed() {
        let bytes = chunk("one");
        // The first bytes say how much to wait for: a stream that ends meanwhile is cut.
        for at in 4..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert!(events(&[&changed]).is_err(), "byte {at}");
        }
    }

    #[test]
    fn a_frame_beyond_the_limit_is_refused_before_it_comes() {
        let error = events(&[&[0x7f, 0, 0, 0]]).unwrap_err();
        insta::assert_snapshot!(error, @"a frame of 2130706432 bytes, which is not between 16 and 16777216");
        assert!(events(&[&[0, 0, 0, 4]]).is_err());
        assert!(!EventStream::looks_like(b"{\"message\": \"no\"}"));
        assert!(!EventStream::looks_like(b"\0\0"));
    }

    #[test]
    fn what_was_read_does_not_gather() {
        let mut stream = EventStream::default();
        for _ in 0..1_000 {
            stream.push(&chunk("one"));
            assert!(stream.next().unwrap().is_some());
        }
        assert!(stream.buffer.len() < 1_000);
    }
}
