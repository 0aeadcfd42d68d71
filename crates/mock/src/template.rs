//! Text with `${name}` in it, and JSON values made of such text.

use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// What `${name}` stands for in one answer.
pub type Names = BTreeMap<String, String>;

/// Names every answer knows; the others are the step's captures.
pub const KNOWN: [&str; 4] = ["i", "k", "n", "sid"];

/// Refuses a text that quotes a name outside `known`, or does not close its brace.
pub fn check(text: &str, known: &[&str]) -> Result<(), String> {
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let literal = at > 0 && rest.as_bytes()[at - 1] == b'$';
        rest = &rest[at + 2..];
        if literal {
            continue;
        }
        let end = rest.find('}').ok_or("`${` without `}`: write `$${` for the two characters themselves")?;
        let name = &rest[..end];
        if !known.contains(&name) {
            let known = known.join(", ");
            return Err(format!(
                "`${{{name}}}` is unknown here: known are {known}; add it to the step's `capture`, or write `$${{{name}}}` for the text itself"
            ));
        }
    }
    Ok(())
}

/// The text with its names filled in and `$${` made `${`. A text without `${` is not copied.
pub fn fill<'a>(text: &'a str, names: &Names) -> Cow<'a, str> {
    if !text.contains("${") {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 32);
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let (before, tail) = (&rest[..at], &rest[at + 2..]);
        if let Some(before) = before.strip_suffix('$') {
            out.push_str(before);
            out.push_str("${");
            rest = tail;
            continue;
        }
        out.push_str(before);
        // `check` has seen the closing brace and the name when the script was parsed.
        let end = tail.find('}').unwrap_or(tail.len());
        out.push_str(names.get(&tail[..end]).map_or("", String::as_str));
        rest = tail.get(end + 1..).unwrap_or("");
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// `check` for every string of a value.
pub fn check_value(value: &Value, known: &[&str]) -> Result<(), String> {
    match value {
        Value::String(text) => check(text, known),
        Value::Array(items) => items.iter().try_for_each(|item| check_value(item, known)),
        Value::Object(map) => map.values().try_for_each(|item| check_value(item, known)),
        _ => Ok(()),
    }
}

/// A copy of the value with every string filled.
pub fn fill_value(value: &Value, names: &Names) -> Value {
    match value {
        Value::String(text) => Value::String(fill(text, names).into_owned()),
        Value::Array(items) => Value::Array(items.iter().map(|item| fill_value(item, names)).collect()),
        Value::Object(map) => Value::Object(map.iter().map(|(k, v)| (k.clone(), fill_value(v, names))).collect()),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fills_names_and_keeps_escaped_ones() {
        let names = Names::from([("port".to_string(), "8080".to_string())]);
        assert_eq!(fill("port = ${port}!", &names), "port = 8080!");
        assert_eq!(fill("echo $${port} ${port}${port}", &names), "echo ${port} 80808080");
        assert!(matches!(fill("plain $ text", &names), Cow::Borrowed(_)));
    }

    #[test]
    fn an_unknown_name_says_the_way_out() {
        assert_eq!(check("$${HOME} ${i}", &KNOWN), Ok(()));
        let error = check("cd ${HOME}", &KNOWN).unwrap_err();
        assert!(error.contains("`${HOME}` is unknown here: known are i, k, n, sid"), "{error}");
        assert!(check("${i", &KNOWN).unwrap_err().contains("without `}`"));
    }
}
