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
    /// What decided: `floor`, `check`, `rule`, `built-in`, `grant`, `shell`, `file`, `mode` or `default`.
    pub stage: String,
    /// The rule that decided, as written, where one did.
    pub rule: Option<String>,
    /// Why, in a sentence: of a denial, what the model is told.
    pub reason: String,
    /// Rules that "always" would add, narrowest first; only where a person would be asked.
    pub proposed: Vec<Proposal>,
    /// Each of `proposed` answers for a part of the call, and all of them are needed; else they are to choose from.
    pub together: bool,
    /// No earlier answer satisfies it, and none given now holds for longer than this call.
    pub always_ask: bool,
    /// Of a command line that is asked about: each of its parts, and what is said of it.
    pub parts: Vec<PartOpinion>,
}

/// A rule that "always" would add.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Proposal {
    pub rule: String,
    /// What it would let run besides this call, in a sentence.
    pub covers: String,
}

/// What is said of one part of a command line: a command, a file it uses, a doubt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PartOpinion {
    pub part: String,
    pub verdict: Verdict,
    pub reason: String,
}

/// An opinion of code: asked after the hard floor and before the rules. A no is final; an ask stands beside the ask
/// rules; a yes counts where no rule speaks.
pub trait Check: Send + Sync {
    fn check(&self, ask: &Ask) -> Option<Opinion>;
}

impl Opinion {
    pub fn new(verdict: Verdict, stage: &str, reason: impl Into<String>) -> Opinion {
        Opinion {
            verdict,
            stage: stage.into(),
            rule: None,
            reason: reason.into(),
            proposed: Vec::new(),
            together: false,
            always_ask: false,
            parts: Vec::new(),
        }
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
