//! Anthropic Messages as Amazon Bedrock streams them: each event in a binary frame of its own.

use crate::anthropic;
use crate::player::{Event, Wire};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Crc;
use serde_json::{Value, json};

pub const CONTENT_TYPE: &str = "application/vnd.amazon.eventstream";

/// A frame's header value is a text.
const TEXT: u8 = 7;

/// Bytes before a frame's headers: the lengths of all and of the headers, and their checksum.
const PRELUDE_BYTES: usize = 12;

/// Writes one event in its frame; an error is an exception's frame.
pub fn write(wire: &Wire, event: Event, out: &mut Vec<u8>) {
    if let Event::Error(error) = event {
        return exception(out, &error);
    }
    let mut event_text = Vec::with_capacity(256);
    anthropic::write(wire, event, &mut event_text);
    let mark = b"\ndata: ";
    let Some(at) = event_text.windows(mark.len()).position(|bytes| bytes == mark) else { return };
    chunk(out, event_text[at + mark.len()..].trim_ascii_end());
}

/// A frame that holds an event's JSON, or what stands in its place.
pub fn chunk(out: &mut Vec<u8>, data: &[u8]) {
    let headers = [(":event-type", "chunk"), (":content-type", "application/json"), (":message-type", "event")];
    let mut payload = String::with_capacity(data.len() / 3 * 4 + 16);
    payload.push_str("{\"bytes\":\"");
    STANDARD.encode_string(data, &mut payload);
    payload.push_str("\"}");
    frame(out, &headers, payload.as_bytes());
}

fn exception(out: &mut Vec<u8>, error: &Value) {
    let kind = error["type"].as_str().unwrap_or_default();
    let headers = [(":exception-type", kind), (":content-type", "application/json"), (":message-type", "exception")];
    frame(out, &headers, json!({"message": error["message"]}).to_string().as_bytes());
}

fn frame(out: &mut Vec<u8>, headers: &[(&str, &str)], payload: &[u8]) {
    let from = out.len();
    let head_bytes: usize = headers.iter().map(|(name, value)| name.len() + value.len() + 4).sum();
    let all_bytes = PRELUDE_BYTES + head_bytes + payload.len() + 4;
    out.extend_from_slice(&(all_bytes as u32).to_be_bytes());
    out.extend_from_slice(&(head_bytes as u32).to_be_bytes());
    checksum(out, from);
    for (name, value) in headers {
        out.push(name.len() as u8);
        out.extend_from_slice(name.as_bytes());
        out.push(TEXT);
        out.extend_from_slice(&(value.len() as u16).to_be_bytes());
        out.extend_from_slice(value.as_bytes());
    }
    out.extend_from_slice(payload);
    checksum(out, from);
}

/// The checksum of what stands from `from` on.
fn checksum(out: &mut Vec<u8>, from: usize) {
    let mut crc = Crc::new();
    crc.update(&out[from..]);
    out.extend_from_slice(&crc.sum().to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_has_its_lengths_and_checksums() {
        let mut out = b"before".to_vec();
        frame(&mut out, &[(":a", "b")], b"{}");
        let frame = &out[6..];
        assert_eq!(frame.len(), 12 + 7 + 2 + 4);
        assert_eq!(frame[..8], [0, 0, 0, 25, 0, 0, 0, 7]);
        assert_eq!(&frame[12..21], b"\x02:a\x07\x00\x01b{}");
        let crc = |bytes: &[u8]| {
            let table = |byte: u32| (0..8).fold(byte, |c, _| if c & 1 == 1 { c >> 1 ^ 0xedb8_8320 } else { c >> 1 });
            !bytes.iter().fold(!0, |c: u32, b| table((c ^ u32::from(*b)) & 255) ^ c >> 8)
        };
        assert_eq!(frame[8..12], crc(&frame[..8]).to_be_bytes());
        assert_eq!(frame[21..], crc(&frame[..21]).to_be_bytes());
    }
}
