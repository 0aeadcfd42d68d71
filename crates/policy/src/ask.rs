//! What the policy is asked and what it answers.

use crate::path;
use serde::Serialize;
use serde_json::Value;
use windlass_kernel::{Access, CallPlan, PermissionMode, Verdict};

/// One call, before it may run.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    pub tool: &'a str,
    pub input: &'a Value,
    /// What the tool says this input would touch.
    pub plan: &'a CallPlan,
    pub mode: PermissionMode,
    /// The workspace's root, absolute.
    pub workspace: &'a str,
    /// Whether there is a person who could be asked.
    pub interactive: bool,
    /// Rules a person has allowed for this session.
    pub grants: &'a [String],
}

/// A decision and how it came about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Opinion {
    pub verdict: Verdict,
    /// The rung that decided: `floor`, `rule`, `grant`, `mode` or `default`.
    pub stage: String,
    /// The rule that decided, as written, where one did.
    pub rule: Option<String>,
    /// Why, in a sentence: of a denial, what the model is told.
    pub reason: String,
    /// Rules that "always" would add, narrowest first; only where a person would be asked.
    pub proposed: Vec<String>,
}

/// One rung of the ladder: an opinion, or none, and the next rung is tried.
pub trait Check: Send + Sync {
    fn check(&self, ask: &Ask) -> Option<Opinion>;
}

impl Opinion {
    pub(crate) fn new(verdict: Verdict, stage: &str, reason: impl Into<String>) -> Opinion {
        Opinion { verdict, stage: stage.into(), rule: None, reason: reason.into(), proposed: Vec::new() }
    }

    pub(crate) fn by_rule(verdict: Verdict, stage: &str, rule: &str, reason: String) -> Opinion {
        Opinion { rule: Some(rule.into()), ..Opinion::new(verdict, stage, reason) }
    }
}

impl<'a> Ask<'a> {
    pub(crate) fn has_tag(&self, tag: &str) -> bool {
        self.plan.tags.iter().any(|own| own == tag)
    }

    /// Whether the call runs programs.
    pub(crate) fn executes(&self) -> bool {
        self.tool == "bash" || self.has_tag("exec")
    }

    /// Whether the call only looks, and only at this machine.
    pub(crate) fn only_reads(&self) -> bool {
        self.plan.access == Access::Read && !self.executes() && !self.has_tag("net")
    }

    /// The command line of a call that runs one.
    pub(crate) fn command(&self) -> Option<&'a str> {
        if !self.executes() {
            return None;
        }
        self.input.get("command").and_then(Value::as_str)
    }

    /// The first path of the plan that lies outside the workspace.
    pub(crate) fn path_outside(&self) -> Option<&'a str> {
        self.plan.paths.iter().map(String::as_str).find(|path| path::inside(self.workspace, path).is_none())
    }
}
