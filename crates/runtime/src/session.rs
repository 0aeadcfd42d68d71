//! The only loop.

use crate::briefing::Briefing;
use crate::draft::Draft;
use crate::feed::Feed;
use crate::handle::{Envelope, Followed};
use crate::hands::{Hands, panic_text};
use crate::report::{Item, Piece, REPORTS_QUEUED, Report};
use crate::rooms;
use crate::{Handle, NewSession, SendError, Setup, answers, inbox};
use bytes::Bytes;
use futures_util::FutureExt;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use windlass_kernel::*;
use windlass_store::{Fence, Input, StoreError};

/// Commands waiting for the loop before a sender has to wait.
const COMMANDS_QUEUED: usize = 64;
/// Reports taken in before the next batch: the inbox is looked at in between, however fast a stream is.
const REPORTS_GATHERED: usize = 64;
/// How often inputs left in the store by other processes are looked for.
const STORE_INBOX_EVERY: Duration = Duration::from_secs(1);
/// Steps of one batch; what the ladder wants beyond that comes in the next, so that no message can hold the loop.
const STEPS_PER_BATCH: usize = 1_000;
/// Time the rooms have to come back when the session is closed.
const CLOSING: Duration = Duration::from_secs(5);
/// How often it is looked whether the rooms are gone.
const LEAVING: Duration = Duration::from_millis(5);
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
    over: Arc<OnceLock<SendError>>,
    /// The ladder was stopped at its bound, and goes on at once.
    restless: bool,
    /// When inputs left in the store are looked for next.
    look_at: Instant,
}

/// What came in since the last batch, in order.
#[derive(Default)]
struct News {
    items: Vec<Arrival>,
    blobs: Vec<(BlobRef, Bytes)>,
    /// Sent back once the batch is stored.
    acks: Vec<(Reply, Result<Seq, Rejected>)>,
    closing: bool,
    /// Told once the session lies.
    waiting: Vec<oneshot::Sender<()>>,
}

/// The way back to who asked for something.
type Reply = oneshot::Sender<Result<Seq, Rejected>>;

enum Arrival {
    Fact { work: Seq, event: Event },
    Delta(Piece),
    Wish { command: Command, from_store: Option<InputId>, reply: Option<Reply> },
}

impl Arrival {
    /// A fact of no room's work.
    fn known(event: Event) -> Arrival {
        Arrival::Fact { work: Seq(0), event }
    }

    /// An input that somebody left in the store.
    fn left(input: Input) -> Arrival {
        Arrival::Wish { command: input.command, from_store: Some(input.id), reply: None }
    }
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
        Session::start(setup, fence, State::default(), vec![Arrival::known(opened)]).await
    }

    /// Takes a session up where its log ends.
    pub async fn resume(setup: Arc<Setup>, session: SessionId) -> Result<Handle, StoreError> {
        let fence = setup.store.claim(session).await?;
        let state = match load(&setup, session).await {
            Ok(state) => state,
            Err(error) => {
                let _ = setup.store.release(&fence).await;
                return Err(error);
            }
        };
        let mut first = vec![Arrival::known(Event::Reopened { worker: setup.worker.clone() })];
        if !setup.interactive {
            first.extend(answers::nobody(&state).into_iter().map(Arrival::known));
        }
        // What can't be read there must not keep the session shut.
        first.extend(setup.store.inbox(session).await.unwrap_or_default().into_iter().map(Arrival::left));
        rooms::tool::kill_leftovers(session, &state);
        Session::start(setup, fence, state, first).await
    }

    async fn start(setup: Arc<Setup>, fence: Fence, state: State, first: Vec<Arrival>) -> Result<Handle, StoreError> {
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

    async fn run(mut self, mut steps: Vec<(Seq, Step)>) {
        let mut news = News::default();
        let ended = loop {
            for (work, step) in &steps {
                self.hands.begin(*work, step, &self.state, &mut self.briefing);
            }
            self.hands.reap(&self.state);
            self.gather(&mut news).await;
            if news.closing {
                break self.lie_down(&mut news).await;
            }
            match self.record(&mut news, true).await {
                Ok(next) => steps = next,
                Err(error) => break Err(error),
            }
        };
        // Nobody reads reports any more: a room must not wait for room among them.
        self.reports.close();
        self.hands.call_all_back().await;
        // The state went ahead of the log: it is thrown away with the session, never mended.
        if let Err(error) = ended {
            let _ = self.over.set(SendError::Failed(Arc::new(error)));
        }
        // Refused where another process took the session, and then it is not ours to give up.
        let _ = self.setup.store.release(&self.fence).await;
        news.waiting.into_iter().for_each(|reply| _ = reply.send(()));
    }

    /// Calls the rooms back and records how their work ended, without beginning anything. What only looked, and a
    /// message in the middle, are left as they are: whoever resumes the session does them again.
    async fn lie_down(&mut self, news: &mut News) -> Result<(), StoreError> {
        self.record(news, false).await?;
        self.hands.cancel_all();
        let until = Instant::now() + CLOSING;
        while self.hands.are_busy() {
            // A room that has said its last word takes a moment to be gone.
            match tokio::time::timeout(LEAVING, self.reports.recv()).await {
                Ok(report) => report.into_iter().for_each(|report| take_in(report, news)),
                Err(_) if Instant::now() > until => break,
                Err(_) => {}
            }
            self.hands.reap_finished();
        }
        while let Ok(report) = self.reports.try_recv() {
            take_in(report, news);
        }
        news.items.retain(|arrival| matches!(arrival, Arrival::Fact { work, event } if self.is_final(*work, event)));
        let heard = self.feed.all_broken_off();
        news.items.extend(heard.into_iter().map(|(work, event)| Arrival::Fact { work, event }));
        self.record(news, false).await?;
        Ok(())
    }

    /// A fact that stays true when the session is resumed, as the end of a call that did more than look. What ended
    /// only because it was called back here is none: it is begun again.
    fn is_final(&self, work: Seq, event: &Event) -> bool {
        let finished = match event {
            Event::ToolFinished(finished) => finished,
            Event::ModelCancelled { .. } | Event::CompactionFailed { .. } | Event::TurnFinished { .. } => return false,
            _ => return true,
        };
        let plan = self.state.call(&finished.call).and_then(|call| call.plan.as_ref());
        let looked = plan.is_some_and(|plan| plan.on_crash != OnCrash::Unknown);
        finished.work == work && (finished.outcome != Outcome::Cancelled || !looked)
    }

    /// Applies what came in, decides if it is to, stores all of it in one append, and tells. Returns the steps to act on.
    async fn record(&mut self, news: &mut News, decide: bool) -> Result<Vec<(Seq, Step)>, StoreError> {
        let mut draft = Draft::new(self.fence, &self.state, self.setup.always_sync);
        draft.blobs.append(&mut news.blobs);
        let mut kept_rules = vec![];
        for arrival in news.items.drain(..) {
            match arrival {
                // Of a work gone by nobody wants to hear.
                Arrival::Delta(piece) if !self.state.in_flight().contains(&piece.work) => {}
                Arrival::Delta(piece) => draft.frames.push(self.feed.hear(piece)),
                Arrival::Fact { work, event } => self.report(&mut draft, work, event),
                Arrival::Wish { command, from_store, reply } => {
                    let answer = self.wish(&mut draft, command, &mut kept_rules);
                    if let Some(input) = from_store {
                        self.taken_up(&mut draft, input, &answer);
                    }
                    news.acks.extend(reply.map(|reply| (reply, answer)));
                }
            }
        }
        let steps = if decide { self.decide(&mut draft) } else { vec![] };
        let nothing_new = draft.is_empty();
        let (batch, frames) = draft.close();
        if !nothing_new {
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
            if steps.len() == STEPS_PER_BATCH {
                self.restless = true;
                break;
            }
            let work = draft.happened(&self.setup, &mut self.state, None, Event::Began { step: step.clone() });
            for event in self.prelude(draft, work, &step) {
                draft.happened(&self.setup, &mut self.state, Some(work), event);
            }
            steps.push((work, step));
        }
        steps
    }

    /// What becomes of an input from the store: it waits there while the session is busy, and one that can never be
    /// accepted leaves a word behind.
    fn taken_up(&mut self, draft: &mut Draft, input: InputId, answer: &Result<Seq, Rejected>) {
        let text = match answer {
            Err(Rejected::Busy | Rejected::AlreadyCompacting) => return,
            Ok(_) | Err(Rejected::Repeated(_)) => return draft.consumed.push(input),
            Err(reason) => format!("An input that another process left for this session was not accepted: {reason}."),
        };
        draft.consumed.push(input);
        let noted = Event::Noted { input, text, wakes: false };
        draft.happened(&self.setup, &mut self.state, None, noted);
    }

    /// What is known of a step the moment it begins, and so belongs into its batch.
    fn prelude(&mut self, draft: &mut Draft, work: Seq, step: &Step) -> Vec<Event> {
        match step {
            // Where there is no place to cut, nothing is asked of a model.
            Step::Compact if self.state.split().is_none() => vec![],
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
        if let Event::ToolFinished(finished) = &event {
            self.briefing.keep_media(&finished.blocks, &draft.blobs);
        }
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
        let command = match command {
            Command::Answer(answer) => {
                let workspace = self.hands.workspace(&self.state);
                Command::Answer(answers::check(&self.setup, &workspace, &self.state, answer)?)
            }
            command => inbox::expand(&self.setup, command, &draft.blobs)?,
        };
        let event = self.state.accept(&command)?;
        let seq = draft.happened(&self.setup, &mut self.state, None, event);
        match command {
            Command::Prompt(prompt) => self.briefing.keep_media(&prompt.blocks, &draft.blobs),
            Command::Answer(answer) => {
                if answer.scope == Scope::Always {
                    kept_rules.extend(answer.rule.clone());
                }
                for event in answers::covered(&self.setup, &self.state, &answer) {
                    draft.happened(&self.setup, &mut self.state, Some(seq), event);
                }
            }
            _ => {}
        }
        Ok(seq)
    }

    /// Waits for something to happen, then takes in what is ready: the inbox first, so that no stream starves it.
    async fn gather(&mut self, news: &mut News) {
        if std::mem::take(&mut self.restless) {
            return;
        }
        let due = self.hands.deadline(&self.state).map_or(self.look_at, |deadline| deadline.min(self.look_at));
        tokio::select! {
            biased;
            envelope = self.inbox.recv() => self.open(envelope, news),
            Some(report) = self.reports.recv() => take_in(report, news),
            _ = tokio::time::sleep_until(due) => {}
        }
        while let Ok(envelope) = self.inbox.try_recv() {
            self.open(Some(envelope), news);
        }
        for _ in 0..REPORTS_GATHERED {
            let Ok(report) = self.reports.try_recv() else { break };
            take_in(report, news);
        }
        // Looked at every time: a stream that never pauses must not keep the clock out.
        if due <= Instant::now() {
            self.look_around(news).await;
        }
        tokio::task::consume_budget().await;
    }

    fn open(&mut self, envelope: Option<Envelope>, news: &mut News) {
        match envelope {
            Some(Envelope::Wish { command, blobs, reply }) => {
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
            Some(Envelope::Close { reply }) => {
                news.closing = true;
                news.waiting.push(reply);
            }
            None => news.closing = true,
        }
    }

    /// A timer went off: what is overdue is answered for, and inputs that others left are taken in.
    async fn look_around(&mut self, news: &mut News) {
        for (work, event) in self.hands.overdue(&self.state) {
            news.items.push(Arrival::Fact { work, event });
        }
        if self.look_at > Instant::now() {
            return;
        }
        self.look_at = Instant::now() + STORE_INBOX_EVERY;
        // A store that fails here will fail, and say so, at the next append.
        let left = self.setup.store.inbox(self.fence.session).await.unwrap_or_default();
        news.items.extend(left.into_iter().map(Arrival::left));
    }
}

/// Folds a session's log.
async fn load(setup: &Setup, session: SessionId) -> Result<State, StoreError> {
    let mut state = State::default();
    loop {
        let records = setup.store.read(session, state.head.next(), PAGE).await?;
        records.iter().for_each(|record| state.apply(record));
        if records.len() < PAGE {
            break;
        }
    }
    if state.head == Seq(0) { Err(StoreError::NoSuchSession(session)) } else { Ok(state) }
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
