//! Changes to several files, made together or not at all.

use crate::Workspace;
use crate::change::Current;
use crate::file::{failed, shown, whole};
use crate::output::hash;
use crate::place::{Place, Reach, follow, resolve};
use crate::root::Root;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tokio_util::sync::CancellationToken;
use windlass_kernel::FileSeen;

/// The files of a workspace as they would be; nothing is written before [`Together::make`].
pub(crate) struct Together<'a> {
    reach: Reach<'a>,
    files: Vec<File>,
}

struct File {
    /// With every link followed.
    path: PathBuf,
    before: Option<Before>,
    after: After,
    /// Whether the session knows all the file will hold.
    known: bool,
    /// What the file's mode will be; none: as for any new file.
    mode: Option<u32>,
}

struct Before {
    bytes: Vec<u8>,
    hash: String,
    mode: u32,
}

enum After {
    Unchanged,
    Gone,
    Holds(Vec<u8>),
}

/// What was done of a change before it failed, and how to put it back.
enum Done<'f> {
    Removed(&'f File),
    Wrote(&'f File, Vec<PathBuf>),
}

/// Why nothing was made; and, where that could not be helped, what stands changed all the same.
#[derive(Debug)]
pub(crate) struct Failed {
    pub why: String,
    pub files: Vec<FileSeen>,
}

impl<'a> Together<'a> {
    pub(crate) fn new(reach: Reach<'a>) -> Together<'a> {
        Together { reach, files: Vec::new() }
    }

    pub(crate) fn workspace(&self) -> &'a Workspace {
        self.reach.workspace
    }

    /// Adds a file where none is.
    pub(crate) fn add(&mut self, path: &str, bytes: Vec<u8>) -> Result<(), String> {
        let file = self.absent(path, "change it with `*** Update File`, or put its `*** Delete File` before")?;
        (file.after, file.known) = (After::Holds(bytes), true);
        Ok(())
    }

    /// What the file at `path` holds by now.
    pub(crate) fn content(&mut self, path: &str) -> Result<&[u8], String> {
        let name = shown(self.workspace(), &resolve(self.workspace(), path));
        self.file(path, true)?.bytes().ok_or_else(|| format!("{name} was deleted by this patch before"))
    }

    pub(crate) fn update(&mut self, path: &str, bytes: Vec<u8>) -> Result<(), String> {
        self.file(path, true)?.after = After::Holds(bytes);
        Ok(())
    }

    pub(crate) fn delete(&mut self, path: &str) -> Result<(), String> {
        self.content(path)?;
        self.no_link(path)?;
        self.file(path, true)?.after = After::Gone;
        Ok(())
    }

    /// Gives the file another name, which must be free.
    pub(crate) fn rename(&mut self, path: &str, to: &str) -> Result<(), String> {
        let bytes = self.content(path)?.to_vec();
        self.no_link(path)?;
        let from = self.file(path, true)?;
        let (known, mode) = (from.known, from.mode);
        let target = self.absent(to, "move elsewhere, or put its `*** Delete File` before")?;
        (target.after, target.known, target.mode) = (After::Holds(bytes), known, mode);
        self.file(path, true)?.after = After::Gone;
        Ok(())
    }

    /// Whether two paths mean the same file.
    pub(crate) fn same(&self, path: &str, other: &str) -> bool {
        let file = |path| follow(&self.workspace().root, &resolve(self.workspace(), path)).ok();
        file(path) == file(other)
    }

    fn absent(&mut self, path: &str, way_out: &str) -> Result<&mut File, String> {
        let name = shown(self.workspace(), &resolve(self.workspace(), path));
        let file = self.file(path, false)?;
        match file.bytes() {
            Some(_) => Err(format!("{name} exists already; {way_out}")),
            None => Ok(file),
        }
    }

    /// A link has no lines of its own, and what it leads to may be meant, or not.
    fn no_link(&self, path: &str) -> Result<(), String> {
        let link = resolve(self.workspace(), path);
        match fs::read_link(&link) {
            Err(_) => Ok(()),
            Ok(target) => Err(format!(
                "{} is a link to {}; name that file, or take the link away with bash (rm)",
                shown(self.workspace(), &link),
                target.display()
            )),
        }
    }

    /// The file that `path` means, taken in when it is first named; with `wanted`, one that is not there is an error.
    fn file(&mut self, path: &str, wanted: bool) -> Result<&mut File, String> {
        let place = if wanted { self.reach.place(path)? } else { self.reach.place_to_write(path)? };
        let index = match self.files.iter().position(|file| file.path == place.real) {
            Some(index) => index,
            None => {
                let file = self.take(place, wanted)?;
                self.files.push(file);
                self.files.len() - 1
            }
        };
        Ok(&mut self.files[index])
    }

    fn take(&self, place: Place, wanted: bool) -> Result<File, String> {
        if !wanted && place.meta.is_none() {
            return Ok(File { path: place.real, before: None, after: After::Unchanged, known: false, mode: None });
        }
        let current = Current::take(self.reach, &place)?;
        let known = current.known(self.reach, &place).is_ok();
        let mode = place.present(self.workspace()).map(Metadata::permissions)?.mode() & 0o7777;
        let before = Some(Before { bytes: current.bytes, hash: current.hash, mode });
        Ok(File { path: place.real, before, after: After::Unchanged, known, mode: Some(mode) })
    }

    /// Writes and deletes; what fails halfway is put back as it was. Gives the files to be remembered.
    pub(crate) fn make(&self, cancel: &CancellationToken) -> Result<Vec<FileSeen>, Failed> {
        let mut done = Vec::new();
        match self.try_all(cancel, &mut done) {
            Ok(()) => Ok(self.files.iter().filter_map(File::remembered).collect()),
            Err(why) => Err(self.put_back(why, done)),
        }
    }

    /// All that is written comes first: a program that dies on the way leaves a file twice rather than not at all.
    fn try_all<'f>(&'f self, cancel: &CancellationToken, done: &mut Vec<Done<'f>>) -> Result<(), String> {
        let root = &self.workspace().root;
        for file in &self.files {
            let After::Holds(bytes) = &file.after else { continue };
            if cancel.is_cancelled() {
                return Err("cancelled".into());
            }
            let folders = missing_folders(root, &file.path);
            // Also what fails may have made folders.
            done.push(Done::Wrote(file, folders));
            self.named("write", file, root.write(&file.path, bytes, file.mode))?;
        }
        for file in &self.files {
            if file.before.is_some() && matches!(file.after, After::Gone) {
                self.named("delete", file, root.remove(&file.path))?;
                done.push(Done::Removed(file));
            }
        }
        Ok(())
    }

    fn named(&self, what: &str, file: &File, done: io::Result<()>) -> Result<(), String> {
        done.map_err(|error| failed(what, &shown(self.workspace(), &file.path), &error))
    }

    fn put_back(&self, why: String, done: Vec<Done>) -> Failed {
        let mut files = Vec::new();
        let mut stuck = Vec::new();
        for done in done.iter().rev() {
            let Err(error) = done.undo(&self.workspace().root) else { continue };
            let (Done::Removed(file) | Done::Wrote(file, _)) = done;
            stuck.push(format!("{} ({error})", shown(self.workspace(), &file.path)));
            files.extend(file.remembered());
        }
        let end = match stuck.is_empty() {
            true => "; what was done before it was put back: nothing was changed".into(),
            false => format!("; not put back, so look at them: {}", stuck.join(", ")),
        };
        Failed { why: why + &end, files }
    }
}

impl File {
    /// What it holds by now; none: it is not there.
    fn bytes(&self) -> Option<&[u8]> {
        match (&self.after, &self.before) {
            (After::Holds(bytes), _) => Some(bytes),
            (After::Unchanged, Some(before)) => Some(&before.bytes),
            (After::Unchanged, None) | (After::Gone, _) => None,
        }
    }

    /// What the session is to know of it: of a file it had not read as it was, nothing, so that it cannot be
    /// overwritten unread.
    fn remembered(&self) -> Option<FileSeen> {
        let before = self.before.as_ref().map(|before| before.hash.clone());
        let after = match &self.after {
            After::Holds(bytes) if self.known => Some(hash(bytes)),
            After::Gone if before.is_some() => None,
            _ => return None,
        };
        Some(FileSeen { path: self.path.to_string_lossy().into_owned(), before, after })
    }
}

impl Done<'_> {
    fn undo(&self, root: &Root) -> io::Result<()> {
        let (Done::Removed(file) | Done::Wrote(file, _)) = self;
        if let Some(before) = &file.before {
            let now = root.read(&file.path).and_then(|(now, meta)| whole(now, meta.len()));
            return match now.is_ok_and(|bytes| bytes == before.bytes) {
                true => Ok(()),
                false => root.write(&file.path, &before.bytes, Some(before.mode)),
            };
        }
        match root.remove(&file.path) {
            // It was never written, or what stands in its way is no file of ours.
            Err(_) if !root.probe(&file.path).is_ok_and(|meta| meta.is_file()) => {}
            other => other?,
        }
        if let Done::Wrote(_, folders) = self {
            // One that somebody has put something into stays.
            folders.iter().for_each(|folder| _ = root.remove_folder(folder));
        }
        Ok(())
    }
}

/// The folders above `path` that are not there yet, the deepest first.
fn missing_folders(root: &Root, path: &Path) -> Vec<PathBuf> {
    path.ancestors().skip(1).take_while(|folder| root.probe(folder).is_err()).map(Path::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stage::Stage;

    fn staged() -> Stage {
        let stage = Stage::new();
        stage.file("src/a.py", "def f(): pass\n");
        stage.file("gone.txt", "bye\n");
        stage
    }

    #[test]
    fn a_deletion_that_fails_brings_back_what_was_deleted_and_written() {
        let stage = staged();
        let mut together = Together::new(Reach::looking(&stage.workspace));
        together.add("deep/new", b"new".to_vec()).unwrap();
        together.delete("gone.txt").unwrap();
        together.delete("src/a.py").unwrap();
        // Somebody else was faster.
        fs::remove_file(stage.path("src/a.py")).unwrap();
        let failed = together.make(&CancellationToken::new()).unwrap_err();
        assert!(failed.why.starts_with("could not delete src/a.py: "), "{}", failed.why);
        assert!(failed.files.is_empty());
        assert_eq!(stage.read("gone.txt"), "bye\n");
        assert!(!stage.path("deep").exists());
    }

    #[test]
    fn what_cannot_be_put_back_is_named() {
        let stage = staged();
        let mut together = Together::new(Reach::looking(&stage.workspace));
        together.delete("src/a.py").unwrap();
        fs::remove_dir_all(stage.path("src")).unwrap();
        stage.file("src", "a file in the way");
        let failed = together.put_back("the disk is full".into(), vec![Done::Removed(&together.files[0])]);
        let start = "the disk is full; not put back, so look at them: src/a.py (";
        assert!(failed.why.starts_with(start), "{}", failed.why);
        let path = stage.path("src/a.py").display().to_string();
        let before = Some(hash(b"def f(): pass\n"));
        assert_eq!(failed.files, [FileSeen { path, before, after: None }]);
    }

    #[test]
    fn what_is_called_off_changes_nothing() {
        let stage = staged();
        let mut together = Together::new(Reach::looking(&stage.workspace));
        together.add("new", b"new".to_vec()).unwrap();
        together.delete("gone.txt").unwrap();
        let cancel = CancellationToken::new();
        cancel.cancel();
        let failed = together.make(&cancel).unwrap_err();
        assert_eq!(failed.why, "cancelled; what was done before it was put back: nothing was changed");
        assert!(!stage.path("new").exists() && stage.path("gone.txt").exists());
    }
}
