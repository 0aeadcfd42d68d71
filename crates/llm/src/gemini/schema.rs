//! JSON Schemas as Gemini takes them: as they are, but with every reference written out. (It refuses a `$ref` that has
//! words beside it, and loses the definitions of a tool's parameters.)

use serde_json::{Map, Value, json};

/// The most objects of a schema that is written out; what is beyond them may hold anything.
const MAX_OBJECTS: usize = 5_000;
/// The deepest nesting; what is below may hold anything.
const MAX_DEPTH: usize = 64;

/// The schema of a tool's parameters; none if it takes none.
pub(super) fn parameters(schema: &Value) -> Option<Value> {
    let Value::Object(mut fields) = without_references(schema) else { return None };
    let has = |name: &str| match fields.get(name) {
        None | Some(Value::Bool(false)) => false,
        Some(Value::Object(parts)) => name == "additionalProperties" || !parts.is_empty(),
        Some(_) => true,
    };
    if !["properties", "additionalProperties", "patternProperties", "anyOf", "oneOf", "allOf"].into_iter().any(has) {
        return None;
    }
    if !fields.contains_key("type") {
        fields.insert("type".into(), "object".into());
    }
    Some(Value::Object(fields))
}

/// The schema with what it refers to in the place of the references. Where a part holds itself, the inner one is only
/// said to be of its type.
pub(super) fn without_references(schema: &Value) -> Value {
    let mut writing = Writing { root: schema, within: vec!["#"], objects: 0, depth: 0 };
    writing.part(schema)
}

struct Writing<'a> {
    root: &'a Value,
    /// The references being written out, outermost first.
    within: Vec<&'a str>,
    objects: usize,
    depth: usize,
}

impl<'a> Writing<'a> {
    fn part(&mut self, part: &'a Value) -> Value {
        match part {
            Value::Object(_) if self.objects >= MAX_OBJECTS || self.depth >= MAX_DEPTH => json!({}),
            Value::Object(fields) => {
                (self.objects, self.depth) = (self.objects + 1, self.depth + 1);
                let written = self.fields(fields);
                self.depth -= 1;
                Value::Object(written)
            }
            Value::Array(parts) => parts.iter().map(|part| self.part(part)).collect(),
            other => other.clone(),
        }
    }

    fn fields(&mut self, fields: &'a Map<String, Value>) -> Map<String, Value> {
        let mut out = match fields.get("$ref") {
            Some(Value::String(reference)) => self.target(reference),
            _ => Map::new(),
        };
        for (name, value) in fields {
            let value = match (name.as_str(), value) {
                ("$ref" | "$defs" | "definitions" | "$schema" | "$id", _) => continue,
                ("enum" | "const" | "default" | "example" | "examples", value) => value.clone(),
                // Their keys are names that mean nothing here.
                ("properties" | "patternProperties", Value::Object(parts)) => {
                    Value::Object(parts.iter().map(|(name, part)| (name.clone(), self.part(part))).collect())
                }
                (_, value) => self.part(value),
            };
            out.insert(name.clone(), value);
        }
        out
    }

    /// What `reference` stands for; nothing is said of what cannot be found here.
    fn target(&mut self, reference: &'a str) -> Map<String, Value> {
        let place = reference.strip_prefix('#').and_then(|path| self.root.pointer(path));
        let Some(Value::Object(fields)) = place else { return Map::new() };
        if self.within.contains(&reference) {
            return fields.get("type").map(|kind| ("type".to_owned(), kind.clone())).into_iter().collect();
        }
        self.within.push(reference);
        let part = self.part(place.expect("it was just found"));
        self.within.pop();
        match part {
            Value::Object(fields) => fields,
            _ => Map::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_written_out() {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "task": {"$ref": "#/$defs/Task", "description": "What to do."},
                "definitions": {"anyOf": [{"$ref": "#/definitions/Word"}, {"type": "null"}], "default": {"$ref": "kept"}},
                "far": {"$ref": "https://example.com/schema", "title": "Far"},
            },
            "$defs": {"Task": {"type": "object", "description": "A task.", "properties": {
                "word": {"$ref": "#/definitions/Word"},
                "next": {"$ref": "#/$defs/Task"},
            }}},
            "definitions": {"Word": {"type": "string", "enum": ["a", "b"]}},
        });
        insta::assert_json_snapshot!(parameters(&schema), @r#"
        {
          "type": "object",
          "properties": {
            "task": {
              "type": "object",
              "description": "What to do.",
              "properties": {
                "word": {
                  "type": "string",
                  "enum": [
                    "a",
                    "b"
                  ]
                },
                "next": {
                  "type": "object"
                }
              }
            },
            "definitions": {
              "anyOf": [
                {
                  "type": "string",
                  "enum": [
                    "a",
                    "b"
                  ]
                },
                {
                  "type": "null"
                }
              ],
              "default": {
                "$ref": "kept"
              }
            },
            "far": {
              "title": "Far"
            }
          }
        }
        "#);
    }

    #[test]
    fn a_tool_without_parameters_has_no_schema() {
        for schema in
            [json!({}), json!({"type": "object", "properties": {}, "additionalProperties": false}), json!(true)]
        {
            assert_eq!(parameters(&schema), None, "{schema}");
        }
        let open = json!({"additionalProperties": true});
        assert_eq!(parameters(&open), Some(json!({"additionalProperties": true, "type": "object"})));
    }

    #[test]
    fn a_schema_that_grows_without_end_is_cut_off() {
        let mut definitions = Map::new();
        for place in 0..30 {
            let next = json!({"$ref": format!("#/$defs/{}", place + 1)});
            definitions.insert(place.to_string(), json!({"properties": {"left": next.clone(), "right": next}}));
        }
        let written = without_references(&json!({"$ref": "#/$defs/0", "$defs": definitions}));
        assert!(written.to_string().matches('{').count() < 4 * MAX_OBJECTS);
    }
}
