//! `read`, `write` and `edit` in a component do what they do outside, and reach the workspace alone.

mod common;
use common::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::sync::Arc;
use windlass_kernel::{FileSeen, text_of};
use windlass_tools::{Tool, ToolOutput, builtin};
use windlass_wasm::{BOXED, boxed};

/// A workspace, and the tools that work in it.
struct Ground {
    stage: Stage,
    tools: Vec<Arc<dyn Tool>>,
    seen: BTreeMap<String, String>,
}

impl Ground {
    fn new(in_components: bool) -> Ground {
        let stage = Stage::new();
        let tools = builtin().into_iter().filter(|tool| BOXED.contains(&tool.name()));
        let tools = tools.map(|tool| if in_components { boxed(tool, &stage.host).unwrap() } else { tool });
        Ground { tools: tools.collect(), seen: BTreeMap::new(), stage }
    }

    async fn call(&mut self, tool: &str, input: Value) -> ToolOutput {
        let tool = self.tools.iter().find(|one| one.name() == tool).unwrap();
        let mut run = self.stage.run();
        run.paths = tool.plan(&input, &run.workspace).paths;
        run.seen = Arc::new(self.seen.clone());
        let output = tool.call(input, &run).await;
        let files = output.files.iter().cloned();
        self.seen.extend(files.filter_map(|FileSeen { path, after, .. }| Some((path, after?))));
        output
    }

    /// The output with the folder's own name taken out of it.
    async fn told(&mut self, tool: &str, input: Value) -> String {
        let output = format!("{:?}", self.call(tool, input).await);
        // WASI numbers errors otherwise.
        let output = output.replace("(os error 54)", "(os error 20)");
        output.replace(&self.stage.dir.path().display().to_string(), "TMP")
    }
}

fn write(path: &str, content: &str) -> (&'static str, Value) {
    ("write", json!({"path": path, "content": content}))
}

fn edit(path: &str, old: &str, new: &str) -> (&'static str, Value) {
    ("edit", json!({"path": path, "old": old, "new": new}))
}

fn read(path: &str) -> (&'static str, Value) {
    ("read", json!({"path": path}))
}

fn prepare(work: &Path) {
    fs::create_dir_all(work.join("sub/deep")).unwrap();
    fs::write(work.join("port.toml"), "host = \"a\"\r\nport = 8080\r\n").unwrap();
    fs::write(work.join("sub/wide.bin"), b"ab\0cd").unwrap();
    fs::write(work.join("sub/latin.txt"), b"caf\xe9\n").unwrap();
    fs::write(work.join("sub/a.png"), b"\x89PNG\r\n\x1a\n and so on").unwrap();
    fs::write(work.join("long.txt"), "line\n".repeat(3_000)).unwrap();
    fs::write(work.join("hidden.txt"), "h").unwrap();
    fs::write(work.join(".aiignore"), "hidden.txt\n").unwrap();
    fs::write(work.join("huge.log"), "0123456789abcde\n".repeat(700_000)).unwrap();
    symlink("port.toml", work.join("link")).unwrap();
    symlink("sub/deep/new.txt", work.join("dangling")).unwrap();
    symlink("nowhere/at/all", work.join("lost")).unwrap();
    symlink("circle", work.join("circle")).unwrap();
}

#[tokio::test]
async fn s3_34_the_same_calls_give_the_same_inside_as_outside() {
    let calls = [
        edit("port.toml", "8080", "9090"),
        read("link"),
        edit("port.toml", "8080", "9090"),
        edit("link", "9090", "1\nx = 2"),
        edit("port.toml", "none such", "x"),
        read("long.txt"),
        ("read", json!({"path": "long.txt", "offset": 2_999, "limit": 5})),
        ("read", json!({"path": "huge.log", "offset": 600_000, "limit": 1})),
        read("huge.log"),
        read("sub"),
        read("sub/wide.bin"),
        read("sub/latin.txt"),
        read("sub/a.png"),
        read("hidden.txt"),
        read("prot.toml"),
        read("none/such.txt"),
        read("lost"),
        read("circle"),
        write("new/folder/a.txt", "one\ntwo\n"),
        write("new/folder/a.txt", "one\n"),
        write("dangling", "through a link"),
        write("long.txt", "changed"),
        write("sub/latin.txt", "known\n"),
        write("sub", "x"),
        write("port.toml/x", "x"),
        write("ends/", "x"),
        ("edit", json!({"path": "long.txt", "old": "line", "new": "row", "replace_all": true})),
    ];
    let (mut outside, mut inside) = (Ground::new(false), Ground::new(true));
    prepare(&outside.stage.path("work"));
    prepare(&inside.stage.path("work"));
    for (tool, input) in calls {
        let expected = outside.told(tool, input.clone()).await;
        assert_eq!(inside.told(tool, input.clone()).await, expected, "{tool} {input}");
    }
    assert_eq!(content(&inside.stage.path("work")), content(&outside.stage.path("work")));
}

#[tokio::test]
async fn a_workspace_that_was_replaced_is_another() {
    let ground = Ground::new(true);
    let workspace = ground.stage.workspace();
    workspace.root.handle().unwrap();
    ground.stage.write("work/a.txt", "one\n");
    fs::remove_dir_all(ground.stage.path("work")).unwrap();
    ground.stage.write("work/a.txt", "another's\n");
    let read = ground.tools.iter().find(|one| one.name() == "read").unwrap();
    let mut run = ground.stage.run();
    (run.paths, run.workspace) = (vec![ground.stage.path("work/a.txt").display().to_string()], workspace);
    let output = read.call(json!({"path": "a.txt"}), &run).await;
    assert!(output.is_error && text_of(&output.blocks).contains("was removed or replaced"), "{output:?}");
}

/// Every file with what it holds.
fn content(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut content = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        match entry.metadata().unwrap() {
            meta if meta.is_dir() => {
                let below = self::content(&entry.path()).into_iter();
                content.extend(below.map(|(path, bytes)| (format!("{name}/{path}"), bytes)));
            }
            meta if meta.is_file() => _ = content.insert(name, fs::read(entry.path()).unwrap()),
            _ => _ = content.insert(name, b"a link".to_vec()),
        }
    }
    content
}

#[tokio::test]
async fn s3_34_what_lies_outside_the_workspace_is_not_there() {
    let mut ground = Ground::new(true);
    let outside = ground.stage.path("out.txt").display().to_string();
    ground.stage.write("out.txt", "secret");
    ground.stage.write("work/in.txt", "x");
    symlink(&outside, ground.stage.path("work/link")).unwrap();
    for path in [outside.as_str(), "link", "../out.txt", "/etc/passwd"] {
        for (tool, input) in [read(path), write(path, "x"), edit(path, "secret", "x")] {
            let output = ground.call(tool, input).await;
            let text = text_of(&output.blocks);
            assert!(output.is_error && text.contains("lies outside the workspace"), "{tool} {path}: {text}");
        }
    }
    assert_eq!(fs::read_to_string(&outside).unwrap(), "secret");
    ground.stage.write("scratch/call.txt", "the whole output");
    let scratch = ground.stage.path("scratch/call.txt").display().to_string();
    let text = text_of(&ground.call("read", json!({"path": &scratch})).await.blocks);
    assert_eq!(text, "1\tthe whole output\n", "what was kept of a long output can be read");
    assert!(ground.call("write", json!({"path": scratch, "content": ""})).await.is_error);
}

#[tokio::test]
async fn s3_34_a_file_that_was_put_in_anothers_place_is_not_opened() {
    let ground = Ground::new(true);
    ground.stage.write("work/a.txt", "a");
    ground.stage.write("work/b.txt", "b");
    let mut run = ground.stage.run();
    run.paths = vec![ground.stage.path("work/a.txt").display().to_string()];
    fs::remove_file(ground.stage.path("work/a.txt")).unwrap();
    symlink("b.txt", ground.stage.path("work/a.txt")).unwrap();
    let read = ground.tools.iter().find(|tool| tool.name() == "read").unwrap();
    let text = text_of(&read.call(json!({"path": "a.txt"}), &run).await.blocks);
    assert_eq!(text, "a.txt now leads to b.txt, which is not what was allowed; call again if that is what you mean");
}

#[tokio::test]
async fn a_files_mode_outlives_its_being_replaced() {
    let mut ground = Ground::new(true);
    ground.stage.write("work/run.sh", "old\n");
    let file = ground.stage.path("work/run.sh");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o751)).unwrap();
    let before = fs::metadata(&file).unwrap().ino();
    ground.call("read", json!({"path": "run.sh"})).await;
    let (tool, input) = edit("run.sh", "old", "new");
    assert_eq!(text_of(&ground.call(tool, input).await.blocks), "edited run.sh (+1 −1)");
    let after = fs::metadata(&file).unwrap();
    assert_eq!(after.mode() & 0o7777, 0o751);
    assert_ne!(after.ino(), before, "it took the old one's place whole");
    assert_eq!(fs::read_dir(ground.stage.path("work")).unwrap().count(), 1, "no draft is left");
}

#[tokio::test]
async fn a_workspace_that_is_a_link_works_by_its_own_name() {
    let mut ground = Ground::new(true);
    let work = ground.stage.path("work");
    fs::rename(&work, ground.stage.path("real")).unwrap();
    symlink(ground.stage.path("real"), &work).unwrap();
    ground.stage.write("real/a.txt", "one\n");
    symlink(work.join("a.txt"), ground.stage.path("real/link")).unwrap();
    assert_eq!(text_of(&ground.call("read", json!({"path": "link"})).await.blocks), "1\tone\n");
    let (tool, input) = edit("a.txt", "one", "two");
    assert_eq!(text_of(&ground.call(tool, input).await.blocks), "edited a.txt (+1 −1)");
}
