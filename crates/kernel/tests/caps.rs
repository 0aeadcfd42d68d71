//! What may be spent before somebody is asked, and the schema that an answer is to fit.

mod story;

use insta::assert_snapshot;
use story::{Story, tell};
use windlass_kernel::*;

/// A session with a cap of 200 tokens; each answer takes 120.
fn capped(script: &str) -> Story {
    let session = Cap { tokens: Some(200), micro_usd: None };
    let caps = Caps { session, ..Caps::default() };
    Story::new(Profile { caps, ..Profile::default() }).tell(script)
}

const PAUSED: &str = "
    prompt a\n use c1 read\n stop tool_use\n ok c1 x\n use c2 read\n stop tool_use\n ok c2 y
";

fn pauses(story: &Story) -> usize {
    story.count(|step| matches!(step, Step::Pause { .. }))
}

#[test]
fn a_cap_that_is_reached_pauses_the_turn_between_rounds() {
    let story = capped(PAUSED);
    assert_eq!(story.state.paused().map(|cap| cap.spent.tokens), Some(240));
    assert_eq!((story.state.next_step(), story.state.in_flight().len()), (None, 0));
    assert_eq!((pauses(&story), story.model_calls(), story.tool_runs()), (1, 2, 2));
}

#[test]
fn a_cap_that_is_raised_lets_the_turn_go_on() {
    let story = capped(PAUSED).tell("cap session 300\n text Done.\n stop end_turn");
    assert_eq!((story.end(), pauses(&story)), (&End::Done, 1));
}

#[test]
fn a_profile_without_the_cap_lets_the_turn_go_on() {
    let mut story = capped(PAUSED);
    let profile = Some(Box::new(Profile::default()));
    story.wish(Command::Configure(Box::new(Configured { profile, ..Configured::default() })));
    assert_eq!((story.model_calls(), story.state.paused()), (3, None));
}

#[test]
fn a_cap_that_is_raised_too_little_is_a_new_pause() {
    let story = capped(PAUSED).tell("cap session 240");
    assert_eq!((pauses(&story), story.model_calls()), (2, 2));
    assert!(story.state.paused().is_some());
}

#[test]
fn behind_one_cap_stands_the_next() {
    let story = capped(PAUSED).tell("cap day 100\n cap session 1000");
    assert_eq!(story.state.paused().map(|cap| cap.scope), Some(CapScope::Day));
    let story = story.tell("cap day 1000\n cap tree 1000");
    assert_snapshot!(story.steps(), @r"
    call model
    judge c1
    run c1
    call model
    judge c2
    run c2
    pause at Session: 240 tokens
    pause at Day: 240 tokens
    call model
    ");
}

#[test]
fn the_same_caps_again_change_nothing() {
    let story = capped(PAUSED);
    let caps = Some(story.state.profile.caps);
    let same = Command::Configure(Box::new(Configured { caps, ..Configured::default() }));
    assert_eq!(story.state.accept(&same), Err(Rejected::NoChange));
}

#[test]
fn what_was_spent_elsewhere_counts_with_what_was_spent_here_since() {
    let story = tell("cap day 1000\n elsewhere day 800\n prompt a\n use c1 read\n stop tool_use\n ok c1 x");
    assert_eq!(story.state.spending(CapScope::Day).tokens, 920);
    let story = story.tell("use c2 read\n stop tool_use\n ok c2 x");
    assert_eq!(story.state.paused().map(|cap| (cap.scope, cap.spent.tokens)), Some((CapScope::Day, 1_040)));
    // The day is over.
    let story = story.tell("elsewhere day 0\n text Good morning.\n stop end_turn");
    assert_eq!(*story.end(), End::Done);
}

#[test]
fn money_reaches_a_cap_too() {
    let session = Cap { tokens: None, micro_usd: Some(600) };
    let caps = Caps { session, ..Caps::default() };
    let story =
        Story::new(Profile { caps, ..Profile::default() }).tell("prompt a\n use c1 read\n stop tool_use\n ok c1 x");
    assert_eq!(story.state.paused().map(|cap| cap.spent.micro_usd), Some(600));
}

#[test]
fn an_interrupt_ends_a_turn_that_waits_at_a_cap() {
    let story = capped(PAUSED).tell("interrupt");
    assert_eq!(*story.end(), End::Interrupted);
    assert!(story.state.is_idle());
}

#[test]
fn a_turn_may_wait_at_a_cap_over_more_crashes_than_a_turn_survives() {
    let story = capped(PAUSED).tell(&"crash\n".repeat(9));
    assert_eq!((story.state.reopens, pauses(&story), story.model_calls()), (0, 1, 2));
    let story = story.tell("cap session 1000\n text Done.\n stop end_turn");
    assert_eq!(*story.end(), End::Done);
}

#[test]
fn prompts_wait_while_a_turn_waits_at_a_cap() {
    let story = capped(PAUSED).tell("prompt b\n prompt c");
    assert_eq!((story.state.pending.len(), pauses(&story), story.model_calls()), (2, 1, 2));
    let story = story.tell("cap session 1000");
    assert!(story.transcript().ends_with("user: [c2] y\nuser: b\nuser: c"));
}

#[test]
fn a_turn_that_begins_at_a_cap_waits_before_its_first_call() {
    let story = capped("prompt a\n text b\n stop end_turn\n prompt c\n text d\n stop end_turn\n prompt e");
    assert_eq!((pauses(&story), story.model_calls(), story.state.pending.len()), (1, 2, 1));
    // What was taken back before the model saw it is said, and not asked again.
    let story = story.tell("interrupt");
    assert!(story.state.is_idle() && story.transcript().ends_with("user: e"));
}

#[test]
fn what_is_done_is_finished_although_a_cap_is_reached() {
    let story = capped("prompt a\n text b\n stop end_turn\n prompt c\n text d\n stop end_turn");
    assert_eq!((story.end(), pauses(&story)), (&End::Done, 0));
}

#[test]
fn a_wanted_schema_becomes_the_turns_when_the_model_is_shown_the_prompt() {
    let title = |story: &Story| {
        let schema = story.state.turn.as_ref().unwrap().output_schema.clone();
        schema.map(|schema| schema["title"].as_str().unwrap().to_owned())
    };
    let story = tell("want one\n use c1 read\n want two\n stop tool_use");
    assert_eq!(title(&story).as_deref(), Some("one"));
    let story = story.tell("ok c1 x");
    assert_eq!(title(&story).as_deref(), Some("two"));
    // A prompt that wants nothing leaves it, and a new turn has none of it.
    let story = story.tell("prompt and be quick\n use c2 read\n stop tool_use\n ok c2 x");
    assert_eq!(title(&story).as_deref(), Some("two"));
    let story = story.tell("text {}\n stop end_turn\n prompt thanks");
    assert_eq!(title(&story), None);
}

/// A turn that wants an answer by a schema, with a room for the stop checks.
fn wanting(max_stop_blocks: u32, script: &str) -> Story {
    Story::new(Profile { max_stop_blocks, ..Profile::default() }).checked().tell(script)
}

#[test]
fn an_answer_that_does_not_fit_is_repaired_and_no_stop_check_is_used_up() {
    let story = wanting(1, "want a list\n text hm\n stop end_turn\n repair it is no list\n text []\n stop end_turn");
    let turn = story.state.turn.as_ref().unwrap();
    assert_eq!((turn.repairs, turn.stop_blocks), (1, 0));
    let story = story.tell("object run the tests\n text []\n stop end_turn\n agree");
    assert_snapshot!(story.steps(), @r"
    call model
    finish Done, checks first
    call model
    finish Done, checks first
    call model
    finish Done, checks first
    ");
    assert_eq!(*story.end(), End::Done);
}

#[test]
fn an_answer_by_a_schema_is_looked_at_where_no_stop_check_is_left() {
    let story = wanting(0, "want a list\n text hm\n stop end_turn\n repair it is no list\n text hm\n stop end_turn");
    assert_eq!(story.count(|step| matches!(step, Step::Finish { checks: true, .. })), 2);
    let story = story.tell("unfit it is still no list");
    assert_eq!(*story.end(), End::InvalidAnswer { problem: "it is still no list".into() });
    let story = story.tell("prompt never mind\n text Well.\n stop end_turn");
    assert_eq!(*story.end(), End::Done);
}
