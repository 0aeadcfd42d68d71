//! One word: quotes removed, braces expanded, and what is left to the shell to compute.

use super::{Word, WordKind, ansi, brace, heredoc};

/// A piece of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Sign {
    /// Not quoted: it may be part of a pattern or a brace.
    Plain(char),
    /// Quoted: only itself.
    Quoted(char),
    /// Part of a pattern that a variable holds.
    Pattern(char),
    /// The beginning of a home that a variable holds.
    Home,
    /// Quotes with nothing in them.
    Empty,
    /// Computed by the shell: its source.
    Computed(String),
}

/// Where a word stands, which decides what the shell does to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spot {
    /// Falls into words: an argument.
    Argument,
    /// What a redirection names, or an item that stays one word.
    Single,
    /// The value of an assignment: no braces, no patterns.
    Value,
}

/// A loop's variable and what it holds in this round.
pub(super) type Binding = (String, Word);

pub(super) struct Reader<'t> {
    pub text: &'t str,
    /// Where substitutions start and end, sorted.
    pub substitutions: &'t [(usize, usize)],
    /// Words fall apart at other signs than blanks.
    pub splits_oddly: bool,
}

impl Reader<'_> {
    /// The words that the source from `start` to `end` becomes; none if it is not one word of source.
    pub(super) fn read(&self, start: usize, end: usize, spot: Spot, bound: &[Binding]) -> Option<Vec<Word>> {
        if let Some(word) = simple(&self.text[start..end]) {
            return Some(vec![word]);
        }
        let signs = self.signs(start, end, bound)?;
        let source = || unknown(&signs);
        let expanded = match spot {
            Spot::Value => Some(vec![signs.clone()]),
            _ => brace::expand(signs.clone()),
        };
        let Some(expanded) = expanded.filter(|words| spot == Spot::Argument || words.len() == 1) else {
            return Some(vec![source()]);
        };
        Some(
            expanded
                .iter()
                .filter(|signs| spot != Spot::Argument || !signs.is_empty())
                .map(|signs| finish(signs, spot))
                .collect(),
        )
    }

    fn signs(&self, start: usize, end: usize, bound: &[Binding]) -> Option<Vec<Sign>> {
        let mut signs = Vec::with_capacity(end - start);
        let mut at = start;
        let mut quoted = false;
        while at < end {
            let rest = &self.text[at..end];
            let sign = rest.chars().next()?;
            match sign {
                '\\' => at += self.backslash(&rest[1..], quoted, &mut signs)?,
                '"' => {
                    quoted = !quoted;
                    signs.push(Sign::Empty);
                    at += 1;
                }
                '\'' if !quoted => {
                    let inner = &rest[1..1 + rest[1..].find('\'')?];
                    signs.push(Sign::Empty);
                    signs.extend(inner.chars().map(Sign::Quoted));
                    at += inner.len() + 2;
                }
                '$' | '`' => at = self.computed(at, end, quoted, bound, &mut signs)?,
                '<' | '>' if !quoted => at = self.push_source(at, self.substitution(at)?, &mut signs),
                ' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | ')' if !quoted => return None,
                sign => {
                    signs.push(if quoted { Sign::Quoted(sign) } else { Sign::Plain(sign) });
                    at += sign.len_utf8();
                }
            }
        }
        (!quoted).then_some(signs)
    }

    /// What follows a backslash; how many bytes both are.
    fn backslash(&self, rest: &str, quoted: bool, signs: &mut Vec<Sign>) -> Option<usize> {
        let sign = rest.chars().next()?;
        if sign != '\n' {
            if quoted && !matches!(sign, '$' | '`' | '"' | '\\') {
                signs.push(Sign::Quoted('\\'));
            }
            signs.push(Sign::Quoted(sign));
        }
        Some(1 + sign.len_utf8())
    }

    fn substitution(&self, at: usize) -> Option<usize> {
        let place = self.substitutions.binary_search_by_key(&at, |(start, _)| *start).ok()?;
        Some(self.substitutions[place].1)
    }

    fn push_source(&self, at: usize, end: usize, signs: &mut Vec<Sign>) -> usize {
        signs.push(Sign::Computed(self.text[at..end].into()));
        end
    }

    /// `$…` or a backquote at `at`; where it ends.
    fn computed(&self, at: usize, end: usize, quoted: bool, bound: &[Binding], signs: &mut Vec<Sign>) -> Option<usize> {
        let rest = &self.text[at + 1..end];
        let next = rest.chars().next();
        if self.text[at..].starts_with('`') {
            return Some(self.push_source(at, self.substitution(at)?, signs));
        }
        match next {
            Some('(' | '{') => {
                let stop = self.substitution(at)?;
                if let Some(text) = heredoc::constant(&self.text[at..stop]).filter(|_| quoted) {
                    signs.extend(text.chars().map(Sign::Quoted));
                    return Some(stop);
                }
                let name = self.text[at..stop].strip_prefix("${").and_then(|name| name.strip_suffix('}'));
                if !self.push_bound(name.unwrap_or_default(), quoted, bound, signs) {
                    self.push_source(at, stop, signs);
                }
                Some(stop)
            }
            Some('\'') if !quoted => {
                let inner = &rest[1..1 + ansi_end(&rest[1..])?];
                signs.push(Sign::Empty);
                match ansi::decode(inner) {
                    Some(text) => signs.extend(text.chars().map(Sign::Quoted)),
                    None => signs.push(Sign::Computed(inner.into())),
                }
                Some(at + inner.len() + 3)
            }
            Some('"') if !quoted => Some(self.push_source(at, at + 1, signs)),
            Some('[') => None,
            Some(sign) if sign.is_ascii_alphabetic() || sign == '_' => {
                let length = rest.bytes().take_while(|sign| sign.is_ascii_alphanumeric() || *sign == b'_').count();
                if !self.push_bound(&rest[..length], quoted, bound, signs) {
                    self.push_source(at, at + 1 + length, signs);
                }
                Some(at + 1 + length)
            }
            Some(sign) if sign.is_ascii_digit() || "?#$!@*-".contains(sign) => {
                Some(self.push_source(at, at + 2, signs))
            }
            _ => {
                signs.push(Sign::Quoted('$'));
                Some(at + 1)
            }
        }
    }

    /// Puts what a loop's variable holds; false if that is not known.
    fn push_bound(&self, name: &str, quoted: bool, bound: &[Binding], signs: &mut Vec<Sign>) -> bool {
        let Some((_, word)) = bound.iter().rev().find(|(own, _)| own == name) else { return false };
        let splits =
            word.text.is_empty() || self.splits_oddly || word.text.contains([' ', '\t', '\n', '*', '?', '[', '\\']);
        if word.kind == WordKind::Unknown || !quoted && (splits || word.kind == WordKind::Glob) {
            return false;
        }
        let mut text = word.text.chars();
        if word.tilde {
            if signs.iter().any(|sign| *sign != Sign::Empty) {
                return false;
            }
            text.next();
            signs.push(Sign::Home);
        }
        let pattern = word.kind == WordKind::Glob;
        signs.extend(text.map(|sign| if pattern { Sign::Pattern(sign) } else { Sign::Quoted(sign) }));
        true
    }
}

/// A word of signs that mean nothing to the shell, which most are.
fn simple(text: &str) -> Option<Word> {
    let plain = |sign: u8| sign.is_ascii_alphanumeric() || b"-_./:,@+%^!#]=".contains(&sign) || sign >= 0x80;
    (!text.is_empty() && text.bytes().all(plain)).then(|| Word::known(text))
}

fn ansi_end(text: &str) -> Option<usize> {
    let mut escaped = false;
    text.bytes().position(|sign| {
        let ends = sign == b'\'' && !escaped;
        escaped = sign == b'\\' && !escaped;
        ends
    })
}

/// A word that only the shell knows: its source, as far as it can be read, without quotes.
fn unknown(signs: &[Sign]) -> Word {
    let mut word = Word { kind: WordKind::Unknown, tilde: is_home(signs), ..Word::default() };
    for sign in signs {
        match sign {
            Sign::Plain(sign) | Sign::Quoted(sign) | Sign::Pattern(sign) => word.text.push(*sign),
            Sign::Home => word.text.push('~'),
            Sign::Empty => {}
            Sign::Computed(source) => word.text.push_str(source),
        }
        word.quoted |= matches!(sign, Sign::Quoted(_) | Sign::Empty);
    }
    word
}

/// All that is computed in it are numbers (`$?`, `$#`, `$$`, `$!`): it is one word, and no other than it looks.
fn is_number(signs: &[Sign]) -> bool {
    let is_plain = |sign: &Sign| match sign {
        Sign::Computed(source) => matches!(&source[..], "$?" | "$#" | "$$" | "$!"),
        Sign::Plain(sign) => !matches!(sign, '*' | '?' | '[' | '~'),
        Sign::Quoted(_) | Sign::Empty => true,
        Sign::Pattern(_) | Sign::Home => false,
    };
    signs.iter().all(is_plain)
}

fn is_home(signs: &[Sign]) -> bool {
    let leads = signs.iter().find(|sign| **sign != Sign::Empty) == Some(&Sign::Home);
    if leads || signs.first() != Some(&Sign::Plain('~')) {
        return leads;
    }
    let end = signs.iter().position(|sign| *sign == Sign::Plain('/')).unwrap_or(signs.len());
    signs[..end].iter().all(|sign| matches!(sign, Sign::Plain(_)))
}

fn finish(signs: &[Sign], spot: Spot) -> Word {
    let word = unknown(signs);
    let glob = spot != Spot::Value && is_glob(signs);
    if has_inner_home(signs, spot) {
        return word;
    }
    if signs.iter().any(|sign| matches!(sign, Sign::Computed(_))) {
        return Word { put_in: is_number(signs), ..word };
    }
    // Quotes within `[…]` change what it stands for.
    let brackets = signs.contains(&Sign::Plain('['));
    let quoted_within = |sign: &Sign| matches!(sign, Sign::Quoted('[' | ']' | '-' | '!' | '^' | '\\'));
    match glob {
        false => Word { kind: WordKind::Known, ..word },
        true if brackets && signs.iter().any(quoted_within) => word,
        true => Word { kind: WordKind::Glob, text: pattern(signs), ..word },
    }
}

fn is_glob(signs: &[Sign]) -> bool {
    let star = |sign: &Sign| matches!(sign, Sign::Plain('*' | '?') | Sign::Pattern(_));
    let bracket = signs.iter().position(|sign| *sign == Sign::Plain('['));
    let closes = |sign: &Sign| matches!(sign, Sign::Plain(']') | Sign::Quoted(']'));
    signs.iter().any(star) || bracket.is_some_and(|at| signs[at..].iter().any(closes))
}

/// The text as a pattern: what was quoted stands only for itself.
fn pattern(signs: &[Sign]) -> String {
    let mut text = String::new();
    for sign in signs {
        match sign {
            Sign::Quoted(sign @ ('*' | '?' | '[')) => text.extend(['[', *sign, ']']),
            Sign::Plain(sign) | Sign::Quoted(sign) | Sign::Pattern(sign) => text.push(*sign),
            Sign::Home => text.push('~'),
            Sign::Empty | Sign::Computed(_) => {}
        }
    }
    text
}

/// `name=~/x` and `a:~/x`, where the shell may put a home.
fn has_inner_home(signs: &[Sign], spot: Spot) -> bool {
    let after = |pair: &[Sign]| matches!(pair, [Sign::Plain('=' | ':'), Sign::Plain('~')]);
    if !signs.windows(2).any(after) {
        return false;
    }
    let name = signs.iter().take_while(|sign| **sign != Sign::Plain('='));
    let is_name = |sign: &Sign| matches!(sign, Sign::Plain(sign) if sign.is_ascii_alphanumeric() || matches!(sign, '_' | '+' | '[' | ']'));
    spot == Spot::Value || name.clone().count() < signs.len() && name.clone().all(is_name)
}
