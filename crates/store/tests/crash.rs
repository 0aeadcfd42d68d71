//! A real process is killed in the middle of appending; all that it said was written must be there.

mod common;

use common::*;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use uuid::Uuid;
use windlass_kernel::*;
use windlass_store::*;

const FILE: &str = "WINDLASS_TEST_STORE";
const SESSION: &str = "WINDLASS_TEST_SESSION";
const KILLS: u64 = 25;

/// Not a test by itself: the process that is killed. It appends for ever and says how far it is.
#[test]
fn child_that_appends() {
    let (Ok(file), Ok(id)) = (std::env::var(FILE), std::env::var(SESSION)) else { return };
    let session = SessionId(Uuid::parse_str(&id).unwrap());
    tokio::runtime::Runtime::new().unwrap().block_on(append_for_ever(Path::new(&file), session));
}

async fn append_for_ever(file: &Path, session: SessionId) {
    let store = SqliteStore::open(file, worker()).unwrap();
    let fence = store.claim(session).await.unwrap();
    let mut head = whole(&store, session).await.len() as u64;
    for n in 0.. {
        let mut next = batch(fence, head, (1..=1 + n % 4).map(|i| said(&format!("{}", head + i))));
        next.sync = n % 7 == 6;
        head += next.records.len() as u64;
        store.append(next).await.unwrap();
        println!("acknowledged {head}");
    }
}

fn start(file: &Path, session: SessionId) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_that_appends", "--nocapture"])
        .env(FILE, file)
        .env(SESSION, session.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Kills the child some time after its `lines`th word; the last place that it acknowledged.
fn kill_after(mut child: Child, lines: u64, pause: Duration) -> u64 {
    let mut said = BufReader::new(child.stdout.take().unwrap()).lines();
    let place = |line: String| line.rsplit_once("acknowledged ").map(|(_, n)| n.parse::<u64>().unwrap());
    let mut last = 0;
    let mut heard = 0;
    while heard < lines {
        let line = said.next().expect("the child ended by itself").unwrap();
        if let Some(n) = place(line) {
            last = n;
            heard += 1;
        }
    }
    std::thread::sleep(pause);
    child.kill().unwrap();
    child.wait().unwrap();
    // What it had said before it died still comes out of the pipe; a line may be cut.
    let whole_lines = said.map_while(Result::ok).filter_map(|line| line.strip_prefix("acknowledged ")?.parse().ok());
    whole_lines.fold(last, u64::max)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s0_30_what_was_acknowledged_survives_kill_9() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sessions.db");
    let store = open(&file);
    let fence = store.create(session()).await.unwrap();
    store.release(&fence).await.unwrap();
    // This process goes on writing to the same file all the while.
    let own = store.create(session()).await.unwrap();

    for kill in 0..KILLS {
        let child = start(&file, fence.session);
        let pause = Duration::from_micros(kill * 317 % 1500);
        let killing = tokio::task::spawn_blocking(move || kill_after(child, 3 + kill * 11 % 40, pause));
        let acknowledged = killing.await.unwrap();
        store.append(says(own, kill, &kill.to_string())).await.unwrap();

        let (saved, damage) = store.salvage(fence.session).await;
        assert!(damage.is_none(), "kill {kill}: {damage:?}");
        let head = saved.len() as u64;
        assert!(head >= acknowledged, "kill {kill}: {acknowledged} were acknowledged, {head} are there");
        // A batch that was under way is there as a whole or not at all: at most one of up to four events.
        assert!(head <= acknowledged + 4, "kill {kill}: {head} are there, only {acknowledged} were acknowledged");
        for (n, record) in saved.iter().enumerate() {
            assert_eq!(text_of_event(&record.event), (n + 1).to_string());
        }
    }
    let epochs: Vec<_> = whole(&store, fence.session).await.iter().map(|record| record.epoch).collect();
    assert!(epochs.is_sorted(), "{epochs:?}");
    assert_eq!(*epochs.last().unwrap(), KILLS + 1, "each child took the session up under an epoch of its own");
    assert_eq!(whole(&store, own.session).await.len() as u64, KILLS);
}
