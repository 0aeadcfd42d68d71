//! `windlass tool`: the tools, and one run by hand through the checks that hold in a session.

use crate::desk::Desk;
use crate::exit::{Code, Ended, Failure};
use crate::signals::Signals;
use crate::terminal::{harmless, print, print_json, tell};
use crate::{choose, sandbox, secrets};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use windlass_kernel::{CallId, CallPlan, FileSeen, Outcome, SessionId, Verdict, text_of};
use windlass_policy::Ask;
use windlass_tools::{Confirm, Entry, Finished, Reports, Root, ToolRun, Tools, Workspace};

pub fn list(desk: &Desk, as_json: bool) -> Ended {
    let tools = desk.tools();
    let entries: Vec<Arc<Entry>> = tools.names().iter().filter_map(|name| tools.get(name)).collect();
    let grants = desk.extensions.grants(&desk.environment, &desk.places());
    if as_json {
        let list: Vec<Value> = entries.iter().map(|entry| definition(entry, grants.get(entry.name()))).collect();
        print_json(&format!("{:#}\n", Value::from(list)));
        return Ok(Code::Done);
    }
    let lines: Vec<String> = entries.iter().map(|entry| line(entry, grants.get(entry.name()))).collect();
    print(&lines.concat());
    Ok(Code::Done)
}

/// `grants`: what a tool that was installed may reach.
fn definition(entry: &Entry, grants: Option<&Vec<String>>) -> Value {
    let mut definition = json!({
        "name": entry.name(),
        "description": entry.tool.description(),
        "enabled": entry.enabled(),
        "input_schema": entry.schema(),
    });
    if let Some(grants) = grants {
        definition["grants"] = json!(grants);
    }
    definition
}

fn line(entry: &Entry, grants: Option<&Vec<String>>) -> String {
    let required = entry.schema()["required"].as_array().cloned().unwrap_or_default();
    let fields = entry.schema()["properties"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, _)| if required.iter().any(|one| one == name) { name.clone() } else { format!("[{name}]") });
    let arguments = fields.collect::<Vec<_>>().join(", ");
    let first = entry.tool.description().lines().next().unwrap_or_default();
    let off = if entry.enabled() { "" } else { " (disabled)" };
    let grants: String = grants.into_iter().flatten().map(|grant| format!("    - {grant}\n")).collect();
    harmless(&format!("{}({arguments}){off}\n    {first}\n{grants}", entry.name())).into_owned()
}

/// Runs one tool; who wants JSON gets an object also where the call was not let through.
pub async fn run(desk: &Desk, name: &str, input: &str, as_json: bool) -> Ended {
    let ended = by_hand(desk, name, input, as_json).await;
    if let Err(failure) = &ended
        && as_json
        && failure.code != Code::Usage
    {
        let outcome = if failure.code == Code::Denied { Outcome::Denied } else { Outcome::Error };
        let object = json!({ "outcome": outcome, "text": failure.message, "value": null, "files": [] });
        print_json(&format!("{object}\n"));
    }
    ended
}

async fn by_hand(desk: &Desk, name: &str, input: &str, as_json: bool) -> Ended {
    let input: Value = serde_json::from_str(input).map_err(|error| {
        Failure::usage(format!(
            "{input}: it is no JSON ({error}); write the arguments like {{\"path\": \"README.md\"}}"
        ))
    })?;
    let tools = desk.tools();
    let entry = tools.get(name).filter(|entry| entry.enabled());
    let (entry, input) = match (entry, tools.check(name, &input)) {
        (Some(entry), Ok(input)) => (entry, input),
        (Some(_), Err(why)) => return Err(Failure::new(Code::Failed, why)),
        (None, checked) => return Err(Failure::usage(checked.err().unwrap_or_default())),
    };
    let workspace = Arc::new(workspace(desk)?);
    let plan = entry.tool.plan(&input, &workspace);
    permit(desk, name, &input, &plan)?;
    if name == "bash" && entry.tool.confirm(&input) == Confirm::Always {
        let why = "outside_sandbox asks a person, and nobody is asked here: leave it out, and run with --config sandbox.wall=none";
        return Err(Failure::new(Code::Denied, why));
    }
    let seen = seen(&tools, &plan, &workspace).await;
    let run = tool_run(workspace, plan.paths, seen);
    let mut signals = Signals::listen()?;
    let cancel = run.cancel.clone();
    let finished = {
        let mut running = std::pin::pin!(windlass_tools::run(&entry, input, run));
        tokio::select! {
            finished = &mut running => finished,
            _ = signals.next() => {
                cancel.cancel();
                running.await
            }
        }
    };
    tell_of(&finished, as_json);
    Ok(match finished.outcome {
        Outcome::Ok => Code::Done,
        Outcome::Cancelled => Code::Interrupted,
        _ => Code::Failed,
    })
}

/// Nobody is asked here: what would be asked is denied, with the flag that would allow it.
fn permit(desk: &Desk, name: &str, input: &Value, plan: &CallPlan) -> Result<(), Failure> {
    let workspace = desk.folder.display().to_string();
    let ask = Ask {
        tool: name,
        input,
        plan,
        mode: desk.settings.mode,
        workspace: &workspace,
        interactive: false,
        grants: &[],
    };
    let opinion = desk.settings.policy.decide(&ask);
    match opinion.verdict {
        Verdict::Allow => Ok(()),
        _ => Err(Failure::new(Code::Denied, opinion.reason)),
    }
}

pub fn workspace(desk: &Desk) -> Result<Workspace, Failure> {
    let session = SessionId(uuid::Uuid::now_v7());
    let providers = choose::providers(&desk.settings.config, &desk.environment)?;
    let keys = choose::key_variables(&desk.settings.config, &desk.environment, &providers);
    Ok(Workspace {
        session,
        cwd: desk.folder.clone(),
        root: Arc::new(Root::new(&desk.folder)),
        scratch: desk.environment.data_dir.join("scratch").join(session.to_string()),
        secrets: secrets::load(&desk.settings.config, &desk.environment),
        env: Arc::new(desk.environment.for_children(keys, &sandbox::further_variables(&desk.settings.config))),
        wall: desk.settings.wall.clone(),
    })
}

/// A tool that changes a file wants it read before. Who names the change by hand has read it; what is there now is
/// what is taken to have been seen.
async fn seen(tools: &Tools, plan: &CallPlan, workspace: &Arc<Workspace>) -> BTreeMap<String, String> {
    let mut seen = BTreeMap::new();
    let Some(read) = tools.get("read").filter(|_| plan.tags.iter().any(|tag| tag == "fs.write")) else { return seen };
    let existing: BTreeSet<&String> = plan.paths.iter().filter(|path| Path::new(path).is_file()).collect();
    for path in existing {
        let run = tool_run(workspace.clone(), plan.paths.clone(), BTreeMap::new());
        let Ok(input) = read.check(&json!({"path": path})) else { continue };
        let finished = windlass_tools::run(&read, input, run).await;
        let files = finished.output.files.into_iter();
        seen.extend(files.filter_map(|FileSeen { path, after, .. }| Some((path, after?))));
    }
    seen
}

fn tool_run(workspace: Arc<Workspace>, paths: Vec<String>, seen: BTreeMap<String, String>) -> ToolRun {
    let call = CallId::from("by-hand");
    ToolRun {
        idempotency_key: format!("{}:by-hand", workspace.session),
        workspace,
        call,
        cancel: Default::default(),
        paths,
        seen: Arc::new(seen),
        reports: Reports::none(),
    }
}

fn tell_of(finished: &Finished, as_json: bool) {
    let text = text_of(&finished.output.blocks);
    if as_json {
        let object = json!({
            "outcome": finished.outcome,
            "text": text,
            "value": finished.output.value,
            "files": finished.output.files,
        });
        return print_json(&format!("{object}\n"));
    }
    let text = harmless(text.trim_end_matches('\n'));
    match finished.outcome {
        Outcome::Ok => print(&format!("{text}\n")),
        _ => tell(&format!("windlass: {text}")),
    }
}
