//! Where a JSON object ends, told character by character.

use serde_json::{Map, Value};

/// How deep objects and lists may lie in one another.
const MAX_DEPTH: usize = 64;

/// An object being read, from behind its opening brace.
pub(super) struct Scan {
    /// The closing character of each object and list that is open.
    open: Vec<char>,
    at: At,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    /// A key, or the object's end.
    First,
    Key,
    InKey,
    Colon,
    Value,
    /// A value, or the list's end.
    FirstItem,
    InString,
    /// A number, `true`, `false` or `null`.
    Scalar,
    Behind,
    EscapeInKey,
    EscapeInString,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Seen {
    More,
    /// A key of the outermost object ends here.
    Key,
    /// The object ends here.
    End,
    /// This is no JSON.
    Wrong,
}

impl Scan {
    pub(super) fn new() -> Scan {
        Scan { open: vec!['}'], at: At::First }
    }

    pub(super) fn push(&mut self, c: char) -> Seen {
        let blank = matches!(c, ' ' | '\t' | '\r' | '\n');
        let next = match (self.at, c) {
            (At::InKey, '"') => {
                self.at = At::Colon;
                return if self.open.len() == 1 { Seen::Key } else { Seen::More };
            }
            (At::InKey, '\\') => At::EscapeInKey,
            (At::InKey, _) | (At::EscapeInKey, _) => At::InKey,
            (At::InString, '"') => At::Behind,
            (At::InString, '\\') => At::EscapeInString,
            (At::InString, _) | (At::EscapeInString, _) => At::InString,
            (At::Scalar, 'a'..='z' | 'E' | '0'..='9' | '+' | '-' | '.') => At::Scalar,
            (At::Scalar, _) if blank => At::Behind,
            (at, _) if blank => at,
            (At::First | At::Key, '"') => At::InKey,
            (At::Colon, ':') => At::Value,
            (At::Value | At::FirstItem, '"') => At::InString,
            (At::Value | At::FirstItem, '{') => return self.open('}', At::First),
            (At::Value | At::FirstItem, '[') => return self.open(']', At::FirstItem),
            (At::Value | At::FirstItem, '-' | '0'..='9' | 't' | 'f' | 'n') => At::Scalar,
            (At::Behind | At::Scalar, ',') if self.open.last() == Some(&'}') => At::Key,
            (At::Behind | At::Scalar, ',') => At::Value,
            (At::Behind | At::Scalar | At::First, '}') | (At::Behind | At::Scalar | At::FirstItem, ']') => {
                return self.close(c);
            }
            _ => return Seen::Wrong,
        };
        self.at = next;
        Seen::More
    }

    fn open(&mut self, end: char, at: At) -> Seen {
        self.open.push(end);
        self.at = at;
        if self.open.len() > MAX_DEPTH { Seen::Wrong } else { Seen::More }
    }

    fn close(&mut self, c: char) -> Seen {
        if self.open.pop() != Some(c) {
            return Seen::Wrong;
        }
        self.at = At::Behind;
        if self.open.is_empty() { Seen::End } else { Seen::More }
    }

    fn is_in_string(&self) -> bool {
        matches!(self.at, At::InKey | At::InString)
    }
}

/// The object that `text` is. Many models leave line ends within strings as they are: those count as escaped.
pub(super) fn object(text: &str) -> Option<Map<String, Value>> {
    match serde_json::from_str(text) {
        Ok(map) => Some(map),
        Err(_) if text.contains(|c: char| c.is_control()) => serde_json::from_str(&escaped(text)).ok(),
        Err(_) => None,
    }
}

fn escaped(text: &str) -> String {
    let (mut scan, mut out) = (Scan::new(), String::with_capacity(text.len() + 16));
    for (place, c) in text.char_indices() {
        match c {
            '\0'..='\x1f' if scan.is_in_string() => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            _ => out.push(c),
        }
        if place > 0 {
            scan.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is seen at the last character of the object that begins `text`, and how much lies behind it.
    fn seen(text: &str) -> (Seen, usize) {
        let mut scan = Scan::new();
        for (place, c) in text.char_indices().skip(1) {
            match scan.push(c) {
                Seen::More | Seen::Key => {}
                last => return (last, text.len() - place - c.len_utf8()),
            }
        }
        (Seen::More, 0)
    }

    #[test]
    fn an_object_ends_at_its_own_brace() {
        let whole = [
            "{}",
            r#"{"a":{"b":[1,-2.5E+3,{"c":"}"}]},"d":[]}"#,
            r#"{ "ä\"}" : [ true , false,null ] , "" : "\\" }"#,
            r#"{"a":1,"b":"[{"}"#,
        ];
        for text in whole {
            assert_eq!(seen(text), (Seen::End, 0), "{text}");
            assert_eq!(seen(&format!("{text} }}")), (Seen::End, 2), "{text}");
            assert!(object(text).is_some(), "{text}");
            for (cut, _) in text.char_indices().skip(1) {
                assert_eq!(seen(&text[..cut]).0, Seen::More, "{text} cut at {cut}");
            }
        }
    }

    #[test]
    fn what_is_no_json_is_seen_at_once() {
        let wrong =
            [("{a", 0), (r#"{"a" x1"#, 1), (r#"{"a":1]1"#, 1), (r#"{"a":[1}1"#, 1), ("{,12", 2), (r#"{"a":'b"#, 1)];
        for (text, left) in wrong {
            assert_eq!(seen(text), (Seen::Wrong, left), "{text}");
        }
        assert_eq!(seen(&r#"{"a":"#.repeat(MAX_DEPTH + 1)).0, Seen::Wrong);
    }

    #[test]
    fn line_ends_within_strings_count_as_escaped() {
        let map = object("{\n\"a\": \"x\n\ty\\n\",\r\n \"b\": 1}").unwrap();
        assert_eq!(Value::Object(map).to_string(), r#"{"a":"x\n\ty\n","b":1}"#);
        assert_eq!(object("{\"a\": tru\n}"), None);
    }
}
