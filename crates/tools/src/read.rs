//! `read`: a file's text by lines, or a picture.

use crate::args::{FILE_ALIASES, normalise, parse};
use crate::file::{HUGE_BYTES, INLINE_BYTES, blocking, failed, is_binary, open, shown, whole};
use crate::lines::{Page, Range, page};
use crate::output::{blob, hash};
use crate::place::{Place, Reach, touched};
use crate::{Tool, ToolOutput, ToolRun, Workspace, schema};
use async_trait::async_trait;
use bytes::Bytes;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::fs::File;
use std::io::BufReader;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use windlass_kernel::{Access, CallPlan, ContentBlock, FileSeen, OnCrash};

/// Lines given where no limit is asked for.
const DEFAULT_LINES: usize = 2_000;
/// Bytes of text given at once.
const READ_LIMIT_BYTES: usize = 100_000;
/// Bytes of a picture that a model is given.
const IMAGE_LIMIT_BYTES: usize = 5 << 20;

pub(crate) struct Read;

#[derive(Deserialize, JsonSchema)]
struct Args {
    /// The file to read; relative paths start at the workspace.
    #[serde(alias = "file_path")]
    path: String,
    /// The first line to read, from 1; 1 if not given.
    offset: Option<u64>,
    /// How many lines to read; 2000 if not given.
    limit: Option<u64>,
}

#[async_trait]
impl Tool for Read {
    fn name(&self) -> &str {
        "read"
    }

    fn description(&self) -> &str {
        "Read a file. Text comes as numbered lines (number, tab, line), 2000 lines or 100 kB at a time; offset and \
         limit choose which. Pictures (PNG, JPEG, GIF, WebP) are shown. For a folder, use ls."
    }

    fn schema(&self) -> Value {
        schema::of::<Args>()
    }

    fn plan(&self, input: &Value, workspace: &Workspace) -> CallPlan {
        let paths = parse::<Args>(input).map(|args| touched(workspace, &args.path)).unwrap_or_default();
        CallPlan { access: Access::Read, paths, tags: vec!["fs.read".into()], on_crash: OnCrash::Repeat }
    }

    fn normalise(&self, input: Value) -> Value {
        normalise(input, &FILE_ALIASES)
    }

    fn output_limit_bytes(&self) -> usize {
        // The page is bounded by lines; this leaves room for its last one and the note after it.
        READ_LIMIT_BYTES + 10_000
    }

    async fn call(&self, input: Value, run: &ToolRun) -> ToolOutput {
        let (reading, file, bytes) = match parse(&input).and_then(|args| Reading::open(args, run)) {
            Ok(opened) => opened,
            Err(why) => return ToolOutput::error(why),
        };
        if bytes < INLINE_BYTES { reading.give(file, bytes) } else { blocking(move || reading.give(file, bytes)).await }
    }
}

struct Reading {
    workspace: Arc<Workspace>,
    place: Place,
    args: Args,
    cancel: CancellationToken,
}

impl Reading {
    /// The file that is meant, held open, and how many bytes it has.
    fn open(args: Args, run: &ToolRun) -> Result<(Reading, File, u64), String> {
        let place = Reach::of(run).place(&args.path)?;
        let (file, bytes) = open(&run.workspace, &place)?;
        Ok((Reading { workspace: run.workspace.clone(), place, args, cancel: run.cancel.clone() }, file, bytes))
    }

    fn give(self, file: File, bytes: u64) -> ToolOutput {
        if bytes <= HUGE_BYTES { self.whole(file, bytes) } else { self.huge(file, bytes) }
    }

    fn name(&self) -> String {
        shown(&self.workspace, &self.place.named)
    }

    fn range(&self, count: bool) -> Range {
        Range {
            first: self.args.offset.unwrap_or(1).max(1) as usize,
            lines: self.args.limit.map_or(DEFAULT_LINES, |lines| lines.max(1) as usize),
            bytes: READ_LIMIT_BYTES,
            count,
        }
    }

    /// Reads a file taken in whole, and remembers what was in it.
    fn whole(self, file: File, bytes: u64) -> ToolOutput {
        let bytes = match whole(file, bytes) {
            Ok(bytes) => bytes,
            Err(error) => return ToolOutput::error(failed("read", &self.name(), &error)),
        };
        let hash = Some(hash(&bytes));
        let path = self.place.real.to_string_lossy().into_owned();
        let seen = FileSeen { path, before: hash.clone(), after: hash };
        ToolOutput { files: vec![seen], ..self.present(bytes) }
    }

    fn present(&self, bytes: Vec<u8>) -> ToolOutput {
        let name = self.name();
        if bytes.is_empty() {
            return ToolOutput::text(format!("{name} is empty"));
        }
        if let Some(media_type) = picture(&bytes) {
            return show(&name, media_type, bytes);
        }
        if is_binary(&bytes) {
            return ToolOutput::error(no_text(&name, &bytes));
        }
        let page = page(bytes.as_slice(), &self.range(true), &self.cancel);
        let mut output = self.paged(page.expect("memory can be read"), bytes.len() as u64);
        if std::str::from_utf8(&bytes).is_err() {
            output.blocks.push(ContentBlock::text("[not all of it is UTF-8; U+FFFD stands for what is not]\n"));
        }
        output
    }

    /// Reads lines of a file too large to be taken in; such a file cannot be edited, so it is not remembered.
    fn huge(self, file: File, bytes: u64) -> ToolOutput {
        let name = self.name();
        if self.args.offset.is_none() && self.args.limit.is_none() {
            return ToolOutput::error(format!(
                "{name} has {bytes} bytes, too many to read whole; give offset and limit, or search it with grep"
            ));
        }
        match self.stream(file) {
            Ok(Some(page)) => self.paged(page, bytes),
            Ok(None) => ToolOutput::error(format!("{name} is binary, {bytes} bytes; look at it with bash (file, xxd)")),
            Err(error) => ToolOutput::error(failed("read", &name, &error)),
        }
    }

    fn stream(&self, file: File) -> std::io::Result<Option<Page>> {
        use std::io::BufRead;
        let mut from = BufReader::with_capacity(64 << 10, file);
        if is_binary(from.fill_buf()?) {
            return Ok(None);
        }
        page(from, &self.range(false), &self.cancel).map(Some)
    }

    fn paged(&self, page: Page, bytes: u64) -> ToolOutput {
        let first = self.range(true).first;
        let (name, total) = (self.name(), page.ended.then_some(page.met));
        if page.shown == 0 {
            let text = format!("{name} has only {} lines; there is no line {first}", page.met);
            return ToolOutput::error(text);
        }
        let last = first + page.shown - 1;
        let note = match total {
            Some(total) if last == total && first == 1 => String::new(),
            Some(total) if last == total => format!("[lines {first} to {last} of {total}]\n"),
            Some(total) => format!("[lines {first} to {last} of {total}; read on with offset={}]\n", last + 1),
            None => format!("[lines {first} to {last}; there are more: read on with offset={}]\n", last + 1),
        };
        ToolOutput {
            value: Some(json!({"path": name, "from": first, "to": last, "lines": total, "bytes": bytes})),
            ..ToolOutput::text(page.text + &note)
        }
    }
}

/// The media type of a picture that models can see, by its first bytes.
fn picture(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

fn show(name: &str, media_type: &str, bytes: Vec<u8>) -> ToolOutput {
    let length = bytes.len();
    if length > IMAGE_LIMIT_BYTES {
        return ToolOutput::error(format!(
            "{name} is a picture of {length} bytes, over {IMAGE_LIMIT_BYTES}; make a smaller copy with bash and read that"
        ));
    }
    let (reference, bytes) = blob(Bytes::from(bytes));
    let image = ContentBlock::Image { media_type: media_type.into(), blob: reference.clone() };
    ToolOutput {
        blocks: vec![ContentBlock::text(format!("{name} ({media_type}, {length} bytes)")), image],
        value: Some(json!({"path": name, "media_type": media_type, "bytes": length})),
        blobs: vec![(reference, bytes)],
        ..ToolOutput::default()
    }
}

fn no_text(name: &str, bytes: &[u8]) -> String {
    let length = bytes.len();
    match bytes {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => {
            format!("{name} looks like UTF-16, {length} bytes; read a copy made with bash (iconv -f UTF-16 -t UTF-8)")
        }
        _ => format!("{name} is binary, {length} bytes; look at it with bash (file, xxd)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stage::Stage;
    use std::io::Write;

    #[tokio::test]
    async fn text_comes_as_numbered_lines_and_the_file_is_remembered() {
        let mut stage = Stage::new();
        stage.file("a.txt", "one\ntwo\n");
        let output = stage.call(Read, json!({"path": "a.txt"})).await;
        assert_eq!(stage.plain(&output), "1\tone\n2\ttwo\n");
        let (path, hash) = (stage.path("a.txt").display().to_string(), Some(hash(b"one\ntwo\n")));
        assert_eq!(output.files, [FileSeen { path, before: hash.clone(), after: hash }]);
        assert_eq!(output.value.unwrap(), json!({"path": "a.txt", "from": 1, "to": 2, "lines": 2, "bytes": 8}));
    }

    #[tokio::test]
    async fn a_range_says_what_is_left() {
        let mut stage = Stage::new();
        stage.file("a.txt", "1\n2\n3\n4\n5");
        insta::assert_snapshot!(stage.text(Read, json!({"path": "a.txt", "offset": 2, "limit": 2})).await, @r"
        2	2
        3	3
        [lines 2 to 3 of 5; read on with offset=4]
        ");
        insta::assert_snapshot!(stage.text(Read, json!({"path": "a.txt", "offset": 4})).await, @r"
        4	4
        5	5
        [lines 4 to 5 of 5]
        ");
        insta::assert_snapshot!(stage.error(Read, json!({"path": "a.txt", "offset": 6})).await, @"a.txt has only 5 lines; there is no line 6");
        assert_eq!(stage.seen.len(), 1, "a part read is a file seen");
    }

    #[tokio::test]
    async fn two_thousand_lines_are_given_at_once() {
        let mut stage = Stage::new();
        stage.file("a.txt", "x\n".repeat(2_500));
        let text = stage.text(Read, json!({"path": "a.txt"})).await;
        assert!(text.ends_with("2000\tx\n[lines 1 to 2000 of 2500; read on with offset=2001]\n"));
    }

    #[tokio::test]
    async fn s1_21_pages_end_at_a_line_within_the_budget() {
        let mut stage = Stage::new();
        stage.file("a.txt", format!("{}\n", "x".repeat(999)).repeat(1_000));
        let text = stage.text(Read, json!({"path": "a.txt"})).await;
        assert!(text.len() < READ_LIMIT_BYTES + 2_000);
        assert!(
            text.ends_with("x\n[lines 1 to 100 of 1000; read on with offset=101]\n"),
            "{}",
            &text[text.len() - 99..]
        );
    }

    #[tokio::test]
    async fn long_lines_are_cut_with_a_note() {
        let mut stage = Stage::new();
        stage.file("a.txt", format!("{}\nshort\n", "ä".repeat(9_000)));
        let text = stage.text(Read, json!({"path": "a.txt"})).await;
        let note = "… [the line has 18000 bytes]\n2\tshort\n";
        assert_eq!(text, format!("1\t{}{note}", "ä".repeat(2_000)));
    }

    #[tokio::test]
    async fn line_ends_and_marks_are_not_shown() {
        let mut stage = Stage::new();
        stage.file("a.txt", "\u{feff}one\r\ntwo\r\n");
        assert_eq!(stage.text(Read, json!({"path": "a.txt"})).await, "1\tone\n2\ttwo\n");
    }

    #[tokio::test]
    async fn s0_24_what_cannot_be_read_is_met_with_words() {
        let mut stage = Stage::new();
        stage.file("src/main.rs", "x");
        stage.file("src/mail.rs", "x");
        stage.file("empty", "");
        stage.file("binary", b"ab\0cd");
        stage.file("wide.txt", b"\xff\xfea\0b\0");
        insta::assert_snapshot!(stage.error(Read, json!({"path": "src/Main.rs"})).await, @"src/Main.rs does not exist; close names in that folder: main.rs, mail.rs");
        insta::assert_snapshot!(stage.error(Read, json!({"path": "lib/x/main.rs"})).await, @"lib/x/main.rs does not exist: there is no lib in .; look with ls or glob");
        insta::assert_snapshot!(stage.error(Read, json!({"path": "src"})).await, @"src is a folder; use ls to list it");
        insta::assert_snapshot!(stage.text(Read, json!({"path": "empty"})).await, @"empty is empty");
        insta::assert_snapshot!(stage.error(Read, json!({"path": "binary"})).await, @"binary is binary, 5 bytes; look at it with bash (file, xxd)");
        insta::assert_snapshot!(stage.error(Read, json!({"path": "wide.txt"})).await, @"wide.txt looks like UTF-16, 6 bytes; read a copy made with bash (iconv -f UTF-16 -t UTF-8)");
        insta::assert_snapshot!(stage.error(Read, json!({"path": "/dev/zero"})).await, @"/dev/zero is a device, pipe or socket, no regular file");
    }

    #[tokio::test]
    async fn text_in_another_encoding_is_shown_as_far_as_it_goes() {
        let mut stage = Stage::new();
        stage.file("a.txt", b"caf\xe9\n");
        insta::assert_snapshot!(stage.text(Read, json!({"path": "a.txt"})).await, @r"
        1	caf
        [not all of it is UTF-8; U+FFFD stands for what is not]
        ");
    }

    #[tokio::test]
    async fn a_picture_is_a_block_and_its_bytes_a_blob() {
        let mut stage = Stage::new();
        let png = b"\x89PNG\r\n\x1a\n and so on";
        stage.file("a.png", png);
        let output = stage.call(Read, json!({"path": "a.png"})).await;
        let [_, ContentBlock::Image { media_type, blob }] = output.blocks.as_slice() else { panic!("{output:?}") };
        assert_eq!((media_type.as_str(), &blob.hash, blob.bytes), ("image/png", &hash(png), png.len() as u64));
        assert_eq!(output.blobs, [(blob.clone(), Bytes::from_static(png))]);
    }

    #[tokio::test]
    async fn a_huge_file_is_read_by_ranges() {
        let mut stage = Stage::new();
        let mut file = File::create(stage.path("huge.log")).unwrap();
        let chunk: String = "0123456789abcde\n".repeat(1 << 16);
        (0..11).for_each(|_| file.write_all(chunk.as_bytes()).unwrap());
        insta::assert_snapshot!(stage.error(Read, json!({"path": "huge.log"})).await, @"huge.log has 11534336 bytes, too many to read whole; give offset and limit, or search it with grep");
        let range = json!({"path": "huge.log", "offset": 700_000, "limit": 1});
        insta::assert_snapshot!(stage.text(Read, range).await, @r"
        700000	0123456789abcde
        [lines 700000 to 700000; there are more: read on with offset=700001]
        ");
        assert!(stage.seen.is_empty());
    }

    #[test]
    fn s0_21_reading_is_planned_as_a_read_that_may_be_repeated() {
        let stage = Stage::new();
        let plan = Read.plan(&json!({"path": "a"}), &stage.workspace);
        assert_eq!((plan.access, plan.on_crash), (Access::Read, OnCrash::Repeat));
        assert_eq!((plan.paths, plan.tags), (vec![stage.path("a").display().to_string()], vec!["fs.read".to_owned()]));
    }
}
