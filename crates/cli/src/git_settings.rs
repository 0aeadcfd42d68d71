//! Programs that a repository's own git settings would have git run while it only looks. Read from the files; git itself
//! is not started.

use crate::git_file::{self, Setting};
use crate::git_index;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// Bytes of a file of settings that are read; one with more can't be known.
const SETTINGS_BYTES: u64 = 1 << 20;
/// Bytes of a file that only says where another lies.
const POINTER_BYTES: u64 = 4096;
/// Folders of submodules that are looked through.
const MAX_MODULES: usize = 500;
/// Repositories within repositories that are looked into.
const MAX_DEPTH: usize = 4;
/// A hook that runs when git writes its index, which `git status` does.
const INDEX_HOOK: &str = "post-index-change";

/// Settings by which git runs a program while it only looks: section and key, `*` for a name between them.
const RUNNING: [(&str, &str); 17] = [
    ("core", "alternaterefscommand"),
    ("diff", "external"),
    ("diff.*", "command"),
    ("diff.*", "textconv"),
    ("filter.*", "clean"),
    ("filter.*", "process"),
    ("filter.*", "smudge"),
    ("merge.*", "driver"),
    ("gpg", "program"),
    ("gpg.*", "program"),
    ("man.*", "cmd"),
    ("man.*", "path"),
    ("browser.*", "cmd"),
    ("browser.*", "path"),
    // What another file says is not known here.
    ("include", "path"),
    ("includeif.*", "path"),
    ("core", "gitproxy"),
];
/// The same, where missing objects are fetched when they are first looked at.
const RUNNING_IN_PARTIAL_CLONES: [(&str, &str); 6] = [
    ("core", "sshcommand"),
    ("core", "askpass"),
    ("credential", "helper"),
    ("credential.*", "helper"),
    ("remote.*", "uploadpack"),
    ("remote.*", "vcs"),
];

/// One such setting, as it is told: `core.fsmonitor = ./watch (/repo/.git/config)`.
pub type Told = String;

/// What git would run in `folder` besides itself, by the repository's own settings.
pub fn running(folder: &Path) -> Vec<Told> {
    // Git goes up from where the folder really is, and not along the links that lead there.
    let folder = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    let mut told = vec![];
    for dir in git_dirs(&folder, &mut told) {
        of_repository(&dir, &mut told, 0);
    }
    told.sort();
    told.dedup();
    told
}

/// Where a repository keeps its files, and where those it shares with its other trees.
struct Dirs {
    git: PathBuf,
    common: PathBuf,
    work: PathBuf,
}

/// The repositories that git may mean in `folder`: the nearest, and below it what only looks like one.
fn git_dirs(folder: &Path, told: &mut Vec<Told>) -> Vec<Dirs> {
    let mut found = vec![];
    for work in folder.ancestors() {
        let dot_git = work.join(".git");
        // A folder can be a repository itself, without a `.git`.
        let git = if fs::symlink_metadata(&dot_git).is_ok() { pointed_at(&dot_git, told) } else { work.to_owned() };
        let common = shared(&git);
        let whole = git.join("HEAD").symlink_metadata().is_ok() && common.join("objects").is_dir();
        if whole || git != work {
            found.push(Dirs { git, common, work: work.to_owned() });
        }
        if whole {
            break;
        }
    }
    found
}

/// The folder that `.git` is, or names.
fn pointed_at(dot_git: &Path, told: &mut Vec<Told>) -> PathBuf {
    if dot_git.is_dir() {
        return dot_git.to_owned();
    }
    let work = dot_git.parent().unwrap_or(Path::new("/"));
    match pointer(dot_git, b"gitdir: ") {
        Some(path) => work.join(path),
        None => {
            told.push(unknown(dot_git));
            dot_git.to_owned()
        }
    }
}

/// Where what all trees of the repository share lies.
fn shared(git: &Path) -> PathBuf {
    pointer(&git.join("commondir"), b"").map_or_else(|| git.to_owned(), |path| git.join(path))
}

/// The path in a small file, behind its `head`. To the byte: what is read here and what git reads must be one.
fn pointer(file: &Path, head: &[u8]) -> Option<PathBuf> {
    let bytes = bytes_of(file, POINTER_BYTES)?;
    let path = bytes.strip_prefix(head)?;
    let end = path.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r')).map_or(0, |last| last + 1);
    Some(PathBuf::from(OsString::from_vec(path[..end].to_vec())))
}

fn unknown(file: &Path) -> Told {
    format!("what can't be read ({})", file.display())
}

fn of_repository(dirs: &Dirs, told: &mut Vec<Told>, depth: usize) {
    let own = [dirs.common.join("config"), dirs.git.join("config.worktree")];
    let mut files = own.to_vec();
    modules(&dirs.common.join("modules"), &mut files, told);
    let mut hooks = vec![dirs.common.join("hooks")];
    let mut wide_ids = false;
    for file in files {
        let Some(settings) = settings_in(&file, told) else { continue };
        let lazy = settings.iter().any(is_lazy);
        wide_ids |= settings.iter().any(|one| one.key == "objectformat" && one.value == "sha256");
        for one in &settings {
            if runs(one, lazy) || own.contains(&file) && leads_away(one, dirs) {
                told.push(format!("{}.{} = {} ({})", one.section, one.key, one.value, file.display()));
            }
            if (&*one.section, &*one.key) == ("core", "hookspath") {
                hooks.push(dirs.work.join(&one.value));
            }
        }
    }
    let hooks = hooks.into_iter().map(|dir| dir.join(INDEX_HOOK));
    told.extend(hooks.filter(|hook| hook.exists()).map(|hook| format!("the hook {}", hook.display())));
    match git_index::repositories(&dirs.git, wide_ids) {
        Some(inner) => inner.iter().for_each(|path| of_inner(&dirs.work.join(path), told, depth)),
        None => told.push(unknown(&dirs.git.join("index"))),
    }
}

/// Whether the files that git looks at are others than those around its folder.
fn leads_away(setting: &Setting, dirs: &Dirs) -> bool {
    let real = |path: &Path| fs::canonicalize(path).ok();
    (&*setting.section, &*setting.key) == ("core", "worktree")
        && real(&dirs.git.join(&setting.value)) != real(&dirs.work)
}

/// `git status` looks into the repositories that the index names.
fn of_inner(work: &Path, told: &mut Vec<Told>, depth: usize) {
    let dot_git = work.join(".git");
    if dot_git.symlink_metadata().is_err() {
        return;
    }
    if depth == MAX_DEPTH {
        return told.push(unknown(&dot_git));
    }
    let git = pointed_at(&dot_git, told);
    of_repository(&Dirs { common: shared(&git), git, work: work.to_owned() }, told, depth + 1);
}

/// The settings of submodules that lie below `folder`.
fn modules(folder: &Path, files: &mut Vec<PathBuf>, told: &mut Vec<Told>) {
    let top = folder;
    let mut folders = vec![folder.to_owned()];
    let mut seen = 0;
    while let Some(folder) = folders.pop() {
        seen += 1;
        if seen > MAX_MODULES {
            return told.push(unknown(top));
        }
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let Ok(kind) = entry.file_type() else { continue };
            let is_store = ["objects", "refs", "logs", "hooks"].iter().any(|name| entry.file_name() == *name);
            if kind.is_dir() && !is_store {
                folders.push(entry.path());
            } else if entry.file_name() == "config" {
                files.push(entry.path());
            }
        }
    }
}

fn is_lazy(setting: &Setting) -> bool {
    setting.key == "promisor" || setting.key == "partialclone"
}

fn runs(setting: &Setting, lazy: bool) -> bool {
    let is = |(section, key): &(&str, &str)| {
        *key == setting.key
            && match section.strip_suffix('*') {
                Some(head) => setting.section.starts_with(head),
                None => *section == setting.section,
            }
    };
    let truths = ["true", "false", "yes", "no", "on", "off", "1", "0", ""];
    let is_watcher = (&*setting.section, &*setting.key) == ("core", "fsmonitor");
    // It looks into repositories that only the history names.
    let is_deep = (&*setting.section, &*setting.key) == ("diff", "submodule") && setting.value != "short";
    let is_helper = setting.key == "url" && setting.value.contains("::") || setting.key == "insteadof";
    RUNNING.iter().any(is)
        || is_deep
        || is_watcher && !truths.contains(&&*setting.value.to_ascii_lowercase())
        || lazy && (is_helper || RUNNING_IN_PARTIAL_CLONES.iter().any(is))
}

/// The settings in `file`; none if there is no such file, or nothing can be said of it.
fn settings_in(file: &Path, told: &mut Vec<Told>) -> Option<Vec<Setting>> {
    file.symlink_metadata().ok()?;
    let settings =
        bytes_of(file, SETTINGS_BYTES).and_then(|bytes| git_file::settings(&String::from_utf8_lossy(&bytes)));
    if settings.is_none() {
        told.push(unknown(file));
    }
    settings
}

/// A file's bytes; none if it is no file or has more than `limit_bytes`.
fn bytes_of(file: &Path, limit_bytes: u64) -> Option<Vec<u8>> {
    // No pipe or device: they have no end.
    let found = fs::metadata(file).ok().filter(|found| found.is_file() && found.len() <= limit_bytes)?;
    let mut bytes = Vec::with_capacity(found.len() as usize);
    File::open(file).ok()?.take(limit_bytes).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Vec<String> {
        let settings = git_file::settings(text).unwrap();
        let lazy = settings.iter().any(is_lazy);
        let found = settings.iter().filter(|one| runs(one, lazy));
        found.map(|one| format!("{}.{}={}", one.section, one.key, one.value)).collect()
    }

    #[test]
    fn settings_that_run_something_are_found_however_they_are_written() {
        assert_eq!(told("[core]\n\tfsmonitor = ./watch\n"), ["core.fsmonitor=./watch"]);
        assert_eq!(told("[CORE] FsMonitor=\"./a;b\" # so\n"), ["core.fsmonitor=./a;b"]);
        assert_eq!(
            told("[diff \"a]b\"] textconv = t\n[diff.old]\ncommand=c"),
            ["diff.a]b.textconv=t", "diff.old.command=c"]
        );
        assert_eq!(told("[filter \"x\"]\r\n\tclean = c\r\n"), ["filter.x.clean=c"]);
        assert_eq!(told("[include]\npath = ../evil\n[includeIf \"gitdir:/\"]\npath=e").len(), 2);
        assert_eq!(told("\u{feff}[gpg \"ssh\"]\nprogram = p"), ["gpg.ssh.program=p"]);
    }

    #[test]
    fn ordinary_settings_run_nothing() {
        let usual = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tfsmonitor = true\n\tpager = less\n\
                     [remote \"origin\"]\n\turl = git@host:a/b.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n\
                     [branch \"main\"]\n\tremote = origin\n[user]\n\tname = Ada\n[alias]\n\tst = status\n# [diff]\n#external = x\n";
        assert_eq!(told(usual), Vec::<String>::new());
        let lazy = "[remote \"o\"]\n\turl = ext::sh -c x\n\tuploadpack = evil\n";
        assert_eq!(told(lazy).len(), 0);
        assert_eq!(told(&format!("{lazy}promisor = true\n")).len(), 2);
    }

    #[test]
    fn a_file_that_points_elsewhere_and_a_bare_repository_are_seen() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir_all(at("bare/objects")).unwrap();
        fs::write(at("bare/HEAD"), "ref: refs/heads/main\n").unwrap();
        fs::write(at("bare/config"), "[diff]\nexternal = evil\n").unwrap();
        fs::create_dir_all(at("tree/below")).unwrap();
        fs::write(at("tree/.git"), "gitdir: ../bare\n").unwrap();
        for folder in ["bare", "bare/objects", "tree", "tree/below"] {
            let told = running(&at(folder));
            assert!(told.len() == 1 && told[0].starts_with("diff.external = evil ("), "{folder}: {told:?}");
        }
        std::os::unix::fs::symlink("tree/below", at("link")).unwrap();
        assert_eq!(running(&at("link")), running(&at("tree")));
        fs::rename(at("bare"), at(" bare ")).unwrap();
        fs::write(at("tree/.git"), "gitdir: ../ bare \n").unwrap();
        assert_eq!(running(&at("tree")).len(), 1);
        fs::write(at(" bare /config"), "[core]\nworktree = ../elsewhere\n").unwrap();
        assert!(running(&at("tree"))[0].starts_with("core.worktree = "));
        fs::write(at(" bare /config"), "[core]\nworktree = ../tree\n").unwrap();
        assert_eq!(running(&at("tree")), Vec::<String>::new());
        fs::write(at("tree/.git"), "x".repeat(5000)).unwrap();
        assert!(running(&at("tree"))[0].starts_with("what can't be read"));
    }
}
