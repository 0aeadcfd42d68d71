//! Reading beside the writer: a few connections, made when first needed.

use super::db::{Db, int, key, nat};
use super::{Worker, error, lease, schema};
use crate::upcast::event_of;
use crate::{SessionFilter, SessionInfo, StoreError, UpcastError};
use bytes::Bytes;
use rusqlite::{OpenFlags, OptionalExtension, Row};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Semaphore;
use uuid::Uuid;
use windlass_kernel::{EventId, Record, SCHEMA_VERSION, Seq, SessionId};

/// Reads at once, and connections kept for them.
const READERS_MAX: usize = 4;

pub(super) struct Readers {
    file: PathBuf,
    path: Arc<str>,
    worker: Worker,
    seats: Arc<Semaphore>,
    idle: Mutex<Vec<Db>>,
}

impl Readers {
    pub fn new(file: &Path, path: Arc<str>, worker: Worker) -> Readers {
        let seats = Arc::new(Semaphore::new(READERS_MAX));
        Readers { file: file.to_owned(), path, worker, seats, idle: Mutex::default() }
    }

    /// Runs `work` with a connection, on a thread that may block.
    pub async fn run<T, F>(self: &Arc<Self>, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Db) -> Result<T, StoreError> + Send + 'static,
    {
        let seat = Arc::clone(&self.seats).acquire_owned().await.map_err(|_| self.stopped())?;
        let readers = Arc::clone(self);
        let reading = tokio::task::spawn_blocking(move || {
            let db = readers.take()?;
            let found = work(&db);
            readers.idle.lock().unwrap_or_else(PoisonError::into_inner).push(db);
            drop(seat);
            found
        });
        reading.await.map_err(|_| self.stopped())?
    }

    fn take(&self) -> Result<Db, StoreError> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        if let Some(db) = idle {
            return Ok(db);
        }
        let connection = schema::connect(&self.file, OpenFlags::SQLITE_OPEN_READ_ONLY);
        let connection = connection.map_err(|error| error::explain(&self.path, error))?;
        Ok(Db::new(connection, Arc::clone(&self.path), self.worker.clone()))
    }

    fn stopped(&self) -> StoreError {
        let message = "a read broke off; this is a bug in windlass".to_owned();
        StoreError::Unavailable { path: self.path.to_string(), message }
    }
}

pub(super) fn check_session(db: &Db, session: SessionId) -> Result<(), StoreError> {
    tenant(db, session).map(|_| ())
}

fn tenant(db: &Db, session: SessionId) -> Result<String, StoreError> {
    let mut statement = db.statement("SELECT tenant FROM session WHERE id = ?1")?;
    let found = statement.query_row([key(session)], |row| row.get(0)).optional();
    found.map_err(|error| db.explain(error))?.ok_or(StoreError::NoSuchSession(session))
}

/// Up to `limit` records from `from` on; damage anywhere among them is an error.
pub(super) fn records(db: &Db, session: SessionId, from: Seq, limit: usize) -> Result<Vec<Record>, StoreError> {
    let tenant = tenant(db, session)?;
    let mut statement = db.statement(
        "SELECT seq, v, epoch, id, at, cause, body FROM event WHERE session = ?1 AND seq >= ?2 ORDER BY seq LIMIT ?3",
    )?;
    let mut expected = from.max(Seq(1));
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut rows = statement.query((key(session), int(expected.0), limit)).map_err(|error| db.explain(error))?;
    let mut records = Vec::new();
    loop {
        let row = match rows.next() {
            Ok(Some(row)) => row,
            Ok(None) => return Ok(records),
            Err(error) => return Err(unreadable(db, session, expected, error)),
        };
        let record = record(row, session, &tenant, expected).map_err(|flaw| flaw.at(db, session, expected))?;
        records.push(record);
        expected = expected.next();
    }
}

/// What is wrong with a row.
enum Flaw {
    Newer(u16),
    Damage(String),
}

impl Flaw {
    fn at(self, db: &Db, session: SessionId, seq: Seq) -> StoreError {
        match self {
            Flaw::Newer(found) => {
                StoreError::Newer { path: db.path.to_string(), found: found.into(), known: SCHEMA_VERSION.into() }
            }
            Flaw::Damage(message) => StoreError::Damaged { session, seq, message, good: seq.0 - 1 },
        }
    }
}

impl From<rusqlite::Error> for Flaw {
    fn from(error: rusqlite::Error) -> Flaw {
        Flaw::Damage(error.to_string())
    }
}

fn record(row: &Row<'_>, session: SessionId, tenant: &str, expected: Seq) -> Result<Record, Flaw> {
    let seq = Seq(nat(row.get(0)?));
    if seq != expected {
        return Err(Flaw::Damage(format!("it is missing; the next that is there is {seq}")));
    }
    let body = row.get_ref(6)?.as_bytes().map_err(|error| Flaw::Damage(error.to_string()))?;
    let event = event_of(row.get(1)?, body).map_err(|error| match error {
        UpcastError::Newer { found, .. } => Flaw::Newer(found),
        UpcastError::Unreadable(message) => Flaw::Damage(message),
    })?;
    Ok(Record {
        // Whatever version it was written with, it is told as of today.
        v: SCHEMA_VERSION,
        tenant: tenant.to_owned(),
        session,
        seq,
        id: EventId(Uuid::from_bytes(row.get(3)?)),
        epoch: nat(row.get(2)?),
        at: nat(row.get(4)?),
        cause: row.get::<_, Option<i64>>(5)?.map(|cause| Seq(nat(cause))),
        event,
    })
}

// A torn page shows itself in the middle of a log: what stands before it can still be read.
fn unreadable(db: &Db, session: SessionId, seq: Seq, error: rusqlite::Error) -> StoreError {
    match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::DatabaseCorrupt) => {
            let message = format!("the file {} is corrupt there ({error})", db.path);
            StoreError::Damaged { session, seq, message, good: seq.0 - 1 }
        }
        _ => db.explain(error),
    }
}

pub(super) fn sessions(db: &Db, of: SessionFilter) -> Result<Vec<SessionInfo>, StoreError> {
    let mut statement = db.statement(
        "SELECT session.id, cwd, title, created_at, event.at, event.seq, worker.id, pid, started, boot_id
         FROM session
         JOIN event ON event.session = session.id AND seq = (SELECT max(seq) FROM event WHERE session = session.id)
         LEFT JOIN worker ON worker.id = owner
         WHERE parent IS NULL AND (?1 IS NULL OR cwd = ?1)
         ORDER BY event.at DESC, session.id DESC LIMIT ?2",
    )?;
    let limit = of.limit.map_or(-1, |limit| i64::try_from(limit).unwrap_or(i64::MAX));
    let rows = statement.query_map((of.cwd, limit), |row| info(row, &db.worker.boot_id));
    rows.and_then(|rows| rows.collect()).map_err(|error| db.explain(error))
}

fn info(row: &Row<'_>, boot_id: &str) -> rusqlite::Result<SessionInfo> {
    let owner = lease::worker(row, 6)?.filter(|worker| worker.lives(boot_id));
    Ok(SessionInfo {
        session: SessionId(Uuid::from_bytes(row.get(0)?)),
        cwd: row.get(1)?,
        title: row.get(2)?,
        created_at: nat(row.get(3)?),
        updated_at: nat(row.get(4)?),
        events: nat(row.get(5)?),
        held_by: owner.map(|worker| worker.pid),
    })
}

pub(super) fn blob(db: &Db, hash: &str) -> Result<Option<Bytes>, StoreError> {
    let mut statement = db.statement("SELECT bytes FROM blob WHERE hash = ?1")?;
    let found = statement.query_row([hash], |row| row.get::<_, Vec<u8>>(0)).optional();
    Ok(found.map_err(|error| db.explain(error))?.map(Bytes::from))
}
