//! A command line taken apart as bash would: its simple commands, their words, their redirections.
//!
//! Parsed by tree-sitter and walked with a cursor. What bash would only know when it runs (a variable, the output of a
//! command) is an unknown word; what cannot be parsed is a doubt about the whole, and the commands that could be found
//! all the same are there for rules that deny.

mod agree;
mod ansi;
mod brace;
mod flat;
mod heredoc;
mod lex;
mod loops;
mod outline;
mod parse;
mod redirects;
mod signs;
mod syntax;
#[cfg(test)]
mod tests;
mod walk;
mod word;

pub use outline::tree;
pub use parse::{MAX_BYTES, script, words};

use std::ops::Range;

/// What is said of a command line that goes deeper than it is followed.
pub(crate) const NESTS_DEEPER: &str = "nests deeper";

/// Everything a command line would start, in the order of its text; commands within words, blocks and subshells, too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    pub commands: Vec<Simple>,
    /// What keeps the whole from being known. With any, no pattern allows it.
    pub doubts: Vec<String>,
}

/// One simple command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Simple {
    /// Bytes of the text it stands in.
    pub span: Range<usize>,
    /// `NAME=value` before the program.
    pub assignments: Vec<(String, Word)>,
    /// The program and its arguments; empty where only assignments or redirections stand.
    pub words: Vec<Word>,
    pub redirects: Vec<Redirect>,
    pub input: Input,
    /// It only repeats a text that stands in the command, within a word that is known by it.
    pub repeats: bool,
    /// It runs in a subshell, a pipe's part or a substitution: its `cd` does not outlive it. Counted in levels.
    pub depth: u32,
    /// The subshells it runs in, outermost first, each by a number of its own: two commands share a folder only where
    /// these are the same.
    pub scope: Vec<u32>,
}

/// A word after quote removal and brace expansion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Word {
    /// Its value; of an unknown word the source without quotes, of a glob the pattern.
    pub text: String,
    pub kind: WordKind,
    /// Some of it was quoted, so it is no pattern, keyword or alias where it stands.
    pub quoted: bool,
    /// It begins with an unquoted `~` or `~name` that bash would expand.
    pub tilde: bool,
    /// Unknown, but no less harmless than any operand: whole words that a wrapper puts in when it runs (`xargs`,
    /// `find -exec`), or a word with a number the shell knows (`$?`).
    pub put_in: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WordKind {
    #[default]
    Known,
    /// Holds an unquoted `*`, `?` or `[…]`: it stands for names of files, any number of them.
    Glob,
    /// A variable, a substitution or arithmetic decides what it is, and into how many words it falls.
    Unknown,
}

/// One redirection; descriptor copies (`2>&1`) and here-documents are none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirect {
    pub kind: RedirectKind,
    pub target: Word,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedirectKind {
    /// `<`
    Read,
    /// `>`, `>>`, `>|`, `&>`, `<>`
    Write,
}

/// Where a simple command's standard input comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Input {
    #[default]
    Inherited,
    /// The command before it in a pipe.
    Pipe,
    /// A here-document or here-string; its text if that is constant.
    Text(Option<String>),
    /// `<` a file.
    File,
}

impl Word {
    pub fn known(text: &str) -> Word {
        Word { text: text.into(), ..Word::default() }
    }

    /// It is `<(…)`: the name of a stream, whatever is in it; what runs there is a command of its own.
    pub fn is_stream(&self) -> bool {
        self.kind == WordKind::Unknown && !self.quoted && self.text.starts_with("<(")
    }

    /// The value, where it is known to the letter.
    pub fn value(&self) -> Option<&str> {
        (self.kind == WordKind::Known && !self.tilde).then_some(&self.text)
    }
}
