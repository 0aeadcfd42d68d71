//! The shape of structured data, as a JSON Schema that the data itself satisfies.

use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Levels of nesting described; below, anything goes.
const MAX_DEPTH: usize = 32;
/// Fields listed of one object; one with more is taken for a map from keys to things, and its fields are not listed.
const MAX_FIELDS: usize = 200;

/// A JSON Schema of `data`: types, fields, which fields are always there, and what lists hold, over all their items.
pub fn shape(data: &Value) -> Value {
    let mut seen = Seen::default();
    seen.learn(data, 0);
    seen.schema()
}

/// What was found in one place of the data.
#[derive(Default)]
struct Seen {
    types: BTreeSet<&'static str>,
    items: Option<Box<Seen>>,
    objects: usize,
    /// By name: how many of the objects have it, and what it holds.
    fields: BTreeMap<String, (usize, Seen)>,
    is_map: bool,
    too_deep: bool,
}

impl Seen {
    fn learn(&mut self, value: &Value, depth: usize) {
        if depth == MAX_DEPTH {
            self.too_deep = true;
            return;
        }
        self.types.insert(type_of(value));
        match value {
            Value::Array(items) => {
                for item in items {
                    self.items.get_or_insert_default().learn(item, depth + 1);
                }
            }
            Value::Object(map) => self.learn_object(map, depth),
            _ => {}
        }
    }

    fn learn_object(&mut self, map: &Map<String, Value>, depth: usize) {
        self.objects += 1;
        for (name, value) in map {
            if self.is_map {
                return;
            }
            if !self.fields.contains_key(name) {
                self.fields.insert(name.clone(), (0, Seen::default()));
            }
            let Some((count, field)) = self.fields.get_mut(name) else { return };
            *count += 1;
            field.learn(value, depth + 1);
            if self.fields.len() > MAX_FIELDS {
                self.is_map = true;
                self.fields.clear();
            }
        }
    }

    fn schema(&self) -> Value {
        if self.too_deep {
            return json!({});
        }
        let types: Vec<&str> =
            self.types.iter().copied().filter(|name| *name != "integer" || !self.types.contains("number")).collect();
        let mut schema = Map::new();
        schema.insert("type".into(), if let [one] = types[..] { json!(one) } else { json!(types) });
        if let Some(items) = &self.items {
            schema.insert("items".into(), items.schema());
        }
        if !self.fields.is_empty() {
            let fields = self.fields.iter().map(|(name, (_, field))| (name.clone(), field.schema()));
            schema.insert("properties".into(), Value::Object(fields.collect()));
            let always =
                self.fields.iter().filter(|(_, (count, _))| *count == self.objects).map(|(name, _)| name.as_str());
            schema.insert("required".into(), always.collect());
        }
        Value::Object(schema)
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_i64() || number.is_u64() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_tells_types_fields_and_what_is_always_there() {
        for (data, expected) in [
            (json!(null), json!({"type": "null"})),
            (json!([]), json!({"type": "array"})),
            (json!([1, 2.5]), json!({"type": "array", "items": {"type": "number"}})),
            (json!([1, "a", null]), json!({"type": "array", "items": {"type": ["integer", "null", "string"]}})),
            (
                json!([{"id": 1, "name": "a"}, {"id": 2}]),
                json!({"type": "array", "items": {
                    "type": "object",
                    "properties": {"id": {"type": "integer"}, "name": {"type": "string"}},
                    "required": ["id"],
                }}),
            ),
            (
                json!({"a": {"b": [true]}}),
                json!({"type": "object", "required": ["a"], "properties": {"a": {
                    "type": "object",
                    "required": ["b"],
                    "properties": {"b": {"type": "array", "items": {"type": "boolean"}}},
                }}}),
            ),
        ] {
            assert_eq!(shape(&data), expected, "{data}");
        }
    }

    #[test]
    fn a_shape_has_limits() {
        let wide: Map<String, Value> = (0..=MAX_FIELDS).map(|id| (format!("id{id}"), json!(id))).collect();
        assert_eq!(shape(&json!([wide, {"id1": 1}])), json!({"type": "array", "items": {"type": "object"}}));
        let deep = (0..MAX_DEPTH + 5).fold(json!(1), |inner, _| json!([inner]));
        assert_eq!(shape(&deep).to_string().matches("items").count(), MAX_DEPTH);
    }
}
