//! Sessions in one SQLite file, which several processes may have open at once.
//!
//! One thread owns the writing connection and puts whatever is queued into one transaction, each batch behind a
//! savepoint of its own; reads have connections of their own and never wait for it.

mod append;
mod db;
mod error;
mod inbox;
mod lease;
mod ledger;
mod read;
mod schema;
mod writer;

use crate::*;
use async_trait::async_trait;
use bytes::Bytes;
use read::Readers;
use std::path::Path;
use std::sync::Arc;
use windlass_kernel::{LedgerLine, LedgerSum, Record, Seq, SessionId, Spending};
use writer::Writer;

pub use lease::Worker;
pub use writer::StoreStats;

/// How a store is opened, where the usual does not do.
#[derive(Clone, Copy, Debug, Default)]
pub struct SqliteOptions {
    /// The store's size limit in pages of 4 KiB; what does not fit is refused as `Full`. None: SQLite's own, 16 TB.
    pub max_pages: Option<u32>,
}

/// A store in one file (and its `-wal` and `-shm` neighbours). Dropping it waits for what is queued.
pub struct SqliteStore {
    writer: Writer,
    readers: Arc<Readers>,
    path: Arc<str>,
}

impl SqliteStore {
    /// Opens the store at `path` for `worker`, making it and its folder if they are not there. `path` should be
    /// absolute: connections for reading are opened later.
    pub fn open(path: &Path, worker: Worker) -> Result<SqliteStore, StoreError> {
        SqliteStore::open_with(path, worker, SqliteOptions::default())
    }

    pub fn open_with(path: &Path, worker: Worker, options: SqliteOptions) -> Result<SqliteStore, StoreError> {
        let connection = schema::open(path, options)?;
        let shown: Arc<str> = path.display().to_string().into();
        let db = db::Db::new(connection, Arc::clone(&shown), worker.clone());
        Ok(SqliteStore {
            writer: Writer::start(db)?,
            readers: Arc::new(Readers::new(path, Arc::clone(&shown), worker)),
            path: shown,
        })
    }

    /// What was written through this store so far.
    pub fn stats(&self) -> StoreStats {
        self.writer.stats()
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn create(&self, session: SessionId) -> Result<Fence, StoreError> {
        self.writer.run(move |db| lease::create(db, session)).await
    }

    async fn claim(&self, session: SessionId) -> Result<Fence, StoreError> {
        self.writer.run(move |db| lease::claim(db, session)).await
    }

    async fn release(&self, fence: &Fence) -> Result<(), StoreError> {
        let fence = *fence;
        self.writer.run(move |db| lease::release(db, fence)).await
    }

    async fn append(&self, batch: Batch) -> Result<(), StoreError> {
        batch::check(&batch, &self.path)?;
        let rows = append::Rows::of(batch, &self.path)?;
        self.writer.append(rows).await
    }

    async fn read(&self, session: SessionId, from: Seq, limit: usize) -> Result<Vec<Record>, StoreError> {
        self.readers.run(move |db| read::records(db, session, from, limit)).await
    }

    async fn sessions(&self, of: SessionFilter) -> Result<Vec<SessionInfo>, StoreError> {
        self.readers.run(move |db| read::sessions(db, of)).await
    }

    async fn enqueue(&self, session: SessionId, input: Input) -> Result<bool, StoreError> {
        let row = inbox::Row::of(session, input, &self.path)?;
        self.writer.run(move |db| inbox::enqueue(db, &row)).await
    }

    async fn inbox(&self, session: SessionId) -> Result<Vec<Input>, StoreError> {
        self.readers.run(move |db| inbox::list(db, session)).await
    }

    async fn blob(&self, hash: &str) -> Result<Option<Bytes>, StoreError> {
        let hash = hash.to_owned();
        self.readers.run(move |db| read::blob(db, &hash)).await
    }

    async fn ledger(&self, of: LedgerFilter) -> Result<Vec<LedgerLine>, StoreError> {
        self.readers.run(move |db| ledger::lines(db, of)).await
    }

    async fn ledger_sums(&self, of: LedgerFilter, by: LedgerKey) -> Result<Vec<LedgerSum>, StoreError> {
        self.readers.run(move |db| ledger::sums(db, of, by)).await
    }

    async fn spent(&self, scope: SpentScope) -> Result<Spending, StoreError> {
        self.readers.run(move |db| ledger::spent(db, scope)).await
    }
}
