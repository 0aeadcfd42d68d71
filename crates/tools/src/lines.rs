//! A range of a text's lines, numbered, taken from a stream without holding the whole.

use crate::output::{lossy, whole_chars};
use std::fmt::Write;
use std::io::{self, BufRead};
use tokio_util::sync::CancellationToken;

/// Characters of one line that are shown.
const LINE_CHARS: usize = 2_000;
/// Bytes of one line that are kept for showing: UTF-8 takes four for a character at most.
const LINE_BYTES: usize = LINE_CHARS * 4;
/// Lines between two looks at whether the call was cancelled.
const LINES_PER_LOOK: usize = 1_024;

/// Which lines, and how much of them.
pub(crate) struct Range {
    /// From 1.
    pub first: usize,
    pub lines: usize,
    pub bytes: usize,
    /// Whether to go on to the end, to know how many lines there are.
    pub count: bool,
}

#[derive(Default)]
pub(crate) struct Page {
    /// `N\tline`, each ended.
    pub text: String,
    /// Lines in `text`.
    pub shown: usize,
    /// Lines met: all there are, if `ended`.
    pub met: usize,
    pub ended: bool,
}

/// Takes the lines of `range`; stops early if cancelled.
pub(crate) fn page(mut from: impl BufRead, range: &Range, cancel: &CancellationToken) -> io::Result<Page> {
    let mut page = Page::default();
    let mut line = Vec::new();
    loop {
        let Some(length) = next_line(&mut from, &mut line)? else {
            page.ended = true;
            return Ok(page);
        };
        page.met += 1;
        let full = page.shown == range.lines || page.text.len() >= range.bytes;
        if page.met >= range.first && !full {
            if page.met == 1 && line.starts_with(b"\xef\xbb\xbf") {
                line.drain(..3);
            }
            number(&mut page, &line, length);
        }
        let cancelled = page.met.is_multiple_of(LINES_PER_LOOK) && cancel.is_cancelled();
        if cancelled || (full && !range.count) {
            return Ok(page);
        }
    }
}

fn number(page: &mut Page, line: &[u8], length: usize) {
    let text = lossy(&line[..whole_chars(line)]).into_owned();
    let cut = text.char_indices().nth(LINE_CHARS).map(|(end, _)| end);
    page.shown += 1;
    _ = match cut {
        Some(end) => writeln!(page.text, "{}\t{}… [the line has {length} bytes]", page.met, &text[..end]),
        None => writeln!(page.text, "{}\t{text}", page.met),
    };
}

/// Reads one line into `line`, without its end, the first `LINE_BYTES` of it; says how long it was.
fn next_line(from: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<Option<usize>> {
    line.clear();
    let mut length = 0;
    let mut began = false;
    loop {
        let bytes = match from.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            bytes => bytes?,
        };
        if bytes.is_empty() {
            return Ok(began.then_some(length));
        }
        began = true;
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let part = &bytes[..end.unwrap_or(bytes.len())];
        line.extend_from_slice(&part[..part.len().min(LINE_BYTES - line.len())]);
        length += part.len();
        let used = part.len() + usize::from(end.is_some());
        from.consume(used);
        if end.is_some() {
            if line.last() == Some(&b'\r') && line.len() == length {
                line.pop();
                length -= 1;
            }
            return Ok(Some(length));
        }
    }
}
