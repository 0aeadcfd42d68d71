//! The JSON Schemas: kept beside the guide, and true of what is really told and answered.

use crate::stage::{Stage, events, table};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use tokio_util::sync::CancellationToken;
use windlass_hooks::{Agent, EventName, Origin, schemas};

/// Set to anything, this variable has the kept schemas written anew.
const UPDATE: &str = "UPDATE_SCHEMAS";

fn schema(name: &str) -> Value {
    schemas().into_iter().find(|(file, _)| file == name).unwrap_or_else(|| panic!("no {name}")).1
}

fn complaints(schema: &Value, value: &Value) -> Vec<String> {
    let validator = jsonschema::validator_for(schema).unwrap();
    validator.iter_errors(value).map(|error| error.to_string()).collect()
}

#[test]
fn the_kept_schemas_are_those_of_the_code() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schemas/hooks");
    let made: BTreeMap<String, String> =
        schemas().into_iter().map(|(name, schema)| (name, format!("{schema:#}\n"))).collect();
    if std::env::var_os(UPDATE).is_some() {
        std::fs::create_dir_all(&folder).unwrap();
        for (name, text) in &made {
            std::fs::write(folder.join(name), text).unwrap();
        }
    }
    let files = std::fs::read_dir(&folder).into_iter().flatten().flatten();
    let kept: BTreeMap<String, String> = files
        .map(|file| (file.file_name().into_string().unwrap(), std::fs::read_to_string(file.path()).unwrap()))
        .collect();
    let stale: Vec<&String> =
        made.keys().chain(kept.keys()).filter(|name| made.get(*name) != kept.get(*name)).collect();
    assert!(
        stale.is_empty(),
        "docs/schemas/hooks is stale ({stale:?}): {UPDATE}=1 cargo test -p windlass-hooks schemas"
    );
}

#[tokio::test]
async fn what_a_hook_is_told_keeps_to_the_schema_of_its_event_and_no_other() {
    let stage = Stage::new();
    for event in events() {
        let name = event.name();
        stage.ask_one("cat > told.json", event).await;
        let told: Value = serde_json::from_str(&stage.read("told.json")).unwrap();
        for other in EventName::ALL {
            let complaints = complaints(&schema(&format!("{}.input.json", other.text())), &told);
            assert_eq!(complaints.is_empty(), other == name, "{name:?} as {other:?}: {complaints:?}");
        }
    }
}

#[tokio::test]
async fn what_is_told_within_a_sub_agent_keeps_to_the_schema_too() {
    let stage = Stage::new();
    let agent = Some(Agent { agent_id: "a1".into(), agent_type: "explore".into() });
    let origin = Origin { agent, transcript_path: Some("/tmp/a.jsonl".into()), ..stage.origin() };
    for event in events() {
        let name = event.name();
        let hooks = table(name, json!([{"command": "cat > told.json"}]));
        hooks.run(event, &origin, &stage.launch(), &CancellationToken::new()).await;
        let told: Value = serde_json::from_str(&stage.read("told.json")).unwrap();
        assert_eq!((&told["agent_id"], &told["transcript_path"]), (&json!("a1"), &json!("/tmp/a.jsonl")));
        assert_eq!(complaints(&schema(&format!("{}.input.json", name.text())), &told), [""; 0]);
    }
}

#[tokio::test]
async fn a_told_call_in_full() {
    let stage = Stage::new();
    stage.ask_one("cat > told.json", crate::stage::after()).await;
    let told = stage.read("told.json").replace(&stage.folder.path().display().to_string(), "FOLDER");
    insta::assert_snapshot!(told, @r#"{"session_id":"0190","cwd":"FOLDER","permission_mode":"acceptEdits","hook_event_name":"PostToolUse","tool_name":"edit","tool_input":{"path":"src/lib.rs"},"tool_response":{"text":"edited","is_error":false,"value":{"added":1}},"tool_use_id":"call_1"}"#);
}

#[tokio::test]
async fn an_input_without_what_it_must_have_is_found_out() {
    let stage = Stage::new();
    for event in events() {
        let name = event.name().text();
        stage.ask_one("cat > told.json", event).await;
        let told: Value = serde_json::from_str(&stage.read("told.json")).unwrap();
        let schema = schema(&format!("{name}.input.json"));
        for field in schema["required"].as_array().unwrap() {
            let mut less = told.clone();
            less.as_object_mut().unwrap().shift_remove(field.as_str().unwrap()).unwrap();
            assert!(!complaints(&schema, &less).is_empty(), "{name} without {field}");
        }
    }
}

#[test]
fn answers_keep_to_the_schema_of_their_event() {
    let permission =
        json!({"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "no"});
    let rewrite = json!({"hookEventName": "PreToolUse", "updatedInput": {"command": "ls"}, "additionalContext": "x"});
    let rows = [
        ("PreToolUse", json!({}), true),
        ("PreToolUse", json!({"hookSpecificOutput": permission}), true),
        ("PreToolUse", json!({"hookSpecificOutput": rewrite}), true),
        ("PreToolUse", json!({"decision": "approve", "reason": "fine"}), true),
        (
            "PreToolUse",
            json!({"continue": false, "stopReason": "over", "suppressOutput": true, "systemMessage": "x"}),
            true,
        ),
        ("PreToolUse", json!({"decision": "maybe"}), false),
        ("PreToolUse", json!({"continue": "no"}), false),
        ("PreToolUse", json!({"hookSpecificOutput": {"permissionDecision": "deny"}}), false),
        (
            "PreToolUse",
            json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "perhaps"}}),
            false,
        ),
        ("PreToolUse", json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "updatedInput": "ls"}}), false),
        ("PostToolUse", json!({"hookSpecificOutput": permission}), false),
        (
            "PostToolUse",
            json!({"hookSpecificOutput": {"hookEventName": "PostToolUse", "additionalContext": "x"}}),
            true,
        ),
        ("UserPromptSubmit", json!({"decision": "block", "reason": "no"}), true),
        (
            "SessionStart",
            json!({"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": 7}}),
            false,
        ),
        ("Stop", json!({"decision": "block", "reason": "go on"}), true),
        ("SubagentStop", json!({"decision": 1}), false),
        ("PreCompact", json!({"decision": "block"}), true),
        ("Notification", json!({"systemMessage": "told"}), true),
        ("Notification", json!({"systemMessage": 1}), false),
    ];
    for (event, answer, expected) in rows {
        let complaints = complaints(&schema(&format!("{event}.output.json")), &answer);
        assert_eq!(complaints.is_empty(), expected, "{event} {answer}: {complaints:?}");
    }
}

/// What the schema says may be said is what the code takes in without a word about it.
#[tokio::test]
async fn a_field_is_in_the_schema_if_and_only_if_it_means_something() {
    let stage = Stage::new();
    let values = [
        ("continue", json!(true)),
        ("stopReason", json!("x")),
        ("suppressOutput", json!(false)),
        ("systemMessage", json!("")),
        ("decision", json!("approve")),
        ("reason", json!("x")),
        ("hookSpecificOutput", Value::Null),
    ];
    for event in events() {
        let name = event.name();
        let schema = schema(&format!("{}.output.json", name.text()));
        for (field, value) in &values {
            let value = match value {
                Value::Null => json!({"hookEventName": name.text()}),
                other => other.clone(),
            };
            let outcome = stage.ask_answer(&json!({*field: value}), event.clone()).await;
            assert_eq!(outcome.messages.is_empty(), schema["properties"].get(field).is_some(), "{name:?} {field}");
        }
    }
}
