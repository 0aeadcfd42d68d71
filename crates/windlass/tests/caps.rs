//! Caps: a turn that reaches one waits, and goes on where it was when somebody raises it.

mod common;

use common::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use windlass::RunError;
use windlass::kernel::*;
use windlass::llm::Prices;
use windlass::runtime::World;

const TWO_CALLS: &str = "[[step]]\nusage = { input = 1000, output = 1000 }\nblocks = [{ tool = 'ls', input = { path = '.' } }]\n\
                         [[step]]\nusage = { input = 100, output = 10 }\nblocks = [{ text = 'done' }]";

fn capped(session: Cap) -> Profile {
    Profile { caps: Caps { session, ..Caps::default() }, ..Profile::default() }
}

#[tokio::test]
async fn a_cap_in_money_pauses_the_turn_and_a_higher_one_lets_it_go_on() {
    let workshop = Workshop::playing(TWO_CALLS);
    let prices = Prices::from_dollars(3.0, 15.0, 0.3, 3.75).unwrap();
    let profile = capped(Cap { micro_usd: Some(10_000), tokens: None });
    let agent = workshop.agent().prices(move |_| Some(prices)).profile(profile).build().unwrap();
    let session = agent.open().await.unwrap();
    let paused = soon(session.run("go")).await.unwrap_err();
    let RunError::Paused(cap) = paused else { panic!("{paused:?}") };
    // 1,000 × $3 + 1,000 × $15 per million = $0.018.
    assert_eq!((cap.scope, cap.spent.micro_usd), (CapScope::Session, 18_000));
    let head = checked(&agent, &session).await.head;
    let caps = Caps { session: Cap { micro_usd: Some(50_000), tokens: None }, ..Caps::default() };
    let raise = Configured { caps: Some(caps), ..Configured::default() };
    session.handle().send(Command::Configure(Box::new(raise))).await.unwrap();
    let answer = soon(session.rejoin(head.next()).finish()).await.unwrap();
    assert_eq!((answer.text.as_str(), answer.end), ("done", End::Done));
    checked(&agent, &session).await;
}

#[tokio::test]
async fn a_paused_turn_survives_the_process_and_can_be_called_back() {
    let workshop = Workshop::playing(TWO_CALLS);
    let store = workshop.store();
    let profile = capped(Cap { micro_usd: None, tokens: Some(1_500) });
    let agent = workshop.agent().store(store).profile(profile).build().unwrap();
    let session = agent.open().await.unwrap();
    assert!(matches!(soon(session.run("go")).await, Err(RunError::Paused(_))));
    session.handle().close().await;
    for _ in 0..8 {
        let again = agent.resume(session.id()).await.unwrap();
        assert!(checked(&agent, &again).await.paused().is_some());
        again.handle().close().await;
    }
    let again = agent.resume(session.id()).await.unwrap();
    let head = checked(&agent, &again).await.head;
    again.handle().send(Command::Interrupt { by: "story".into() }).await.unwrap();
    let answer = soon(again.rejoin(head.next()).finish()).await.unwrap();
    assert_eq!(answer.end, End::Interrupted);
    checked(&agent, &again).await;
}

/// Noon of some day.
const NOON: u64 = 20_000 * DAY_MS + DAY_MS / 2;

/// A clock that is set by hand.
fn world(clock: &Arc<AtomicU64>) -> World {
    let clock = clock.clone();
    World {
        now: Arc::new(move || clock.load(Ordering::Relaxed)),
        id: Arc::new(uuid::Uuid::now_v7),
        local_time: Arc::new(|at| at.to_string()),
    }
}

fn seen(records: &[Record]) -> Vec<(CapScope, u64)> {
    let of = |record: &Record| match &record.event {
        Event::SpendingSeen { scope, spent } => Some((*scope, spent.tokens)),
        _ => None,
    };
    records.iter().filter_map(of).collect()
}

#[tokio::test]
async fn what_other_sessions_spent_today_counts_and_a_new_day_lets_the_turn_go_on() {
    let workshop = Workshop::playing(TWO_CALLS);
    let store = workshop.store();
    let clock = Arc::new(AtomicU64::new(NOON));
    let day = Cap { tokens: Some(1_500), micro_usd: None };
    let profile = Profile { caps: Caps { day, ..Caps::default() }, ..Profile::default() };
    let agent = || workshop.agent().store(store.clone()).world(world(&clock));
    let free = agent().build().unwrap();
    let first = free.open().await.unwrap();
    soon(first.run("go")).await.unwrap();
    assert_eq!(workshop.server.requests().len(), 2);

    let agent = agent().profile(profile).build().unwrap();
    let session = agent.open().await.unwrap();
    let RunError::Paused(cap) = soon(session.run("go")).await.unwrap_err() else { panic!("it goes on") };
    // 1,000 + 1,000 and 100 + 10.
    assert_eq!((cap.scope, cap.spent.tokens), (CapScope::Day, 2_110));
    assert_eq!(workshop.server.requests().len(), 2, "nothing was asked of the model");

    // The cap's own day goes by, and nobody touches the session: its loop looks for itself.
    let head = checked(&agent, &session).await.head;
    clock.store(NOON + DAY_MS, Ordering::Relaxed);
    let RunError::Paused(cap) = soon(session.rejoin(head.next()).finish()).await.unwrap_err() else {
        panic!("it goes on")
    };
    assert_eq!(cap.spent.tokens, 2_000, "of the new day, its own first call");
    let records = store.read(session.id(), Seq(1), usize::MAX).await.unwrap();
    assert_eq!(seen(&records), [(CapScope::Day, 2_110), (CapScope::Day, 0)]);
    checked(&agent, &session).await;
}

#[tokio::test]
async fn what_is_seen_of_others_is_told_at_the_opening_and_when_it_matters() {
    let workshop = Workshop::playing(TWO_CALLS);
    let store = workshop.store();
    let clock = Arc::new(AtomicU64::new(NOON));
    let both = Cap { tokens: Some(1_000_000), micro_usd: None };
    let caps = Caps { day: both, tree: both, ..Caps::default() };
    let profile = Profile { caps, ..Profile::default() };
    let agent = workshop.agent().store(store.clone()).world(world(&clock)).profile(profile).build().unwrap();
    let session = agent.open().await.unwrap();
    soon(session.run("go")).await.unwrap();
    session.handle().close().await;
    // Taken up the same day, there is nothing new to tell.
    agent.resume(session.id()).await.unwrap().handle().close().await;
    let told = || async { seen(&store.read(session.id(), Seq(1), usize::MAX).await.unwrap()) };
    assert_eq!(told().await, [(CapScope::Day, 0), (CapScope::Tree, 0)]);
    clock.store(NOON + DAY_MS, Ordering::Relaxed);
    agent.resume(session.id()).await.unwrap().handle().close().await;
    assert_eq!(told().await[2..], [(CapScope::Day, 0)]);
}

#[tokio::test]
async fn a_prompt_for_a_paused_session_is_told_that_it_waits() {
    let workshop = Workshop::playing(TWO_CALLS);
    let profile = capped(Cap { micro_usd: None, tokens: Some(1_500) });
    let agent = workshop.agent().profile(profile).build().unwrap();
    let session = agent.open().await.unwrap();
    for _ in 0..2 {
        assert!(matches!(soon(session.run("go")).await, Err(RunError::Paused(_))));
    }
}
