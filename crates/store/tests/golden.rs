//! Logs of every version that was ever written must load for ever.

use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use windlass_kernel::{Record, SCHEMA_VERSION, Seq};
use windlass_store::{UpcastError, record_of_line, upcast};

fn folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/logs"))
}

fn load(path: &Path) -> Vec<Record> {
    let text = fs::read_to_string(path).unwrap();
    let line = |(n, line): (usize, &str)| {
        record_of_line(line).unwrap_or_else(|error| panic!("{}:{}: {error}", path.display(), n + 1))
    };
    text.lines().enumerate().map(line).collect()
}

#[test]
fn s1_30_every_golden_log_loads_and_is_whole() {
    let mut seen = 0;
    for file in fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()) {
        if file.extension().is_none_or(|extension| extension != "jsonl") {
            continue;
        }
        seen += 1;
        let records = load(&file);
        assert!(!records.is_empty(), "{} is empty", file.display());
        for (n, record) in records.iter().enumerate() {
            assert_eq!(record.seq, Seq(n as u64 + 1), "{}", file.display());
            assert_eq!(record.session, records[0].session, "{}", file.display());
            assert!(n == 0 || record.epoch >= records[n - 1].epoch, "{}: the epoch falls", file.display());
        }
    }
    assert!(seen > 0, "there is no golden log in {}", folder().display());
}

#[test]
fn the_hand_written_log_covers_every_event_and_loses_nothing() {
    let path = folder().join("v1-hand-written.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    let mut kinds = BTreeSet::new();
    for (line, record) in text.lines().zip(load(&path)) {
        let written: Value = serde_json::from_str(line).unwrap();
        kinds.insert(written["event"]["type"].as_str().unwrap().to_owned());
        let mut again = serde_json::to_value(&record).unwrap();
        // `null` and absent say the same; the writer of this log left some out, and this build others.
        let mut written = written;
        drop_nulls(&mut written);
        drop_nulls(&mut again);
        assert_eq!(again, written, "an old field is read and not kept");
    }
    assert_all_kinds(&kinds);
}

/// The kinds of version 1; a kind that is added gets a line in the log and a word here.
fn assert_all_kinds(kinds: &BTreeSet<String>) {
    let all = "answered asked began block_finished cleared compacted compaction_asked compaction_failed configured \
               deadline_passed interrupted judged model_called model_cancelled model_failed model_finished noted \
               opened prompted reopened stop_blocked tool_finished tool_started tools_changed turn_finished";
    assert_eq!(kinds.iter().map(String::as_str).collect::<Vec<_>>().join(" "), all);
}

fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(drop_nulls);
        }
        Value::Array(values) => values.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

#[test]
fn a_version_that_is_not_known_is_named() {
    let body = json!({ "type": "deadline_passed" });
    assert!(upcast(SCHEMA_VERSION, body.clone()).is_ok());
    let newer = upcast(SCHEMA_VERSION + 1, body.clone()).unwrap_err();
    assert_eq!(newer, UpcastError::Newer { found: SCHEMA_VERSION + 1, known: SCHEMA_VERSION });
    assert_eq!(newer.to_string(), "it has event schema 2, this windlass knows 1: use a newer one");
    assert_eq!(upcast(0, body).unwrap_err().to_string(), "it has event schema 0, which no windlass ever wrote");
    let strange = upcast(SCHEMA_VERSION, json!({ "type": "danced" })).unwrap_err().to_string();
    assert!(strange.contains("danced"), "{strange}");
}
