//! A component that takes too much is stopped and says why; each call begins afresh; nothing is compiled twice.

mod common;
use common::*;
use serde_json::json;
use std::fs;
use std::time::Duration;
use windlass_kernel::{ContentBlock, Outcome, text_of};
use windlass_tools::Tool;
use windlass_wasm::Host;

#[tokio::test]
async fn what_is_printed_is_the_answer_and_json_is_a_value_too() {
    let stage = Stage::new();
    let tool = stage.tool("");
    let said = stage.call(&tool, json!({"do": "say", "on": "a word"})).await;
    assert_eq!((said.outcome, said.output.blocks), (Outcome::Ok, vec![ContentBlock::text("a word\n")]));
    assert_eq!(said.output.value, None);
    let value = stage.call(&tool, json!({"do": "json"})).await.output.value;
    assert_eq!(value, Some(json!({"answer": 42})));
    assert_eq!(stage.attempt("", "fly", "").await, "error: probe: fly is unknown");
}

#[tokio::test]
async fn s3_34_every_call_has_a_store_of_its_own() {
    let stage = Stage::new();
    let tool = stage.tool("");
    for _ in 0..3 {
        let said = stage.call(&tool, json!({"do": "count"})).await;
        assert_eq!(text_of(&said.output.blocks), "1\n");
    }
}

#[tokio::test]
async fn s3_34_a_component_that_spins_runs_out_of_fuel() {
    let stage = Stage::new();
    let said = stage.attempt("[limits]\nfuel = 1_000_000", "spin", "").await;
    insta::assert_snapshot!(said, @"error: probe: it used up its 1000000 units of fuel (fuel in its manifest) and was stopped; give it less to do");
    assert!(stage.attempt("[limits]\nfuel = 1_000_000", "work", "").await.contains("units of fuel"));
    let product: Result<u64, _> = stage.attempt("", "work", "").await.parse();
    assert!(product.is_ok(), "with more of it the same work is done");
}

#[tokio::test]
async fn s3_34_a_component_that_takes_too_long_is_stopped() {
    let stage = Stage::new();
    let limits = "[limits]\ntime_ms = 200\nfuel = 9_000_000_000_000";
    for (what, on) in [("spin", ""), ("sleep", "3600000")] {
        let said = stage.attempt(limits, what, on).await;
        let told = "error: timed out after 200 ms; do less in one call, or have the limit raised (tools.probe.timeout_ms)\
                    \nprobe: it was stopped; what it did before is not known";
        assert_eq!(said, told);
    }
}

/// On one thread, too, a call that is dropped comes to an end: else this test would never do so.
#[tokio::test]
async fn s3_34_a_call_that_nobody_waits_for_is_stopped() {
    let stage = Stage::new();
    let tool = stage.tool("[limits]\nfuel = 9_000_000_000_000");
    stage.call(&tool, json!({"do": "count"})).await;
    let run = stage.run();
    let call = tool.call(json!({"do": "spin"}), &run);
    assert!(tokio::time::timeout(Duration::from_millis(100), call).await.is_err());
}

#[tokio::test]
async fn s3_34_memory_is_limited() {
    let stage = Stage::new();
    let said = stage.attempt("[limits]\nmemory_mb = 32", "take", "64").await;
    let told = "error: probe: it needs more than the 32 MB of memory it is granted (memory_mb in its manifest); give it \
                less to do\nmemory allocation of 1048576 bytes failed";
    assert!(said.starts_with(told), "{said}");
    assert_eq!(stage.attempt("[limits]\nmemory_mb = 128", "take", "64").await, "64 MB");
    let said = stage.attempt("", "take", "4096").await;
    assert!(said.contains("more than the 64 MB"), "{said}");
    let said = stage.attempt("[limits]\nmemory_mb = 1", "say", "hello").await;
    assert!(said.contains("more than the 1 MB"), "{said}");
}

#[tokio::test]
async fn s3_34_output_is_limited() {
    let stage = Stage::new();
    let said = stage.attempt("", "print", "9000").await;
    insta::assert_snapshot!(said, @"error: probe: it printed more than 8388608 bytes and was stopped; ask for less at a time");
    let long = stage.attempt("", "print", "100").await;
    assert!(long.len() < 40_000 && long.contains("bytes left out; the whole is in TMP/scratch/call.txt"), "{long}");
    assert_eq!(stage.attempt("", "complain", "1000").await, "went well all the same");
}

#[tokio::test]
async fn s3_34_open_files_are_limited() {
    let stage = Stage::new();
    stage.write("work/a.txt", "x");
    let said = stage.attempt(&dirs(&[". read"]), "open", "a.txt").await;
    assert!(said.starts_with("error: probe: "), "{said}");
}

#[tokio::test]
async fn s0_24_a_component_that_breaks_is_data() {
    let stage = Stage::new();
    let said = stage.attempt("", "panic", "").await;
    assert!(
        said.starts_with("error: probe: it broke off (a panic, as a rule); this is a fault of the tool\n"),
        "{said}"
    );
    assert!(said.contains("the wheels came off"), "{said}");
    let said = stage.attempt("", "recurse", "").await;
    assert!(said.starts_with("error: probe: it broke off ("), "{said}");
}

#[tokio::test]
async fn what_is_no_component_is_told_by_its_file() {
    let stage = Stage::new();
    let tool = stage.tool("");
    let file = stage.path("tools/probe/probe.wasm");
    for bytes in [&b"no wasm at all"[..], b"\0asm\x01\0\0\0", b""] {
        fs::write(&file, bytes).unwrap();
        let said = text_of(&stage.call(&tool, json!({"do": "count"})).await.output.blocks);
        assert!(said.starts_with(&format!("probe: {}: it can't be compiled (", file.display())), "{said}");
        assert!(said.ends_with("build it for wasm32-wasip2"), "{said}");
    }
    fs::copy(probe(), &file).unwrap();
    let said = text_of(&stage.call(&tool, json!({"do": "count"})).await.output.blocks);
    assert_eq!(said, "1\n", "once it is mended it runs");
}

#[tokio::test]
async fn s3_34_nothing_is_compiled_twice() {
    let kept = tempfile::tempdir().unwrap();
    let count = async |host: Host| {
        let stage = Stage::with(host);
        let tool = stage.tool("");
        for _ in 0..2 {
            stage.call(&tool, json!({"do": "count"})).await;
        }
        stage.host.compiled()
    };
    let host = || Host::new(Some(kept.path().join("compiled")));
    assert_eq!(count(host()).await, 1, "the first time");
    assert_eq!(count(host()).await, 0, "in the next process");
    let file = fs::read_dir(kept.path().join("compiled")).unwrap().next().unwrap().unwrap().path();
    fs::write(&file, "spoilt").unwrap();
    assert_eq!(count(host()).await, 1, "what was spoilt is made anew");
    assert_eq!(count(host()).await, 0);
    assert_eq!(count(Host::new(None)).await, 1, "without a folder each process compiles");
}

#[tokio::test]
async fn calls_run_side_by_side() {
    let stage = Stage::new();
    let tool = stage.tool("");
    let calls = (0..8).map(|number: u32| {
        let (tool, run) = (tool.clone(), stage.run());
        tokio::spawn(async move { tool.call(json!({"do": "say", "on": number.to_string()}), &run).await })
    });
    let calls: Vec<_> = calls.collect();
    for (number, call) in calls.into_iter().enumerate() {
        assert_eq!(text_of(&call.await.unwrap().blocks), format!("{number}\n"));
    }
    assert!(stage.host.compiled() <= 1, "they wait for one compilation");
}
