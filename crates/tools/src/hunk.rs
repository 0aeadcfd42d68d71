//! The hunks of a patch, found in a text and put in: byte order mark, line ends and the last line's end stay.

use crate::file::BOM;
use crate::patch::{Hunk, Line};
use crate::splice::{SHOWN_CHARS, nearest};

/// Places looked at for the one most like a hunk that was not found.
const MAX_COMPARED_PLACES: usize = 5_000;
/// Lines of a hunk that are compared there.
const MAX_COMPARED_LINES: usize = 100;
/// Line numbers told of a hunk that fits more than one place.
const MAX_TOLD_PLACES: usize = 10;

/// A line of a file: its text, and its end.
type Whole<'a> = (&'a str, &'a str);

/// How much alike two lines must be, from the strictest.
#[derive(Clone, Copy)]
enum Fit {
    Exact,
    TrailingSpace,
    Space,
    /// Also typographic quotes, dashes and spaces for those of a keyboard.
    Typography,
}

const FITS: [Fit; 4] = [Fit::Exact, Fit::TrailingSpace, Fit::Space, Fit::Typography];

impl Fit {
    fn holds(self, a: &str, b: &str) -> bool {
        match self {
            Fit::Exact => a == b,
            Fit::TrailingSpace => a.trim_end() == b.trim_end(),
            Fit::Space => a.trim() == b.trim(),
            Fit::Typography => a.trim().chars().map(plain).eq(b.trim().chars().map(plain)),
        }
    }
}

fn plain(sign: char) -> char {
    match sign {
        '\u{2018}'..='\u{201b}' | '\u{2032}' => '\'',
        '\u{201c}'..='\u{201f}' | '\u{2033}' => '"',
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => ' ',
        sign => sign,
    }
}

/// The text with the hunks put in, in their order; the error names the hunk and what is there instead.
pub(crate) fn patched(text: &str, hunks: &[Hunk]) -> Result<String, String> {
    let (mark, text) = text.strip_prefix(BOM).map_or(("", text), |rest| (BOM, rest));
    let lines: Vec<Whole> = text.split_inclusive('\n').map(whole).collect();
    let end = prevailing(&lines);
    let mut made: Vec<Whole> = Vec::with_capacity(lines.len());
    let mut done = 0;
    for hunk in hunks {
        let place = Search { lines: &lines, done, hunk }.place();
        let (at, kept) =
            place.map_err(|why| format!("hunk {} (line {} of the patch) {why}", hunk.number, hunk.line))?;
        made.extend(&lines[done..at]);
        done = at;
        for line in kept {
            match line {
                Line::Added(text) => made.push((text, end)),
                // The file's own line, where the patch has it a little differently.
                Line::Context(_) => made.push(lines[done]),
                Line::Removed(_) => {}
            }
            done += usize::from(line.old().is_some());
        }
    }
    made.extend(&lines[done..]);
    let ended = lines.last().is_none_or(|(_, end)| !end.is_empty());
    Ok(mark.to_owned() + &joined(&made, end, ended))
}

fn whole(line: &str) -> Whole<'_> {
    let text = line.strip_suffix('\n').unwrap_or(line);
    let text = if text.len() < line.len() { text.strip_suffix('\r').unwrap_or(text) } else { text };
    (text, &line[text.len()..])
}

/// The line end that most lines have.
fn prevailing(lines: &[Whole]) -> &'static str {
    let with = |wanted: &str| lines.iter().filter(|(_, end)| *end == wanted).count();
    let crlf = with("\r\n");
    if crlf > 0 && crlf >= with("\n") { "\r\n" } else { "\n" }
}

/// The lines as a text; `ended` says whether its last line has an end.
fn joined(lines: &[Whole], end: &str, ended: bool) -> String {
    let mut text = String::with_capacity(lines.iter().map(|(line, _)| line.len() + 2).sum());
    for (index, (line, own)) in lines.iter().enumerate() {
        let is_last = index + 1 == lines.len();
        text.push_str(line);
        match (is_last && !ended, own.is_empty()) {
            (true, _) => {}
            (false, true) => text.push_str(end),
            (false, false) => text.push_str(own),
        }
    }
    text
}

/// The search for the place of one hunk; `done` lines belong to the hunks before it.
struct Search<'s, 'a> {
    lines: &'s [Whole<'a>],
    done: usize,
    hunk: &'s Hunk<'a>,
}

impl<'s, 'a> Search<'s, 'a> {
    /// Where the hunk belongs, and the lines of it that count.
    fn place(&self) -> Result<(usize, &'s [Line<'a>]), String> {
        let all = &self.hunk.lines[..];
        let header = self.header()?;
        if all.iter().all(|line| line.old().is_none()) {
            return self.insertion(header).map(|at| (at, all));
        }
        let from = header.map_or(self.done, |header| header.max(self.done));
        for kept in [all, &all[..all.len() - self.hunk.bare]] {
            let old: Vec<&str> = kept.iter().filter_map(Line::old).collect();
            let fitting = FITS.iter().map(|fit| self.places(&old, from, *fit)).find(|places| !places.is_empty());
            match fitting.as_deref() {
                Some([at]) => return Ok((*at, kept)),
                // A header says where to begin, so what comes first after it is meant.
                Some([at, ..]) if header.is_some() => return Ok((*at, kept)),
                Some(places) => return Err(ambiguous(places)),
                None => {}
            }
        }
        Err(self.not_found(from))
    }

    /// The line that the last header names; none if there are no headers.
    fn header(&self) -> Result<Option<usize>, String> {
        if self.hunk.headers.is_empty() {
            return Ok(None);
        }
        // What is below a header may take several hunks, each of which names it.
        match self.chain(self.done).or_else(|_| self.chain(0)) {
            Ok(at) => Ok(Some(at)),
            Err(header) => {
                Err(format!("was not found: no line is `{header}`, as its `@@` says{}", self.like(header, 0)))
            }
        }
    }

    /// The line of the last header, each looked for after the one before it; or the header that is missing.
    fn chain(&self, from: usize) -> Result<usize, &'a str> {
        let mut next = from;
        for header in &self.hunk.headers {
            let line = |fit: &Fit| (next..self.lines.len()).find(|at| fit.holds(self.lines[*at].0, header));
            let begins = || (next..self.lines.len()).find(|at| self.lines[*at].0.trim_start().starts_with(header));
            next = 1 + FITS.iter().find_map(line).or_else(begins).ok_or(*header)?;
        }
        Ok(next - 1)
    }

    /// Where lines go that have none of the file beside them.
    fn insertion(&self, header: Option<usize>) -> Result<usize, String> {
        match header {
            _ if self.hunk.ends_file || self.lines.is_empty() => Ok(self.lines.len()),
            Some(header) => Ok(self.done.max(header + 1)),
            None => Err("only adds lines and does not say where; give it a line of the file before or after them, a \
                         `@@` header, or `*** End of File`"
                .into()),
        }
    }

    /// All places from line `from` on where `old` fits.
    fn places(&self, old: &[&str], from: usize, fit: Fit) -> Vec<usize> {
        let Some(last) = self.lines.len().checked_sub(old.len()) else { return Vec::new() };
        let from = if self.hunk.ends_file { from.max(last) } else { from };
        (from..=last).filter(|at| self.fits(old, *at, fit)).collect()
    }

    fn fits(&self, old: &[&str], at: usize, fit: Fit) -> bool {
        old.iter().zip(&self.lines[at..]).all(|(old, line)| fit.holds(old, line.0))
    }

    fn not_found(&self, from: usize) -> String {
        let old: Vec<&str> = self.hunk.lines.iter().filter_map(Line::old).collect();
        let before = FITS.iter().find_map(|fit| self.places(&old, 0, *fit).first().copied());
        if let Some(before) = before {
            let cause = match self.hunk.headers.is_empty() {
                true => "which the hunk above it has passed; give the hunks in the order of the file",
                false => "before what its `@@` says; mend the `@@`, or give the hunks in the order of the file",
            };
            return format!("fits at line {}, {cause}", before + 1);
        }
        let ends = self.lines.len().saturating_sub(old.len());
        if let Some(at) = (0..ends).find(|at| self.hunk.ends_file && self.fits(&old, *at, Fit::Typography)) {
            return format!("fits at line {}, not at the end of the file, as its `*** End of File` says", at + 1);
        }
        let wanted = if self.hunk.ends_file { " at the end of the file" } else { "" };
        let after = if from > 0 { format!(" after line {from}") } else { String::new() };
        format!("was not found{wanted}{after}{}", self.nearest_place(&old, from))
    }

    /// Words for the place where the most lines of `old` stand, and the first that does not.
    fn nearest_place(&self, old: &[&str], from: usize) -> String {
        let old = &old[..old.len().min(MAX_COMPARED_LINES)];
        let same = |at: usize| {
            let pairs = old.iter().zip(&self.lines[at..]);
            pairs.filter(|(old, line)| !old.trim().is_empty() && Fit::Typography.holds(old, line.0)).count()
        };
        let places = (from..self.lines.len()).take(MAX_COMPARED_PLACES);
        // Of places equally near, the first.
        let best = places.map(|at| (same(at), at)).max_by_key(|(count, at)| (*count, usize::MAX - at));
        let Some((count, at)) = best.filter(|(count, _)| *count > 0) else {
            let first = old.iter().find(|line| !line.trim().is_empty()).copied().unwrap_or_default();
            return self.like(first, from);
        };
        let differs =
            |index: &usize| self.lines.get(at + index).is_none_or(|line| !Fit::Typography.holds(old[*index], line.0));
        let index = (0..old.len()).find(differs).unwrap_or(0);
        let there = match self.lines.get(at + index) {
            Some((line, _)) => format!("line {} is `{}`", at + index + 1, cut(line)),
            None => "the file ends".into(),
        };
        let of = old.len();
        format!(
            "; nearest is line {}, where {count} of its {of} lines fit, but for `{}` {there}",
            at + 1,
            cut(old[index])
        )
    }

    /// Words for the line most like `wanted`.
    fn like(&self, wanted: &str, from: usize) -> String {
        let lines = self.lines[from..].iter().map(|(line, _)| *line);
        match nearest(lines, wanted.trim()) {
            Some((number, line, _)) => {
                format!("; most like `{}` is line {}: `{}`", cut(wanted), from + number, cut(line))
            }
            None => "; read the file again and copy its lines exactly".into(),
        }
    }
}

fn ambiguous(places: &[usize]) -> String {
    let told: Vec<String> = places.iter().take(MAX_TOLD_PLACES).map(|at| (at + 1).to_string()).collect();
    let more = if places.len() > MAX_TOLD_PLACES { ", …" } else { "" };
    format!(
        "fits {} places (lines {}{more}); give more lines around it, or a `@@` header naming a line before it",
        places.len(),
        told.join(", ")
    )
}

fn cut(line: &str) -> String {
    line.chars().take(SHOWN_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patch::{Section, parse};
    use proptest::prelude::*;
    use similar::TextDiff;

    /// Puts the hunks of a patch for one file into `text`.
    fn apply(text: &str, hunks: &str) -> Result<String, String> {
        let patch = format!("*** Begin Patch\n*** Update File: a\n{hunks}\n*** End Patch\n");
        let Section::Update { hunks, .. } = parse(&patch)?.remove(0) else { unreachable!("it is an update") };
        patched(text, &hunks)
    }

    fn wrong(text: &str, hunks: &str) -> String {
        apply(text, hunks).unwrap_err()
    }

    #[test]
    fn lines_are_found_by_looking_less_and_less_closely() {
        let text = "first\n  say(\u{201c}hi\u{201d}) \u{2014} twice  \nlast\n";
        for old in [
            "  say(\u{201c}hi\u{201d}) \u{2014} twice  ",
            "  say(\u{201c}hi\u{201d}) \u{2014} twice",
            "say(\u{201c}hi\u{201d}) \u{2014} twice",
            "say(\"hi\") - twice",
        ] {
            assert_eq!(apply(text, &format!("@@\n first\n-{old}\n+done")).unwrap(), "first\ndone\nlast\n", "{old}");
            let kept = apply(text, &format!("@@\n {old}\n-last\n+end")).unwrap();
            assert_eq!(kept, text.replace("last", "end"), "a line that stays is the file's own: {old}");
        }
        // The closer fit wins over the first.
        assert_eq!(apply("  x\nx\n", "@@\n-x\n+y").unwrap(), "  x\ny\n");
    }

    #[test]
    fn windows_line_ends_and_the_mark_stay() {
        let text = "\u{feff}one\r\ntwo\r\nthree\r\n";
        assert_eq!(apply(text, "@@\n one\n-two\n+2\n+2b").unwrap(), "\u{feff}one\r\n2\r\n2b\r\nthree\r\n");
        assert_eq!(apply("a\nb\r\nc\n", "@@\n-c\n+C").unwrap(), "a\nb\r\nC\n", "of mixed line ends, the others stay");
    }

    #[test]
    fn a_missing_last_line_end_stays_missing() {
        assert_eq!(apply("one\ntwo", "@@\n-two\n+2").unwrap(), "one\n2");
        assert_eq!(apply("one\ntwo", "@@\n two\n+three").unwrap(), "one\ntwo\nthree");
        assert_eq!(apply("one\r\ntwo", "@@\n-two").unwrap(), "one");
        assert_eq!(apply("one\n", "@@\n-one").unwrap(), "");
        assert_eq!(apply("", "@@\n+one").unwrap(), "one\n");
    }

    #[test]
    fn a_hunk_may_be_held_to_the_end_of_the_file() {
        let text = "x\ny\nx\n";
        assert_eq!(apply(text, "@@\n-x\n+z\n*** End of File").unwrap(), "x\ny\nz\n");
        assert_eq!(apply(text, "@@\n+z\n*** End of File").unwrap(), "x\ny\nx\nz\n");
        assert_eq!(apply(text, "@@\n y\n-x\n+z\n \n*** End of File").unwrap(), "x\ny\nz\n", "an empty line too many");
        assert_eq!(apply(text, "@@\n-x\n+1\n@@\n-x\n+2\n*** End of File"), Err("hunk 1 (line 3 of the patch) fits 2 places (lines 1, 3); give more lines around it, or a `@@` header naming a line before it".into()));
        insta::assert_snapshot!(wrong(text, "@@\n x\n-y\n*** End of File"), @"hunk 1 (line 3 of the patch) fits at line 1, not at the end of the file, as its `*** End of File` says");
        insta::assert_snapshot!(wrong(text, "@@\n-w\n*** End of File"), @"hunk 1 (line 3 of the patch) was not found at the end of the file; read the file again and copy its lines exactly");
    }

    const TWINS: &str = "class A:\n    def f(self):\n        return 1\n\n    def g(self):\n        return 1\n\nclass B(Base):\n    \
                         def f(self):\n        return 1\n";

    fn third(hunks: &str) -> Vec<usize> {
        let made = apply(TWINS, hunks).unwrap();
        let changed = made.lines().enumerate().filter(|(_, line)| line.ends_with('2'));
        changed.map(|(index, _)| index + 1).collect()
    }

    #[test]
    fn headers_tell_like_places_apart() {
        let change = "-        return 1\n+        return 2";
        assert_eq!(third(&format!("@@ def f(self):\n{change}")), [3]);
        assert_eq!(third(&format!("@@ def g(self):\n{change}")), [6]);
        assert_eq!(third(&format!("@@ class B\n{change}")), [10], "the beginning of a line will do");
        assert_eq!(third(&format!("@@ class B(Base):\n@@     def f(self):\n{change}")), [10]);
        assert_eq!(third(&format!("@@ def g(self):\n     def g(self):\n{change}")), [6], "its line may be in the hunk");
        assert_eq!(third(&format!("@@ class A:\n{change}\n@@ class A:\n{change}")), [3, 6], "named twice");
        let added = apply(TWINS, "@@ class B(Base):\n+    \"\"\"Twin.\"\"\"").unwrap();
        assert!(added.contains("class B(Base):\n    \"\"\"Twin.\"\"\"\n    def f"), "{added}");
    }

    #[test]
    fn s4_12_a_hunk_without_its_one_place_says_what_is_there() {
        let change = "-        return 1\n+        return 2";
        let errors = [
            wrong(TWINS, &format!("@@\n{change}")),
            wrong(TWINS, &format!("@@ def h(self):\n{change}")),
            wrong(TWINS, "@@\n     def g(self):\n-        return 3"),
            wrong(TWINS, "@@\n     def g(self):\n         return 1\n \n-class C:"),
            wrong(TWINS, "@@\n-class BB(Base):\n+x"),
            wrong(TWINS, "@@\n-something else\n+x"),
            wrong(TWINS, "@@\n-class B(Base):\n+class B:\n@@\n-class A:\n+class AA:"),
            wrong(TWINS, "@@ class B\n-class A:"),
            wrong(TWINS, "@@\n+x"),
            wrong("one\n", "@@\n one\n-two"),
            wrong("", "@@\n-two"),
        ];
        insta::assert_snapshot!(errors.join("\n"), @r"
        hunk 1 (line 3 of the patch) fits 3 places (lines 3, 6, 10); give more lines around it, or a `@@` header naming a line before it
        hunk 1 (line 3 of the patch) was not found: no line is `def h(self):`, as its `@@` says; most like `def h(self):` is line 2: `    def f(self):`
        hunk 1 (line 3 of the patch) was not found; nearest is line 5, where 1 of its 2 lines fit, but for `        return 3` line 6 is `        return 1`
        hunk 1 (line 3 of the patch) was not found; nearest is line 5, where 2 of its 4 lines fit, but for `class C:` line 8 is `class B(Base):`
        hunk 1 (line 3 of the patch) was not found; most like `class BB(Base):` is line 8: `class B(Base):`
        hunk 1 (line 3 of the patch) was not found; read the file again and copy its lines exactly
        hunk 2 (line 6 of the patch) fits at line 1, which the hunk above it has passed; give the hunks in the order of the file
        hunk 1 (line 3 of the patch) fits at line 1, before what its `@@` says; mend the `@@`, or give the hunks in the order of the file
        hunk 1 (line 3 of the patch) only adds lines and does not say where; give it a line of the file before or after them, a `@@` header, or `*** End of File`
        hunk 1 (line 3 of the patch) was not found; nearest is line 1, where 1 of its 2 lines fit, but for `two` the file ends
        hunk 1 (line 3 of the patch) was not found; read the file again and copy its lines exactly
        ");
    }

    /// The hunks from `old` to `new`, with three lines of context.
    fn hunks(old: &str, new: &str) -> String {
        let diff = TextDiff::from_lines(old, new);
        let lines = diff.grouped_ops(3).into_iter().flat_map(|group| {
            let changes = group.iter().flat_map(|op| diff.iter_changes(op)).collect::<Vec<_>>();
            let told = changes
                .iter()
                .map(|change| format!("{}{}", change.tag(), change.value().trim_end_matches(['\r', '\n'])));
            std::iter::once("@@".to_owned()).chain(told.collect::<Vec<_>>())
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    /// What to do at a line: most stay, some go, some get others before them.
    fn edited(old: &[String], edits: &[u8]) -> Vec<String> {
        let mut new = Vec::new();
        for (index, line) in old.iter().enumerate() {
            match edits[index % edits.len()] {
                0 => {}
                1 => new.push(format!("changed {index}")),
                2 => new.extend([format!("put in {index}"), line.clone()]),
                _ => new.push(line.clone()),
            }
        }
        new
    }

    fn text(lines: &[String], end: &str, ended: bool) -> String {
        let text = lines.join(end);
        if ended && !lines.is_empty() { text + end } else { text }
    }

    proptest! {
        #[test]
        fn a_patch_made_from_two_texts_makes_one_from_the_other(
            words in prop::collection::vec("[ a-z\u{e4}\t+@*-]{0,12}", 1..60),
            edits in prop::collection::vec(0u8..12, 1..40),
            crlf in any::<bool>(),
            ended in any::<bool>(),
        ) {
            // Where no line has an end, none can be kept.
            let end = if crlf && (ended || words.len() > 1) { "\r\n" } else { "\n" };
            let old: Vec<String> = words.iter().enumerate().map(|(index, word)| format!("{word}{index}")).collect();
            let new = edited(&old, &edits);
            if old == new {
                return Ok(());
            }
            let (old, new) = (text(&old, end, ended), text(&new, end, ended));
            prop_assert_eq!(apply(&old, &hunks(&text(&lines_of(&old), "\n", true), &text(&lines_of(&new), "\n", true))), Ok(new));
        }

        #[test]
        fn of_like_lines_the_wrong_ones_are_never_taken(
            old in prop::collection::vec("[ab]?", 1..30),
            edits in prop::collection::vec(0u8..12, 1..30),
        ) {
            let new = edited(&old, &edits);
            if old == new {
                return Ok(());
            }
            let (old, new) = (text(&old, "\n", true), text(&new, "\n", true));
            match apply(&old, &hunks(&old, &new)) {
                Ok(made) => prop_assert_eq!(made, new),
                Err(why) => prop_assert!(why.contains(" places (lines "), "{}", why),
            }
        }
    }

    fn lines_of(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }
}
