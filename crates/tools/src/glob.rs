//! `glob`: files by name.

use crate::args::{FILE_ALIASES, normalise, parse};
use crate::file::{blocking, shown};
use crate::place::{Reach, touched};
use crate::walk::{IGNORED, Pattern, split_absolute, walk};
use crate::{Tool, ToolOutput, ToolRun, Workspace, schema};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::SystemTime;
use tokio_util::sync::CancellationToken;
use windlass_kernel::{Access, CallPlan, OnCrash};

/// Files told of.
const MAX_FILES: usize = 500;
/// Files that are compared by time; beyond that the walk ends.
const MAX_FOUND: usize = 100_000;

pub(crate) struct Glob;

#[derive(Deserialize, JsonSchema)]
struct Args {
    /// A glob such as `src/**/*.rs`; one without `/`, such as `*.rs`, matches names in every folder.
    pattern: String,
    /// The folder to search; the workspace if not given.
    #[serde(alias = "file_path")]
    path: Option<String>,
}

impl Args {
    /// Where to search, and for what.
    fn place(&self) -> (String, String) {
        match split_absolute(&self.pattern) {
            Some((root, below)) => (root.to_string_lossy().into_owned(), below),
            None => (self.path.clone().unwrap_or_else(|| ".".into()), self.pattern.clone()),
        }
    }
}

#[async_trait]
impl Tool for Glob {
    fn name(&self) -> &str {
        "glob"
    }

    fn description(&self) -> &str {
        "Find files by name, the newest first. Ignored files (.gitignore) are left out. To search what is in them, use \
         grep."
    }

    fn schema(&self) -> Value {
        schema::of::<Args>()
    }

    fn plan(&self, input: &Value, workspace: &Workspace) -> CallPlan {
        let paths = parse::<Args>(input).map(|args| touched(workspace, &args.place().0)).unwrap_or_default();
        let tags = vec!["fs.read".into(), "search".into()];
        CallPlan { access: Access::Read, paths, tags, on_crash: OnCrash::Repeat }
    }

    fn normalise(&self, input: Value) -> Value {
        normalise(input, &FILE_ALIASES)
    }

    async fn call(&self, input: Value, run: &ToolRun) -> ToolOutput {
        let run = run.clone();
        blocking(move || match parse(&input).and_then(|args: Args| search(&args, Reach::of(&run), &run.cancel)) {
            Ok(output) => output,
            Err(why) => ToolOutput::error(why),
        })
        .await
    }
}

fn search(args: &Args, reach: Reach<'_>, cancel: &CancellationToken) -> Result<ToolOutput, String> {
    let (root, pattern) = args.place();
    let pattern = Pattern::new(&pattern)?;
    let place = reach.place(&root)?;
    place.present(reach.workspace)?;
    let mut found: Vec<(SystemTime, PathBuf)> = walk(reach.workspace, &place)
        .build()
        .take_while(|_| !cancel.is_cancelled())
        .filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_some_and(|kind| !kind.is_dir()))
        .filter(|entry| pattern.matches(&place.real, entry.path()))
        .filter_map(|entry| {
            // By handle: the walk itself may have been led astray by a folder that became a link.
            let meta = reach.workspace.root.probe_link(entry.path()).ok()?;
            Some((meta.modified().unwrap_or(SystemTime::UNIX_EPOCH), entry.into_path()))
        })
        .take(MAX_FOUND)
        .collect();
    found.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    Ok(told(&found, &args.pattern, reach.workspace))
}

fn told(found: &[(SystemTime, PathBuf)], pattern: &str, workspace: &Workspace) -> ToolOutput {
    let total = found.len();
    let value = Some(json!({"files": total}));
    if total == 0 {
        return ToolOutput { value, ..ToolOutput::text(format!("no file matches {pattern}; {IGNORED}")) };
    }
    let newest = found.iter().take(MAX_FILES);
    let mut text: String = newest.map(|(_, path)| shown(workspace, path) + "\n").collect();
    if total > MAX_FILES {
        text += &format!("[the {MAX_FILES} newest of {total} files; narrow the pattern]\n");
    }
    ToolOutput { value, ..ToolOutput::text(text) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stage::Stage;
    use std::fs::File;
    use std::time::Duration;

    fn staged() -> Stage {
        let stage = Stage::new();
        for (age, name) in
            ["src/new.rs", "src/deep/old.rs", "build.rs", "notes.md", "target/out.rs", ".ci/run.rs"].iter().enumerate()
        {
            stage.file(name, "");
            let at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000 - age as u64);
            File::options().write(true).open(stage.path(name)).unwrap().set_modified(at).unwrap();
        }
        stage.file(".gitignore", "target\n");
        stage.file(".git/config.rs", "");
        stage
    }

    #[tokio::test]
    async fn the_newest_come_first_and_the_ignored_not_at_all() {
        insta::assert_snapshot!(staged().text(Glob, json!({"pattern": "*.rs"})).await, @r"
        src/new.rs
        src/deep/old.rs
        build.rs
        .ci/run.rs
        ");
        insta::assert_snapshot!(staged().text(Glob, json!({"pattern": "src/*.rs"})).await, @"src/new.rs");
        insta::assert_snapshot!(staged().text(Glob, json!({"pattern": "**/*.{rs,md}", "path": "src"})).await, @r"
        src/new.rs
        src/deep/old.rs
        ");
    }

    #[tokio::test]
    async fn an_absolute_pattern_is_searched_where_it_says() {
        let mut stage = staged();
        let pattern = |below: &str| json!({"pattern": stage.path(below).display().to_string()});
        let (wild, plain) = (pattern("src/**/*.rs"), pattern("build.rs"));
        assert_eq!(Glob.plan(&wild, &stage.workspace).paths, [stage.path("src").display().to_string()]);
        insta::assert_snapshot!(stage.text(Glob, wild).await, @r"
        src/new.rs
        src/deep/old.rs
        ");
        insta::assert_snapshot!(stage.text(Glob, plain).await, @"build.rs");
    }

    #[tokio::test]
    async fn s0_24_what_finds_nothing_says_why() {
        let mut stage = staged();
        insta::assert_snapshot!(stage.text(Glob, json!({"pattern": "target/*.rs"})).await, @"no file matches target/*.rs; files that git ignores are not searched; ls and bash see them");
        insta::assert_snapshot!(stage.error(Glob, json!({"pattern": "a[", "path": "src"})).await, @"`a[` is no glob: error parsing glob 'a[': unclosed character class; missing ']'; write one like src/**/*.rs");
        insta::assert_snapshot!(stage.error(Glob, json!({"pattern": "*", "path": "lib"})).await, @"lib does not exist; look with ls or glob");
    }

    #[tokio::test]
    async fn s1_21_many_files_are_cut_to_the_newest() {
        let mut stage = Stage::new();
        (0..510).for_each(|n| stage.file(&format!("{n}"), ""));
        let text = stage.text(Glob, json!({"pattern": "*"})).await;
        assert!(text.ends_with("[the 500 newest of 510 files; narrow the pattern]\n"));
        assert_eq!(text.lines().count(), 501);
    }
}
