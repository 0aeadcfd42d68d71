//! What every store must do: one suite, run over each.

mod common;

use common::*;
use std::sync::Arc;
use windlass_kernel::*;
use windlass_store::*;

macro_rules! suite {
    ($($story:ident)*) => {
        mod memory {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $story() {
                super::$story(std::sync::Arc::new(windlass_store::MemoryStore::new())).await;
            })*
        }
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $story() {
                let folder = tempfile::tempdir().unwrap();
                super::$story(std::sync::Arc::new(super::open(&folder.path().join("sessions.db")))).await;
            })*
        }
    };
}

suite! {
    s0_30_the_full_history_comes_back_as_it_went_in
    s1_30_a_log_is_read_in_pages_from_any_place
    a_claim_fences_the_earlier_holder
    a_batch_that_does_not_follow_the_head_is_a_conflict_and_leaves_nothing
    the_same_batch_sent_again_is_written_once
    of_two_writers_in_one_process_one_wins_and_the_other_hears_it
    many_sessions_append_at_once
    losers_in_a_group_take_nobody_with_them
    a_malformed_batch_is_refused_with_words
    a_session_keeps_its_tenant
    inputs_enter_the_log_exactly_once
    an_input_that_came_another_way_is_known_too
    inputs_keep_their_order_and_belong_to_one_session
    a_blob_is_kept_once_under_its_hash
    the_newest_session_is_listed_first
    a_listing_can_be_of_one_folder_and_short
    the_title_is_the_first_line_with_words
    a_session_is_created_once
    nothing_is_known_of_a_session_that_is_not_there
    salvage_of_a_whole_log_is_the_whole_log
    every_model_call_is_a_line_of_the_ledger
    the_ledger_says_what_the_log_says
    lines_come_in_pages_and_by_time
    lines_are_added_up_by_day_model_and_agent
    what_was_spent_is_known_by_tree_and_by_time
    a_refused_batch_leaves_no_line
}

type Shared = Arc<dyn Store>;

async fn s0_30_the_full_history_comes_back_as_it_went_in(store: Shared) {
    let fence = store.create(session()).await.unwrap();
    let first = batch(fence, 0, [opened("/work"), prompted(input_id(), "hello")]);
    let second = batch(fence, 2, [said("first"), Event::DeadlinePassed, said("ünïcödé \u{0} \u{1F980}")]);
    let mut all = records_of(&first);
    all.extend(records_of(&second));
    store.append(first).await.unwrap();
    store.append(second).await.unwrap();
    assert_eq!(whole(&*store, fence.session).await, all);
}

async fn s1_30_a_log_is_read_in_pages_from_any_place(store: Shared) {
    let fence = store.create(session()).await.unwrap();
    store.append(batch(fence, 0, (1..=10).map(|n| said(&n.to_string())))).await.unwrap();
    let page = |from, limit| {
        let store = Arc::clone(&store);
        async move {
            let page = store.read(fence.session, Seq(from), limit).await.unwrap();
            page.iter().map(|record| record.seq.0).collect::<Vec<_>>()
        }
    };
    assert_eq!(page(1, 4).await, [1, 2, 3, 4]);
    assert_eq!(page(5, 4).await, [5, 6, 7, 8]);
    assert_eq!(page(9, 4).await, [9, 10]);
    assert_eq!(page(11, 4).await, [] as [u64; 0]);
    assert_eq!(page(99, 4).await, [] as [u64; 0]);
    assert_eq!(page(3, 0).await, [] as [u64; 0]);
    assert_eq!(page(0, 2).await, [1, 2], "place 0 is before the first");
}

async fn a_claim_fences_the_earlier_holder(store: Shared) {
    let old = store.create(session()).await.unwrap();
    store.append(says(old, 0, "old")).await.unwrap();
    let new = store.claim(old.session).await.unwrap();
    assert_eq!(new.epoch, old.epoch + 1);

    let refused = store.append(says(old, 1, "zombie")).await.unwrap_err();
    assert!(matches!(refused, StoreError::Fenced { epoch: 1, .. }), "{refused}");
    let refused = store.release(&old).await.unwrap_err();
    assert!(matches!(refused, StoreError::Fenced { .. }), "{refused}");

    store.append(says(new, 1, "new")).await.unwrap();
    assert_eq!(texts(&*store, new.session).await, ["old", "new"]);
    store.release(&new).await.unwrap();
    assert_eq!(store.claim(new.session).await.unwrap().epoch, 3);
}

async fn a_batch_that_does_not_follow_the_head_is_a_conflict_and_leaves_nothing(store: Shared) {
    let fence = store.create(session()).await.unwrap();
    store.append(batch(fence, 0, [said("one"), said("two")])).await.unwrap();
    for expected in [0, 1, 3, 7] {
        let mut stray = batch(fence, expected, [said("stray"), said("stray"), said("stray")]);
        stray.blobs = vec![(blob_ref(b"stray"), "stray".into())];
        let refused = store.append(stray).await.unwrap_err();
        assert!(matches!(refused, StoreError::Conflict { head: Seq(2), .. }), "after {expected}: {refused}");
    }
    let mut empty = batch(fence, 1, []);
    empty.consumed = vec![input_id()];
    let refused = store.append(empty).await.unwrap_err();
    assert!(matches!(refused, StoreError::Conflict { head: Seq(2), .. }), "{refused}");
    assert_eq!(texts(&*store, fence.session).await, ["one", "two"]);
    assert_eq!(store.blob(&blob_ref(b"stray").hash).await.unwrap(), None);
}

async fn the_same_batch_sent_again_is_written_once(store: Shared) {
    let fence = store.create(session()).await.unwrap();
    let first = batch(fence, 0, [said("one"), said("two")]);
    store.append(first.clone()).await.unwrap();
    store.append(first.clone()).await.unwrap();
    store.append(says(fence, 2, "three")).await.unwrap();
    store.append(first.clone()).await.unwrap();
    assert_eq!(texts(&*store, fence.session).await, ["one", "two", "three"]);

    // The same place, partly the same events: that is somebody else's batch.
    let mut longer = batch(fence, 0, [said("one"), said("two"), said("not three")]);
    longer.records[..2].clone_from_slice(&first.records);
    let refused = store.append(longer).await.unwrap_err();
    assert!(matches!(refused, StoreError::Conflict { head: Seq(3), .. }), "{refused}");
}

async fn of_two_writers_in_one_process_one_wins_and_the_other_hears_it(store: Shared) {
    let fence = store.create(session()).await.unwrap();
    let mut writers = tokio::task::JoinSet::new();
    for name in ["left", "right"] {
        let store = Arc::clone(&store);
        writers.spawn(async move {
            let mut written = 0;
            loop {
                match store.append(says(fence, written, name)).await {
                    Ok(()) if written == 50 => return Ok(name),
                    Ok(()) => written += 1,
                    Err(error) => return Err(error),
                }
                tokio::task::yield_now().await;
            }
        });
    }
    let (won, lost): (Vec<_>, Vec<_>) = writers.join_all().await.into_iter().partition(Result::is_ok);
    assert_eq!((won.len(), lost.len()), (1, 1));
    let lost = lost[0].as_ref().unwrap_err();
    assert!(matches!(lost, StoreError::Conflict { .. }), "{lost}");
    let winner = *won[0].as_ref().unwrap();
    assert_eq!(texts(&*store, fence.session).await, vec![winner; 51], "the loser left no row");
}

async fn many_sessions_append_at_once(store: Shared) {
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..40 {
        let store = Arc::clone(&store);
        tasks.spawn(async move {
            let fence = store.create(session()).await.unwrap();
            for n in 0..20 {
                store.append(says(fence, n, &format!("{} {n}", fence.session))).await.unwrap();
            }
            fence.session
        });
    }
    for session in tasks.join_all().await {
        let expected: Vec<_> = (0..20).map(|n| format!("{session} {n}")).collect();
        assert_eq!(texts(&*store, session).await, expected);
    }
}

async fn losers_in_a_group_take_nobody_with_them(store: Shared) {
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..60 {
        let store = Arc::clone(&store);
        tasks.spawn(async move {
            let fence = store.create(session()).await.unwrap();
            store.append(says(fence, 0, "base")).await.unwrap();
            let wrong = match n % 3 {
                0 => store.append(says(fence, 1, "good")).await.map_err(|_| "good"),
                1 => store.append(says(fence, 5, "conflict")).await.map_err(|_| "conflict"),
                _ => store.append(says(Fence { epoch: 9, ..fence }, 1, "fenced")).await.map_err(|_| "fenced"),
            };
            (fence.session, wrong)
        });
    }
    for (session, outcome) in tasks.join_all().await {
        let there = texts(&*store, session).await;
        match outcome {
            Ok(()) => assert_eq!(there, ["base", "good"]),
            Err(what) => assert_eq!(there, ["base"], "{what}"),
        }
    }
}

async fn a_malformed_batch_is_refused_with_words(store: Shared) {
    let fence = store.create(session()).await.unwrap();
    let spoil = |how: fn(&mut Record)| {
        let mut spoilt = batch(fence, 0, [said("one"), said("two")]);
        how(Arc::get_mut(&mut spoilt.records[1]).unwrap());
        spoilt
    };
    let cases = [
        (spoil(|record| record.seq = Seq(3)), "event 3"),
        (spoil(|record| record.epoch = 7), "has epoch 7, not 1"),
        (spoil(|record| record.session = session()), "belongs to session"),
        (spoil(|record| record.tenant = "other".into()), "has tenant `other`, not `local`"),
    ];
    for (spoilt, word) in cases {
        let refused = store.append(spoilt).await.unwrap_err().to_string();
        assert!(refused.contains(word) && refused.contains("nothing was written"), "{refused}");
    }
    assert!(whole(&*store, fence.session).await.is_empty());
}

async fn a_session_keeps_its_tenant(store: Shared) {
    let fence = store.create(session()).await.unwrap();
    let of = |tenant: &str, expected| {
        let mut given = says(fence, expected, "x");
        Arc::get_mut(&mut given.records[0]).unwrap().tenant = tenant.into();
        given
    };
    store.append(of("acme", 0)).await.unwrap();
    let refused = store.append(of("umbrella", 1)).await.unwrap_err().to_string();
    assert!(refused.contains("is of tenant `acme`, not `umbrella`"), "{refused}");
    store.append(of("acme", 1)).await.unwrap();
    let tenants: Vec<_> = whole(&*store, fence.session).await.into_iter().map(|record| record.tenant).collect();
    assert_eq!(tenants, ["acme", "acme"]);
}

fn left(id: InputId, text: &str) -> Input {
    Input { id, command: Command::Prompt(Box::new(prompt(id, text))), at: 5 }
}

async fn inputs_enter_the_log_exactly_once(store: Shared) {
    let fence = store.create(session()).await.unwrap();
    let id = input_id();
    assert!(store.enqueue(fence.session, left(id, "do it")).await.unwrap());
    assert!(!store.enqueue(fence.session, left(id, "do it")).await.unwrap(), "it is in the inbox");
    assert_eq!(store.inbox(fence.session).await.unwrap(), [left(id, "do it")]);

    let mut moved = batch(fence, 0, [prompted(id, "do it")]);
    moved.consumed = vec![id];
    let mut refused = moved.clone();
    refused.fence.epoch = 9;
    refused.records = vec![];
    store.append(refused).await.unwrap_err();
    assert_eq!(store.inbox(fence.session).await.unwrap().len(), 1, "a refused batch consumes nothing");

    store.append(moved.clone()).await.unwrap();
    store.append(moved).await.unwrap();
    assert!(store.inbox(fence.session).await.unwrap().is_empty());
    assert!(!store.enqueue(fence.session, left(id, "do it")).await.unwrap(), "it is in the log");
    assert!(store.inbox(fence.session).await.unwrap().is_empty());
    assert_eq!(texts(&*store, fence.session).await, ["prompt: do it"]);
}

async fn an_input_that_came_another_way_is_known_too(store: Shared) {
    let fence = store.create(session()).await.unwrap();
    let (typed, note, clear) = (input_id(), input_id(), input_id());
    let noted = Event::Noted { input: note, text: "done".into(), wakes: false };
    store.append(batch(fence, 0, [prompted(typed, "typed"), noted, Event::Cleared { input: clear }])).await.unwrap();
    for id in [typed, note, clear] {
        assert!(!store.enqueue(fence.session, left(id, "again")).await.unwrap());
    }
    assert!(store.enqueue(fence.session, left(input_id(), "new")).await.unwrap());
}

async fn inputs_keep_their_order_and_belong_to_one_session(store: Shared) {
    let (one, other) = (store.create(session()).await.unwrap(), store.create(session()).await.unwrap());
    let ids = [input_id(), input_id(), input_id()];
    for (n, id) in ids.into_iter().enumerate() {
        // The clock of who leaves an input may go wrong; the order of arrival counts.
        let input = Input { id, command: Command::Interrupt { by: n.to_string() }, at: 100 - n as u64 };
        assert!(store.enqueue(one.session, input.clone()).await.unwrap());
        assert!(store.enqueue(other.session, input).await.unwrap(), "another session's inputs are its own");
    }
    let mut middle = batch(one, 0, [said("x")]);
    middle.consumed = vec![ids[1]];
    store.append(middle).await.unwrap();
    let order = |inputs: Vec<Input>| inputs.into_iter().map(|input| input.id).collect::<Vec<_>>();
    assert_eq!(order(store.inbox(one.session).await.unwrap()), [ids[0], ids[2]]);
    assert_eq!(order(store.inbox(other.session).await.unwrap()), ids);
}

async fn a_blob_is_kept_once_under_its_hash(store: Shared) {
    let fence = store.create(session()).await.unwrap();
    let blob = blob_ref(b"\x00\xffpicture");
    for n in 0..2 {
        let mut with = says(fence, n, "see");
        with.blobs = vec![(blob.clone(), (&b"\x00\xffpicture"[..]).into()), (blob_ref(b""), "".into())];
        store.append(with).await.unwrap();
    }
    assert_eq!(store.blob(&blob.hash).await.unwrap().unwrap(), &b"\x00\xffpicture"[..]);
    assert_eq!(store.blob(&blob_ref(b"").hash).await.unwrap().unwrap(), &b""[..]);
    assert_eq!(store.blob("no such hash").await.unwrap(), None);
}

async fn the_newest_session_is_listed_first(store: Shared) {
    let fences = [session(), session(), session()].map(|id| {
        let store = Arc::clone(&store);
        async move { store.create(id).await.unwrap() }
    });
    let [a, b, c] = fences;
    let (a, b, c) = (a.await, b.await, c.await);
    store.append(batch(a, 0, [opened("/a"), said("1"), said("2")])).await.unwrap();
    store.append(batch(b, 0, [opened("/b")])).await.unwrap();
    let child = Event::Opened {
        parent: Some(Parent { session: a.session, call: "call".into() }),
        forked_from: None,
        cwd: "/a".into(),
        agent: "scout".into(),
        model: "some/model".into(),
        mode: PermissionMode::Default,
        profile: Box::default(),
    };
    store.append(batch(c, 0, [child, said("1"), said("2"), said("3")])).await.unwrap();
    store.create(session()).await.unwrap();

    let listed = store.sessions(SessionFilter::default()).await.unwrap();
    let short: Vec<_> = listed.iter().map(|s| (s.session, s.events, s.created_at, s.updated_at)).collect();
    // Neither the sub-agent's session nor the empty one is a conversation to take up.
    assert_eq!(short, [(a.session, 3, 1000, 3000), (b.session, 1, 1000, 1000)]);

    store.append(batch(b, 1, [said("1"), said("2"), said("3")])).await.unwrap();
    let listed = store.sessions(SessionFilter::default()).await.unwrap();
    assert_eq!(listed[0].session, b.session, "newest is who spoke last");
}

async fn a_listing_can_be_of_one_folder_and_short(store: Shared) {
    let mut ids = vec![];
    for cwd in ["/a", "/b", "/a", "/a"] {
        let fence = store.create(session()).await.unwrap();
        store.append(batch(fence, 0, [opened(cwd)])).await.unwrap();
        ids.push(fence.session);
    }
    let list = |cwd: Option<&str>, limit| {
        let (store, cwd) = (Arc::clone(&store), cwd.map(str::to_owned));
        async move {
            let found = store.sessions(SessionFilter { cwd, limit }).await.unwrap();
            found.into_iter().map(|info| info.session).collect::<Vec<_>>()
        }
    };
    assert_eq!(list(None, None).await, [ids[3], ids[2], ids[1], ids[0]]);
    assert_eq!(list(Some("/a"), None).await, [ids[3], ids[2], ids[0]]);
    assert_eq!(list(Some("/a"), Some(1)).await, [ids[3]]);
    assert_eq!(list(Some("/c"), None).await, []);
    assert_eq!(list(None, Some(0)).await, []);
}

async fn the_title_is_the_first_line_with_words(store: Shared) {
    let fence = store.create(session()).await.unwrap();
    store.append(batch(fence, 0, [opened("/a"), prompted(input_id(), "\n  \n")])).await.unwrap();
    let title = || async { store.sessions(SessionFilter::default()).await.unwrap()[0].title.clone() };
    assert_eq!(title().await, "");
    let wordy = format!("\n  Rename the port {}\nand more", "x".repeat(100));
    store.append(batch(fence, 2, [prompted(input_id(), &wordy)])).await.unwrap();
    let first = title().await;
    assert!(first.starts_with("Rename the port x") && first.ends_with("x…"), "{first}");
    assert_eq!(first.chars().count(), 80);
    store.append(batch(fence, 3, [prompted(input_id(), "Something else")])).await.unwrap();
    assert_eq!(title().await, first);
}

async fn a_session_is_created_once(store: Shared) {
    let id = session();
    let first = store.create(id).await.unwrap();
    assert_eq!(first, Fence { session: id, epoch: 1 });
    let second = store.create(id).await.unwrap();
    assert_eq!(second.epoch, 2, "it was still empty: taken up anew");
    store.append(says(second, 0, "one")).await.unwrap();
    let refused = store.create(id).await.unwrap_err();
    assert!(matches!(refused, StoreError::Conflict { head: Seq(1), .. }), "{refused}");
    store.append(says(second, 1, "two")).await.unwrap();
}

async fn nothing_is_known_of_a_session_that_is_not_there(store: Shared) {
    let nobody = Fence { session: session(), epoch: 1 };
    let id = input_id();
    let errors = [
        store.claim(nobody.session).await.unwrap_err(),
        store.release(&nobody).await.unwrap_err(),
        store.append(says(nobody, 0, "x")).await.unwrap_err(),
        store.read(nobody.session, Seq(1), 1).await.unwrap_err(),
        store.enqueue(nobody.session, left(id, "x")).await.unwrap_err(),
        store.inbox(nobody.session).await.unwrap_err(),
        store.salvage(nobody.session).await.1.unwrap(),
    ];
    for error in errors {
        assert!(matches!(error, StoreError::NoSuchSession(id) if id == nobody.session), "{error}");
    }
    assert!(store.sessions(SessionFilter::default()).await.unwrap().is_empty());
}

async fn salvage_of_a_whole_log_is_the_whole_log(store: Shared) {
    let fence = store.create(session()).await.unwrap();
    assert!(matches!(store.salvage(fence.session).await, (saved, None) if saved.is_empty()));
    store.append(batch(fence, 0, (0..2345).map(|n| said(&n.to_string())))).await.unwrap();
    let (saved, damage) = store.salvage(fence.session).await;
    assert!(damage.is_none());
    assert_eq!(saved, whole(&*store, fence.session).await);
    assert_eq!(saved.len(), 2345);
}

async fn every_model_call_is_a_line_of_the_ledger(store: Shared) {
    let fence = store.create(session()).await.unwrap();
    let usage = Usage { input: 100, cache_read: 40, cache_write: 5, output: 20, reasoning: 7 };
    let spent = Spent { usage, cost_micro_usd: Some(1234), first_token_ms: Some(300), estimated: false };
    store.append(batch(fence, 0, [opened("/work"), called(2, "a/x", 1)])).await.unwrap();
    let all = LedgerFilter { session: Some(fence.session), ..LedgerFilter::default() };
    let line = LedgerLine {
        session: fence.session,
        root: fence.session,
        work: Seq(2),
        at: 2000,
        agent: "coder".into(),
        provider: "a".into(),
        model: "x".into(),
        role: ModelRole::Main,
        attempt: 1,
        outcome: CallOutcome::Open,
        usage: Usage::default(),
        cost_micro_usd: None,
        estimated: false,
        unpriced: true,
        first_token_ms: None,
        took_ms: None,
    };
    assert_eq!(store.ledger(all).await.unwrap(), std::slice::from_ref(&line));

    store.append(batch(fence, 2, [said("words"), finished(2, spent)])).await.unwrap();
    let answered = LedgerLine {
        outcome: CallOutcome::Answered,
        unpriced: false,
        usage,
        cost_micro_usd: Some(1234),
        first_token_ms: Some(300),
        took_ms: Some(2000),
        ..line
    };
    assert_eq!(store.ledger(all).await.unwrap(), std::slice::from_ref(&answered));

    // Another word about a call that is over changes nothing.
    store.append(batch(fence, 4, [Event::ModelCancelled { work: Seq(2), spent: Spent::default() }])).await.unwrap();
    assert_eq!(store.ledger(all).await.unwrap(), [answered]);
}

/// Four calls: a refused one and its second attempt, one that was cut and reckoned, one that was lost.
fn stormy() -> Vec<Event> {
    let error =
        ModelFailure { kind: FailureKind::Overloaded, message: "busy".into(), status: None, retry_after_ms: None };
    let failed = |work, spent| Event::ModelFailed { work: Seq(work), error: error.clone(), spent };
    vec![
        called(1, "a/x", 1),
        failed(1, Spent::default()),
        called(3, "a/x", 2),
        finished(3, tokens(200, Some(50))),
        called(5, "b/y", 1),
        failed(5, Spent { estimated: true, ..tokens(80, None) }),
        called(7, "b/y", 2),
        Event::Reopened { worker: "w".into() },
        called(9, "b/y", 2),
        Event::CompactionFailed { work: Seq(9), message: "no".into(), error: None, spent: None },
    ]
}

async fn the_ledger_says_what_the_log_says(store: Shared) {
    let fence = store.create(session()).await.unwrap();
    let events: Vec<_> = [opened("/work")].into_iter().chain(stormy()).collect();
    for (at, event) in events.into_iter().enumerate() {
        store.append(batch(fence, at as u64, [event])).await.unwrap();
    }
    let lines = store.ledger(LedgerFilter::default()).await.unwrap();
    assert_eq!(lines, ledger(&whole(&*store, fence.session).await, None));
    let short: Vec<_> =
        lines.iter().map(|line| (line.work.0, line.outcome.name(), line.estimated, line.unpriced)).collect();
    let expected = [
        (1, "failed", false, false),
        (3, "answered", false, false),
        (5, "failed", true, true),
        (7, "lost", false, true),
        (9, "failed", false, true),
    ];
    assert_eq!(short, expected);
}

async fn lines_come_in_pages_and_by_time(store: Shared) {
    let mut sessions = vec![];
    for _ in 0..2 {
        let fence = store.create(session()).await.unwrap();
        // Both sessions call at the same times: 1 s, 3 s, … 9 s.
        let calls = (0..5).flat_map(|n| [called(2 * n + 1, "a/x", 1), finished(2 * n + 1, tokens(1, Some(1)))]);
        store.append(batch(fence, 0, calls)).await.unwrap();
        sessions.push(fence.session);
    }
    let all = store.ledger(LedgerFilter::default()).await.unwrap();
    assert_eq!(all.len(), 10);
    let (mut paged, mut after) = (vec![], None);
    loop {
        let page = store.ledger(LedgerFilter { after, limit: Some(3), ..LedgerFilter::default() }).await.unwrap();
        let Some(last) = page.last() else { break };
        assert!(page.len() <= 3);
        after = Some(LedgerPlace::of(last));
        paged.extend(page);
    }
    assert_eq!(paged, all);
    let times = |from, to, session| {
        let store = Arc::clone(&store);
        async move {
            let lines = store.ledger(LedgerFilter { session, from, to, ..LedgerFilter::default() }).await.unwrap();
            lines.iter().map(|line| line.at).collect::<Vec<_>>()
        }
    };
    assert_eq!(times(Some(3000), Some(7000), None).await, [3000, 3000, 5000, 5000]);
    assert_eq!(times(Some(7000), Some(u64::MAX), Some(sessions[0])).await, [7000, 9000]);
    assert_eq!(times(None, Some(1000), None).await, [] as [u64; 0]);
    assert_eq!(times(None, None, Some(session())).await, [] as [u64; 0]);
}

async fn lines_are_added_up_by_day_model_and_agent(store: Shared) {
    let fence = store.create(session()).await.unwrap();
    let mut stormy = batch(fence, 0, [opened("/work")].into_iter().chain(stormy()));
    // The log goes on past midnight of 1970-01-01.
    for record in &mut stormy.records[5..] {
        Arc::get_mut(record).unwrap().at += DAY_MS;
    }
    store.append(stormy).await.unwrap();
    let sums = |by| {
        let store = Arc::clone(&store);
        async move {
            let sums = store.ledger_sums(LedgerFilter::default(), by).await.unwrap();
            let mine = |sum: LedgerSum| {
                (sum.key, sum.calls, sum.usage.context(), sum.cost_micro_usd, sum.unpriced_calls, sum.estimated_calls)
            };
            sums.into_iter().map(mine).collect::<Vec<_>>()
        }
    };
    let row = |key: &str, calls, tokens, cost, unpriced, estimated| {
        (key.to_owned(), calls, tokens, cost, unpriced, estimated)
    };
    let models = [row("a/x", 2, 200, 50, 0, 0), row("b/y", 3, 80, 0, 3, 1)];
    assert_eq!(sums(LedgerKey::Model).await, models);
    assert_eq!(sums(LedgerKey::Day).await, [row("1970-01-01", 2, 200, 50, 0, 0), row("1970-01-02", 3, 80, 0, 3, 1)]);
    assert_eq!(sums(LedgerKey::Agent).await, [row("coder", 5, 280, 50, 3, 1)]);
    let since = LedgerFilter { from: Some(DAY_MS), ..LedgerFilter::default() };
    let later = store.ledger_sums(since, LedgerKey::Model).await.unwrap();
    assert_eq!(later.iter().map(|sum| sum.key.as_str()).collect::<Vec<_>>(), ["b/y"]);
    let nobody = LedgerFilter { session: Some(session()), ..LedgerFilter::default() };
    assert!(store.ledger_sums(nobody, LedgerKey::Agent).await.unwrap().is_empty());
}

async fn what_was_spent_is_known_by_tree_and_by_time(store: Shared) {
    let [root, child, grandchild, other] = [session(), session(), session(), session()];
    let parents = [None, Some(root), Some(child), None];
    for (n, (id, parent)) in [root, child, grandchild, other].into_iter().zip(parents).enumerate() {
        let fence = store.create(id).await.unwrap();
        let spent = tokens(10u64.pow(n as u32), Some(2 * 10u64.pow(n as u32)));
        store.append(batch(fence, 0, [opened_by(parent), called(2, "a/x", 1), finished(2, spent)])).await.unwrap();
    }
    let spent = |scope| {
        let store = Arc::clone(&store);
        async move {
            let Spending { micro_usd, tokens } = store.spent(scope).await.unwrap();
            (micro_usd, tokens)
        }
    };
    for member in [root, child, grandchild] {
        assert_eq!(spent(SpentScope::Tree(member)).await, (222, 111));
    }
    assert_eq!(spent(SpentScope::Tree(other)).await, (2000, 1000));
    assert_eq!(spent(SpentScope::Tree(session())).await, (0, 0));
    assert_eq!(spent(SpentScope::Since(2000)).await, (2222, 1111), "every call was made at 2 s");
    assert_eq!(spent(SpentScope::Since(2001)).await, (0, 0));
    let roots: Vec<_> = store.ledger(LedgerFilter::default()).await.unwrap().iter().map(|line| line.root).collect();
    assert_eq!(roots.iter().filter(|id| **id == root).count(), 3);
}

async fn a_refused_batch_leaves_no_line(store: Shared) {
    let fence = store.create(session()).await.unwrap();
    let first = batch(fence, 0, [opened("/work"), called(2, "a/x", 1), finished(2, tokens(10, Some(5)))]);
    store.append(first.clone()).await.unwrap();
    store.append(first).await.unwrap();
    store.append(batch(fence, 7, [called(8, "a/x", 1)])).await.unwrap_err();
    store.append(batch(Fence { epoch: 9, ..fence }, 3, [called(4, "a/x", 1)])).await.unwrap_err();
    assert_eq!(store.ledger(LedgerFilter::default()).await.unwrap().len(), 1);
    assert_eq!(store.spent(SpentScope::Since(0)).await.unwrap(), Spending { micro_usd: 5, tokens: 10 });
}
