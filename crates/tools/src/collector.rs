//! A stream of output kept within bounds while it comes: its ends in memory, the whole in a file.

use crate::output::{gap, head, lossy, private, tail, whole_chars};
use crate::plain::Plain;
use crate::{SecretStream, Secrets, Source};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

/// Bytes of one output that are written to disk; what comes after is counted and dropped.
const SPILL_LIMIT_BYTES: u64 = 256 << 20;

/// The head and tail of a stream, `limit_bytes` together; beyond that, everything goes to `file` too.
pub(crate) struct Collector {
    limit_bytes: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
    file: PathBuf,
    spill: Spill,
    plain: Plain,
    secrets: Arc<Secrets>,
    stream: SecretStream,
}

enum Spill {
    NotYet,
    Open { file: File, written: u64 },
    Failed(io::Error),
}

pub(crate) struct Collected {
    pub text: String,
    /// Bytes of it all, as it is kept.
    pub total: u64,
    /// Where the whole is, if `text` holds only a part and the whole could be kept.
    pub whole: Option<PathBuf>,
}

impl Collector {
    pub(crate) fn new(limit_bytes: usize, file: PathBuf, secrets: Arc<Secrets>) -> Collector {
        Collector {
            limit_bytes,
            head: Vec::new(),
            tail: VecDeque::new(),
            total: 0,
            file,
            spill: Spill::NotYet,
            plain: Plain::default(),
            secrets,
            stream: SecretStream::default(),
        }
    }

    /// Takes output in; gives what of it can be shown by now, as it is kept.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        let lines = self.plain.push(bytes);
        let clean = self.stream.push(&self.secrets, &lines, Source::Output);
        self.keep(&clean);
        clean
    }

    fn keep(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        if self.total > self.limit_bytes as u64 {
            self.spill(bytes);
        }
        let room = (self.limit_bytes / 2).saturating_sub(self.head.len()).min(bytes.len());
        let (first, rest) = bytes.split_at(room);
        self.head.extend_from_slice(first);
        let tail_limit = self.limit_bytes - self.limit_bytes / 2;
        let rest = &rest[rest.len().saturating_sub(tail_limit)..];
        let surplus = (self.tail.len() + rest.len()).saturating_sub(tail_limit);
        self.tail.drain(..surplus);
        self.tail.extend(rest);
    }

    /// Writes `bytes` to the file; the first time, after all that came before, of which nothing has been dropped yet.
    fn spill(&mut self, bytes: &[u8]) {
        if matches!(self.spill, Spill::NotYet) {
            self.spill = self.open().unwrap_or_else(Spill::Failed);
        }
        let Spill::Open { file, written } = &mut self.spill else { return };
        let room = SPILL_LIMIT_BYTES.saturating_sub(*written).min(bytes.len() as u64) as usize;
        match file.write_all(&bytes[..room]) {
            Ok(()) => *written += room as u64,
            Err(error) => self.spill = Spill::Failed(error),
        }
    }

    fn open(&mut self) -> io::Result<Spill> {
        let mut file = private(&self.file)?;
        let (first, second) = self.tail.as_slices();
        let parts = [self.head.as_slice(), first, second];
        parts.into_iter().try_for_each(|part| file.write_all(part))?;
        Ok(Spill::Open { file, written: parts.iter().map(|part| part.len() as u64).sum() })
    }

    pub(crate) fn finish(mut self) -> Collected {
        let line = self.plain.finish();
        let mut rest = self.stream.push(&self.secrets, &line, Source::Output);
        rest.extend(self.stream.finish(&self.secrets, Source::Output));
        self.keep(&rest);
        let total = self.total;
        let ring = self.tail.make_contiguous();
        if total <= self.limit_bytes as u64 {
            self.head.extend_from_slice(ring);
            return Collected { text: lossy(&self.head).into_owned(), total, whole: None };
        }
        let started = ring.iter().take(3).take_while(|byte| (0x80..0xC0).contains(*byte)).count();
        let (first, last) = (lossy(&self.head[..whole_chars(&self.head)]), lossy(&ring[started..]));
        let (head, tail) = (head(&first, self.limit_bytes / 2), tail(&last, self.limit_bytes / 2));
        let left_out = total as usize - (head.len() + tail.len()).min(total as usize);
        let (mut line, whole) = match self.spill {
            Spill::Failed(error) => (gap(left_out, &self.file, Err(error)), None),
            _ => (gap(left_out, &self.file, Ok(())), Some(self.file)),
        };
        if whole.is_some() && total > SPILL_LIMIT_BYTES {
            line += &format!("\n[the file holds the first {SPILL_LIMIT_BYTES} bytes of {total}]");
        }
        Collected { text: format!("{head}\n{line}\n{tail}"), total, whole }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stage::Stage;
    use std::fs;

    fn collect(stage: &Stage, limit_bytes: usize, chunks: &[&[u8]]) -> Collected {
        let mut collector = Collector::new(limit_bytes, stage.workspace.scratch.join("out.txt"), Arc::default());
        chunks.iter().for_each(|chunk| _ = collector.push(chunk));
        collector.finish()
    }

    #[test]
    fn what_fits_is_whole_and_writes_no_file() {
        let stage = Stage::new();
        let collected = collect(&stage, 10, &[b"01234", b"5678", b"9"]);
        assert_eq!((collected.text.as_str(), collected.total, collected.whole), ("0123456789", 10, None));
        assert!(!stage.workspace.scratch.exists());
    }

    #[test]
    fn s1_21_a_stream_keeps_its_ends_and_the_file_keeps_all() {
        let stage = Stage::new();
        let lines: Vec<String> = (1..=1000).map(|n| format!("line {n}\n")).collect();
        let chunks: Vec<&[u8]> = lines.iter().map(|line| line.as_bytes()).collect();
        let collected = collect(&stage, 60, &chunks);
        let whole = collected.whole.unwrap();
        assert_eq!(fs::read_to_string(&whole).unwrap(), lines.concat());
        let text = collected.text.replace(&whole.display().to_string(), "FILE");
        insta::assert_snapshot!(text, @r"
        line 1
        line 2
        line 3
        line 4
        [… 8838 bytes left out; the whole is in FILE: use read on it with offset and limit, or grep …]
        line 998
        line 999
        line 1000
        ");
    }

    #[test]
    fn one_chunk_larger_than_everything_is_cut_alike() {
        let stage = Stage::new();
        let collected = collect(&stage, 10, &["ä".repeat(500).as_bytes()]);
        assert_eq!(collected.total, 1000);
        assert!(collected.text.starts_with("ää\n[… 992 bytes left out; "), "{}", collected.text);
        assert!(collected.text.ends_with("]\nää"), "{}", collected.text);
    }

    #[test]
    fn a_character_split_over_chunks_is_one_character() {
        let stage = Stage::new();
        let collected = collect(&stage, 6, &[b"a\xc3", b"\xa4b", b"\xff"]);
        assert_eq!(collected.text, "aäb\u{fffd}");
    }
}
