//! `windlass log ID`: what happened, one line an event.

use crate::clock;
use crate::desk::{self, Desk};
use crate::exit::{Code, Ended, Failure};
use crate::lines;
use crate::terminal::{print, print_json, tell};
use crate::view::View;
use windlass_kernel::Record;

/// Lines printed at once.
const LINES_AT_ONCE: usize = 256;

pub async fn show(desk: &Desk, id: &str, json: bool, from: u64) -> Ended {
    let session = desk::find(&*desk.store, id).await?.session;
    let (records, damage) = desk.store.salvage(session).await;
    let mut view = View::default();
    let put = if json { print_json } else { print };
    let mut lines = String::new();
    for (at, record) in records.iter().enumerate() {
        // Earlier events are looked at as well: later lines refer to them.
        let line = if json { as_stored(record)? } else { readable(&mut view, record) };
        if record.seq.0 >= from {
            lines += &line;
        }
        if at % LINES_AT_ONCE == 0 {
            put(&std::mem::take(&mut lines));
        }
    }
    put(&lines);
    match damage {
        Some(damage) => Err(damage.into()),
        None => {
            let last = records.last().map_or(0, |record| record.seq.0);
            if from > last {
                tell(&format!("windlass: the log ends at event {last}; --from {from} lies beyond it"));
            }
            Ok(Code::Done)
        }
    }
}

fn as_stored(record: &Record) -> Result<String, Failure> {
    let line = serde_json::to_string(record).map_err(|error| {
        Failure::new(Code::Failed, format!("event {} can't be written as JSON: {error}", record.seq))
    })?;
    Ok(line + "\n")
}

fn readable(view: &mut View, record: &Record) -> String {
    let cause = record.cause.map(|cause| format!("← {cause}")).unwrap_or_default();
    format!("{:>5}  {}  {:<6} {}\n", record.seq, clock::exact(record.at), cause, lines::event(view, &record.event))
}
