//! `read`, `write` and `edit` in a component: judged, confirmed and told as they are, and run where only the workspace is.

use crate::component::workspace_folder;
use crate::confine::{Grant, OpenDir};
use crate::host::Host;
use crate::manifest::Access;
use crate::program::Ended;
use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use cap_std::ambient_authority;
use cap_std::fs::{Dir, Permissions};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use windlass_kernel::{BlobRef, CallPlan, ContentBlock, FileSeen};
use windlass_tools::{Confirm, Confirmation, Tool, ToolOutput, ToolRun, Workspace};

/// The component of all three.
const COMPONENT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/files.wasm"));
/// The tools that can be put into it.
pub const BOXED: [&str; 3] = ["read", "write", "edit"];
/// Bytes of memory: a file of 10 MiB, what becomes of it, and the difference.
const MEMORY_BYTES: usize = 512 << 20;
/// Enough to read through a file of gigabytes; time ends a call long before.
const FUEL: u64 = 1 << 40;

/// One of the three.
#[derive(Clone)]
struct Boxed {
    tool: Arc<dyn Tool>,
    host: Arc<Host>,
}

/// A call that may be made.
struct Prepared {
    grant: Grant,
    wanted: Bytes,
    /// Of the file that is there.
    mode: Option<Mode>,
}

/// What the component gives back.
#[derive(Deserialize)]
struct Answer {
    is_error: bool,
    blocks: Vec<ContentBlock>,
    value: Option<Value>,
    files: Vec<FileSeen>,
    blobs: Vec<(BlobRef, String)>,
}

/// The built-in `tool` run in a component; none if it is not one of [`BOXED`].
pub fn boxed(tool: Arc<dyn Tool>, host: &Arc<Host>) -> Option<Arc<dyn Tool>> {
    let known = BOXED.contains(&tool.name());
    known.then(|| Arc::new(Boxed { tool, host: host.clone() }) as Arc<dyn Tool>)
}

impl Boxed {
    /// The folder that a call on `real` gets, by the name it has outside.
    fn grant(&self, workspace: &Workspace, real: &Path) -> Result<Grant, String> {
        let access = if self.tool.name() == "read" { Access::Read } else { Access::Write };
        let (folder, dir) = match access {
            _ if real.starts_with(&workspace.cwd) => (&workspace.cwd, workspace_folder(workspace)?),
            // Where outputs too long for the model are kept for it.
            Access::Read if real.starts_with(&workspace.scratch) => {
                let dir = Dir::open_ambient_dir(&workspace.scratch, ambient_authority());
                (&workspace.scratch, dir.map_err(|error| format!("{}: {error}", workspace.scratch.display()))?)
            }
            _ => {
                let (path, tool) = (real.display(), self.tool.name());
                return Err(format!(
                    "{path} lies outside the workspace, and {tool} runs in a component that has nothing else \
                     (tools.{tool}.sandbox); work inside the workspace"
                ));
            }
        };
        Ok(Grant {
            name: self.tool.name().to_owned(),
            dirs: vec![OpenDir { dir, path: folder.to_string_lossy().into_owned(), access }],
            env: Vec::new(),
            clock: false,
            memory_bytes: MEMORY_BYTES,
            fuel: FUEL,
        })
    }

    /// What the component is told of a call; `path` as it was given, `end` what it names and where that leads.
    fn wanted(&self, input: &Value, run: &ToolRun, path: &str, end: &(PathBuf, PathBuf)) -> Value {
        let seen: BTreeMap<&str, &String> =
            end.1.to_str().into_iter().filter_map(|path| Some((path, run.seen.get(path)?))).collect();
        let marks = if self.tool.name() == "read" { BTreeSet::new() } else { run.marks(path) };
        json!({
            "tool": self.tool.name(),
            "input": input,
            "session": run.workspace.session,
            "call": run.call,
            "cwd": run.workspace.cwd,
            "end": end,
            "paths": run.paths,
            "seen": seen,
            "marks": marks,
        })
    }

    /// All that is looked at before the component is asked: whether tools may know of the file, whether it is the one
    /// that was judged, and what is in it that must not be lost.
    fn prepare(&self, input: &Value, run: &ToolRun) -> Result<Prepared, String> {
        let path = input["path"].as_str().unwrap_or_default();
        let end = run.reach(path)?;
        let grant = self.grant(&run.workspace, &end.1)?;
        let mode = Mode::of(&run.workspace, &end.1);
        let wanted = Bytes::from(self.wanted(input, run, path, &end).to_string());
        Ok(Prepared { grant, wanted, mode })
    }

    async fn attempt(&self, input: Value, run: &ToolRun) -> Result<ToolOutput, String> {
        let input = self.tool.normalise(input);
        let (own, looked) = (self.clone(), run.clone());
        let prepared = tokio::task::spawn_blocking(move || own.prepare(&input, &looked)).await;
        let Prepared { grant, wanted, mode } = prepared.map_err(|error| error.to_string())??;
        let host = self.host.clone();
        let program = self.host.files.get(move || host.program(COMPONENT)).await?;
        let answer = match program.run(grant, wanted, &run.cancel).await {
            Ended::Well(answer) => answer,
            Ended::Badly(why) => return Err(format!("{}: {why}", self.tool.name())),
        };
        let answer: Answer = serde_json::from_slice(&answer).map_err(|error| format!("the component said: {error}"))?;
        if let Some(mode) = mode.filter(|_| answer.files.iter().any(|file| file.before != file.after)) {
            mode.restore();
        }
        answer.output()
    }
}

impl Answer {
    fn output(self) -> Result<ToolOutput, String> {
        let blob = |(name, text): (BlobRef, String)| match STANDARD.decode(text) {
            Ok(bytes) => Ok((name, Bytes::from(bytes))),
            Err(error) => Err(format!("the component's bytes: {error}")),
        };
        let blobs = self.blobs.into_iter().map(blob).collect::<Result<_, String>>()?;
        let Answer { is_error, blocks, value, files, .. } = self;
        Ok(ToolOutput { is_error, blocks, value, output: None, blobs, files })
    }
}

/// The mode of a file about to be replaced: inside there are none, so the new file gets it here.
struct Mode {
    workspace: Dir,
    path: PathBuf,
    mode: Permissions,
}

impl Mode {
    fn of(workspace: &Workspace, real: &Path) -> Option<Mode> {
        let path = real.strip_prefix(&workspace.cwd).ok()?.to_owned();
        let workspace = workspace_folder(workspace).ok()?;
        let mode = workspace.symlink_metadata(&path).ok().filter(|meta| meta.is_file())?.permissions();
        Some(Mode { workspace, path, mode })
    }

    /// A file that went away meanwhile has no mode to get.
    fn restore(self) {
        if let Ok(file) = self.workspace.open(&self.path) {
            _ = file.set_permissions(self.mode);
        }
    }
}

#[async_trait]
impl Tool for Boxed {
    fn name(&self) -> &str {
        self.tool.name()
    }

    fn description(&self) -> &str {
        self.tool.description()
    }

    fn schema(&self) -> Value {
        self.tool.schema()
    }

    fn plan(&self, input: &Value, workspace: &Workspace) -> CallPlan {
        self.tool.plan(input, workspace)
    }

    fn enabled(&self) -> bool {
        self.tool.enabled()
    }

    fn habit(&self) -> Option<&'static str> {
        self.tool.habit()
    }

    fn normalise(&self, input: Value) -> Value {
        self.tool.normalise(input)
    }

    fn confirm(&self, input: &Value) -> Confirm {
        self.tool.confirm(input)
    }

    fn confirmation(&self, input: &Value, workspace: &Workspace) -> Option<Confirmation> {
        self.tool.confirmation(input, workspace)
    }

    fn timeout_ms(&self) -> u64 {
        self.tool.timeout_ms()
    }

    fn limit_ms(&self, input: &Value, configured: Option<u64>) -> u64 {
        self.tool.limit_ms(input, configured)
    }

    fn output_limit_bytes(&self) -> usize {
        self.tool.output_limit_bytes()
    }

    async fn call(&self, input: Value, run: &ToolRun) -> ToolOutput {
        match self.attempt(input, run).await {
            Ok(output) => output,
            Err(why) => ToolOutput::error(why),
        }
    }
}
