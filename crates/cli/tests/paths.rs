//! Paths that try to lead file tools astray, and paths that must simply work: each row runs the real binary on a tree of
//! its own, beside which lies a folder that nobody allowed.

use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use tempfile::TempDir;

const SECRET: &str = "plum-in-the-cellar";
/// Runs of the binary while a path is swapped under it.
const SWAPPED_RUNS: usize = 60;
const EDITS: &[&str] = &["--permission-mode", "accept-edits"];
const YES: &[&str] = &["--yes"];

/// `work`, in which the tools work, and `outside` beside it.
struct Tree {
    folder: TempDir,
    top: PathBuf,
}

impl Tree {
    fn new() -> Tree {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        let tree = Tree { folder, top };
        for (name, text) in [
            ("work/a.txt", "an apple\n"),
            ("work/src/main.rs", "fn main() {}\n"),
            ("work/src/deep/er/x.rs", "fn deep() {}\n"),
            ("work/caf\u{e9}.txt", "one sign\n"),
            ("work/...", "three dots\n"),
            ("work/name with  spaces .txt", "spaces\n"),
            ("work/line\nbreak.txt", "broken name\n"),
            ("work/\u{202e}txt.lr", "right to left\n"),
            ("work/a\u{200b}.txt", "no width\n"),
            ("work/\u{ff0e}\u{ff0e}\u{ff0f}wide", "wide dots\n"),
            ("work/back\\slash", "backslash\n"),
            ("work/~tilde", "a tilde\n"),
            ("work/.git/config", "[core]\n"),
            ("work/.gitignore", "built\n"),
            ("work/built/out.txt", "built\n"),
            ("work/.windlassignore", "*.key\n/vault/\n!open.key\n"),
            ("work/.aiignore", "diary.txt\n"),
            ("work/id.key", SECRET),
            ("work/open.key", "open key\n"),
            ("work/vault/gold.txt", SECRET),
            ("work/diary.txt", SECRET),
            ("work/sub/.cursorignore", "private\n"),
            ("work/sub/private/p.txt", SECRET),
            ("work/sub/public.txt", "public\n"),
            ("outside/secret.txt", SECRET),
            ("outside/hard.txt", "a shared inode\n"),
            ("outside/open.txt", "an open pear\n"),
        ] {
            let path = tree.path(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        tree.links();
        tree
    }

    fn links(&self) {
        let (inside, secret) = (self.path("work/a.txt"), self.path("outside/secret.txt"));
        for (name, target) in [
            ("link", Path::new("a.txt")),
            ("folder", Path::new("src")),
            ("chain", Path::new("chain2")),
            ("chain2", Path::new("folder/../a.txt")),
            ("abs", &inside),
            ("loop", Path::new("loop")),
            ("ring", Path::new("gnir")),
            ("gnir", Path::new("./ring")),
            ("dangling", Path::new("not/yet.txt")),
            ("out", &secret),
            ("out_rel", Path::new("../outside/secret.txt")),
            ("out_folder", Path::new("../outside")),
            ("out_chain", Path::new("out_hop")),
            ("out_hop", Path::new("out_folder/secret.txt")),
            ("out_new", Path::new("../outside/new.txt")),
            ("to_key", Path::new("id.key")),
            ("to_vault", Path::new("vault")),
            ("self", Path::new("/proc/self")),
        ] {
            symlink(target, self.path("work").join(name)).unwrap();
        }
        fs::hard_link(self.path("outside/hard.txt"), self.path("work/hard.txt")).unwrap();
        UnixListener::bind(self.path("work/socket")).unwrap();
        assert!(Command::new("mkfifo").arg(self.path("work/pipe")).status().unwrap().success());
        fs::set_permissions(self.path("work/src/main.rs"), fs::Permissions::from_mode(0o754)).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.top.join(name)
    }

    /// `TOP` in a text stands for the folder that holds both.
    fn fill(&self, text: &str) -> String {
        text.replace("TOP", &self.top.display().to_string())
    }

    /// Every file outside, with what is in it.
    fn outside(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let entries = fs::read_dir(self.path("outside")).unwrap().map(|entry| entry.unwrap().path());
        let mut files: Vec<_> = entries.map(|path| (path.clone(), fs::read(path).unwrap())).collect();
        files.sort();
        files
    }

    fn run(&self, tool: &str, input: &Value, flags: &[&str]) -> (i32, String, String) {
        let flags: Vec<String> = flags.iter().map(|flag| self.fill(flag)).collect();
        let output = Command::new(env!("CARGO_BIN_EXE_windlass"))
            .args(["tool", "run", tool, &self.fill(&input.to_string()), "--json"])
            .args(flags)
            .current_dir(self.path("work"))
            .env_clear()
            .env("PATH", std::env::var("PATH").unwrap_or_default())
            .env("HOME", self.folder.path().join("home"))
            .env("WINDLASS_HOME", self.folder.path().join("home/.windlass"))
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
    }
}

/// What a row expects; the text stands in the result, or in what is said against it.
enum Expect {
    Ok(&'static str),
    Denied,
    Error(&'static str),
}

struct Row {
    tool: &'static str,
    input: Value,
    flags: &'static [&'static str],
    expect: Expect,
    /// A file of the tree and what it must hold afterwards.
    after: Option<(&'static str, &'static str)>,
}

impl Row {
    fn new(tool: &'static str, input: Value, expect: Expect) -> Row {
        Row { tool, input, flags: &[], expect, after: None }
    }

    fn with(self, flags: &'static [&'static str]) -> Row {
        Row { flags, ..self }
    }

    fn leaves(self, name: &'static str, text: &'static str) -> Row {
        Row { after: Some((name, text)), ..self }
    }

    /// What is wrong with what it gave, if anything is.
    fn fault(&self) -> Option<String> {
        let tree = Tree::new();
        let before = tree.outside();
        let (code, out, err) = tree.run(self.tool, &self.input, self.flags);
        let said = serde_json::from_str::<Value>(&out).map_or(String::new(), |it| it["text"].to_string()) + &err;
        let met = match &self.expect {
            Expect::Ok(text) => code == 0 && said.contains(&tree.fill(text)),
            Expect::Denied => code == 3,
            Expect::Error(text) => code == 1 && said.contains(&tree.fill(text)),
        };
        let mut faults = Vec::new();
        if !met {
            faults.push(format!("exit {code}: {said}"));
        }
        if (out + &err).contains(SECRET) {
            faults.push("the secret was told".into());
        }
        if tree.outside() != before {
            faults.push("something outside was changed".into());
        }
        if let Some((name, text)) = self.after {
            let held = fs::read_to_string(tree.path(name)).unwrap_or("(nothing)".into());
            if held != text {
                faults.push(format!("{name} holds {held:?}"));
            }
        }
        (!faults.is_empty()).then(|| format!("{} {} {:?}: {}", self.tool, self.input, self.flags, faults.join("; ")))
    }
}

fn ok(tool: &'static str, input: Value, text: &'static str) -> Row {
    Row::new(tool, input, Expect::Ok(text))
}

fn denied(tool: &'static str, input: Value) -> Row {
    Row::new(tool, input, Expect::Denied)
}

fn error(tool: &'static str, input: Value, text: &'static str) -> Row {
    Row::new(tool, input, Expect::Error(text))
}

fn path(path: &str) -> Value {
    json!({ "path": path })
}

fn content(path: &str) -> Value {
    json!({"path": path, "content": "written\n"})
}

fn add(path: &str) -> Value {
    json!({"patch": format!("*** Begin Patch\n*** Add File: {path}\n+written\n*** End Patch\n")})
}

fn delete(path: &str) -> Value {
    json!({"patch": format!("*** Begin Patch\n*** Delete File: {path}\n*** End Patch\n")})
}

fn pear(path: &str) -> Value {
    json!({"path": path, "old": "apple", "new": "pear"})
}

/// Paths as people and models write them every day, and odd ones that are nobody else's.
fn rows_that_work() -> Vec<Row> {
    vec![
        ok("read", path("a.txt"), "an apple"),
        ok("read", path("./a.txt"), "an apple"),
        ok("read", path("TOP/work/a.txt"), "an apple"),
        ok("read", path("src//deep///er/x.rs"), "fn deep"),
        ok("read", path("src/./deep/../main.rs"), "fn main"),
        ok("read", path("nowhere/../a.txt"), "an apple"),
        ok("read", path("../work/a.txt"), "an apple"),
        ok("read", path("a.txt/"), "an apple"),
        ok("read", path("link"), "an apple"),
        ok("read", path("folder/main.rs"), "fn main"),
        ok("read", path("folder/deep/er/x.rs"), "fn deep"),
        ok("read", path("chain"), "an apple"),
        ok("read", path("abs"), "an apple"),
        ok("read", path("out_folder/../a.txt"), "an apple"),
        ok("read", path("hard.txt"), "a shared inode"),
        ok("read", path("caf\u{e9}.txt"), "one sign"),
        ok("read", path("..."), "three dots"),
        ok("read", path("name with  spaces .txt"), "spaces"),
        ok("read", path("line\nbreak.txt"), "broken name"),
        ok("read", path("\u{202e}txt.lr"), "right to left"),
        ok("read", path("a\u{200b}.txt"), "no width"),
        ok("read", path("\u{ff0e}\u{ff0e}\u{ff0f}wide"), "wide dots"),
        ok("read", path("back\\slash"), "backslash"),
        ok("read", path("~tilde"), "a tilde"),
        ok("read", path(".git/config"), "[core]"),
        ok("read", path("built/out.txt"), "built"),
        ok("read", path("open.key"), "open key"),
        ok("read", path("sub/public.txt"), "public"),
        ok("read", path("TOP/outside/open.txt"), "open pear").with(&["--allow", "read(TOP/outside/open.txt)"]),
        ok("read", path("../outside/open.txt"), "open pear").with(&["--allow", "read(TOP/outside/**)"]),
        ok("read", path("out_folder/open.txt"), "open pear").with(YES),
        ok("write", content("new.txt"), "created new.txt").with(EDITS).leaves("work/new.txt", "written\n"),
        ok("write", content("x/y/z.txt"), "created").with(EDITS).leaves("work/x/y/z.txt", "written\n"),
        ok("write", content("a.txt"), "overwrote a.txt").with(EDITS).leaves("work/a.txt", "written\n"),
        ok("write", content("link"), "overwrote link").with(EDITS).leaves("work/a.txt", "written\n"),
        ok("write", content("chain"), "overwrote").with(EDITS).leaves("work/a.txt", "written\n"),
        ok("write", content("folder/new.rs"), "created").with(EDITS).leaves("work/src/new.rs", "written\n"),
        ok("write", content("dangling"), "created").with(EDITS).leaves("work/not/yet.txt", "written\n"),
        ok("write", content("hard.txt"), "overwrote").with(EDITS).leaves("work/hard.txt", "written\n"),
        ok("write", content("hard.txt"), "overwrote").with(EDITS).leaves("outside/hard.txt", "a shared inode\n"),
        ok("write", content("cafe\u{301}.txt"), "created").with(EDITS).leaves("work/caf\u{e9}.txt", "one sign\n"),
        ok("write", content("trailing."), "created").with(EDITS).leaves("work/trailing.", "written\n"),
        ok("write", content("~backup"), "created").with(EDITS).leaves("work/~backup", "written\n"),
        ok("edit", pear("a.txt"), "edited a.txt").with(EDITS).leaves("work/a.txt", "an pear\n"),
        ok("edit", pear("abs"), "edited abs").with(EDITS).leaves("work/a.txt", "an pear\n"),
        ok("edit", pear("src/../a.txt"), "edited a.txt").with(EDITS).leaves("work/a.txt", "an pear\n"),
        ok("apply_patch", add("p.txt"), "added p.txt").with(EDITS).leaves("work/p.txt", "written\n"),
        ok("apply_patch", delete("hard.txt"), "deleted").with(EDITS).leaves("outside/hard.txt", "a shared inode\n"),
        ok("ls", json!({}), "link 9 -> a.txt"),
        ok("ls", json!({}), r"line\\nbreak.txt 12"),
        ok("ls", path("folder"), "main.rs"),
        ok("ls", json!({}), "out_folder 10 -> ../outside"),
        ok("glob", json!({"pattern": "src/**/*.rs"}), "src/deep/er/x.rs"),
        ok("glob", json!({"pattern": "*.rs", "path": "folder"}), "src/main.rs"),
        ok("glob", json!({"pattern": "*.key"}), "open.key"),
        ok("grep", json!({"pattern": "apple"}), "a.txt:1:an apple"),
        ok("grep", json!({"pattern": "apple", "path": "chain"}), "an apple"),
        ok("grep", json!({"pattern": "fn", "path": "folder/deep"}), "fn deep"),
    ]
}

/// What nobody allowed: outside by name, by link, by the process's own links.
fn rows_outside() -> Vec<Row> {
    let mut rows: Vec<Row> = [
        "../outside/secret.txt",
        "TOP/outside/secret.txt",
        "src/../../outside/secret.txt",
        "src/deep/../../../outside/secret.txt",
        "./.././outside/./secret.txt",
        "..//outside//secret.txt",
        "TOP/work/../outside/secret.txt",
        "TOP//outside/secret.txt",
        "nowhere/../../outside/secret.txt",
        "out",
        "out_rel",
        "out_chain",
        "out_folder/secret.txt",
        "out_folder/../../outside/secret.txt",
        "folder/../../outside/secret.txt",
        "/proc/self/root/TOP/outside/secret.txt",
        "/proc/self/cwd/../outside/secret.txt",
        "/proc/self/cwd/a.txt",
        "/proc/self/fd/0",
        "/proc/self/environ",
        "/proc/thread-self/root/etc/hostname",
        "/dev/fd/0",
        "/dev/stdin",
        "self/cwd/../outside/secret.txt",
        "/etc/hostname",
    ]
    .map(|name| denied("read", path(name)))
    .into();
    rows.extend(
        [
            "../outside/new.txt",
            "out",
            "out_new",
            "out_folder/new.txt",
            "/proc/self/cwd/new.txt",
            "TOP/outside/secret.txt",
        ]
        .map(|name| denied("write", content(name)).with(EDITS)),
    );
    rows.extend(["out", "../outside/hard.txt"].map(|name| denied("edit", pear(name)).with(EDITS)));
    rows.extend(["out_new", "../outside/x", "out_folder/x"].map(|name| denied("apply_patch", add(name)).with(EDITS)));
    rows.extend(
        ["out_folder/secret.txt", "../outside/secret.txt"].map(|name| denied("apply_patch", delete(name)).with(EDITS)),
    );
    rows.extend(["..", "out_folder", "/proc/self/cwd/..", "/"].map(|name| denied("ls", path(name))));
    rows.extend(
        ["..", "out_folder", "TOP/outside"].map(|name| denied("grep", json!({"pattern": "plum", "path": name}))),
    );
    rows.push(denied("glob", json!({"pattern": "TOP/outside/*"})));
    rows.push(denied("glob", json!({"pattern": "*", "path": "out_folder"})));
    rows.push(denied("glob", json!({"pattern": "../outside/*", "path": "../work/.."})));
    // A rule for one file is none for another, nor for a link to it by another way.
    let one = &["--allow", "read(TOP/outside/open.txt)"];
    rows.push(denied("read", path("TOP/outside/secret.txt")).with(one));
    rows.push(denied("read", path("TOP/outside/open.txt/../secret.txt")).with(one));
    rows.push(denied("read", path("out")).with(&["--allow", "read(out)"]));
    rows.push(denied("read", path("out")).with(&["--yes", "--deny", "read(TOP/outside/**)"]));
    rows.push(denied("read", path("link")).with(&["--deny", "read(a.txt)"]));
    rows.push(denied("read", path("link")).with(&["--deny", "read(link)"]));
    rows.push(denied("edit", pear("chain")).with(&["--yes", "--deny", "edit(a.txt)"]));
    // Who allows everything still gets no process's links: they do not say where they lead.
    for name in
        ["/proc/self/root/TOP/outside/secret.txt", "/proc/self/cwd/a.txt", "/dev/stdin", "/dev/fd/0", "self/cwd/a.txt"]
    {
        rows.push(error("read", path(name), "name the file it leads to").with(YES));
    }
    rows
}

/// Names by which code runs later, in every spelling that some file system takes for them.
fn rows_protected() -> Vec<Row> {
    [
        ".git/config",
        ".git/hooks/pre-commit",
        ".GIT/config",
        "sub/.Git/hooks/x",
        ".g\u{200c}it/config",
        "\u{ff0e}git/config",
        ".bashrc",
        "sub/.BashRC",
        ".windlass/config.toml",
        ".WINDLASS/x",
        ".windlassignore",
        "src/../.git/config",
        "folder/../.git/config",
    ]
    .map(|name| denied("write", content(name)).with(EDITS))
    .into()
}

fn rows_hidden() -> Vec<Row> {
    let mut rows = vec![
        error("read", path("id.key"), "hidden from tools by .windlassignore, line 1"),
        error("read", path("TOP/work/id.key"), ".windlassignore, line 1"),
        error("read", path("src/../id.key"), ".windlassignore, line 1"),
        error("read", path("to_key"), "to_key is hidden from tools by .windlassignore, line 1"),
        error("read", path("vault/gold.txt"), ".windlassignore, line 2"),
        error("read", path("to_vault/gold.txt"), ".windlassignore, line 2"),
        error("read", path("diary.txt"), ".aiignore, line 1"),
        error("read", path("sub/private/p.txt"), "sub/.cursorignore, line 1"),
        error("ls", path("vault"), ".windlassignore, line 2"),
        error("ls", path("to_vault"), ".windlassignore, line 2"),
        error("grep", json!({"pattern": "plum", "path": "id.key"}), ".windlassignore, line 1"),
        error("grep", json!({"pattern": "plum", "path": "sub/private"}), "sub/.cursorignore, line 1"),
        error("glob", json!({"pattern": "*", "path": "vault"}), ".windlassignore, line 2"),
        error("write", content("id.key"), ".windlassignore, line 1").with(EDITS).leaves("work/id.key", SECRET),
        error("write", content("new.key"), ".windlassignore, line 1").with(EDITS).leaves("work/new.key", "(nothing)"),
        error("edit", json!({"path": "diary.txt", "old": "plum", "new": "x"}), ".aiignore")
            .with(EDITS)
            .leaves("work/diary.txt", SECRET),
        error("apply_patch", delete("vault/gold.txt"), ".windlassignore, line 2")
            .with(YES)
            .leaves("work/vault/gold.txt", SECRET),
        error("apply_patch", add("vault/x"), ".windlassignore, line 2").with(EDITS),
        error("read", path("id.kex"), "id.kex does not exist; look with ls"),
    ];
    rows.push(ok("grep", json!({"pattern": "plum"}), "no line matches plum"));
    rows.push(ok("glob", json!({"pattern": "{gold,diary,p}.txt"}), "no file matches"));
    rows.push(ok("glob", json!({"pattern": "to_*"}), "no file matches"));
    rows
}

/// What is no file, or is none of that name.
fn rows_odd() -> Vec<Row> {
    let mut rows: Vec<Row> = ["pipe", "socket"].map(|name| error("read", path(name), "no regular file")).into();
    rows.extend(["pipe", "socket"].map(|name| error("write", content(name), "no regular file").with(EDITS)));
    rows.extend(["pipe", "socket"].map(|name| error("edit", pear(name), "no regular file").with(EDITS)));
    rows.extend(["/dev/zero", "/dev/tty"].map(|name| error("read", path(name), "no regular file").with(YES)));
    rows.extend(["loop", "ring", "loop/x"].map(|name| error("read", path(name), "circle of links")));
    rows.extend([
        error("read", path("dangling"), "dangling leads to not/yet.txt, and nothing is there"),
        error("read", path("self/root/etc/hostname"), "name the file it leads to"),
        error("read", path("src"), "src is a folder"),
        error("read", path(""), ". is a folder"),
        error("read", path("a.txt/b"), "a.txt/b does not exist"),
        error("read", path("a\0b"), "NUL"),
        error("read", path("\u{1F4A5}\u{200d}"), "does not exist"),
        error("read", path("cafe\u{301}.txt"), "caf\\\\u{e9}.txt"),
        error("read", path("\u{ff0e}\u{ff0e}/outside/secret.txt"), "does not exist"),
        error("read", path("\u{2025}/outside/secret.txt"), "does not exist"),
        error("read", path("..\\outside\\secret.txt"), "does not exist"),
        error("read", path("%2e%2e/outside/secret.txt"), "does not exist"),
        error("read", path("a.txt\u{200b}"), "does not exist"),
        error("read", path("a.txt "), "does not exist"),
        error("read", path("a.txt."), "does not exist"),
        error("read", path("A.TXT"), "does not exist"),
        error("read", path("~/secret.txt"), "does not exist"),
        error("read", path("~root/.profile"), "does not exist"),
        error("read", path("$HOME/secret.txt"), "does not exist"),
        error("read", path("file://TOP/outside/secret.txt"), "does not exist"),
        error("write", content("~/x.txt"), "`~` is not expanded").with(EDITS).leaves("work/~/x.txt", "(nothing)"),
        error("write", content("$HOME/x.txt"), "`$HOME` is not expanded").with(EDITS),
        error("write", content("file:///tmp/x.txt"), "`file:` is not expanded").with(EDITS),
        error("write", content("new/"), "ends with a slash").with(EDITS).leaves("work/new", "(nothing)"),
        error("write", content("src"), "src is a folder").with(EDITS),
        error("write", content("a.txt/b"), "could not write").with(EDITS).leaves("work/a.txt", "an apple\n"),
        error("ls", path("a.txt"), "a.txt is a file"),
        error("ls", path("pipe"), "pipe is a file"),
        error("apply_patch", delete("link"), "link is a link to a.txt").with(EDITS).leaves("work/a.txt", "an apple\n"),
    ]);
    rows.push(error("read", path(&"x".repeat(300)), "does not exist"));
    rows.push(error("read", path(&"d/".repeat(3_000)), "does not exist"));
    rows.push(error("write", content(&"x".repeat(300)), "File name too long").with(EDITS));
    rows
}

#[test]
fn every_path_leads_where_it_was_allowed_to_or_nowhere() {
    let working = rows_that_work();
    let trying: Vec<Row> =
        [rows_outside(), rows_protected(), rows_hidden(), rows_odd()].into_iter().flatten().collect();
    println!(
        "{} rows: {} that must work, {} that must not lead astray",
        working.len() + trying.len(),
        working.len(),
        trying.len()
    );
    assert!(working.len() >= 30 && working.len() + trying.len() >= 80);
    let faults: Vec<String> = working.iter().chain(&trying).filter_map(Row::fault).collect();
    assert!(faults.is_empty(), "{} rows went wrong:\n{}", faults.len(), faults.join("\n"));
}

/// Swaps what stands at `work/swapped` as fast as it can, until it is dropped.
struct Swapper {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<u64>>,
}

impl Swapper {
    /// `makes` puts one of two things at the path it is given.
    fn start(tree: &Tree, makes: [fn(&Path, &Path); 2]) -> Swapper {
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, top) = (stop.clone(), tree.top.clone());
        let thread = thread::spawn(move || {
            let (draft, swapped) = (top.join("draft"), top.join("work/swapped"));
            let (mut swaps, mut gone) = (0, 0);
            while !stopped.load(Ordering::Relaxed) {
                makes[swaps as usize % 2](&top, &draft);
                // A folder is not replaced by a link, nor a link by a folder: it has to go first. And a call may make
                // the folder anew meanwhile.
                while fs::rename(&draft, &swapped).is_err() {
                    gone += 1;
                    _ = fs::rename(&swapped, top.join(format!("gone-{gone}")));
                }
                swaps += 1;
            }
            swaps
        });
        Swapper { stop, thread: Some(thread) }
    }

    fn swaps(mut self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().map_or(0, |thread| thread.join().unwrap())
    }
}

impl Drop for Swapper {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn a_file(_: &Path, draft: &Path) {
    fs::write(draft, "an apple\n").unwrap();
}

fn a_link(top: &Path, draft: &Path) {
    symlink(top.join("outside/secret.txt"), draft).unwrap();
}

fn a_folder(_: &Path, draft: &Path) {
    fs::create_dir(draft).unwrap();
    fs::write(draft.join("secret.txt"), "an apple\n").unwrap();
}

fn a_folder_link(top: &Path, draft: &Path) {
    symlink(top.join("outside"), draft).unwrap();
}

/// Runs calls while the path is swapped; whatever comes of one, nothing outside is told or touched.
fn race(makes: [fn(&Path, &Path); 2], calls: &[(&str, Value, &[&str])]) {
    let tree = Tree::new();
    let before = tree.outside();
    let swapper = Swapper::start(&tree, makes);
    let mut codes = std::collections::BTreeMap::<i32, usize>::new();
    for index in 0..SWAPPED_RUNS {
        let (tool, input, flags) = &calls[index % calls.len()];
        let (code, out, err) = tree.run(tool, input, flags);
        assert!(!(out.clone() + &err).contains(SECRET), "{tool}: {out}{err}");
        *codes.entry(code).or_default() += 1;
    }
    let swaps = swapper.swaps();
    assert_eq!(tree.outside(), before);
    println!("{SWAPPED_RUNS} runs during {swaps} swaps, by exit code: {codes:?}");
    assert!(codes.keys().all(|code| [0, 1, 3].contains(code)), "{codes:?}");
    assert!(swaps as usize > SWAPPED_RUNS);
}

#[test]
fn a_file_that_becomes_a_link_during_the_call_leads_nowhere() {
    race(
        [a_file, a_link],
        &[
            ("read", path("swapped"), &[]),
            ("grep", json!({"pattern": "plum|apple", "path": "swapped"}), &[]),
            ("write", content("swapped"), EDITS),
            ("edit", json!({"path": "swapped", "old": "l", "new": "L", "replace_all": true}), EDITS),
        ],
    );
}

#[test]
fn a_folder_that_becomes_a_link_during_the_call_leads_nowhere() {
    race(
        [a_folder, a_folder_link],
        &[
            ("read", path("swapped/secret.txt"), &[]),
            ("grep", json!({"pattern": "plum", "path": "swapped"}), &[]),
            ("write", content("swapped/secret.txt"), EDITS),
            ("write", content("swapped/new.txt"), EDITS),
            ("apply_patch", delete("swapped/secret.txt"), EDITS),
            ("edit", json!({"path": "swapped/secret.txt", "old": "l", "new": "L", "replace_all": true}), EDITS),
        ],
    );
}
