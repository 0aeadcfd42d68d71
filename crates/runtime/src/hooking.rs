//! Hooks as the rooms ask them: what they are told of a session, and what of their answers goes into the log.

use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use windlass_hooks::{Agent, Decision, EventName, Hooks, Launch, Mode, Origin, Outcome, Ran, Verdict};
use windlass_kernel::{CallId, Event, HookOutcome, HookRan, PermissionMode, SessionId, State};

/// The hooks of the sessions of one process, and how they are started.
#[derive(Clone)]
pub struct Hooking {
    pub hooks: Arc<Hooks>,
    pub launch: Launch,
}

impl Hooking {
    /// Whether a hook wants to hear of `event` about `subject`.
    pub(crate) fn wants(&self, event: EventName, subject: &str) -> bool {
        self.hooks.wants(event, subject)
    }

    /// Asks the hooks, and gives what they amount to with what goes into the log.
    pub(crate) async fn ask(
        &self,
        event: windlass_hooks::Event,
        origin: &Origin,
        cancel: &CancellationToken,
    ) -> (Outcome, Vec<Event>) {
        let outcome = self.hooks.run(event, origin, &self.launch, cancel).await;
        let facts = facts(&outcome);
        (outcome, facts)
    }
}

/// Where an event comes from. There is no file of the transcript: sessions are kept in a database.
pub(crate) fn origin(session: SessionId, state: &State) -> Origin {
    let permission_mode = match state.mode {
        PermissionMode::Default => Mode::Default,
        PermissionMode::AcceptEdits => Mode::AcceptEdits,
        PermissionMode::Plan => Mode::Plan,
        PermissionMode::Auto => Mode::Auto,
        PermissionMode::DontAsk => Mode::DontAsk,
        PermissionMode::Bypass => Mode::BypassPermissions,
    };
    let agent = state.parent.as_ref().map(|_| Agent { agent_id: session.to_string(), agent_type: state.agent.clone() });
    Origin {
        session_id: session.to_string(),
        transcript_path: None,
        cwd: state.cwd.clone().into(),
        permission_mode,
        agent,
    }
}

/// What ran, and every line of it for a person, as events.
pub(crate) fn facts(outcome: &Outcome) -> Vec<Event> {
    let fact = |ran: &Ran| {
        let said =
            outcome.messages.iter().filter(|message| message.hook == ran.hook).map(|message| message.text.as_str());
        let mut lines: Vec<&str> = ran.reason.as_deref().into_iter().chain(said).collect();
        lines.dedup();
        Event::HookRan(Box::new(HookRan {
            on: ran.event.text().to_owned(),
            hook: ran.hook.clone(),
            call: ran.tool_use_id.clone().map(CallId),
            outcome: match ran.verdict {
                Verdict::WentOn => HookOutcome::Passed,
                Verdict::Allowed => HookOutcome::Allowed,
                Verdict::Asked => HookOutcome::Asked,
                Verdict::Blocked | Verdict::Stopped => HookOutcome::Blocked,
                Verdict::Failed => HookOutcome::Failed,
            },
            message: lines.join("\n"),
            printed: ran.stdout.clone(),
            rewrote: ran.rewrote,
            took_ms: ran.took_ms,
        }))
    };
    outcome.ran.iter().map(fact).collect()
}

/// The texts that hooks have the model told, as one; none if there are none.
pub(crate) fn context(outcome: &Outcome) -> Option<String> {
    (!outcome.contexts.is_empty()).then(|| outcome.contexts.join("\n"))
}

/// The turn that a hook ends, as an event.
pub(crate) fn stopped(decision: &Decision) -> Option<Event> {
    match decision {
        Decision::Stop { hook, reason } => Some(Event::Interrupted { by: format!("hook {hook}: {reason}") }),
        _ => None,
    }
}
