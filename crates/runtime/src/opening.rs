//! How a session begins: made anew, or taken up where its log ends.

use crate::briefing::Briefing;
use crate::feed::Feed;
use crate::gate::Gate;
use crate::hands::{Hands, panic_text};
use crate::news::{Arrival, News};
use crate::report::REPORTS_QUEUED;
use crate::rooms;
use crate::session::STORE_INBOX_EVERY;
use crate::{Handle, NewSession, SendError, Session, Setup, answers, replay, spending};
use futures_util::FutureExt;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, OnceLock};
use tokio::sync::mpsc;
use tokio::time::Instant;
use windlass_hooks::SessionSource;
use windlass_kernel::*;
use windlass_store::{Fence, Input, StoreError};

/// Commands waiting for the loop before a sender has to wait.
const COMMANDS_QUEUED: usize = 64;

impl Session {
    /// Opens a new session.
    pub async fn create(setup: Arc<Setup>, new: NewSession) -> Result<Handle, StoreError> {
        let fence = setup.store.create(new.session).await?;
        let caps = new.profile.caps;
        let opened = Event::Opened {
            parent: None,
            forked_from: None,
            cwd: new.cwd.display().to_string(),
            agent: new.agent,
            model: new.model,
            mode: new.mode,
            profile: Box::new(new.profile),
        };
        let seen = spending::news(&setup, fence.session, &State::default(), caps).await;
        let first = [opened].into_iter().chain(seen).map(Arrival::known).collect();
        Session::start(setup, fence, State::default(), first).await
    }

    /// Takes a session up where its log ends, with what `change` sets anew: before anything that was under way is judged
    /// again.
    pub async fn resume(setup: Arc<Setup>, session: SessionId, change: Configured) -> Result<Handle, StoreError> {
        let fence = setup.store.claim(session).await?;
        let state = match load(&setup, session).await {
            Ok(state) => state,
            Err(error) => {
                let _ = setup.store.release(&fence).await;
                return Err(error);
            }
        };
        let mut first = vec![Arrival::known(Event::Reopened { worker: setup.worker.clone() })];
        let base = change.profile.as_ref().map_or(state.profile.caps, |profile| profile.caps);
        let caps = change.caps.map_or(base, |caps| caps.over(&base));
        first.extend(spending::news(&setup, session, &state, caps).await.into_iter().map(Arrival::known));
        if let Ok(event) = state.accept(&Command::Configure(Box::new(change))) {
            first.push(Arrival::known(event));
        }
        if !setup.interactive {
            first.extend(answers::nobody(&state).into_iter().map(Arrival::known));
        }
        // What can't be read there must not keep the session shut.
        let left = setup.store.inbox(session).await.unwrap_or_default().into_iter();
        // Where hooks see prompts first, the loop takes them in when it looks around.
        let is_seen = |input: &Input| setup.hooking.is_none() || !matches!(input.command, Command::Prompt(_));
        first.extend(left.filter(is_seen).map(Arrival::left));
        rooms::tool::kill_leftovers(session, &state);
        Session::start(setup, fence, state, first).await
    }

    async fn start(setup: Arc<Setup>, fence: Fence, state: State, first: Vec<Arrival>) -> Result<Handle, StoreError> {
        let (commands, inbox) = mpsc::channel(COMMANDS_QUEUED);
        let (to, reports) = mpsc::channel(REPORTS_QUEUED);
        let over = Arc::new(OnceLock::new());
        let handle = Handle { session: fence.session, store: setup.store.clone(), inbox: commands, over: over.clone() };
        let mut session = Session {
            briefing: Briefing::new(setup.clone(), fence.session),
            hands: Hands::new(setup.clone(), fence.session, to),
            gate: Gate::new(&setup, if state.head == Seq(0) { SessionSource::Startup } else { SessionSource::Resume }),
            feed: Feed::new(fence.session, setup.secrets.clone()),
            setup,
            fence,
            state,
            inbox,
            reports,
            over: over.clone(),
            restless: false,
            look_at: Instant::now() + STORE_INBOX_EVERY,
        };
        let release = session.setup.clone();
        let mut news = News { items: first, ..News::default() };
        // The first batch is stored before anybody holds the handle: a session that opens is a session that is there.
        let steps = match session.first_batch(&mut news).await {
            Ok(steps) => steps,
            Err(error) => {
                let _ = release.store.release(&fence).await;
                return Err(error);
            }
        };
        // Owned by its handles: it ends when the last of them is gone, or is closed.
        tokio::spawn(async move {
            if let Err(panic) = AssertUnwindSafe(session.run(steps)).catch_unwind().await {
                let _ = over.set(SendError::Broke(panic_text(&*panic).to_owned()));
                let _ = release.store.release(&fence).await;
            }
        });
        Ok(handle)
    }

    async fn first_batch(&mut self, news: &mut News) -> Result<Vec<(Seq, Step)>, StoreError> {
        self.briefing.load_media(&self.state).await?;
        self.record(news, true).await
    }
}

/// A session's state; one whose first event never came to be stored is no session.
async fn load(setup: &Setup, session: SessionId) -> Result<State, StoreError> {
    let state = replay(&*setup.store, session, None).await?;
    if state.head == Seq(0) { Err(StoreError::NoSuchSession(session)) } else { Ok(state) }
}
