//! What can be seen after a kill, and the phase it shows that the process died in.

use super::plan::Phase;
use super::script;
use crate::mock::Request;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Everything that outlived the process.
#[derive(Default)]
pub struct Evidence {
    /// The stored records, in order.
    pub stored: Vec<Value>,
    /// The highest `seq` that was told on stdout.
    pub told_to: u64,
    pub ledger: Vec<String>,
    /// Requests that this life sent.
    pub requests: Vec<Request>,
    /// The store's journal ends in the middle of a transaction.
    pub torn: bool,
}

impl Evidence {
    /// Of two phases that fit, the one that is harder to hit.
    pub fn phase(&self) -> Phase {
        if self.torn {
            return Phase::Commit;
        }
        let life = self.life();
        let open = open_calls(life);
        if open.is_empty() && self.results_wait(life) {
            return Phase::ResultStored;
        }
        if self.stored.last().map_or(0, seq) > self.told_to {
            return Phase::Commit;
        }
        if !open.is_empty() {
            let lines = ledger_lines(&self.stored);
            let done = |call: &String| lines.get(call).is_some_and(|line| self.ledger.contains(line));
            return if open.iter().any(done) { Phase::EffectDone } else { Phase::ToolAlive };
        }
        let asked = life.iter().rposition(|record| kind(record) == "model_called");
        let silent = asked.is_some_and(|at| life[at..].iter().all(|record| kind(record) != "model_finished"));
        match silent && self.requests.last().is_some_and(|request| request.gone) {
            true => Phase::MidStream,
            false => Phase::Elsewhere,
        }
    }

    /// Results are stored, and the request that would tell the model of them has not come in.
    fn results_wait(&self, life: &[Value]) -> bool {
        let Some(result) = life.iter().rposition(|record| kind(record) == "tool_finished") else { return false };
        let answers = life[..result].iter().filter(|record| kind(record) == "model_finished").count();
        self.requests.len() <= answers && life[result..].iter().all(|record| kind(record) != "model_finished")
    }

    /// What the process that died has stored.
    fn life(&self) -> &[Value] {
        let from = self.stored.iter().rposition(|record| ["opened", "reopened"].contains(&kind(record)));
        &self.stored[from.unwrap_or(0)..]
    }
}

pub fn seq(record: &Value) -> u64 {
    record["seq"].as_u64().unwrap_or(0)
}

pub fn kind(record: &Value) -> &str {
    record["event"]["type"].as_str().unwrap_or_default()
}

/// Calls that were started and have no result.
fn open_calls(life: &[Value]) -> BTreeSet<String> {
    let mut open = BTreeSet::new();
    for record in life {
        let call = record["event"]["call"].as_str().unwrap_or_default().to_string();
        match kind(record) {
            "tool_started" => _ = open.insert(call),
            "tool_finished" => _ = open.remove(&call),
            _ => {}
        }
    }
    open
}

/// The ledger line of each command, by its call.
fn ledger_lines(stored: &[Value]) -> BTreeMap<String, String> {
    let blocks =
        stored.iter().filter(|record| kind(record) == "block_finished").map(|record| &record["event"]["block"]);
    blocks
        .filter_map(|block| {
            let line = script::line_of(block["input"]["command"].as_str()?)?;
            Some((block["id"].as_str()?.to_string(), line))
        })
        .collect()
}

/// Whether a write-ahead log ends in frames that no commit closes, or in the middle of a frame.
pub fn is_torn(wal: &[u8]) -> bool {
    const HEADER: usize = 32;
    const FRAME_HEADER: usize = 24;
    let word =
        |at: usize| wal.get(at..at + 4).map(|bytes| u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]));
    let (Some(page), Some(salts)) = (word(8), wal.get(16..24)) else { return false };
    let frame = FRAME_HEADER + page as usize;
    let mut at = HEADER;
    let mut committed = true;
    // Frames with other salts are left over from before the log was begun anew.
    while wal.get(at + 8..at + 16).is_some_and(|found| found == salts) {
        if at + frame > wal.len() {
            return true;
        }
        committed = word(at + 4) != Some(0);
        at += frame;
    }
    !committed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mock::At;
    use serde_json::json;

    fn records(events: &[Value]) -> Vec<Value> {
        let numbered = events.iter().enumerate();
        numbered.map(|(at, event)| json!({ "seq": at + 1, "event": event })).collect()
    }

    fn request(gone: bool) -> Request {
        let at = At { body: 1, last: 2 };
        Request { conn: 1, at, sid: String::new(), step: None, status: 200, gone, error: None }
    }

    fn evidence(events: &[Value], requests: Vec<Request>) -> Evidence {
        Evidence { stored: records(events), told_to: events.len() as u64, requests, ..Evidence::default() }
    }

    fn told(kind: &str) -> Value {
        json!({ "type": kind, "call": "c1" })
    }

    #[test]
    fn the_phase_is_read_from_what_is_left() {
        let call = json!({ "type": "block_finished", "block": { "type": "tool_use", "id": "c1",
            "input": { "command": "echo call-2-end >> ledger.txt" } } });
        let start = [told("opened"), told("model_called")];
        let spoken = [&start[..], &[call, told("model_finished"), told("tool_started")]].concat();
        let stored = [&spoken[..], &[told("tool_finished"), told("model_called")]].concat();
        assert_eq!(evidence(&start, vec![request(true)]).phase(), Phase::MidStream);
        assert_eq!(evidence(&start, vec![request(false)]).phase(), Phase::Elsewhere);
        assert_eq!(evidence(&spoken, vec![request(false)]).phase(), Phase::ToolAlive);
        let mut done = evidence(&spoken, vec![request(false)]);
        done.ledger = vec!["call-2-end".into()];
        assert_eq!(done.phase(), Phase::EffectDone);
        assert_eq!(evidence(&stored, vec![request(false)]).phase(), Phase::ResultStored);
        assert_eq!(evidence(&stored, vec![request(false), request(true)]).phase(), Phase::MidStream);
        let mut untold = evidence(&spoken, vec![request(false)]);
        untold.told_to -= 1;
        assert_eq!(untold.phase(), Phase::Commit);
        let mut torn = evidence(&stored, vec![request(false)]);
        torn.torn = true;
        assert_eq!(torn.phase(), Phase::Commit);
        assert_eq!(evidence(&[told("opened")], vec![]).phase(), Phase::Elsewhere);
    }

    #[test]
    fn calls_of_an_earlier_life_do_not_count() {
        let events = [told("opened"), told("model_called"), told("tool_started"), told("reopened")];
        assert_eq!(evidence(&events, vec![]).phase(), Phase::Elsewhere);
    }

    #[test]
    fn a_journal_without_its_commit_is_torn() {
        let mut wal = vec![0; 32];
        wal[8..12].copy_from_slice(&8u32.to_be_bytes());
        wal[16..24].copy_from_slice(b"saltsalt");
        let frame =
            |size: u32, salts: &[u8]| [&1u32.to_be_bytes()[..], &size.to_be_bytes(), salts, &[0; 8], &[7; 8]].concat();
        assert!(!is_torn(&wal));
        wal.extend(frame(0, b"saltsalt"));
        assert!(is_torn(&wal));
        wal.extend(frame(2, b"saltsalt"));
        assert!(!is_torn(&wal));
        wal.extend(frame(0, b"oldsalts"));
        assert!(!is_torn(&wal));
        let closed = wal.len() - 32;
        wal.truncate(closed);
        wal.extend(&frame(0, b"saltsalt")[..20]);
        assert!(is_torn(&wal));
    }
}
