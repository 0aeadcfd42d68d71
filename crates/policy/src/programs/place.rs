//! Where commands run: `cd` followed through subshells, as far as its words tell.

use crate::shell::{Word, WordKind};

/// Folders a command may run in that are followed; nobody changes folders more often in one line.
const MAX_FOLDERS: usize = 8;
/// Subshells within subshells that are followed.
const MAX_LEVELS: usize = 64;

/// The folders a level of the shell may be in, the likeliest last: a `cd` may fail or be skipped, so what was before
/// stays possible. None is one that is not known.
type Folders = Vec<Option<String>>;

/// The folders of a command line while it is read.
#[derive(Clone, Debug)]
pub(super) struct Place {
    start: String,
    /// The shell itself and the subshells that are open, each with its number.
    levels: Vec<(u32, Folders)>,
    stack: Vec<Word>,
    /// What runs now runs only if every `cd` before it led where it says.
    sure: bool,
}

impl Place {
    pub(super) fn new(start: &str) -> Place {
        let start = join(start, ".");
        Place { levels: vec![(0, vec![Some(start.clone())])], start, stack: Vec::new(), sure: false }
    }

    /// Goes to the subshell reached through `scope`; those it is not in are forgotten, a new one begins where its
    /// parent is.
    pub(super) fn enter(&mut self, scope: &[u32]) {
        let scope = &scope[..scope.len().min(MAX_LEVELS)];
        let shared = self.levels[1..].iter().zip(scope).take_while(|((own, _), other)| own == *other).count();
        self.levels.truncate(1 + shared);
        for number in &scope[shared..] {
            let parent = self.folders().clone();
            self.levels.push((*number, parent));
        }
    }

    /// Says whether what comes next runs only if every `cd` before it worked.
    pub(super) fn set_sure(&mut self, sure: bool) {
        self.sure = sure;
    }

    /// Only one folder is possible.
    pub(super) fn is_sure(&self) -> bool {
        self.possible().len() == 1
    }

    /// The folders commands may run in.
    fn possible(&self) -> &[Option<String>] {
        let folders = self.folders();
        if self.sure { &folders[folders.len() - 1..] } else { folders }
    }

    /// The folder commands most likely run in.
    pub(super) fn here(&self) -> Option<String> {
        let folders = self.possible();
        if folders.contains(&None) { None } else { folders.last().cloned().flatten() }
    }

    /// Further folders they may run in.
    pub(super) fn elsewhere(&self) -> impl Iterator<Item = &str> {
        let folders = self.possible();
        folders[..folders.len() - 1].iter().filter_map(|folder| folder.as_deref())
    }

    fn folders(&self) -> &Folders {
        &self.levels[self.levels.len() - 1].1
    }

    /// A folder they may run in that lies outside of the one the line starts in.
    pub(super) fn outside(&self) -> Option<String> {
        let outside = self.possible().iter().find(|folder| folder.as_deref().is_none_or(|path| !self.contains(path)));
        outside.map(|folder| folder.clone().unwrap_or_else(|| "a folder that is not known".into()))
    }

    /// Whether `word`, a path, surely lies in the folder the line starts in.
    pub(super) fn holds(&self, word: &Word) -> bool {
        let at_home = word.tilde && (word.text == "~" || word.text.starts_with("~/"));
        if word.kind != WordKind::Known || word.tilde && !at_home {
            return false;
        }
        self.possible()
            .iter()
            .all(|folder| folder.as_deref().is_some_and(|folder| self.contains(&resolve(folder, word))))
    }

    fn contains(&self, path: &str) -> bool {
        path.strip_prefix(&self.start[..])
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || self.start == "/")
    }

    /// What `cd WORD` leads to.
    pub(super) fn change(&mut self, word: Option<&Word>) {
        let home = Word { text: "~".into(), tilde: true, ..Word::default() };
        let word = word.unwrap_or(&home);
        let folders = self.folders().clone();
        let mut next = folders.clone();
        let is_known = word.kind == WordKind::Known && (!word.tilde || word.text == "~" || word.text.starts_with("~/"));
        if !is_known {
            next.push(None);
        } else if word.text == "-" {
            let back = folders.len().checked_sub(2).and_then(|at| folders[at].clone());
            next.push(back);
        } else {
            for folder in folders {
                let found = folder.map(|folder| resolve(&folder, word));
                let found = if word.text.starts_with('/') || word.tilde { Some(resolve("/", word)) } else { found };
                next.push(found);
            }
        }
        self.settle(next);
    }

    fn settle(&mut self, folders: Folders) {
        let mut kept = Folders::new();
        for folder in folders.into_iter().rev() {
            if !kept.contains(&folder) {
                kept.insert(0, folder);
            }
        }
        if kept.len() > MAX_FOLDERS {
            kept = vec![None];
        }
        let level = self.levels.len() - 1;
        self.levels[level].1 = kept;
    }

    pub(super) fn push(&mut self, word: Option<&Word>) {
        if self.stack.len() < MAX_FOLDERS {
            let here = self.here();
            self.stack.push(here.map_or_else(unknown_folder, |folder| Word::known(&folder)));
        }
        match word {
            Some(word) if !word.text.starts_with(['+', '-']) => self.change(Some(word)),
            _ => self.change(Some(&unknown_folder())),
        }
    }

    pub(super) fn pop(&mut self) {
        let back = self.stack.pop().unwrap_or_else(unknown_folder);
        let tilde = back.text.starts_with('~');
        self.change(Some(&Word { tilde, ..back }));
    }
}

fn unknown_folder() -> Word {
    Word { kind: WordKind::Unknown, ..Word::default() }
}

fn resolve(folder: &str, word: &Word) -> String {
    if word.text.starts_with('/') || word.tilde { join(&word.text, ".") } else { join(folder, &word.text) }
}

/// `path` from `folder`, without `.`, `..` and doubled slashes; from `~` where the folder is.
pub(super) fn join(folder: &str, path: &str) -> String {
    let (root, folder) = match folder.strip_prefix('~') {
        Some(rest) => ("~", rest),
        None => ("", folder),
    };
    let mut parts: Vec<&str> = Vec::new();
    let mut above = 0;
    for part in folder.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." if parts.pop().is_none() => above += 1,
            ".." => {}
            part => parts.push(part),
        }
    }
    if root == "~" && above > 0 {
        return format!("~/{}{}", "../".repeat(above), parts.join("/"));
    }
    if root == "~" && parts.is_empty() {
        return "~".into();
    }
    format!("{root}/{}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_followed_and_what_was_stays_possible() {
        let mut place = Place::new("/w");
        place.change(Some(&Word::known("sub/../a")));
        assert_eq!(place.here().as_deref(), Some("/w/a"));
        assert_eq!(place.elsewhere().collect::<Vec<_>>(), ["/w"]);
        assert!(place.holds(&Word::known("x")) && !place.holds(&Word::known("../x")) && place.outside().is_none());
        place.enter(&[1]);
        place.change(Some(&Word::known("/tmp")));
        assert_eq!(place.outside().as_deref(), Some("/tmp"));
        place.enter(&[2]);
        assert_eq!(place.outside(), None);
        place.enter(&[]);
        assert_eq!((place.here().as_deref(), place.outside()), (Some("/w/a"), None));
        place.change(None);
        assert_eq!(place.here().as_deref(), Some("~"));
        place.change(Some(&Word { kind: WordKind::Unknown, ..Word::default() }));
        assert_eq!((place.here(), place.outside().is_some()), (None, true));
    }
}
