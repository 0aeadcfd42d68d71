//! The prompt cache: silent while all is well, and a word with the culprit's name when it breaks.

mod common;

use common::*;
use std::sync::Arc;
use windlass::kernel::*;
use windlass::store::Store;
use windlass_prompt::Facts;

fn facts(static_part: &str) -> Facts {
    Facts { agent_prompt: Some(static_part.into()), ..Facts::default() }
}

async fn breaks(store: &Arc<dyn Store>, session: SessionId) -> Vec<CacheBroke> {
    let records = log(store, session).await;
    let broke = records.into_iter().filter_map(|record| match record.event {
        Event::CacheBroke(broke) => Some(*broke),
        _ => None,
    });
    broke.collect()
}

#[tokio::test]
async fn a_date_in_the_static_part_is_named_when_it_changes() {
    let script =
        "[[step]]\nrounds = 2\nusage = { input = 10, cache_write = 5000, output = 5 }\nblocks = [{ text = 'yes' }]";
    let workshop = Workshop::playing(script);
    let store = workshop.store();
    let agent = |day: &str| {
        let static_part = format!("You help. Today is {day}.");
        workshop.agent().store(store.clone()).facts(facts(&static_part)).build().unwrap()
    };
    let session = agent("2026-11-20").open().await.unwrap();
    soon(session.run("first")).await.unwrap();
    session.handle().close().await;
    let session = agent("2026-11-21").resume(session.id()).await.unwrap();
    soon(session.run("second")).await.unwrap();
    let broke = breaks(&store, session.id()).await;
    assert_eq!(broke.len(), 1, "{broke:?}");
    assert_eq!(broke[0].tokens, 5_010);
    let CacheBreak::Section { name } = &broke[0].cause else { panic!("{broke:?}") };
    let sections = windlass_prompt::system(&facts("You help. Today is 2026-11-21."));
    let culprit = sections.iter().find(|section| section.text.contains("2026-11-21")).unwrap();
    assert!(culprit.fixed, "the date stands in the static part");
    assert_eq!(name, &culprit.name.to_string());
}

#[tokio::test]
async fn fifty_ordinary_turns_are_silent() {
    // Each call reads what the one before wrote, as at a provider that caches.
    let mut script = String::new();
    for turn in 0..50 {
        let (read, write) = (4_000 + turn * 100, 100);
        script += &format!(
            "[[step]]\nusage = {{ input = 3, cache_read = {read}, cache_write = {write}, output = 5 }}\n\
             blocks = [{{ text = 'turn {turn}' }}]\n"
        );
    }
    let workshop = Workshop::playing(&script);
    let agent = workshop.agent().build().unwrap();
    let session = agent.open().await.unwrap();
    for turn in 0..50 {
        soon(session.run(format!("turn {turn}"))).await.unwrap();
    }
    assert_eq!(breaks(&agent.setup().store, session.id()).await, []);
    assert_eq!(workshop.bodies().len(), 50);
}

#[tokio::test]
async fn a_provider_that_forgets_is_told_on() {
    let script = "[[step]]\nusage = { input = 10, cache_write = 9000, output = 5 }\nblocks = [{ text = 'one' }]\n\
                  [[step]]\nusage = { input = 9020, output = 5 }\nblocks = [{ text = 'two' }]";
    let workshop = Workshop::playing(script);
    let agent = workshop.agent().build().unwrap();
    let session = agent.open().await.unwrap();
    for _ in 0..2 {
        soon(session.run("go")).await.unwrap();
    }
    let broke = breaks(&agent.setup().store, session.id()).await;
    assert!(
        matches!(broke[..], [CacheBroke { cause: CacheBreak::Miss { read: 0, .. }, tokens: 9_010, .. }]),
        "{broke:?}"
    );
}
