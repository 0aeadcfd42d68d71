//! JSON Schemas: made from Rust types, compiled, and turned into complaints a model can act on.

use crate::args::kind_of;
use jsonschema::error::{TypeKind, ValidationError, ValidationErrorKind};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

/// Complaints told of one call.
const MAX_COMPLAINTS: usize = 5;
/// Characters of a wrong value that are shown.
const SHOWN_CHARS: usize = 80;

/// The schema of `T`, without what costs tokens and tells a model nothing.
pub(crate) fn of<T: JsonSchema>() -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.meta_schema = None;
    settings.inline_subschemas = true;
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    prune(&mut schema);
    schema
}

/// Drops titles and number formats, and reduces "this or null" to "this": leaving a field out says the same.
fn prune(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(prune),
        Value::Object(fields) => {
            if fields.get("title").is_some_and(Value::is_string) {
                fields.shift_remove("title");
            }
            if fields.get("format").is_some_and(Value::is_string) {
                fields.shift_remove("format");
            }
            if fields.get("default").is_some_and(Value::is_null) {
                fields.shift_remove("default");
            }
            if let Some(Value::Array(types)) = fields.get_mut("type") {
                types.retain(|kind| kind != "null");
                if let [only] = types.as_slice() {
                    let only = only.clone();
                    fields.insert("type".into(), only);
                }
            }
            if let Some(Value::Array(values)) = fields.get_mut("enum") {
                values.retain(|value| !value.is_null());
            }
            if let Some(Value::Array(options)) = fields.get_mut("anyOf") {
                options.retain(|option| option["type"] != "null");
                if let [Value::Object(only)] = options.as_slice() {
                    let only = only.clone();
                    fields.shift_remove("anyOf");
                    fields.extend(only);
                }
            }
            fields.values_mut().for_each(prune);
        }
        _ => {}
    }
}

/// A compiled JSON Schema.
pub struct Checker(jsonschema::Validator);

impl Checker {
    pub fn compile(schema: &Value) -> Result<Checker, String> {
        jsonschema::validator_for(schema).map(Checker).map_err(|error| error.to_string())
    }

    /// What is wrong with `input`, one line each; empty if nothing is.
    pub fn complaints(&self, input: &Value) -> Vec<String> {
        if self.0.is_valid(input) {
            return Vec::new();
        }
        self.0.iter_errors(input).take(MAX_COMPLAINTS).map(|error| complaint(&error)).collect()
    }
}

fn complaint(error: &ValidationError<'_>) -> String {
    let field = error.instance_path().to_string().trim_start_matches('/').replace('/', ".");
    let given = error.instance();
    match error.kind() {
        ValidationErrorKind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            let dot = if field.is_empty() { "" } else { "." };
            format!("`{field}{dot}{name}` is missing")
        }
        ValidationErrorKind::Type { kind } => {
            format!("`{field}` is {}, {}; expected {}", shown(given), kind_of(given), type_names(kind))
        }
        ValidationErrorKind::Enum { options } => format!("`{field}` is {}; expected one of {options}", shown(given)),
        _ if field.is_empty() => error.to_string(),
        _ => format!("`{field}`: {}", error.masked_with(shown(given))),
    }
}

fn type_names(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(one) => one.to_string(),
        TypeKind::Multiple(several) => several.iter().map(|one| one.to_string()).collect::<Vec<_>>().join(" or "),
    }
}

fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// The arguments a schema takes, in a line: what a wrong call is answered with.
pub(crate) fn signature(schema: &Value) -> String {
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let Some(fields) = schema["properties"].as_object() else { return "no arguments".into() };
    let told: Vec<String> = fields
        .iter()
        .map(|(name, field)| {
            let kind = field["type"].as_str().unwrap_or("any");
            let need = if required.contains(&name.as_str()) { ", required" } else { "" };
            format!("{name} ({kind}{need})")
        })
        .collect();
    if told.is_empty() { "no arguments".into() } else { told.join(", ") }
}

/// Fields of `input` that the schema does not know, for a hint when another is missing.
pub(crate) fn strangers(schema: &Value, input: &Value) -> Vec<String> {
    let known = |name: &String| schema["properties"].get(name).is_some();
    input.as_object().into_iter().flatten().map(|(name, _)| name).filter(|name| !known(name)).cloned().collect()
}
