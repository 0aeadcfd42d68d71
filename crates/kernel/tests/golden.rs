//! Logs that are kept for ever: what an earlier build has written, every later one reads, folds to the same, and would
//! write again byte for byte. A log is never written anew; a new kind of event gets a new log:
//! `WINDLASS_NEW_LOGS=1 cargo test -p windlass-kernel --test golden` writes those that are not there yet.

mod story;

use insta::assert_snapshot;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use story::{Story, spent, tell, tell_as};
use windlass_kernel::*;

fn logs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/logs")
}

/// The log called `name`; `story` is what it was made from.
fn log(name: &str, story: impl FnOnce() -> Story) -> Vec<Record> {
    let path = logs().join(name);
    if !path.exists() && std::env::var_os("WINDLASS_NEW_LOGS").is_some() {
        let lines: Vec<_> = story().log.iter().map(|record| serde_json::to_string(record).unwrap() + "\n").collect();
        std::fs::write(&path, lines.concat()).unwrap();
    }
    read(&path)
}

fn read(path: &Path) -> Vec<Record> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let record =
        |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{}: {error}\n{line}", path.display()));
    text.lines().map(record).collect()
}

/// What a log amounts to, in a few lines.
fn summary(records: &[Record]) -> String {
    let state = State::fold(records);
    let Totals { user_turns, model_calls, tool_rounds, tool_runs, usage, .. } = state.totals;
    let open = match &state.turn {
        None => "idle".to_owned(),
        Some(turn) => format!("turn of {} open", turn.opened_by),
    };
    let end = state.last_end.as_ref().map_or("none".to_owned(), |end| format!("{end:?}"));
    let last = state.transcript().last().map_or(String::new(), |message| {
        let text = message.content.iter().map(|block| match block {
            ContentBlock::ToolResult(result) => format!("[{}] {}", result.tool_use_id, text_of(&result.content)),
            block => text_of(std::slice::from_ref(block)),
        });
        text.collect::<Vec<_>>().join(" | ")
    });
    format!(
        "{} records, {} messages, boundary {}, {} pending\n{user_turns} prompts, {model_calls} model calls, {tool_rounds} \
         tool rounds, {tool_runs} tool runs, {} tokens\n{open}; last end {end}; next {:?}\n{last}",
        state.head,
        state.messages.len(),
        state.boundary,
        state.pending.len(),
        usage.context(),
        state.next_step(),
    )
}

#[test]
fn every_log_is_read_folds_at_every_place_and_is_written_again_byte_for_byte() {
    let paths: Vec<_> = std::fs::read_dir(logs()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(paths.len() >= 7, "the logs are there: {paths:?}");
    for path in paths.iter().filter(|path| path.extension().is_some_and(|ending| ending == "jsonl")) {
        let text = std::fs::read_to_string(path).unwrap();
        let mut state = State::default();
        for (line, record) in text.lines().zip(read(path)) {
            assert_eq!(serde_json::to_string(&record).unwrap(), line, "{}", path.display());
            assert_eq!(record.seq, state.head.next(), "{}", path.display());
            state.apply(&record);
            state.check().unwrap_or_else(|broken| panic!("{} at {}: {broken}", path.display(), record.seq));
        }
    }
}

#[test]
fn every_kind_of_event_and_step_stands_in_a_log() {
    let mut events = BTreeSet::new();
    let mut steps = BTreeSet::new();
    for entry in std::fs::read_dir(logs()).unwrap() {
        for record in read(&entry.unwrap().path()) {
            let event = serde_json::to_value(&record.event).unwrap();
            events.insert(event["type"].as_str().unwrap().to_owned());
            steps.extend(event["step"]["type"].as_str().map(str::to_owned));
        }
    }
    let list = |kinds: BTreeSet<String>| kinds.into_iter().collect::<Vec<_>>().join(" ");
    assert_snapshot!(list(events), @"answered asked began block_finished cache_broke cleared compacted compaction_asked compaction_failed configured deadline_passed hook_ran interrupted judged model_called model_cancelled model_failed model_finished noted opened prompted reopened spending_seen stop_blocked tool_finished tool_started tools_changed turn_finished");
    assert_snapshot!(list(steps), @"call_model cancel close compact finish judge pause run_tool snip switch_model");
}

#[test]
fn the_first_voyage() {
    let records = log("v1-first-voyage.jsonl", || {
        let mut story =
            tell("prompt set the port to 9090\n thinking where is it\n text I look.\n use c1 read\n stop tool_use");
        let file = |before: &str, after: &str| FileSeen {
            path: "/work/config.toml".into(),
            before: Some(before.repeat(64)),
            after: Some(after.repeat(64)),
        };
        let work = |story: &Story| *story.state.in_flight().first().unwrap();
        story.report(Event::ToolStarted(Box::new(ToolStarted {
            work: work(&story),
            call: "c1".into(),
            plan: story.state.call(&"c1".into()).unwrap().plan.clone().unwrap(),
            idempotency_key: "key".into(),
            process: Some(Process { pid: 4711, started: 99 }),
        })));
        let finished = |work, call: &str, text: &str, files| {
            let Event::ToolFinished(done) = story::tool_finished(work, call.into(), Outcome::Ok, text, false) else {
                unreachable!()
            };
            let value = Some(serde_json::json!({ "lines": 1 }));
            let output = Some(BlobRef { hash: "e".repeat(64), bytes: 4_000 });
            Event::ToolFinished(Box::new(ToolFinished { value, output, files, ..*done }))
        };
        let read = finished(work(&story), "c1", "port = 8080", vec![file("a", "a")]);
        story.report(read);
        story = story.tell("use c2 edit\n stop tool_use");
        let edited = finished(work(&story), "c2", "+1 -1", vec![file("a", "b")]);
        story.report(edited);
        story.tell("text The port is 9090 now.\n stop end_turn")
    });
    assert_snapshot!(summary(&records), @r"
    29 records, 6 messages, boundary 0, 0 pending
    1 prompts, 3 model calls, 2 tool rounds, 2 tool runs, 360 tokens
    idle; last end Done; next None
    The port is 9090 now.
    ");
}

#[test]
fn a_crash() {
    let records = log("v1-crash.jsonl", || {
        tell(
            "prompt a\n use c1 read\n use c2 agent\n stop tool_use\n ok c1 x\n crash\n ok c2 y\n use c3 edit\n use c4 read
             stop tool_use\n crash",
        )
    });
    assert_snapshot!(summary(&records), @r"
    35 records, 3 messages, boundary 0, 0 pending
    1 prompts, 2 model calls, 1 tool rounds, 5 tool runs, 240 tokens
    turn of 2 open; last end none; next None
    [c3] Outcome unknown: the process died while this call ran. It may have had its effect, in whole or in part. Look at what is there before trying again. | [c4] (no result yet)
    ");
}

#[test]
fn a_stream_that_was_cut() {
    let records = log("v1-cut.jsonl", || {
        tell(
            "prompt a\n heard I beg\n fail overloaded busy\n text First\n use c1 read\n use c2 edit\n heard and th
             fail transient the line is down\n ok c1 x\n text Again.\n stop end_turn",
        )
    });
    assert_snapshot!(summary(&records), @r"
    27 records, 4 messages, boundary 0, 0 pending
    1 prompts, 1 model calls, 1 tool rounds, 1 tool runs, 120 tokens
    idle; last end Done; next None
    Again.
    ");
}

#[test]
fn a_sibling_that_failed() {
    let records = log("v1-sibling-abort.jsonl", || {
        tell_as(
            "s2-query",
            "prompt a\n use c1 bash\n use c2 bash\n use c3 danger\n stop tool_use\n abort c1 exit 1\n stopped c2
             text One failed.\n stop end_turn",
        )
    });
    assert_snapshot!(summary(&records), @r"
    29 records, 4 messages, boundary 0, 0 pending
    1 prompts, 2 model calls, 1 tool rounds, 2 tool runs, 240 tokens
    idle; last end Done; next None
    One failed.
    ");
}

#[test]
fn an_interrupt() {
    let records = log("v1-interrupt.jsonl", || {
        tell(
            "prompt a\n text Once\n wake news\n interrupt\n heard upon a\n silenced\n prompt b\n use c1 edit\n stop tool_use
             prompt no, c\n interrupt\n stopped c1\n text Very well.\n stop end_turn",
        )
    });
    assert_snapshot!(summary(&records), @r"
    33 records, 8 messages, boundary 0, 0 pending
    3 prompts, 2 model calls, 1 tool rounds, 1 tool runs, 240 tokens
    idle; last end Done; next None
    Very well.
    ");
}

#[test]
fn questions_and_answers() {
    let records = log("v1-asked.jsonl", || {
        let mut story = tell(
            "prompt a\n use c1 danger\n use c2 danger\n use c3 ask_user\n use c4 forbidden\n use c5 nothing\n stop tool_use
             deny c2 not now\n answer c3 the blue one",
        );
        let input = serde_json::json!({ "path": "elsewhere" });
        let plan = CallPlan { paths: vec!["elsewhere".into()], tags: vec!["exec".into()], ..CallPlan::default() };
        let changed = Some(Changed { input, plan });
        let (scope, rule) = (Scope::Session, Some("danger(**)".into()));
        let answer = Answered { changed, scope, rule, ..story.answer(&"c1".into(), Decision::Allow) };
        story.wish(Command::Answer(Box::new(answer)));
        story.tell("ok c1 done\n text Done.\n stop end_turn")
    });
    assert_snapshot!(summary(&records), @r"
    35 records, 4 messages, boundary 0, 0 pending
    1 prompts, 2 model calls, 1 tool rounds, 1 tool runs, 240 tokens
    idle; last end Done; next None
    Done.
    ");
    assert_eq!(State::fold(&records).grants, ["danger(**)"]);
}

#[test]
fn a_long_session() {
    let records = log("v1-long.jsonl", || {
        let mut story = Story::new(Profile { keep_last: 2, ..Profile::default() }).checked();
        story = story.tell(
            "prompt a\n text b\n stop max_tokens\n text c\n stop end_turn\n object run the tests\n text they pass
             stop end_turn\n note it rains\n compact\n no-summary the line is down\n compact\n summary 2 they talked
             prompt d\n text e\n deadline\n silenced",
        );
        let (model, mode) = (Some("mock/other".into()), Some(PermissionMode::Plan));
        let change = Configured { model, mode, ..Configured::default() };
        story.wish(Command::Configure(Box::new(change)));
        story.wish(Command::ChangeTools { change: ToolsChange::Disabled, tools: vec!["bash".into()] });
        story = story.tell("clear\n prompt f");
        let (work, error) = (story.speaking(), "the key is not valid".into());
        let error = ModelFailure { kind: FailureKind::Auth, message: error, status: Some(401), retry_after_ms: None };
        story.report(Event::ModelFailed { work, error, spent: spent() });
        story.tell("")
    });
    assert_snapshot!(summary(&records), @r#"
    45 records, 10 messages, boundary 9, 0 pending
    3 prompts, 3 model calls, 0 tool rounds, 0 tool runs, 600 tokens
    idle; last end ModelError { message: "the key is not valid" }; next None
    f
    "#);
}

#[test]
fn watched_by_hooks_and_a_reviewing_model() {
    let records = log("v1-watched.jsonl", || {
        let story = Story::new(Profile::default());
        story.tell("prompt a\n use c1 watched\n stop tool_use\n ok c1 x\n text Well.\n stop end_turn")
    });
    let state = State::fold(&records);
    let told = serde_json::to_string(&state.messages[2]).unwrap();
    assert!(told.contains("mind the gap"), "{told}");
    assert_eq!(state.totals.usage.input, 3 * spent().usage.input, "the review is paid for, too");
    assert_snapshot!(summary(&records), @r"
    19 records, 4 messages, boundary 0, 0 pending
    1 prompts, 2 model calls, 1 tool rounds, 1 tool runs, 360 tokens
    idle; last end Done; next None
    Well.
    ");
}

#[test]
fn bad_weather() {
    let records = log("v1-weather.jsonl", || {
        let fallback = Some(Fallback { model: "mock/other".into(), back: FallbackBack::NextTurn });
        let mut story = Story::new(Profile { fallback, compact_at_percent: 50, keep_last: 1, ..Profile::default() });
        story.window = Some(20_000);
        story = story.tell(
            "usage 100 0 9900\n prompt a\n fail stalled silence\n thinking hm\n use c1 read\n stop tool_use\n big c1 300
             wait 2000 busy\n fail overloaded busy\n fail too_long it does not fit\n text Well.\n stop end_turn
             prompt b\n text one\n stop max_tokens\n section role c\n text two\n stop max_tokens
             usage 9000 1000 0\n text three\n stop max_tokens\n text four\n stop max_tokens\n summary 5 they talked",
        );
        let (work, index, partial) = (story.speaking(), 0, false);
        let by = || "mock/scripted".to_owned();
        let signature = Some(Box::new(Signature { by: by(), text: "seal".into() }));
        let (name, input) = ("read".into(), serde_json::json!({}));
        let sealed = ContentBlock::RedactedThinking { data: "sealed".into(), by: Some(by()) };
        story.report(Event::BlockFinished { work, index, block: sealed, partial });
        let call = ContentBlock::ToolUse(ToolUse { id: "c2".into(), name, input, signature });
        story.report(Event::BlockFinished { work, index: 1, block: call, partial });
        let spent = Spent { estimated: true, ..spent() };
        story.report(Event::ModelFinished { work, stop: StopReason::ToolUse, raw_stop: None, spent });
        story.tell("ok c2 x\n text Done.\n stop end_turn\n tools d\n section memory e\n prompt c")
    });
    assert_snapshot!(summary(&records), @r"
    76 records, 17 messages, boundary 5, 0 pending
    3 prompts, 8 model calls, 2 tool rounds, 2 tool runs, 70380 tokens
    turn of 73 open; last end Done; next None
    c
    ");
}

#[test]
fn caps_and_a_wanted_answer() {
    let records = log("v1-caps.jsonl", || {
        let session = Cap { tokens: Some(200), micro_usd: Some(5_000) };
        let caps = Caps { session, ..Caps::default() };
        let story = Story::new(Profile { caps, ..Profile::default() }).checked().tell(
            "want a list\n use c1 read\n stop tool_use\n ok c1 x\n text hm\n stop end_turn\n repair it is no list
             prompt be quick\n crash\n cap session 4000\n text hm\n stop end_turn\n unfit it is still no list
             cap day 1000\n elsewhere day 900\n prompt b\n use c2 read\n stop tool_use\n ok c2 y",
        );
        story.tell("interrupt\n cap tree 700\n elsewhere tree 700\n elsewhere day 0\n prompt c")
    });
    assert_snapshot!(summary(&records), @r"
    48 records, 10 messages, boundary 0, 1 pending
    4 prompts, 4 model calls, 2 tool rounds, 2 tool runs, 480 tokens
    turn of 47 open; last end Interrupted; next None
    [c2] y
    ");
}
