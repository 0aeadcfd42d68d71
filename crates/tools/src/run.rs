//! One call run to its end: within its time, called back if need be, and with every way it can end turned into data.

use crate::output::{bound, clean};
use crate::{Entry, ToolOutput, ToolRun};
use serde_json::Value;
use std::any::Any;
use std::time::Duration;
use tokio::task::JoinError;
use tokio_util::task::AbortOnDropHandle;
use windlass_kernel::{ContentBlock, Outcome};

/// How long a tool that was called back may take to stop what it started; then it is dropped.
const GRACE: Duration = Duration::from_secs(2);

/// How a call ended, and what it gave.
#[derive(Debug, PartialEq)]
pub struct Finished {
    pub outcome: Outcome,
    pub output: ToolOutput,
}

enum Ended {
    Itself(Result<ToolOutput, JoinError>),
    Late,
    Cancelled,
}

/// Runs one call: `input` as [`Entry::check`] gave it. Dropping the future drops the call.
pub async fn run(entry: &Entry, input: Value, run: ToolRun) -> Finished {
    let cancel = run.cancel.clone();
    if cancel.is_cancelled() {
        return cancelled(ToolOutput::error("cancelled before it began; nothing was done"));
    }
    let limit_ms = entry.tool.limit_ms(&input, entry.settings.timeout_ms);
    let mut task = start(entry, input, run);
    let ended = tokio::select! {
        biased;
        joined = &mut task => Ended::Itself(joined),
        () = cancel.cancelled() => Ended::Cancelled,
        () = tokio::time::sleep(Duration::from_millis(limit_ms)) => Ended::Late,
    };
    match ended {
        // It may have heard of the cancelling before this did.
        Ended::Itself(joined) if cancel.is_cancelled() => cancelled(headed("cancelled while it ran", settled(joined))),
        Ended::Itself(joined) => told(settled(joined)),
        Ended::Cancelled => cancelled(interrupted(task, "cancelled while it ran").await),
        Ended::Late => {
            cancel.cancel();
            let why = format!(
                "timed out after {limit_ms} ms; do less in one call, or have the limit raised (tools.{}.timeout_ms)",
                entry.name()
            );
            told(interrupted(task, &why).await)
        }
    }
}

/// The call on a task of its own: a panic ends there, and a tool that blocks does not hold up the clock.
fn start(entry: &Entry, input: Value, run: ToolRun) -> AbortOnDropHandle<ToolOutput> {
    let tool = entry.tool.clone();
    AbortOnDropHandle::new(tokio::spawn(async move {
        let mut output = tool.call(input, &run).await;
        // Before it is cut: half a secret is not found.
        clean(&mut output, &run.workspace.secrets);
        bound(&mut output, tool.output_limit_bytes(), &run.workspace, &run.call);
        output
    }))
}

fn settled(joined: Result<ToolOutput, JoinError>) -> ToolOutput {
    match joined {
        Ok(output) => output,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => ToolOutput::error(format!(
                "the tool panicked: {}; what it did before is not known. This is a fault of the tool: \
                 look what changed, then try other arguments or another tool",
                panic_words(&*panic)
            )),
            Err(_) => ToolOutput::error("the tool was dropped because the program is shutting down"),
        },
    }
}

fn panic_words(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message")
}

/// What a call gave that was called back: `why` first, then what the tool itself says, if it stops in time.
async fn interrupted(mut task: AbortOnDropHandle<ToolOutput>, why: &str) -> ToolOutput {
    let Ok(joined) = tokio::time::timeout(GRACE, &mut task).await else {
        return ToolOutput::error(format!(
            "{why}\nit did not stop when told to and was dropped; what it did is not known"
        ));
    };
    headed(why, settled(joined))
}

fn headed(why: &str, output: ToolOutput) -> ToolOutput {
    let mut blocks = vec![ContentBlock::text(format!("{why}\n"))];
    blocks.extend(output.blocks);
    ToolOutput { is_error: true, blocks, ..output }
}

fn told(output: ToolOutput) -> Finished {
    let outcome = if output.is_error { Outcome::Error } else { Outcome::Ok };
    Finished { outcome, output }
}

fn cancelled(output: ToolOutput) -> Finished {
    Finished { outcome: Outcome::Cancelled, output }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stage::{Act, Scripted, Stage};
    use crate::{ToolSettings, builtin};
    use serde_json::json;
    use std::sync::Arc;
    use windlass_kernel::text_of;

    fn entry(act: Act, timeout_ms: Option<u64>) -> Entry {
        Entry::new(Arc::new(Scripted::acting(act)), ToolSettings { timeout_ms, ..ToolSettings::default() })
    }

    async fn finish(act: Act, timeout_ms: Option<u64>) -> (Outcome, String) {
        let finished = run(&entry(act, timeout_ms), json!({}), Stage::new().next_run()).await;
        (finished.outcome, text_of(&finished.output.blocks))
    }

    #[tokio::test]
    async fn s0_24_a_panic_is_a_result() {
        let (outcome, text) = finish(Act::Panic, None).await;
        assert_eq!(outcome, Outcome::Error);
        assert!(text.starts_with("the tool panicked: the wheels came off; "), "{text}");
    }

    #[tokio::test]
    async fn s4_10_a_call_that_takes_too_long_is_called_back_and_what_it_had_is_kept() {
        let (outcome, text) = finish(Act::Listen, Some(20)).await;
        assert_eq!(outcome, Outcome::Error);
        insta::assert_snapshot!(text, @r"
        timed out after 20 ms; do less in one call, or have the limit raised (tools.scripted.timeout_ms)
        half the work
        ");
    }

    #[tokio::test]
    async fn s4_10_a_tool_that_does_not_listen_is_dropped() {
        let (outcome, text) = finish(Act::Hang, Some(20)).await;
        assert_eq!(outcome, Outcome::Error);
        assert!(text.starts_with("timed out after 20 ms; "), "{text}");
        assert!(text.contains("did not stop when told to"), "{text}");
    }

    #[tokio::test]
    async fn a_cancelled_call_says_what_it_had_done() {
        let mut stage = Stage::new();
        let cancel = stage.cancel.clone();
        let entry = entry(Act::Listen, None);
        let (finished, ()) = tokio::join!(run(&entry, json!({}), stage.next_run()), async { cancel.cancel() });
        assert_eq!(finished.outcome, Outcome::Cancelled);
        assert_eq!(text_of(&finished.output.blocks), "cancelled while it ran\nhalf the work");

        let finished = run(&entry, json!({}), stage.next_run()).await;
        assert_eq!(finished.outcome, Outcome::Cancelled);
        assert_eq!(text_of(&finished.output.blocks), "cancelled before it began; nothing was done");
    }

    #[tokio::test]
    async fn s1_21_every_tool_is_held_to_its_budget() {
        let mut stage = Stage::new();
        let output = stage.call(Scripted::acting(Act::Say("x".repeat(100_000))), json!({})).await;
        let text = text_of(&output.blocks);
        assert!(text.len() < crate::OUTPUT_LIMIT_BYTES + 500, "{}", text.len());
        assert!(text.contains("bytes left out; the whole is in "));
        assert_eq!(std::fs::metadata(stage.workspace.scratch.join("call_1.txt")).unwrap().len(), 100_000);
    }

    #[tokio::test]
    async fn s4_12_no_builtin_panics_at_arguments_of_the_wrong_kind() {
        for tool in builtin() {
            for input in [json!({}), json!("text"), json!({"path": 7, "command": [], "pattern": {}, "question": 1})] {
                let mut stage = Stage::new();
                tool.plan(&input, &stage.workspace);
                tool.confirmation(&input, &stage.workspace);
                let entry = Entry::new(tool.clone(), ToolSettings::default());
                let finished = run(&entry, input.clone(), stage.next_run()).await;
                let text = text_of(&finished.output.blocks);
                assert!(!text.contains("panicked"), "{} {input}: {text}", tool.name());
                if tool.name() != "ls" || input.is_string() || input["path"] == 7 {
                    assert_eq!(finished.outcome, Outcome::Error, "{} {input}: {text}", tool.name());
                }
            }
        }
    }
}
