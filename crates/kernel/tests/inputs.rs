//! What comes from outside: prompts, notes, wishes; what is turned down, and with which words.

mod story;

use insta::assert_snapshot;
use story::{Story, prompt, tell};
use uuid::Uuid;
use windlass_kernel::*;

fn refused(story: &Story, command: Command) -> String {
    story.state.accept(&command).expect_err("is turned down").to_string()
}

fn input(n: u64) -> InputId {
    InputId(Uuid::from_u64_pair(3, n))
}

#[test]
fn s3_15_what_is_said_while_tools_run_is_shown_at_the_next_round() {
    let story = tell("prompt a\n use c1 read\n stop tool_use\n prompt use the other file\n note it rains\n ok c1 x");
    assert_snapshot!(story.transcript(), @r"
    user: a
    model: [c1 read]
    user: [c1] x
    user: use the other file
    user: it rains
    ");
}

#[test]
fn a_prompt_while_the_model_speaks_its_last_word_makes_it_speak_again() {
    let story = tell("prompt a\n text Done.\n prompt and b?\n stop end_turn");
    assert_eq!((story.model_calls(), story.state.last_end.as_ref()), (2, None));
}

#[test]
fn a_prompt_while_the_turn_finishes_opens_the_next() {
    let story = Story::new(Profile::default()).checked().tell("prompt a\n text b\n stop end_turn\n prompt c\n agree");
    assert_eq!((story.model_calls(), story.end()), (2, &End::Done));
    assert!(story.state.turn.is_some() && story.state.pending.is_empty());
}

#[test]
fn a_queued_prompt_is_worth_a_turn_after_an_interrupt_and_a_note_is_not() {
    let noted = tell("prompt a\n text b\n wake news\n interrupt\n silenced");
    assert!(noted.state.is_idle());
    assert_eq!(noted.state.pending.len(), 1);
    let prompted = noted.tell("prompt c");
    assert!(prompted.transcript().ends_with("user: news\nuser: c"));
    let queued = tell("prompt a\n text b\n interrupt\n prompt no, do c\n silenced");
    assert_eq!((queued.model_calls(), queued.end()), (2, &End::Interrupted));
}

#[test]
fn a_note_does_not_undo_an_interrupt_that_came_too_late_to_matter() {
    let mut story = Story::new(Profile::default()).checked().tell("prompt a\n text b\n stop end_turn\n wake news");
    let work = story.state.turn.as_ref().unwrap().finishing.as_ref().unwrap().work;
    story = story.tell("interrupt");
    story.report(Event::TurnFinished { work, end: End::Done });
    assert!(story.state.is_idle());
}

#[test]
fn s1_26_news_opens_a_turn_only_if_it_is_meant_to() {
    assert_eq!(tell("note it rains").model_calls(), 0);
    assert_eq!(tell("note it rains\n wake the build is done").model_calls(), 1);
}

#[test]
fn what_cannot_be_accepted_is_turned_down_in_words() {
    let idle = tell("prompt a\n text b\n stop end_turn");
    let busy = tell("prompt a\n text b");
    let halted = tell("prompt a\n text b\n interrupt");
    let asking = tell("prompt a\n use c1 danger\n use c2 ask_user\n stop tool_use");
    let answer = |id: &str, hash: &str, decision: Decision| {
        let (call, hash, scope, by) = (id.into(), hash.into(), Scope::Once, "terminal".into());
        Command::Answer(Box::new(Answered {
            call,
            hash,
            decision,
            scope,
            rule: None,
            more_rules: vec![],
            changed: None,
            by,
        }))
    };
    let words = || Decision::Words { text: "yes".into() };
    let clear = || Command::Clear { input: input(9) };
    let compact = || Command::Compact { instructions: None };
    let interrupt = || Command::Interrupt { by: "terminal".into() };
    let tools = |change| Command::ChangeTools { change, tools: vec!["read".into()] };
    let refusals = [
        refused(&idle, prompt(input(9), "  ")),
        refused(&idle, prompt(input(1), "a")),
        refused(&idle, Command::Note { input: input(1), text: "a".into(), wakes: false }),
        refused(&idle, Command::Note { input: input(9), text: " ".into(), wakes: false }),
        refused(&idle, interrupt()),
        refused(&halted, interrupt()),
        refused(&busy, clear()),
        refused(&tell(""), compact()),
        refused(&tell("prompt a\n text b\n stop end_turn\n compact"), compact()),
        refused(&tell("prompt a\n text b\n stop end_turn\n compact"), clear()),
        refused(&idle, answer("c1", "hash-c1", Decision::Allow)),
        refused(&asking, answer("c1", "hash-c0", Decision::Allow)),
        refused(&asking, answer("c1", "hash-c1", words())),
        refused(&asking, answer("c2", "hash-c2", Decision::Allow)),
        refused(&idle, Command::Configure(Box::default())),
        refused(&idle, tools(ToolsChange::Enabled)),
    ];
    assert_snapshot!(refusals.join("\n"), @r"
    the input is empty: say what is to be done
    input 00000000-0000-0003-0000-000000000001 is already in the log
    input 00000000-0000-0003-0000-000000000001 is already in the log
    the input is empty: say what is to be done
    nothing is running that could be interrupted
    the interrupt is already under way
    a turn or a compaction is under way: wait for its end or interrupt it first
    there is nothing to compact yet
    a compaction is already under way
    a turn or a compaction is under way: wait for its end or interrupt it first
    call c1 is not waiting for an answer
    call c1 was asked something else meanwhile: answer the question with hash hash-c1
    call c1 asks for a permission: answer allow or deny
    call c2 asks for words, not for a permission: answer with text
    nothing would change
    nothing would change
    ");
}

#[test]
fn a_prompt_cannot_bring_calls_or_results_of_its_own() {
    let idle = tell("");
    let result = ToolResult { tool_use_id: "c1".into(), content: vec![], is_error: false };
    let Command::Prompt(mut prompted) = prompt(input(1), "a") else { unreachable!() };
    prompted.blocks.push(ContentBlock::ToolResult(result));
    assert_snapshot!(refused(&idle, Command::Prompt(prompted)), @"a prompt holds text, images and documents: leave out the block of type tool_result");
}

#[test]
fn s3_15_a_prompt_during_a_compaction_waits_for_it() {
    let story = tell("prompt a\n text b\n stop end_turn\n prompt c\n text d\n stop end_turn\n compact\n prompt e");
    assert_eq!(story.model_calls(), 2);
    let story = story.tell("summary 2 they talked");
    assert_eq!(story.model_calls(), 3);
    assert_snapshot!(story.transcript(), @r"
    user: they talked
    user: c
    model: d
    user: e
    ");
}

#[test]
fn s0_29_the_model_sees_the_summary_and_what_is_new_and_the_history_stays() {
    let story =
        tell("prompt a\n text b\n stop end_turn\n prompt c\n text d\n stop end_turn\n compact\n summary 2 they talked");
    assert_snapshot!(story.transcript(), @r"
    user: they talked
    user: c
    model: d
    ");
    assert_eq!(story.state.messages.len(), 4);
}

#[test]
fn a_compaction_never_parts_a_call_from_its_result() {
    let story = tell("prompt a\n use c1 read\n stop tool_use\n ok c1 x\n compact\n text b\n stop end_turn");
    let careless = story.tell("summary 2 cut between call and result");
    assert_eq!((careless.state.boundary, careless.state.summary.is_some()), (0, false));
}

#[test]
fn s0_03_clear_makes_the_model_forget_and_calls_nobody() {
    let story = tell("prompt a\n text b\n stop end_turn\n clear");
    assert_eq!((story.transcript(), story.model_calls()), (String::new(), 1));
    assert_eq!(story.state.messages.len(), 2);
}

#[test]
fn s1_33_the_books_tell_calls_rounds_and_turns_apart() {
    let story = tell(
        "prompt a\n use c1 read\n use c2 read\n stop tool_use\n ok c1 x\n ok c2 y\n text b\n stop end_turn\n prompt c\n text d\n stop end_turn",
    );
    let Totals { user_turns, model_calls, tool_rounds, tool_runs, usage, .. } = story.state.totals;
    assert_eq!((user_turns, model_calls, tool_rounds, tool_runs), (2, 3, 1, 2));
    assert_eq!(usage.context(), 360);
}
