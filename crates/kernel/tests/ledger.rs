//! What each model call took, folded from the log.

mod story;

use insta::assert_snapshot;
use story::{Story, tell};
use windlass_kernel::*;

fn lines(story: &Story) -> String {
    let line = |line: LedgerLine| {
        let cost = line.cost_micro_usd.map_or("?".to_owned(), |cost| cost.to_string());
        let flag = if line.unpriced { " unpriced" } else { "" };
        format!(
            "{} {}/{} {} try {} {}: {} tokens, {cost}{flag}\n",
            line.work,
            line.provider,
            line.model,
            line.role.name(),
            line.attempt,
            line.outcome.name(),
            line.usage.context()
        )
    };
    ledger(&story.log, None).into_iter().map(line).collect()
}

#[test]
fn every_attempt_is_a_line() {
    let story =
        tell("prompt a\n fail overloaded busy\n use c1 read\n stop tool_use\n ok c1 x\n text Done.\n stop end_turn");
    assert_snapshot!(lines(&story), @r"
    3 mock/scripted main try 1 failed: 0 tokens, ?
    6 mock/scripted main try 2 answered: 120 tokens, 600
    15 mock/scripted main try 1 answered: 120 tokens, 600
    ");
}

#[test]
fn a_call_that_dies_with_its_process_is_lost_and_its_price_unknown() {
    let story = tell("prompt a\n crash\n text Done.\n stop end_turn");
    assert_snapshot!(lines(&story), @r"
    3 mock/scripted main try 1 lost: 0 tokens, ? unpriced
    6 mock/scripted main try 1 answered: 120 tokens, 600
    ");
}

#[test]
fn a_call_under_way_has_an_open_line() {
    assert_snapshot!(lines(&tell("prompt a")), @"3 mock/scripted main try 1 open: 0 tokens, ? unpriced");
}

/// What the lines say is what the session itself has counted.
#[test]
fn the_lines_add_up_to_the_sessions_totals() {
    let scripts = [
        "prompt a\n text b\n stop end_turn",
        "prompt a\n fail transient x\n fail stalled y\n text b\n stop end_turn\n prompt c\n text d\n interrupt\n silenced",
        "prompt a\n use c1 read\n stop tool_use\n ok c1 x\n crash\n text b\n stop end_turn\n compact\n summary 2 all of it",
        "prompt a\n use c1 read\n fail transient x\n ok c1 y\n text b\n stop end_turn\n compact\n no-summary broken",
    ];
    for script in scripts {
        let story = tell(script);
        let lines = ledger(&story.log, None);
        let mut sum = LedgerSum::default();
        lines.iter().for_each(|line| sum.add(line));
        let totals = story.state.totals;
        assert_eq!((sum.usage, sum.cost_micro_usd), (totals.usage, totals.cost_micro_usd), "{script}");
        assert!(sum.calls > 0 && sum.usage.context() > 0, "{script}");
    }
}

/// Of the hand-written log the calls are in no order that a session would make.
#[test]
fn the_lines_of_every_golden_log_add_up_to_its_totals() {
    let logs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/logs");
    let mut calls = 0;
    for entry in std::fs::read_dir(logs).unwrap() {
        let path = entry.unwrap().path();
        if path.ends_with("v1-hand-written.jsonl") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let log: Vec<Record> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let mut sum = LedgerSum::default();
        ledger(&log, None).iter().for_each(|line| sum.add(line));
        let totals = State::fold(&log).totals;
        assert_eq!((sum.usage, sum.cost_micro_usd), (totals.usage, totals.cost_micro_usd), "{}", path.display());
        calls += sum.calls;
    }
    assert!(calls > 20, "{calls}");
}

#[test]
fn a_sub_agents_lines_name_the_root_of_its_tree() {
    let story = tell("prompt a\n text b\n stop end_turn");
    let root = SessionId(uuid::Uuid::from_u128(7));
    let mut log = story.log.clone();
    if let Event::Opened { parent, .. } = &mut log[0].event {
        *parent = Some(Parent { session: root, call: "c1".into() });
    }
    assert_eq!(ledger(&log, None)[0].root, root);
    assert_eq!(ledger(&log, Some(SessionId(uuid::Uuid::from_u128(1))))[0].root, SessionId(uuid::Uuid::from_u128(1)));
    assert_eq!(ledger(&story.log, None)[0].root, story.log[0].session);
}
