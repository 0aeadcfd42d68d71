//! Prints what an awaited append of four small records costs, and what opening a store costs.
//!
//! `cargo run --release -p windlass-store --example append_cost [FOLDER]`; FOLDER should be on the disk in question.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use uuid::Uuid;
use windlass_kernel::{ContentBlock, Event, EventId, Record, SCHEMA_VERSION, Seq, SessionId};
use windlass_store::{Batch, MemoryStore, SqliteStore, Store, StoreError, Worker};

const RECORDS_PER_APPEND: u64 = 4;
const TEXT_BYTES: usize = 140;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root = std::env::args_os().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    let folder = root.join(format!("append-cost-{}", Uuid::now_v7()));
    let path = folder.join("sessions.db");
    let made = timed(|| open(&path))?;
    println!("open a new store          {:>9.0} µs", made.0.as_secs_f64() * 1e6);
    measure_all(made.1).await?;
    println!("open an existing store    {:>9.0} µs", timed(|| open(&path))?.0.as_secs_f64() * 1e6);
    let memory: Arc<dyn Store> = Arc::new(MemoryStore::new());
    println!("memory,   1 session       {:>9.1} µs per append", micros(&memory, 1, 2000, false).await?);
    std::fs::remove_dir_all(folder)?;
    Ok(())
}

async fn measure_all(store: SqliteStore) -> Result<(), StoreError> {
    let sqlite = Arc::new(store);
    let store: Arc<dyn Store> = sqlite.clone();
    for (sessions, appends, sync) in [(1, 20000, false)] {
        let before = sqlite.stats();
        let cost = micros(&store, sessions, appends, sync).await?;
        let after = sqlite.stats();
        println!(
            "sqlite, {sessions:>3} sessions{} {cost:>9.1} µs per append, {:>7.0} appends/s, {} commits, {} fsynced",
            if sync { ", sync" } else { "      " },
            1e6 / cost * sessions as f64,
            after.commits - before.commits,
            after.synced_commits - before.synced_commits,
        );
    }
    Ok(())
}

fn open(path: &Path) -> Result<SqliteStore, StoreError> {
    let worker = Worker { id: Uuid::now_v7().to_string(), pid: std::process::id(), started: 0, boot_id: "x".into() };
    SqliteStore::open(path, worker)
}

fn timed<T, E>(work: impl FnOnce() -> Result<T, E>) -> Result<(Duration, T), E> {
    let start = Instant::now();
    let done = work()?;
    Ok((start.elapsed(), done))
}

/// Microseconds that one append takes its session, mean over all.
async fn micros(store: &Arc<dyn Store>, sessions: usize, appends: u64, sync: bool) -> Result<f64, StoreError> {
    let mut tasks = tokio::task::JoinSet::new();
    let start = Instant::now();
    for _ in 0..sessions {
        tasks.spawn(one_session(Arc::clone(store), appends, sync));
    }
    while let Some(done) = tasks.join_next().await {
        done.expect("no task panics")?;
    }
    Ok(start.elapsed().as_secs_f64() * 1e6 / appends as f64)
}

async fn one_session(store: Arc<dyn Store>, appends: u64, sync: bool) -> Result<(), StoreError> {
    let fence = store.create(SessionId(Uuid::now_v7())).await?;
    for n in 0..appends {
        let expected = Seq(n * RECORDS_PER_APPEND);
        let records = (1..=RECORDS_PER_APPEND).map(|i| record(fence.session, fence.epoch, expected.0 + i)).collect();
        store.append(Batch { fence, expected, records, blobs: vec![], consumed: vec![], sync }).await?;
    }
    Ok(())
}

fn record(session: SessionId, epoch: u64, seq: u64) -> Arc<Record> {
    let block = ContentBlock::text("x".repeat(TEXT_BYTES));
    Arc::new(Record {
        v: SCHEMA_VERSION,
        tenant: "local".into(),
        session,
        seq: Seq(seq),
        id: EventId(Uuid::now_v7()),
        epoch,
        at: 1_700_000_000_000 + seq,
        cause: Some(Seq(1)),
        event: Event::BlockFinished { work: Seq(1), index: 0, block, partial: false },
    })
}
