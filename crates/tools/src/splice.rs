//! Replacing text in text, and nothing beside it: line ends and byte order marks stay as they are.

use crate::file::{BOM, similarity};
use std::borrow::Cow;

/// Lines looked at for one like the text that was not found.
const MAX_COMPARED_LINES: usize = 5_000;
/// Characters of a line that are compared and shown.
pub(crate) const SHOWN_CHARS: usize = 160;
/// Line numbers told of a text that occurs more than once.
const MAX_TOLD_LINES: usize = 10;
/// Likeness below which a line is no hint.
const LIKE: f32 = 0.6;

/// What a replacement gave.
#[derive(Debug, PartialEq)]
pub(crate) struct Spliced {
    pub text: String,
    pub replacements: usize,
}

/// Replaces `old`, which must occur once or, with `all`, at least once. Line ends in `old` match either kind;
/// those in `new` become the kind that prevails in `text`.
pub(crate) fn splice(text: &str, old: &str, new: &str, all: bool) -> Result<Spliced, String> {
    let (old, new) = (unix(old), unix(new));
    let old = old.strip_prefix(BOM).unwrap_or(&old);
    if old.is_empty() {
        return Err("`old` is empty; give the text to replace, or use write for a whole file".into());
    }
    if *old == *new {
        return Err("`old` and `new` are the same; there is nothing to change".into());
    }
    let view = View::new(text);
    let places = view.places(old, all)?;
    let new: Cow<'_, str> = if view.mostly_crlf() { new.replace('\n', "\r\n").into() } else { new };
    let mut spliced = String::with_capacity(text.len() + new.len());
    let mut done = 0;
    for place in &places {
        spliced.push_str(&text[done..view.origin(*place)]);
        spliced.push_str(&new);
        done = view.origin(place + old.len());
    }
    spliced.push_str(&text[done..]);
    Ok(Spliced { text: spliced, replacements: places.len() })
}

fn unix(text: &str) -> Cow<'_, str> {
    if text.contains("\r\n") { text.replace("\r\n", "\n").into() } else { text.into() }
}

/// A text with its line ends made `\n`, and the way back to where each byte came from.
struct View<'a> {
    text: Cow<'a, str>,
    /// Where in `text` the line ends are that were `\r\n`.
    crlf: Vec<usize>,
}

impl<'a> View<'a> {
    fn new(text: &'a str) -> View<'a> {
        let crlf = text.match_indices("\r\n").enumerate().map(|(before, (at, _))| at - before).collect();
        View { text: unix(text), crlf }
    }

    /// The place in the original text of a place in this one.
    fn origin(&self, place: usize) -> usize {
        place + self.crlf.partition_point(|end| *end < place)
    }

    fn mostly_crlf(&self) -> bool {
        !self.crlf.is_empty() && self.crlf.len() * 2 >= self.text.matches('\n').count()
    }

    fn places(&self, old: &str, all: bool) -> Result<Vec<usize>, String> {
        let places: Vec<usize> = self.text.match_indices(old).map(|(at, _)| at).collect();
        let Some(first) = places.first() else { return Err(not_found(&self.text, old)) };
        // Overlapping occurrences count too: which one is meant cannot be known.
        let step = old.chars().next().map_or(1, char::len_utf8);
        let again = places.get(1).copied().or_else(|| self.text[first + step..].find(old).map(|at| first + step + at));
        match again {
            Some(again) if !all => Err(ambiguous(&self.text, &places, again)),
            _ => Ok(places),
        }
    }
}

fn ambiguous(text: &str, places: &[usize], again: usize) -> String {
    let line = |place: &usize| (text[..*place].matches('\n').count() + 1).to_string();
    let places = if places.len() > 1 { places.to_vec() } else { vec![places[0], again] };
    let lines: Vec<String> = places.iter().take(MAX_TOLD_LINES).map(line).collect();
    let more = if places.len() > MAX_TOLD_LINES { ", …" } else { "" };
    format!(
        "`old` occurs {} times (lines {}{more}); add lines around it until it is unique, or set replace_all",
        places.len(),
        lines.join(", ")
    )
}

fn not_found(text: &str, old: &str) -> String {
    if old.lines().all(numbered) {
        return "`old` was not found; leave out the line numbers that read puts before each line".into();
    }
    let wanted = old.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("");
    let Some((number, line, score)) = nearest(text.lines(), wanted) else {
        return "`old` was not found; read the file again and copy the text exactly".into();
    };
    let how = if score >= 1.0 { "line ends, indentation or a later line differ" } else { "it differs" };
    let line: String = line.chars().take(SHOWN_CHARS).collect();
    format!("`old` was not found; most like its first line is line {number}, but {how}: `{line}`")
}

/// Whether a line begins as `read` numbers them.
fn numbered(line: &str) -> bool {
    line.split_once('\t').is_some_and(|(number, _)| {
        let number = number.trim();
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// The line most like `wanted`: its number, itself, and how like it is (1: but for white space, the same).
pub(crate) fn nearest<'a>(lines: impl Iterator<Item = &'a str>, wanted: &str) -> Option<(usize, &'a str, f32)> {
    let cut = |line: &str| line.chars().take(SHOWN_CHARS).collect::<String>();
    let short = cut(wanted);
    let mut best: Option<(usize, &str, f32)> = None;
    for (index, line) in lines.enumerate().take(MAX_COMPARED_LINES) {
        let score = if line.trim() == wanted { 1.0 } else { similarity(&cut(line.trim()), &short).min(0.99) };
        if score >= LIKE && best.is_none_or(|(_, _, other)| score > other) {
            best = Some((index + 1, line, score));
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    fn once(text: &str, old: &str, new: &str) -> Result<String, String> {
        splice(text, old, new, false).map(|spliced| spliced.text)
    }

    #[test]
    fn one_place_is_replaced_and_the_rest_is_not_touched() {
        assert_eq!(once("a b c", "b", "B").unwrap(), "a B c");
        assert_eq!(once("no newline at the end", "end", "start").unwrap(), "no newline at the start");
        assert_eq!(splice("x x x", "x", "y", true).unwrap(), Spliced { text: "y y y".into(), replacements: 3 });
    }

    #[test]
    fn windows_line_ends_and_the_mark_stay() {
        assert_eq!(once("\u{feff}a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz").unwrap(), "\u{feff}x\r\ny\r\nz\r\nc\r\n");
        assert_eq!(once("a\r\nb\r\n", "\nb", "\nc").unwrap(), "a\r\nc\r\n");
        assert_eq!(once("a\r\nb\r\n", "a\r\nb", "c").unwrap(), "c\r\n");
    }

    #[test]
    fn of_mixed_line_ends_those_outside_the_place_stay() {
        assert_eq!(once("a\r\nb\nc\r\nd\r\n", "c", "C\nC").unwrap(), "a\r\nb\nC\r\nC\r\nd\r\n");
        assert_eq!(once("a\nb\nc\r\nd\n", "b\nc", "x\ny").unwrap(), "a\nx\ny\r\nd\n");
    }

    #[test]
    fn what_is_not_unique_is_told_by_line() {
        let text = "one\ntwo\none\n";
        insta::assert_snapshot!(once(text, "one", "1").unwrap_err(), @"`old` occurs 2 times (lines 1, 3); add lines around it until it is unique, or set replace_all");
        insta::assert_snapshot!(once("aaa", "aa", "b").unwrap_err(), @"`old` occurs 2 times (lines 1, 1); add lines around it until it is unique, or set replace_all");
    }

    #[test]
    fn what_is_not_found_is_told_with_the_nearest_line() {
        let text = "fn main() {\n    let port = 8080;\n}\n";
        insta::assert_snapshot!(once(text, "let prt = 8080;", "x").unwrap_err(), @"`old` was not found; most like its first line is line 2, but it differs: `    let port = 8080;`");
        insta::assert_snapshot!(once(text, "\tlet port = 8080;\n\t}", "x").unwrap_err(), @"`old` was not found; most like its first line is line 2, but line ends, indentation or a later line differ: `    let port = 8080;`");
        insta::assert_snapshot!(once(text, "2\t    let port = 8080;", "x").unwrap_err(), @"`old` was not found; leave out the line numbers that read puts before each line");
        insta::assert_snapshot!(once(text, "nothing like it", "x").unwrap_err(), @"`old` was not found; read the file again and copy the text exactly");
    }

    #[test]
    fn nothing_to_do_is_refused() {
        insta::assert_snapshot!(once("a", "", "b").unwrap_err(), @"`old` is empty; give the text to replace, or use write for a whole file");
        insta::assert_snapshot!(once("a", "a", "a").unwrap_err(), @"`old` and `new` are the same; there is nothing to change");
    }
}
