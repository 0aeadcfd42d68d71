//! One command while it is judged.

use super::options::{Class, Operands, Options, Table};
use super::place::Place;
use crate::deed::{Deed, FileHow, FileUse, Reach, Sharp};
use crate::shell::{Input, Word, WordKind};

/// A command that another one would run.
#[derive(Clone, Debug)]
pub(super) enum Inner {
    /// Words, a deed of their own.
    Own(Vec<Word>),
    /// The words from here to the end of the outer's, told as part of the outer deed.
    Folded(usize),
    /// Text a shell of its own would read.
    Text(String),
    /// Text this shell would read.
    Here(String),
}

/// What is known of one command so far, and what it would run.
pub(super) struct Act<'a> {
    pub deed: Deed,
    pub input: &'a Input,
    pub place: &'a mut Place,
    pub inner: Vec<Inner>,
    /// It is nothing beside what it runs (`timeout`, `nice`, `sh -c`).
    pub seen_through: bool,
    /// What keeps the whole command line from being known.
    pub whole: Vec<String>,
}

impl Act<'_> {
    pub(super) fn text(&self, at: usize) -> &str {
        self.deed.argv.get(at).map_or("", |word| &word.text)
    }

    pub(super) fn len(&self) -> usize {
        self.deed.argv.len()
    }

    pub(super) fn sharp(&mut self, at: usize, why: impl Into<String>) {
        self.deed.sharp.push(Sharp { at, why: why.into() });
        self.deed.reach = Reach::Anything;
    }

    pub(super) fn doubt(&mut self, why: impl Into<String>) {
        self.deed.doubts.push(why.into());
        self.deed.reach = Reach::Anything;
    }

    pub(super) fn file(&mut self, how: FileHow, path: &Word) {
        if matches!(path.value(), Some("-" | "/dev/null" | "/dev/stdout" | "/dev/stderr" | "/dev/stdin" | "")) {
            return;
        }
        if how != FileHow::Read {
            self.deed.reach = self.deed.reach.max(Reach::Changes);
        }
        self.deed.files.push(FileUse { how, path: path.clone() });
    }

    pub(super) fn files(&mut self, how: FileHow, places: &[usize]) {
        for at in places {
            let word = self.deed.argv[*at].clone();
            self.file(how, &word);
        }
    }

    /// Judges the arguments from `from` on by `table`; the options found, over a copy of the words.
    pub(super) fn judge<'w>(&mut self, table: &Table, words: &'w [Word], from: usize) -> Options<'w> {
        let options = self.judge_options(table, words, from);
        self.judge_operands(table, &options);
        options
    }

    /// The same without what operands are.
    pub(super) fn judge_options<'w>(&mut self, table: &Table, words: &'w [Word], from: usize) -> Options<'w> {
        self.deed.reach = table.reach;
        self.deed.net |= table.net;
        let options = Options::read(table, words, from);
        for taken in &options.taken {
            let shown = &words[taken.at].text;
            let shown = shown.split_once('=').map_or(&shown[..], |(name, _)| name);
            match taken.class {
                Class::Flag | Class::Maybe | Class::Value => {}
                Class::Read => self.option_file(FileHow::Read, taken.value.as_ref()),
                Class::Write => self.option_file(FileHow::Write, taken.value.as_ref()),
                Class::Edit => self.option_file(FileHow::Edit, taken.value.as_ref()),
                Class::Unknown => self.sharp(taken.at, format!("`{shown}` is not an option that is known here")),
                Class::Dare => self.sharp(taken.at, format!("`{shown}` does more than the command's name says")),
                Class::Load => self.sharp(taken.at, format!("`{shown}` takes code, settings or data to send")),
                Class::Run => self.sharp(taken.at, format!("`{shown}` runs another command")),
            }
        }
        let could_harm = |at: &usize| words[*at].put_in && table.could_harm();
        if let Some(at) = (from..words.len()).find(could_harm).filter(|_| table.open) {
            self.sharp(at, format!("`{}` may turn out to be an option", words[at].text));
        }
        if !table.open {
            // What ends in `.o` is no option of a program whose options are tame.
            let is_tame = |at: &&usize| table.is_tame() && ends_fixed(&words[**at]);
            for at in options.loose.iter().filter(|at| !is_tame(at)) {
                self.sharp(*at, format!("`{}` may turn out to be an option", words[*at].text));
            }
        }
        options
    }

    fn option_file(&mut self, how: FileHow, path: Option<&Word>) {
        if let Some(path) = path {
            self.file(how, path);
        }
    }

    fn judge_operands(&mut self, table: &Table, options: &Options) {
        let places = &options.operands[..];
        match table.operands {
            Operands::Words => {}
            Operands::Read => self.files(FileHow::Read, places),
            Operands::PatternThenRead => {
                let given = options.has(&["e", "f", "--regexp", "--file", "--files"]);
                self.files(FileHow::Read, places.get(usize::from(!given)..).unwrap_or_default());
            }
            Operands::Write => self.files(FileHow::Write, places),
            Operands::Copy | Operands::Move => {
                let sources = if table.operands == Operands::Copy { FileHow::Read } else { FileHow::Write };
                let has_target = options.taken.iter().any(|taken| taken.class == Class::Write);
                let last = places.len().saturating_sub(usize::from(!has_target));
                self.files(sources, &places[..last]);
                self.files(FileHow::Write, &places[last..]);
            }
        }
    }
}

/// A glob whose end is known and holds a dot.
fn ends_fixed(word: &Word) -> bool {
    let end = word.text.rsplit(['*', '?', ']', ')', '}']).next().unwrap_or_default();
    word.kind == WordKind::Glob && end.contains('.') && !word.text.contains('=')
}

/// What a wrapper puts in.
pub(super) fn put_in(text: &str) -> Word {
    Word { put_in: true, ..unknown(text) }
}

pub(super) fn unknown(text: &str) -> Word {
    Word { text: text.into(), kind: WordKind::Unknown, ..Word::default() }
}
