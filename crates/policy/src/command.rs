//! Patterns over commands: `words`, `words:*`, and `*` for one or more words.

use crate::arguments::{Part, matches};
use crate::deed::{Deed, Reach};
use crate::predicate::Fit;
use crate::shell::{self, Word, WordKind};
use globset::{GlobBuilder, GlobMatcher};

#[derive(Clone, Debug)]
pub(crate) struct CommandPattern(Vec<Part<Spelling>>);

/// What one word of a pattern wants.
#[derive(Clone, Debug)]
pub(crate) enum Spelling {
    /// This, to the letter.
    Word(String),
    /// A word in which `*` stands for any signs.
    Like(GlobMatcher),
}

impl CommandPattern {
    /// Reads a pattern; says what is wrong with it and the way out.
    pub(crate) fn parse(text: &str) -> Result<CommandPattern, String> {
        let (fixed, open) = match text.strip_suffix(":*") {
            Some(fixed) => (fixed, true),
            None => (text, false),
        };
        let words = plain_words(fixed).or_else(|| shell::words(fixed)).filter(|words| !words.is_empty()).ok_or(
            "it is not one simple command, so it could never match: write words and plain quotes only, \
             and one rule for each command",
        )?;
        let mut parts = Vec::new();
        for word in &words {
            match word.kind {
                WordKind::Unknown => {
                    return Err(format!("`{}` is only known when it runs: write words as they are", word.text));
                }
                WordKind::Glob if parts.is_empty() => {
                    return Err(
                        "`*` stands for words after a program: name the program, or write the tool alone".into()
                    );
                }
                WordKind::Glob if word.text == "*" => parts.extend([Part::One, Part::Many]),
                WordKind::Glob => parts.push(Part::Is(Spelling::like(&word.text)?)),
                WordKind::Known => parts.push(Part::Is(Spelling::Word(word.text.clone()))),
            }
        }
        if open {
            parts.push(Part::Many);
        }
        Ok(CommandPattern(parts))
    }

    /// Whether `deed` is surely meant: all its words are known, and those that write or run others are spelled.
    pub(crate) fn covers(&self, deed: &Deed) -> bool {
        self.covers_argv(deed) && deed.sharp.iter().all(|sharp| self.spells(&deed.argv[sharp.at]))
            || deed.written.iter().any(|words| self.covers_wrapped(deed, words))
            || as_test(&deed.argv).is_some_and(|words| self.covers_words(&words))
    }

    /// Whether the pattern means the command with its wrapper in front: all of it, or the wrapper and the program.
    fn covers_wrapped(&self, deed: &Deed, words: &[Word]) -> bool {
        if self.is_literal() {
            return self.covers_words(words);
        }
        // `xargs` adds words behind its own.
        let own = deed.argv.strip_suffix(&[Word { put_in: true, kind: WordKind::Unknown, ..Word::known("…") }]);
        let Some(front) = words.strip_suffix(own.unwrap_or(&deed.argv)) else { return false };
        let is_clear = own.is_none() || deed.reach == Reach::Looks;
        let spelled = self.0.iter().take_while(|part| matches!(part, Part::Is(Spelling::Word(_)))).count();
        let sharp = deed.sharp.iter().all(|sharp| self.spells(&deed.argv[sharp.at]));
        !front.is_empty() && spelled > front.len() && sharp && is_clear && self.covers_words(words)
    }

    /// Of a command that only looks, whatever a wrapper puts in is known well enough, as no option of it does more; so
    /// is a stream it reads.
    fn covers_argv(&self, deed: &Deed) -> bool {
        let looks = deed.reach == Reach::Looks;
        let is_clear = |word: &Word| word.kind != WordKind::Unknown || looks && (word.put_in || word.is_stream());
        let words = &deed.argv;
        words.iter().all(is_clear)
            && matches(&self.0, words.len(), |at, want| words[at].kind == WordKind::Known && want.is(&words[at]))
    }

    fn covers_words(&self, words: &[Word]) -> bool {
        let known = words.iter().all(|word| word.kind != WordKind::Unknown);
        known && matches(&self.0, words.len(), |at, want| words[at].kind == WordKind::Known && want.is(&words[at]))
    }

    /// Whether `deed` may be meant, by any of its spellings.
    pub(crate) fn catches(&self, deed: &Deed) -> Fit {
        let spellings = [&deed.argv].into_iter().chain(&deed.also);
        spellings.map(|words| self.catches_words(words)).max().unwrap_or(Fit::No)
    }

    fn catches_words(&self, words: &[Word]) -> Fit {
        if words.is_empty() {
            return Fit::No;
        }
        if matches(&self.0, words.len(), |at, want| words[at].kind == WordKind::Known && want.is(&words[at])) {
            return Fit::Sure;
        }
        let unclear = words.iter().any(|word| word.kind != WordKind::Known);
        if unclear && self.may_meet(words) { Fit::Maybe } else { Fit::No }
    }

    /// Whether the pattern could match if unknown words turn out as it wants: an unknown word is any number of words.
    fn may_meet(&self, words: &[Word]) -> bool {
        // Row by row: which places of the pattern can be reached after each word.
        let mut reached = self.closure(vec![0]);
        for word in words {
            let mut next = Vec::new();
            for at in reached {
                let part = self.0.get(at);
                if word.kind == WordKind::Unknown {
                    next.extend(at..=self.0.len());
                    continue;
                }
                match part {
                    Some(Part::Many) => next.push(at),
                    Some(Part::One) => next.push(at + 1),
                    Some(Part::Is(want)) if want.may_be(word) => next.extend([at, at + 1]),
                    _ => {}
                }
            }
            next.sort_unstable();
            next.dedup();
            reached = self.closure(next);
        }
        reached.contains(&self.0.len())
    }

    /// `places` and those that are reached from them without a word.
    fn closure(&self, places: Vec<usize>) -> Vec<usize> {
        let mut all = places;
        let mut at = 0;
        while at < all.len() {
            let next = all[at] + 1;
            if matches!(self.0.get(all[at]), Some(Part::Many)) && !all.contains(&next) {
                all.push(next);
            }
            at += 1;
        }
        all
    }

    fn spells(&self, word: &Word) -> bool {
        self.0.iter().any(|part| matches!(part, Part::Is(Spelling::Word(own)) if *own == word.text))
    }

    /// It leaves nothing open.
    fn is_literal(&self) -> bool {
        self.0.iter().all(|part| matches!(part, Part::Is(Spelling::Word(_))))
    }
}

impl Spelling {
    fn like(text: &str) -> Result<Spelling, String> {
        let glob = GlobBuilder::new(text).literal_separator(false).backslash_escape(true).build();
        let glob = glob.map_err(|error| format!("`{text}`: {} (quote a literal sign)", error.kind()))?;
        Ok(Spelling::Like(glob.compile_matcher()))
    }

    fn is(&self, word: &Word) -> bool {
        match self {
            Spelling::Word(own) => *own == word.text,
            Spelling::Like(glob) => glob.is_match(&word.text),
        }
    }

    /// Whether a word of the command could become what is wanted: the fixed ends of its pattern must fit.
    fn may_be(&self, word: &Word) -> bool {
        if word.kind == WordKind::Known {
            return self.is(word);
        }
        let Spelling::Word(own) = self else { return true };
        let is_sign = |sign: char| matches!(sign, '*' | '?' | '[' | ']' | '{' | '}' | '\\');
        let front = word.text.split(is_sign).next().unwrap_or_default();
        let back = word.text.rsplit(is_sign).next().unwrap_or_default();
        own.starts_with(front) && own.ends_with(back)
    }
}

/// `[ a ]` as `test a`.
fn as_test(words: &[Word]) -> Option<Vec<Word>> {
    let [first, inner @ .., last] = words else { return None };
    let is_test = first.value() == Some("[") && last.value() == Some("]");
    is_test.then(|| [&[Word::known("test")], inner].concat())
}

/// Words that need no parser: the plain ones most rules are made of.
fn plain_words(text: &str) -> Option<Vec<Word>> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b" _-./:@%+,".contains(&byte);
    // `[` alone is a program, which no parser takes without its end.
    let is_word = |word: &str| matches!(word, "*" | "[" | "]") || word.bytes().all(is_plain);
    let words = text.split(' ').filter(|word| !word.is_empty());
    let word =
        |word: &str| Word { kind: if word == "*" { WordKind::Glob } else { WordKind::Known }, ..Word::known(word) };
    let plain = words.clone().all(is_word);
    plain.then(|| words.map(word).collect())
}
