//! `write`: a whole file, new or in place of what was there.

use crate::args::{FILE_ALIASES, normalise, parse};
use crate::change::{Change, Current, confirmation};
use crate::file::{blocking, shown};
use crate::place::{Reach, resolve, touched};
use crate::{Confirmation, Tool, ToolOutput, ToolRun, Workspace, schema};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use windlass_kernel::{Access, CallPlan, OnCrash};

pub(crate) struct Write;

#[derive(Deserialize, JsonSchema)]
struct Args {
    /// The file to write; relative paths start at the workspace.
    #[serde(alias = "file_path")]
    path: String,
    /// All the file is to hold.
    content: String,
}

#[async_trait]
impl Tool for Write {
    fn name(&self) -> &str {
        "write"
    }

    fn description(&self) -> &str {
        "Write a whole file, creating the folders above it. A file that exists must have been read first, and is \
         replaced. To change part of a file, use edit."
    }

    fn schema(&self) -> Value {
        schema::of::<Args>()
    }

    fn plan(&self, input: &Value, workspace: &Workspace) -> CallPlan {
        let paths = parse::<Args>(input).map(|args| touched(workspace, &args.path)).unwrap_or_default();
        CallPlan { access: Access::Write, paths, tags: vec!["fs.write".into()], on_crash: OnCrash::Unknown }
    }

    fn normalise(&self, input: Value) -> Value {
        normalise(input, &FILE_ALIASES)
    }

    fn confirmation(&self, input: &Value, workspace: &Workspace) -> Option<Confirmation> {
        let args: Args = parse(input).ok()?;
        let name = shown(workspace, &resolve(workspace, &args.path));
        Some(confirmation(workspace, &name, change(args, Reach::looking(workspace))))
    }

    async fn call(&self, input: Value, run: &ToolRun) -> ToolOutput {
        let run = run.clone();
        blocking(move || match parse::<Args>(&input).and_then(|args| change(args, Reach::of(&run))) {
            Ok(change) if change.before.is_none() => change.make(&run.workspace, "created"),
            Ok(change) => change.make(&run.workspace, "overwrote"),
            Err(why) => ToolOutput::error(why),
        })
        .await
    }
}

/// What writing would change; refused in a judged call whose session does not know what it would replace.
fn change(args: Args, reach: Reach<'_>) -> Result<Change, String> {
    let place = reach.place_to_write(&args.path)?;
    let current = match place.meta {
        Some(_) => Some(Current::take(reach, &place)?),
        None => None,
    };
    if let Some(current) = current.as_ref().filter(|_| reach.is_judged()) {
        current.known(reach, &place)?;
        current.keeps_secrets(reach, &place, &args.content)?;
    }
    Ok(Change::new(reach.workspace, place, current, args.content.into_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::hash;
    use crate::read::Read;
    use crate::stage::Stage;
    use serde_json::json;
    use windlass_kernel::FileSeen;

    #[tokio::test]
    async fn a_new_file_is_created_with_its_folders() {
        let mut stage = Stage::new();
        let output = stage.call(Write, json!({"path": "src/new.rs", "content": "one\ntwo\n"})).await;
        assert_eq!(stage.plain(&output), "created src/new.rs (+2 −0)");
        assert_eq!(stage.read("src/new.rs"), "one\ntwo\n");
        let value = output.value.unwrap();
        assert_eq!((&value["path"], &value["added"], &value["removed"]), (&json!("src/new.rs"), &json!(2), &json!(0)));
        insta::assert_snapshot!(value["diff"].as_str().unwrap(), @r"
        --- src/new.rs
        +++ src/new.rs
        @@ -0,0 +1,2 @@
        +one
        +two
        ");
        let path = stage.path("src/new.rs").display().to_string();
        assert_eq!(output.files, [FileSeen { path, before: None, after: Some(hash(b"one\ntwo\n")) }]);
    }

    #[tokio::test]
    async fn s0_01_a_file_the_session_has_not_read_is_not_overwritten() {
        let mut stage = Stage::new();
        stage.file("a.txt", "mine\n");
        let write = json!({"path": "a.txt", "content": "yours\n"});
        insta::assert_snapshot!(stage.error(Write, write.clone()).await, @"a.txt exists and this session has not read it; read it first, then change it");
        assert_eq!(stage.read("a.txt"), "mine\n");

        stage.text(Read, json!({"path": "a.txt"})).await;
        stage.file("a.txt", "changed by another\n");
        insta::assert_snapshot!(stage.error(Write, write.clone()).await, @"a.txt has changed since this session read it; read it again, then change it");

        stage.text(Read, json!({"path": "a.txt"})).await;
        insta::assert_snapshot!(stage.text(Write, write.clone()).await, @"overwrote a.txt (+1 −1)");
        assert_eq!(stage.read("a.txt"), "yours\n");
        stage.text(Write, json!({"path": "a.txt", "content": "what it wrote itself, it knows\n"})).await;
    }

    #[tokio::test]
    async fn a_mark_does_not_take_the_place_of_the_secret_it_stands_for() {
        let mut stage = Stage::new();
        let old = format!("mode=1\ntoken={}_aB3dE5gH7jK9mN1pQ2sT4vW6xY8zA0cF1234\n", "ghp");
        stage.file("env", &old);
        let seen = stage.text(Read, json!({"path": "env"})).await;
        assert_eq!(seen, "1\tmode=1\n2\ttoken=[redacted: github token]\n");
        let write = json!({"path": "env", "content": "mode=2\ntoken=[redacted: github token]\n"});
        insta::assert_snapshot!(stage.error(Write, write).await, @"[redacted: github token] stands for a secret in env, which would be lost; change the lines around it with edit");
        assert_eq!(stage.read("env"), old);
        stage.text(Write, json!({"path": "notes", "content": "[redacted: github token] is a mark"})).await;
    }

    #[tokio::test]
    async fn s0_24_a_folder_in_the_way_is_met_with_words() {
        let mut stage = Stage::new();
        stage.file("sub/a.txt", "x");
        insta::assert_snapshot!(stage.error(Write, json!({"path": "sub", "content": ""})).await, @"sub is a folder; use ls to list it");
        let error = stage.error(Write, json!({"path": "sub/a.txt/b", "content": ""})).await;
        assert!(error.starts_with("could not write sub/a.txt/b: "), "{error}");
    }

    #[tokio::test]
    async fn s4_11_a_person_is_shown_the_diff_and_what_is_at_stake() {
        let stage = Stage::new();
        stage.file("a.txt", "one\n");
        let asked = Write.confirmation(&json!({"path": "a.txt", "content": "two\n"}), &stage.workspace).unwrap();
        insta::assert_snapshot!(asked.preview, @r"
        --- a.txt
        +++ a.txt
        @@ -1 +1 @@
        -one
        +two
        ");
        insta::assert_snapshot!(asked.impact.replace(&stage.workspace.cwd.display().to_string(), "CWD"), @"changes a.txt in CWD (+1 −1)");
        assert_eq!(stage.read("a.txt"), "one\n");
    }

    #[test]
    fn s0_21_writing_is_planned_with_the_paths_it_touches() {
        let stage = Stage::new();
        let plan = Write.plan(&json!({"file_path": "b/../a.txt", "content": ""}), &stage.workspace);
        assert_eq!(plan.access, Access::Write);
        assert_eq!(plan.on_crash, OnCrash::Unknown);
        assert_eq!(plan.paths, [stage.path("a.txt").display().to_string()]);
    }
}
