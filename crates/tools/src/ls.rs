//! `ls`: what is in a folder.

use crate::args::{FILE_ALIASES, normalise, parse};
use crate::file::{blocking, failed, printable, shown};
use crate::hidden::Veil;
use crate::place::{Reach, follow, touched};
use crate::{Tool, ToolOutput, ToolRun, Workspace, schema};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use windlass_kernel::{Access, CallPlan, OnCrash};

/// Entries listed of one folder.
const MAX_ENTRIES: usize = 1_000;

pub(crate) struct Ls;

#[derive(Deserialize, JsonSchema)]
struct Args {
    /// The folder to list; the workspace if not given.
    #[serde(alias = "file_path")]
    path: Option<String>,
}

impl Args {
    fn path(&self) -> &str {
        self.path.as_deref().unwrap_or(".")
    }
}

#[async_trait]
impl Tool for Ls {
    fn name(&self) -> &str {
        "ls"
    }

    fn description(&self) -> &str {
        "List a folder: folders first, with a slash, then files with their size in bytes. Dot files and what git ignores too."
    }

    fn schema(&self) -> Value {
        schema::of::<Args>()
    }

    fn plan(&self, input: &Value, workspace: &Workspace) -> CallPlan {
        let paths = parse::<Args>(input).map(|args| touched(workspace, args.path())).unwrap_or_default();
        CallPlan { access: Access::Read, paths, tags: vec!["fs.read".into()], on_crash: OnCrash::Repeat }
    }

    fn normalise(&self, input: Value) -> Value {
        normalise(input, &FILE_ALIASES)
    }

    async fn call(&self, input: Value, run: &ToolRun) -> ToolOutput {
        let run = run.clone();
        blocking(move || match parse::<Args>(&input).and_then(|args| list(Reach::of(&run), args.path())) {
            Ok(output) => output,
            Err(why) => ToolOutput::error(why),
        })
        .await
    }
}

fn list(reach: Reach<'_>, path: &str) -> Result<ToolOutput, String> {
    let workspace = reach.workspace;
    let place = reach.place(path)?;
    let name = shown(workspace, &place.named);
    if !place.present(workspace)?.is_dir() {
        return Err(format!("{name} is a file; use read to see it"));
    }
    let names = workspace.root.names(&place.real).map_err(|error| failed("list", &name, &error))?;
    let veil = Veil::new(&workspace.root);
    let mut lines: Vec<Line> = names.filter_map(|name| Line::new(workspace, &veil, &place.real, &name)).collect();
    lines.sort_by(|a, b| (!a.folder, &a.name).cmp(&(!b.folder, &b.name)));
    let total = lines.len();
    let mut text: String = lines.iter().take(MAX_ENTRIES).map(Line::text).collect();
    if total == 0 {
        text = format!("{name} is empty");
    } else if total > MAX_ENTRIES {
        text += &format!("[{MAX_ENTRIES} of {total} entries; use glob to choose]\n");
    }
    Ok(ToolOutput { value: Some(json!({"path": name, "entries": total})), ..ToolOutput::text(text) })
}

struct Line {
    name: String,
    folder: bool,
    bytes: u64,
    target: Option<String>,
}

impl Line {
    fn new(workspace: &Workspace, veil: &Veil, folder: &Path, name: &OsStr) -> Option<Line> {
        let path = folder.join(name);
        let own = workspace.root.probe_link(&path).ok()?;
        if veil.covers(&path, own.is_dir(), own.is_symlink()) {
            return None;
        }
        let target = fs::read_link(&path).ok().filter(|_| own.is_symlink());
        // A link is listed as what it leads to in the workspace; one that leads nowhere or out of it, as itself.
        let real = target.as_ref().and_then(|_| follow(&workspace.root, &path).ok());
        let inside = real.filter(|real| real.starts_with(&workspace.cwd));
        let meta = inside.and_then(|real| workspace.root.probe(&real).ok()).unwrap_or(own);
        let target = target.map(|target| printable(target.as_os_str()));
        Some(Line { name: printable(name), folder: meta.is_dir(), bytes: meta.len(), target })
    }

    fn text(&self) -> String {
        let Line { name, folder, bytes, target } = self;
        let target = target.as_ref().map_or(String::new(), |target| format!(" -> {target}"));
        if *folder { format!("{name}/{target}\n") } else { format!("{name} {bytes}{target}\n") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stage::Stage;
    use std::os::unix::fs::symlink;

    #[tokio::test]
    async fn folders_come_first_then_files_with_sizes() {
        let mut stage = Stage::new();
        stage.file("b.txt", "12345");
        stage.file(".hidden", "");
        stage.file("src/main.rs", "x");
        symlink("b.txt", stage.path("a_link")).unwrap();
        symlink("gone", stage.path("z_link")).unwrap();
        insta::assert_snapshot!(stage.text(Ls, json!({})).await, @r"
        src/
        .hidden 0
        a_link 5 -> b.txt
        b.txt 5
        z_link 4 -> gone
        ");
        insta::assert_snapshot!(stage.text(Ls, json!({"path": "src"})).await, @"main.rs 1");
    }

    #[tokio::test]
    async fn s0_24_what_is_no_folder_is_met_with_words() {
        let mut stage = Stage::new();
        stage.file("src/a", "");
        fs::create_dir(stage.path("empty")).unwrap();
        insta::assert_snapshot!(stage.error(Ls, json!({"path": "src/a"})).await, @"src/a is a file; use read to see it");
        insta::assert_snapshot!(stage.error(Ls, json!({"path": "scr"})).await, @"scr does not exist; close names in that folder: src");
        insta::assert_snapshot!(stage.text(Ls, json!({"path": "empty"})).await, @"empty is empty");
    }

    #[tokio::test]
    async fn s1_21_a_crowded_folder_is_cut() {
        let mut stage = Stage::new();
        (0..1_010).for_each(|n| stage.file(&format!("{n:04}"), ""));
        let text = stage.text(Ls, json!({})).await;
        assert!(text.ends_with("0999 0\n[1000 of 1010 entries; use glob to choose]\n"));
    }

    #[test]
    fn s0_21_listing_is_planned_as_a_read_of_the_folder() {
        let stage = Stage::new();
        let plan = Ls.plan(&json!({}), &stage.workspace);
        assert_eq!((plan.access, plan.paths), (Access::Read, vec![stage.workspace.cwd.display().to_string()]));
    }
}
