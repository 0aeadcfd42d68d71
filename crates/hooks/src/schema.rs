//! JSON Schemas of all inputs and answers, made from the types that are written and read.

use crate::answer::{self, Answer};
use crate::event::EventName;
use crate::input::{
    Notification, PostToolUse, PreCompact, PreToolUse, SessionStart, Stop, SubagentStop, Told, UserPromptSubmit,
};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

/// Every schema with its file's name: `PreToolUse.input.json`, `PreToolUse.output.json`, and so on.
pub fn schemas() -> Vec<(String, Value)> {
    let both = |event: EventName| {
        let name = event.text();
        [(format!("{name}.input.json"), input(event)), (format!("{name}.output.json"), output(event))]
    };
    EventName::ALL.into_iter().flat_map(both).collect()
}

fn input(event: EventName) -> Value {
    let mut schema = match event {
        EventName::PreToolUse => of::<Told<PreToolUse>>(SchemaSettings::for_serialize),
        EventName::PostToolUse => of::<Told<PostToolUse>>(SchemaSettings::for_serialize),
        EventName::UserPromptSubmit => of::<Told<UserPromptSubmit>>(SchemaSettings::for_serialize),
        EventName::SessionStart => of::<Told<SessionStart>>(SchemaSettings::for_serialize),
        EventName::Stop => of::<Told<Stop>>(SchemaSettings::for_serialize),
        EventName::SubagentStop => of::<Told<SubagentStop>>(SchemaSettings::for_serialize),
        EventName::PreCompact => of::<Told<PreCompact>>(SchemaSettings::for_serialize),
        EventName::Notification => of::<Told<Notification>>(SchemaSettings::for_serialize),
    };
    schema["properties"]["hook_event_name"] = json!({"const": event.text()});
    named(schema, event, "input")
}

/// The answer's schema, with the fields alone that mean something at `event`.
fn output(event: EventName) -> Value {
    let (outer, inner) = answer::fields(event);
    let mut schema = of::<Answer>(SchemaSettings::for_deserialize);
    let specific = &mut schema["properties"][answer::SPECIFIC];
    keep(specific, &inner);
    if inner.contains(&answer::EVENT) {
        specific["properties"][answer::EVENT] = json!({"const": event.text()});
    }
    keep(&mut schema, &outer);
    named(schema, event, "answer")
}

fn of<T: JsonSchema>(contract: fn(SchemaSettings) -> SchemaSettings) -> Value {
    let settings = contract(SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true));
    settings.into_generator().into_root_schema_for::<T>().to_value()
}

fn keep(schema: &mut Value, names: &[&str]) {
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.retain(|name, _| names.contains(&name.as_str()));
    }
}

fn named(mut schema: Value, event: EventName, what: &str) -> Value {
    schema["title"] = json!(format!("{} hook: {what}", event.text()));
    if let Some(fields) = schema.as_object_mut() {
        fields.shift_remove("description");
    }
    schema
}
