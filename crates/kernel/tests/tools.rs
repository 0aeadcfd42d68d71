//! Which call may start when, and what comes of it.

mod story;

use insta::assert_snapshot;
use story::{Story, tell, tell_as};
use windlass_kernel::*;

#[test]
fn s2_07_results_stand_in_call_order_whatever_the_finish_order() {
    let story = tell(
        "prompt a\n use c1 read\n use c2 read\n use c3 read\n stop tool_use\n ok c3 three\n ok c1 one\n ok c2 two",
    );
    assert_snapshot!(story.transcript(), @r"
    user: a
    model: [c1 read]
    model: [c2 read]
    model: [c3 read]
    user: [c1] one
    user: [c2] two
    user: [c3] three
    ");
}

#[test]
fn s2_06_at_most_five_run_at_once() {
    let calls: String = (1..=8).map(|n| format!("use c{n} read\n")).collect();
    let story = tell(&format!("prompt a\n{calls}stop tool_use"));
    assert_eq!(story.running(), ["c1", "c2", "c3", "c4", "c5"]);
    let story = story.tell("ok c4 x\n ok c2 x");
    assert_eq!(story.running(), ["c1", "c3", "c5", "c6", "c7"]);
}

#[test]
fn s0_23_readers_run_together_and_writers_one_after_another() {
    let story = tell_as(
        "s0-general",
        "prompt a\n use r1 read\n use r2 read\n use w1 edit\n use w2 edit\n use r3 read\n use r4 read\n stop tool_use",
    );
    assert_eq!(story.running(), ["r1", "r2"]);
    let story = story.tell("ok r2 x");
    assert_eq!(story.running(), ["r1"], "a writer waits for all that was called before it");
    let story = story.tell("ok r1 x");
    assert_eq!(story.running(), ["w1"]);
    let story = story.tell("ok w1 x");
    assert_eq!(story.running(), ["w2"]);
    let story = story.tell("ok w2 x");
    assert_eq!(story.running(), ["r3", "r4"]);
}

#[test]
fn a_writer_does_not_pass_a_reader_that_waits_for_a_person() {
    let story = tell("prompt a\n use c1 peek\n use c2 edit\n use c3 read\n stop tool_use");
    assert!(story.running().is_empty());
    let story = story.tell("allow c1");
    assert_eq!(story.running(), ["c1"]);
}

#[test]
fn s1_16_calls_run_one_after_another_where_the_profile_says_so() {
    let story = tell_as("s1-spec08", "prompt a\n use c1 read\n use c2 read\n stop tool_use");
    assert_eq!(story.running(), ["c1"]);
    assert_eq!(story.tell("ok c1 x").running(), ["c2"]);
}

#[test]
fn s2_21_a_tool_starts_when_its_block_ends_and_the_text_streams_on() {
    let story = tell_as("s2-query", "prompt a\n use c1 edit\n text meanwhile");
    assert_eq!(story.running(), ["c1"]);
    let by_default = tell("prompt a\n use c1 read\n use c2 edit\n text meanwhile");
    assert_eq!(by_default.running(), ["c1"], "writers wait for the whole message");
}

#[test]
fn s2_22_a_whole_message_gets_all_its_results_as_one_user_message() {
    let story =
        tell_as("s2-query", "prompt a\n use c1 read\n ok c1 one\n text and\n use c2 read\n stop tool_use\n ok c2 two");
    let last = story.state.messages.last().unwrap();
    assert_eq!((last.role, last.content.len()), (Role::User, 2));
}

#[test]
fn s2_20_text_and_calls_may_be_mixed_in_one_message() {
    let story = tell("prompt a\n text one\n use c1 read\n text two\n use c2 read\n stop tool_use\n ok c1 x\n ok c2 y");
    assert_snapshot!(story.transcript(), @r"
    user: a
    model: one
    model: [c1 read]
    model: two
    model: [c2 read]
    user: [c1] x
    user: [c2] y
    ");
}

#[test]
fn s2_08_one_failure_cancels_its_siblings_and_each_still_has_a_result() {
    let story = tell_as(
        "s2-query",
        "prompt a\n use c1 bash\n use c2 bash\n use c3 danger\n stop tool_use\n abort c1 exit 1\n stopped c2",
    );
    assert_snapshot!(story.steps(), @r"
    call model
    judge c1
    run c1
    judge c2
    run c2
    judge c3
    close c3 (SiblingFailed)
    cancel 13
    call model
    ");
    assert_snapshot!(story.transcript(), @r"
    user: a
    model: [c1 bash]
    model: [c2 bash]
    model: [c3 danger]
    user: [c1!] exit 1
    user: [c2!] Cancelled.
    user: [c3!] Not run: another call of the same message failed.
    ");
}

#[test]
fn s0_24_a_failure_is_a_result_and_the_loop_goes_on() {
    let story = tell(
        "prompt a\n use c1 read\n use c2 nothing\n stop tool_use\n error c1 no such file\n text Pity.\n stop end_turn",
    );
    assert_eq!(*story.end(), End::Done);
    assert_snapshot!(story.transcript(), @r"
    user: a
    model: [c1 read]
    model: [c2 nothing]
    user: [c1!] no such file
    user: [c2!] Unknown tool: nothing
    model: Pity.
    ");
}

#[test]
fn s0_25_a_denied_call_is_an_error_with_the_reason_and_the_loop_goes_on() {
    let story =
        tell("prompt a\n use c1 forbidden\n use c2 read\n stop tool_use\n ok c2 x\n text Well.\n stop end_turn");
    assert_eq!((story.tool_runs(), story.end()), (1, &End::Done));
    assert_snapshot!(story.transcript(), @r"
    user: a
    model: [c1 forbidden]
    model: [c2 read]
    user: [c1!] forbidden by rule
    user: [c2] x
    model: Well.
    ");
}

#[test]
fn s0_26_denials_are_recorded() {
    let story = tell("prompt a\n use c1 danger\n stop tool_use\n deny c1 not on a Friday");
    let denial = &story.state.denials[0];
    assert_eq!((denial.call.0.as_str(), denial.tool.as_str()), ("c1", "danger"));
    assert_eq!(denial.reason, "The user does not allow this call, and says: not on a Friday");
}

#[test]
fn s0_37_a_question_to_the_user_is_answered_in_words_and_never_runs() {
    let story = tell("prompt a\n use c1 ask_user\n stop tool_use\n answer c1 the blue one");
    assert_eq!(story.tool_runs(), 0);
    assert!(story.transcript().ends_with("user: [c1] the blue one"));
}

#[test]
fn a_person_may_change_the_arguments_before_allowing_them() {
    let mut story = tell("prompt a\n use c1 danger\n stop tool_use");
    let input = serde_json::json!({ "path": "elsewhere" });
    let plan = CallPlan { paths: vec!["elsewhere".into()], ..CallPlan::default() };
    let changed = Some(Changed { input: input.clone(), plan });
    let answer = Answered { changed, ..story.answer(&"c1".into(), Decision::Allow) };
    story.wish(Command::Answer(Box::new(answer)));
    let call = story.state.call(&"c1".into()).unwrap();
    assert!(matches!(call.phase, Phase::Running { .. }));
    assert_eq!((&call.input, call.plan.as_ref().unwrap().paths.len()), (&input, 1));
}

#[test]
fn a_message_cut_after_a_call_stands_and_its_writers_do_not_run() {
    let story = tell(
        "prompt a\n text First\n use c1 read\n use c2 edit\n heard and th\n fail transient the line is down\n ok c1 x
         text Again.\n stop end_turn",
    );
    assert_eq!((story.tool_runs(), story.end()), (1, &End::Done));
    assert_snapshot!(story.transcript(), @r"
    user: a
    model: First
    model: [c1 read]
    model: [c2 edit]
    user: [c1] x
    user: [c2!] Not run: the message that made this call broke off before its end. Make the call again if it is still wanted.
    model: Again.
    ");
}

#[test]
fn a_call_under_an_id_that_was_used_before_is_dropped() {
    let story =
        tell("prompt a\n use c1 read\n use c1 read\n stop tool_use\n ok c1 x\n text b\n use c1 read\n stop tool_use");
    assert_eq!((story.tool_runs(), story.end()), (1, &End::Done));
}

#[test]
fn a_late_report_of_a_room_gone_by_changes_nothing() {
    let mut story = tell("prompt a\n use c1 edit\n stop tool_use");
    let work = *story.state.in_flight().first().unwrap();
    story = story.tell("interrupt");
    story.report(story::tool_finished(work, "c1".into(), Outcome::Unknown, "nobody answers", false));
    assert_eq!(*story.end(), End::Interrupted);
    let before = story.transcript();
    story.report(story::tool_finished(work, "c1".into(), Outcome::Ok, "too late", false));
    assert_eq!(story.transcript(), before);
    story = story.tell("prompt b\n text c");
    let stale = Event::BlockFinished { work: Seq(3), index: 0, block: ContentBlock::text("late"), partial: false };
    story.report(stale);
    assert!(!story.transcript().contains("late"));
}

#[test]
fn a_parallel_limit_of_nothing_still_lets_one_run() {
    let tools = ToolProfile { max_parallel: 0, ..ToolProfile::default() };
    let story = Story::new(Profile { tools, ..Profile::default() })
        .tell("prompt a\n use c1 read\n use c2 read\n stop tool_use");
    assert_eq!(story.running(), ["c1"]);
}

fn to_plan_mode() -> Command {
    Command::Configure(Box::new(Configured { mode: Some(PermissionMode::Plan), ..Configured::default() }))
}

#[test]
fn what_has_not_begun_is_judged_anew_under_another_mode() {
    let mut story = tell("prompt a\n use c1 peek\n use c2 edit\n stop tool_use");
    story.wish(to_plan_mode());
    assert_eq!(story.steps().matches("judge c2").count(), 2, "{}", story.steps());
    assert_eq!(story.steps().matches("judge c1").count(), 1, "a question stays open");
    assert_eq!(story.tell("allow c1\n ok c1 x").running(), ["c2"]);
}

#[test]
fn what_a_hook_made_of_a_call_is_made_of_it_once() {
    let mut story = tell("prompt a\n use c1 peek\n use c2 edit a.txt\n stop tool_use");
    let asked = story.state.call(&"c2".into()).unwrap().input.clone();
    let work = story.happen(None, Event::Began { step: Step::Judge { call: "c2".into() } });
    let rewritten = serde_json::json!({"path": "b.txt"});
    let judged = Judged {
        work,
        call: "c2".into(),
        verdict: Verdict::Allow,
        stage: "hook".into(),
        rule: None,
        reason: String::new(),
        input: Some(rewritten.clone()),
        context: None,
        review: None,
        plan: CallPlan::default(),
    };
    story.happen(Some(work), Event::Judged(Box::new(judged)));
    assert_eq!(story.state.call(&"c2".into()).unwrap().input, rewritten);
    story.happen(None, Event::Reopened { worker: "another".into() });
    let call = story.state.call(&"c2".into()).unwrap();
    assert_eq!((&call.input, &call.phase), (&asked, &Phase::New));
}
