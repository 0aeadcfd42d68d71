//! `apply_patch`: changes to several files in one call, in the format some models are trained on.

use crate::args::{normalise, parse};
use crate::diff::{Diff, diff, renamed};
use crate::file::{blocking, is_binary, shown};
use crate::hunk::patched;
use crate::output::lossy;
use crate::patch::{self, Section};
use crate::place::{Reach, resolve, touched};
use crate::together::Together;
use crate::{Confirmation, Tool, ToolOutput, ToolRun, Workspace, schema};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use windlass_kernel::{Access, CallPlan, OnCrash, QuestionKind};

const DESCRIPTION: &str = "\
Change several files in one patch: all of it, or, if any part does not fit, nothing.
The patch is text of this form:
*** Begin Patch
*** Add File: PATH          (then the new file's lines, each after a +)
*** Delete File: PATH
*** Update File: PATH       (then its hunks)
*** Move to: NEW_PATH       (optional, right below Update File)
@@ LINE                     (begins a hunk; LINE optional: a line of the file above the place, such as a def or class)
 a line that stays          (after one space)
-a line that goes
+a line that comes
*** End of File             (optional: the hunk is at the file's end)
*** End Patch
A hunk's lines that stay or go are looked for in the file, so copy them exactly and give about three that stay on \
either side of a change; there are no line numbers. Where they fit in more than one place, name the def or class with \
@@, one @@ line below another if it takes several. Hunks come in the order of the file. Paths start at the workspace.";

pub(crate) struct ApplyPatch;

#[derive(Deserialize, JsonSchema)]
struct Args {
    /// The whole patch, from `*** Begin Patch` to `*** End Patch`.
    #[serde(alias = "input")]
    patch: String,
}

#[derive(Clone, Copy)]
enum Action {
    Add,
    Update,
    Move,
    Delete,
}

/// What a patch does to one file, for people and models.
struct Told {
    action: Action,
    path: String,
    to: Option<String>,
    diff: Diff,
}

#[async_trait]
impl Tool for ApplyPatch {
    fn name(&self) -> &str {
        "apply_patch"
    }

    fn description(&self) -> &str {
        DESCRIPTION
    }

    fn schema(&self) -> Value {
        schema::of::<Args>()
    }

    fn habit(&self) -> Option<&'static str> {
        Some("apply_patch")
    }

    fn plan(&self, input: &Value, workspace: &Workspace) -> CallPlan {
        let args = parse::<Args>(input);
        let Some(sections) = args.as_ref().ok().and_then(|args| patch::parse(&args.patch).ok()) else {
            // What cannot be read touches nothing: nobody need be asked before the model is told what is wrong.
            return CallPlan { access: Access::Read, on_crash: OnCrash::Repeat, ..CallPlan::default() };
        };
        let mut paths: Vec<String> = Vec::new();
        for path in sections.iter().flat_map(Section::paths).flat_map(|path| touched(workspace, path)) {
            if !paths.contains(&path) {
                paths.push(path);
            }
        }
        CallPlan {
            access: Access::Write,
            paths,
            tags: vec!["fs.read".into(), "fs.write".into()],
            on_crash: OnCrash::Unknown,
        }
    }

    fn normalise(&self, input: Value) -> Value {
        normalise(input, &[("input", "patch")])
    }

    fn confirmation(&self, input: &Value, workspace: &Workspace) -> Option<Confirmation> {
        let args: Args = parse(input).ok()?;
        let (preview, impact) = match draft(&args.patch, &mut Together::new(Reach::looking(workspace))) {
            Ok(told) => {
                let lines: Vec<String> = told.iter().map(|told| told.line(told.action.does())).collect();
                (diffs(&told), format!("in {}: {}", workspace.cwd.display(), lines.join(", ")))
            }
            Err(why) => (format!("this would fail: {why}"), "would change files, but cannot".into()),
        };
        Some(Confirmation { kind: QuestionKind::Approval, preview, impact, options: Vec::new() })
    }

    async fn call(&self, input: Value, run: &ToolRun) -> ToolOutput {
        let run = run.clone();
        blocking(move || {
            let mut together = Together::new(Reach::of(&run));
            let told = match parse::<Args>(&input).and_then(|args| draft(&args.patch, &mut together)) {
                Ok(told) => told,
                Err(why) => {
                    return ToolOutput::error(why + "\nno file was changed; mend the patch and send it whole");
                }
            };
            match together.make(&run.cancel) {
                Ok(files) => ToolOutput { files, ..done(&told) },
                Err(failed) => ToolOutput { files: failed.files, ..ToolOutput::error(failed.why) },
            }
        })
        .await
    }
}

/// Works the patch out, writing nothing.
fn draft(patch: &str, together: &mut Together) -> Result<Vec<Told>, String> {
    patch::parse(patch)?.iter().map(|section| one(section, together)).collect()
}

fn one(section: &Section, together: &mut Together) -> Result<Told, String> {
    let name = |together: &Together, path: &str| shown(together.workspace(), &resolve(together.workspace(), path));
    match section {
        Section::Add { path, lines } => {
            let content: String = lines.iter().flat_map(|line| [*line, "\n"]).collect();
            let path_shown = name(together, path);
            let diff = diff(&path_shown, "", &content);
            together.add(path, content.into_bytes())?;
            Ok(Told { action: Action::Add, path: path_shown, to: None, diff })
        }
        Section::Delete { path } => {
            let path_shown = name(together, path);
            let diff = diff(&path_shown, &lossy(together.content(path)?), "");
            together.delete(path)?;
            Ok(Told { action: Action::Delete, path: path_shown, to: None, diff })
        }
        Section::Update { path, to, hunks } => {
            let path_shown = name(together, path);
            let to = to.filter(|to| !together.same(path, to));
            let old = text(together.content(path)?, &path_shown)?.to_owned();
            let new = patched(&old, hunks).map_err(|why| format!("{path_shown}: {why}"))?;
            if new == old && to.is_none() {
                return Err(format!("{path_shown}: its hunks change nothing"));
            }
            let to_shown = to.map(|to| name(together, to));
            let diff = renamed(&path_shown, to_shown.as_ref().unwrap_or(&path_shown), &old, &new);
            together.update(path, new.into_bytes())?;
            if let Some(to) = to {
                together.rename(path, to)?;
            }
            let action = if to.is_some() { Action::Move } else { Action::Update };
            Ok(Told { action, path: path_shown, to: to_shown, diff })
        }
    }
}

fn text<'a>(bytes: &'a [u8], name: &str) -> Result<&'a str, String> {
    match std::str::from_utf8(bytes) {
        Ok(text) if !is_binary(bytes) => Ok(text),
        _ => Err(format!("{name} is no UTF-8 text; change it with bash (iconv, sed, or a script)")),
    }
}

impl Action {
    fn does(self) -> &'static str {
        match self {
            Action::Add => "adds",
            Action::Update => "updates",
            Action::Move => "moves",
            Action::Delete => "deletes",
        }
    }

    fn did(self) -> &'static str {
        match self {
            Action::Add => "added",
            Action::Update => "updated",
            Action::Move => "moved",
            Action::Delete => "deleted",
        }
    }
}

impl Told {
    fn line(&self, verb: &str) -> String {
        let to = self.to.as_ref().map(|to| format!(" to {to}")).unwrap_or_default();
        format!("{verb} {}{to} (+{} −{})", self.path, self.diff.added, self.diff.removed)
    }

    fn value(&self) -> Value {
        let Told { action, path, to, diff } = self;
        json!({"action": action.did(), "path": path, "to": to, "added": diff.added, "removed": diff.removed})
    }
}

fn diffs(told: &[Told]) -> String {
    told.iter().map(|told| told.diff.text.as_str()).collect()
}

fn done(told: &[Told]) -> ToolOutput {
    let count = |lines: fn(&Diff) -> usize| told.iter().map(|told| lines(&told.diff)).sum::<usize>();
    let value = json!({
        "files": told.iter().map(Told::value).collect::<Vec<_>>(),
        "added": count(|diff| diff.added),
        "removed": count(|diff| diff.removed),
        "diff": diffs(told),
    });
    let lines: Vec<String> = told.iter().map(|told| told.line(told.action.did())).collect();
    ToolOutput { value: Some(value), ..ToolOutput::text(lines.join("\n")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edit::Edit;
    use crate::output::hash;
    use crate::read::Read;
    use crate::stage::Stage;
    use crate::write::Write;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use windlass_kernel::FileSeen;

    fn patch(lines: &str) -> Value {
        json!({"patch": format!("*** Begin Patch\n{lines}\n*** End Patch\n")})
    }

    fn staged() -> Stage {
        let stage = Stage::new();
        stage.file("src/a.py", "def f():\n    return 1\n");
        stage.file("old.sh", "echo one\necho two\n");
        stage.file("gone.txt", "bye\n");
        stage
    }

    const ALL: &str = "*** Add File: deep/er/new.txt\n+one\n+two\n*** Update File: src/a.py\n@@ def f():\n-    return 1\n\
                       +    return 2\n*** Update File: old.sh\n*** Move to: bin/new.sh\n@@\n echo one\n-echo two\n+echo 2\n\
                       *** Delete File: gone.txt";

    #[tokio::test]
    async fn one_patch_adds_updates_moves_and_deletes() {
        let mut stage = staged();
        fs::set_permissions(stage.path("old.sh"), fs::Permissions::from_mode(0o751)).unwrap();
        let output = stage.call(ApplyPatch, patch(ALL)).await;
        insta::assert_snapshot!(stage.plain(&output), @r"
        added deep/er/new.txt (+2 −0)
        updated src/a.py (+1 −1)
        moved old.sh to bin/new.sh (+1 −1)
        deleted gone.txt (+0 −1)
        ");
        assert_eq!(stage.read("deep/er/new.txt"), "one\ntwo\n");
        assert_eq!(stage.read("src/a.py"), "def f():\n    return 2\n");
        assert_eq!(stage.read("bin/new.sh"), "echo one\necho 2\n");
        assert_eq!(fs::metadata(stage.path("bin/new.sh")).unwrap().permissions().mode() & 0o777, 0o751);
        assert!(!stage.path("old.sh").exists() && !stage.path("gone.txt").exists());
        let value = output.value.unwrap();
        insta::assert_snapshot!(value["diff"].as_str().unwrap(), @r"
        --- deep/er/new.txt
        +++ deep/er/new.txt
        @@ -0,0 +1,2 @@
        +one
        +two
        --- src/a.py
        +++ src/a.py
        @@ -1,2 +1,2 @@
         def f():
        -    return 1
        +    return 2
        --- old.sh
        +++ bin/new.sh
        @@ -1,2 +1,2 @@
         echo one
        -echo two
        +echo 2
        --- gone.txt
        +++ gone.txt
        @@ -1 +0,0 @@
        -bye
        ");
        assert_eq!((&value["added"], &value["removed"]), (&json!(4), &json!(3)));
        assert_eq!(value["files"][2]["to"], "bin/new.sh");
    }

    #[tokio::test]
    async fn a_patch_that_fits_in_part_changes_nothing() {
        let mut stage = staged();
        let lines = "*** Add File: new.txt\n+one\n*** Delete File: gone.txt\n*** Update File: src/a.py\n@@\n def f():\n-    return 7\n+    return 2";
        insta::assert_snapshot!(stage.error(ApplyPatch, patch(lines)).await, @r"
        src/a.py: hunk 1 (line 6 of the patch) was not found; nearest is line 1, where 1 of its 2 lines fit, but for `    return 7` line 2 is `    return 1`
        no file was changed; mend the patch and send it whole
        ");
        assert!(!stage.path("new.txt").exists() && stage.path("gone.txt").exists());
        assert_eq!(stage.read("src/a.py"), "def f():\n    return 1\n");
    }

    #[tokio::test]
    async fn what_was_written_before_a_write_fails_is_put_back() {
        let mut stage = staged();
        fs::set_permissions(stage.path("src/a.py"), fs::Permissions::from_mode(0o640)).unwrap();
        let lines = format!("{ALL}\n*** Add File: src/a.py/below\n+never");
        let error = stage.error(ApplyPatch, patch(&lines)).await;
        assert!(error.starts_with("could not write src/a.py/below: "), "{error}");
        assert!(error.ends_with("; what was done before it was put back: nothing was changed"), "{error}");
        assert_eq!(stage.read("src/a.py"), "def f():\n    return 1\n");
        assert_eq!(fs::metadata(stage.path("src/a.py")).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(stage.read("old.sh"), "echo one\necho two\n");
        assert!(!stage.path("deep").exists() && !stage.path("bin").exists() && stage.path("gone.txt").exists());
        assert!(stage.seen.is_empty());
    }

    #[tokio::test]
    async fn s0_01_a_file_patched_unread_is_not_known_for_that() {
        let mut stage = staged();
        let lines = |old: u32| format!("*** Update File: src/a.py\n@@\n-    return {old}\n+    return {}", old + 1);
        stage.text(ApplyPatch, patch(&lines(1))).await;
        let whole = json!({"path": "src/a.py", "content": "all new\n"});
        let error = stage.error(Write, whole.clone()).await;
        assert!(error.contains("this session has not read it"), "{error}");

        stage.text(Read, json!({"path": "src/a.py"})).await;
        stage.text(ApplyPatch, patch(&lines(2))).await;
        stage.text(Edit, json!({"path": "src/a.py", "old": "3", "new": "4"})).await;

        stage.file("src/a.py", "# by another\ndef f():\n    return 4\n");
        stage.text(ApplyPatch, patch(&lines(4))).await;
        let error = stage.error(Write, whole).await;
        assert!(error.contains("changed since this session read it"), "{error}");
        assert_eq!(stage.read("src/a.py"), "# by another\ndef f():\n    return 5\n");
    }

    #[tokio::test]
    async fn a_session_remembers_what_it_made_and_forgets_what_it_deleted() {
        let mut stage = staged();
        stage.text(Read, json!({"path": "old.sh"})).await;
        let lines = "*** Add File: new\n+x\n*** Update File: old.sh\n*** Move to: moved.sh\n*** Delete File: gone.txt";
        let output = stage.call(ApplyPatch, patch(lines)).await;
        let file = |name: &str, before: Option<&str>, after: Option<&str>| FileSeen {
            path: stage.path(name).display().to_string(),
            before: before.map(|text| hash(text.as_bytes())),
            after: after.map(|text| hash(text.as_bytes())),
        };
        let script = "echo one\necho two\n";
        let expected = [
            file("new", None, Some("x\n")),
            file("old.sh", Some(script), None),
            file("moved.sh", None, Some(script)),
            file("gone.txt", Some("bye\n"), None),
        ];
        assert_eq!(output.files, expected);
    }

    #[tokio::test]
    async fn a_patch_may_name_a_file_more_than_once() {
        let mut stage = staged();
        let lines = "*** Delete File: gone.txt\n*** Add File: gone.txt\n+back\n*** Update File: src/a.py\n@@\n-def f():\n+def g():\n\
                     *** Update File: ./src/a.py\n@@\n def g():\n-    return 1\n+    return 2";
        stage.text(ApplyPatch, patch(lines)).await;
        assert_eq!(stage.read("gone.txt"), "back\n");
        assert_eq!(stage.read("src/a.py"), "def g():\n    return 2\n");
    }

    #[tokio::test]
    async fn s4_12_what_cannot_be_done_to_a_file_is_said() {
        let mut stage = staged();
        stage.file("latin.txt", b"caf\xe9\n");
        symlink("gone.txt", stage.path("link")).unwrap();
        let mut told = String::new();
        for lines in [
            "*** Add File: gone.txt\n+x",
            "*** Add File: src\n+x",
            "*** Update File: sr/a.py\n@@\n-x",
            "*** Update File: old.sh\n*** Move to: gone.txt",
            "*** Update File: latin.txt\n@@\n-x",
            "*** Update File: old.sh\n@@\n-echo one\n+echo one",
            "*** Delete File: link",
            "*** Delete File: nowhere",
            "*** Delete File: src",
            "*** Delete File: gone.txt\n*** Update File: gone.txt\n@@\n-bye",
            "*** Update File: gone.txt\nbye",
        ] {
            told += &stage.error(ApplyPatch, patch(lines)).await;
            told += "\n\n";
        }
        insta::assert_snapshot!(told, @r"
        gone.txt exists already; change it with `*** Update File`, or put its `*** Delete File` before
        no file was changed; mend the patch and send it whole

        src is a folder; use ls to list it
        no file was changed; mend the patch and send it whole

        sr/a.py does not exist: there is no sr in .; look with ls or glob
        no file was changed; mend the patch and send it whole

        gone.txt exists already; move elsewhere, or put its `*** Delete File` before
        no file was changed; mend the patch and send it whole

        latin.txt is no UTF-8 text; change it with bash (iconv, sed, or a script)
        no file was changed; mend the patch and send it whole

        old.sh: its hunks change nothing
        no file was changed; mend the patch and send it whole

        link is a link to gone.txt; name that file, or take the link away with bash (rm)
        no file was changed; mend the patch and send it whole

        nowhere does not exist; look with ls or glob
        no file was changed; mend the patch and send it whole

        src is a folder; use ls to list it
        no file was changed; mend the patch and send it whole

        gone.txt was deleted by this patch before
        no file was changed; mend the patch and send it whole

        line 3 of the patch, `bye`: each line of a hunk begins with a space (kept), `-` (removed) or `+` (added)
        no file was changed; mend the patch and send it whole
        ");
        stage.text(ApplyPatch, patch("*** Update File: link\n@@\n-bye\n+hello")).await;
        assert_eq!(stage.read("gone.txt"), "hello\n");
        assert!(stage.path("link").is_symlink());
    }

    #[tokio::test]
    async fn the_argument_may_be_called_input() {
        let mut stage = staged();
        let text = "<<'EOF'\n*** Begin Patch\n*** Delete File: gone.txt\n*** End Patch\nEOF";
        insta::assert_snapshot!(stage.text(ApplyPatch, json!({"input": text})).await, @"deleted gone.txt (+0 −1)");
    }

    #[test]
    fn s0_21_a_patch_is_planned_with_every_path_it_touches() {
        let stage = staged();
        let path = |name: &str| stage.path(name).display().to_string();
        let plan = ApplyPatch.plan(&patch(ALL), &stage.workspace);
        let names = ["deep/er/new.txt", "src/a.py", "old.sh", "bin/new.sh", "gone.txt"];
        assert_eq!(plan.paths, names.map(path));
        assert_eq!(
            (plan.access, plan.on_crash, plan.tags),
            (Access::Write, OnCrash::Unknown, vec!["fs.read".into(), "fs.write".into()])
        );

        symlink("/etc/hosts", stage.path("out")).unwrap();
        let plan = ApplyPatch.plan(&patch("*** Update File: out\n@@\n-x"), &stage.workspace);
        assert_eq!(plan.paths, [path("out"), "/etc/hosts".into()]);

        let plan = ApplyPatch.plan(&json!({"patch": "*** Update File: a"}), &stage.workspace);
        assert_eq!((plan.access, plan.paths.len()), (Access::Read, 0), "what cannot be read touches nothing");
    }

    #[test]
    fn s4_11_a_person_is_shown_each_files_diff_or_why_there_is_none() {
        let stage = staged();
        let asked = ApplyPatch.confirmation(&patch(ALL), &stage.workspace).unwrap();
        assert!(asked.preview.contains("--- old.sh\n+++ bin/new.sh\n@@ -1,2 +1,2 @@\n echo one\n-echo two\n+echo 2\n"));
        insta::assert_snapshot!(asked.impact.replace(&stage.workspace.cwd.display().to_string(), "CWD"), @"in CWD: adds deep/er/new.txt (+2 −0), updates src/a.py (+1 −1), moves old.sh to bin/new.sh (+1 −1), deletes gone.txt (+0 −1)");
        assert!(stage.path("old.sh").exists(), "nothing is written for a question");
        let asked = ApplyPatch.confirmation(&patch("*** Delete File: nowhere"), &stage.workspace).unwrap();
        insta::assert_snapshot!(asked.preview, @"this would fail: nowhere does not exist; look with ls or glob");
    }
}
