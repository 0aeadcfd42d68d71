//! Who follows a session hears everything stored, once and in order, however slow or late they are.

mod common;

use common::*;
use futures_util::StreamExt;
use std::time::Duration;
use windlass::kernel::*;
use windlass::runtime::{Follower, Frame};

/// Follows to the end of the first turn: the places of the records, and the text the deltas make.
async fn heard(follower: &mut Follower) -> (Vec<u64>, String) {
    let (mut places, mut text) = (vec![], String::new());
    let listening = async {
        while let Some(frame) = follower.next().await {
            match frame.unwrap() {
                Frame::Delta(delta) => {
                    assert!(delta.offset <= text.len(), "a gap before byte {}", delta.offset);
                    text.replace_range(delta.offset.., &delta.text);
                }
                Frame::Record(record) => {
                    places.push(record.seq.0);
                    if matches!(record.event, Event::TurnFinished { .. }) {
                        break;
                    }
                }
            }
        }
    };
    soon(listening).await;
    (places, text)
}

fn long_story() -> (Workshop, String) {
    let text = "0123456789".repeat(1_000);
    let script = format!("[[step]]\nfragment = 5\nsplit = 100\nblocks = [{{ text = '{text}' }}]");
    (Workshop::playing(&script), text)
}

#[tokio::test]
async fn one_who_sleeps_through_a_whole_turn_misses_no_record() {
    let (workshop, text) = long_story();
    let agent = workshop.agent().build().unwrap();
    let session = agent.open().await.unwrap();
    let (mut quick, mut sleepy) = (session.handle().follow(Seq(1)), session.handle().follow(Seq(1)));
    // It is there before the turn begins, and then does not listen.
    assert!(matches!(sleepy.next().await, Some(Ok(Frame::Record(_)))));
    let turn = session.submit("count").await.unwrap();
    let (places, told) = heard(&mut quick).await;
    assert_eq!(told, text);
    assert_eq!(soon(turn.finish()).await.unwrap().text, text);
    let state = checked(&agent, &session).await;
    assert_eq!(places, (1..=state.head.0).collect::<Vec<_>>());
    let (late, _) = heard(&mut sleepy).await;
    assert_eq!(late, places[1..]);
}

#[tokio::test]
async fn one_who_leaves_holds_nobody_up() {
    let (workshop, text) = long_story();
    let agent = workshop.agent().build().unwrap();
    let session = agent.open().await.unwrap();
    let mut leaving = session.submit("count").await.unwrap();
    let mut staying = session.handle().follow(Seq(1));
    assert!(leaving.next().await.is_some());
    drop(leaving);
    assert_eq!(heard(&mut staying).await.1, text);
}

#[tokio::test]
async fn one_who_comes_after_the_end_hears_what_is_stored() {
    let (workshop, _) = long_story();
    let agent = workshop.agent().store(workshop.store()).build().unwrap();
    let session = agent.open().await.unwrap();
    soon(session.run("count")).await.unwrap();
    let head = checked(&agent, &session).await.head;
    session.handle().close().await;
    let mut late = session.handle().follow(Seq(3));
    assert_eq!(heard(&mut late).await.0, (3..=head.0).collect::<Vec<_>>());
    assert!(soon(late.next()).await.is_none());
}

#[tokio::test]
async fn a_prompt_that_waited_for_another_turns_end_gets_its_own_answer_however_late_it_is_asked_for() {
    let workshop =
        Workshop::playing("[[step]]\nblocks = [{ text = 'first' }]\n[[step]]\nblocks = [{ text = 'second' }]");
    // Holds up the first turn's end, so that the second prompt comes too late for it.
    let check = |state: &State| {
        if state.totals.model_calls == 1 {
            std::thread::sleep(Duration::from_millis(300));
        }
        None
    };
    let agent = workshop.agent().stop_check(check).build().unwrap();
    let session = agent.open().await.unwrap();
    let mut first = session.submit("one").await.unwrap();
    until(&mut first, |event| matches!(event, Event::Began { step: Step::Finish { .. } }).then_some(())).await;
    let second = session.submit("two").await.unwrap();
    let idle = async {
        while !session.handle().state().await.unwrap().is_idle() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    soon(idle).await;
    assert_eq!(soon(second.finish()).await.unwrap().text, "second");
    assert!(soon(first.finish()).await.is_ok());
    assert_eq!(checked(&agent, &session).await.totals.user_turns, 2);
}
