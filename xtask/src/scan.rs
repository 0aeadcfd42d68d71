//! Rust source read as far as the checks need it: what is code, what is comment, where functions and tests are.

use std::ops::Range;
use std::path::PathBuf;

const EVERY_LINE: Range<usize> = 0..usize::MAX;

/// One source file.
pub struct Source {
    /// Relative to the checkout, with `/`.
    pub path: PathBuf,
    pub text: String,
    /// The text with comments and the insides of literals blanked; lines and columns stay.
    pub code: String,
    /// The comments alone; lines and columns stay.
    pub prose: String,
    /// Line ranges (from 0) that are compiled for tests only.
    tests: Vec<Range<usize>>,
}

/// A function with a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    pub name: String,
    /// Its first line, from 1.
    pub line: usize,
    /// Lines from `fn` to the closing brace.
    pub length: usize,
}

impl Source {
    pub fn new(path: impl Into<PathBuf>, text: impl Into<String>) -> Source {
        let (path, text) = (path.into(), text.into());
        let (code, prose) = split(&text);
        let tests = if is_test_file(&path) { vec![EVERY_LINE] } else { test_regions(&code) };
        Source { path, text, code, prose, tests }
    }

    /// The folder under `crates/`, or `xtask`.
    pub fn package(&self) -> String {
        let mut parts = self.path.iter().map(|part| part.to_string_lossy().into_owned());
        match parts.next() {
            Some(first) if first == "crates" => parts.next().unwrap_or_default(),
            first => first.unwrap_or_default(),
        }
    }

    /// Whether the line (from 0) is compiled for tests only.
    pub fn is_test(&self, line: usize) -> bool {
        self.tests.iter().any(|range| range.contains(&line))
    }

    /// Takes the whole file for test code: its module is declared under `#[cfg(test)]`.
    pub fn mark_test(&mut self) {
        self.tests = vec![EVERY_LINE];
    }

    /// Modules in files of their own that are declared for tests only.
    pub fn test_modules(&self) -> Vec<String> {
        let lines: Vec<&str> = self.code.lines().map(str::trim).collect();
        let pairs = lines.windows(2).filter(|pair| pair[0] == "#[cfg(test)]");
        pairs
            .filter_map(|pair| pair[1].strip_prefix("mod ")?.strip_suffix(';'))
            .map(|name| name.trim().to_string())
            .collect()
    }

    /// Code lines outside tests, numbered from 1.
    pub fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.code.lines().enumerate().filter(|(line, _)| !self.is_test(*line)).map(|(line, text)| (line + 1, text))
    }

    /// How many lines stand outside tests.
    pub fn length(&self) -> usize {
        self.lines().count()
    }

    /// Functions with a body, outside tests.
    pub fn functions(&self) -> Vec<Function> {
        functions(&self.code).into_iter().filter(|function| !self.is_test(function.line - 1)).collect()
    }

    /// Names of the functions that a test attribute or a property macro makes tests: all that stand in test code.
    pub fn test_functions(&self) -> Vec<Function> {
        functions(&self.code).into_iter().filter(|function| self.is_test(function.line - 1)).collect()
    }
}

fn is_test_file(path: &std::path::Path) -> bool {
    let folder = |name: &str| path.parent().is_some_and(|parent| parent.iter().any(|part| part == name));
    folder("tests") || folder("benches") || folder("examples")
}

/// Whether `code` has `word` (letters, `::`, `!`, `.`) with no name character on either side.
pub fn has_word(code: &str, word: &str) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let guarded =
        |edge: Option<char>, beside: Option<char>| !(edge.is_some_and(is_name) && beside.is_some_and(is_name));
    code.match_indices(word).any(|(at, _)| {
        guarded(word.chars().next(), code[..at].chars().next_back())
            && guarded(word.chars().next_back(), code[at + word.len()..].chars().next())
    })
}

/// The text's code and its comments, each with the rest blanked.
fn split(text: &str) -> (String, String) {
    let bytes = text.as_bytes();
    let mut code = bytes.to_vec();
    let mut prose = blank(bytes);
    let mut at = 0;
    while at < bytes.len() {
        let (end, kind) = piece(bytes, at);
        match kind {
            Piece::Code => {}
            Piece::Literal => code[at..end].copy_from_slice(&blank(&bytes[at..end])),
            Piece::Comment => {
                code[at..end].copy_from_slice(&blank(&bytes[at..end]));
                prose[at..end].copy_from_slice(&bytes[at..end]);
            }
        }
        at = end;
    }
    (String::from_utf8_lossy(&code).into_owned(), String::from_utf8_lossy(&prose).into_owned())
}

enum Piece {
    Code,
    Literal,
    Comment,
}

/// Every byte a space, line ends kept.
fn blank(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().map(|byte| if *byte == b'\n' { b'\n' } else { b' ' }).collect()
}

/// Where the piece of source at `at` ends, and what it is.
fn piece(bytes: &[u8], at: usize) -> (usize, Piece) {
    let rest = &bytes[at..];
    let in_name = at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_');
    match rest {
        [b'/', b'/', ..] => (at + rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len()), Piece::Comment),
        [b'/', b'*', ..] => (block_comment(bytes, at), Piece::Comment),
        [b'"', ..] => (string_end(bytes, at + 1), Piece::Literal),
        [b'r', b'"' | b'#', ..] if !in_name => raw_string(bytes, at + 1),
        [b'b', b'r', b'"' | b'#', ..] if !in_name => raw_string(bytes, at + 2),
        [b'\'', b'\\', ..] => (char_end(bytes, at + 3), Piece::Literal),
        [b'\'', _, b'\'', ..] => (at + 3, Piece::Literal),
        [b'\'', first, ..] if !first.is_ascii() => (char_end(bytes, at + 1), Piece::Literal),
        _ => (at + 1, Piece::Code),
    }
}

fn block_comment(bytes: &[u8], start: usize) -> usize {
    let (mut depth, mut at) = (0, start);
    while at < bytes.len() {
        match &bytes[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at
}

fn string_end(bytes: &[u8], mut at: usize) -> usize {
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn char_end(bytes: &[u8], from: usize) -> usize {
    let rest = bytes.get(from..).unwrap_or_default();
    from + rest.iter().position(|byte| *byte == b'\'').map_or(rest.len(), |quote| quote + 1)
}

/// `r"…"`, `r#"…"#` and so on; `r#name` is code. `at` is behind the `r`.
fn raw_string(bytes: &[u8], at: usize) -> (usize, Piece) {
    let hashes = bytes[at..].iter().take_while(|byte| **byte == b'#').count();
    if bytes.get(at + hashes) != Some(&b'"') {
        return (at, Piece::Code);
    }
    let mut close = vec![b'"'];
    close.resize(hashes + 1, b'#');
    let from = at + hashes + 1;
    let end = bytes[from..].windows(close.len()).position(|window| window == close);
    (end.map_or(bytes.len(), |end| from + end + close.len()), Piece::Literal)
}

/// The end of the `{…}` that begins at or after `from`; none if a `;` comes first.
fn body(code: &str, from: usize) -> Option<Range<usize>> {
    let (mut depth, mut open, mut round) = (0, None, 0);
    for (at, byte) in code.bytes().enumerate().skip(from) {
        match byte {
            b'(' | b'[' => round += 1,
            b')' | b']' => round -= 1,
            b';' if depth == 0 && round == 0 => return None,
            b'{' => {
                depth += 1;
                open.get_or_insert(at);
            }
            b'}' => {
                depth -= 1;
                if depth == 0 {
                    return Some(open?..at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

fn line_of(code: &str, at: usize) -> usize {
    code.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count()
}

fn test_regions(code: &str) -> Vec<Range<usize>> {
    let starts = ["#[cfg(test)]", "#[test]", "#[tokio::test"].into_iter().flat_map(|mark| code.match_indices(mark));
    starts
        .filter_map(|(at, mark)| {
            let body = body(code, at + mark.len())?;
            Some(line_of(code, at)..line_of(code, body.end) + 1)
        })
        .collect()
}

fn functions(code: &str) -> Vec<Function> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("fn ") {
        let before = code[..at].chars().next_back();
        if before.is_some_and(|c| c.is_alphanumeric() || c == '_') {
            continue;
        }
        let name: String = code[at + 3..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        let Some(body) = body(code, at).filter(|_| !name.is_empty()) else { continue };
        let (first, last) = (line_of(code, at), line_of(code, body.end));
        found.push(Function { name, line: first + 1, length: last - first + 1 });
    }
    found
}

/// The variants of `enum NAME` in `code`, in order.
pub fn variants(code: &str, name: &str) -> Vec<String> {
    let Some(at) = code.find(&format!("enum {name} {{")) else { return Vec::new() };
    let Some(body) = body(code, at) else { return Vec::new() };
    let (mut depth, mut fresh, mut found) = (0, true, Vec::new());
    let inside = &code[body.start + 1..body.end - 1];
    for (at, c) in inside.char_indices() {
        match c {
            '{' | '(' | '[' => depth += 1,
            '}' | ')' | ']' => depth -= 1,
            ',' if depth == 0 => fresh = true,
            c if c.is_alphabetic() && depth == 0 && fresh => {
                fresh = false;
                found.push(inside[at..].chars().take_while(|c| c.is_alphanumeric()).collect());
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_no_code() {
        let source = Source::new(
            "crates/x/src/a.rs",
            "let a = \"unsafe \\\" { \"; // unsafe {\nlet b = r#\"unsafe \" {\"#; /* unsafe /* { */ */ let c = '{';\nlet r#type = 'x: loop { break 'x; };",
        );
        assert!(!source.code.contains("unsafe"), "{}", source.code);
        assert_eq!(source.code.matches('{').count(), 1);
        assert!(source.code.contains("break 'x"));
        assert_eq!(source.prose.matches("unsafe").count(), 2);
        assert_eq!(source.code.len(), source.text.len());
    }

    #[test]
    fn functions_are_measured_and_tests_set_apart() {
        let source = Source::new(
            "crates/x/src/a.rs",
            "fn one() {}\ntrait T {\n    fn none(&self);\n}\npub fn two(a: [u8; 2]) -> u8 {\n    if a[0] > 0 {\n        1\n    } else { 2 }\n}\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn three() {}\n}\n",
        );
        let told: Vec<_> = source.functions().into_iter().map(|f| (f.name, f.line, f.length)).collect();
        assert_eq!(told, [("one".to_string(), 1, 1), ("two".to_string(), 5, 5)]);
        assert_eq!(source.test_functions().len(), 1);
        assert_eq!(source.length(), 9);
    }

    #[test]
    fn a_whole_file_may_be_test_code() {
        assert!(Source::new("crates/x/tests/story.rs", "fn a() {}").functions().is_empty());
        let parent = Source::new("crates/x/src/lib.rs", "#[cfg(test)]\nmod stories;\nmod other;\n");
        assert_eq!(parent.test_modules(), ["stories"]);
    }

    #[test]
    fn words_end_where_names_end() {
        assert!(has_word("use std::env::var;", "std::env"));
        assert!(!has_word("use std::environment;", "std::env"));
        assert!(has_word("x.await", ".await"));
        assert!(!has_word("my_std::env()", "std::env"));
    }

    #[test]
    fn variants_are_named_in_order() {
        let code = "pub enum Event {\n    #[serde(default)]\n    Opened { a: Option<B>, c: D },\n    Asked(Box<Asked>),\n    DeadlinePassed,\n}";
        assert_eq!(variants(code, "Event"), ["Opened", "Asked", "DeadlinePassed"]);
    }
}
