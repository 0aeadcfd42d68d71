//! What the kernel does when the model stalls, is overloaded, cannot take the prompt, or never comes to an end.

mod story;

use insta::assert_snapshot;
use story::{Story, tell};
use windlass_kernel::*;

const OTHER: &str = "mock/other";

/// The default profile, with another model to fall back on.
fn with_fallback(back: FallbackBack) -> Profile {
    Profile { fallback: Some(Fallback { model: OTHER.into(), back }), ..Profile::default() }
}

fn falling_back(script: &str) -> Story {
    Story::new(with_fallback(FallbackBack::NextTurn)).tell(script)
}

fn switches(story: &Story) -> usize {
    story.count(|step| matches!(step, Step::SwitchModel { .. }))
}

#[test]
fn s3_19_an_attempt_that_stalls_is_made_again_twice_and_no_more() {
    let story = tell("prompt go\n fail stalled silence\n fail stalled more silence\n fail stalled still nothing");
    assert_eq!(*story.end(), End::ModelError { message: "silence (tried 3 times)".into() });
    assert_eq!(story.model_calls(), 3);
}

#[test]
fn s3_19_an_attempt_that_stalls_is_no_turn() {
    let profile = Profile { max_turns: 1, ..Profile::default() };
    let story = Story::new(profile).tell("prompt go\n fail stalled silence\n fail stalled silence");
    let turn = story.state.turn.as_ref().unwrap();
    assert_eq!((turn.model_calls, turn.stalls, story.state.totals.model_calls), (0, 2, 0));
    let story = story.tell("text Here I am.\n stop end_turn");
    assert_eq!((story.end(), story.state.totals.model_calls), (&End::Done, 1));
}

#[test]
fn s3_19_a_whole_answer_starts_the_count_of_stalls_anew() {
    let story = tell(
        "prompt go\n fail stalled one\n fail stalled two\n use c1 read\n stop tool_use\n ok c1 x
         fail stalled three\n fail stalled four\n text Done.\n stop end_turn",
    );
    assert_eq!(*story.end(), End::Done);
}

#[test]
fn s3_19_a_crash_gives_no_further_tries() {
    let story = tell("prompt go\n fail stalled one\n fail stalled two\n crash\n fail stalled three");
    assert_eq!(*story.end(), End::ModelError { message: "one (tried 3 times)".into() });
}

#[test]
fn s3_18_two_overloads_in_a_row_and_the_fallback_model_speaks() {
    let story = falling_back("prompt go\n fail overloaded busy\n fail overloaded busy");
    assert_eq!(story.state.speaking_model(), OTHER);
    let turn = story.state.turn.as_ref().unwrap();
    assert_eq!((turn.model_errors, turn.overloads, turn.retry_after_ms), (0, 0, None));
    let story = story.tell("text Good day.\n stop end_turn");
    assert_snapshot!(story.told(), @r"
    prompted: go
      call model
    model failed: busy
      call model
    model failed: busy
      switch to mock/other (Overloaded)
      call model
    block: Good day.
    model finished: EndTurn
      finish Done, checks first
    turn finished: Done
    ");
}

#[test]
fn s3_18_overloads_that_are_not_in_a_row_are_only_tried_again() {
    let story = falling_back("prompt go\n fail overloaded busy\n fail transient reset\n fail overloaded busy");
    assert_eq!((switches(&story), story.state.speaking_model()), (0, "mock/scripted"));
}

#[test]
fn s3_18_attempts_that_are_used_up_are_followed_by_the_fallback_model() {
    let script = "prompt go\n fail stalled one\n fail stalled two\n fail stalled three";
    assert_snapshot!(falling_back(script).steps(), @r"
    call model
    call model
    call model
    switch to mock/other (Failed)
    call model
    ");
    let profile = Profile { max_model_errors: 2, ..with_fallback(FallbackBack::NextTurn) };
    let story = Story::new(profile).tell("prompt go\n fail transient one\n fail transient two");
    assert_eq!(story.state.speaking_model(), OTHER);
}

#[test]
fn s3_18_a_failure_that_no_model_mends_switches_to_none() {
    let story = falling_back("prompt go\n fail overloaded busy\n fail auth the key is not valid");
    assert_eq!(*story.end(), End::ModelError { message: "the key is not valid".into() });
    assert_eq!(switches(&story), 0);
}

#[test]
fn s3_18_a_wait_that_is_too_long_is_not_waited_for() {
    let script = "prompt go\n wait 60000 busy\n text Now.\n stop end_turn\n prompt go on\n wait 60001 slow down";
    let story = falling_back(script);
    assert_eq!((switches(&story), story.state.speaking_model()), (1, OTHER));
    let End::ModelError { message } = tell(script).end().clone() else { panic!("it is over") };
    assert_snapshot!(message, @"slow down; the provider asks to wait 61 s, longer than the 60 s that are waited (retry.max_wait_ms): try again in 61 s, or with another model");
}

#[test]
fn s3_18_the_fallback_model_is_switched_to_once_in_a_turn_and_its_failures_end_it() {
    let story = falling_back(
        "prompt go\n fail overloaded busy\n fail overloaded busy
         fail overloaded one\n fail overloaded two\n fail overloaded three\n fail overloaded four\n fail overloaded five",
    );
    assert_eq!((switches(&story), story.model_calls()), (1, 7));
    assert_eq!(
        *story.end(),
        End::ModelError { message: "busy; the fallback model mock/other failed as well: one (tried 5 times)".into() }
    );
}

#[test]
fn s3_18_a_new_turn_begins_with_the_sessions_own_model_again() {
    let story = falling_back(
        "prompt a\n fail overloaded busy\n fail overloaded busy\n text b\n stop end_turn
         prompt c\n fail overloaded busy\n fail overloaded busy\n text d\n stop end_turn",
    );
    assert_snapshot!(story.steps(), @r"
    call model
    call model
    switch to mock/other (Overloaded)
    call model
    finish Done, checks first
    switch to mock/scripted (Back)
    call model
    call model
    switch to mock/other (Overloaded)
    call model
    finish Done, checks first
    ");
}

#[test]
fn s3_18_a_fallback_that_stays_speaks_until_the_model_is_named_anew() {
    let script = "prompt a\n fail overloaded busy\n fail overloaded busy\n text b\n stop end_turn\n prompt c";
    let story = Story::new(with_fallback(FallbackBack::Never)).tell(script);
    assert_eq!((switches(&story), story.state.speaking_model()), (1, OTHER));
    let story = story.tell("text d\n stop end_turn\n model mock/scripted\n prompt e");
    assert_eq!(story.state.speaking_model(), "mock/scripted");
}

#[test]
fn s3_18_a_crash_keeps_the_model_that_speaks() {
    let story = falling_back("prompt go\n fail overloaded busy\n fail overloaded busy\n crash");
    assert_eq!((switches(&story), story.state.speaking_model()), (1, OTHER));
}

const FOUR_RESULTS: &str = "
    prompt look around
    use c1 read\n use c2 read\n stop tool_use\n big c1 400\n big c2 255
    use c3 read\n use c4 read\n stop tool_use\n big c3 300\n big c4 500
";

#[test]
fn a_prompt_too_long_leaves_out_the_oldest_results_until_half_their_bytes_are_gone() {
    let story = tell(FOUR_RESULTS).tell("fail too_long it does not fit");
    assert_eq!(story.count(|step| *step == Step::Snip { calls: vec!["c1".into(), "c3".into()] }), 1);
    let story = story.tell("text So far so good.\n stop end_turn");
    let told = story.transcript().replace(&"x".repeat(500), "[500 bytes]").replace(&"x".repeat(255), "[255 bytes]");
    assert_snapshot!(told, @r"
    user: look around
    model: [c1 read]
    model: [c2 read]
    user: [c1] [This result of 400 bytes was left out, for the conversation did not fit the model's window. Call the tool again for what is still needed, and ask for less at once.]
    user: [c2] [255 bytes]
    model: [c3 read]
    model: [c4 read]
    user: [c3] [This result of 300 bytes was left out, for the conversation did not fit the model's window. Call the tool again for what is still needed, and ask for less at once.]
    user: [c4] [500 bytes]
    model: So far so good.
    ");
    assert_eq!(*story.end(), End::Done);
    assert!(story.state.view().has_attempted_reactive_compact);
}

#[test]
fn a_prompt_too_long_a_second_time_ends_the_turn() {
    let story = tell(FOUR_RESULTS).tell("fail too_long it does not fit\n fail too_long it still does not fit");
    assert_eq!(*story.end(), End::ModelError { message: "it still does not fit".into() });
    let story = tell(FOUR_RESULTS)
        .tell("fail too_long one\n use c5 read\n stop tool_use\n big c5 900\n fail too_long it is full again");
    assert_eq!(*story.end(), End::ModelError { message: "it is full again".into() });
}

#[test]
fn a_prompt_too_long_with_nothing_to_leave_out_ends_the_turn() {
    let story = tell("prompt go\n use c1 read\n stop tool_use\n big c1 255\n fail too_long it does not fit");
    assert_eq!(*story.end(), End::ModelError { message: "it does not fit".into() });
    assert_eq!(story.count(|step| matches!(step, Step::Snip { .. })), 0);
}

#[test]
fn what_is_left_out_once_is_left_out_in_every_later_turn() {
    let story = tell(FOUR_RESULTS).tell("fail too_long no\n text Well.\n stop end_turn\n prompt and now\n crash");
    assert_eq!(story.transcript().matches("was left out").count(), 2);
    assert!(check_pairs(&story.state.transcript()).is_ok());
}

/// A reply that hit its output limit four times, under a window of 200 tokens of which 120 are taken.
fn cut_four_times(compact_at_percent: u8, window: Option<u64>) -> Story {
    let profile = Profile { compact_at_percent, keep_last: 2, ..Profile::default() };
    let mut story = Story::new(profile);
    story.window = window;
    story.tell(
        "prompt write it all\n text one\n stop max_tokens\n text two\n stop max_tokens\n text three\n stop max_tokens
         text four\n stop max_tokens",
    )
}

#[test]
fn s3_20_three_continuations_and_a_full_window_are_followed_by_one_compaction_and_three_more() {
    let more = "text five\n stop max_tokens\n text six\n stop max_tokens\n text seven\n stop max_tokens";
    let story = cut_four_times(60, Some(200)).tell("summary 6 they wrote").tell(more);
    assert_eq!(*story.end(), End::OutputLimit { continuations: 3 });
    assert_snapshot!(story.steps(), @r"
    call model
    call model
    call model
    call model
    compact
    call model
    call model
    call model
    finish OutputLimit { continuations: 3 }
    ");
}

#[test]
fn s3_20_a_compaction_that_fails_ends_the_turn() {
    let story = cut_four_times(60, Some(200)).tell("no-summary the line is down");
    assert_eq!(*story.end(), End::OutputLimit { continuations: 3 });
}

#[test]
fn s3_20_a_window_that_has_room_or_is_not_known_is_no_reason_to_compact() {
    for story in [cut_four_times(61, Some(200)), cut_four_times(1, None)] {
        assert_eq!(*story.end(), End::OutputLimit { continuations: 3 });
        assert_eq!(story.count(|step| *step == Step::Compact), 0);
    }
}

#[test]
fn a_compaction_that_may_do_better_is_made_again_and_one_that_may_not_ends() {
    let story = tell("prompt a\n text b\n stop end_turn\n note it rains\n compact\n no-summary-yet overloaded busy");
    assert_eq!(story.state.compaction_errors, 1);
    assert!(story.state.compacting.is_some(), "it is under way again");
    let story = story.tell("summary 2 they talked");
    assert!(story.state.is_idle() && story.state.summary.is_some());
    assert_eq!(story.state.compaction_errors, 0);
    let story = tell("prompt a\n text b\n stop end_turn\n note it rains\n compact\n no-summary-yet auth wrong key");
    assert!(story.state.is_idle() && story.state.summary.is_none());
}

#[test]
fn a_compaction_is_not_made_again_for_ever() {
    let failures = "\n no-summary-yet transient down".repeat(5);
    let story = tell(&format!("prompt a\n text b\n stop end_turn\n note it rains\n compact{failures}"));
    assert!(story.state.is_idle() && story.state.summary.is_none());
}
