//! Arguments as models send them: JSON in text, other names for a field, null for "not given".

use serde::Deserialize;
use serde_json::{Map, Value};

/// The names other agents gave to the arguments of their file tools, and ours.
pub(crate) const FILE_ALIASES: [(&str, &str); 3] =
    [("file_path", "path"), ("old_string", "old"), ("new_string", "new")];

/// The arguments as a value of the tool's own type; the message names the field that is wrong.
pub(crate) fn parse<'a, T: Deserialize<'a>>(input: &'a Value) -> Result<T, String> {
    T::deserialize(input).map_err(|error| format!("wrong arguments: {error}"))
}

/// Renames aliased fields and drops those that are null.
pub(crate) fn normalise(input: Value, aliases: &[(&str, &str)]) -> Value {
    let Value::Object(fields) = input else { return input };
    let mut kept = Map::new();
    for (name, value) in fields.into_iter().filter(|(_, value)| !value.is_null()) {
        let known = aliases.iter().find(|(alias, _)| *alias == name).map(|(_, name)| (*name).to_owned());
        match known {
            Some(name) => _ = kept.entry(name).or_insert(value),
            None => _ = kept.insert(name, value),
        }
    }
    Value::Object(kept)
}

/// The JSON object in `input`; text that holds one is read, text that does not is refused, saying where it broke.
pub(crate) fn object(tool: &str, input: &Value) -> Result<Value, String> {
    match input {
        Value::Object(_) => Ok(input.clone()),
        Value::Null => Ok(Value::Object(Map::new())),
        Value::String(text) if text.trim().is_empty() => Ok(Value::Object(Map::new())),
        Value::String(text) => match serde_json::from_str::<Value>(text) {
            Ok(value @ Value::Object(_)) => Ok(value),
            Ok(other) => Err(no_object(tool, &other)),
            Err(error) => Err(broken(tool, text, &error)),
        },
        other => Err(no_object(tool, other)),
    }
}

fn no_object(tool: &str, value: &Value) -> String {
    let kind = kind_of(value);
    format!("wrong arguments for {tool}: got {kind}, expected one JSON object.\nCall {tool} again with an object.")
}

fn broken(tool: &str, text: &str, error: &serde_json::Error) -> String {
    let near = text.lines().nth(error.line().saturating_sub(1)).unwrap_or("");
    let upto = near.floor_char_boundary(error.column().min(near.len()));
    let from = near.ceil_char_boundary(upto.saturating_sub(40));
    let cause = if error.is_eof() {
        "The text broke off before the object was closed; if it was cut by the output limit, do the work in smaller calls."
    } else {
        "Inside strings, quotes, backslashes and line ends must be escaped."
    };
    format!(
        "wrong arguments for {tool}: no valid JSON: {error}, after `{}`.\n{cause} Call {tool} again with one JSON object.",
        &near[from..upto]
    )
}

/// What kind of JSON `value` is, with its article.
pub(crate) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn aliases_give_way_to_the_real_name_and_nulls_are_dropped() {
        let input = json!({"file_path": "a", "old_string": "x", "old": "y", "limit": null});
        assert_eq!(normalise(input, &FILE_ALIASES), json!({"path": "a", "old": "y"}));
    }

    #[test]
    fn text_that_holds_an_object_is_taken_as_one() {
        assert_eq!(object("read", &json!("{\"path\": \"a\"}")), Ok(json!({"path": "a"})));
        assert_eq!(object("ls", &json!("")), Ok(json!({})));
    }

    #[test]
    fn broken_json_is_shown_where_it_broke() {
        let error = object("write", &json!("{\"path\": \"a.txt\", \"content\": \"hal")).unwrap_err();
        insta::assert_snapshot!(error, @r#"
        wrong arguments for write: no valid JSON: EOF while parsing a string at line 1 column 33, after `{"path": "a.txt", "content": "hal`.
        The text broke off before the object was closed; if it was cut by the output limit, do the work in smaller calls. Call write again with one JSON object.
        "#);
        let error = object("write", &json!("{\"path\": a.txt}")).unwrap_err();
        insta::assert_snapshot!(error, @r#"
        wrong arguments for write: no valid JSON: expected value at line 1 column 10, after `{"path": a`.
        Inside strings, quotes, backslashes and line ends must be escaped. Call write again with one JSON object.
        "#);
        let error = object("write", &json!([1])).unwrap_err();
        insta::assert_snapshot!(error, @r"
        wrong arguments for write: got an array, expected one JSON object.
        Call write again with an object.
        ");
    }
}
