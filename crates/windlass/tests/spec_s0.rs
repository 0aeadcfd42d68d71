//! Stories of the general conversation loop: what a round is, and that everything is told as it comes.

mod common;

use common::*;
use futures_util::StreamExt;
use windlass::kernel::*;
use windlass::runtime::{DeltaFrame, DeltaKind, Frame};
use windlass::{Protocol, Turn};

const PROTOCOLS: [Protocol; 2] = [Protocol::Anthropic, Protocol::Chat];

/// Follows the turn until what it told by deltas of `kind` ends in `last`; all it told by then, by kind.
async fn told(turn: &mut Turn, kind: DeltaKind, last: &str) -> Vec<(DeltaKind, String)> {
    let mut told: Vec<(DeltaKind, String)> = vec![];
    let listening = async {
        while let Some(frame) = turn.next().await {
            let Frame::Delta(delta) = frame.unwrap() else { continue };
            take_in(&mut told, &delta);
            if delta.delta == kind && told.last().is_some_and(|(_, text)| text.ends_with(last)) {
                return;
            }
        }
        panic!("the turn ended before {last:?}: {told:?}")
    };
    soon(listening).await;
    told
}

fn take_in(told: &mut Vec<(DeltaKind, String)>, delta: &DeltaFrame) {
    match told.last_mut() {
        Some((kind, text)) if *kind == delta.delta => text.push_str(&delta.text),
        _ => told.push((delta.delta, delta.text.clone())),
    }
}

#[tokio::test]
async fn s0_08_a_round_is_context_model_calls_results_and_a_decision() {
    let script = r#"
        [[step]]
        blocks = [{ text = "I will look." }, { tool = "read", id = "c", input = { path = "a" } }]
        [[step]]
        blocks = [{ text = "alpha" }]
    "#;
    for protocol in PROTOCOLS {
        let workshop = Workshop::playing(script);
        workshop.write("a", "alpha");
        let agent = workshop.speaking(protocol).profile(Profile::named("s0-general").unwrap()).build().unwrap();
        let session = agent.open().await.unwrap();
        soon(session.run("what is in a?")).await.unwrap();
        let (story, state) = checked_story(&agent, &session).await;
        let steps =
            ["prompted", "call model", "use c", "run c", "done c Ok", "call model", "text \"alpha\"", "end Done"];
        let mut rest = story.as_slice();
        for step in steps {
            rest = &rest[place(rest, step) + 1..];
        }
        let records = log(&agent.setup().store, session.id()).await;
        let context = records.iter().find_map(|record| match &record.event {
            Event::Prompted(prompted) => prompted.context.clone(),
            _ => None,
        });
        assert!(context.unwrap().starts_with("<userContext>"), "the context is made before the model is asked");
        let roles: Vec<_> = state.messages.iter().map(|message| message.role).collect();
        assert_eq!(roles, [Role::User, Role::Assistant, Role::User, Role::Assistant]);
        // The second request is the first with the message and its results appended.
        let count = |n: usize| workshop.bodies()[n]["messages"].as_array().unwrap().len();
        assert_eq!(count(1), count(0) + 2, "{protocol:?}");
    }
}

#[tokio::test]
async fn s0_09_text_is_told_at_once_and_thinking_apart_from_it() {
    // The message never becomes whole: what is heard of it was told as it came.
    let script = r#"
        [[step]]
        fragment = 4
        hang = { in_block = 2, after_chars = 5 }
        blocks = [
          { thinking = "What may it be?", signature = "s" },
          { text = "I will look." },
          { tool = "ls", id = "c", input = { path = "." } },
        ]
    "#;
    for protocol in PROTOCOLS {
        let workshop = Workshop::playing(script);
        let agent = workshop.speaking(protocol).build().unwrap();
        let session = agent.open().await.unwrap();
        let mut turn = session.submit("what is here?").await.unwrap();
        let told = told(&mut turn, DeltaKind::Text, "look.").await;
        let thought = (DeltaKind::Thinking, "What may it be?".to_owned());
        assert_eq!(told, [thought, (DeltaKind::Text, "I will look.".to_owned())], "{protocol:?}");
        session.handle().send(Command::Interrupt { by: "story".into() }).await.unwrap();
        assert_eq!(soon(turn.finish()).await.unwrap().end, End::Interrupted);
        assert_eq!(checked(&agent, &session).await.totals.tool_runs, 0, "half a call does not run");
    }
}

#[tokio::test]
async fn s0_09_calls_are_collected_from_their_fragments_and_run_once_whole() {
    let script = r#"
        [[step]]
        fragment = 4
        blocks = [{ text = "Writing." }, { tool = "write", id = "c", input = { path = "b", content = "one two three" } }]
        [[step]]
        blocks = [{ text = "written" }]
    "#;
    for protocol in PROTOCOLS {
        let workshop = Workshop::playing(script);
        let agent = workshop.speaking(protocol).build().unwrap();
        let session = agent.open().await.unwrap();
        let answer = soon(session.run("write it")).await.unwrap();
        assert_eq!((answer.text.as_str(), answer.tally.tool_runs), ("written", 1));
        assert_eq!(workshop.read("b"), "one two three");
        checked(&agent, &session).await;
    }
}

#[tokio::test]
async fn s0_39_what_the_model_and_the_tools_say_is_told_while_they_say_it() {
    // The command goes on only when its first line was heard, and the last text only comes after it.
    let command = "echo half; until [ -e go ]; do sleep 0.02; done; echo whole";
    let script = format!(
        "[[step]]\nfragment = 4\nblocks = [{{ text = 'I will wait.' }}, {{ tool = 'bash', id = 'c', input = {{ command = '{command}' }} }}]\n\
         [[step]]\nfragment = 4\nhang = {{ in_block = 0, after_chars = 8 }}\nblocks = [{{ text = 'It is done, and more.' }}]"
    );
    for protocol in PROTOCOLS {
        let workshop = Workshop::playing(&script);
        let agent = workshop.speaking(protocol).build().unwrap();
        let session = agent.open().await.unwrap();
        let mut turn = session.submit("wait for it").await.unwrap();
        let heard = told(&mut turn, DeltaKind::Progress, "half\n").await;
        assert_eq!(heard[0], (DeltaKind::Text, "I will wait.".to_owned()), "{protocol:?}");
        assert!(!session.handle().state().await.unwrap().is_idle(), "it still runs");
        workshop.write("go", "");
        let heard = told(&mut turn, DeltaKind::Text, "It is do").await;
        assert_eq!(heard.last().unwrap().1, "It is do");
        session.handle().send(Command::Interrupt { by: "story".into() }).await.unwrap();
        assert_eq!(soon(turn.finish()).await.unwrap().end, End::Interrupted);
        let state = checked(&agent, &session).await;
        assert!(state.messages.last().unwrap().text().starts_with("It is do"), "what was told is kept");
        assert_eq!(results(&state), ["c: half\nwhole\n"]);
    }
}
