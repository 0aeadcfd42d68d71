//! Outputs bounded: what a model sees of a long text, and where the whole of it is kept.

use crate::{ToolOutput, Workspace};
use bytes::Bytes;
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use windlass_kernel::{BlobRef, CallId, ContentBlock, text_of};

/// Bytes of text a call may give the model, where its tool says nothing else.
pub const OUTPUT_LIMIT_BYTES: usize = 30_000;
/// Bytes of a whole output that are kept as a blob beside the log; longer ones are in the scratch file only.
pub(crate) const BLOB_LIMIT_BYTES: u64 = 4 << 20;
/// Characters of a call's id that a scratch file is named by.
const NAME_CHARS: usize = 64;

/// Cuts the output's text in the middle if it has more than `limit_bytes`, and keeps the whole in the scratch folder.
pub(crate) fn bound(output: &mut ToolOutput, limit_bytes: usize, workspace: &Workspace, call: &CallId) {
    let length = |block: &ContentBlock| if let ContentBlock::Text { text } = block { text.len() } else { 0 };
    if output.blocks.iter().map(length).sum::<usize>() <= limit_bytes {
        return;
    }
    let whole = text_of(&output.blocks);
    let file = scratch_file(workspace, call);
    let kept = keep(&file, whole.as_bytes());
    let (head, tail) = ends(&whole, limit_bytes);
    let text = format!("{head}\n{}\n{tail}", gap(whole.len() - head.len() - tail.len(), &file, kept));
    output.blocks.retain(|block| !matches!(block, ContentBlock::Text { .. }));
    output.blocks.insert(0, ContentBlock::text(text));
    if output.output.is_none() && whole.len() as u64 <= BLOB_LIMIT_BYTES {
        let (reference, bytes) = blob(Bytes::from(whole));
        output.output = Some(reference.clone());
        output.blobs.push((reference, bytes));
    }
}

/// The line that stands for what was left out.
pub(crate) fn gap(bytes: usize, file: &Path, kept: io::Result<()>) -> String {
    match kept {
        Ok(()) => format!(
            "[… {bytes} bytes left out; the whole is in {}: use read on it with offset and limit, or grep …]",
            file.display()
        ),
        Err(error) => {
            format!("[… {bytes} bytes left out, and not kept: {}: {error}; ask for less at a time …]", file.display())
        }
    }
}

fn keep(file: &Path, bytes: &[u8]) -> io::Result<()> {
    file.parent().map_or(Ok(()), fs::create_dir_all)?;
    fs::write(file, bytes)
}

/// The scratch file of `call`. An id is the provider's text, so only its harmless characters name the file; if any
/// had to go, a hash keeps two such ids apart.
pub(crate) fn scratch_file(workspace: &Workspace, call: &CallId) -> PathBuf {
    let harmless = |c: &char| c.is_ascii_alphanumeric() || *c == '-' || *c == '_';
    let mut name: String = call.0.chars().filter(harmless).take(NAME_CHARS).collect();
    if name != call.0 {
        name = format!("{name}-{}", &hash(call.0.as_bytes())[..12]);
    }
    workspace.scratch.join(name + ".txt")
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stage::Stage;

    #[test]
    fn s1_21_a_long_result_keeps_its_ends_and_says_where_the_whole_is() {
        let stage = Stage::new();
        let whole: String = (1..=500).map(|n| format!("line {n}\n")).collect();
        let mut output = ToolOutput::text(whole.clone());
        bound(&mut output, 100, &stage.workspace, &"call_1".into());
        let file = stage.workspace.scratch.join("call_1.txt");
        let text = text_of(&output.blocks).replace(&file.display().to_string(), "SCRATCH/call_1.txt");
        insta::assert_snapshot!(text, @r"
        line 1
        line 2
        line 3
        line 4
        line 5
        line 6
        line 7
        [… 4299 bytes left out; the whole is in SCRATCH/call_1.txt: use read on it with offset and limit, or grep …]
        line 496
        line 497
        line 498
        line 499
        line 500
        ");
        assert_eq!(fs::read_to_string(file).unwrap(), whole);
        let reference = output.output.unwrap();
        assert_eq!((reference.bytes, &output.blobs[0].0), (whole.len() as u64, &reference));
        assert_eq!(output.blobs[0].1, whole.as_bytes());
    }

    #[test]
    fn s1_21_a_result_within_its_budget_is_left_alone() {
        let stage = Stage::new();
        let mut output = ToolOutput::text("x".repeat(100));
        bound(&mut output, 100, &stage.workspace, &"call_1".into());
        assert_eq!(output, ToolOutput::text("x".repeat(100)));
        assert!(!stage.workspace.scratch.exists());
    }

    #[test]
    fn pictures_outlive_the_cut_of_the_text_beside_them() {
        let stage = Stage::new();
        let (reference, _) = blob(Bytes::from_static(b"png"));
        let image = ContentBlock::Image { media_type: "image/png".into(), blob: reference };
        let mut output = ToolOutput::text("x".repeat(1000));
        output.blocks.push(image.clone());
        bound(&mut output, 100, &stage.workspace, &"call_1".into());
        assert_eq!(output.blocks.len(), 2);
        assert_eq!(output.blocks[1], image);
    }

    #[test]
    fn cuts_fall_between_characters() {
        let text = "äöü".repeat(100);
        for limit in 0..60 {
            let (head, tail) = ends(&text, limit);
            assert!(text.starts_with(head) && text.ends_with(tail));
            assert!(head.len() + tail.len() <= limit);
        }
    }

    #[test]
    fn a_scratch_folder_that_cannot_be_written_is_said() {
        let stage = Stage::new();
        fs::write(&stage.workspace.scratch, "a file in the way").unwrap();
        let mut output = ToolOutput::text("x".repeat(1000));
        bound(&mut output, 100, &stage.workspace, &"call_1".into());
        assert!(text_of(&output.blocks).contains("bytes left out, and not kept: "));
    }

    #[test]
    fn hostile_call_ids_stay_in_the_scratch_folder_and_apart() {
        let stage = Stage::new();
        let file = |id: &str| scratch_file(&stage.workspace, &id.into());
        assert_eq!(file("../../etc/passwd").parent(), Some(stage.workspace.scratch.as_path()));
        assert_ne!(file("a/b"), file("ab"));
        assert_ne!(file("a/b"), file("a.b"));
    }
}
