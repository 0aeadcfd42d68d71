//! Files as the tools meet them: which one a path means, whether it is text, and how it is written safely.

use crate::Workspace;
use std::ffi::OsStr;
use std::fs::{self, Metadata, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

/// Bytes beyond which a file is not taken in whole.
pub(crate) const HUGE_BYTES: u64 = 10 << 20;
/// Bytes up to which a file is read where the call runs: a hop to another thread would take longer.
pub(crate) const INLINE_BYTES: u64 = 256 << 10;
/// Bytes at a file's start that are searched for a NUL.
const BINARY_PROBE_BYTES: usize = 8 << 10;
/// Links followed from one path before it counts as a circle.
const MAX_LINKS: usize = 40;
/// Names offered for one that does not exist.
const MAX_CLOSE_NAMES: usize = 5;
/// Entries of a folder looked at for close names.
const MAX_LOOKED_AT: usize = 5_000;

pub(crate) const BOM: &str = "\u{feff}";

/// The absolute path that `path` means: relative to the workspace, without `.` and `..`; `~` is a name like any other.
pub(crate) fn resolve(workspace: &Workspace, path: &str) -> PathBuf {
    let mut resolved = PathBuf::new();
    for part in workspace.cwd.join(path).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => _ = resolved.pop(),
            part => resolved.push(part),
        }
    }
    resolved
}

/// The name a file is remembered by, whatever link led to it: links followed, told below the workspace if it is there.
pub(crate) fn identity(workspace: &Workspace, path: &Path) -> String {
    let real = canonical(path);
    let inside = workspace.cwd.canonicalize().ok().and_then(|root| real.strip_prefix(root).ok().map(Path::to_owned));
    let known = match inside {
        Some(rest) if rest.as_os_str().is_empty() => workspace.cwd.clone(),
        Some(rest) => workspace.cwd.join(rest),
        None => real,
    };
    known.to_string_lossy().into_owned()
}

/// The paths a call on `path` touches: as given, and where links lead if that is elsewhere.
pub(crate) fn touched(workspace: &Workspace, path: &str) -> Vec<String> {
    let path = resolve(workspace, path);
    let mut paths = vec![path.to_string_lossy().into_owned()];
    let identity = identity(workspace, &path);
    if identity != paths[0] {
        paths.push(identity);
    }
    paths
}

/// The path with every link followed, also where its last parts do not exist yet.
pub(crate) fn canonical(path: &Path) -> PathBuf {
    let path = follow(path);
    for ancestor in path.ancestors() {
        let (Ok(real), Ok(rest)) = (ancestor.canonicalize(), path.strip_prefix(ancestor)) else { continue };
        return if rest.as_os_str().is_empty() { real } else { real.join(rest) };
    }
    path
}

/// Where the link `path` leads in the end, even if nothing is there; `path` itself if it is none.
fn follow(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        let Ok(target) = fs::read_link(&path) else { break };
        path = path.parent().unwrap_or(Path::new("/")).join(target);
    }
    path
}

/// The path as a model should see it: relative inside the workspace, else absolute.
pub(crate) fn shown(workspace: &Workspace, path: &Path) -> String {
    match path.strip_prefix(&workspace.cwd) {
        Ok(rest) if rest.as_os_str().is_empty() => ".".into(),
        Ok(rest) => rest.to_string_lossy().into_owned(),
        Err(_) => path.to_string_lossy().into_owned(),
    }
}

/// The metadata of a regular file; if it is missing, a folder or a device, words that say the way out.
pub(crate) fn regular(workspace: &Workspace, path: &Path) -> Result<Metadata, String> {
    let name = shown(workspace, path);
    match fs::metadata(path) {
        Ok(meta) if meta.is_file() => Ok(meta),
        Ok(meta) if meta.is_dir() => Err(format!("{name} is a folder; use ls to list it")),
        Ok(_) => Err(format!("{name} is a device, pipe or socket, no regular file")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(missing(workspace, path)),
        Err(error) => Err(failed("read", &name, &error)),
    }
}

/// What could not be done with a file, and why.
pub(crate) fn failed(what: &str, name: &str, error: &io::Error) -> String {
    format!("could not {what} {name}: {error}")
}

/// Words for a path that is not there: what is there, to choose from.
pub(crate) fn missing(workspace: &Workspace, path: &Path) -> String {
    let name = shown(workspace, path);
    let there = path.ancestors().skip(1).find(|ancestor| ancestor.is_dir()).unwrap_or(Path::new("/"));
    if path.parent() != Some(there) {
        let lost = path.strip_prefix(there).ok().and_then(|rest| rest.components().next());
        let lost = lost.map_or(OsStr::new(""), |part| part.as_os_str()).to_string_lossy();
        return format!(
            "{name} does not exist: there is no {lost} in {}; look with ls or glob",
            shown(workspace, there)
        );
    }
    match close_names(path, there).as_slice() {
        [] => format!("{name} does not exist; look with ls or glob"),
        names => format!("{name} does not exist; close names in that folder: {}", names.join(", ")),
    }
}

fn close_names(path: &Path, folder: &Path) -> Vec<String> {
    let wanted = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut close: Vec<(u32, String)> = entries
        .take(MAX_LOOKED_AT)
        .filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()))
        .map(|name| ((likeness(&wanted, &name.to_lowercase()) * 1000.0) as u32, name))
        .filter(|(score, _)| *score >= 500)
        .collect();
    close.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    close.into_iter().take(MAX_CLOSE_NAMES).map(|(_, name)| name).collect()
}

/// How alike two names are: swapped letters are the commonest slip, and leave short names no pair in common.
fn likeness(a: &str, b: &str) -> f32 {
    let letters = |text: &str| {
        let mut letters: Vec<char> = text.chars().collect();
        letters.sort_unstable();
        letters
    };
    if letters(a) == letters(b) { 1.0 } else { similarity(a, b) }
}

/// How alike two short texts are, 0 to 1: the share of letter pairs they have in common.
pub(crate) fn similarity(a: &str, b: &str) -> f32 {
    let pairs = |text: &str| -> Vec<[char; 2]> {
        let mut pairs: Vec<_> = text.chars().zip(text.chars().skip(1)).map(|(a, b)| [a, b]).collect();
        pairs.sort_unstable();
        pairs
    };
    let (a, b) = (pairs(a), pairs(b));
    let (mut i, mut j, mut common) = (0, 0, 0);
    while i < a.len() && j < b.len() {
        match a[i].cmp(&b[j]) {
            std::cmp::Ordering::Less => i += 1,
            std::cmp::Ordering::Greater => j += 1,
            std::cmp::Ordering::Equal => (i, j, common) = (i + 1, j + 1, common + 1),
        }
    }
    2.0 * common as f32 / (a.len() + b.len()).max(1) as f32
}

/// Whether the bytes are no text: a NUL near the start.
pub(crate) fn is_binary(bytes: &[u8]) -> bool {
    bytes[..bytes.len().min(BINARY_PROBE_BYTES)].contains(&0)
}

/// Writes the file whole or not at all, on disk before it bears its name. A link is written through; mode and, where
/// permitted, owner stay. Creates the folders above it.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let path = follow(path);
    let folder = path.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(folder)?;
    let before = fs::metadata(&path).ok();
    let mode = before.as_ref().map_or(0o666, |meta| meta.permissions().mode() & 0o7777);
    let mut temp =
        tempfile::Builder::new().prefix(".windlass-").permissions(Permissions::from_mode(mode)).tempfile_in(folder)?;
    temp.write_all(bytes)?;
    if let Some(before) = before {
        // Only the superuser may give a file away; for all others the owner is the same already, or cannot be.
        _ = std::os::unix::fs::fchown(temp.as_file(), Some(before.uid()), Some(before.gid()));
        // After the owner (changing that clears set-id bits), and again: the first time, the umask took its share.
        temp.as_file().set_permissions(Permissions::from_mode(mode))?;
    }
    temp.as_file().sync_all()?;
    temp.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Does blocking work on a thread made for it; a panic goes on here.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stage::Stage;
    use std::os::unix::fs::symlink;

    #[test]
    fn paths_start_at_the_workspace_and_tilde_is_a_name() {
        let stage = Stage::new();
        let cwd = &stage.workspace.cwd;
        assert_eq!(resolve(&stage.workspace, "a/./b/../c"), cwd.join("a/c"));
        assert_eq!(resolve(&stage.workspace, "~/x"), cwd.join("~/x"));
        assert_eq!(resolve(&stage.workspace, "/etc/../../hosts"), Path::new("/hosts"));
        assert_eq!(resolve(&stage.workspace, ""), *cwd);
    }

    #[test]
    fn a_link_is_known_by_where_it_leads_and_both_ends_are_touched() {
        let stage = Stage::new();
        stage.file("real.txt", "x");
        symlink("real.txt", stage.path("link.txt")).unwrap();
        symlink("/nowhere/at/all", stage.path("out")).unwrap();
        let path = |name: &str| stage.path(name).display().to_string();
        assert_eq!(identity(&stage.workspace, &stage.path("link.txt")), path("real.txt"));
        assert_eq!(touched(&stage.workspace, "link.txt"), [path("link.txt"), path("real.txt")]);
        assert_eq!(touched(&stage.workspace, "out"), [path("out"), "/nowhere/at/all".into()]);
        assert_eq!(touched(&stage.workspace, "new/file"), [path("new/file")]);
    }

    #[test]
    fn a_linked_workspace_keeps_its_own_name() {
        let stage = Stage::new();
        stage.file("a.txt", "x");
        let link = stage.folder.path().join("linked");
        symlink(&stage.workspace.cwd, &link).unwrap();
        let workspace = Workspace { cwd: link.clone(), ..(*stage.workspace).clone() };
        assert_eq!(identity(&workspace, &link.join("a.txt")), link.join("a.txt").display().to_string());
    }

    #[test]
    fn writing_keeps_the_mode_and_writes_through_links() {
        let stage = Stage::new();
        stage.file("run.sh", "old");
        fs::set_permissions(stage.path("run.sh"), Permissions::from_mode(0o775)).unwrap();
        symlink("run.sh", stage.path("link")).unwrap();
        write_whole(&stage.path("link"), b"new").unwrap();
        assert_eq!(stage.read("run.sh"), "new");
        assert!(stage.path("link").is_symlink());
        assert_eq!(fs::metadata(stage.path("run.sh")).unwrap().permissions().mode() & 0o7777, 0o775);
        assert_eq!(fs::read_dir(&stage.workspace.cwd).unwrap().count(), 2, "no temporary file is left");
    }

    #[test]
    fn a_new_file_has_an_ordinary_mode() {
        let stage = Stage::new();
        write_whole(&stage.path("deep/er/new"), b"x").unwrap();
        stage.file("plain", "x");
        let mode = |name: &str| fs::metadata(stage.path(name)).unwrap().permissions().mode();
        assert_eq!(mode("deep/er/new"), mode("plain"));
    }

    #[test]
    fn a_dangling_link_is_written_through() {
        let stage = Stage::new();
        symlink("not/yet.txt", stage.path("link")).unwrap();
        write_whole(&stage.path("link"), b"x").unwrap();
        assert_eq!(stage.read("not/yet.txt"), "x");
    }
}
