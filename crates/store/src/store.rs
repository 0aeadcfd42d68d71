//! What a store of sessions must do.

use async_trait::async_trait;
use bytes::Bytes;
use std::sync::Arc;
use windlass_kernel::{BlobRef, Command, InputId, LedgerLine, LedgerSum, Record, Seq, SessionId, Spending};

/// Many append-only logs, each with one writer at a time.
#[async_trait]
pub trait Store: Send + Sync {
    /// Makes a session and takes it up under epoch 1. One that is there and still empty is claimed instead;
    /// one with events is a `Conflict`.
    async fn create(&self, session: SessionId) -> Result<Fence, StoreError>;
    /// Takes a session up: a new epoch, under which no earlier holder can append.
    /// Refused while the holder's process lives, unless that is this very process.
    async fn claim(&self, session: SessionId) -> Result<Fence, StoreError>;
    /// Gives a session up, so that anybody can claim it.
    async fn release(&self, fence: &Fence) -> Result<(), StoreError>;
    /// All of the batch or nothing of it, durable when it returns. A batch that is in the log already is well:
    /// so one whose answer was lost can be sent again.
    async fn append(&self, batch: Batch) -> Result<(), StoreError>;
    /// Up to `limit` records from `from` on, in order.
    async fn read(&self, session: SessionId, from: Seq, limit: usize) -> Result<Vec<Record>, StoreError>;
    /// The whole log; where it is damaged, what stands before the damage, and the damage.
    async fn salvage(&self, session: SessionId) -> (Vec<Record>, Option<StoreError>) {
        let mut saved = Vec::new();
        let mut page = SALVAGE_PAGE;
        loop {
            let from = Seq(saved.len() as u64 + 1);
            match self.read(session, from, page).await {
                Ok(records) if records.is_empty() => return (saved, None),
                Ok(records) => saved.extend(records),
                // The damage lies somewhere in this page: go up to it record by record.
                Err(_) if page > 1 => page = 1,
                Err(error) => return (saved, Some(error)),
            }
        }
    }
    /// Sessions that have an event and are no sub-agent's, the one with the newest event first.
    async fn sessions(&self, of: SessionFilter) -> Result<Vec<SessionInfo>, StoreError>;
    /// Leaves an input for a session, whoever holds it. False if that input id is there or in the log already.
    async fn enqueue(&self, session: SessionId, input: Input) -> Result<bool, StoreError>;
    /// Inputs left and not yet moved to the log, oldest first.
    async fn inbox(&self, session: SessionId) -> Result<Vec<Input>, StoreError>;
    async fn blob(&self, hash: &str) -> Result<Option<Bytes>, StoreError>;
    /// A line for every model call, in the order they were made.
    async fn ledger(&self, of: LedgerFilter) -> Result<Vec<LedgerLine>, StoreError>;
    /// The lines of `of`, all pages of them, added up by what they have in common, in the order of their keys.
    async fn ledger_sums(&self, of: LedgerFilter, by: LedgerKey) -> Result<Vec<LedgerSum>, StoreError>;
    /// What was spent so far. Cheap enough to be asked every second.
    async fn spent(&self, scope: SpentScope) -> Result<Spending, StoreError>;
}

/// Records that `salvage` reads at a time.
const SALVAGE_PAGE: usize = 1000;

/// The right to append to a session under one epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fence {
    pub session: SessionId,
    pub epoch: u64,
}

/// What becomes durable together.
#[derive(Clone, Debug)]
pub struct Batch {
    pub fence: Fence,
    /// The log's head before this batch; the first record's `seq` is one more.
    pub expected: Seq,
    pub records: Vec<Arc<Record>>,
    pub blobs: Vec<(BlobRef, Bytes)>,
    /// Inputs whose events are in `records`: they leave the inbox in the same transaction.
    pub consumed: Vec<InputId>,
    /// Survive power loss too, not only the death of the process.
    pub sync: bool,
}

/// An input on its way into a log.
#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    pub id: InputId,
    pub command: Command,
    /// Milliseconds since the Unix epoch.
    pub at: u64,
}

#[derive(Clone, Debug, Default)]
pub struct SessionFilter {
    pub cwd: Option<String>,
    pub limit: Option<usize>,
}

#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct SessionInfo {
    pub session: SessionId,
    pub cwd: String,
    /// The first prompt's first line.
    pub title: String,
    /// Milliseconds since the Unix epoch.
    pub created_at: u64,
    pub updated_at: u64,
    /// The log's head.
    pub events: u64,
    /// The id of the live process that holds it, if one does.
    pub held_by: Option<u32>,
}

/// Which model calls are meant; all, where nothing is said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LedgerFilter {
    pub session: Option<SessionId>,
    /// Calls made at this time or later, in milliseconds since the Unix epoch.
    pub from: Option<u64>,
    /// Calls made before this time.
    pub to: Option<u64>,
    /// Calls behind this one: the next page.
    pub after: Option<LedgerPlace>,
    pub limit: Option<usize>,
}

/// A line's place among all lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LedgerPlace {
    pub at: u64,
    pub session: SessionId,
    pub work: Seq,
}

/// By what lines are added up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LedgerKey {
    /// The day of UTC, as `2026-11-21`.
    Day,
    /// `PROVIDER/NAME`.
    Model,
    Agent,
}

/// Whose spending is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpentScope {
    /// Of the agent tree that this session is in.
    Tree(SessionId),
    /// Of all sessions, by the calls made at this time or later.
    Since(u64),
}

impl LedgerPlace {
    pub fn of(line: &LedgerLine) -> LedgerPlace {
        LedgerPlace { at: line.at, session: line.session, work: line.work }
    }
}

/// What went wrong, told by what to do about it.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    #[error("there is no session {0}: `windlass sessions` lists those there are")]
    NoSuchSession(SessionId),
    #[error(
        "session {session} is open in process {pid}: close it there, or queue a prompt for it with `windlass send`"
    )]
    Held { session: SessionId, pid: u32 },
    /// Another writer took the session: stop, throw the state away.
    #[error(
        "session {session} was taken over by another process (epoch {epoch} is no longer ours): nothing more was written here"
    )]
    Fenced { session: SessionId, epoch: u64 },
    /// Somebody appended under the same epoch: stop, throw the state away.
    #[error("session {session} has an event {head} that this process did not write: nothing more was written here")]
    Conflict { session: SessionId, head: Seq },
    #[error("the disk is full: free some space at {path}, then resume the session; nothing was lost")]
    Full { path: String },
    /// The `good` events before the damage can be read: [`Store::salvage`] gives them.
    #[error(
        "session {session} is damaged at event {seq}: {message}; the {good} events before it are whole (`windlass log {session}` shows them)"
    )]
    Damaged { session: SessionId, seq: Seq, message: String, good: u64 },
    #[error(
        "the store at {path} was written by a newer windlass (schema {found}, this one knows {known}): use that version"
    )]
    Newer { path: String, found: u32, known: u32 },
    #[error("the store at {path} can't be used: {message}")]
    Unavailable { path: String, message: String },
}
