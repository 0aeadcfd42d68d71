//! How a turn goes from a prompt to its end.

mod story;

use insta::assert_snapshot;
use story::{Story, tell, tell_as};
use windlass_kernel::*;

const WORKED_EXAMPLE: &str = "
    prompt set the port to 9090
    text I will look at the configuration.
    use c1 read
    stop tool_use
    ok c1 port = 8080
    use c2 edit
    stop tool_use
    ok c2 +1 -1
    text The port is 9090 now.
    stop end_turn
";

#[test]
fn s3_21_the_worked_example_takes_three_model_calls_and_two_tool_runs() {
    let story = tell(WORKED_EXAMPLE);
    assert_eq!((story.model_calls(), story.tool_runs()), (3, 2));
    assert_eq!(*story.end(), End::Done);
    assert_snapshot!(story.transcript(), @r"
    user: set the port to 9090
    model: I will look at the configuration.
    model: [c1 read]
    user: [c1] port = 8080
    model: [c2 edit]
    user: [c2] +1 -1
    model: The port is 9090 now.
    ");
}

#[test]
fn s2_01_a_turn_walks_from_query_to_tool_use_to_result_to_query_to_end() {
    assert_snapshot!(tell(WORKED_EXAMPLE).told(), @r"
    prompted: set the port to 9090
      call model
    block: I will look at the configuration.
    block: [c1 read]
      judge c1
    judged c1: Allow
      run c1
    model finished: ToolUse
    finished c1: Ok
      call model
    block: [c2 edit]
      judge c2
    judged c2: Allow
    model finished: ToolUse
      run c2
    finished c2: Ok
      call model
    block: The port is 9090 now.
    model finished: EndTurn
      finish Done, checks first
    turn finished: Done
    ");
}

#[test]
fn s0_10_results_follow_the_message_that_called_as_one_user_message() {
    let story = tell("prompt a\n text b\n use c1 read\n use c2 read\n stop tool_use\n ok c2 two\n ok c1 one");
    let roles: Vec<_> = story.state.messages.iter().map(|message| (message.role, message.content.len())).collect();
    assert_eq!(roles, [(Role::User, 1), (Role::Assistant, 3), (Role::User, 2)]);
}

#[test]
fn s0_11_a_message_that_calls_nothing_ends_the_turn() {
    let story = tell("prompt hello\n text Hello.\n stop end_turn");
    assert_eq!((story.model_calls(), story.end()), (1, &End::Done));
    assert!(story.state.is_idle());
}

#[test]
fn s0_12_the_limit_of_twenty_turns_ends_the_twenty_first() {
    let mut script = "prompt go on\n".to_owned();
    for n in 1..=20 {
        script += &format!("use c{n} read\n stop tool_use\n ok c{n} more\n");
    }
    let story = tell_as("s0-general", &script);
    assert_eq!(*story.end(), End::MaxTurns { turns: 20 });
    assert_eq!((story.model_calls(), story.tool_runs()), (20, 20));
}

#[test]
fn s2_12_three_failures_in_a_row_end_the_turn_with_the_first_cause() {
    let story = tell_as(
        "s2-query",
        "prompt go\n fail transient the line is down\n fail overloaded busy\n fail transient reset",
    );
    assert_eq!(*story.end(), End::ModelError { message: "the line is down (tried 3 times)".into() });
    assert_eq!(story.model_calls(), 3);
}

#[test]
fn s2_12_a_whole_message_starts_the_count_anew() {
    let story = tell_as(
        "s2-query",
        "prompt go\n fail transient one\n fail transient two\n use c1 read\n stop tool_use\n ok c1 x
         fail transient three\n fail transient four\n text Done.\n stop end_turn",
    );
    assert_eq!(*story.end(), End::Done);
}

#[test]
fn s2_12_three_rounds_of_nothing_but_failures_end_the_turn() {
    let story = tell_as(
        "s2-query",
        "prompt go
         use c1 bash\n stop tool_use\n error c1 no
         use c2 bash\n use c3 read\n stop tool_use\n abort c2 no\n stopped c3
         use c4 bash\n stop tool_use\n error c4 no",
    );
    assert_eq!(*story.end(), End::ToolErrors { rounds: 3 });
}

#[test]
fn a_failure_that_no_retry_mends_ends_the_turn_and_is_its_cause() {
    let story = tell("prompt go\n fail transient reset\n fail auth the key is not valid");
    assert_eq!(*story.end(), End::ModelError { message: "the key is not valid".into() });
    assert_eq!(story.model_calls(), 2);
}

#[test]
fn s3_20_a_reply_that_hits_its_limit_is_kept_and_continued_three_times() {
    let story = tell(
        "prompt write it all\n text part one\n stop max_tokens\n text part two\n stop max_tokens
         text part three\n stop max_tokens\n text part four\n stop max_tokens",
    );
    assert_eq!(*story.end(), End::OutputLimit { continuations: 3 });
    assert_snapshot!(story.transcript(), @r"
    user: write it all
    model: part one
    user: Output token limit hit. Resume directly — no apology, no recap of what you were doing. Pick up mid-thought if that is where the cut happened. Break remaining work into smaller pieces.
    model: part two
    user: Output token limit hit. Resume directly — no apology, no recap of what you were doing. Pick up mid-thought if that is where the cut happened. Break remaining work into smaller pieces.
    model: part three
    user: Output token limit hit. Resume directly — no apology, no recap of what you were doing. Pick up mid-thought if that is where the cut happened. Break remaining work into smaller pieces.
    model: part four
    ");
}

#[test]
fn s3_20_an_input_takes_the_place_of_the_request_to_go_on() {
    let story = tell(
        "prompt write\n text part one\n prompt never mind, stop\n stop max_tokens\n text Stopped.\n stop end_turn",
    );
    assert!(!story.transcript().contains("Output token limit hit"));
    assert_eq!(*story.end(), End::Done);
}

#[test]
fn s1_10_the_model_is_done() {
    assert_eq!(*tell("prompt a\n text b\n stop end_turn").end(), End::Done);
    assert_eq!(*tell("prompt a\n text no\n stop refusal").end(), End::Refused);
}

#[test]
fn s1_11_the_turn_limit_is_reached() {
    let profile = Profile { max_turns: 1, ..Profile::default() };
    let story = Story::new(profile).tell("prompt a\n use c1 read\n stop tool_use\n ok c1 x");
    assert_eq!(*story.end(), End::MaxTurns { turns: 1 });
}

#[test]
fn s1_12_the_user_interrupts() {
    let story = tell("prompt a\n text I beg\n interrupt\n heard to diff\n silenced");
    assert_eq!(*story.end(), End::Interrupted);
    assert_eq!(story.model_calls(), 1);
    assert_snapshot!(story.told(), @r"
    prompted: a
      call model
    block: I beg
    interrupted
      cancel 3
    heard: to diff
    model cancelled
      finish Interrupted
    turn finished: Interrupted
    ");
}

#[test]
fn s1_13_nothing_the_model_tries_is_permitted() {
    let story = tell(
        "prompt go\n use c1 forbidden\n stop tool_use\n use c2 forbidden\n stop tool_use\n use c3 forbidden\n stop tool_use",
    );
    assert_eq!(*story.end(), End::PermissionBlocked { denials: 3 });
    assert_eq!((story.model_calls(), story.tool_runs()), (3, 0));
    assert_eq!(story.state.denials.len(), 3);
}

#[test]
fn s1_13_a_call_that_runs_starts_the_count_of_denials_anew() {
    let story = tell(
        "prompt go\n use c1 forbidden\n stop tool_use\n use c2 forbidden\n stop tool_use
         use c3 read\n stop tool_use\n ok c3 x\n use c4 forbidden\n stop tool_use\n text Well.\n stop end_turn",
    );
    assert_eq!(*story.end(), End::Done);
}

#[test]
fn s1_14_an_error_that_cannot_be_mended() {
    let story = tell("prompt a\n fail invalid no such model");
    assert_eq!(*story.end(), End::ModelError { message: "no such model".into() });
}

#[test]
fn s1_15_work_handed_to_the_background_ends_the_turn_and_its_news_opens_another() {
    let story = tell(
        "prompt test it all\n use c1 agent\n stop tool_use\n ok c1 started in the background
         text I will hear of it.\n stop end_turn\n wake the background task is done\n text All is well.\n stop end_turn",
    );
    assert_eq!(story.state.totals.user_turns, 1);
    assert_eq!(story.count(|step| matches!(step, Step::Finish { end: End::Done, .. })), 2);
}

#[test]
fn s1_28_the_state_says_why_the_next_call_is_made() {
    let reason = |script: &str| tell(script).state.view().transition_reason;
    assert_eq!(reason("prompt a"), Some("input"));
    assert_eq!(reason("prompt a\n use c1 read\n stop tool_use\n ok c1 x"), Some("tool_round"));
    assert_eq!(reason("prompt a\n fail transient x"), Some("retry"));
    assert_eq!(reason("prompt a\n text x\n stop max_tokens"), Some("max_tokens"));
    let objected = Story::new(Profile::default()).checked().tell("prompt a\n text x\n stop end_turn\n object not yet");
    assert_eq!(objected.state.view().transition_reason, Some("stop_hook"));
}

#[test]
fn s1_08_the_view_has_the_eight_fields() {
    let story = tell("prompt a\n text x\n stop max_tokens\n use c1 read\n use c2 danger");
    let mut view = serde_json::to_value(story.state.view()).unwrap();
    assert_eq!(view["messages"].take().as_array().unwrap().len(), 5);
    assert_snapshot!(serde_json::to_string_pretty(&view).unwrap(), @r#"
    {
      "messages": null,
      "turn_count": 1,
      "auto_compact_tracking": {
        "boundary": 0,
        "context_tokens": 120,
        "compacting": false
      },
      "pending_tool_summary": [
        {
          "id": "c1",
          "name": "read",
          "phase": "running"
        },
        {
          "id": "c2",
          "name": "danger",
          "phase": "asking"
        }
      ],
      "stop_hook_active": false,
      "max_output_recovery_count": 1,
      "has_attempted_reactive_compact": false,
      "transition_reason": "max_tokens"
    }
    "#);
}

#[test]
fn s2_26_a_turn_is_called_back_in_the_middle_of_its_tools() {
    let story =
        tell("prompt a\n use c1 read\n use c2 edit\n use c3 edit\n stop tool_use\n ok c1 x\n interrupt\n stopped c2");
    assert_eq!(*story.end(), End::Interrupted);
    assert_snapshot!(story.transcript(), @r"
    user: a
    model: [c1 read]
    model: [c2 edit]
    model: [c3 edit]
    user: [c1] x
    user: [c2!] Cancelled.
    user: [c3!] Not run: the user interrupted the turn.
    ");
}

#[test]
fn an_interrupt_keeps_what_the_user_has_read() {
    let story =
        tell("prompt tell me\n thinking hm\n text Once upon a time.\n interrupt\n heard There was a\n silenced");
    assert_snapshot!(story.transcript(), @r"
    user: tell me
    model: (hm)
    model: Once upon a time.
    model: There was a
    ");
}

#[test]
fn text_that_broke_off_before_a_retry_is_not_told_twice() {
    let story = tell("prompt tell me\n heard Once up\n fail transient reset\n text Once upon a time.\n stop end_turn");
    assert_snapshot!(story.transcript(), @r"
    user: tell me
    model: Once upon a time.
    ");
}

#[test]
fn a_deadline_ends_the_turn_like_an_interrupt() {
    let story = tell("prompt a\n use c1 read\n stop tool_use\n deadline\n stopped c1");
    assert_eq!(*story.end(), End::Deadline);
}

#[test]
fn the_stop_checks_may_object_once_and_no_more() {
    let script = "prompt a\n text done\n stop end_turn\n object run the tests\n text they pass\n stop end_turn";
    let story = Story::new(Profile::default()).checked().tell(script);
    assert_eq!(*story.end(), End::Done);
    assert_snapshot!(story.steps(), @r"
    call model
    finish Done, checks first
    call model
    finish Done
    ");
}

#[test]
fn stop_checks_that_hang_can_be_interrupted() {
    let mut story = Story::new(Profile::default()).checked().tell("prompt a\n text done\n stop end_turn\n interrupt");
    let work = story.state.turn.as_ref().unwrap().finishing.as_ref().unwrap().work;
    assert_eq!(story.log.last().unwrap().event, Event::Began { step: Step::Cancel { work } });
    story.report(Event::TurnFinished { work, end: End::Interrupted });
    assert!(story.state.is_idle());
}

#[test]
fn the_sessions_budget_ends_the_turn_between_rounds_and_the_next_at_once() {
    let profile = Profile { max_session_tokens: Some(200), ..Profile::default() };
    let story = Story::new(profile).tell(
        "prompt a\n use c1 read\n stop tool_use\n ok c1 x\n use c2 read\n prompt and now\n stop tool_use\n ok c2 y",
    );
    assert_eq!(*story.end(), End::TokenLimit { used: 240 });
    assert!(story.state.is_idle() && story.state.pending.is_empty());
    assert!(story.transcript().ends_with("user: and now"));
    let story = story.tell("prompt hello?");
    assert_eq!(story.model_calls(), 2);
    assert!(story.transcript().ends_with("user: and now\nuser: hello?"));
}

#[test]
fn a_paused_message_is_sent_back_and_an_empty_one_is_not_kept() {
    let story = tell("prompt a\n text thinking about it\n stop pause\n text\n stop end_turn");
    assert_eq!(story.model_calls(), 2);
    assert_snapshot!(story.transcript(), @r"
    user: a
    model: thinking about it
    ");
}

#[test]
fn a_reply_that_goes_on_is_told_whole_also_when_the_next_attempt_fails() {
    let story =
        tell("prompt go\n text One, \n stop max_tokens\n heard tw\n fail transient reset\n text two.\n stop end_turn");
    let mut tally = Tally::default();
    story.log.iter().for_each(|record| tally.add(record));
    assert_eq!((tally.text.as_str(), tally.end), ("One,two.", Some(End::Done)));
}
