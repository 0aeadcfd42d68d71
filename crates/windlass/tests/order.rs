//! Who runs when, and in which order results come back: by the order of events, never by the clock.

mod common;

use common::*;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use windlass::kernel::*;
use windlass::store::{MemoryStore, Store};

/// One message with `count` slow looks, call `i` taking `ms(i)`, then text, each event 20 ms apart.
fn looks(count: usize, ms: impl Fn(usize) -> usize) -> String {
    let uses: Vec<_> = (0..count)
        .map(|n| format!("{{ tool = 'look', id = 'c{n}', input = {{ n = {n}, ms = {} }} }}", ms(n)))
        .collect();
    format!(
        "[[step]]\ngap_ms = 20\nblocks = [{}, {{ text = 'and so on, and so on, and so on' }}]\n[[step]]\nblocks = [{{ text = 'seen' }}]",
        uses.join(", ")
    )
}

async fn told(script: &str, profile: &str) -> (Vec<String>, State, usize) {
    let workshop = Workshop::playing(script);
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let slow = Slow::new();
    let agent = workshop.agent().store(store).tool(slow.clone()).profile(Profile::named(profile).unwrap());
    let agent = agent.build().unwrap();
    let session = agent.open().await.unwrap();
    session.run("look around").await.unwrap();
    let (story, state) = checked_story(&agent, &session).await;
    (story, state, slow.most.load(Ordering::SeqCst))
}

#[tokio::test]
async fn s0_23_readers_overlap() {
    let (story, _, most) = told(&looks(2, |_| 300), "default").await;
    assert!(place(&story, "run c1") < place(&story, "done c0 Ok"), "{story:#?}");
    assert_eq!(most, 2);
}

#[tokio::test]
async fn s2_21_a_tool_starts_while_its_message_still_streams() {
    let (story, _, _) = told(&looks(1, |_| 10), "default").await;
    assert!(place(&story, "run c0") < place(&story, "model finished"), "{story:#?}");
    let text = story.iter().position(|line| line.starts_with("text")).unwrap();
    assert!(place(&story, "run c0") < text, "{story:#?}");
}

#[tokio::test]
async fn s2_06_eight_calls_never_run_more_than_five_at_once() {
    for profile in ["default", "s2-query"] {
        let (story, state, most) = told(&looks(8, |_| 300), profile).await;
        assert_eq!(most, 5, "{profile}");
        let mut running = 0;
        for line in &story {
            running += i32::from(line.starts_with("run ")) - i32::from(line.starts_with("done "));
            assert!(running <= 5, "{profile}: {story:#?}");
        }
        assert_eq!(results(&state).len(), 8);
    }
}

#[tokio::test]
async fn s2_07_results_come_back_in_call_order() {
    // The first takes longest: they finish the other way round.
    let (story, state, _) = told(&looks(3, |n| 450 - 200 * n), "default").await;
    assert!(place(&story, "done c2 Ok") < place(&story, "done c0 Ok"), "{story:#?}");
    assert_eq!(results(&state), ["c0: saw 0", "c1: saw 1", "c2: saw 2"]);
}

#[tokio::test]
async fn s2_08_a_failing_bash_kills_its_running_sibling_and_each_has_a_result() {
    let script = r#"
        [[step]]
        blocks = [
          { tool = "bash", id = "long", input = { command = "sleep 30 & echo $! > child; echo $$ > shell; wait" } },
          { tool = "bash", id = "bad", input = { command = "while [ ! -s shell ]; do sleep 0.05; done; exit 3" } },
          { tool = "bash", id = "other", input = { command = "sleep 30" } },
        ]
        [[step]]
        blocks = [{ text = "one failed" }]
    "#;
    let workshop = Workshop::playing(script);
    let agent = workshop.agent().profile(Profile::named("s2-query").unwrap()).build().unwrap();
    let session = agent.open().await.unwrap();
    session.run("run these").await.unwrap();
    let state = checked(&agent, &session).await;
    let results = results(&state);
    assert_eq!(results.len(), 3, "{results:#?}");
    assert!(results[0].starts_with("long: ") && results[2].starts_with("other: "), "{results:#?}");
    assert!(results[1].contains('3'), "{results:#?}");
    for file in ["shell", "child"] {
        let pid = workshop.read(file).trim().to_owned();
        assert!(!pid.is_empty() && !alive(&pid), "{file} {pid} is still there");
    }
}

/// A process that is there and no zombie.
fn alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.trim_start().starts_with('Z'))
}

#[tokio::test]
async fn a_writer_waits_for_its_whole_message_and_for_the_readers_before_it() {
    let script = r#"
        [[step]]
        gap_ms = 20
        blocks = [
          { tool = "look", id = "first", input = { n = 1, ms = 100 } },
          { tool = "write", id = "second", input = { path = "new", content = "x" } },
          { tool = "look", id = "third", input = { n = 3, ms = 1 } },
        ]
        [[step]]
        blocks = [{ text = "done" }]
    "#;
    let (story, _, _) = told(script, "default").await;
    assert!(place(&story, "model finished") < place(&story, "run second"), "{story:#?}");
    assert!(place(&story, "done first Ok") < place(&story, "run second"), "{story:#?}");
    assert!(place(&story, "done second Ok") < place(&story, "run third"), "{story:#?}");
}
