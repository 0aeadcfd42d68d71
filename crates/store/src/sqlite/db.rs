//! One connection and what its messages and leases need to know.

use super::{Worker, error};
use crate::StoreError;
use rusqlite::{CachedStatement, Connection, Params};
use std::sync::Arc;
use windlass_kernel::SessionId;

/// Prepared statements a connection keeps; this crate has about 35.
const STATEMENTS_MAX: usize = 48;

pub(super) struct Db {
    pub connection: Connection,
    pub path: Arc<str>,
    /// Who is asking.
    pub worker: Worker,
}

impl Db {
    pub fn new(connection: Connection, path: Arc<str>, worker: Worker) -> Db {
        connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
        Db { connection, path, worker }
    }

    /// The statement, prepared once per connection.
    pub fn statement(&self, sql: &str) -> Result<CachedStatement<'_>, StoreError> {
        self.connection.prepare_cached(sql).map_err(|error| self.explain(error))
    }

    /// Runs a statement that returns no rows; the number of rows it changed.
    pub fn execute(&self, sql: &str, params: impl Params) -> Result<usize, StoreError> {
        self.statement(sql)?.execute(params).map_err(|error| self.explain(error))
    }

    pub fn explain(&self, error: rusqlite::Error) -> StoreError {
        error::explain(&self.path, error)
    }
}

pub(super) fn key(session: SessionId) -> [u8; 16] {
    session.0.into_bytes()
}

// SQLite's integers are signed; the bits come back as they went.
pub(super) fn int(n: u64) -> i64 {
    n as i64
}

pub(super) fn nat(n: i64) -> u64 {
    n as u64
}
