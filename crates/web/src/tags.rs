//! HTML as a row of tags and texts. It need not agree with browsers on what is broken: all that is kept is written anew.

/// A part of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    /// Text with its character references; a `<` in it begins no tag.
    Text(&'a str),
    Open {
        name: &'a str,
        /// What stands between the name and the `>`.
        attributes: &'a str,
    },
    Close(&'a str),
    /// A comment or a declaration.
    Aside,
}

/// The first piece of `rest`, and what follows it. Each byte is looked at a fixed number of times.
pub(crate) fn piece(rest: &str) -> (Piece<'_>, &str) {
    let bytes = rest.as_bytes();
    if bytes.first() != Some(&b'<') {
        let end = rest.find('<').unwrap_or(rest.len());
        return (Piece::Text(&rest[..end]), &rest[end..]);
    }
    match bytes.get(1) {
        Some(b'!') if rest.starts_with("<!--") => (Piece::Aside, after(&rest[4..], "-->")),
        Some(b'!' | b'?') => (Piece::Aside, after(rest, ">")),
        Some(b'/') if bytes.get(2).is_some_and(u8::is_ascii_alphabetic) => {
            (Piece::Close(name(&rest[2..])), after(rest, ">"))
        }
        Some(letter) if letter.is_ascii_alphabetic() => open(rest),
        _ => (Piece::Text(&rest[..1]), &rest[1..]),
    }
}

/// What follows the first `mark`; nothing if there is none.
fn after<'a>(rest: &'a str, mark: &str) -> &'a str {
    rest.split_once(mark).map_or("", |(_, after)| after)
}

fn name(rest: &str) -> &str {
    let end = rest.find(|c: char| c.is_ascii_whitespace() || matches!(c, '/' | '>' | '<')).unwrap_or(rest.len());
    &rest[..end]
}

fn open(rest: &str) -> (Piece<'_>, &str) {
    let name = name(&rest[1..]);
    let start = 1 + name.len();
    match tag_end(rest.as_bytes(), start) {
        Some(end) => (Piece::Open { name, attributes: &rest[start..end] }, &rest[end + 1..]),
        None => (Piece::Aside, ""),
    }
}

/// Where the `>` of a tag stands: not within a quoted value.
fn tag_end(bytes: &[u8], start: usize) -> Option<usize> {
    let (mut at, mut is_value) = (start, false);
    while at < bytes.len() {
        match bytes[at] {
            b'>' => return Some(at),
            quote @ (b'"' | b'\'') if is_value => {
                at += 1 + bytes[at + 1..].iter().position(|byte| *byte == quote)?;
                is_value = false;
            }
            b'=' => is_value = true,
            byte if byte.is_ascii_whitespace() => {}
            _ => is_value = false,
        }
        at += 1;
    }
    None
}

/// The value of an attribute, as it is written.
pub(crate) fn attribute<'a>(attributes: &'a str, wanted: &str) -> Option<&'a str> {
    let mut rest = attributes;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '/' || c == '=');
        if rest.is_empty() {
            return None;
        }
        let end = rest.find(|c: char| c.is_ascii_whitespace() || c == '=' || c == '/').unwrap_or(rest.len());
        let (name, tail) = rest.split_at(end);
        let (value, tail) = match tail.trim_ascii_start().strip_prefix('=') {
            Some(tail) => value(tail.trim_ascii_start()),
            None => ("", tail),
        };
        if name.eq_ignore_ascii_case(wanted) {
            return Some(value);
        }
        rest = tail;
    }
}

fn value(rest: &str) -> (&str, &str) {
    match rest.chars().next() {
        Some(quote @ ('"' | '\'')) => rest[1..].split_once(quote).unwrap_or((&rest[1..], "")),
        _ => rest.split_at(rest.find(|c: char| c.is_ascii_whitespace()).unwrap_or(rest.len())),
    }
}

/// Where the text of an element ends that holds no tags, such as `script`.
pub(crate) fn raw_end(rest: &str, name: &str) -> usize {
    let closes = |at: usize| rest[at + 2..].get(..name.len()).is_some_and(|end| end.eq_ignore_ascii_case(name));
    rest.match_indices("</").map(|(at, _)| at).find(|at| closes(*at)).unwrap_or(rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(html: &str) -> String {
        let (mut rest, mut told) = (html, String::new());
        while !rest.is_empty() {
            let (piece, after) = piece(rest);
            told += &format!("{piece:?}\n");
            rest = after;
        }
        told
    }

    #[test]
    fn tags_comments_and_text_are_told_apart() {
        insta::assert_snapshot!(pieces("<!doctype html><p class='a>b' x>1 < 2<!-- <i> --></P ><br/>&lt;<a href=\"\">"), @r#"
        Aside
        Open { name: "p", attributes: " class='a>b' x" }
        Text("1 ")
        Text("<")
        Text(" 2")
        Aside
        Close("P")
        Open { name: "br", attributes: "/" }
        Text("&lt;")
        Open { name: "a", attributes: " href=\"\"" }
        "#);
        assert_eq!(pieces("a<b c=\"never closed>"), "Text(\"a\")\nAside\n");
    }

    #[test]
    fn attributes_are_found_however_they_are_written() {
        let attributes = " data-href=no HREF = 'a b' alt=x checked/";
        assert_eq!(attribute(attributes, "href"), Some("a b"));
        assert_eq!(attribute(attributes, "alt"), Some("x"));
        assert_eq!(attribute(attributes, "checked"), Some(""));
        assert_eq!(attribute(attributes, "src"), None);
    }
}
