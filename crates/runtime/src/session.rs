//! The only loop.

use crate::briefing::Briefing;
use crate::draft::Draft;
use crate::feed::Feed;
use crate::handle::{Envelope, Followed};
use crate::hands::Hands;
use crate::report::{Item, Piece, REPORTS_QUEUED, Report};
use crate::rooms;
use crate::{Handle, NewSession, Setup, inbox};
use bytes::Bytes;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use windlass_kernel::*;
use windlass_store::{Fence, Input, StoreError};

/// Commands waiting for the loop before a sender has to wait.
const COMMANDS_QUEUED: usize = 64;
/// Reports taken in before the next batch: the inbox is looked at in between, however fast a stream is.
const REPORTS_GATHERED: usize = 64;
/// How often inputs left in the store by other processes are looked for.
const STORE_INBOX_EVERY: Duration = Duration::from_secs(1);
/// Steps one batch of facts may lead to; more is a ladder that never comes to rest.
const STEPS_PER_BATCH: usize = 10_000;
/// Records read from the store at a time when a session is taken up.
const PAGE: usize = 1_000;

/// One log, one loop, one writer.
pub struct Session {
    setup: Arc<Setup>,
    fence: Fence,
    state: State,
    briefing: Briefing,
    hands: Hands,
    feed: Feed,
    inbox: mpsc::Receiver<Envelope>,
    reports: mpsc::Receiver<Report>,
    over: Arc<OnceLock<Arc<StoreError>>>,
}

/// What came in since the last batch, in order.
#[derive(Default)]
struct News {
    items: Vec<Arrival>,
    blobs: Vec<(BlobRef, Bytes)>,
    /// Sent back once the batch is stored.
    acks: Vec<(oneshot::Sender<Result<Seq, Rejected>>, Result<Seq, Rejected>)>,
    closing: Option<Option<oneshot::Sender<()>>>,
}

enum Arrival {
    Fact { work: Seq, event: Event },
    Delta(Piece),
    Wish { command: Command, from_store: Option<InputId>, reply: Option<oneshot::Sender<Result<Seq, Rejected>>> },
}

impl Session {
    /// Opens a new session.
    pub async fn create(setup: Arc<Setup>, new: NewSession) -> Result<Handle, StoreError> {
        let fence = setup.store.create(new.session).await?;
        let opened = Event::Opened {
            parent: None,
            forked_from: None,
            cwd: new.cwd.display().to_string(),
            agent: new.agent,
            model: new.model,
            mode: new.mode,
            profile: Box::new(new.profile),
        };
        Session::start(setup, fence, State::default(), opened).await
    }

    /// Takes a session up where its log ends.
    pub async fn resume(setup: Arc<Setup>, session: SessionId) -> Result<Handle, StoreError> {
        let fence = setup.store.claim(session).await?;
        let mut state = State::default();
        loop {
            let records = setup.store.read(session, state.head.next(), PAGE).await?;
            records.iter().for_each(|record| state.apply(record));
            if records.len() < PAGE {
                break;
            }
        }
        let reopened = Event::Reopened { worker: setup.worker.clone() };
        rooms::tool::kill_leftovers(session, &state);
        Session::start(setup, fence, state, reopened).await
    }

    async fn start(setup: Arc<Setup>, fence: Fence, state: State, first: Event) -> Result<Handle, StoreError> {
        let (commands, inbox) = mpsc::channel(COMMANDS_QUEUED);
        let (to, reports) = mpsc::channel(REPORTS_QUEUED);
        let over = Arc::new(OnceLock::new());
        let handle = Handle { session: fence.session, store: setup.store.clone(), inbox: commands, over: over.clone() };
        let mut session = Session {
            briefing: Briefing::new(setup.clone()),
            hands: Hands::new(setup.clone(), fence.session, to),
            feed: Feed::new(fence.session),
            setup,
            fence,
            state,
            inbox,
            reports,
            over,
        };
        session.briefing.load_media(&session.state).await?;
        // The first batch is stored before anybody holds the handle: a session that opens is a session that is there.
        let mut news = News::default();
        news.items.push(Arrival::Fact { work: Seq(0), event: first });
        let steps = session.record(&mut news).await?;
        // Owned by its handles: it ends when the last of them is gone, or is closed.
        tokio::spawn(session.run(steps));
        Ok(handle)
    }

    async fn run(mut self, mut steps: Vec<(Seq, Step)>) {
        let mut news = News::default();
        let ended = loop {
            for (work, step) in &steps {
                self.hands.begin(*work, step, &self.state, &mut self.briefing);
            }
            self.hands.reap(&self.state);
            self.gather(&mut news).await;
            if let Some(reply) = news.closing.take() {
                break Ok(reply);
            }
            match self.record(&mut news).await {
                Ok(next) => steps = next,
                Err(error) => break Err(error),
            }
        };
        self.hands.call_all_back().await;
        match ended {
            Ok(reply) => {
                let _ = self.setup.store.release(&self.fence).await;
                let _ = reply.map(|reply| reply.send(()));
            }
            // The state went ahead of the log: it is thrown away with the session, never mended.
            Err(error) => {
                let _ = self.over.set(Arc::new(error));
            }
        }
    }

    /// Applies what came in, decides, stores all of it in one append, and tells. Returns the steps to act on.
    async fn record(&mut self, news: &mut News) -> Result<Vec<(Seq, Step)>, StoreError> {
        let mut draft = Draft::new(self.fence, &self.state, self.setup.always_sync);
        draft.blobs.append(&mut news.blobs);
        let mut kept_rules = vec![];
        for arrival in news.items.drain(..) {
            match arrival {
                Arrival::Delta(piece) => draft.frames.push(self.feed.hear(piece)),
                Arrival::Fact { work, event } => self.report(&mut draft, work, event),
                Arrival::Wish { command, from_store, reply } => {
                    let answer = self.wish(&mut draft, command, &mut kept_rules);
                    draft.consumed.extend(from_store);
                    news.acks.extend(reply.map(|reply| (reply, answer)));
                }
            }
        }
        let steps = self.decide(&mut draft);
        let stored = draft.is_empty();
        let (batch, frames) = draft.close();
        if !stored {
            self.setup.store.append(batch).await?;
        }
        self.feed.tell(frames);
        for (reply, answer) in news.acks.drain(..) {
            let _ = reply.send(answer);
        }
        kept_rules.iter().for_each(|rule| (self.setup.keep_rule)(rule));
        Ok(steps)
    }

    /// Asks the ladder until it comes to rest.
    fn decide(&mut self, draft: &mut Draft) -> Vec<(Seq, Step)> {
        let mut steps = Vec::new();
        while let Some(step) = self.state.next_step() {
            assert!(steps.len() < STEPS_PER_BATCH, "the ladder never comes to rest: {step:?}");
            let work = draft.happened(&self.setup, &mut self.state, None, Event::Began { step: step.clone() });
            for event in self.prelude(draft, work, &step) {
                draft.happened(&self.setup, &mut self.state, Some(work), event);
            }
            steps.push((work, step));
        }
        steps
    }

    /// What is known of a step the moment it begins, and so belongs into its batch.
    fn prelude(&mut self, draft: &mut Draft, work: Seq, step: &Step) -> Vec<Event> {
        match step {
            Step::CallModel | Step::Compact => {
                let (called, blobs) = self.briefing.describe(work, step, &self.state);
                draft.blobs.extend(blobs);
                called.map(|called| Event::ModelCalled(Box::new(called))).into_iter().collect()
            }
            Step::Judge { call } => {
                rooms::judge::judge(&self.setup, &self.hands.workspace(&self.state), &self.state, work, call)
            }
            Step::RunTool { call } => rooms::tool::started(self.fence.session, &self.state, work, call),
            Step::Finish { end, checks } if !checks || self.setup.stop_checks.is_empty() => {
                vec![Event::TurnFinished { work, end: end.clone() }]
            }
            _ => vec![],
        }
    }

    fn report(&mut self, draft: &mut Draft, work: Seq, event: Event) {
        let broken = match &event {
            Event::ModelFailed { .. } | Event::ModelCancelled { .. } => self.feed.broken_off(work),
            _ => vec![],
        };
        for event in broken.into_iter().chain([event]) {
            self.feed.settle(&event);
            let event = self.with_unique_id(work, event);
            let cause = (work != Seq(0)).then_some(work);
            draft.happened(&self.setup, &mut self.state, cause, event);
        }
    }

    /// Some vendors number their calls anew in every message; the log's ids are unique.
    fn with_unique_id(&self, work: Seq, mut event: Event) -> Event {
        if let Event::BlockFinished { block: ContentBlock::ToolUse(tool_use), index, .. } = &mut event
            && (self.state.call_ids.contains(&tool_use.id) || self.state.call(&tool_use.id).is_some())
        {
            tool_use.id = CallId(format!("{}_{work}_{index}", tool_use.id));
        }
        event
    }

    fn wish(&mut self, draft: &mut Draft, command: Command, kept_rules: &mut Vec<String>) -> Result<Seq, Rejected> {
        let command = inbox::expand(&self.setup, command, &draft.blobs)?;
        let event = self.state.accept(&command)?;
        let seq = draft.happened(&self.setup, &mut self.state, None, event);
        if let Command::Answer(answer) = command {
            if answer.scope == Scope::Always {
                kept_rules.extend(answer.rule.clone());
            }
            for event in inbox::covered(&self.setup, &self.state, &answer) {
                draft.happened(&self.setup, &mut self.state, Some(seq), event);
            }
        }
        Ok(seq)
    }

    /// Waits for something to happen, then takes in what is ready: the inbox first, so that no stream starves it.
    async fn gather(&mut self, news: &mut News) {
        let deadline = self.hands.deadline(&self.state);
        let look = tokio::time::Instant::now() + STORE_INBOX_EVERY;
        tokio::select! {
            biased;
            envelope = self.inbox.recv() => self.open(envelope, news),
            Some(report) = self.reports.recv() => take_in(report, news),
            _ = tokio::time::sleep_until(deadline.unwrap_or(look).min(look)) => self.look_around(news).await,
        }
        while let Ok(envelope) = self.inbox.try_recv() {
            self.open(Some(envelope), news);
        }
        for _ in 0..REPORTS_GATHERED {
            let Ok(report) = self.reports.try_recv() else { break };
            take_in(report, news);
        }
        tokio::task::consume_budget().await;
    }

    fn open(&mut self, envelope: Option<Envelope>, news: &mut News) {
        match envelope {
            Some(Envelope::Wish { command, blobs, reply }) => {
                self.briefing.keep_media(&blobs);
                news.blobs.extend(blobs);
                news.items.push(Arrival::Wish { command, from_store: None, reply: Some(reply) });
            }
            Some(Envelope::Follow { reply }) => {
                let (open, live) = self.feed.follow();
                let _ = reply.send(Followed { head: self.state.head, open, live });
            }
            Some(Envelope::Look { reply }) => {
                let _ = reply.send(Box::new(self.state.clone()));
            }
            Some(Envelope::Close { reply }) => news.closing = Some(Some(reply)),
            None => news.closing = Some(None),
        }
    }

    /// A timer went off: what is overdue is answered for, and inputs that others left are taken in.
    async fn look_around(&mut self, news: &mut News) {
        for (work, event) in self.hands.overdue(&self.state) {
            news.items.push(Arrival::Fact { work, event });
        }
        // A store that fails here will fail, and say so, at the next append.
        for Input { id, command, .. } in self.setup.store.inbox(self.fence.session).await.unwrap_or_default() {
            news.items.push(Arrival::Wish { command, from_store: Some(id), reply: None });
        }
    }
}

fn take_in(report: Report, news: &mut News) {
    news.blobs.extend(report.blobs);
    for item in report.items {
        match (item, news.items.last_mut()) {
            // Told as one: a frame per network read, not per delta.
            (Item::Delta(piece), Some(Arrival::Delta(last)))
                if (last.work, last.index, last.kind) == (piece.work, piece.index, piece.kind) =>
            {
                last.text.push_str(&piece.text);
            }
            (Item::Delta(piece), _) => news.items.push(Arrival::Delta(piece)),
            (Item::Fact(event), _) => news.items.push(Arrival::Fact { work: report.work, event }),
        }
    }
}
