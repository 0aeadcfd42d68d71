//! Inputs on their way into a log.

use super::db::{Db, int, key, nat};
use super::read;
use crate::{Input, StoreError};
use uuid::Uuid;
use windlass_kernel::{InputId, SessionId};

/// An input made ready by its sender.
pub(super) struct Row {
    session: SessionId,
    id: [u8; 16],
    at: i64,
    body: String,
}

impl Row {
    pub fn of(session: SessionId, input: Input, path: &str) -> Result<Row, StoreError> {
        let body = serde_json::to_string(&input.command).map_err(|error| StoreError::Unavailable {
            path: path.to_owned(),
            message: format!("an input can't be written as JSON ({error}): it was not queued"),
        })?;
        Ok(Row { session, id: input.id.0.into_bytes(), at: int(input.at), body })
    }
}

/// False if that input is there or in the log already.
pub(super) fn enqueue(db: &Db, row: &Row) -> Result<bool, StoreError> {
    read::check_session(db, row.session)?;
    let added = db.execute(
        "INSERT INTO inbox (session, id, body, at) SELECT ?1, ?2, ?3, ?4
         WHERE NOT EXISTS (SELECT 1 FROM taken WHERE session = ?1 AND id = ?2) ON CONFLICT DO NOTHING",
        (key(row.session), row.id, &row.body, row.at),
    )?;
    Ok(added == 1)
}

/// Those not yet moved to the log, in the order they came.
pub(super) fn list(db: &Db, session: SessionId) -> Result<Vec<Input>, StoreError> {
    read::check_session(db, session)?;
    let mut statement = db.statement("SELECT id, at, body FROM inbox WHERE session = ?1 ORDER BY place")?;
    let rows = statement.query_map([key(session)], |row| {
        Ok((row.get::<_, [u8; 16]>(0)?, row.get::<_, i64>(1)?, row.get::<_, String>(2)?))
    });
    let mut inputs = Vec::new();
    for row in rows.map_err(|error| db.explain(error))? {
        let (id, at, body) = row.map_err(|error| db.explain(error))?;
        let id = InputId(Uuid::from_bytes(id));
        // Left by another version, for it to read: it stays where it is, and keeps nobody else's input waiting.
        let Ok(command) = serde_json::from_str(&body) else { continue };
        inputs.push(Input { id, command, at: nat(at) });
    }
    Ok(inputs)
}
