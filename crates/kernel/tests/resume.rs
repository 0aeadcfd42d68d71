//! What a new process makes of the log an old one left.

mod story;

use insta::assert_snapshot;
use story::tell;
use windlass_kernel::*;

const LONG_STORY: &str = "
    prompt look around
    thinking where to begin
    text I look.
    use c1 read
    use c2 edit
    use c3 danger
    use c4 ask_user
    stop tool_use
    ok c1 x
    note by the way
    allow c3
    error c2 no
    answer c4 blue
    compact
    ok c3 done
    summary 3 they looked around
    heard Onc
    fail overloaded busy
    text Once
    prompt stop that
    interrupt
    crash
    text Very well.
    stop end_turn
    clear
    prompt again
";

#[test]
fn s1_29_the_state_is_written_and_comes_back_equal_after_every_event() {
    let story = tell(LONG_STORY);
    let mut state = State::default();
    for record in &story.log {
        state.apply(record);
        let written = serde_json::to_string(&state).unwrap();
        assert_eq!(serde_json::from_str::<State>(&written).unwrap(), state, "after {}", record.seq);
    }
}

#[test]
fn s1_30_every_prefix_of_the_log_folds_to_a_state_that_can_be_loaded() {
    let story = tell(LONG_STORY);
    for end in 0..=story.log.len() {
        let state = State::fold(&story.log[..end]);
        state.check().unwrap_or_else(|broken| panic!("after {end} records: {broken}"));
    }
}

#[test]
fn s1_29_records_are_written_and_come_back_equal() {
    for record in tell(LONG_STORY).log {
        let written = serde_json::to_string(&record).unwrap();
        assert_eq!(serde_json::from_str::<Record>(&written).unwrap(), record, "{written}");
    }
}

#[test]
fn after_a_crash_a_reader_runs_again_and_a_writer_does_not() {
    let story = tell("prompt a\n use c1 read\n use c2 read\n use c3 edit\n stop tool_use\n ok c1 x\n crash");
    assert_eq!(story.running(), ["c2"]);
    let story = story.tell("ok c2 y\n crash");
    assert_snapshot!(story.steps(), @r"
    call model
    judge c1
    run c1
    judge c2
    run c2
    judge c3
    judge c2
    judge c3
    run c2
    run c3
    close c3 (OutcomeUnknown)
    call model
    ");
    assert!(story.transcript().contains("[c3!] Outcome unknown"));
}

#[test]
fn a_call_allowed_before_a_crash_is_judged_anew_under_what_holds_now() {
    let story = tell("prompt a\n use c1 edit\n use c2 edit\n stop tool_use\n crash");
    let steps = story.steps();
    // c1 ran and nobody knows what it did; c2 waited for it, and its old verdict is worth nothing any more.
    assert_eq!(steps.matches("judge c2").count(), 2, "{steps}");
    assert_eq!(steps.matches("judge c1").count(), 1, "{steps}");
}

#[test]
fn a_call_that_lives_on_elsewhere_is_taken_up_again_even_to_be_called_back() {
    let story = tell("prompt a\n use c1 agent\n stop tool_use\n interrupt\n crash");
    assert_eq!(story.tool_runs(), 2);
    assert!(matches!(story.log.last().unwrap().event, Event::Began { step: Step::Cancel { .. } }));
    assert_eq!(*story.tell("stopped c1").end(), End::Interrupted);
}

#[test]
fn a_crash_in_the_middle_of_a_stream_drops_what_called_nothing_and_keeps_what_did() {
    let dropped = tell("prompt a\n text I was about\n crash\n text Hello.\n stop end_turn");
    assert_snapshot!(dropped.transcript(), @r"
    user: a
    model: Hello.
    ");
    let kept =
        tell("prompt a\n text I look\n use c1 read\n use c2 edit\n crash\n ok c1 x\n text Hello.\n stop end_turn");
    assert_snapshot!(kept.transcript(), @r"
    user: a
    model: I look
    model: [c1 read]
    model: [c2 edit]
    user: [c1] x
    user: [c2!] Not run: the message that made this call broke off before its end. Make the call again if it is still wanted.
    model: Hello.
    ");
}

#[test]
fn a_question_survives_the_process() {
    let story =
        tell("prompt a\n use c1 danger\n stop tool_use\n crash\n allow c1\n ok c1 x\n text Done.\n stop end_turn");
    assert_eq!((story.tool_runs(), story.end()), (1, &End::Done));
}

#[test]
fn a_question_may_stay_open_over_any_number_of_restarts() {
    let restarts = "crash\n".repeat(50);
    let story = tell(&format!("prompt a\n use c1 danger\n stop tool_use\n{restarts}allow c1"));
    assert_eq!(story.running(), ["c1"]);
}

#[test]
fn a_turn_that_kills_the_process_again_and_again_is_given_up() {
    let story = tell(&format!("prompt a\n{}", "crash\n".repeat(6)));
    assert_eq!(*story.end(), End::CrashLoop { reopened: 6 });
    assert_eq!(story.model_calls(), 6, "the first, and one after each of five crashes");
    assert_eq!(*story.tell("prompt b\n text c\n stop end_turn").end(), End::Done);
}

#[test]
fn blocks_of_messages_that_never_end_are_no_progress() {
    let story = tell(&format!("prompt a\n{}", "text I beg\n crash\n".repeat(6)));
    assert_eq!(*story.end(), End::CrashLoop { reopened: 6 });
}

#[test]
fn a_finished_tool_is_progress() {
    let crashes = "crash\n".repeat(5);
    let story =
        tell(&format!("prompt a\n use c1 read\n stop tool_use\n{crashes}ok c1 x\n{crashes}text b\n stop end_turn"));
    assert_eq!(*story.end(), End::Done);
}

#[test]
fn an_interrupt_survives_the_process() {
    let story = tell("prompt a\n use c1 edit\n stop tool_use\n interrupt\n crash");
    assert_eq!(*story.end(), End::Interrupted);
    assert!(story.transcript().contains("[c1!] Outcome unknown"));
}

#[test]
fn a_wish_to_compact_survives_one_crash_but_not_its_own_interrupt() {
    let story = tell("prompt a\n text b\n stop end_turn\n compact\n crash");
    assert!(story.state.compacting.is_some());
    let story = story.tell("interrupt\n crash");
    assert!(story.state.is_idle());
}

#[test]
fn a_compaction_that_kills_the_process_again_and_again_is_given_up() {
    let story = tell(&format!("prompt a\n text b\n stop end_turn\n compact\n{}", "crash\n".repeat(6)));
    assert!(story.state.is_idle());
}

#[test]
fn a_question_whose_words_were_lost_is_judged_anew() {
    let story = tell("prompt a\n use c1 peek\n stop tool_use");
    let torn = story.log.iter().position(|record| matches!(record.event, Event::Asked { .. })).unwrap();
    let torn = story.up_to(torn).tell("crash");
    assert_eq!(torn.state.asking().count(), 1);
}

#[test]
fn s1_23_a_session_is_resumed_from_the_boundary() {
    let story = tell("prompt a\n text b\n stop end_turn\n prompt c\n text d\n stop end_turn");
    let profile = Box::new(Profile { keep_last: 1, ..Profile::default() });
    let mut story = story;
    story.wish(Command::Configure(Box::new(Configured { profile: Some(profile), ..Configured::default() })));
    assert_eq!(story.state.split(), Some(3));
    let story = story.tell("compact\n summary 3 they talked\n crash");
    assert_snapshot!(story.transcript(), @r"
    user: they talked
    model: d
    ");
    assert_eq!(story.state.messages.len(), 4, "the whole history is still there");
}
