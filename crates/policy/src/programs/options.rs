//! One reader of options for all programs: clusters, stuck values, shortened long names, `--`, options after operands.
//!
//! A table lists options as people write them: `-abc` is three short ones, `--name` a long one. What no list holds is
//! unknown, and of a program that can write or run others an unknown option is not granted by a wildcard.

use crate::deed::Reach;
use crate::shell::{Word, WordKind};

/// What an option does; the later, the worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Class {
    /// Harmless, without a value.
    Flag,
    /// Harmless, with a value only when it is stuck to it.
    Maybe,
    /// Harmless, with a value.
    Value,
    /// Its value is a file that is read.
    Read,
    /// Its value is a file that is written, as is the program's nature.
    Write,
    /// Its value is a file that is written, by a program whose nature is another.
    Edit,
    Unknown,
    /// Does more than the program's name says; no value.
    Dare,
    /// Its value is code, settings or data sent away.
    Load,
    /// Its value is a command.
    Run,
}

impl Class {
    fn takes_value(self) -> bool {
        !matches!(self, Class::Flag | Class::Maybe | Class::Dare | Class::Unknown)
    }

    pub(super) fn is_sharp(self) -> bool {
        self >= Class::Unknown
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// Short ones cluster, long ones may be shortened, operands may stand between.
    Gnu,
    /// The same, but the first operand ends the options.
    First,
    /// Long names behind one dash or two (`-exec`, `--exec`), no clusters.
    Dash,
}

/// What operands are to the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operands {
    /// No files.
    Words,
    Read,
    /// The first is a pattern or program, unless an option gave it.
    PatternThenRead,
    Write,
    /// All but the last are read, the last is written.
    Copy,
    /// All are written: what is moved goes away.
    Move,
}

/// The options of some programs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Table {
    /// Names of programs (or subcommands), between commas.
    pub names: &'static str,
    pub reach: Reach,
    pub style: Style,
    pub operands: Operands,
    pub flags: &'static str,
    pub maybe: &'static str,
    pub values: &'static str,
    pub reads: &'static str,
    pub writes: &'static str,
    pub edits: &'static str,
    pub dares: &'static str,
    pub loads: &'static str,
    pub runs: &'static str,
    /// An option that no list holds is harmless: nothing the program does with its options could do harm, or its reach
    /// is anything already.
    pub open: bool,
    pub net: bool,
    /// Options it has in common with others.
    pub also: Option<&'static Table>,
}

/// A known program that only looks; every option it may have is harmless.
pub(super) const LOOKS: Table = Table {
    names: "",
    reach: Reach::Looks,
    style: Style::Gnu,
    operands: Operands::Words,
    flags: "",
    maybe: "",
    values: "",
    reads: "",
    writes: "",
    edits: "",
    dares: "",
    loads: "",
    runs: "",
    open: true,
    net: false,
    also: None,
};

/// A program that looks but has options that do more.
pub(super) const STRICT: Table = Table { open: false, ..LOOKS };
/// A program that changes files it is told.
pub(super) const CHANGES: Table = Table { reach: Reach::Changes, open: false, ..LOOKS };
/// Anything may come of it; only what goes beyond its own name is listed.
pub(super) const ANYTHING: Table = Table { reach: Reach::Anything, ..LOOKS };

impl Table {
    pub(super) fn is_named(&self, name: &str) -> bool {
        self.names.split(',').any(|own| own == name)
    }

    fn lists(&self) -> [(&'static str, Class); 9] {
        [
            (self.runs, Class::Run),
            (self.loads, Class::Load),
            (self.dares, Class::Dare),
            (self.edits, Class::Edit),
            (self.writes, Class::Write),
            (self.reads, Class::Read),
            (self.values, Class::Value),
            (self.maybe, Class::Maybe),
            (self.flags, Class::Flag),
        ]
    }

    fn short(&self, letter: char) -> Class {
        for (list, class) in self.lists() {
            let mut tokens = list.split_ascii_whitespace();
            if tokens.any(|token| !token.starts_with("--") && token[1..].contains(letter)) {
                return class;
            }
        }
        match self.also {
            Some(table) => table.short(letter),
            None => self.unlisted(),
        }
    }

    /// The class of a long name (with its dashes) and the name in full; of several it may be short for, the worst.
    fn long<'a>(&self, name: &'a str) -> (Class, &'a str) {
        let mut worst: Option<(Class, &'a str)> = None;
        let mut table = Some(self);
        while let Some(own) = table {
            for (list, class) in own.lists() {
                for token in list.split_ascii_whitespace().filter(|token| self.begins(token, name)) {
                    if self.style == Style::Dash || token.len() == name.len() {
                        return (class, token);
                    }
                    if worst.is_none_or(|(old, _)| old < class) {
                        worst = Some((class, token));
                    }
                }
            }
            table = own.also;
        }
        if let Some(worst) = worst {
            return worst;
        }
        let negated = name.strip_prefix("--no-").is_some_and(|rest| !rest.is_empty() && self.has_long(rest));
        (if negated { Class::Flag } else { self.unlisted() }, name)
    }

    fn begins(&self, token: &str, name: &str) -> bool {
        if self.style == Style::Dash {
            token.trim_start_matches('-') == name.trim_start_matches('-')
        } else {
            token.starts_with(name)
        }
    }

    fn has_long(&self, bare: &str) -> bool {
        let has = |list: &str| list.split_ascii_whitespace().any(|token| token.strip_prefix("--") == Some(bare));
        self.lists().iter().any(|(list, _)| has(list)) || self.also.is_some_and(|table| table.has_long(bare))
    }

    /// No option of it writes, runs or loads anything.
    pub(super) fn is_tame(&self) -> bool {
        self.reach == Reach::Changes
            && self.also.is_none()
            && [self.runs, self.loads, self.dares, self.edits, self.writes].iter().all(|list| list.is_empty())
    }

    /// Some option of it writes, runs or loads something.
    pub(super) fn could_harm(&self) -> bool {
        let lists = [self.runs, self.loads, self.dares, self.edits, self.writes];
        lists.iter().any(|list| !list.is_empty()) || self.also.is_some_and(Table::could_harm)
    }

    fn unlisted(&self) -> Class {
        if self.open { Class::Flag } else { Class::Unknown }
    }

    /// The class of a word that looks like an option, as if it stood alone.
    fn of_word(&self, text: &str) -> Class {
        let name = text.split_once('=').map_or(text, |(name, _)| name);
        if self.style == Style::Dash || name.starts_with("--") {
            return self.long(name).0;
        }
        name.chars().nth(1).map_or(Class::Flag, |letter| self.short(letter))
    }
}

/// An option as it was given.
#[derive(Clone, Debug)]
pub(super) struct Taken<'a> {
    /// Its word's place.
    pub at: usize,
    /// `-o`'s is `o`, `--output`'s and what is short for it `--output`.
    pub name: &'a str,
    pub class: Class,
    pub value: Option<Word>,
}

/// Arguments sorted out.
#[derive(Clone, Debug, Default)]
pub(super) struct Options<'a> {
    pub taken: Vec<Taken<'a>>,
    /// Places of the operands.
    pub operands: Vec<usize>,
    /// Operands that may turn out to be options: unknown words, globs without a folder in front.
    pub loose: Vec<usize>,
    /// Options behind this one are operands.
    pub dashes: Option<usize>,
}

impl<'a> Options<'a> {
    /// Sorts `argv` from `from` on; behind the first operand of [`Style::First`] everything is one.
    pub(super) fn read(table: &Table, argv: &'a [Word], from: usize) -> Options<'a> {
        let mut options = Options::default();
        let mut at = from;
        while at < argv.len() {
            let word = &argv[at];
            if options.dashes.is_some() || !starts_option(word) {
                if options.dashes.is_none() && may_be_option(word) {
                    options.loose.push(at);
                }
                options.operands.push(at);
                at += 1;
                if table.style == Style::First {
                    options.operands.extend(at..argv.len());
                    break;
                }
                continue;
            }
            if word.text == "--" {
                options.dashes = Some(at);
                at += 1;
                continue;
            }
            at = options.take(table, argv, at);
        }
        options
    }

    pub(super) fn has(&self, names: &[&str]) -> bool {
        self.taken.iter().any(|taken| names.contains(&taken.name))
    }

    pub(super) fn value(&self, names: &[&str]) -> Option<&Word> {
        self.taken.iter().rev().find(|taken| names.contains(&taken.name)).and_then(|taken| taken.value.as_ref())
    }

    /// Takes the option word at `at`; the place of the next word to read.
    fn take(&mut self, table: &Table, argv: &'a [Word], at: usize) -> usize {
        let text = &argv[at].text[..];
        if table.style == Style::Dash || text.starts_with("--") {
            let name = text.split_once('=').map_or(text, |(name, _)| name);
            let stuck = (name.len() < text.len()).then(|| part_of(&argv[at], &text[name.len() + 1..]));
            let bare = if table.style == Style::Dash && name.starts_with("--") { &name[1..] } else { name };
            let (class, name) = table.long(bare);
            return self.push(table, argv, at, (name, class), stuck);
        }
        let is_number = text.len() > 1 && text[1..].bytes().all(|byte| byte.is_ascii_digit());
        if is_number && matches!(table.short(text.as_bytes()[1] as char), Class::Unknown | Class::Flag) {
            self.taken.push(Taken { at, name: &text[1..], class: Class::Flag, value: None });
            return at + 1;
        }
        self.take_cluster(table, argv, at)
    }

    fn take_cluster(&mut self, table: &Table, argv: &'a [Word], at: usize) -> usize {
        let text = &argv[at].text[..];
        for (index, letter) in text.char_indices().skip(1) {
            let end = index + letter.len_utf8();
            let class = table.short(letter);
            let stuck = (end < text.len()).then(|| part_of(&argv[at], &text[end..]));
            if class.takes_value() {
                return self.push(table, argv, at, (&text[index..end], class), stuck);
            }
            let value = if class == Class::Maybe { stuck } else { None };
            self.taken.push(Taken { at, name: &text[index..end], class, value });
            if class == Class::Maybe {
                break;
            }
        }
        at + 1
    }

    fn push(
        &mut self,
        table: &Table,
        argv: &'a [Word],
        at: usize,
        (name, class): (&'a str, Class),
        stuck: Option<Word>,
    ) -> usize {
        if stuck.is_some() || !class.takes_value() {
            self.taken.push(Taken { at, name, class, value: stuck });
            return at + 1;
        }
        let value = argv.get(at + 1);
        // Should the program know this option without a value, the next word would be an option of its own.
        if let Some(next) = value.filter(|next| next.text.len() > 1 && starts_option(next)) {
            let class = table.of_word(&next.text);
            if class.is_sharp() || class == Class::Edit {
                self.taken.push(Taken { at: at + 1, name: &next.text, class: Class::Unknown, value: None });
            }
        }
        self.taken.push(Taken { at, name, class, value: value.cloned() });
        at + 2
    }
}

/// A part of a word is as known as the word is.
fn part_of(word: &Word, text: &str) -> Word {
    Word { text: text.into(), kind: word.kind, quoted: word.quoted, ..Word::default() }
}

fn starts_option(word: &Word) -> bool {
    word.text.len() > 1 && word.text.starts_with('-') && !word.tilde
}

/// Whether what the word stands for may begin with a dash.
pub(super) fn may_be_option(word: &Word) -> bool {
    match word.kind {
        WordKind::Known => false,
        WordKind::Glob => word.text.starts_with(['*', '?', '[', '-', '@', '+', '!']) && !word.tilde,
        WordKind::Unknown => !word.is_stream(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SORT: Table = Table {
        flags: "-bdnru --reverse --unique",
        values: "-kt --key",
        edits: "-o --output",
        runs: "--compress-program",
        maybe: "--color",
        ..STRICT
    };

    fn sorted(text: &str) -> String {
        let argv: Vec<Word> = text.split(' ').map(Word::known).collect();
        let options = Options::read(&SORT, &argv, 1);
        let mut shown: Vec<String> = Vec::new();
        for taken in &options.taken {
            let value = taken.value.as_ref().map_or(String::new(), |value| format!("={}", value.text));
            shown.push(format!("{}{value}:{:?}", taken.name, taken.class));
        }
        shown.extend(options.operands.iter().map(|at| argv[*at].text.clone()));
        shown.join(" ")
    }

    #[test]
    fn options_are_found_wherever_they_hide() {
        for (text, expected) in [
            ("sort -n a", "n:Flag a"),
            ("sort -uo out a", "u:Flag o=out:Edit a"),
            ("sort a -oout", "o=out:Edit a"),
            ("sort --outp=x a", "--output=x:Edit a"),
            ("sort --output x a", "--output=x:Edit a"),
            ("sort --comp sh a", "--compress-program=sh:Run a"),
            ("sort --co=sh a", "--compress-program=sh:Run a"),
            ("sort -- -o a", "-o a"),
            ("sort -k -o x", "-o:Unknown k=-o:Value x"),
            ("sort -k2 - -", "k=2:Value - -"),
            ("sort -x a", "x:Unknown a"),
            ("sort --what a", "--what:Unknown a"),
            ("sort --no-reverse a", "--no-reverse:Flag a"),
            ("sort -3 a", "3:Flag a"),
        ] {
            assert_eq!(sorted(text), expected, "{text}");
        }
    }
}
