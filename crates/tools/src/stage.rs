//! A stage for tests: a workspace in a temporary folder, a session's memory of files, and tools that act to order.

use crate::output::hash;
use crate::{Entry, Finished, Reports, Root, Tool, ToolOutput, ToolReport, ToolRun, ToolSettings, Workspace};
use async_trait::async_trait;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use windlass_kernel::{CallPlan, SessionId, text_of};

pub(crate) struct Stage {
    pub folder: TempDir,
    pub workspace: Arc<Workspace>,
    pub seen: BTreeMap<String, String>,
    pub reports: Arc<Mutex<Vec<ToolReport>>>,
    pub cancel: CancellationToken,
    calls: u32,
}

impl Stage {
    pub fn new() -> Stage {
        let folder = tempfile::tempdir().unwrap();
        let cwd = folder.path().canonicalize().unwrap().join("work");
        fs::create_dir(&cwd).unwrap();
        // The session is named after the folder: two tests must not find each other's processes.
        let name = hash(cwd.as_os_str().as_encoded_bytes());
        let session: SessionId =
            serde_json::from_value(json!(format!("{}-{}", &name[..8], "0000-7000-8000-000000000000"))).unwrap();
        let env = BTreeMap::from([("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into()), ("LANG".into(), "C".into())]);
        let workspace = Arc::new(Workspace {
            session,
            root: Arc::new(Root::new(&cwd)),
            scratch: cwd.with_file_name("scratch"),
            cwd,
            env: Arc::new(env),
            wall: Arc::default(),
            secrets: Arc::default(),
        });
        Stage {
            folder,
            workspace,
            seen: BTreeMap::new(),
            reports: Arc::default(),
            cancel: CancellationToken::new(),
            calls: 0,
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.workspace.cwd.join(name)
    }

    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        String::from_utf8(fs::read(self.path(name)).unwrap()).unwrap()
    }

    /// A run whose call is `call_N`, counted from 1.
    pub fn next_run(&mut self) -> ToolRun {
        self.calls += 1;
        let reports = self.reports.clone();
        ToolRun {
            workspace: self.workspace.clone(),
            call: format!("call_{}", self.calls).as_str().into(),
            idempotency_key: format!("test:{}", self.calls),
            cancel: self.cancel.child_token(),
            paths: Vec::new(),
            seen: Arc::new(self.seen.clone()),
            reports: Reports(Arc::new(move |report| reports.lock().unwrap().push(report))),
        }
    }

    /// Checks and runs a call, and remembers the files it saw, as a session does.
    pub async fn finish(&mut self, tool: impl Tool + 'static, input: Value) -> Finished {
        let entry = Entry::new(Arc::new(tool), ToolSettings::default());
        let input = entry.check(&input).expect("the arguments are right");
        let paths = entry.tool.plan(&input, &self.workspace).paths;
        let finished = crate::run(&entry, input, ToolRun { paths, ..self.next_run() }).await;
        for file in &finished.output.files {
            match &file.after {
                Some(hash) => _ = self.seen.insert(file.path.clone(), hash.clone()),
                None => _ = self.seen.remove(&file.path),
            }
        }
        finished
    }

    pub async fn call(&mut self, tool: impl Tool + 'static, input: Value) -> ToolOutput {
        self.finish(tool, input).await.output
    }

    /// The text of a call that goes well, with the temporary folder named `TMP`.
    pub async fn text(&mut self, tool: impl Tool + 'static, input: Value) -> String {
        let output = self.call(tool, input).await;
        assert!(!output.is_error, "{}", text_of(&output.blocks));
        self.plain(&output)
    }

    /// The text of a call that fails.
    pub async fn error(&mut self, tool: impl Tool + 'static, input: Value) -> String {
        let output = self.call(tool, input).await;
        assert!(output.is_error, "{}", text_of(&output.blocks));
        self.plain(&output)
    }

    pub fn plain(&self, output: &ToolOutput) -> String {
        let root = self.workspace.cwd.parent().unwrap().display().to_string();
        text_of(&output.blocks).replace(&root, "TMP")
    }
}

/// A tool that does as it is told.
pub(crate) struct Scripted {
    pub name: &'static str,
    pub schema: Value,
    pub act: Act,
}

pub(crate) enum Act {
    Say(String),
    Panic,
    /// Never ends, and does not listen.
    Hang,
    /// Ends when it is called back.
    Listen,
}

impl Scripted {
    pub fn named(name: &'static str) -> Scripted {
        Scripted { name, schema: json!({"type": "object"}), act: Act::Say("done".into()) }
    }

    pub fn acting(act: Act) -> Scripted {
        Scripted { act, ..Scripted::named("scripted") }
    }
}

#[async_trait]
impl Tool for Scripted {
    fn name(&self) -> &str {
        self.name
    }

    fn description(&self) -> &str {
        "Does as it is told."
    }

    fn schema(&self) -> Value {
        self.schema.clone()
    }

    fn plan(&self, _input: &Value, _workspace: &Workspace) -> CallPlan {
        CallPlan::default()
    }

    async fn call(&self, _input: Value, run: &ToolRun) -> ToolOutput {
        match &self.act {
            Act::Say(text) => ToolOutput::text(text.clone()),
            Act::Panic => panic!("the wheels came off"),
            Act::Hang => std::future::pending().await,
            Act::Listen => {
                run.cancel.cancelled().await;
                ToolOutput::text("half the work")
            }
        }
    }
}
