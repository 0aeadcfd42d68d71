//! Sessions kept in this process alone: for tests and for runs that shall leave nothing behind.

use crate::*;
use async_trait::async_trait;
use bytes::Bytes;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use windlass_kernel::{InputId, LedgerEntry, LedgerLine, LedgerSum, Record, Seq, SessionId, Spending, utc_day};

/// What stands for a path in this store's messages.
const PATH: &str = "memory";

/// A store that ends with its process. Only this process can hold a session, so a claim always succeeds.
#[derive(Default)]
pub struct MemoryStore {
    shelf: Mutex<Shelf>,
}

#[derive(Default)]
struct Shelf {
    logs: HashMap<SessionId, Log>,
    blobs: HashMap<String, Bytes>,
}

#[derive(Default)]
struct Log {
    epoch: u64,
    records: Vec<Arc<Record>>,
    inbox: Vec<Input>,
    /// Inputs that are in the log.
    taken: HashSet<InputId>,
    opening: Option<batch::Opening>,
    title: Option<String>,
    /// The session at the root of its agent tree; none: itself.
    root: Option<SessionId>,
    ledger: Vec<LedgerLine>,
}

impl MemoryStore {
    pub fn new() -> MemoryStore {
        MemoryStore::default()
    }

    // A panic elsewhere cannot leave a shelf half changed: every change below is made after its checks.
    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shelf {
    fn log(&mut self, session: SessionId) -> Result<&mut Log, StoreError> {
        self.logs.get_mut(&session).ok_or(StoreError::NoSuchSession(session))
    }

    fn root(&self, session: SessionId) -> SessionId {
        self.logs.get(&session).and_then(|log| log.root).unwrap_or(session)
    }

    /// The lines that are meant, in no order.
    fn lines(&self, of: LedgerFilter) -> impl Iterator<Item = &LedgerLine> {
        let fits = move |line: &&LedgerLine| {
            of.session.is_none_or(|session| line.session == session)
                && of.from.is_none_or(|from| line.at >= from)
                && of.to.is_none_or(|to| line.at < to)
        };
        self.logs.values().flat_map(|log| &log.ledger).filter(fits)
    }
}

impl Log {
    fn head(&self) -> Seq {
        Seq(self.records.len() as u64)
    }

    fn check_fence(&self, fence: &Fence) -> Result<(), StoreError> {
        if self.epoch == fence.epoch {
            return Ok(());
        }
        Err(StoreError::Fenced { session: fence.session, epoch: fence.epoch })
    }

    fn take_up(&mut self, session: SessionId) -> Fence {
        self.epoch += 1;
        Fence { session, epoch: self.epoch }
    }

    /// Whether an earlier attempt wrote this very batch.
    fn holds(&self, batch: &Batch) -> bool {
        if batch.records.is_empty() {
            return false;
        }
        let there = &self.records[self.records.len().min(batch.expected.0 as usize)..];
        there.len() >= batch.records.len() && there.iter().zip(&batch.records).all(|(a, b)| a.id == b.id)
    }

    fn append(&mut self, batch: &Batch) {
        let inputs = batch::inputs(batch);
        self.inbox.retain(|input| !batch.consumed.contains(&input.id));
        self.taken.extend(inputs);
        self.opening = batch::opening(&batch.records).or(self.opening.take());
        self.title = self.title.take().or_else(|| batch::title(&batch.records));
        self.records.extend(batch.records.iter().cloned());
        for mut entry in batch::entries(&batch.records) {
            if let LedgerEntry::Called(line) = &mut entry {
                line.agent = self.opening.as_ref().map(|opening| opening.agent.clone()).unwrap_or_default();
                line.root = self.root.unwrap_or(line.session);
            }
            entry.enter(&mut self.ledger);
        }
    }

    fn info(&self, session: SessionId) -> Option<SessionInfo> {
        let last = self.records.last()?;
        let opening = self.opening.as_ref();
        if opening.is_some_and(|opening| opening.parent.is_some()) {
            return None;
        }
        Some(SessionInfo {
            session,
            cwd: opening.map(|opening| opening.cwd.clone()).unwrap_or_default(),
            title: self.title.clone().unwrap_or_default(),
            created_at: opening.map(|opening| opening.created_at).unwrap_or_default(),
            updated_at: last.at,
            events: last.seq.0,
            held_by: None,
        })
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn create(&self, session: SessionId) -> Result<Fence, StoreError> {
        let mut shelf = self.shelf();
        let log = shelf.logs.entry(session).or_default();
        match log.head() {
            Seq(0) => Ok(log.take_up(session)),
            head => Err(StoreError::Conflict { session, head }),
        }
    }

    async fn claim(&self, session: SessionId) -> Result<Fence, StoreError> {
        Ok(self.shelf().log(session)?.take_up(session))
    }

    async fn release(&self, fence: &Fence) -> Result<(), StoreError> {
        self.shelf().log(fence.session)?.check_fence(fence)
    }

    async fn append(&self, batch: Batch) -> Result<(), StoreError> {
        batch::check(&batch, PATH)?;
        let session = batch.fence.session;
        let mut shelf = self.shelf();
        let parent = batch::opening(&batch.records).and_then(|opening| opening.parent);
        let root = parent.map(|parent| shelf.root(parent));
        let log = shelf.log(session)?;
        log.check_fence(&batch.fence)?;
        if let (Some(has), Some(given)) = (log.records.first(), batch.records.first()) {
            batch::check_tenant(session, &has.tenant, &given.tenant, PATH)?;
        }
        if log.head() != batch.expected {
            return if log.holds(&batch) { Ok(()) } else { Err(StoreError::Conflict { session, head: log.head() }) };
        }
        log.root = root.or(log.root);
        log.append(&batch);
        for (blob, bytes) in batch.blobs {
            shelf.blobs.entry(blob.hash).or_insert(bytes);
        }
        Ok(())
    }

    async fn read(&self, session: SessionId, from: Seq, limit: usize) -> Result<Vec<Record>, StoreError> {
        let mut shelf = self.shelf();
        let records = &shelf.log(session)?.records;
        let skipped = from.0.saturating_sub(1) as usize;
        Ok(records.iter().skip(skipped).take(limit).map(|record| Record::clone(record)).collect())
    }

    async fn sessions(&self, of: SessionFilter) -> Result<Vec<SessionInfo>, StoreError> {
        let shelf = self.shelf();
        let infos = shelf.logs.iter().filter_map(|(session, log)| log.info(*session));
        let mut found: Vec<_> = infos.filter(|info| of.cwd.as_ref().is_none_or(|cwd| *cwd == info.cwd)).collect();
        found.sort_by_key(|info| std::cmp::Reverse((info.updated_at, info.session)));
        found.truncate(of.limit.unwrap_or(usize::MAX));
        Ok(found)
    }

    async fn enqueue(&self, session: SessionId, input: Input) -> Result<bool, StoreError> {
        let mut shelf = self.shelf();
        let log = shelf.log(session)?;
        let known = log.taken.contains(&input.id) || log.inbox.iter().any(|queued| queued.id == input.id);
        if !known {
            log.inbox.push(input);
        }
        Ok(!known)
    }

    async fn inbox(&self, session: SessionId) -> Result<Vec<Input>, StoreError> {
        Ok(self.shelf().log(session)?.inbox.clone())
    }

    async fn blob(&self, hash: &str) -> Result<Option<Bytes>, StoreError> {
        Ok(self.shelf().blobs.get(hash).cloned())
    }

    async fn ledger(&self, of: LedgerFilter) -> Result<Vec<LedgerLine>, StoreError> {
        let shelf = self.shelf();
        let mut lines: Vec<_> = shelf.lines(of).collect();
        lines.sort_by_key(|line| LedgerPlace::of(line));
        let page = lines.into_iter().filter(|line| of.after.is_none_or(|after| LedgerPlace::of(line) > after));
        Ok(page.take(of.limit.unwrap_or(usize::MAX)).cloned().collect())
    }

    async fn ledger_sums(&self, of: LedgerFilter, by: LedgerKey) -> Result<Vec<LedgerSum>, StoreError> {
        let shelf = self.shelf();
        let mut sums: BTreeMap<String, LedgerSum> = BTreeMap::new();
        for line in shelf.lines(of) {
            let key = match by {
                LedgerKey::Day => utc_day(line.at),
                LedgerKey::Model => format!("{}/{}", line.provider, line.model),
                LedgerKey::Agent => line.agent.clone(),
            };
            sums.entry(key).or_default().add(line);
        }
        Ok(sums.into_iter().map(|(key, sum)| LedgerSum { key, ..sum }).collect())
    }

    async fn spent(&self, scope: SpentScope) -> Result<Spending, StoreError> {
        let shelf = self.shelf();
        let tree = match scope {
            SpentScope::Tree(session) => Some(shelf.root(session)),
            SpentScope::Since(_) => None,
        };
        let from = match scope {
            SpentScope::Since(from) => Some(from),
            SpentScope::Tree(_) => None,
        };
        let lines = shelf.lines(LedgerFilter { from, ..LedgerFilter::default() });
        let mine = lines.filter(|line| tree.is_none_or(|root| line.root == root)).map(LedgerLine::spending);
        Ok(mine.fold(Spending::default(), |sum, one| Spending {
            micro_usd: sum.micro_usd + one.micro_usd,
            tokens: sum.tokens + one.tokens,
        }))
    }
}
