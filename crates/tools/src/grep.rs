//! `grep`: lines by regular expression, with ripgrep's own crates.

use crate::args::{FILE_ALIASES, normalise, parse};
use crate::file::{blocking, shown};
use crate::output::lossy;
use crate::place::{Place, Reach, touched};
use crate::walk::{IGNORED, Pattern, walk};
use crate::{Tool, ToolOutput, ToolRun, Workspace, schema};
use async_trait::async_trait;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch};
use ignore::{DirEntry, WalkState};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use tokio_util::sync::CancellationToken;
use windlass_kernel::{Access, CallPlan, OnCrash};

/// Matching lines told of, or files in the other modes.
const MAX_TOLD: usize = 500;
/// Matching lines held before the search ends; up to here what is told does not depend on which thread was first.
const MAX_HELD: usize = 20_000;
/// Bytes of one line that are shown.
const LINE_BYTES: usize = 500;
/// Lines of context around a match.
const MAX_CONTEXT: u64 = 20;
/// Bytes of memory a single line may take while it is searched.
const HEAP_BYTES: usize = 16 << 20;

pub(crate) struct Grep;

#[derive(Deserialize, JsonSchema)]
struct Args {
    /// A regular expression (Rust's syntax), matched line by line.
    pattern: String,
    /// The file or folder to search; the workspace if not given.
    #[serde(alias = "file_path")]
    path: Option<String>,
    /// Only files whose path matches this glob, such as `*.rs` or `src/**/*.ts`.
    glob: Option<String>,
    /// Whether upper and lower case are the same; false if not given.
    case_insensitive: Option<bool>,
    /// Lines to show before and after each match; 0 if not given.
    #[schemars(range(max = MAX_CONTEXT))]
    context: Option<u64>,
    /// What to give: `content`, the matching lines (if not given); `files`, their files; `count`, how many per file.
    mode: Option<Mode>,
}

#[derive(Clone, Copy, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Mode {
    #[default]
    Content,
    Files,
    Count,
}

impl Args {
    fn path(&self) -> &str {
        self.path.as_deref().unwrap_or(".")
    }

    fn mode(&self) -> Mode {
        self.mode.unwrap_or_default()
    }
}

#[async_trait]
impl Tool for Grep {
    fn name(&self) -> &str {
        "grep"
    }

    fn description(&self) -> &str {
        "Search files for a regular expression. Gives `path:line:text` for matches and `path-line-text` for lines \
         around them, or only files or counts. Binary and ignored files (.gitignore) are left out."
    }

    fn schema(&self) -> Value {
        schema::of::<Args>()
    }

    fn plan(&self, input: &Value, workspace: &Workspace) -> CallPlan {
        let paths = parse::<Args>(input).map(|args| touched(workspace, args.path())).unwrap_or_default();
        let tags = vec!["fs.read".into(), "search".into()];
        CallPlan { access: Access::Read, paths, tags, on_crash: OnCrash::Repeat }
    }

    fn normalise(&self, input: Value) -> Value {
        normalise(input, &FILE_ALIASES)
    }

    async fn call(&self, input: Value, run: &ToolRun) -> ToolOutput {
        let run = run.clone();
        blocking(move || {
            match parse(&input).and_then(|args| Search::new(&args, Reach::of(&run), &run.cancel)?.run(&args)) {
                Ok(output) => output,
                Err(why) => ToolOutput::error(why),
            }
        })
        .await
    }
}

struct Search<'a> {
    workspace: &'a Workspace,
    place: Place,
    matcher: RegexMatcher,
    glob: Option<Pattern>,
    context: usize,
    mode: Mode,
    cancel: &'a CancellationToken,
    held: AtomicUsize,
    hits: Mutex<Vec<Hit>>,
}

/// What was found in one file.
struct Hit {
    path: PathBuf,
    lines: Vec<Line>,
    matches: usize,
}

struct Line {
    number: u64,
    text: String,
    kind: Kind,
}

#[derive(PartialEq)]
enum Kind {
    Match,
    Context,
    /// The place between two groups of lines.
    Gap,
}

impl<'a> Search<'a> {
    fn new(args: &Args, reach: Reach<'a>, cancel: &'a CancellationToken) -> Result<Search<'a>, String> {
        let place = reach.place(args.path())?;
        place.present(reach.workspace)?;
        let matcher = matcher(args)?;
        let glob = args.glob.as_deref().map(Pattern::new).transpose()?;
        let context = args.context.unwrap_or(0).min(MAX_CONTEXT) as usize;
        let (held, hits) = (AtomicUsize::new(0), Mutex::default());
        Ok(Search { workspace: reach.workspace, place, matcher, glob, context, mode: args.mode(), cancel, held, hits })
    }

    fn run(self, args: &Args) -> Result<ToolOutput, String> {
        walk(self.workspace, &self.place).build_parallel().run(|| {
            let mut searcher = self.searcher();
            let search = &self;
            Box::new(move |entry| search.visit(&mut searcher, entry))
        });
        let full = self.held.load(Ordering::Relaxed) >= MAX_HELD;
        let stopped = self.cancel.is_cancelled();
        let mut hits = self.hits.into_inner().unwrap_or_else(PoisonError::into_inner);
        hits.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(told(&hits, args, self.workspace, full || stopped))
    }

    fn searcher(&self) -> Searcher {
        SearcherBuilder::new()
            .binary_detection(BinaryDetection::quit(0))
            .before_context(self.context)
            .after_context(self.context)
            .heap_limit(Some(HEAP_BYTES))
            .build()
    }

    fn visit(&self, searcher: &mut Searcher, entry: Result<DirEntry, ignore::Error>) -> WalkState {
        if self.cancel.is_cancelled() || self.held.load(Ordering::Relaxed) >= MAX_HELD {
            return WalkState::Quit;
        }
        // What cannot be entered or read is passed over, as a search by hand would.
        let Ok(entry) = entry else { return WalkState::Continue };
        let wanted =
            self.glob.as_ref().is_none_or(|glob| glob.matches(&self.place.real, entry.path()) || entry.depth() == 0);
        // A link met on the way may lead out of what was asked about; one that was named has been followed and judged.
        if !wanted || !entry.file_type().is_some_and(|kind| kind.is_file()) {
            return WalkState::Continue;
        }
        let Ok((file, _)) = self.workspace.root.read(entry.path()) else { return WalkState::Continue };
        let mut hit = Hit { path: entry.into_path(), lines: Vec::new(), matches: 0 };
        let searched = searcher.search_file(&self.matcher, &file, Gather { hit: &mut hit, search: self });
        if searched.is_ok() && hit.matches > 0 {
            self.hits.lock().unwrap_or_else(PoisonError::into_inner).push(hit);
        }
        WalkState::Continue
    }
}

fn matcher(args: &Args) -> Result<RegexMatcher, String> {
    RegexMatcherBuilder::new()
        .case_insensitive(args.case_insensitive.unwrap_or(false))
        .line_terminator(Some(b'\n'))
        .build(&args.pattern)
        .map_err(|error| {
            format!(
                "`{}` is no pattern that can be searched line by line: {error}\nEscape what is meant literally, such as \
                 \\( \\{{ \\[ \\. and match within one line.",
                args.pattern
            )
        })
}

/// Takes the lines of one file as they are found.
struct Gather<'a> {
    hit: &'a mut Hit,
    search: &'a Search<'a>,
}

impl Gather<'_> {
    fn line(&mut self, number: Option<u64>, bytes: &[u8], kind: Kind) {
        if self.search.mode == Mode::Content {
            self.hit.lines.push(Line { number: number.unwrap_or(0), text: line_text(bytes), kind });
        }
    }
}

impl Sink for Gather<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        self.hit.matches += 1;
        self.line(found.line_number(), found.bytes(), Kind::Match);
        let held = if self.search.mode == Mode::Content { 1 } else { 0 };
        let held = self.search.held.fetch_add(held, Ordering::Relaxed);
        Ok(self.search.mode != Mode::Files && held < MAX_HELD && !self.search.cancel.is_cancelled())
    }

    fn context(&mut self, _: &Searcher, found: &SinkContext<'_>) -> io::Result<bool> {
        self.line(found.line_number(), found.bytes(), Kind::Context);
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        self.line(None, b"", Kind::Gap);
        Ok(true)
    }
}

fn line_text(bytes: &[u8]) -> String {
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
    if bytes.len() <= LINE_BYTES {
        return lossy(bytes).into_owned();
    }
    let end = crate::output::whole_chars(&bytes[..LINE_BYTES]);
    format!("{}… [the line has {} bytes]", lossy(&bytes[..end]), bytes.len())
}

fn told(hits: &[Hit], args: &Args, workspace: &Workspace, broken_off: bool) -> ToolOutput {
    let matches: usize = hits.iter().map(|hit| hit.matches).sum();
    let value = Some(match args.mode() {
        // Of a file that has one, the rest was not searched.
        Mode::Files => json!({"files": hits.len()}),
        _ => json!({"files": hits.len(), "matches": matches}),
    });
    let mut text = match args.mode() {
        Mode::Content => content(hits, matches, workspace),
        Mode::Files => files(hits, workspace, |_| String::new()),
        Mode::Count => files(hits, workspace, |hit| format!(":{}", hit.matches)),
    };
    if hits.is_empty() {
        text = format!("no line matches {}; {IGNORED}\n", args.pattern);
    }
    if broken_off {
        text += "[the search was broken off before its end; narrow the pattern, the path or the glob]\n";
    }
    ToolOutput { value, ..ToolOutput::text(text) }
}

fn files(hits: &[Hit], workspace: &Workspace, tail: impl Fn(&Hit) -> String) -> String {
    let line = |hit: &Hit| format!("{}{}\n", shown(workspace, &hit.path), tail(hit));
    let mut text: String = hits.iter().take(MAX_TOLD).map(line).collect();
    if hits.len() > MAX_TOLD {
        text += &format!("[the first {MAX_TOLD} of {} files]\n", hits.len());
    }
    text
}

fn content(hits: &[Hit], matches: usize, workspace: &Workspace) -> String {
    let mut text = String::new();
    let mut told = 0;
    for (index, hit) in hits.iter().enumerate() {
        let grouped = hit.lines.iter().any(|line| line.kind != Kind::Match);
        if grouped && index > 0 {
            text += "--\n";
        }
        let name = shown(workspace, &hit.path);
        for line in &hit.lines {
            if told == MAX_TOLD && line.kind == Kind::Match {
                text += &format!("[the first {MAX_TOLD} of {matches} matches in {} files]\n", hits.len());
                return text;
            }
            told += usize::from(line.kind == Kind::Match);
            push_line(&mut text, &name, line);
        }
    }
    text
}

fn push_line(text: &mut String, name: &str, line: &Line) {
    let Line { number, text: content, kind } = line;
    *text += &match kind {
        Kind::Match => format!("{name}:{number}:{content}\n"),
        Kind::Context => format!("{name}-{number}-{content}\n"),
        Kind::Gap => "--\n".into(),
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stage::Stage;

    fn staged() -> Stage {
        let stage = Stage::new();
        stage.file("a.rs", "fn one() {}\nlet x = 1;\nfn two() {}\n\n\n\nfn three() {}\n");
        stage.file("src/b.rs", "// FN\nfn four() {}\r\n");
        stage.file("c.md", "fn in prose\n");
        stage.file("target/d.rs", "fn ignored\n");
        stage.file("e.bin", b"fn \0 binary\n");
        stage.file(".gitignore", "target\n");
        stage
    }

    #[tokio::test]
    async fn matching_lines_are_told_by_path_and_number() {
        insta::assert_snapshot!(staged().text(Grep, json!({"pattern": "^fn"})).await, @r"
        a.rs:1:fn one() {}
        a.rs:3:fn two() {}
        a.rs:7:fn three() {}
        c.md:1:fn in prose
        src/b.rs:2:fn four() {}
        ");
    }

    #[tokio::test]
    async fn a_link_met_on_the_way_leads_nowhere() {
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("secret"), "fn secret\n").unwrap();
        let mut stage = Stage::new();
        stage.file("a.rs", "fn one\n");
        std::os::unix::fs::symlink(outside.path().join("secret"), stage.path("link")).unwrap();
        assert_eq!(stage.text(Grep, json!({"pattern": "^fn"})).await.trim(), "a.rs:1:fn one");
    }

    #[tokio::test]
    async fn a_glob_a_path_and_case_narrow_or_widen() {
        let mut stage = staged();
        insta::assert_snapshot!(stage.text(Grep, json!({"pattern": "fn", "glob": "src/*.rs", "case_insensitive": true})).await, @r"
        src/b.rs:1:// FN
        src/b.rs:2:fn four() {}
        ");
        insta::assert_snapshot!(stage.text(Grep, json!({"pattern": "fn", "path": "target/d.rs"})).await, @"target/d.rs:1:fn ignored");
    }

    #[tokio::test]
    async fn lines_around_a_match_are_grouped() {
        insta::assert_snapshot!(staged().text(Grep, json!({"pattern": "two|four|three", "context": 1})).await, @r"
        a.rs-2-let x = 1;
        a.rs:3:fn two() {}
        a.rs-4-
        --
        a.rs-6-
        a.rs:7:fn three() {}
        --
        src/b.rs-1-// FN
        src/b.rs:2:fn four() {}
        ");
    }

    #[tokio::test]
    async fn files_and_counts_are_the_short_answers() {
        let mut stage = staged();
        insta::assert_snapshot!(stage.text(Grep, json!({"pattern": "fn", "mode": "files"})).await, @r"
        a.rs
        c.md
        src/b.rs
        ");
        insta::assert_snapshot!(stage.text(Grep, json!({"pattern": "fn", "mode": "count"})).await, @r"
        a.rs:3
        c.md:1
        src/b.rs:1
        ");
    }

    #[tokio::test]
    async fn s0_24_a_pattern_that_cannot_be_searched_says_why() {
        let mut stage = staged();
        insta::assert_snapshot!(stage.error(Grep, json!({"pattern": "main("})).await, @r"
        `main(` is no pattern that can be searched line by line: regex parse error:
            (?:main()
            ^
        error: unclosed group
        Escape what is meant literally, such as \( \{ \[ \. and match within one line.
        ");
        let error = stage.error(Grep, json!({"pattern": "a\nb"})).await;
        assert!(error.contains("match within one line"), "{error}");
        insta::assert_snapshot!(stage.error(Grep, json!({"pattern": "x", "path": "gone"})).await, @"gone does not exist; look with ls or glob");
        insta::assert_snapshot!(stage.text(Grep, json!({"pattern": "nowhere"})).await, @"no line matches nowhere; files that git ignores are not searched; ls and bash see them");
    }

    #[tokio::test]
    async fn s1_21_matches_and_lines_are_bounded() {
        let mut stage = Stage::new();
        stage.file("many", "match\n".repeat(600));
        let text = stage.text(Grep, json!({"pattern": "match"})).await;
        assert!(text.ends_with("many:500:match\n[the first 500 of 600 matches in 1 files]\n"));
        stage.file("long", "ä".repeat(5_000));
        let text = stage.text(Grep, json!({"pattern": "ä", "path": "long"})).await;
        assert!(text.ends_with("ä… [the line has 10000 bytes]\n") && text.len() < 600, "{text}");
    }

    #[tokio::test]
    async fn a_search_that_is_called_back_says_it_broke_off() {
        let stage = staged();
        stage.cancel.cancel();
        let args: Args = parse(&json!({"pattern": "fn"})).unwrap();
        let search = Search::new(&args, Reach::looking(&stage.workspace), &stage.cancel);
        let output = search.and_then(|search| search.run(&args)).unwrap();
        assert!(stage.plain(&output).contains("broken off"), "{output:?}");
    }
}
