//! Prompts on their way past the hooks, and notifications on their way out. The loop goes on meanwhile.

use crate::Setup;
use crate::handle::Reply;
use crate::hands::panic_text;
use crate::hooking::{self, Hooking};
use futures_util::FutureExt;
use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use windlass_hooks::{
    Decision, EventName, Notices, Notification, NotificationKind, Origin, SessionSource, SessionStart, UserPromptSubmit,
};
use windlass_kernel::*;
use windlass_prompt::Slash;

/// How long notifications may go on once their session is closed.
const SETTLING: Duration = Duration::from_secs(1);

/// Something that is wished, with the way back.
pub(crate) struct Wish {
    pub command: Command,
    pub from_store: Option<InputId>,
    pub reply: Option<Reply>,
    /// What hooks have the model told beside it.
    pub told: Option<String>,
}

/// A prompt that the hooks have seen.
pub(crate) struct Passed {
    pub wish: Wish,
    /// Why it goes no further.
    pub blocked: Option<String>,
    pub facts: Vec<Event>,
}

#[derive(Default)]
pub(crate) struct Gate {
    hooking: Option<Hooking>,
    /// How the session began (again), until a prompt has told the hooks.
    source: Option<SessionSource>,
    waiting: VecDeque<(Wish, Origin, String)>,
    /// At most one, so that prompts keep their order.
    passing: JoinSet<Passed>,
    /// Calls back the hooks that are asked in `passing`.
    cancel: CancellationToken,
    /// The input from the store that is in `passing`.
    inside: Option<InputId>,
    notices: Notices,
}

impl Gate {
    pub fn new(setup: &Setup, source: SessionSource) -> Gate {
        Gate { hooking: setup.hooking.clone(), source: Some(source), ..Gate::default() }
    }

    /// The session was cleared or compacted: hooks hear of it with the next prompt.
    pub fn began(&mut self, event: &Event) {
        match event {
            Event::Cleared { .. } => self.source = Some(SessionSource::Clear),
            Event::Compacted { .. } => self.source = Some(SessionSource::Compact),
            _ => {}
        }
    }

    /// Whether `command` goes this way: hooks want to see it first, or prompts are here that came before it.
    pub fn wants(&self, command: &Command) -> bool {
        let (Some(hooking), Command::Prompt(prompt)) = (&self.hooking, command) else { return false };
        if !self.passing.is_empty() {
            return true;
        }
        let word = |source: SessionSource| match source {
            SessionSource::Startup => "startup",
            SessionSource::Resume => "resume",
            SessionSource::Clear => "clear",
            SessionSource::Compact => "compact",
        };
        let starts = self.source.is_some_and(|source| hooking.wants(EventName::SessionStart, word(source)));
        is_said(prompt) && (starts || hooking.wants(EventName::UserPromptSubmit, ""))
    }

    /// Whether an input from the store is on its way already.
    pub fn holds(&self, input: InputId) -> bool {
        self.inside == Some(input) || self.waiting.iter().any(|(wish, ..)| wish.from_store == Some(input))
    }

    /// Lets the hooks see `wish`, after those that came before it.
    pub fn admit(&mut self, wish: Wish, session: SessionId, state: &State) {
        self.waiting.push_back((wish, hooking::origin(session, state), state.model.clone()));
        self.go_on();
    }

    fn go_on(&mut self) {
        if !self.passing.is_empty() {
            return;
        }
        let (Some((wish, origin, model)), Some(hooking)) = (self.waiting.pop_front(), self.hooking.clone()) else {
            return;
        };
        self.inside = wish.from_store;
        let Command::Prompt(prompt) = &wish.command else { return };
        let mut events = vec![];
        // A slash command only waits for its turn.
        if is_said(prompt) {
            let start = self.source.take().map(|source| SessionStart { source, model: Some(model) });
            let submit = UserPromptSubmit { prompt: text_of(&prompt.blocks) };
            events.extend(start.map(windlass_hooks::Event::SessionStart));
            events.push(windlass_hooks::Event::UserPromptSubmit(submit));
        }
        self.cancel = CancellationToken::new();
        self.passing.spawn(pass(hooking, wish, origin, events, self.cancel.clone()));
    }

    /// Somebody interrupts: the hooks that are asked about a prompt are called back, and it goes back to who sent it.
    pub fn call_back(&self) {
        self.cancel.cancel();
    }

    /// The next prompt the hooks have seen; waits for ever if there is none.
    pub async fn next(&mut self) -> Option<Passed> {
        if self.passing.is_empty() {
            std::future::pending::<()>().await;
        }
        let passed = self.passing.join_next().await?.ok();
        self.inside = None;
        self.go_on();
        passed
    }

    /// Tells hooks that a person is wanted, if the event says so.
    pub fn notify(&mut self, event: &Event, session: SessionId, state: &State) {
        let Some(hooking) = &self.hooking else { return };
        let (notification_type, message) = match event {
            Event::Asked { question, .. } if question.kind == QuestionKind::Words => {
                (NotificationKind::ElicitationDialog, format!("The agent asks: {}", question.preview))
            }
            Event::Asked { question, .. } => {
                (NotificationKind::PermissionPrompt, format!("The agent needs your approval: {}", question.preview))
            }
            Event::TurnFinished { .. } => (NotificationKind::IdlePrompt, "The agent waits for your input".to_owned()),
            _ => return,
        };
        let notice = Notification { message, notification_type };
        self.notices.tell(&hooking.hooks, notice, hooking::origin(session, state), hooking.launch.clone());
    }

    /// What has come of notifications that are over.
    pub fn heard(&mut self) -> Vec<Event> {
        self.notices.finished().iter().flat_map(hooking::facts).collect()
    }

    /// The same at the end, with a moment for what is still on its way.
    pub async fn settle(&mut self) -> Vec<Event> {
        self.notices.settle(SETTLING).await.iter().flat_map(hooking::facts).collect()
    }
}

fn is_said(prompt: &Prompted) -> bool {
    windlass_prompt::parse_slash(&text_of(&prompt.blocks)) == Slash::NotACommand
}

/// Whatever becomes of the hooks, the wish comes back: somebody waits for its answer.
async fn pass(
    hooking: Hooking,
    wish: Wish,
    origin: Origin,
    events: Vec<windlass_hooks::Event>,
    cancel: CancellationToken,
) -> Passed {
    let heard = AssertUnwindSafe(hear(hooking, origin, events, cancel)).catch_unwind().await;
    let heard = heard.unwrap_or_else(|panic| Heard {
        blocked: Some(format!("asking the hooks panicked: {}", panic_text(&*panic))),
        ..Heard::default()
    });
    let told = (!heard.texts.is_empty()).then(|| heard.texts.join("\n"));
    Passed { wish: Wish { told, ..wish }, blocked: heard.blocked, facts: heard.facts }
}

/// What the hooks said of a prompt.
#[derive(Default)]
struct Heard {
    facts: Vec<Event>,
    texts: Vec<String>,
    blocked: Option<String>,
}

async fn hear(
    hooking: Hooking,
    origin: Origin,
    events: Vec<windlass_hooks::Event>,
    cancel: CancellationToken,
) -> Heard {
    let mut heard = Heard::default();
    for event in events {
        let (outcome, ran) = hooking.ask(event, &origin, &cancel).await;
        heard.facts.extend(ran);
        heard.texts.extend(hooking::context(&outcome));
        if let Decision::Block { hook, reason } | Decision::Stop { hook, reason } = outcome.decision {
            heard.blocked = Some(format!("{reason} (hook `{hook}`)"));
        }
    }
    heard
}
