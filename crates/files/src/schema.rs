//! Schemas are told, and arguments checked by them, before a component is asked.

use schemars::JsonSchema;
use serde_json::Value;

pub(crate) fn of<T: JsonSchema>() -> Value {
    schemars::schema_for!(T).to_value()
}
