//! The one thread that writes: whatever is queued becomes one transaction, and each sender hears after its commit.

use super::append::{self, Rows};
use super::db::Db;
use super::error::is_of_the_file;
use crate::StoreError;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use tokio::sync::{mpsc, oneshot};

/// Requests waiting for the writer; more senders wait for room.
const QUEUE_MAX: usize = 1024;
/// Requests in one transaction: bounds how long the first of them waits for its answer.
const GROUP_MAX: usize = 256;

/// What was written, in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreStats {
    /// Batches appended.
    pub appends: u64,
    /// Transactions committed, of all kinds.
    pub commits: u64,
    /// Those that were fsynced.
    pub synced_commits: u64,
}

pub(super) struct Writer {
    /// None only while dropping: its end tells the thread to finish.
    queue: Option<mpsc::Sender<Box<dyn Request>>>,
    thread: Option<JoinHandle<()>>,
    counts: Arc<Counts>,
    path: Arc<str>,
}

#[derive(Default)]
struct Counts {
    appends: AtomicU64,
    commits: AtomicU64,
    synced_commits: AtomicU64,
}

/// Something to do within a transaction. It may be tried again in another one, hence `&mut` and no `self`.
trait Request: Send {
    /// Does it and keeps its outcome; tells how the transaction is to go on.
    fn attempt(&mut self, db: &Db) -> Attempt;
    /// Tells the sender: the outcome, or what kept the transaction from being committed.
    fn answer(self: Box<Self>, failure: Option<StoreError>);
    fn sync(&self) -> bool;
}

enum Attempt {
    Done,
    /// Another writer was first: nothing of this one may stay.
    Refused,
    /// The file failed: the transaction is lost.
    Failed(StoreError),
}

struct Work<T, F> {
    run: F,
    sync: bool,
    outcome: Option<Result<T, StoreError>>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<T: Send, F: Fn(&Db) -> Result<T, StoreError> + Send> Request for Work<T, F> {
    fn attempt(&mut self, db: &Db) -> Attempt {
        match (self.run)(db) {
            Err(error) if is_of_the_file(&error) => Attempt::Failed(error),
            outcome => {
                let attempt = if outcome.is_ok() { Attempt::Done } else { Attempt::Refused };
                self.outcome = Some(outcome);
                attempt
            }
        }
    }

    fn answer(self: Box<Self>, failure: Option<StoreError>) {
        let outcome = match (failure, self.outcome) {
            (Some(error), _) => Err(error),
            (None, Some(outcome)) => outcome,
            (None, None) => return,
        };
        // A sender that no longer waits is no error: what it asked for is done.
        let _ = self.reply.send(outcome);
    }

    fn sync(&self) -> bool {
        self.sync
    }
}

impl Writer {
    pub fn start(db: Db) -> Result<Writer, StoreError> {
        let (queue, requests) = mpsc::channel(QUEUE_MAX);
        let path = Arc::clone(&db.path);
        let counts = Arc::new(Counts::default());
        let pen = Pen { db, counts: Arc::clone(&counts), syncs: false };
        let thread = std::thread::Builder::new().name("windlass-store".into()).spawn(move || pen.write(requests));
        let thread = thread.map_err(|error| StoreError::Unavailable {
            path: path.to_string(),
            message: format!("no thread could be started for it ({error})"),
        })?;
        Ok(Writer { queue: Some(queue), thread: Some(thread), counts, path })
    }

    pub async fn append(&self, rows: Rows) -> Result<(), StoreError> {
        let sync = rows.sync;
        self.submit(sync, move |db| append::append(db, &rows)).await?;
        self.counts.appends.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Does `run` in a transaction; it has been committed when this returns.
    pub async fn run<T, F>(&self, run: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Fn(&Db) -> Result<T, StoreError> + Send + 'static,
    {
        self.submit(false, run).await
    }

    async fn submit<T, F>(&self, sync: bool, run: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Fn(&Db) -> Result<T, StoreError> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let work = Box::new(Work { run, sync, outcome: None, reply });
        let Some(queue) = &self.queue else { return Err(self.stopped()) };
        queue.send(work).await.map_err(|_| self.stopped())?;
        answer.await.map_err(|_| self.stopped())?
    }

    pub fn stats(&self) -> StoreStats {
        StoreStats {
            appends: self.counts.appends.load(Ordering::Relaxed),
            commits: self.counts.commits.load(Ordering::Relaxed),
            synced_commits: self.counts.synced_commits.load(Ordering::Relaxed),
        }
    }

    fn stopped(&self) -> StoreError {
        let message = "its writing thread has stopped; this is a bug in windlass".to_owned();
        StoreError::Unavailable { path: self.path.to_string(), message }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was told to the senders that waited for it.
            let _ = thread.join();
        }
    }
}

/// The writing connection and its present setting.
struct Pen {
    db: Db,
    counts: Arc<Counts>,
    /// Whether the next commit is fsynced.
    syncs: bool,
}

impl Pen {
    fn write(mut self, mut requests: mpsc::Receiver<Box<dyn Request>>) {
        let mut group = Vec::with_capacity(GROUP_MAX);
        while requests.blocking_recv_many(&mut group, GROUP_MAX) > 0 {
            self.work_off(&mut group);
        }
    }

    fn work_off(&mut self, group: &mut Vec<Box<dyn Request>>) {
        let tried = self.begin(group).map(|()| self.commit(group));
        match tried {
            Ok(Ok(())) => group.drain(..).for_each(|request| request.answer(None)),
            // What made a whole group fail may concern one of them only.
            Ok(Err(_)) if group.len() > 1 => group.drain(..).for_each(|request| self.commit_alone(request)),
            // Without a transaction none of them can be done; waiting for it once was long enough.
            Ok(Err(error)) | Err(error) => group.drain(..).for_each(|request| request.answer(Some(error.clone()))),
        }
    }

    fn commit_alone(&mut self, request: Box<dyn Request>) {
        let mut alone = [request];
        let failure = self.begin(&alone).and_then(|()| self.commit(&mut alone)).err();
        let [request] = alone;
        request.answer(failure);
    }

    fn begin(&mut self, group: &[Box<dyn Request>]) -> Result<(), StoreError> {
        self.set_sync(group.iter().any(|request| request.sync()))?;
        self.db.execute("BEGIN IMMEDIATE", ()).map(drop)
    }

    fn commit(&mut self, group: &mut [Box<dyn Request>]) -> Result<(), StoreError> {
        let committed = self.attempt_all(group).and_then(|()| self.db.execute("COMMIT", ()));
        if let Err(error) = committed {
            // After some errors SQLite has rolled back by itself.
            if !self.db.connection.is_autocommit() {
                self.db.execute("ROLLBACK", ())?;
            }
            return Err(error);
        }
        self.counts.commits.fetch_add(1, Ordering::Relaxed);
        self.counts.synced_commits.fetch_add(u64::from(self.syncs), Ordering::Relaxed);
        Ok(())
    }

    fn attempt_all(&self, group: &mut [Box<dyn Request>]) -> Result<(), StoreError> {
        for request in group {
            self.db.execute("SAVEPOINT request", ())?;
            match request.attempt(&self.db) {
                Attempt::Done => {}
                Attempt::Refused => drop(self.db.execute("ROLLBACK TO request", ())?),
                Attempt::Failed(error) => return Err(error),
            }
            self.db.execute("RELEASE request", ())?;
        }
        Ok(())
    }

    // SQLite takes this setting when it compiles the statement, so it must not come from the statement cache.
    fn set_sync(&mut self, sync: bool) -> Result<(), StoreError> {
        if self.syncs != sync {
            let level = if sync { "FULL" } else { "NORMAL" };
            let set = self.db.connection.execute_batch(&format!("PRAGMA synchronous = {level}"));
            set.map_err(|error| self.db.explain(error))?;
            self.syncs = sync;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::{SqliteOptions, Worker, schema};
    use windlass_kernel::SessionId;

    type Answer = oneshot::Receiver<Result<(), StoreError>>;

    struct Desk {
        pen: Pen,
        _folder: tempfile::TempDir,
    }

    impl Desk {
        fn new(max_pages: Option<u32>) -> Desk {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("sessions.db");
            let connection = schema::open(&path, SqliteOptions { max_pages }).unwrap();
            let worker = Worker { id: "w".into(), pid: 1, started: 0, boot_id: "b".into() };
            let db = Db::new(connection, path.display().to_string().into(), worker);
            Desk { pen: Pen { db, counts: Arc::default(), syncs: false }, _folder: folder }
        }

        /// The blobs that stand in the file.
        fn kept(&self) -> Vec<String> {
            let mut statement = self.pen.db.statement("SELECT hash FROM blob ORDER BY hash").unwrap();
            statement.query_map((), |row| row.get(0)).unwrap().map(Result::unwrap).collect()
        }
    }

    /// Writes a row called `name` of `bytes`, then ends as `end` says.
    fn writing(name: &'static str, bytes: u32, end: fn() -> Result<(), StoreError>) -> (Box<dyn Request>, Answer) {
        let (reply, answer) = oneshot::channel();
        let run = move |db: &Db| {
            db.execute("INSERT INTO blob (hash, bytes) VALUES (?1, zeroblob(?2))", (name, bytes))?;
            end()
        };
        (Box::new(Work { run, sync: false, outcome: None, reply }), answer)
    }

    fn fenced() -> Result<(), StoreError> {
        Err(StoreError::Fenced { session: SessionId(uuid::Uuid::nil()), epoch: 1 })
    }

    #[test]
    fn a_refused_request_leaves_no_row_and_its_neighbours_commit() {
        let mut desk = Desk::new(None);
        let (mut group, mut answers): (Vec<_>, Vec<_>) =
            [writing("a", 1, || Ok(())), writing("b", 1, fenced), writing("c", 1, || Ok(()))].into_iter().unzip();
        desk.pen.work_off(&mut group);
        let [a, b, c] = [0, 1, 2].map(|n| answers[n].try_recv().unwrap());
        assert!(a.is_ok() && c.is_ok());
        assert!(matches!(b.unwrap_err(), StoreError::Fenced { .. }));
        assert_eq!(desk.kept(), ["a", "c"]);
        assert_eq!(desk.pen.counts.commits.load(Ordering::Relaxed), 1, "one transaction for all");
    }

    #[test]
    fn a_request_that_does_not_fit_fails_alone() {
        let mut desk = Desk::new(Some(40));
        let (mut group, mut answers): (Vec<_>, Vec<_>) =
            [writing("a", 10, || Ok(())), writing("b", 10_000_000, || Ok(())), writing("c", 10, || Ok(()))]
                .into_iter()
                .unzip();
        desk.pen.work_off(&mut group);
        let [a, b, c] = [0, 1, 2].map(|n| answers[n].try_recv().unwrap());
        assert!(a.is_ok() && c.is_ok());
        assert!(matches!(b.unwrap_err(), StoreError::Full { .. }));
        assert_eq!(desk.kept(), ["a", "c"]);
        assert!(desk.pen.db.connection.is_autocommit(), "no transaction is left open");
    }

    #[test]
    fn a_sender_that_left_does_not_stop_the_writer() {
        let mut desk = Desk::new(None);
        let (gone, answer) = writing("a", 1, || Ok(()));
        drop(answer);
        desk.pen.work_off(&mut vec![gone]);
        assert_eq!(desk.kept(), ["a"]);
    }
}
