//! The tools that come with Windlass.

use crate::Tool;
use std::sync::Arc;

/// Every built-in tool, by name.
pub fn builtin() -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(crate::apply_patch::ApplyPatch),
        Arc::new(crate::ask_user::AskUser),
        Arc::new(crate::bash::Bash),
        Arc::new(crate::edit::Edit),
        Arc::new(crate::glob::Glob),
        Arc::new(crate::grep::Grep),
        Arc::new(crate::ls::Ls),
        Arc::new(crate::read::Read),
        Arc::new(crate::write::Write),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use std::fmt::Write;

    /// One line a tool: its name, and its arguments, those that must be given with a star.
    fn signatures() -> String {
        let mut text = String::new();
        for tool in builtin() {
            let schema = tool.schema();
            let required = schema["required"].as_array().cloned().unwrap_or_default();
            let fields: Vec<String> = schema["properties"]
                .as_object()
                .unwrap()
                .iter()
                .map(|(name, field)| {
                    let star = if required.contains(&Value::from(name.as_str())) { "*" } else { "" };
                    format!("{name}{star}: {}", field["type"].as_str().unwrap())
                })
                .collect();
            writeln!(text, "{}({})", tool.name(), fields.join(", ")).unwrap();
        }
        text
    }

    #[test]
    fn s4_09_definitions_are_listed_with_names_and_required_fields() {
        insta::assert_snapshot!(signatures(), @r"
        apply_patch(patch*: string)
        ask_user(question*: string, options: array)
        bash(command*: string, timeout_ms: integer, outside_sandbox: string)
        edit(path*: string, old*: string, new*: string, replace_all: boolean)
        glob(pattern*: string, path: string)
        grep(pattern*: string, path: string, glob: string, case_insensitive: boolean, context: integer, mode: string)
        ls(path: string)
        read(path*: string, offset: integer, limit: integer)
        write(path*: string, content*: string)
        ");
    }

    #[test]
    fn every_field_is_described_and_no_schema_carries_noise() {
        for tool in builtin() {
            let schema = tool.schema();
            for (name, field) in schema["properties"].as_object().unwrap() {
                assert!(field["description"].is_string(), "{}.{name} has no description", tool.name());
            }
            let text = schema.to_string();
            assert!(!text.contains("$schema") && !text.contains("\"title\"") && !text.contains("null"), "{text}");
        }
    }
}
