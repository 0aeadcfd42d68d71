//! Old logs read by this build: the one place that knows how an event of an earlier version is told today.

use serde::Deserialize;
use serde_json::Value;
use windlass_kernel::{Event, EventId, Record, SCHEMA_VERSION, Seq, SessionId};

/// Why a stored event can't be read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum UpcastError {
    #[error("it has event schema {found}, this windlass knows {known}: use a newer one")]
    Newer { found: u16, known: u16 },
    #[error("{0}")]
    Unreadable(String),
}

/// The event that `body`, written with schema version `v`, stands for.
pub fn upcast(v: u16, body: Value) -> Result<Event, UpcastError> {
    check(v)?;
    serde_json::from_value(body).map_err(unreadable)
}

/// Like [`upcast`] from bytes; the present version is read without a detour through a tree of values.
pub(crate) fn event_of(v: u16, body: &[u8]) -> Result<Event, UpcastError> {
    if v == SCHEMA_VERSION {
        return serde_json::from_slice(body).map_err(unreadable);
    }
    upcast(v, serde_json::from_slice(body).map_err(unreadable)?)
}

/// The record that one line of a log file, of any version, stands for.
pub fn record_of_line(line: &str) -> Result<Record, UpcastError> {
    #[derive(Deserialize)]
    struct Line {
        v: u16,
        tenant: String,
        session: SessionId,
        seq: Seq,
        id: EventId,
        epoch: u64,
        at: u64,
        cause: Option<Seq>,
        event: Value,
    }
    let line: Line = serde_json::from_str(line).map_err(unreadable)?;
    let event = upcast(line.v, line.event)?;
    let Line { tenant, session, seq, id, epoch, at, cause, .. } = line;
    Ok(Record { v: SCHEMA_VERSION, tenant, session, seq, id, epoch, at, cause, event })
}

// Version 1 is the first, so there is no older form to translate yet.
fn check(v: u16) -> Result<(), UpcastError> {
    match v {
        SCHEMA_VERSION => Ok(()),
        0 => Err(UpcastError::Unreadable("it has event schema 0, which no windlass ever wrote".into())),
        found => Err(UpcastError::Newer { found, known: SCHEMA_VERSION }),
    }
}

fn unreadable(error: serde_json::Error) -> UpcastError {
    UpcastError::Unreadable(error.to_string())
}
