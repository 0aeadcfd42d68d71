//! Frames as a person reads them: a fold of the same frames everybody gets, for the chat, for headless runs and for
//! the log.

use crate::exit::explain;
use crate::lines::hook_ran;
use crate::lines::{cache_broke, snipped, switched};
use crate::terminal::{Look, Shade, harmless, one_line};
use crate::words;
use serde_json::Value;
use std::collections::HashMap;
use windlass_kernel::*;
use windlass_runtime::{DeltaFrame, DeltaKind, Frame};

/// Characters of a reason or an error in a line; a denial's names the flag that would allow it, so it is long.
const REASON_CHARS: usize = 400;
/// Characters of a line of a preview or output.
const LINE_CHARS: usize = 2_000;
/// Lines of a tool's output that `-v` shows.
const OUTPUT_LINES: usize = 40;

/// A failure of more characters is told in full once; where it comes again, it is cut to `CUT_CHARS`.
const LONG_CHARS: usize = 80;
const CUT_CHARS: usize = 40;

/// Stands behind what was said before a call broke off: the next attempt begins anew.
const BROKEN_OFF: &str = " [broken off]";

/// Something to show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Words of the model, as they come.
    Text(String),
    Thinking(String),
    /// The model's words so far end here.
    End,
    /// A whole line, or several.
    Line(String),
}

/// What is shown, and how.
#[derive(Clone, Copy, Debug, Default)]
pub struct Taste {
    pub look: Look,
    pub verbose: bool,
    pub thinking: bool,
    /// The model's words as they come, not only when a message ends.
    pub deltas: bool,
}

/// What was seen so far, as far as later frames need it.
#[derive(Debug, Default)]
pub struct View {
    taste: Taste,
    calls: HashMap<CallId, Seen>,
    /// The block that is coming in: its work, its index and the bytes shown of it.
    open: Option<(Seq, u32, usize)>,
    /// Names of what is under way, for a spinner.
    running: Vec<CallId>,
    speaking: bool,
    /// What model calls that failed in a row said, each once.
    failures: Vec<String>,
    /// The newest of them was told before.
    again: bool,
    /// Which attempt at its call the newest one is; 0: it was not seen.
    attempt: u32,
    /// The model that was asked last, as `PROVIDER/NAME`.
    model: String,
}

#[derive(Debug)]
struct Seen {
    name: String,
    input: Value,
}

impl View {
    pub fn new(taste: Taste) -> View {
        View { taste, ..View::default() }
    }

    /// A view that knows the calls of a session that is taken up.
    pub fn of(taste: Taste, state: &State) -> View {
        let mut view = View::new(taste);
        let calls = state.turn.iter().flat_map(|turn| &turn.round).flat_map(|round| &round.calls);
        for call in calls {
            view.calls.insert(call.id.clone(), Seen { name: call.name.clone(), input: call.input.clone() });
        }
        view
    }

    /// What a frame adds to what is shown.
    pub fn frame(&mut self, frame: &Frame) -> Vec<Piece> {
        match frame {
            Frame::Record(record) => self.record(record),
            Frame::Delta(delta) if self.taste.deltas => self.delta(delta),
            Frame::Delta(_) => vec![],
        }
    }

    /// What is under way: a call, or the model.
    pub fn doing(&self) -> Option<String> {
        match self.running.last() {
            Some(call) => Some(self.call(call)),
            None => self.speaking.then(|| "thinking".into()),
        }
    }

    /// The call in a line.
    pub fn call(&self, id: &CallId) -> String {
        match self.calls.get(id) {
            Some(Seen { name, input }) => words::call(name, input),
            None => one_line(&id.0, 40),
        }
    }

    /// The model that was asked last, as `PROVIDER/NAME`; empty: none was.
    pub fn model(&self) -> &str {
        &self.model
    }

    fn delta(&mut self, delta: &DeltaFrame) -> Vec<Piece> {
        let piece = match delta.delta {
            DeltaKind::Text => Piece::Text,
            DeltaKind::Thinking if self.taste.thinking => Piece::Thinking,
            DeltaKind::Thinking | DeltaKind::Input | DeltaKind::Progress => return vec![],
        };
        self.open = Some((delta.work, delta.index, delta.offset + delta.text.len()));
        vec![piece(harmless(&delta.text).into_owned())]
    }

    fn record(&mut self, record: &Record) -> Vec<Piece> {
        self.note(&record.event);
        let line = match &record.event {
            Event::BlockFinished { work, index, block, partial } => return self.block(*work, *index, block, *partial),
            Event::Prompted(prompted) if prompted.origin == Origin::Inbox => {
                Some(self.dim(&format!("> {}", one_line(&text_of(&prompted.blocks), REASON_CHARS))))
            }
            Event::Noted { text, .. } => Some(self.dim(&format!("  note: {}", one_line(text, REASON_CHARS)))),
            Event::Cleared { .. } => Some(self.dim("  forgotten: the conversation begins anew")),
            Event::Compacted { .. } => Some(self.dim("  what was said so far is summed up")),
            Event::CompactionFailed { message, .. } => {
                Some(self.bad(&format!("  summing up failed: {}", one_line(message, REASON_CHARS))))
            }
            Event::ModelFailed { error, .. } => Some(self.bad(&self.failed(error))),
            Event::HookRan(ran) if ran.outcome == HookOutcome::Failed => {
                Some(self.bad(&format!("  hook {}", hook_ran(ran))))
            }
            Event::HookRan(ran) if !ran.message.is_empty() => Some(self.dim(&format!("  hook {}", hook_ran(ran)))),
            Event::Judged(judged) => self.judged(judged),
            Event::ToolFinished(finished) => Some(self.finished(finished)),
            Event::Began { step: Step::Close { calls, why } } => Some(self.closed(calls, *why)),
            Event::Began { step: Step::SwitchModel { model, why } } => {
                Some(self.dim(&format!("  {}", switched(&self.model, model, *why))))
            }
            Event::Began { step: Step::Snip { calls } } => Some(self.dim(&format!("  {}", snipped(calls.len())))),
            Event::CacheBroke(broke) if broke.tokens > 0 => Some(self.dim(&format!("  {}", cache_broke(broke)))),
            Event::StopBlocked { text, repair: true, .. } => Some(self.dim(&format!(
                "  the answer does not fit the wanted schema, and the model is told: {}",
                one_line(text, REASON_CHARS)
            ))),
            Event::StopBlocked { text, .. } => {
                Some(self.dim(&format!("  a check sent the model back to work: {}", one_line(text, REASON_CHARS))))
            }
            Event::TurnFinished { end: End::ModelError { message }, .. } => self.gave_up(message),
            Event::TurnFinished { end, .. } => explain(end).map(|why| self.bad(&harmless(&why))),
            _ => None,
        };
        line.filter(|line| !line.is_empty()).map(Piece::Line).into_iter().collect()
    }

    /// Remembers what later frames refer to.
    pub fn note(&mut self, event: &Event) {
        match event {
            Event::BlockFinished { block: ContentBlock::ToolUse(call), .. } => {
                self.calls.insert(call.id.clone(), Seen { name: call.name.clone(), input: call.input.clone() });
            }
            Event::Judged(judged) => {
                if let (Some(seen), Some(input)) = (self.calls.get_mut(&judged.call), &judged.input) {
                    seen.input.clone_from(input);
                }
            }
            Event::Prompted(_) => self.failures.clear(),
            Event::Began { step: Step::CallModel | Step::Compact } => self.speaking = true,
            Event::ModelFailed { error, .. } => {
                self.again = self.failures.contains(&error.message);
                if !self.again {
                    self.failures.push(error.message.clone());
                }
                self.speaking = false;
                self.open = None;
            }
            Event::ModelCalled(called) if !matches!(called.role, ModelRole::Compaction | ModelRole::Review) => {
                self.model = format!("{}/{}", called.provider, called.model);
                self.attempt = called.attempt;
            }
            Event::Began { step: Step::RunTool { call } } => self.running.push(call.clone()),
            Event::ToolFinished(finished) => self.running.retain(|call| *call != finished.call),
            Event::ModelFinished { .. } | Event::ModelCancelled { .. } => {
                self.failures.clear();
                self.speaking = false;
                self.open = None;
            }
            Event::Compacted { .. } | Event::CompactionFailed { .. } => self.speaking = false,
            Event::TurnFinished { .. } => {
                self.speaking = false;
                self.running.clear();
                self.calls.clear();
                self.attempt = 0;
            }
            _ => {}
        }
    }

    /// A failed attempt in a line.
    fn failed(&self, error: &ModelFailure) -> String {
        let who = if self.attempt == 0 { "model call".into() } else { format!("attempt {}", self.attempt) };
        let status = error.status.map(|status| format!(" (status {status})")).unwrap_or_default();
        let most = if self.again && is_long(&error.message) { CUT_CHARS } else { REASON_CHARS };
        let asked = error.retry_after_ms.map(|ms| format!("; asked to wait {} s", ms.div_ceil(1000)));
        format!("  {who} failed{status}: {}{}", one_line(&error.message, most), asked.unwrap_or_default())
    }

    /// Why the model is not asked again; nothing if that was told as it failed. What was told at length is only
    /// named again.
    fn gave_up(&self, message: &str) -> Option<String> {
        if self.failures.iter().any(|told| told == message) {
            return None;
        }
        let mut message = message.to_owned();
        for long in self.failures.iter().filter(|told| is_long(told)) {
            message = message.replace(long.as_str(), &one_line(long, CUT_CHARS));
        }
        explain(&End::ModelError { message }).map(|why| self.bad(&harmless(&why)))
    }

    /// What is not yet shown of a block: all of it where its deltas were not.
    fn block(&mut self, work: Seq, index: u32, block: &ContentBlock, partial: bool) -> Vec<Piece> {
        let (text, piece): (&str, fn(String) -> Piece) = match block {
            ContentBlock::Text { text } => (text, Piece::Text),
            ContentBlock::Thinking { thinking, .. } if self.taste.thinking => (thinking, Piece::Thinking),
            _ => return vec![],
        };
        let shown = match self.open.take() {
            Some((of, at, shown)) if (of, at) == (work, index) => shown,
            other => {
                self.open = other;
                0
            }
        };
        let rest = text.get(shown..).unwrap_or_default();
        let rest = (!rest.is_empty()).then(|| piece(harmless(rest).into_owned()));
        let mark = partial.then(|| piece(BROKEN_OFF.into()));
        rest.into_iter().chain(mark).chain([Piece::End]).collect()
    }

    fn judged(&self, judged: &Judged) -> Option<String> {
        let verdict = match judged.verdict {
            Verdict::Deny => "denied",
            Verdict::Invalid => "refused",
            Verdict::Allow | Verdict::Ask => return None,
        };
        let reason = one_line(&judged.reason.replace('\n', " "), REASON_CHARS);
        Some(format!(
            "  {}  {}",
            self.call(&judged.call),
            self.taste.look.paint(Shade::Red, &format!("{verdict}: {reason}"))
        ))
    }

    fn finished(&self, finished: &ToolFinished) -> String {
        let look = self.taste.look;
        let mut line = format!("  {}", look.paint(Shade::Cyan, &self.call(&finished.call)));
        if let Some((added, removed)) = changes(finished) {
            let (added, removed) = (format!("+{added}"), format!("−{removed}"));
            line += &format!("  {} {}", look.paint(Shade::Green, &added), look.paint(Shade::Red, &removed));
        }
        if finished.outcome != Outcome::Ok {
            let why = one_line(&text_of(&finished.blocks), REASON_CHARS);
            line += &format!("  {}", look.paint(Shade::Red, &format!("{}: {why}", outcome(finished.outcome))));
        }
        line += &format!("  {}", look.paint(Shade::Dim, &words::duration(finished.took_ms)));
        if self.taste.verbose {
            line += &self.details(finished);
        }
        line
    }

    /// The diff of an edit, else the output.
    fn details(&self, finished: &ToolFinished) -> String {
        let diff = finished.value.as_ref().and_then(|value| value.get("diff")).and_then(Value::as_str);
        match diff {
            Some(diff) => format!("\n{}", self::diff(diff, self.taste.look)),
            None => indented(&text_of(&finished.blocks), OUTPUT_LINES),
        }
    }

    fn closed(&self, calls: &[CallId], why: CloseReason) -> String {
        let why = match why {
            CloseReason::Interrupted => "interrupted",
            CloseReason::SiblingFailed => "a call beside it failed",
            CloseReason::MessageCut => "the message it came in broke off",
            CloseReason::OutcomeUnknown => "outcome unknown: the process died while it ran",
            CloseReason::Limit => "a limit was reached",
        };
        let lines = calls.iter().map(|call| {
            format!("  {}  {}", self.call(call), self.taste.look.paint(Shade::Yellow, &format!("not done: {why}")))
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    fn dim(&self, text: &str) -> String {
        self.taste.look.paint(Shade::Dim, text).into_owned()
    }

    fn bad(&self, text: &str) -> String {
        self.taste.look.paint(Shade::Red, text).into_owned()
    }
}

fn is_long(failure: &str) -> bool {
    failure.chars().nth(LONG_CHARS).is_some()
}

pub fn failure(error: &ModelFailure) -> String {
    let status = error.status.map(|status| format!(" (status {status})")).unwrap_or_default();
    format!("model call failed{status}: {}", one_line(&error.message, REASON_CHARS))
}

pub fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Ok => "ok",
        Outcome::Error => "failed",
        Outcome::Denied => "denied",
        Outcome::Cancelled => "cancelled",
        Outcome::NotRun => "not run",
        Outcome::Unknown => "outcome unknown",
    }
}

pub fn changes(finished: &ToolFinished) -> Option<(u64, u64)> {
    let value = finished.value.as_ref()?;
    Some((value.get("added")?.as_u64()?, value.get("removed")?.as_u64()?))
}

/// A unified diff, indented and coloured.
pub fn diff(diff: &str, look: Look) -> String {
    let line = |line: &str| {
        let shade = match line.as_bytes().first() {
            Some(b'+') => Shade::Green,
            Some(b'-') => Shade::Red,
            Some(b'@') => Shade::Cyan,
            _ => Shade::Plain,
        };
        format!("    {}", look.paint(shade, &harmless(line)))
    };
    diff.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// The first `most` lines of `text`, each on a line of its own behind four spaces.
pub fn indented(text: &str, most: usize) -> String {
    let clean = harmless(text);
    let cut = |line: &str| match line.char_indices().nth(LINE_CHARS) {
        Some((end, _)) => format!("\n    {} … {} more", &line[..end], words::count(line[end..].len() as u64, "byte")),
        None => format!("\n    {line}"),
    };
    let mut lines: Vec<String> = clean.lines().take(most).map(cut).collect();
    let left = clean.lines().count().saturating_sub(most);
    if left > 0 {
        lines.push(format!("\n    … {} more", words::count(left as u64, "line")));
    }
    lines.concat()
}

pub fn mode_name(mode: PermissionMode) -> &'static str {
    match mode {
        PermissionMode::Default => "default",
        PermissionMode::AcceptEdits => "accept-edits",
        PermissionMode::Plan => "plan",
        PermissionMode::Bypass => "bypass",
        PermissionMode::Auto => "auto",
        PermissionMode::DontAsk => "dont-ask",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::sync::Arc;

    fn record(event: Value) -> Frame {
        let id = "018f0000-0000-7000-8000-000000000000";
        let record =
            json!({"v": 1, "tenant": "local", "session": id, "seq": 1, "id": id, "epoch": 1, "at": 0, "event": event});
        Frame::Record(Arc::new(serde_json::from_value(record).unwrap()))
    }

    fn delta(offset: usize, text: &str) -> Frame {
        let session = SessionId(Default::default());
        let (work, index) = (Seq(3), 0);
        Frame::Delta(Arc::new(DeltaFrame { session, work, index, offset, delta: DeltaKind::Text, text: text.into() }))
    }

    fn shown(taste: Taste, frames: &[Frame]) -> String {
        let mut view = View::new(taste);
        let pieces = frames.iter().flat_map(|frame| view.frame(frame)).map(|piece| match piece {
            Piece::Text(text) => text,
            Piece::Thinking(text) => format!("({text})"),
            Piece::End => "¶\n".into(),
            Piece::Line(line) => format!("{line}\n"),
        });
        pieces.collect()
    }

    fn text_block(text: &str) -> Frame {
        record(json!({"type": "block_finished", "work": 3, "index": 0, "block": {"type": "text", "text": text}}))
    }

    fn edited() -> [Frame; 2] {
        let call = json!({"type": "tool_use", "id": "c1", "name": "edit", "input": {"path": "config.toml"}});
        let value = json!({"path": "config.toml", "added": 1, "removed": 1, "diff": "--- a\n+++ b\n-port\n+PORT\n"});
        [
            record(json!({"type": "block_finished", "work": 3, "index": 1, "block": call})),
            record(
                json!({"type": "tool_finished", "work": 5, "call": "c1", "outcome": "ok", "value": value, "took_ms": 3,
                          "blocks": [{"type": "text", "text": "edited"}]}),
            ),
        ]
    }

    #[test]
    fn text_is_shown_once_whether_its_deltas_came_or_not() {
        let taste = Taste { deltas: true, ..Taste::default() };
        assert_eq!(shown(taste, &[delta(0, "Hel"), delta(3, "lo"), text_block("Hello")]), "Hello¶\n");
        assert_eq!(shown(taste, &[delta(0, "Hel"), text_block("Hello")]), "Hello¶\n");
        assert_eq!(shown(taste, &[text_block("Hello")]), "Hello¶\n");
        assert_eq!(shown(Taste::default(), &[delta(0, "Hel"), text_block("Hello")]), "Hello¶\n");
    }

    #[test]
    fn s3_47_a_call_is_a_line_with_its_time_and_its_changes() {
        assert_eq!(shown(Taste::default(), &edited()), "  edit config.toml  +1 −1  3 ms\n");
        let verbose = Taste { verbose: true, ..Taste::default() };
        assert_eq!(
            shown(verbose, &edited()),
            "  edit config.toml  +1 −1  3 ms\n    --- a\n    +++ b\n    -port\n    +PORT\n"
        );
    }

    #[test]
    fn what_a_tool_says_cannot_steer_the_terminal() {
        let finished =
            record(json!({"type": "tool_finished", "work": 5, "call": "\x1b[2J", "outcome": "error", "took_ms": 1,
                                     "blocks": [{"type": "text", "text": "\x1b]0;owned\x07"}]}));
        assert_eq!(shown(Taste::default(), &[finished]), "  ␛[2J  failed: ␛]0;owned␇  1 ms\n");
    }

    #[test]
    fn a_denial_names_its_reason() {
        let [call, _] = edited();
        let judged = record(json!({"type": "judged", "work": 4, "call": "c1", "verdict": "deny", "stage": "default",
                                   "reason": "allow it with --allow edit or --yes", "access": "write", "on_crash": "unknown"}));
        let line = shown(Taste::default(), &[call, judged]);
        assert_eq!(line, "  edit config.toml  denied: allow it with --allow edit or --yes\n");
    }

    #[test]
    fn another_model_a_lost_cache_and_a_repair_are_told() {
        let called = json!({"type": "model_called", "work": 3, "role": "main", "provider": "anthropic", "model": "x",
                            "parameters": {"max_tokens": 1}, "attempt": 1, "sections": [],
                            "tools": {"hash": "h", "bytes": 2}});
        let began = |step: Value| record(json!({"type": "began", "step": step}));
        let frames = [
            record(called),
            began(json!({"type": "switch_model", "model": "openai/y", "why": "overloaded"})),
            began(json!({"type": "switch_model", "model": "anthropic/x", "why": "back"})),
            began(json!({"type": "snip", "calls": ["c1", "c2"]})),
            record(json!({"type": "cache_broke", "work": 3, "cause": {"type": "section", "name": "env"},
                          "tokens": 12000})),
            record(json!({"type": "stop_blocked", "work": 3, "text": "`age` is missing", "repair": true})),
        ];
        insta::assert_snapshot!(shown(Taste::default(), &frames), @"
          anthropic/x is overloaded: going on with openai/y
          back to anthropic/x
          the prompt was too long: 2 old results left out
          the prompt cache is lost: section `env` changed; about 12,000 tokens are read anew
          the answer does not fit the wanted schema, and the model is told: `age` is missing
        ");
    }

    fn called(attempt: u32) -> Frame {
        record(json!({"type": "model_called", "work": 3, "role": "main", "provider": "anthropic", "model": "x",
                      "parameters": {"max_tokens": 1}, "attempt": attempt, "sections": [],
                      "tools": {"hash": "h", "bytes": 2}}))
    }

    fn failed(message: &str, asked_ms: Option<u64>) -> Frame {
        let error = json!({"kind": "overloaded", "message": message, "status": 529, "retry_after_ms": asked_ms});
        record(json!({"type": "model_failed", "work": 3, "error": error}))
    }

    fn gave_up(message: &str) -> Frame {
        record(json!({"type": "turn_finished", "work": 4, "end": {"type": "model_error", "message": message}}))
    }

    #[test]
    fn attempts_are_counted_and_the_end_adds_what_was_not_told() {
        let told = |frames: &[Frame]| shown(Taste::default(), frames);
        assert_eq!(
            told(&[called(1), failed("busy", None), gave_up("busy")]),
            "  attempt 1 failed (status 529): busy\n",
            "the end says nothing new"
        );
        assert_eq!(
            told(&[called(2), failed("busy", Some(20_000)), gave_up("busy; try again in 20 s")]),
            "  attempt 2 failed (status 529): busy; asked to wait 20 s\nthe model failed: busy; try again in 20 s\n"
        );
        let long = format!("busy {}", "for a long while ".repeat(10)).trim_end().to_owned();
        let end = gave_up(&format!("{long} (tried 2 times)"));
        let all = told(&[called(1), failed(&long, None), called(2), failed(&long, None), end]);
        assert_eq!(all.matches(&long).count(), 1, "{all}");
        assert!(all.ends_with("… (tried 2 times)\n") && all.contains("attempt 2 failed (status 529): busy"), "{all}");
    }

    #[test]
    fn an_event_is_a_line_of_the_log() {
        let mut view = View::default();
        let lines: Vec<String> = edited()
            .iter()
            .map(|frame| match frame {
                Frame::Record(record) => crate::lines::event(&mut view, &record.event),
                Frame::Delta(_) => unreachable!("records only"),
            })
            .collect();
        assert_eq!(lines, ["block_finished   edit config.toml", "tool_finished    edit config.toml  +1 −1  3 ms"]);
    }
}
