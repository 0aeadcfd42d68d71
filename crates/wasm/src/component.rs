//! A component as a tool among tools: what it would touch is what its manifest names.

use crate::confine::{Grant, OpenDir};
use crate::host::Host;
use crate::load::read_component;
use crate::manifest::{Access, Manifest};
use crate::program::{Ended, Kept, Program};
use async_trait::async_trait;
use bytes::Bytes;
use cap_std::fs::Dir;
use serde_json::Value;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use windlass_kernel::{Access as Effect, CallPlan, OnCrash};
use windlass_tools::{Tool, ToolOutput, ToolRun, Workspace};

/// A tool that lies in a folder.
pub struct Component {
    manifest: Manifest,
    folder: PathBuf,
    host: Arc<Host>,
    program: Kept,
}

impl Component {
    pub(crate) fn new(manifest: Manifest, folder: PathBuf, host: Arc<Host>) -> Component {
        Component { manifest, folder, host, program: Kept::default() }
    }

    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Where it lies.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The compiled component; the first call compiles it, or finds it compiled.
    async fn program(&self) -> Result<Program, String> {
        let (host, file) = (self.host.clone(), component_file(&self.folder, &self.manifest.name));
        let make = move || {
            let made = read_component(&file).and_then(|bytes| host.program(&bytes));
            made.map_err(|why| format!("{}: {why}", file.display()))
        };
        self.program.get(make).await
    }

    fn grant(&self, workspace: &Workspace) -> Result<Grant, String> {
        let Manifest { name, capabilities, limits, .. } = &self.manifest;
        let dirs = capabilities.dirs.iter().map(|dir| {
            let opened = open_beneath(workspace, &dir.path)?;
            Ok(OpenDir { dir: opened, path: dir.path.clone(), access: dir.access })
        });
        let env = capabilities.env.iter().filter_map(|name| Some((name.clone(), workspace.env.get(name)?.clone())));
        Ok(Grant {
            name: name.clone(),
            dirs: dirs.collect::<Result<_, String>>()?,
            env: env.collect(),
            clock: capabilities.clock,
            memory_bytes: limits.memory_bytes(),
            fuel: limits.fuel,
        })
    }

    fn writes(&self) -> bool {
        self.manifest.capabilities.dirs.iter().any(|dir| dir.access == Access::Write)
    }

    async fn attempt(&self, input: Value, run: &ToolRun) -> Result<ToolOutput, String> {
        let grant = self.grant(&run.workspace)?;
        let program = self.program().await?;
        match program.run(grant, Bytes::from(input.to_string()), &run.cancel).await {
            Ended::Well(printed) => Ok(output(printed)),
            Ended::Badly(why) => Err(why),
        }
    }
}

/// The component beside a manifest.
pub(crate) fn component_file(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.wasm"))
}

/// Opens a folder of the workspace; a link that leads out of it opens nothing.
fn open_beneath(workspace: &Workspace, path: &str) -> Result<Dir, String> {
    workspace_folder(workspace)?.open_dir(path).map_err(|error| {
        format!("it works in {path} of the workspace, which can't be opened ({error}); make that folder there")
    })
}

/// The workspace's folder, the very one that its session holds open.
pub(crate) fn workspace_folder(workspace: &Workspace) -> Result<Dir, String> {
    let handle = workspace.root.handle().map_err(|error| format!("the workspace can't be opened: {error}"))?;
    Ok(Dir::from_std_file(File::from(handle)))
}

/// What a component printed: text for the model, and, if it is JSON, a value for programs.
fn output(printed: Vec<u8>) -> ToolOutput {
    let value = serde_json::from_slice::<Value>(&printed).ok().filter(|value| value.is_object() || value.is_array());
    let text = String::from_utf8_lossy(&printed).into_owned();
    let text = if text.trim().is_empty() { "done; it printed nothing".into() } else { text };
    ToolOutput { value, ..ToolOutput::text(text) }
}

#[async_trait]
impl Tool for Component {
    fn name(&self) -> &str {
        &self.manifest.name
    }

    fn description(&self) -> &str {
        &self.manifest.description
    }

    fn schema(&self) -> Value {
        self.manifest.input_schema.clone()
    }

    fn plan(&self, _input: &Value, workspace: &Workspace) -> CallPlan {
        let dirs = &self.manifest.capabilities.dirs;
        let paths = dirs.iter().flat_map(|dir| {
            let named = workspace.cwd.join(Path::new(&dir.path).components().collect::<PathBuf>());
            let named: PathBuf = named.components().collect();
            let real = named.canonicalize().ok().filter(|real| *real != named);
            [Some(named), real].into_iter().flatten().map(|path| path.to_string_lossy().into_owned())
        });
        let mut plan = CallPlan { paths: paths.collect(), ..CallPlan::default() };
        if !dirs.is_empty() {
            plan.tags.push("fs.read".into());
        }
        if self.writes() {
            plan.tags.push("fs.write".into());
        } else {
            (plan.access, plan.on_crash) = (Effect::Read, OnCrash::Repeat);
        }
        plan
    }

    fn timeout_ms(&self) -> u64 {
        self.manifest.limits.time_ms
    }

    async fn call(&self, input: Value, run: &ToolRun) -> ToolOutput {
        match self.attempt(input, run).await {
            Ok(output) => output,
            Err(why) => ToolOutput::error(format!("{}: {why}", self.manifest.name)),
        }
    }
}
