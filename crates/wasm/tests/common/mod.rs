//! A stage for components: the probe, built once, in tools with manifests of any kind.
#![allow(dead_code)]

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use windlass_kernel::{CallId, SessionId, text_of};
use windlass_tools::{Entry, Finished, Reports, Root, ToolRun, ToolSettings, Workspace};
use windlass_wasm::{Component, Folder, Host, Standing, load};

const PROBE: &str = include_str!("../guests/probe.rs");

/// The probe as a component, compiled anew only when its source changed.
pub fn probe() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("guests");
    let (source, built) = (folder.join("probe.rs"), folder.join("probe.wasm"));
    if built.exists() && fs::read_to_string(&source).is_ok_and(|text| text == PROBE) {
        return built;
    }
    fs::create_dir_all(&folder).unwrap();
    let own = tempfile::tempdir_in(&folder).unwrap();
    let (from, to) = (own.path().join("probe.rs"), own.path().join("probe.wasm"));
    fs::write(&from, PROBE).unwrap();
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc.args(["--edition", "2024", "--target", "wasm32-wasip2", "-O", "-C", "strip=symbols", "-o"]);
    let made = rustc.arg(&to).arg(&from).output().expect("rustc runs");
    let said = String::from_utf8_lossy(&made.stderr);
    assert!(made.status.success(), "{said}\nis the target there? `rustup target add wasm32-wasip2`");
    // Other tests may do the same at the same time: each puts a whole file there, the source last.
    fs::rename(to, &built).unwrap();
    fs::rename(from, &source).unwrap();
    built
}

/// Where compiled components are kept for all tests of this build.
pub fn cache() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("compiled")
}

pub struct Stage {
    pub dir: tempfile::TempDir,
    pub host: Arc<Host>,
    pub env: BTreeMap<String, String>,
}

impl Stage {
    pub fn new() -> Stage {
        Stage::with(Host::new(Some(cache())))
    }

    pub fn with(host: Host) -> Stage {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("work")).unwrap();
        let env = BTreeMap::from([("LANG".into(), "C".into()), ("SECRET".into(), "hidden".into())]);
        Stage { dir, host: Arc::new(host), env }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub fn workspace(&self) -> Arc<Workspace> {
        Arc::new(Workspace {
            session: SessionId(Default::default()),
            cwd: self.path("work"),
            root: Arc::new(Root::new(self.path("work"))),
            scratch: self.path("scratch"),
            env: Arc::new(self.env.clone()),
            wall: Default::default(),
            secrets: Default::default(),
        })
    }

    /// The probe with these lines in its manifest.
    pub fn tool(&self, grants: &str) -> Arc<Component> {
        let schema = "input_schema = {type = \"object\"}";
        self.write("tools/probe/tool.toml", &format!("name = \"probe\"\ndescription = \"Tries.\"\n{schema}\n{grants}"));
        fs::copy(probe(), self.path("tools/probe/probe.wasm")).unwrap();
        let folder = Folder { path: self.path("tools"), standing: Standing::Trusted };
        let mut found = load(&[folder], &[], &self.host);
        assert_eq!(found.complaints, Vec::<String>::new());
        found.tools.remove(0)
    }

    pub fn run(&self) -> ToolRun {
        ToolRun {
            workspace: self.workspace(),
            call: CallId::from("call"),
            idempotency_key: "key".into(),
            cancel: Default::default(),
            paths: Vec::new(),
            seen: Default::default(),
            reports: Reports::none(),
        }
    }

    pub async fn call(&self, tool: &Arc<Component>, input: Value) -> Finished {
        let entry = Entry::new(tool.clone(), ToolSettings::default());
        windlass_tools::run(&entry, input, self.run()).await
    }

    /// What the probe says when it tries `what` on `on` with these grants.
    pub async fn attempt(&self, grants: &str, what: &str, on: &str) -> String {
        let finished = self.call(&self.tool(grants), json!({"do": what, "on": on})).await;
        let text = text_of(&finished.output.blocks).trim().to_owned();
        let text = text.replace(&self.dir.path().display().to_string(), "TMP");
        if finished.output.is_error { format!("error: {text}") } else { text }
    }
}

/// A grant of folders, each as `PATH ACCESS`.
pub fn dirs(dirs: &[&str]) -> String {
    let dir = |dir: &&str| {
        let (path, access) = dir.split_once(' ').unwrap();
        format!("{{path = {path:?}, access = {access:?}}}")
    };
    format!("[capabilities]\ndirs = [{}]\n", dirs.iter().map(dir).collect::<Vec<_>>().join(", "))
}
