//! Ignore files: what they hide from every tool.

use crate::place::follow;
use crate::root::{Root, Stamp};
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use std::collections::HashMap;
use std::ffi::OsString;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

/// Files that hide paths, in git's syntax, for their folder and those below it; one further left is heard first.
pub(crate) const IGNORE_FILES: [&str; 6] =
    [".windlassignore", ".aiignore", ".aiexclude", ".cursorignore", ".codeiumignore", ".geminiignore"];
/// Bytes of an ignore file.
const MAX_BYTES: u64 = 1 << 20;
/// Folders whose ignore files are kept as read; beyond that they are read anew.
const MAX_KEPT: usize = 10_000;

/// The folders met so far, with their ignore files as they were when last read.
#[derive(Debug, Default)]
pub(crate) struct Hidden {
    folders: Mutex<HashMap<OsString, Arc<Folder>>>,
}

/// The ignore files of one folder.
#[derive(Debug)]
struct Folder {
    stamp: Stamp,
    /// Whether the stamps were old enough to tell the next change: clocks of file systems go in steps.
    settled: bool,
    rules: Vec<Arc<Rules>>,
}

/// One ignore file.
#[derive(Debug)]
struct Rules {
    path: PathBuf,
    /// As it is named to people: relative to the workspace.
    name: String,
    stamp: Stamp,
    /// Or why it could not be read: what it would hide is not known, so all below its folder is.
    lines: Result<Lines, String>,
}

#[derive(Debug)]
struct Lines {
    text: Vec<String>,
    matcher: Gitignore,
}

/// The ignore files that speak for the entries of one folder, the nearest first.
type Chain = Arc<Vec<Arc<Rules>>>;

impl Root {
    /// What hides `path`, absolute and without links, if anything does: an ignore file and its line.
    pub(crate) fn hidden_by(&self, path: &Path, is_folder: bool) -> Option<String> {
        let below = path.strip_prefix(self.folder()).ok()?;
        let mut folder = self.folder().to_owned();
        let mut chain = Chain::default();
        let mut parts = below.components().peekable();
        while let Some(part) = parts.next() {
            chain = self.chain(&chain, &folder);
            folder.push(part);
            if let Some(by) = hides(&chain, &folder, is_folder || parts.peek().is_some()) {
                return Some(by);
            }
        }
        None
    }

    /// The chain for the entries of `folder`, whose parent's is `above`.
    fn chain(&self, above: &Chain, folder: &Path) -> Chain {
        match self.ignore_files(folder) {
            Some(own) if !own.rules.is_empty() => Arc::new(own.rules.iter().chain(above.iter()).cloned().collect()),
            _ => above.clone(),
        }
    }

    /// The ignore files of `folder`, read again if something changed; none where there is no such folder.
    fn ignore_files(&self, folder: &Path) -> Option<Arc<Folder>> {
        let stamp = self.stamp(folder)?;
        let known = lock(&self.hidden.folders).get(folder.as_os_str()).cloned();
        let is_same = |rules: &Arc<Rules>| self.stamp(&rules.path).as_ref() == Some(&rules.stamp);
        if let Some(known) = known.filter(|known| known.settled && known.stamp == stamp)
            && known.rules.iter().all(is_same)
        {
            return Some(known);
        }
        let rules: Vec<Arc<Rules>> =
            IGNORE_FILES.iter().filter_map(|name| self.rules(folder, name)).map(Arc::new).collect();
        let now = SystemTime::now();
        let settled = stamp.is_before(now) && rules.iter().all(|rules| rules.stamp.is_before(now));
        let met = Arc::new(Folder { stamp, settled, rules });
        let mut folders = lock(&self.hidden.folders);
        if folders.len() >= MAX_KEPT {
            folders.clear();
        }
        folders.insert(folder.into(), met.clone());
        Some(met)
    }

    /// The ignore file `name` of `folder`. One that is kept elsewhere is a link; what it says is looked up there.
    fn rules(&self, folder: &Path, name: &str) -> Option<Rules> {
        let path = folder.join(name);
        let stamp = self.stamp(&path)?;
        let text = follow(self, &path).and_then(|real| self.text(&real).map_err(|error| error.to_string()));
        let shown = path.strip_prefix(self.folder()).unwrap_or(&path).to_string_lossy().into_owned();
        match text {
            // A folder of that name is none of ours.
            Err(_) if path.is_dir() => None,
            text => Some(Rules { path, name: shown, stamp, lines: text.map(|text| Lines::new(folder, &text)) }),
        }
    }

    fn text(&self, path: &Path) -> io::Result<String> {
        let mut bytes = Vec::new();
        // Before it is opened: a device would feel that.
        if !self.probe(path)?.is_file() {
            return Err(io::Error::other("it is no regular file"));
        }
        self.read(path)?.0.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
        match bytes.len() as u64 > MAX_BYTES {
            true => Err(io::Error::other(format!("it has more than {MAX_BYTES} bytes"))),
            false => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        }
    }
}

impl Lines {
    fn new(folder: &Path, text: &str) -> Lines {
        let text: Vec<String> = text.trim_start_matches('\u{feff}').lines().map(str::to_owned).collect();
        let mut builder = GitignoreBuilder::new(folder);
        for line in &text {
            // A line that is no pattern hides nothing, as with git.
            _ = builder.add_line(None, line);
        }
        let matcher = builder.build().unwrap_or_else(|_| Gitignore::empty());
        Lines { text, matcher }
    }

    /// The number of the line that holds `pattern`, from 1; of several, the last: that is the one that counts.
    fn number(&self, pattern: &str) -> usize {
        self.text.iter().rposition(|line| line.trim_end() == pattern.trim_end()).map_or(0, |at| at + 1)
    }
}

/// What hides `path`, an entry of the folder that `chain` is for.
fn hides(chain: &Chain, path: &Path, is_folder: bool) -> Option<String> {
    for rules in chain.iter() {
        let lines = match &rules.lines {
            Ok(lines) => lines,
            Err(why) => return Some(format!("{}, which could not be read ({why})", rules.name)),
        };
        match lines.matcher.matched(path, is_folder) {
            Match::None => {}
            Match::Whitelist(_) => return None,
            Match::Ignore(glob) => return Some(format!("{}, line {}", rules.name, lines.number(glob.original()))),
        }
    }
    None
}

fn lock<T>(kept: &Mutex<T>) -> MutexGuard<'_, T> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is hidden from one walk, with each folder's ignore files looked at once.
pub(crate) struct Veil {
    root: Arc<Root>,
    /// By folder; as text, since a path's parts are compared one by one.
    chains: Mutex<HashMap<OsString, Chain>>,
}

impl Veil {
    pub(crate) fn new(root: &Arc<Root>) -> Veil {
        Veil { root: root.clone(), chains: Mutex::default() }
    }

    /// Whether the entry at `path` is to be left out; those above it were not.
    pub(crate) fn covers(&self, path: &Path, is_folder: bool, is_link: bool) -> bool {
        let own = path.parent().is_some_and(|folder| hides(&self.chain(folder), path, is_folder).is_some());
        own || (is_link && self.leads_to_hidden(path))
    }

    fn leads_to_hidden(&self, link: &Path) -> bool {
        // One that leads in a circle leads to nothing.
        let Ok(real) = follow(&self.root, link) else { return false };
        let is_folder = self.root.probe(&real).is_ok_and(|meta| meta.is_dir());
        self.root.hidden_by(&real, is_folder).is_some()
    }

    fn chain(&self, folder: &Path) -> Chain {
        if !folder.starts_with(self.root.folder()) {
            return Chain::default();
        }
        if let Some(chain) = lock(&self.chains).get(folder.as_os_str()) {
            return chain.clone();
        }
        let above = match folder == self.root.folder() {
            true => Chain::default(),
            false => folder.parent().map(|parent| self.chain(parent)).unwrap_or_default(),
        };
        let chain = self.root.chain(&above, folder);
        lock(&self.chains).insert(folder.into(), chain.clone());
        chain
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stage::Stage;
    use std::fs;
    use std::os::unix::fs::symlink;

    /// What hides each of `names`; those that end with a slash are folders.
    fn told(stage: &Stage, names: &[&str]) -> String {
        let line = |name: &&str| {
            let by = stage.workspace.root.hidden_by(&stage.path(name.trim_end_matches('/')), name.ends_with('/'));
            format!("{name}: {}", by.unwrap_or("open".into()))
        };
        names.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn lines_are_read_as_git_reads_them_and_the_one_that_counts_is_named() {
        let stage = Stage::new();
        stage.file(".windlassignore", "# keys\n*.key\n!public.key\n/only-here\nfolder/\ndeep/**/x\n");
        stage.file("sub/.windlassignore", "*.txt\n!kept.txt\n!a.key\n");
        fs::create_dir_all(stage.path("folder")).unwrap();
        insta::assert_snapshot!(told(&stage, &[
            "a.key", "public.key", "sub/b.key", "sub/a.key", "only-here", "sub/only-here", "folder/", "folder",
            "folder/public.key", "sub/folder/a", "deep/er/still/x", "sub/a.txt", "sub/kept.txt", "a.txt", "",
        ]), @r"
        a.key: .windlassignore, line 2
        public.key: open
        sub/b.key: .windlassignore, line 2
        sub/a.key: open
        only-here: .windlassignore, line 4
        sub/only-here: open
        folder/: .windlassignore, line 5
        folder: open
        folder/public.key: .windlassignore, line 5
        sub/folder/a: .windlassignore, line 5
        deep/er/still/x: .windlassignore, line 6
        sub/a.txt: sub/.windlassignore, line 1
        sub/kept.txt: open
        a.txt: open
        : open
        ");
    }

    #[test]
    fn files_of_other_agents_hide_too_and_ours_is_heard_first() {
        let stage = Stage::new();
        stage.file(".windlassignore", "!shared\n");
        for (file, hidden) in IGNORE_FILES[1..].iter().zip(["a", "b", "c", "d", "e"]) {
            stage.file(file, format!("{hidden}\nshared\n"));
        }
        insta::assert_snapshot!(told(&stage, &["a", "b", "c", "d", "e", "f", "shared"]), @r"
        a: .aiignore, line 1
        b: .aiexclude, line 1
        c: .cursorignore, line 1
        d: .codeiumignore, line 1
        e: .geminiignore, line 1
        f: open
        shared: open
        ");
    }

    #[test]
    fn a_change_is_seen_at_once() {
        let stage = Stage::new();
        let steps = ["a", "b", "a\nb", "!a"].map(|text| {
            stage.file(".windlassignore", text);
            told(&stage, &["a", "b"]).replace('\n', "; ")
        });
        fs::remove_file(stage.path(".windlassignore")).unwrap();
        insta::assert_snapshot!(steps.join("\n") + "\n" + &told(&stage, &["a"]), @r"
        a: .windlassignore, line 1; b: open
        a: open; b: .windlassignore, line 1
        a: .windlassignore, line 1; b: .windlassignore, line 2
        a: open; b: open
        a: open
        ");
    }

    #[test]
    fn an_ignore_file_may_be_a_link_and_one_that_cannot_be_read_hides_all() {
        let stage = Stage::new();
        stage.file("shared/rules", "secret\n");
        symlink("shared/rules", stage.path(".aiignore")).unwrap();
        symlink("nowhere", stage.path(".cursorignore")).unwrap();
        fs::create_dir(stage.path(".geminiignore")).unwrap();
        stage.file("odd/.windlassignore", "x".repeat(MAX_BYTES as usize + 1));
        symlink("/dev/zero", stage.path("shared/.windlassignore")).unwrap();
        insta::assert_snapshot!(told(&stage, &["secret", "other", "odd/a", "shared/a"]), @r"
        secret: .aiignore, line 1
        other: open
        odd/a: odd/.windlassignore, which could not be read (it has more than 1048576 bytes)
        shared/a: shared/.windlassignore, which could not be read (it is no regular file)
        ");
    }
}
