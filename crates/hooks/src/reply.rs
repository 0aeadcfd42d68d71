//! One hook's end turned into what it means.

use crate::answer::{Answer, Choice, Permission, Specific};
use crate::child::{End, Finished};
use crate::config::{Hook, OnError};
use crate::event::EventName;
use crate::outcome::{Decision, Verdict};
use crate::words::clip;
use serde_json::Value;

/// The exit code by which a hook blocks.
const BLOCK_CODE: i32 = 2;
/// Bytes of one text that goes to the model.
const CONTEXT_LIMIT_BYTES: usize = 32 << 10;
/// Bytes of a reason, or of a line for the person.
const REASON_LIMIT_BYTES: usize = 8 << 10;
/// Bytes of what a hook printed that are kept for the record.
const RECORD_LIMIT_BYTES: usize = 2 << 10;
/// Fields without meaning that are told of one answer.
const STRANGERS_TOLD: usize = 5;

/// What one hook said.
#[derive(Debug)]
pub(crate) struct Reply {
    pub verdict: Verdict,
    /// Why; none if it simply went on.
    pub reason: Option<String>,
    pub decision: Decision,
    pub updated_input: Option<Value>,
    pub context: Option<String>,
    /// Lines for the person.
    pub notes: Vec<String>,
    /// What it printed, for the record.
    pub stdout: String,
}

impl Reply {
    pub(crate) fn of(hook: &Hook, finished: &Finished) -> Reply {
        let stdout = String::from_utf8_lossy(&finished.stdout);
        let stderr = clip(&String::from_utf8_lossy(&finished.stderr), REASON_LIMIT_BYTES);
        let mut reply = Reply::silent(clip(&stdout, RECORD_LIMIT_BYTES));
        match &finished.end {
            End::Code(0) if stdout.trim_start().starts_with('{') => reply.answered(hook, &finished.stdout),
            End::Code(0) if hook.event.takes_text() => reply.add_context(&stdout),
            End::Code(0) => {}
            End::Code(BLOCK_CODE) => reply.refused(hook, stderr),
            End::Code(code) => reply.failed(hook, with_words(format!("exit code {code}"), &stderr)),
            End::Signal(signal) => reply.failed(hook, with_words(format!("ended by signal {signal}"), &stderr)),
            End::TimedOut(limit) => {
                reply.failed(hook, with_words(format!("it took longer than {} ms", limit.as_millis()), &stderr))
            }
            End::CalledBack => reply.called_back(hook),
            End::Flood { stream, limit_bytes } => {
                reply.failed(hook, format!("it wrote more than {limit_bytes} bytes to {stream}"))
            }
            End::Lost(why) => reply.failed(hook, why.clone()),
        }
        reply
    }

    fn silent(stdout: String) -> Reply {
        Reply {
            verdict: Verdict::WentOn,
            reason: None,
            decision: Decision::GoOn,
            updated_input: None,
            context: None,
            notes: Vec::new(),
            stdout,
        }
    }

    /// Takes a JSON answer.
    fn answered(&mut self, hook: &Hook, text: &[u8]) {
        let event = hook.event;
        let (answer, strangers) = match Answer::read(text, event) {
            Ok(read) => read,
            Err(why) => return self.failed(hook, why),
        };
        if !strangers.is_empty() {
            let names = strangers.iter().take(STRANGERS_TOLD).map(String::as_str).collect::<Vec<_>>().join("`, `");
            self.note(&format!("answered with `{names}`, which means nothing at {}", event.text()));
        }
        self.decide(hook, &answer);
        if !strangers.is_empty() && self.verdict == Verdict::WentOn && hook.on_error == OnError::Block {
            // It may have meant to block: a guard that must not fail must not be misread either.
            return self.failed(hook, "nothing in its answer decides anything".into());
        }
        self.note(answer.system_message.as_deref().unwrap_or_default());
        if let Some(specific) = answer.hook_specific_output {
            self.advise(event, specific);
        }
        if answer.suppress_output == Some(true) {
            self.stdout.clear();
        }
    }

    fn decide(&mut self, hook: &Hook, answer: &Answer) {
        let event = hook.event;
        let specific = answer.hook_specific_output.as_ref().filter(|_| event == EventName::PreToolUse);
        let permission = specific.and_then(|specific| specific.permission_decision);
        let why = specific.and_then(|specific| specific.permission_decision_reason.as_ref());
        let why = why.or(answer.reason.as_ref()).cloned().unwrap_or_default();
        if answer.r#continue == Some(false) && event.may_stop() {
            let why = answer.stop_reason.clone().unwrap_or_default();
            return self.take(hook, Verdict::Stopped, why);
        }
        if answer.r#continue == Some(false) {
            self.note(&format!("answered with `\"continue\": false`, which ends nothing at {}", event.text()));
        }
        match (permission, answer.decision.filter(|_| event.may_block())) {
            (Some(Permission::Deny), _) | (None, Some(Choice::Block)) => self.take(hook, Verdict::Blocked, why),
            (Some(Permission::Ask), _) => self.take(hook, Verdict::Asked, why),
            (Some(Permission::Allow), _) => self.take(hook, Verdict::Allowed, why),
            (None, Some(Choice::Approve)) if event == EventName::PreToolUse => self.take(hook, Verdict::Allowed, why),
            (None, _) => {}
        }
    }

    fn advise(&mut self, event: EventName, specific: Specific) {
        if event == EventName::PreToolUse && !matches!(self.verdict, Verdict::Blocked | Verdict::Stopped) {
            self.updated_input = specific.updated_input;
        }
        let takes_context = crate::answer::fields(event).1.contains(&crate::answer::CONTEXT);
        if let Some(text) = specific.additional_context.filter(|_| takes_context) {
            self.add_context(&text);
        }
    }

    /// Takes the exit code that blocks.
    fn refused(&mut self, hook: &Hook, stderr: String) {
        if hook.event.may_block() {
            self.take(hook, Verdict::Blocked, stderr);
        } else {
            let what = format!("exit code {BLOCK_CODE}, which blocks nothing at {}", hook.event.text());
            self.failed(hook, with_words(what, &stderr));
        }
    }

    /// Takes that there is no answer that counts.
    fn failed(&mut self, hook: &Hook, why: String) {
        let (name, event) = (&hook.name, hook.event.text());
        self.verdict = Verdict::Failed;
        if hook.on_error == OnError::Block {
            let reason = format!("the hook `{name}` failed, and nothing is done without its consent: {why}");
            self.decision = Decision::Block { hook: name.clone(), reason };
            self.note(&format!("failed: {why}; {event} is blocked, as its on_error says"));
        } else {
            self.note(&format!("failed: {why}; {event} goes on without it"));
        }
        self.reason = Some(why);
    }

    /// The row ends here, and what it is about is not done, should the caller still ask.
    fn called_back(&mut self, hook: &Hook) {
        let reason = "called back before it answered".to_owned();
        self.verdict = Verdict::Failed;
        self.reason = Some(reason.clone());
        self.decision = Decision::Stop { hook: hook.name.clone(), reason };
    }

    fn take(&mut self, hook: &Hook, verdict: Verdict, why: String) {
        let (why, hook) = (clip(&why, REASON_LIMIT_BYTES), hook.name.clone());
        let reason = if why.is_empty() { format!("the hook `{hook}` gave no reason") } else { why };
        self.reason = Some(reason.clone());
        self.verdict = verdict;
        self.decision = match verdict {
            Verdict::Allowed => Decision::Allow { hook, reason },
            Verdict::Asked => Decision::Ask { hook, reason },
            Verdict::Blocked => Decision::Block { hook, reason },
            Verdict::Stopped => Decision::Stop { hook, reason },
            Verdict::WentOn | Verdict::Failed => Decision::GoOn,
        };
    }

    fn add_context(&mut self, text: &str) {
        self.context = Some(clip(text, CONTEXT_LIMIT_BYTES)).filter(|text| !text.is_empty());
    }

    fn note(&mut self, text: &str) {
        if !text.trim().is_empty() {
            self.notes.push(clip(text, REASON_LIMIT_BYTES));
        }
    }
}

/// `what`, and what the hook wrote about it.
fn with_words(what: String, stderr: &str) -> String {
    if stderr.is_empty() { what } else { format!("{what}: {stderr}") }
}
