//! What the session's mode says of a call.
//!
//! `plan` and `bypass` rule over allow and ask rules; `default` and `accept-edits` only speak where no rule does.

use crate::ask::{Ask, Check, Opinion};
use crate::path;
use windlass_kernel::{Access, PermissionMode, Verdict};

/// `plan` refuses whatever changes something; `bypass` allows what no rule denies.
#[derive(Clone, Copy, Debug, Default)]
pub struct RulingMode;

/// `default` lets readers look inside the workspace; `accept-edits` also lets files in it be written.
#[derive(Clone, Copy, Debug, Default)]
pub struct EverydayMode;

impl Check for RulingMode {
    fn check(&self, ask: &Ask) -> Option<Opinion> {
        match ask.mode {
            PermissionMode::Plan if ask.plan.access == Access::Write => Some(Opinion::new(
                Verdict::Deny,
                "mode",
                "plan mode: nothing may be changed now; read what you need and give the plan as your answer, the person \
                 will leave the mode when it may be carried out",
            )),
            PermissionMode::Bypass => {
                let reason = "bypass mode allows what no rule denies and the hard floor does not refuse";
                Some(Opinion::new(Verdict::Allow, "mode", reason))
            }
            _ => None,
        }
    }
}

impl Check for EverydayMode {
    fn check(&self, ask: &Ask) -> Option<Opinion> {
        let outside = ask.path_outside();
        if ask.only_reads() {
            return Some(match outside {
                None => Opinion::new(Verdict::Allow, "mode", "it only reads, inside the workspace"),
                Some(path) => {
                    Opinion::new(Verdict::Ask, "mode", format!("it reads {path}, which is outside the workspace"))
                }
            });
        }
        let edits = ask.has_tag("fs.write") && !ask.executes() && !ask.has_tag("net") && !ask.plan.paths.is_empty();
        if ask.mode != PermissionMode::AcceptEdits || !edits {
            return None;
        }
        let protected = || ask.plan.paths.iter().find(|path| path::is_protected(path));
        Some(match (outside, protected()) {
            (Some(path), _) => {
                Opinion::new(Verdict::Ask, "mode", format!("it writes {path}, which is outside the workspace"))
            }
            (None, Some(path)) => {
                Opinion::new(Verdict::Ask, "mode", format!("it writes {path}, by which code may run later"))
            }
            (None, None) => Opinion::new(Verdict::Allow, "mode", "accept-edits mode: it writes inside the workspace"),
        })
    }
}
