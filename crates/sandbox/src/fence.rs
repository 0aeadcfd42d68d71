//! The wall without namespaces: Landlock for files, signals and abstract sockets, the filter for all other sockets.

use crate::inside;
use crate::keeper::{Report, walled};
use crate::namespaces::has_own_rights;
use crate::plan::Plan;
use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetStatus, Scope,
};
use rustix::process::Pid;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// The newest rights this program knows of; of older kernels, those they have.
const NEWEST: ABI = ABI::V7;
/// The oldest that can keep a file from being cut short, without which a read-only file is none.
const OLDEST: ABI = ABI::V3;
/// Devices that may be written.
const DEVICES: [&str; 9] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
    "/dev/shm",
];

pub(crate) fn start(plan: &Plan, command: &[OsString], report: Report) -> Result<Pid, String> {
    walled(plan, command, report, |_| {
        fence(plan).map_err(|error| format!("Landlock: {error}"))?;
        inside::harden(plan, has_own_rights())?;
        inside::check(plan)
    })
}

/// Restricts this process and all it starts.
fn fence(plan: &Plan) -> Result<(), String> {
    let said = |error: landlock::RulesetError| error.to_string();
    rustix::thread::set_no_new_privs(true).map_err(|error| error.to_string())?;
    let rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(OLDEST))
        .map_err(said)?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))
        .map_err(said)?
        .scope(Scope::from_all(NEWEST))
        .map_err(said)?;
    let mut rules = rules.create().map_err(said)?;
    let read = AccessFs::from_read(NEWEST);
    for path in readable(Path::new("/"), &plan.unreadable) {
        rules = allow(rules, &path, read).map_err(said)?;
    }
    let all = AccessFs::from_all(NEWEST);
    for path in plan.roots().map(PathBuf::as_path).chain([plan.temp.as_path()]).chain(DEVICES.iter().map(Path::new)) {
        // What is unreadable in a writable folder is left out there, too.
        for piece in readable(path, &plan.unreadable) {
            rules = allow(rules, &piece, all).map_err(said)?;
        }
    }
    let status = rules.restrict_self().map_err(said)?;
    match status.ruleset {
        RulesetStatus::NotEnforced => Err("the kernel enforces nothing".into()),
        _ => Ok(()),
    }
}

fn allow(
    rules: RulesetCreated,
    path: &Path,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, landlock::RulesetError> {
    // What is gone or may not be opened cannot be allowed, and is not missed.
    let Ok(open) = PathFd::new(path) else { return Ok(rules) };
    let of_files = AccessFs::from_file(NEWEST);
    let access = if path.is_dir() { access } else { access & of_files };
    rules.add_rule(PathBeneath::new(open, access))
}

/// `root` in pieces, so that none of them holds what is unreadable: Landlock can allow a folder with all in it, and
/// cannot deny something in one.
fn readable(root: &Path, unreadable: &[PathBuf]) -> Vec<PathBuf> {
    let mut pieces = Vec::new();
    let mut whole = vec![root.to_owned()];
    let ancestors: BTreeSet<&Path> = unreadable.iter().flat_map(|path| path.ancestors().skip(1)).collect();
    while let Some(path) = whole.pop() {
        if unreadable.iter().any(|hidden| path.starts_with(hidden)) {
            continue;
        }
        if !ancestors.contains(path.as_path()) {
            pieces.push(path);
            continue;
        }
        let entries = fs::read_dir(&path).into_iter().flatten().flatten();
        // A link is followed to what it names, which must be allowed by itself.
        let entries = entries.filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_symlink()));
        whole.extend(entries.map(|entry| entry.path()));
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_allowed_in_pieces_around_what_is_hidden_in_it() {
        let root = tempfile::tempdir().unwrap();
        for folder in ["a", "b/c", "b/hidden", "d"] {
            fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        let hidden = [root.path().join("b/hidden")];
        let mut pieces = readable(root.path(), &hidden);
        pieces.sort();
        assert_eq!(pieces, ["a", "b/c", "d"].map(|name| root.path().join(name)));
        assert_eq!(readable(&root.path().join("d"), &hidden), [root.path().join("d")]);
        assert_eq!(readable(&root.path().join("b/hidden/deep"), &hidden), Vec::<PathBuf>::new());
    }
}
