//! Arguments as one stable line of JSON, and `*` patterns over it.

use serde_json::Value;

/// Compact JSON with the keys of every object in order, so that the order a model chose does not matter.
pub(crate) fn canonical(value: &Value) -> String {
    let mut out = String::new();
    write(value, &mut out);
    out
}

fn write(value: &Value, out: &mut String) {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_by_key(|(key, _)| *key);
            write_list(out, ['{', '}'], entries.into_iter(), |(key, value), out| {
                out.push_str(&Value::from(key.as_str()).to_string());
                out.push(':');
                write(value, out);
            });
        }
        Value::Array(items) => write_list(out, ['[', ']'], items.iter(), write),
        plain => out.push_str(&plain.to_string()),
    }
}

fn write_list<T>(out: &mut String, ends: [char; 2], items: impl Iterator<Item = T>, each: impl Fn(T, &mut String)) {
    out.push(ends[0]);
    for (index, item) in items.enumerate() {
        if index > 0 {
            out.push(',');
        }
        each(item, out);
    }
    out.push(ends[1]);
}

/// A `*` pattern over the canonical JSON of a call's arguments.
#[derive(Clone, Debug)]
pub(crate) struct ArgumentPattern(Vec<Part<u8>>);

impl ArgumentPattern {
    /// Reads a pattern; says what is wrong with it and the way out.
    pub(crate) fn parse(text: &str) -> Result<ArgumentPattern, String> {
        if !text.starts_with(['{', '*']) {
            return Err(format!(
                "it can never match: arguments are compared as compact JSON with sorted keys, where only `*` is special; \
                 write for example `*\"NAME\":\"{text}\"*`"
            ));
        }
        let part = |byte| if byte == b'*' { Part::Many } else { Part::Is(byte) };
        Ok(ArgumentPattern(text.bytes().map(part).collect()))
    }

    pub(crate) fn matches(&self, canonical: &str) -> bool {
        matches(&self.0, canonical.len(), |place, want| canonical.as_bytes()[place] == *want)
    }
}

/// One place of a pattern over a row of things.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part<T> {
    /// Exactly this.
    Is(T),
    /// Any one.
    One,
    /// Any number, also none.
    Many,
}

/// Whether the whole row matches; `is(i, want)` compares the row's place `i`. Steps: at most pattern × row.
pub(crate) fn matches<T>(pattern: &[Part<T>], row: usize, is: impl Fn(usize, &T) -> bool) -> bool {
    let (mut at, mut place) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while place < row {
        match pattern.get(at) {
            Some(Part::Many) if at + 1 == pattern.len() => return true,
            Some(Part::Many) => {
                retry = Some((at, place));
                at += 1;
                continue;
            }
            Some(Part::One) => {
                (at, place) = (at + 1, place + 1);
                continue;
            }
            Some(Part::Is(want)) if is(place, want) => {
                (at, place) = (at + 1, place + 1);
                continue;
            }
            _ => {}
        }
        let Some((star, taken)) = retry else { return false };
        retry = Some((star, taken + 1));
        (at, place) = (star + 1, taken + 1);
    }
    pattern[at..].iter().all(|part| matches!(part, Part::Many))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_order_of_keys_does_not_matter() {
        let (one, two) = (
            json!({"b": [1, {"z": 1, "a": "\"x\""}], "a": null}),
            json!({"a": null, "b": [1, {"a": "\"x\"", "z": 1}]}),
        );
        assert_eq!(canonical(&one), canonical(&two));
        assert_eq!(canonical(&one), r#"{"a":null,"b":[1,{"a":"\"x\"","z":1}]}"#);
    }

    #[test]
    fn a_star_stands_for_anything() {
        for (pattern, text, expected) in [
            ("*", "{}", true),
            (r#"{"a":1}"#, r#"{"a":1}"#, true),
            (r#"*"a":"x*"*"#, r#"{"a":"xyz","b":2}"#, true),
            (r#"*"a":"x*"*"#, r#"{"a":"y"}"#, false),
            ("{*}*{", "{}}{", true),
            ("{**", "{", true),
            ("{*x", "{", false),
        ] {
            assert_eq!(ArgumentPattern::parse(pattern).unwrap().matches(text), expected, "{pattern} on {text}");
        }
        assert!(ArgumentPattern::parse("domain:docs.rs").unwrap_err().starts_with("it can never match"));
    }
}
