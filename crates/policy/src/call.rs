//! One call as rules look at it; each view is made once, when a rule first wants it.

use crate::arguments::canonical;
use crate::ask::Ask;
use crate::deed::{self, Deed, FileHow, FileUse, Reading};
use crate::host;
use crate::path::Place;
use crate::places::{Places, below};
use crate::rule::FileAt;
use crate::shell::WordKind;
use std::cell::OnceCell;

pub(crate) struct Call<'a> {
    pub ask: &'a Ask<'a>,
    pub places: &'a Places,
    reading: OnceCell<Option<Reading>>,
    arguments: OnceCell<String>,
    host: OnceCell<Option<String>>,
}

/// A file of a command, with the path it comes to.
pub(crate) struct Found {
    pub how: FileHow,
    /// Absolute; of a pattern its folder; none: only known when it runs.
    pub path: Option<String>,
    pub and_below: bool,
    /// It climbs: `..` in its name, or a folder around the workspace that a `cd` led to.
    pub climbs: bool,
    /// As the command names it.
    pub shown: String,
}

impl<'a> Call<'a> {
    pub fn new(ask: &'a Ask<'a>, places: &'a Places) -> Call<'a> {
        Call { ask, places, reading: OnceCell::new(), arguments: OnceCell::new(), host: OnceCell::new() }
    }

    /// What its command would do; none if the call runs none that can be read.
    pub fn reading(&self) -> Option<&Reading> {
        self.reading.get_or_init(|| Some(deed::read(self.ask.command()?, self.ask.workspace))).as_ref()
    }

    pub fn arguments(&self) -> &str {
        self.arguments.get_or_init(|| canonical(self.ask.input))
    }

    pub fn host(&self) -> Option<&str> {
        self.host.get_or_init(|| host::host(self.ask.input)).as_deref()
    }

    pub fn place(&self) -> Place<'a> {
        Place { workspace: self.ask.workspace, home: self.places.home.as_deref() }
    }

    /// Where the files of `deed` lie.
    pub fn files(&self, deed: &Deed) -> Vec<Found> {
        deed.files.iter().map(|file| self.find(deed, file)).collect()
    }

    fn find(&self, deed: &Deed, file: &FileUse) -> Found {
        let word = &file.path;
        let absolute = |text: &str| self.places.absolute(deed.folder.as_deref(), text, word.tilde);
        let (path, is_glob) = match word.kind {
            WordKind::Known => (absolute(&word.text), false),
            WordKind::Glob => (absolute(fixed_folder(&word.text)), true),
            WordKind::Unknown => (None, false),
        };
        let and_below = is_glob || file.how == FileHow::Delete || file.how == FileHow::Read && sweeps(deed);
        let is_relative = !word.tilde && !word.text.starts_with('/');
        let around = |folder: &String| folder != self.ask.workspace && below(self.ask.workspace, folder);
        let climbs =
            word.text.split('/').any(|part| part == "..") || is_relative && deed.folder.as_ref().is_some_and(around);
        Found { how: file.how, path, and_below, climbs, shown: word.text.clone() }
    }
}

impl Found {
    pub fn at(&self) -> FileAt<'_> {
        FileAt { path: self.path.as_deref(), and_below: self.and_below }
    }
}

/// The folders in front of a pattern's first special sign.
fn fixed_folder(glob: &str) -> &str {
    let special = glob.find(['*', '?', '[', '{']).unwrap_or(glob.len());
    match glob[..special].rfind('/') {
        Some(0) => "/",
        Some(end) => &glob[..end],
        None => ".",
    }
}

/// It shows the contents of everything below a folder it is given.
fn sweeps(deed: &Deed) -> bool {
    let Some(program) = deed.argv.first() else { return false };
    let name = program.text.rsplit('/').next().unwrap_or_default();
    let recursive = || {
        deed.argv[1..].iter().any(|word| {
            word.text.starts_with("--") && matches!(&*word.text, "--recursive" | "--archive")
                || word.text.starts_with('-') && !word.text.starts_with("--") && word.text.contains(['r', 'R', 'a'])
        })
    };
    match name {
        "rg" | "ag" | "ack" | "tar" | "zip" | "7z" => true,
        "grep" | "egrep" | "fgrep" | "cp" | "rsync" | "scp" | "diff" => recursive(),
        _ => false,
    }
}
