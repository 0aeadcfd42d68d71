//! What model calls cost: `windlass cost`, and caps that stop a turn until somebody says yes.

mod common;
use common::*;
use serde_json::{Value, json};

/// Dollars per million tokens.
const PRICES: &str = "model = \"anthropic/priced\"\n[retry]\nbase_ms = 1\n\
                      [prices.\"anthropic/priced\"]\ninput = 3.0\noutput = 15.0\ncache_read = 0.3\ncache_write = 3.75\n";

/// One call refused and made again, one cut and made again.
const STORMY: &str = r#"
[[step]]
times = 1
status = 429
[[step]]
usage = { input = 1000, cache_write = 2000, output = 100 }
blocks = [{ tool = "ls", input = { path = "." } }]
[[step]]
times = 1
usage = { input = 500, cache_read = 2000, output = 999 }
text_bytes = 800
cut = { in_block = 0, after_chars = 400 }
[[step]]
usage = { input = 600, cache_read = 2000, cache_write = 500, output = 200, reasoning = 120 }
blocks = [{ text = "All done." }]
"#;

/// 1,000 tokens in for $3 a million and 1,000 out for $15 a million: $0.003 + $0.015 = $0.018.
const DEAR: &str = r#"
[[step]]
usage = { input = 1000, output = 1000 }
blocks = [{ tool = "ls", input = { path = "." } }]
[[step]]
usage = { input = 100, output = 10 }
blocks = [{ text = "All done." }]
"#;

fn stage(script: &str) -> Stage {
    let stage = Stage::new(script);
    stage.configure(PRICES);
    stage
}

fn json_of(told: &Told) -> Value {
    serde_json::from_str(&told.out).unwrap_or_else(|error| panic!("{error}: {}", told.out))
}

#[test]
fn the_ledger_equals_the_arithmetic() {
    let stage = stage(STORMY);
    let told = stage.run(&["-p", "go", "--output-format", "json"]).code(0);
    // 12,000 + 3,600 + 7,275 millionths, as below.
    let object = json_of(&told);
    assert_eq!((&object["cost_usd"], &object["estimated"]), (&json!(0.022875), &json!(true)));

    let lines = json_of(&stage.run(&["cost", "--json"]).code(0));
    let short = |line: &Value| {
        let usage = &line["usage"];
        let tokens = ["input", "cache_read", "cache_write", "output", "reasoning"];
        let tokens = tokens.map(|class| usage[class].as_u64().unwrap_or(0));
        (
            line["attempt"].as_u64(),
            line["outcome"].clone(),
            tokens,
            line["cost_micro_usd"].as_u64(),
            line["estimated"].clone(),
        )
    };
    let lines: Vec<_> = lines.as_array().expect("an array").iter().map(short).collect();
    let expected = [
        // Status 429: nothing was taken.
        (Some(1), json!("failed"), [0, 0, 0, 0, 0], None, json!(false)),
        // 1,000 × 3 + 2,000 × 3.75 + 100 × 15 = 3,000 + 7,500 + 1,500.
        (Some(2), json!("answered"), [1000, 0, 2000, 100, 0], Some(12_000), json!(false)),
        // Cut after 400 bytes, so 100 tokens out: 500 × 3 + 2,000 × 0.3 + 100 × 15 = 1,500 + 600 + 1,500.
        (Some(1), json!("failed"), [500, 2000, 0, 100, 0], Some(3_600), json!(true)),
        // 600 × 3 + 2,000 × 0.3 + 500 × 3.75 + 200 × 15 = 1,800 + 600 + 1,875 + 3,000; reasoning is part of the 200.
        (Some(2), json!("answered"), [600, 2000, 500, 200, 120], Some(7_275), json!(false)),
    ];
    assert_eq!(lines, expected);

    let told = stage.run(&["cost", &stage.newest()]).code(0);
    let told = told.out_has("  $0.012  ").out_has(" ~$0.0036 ").out_has(" $0.007275 ");
    told.out_has("\n4 calls ").out_has("total $0.022875, $0.0036 of it estimated\n");
}

#[test]
fn costs_are_added_up_by_model_and_day() {
    let stage = stage(STORMY);
    stage.run(&["-p", "go"]).code(0).err_has("~$0.0229");
    stage.run(&["-p", "once more", "--model", "anthropic/gratis"]).code(0).err_has("cost unknown");

    let sums = json_of(&stage.run(&["cost", "--by", "model", "--json"]).code(0));
    let gratis = &sums[0];
    assert_eq!((&gratis["key"], &gratis["cost_micro_usd"]), (&json!("anthropic/gratis"), &json!(0)));
    // Of its four attempts the refused one took nothing.
    assert_eq!((&gratis["calls"], &gratis["unpriced_calls"]), (&json!(4), &json!(3)));
    assert_eq!((&sums[1]["key"], &sums[1]["cost_micro_usd"]), (&json!("anthropic/priced"), &json!(22_875)));
    assert_eq!((&sums[1]["estimated_calls"], &sums[1]["estimated_micro_usd"]), (&json!(1), &json!(3_600)));

    let told = stage.run(&["cost", "--by", "agent"]).code(0);
    let told = told.out_has("total $0.022875, $0.0036 of it estimated, plus 3 calls of unknown price\n");
    // 3,600 of 22,875 is 15.7 per cent, told as 16.
    told.out_has("16 %");
    let newest = stage.run(&["cost"]).code(0).out_has("~?").out_has("total $0.00, plus 3 calls of unknown price");
    assert!(!newest.out.contains("priced  "), "{}", newest.out);
    stage.run(&["cost", "--by", "day", "--since", "2026-01-01"]).code(0).out_has("day (UTC)").out_has("$0.022875");
    stage.run(&["cost", "--by", "day", "--since", "9000-01-01"]).code(0).out_has("no model was called in that time");
    stage.run(&["cost", "--by", "day", "--since", "soon"]).code(2).err_has("--since soon: ").err_has("2026-11-21");
    stage.run(&["cost", "--since", "2026-01-01"]).code(2).err_has("--by");
}

#[test]
fn a_turn_pauses_at_its_cap_and_goes_on_with_a_higher_one() {
    let stage = stage(DEAR);
    let told = stage.run(&["-p", "go", "--max-cost", "0.01"]).code(6);
    let id = stage.newest();
    let why = format!(
        "windlass: paused: the session has cost $0.018 (cap $0.01); windlass -r {id} -p --max-cost 0.036 goes on\n"
    );
    told.err_has(&why);
    stage.run(&["-r", &id, "-p", "--max-cost", "0.01"]).code(6).err_has(&why);
    let told = stage.run(&["-r", &id, "-p", "and hurry", "--output-format", "json"]).code(6).err_has(&why);
    let end = json!({"type": "paused", "scope": "session", "cap": {"micro_usd": 10_000},
                     "spent": {"micro_usd": 18_000, "tokens": 2000}});
    assert_eq!(json_of(&told)["end"], end);
    assert_eq!(stage.server.requests().len(), 1, "a paused turn asks no model");
    let told = stage.run(&["-r", &id, "-p", "--max-cost", "0.036"]).code(0);
    assert_eq!(told.out, "All done.\n");
    assert!(stage.asked()[1].contains("and hurry"));
}

#[test]
fn a_cap_in_tokens_pauses_too() {
    let stage = stage(DEAR);
    let told = stage.run(&["-p", "go", "--config", "caps.session_tokens=2000"]).code(6);
    told.err_has("has taken 2000 tokens (cap 2000)").err_has("--config caps.session_tokens=4000 goes on");
    let told = stage.run(&["-c", "-p", "--config", "caps.session_tokens=4000"]).code(0);
    assert_eq!(told.out, "All done.\n");
}

#[test]
fn the_chat_asks_for_more() {
    let capped = ["--max-cost", "0.01"];
    let stage = stage(DEAR);
    let told = stage.type_in(&capped, "go\nperhaps\ny\nexit\n").code(0);
    let told = told.out_has("  paused: the session has cost $0.018 (cap $0.01)\n  raise the cap to $0.036? [y/N] ");
    told.out_has("`perhaps` is no answer").out_has("All done.");
}

#[test]
fn a_no_in_the_chat_ends_the_turn() {
    let stage = stage(DEAR);
    stage.type_in(&["--max-cost", "0.01"], "go\n\n/history\nexit\n").code(0).out_has("interrupted").out_has("> go");
    assert_eq!(stage.server.requests().len(), 1);
    stage.run(&["-c", "-p"]).code(2).err_has("nothing is under way");
}

#[test]
fn a_chat_that_is_left_at_a_cap_can_be_taken_up_there() {
    let stage = stage(DEAR);
    stage.type_in(&["--max-cost", "0.01"], "go\n").code(6).out_has("paused: ").out_has("--max-cost 0.036 goes on");
    stage.type_in(&["-c"], "exit\n").code(0).out_has("raise the cap to $0.036?");
    stage.type_in(&["-c"], "yes\nexit\n").code(0).out_has("raise the cap to $0.036?").out_has("All done.");
}

#[test]
fn there_must_be_a_session_to_tell_of() {
    let stage = stage(DEAR);
    stage.run(&["cost"]).code(2).err_has("no session here yet (").err_has("windlass cost --by day");
    stage.run(&["cost", "0193"]).code(2).err_has("there is no session `0193`");
    stage.run(&["cost", "--by", "model"]).code(0).out_has("no model was called in that time");
}

#[test]
fn the_command_that_goes_on_works_as_typed() {
    let stage = Stage::new(DEAR);
    let url = stage.server.base_url();
    let price = "prices.\"anthropic/it's dear\".input=3";
    let price_out = "prices.\"anthropic/it's dear\".output=15";
    let flags = ["--model", "anthropic/it's dear", "--base-url", &url, "--config", price, "--config", price_out];
    let bare = |arguments: &[&str]| {
        let mut command = stage.bare(arguments);
        command.env("ANTHROPIC_API_KEY", "test-key-123");
        command
    };
    let first = bare(&[&["-p", "go", "--max-cost", "0.01"], &flags[..]].concat()).output().expect("the binary runs");
    let first = told(first).code(6);
    let line = first.err.lines().find_map(|line| line.split_once("; windlass ")).expect("a way on is said").1;
    let typed = line.strip_suffix(" goes on").expect("the line ends with it");
    // A shell of its own, with nothing of the first run's but the key.
    let mut shell = std::process::Command::new("sh");
    let command = bare(&[]);
    shell.arg("-c").arg(format!("exec \"$0\" {typed}")).arg(env!("CARGO_BIN_EXE_windlass"));
    shell.env_clear().envs(command.get_envs().filter_map(|(name, value)| value.map(|value| (name, value))));
    let second = shell.current_dir(stage.work()).stdin(std::process::Stdio::null()).output().expect("a shell runs");
    assert_eq!(told(second).code(0).out, "All done.\n", "{typed}");
}

#[test]
fn a_state_says_that_it_waits_at_a_cap() {
    let stage = stage(DEAR);
    stage.run(&["-p", "go", "--max-cost", "0.01"]).code(6);
    let id = stage.newest();
    let told = stage.run(&["state", &id]).code(0).out_has("model                           anthropic/priced\n");
    let told = told.out_has("caps                            session $0.01\n");
    told.out_has("paused                          the session has cost $0.018 (cap $0.01)\n");
    let state = json_of(&stage.run(&["state", &id, "--json"]).code(0));
    assert_eq!(state["paused"]["scope"], "session");
    assert_eq!(state["caps"], json!({"session": {"micro_usd": 10_000}}));
    stage.run(&["state", &id, "--at", "2"]).code(0).out_has("paused                          none\n");
}
