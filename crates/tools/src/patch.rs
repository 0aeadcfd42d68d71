//! The patch format some models are trained on, read: which files, and which lines of them. Nothing is looked up here.

const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const ADD: &str = "*** Add File:";
const UPDATE: &str = "*** Update File:";
const DELETE: &str = "*** Delete File:";
const MOVE: &str = "*** Move to:";
const END_OF_FILE: &str = "*** End of File";
/// Characters of a wrong line that are shown.
const SHOWN_CHARS: usize = 80;

/// What a patch says of one file.
#[derive(Debug, PartialEq)]
pub(crate) enum Section<'a> {
    Add { path: &'a str, lines: Vec<&'a str> },
    Update { path: &'a str, to: Option<&'a str>, hunks: Vec<Hunk<'a>> },
    Delete { path: &'a str },
}

/// Lines that stand together in a file, and what becomes of them.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Hunk<'a> {
    /// Its place in the section, from 1.
    pub number: usize,
    /// The line of the patch it begins at, from 1.
    pub line: usize,
    /// Lines of the file that come before the place, from the outermost.
    pub headers: Vec<&'a str>,
    pub lines: Vec<Line<'a>>,
    /// How many of the last lines are empty context, or perhaps only space before what follows in the patch.
    pub bare: usize,
    pub ends_file: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Line<'a> {
    Context(&'a str),
    Removed(&'a str),
    Added(&'a str),
}

impl<'a> Section<'a> {
    /// The paths it touches, as written.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &'a str> {
        let (path, to) = match self {
            Section::Add { path, .. } | Section::Delete { path } => (*path, None),
            Section::Update { path, to, .. } => (*path, *to),
        };
        std::iter::once(path).chain(to)
    }
}

impl<'a> Line<'a> {
    /// The line as it stands in the file before; none if it is only put in.
    pub(crate) fn old(&self) -> Option<&'a str> {
        match self {
            Line::Context(text) | Line::Removed(text) => Some(text),
            Line::Added(_) => None,
        }
    }
}

/// A line of the patch and its number, from 1.
type Numbered<'a> = (usize, &'a str);

/// Reads a patch; the error names the line that is wrong and what belongs there.
pub(crate) fn parse(text: &str) -> Result<Vec<Section<'_>>, String> {
    let numbered: Vec<Numbered> = text.lines().enumerate().map(|(index, line)| (index + 1, line)).collect();
    let mut rest = body(unwrapped(trimmed(&numbered)))?;
    let mut sections = Vec::new();
    while let Some(((number, line), after)) = rest.split_first() {
        rest = after;
        if line.trim().is_empty() {
            continue;
        }
        let end = rest.iter().position(|(_, line)| begins_section(line)).unwrap_or(rest.len());
        let (own, next) = rest.split_at(end);
        sections.push(section(*number, line, own)?);
        rest = next;
    }
    match sections.is_empty() {
        true => Err(format!("the patch names no file; between its first and last line give `{ADD} PATH` or the like")),
        false => Ok(sections),
    }
}

/// Without the blank lines before and after.
fn trimmed<'l, 'a>(lines: &'l [Numbered<'a>]) -> &'l [Numbered<'a>] {
    let said = |(_, line): &Numbered| !line.trim().is_empty();
    let first = lines.iter().position(said).unwrap_or(lines.len());
    let last = lines.iter().rposition(said).map_or(first, |last| last + 1);
    &lines[first..last]
}

/// Without what a shell or a page would need around it: a here-document, a fence.
fn unwrapped<'l, 'a>(lines: &'l [Numbered<'a>]) -> &'l [Numbered<'a>] {
    let [(_, first), inner @ .., (_, last)] = lines else { return lines };
    let (first, last) = (first.trim(), last.trim());
    let marker = first.split_once("<<").map(|(_, word)| word.trim_start_matches('-').trim().trim_matches(['\'', '"']));
    let wrapped = marker.is_some_and(|marker| !marker.is_empty() && marker == last);
    let fenced = first.starts_with("```") && last == "```";
    if wrapped || fenced { trimmed(inner) } else { lines }
}

/// What stands between the first and the last line of the patch.
fn body<'l, 'a>(lines: &'l [Numbered<'a>]) -> Result<&'l [Numbered<'a>], String> {
    let Some(((_, first), rest)) = lines.split_first() else {
        return Err(format!("the patch is empty; it goes from `{BEGIN}` to `{END}`"));
    };
    if first.trim() != BEGIN {
        return Err(format!("the patch must begin with the line `{BEGIN}`, not `{}`", short(first)));
    }
    if let Some((_, body)) = rest.split_last().filter(|((_, last), _)| last.trim() == END) {
        return Ok(body);
    }
    match rest.iter().position(|(_, line)| line.trim_end() == END).map(|end| rest[end + 1]) {
        Some((number, line)) => Err(format!(
            "line {number} of the patch, `{}`, comes after `{END}`; put all files into one patch, and nothing behind it",
            short(line)
        )),
        None => Err(format!(
            "the patch does not end with the line `{END}`; if it was cut by the output limit, send it in smaller patches"
        )),
    }
}

fn begins_section(line: &str) -> bool {
    [ADD, UPDATE, DELETE].iter().any(|keyword| line.starts_with(keyword))
}

fn section<'a>(number: usize, head: &'a str, lines: &[Numbered<'a>]) -> Result<Section<'a>, String> {
    if let Some(path) = path_after(ADD, number, head)? {
        return Ok(Section::Add { path, lines: added(trimmed(lines))? });
    }
    if let Some(path) = path_after(DELETE, number, head)? {
        return match trimmed(lines) {
            [] => Ok(Section::Delete { path }),
            [(number, line), ..] => {
                Err(format!("line {number} of the patch, `{}`, follows `{DELETE}`, which takes no lines", short(line)))
            }
        };
    }
    let Some(path) = path_after(UPDATE, number, head)? else {
        return Err(format!(
            "line {number} of the patch, `{}`, belongs to no file; before it must stand `{ADD} PATH`, `{UPDATE} PATH` \
             or `{DELETE} PATH`",
            short(head)
        ));
    };
    let (to, lines) = match lines.split_first() {
        Some(((number, line), rest)) if line.starts_with(MOVE) => (path_after(MOVE, *number, line)?, rest),
        _ => (None, lines),
    };
    let hunks = hunks(lines)?;
    if hunks.is_empty() && to.is_none() {
        return Err(format!("line {number} of the patch: the update of {path} has no lines; give `@@` and the lines"));
    }
    Ok(Section::Update { path, to, hunks })
}

/// The path behind `keyword`, if the line begins with it.
fn path_after<'a>(keyword: &str, number: usize, line: &'a str) -> Result<Option<&'a str>, String> {
    match line.strip_prefix(keyword).map(str::trim) {
        Some("") => Err(format!("line {number} of the patch: after `{keyword}` comes a path")),
        path => Ok(path),
    }
}

fn added<'a>(lines: &[Numbered<'a>]) -> Result<Vec<&'a str>, String> {
    let content = |(number, line): &Numbered<'a>| match line.strip_prefix('+') {
        Some(line) => Ok(line),
        None if line.is_empty() => Ok(*line),
        None => Err(format!("line {number} of the patch, `{}`: each line of a new file begins with `+`", short(line))),
    };
    lines.iter().map(content).collect()
}

fn hunks<'a>(lines: &[Numbered<'a>]) -> Result<Vec<Hunk<'a>>, String> {
    let mut hunks: Vec<Hunk> = Vec::new();
    for (number, line) in lines {
        let open = hunks.last_mut().filter(|hunk| !hunk.ends_file);
        if let Some(header) = line.strip_prefix("@@") {
            match open.filter(|hunk| hunk.lines.is_empty()) {
                Some(hunk) => hunk.headers.extend(place(header)),
                None => hunks.push(Hunk { headers: place(header).into_iter().collect(), ..hunk(&hunks, *number) }),
            }
        } else if line.starts_with(MOVE) {
            return Err(format!("line {number} of the patch: `{MOVE}` must stand right below `{UPDATE}`"));
        } else if line.trim_end() == END_OF_FILE {
            let hunk =
                open.ok_or_else(|| format!("line {number} of the patch: no lines stand before `{END_OF_FILE}`"))?;
            hunk.ends_file = true;
        } else if let Some(hunk) = open {
            hunk.take(*number, line)?;
        } else if !line.trim().is_empty() {
            let mut hunk = hunk(&hunks, *number);
            hunk.take(*number, line)?;
            hunks.push(hunk);
        }
    }
    match hunks.iter().find(|hunk| hunk.lines.len() == hunk.bare) {
        Some(Hunk { number, line, .. }) => Err(format!("line {line} of the patch: hunk {number} has no lines")),
        None => Ok(hunks),
    }
}

fn hunk<'a>(before: &[Hunk], line: usize) -> Hunk<'a> {
    Hunk { number: before.len() + 1, line, ..Hunk::default() }
}

/// The line of the file that a header names; the line numbers of other diffs say nothing here.
fn place(header: &str) -> Option<&str> {
    let header = header.trim();
    let text = match header.split_once("@@") {
        Some((numbers, text)) if header.starts_with('-') && numbers.contains('+') => text.trim(),
        Some((text, "")) => text.trim(),
        _ => header,
    };
    (!text.is_empty()).then_some(text)
}

impl<'a> Hunk<'a> {
    fn take(&mut self, number: usize, line: &'a str) -> Result<(), String> {
        let taken = match line.split_at_checked(1) {
            None if line.is_empty() => Line::Context(line),
            Some((" ", text)) => Line::Context(text),
            Some(("-", text)) => Line::Removed(text),
            Some(("+", text)) => Line::Added(text),
            _ => {
                return Err(format!(
                    "line {number} of the patch, `{}`: each line of a hunk begins with a space (kept), `-` (removed) or \
                     `+` (added)",
                    short(line)
                ));
            }
        };
        self.bare = if taken == Line::Context("") { self.bare + 1 } else { 0 };
        self.lines.push(taken);
        Ok(())
    }
}

fn short(line: &str) -> String {
    match line.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Line::{Added, Context, Removed};

    fn body_of(lines: &str) -> String {
        format!("*** Begin Patch\n{lines}\n*** End Patch")
    }

    fn wrong(lines: &str) -> String {
        parse(&body_of(lines)).unwrap_err()
    }

    #[test]
    fn every_part_of_the_format_is_read() {
        let text = body_of(
            "*** Add File: new.py\n+one\n+\n+*** End Patch\n*** Update File: a.py\n*** Move to: b.py\n@@ class A\n\
             @@ def f():\n kept\n-old\n+new\n@@\n-last\n*** End of File\n*** Delete File: gone.py",
        );
        let first = Hunk {
            number: 1,
            line: 8,
            headers: vec!["class A", "def f():"],
            lines: vec![Context("kept"), Removed("old"), Added("new")],
            ..Hunk::default()
        };
        let last = Hunk { number: 2, line: 13, lines: vec![Removed("last")], ends_file: true, ..Hunk::default() };
        let read = parse(&text).unwrap();
        assert_eq!(read.iter().flat_map(Section::paths).collect::<Vec<_>>(), ["new.py", "a.py", "b.py", "gone.py"]);
        assert_eq!(
            read,
            [
                Section::Add { path: "new.py", lines: vec!["one", "", "*** End Patch"] },
                Section::Update { path: "a.py", to: Some("b.py"), hunks: vec![first, last] },
                Section::Delete { path: "gone.py" },
            ]
        );
    }

    #[test]
    fn what_models_wrap_around_a_patch_is_taken_off() {
        let bare = parse("*** Begin Patch\n*** Delete File: a\n*** End Patch").unwrap();
        for (before, after) in [
            ("<<'EOF'\n", "\nEOF"),
            ("apply_patch <<\"PATCH\"\n", "\nPATCH\n"),
            ("<<-EOF\n\n", "\n\nEOF\n"),
            ("```diff\n", "\n```\n"),
            ("\n\n  ", "  \n\n"),
        ] {
            let text = format!("{before}*** Begin Patch\n*** Delete File: a\n*** End Patch{after}");
            assert_eq!(parse(&text).unwrap(), bare, "{text}");
            assert_eq!(parse(&text.replace('\n', "\r\n")).unwrap(), bare, "{text}");
        }
    }

    #[test]
    fn an_empty_context_line_may_lack_its_space_and_the_first_hunk_its_header() {
        let text = body_of("*** Update File: a\n\n one\n\n-two\n\n*** Delete File: b\n");
        let lines = vec![Context("one"), Context(""), Removed("two"), Context("")];
        let hunk = Hunk { number: 1, line: 4, lines, bare: 1, ..Hunk::default() };
        assert_eq!(parse(&text).unwrap()[0], Section::Update { path: "a", to: None, hunks: vec![hunk] });
    }

    #[test]
    fn line_numbers_of_other_diffs_are_passed_over() {
        assert_eq!([place(" -1,4 +1,5 @@"), place(" -1 +1 @@ fn f()"), place("")], [None, Some("fn f()"), None]);
        assert_eq!(
            [place(" def f(): @@"), place(" @Test"), place(" a @@ b")],
            [Some("def f():"), Some("@Test"), Some("a @@ b")]
        );
    }

    #[test]
    fn s4_12_what_is_no_patch_is_told_by_its_line() {
        let whole = |text: &str| parse(text).unwrap_err();
        let errors = [
            whole(" \n"),
            whole("*** Update File: a\n*** End Patch"),
            whole("*** Begin Patch\n*** Update File: a\n@@\n-x"),
            whole("*** Begin Patch\n*** Delete File: a\n*** End Patch\nDone!"),
            wrong(""),
            wrong("@@\n-x"),
            wrong("*** Rename File: a"),
            wrong("*** Add File:\n+x"),
            wrong("*** Add File: a\nx"),
            wrong("*** Delete File: a\n-x"),
            wrong("*** Update File: a"),
            wrong("*** Update File: a\n@@ def f():"),
            wrong("*** Update File: a\n@@\n-x\ny"),
            wrong("*** Update File: a\n*** End of File"),
            wrong("*** Update File: a\n@@\n-x\n*** Move to: b"),
        ];
        insta::assert_snapshot!(errors.join("\n"), @r"
        the patch is empty; it goes from `*** Begin Patch` to `*** End Patch`
        the patch must begin with the line `*** Begin Patch`, not `*** Update File: a`
        the patch does not end with the line `*** End Patch`; if it was cut by the output limit, send it in smaller patches
        line 4 of the patch, `Done!`, comes after `*** End Patch`; put all files into one patch, and nothing behind it
        the patch names no file; between its first and last line give `*** Add File: PATH` or the like
        line 2 of the patch, `@@`, belongs to no file; before it must stand `*** Add File: PATH`, `*** Update File: PATH` or `*** Delete File: PATH`
        line 2 of the patch, `*** Rename File: a`, belongs to no file; before it must stand `*** Add File: PATH`, `*** Update File: PATH` or `*** Delete File: PATH`
        line 2 of the patch: after `*** Add File:` comes a path
        line 3 of the patch, `x`: each line of a new file begins with `+`
        line 3 of the patch, `-x`, follows `*** Delete File:`, which takes no lines
        line 2 of the patch: the update of a has no lines; give `@@` and the lines
        line 3 of the patch: hunk 1 has no lines
        line 5 of the patch, `y`: each line of a hunk begins with a space (kept), `-` (removed) or `+` (added)
        line 3 of the patch: no lines stand before `*** End of File`
        line 5 of the patch: `*** Move to:` must stand right below `*** Update File:`
        ");
    }
}
