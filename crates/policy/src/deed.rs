//! What a simple command does, as far as its words tell: what counts for rules is the deed, not the name.

use crate::programs;
use crate::shell::{self, Word};

/// One command that would run, wrappers (`timeout 5 …`, `env X=1 …`, `sh -c '…'`, `xargs …`, `find -exec …`) seen
/// through. A command line is a list of these; every one must be allowed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deed {
    /// The words rules are matched against. Harmless options before a subcommand (`git --no-pager log`) are left out.
    pub argv: Vec<Word>,
    /// Other spellings of the same that a deny or ask rule may mean: with its wrapper in front, with the options that
    /// were left out, the program without its folder, a multi-call program's applet.
    pub also: Vec<Vec<Word>>,
    /// What stands in the text for the same command and more: the commands around it, the options that were left out. A
    /// rule that spells all of one allows it; `also`, with spellings that drop words, is never for that.
    pub written: Vec<Vec<Word>>,
    /// The command as it stands in the text, for people; of an inner one its own words.
    pub shown: String,
    /// The folder it runs in: absolute, or from `~`; none if a `cd` to somewhere unknown came before.
    pub folder: Option<String>,
    /// Whether it can change anything or run anything that its words do not show.
    pub reach: Reach,
    /// Words by which it writes, or runs others, beyond what its name says: a wildcard does not grant these, only a rule
    /// that spells them does. Options the table of such a program does not know are among them.
    pub sharp: Vec<Sharp>,
    /// What no pattern grants: computed programs, dangerous variables, input that is run as code.
    pub doubts: Vec<String>,
    pub files: Vec<FileUse>,
    /// It reaches the network.
    pub net: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// A known program that only looks (`ls`, `git status`, `rg` without `--pre`).
    Looks,
    /// A known program that changes files it is told.
    Changes,
    /// Anything may come of it: a build, an interpreter, an unknown program.
    #[default]
    Anything,
}

/// A word of the argv that a wildcard does not grant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sharp {
    /// Its place in `argv`.
    pub at: usize,
    /// What it would do, as a clause: `` `-exec` runs another command ``.
    pub why: String,
}

/// A file that a command is known to use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileUse {
    pub how: FileHow,
    /// As written; relative to the deed's folder.
    pub path: Word,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileHow {
    Read,
    /// By the program's nature (`cp`, `rm`, `tee`, `mkdir`): its own rule grants it inside the workspace.
    Write,
    /// The same, and what lies below goes with it (`rm -r`, `find -delete`).
    Delete,
    /// By a redirection or by an option of a program whose nature is another (`sort -o`, `sed -i`): an edit of the file,
    /// which goes through the file rules.
    Edit,
}

/// Everything a command line would do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    pub deeds: Vec<Deed>,
    /// What keeps the whole from being known; with any, no pattern allows it.
    pub doubts: Vec<String>,
}

/// What `command`, started in `folder` (absolute), would do.
pub fn read(command: &str, folder: &str) -> Reading {
    programs::read_text(&shell::script(command), command, folder)
}
