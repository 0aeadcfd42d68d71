//! What only a file can meet: other processes, damage, a full disk, strange files.

mod common;

use common::*;
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use std::process::{Child, Command as Process};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use windlass_kernel::*;
use windlass_store::*;

struct Place {
    path: PathBuf,
    _folder: TempDir,
}

fn place() -> Place {
    let folder = tempfile::tempdir().unwrap();
    Place { path: folder.path().join("deep/er/sessions.db"), _folder: folder }
}

/// A log of ten events in a closed store.
async fn ten_events(path: &Path) -> SessionId {
    let store = open(path);
    let fence = store.create(session()).await.unwrap();
    let events = (1..=9).map(|n| said(&n.to_string()));
    store.append(batch(fence, 0, [opened("/work")].into_iter().chain(events))).await.unwrap();
    store.release(&fence).await.unwrap();
    fence.session
}

fn tamper(path: &Path, sql: &str) {
    let changed = Connection::open(path).unwrap().execute(sql, ()).unwrap();
    assert!(changed > 0, "{sql} changed nothing");
}

#[tokio::test]
async fn s0_30_everything_is_there_when_the_store_is_opened_again() {
    let place = place();
    let store = open(&place.path);
    let fence = store.create(session()).await.unwrap();
    let mut first = batch(fence, 0, [opened("/work"), said("one")]);
    first.blobs = vec![(blob_ref(b"bytes"), "bytes".into())];
    let waiting = Input { id: input_id(), command: Command::Interrupt { by: "x".into() }, at: 1 };
    store.enqueue(fence.session, waiting.clone()).await.unwrap();
    let written = records_of(&first);
    store.append(first).await.unwrap();
    drop(store);

    let store = open(&place.path);
    assert_eq!(whole(&store, fence.session).await, written);
    assert_eq!(store.inbox(fence.session).await.unwrap(), [waiting]);
    assert_eq!(store.blob(&blob_ref(b"bytes").hash).await.unwrap().unwrap(), "bytes");
    assert_eq!(store.claim(fence.session).await.unwrap().epoch, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_stores_on_one_file_one_wins_and_the_other_hears_it() {
    let place = place();
    let (mine, theirs) = (Arc::new(open(&place.path)), Arc::new(open(&place.path)));
    let old = mine.create(session()).await.unwrap();
    mine.append(says(old, 0, "mine 0")).await.unwrap();

    let writing = tokio::spawn({
        let mine = Arc::clone(&mine);
        async move {
            let mut written = 1;
            loop {
                if let Err(error) = mine.append(says(old, written, &format!("mine {written}"))).await {
                    return (written, error);
                }
                written += 1;
            }
        }
    });
    let new = theirs.claim(old.session).await.unwrap();
    let head = whole(&*theirs, old.session).await.len() as u64;
    theirs.append(says(new, head, "theirs")).await.unwrap();

    let (written, error) = writing.await.unwrap();
    assert!(matches!(error, StoreError::Fenced { epoch: 1, .. }), "{error}");
    assert!(error.to_string().contains("was taken over by another process"), "{error}");
    let mut expected: Vec<_> = (0..written).map(|n| format!("mine {n}")).collect();
    expected.push("theirs".into());
    assert_eq!(texts(&*mine, old.session).await, expected, "nothing of the loser after the claim");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_stores_on_one_file_write_side_by_side() {
    let place = place();
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..2 {
        let store = Arc::new(open(&place.path));
        for _ in 0..5 {
            let store = Arc::clone(&store);
            tasks.spawn(async move {
                let fence = store.create(session()).await.unwrap();
                for n in 0..40 {
                    store.append(says(fence, n, &n.to_string())).await.unwrap();
                }
                fence.session
            });
        }
    }
    let expected: Vec<_> = (0..40).map(|n| n.to_string()).collect();
    let third = open(&place.path);
    for session in tasks.join_all().await {
        assert_eq!(texts(&third, session).await, expected);
    }
}

#[test]
fn processes_that_make_the_same_file_at_once_all_get_it() {
    for _ in 0..5 {
        let place = place();
        std::thread::scope(|scope| {
            let openers: Vec<_> =
                (0..6).map(|_| scope.spawn(|| SqliteStore::open(&place.path, worker()).map(drop))).collect();
            for opener in openers {
                opener.join().unwrap().unwrap();
            }
        });
    }
}

/// Another process, alive until dropped.
struct Sleeper(Child);

impl Sleeper {
    fn new() -> Sleeper {
        Sleeper(Process::new("sleep").arg("600").spawn().unwrap())
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn a_session_is_held_while_its_process_lives() {
    let place = place();
    let sleeper = Sleeper::new();
    let pid = sleeper.0.id();
    let theirs = SqliteStore::open(&place.path, worker_of(pid)).unwrap();
    let fence = theirs.create(session()).await.unwrap();
    theirs.append(batch(fence, 0, [opened("/work")])).await.unwrap();

    let mine = open(&place.path);
    let refused = mine.claim(fence.session).await.unwrap_err();
    assert!(matches!(refused, StoreError::Held { pid: holder, .. } if holder == pid), "{refused}");
    assert_eq!(mine.sessions(SessionFilter::default()).await.unwrap()[0].held_by, Some(pid));
    assert_eq!(theirs.claim(fence.session).await.unwrap().epoch, 2, "the holder itself may");
    theirs.append(says(Fence { epoch: 2, ..fence }, 1, "still theirs")).await.unwrap();

    drop(sleeper);
    assert_eq!(mine.sessions(SessionFilter::default()).await.unwrap()[0].held_by, None);
    assert_eq!(mine.claim(fence.session).await.unwrap().epoch, 3);
    let me = std::process::id();
    assert_eq!(mine.sessions(SessionFilter::default()).await.unwrap()[0].held_by, Some(me));
}

#[tokio::test]
async fn a_released_session_is_anybodys() {
    let place = place();
    let sleeper = Sleeper::new();
    let theirs = SqliteStore::open(&place.path, worker_of(sleeper.0.id())).unwrap();
    let fence = theirs.create(session()).await.unwrap();
    theirs.release(&fence).await.unwrap();
    assert_eq!(open(&place.path).claim(fence.session).await.unwrap().epoch, 2);
}

#[tokio::test]
async fn a_number_used_again_does_not_hold() {
    let place = place();
    let sleeper = Sleeper::new();
    let pid = sleeper.0.id();
    let gone = [
        Worker { boot_id: "an earlier boot".into(), ..worker_of(pid) },
        // No process started in the first clock tick after boot.
        Worker { started: 1, ..worker_of(pid) },
    ];
    for worker in gone {
        let theirs = SqliteStore::open(&place.path, worker.clone()).unwrap();
        let fence = theirs.create(session()).await.unwrap();
        assert_eq!(open(&place.path).claim(fence.session).await.unwrap().epoch, 2, "{worker:?}");
    }
}

#[tokio::test]
async fn workers_that_hold_nothing_are_forgotten() {
    let place = place();
    for _ in 0..5 {
        ten_events(&place.path).await;
    }
    let count = |sql: &str| Connection::open(&place.path).unwrap().query_row(sql, (), |row| row.get::<_, i64>(0));
    assert_eq!(count("SELECT count(*) FROM worker").unwrap(), 1);
}

#[tokio::test]
async fn an_input_of_another_version_waits_for_it_and_keeps_nobody_else_waiting() {
    let place = place();
    let session = ten_events(&place.path).await;
    let store = open(&place.path);
    let input = |by: &str| Input { id: input_id(), command: Command::Interrupt { by: by.into() }, at: 1 };
    let (other, ours) = (input("other"), input("ours"));
    store.enqueue(session, other).await.unwrap();
    tamper(&place.path, r#"UPDATE inbox SET body = '{"type":"dance"}'"#);
    store.enqueue(session, ours.clone()).await.unwrap();
    assert_eq!(store.inbox(session).await.unwrap(), [ours]);
    let count = |row: &rusqlite::Row<'_>| row.get::<_, i64>(0);
    let left = Connection::open(&place.path).unwrap().query_row("SELECT count(*) FROM inbox", (), count).unwrap();
    assert_eq!(left, 2, "the other is still there");
}

/// The damage of a log and the places that could be saved.
async fn salvaged(path: &Path, session: SessionId) -> (StoreError, Vec<u64>) {
    let store = open(path);
    let (saved, damage) = store.salvage(session).await;
    assert!(store.read(session, Seq(1), usize::MAX).await.is_err(), "a read never skips damage");
    (damage.unwrap(), saved.iter().map(|record| record.seq.0).collect())
}

#[tokio::test]
async fn a_record_that_can_t_be_read_is_named_and_those_before_it_are_saved() {
    let place = place();
    let session = ten_events(&place.path).await;
    tamper(&place.path, "UPDATE event SET body = substr(body, 1, 30) WHERE seq = 4");
    let (damage, saved) = salvaged(&place.path, session).await;
    assert!(matches!(damage, StoreError::Damaged { seq: Seq(4), good: 3, .. }), "{damage:?}");
    assert!(damage.to_string().contains("is damaged at event 4: EOF while parsing"), "{damage}");
    assert_eq!(saved, [1, 2, 3]);
    let store = open(&place.path);
    assert_eq!(store.read(session, Seq(1), 3).await.unwrap().len(), 3, "a page before the damage is whole");
    assert_eq!(store.read(session, Seq(5), 99).await.unwrap().len(), 6, "so is one after it");
}

#[tokio::test]
async fn a_gap_is_damage() {
    let place = place();
    let session = ten_events(&place.path).await;
    tamper(&place.path, "DELETE FROM event WHERE seq IN (6, 7)");
    let (damage, saved) = salvaged(&place.path, session).await;
    assert!(damage.to_string().contains("at event 6: it is missing; the next that is there is 8"), "{damage}");
    assert_eq!(saved, [1, 2, 3, 4, 5]);
}

#[tokio::test]
async fn an_event_of_a_newer_schema_is_no_damage() {
    let place = place();
    let session = ten_events(&place.path).await;
    tamper(&place.path, "UPDATE event SET v = 9 WHERE seq = 3");
    let (damage, saved) = salvaged(&place.path, session).await;
    assert!(matches!(damage, StoreError::Newer { found: 9, known: 1, .. }), "{damage:?}");
    assert_eq!(saved, [1, 2]);
}

#[tokio::test]
async fn one_damaged_log_leaves_the_others_alone() {
    let place = place();
    let (good, bad) = (ten_events(&place.path).await, ten_events(&place.path).await);
    Connection::open(&place.path)
        .unwrap()
        .execute("UPDATE event SET body = 'x' WHERE session = ?1", [bad.0.as_bytes()])
        .unwrap();
    let store = open(&place.path);
    assert_eq!(whole(&store, good).await.len(), 10);
    assert!(store.read(bad, Seq(1), 10).await.is_err());
    assert_eq!(store.sessions(SessionFilter::default()).await.unwrap().len(), 2);
    let fence = store.claim(bad).await.unwrap();
    store.append(says(fence, 10, "goes on")).await.unwrap();
}

#[tokio::test]
async fn a_torn_page_in_the_middle_of_a_log_saves_what_stands_before_it() {
    let place = place();
    let fence = {
        let store = open(&place.path);
        let fence = store.create(session()).await.unwrap();
        store.append(batch(fence, 0, (0..400).map(|n| said(&format!("{n} {}", "x".repeat(300)))))).await.unwrap();
        fence
    };
    let file = Connection::open(&place.path).unwrap();
    file.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |_| Ok(())).unwrap();
    // The leaf in the middle of the table, by the map that SQLite draws of its file.
    let page: u64 = file
        .query_row(
            "SELECT pageno FROM dbstat WHERE name = 'event' AND pagetype = 'leaf' LIMIT 1 OFFSET 20",
            (),
            |row| row.get::<_, i64>(0),
        )
        .unwrap() as u64;
    drop(file);
    let mut bytes = std::fs::read(&place.path).unwrap();
    bytes[(page as usize - 1) * 4096..page as usize * 4096].fill(0xAA);
    std::fs::write(&place.path, bytes).unwrap();

    let (damage, saved) = salvaged(&place.path, fence.session).await;
    let StoreError::Damaged { seq, good, .. } = damage else { panic!("{damage:?}") };
    assert_eq!(saved.len() as u64, good);
    assert_eq!(seq.0, good + 1);
    assert!((100..300).contains(&good), "{good} of 400 were saved");
    assert!(damage.to_string().contains("is corrupt there"), "{damage}");
}

#[tokio::test]
async fn a_full_disk_is_loud_and_nothing_is_lost() {
    let place = place();
    let limited = SqliteOptions { max_pages: Some(60) };
    let store = SqliteStore::open_with(&place.path, worker(), limited).unwrap();
    let fence = store.create(session()).await.unwrap();
    let mut written = 0;
    let full = loop {
        match store.append(says(fence, written, &"x".repeat(4000))).await {
            Ok(()) => written += 1,
            Err(error) => break error,
        }
        assert!(written < 100, "the limit has no effect");
    };
    assert!(matches!(full, StoreError::Full { .. }), "{full:?}");
    assert!(full.to_string().starts_with("the disk is full: free some space at "), "{full}");
    assert!(written > 10);
    assert_eq!(whole(&store, fence.session).await.len() as u64, written, "all that was acknowledged");
    drop(store);

    let store = open(&place.path);
    let fence = store.claim(fence.session).await.unwrap();
    store.append(says(fence, written, "there is room again")).await.unwrap();
    assert_eq!(whole(&store, fence.session).await.len() as u64, written + 1);
}

#[tokio::test]
async fn only_what_asks_for_it_is_fsynced() {
    let place = place();
    let store = open(&place.path);
    let fence = store.create(session()).await.unwrap();
    for n in 0..20 {
        let mut next = says(fence, n, "x");
        next.sync = n % 5 == 4;
        store.append(next).await.unwrap();
    }
    let stats = store.stats();
    assert_eq!(stats, StoreStats { appends: 20, commits: 21, synced_commits: 4 });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dropping_a_store_writes_what_is_queued() {
    let place = place();
    let store = open(&place.path);
    let fence = store.create(session()).await.unwrap();
    for n in 0..200 {
        // The sender queues it and does not wait for the answer.
        let _ = tokio::time::timeout(Duration::ZERO, store.append(says(fence, n, &n.to_string()))).await;
    }
    drop(store);
    assert_eq!(whole(&open(&place.path), fence.session).await.len(), 200);
}

#[tokio::test]
async fn a_store_from_before_the_ledger_gets_one_from_its_logs() {
    let place = place();
    let store = open(&place.path);
    let [root, child, damaged] = [session(), session(), session()];
    for (id, parent) in [(child, Some(root)), (root, None), (damaged, None)] {
        let fence = store.create(id).await.unwrap();
        let calls = [called(2, "a/x", 1), finished(2, tokens(7, Some(3))), called(4, "a/y", 1)];
        store.append(batch(fence, 0, [opened_by(parent)].into_iter().chain(calls))).await.unwrap();
    }
    drop(store);
    let old = "DROP TABLE ledger; DROP INDEX session_root; ALTER TABLE session DROP COLUMN root; ALTER TABLE session DROP COLUMN agent;
               PRAGMA user_version = 1";
    Connection::open(&place.path).unwrap().execute_batch(old).unwrap();
    tamper(
        &place.path,
        &format!("UPDATE event SET body = 'x' WHERE seq IN (1, 3) AND session = x'{}'", damaged.0.simple()),
    );

    let store = open(&place.path);
    for id in [root, child] {
        let of = LedgerFilter { session: Some(id), ..LedgerFilter::default() };
        assert_eq!(store.ledger(of).await.unwrap(), ledger(&whole(&store, id).await, None));
    }
    assert_eq!(store.spent(SpentScope::Tree(child)).await.unwrap(), Spending { micro_usd: 6, tokens: 14 });
    // Of a damaged log, what can be read.
    let of = LedgerFilter { session: Some(damaged), ..LedgerFilter::default() };
    let left: Vec<_> = store.ledger(of).await.unwrap().iter().map(|line| line.outcome).collect();
    assert_eq!(left, [CallOutcome::Open, CallOutcome::Open]);
}

fn refusal(path: &Path) -> String {
    match SqliteStore::open(path, worker()) {
        Ok(_) => panic!("{} was opened", path.display()),
        Err(error) => error.to_string(),
    }
}

#[tokio::test]
async fn a_store_of_a_newer_windlass_is_left_alone() {
    let place = place();
    ten_events(&place.path).await;
    Connection::open(&place.path).unwrap().pragma_update(None, "user_version", 7).unwrap();
    let words = refusal(&place.path);
    assert!(words.contains("written by a newer windlass (schema 7, this one knows 2)"), "{words}");
}

#[test]
fn strange_files_are_refused_with_words_and_left_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("notes.txt");
    std::fs::write(&text, "these are my notes\n".repeat(300)).unwrap();
    let words = refusal(&text);
    assert!(words.contains("notes.txt") && words.contains("it is no database"), "{words}");
    assert_eq!(std::fs::read_to_string(&text).unwrap(), "these are my notes\n".repeat(300));

    let other = folder.path().join("other.db");
    Connection::open(&other).unwrap().execute_batch("CREATE TABLE song (name TEXT)").unwrap();
    let before = std::fs::read(&other).unwrap();
    let words = refusal(&other);
    assert!(words.contains("it is another program's database"), "{words}");
    assert_eq!(std::fs::read(&other).unwrap(), before);

    let words = refusal(folder.path());
    assert!(words.contains("it can't be opened"), "{words}");

    let words = refusal(&text.join("sessions.db"));
    assert!(words.contains("notes.txt/sessions.db") && words.contains("it can't be made"), "{words}");
}

#[cfg(unix)]
#[tokio::test]
async fn what_was_said_is_for_its_owners_eyes() {
    use std::os::unix::fs::PermissionsExt;
    let place = place();
    ten_events(&place.path).await;
    for neighbour in std::fs::read_dir(place.path.parent().unwrap()).unwrap() {
        let neighbour = neighbour.unwrap();
        let mode = neighbour.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{:?}", neighbour.path());
    }
}
