//! `edit`: one text for another inside a file that this session has read.

use crate::args::{FILE_ALIASES, normalise, parse};
use crate::change::{Change, Current, confirmation};
use crate::file::{blocking, is_binary, shown};
use crate::place::{Reach, resolve, touched};
use crate::splice::splice;
use crate::{Confirmation, Tool, ToolOutput, ToolRun, Workspace, schema};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use windlass_kernel::{Access, CallPlan, OnCrash};

pub(crate) struct Edit;

#[derive(Deserialize, JsonSchema)]
struct Args {
    /// The file to change; relative paths start at the workspace.
    #[serde(alias = "file_path")]
    path: String,
    /// The text to replace, exactly as it stands in the file, without line numbers. Must occur once only.
    #[serde(alias = "old_string")]
    old: String,
    /// The text to put in its place.
    #[serde(alias = "new_string")]
    new: String,
    /// Replace every occurrence; false if not given.
    replace_all: Option<bool>,
}

#[async_trait]
impl Tool for Edit {
    fn name(&self) -> &str {
        "edit"
    }

    fn description(&self) -> &str {
        "Replace text in a file. The file must have been read first. `old` must occur exactly once, so take in enough \
         of the lines around it, or set replace_all."
    }

    fn schema(&self) -> Value {
        schema::of::<Args>()
    }

    fn plan(&self, input: &Value, workspace: &Workspace) -> CallPlan {
        let paths = parse::<Args>(input).map(|args| touched(workspace, &args.path)).unwrap_or_default();
        let tags = vec!["fs.read".into(), "fs.write".into()];
        CallPlan { access: Access::Write, paths, tags, on_crash: OnCrash::Unknown }
    }

    fn normalise(&self, input: Value) -> Value {
        normalise(input, &FILE_ALIASES)
    }

    fn confirmation(&self, input: &Value, workspace: &Workspace) -> Option<Confirmation> {
        let args: Args = parse(input).ok()?;
        let name = shown(workspace, &resolve(workspace, &args.path));
        Some(confirmation(workspace, &name, change(&args, Reach::looking(workspace)).map(|(change, _)| change)))
    }

    async fn call(&self, input: Value, run: &ToolRun) -> ToolOutput {
        let run = run.clone();
        blocking(move || match parse::<Args>(&input).and_then(|args| change(&args, Reach::of(&run))) {
            Ok((change, 1)) => change.make(&run.workspace, "edited"),
            Ok((change, times)) => change.make(&run.workspace, &format!("made {times} replacements in")),
            Err(why) => ToolOutput::error(why),
        })
        .await
    }
}

/// What the edit would change, and in how many places; refused in a judged call whose session does not know the file.
fn change(args: &Args, reach: Reach<'_>) -> Result<(Change, usize), String> {
    let place = reach.place(&args.path)?;
    let name = shown(reach.workspace, &place.named);
    let current = Current::take(reach, &place)?;
    if reach.is_judged() {
        current.known(reach, &place)?;
    }
    let text = match std::str::from_utf8(&current.bytes) {
        Ok(text) if !is_binary(text.as_bytes()) => text,
        _ => return Err(format!("{name} is no UTF-8 text; change it with bash (iconv, sed, or a script)")),
    };
    let all = args.replace_all.unwrap_or(false);
    let spliced = splice(text, &args.old, &args.new, all).map_err(|why| format!("{name} was not changed: {why}"))?;
    let (after, times) = (spliced.text.into_bytes(), spliced.replacements);
    Ok((Change::new(reach.workspace, place, Some(current), after), times))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::hash;
    use crate::read::Read;
    use crate::stage::Stage;
    use serde_json::json;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    async fn staged(content: impl AsRef<[u8]>) -> Stage {
        let mut stage = Stage::new();
        stage.file("config.toml", content);
        stage.call(Read, json!({"path": "config.toml"})).await;
        stage
    }

    fn port(old: &str, new: &str) -> Value {
        json!({"path": "config.toml", "old": format!("port = {old}"), "new": format!("port = {new}")})
    }

    #[tokio::test]
    async fn a_text_is_replaced_and_the_result_is_short() {
        let mut stage = staged("host = \"a\"\nport = 8080\n").await;
        let output = stage.call(Edit, port("8080", "9090")).await;
        assert_eq!(stage.plain(&output), "edited config.toml (+1 −1)");
        assert_eq!(stage.read("config.toml"), "host = \"a\"\nport = 9090\n");
        insta::assert_snapshot!(output.value.unwrap()["diff"].as_str().unwrap(), @r#"
        --- config.toml
        +++ config.toml
        @@ -1,2 +1,2 @@
         host = "a"
        -port = 8080
        +port = 9090
        "#);
        let file = &output.files[0];
        assert_eq!(file.before, Some(hash(b"host = \"a\"\nport = 8080\n")));
        assert_eq!(file.after, Some(hash(b"host = \"a\"\nport = 9090\n")));
        stage.text(Edit, port("9090", "1")).await;
    }

    #[tokio::test]
    async fn other_agents_names_for_the_arguments_are_taken() {
        let mut stage = staged("port = 8080").await;
        let input = json!({"file_path": "config.toml", "old_string": "8080", "new_string": "1", "replace_all": null});
        stage.text(Edit, input).await;
        assert_eq!(stage.read("config.toml"), "port = 1");
    }

    #[tokio::test]
    async fn s0_01_a_file_unread_or_changed_since_is_not_edited() {
        let mut stage = Stage::new();
        stage.file("config.toml", "port = 8080\n");
        insta::assert_snapshot!(stage.error(Edit, port("8080", "9090")).await, @"config.toml exists and this session has not read it; read it first, then change it");
        stage.text(Read, json!({"path": "config.toml"})).await;
        stage.file("config.toml", "port = 8080 # mine\n");
        insta::assert_snapshot!(stage.error(Edit, port("8080", "9090")).await, @"config.toml has changed since this session read it; read it again, then change it");
        assert_eq!(stage.read("config.toml"), "port = 8080 # mine\n");
    }

    #[tokio::test]
    async fn s0_01_a_file_read_through_a_link_may_be_edited_by_its_name() {
        let mut stage = Stage::new();
        stage.file("config.toml", "port = 8080\n");
        std::os::unix::fs::symlink("config.toml", stage.path("link")).unwrap();
        stage.text(Read, json!({"path": "link"})).await;
        stage.text(Edit, port("8080", "9090")).await;
    }

    #[tokio::test]
    async fn crlf_bom_mode_and_a_missing_last_newline_survive() {
        let mut stage = staged("\u{feff}a = 1\r\nport = 8080\r\nb = 2").await;
        fs::set_permissions(stage.path("config.toml"), fs::Permissions::from_mode(0o751)).unwrap();
        stage.text(Edit, json!({"path": "config.toml", "old": "a = 1\nport", "new": "a = 1\n\nport"})).await;
        assert_eq!(stage.read("config.toml"), "\u{feff}a = 1\r\n\r\nport = 8080\r\nb = 2");
        assert_eq!(fs::metadata(stage.path("config.toml")).unwrap().permissions().mode() & 0o777, 0o751);
    }

    #[tokio::test]
    async fn s4_12_an_edit_that_does_not_fit_says_how_it_would() {
        let mut stage = staged("port = 80\nport = 80\n").await;
        insta::assert_snapshot!(stage.error(Edit, port("80", "81")).await, @"config.toml was not changed: `old` occurs 2 times (lines 1, 2); add lines around it until it is unique, or set replace_all");
        insta::assert_snapshot!(stage.error(Edit, port("90", "81")).await, @"config.toml was not changed: `old` was not found; most like its first line is line 1, but it differs: `port = 80`");
        insta::assert_snapshot!(stage.error(Edit, json!({"path": "confg.toml", "old": "a", "new": "b"})).await, @"confg.toml does not exist; close names in that folder: config.toml");
        let all = json!({"path": "config.toml", "old": "80", "new": "81", "replace_all": true});
        insta::assert_snapshot!(stage.text(Edit, all).await, @"made 2 replacements in config.toml (+2 −2)");
    }

    #[tokio::test]
    async fn what_is_no_text_is_not_edited() {
        let mut stage = staged(b"caf\xe9 = 8080\n").await;
        insta::assert_snapshot!(stage.error(Edit, json!({"path": "config.toml", "old": "8080", "new": "1"})).await, @"config.toml is no UTF-8 text; change it with bash (iconv, sed, or a script)");
    }

    #[test]
    fn s4_11_a_person_sees_the_diff_or_why_there_is_none() {
        let stage = Stage::new();
        stage.file("config.toml", "port = 8080\n");
        let asked = Edit.confirmation(&port("8080", "9090"), &stage.workspace).unwrap();
        insta::assert_snapshot!(asked.preview, @r"
        --- config.toml
        +++ config.toml
        @@ -1 +1 @@
        -port = 8080
        +port = 9090
        ");
        let asked = Edit.confirmation(&port("1", "2"), &stage.workspace).unwrap();
        insta::assert_snapshot!(asked.preview, @"this would fail: config.toml was not changed: `old` was not found; most like its first line is line 1, but it differs: `port = 8080`");
    }
}
