//! What a call would do: its arguments checked, and its tool asked what they would touch.

use crate::Setup;
use serde_json::Value;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use windlass_kernel::{CallPlan, State};
use windlass_tools::{Entry, Workspace};

pub(crate) struct Planned {
    pub entry: Arc<Entry>,
    /// The arguments as they will run.
    pub input: Value,
    pub plan: CallPlan,
}

/// The plan of a call of `tool` with `input`, or why there can be none, in words for who made the call.
pub(crate) fn plan(
    setup: &Setup,
    workspace: &Workspace,
    state: &State,
    tool: &str,
    input: &Value,
) -> Result<Planned, String> {
    let asked = unpanicked(tool, || {
        let input = setup.tools.check_offered(tool, input, &state.disabled_tools)?;
        let entry = setup.tools.get(tool).ok_or_else(|| format!("Unknown tool: {tool}"))?;
        let plan = entry.tool.plan(&input, workspace);
        Ok(Planned { entry, input, plan })
    });
    asked.flatten()
}

/// A library's tool may panic; that is its failure, not the session's.
pub(crate) fn unpanicked<T>(tool: &str, ask: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(ask))
        .map_err(|_| format!("the tool {tool} panicked while planning this call: try other arguments or another tool"))
}
