//! Text and bytes cut to size and named by their hash: what needs no system beneath it.

use bytes::Bytes;
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use windlass_kernel::BlobRef;

/// Bytes of text a call may give the model, where its tool says nothing else.
pub const OUTPUT_LIMIT_BYTES: usize = 30_000;

/// The first and the last part of `text`, together `limit_bytes` at most, cut at line ends where one is near.
pub(crate) fn ends(text: &str, limit_bytes: usize) -> (&str, &str) {
    let half = limit_bytes / 2;
    (head(text, half), tail(text, half))
}

/// The start of `text`, `limit_bytes` at most; ends with a line if one ends in its last quarter.
pub(crate) fn head(text: &str, limit_bytes: usize) -> &str {
    let end = text.floor_char_boundary(limit_bytes.min(text.len()));
    let line = text[..end].rfind('\n').filter(|line| line + limit_bytes / 4 >= end);
    &text[..line.unwrap_or(end)]
}

/// The end of `text`, `limit_bytes` at most; starts with a line if one starts in its first quarter.
pub(crate) fn tail(text: &str, limit_bytes: usize) -> &str {
    let start = text.ceil_char_boundary(text.len() - limit_bytes.min(text.len()));
    let line = text[start..].find('\n').filter(|line| *line < limit_bytes / 4);
    &text[line.map_or(start, |line| start + line + 1)..]
}

/// How many of `bytes` come before a character whose end has not arrived yet.
pub(crate) fn whole_chars(bytes: &[u8]) -> usize {
    for (back, byte) in bytes.iter().rev().enumerate().take(3) {
        let needed = match byte {
            0x80..=0xBF => continue,
            0xC0..=0xDF => 2,
            0xE0..=0xEF => 3,
            0xF0..=0xF7 => 4,
            _ => 1,
        };
        return if needed > back + 1 { bytes.len() - back - 1 } else { bytes.len() };
    }
    bytes.len()
}

/// Bytes as text; what is no UTF-8 is replaced by U+FFFD.
pub(crate) fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// SHA-256 in hex.
pub(crate) fn hash(bytes: &[u8]) -> String {
    use std::fmt::Write;
    Sha256::digest(bytes).iter().fold(String::with_capacity(64), |mut text, byte| {
        _ = write!(text, "{byte:02x}");
        text
    })
}

/// A blob's name beside its bytes.
pub(crate) fn blob(bytes: Bytes) -> (BlobRef, Bytes) {
    (BlobRef { hash: hash(&bytes), bytes: bytes.len() as u64 }, bytes)
}
