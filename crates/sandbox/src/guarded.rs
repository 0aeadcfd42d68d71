//! What a writable folder holds that may not be changed: found anew before each start.

use crate::plan::Plan;
use crate::stock::{start_files, start_folders};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// How deep below a writable folder repositories are looked for.
const DEPTH: usize = 3;
/// How many folders are looked into; repositories beyond them are not found.
const LOOKED_INTO: usize = 400;
/// How many repositories are guarded.
const REPOSITORIES: usize = 40;
/// Folders that hold what others wrote, and much of it.
const PASSED_OVER: [&str; 6] = ["node_modules", "target", ".venv", "venv", ".cache", "vendor"];

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Shape {
    File,
    Folder,
}

/// What is kept as it is.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Guarded {
    /// Folders that must stay where they are, so that no other can take their place; outer ones first.
    pub pinned: Vec<PathBuf>,
    /// What may not be written, there or not, and what it is where it is not there.
    pub fixed: Vec<(PathBuf, Shape)>,
    /// What no mount can hold: it is looked at after the call.
    pub watched: Vec<PathBuf>,
}

/// Looks through everything that `plan` makes writable.
pub(crate) fn look(plan: &Plan) -> Guarded {
    let mut found = Found::default();
    let workspace = &plan.workspace;
    let own = workspace.join(".windlass");
    match plan.kind.is_full() || !plan.temp.starts_with(&own) {
        true => found.fix(own, Shape::Folder),
        // The session's own files live there, and must not be put back.
        false => found.guarded.watched.push(own.join("config.toml")),
    }
    if !workspace.join(".git").exists() && !is_git_folder(workspace) {
        found.fix(workspace.join(".git"), Shape::Folder);
    }
    for root in plan.roots() {
        if is_git_folder(root) {
            found.git_folder(root);
        }
        found.repositories(root);
    }
    let within = |path: &PathBuf| plan.roots().any(|root| path.starts_with(root));
    if let Some(home) = &plan.home {
        start_files(home).filter(within).for_each(|path| found.fix(path, Shape::File));
        start_folders(home).filter(within).for_each(|path| found.fix(path, Shape::Folder));
    }
    for path in plan.protected.iter().filter(|path| within(path)) {
        // What lives in a folder goes on living, so without mounts only its files can be kept.
        match (path.extension().is_some(), plan.kind.is_full()) {
            (false, true) => found.fix(path.clone(), Shape::Folder),
            (true, false) => found.guarded.watched.push(path.clone()),
            (true, true) | (false, false) => {}
        }
    }
    found.pins(&plan.roots().cloned().collect::<Vec<_>>());
    found.guarded
}

#[derive(Default)]
struct Found {
    guarded: Guarded,
    git_folders: Vec<PathBuf>,
    looked_into: usize,
}

impl Found {
    fn fix(&mut self, path: PathBuf, shape: Shape) {
        if self.guarded.fixed.iter().any(|(known, _)| *known == path) {
            return;
        }
        match fs::symlink_metadata(&path) {
            // A mount would land on what it points to, and the link itself could be replaced.
            Ok(there) if there.is_symlink() => self.guarded.watched.push(path),
            Ok(there) if there.is_dir() => self.guarded.fixed.push((path, Shape::Folder)),
            Ok(_) => self.guarded.fixed.push((path, Shape::File)),
            // A placeholder needs a folder to lie in.
            Err(_) if path.parent().is_some_and(Path::is_dir) => self.guarded.fixed.push((path, shape)),
            Err(_) => self.guarded.watched.push(path),
        }
    }

    /// What git reads commands from, in a repository's own folder.
    fn git_folder(&mut self, folder: &Path) {
        if self.git_folders.len() >= REPOSITORIES || self.git_folders.iter().any(|known| known == folder) {
            return;
        }
        self.git_folders.push(folder.to_owned());
        self.fix(folder.join("hooks"), Shape::Folder);
        self.fix(folder.join("config"), Shape::File);
        self.guarded.watched.extend(["config.worktree", "commondir"].map(|name| folder.join(name)));
        let mut modules = vec![(folder.join("modules"), 0)];
        while let Some((inner, depth)) = modules.pop() {
            for module in folders(&inner) {
                match is_git_folder(&module) {
                    true => self.git_folder(&module),
                    false if depth < DEPTH => modules.push((module, depth + 1)),
                    false => {}
                }
            }
        }
    }

    fn repositories(&mut self, root: &Path) {
        let mut level = vec![root.to_owned()];
        for _ in 0..=DEPTH {
            let mut next = Vec::new();
            for folder in level {
                self.looked_into += 1;
                if self.looked_into > LOOKED_INTO {
                    return;
                }
                let git = folder.join(".git");
                match fs::symlink_metadata(&git) {
                    Ok(there) if there.is_dir() => self.git_folder(&git),
                    Ok(_) => self.fix(git, Shape::File),
                    Err(_) => {}
                }
                next.extend(folders(&folder));
            }
            level = next;
        }
    }

    /// The folders on the way from a writable root to what is guarded: without them a folder could be moved away with
    /// its guards, and another put in its place.
    fn pins(&mut self, roots: &[PathBuf]) {
        let mut pins = BTreeSet::new();
        for (path, _) in &self.guarded.fixed {
            for folder in path.ancestors().skip(1) {
                if roots.iter().any(|root| root == folder) {
                    break;
                }
                if roots.iter().any(|root| folder.starts_with(root)) {
                    pins.insert(folder.to_owned());
                }
            }
        }
        // In this order outer folders come before inner ones.
        self.guarded.pinned = pins.into_iter().collect();
    }
}

/// Folders in `folder`, in order; no links, without those that are passed over.
fn folders(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let entries = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let paths = entries.map(|entry| entry.path()).filter(|path| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name != ".git" && !PASSED_OVER.contains(&name)
    });
    let mut paths: Vec<PathBuf> = paths.collect();
    paths.sort();
    paths
}

/// Whether git would take `folder` for a repository's own folder.
fn is_git_folder(folder: &Path) -> bool {
    folder.join("HEAD").is_file() && (folder.join("objects").is_dir() || folder.join("commondir").is_file())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::plan;
    use std::os::unix::fs::symlink;

    fn told(guarded: &Guarded, root: &Path) -> String {
        let short = |path: &Path| path.strip_prefix(root).unwrap().display().to_string();
        let mut lines: Vec<String> =
            guarded.fixed.iter().map(|(path, shape)| format!("{shape:?} {}", short(path))).collect();
        lines.extend(guarded.pinned.iter().map(|path| format!("pinned {}", short(path))));
        lines.extend(guarded.watched.iter().map(|path| format!("watched {}", short(path))));
        lines.join("\n")
    }

    fn repository(folder: &Path) {
        fs::create_dir_all(folder.join("objects")).unwrap();
        fs::write(folder.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    }

    #[test]
    fn a_plain_folder_is_kept_from_becoming_a_repository_with_hooks() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(told(&look(&plan(root.path())), root.path()), "Folder .windlass\nFolder .git");
    }

    #[test]
    fn repositories_below_it_their_modules_and_links_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        repository(&root.join(".git"));
        repository(&root.join(".git/modules/sub"));
        repository(&root.join("a/b/.git"));
        fs::create_dir(root.join("sub")).unwrap();
        fs::write(root.join("sub/.git"), "gitdir: ../.git/modules/sub\n").unwrap();
        symlink("elsewhere", root.join(".windlass")).unwrap();
        insta::assert_snapshot!(told(&look(&plan(root)), root), @r"
        Folder .git/hooks
        File .git/config
        Folder .git/modules/sub/hooks
        File .git/modules/sub/config
        File sub/.git
        Folder a/b/.git/hooks
        File a/b/.git/config
        pinned .git
        pinned .git/modules
        pinned .git/modules/sub
        pinned a
        pinned a/b
        pinned a/b/.git
        pinned sub
        watched .windlass
        watched .git/config.worktree
        watched .git/commondir
        watched .git/modules/sub/config.worktree
        watched .git/modules/sub/commondir
        watched a/b/.git/config.worktree
        watched a/b/.git/commondir
        ");
    }
}
