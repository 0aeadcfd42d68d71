//! What is stored of a case, read from the session's log.

use super::protocol::SECRET;
use serde_json::Value;
use std::collections::BTreeMap;

/// The records of one turn.
pub struct Seen<'a>(&'a [Value]);

/// Splits a log after its first turn; both parts are whole records in a row.
pub fn turns(records: &[Value]) -> (Seen<'_>, Seen<'_>) {
    let end = records.iter().position(|record| kind(record) == "turn_finished").map_or(records.len(), |at| at + 1);
    (Seen(&records[..end]), Seen(&records[end..]))
}

fn kind(record: &Value) -> &str {
    record["event"]["type"].as_str().unwrap_or_default()
}

impl<'a> Seen<'a> {
    fn of(&self, wanted: &'static str) -> impl Iterator<Item = &'a Value> {
        self.0.iter().filter(move |record| kind(record) == wanted).map(|record| &record["event"])
    }

    pub fn failures(&self) -> Vec<&'a str> {
        self.of("model_failed").filter_map(|event| event["error"]["kind"].as_str()).collect()
    }

    /// What the failed attempts said, in order.
    pub fn messages(&self) -> Vec<&'a str> {
        self.of("model_failed").filter_map(|event| event["error"]["message"].as_str()).collect()
    }

    pub fn partial(&self) -> usize {
        self.of("block_finished").filter(|event| event["partial"] == true).count()
    }

    /// Calls that were answered: run to their end, or refused as they were made.
    pub fn calls(&self) -> usize {
        let refused = self.of("judged").filter(|event| event["verdict"] == "invalid" || event["verdict"] == "deny");
        self.of("tool_finished").count() + refused.count()
    }

    /// The text of the last message that came whole.
    pub fn text(&self) -> String {
        let Some(last) = self.of("model_finished").last() else { return String::new() };
        let blocks = self.of("block_finished").filter(|event| event["work"] == last["work"]);
        blocks.filter_map(|event| event["block"]["text"].as_str()).collect()
    }

    /// The events by type and count, without those that every session has.
    pub fn in_short(&self) -> String {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for record in self.0 {
            let event = &record["event"];
            let name = match kind(record) {
                "began" | "opened" | "prompted" | "tools_changed" | "judged" => continue,
                "model_failed" => format!("model_failed({})", event["error"]["kind"].as_str().unwrap_or("?")),
                "block_finished" if event["partial"] == true => "block_finished(partial)".to_owned(),
                "turn_finished" => format!("turn_finished({})", event["end"]["type"].as_str().unwrap_or("?")),
                kind => kind.to_owned(),
            };
            *counts.entry(name).or_default() += 1;
        }
        let told = counts.into_iter().map(|(name, count)| if count == 1 { name } else { format!("{count} {name}") });
        told.collect::<Vec<_>>().join(", ")
    }

    /// What no log may hold, whatever the weather was.
    pub fn broken(&self) -> Option<String> {
        for called in self.of("model_called") {
            let ends = ["model_finished", "model_failed", "model_cancelled"].into_iter();
            let ends = ends.flat_map(|kind| self.of(kind)).filter(|event| event["work"] == called["work"]).count();
            if ends != 1 {
                return Some(format!("the model call {} has {ends} ends in the log", called["work"]));
            }
        }
        match self.of("turn_finished").count() {
            1 => None,
            ends => Some(format!("the turn has {ends} ends in the log")),
        }
    }
}

/// What must hold of the whole log.
pub fn log_is_whole(records: &[Value]) -> Option<String> {
    if records.iter().any(|record| record.to_string().contains(SECRET)) {
        return Some("the key stands in the log".into());
    }
    let misplaced = (1..).zip(records).find(|(at, record)| record["seq"].as_u64() != Some(*at));
    misplaced.map(|(at, record)| format!("record {} stands where {at} belongs", record["seq"]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn log(events: Value) -> Vec<Value> {
        let events = events.as_array().unwrap().clone();
        (1..).zip(events).map(|(seq, event)| json!({ "seq": seq, "event": event })).collect()
    }

    fn cut_once() -> Vec<Value> {
        log(json!([
            { "type": "prompted" },
            { "type": "model_called", "work": 1 },
            { "type": "block_finished", "work": 1, "partial": true, "block": { "type": "text", "text": "Half" } },
            { "type": "model_failed", "work": 1, "error": { "kind": "transient", "message": "cut" } },
            { "type": "model_called", "work": 2 },
            { "type": "block_finished", "work": 2, "block": { "type": "text", "text": "Whole." } },
            { "type": "model_finished", "work": 2 },
            { "type": "turn_finished", "end": { "type": "done" } },
            { "type": "prompted" },
        ]))
    }

    #[test]
    fn a_turn_is_told_by_what_is_stored_of_it() {
        let log = cut_once();
        let (first, second) = turns(&log);
        assert_eq!(first.failures(), ["transient"]);
        assert_eq!((first.partial(), first.text().as_str()), (1, "Whole."));
        assert_eq!(first.broken(), None);
        assert_eq!(log_is_whole(&log), None);
        assert!(second.broken().unwrap().contains("0 ends"));
        assert!(first.in_short().contains("model_failed(transient)"), "{}", first.in_short());
    }

    #[test]
    fn a_call_without_its_end_and_a_missing_record_are_found() {
        let mut log = cut_once();
        log.remove(6);
        assert!(turns(&log).0.broken().unwrap().contains("0 ends"));
        assert!(log_is_whole(&log).unwrap().contains("where 7 belongs"));
    }
}
