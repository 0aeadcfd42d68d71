//! Walking a folder tree past what git ignores, and the patterns that choose files in it.

use crate::Workspace;
use crate::hidden::Veil;
use crate::place::Place;
use globset::{GlobBuilder, GlobMatcher};
use ignore::{DirEntry, WalkBuilder};
use std::path::{Component, Path, PathBuf};

/// Threads that walk at once.
const THREADS: usize = 4;

/// Said where nothing was found: why what is there might not have been looked at.
pub(crate) const IGNORED: &str = "files that git ignores are not searched; ls and bash see them";

/// A walk below `place` that skips `.git`, what ignore files name and what is hidden; files whose names begin with a dot
/// are walked. Reads no global settings: those lie outside the workspace.
pub(crate) fn walk(workspace: &Workspace, place: &Place) -> WalkBuilder {
    let veil = Veil::new(&workspace.root);
    let mut walk = WalkBuilder::new(&place.real);
    walk.hidden(false)
        .git_global(false)
        .require_git(false)
        .current_dir(&place.real)
        .threads(THREADS)
        .filter_entry(move |entry| entry.depth() == 0 || (entry.file_name() != ".git" && is_open(&veil, entry)));
    walk
}

fn is_open(veil: &Veil, entry: &DirEntry) -> bool {
    let kind = entry.file_type();
    let is_folder = kind.is_some_and(|kind| kind.is_dir());
    !veil.covers(entry.path(), is_folder, kind.is_some_and(|kind| kind.is_symlink()))
}

/// A glob over paths below a root: `*` stays inside a folder, `**` crosses them; without a `/` it looks at names only.
pub(crate) struct Pattern {
    glob: GlobMatcher,
    names_only: bool,
}

impl Pattern {
    pub(crate) fn new(text: &str) -> Result<Pattern, String> {
        let text = text.strip_prefix("./").unwrap_or(text);
        let glob = GlobBuilder::new(text).literal_separator(true).build();
        let glob = glob.map_err(|error| format!("`{text}` is no glob: {error}; write one like src/**/*.rs"))?;
        Ok(Pattern { glob: glob.compile_matcher(), names_only: !text.contains('/') })
    }

    pub(crate) fn matches(&self, root: &Path, path: &Path) -> bool {
        let below = path.strip_prefix(root).unwrap_or(path);
        let subject = if self.names_only { Path::new(below.file_name().unwrap_or_default()) } else { below };
        self.glob.is_match(subject)
    }
}

/// Splits an absolute pattern into the folder before its first wild part and the pattern below it.
pub(crate) fn split_absolute(pattern: &str) -> Option<(PathBuf, String)> {
    if !pattern.starts_with('/') {
        return None;
    }
    let parts: Vec<Component<'_>> = Path::new(pattern).components().collect();
    let wild = |part: &Component<'_>| part.as_os_str().to_string_lossy().contains(['*', '?', '[', '{']);
    let first = parts.iter().position(wild).unwrap_or(parts.len() - 1).max(1);
    let below: PathBuf = parts[first..].iter().collect();
    // The leading part keeps a pattern of one name from matching at every depth.
    Some((parts[..first].iter().collect(), format!("./{}", below.display())))
}
