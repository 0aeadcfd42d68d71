//! Where links lead, followed one by one.

use crate::root::Root;
use std::ffi::OsString;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Links followed from one path before it counts as a circle.
const MAX_LINKS: usize = 40;

/// Where `named` leads, link by link; what need not exist may come last.
pub(crate) fn follow_links(root: &Root, named: &Path) -> Result<PathBuf, String> {
    let (mut done, rest) = match (named.strip_prefix(root.folder()), root.real()) {
        (Ok(rest), Ok(real)) => (real.to_owned(), rest),
        _ => (PathBuf::from("/"), named),
    };
    let mut pending = Vec::new();
    push(&mut pending, rest);
    let mut links = 0;
    while let Some(part) = pending.pop() {
        if part == ".." {
            done.pop();
            continue;
        }
        let next = done.join(part);
        let Ok(target) = fs::read_link(&next) else {
            done = next;
            continue;
        };
        links += 1;
        if links > MAX_LINKS {
            return Err(format!("{} leads in a circle of links, or through too many", named.display()));
        }
        // A process's links lead to whatever it holds open, which is not always what they say.
        if done.starts_with("/proc") && done != Path::new("/proc") {
            return Err(format!("{} goes by {}; name the file it leads to", named.display(), next.display()));
        }
        if target.is_absolute() {
            done = PathBuf::from("/");
        }
        push(&mut pending, &target);
    }
    Ok(within(root, &done))
}

/// Puts the parts of `path` on top, the first one uppermost.
fn push(pending: &mut Vec<OsString>, path: &Path) {
    let parts = path.components().filter(|part| matches!(part, Component::Normal(_) | Component::ParentDir));
    pending.extend(parts.rev().map(|part| part.as_os_str().to_owned()));
}

/// A path without links, told below the workspace's folder by the folder's own name.
pub(crate) fn within(root: &Root, path: &Path) -> PathBuf {
    if path.starts_with(root.folder()) {
        return path.to_owned();
    }
    match root.real().ok().and_then(|real| path.strip_prefix(real).ok()) {
        Some(rest) if rest.as_os_str().is_empty() => root.folder().to_owned(),
        Some(rest) => root.folder().join(rest),
        None => path.to_owned(),
    }
}
