//! A JSON Schema made fit for the API, which takes a part of the language only.
//!
//! What it does not take is said in the description instead; the answer is held against the whole schema afterwards.

use serde_json::{Map, Value};

/// Keywords whose value is kept as it is.
const KEPT: [&str; 8] = ["type", "enum", "const", "title", "description", "required", "$ref", "default"];
/// Keywords that hold one schema or several in order.
const NESTED: [&str; 3] = ["items", "anyOf", "allOf"];
/// Keywords that hold schemas by name.
const NAMED: [&str; 3] = ["properties", "$defs", "definitions"];
/// Keywords about the schema rather than about the answer.
const DROPPED: [&str; 4] = ["$schema", "$id", "$comment", "additionalProperties"];
/// The formats of text that are taken.
const FORMATS: [&str; 10] =
    ["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"];

pub(super) fn fit(schema: &Value) -> Value {
    let schema = match schema {
        Value::Object(fields) => fields,
        Value::Array(schemas) => return schemas.iter().map(fit).collect(),
        other => return other.clone(),
    };
    let (mut fitted, mut left) = (Map::new(), Map::new());
    for (name, value) in schema {
        let name = name.as_str();
        if KEPT.contains(&name) || name == "format" && FORMATS.iter().any(|format| value == format) {
            fitted.insert(name.into(), value.clone());
        } else if NESTED.contains(&name) {
            fitted.insert(name.into(), fit(value));
        } else if NAMED.contains(&name) {
            fitted.insert(name.into(), fit_all(value));
        } else if name == "oneOf" && !schema.contains_key("anyOf") {
            fitted.insert("anyOf".into(), fit(value));
        } else if name == "minItems" && value.as_u64().is_some_and(|count| count <= 1) {
            fitted.insert(name.into(), value.clone());
        } else if !DROPPED.contains(&name) {
            left.insert(name.into(), value.clone());
        }
    }
    if is_object(schema) {
        fitted.entry("type").or_insert_with(|| "object".into());
        // The API demands it of every object; one of free names cannot be had.
        fitted.insert("additionalProperties".into(), false.into());
        if let Some(Value::Object(names)) = schema.get("additionalProperties") {
            left.insert("additionalProperties".into(), names.clone().into());
        }
    }
    describe(&mut fitted, left);
    fitted.into()
}

fn fit_all(schemas: &Value) -> Value {
    match schemas {
        Value::Object(schemas) => schemas.iter().map(|(name, schema)| (name.clone(), fit(schema))).collect(),
        other => other.clone(),
    }
}

fn is_object(schema: &Map<String, Value>) -> bool {
    match schema.get("type") {
        Some(Value::Array(types)) => types.iter().any(|one| one == "object"),
        Some(one) => one == "object",
        None => schema.contains_key("properties"),
    }
}

/// Says in words what could not be said in the schema.
fn describe(fitted: &mut Map<String, Value>, left: Map<String, Value>) {
    if left.is_empty() {
        return;
    }
    let said = fitted.get("description").and_then(Value::as_str).unwrap_or_default();
    let text = format!("{said} It must also satisfy {}.", Value::Object(left));
    fitted.insert("description".into(), text.trim_start().into());
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_object_is_closed_at_every_depth() {
        let wanted = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "place": { "$ref": "#/$defs/place" },
                "more": { "type": "array", "items": { "properties": { "a": { "type": "string" } } } },
                "either": { "oneOf": [{ "type": ["object", "null"] }, { "type": "string" }] },
            },
            "required": ["place"],
            "$defs": { "place": { "type": "object", "additionalProperties": true } },
        });
        assert_eq!(
            fit(&wanted),
            json!({
                "type": "object",
                "properties": {
                    "place": { "$ref": "#/$defs/place" },
                    "more": {
                        "type": "array",
                        "items": {
                            "properties": { "a": { "type": "string" } },
                            "type": "object",
                            "additionalProperties": false,
                        },
                    },
                    "either": { "anyOf": [
                        { "type": ["object", "null"], "additionalProperties": false },
                        { "type": "string" },
                    ] },
                },
                "required": ["place"],
                "$defs": { "place": { "type": "object", "additionalProperties": false } },
                "additionalProperties": false,
            })
        );
    }

    #[test]
    fn what_the_api_refuses_is_said_in_words() {
        let of = |schema: Value| fit(&schema).to_string();
        insta::assert_snapshot!(of(json!({"type": "integer", "description": "A year.", "minimum": 1900})), @r#"{"type":"integer","description":"A year. It must also satisfy {\"minimum\":1900}."}"#);
        insta::assert_snapshot!(of(json!({"type": "string", "format": "color", "pattern": "^#"})), @r##"{"type":"string","description":"It must also satisfy {\"format\":\"color\",\"pattern\":\"^#\"}."}"##);
        insta::assert_snapshot!(of(json!({"type": "string", "format": "date"})), @r#"{"type":"string","format":"date"}"#);
        insta::assert_snapshot!(of(json!({"type": "array", "items": true, "minItems": 1, "maxItems": 3})), @r#"{"type":"array","items":true,"minItems":1,"description":"It must also satisfy {\"maxItems\":3}."}"#);
        insta::assert_snapshot!(of(json!({"type": "object", "additionalProperties": {"type": "string"}})), @r#"{"type":"object","additionalProperties":false,"description":"It must also satisfy {\"additionalProperties\":{\"type\":\"string\"}}."}"#);
    }

    #[test]
    fn a_property_may_have_a_keyword_for_its_name() {
        let wanted =
            json!({"type": "object", "properties": {"minimum": {"type": "number"}, "items": {"type": "null"}}});
        assert_eq!(fit(&wanted)["properties"], wanted["properties"]);
    }
}
