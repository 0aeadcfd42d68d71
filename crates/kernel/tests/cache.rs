//! When somebody is told that the provider has to read a request's beginning again, and when not.

mod story;

use insta::assert_snapshot;
use story::{Story, tell};
use windlass_kernel::*;

/// A turn whose beginning the provider has cached: 10,000 tokens.
const CACHED: &str = "usage 100 0 9900\n prompt a\n text b\n stop end_turn\n";

/// The same, and an answer that took everything from the cache.
fn warm(script: &str) -> Story {
    tell(CACHED).tell("usage 200 10000 100\n prompt c\n text d\n stop end_turn").tell(script)
}

/// What was told, a line each.
fn broken(story: &Story) -> String {
    let told = story.told();
    told.lines().filter(|line| line.contains("cache broke")).collect::<Vec<_>>().join("\n")
}

const COLD: &str = "usage 10000 0 0\n";

#[test]
fn turns_tools_and_retries_that_begin_alike_are_passed_over_in_silence() {
    let story = warm(
        "prompt e\n use c1 read\n stop tool_use\n ok c1 x\n fail transient reset\n fail stalled silence\n text f
         stop end_turn\n crash\n prompt g\n text h\n stop end_turn",
    );
    assert_eq!(broken(&story), "");
}

#[test]
fn a_section_that_changes_is_named() {
    assert_snapshot!(broken(&warm("section role c\n prompt e\n text f\n stop end_turn")), @r#"cache broke: Section { name: "role" }, 10300 tokens"#);
}

#[test]
fn sections_that_come_or_change_places_and_tools_that_change_are_named() {
    let story = warm("section memory m\n prompt e\n text f\n stop end_turn\n section role a\n prompt g");
    assert_snapshot!(broken(&story), @r#"
    cache broke: Order { name: "memory" }, 10300 tokens
    cache broke: Order { name: "memory" }, 10300 tokens
    "#);
    assert_snapshot!(broken(&warm("tools t\n prompt e\n text f\n stop end_turn")), @"cache broke: Tools, 10300 tokens");
}

#[test]
fn a_provider_that_reads_little_of_what_it_should_have_kept_is_named() {
    let story = warm("usage 6000 4300 0\n prompt e\n text f\n stop end_turn");
    assert_snapshot!(broken(&story), @"cache broke: Miss { read: 4300, idle_ms: 7000 }, 10300 tokens");
    assert_eq!(broken(&warm("usage 5000 5200 0\n prompt e\n text f\n stop end_turn")), "");
}

#[test]
fn a_change_is_told_once_however_often_the_call_is_tried_and_is_no_miss_on_top() {
    let story = warm(COLD)
        .tell("section role c\n prompt e\n fail transient reset\n fail overloaded busy\n text f\n stop end_turn");
    assert_eq!(broken(&story).lines().count(), 1, "{}", broken(&story));
}

#[test]
fn a_change_is_forgotten_once_it_was_answered() {
    let story = warm("section role c\n usage 200 0 10000\n prompt e\n text f\n stop end_turn");
    assert_eq!(broken(&story).lines().count(), 1);
    let story = story.tell("usage 10000 0 200\n prompt g\n text h\n stop end_turn");
    assert!(broken(&story).ends_with("10200 tokens") && broken(&story).contains("Miss"), "{}", broken(&story));
}

#[test]
fn short_prompts_and_providers_that_never_cached_are_passed_over_in_silence() {
    let story = tell("usage 100 0 1900\n prompt a\n text b\n stop end_turn").tell(COLD);
    assert_eq!(broken(&story.tell("prompt c\n text d\n stop end_turn")), "");
    let story = tell(COLD).tell("prompt a\n text b\n stop end_turn\n prompt c\n text d\n stop end_turn");
    assert_eq!(broken(&story), "");
}

#[test]
fn another_model_has_nothing_in_its_cache_and_no_word_is_lost_on_it() {
    let next = "prompt e\n text f\n stop end_turn\n";
    assert_eq!(broken(&warm(COLD).tell("model mock/other").tell(next)), "");
    let fallback = Some(Fallback { model: "mock/other".into(), back: FallbackBack::NextTurn });
    let story = Story::new(Profile { fallback, ..Profile::default() }).tell(CACHED).tell(COLD);
    let story =
        story.tell("prompt c\n fail overloaded busy\n fail overloaded busy\n text d\n stop end_turn").tell(next);
    assert_eq!((broken(&story).as_str(), story.count(|step| matches!(step, Step::SwitchModel { .. }))), ("", 2));
}

#[test]
fn messages_that_were_left_out_on_purpose_are_no_miss() {
    let next = "prompt e\n text f\n stop end_turn\n";
    assert_eq!(broken(&warm(COLD).tell("clear").tell(next)), "");
    let keep_last = Profile { keep_last: 1, ..Profile::default() };
    let story = Story::new(keep_last).tell(CACHED).tell(COLD).tell("compact\n summary 1 they talked").tell(next);
    assert_eq!((broken(&story).as_str(), story.state.boundary), ("", 1));
    let story =
        tell(CACHED).tell("usage 200 10000 100\n prompt c\n use c1 read\n stop tool_use\n big c1 300").tell(COLD);
    let story = story.tell("fail too_long it does not fit\n text d\n stop end_turn");
    assert_eq!((broken(&story).as_str(), story.count(|step| matches!(step, Step::Snip { .. }))), ("", 1));
}
