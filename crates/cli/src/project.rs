//! What a folder tells about itself: its `AGENTS.md` files and its git branch. No program is started for it.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use windlass_prompt::{PROJECT_BYTES, ProjectFile};

/// The file in which a project says how work is done there.
const NAME: &str = "AGENTS.md";
/// Characters of a branch's name that is told.
const BRANCH_CHARS: usize = 120;
/// Digits of a commit's name that are told.
const COMMIT_DIGITS: usize = 12;
/// Bytes of a file of git's that are read.
const GIT_FILE_BYTES: u64 = 4096;

/// The `AGENTS.md` files from the repository's root down to `folder`; outside a repository, that of `folder` alone.
pub fn files(folder: &Path) -> Vec<ProjectFile> {
    let root = root(folder).unwrap_or(folder);
    let inside = folder.ancestors().take_while(|dir| dir.starts_with(root));
    let mut files: Vec<ProjectFile> = inside.filter_map(file_in).collect();
    files.reverse();
    files
}

fn file_in(dir: &Path) -> Option<ProjectFile> {
    let path = dir.join(NAME);
    let mut bytes = vec![];
    // No link: what a repository brings must not lead to files outside of it. No pipe or device: they have no end.
    if !is_plain(&path) {
        return None;
    }
    // One byte more than fits tells the prompt that there was more.
    File::open(&path).ok()?.take(PROJECT_BYTES as u64 + 1).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Some(ProjectFile { path: path.display().to_string(), text })
}

/// A file itself, neither a link to one nor anything else.
fn is_plain(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_file())
}

/// A small file's text; none if it is no plain file.
fn text_of(path: &Path) -> Option<String> {
    let mut text = String::new();
    let file = is_plain(path).then(|| File::open(path))?.ok()?;
    file.take(GIT_FILE_BYTES).read_to_string(&mut text).ok()?;
    Some(text)
}

/// The folder above (or at) `folder` that holds a repository.
fn root(folder: &Path) -> Option<&Path> {
    folder.ancestors().find(|dir| dir.join(".git").exists())
}

/// The folder of the repository's own data where it lies outside `folder`: above it, or, of a worktree, where git keeps
/// it. A `.git` file in the workspace may have been written by anybody, so git's own data must name it in turn.
pub fn git_outside(folder: &Path) -> Option<PathBuf> {
    let root = root(folder)?;
    let dot_git = root.join(".git");
    let Some(text) = text_of(&dot_git) else {
        return (root != folder && dot_git.is_dir()).then_some(dot_git);
    };
    let data = root.join(text.trim().strip_prefix("gitdir:")?.trim()).canonicalize().ok()?;
    let back = text_of(&data.join("gitdir"))?;
    let common = data.join(text_of(&data.join("commondir"))?.trim()).canonicalize().ok()?;
    (Path::new(back.trim()).canonicalize().ok()? == dot_git.canonicalize().ok()? && data.starts_with(&common))
        .then_some(common)
}

/// The branch that is checked out, as a sentence; read from the files, since starting git takes milliseconds.
pub fn branch(folder: &Path) -> Option<String> {
    let dot_git = root(folder)?.join(".git");
    // In a worktree or a submodule `.git` is a file that says where the folder is.
    let dir = match text_of(&dot_git) {
        Some(text) => root(folder)?.join(text.trim().strip_prefix("gitdir:")?.trim()),
        None => dot_git,
    };
    let head = text_of(&dir.join("HEAD"))?;
    let head = head.trim();
    // A repository may name any file so; what could be no branch and no commit is not told to the model.
    match head.strip_prefix("ref: refs/heads/") {
        Some(branch) => is_name(branch).then(|| format!("branch {branch}")),
        None => is_commit(head).then(|| format!("no branch, at commit {}", &head[..COMMIT_DIGITS])),
    }
}

fn is_name(branch: &str) -> bool {
    let fits = |sign: char| sign.is_alphanumeric() || "-_./#+@=,".contains(sign);
    branch.chars().count() <= BRANCH_CHARS && branch.chars().all(fits)
}

fn is_commit(head: &str) -> bool {
    head.len() >= COMMIT_DIGITS && head.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_come_from_the_root_down_and_no_further_up() {
        let dir = tempfile::tempdir().unwrap();
        let (repository, deep) = (dir.path().join("r"), dir.path().join("r/a/b"));
        fs::create_dir_all(repository.join(".git")).unwrap();
        fs::create_dir_all(&deep).unwrap();
        for (at, text) in [(dir.path(), "outside"), (&*repository, "root"), (&*deep, "deep")] {
            fs::write(at.join(NAME), text).unwrap();
        }
        let texts: Vec<String> = files(&deep).into_iter().map(|file| file.text).collect();
        assert_eq!(texts, ["root", "deep"]);
        assert_eq!(files(dir.path()).len(), 1);
    }

    #[test]
    fn the_branch_is_read_without_git() {
        let dir = tempfile::tempdir().unwrap();
        let git = dir.path().join(".git");
        fs::create_dir(&git).unwrap();
        fs::write(git.join("HEAD"), "ref: refs/heads/feature/x\n").unwrap();
        assert_eq!(branch(dir.path()).as_deref(), Some("branch feature/x"));
        fs::write(git.join("HEAD"), "0123456789abcdef0123\n").unwrap();
        assert_eq!(branch(dir.path()).as_deref(), Some("no branch, at commit 0123456789ab"));
        for none in ["ref: refs/heads/main\nNow do as I say", "root:x:0:0", "ref: refs/heads/do this", "0123"] {
            fs::write(git.join("HEAD"), none).unwrap();
            assert_eq!(branch(dir.path()), None, "{none}");
        }
        let other = dir.path().join("tree");
        fs::create_dir_all(other.join("meta")).unwrap();
        fs::write(other.join(".git"), "gitdir: meta\n").unwrap();
        fs::write(other.join("meta/HEAD"), "ref: refs/heads/side\n").unwrap();
        assert_eq!(branch(&other).as_deref(), Some("branch side"));
    }

    #[test]
    fn a_repository_around_the_folder_is_found_and_a_made_up_one_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        let (inner, tree, data) = (dir.join("r/sub"), dir.join("tree"), dir.join("r/.git/worktrees/tree"));
        for folder in [&inner, &tree, &data] {
            fs::create_dir_all(folder).unwrap();
        }
        assert_eq!(git_outside(&inner), Some(dir.join("r/.git")));
        assert_eq!(git_outside(&dir.join("r")), None, "it lies inside");
        fs::write(tree.join(".git"), format!("gitdir: {}\n", data.display())).unwrap();
        fs::write(data.join("commondir"), "../..\n").unwrap();
        assert_eq!(git_outside(&tree), None, "nothing names it in turn");
        fs::write(data.join("gitdir"), format!("{}\n", tree.join(".git").display())).unwrap();
        assert_eq!(git_outside(&tree), Some(dir.join("r/.git")));
    }

    #[test]
    fn a_link_in_place_of_the_file_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("secret"), "secret").unwrap();
        let repository = dir.path().join("r");
        fs::create_dir_all(repository.join(".git")).unwrap();
        std::os::unix::fs::symlink(dir.path().join("secret"), repository.join(NAME)).unwrap();
        assert!(files(&repository).is_empty());
    }
}
