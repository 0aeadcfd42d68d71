//! Outputs bounded: what a model sees of a long text, and where the whole of it is kept.

pub use crate::cut::OUTPUT_LIMIT_BYTES;
pub(crate) use crate::cut::{blob, ends, hash, head, lossy, tail, whole_chars};
use crate::{Secrets, Source, ToolOutput, Workspace, visible};
use bytes::Bytes;
use std::borrow::Cow;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use windlass_kernel::{CallId, ContentBlock, text_of};

/// Bytes of a whole output that are kept as a blob beside the log; longer ones are in the scratch file only.
pub(crate) const BLOB_LIMIT_BYTES: u64 = 4 << 20;
/// Characters of a call's id that a scratch file is named by.
const NAME_CHARS: usize = 64;

/// Makes the output's text fit to be told: nothing in it steers or hides, and its secrets are marks.
pub(crate) fn clean(output: &mut ToolOutput, secrets: &Secrets) {
    for block in &mut output.blocks {
        let ContentBlock::Text { text } = block else { continue };
        if let Cow::Owned(seen) = visible(text) {
            *text = seen;
        }
        secrets.redact_string(text, Source::Output);
    }
    if let Some(value) = &mut output.value {
        secrets.redact_value(value, Source::Output);
    }
}

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
    private(file)?.write_all(bytes)
}

/// A new file that only its owner may read, in a folder that only its owner may enter.
pub(crate) fn private(file: &Path) -> io::Result<File> {
    let mut folders = DirBuilder::new();
    folders.recursive(true).mode(0o700);
    if let Some(folder) = file.parent() {
        folders.create(folder)?;
        // It may have been there, made by the sandbox for a command's own files.
        fs::set_permissions(folder, Permissions::from_mode(0o700))?;
    }
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(file)
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
