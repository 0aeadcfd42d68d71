//! What the session's mode says of a call.
//!
//! `plan` and `bypass` rule over allow and ask rules; `default` and `accept-edits` only speak where no rule does;
//! `dont-ask` and `auto` decide who answers an ask: nobody, or a reviewing model.

use crate::ask::Ask;
use crate::call::Call;
use crate::deed::{FileHow, Reach};
use crate::path;
use crate::places::Places;
use windlass_kernel::{Access, PermissionMode, Verdict};

/// Why plan mode refuses the call; none: it changes nothing as far as can be told.
pub(crate) fn refused_by_plan(call: &Call) -> Option<&'static str> {
    if call.ask.mode != PermissionMode::Plan {
        return None;
    }
    let changes = match call.reading() {
        None => call.ask.plan.access == Access::Write,
        Some(reading) => {
            let looks = |deed: &crate::deed::Deed| {
                deed.reach == Reach::Looks && deed.files.iter().all(|file| file.how == FileHow::Read)
            };
            !reading.doubts.is_empty() || !reading.deeds.iter().all(looks)
        }
    };
    changes.then_some(
        "plan mode: nothing may be changed now; read what you need and give the plan as your answer, the person \
         will leave the mode when it may be carried out",
    )
}

/// What holds where no rule speaks: readers look inside the workspace; with accept-edits, files in it may be written.
pub(crate) fn everyday(ask: &Ask, places: &Places) -> Option<(Verdict, String)> {
    let outside = ask.path_outside();
    if ask.only_reads() {
        let absolute = |path: &String| path::absolute(ask.workspace, path);
        let secret = ask.plan.paths.iter().find(|path| places.is_sensitive(ask.workspace, &absolute(path)));
        return Some(match (secret, outside) {
            (Some(path), _) => (Verdict::Ask, format!("it reads {path}, where secrets are kept")),
            (None, Some(path)) => (Verdict::Ask, format!("it reads {path}, which is outside the workspace")),
            (None, None) => (Verdict::Allow, "it only reads, inside the workspace".into()),
        });
    }
    let edits = ask.has_tag("fs.write") && !ask.executes() && !ask.has_tag("net") && !ask.plan.paths.is_empty();
    if !edits {
        return None;
    }
    let protected = || ask.plan.paths.iter().find(|path| path::is_protected(path));
    match (outside, protected()) {
        (Some(path), _) => Some((Verdict::Ask, format!("it writes {path}, which is outside the workspace"))),
        (None, Some(path)) => Some((Verdict::Ask, format!("it writes {path}, by which code may run later"))),
        (None, None) if ask.mode == PermissionMode::AcceptEdits => {
            Some((Verdict::Allow, "accept-edits mode: it writes inside the workspace".into()))
        }
        (None, None) => None,
    }
}
