//! The schema of an answer, as OpenAI's protocols are told of it.

use serde_json::{Value, json};

/// What a schema may hold and still be kept to the letter. (Anything else and the provider refuses `strict`.)
const STRICT: [&str; 20] = [
    "$defs",
    "$ref",
    "additionalProperties",
    "anyOf",
    "const",
    "description",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "items",
    "maxItems",
    "maximum",
    "minItems",
    "minimum",
    "multipleOf",
    "pattern",
    "properties",
    "required",
    "type",
];

/// The schema under its name, with `strict` where it allows that.
pub(crate) fn named(schema: &Value) -> Value {
    json!({ "name": "answer", "schema": schema, "strict": is_object(schema) && allows_strict(schema) })
}

/// What a model is told of the schema where its provider knows no schemas.
pub(crate) fn sentence(schema: &Value) -> String {
    format!("Your final answer is one JSON object and nothing else. It satisfies this JSON Schema: {schema}")
}

/// Whether the provider can hold a model to `schema`: it allows only what OpenAI's strict mode knows, every object is
/// closed and has all its properties required.
fn allows_strict(schema: &Value) -> bool {
    let Value::Object(fields) = schema else { return false };
    fields.keys().all(|key| STRICT.contains(&key.as_str()))
        && (!is_object(schema) || is_closed(schema))
        && ["properties", "$defs"].iter().all(|name| match fields.get(*name) {
            Some(Value::Object(parts)) => parts.values().all(allows_strict),
            other => other.is_none(),
        })
        && fields.get("items").is_none_or(allows_strict)
        && fields.get("anyOf").is_none_or(|parts| parts.as_array().is_some_and(|parts| parts.iter().all(allows_strict)))
}

fn is_object(schema: &Value) -> bool {
    match &schema["type"] {
        Value::Array(kinds) => kinds.iter().any(|kind| kind == "object"),
        kind => kind == "object",
    }
}

fn is_closed(schema: &Value) -> bool {
    let required = schema["required"].as_array();
    let is_required = |name: &String| required.is_some_and(|names| names.iter().any(|other| other == name));
    schema["additionalProperties"] == Value::Bool(false)
        && schema["properties"].as_object().is_some_and(|properties| properties.keys().all(is_required))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strict_is_asked_for_where_the_schema_allows_it() {
        let closed = |properties: Value, required: Value| json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false});
        let is_strict = |schema: Value| named(&schema)["strict"] == Value::Bool(true);
        assert!(is_strict(closed(json!({"a": {"type": "string"}}), json!(["a"]))));
        assert!(is_strict(closed(
            json!({"a": {"type": ["array", "null"], "items": {"anyOf": [{"type": "null"}]}}}),
            json!(["a"])
        )));
        assert!(!is_strict(closed(json!({"a": {}, "b": {}}), json!(["a"]))), "a property that may be absent");
        assert!(!is_strict(json!({"type": "object", "properties": {}, "required": []})), "an open object");
        assert!(!is_strict(closed(json!({"a": {"type": "string", "minLength": 1}}), json!(["a"]))), "an unknown word");
        assert!(!is_strict(closed(json!({"a": {"items": {"type": "object"}}}), json!(["a"]))), "an open object inside");
        assert!(!is_strict(json!({"type": "array", "items": {"type": "string"}})), "no object");
    }
}
