//! A batch as rows, and their way into the log.

use super::db::{Db, int, key, nat};
use super::ledger;
use crate::{Batch, Fence, StoreError, batch};
use bytes::Bytes;
use rusqlite::OptionalExtension;
use windlass_kernel::{BlobRef, InputId, LedgerEntry, Record, Seq};

/// A batch made ready by its sender, so that the one thread that writes has only to write.
pub(super) struct Rows {
    pub fence: Fence,
    pub sync: bool,
    expected: Seq,
    /// None: there are no events in it.
    tenant: Option<String>,
    events: Vec<Row>,
    blobs: Vec<(BlobRef, Bytes)>,
    consumed: Vec<InputId>,
    taken: Vec<InputId>,
    opening: Option<batch::Opening>,
    title: Option<String>,
    ledger: Vec<LedgerEntry>,
}

struct Row {
    seq: i64,
    id: [u8; 16],
    at: i64,
    v: u16,
    cause: Option<i64>,
    body: String,
}

/// What append needs to know of a session.
struct Present {
    epoch: u64,
    head: Seq,
    tenant: String,
}

impl Rows {
    pub fn of(batch: Batch, path: &str) -> Result<Rows, StoreError> {
        let events: Result<_, serde_json::Error> = batch.records.iter().map(|record| Row::of(record)).collect();
        let events = events.map_err(|error| StoreError::Unavailable {
            path: path.to_owned(),
            message: format!("an event can't be written as JSON ({error}): nothing was written"),
        })?;
        Ok(Rows {
            events,
            tenant: batch.records.first().map(|record| record.tenant.clone()),
            taken: batch::inputs(&batch),
            opening: batch::opening(&batch.records),
            title: batch::title(&batch.records),
            ledger: batch::entries(&batch.records),
            fence: batch.fence,
            sync: batch.sync,
            expected: batch.expected,
            blobs: batch.blobs,
            consumed: batch.consumed,
        })
    }
}

impl Row {
    fn of(record: &Record) -> Result<Row, serde_json::Error> {
        Ok(Row {
            seq: int(record.seq.0),
            id: record.id.0.into_bytes(),
            at: int(record.at),
            v: record.v,
            cause: record.cause.map(|cause| int(cause.0)),
            body: serde_json::to_string(&record.event)?,
        })
    }
}

/// Writes all of `rows`, or says why none may be written.
pub(super) fn append(db: &Db, rows: &Rows) -> Result<(), StoreError> {
    let Fence { session, epoch } = rows.fence;
    let present = present(db, rows)?;
    if present.epoch != epoch {
        return Err(StoreError::Fenced { session, epoch });
    }
    if let Some(given) = rows.tenant.as_ref().filter(|_| present.head > Seq(0)) {
        batch::check_tenant(session, &present.tenant, given, &db.path)?;
    }
    if present.head != rows.expected {
        let written = is_written(db, rows)?;
        return if written { Ok(()) } else { Err(StoreError::Conflict { session, head: present.head }) };
    }
    insert_events(db, rows)?;
    insert_blobs(db, rows)?;
    move_inputs(db, rows)?;
    if present.head == Seq(0) {
        set_tenant(db, rows)?;
    }
    set_heading(db, rows)?;
    // Behind the heading: a line names the session's agent and the root of its tree.
    rows.ledger.iter().try_for_each(|entry| ledger::enter(db, session, entry))
}

fn present(db: &Db, rows: &Rows) -> Result<Present, StoreError> {
    let mut statement = db.statement(
        "SELECT epoch, tenant, (SELECT max(seq) FROM event WHERE session = ?1) FROM session WHERE id = ?1",
    )?;
    let found = statement.query_row([key(rows.fence.session)], |row| {
        let head: Option<i64> = row.get(2)?;
        Ok(Present { epoch: nat(row.get(0)?), tenant: row.get(1)?, head: Seq(nat(head.unwrap_or(0))) })
    });
    found.optional().map_err(|error| db.explain(error))?.ok_or(StoreError::NoSuchSession(rows.fence.session))
}

/// Whether an earlier attempt wrote these very events.
fn is_written(db: &Db, rows: &Rows) -> Result<bool, StoreError> {
    let mut statement = db.statement("SELECT id FROM event WHERE session = ?1 AND seq = ?2")?;
    for event in &rows.events {
        let id = statement.query_row((key(rows.fence.session), event.seq), |row| row.get::<_, [u8; 16]>(0)).optional();
        if id.map_err(|error| db.explain(error))? != Some(event.id) {
            return Ok(false);
        }
    }
    Ok(!rows.events.is_empty())
}

fn insert_events(db: &Db, rows: &Rows) -> Result<(), StoreError> {
    let mut statement = db.statement(
        "INSERT INTO event (session, seq, epoch, id, at, v, cause, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    )?;
    let (session, epoch) = (key(rows.fence.session), int(rows.fence.epoch));
    for Row { seq, id, at, v, cause, body } in &rows.events {
        statement.execute((session, seq, epoch, id, at, v, cause, body)).map_err(|error| db.explain(error))?;
    }
    Ok(())
}

fn insert_blobs(db: &Db, rows: &Rows) -> Result<(), StoreError> {
    for (blob, bytes) in &rows.blobs {
        db.execute("INSERT INTO blob (hash, bytes) VALUES (?1, ?2) ON CONFLICT DO NOTHING", (&blob.hash, &bytes[..]))?;
    }
    Ok(())
}

fn move_inputs(db: &Db, rows: &Rows) -> Result<(), StoreError> {
    let session = key(rows.fence.session);
    for input in &rows.consumed {
        db.execute("DELETE FROM inbox WHERE session = ?1 AND id = ?2", (session, input.0.into_bytes()))?;
    }
    for input in &rows.taken {
        let sql = "INSERT INTO taken (session, id) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
        db.execute(sql, (session, input.0.into_bytes()))?;
    }
    Ok(())
}

fn set_tenant(db: &Db, rows: &Rows) -> Result<(), StoreError> {
    let Some(tenant) = &rows.tenant else { return Ok(()) };
    db.execute("INSERT INTO tenant (id) VALUES (?1) ON CONFLICT DO NOTHING", [tenant])?;
    db.execute("UPDATE session SET tenant = ?2 WHERE id = ?1", (key(rows.fence.session), tenant))?;
    Ok(())
}

fn set_heading(db: &Db, rows: &Rows) -> Result<(), StoreError> {
    let session = key(rows.fence.session);
    if let Some(batch::Opening { cwd, agent, created_at, parent }) = &rows.opening {
        db.execute(
            "UPDATE session SET cwd = ?2, created_at = ?3, parent = ?4, agent = ?5,
             root = coalesce((SELECT root FROM session AS above WHERE above.id = ?4), ?4, ?1) WHERE id = ?1",
            (session, cwd, int(*created_at), parent.map(key), agent),
        )?;
    }
    if let Some(title) = &rows.title {
        db.execute("UPDATE session SET title = ?2 WHERE id = ?1 AND title = ''", (session, title))?;
    }
    Ok(())
}
