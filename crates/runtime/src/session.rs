//! The only loop.

use crate::briefing::Briefing;
use crate::draft::Draft;
use crate::feed::Feed;
use crate::gate::{Gate, Passed, Wish};
use crate::handle::{Envelope, Followed};
use crate::hands::Hands;
use crate::news::{Arrival, News};
use crate::report::Report;
use crate::rooms;
use crate::{Frame, SendError, Setup, answers, inbox, spending};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;
use windlass_kernel::*;
use windlass_store::{Fence, StoreError};

/// Reports taken in before the next batch: the inbox is looked at in between, however fast a stream is.
const REPORTS_GATHERED: usize = 64;
/// How often inputs left in the store by other processes are looked for.
pub(crate) const STORE_INBOX_EVERY: Duration = Duration::from_secs(1);
/// Steps of one batch; what the ladder wants beyond that comes in the next, so that no message can hold the loop.
const STEPS_PER_BATCH: usize = 1_000;
/// Time the rooms have to come back when the session is closed.
const CLOSING: Duration = Duration::from_secs(5);
/// How often it is looked whether the rooms are gone.
const LEAVING: Duration = Duration::from_millis(5);

/// One log, one loop, one writer.
pub struct Session {
    pub(crate) setup: Arc<Setup>,
    pub(crate) fence: Fence,
    pub(crate) state: State,
    pub(crate) briefing: Briefing,
    pub(crate) hands: Hands,
    pub(crate) feed: Feed,
    pub(crate) gate: Gate,
    pub(crate) inbox: mpsc::Receiver<Envelope>,
    pub(crate) reports: mpsc::Receiver<Report>,
    pub(crate) over: Arc<OnceLock<SendError>>,
    /// The ladder was stopped at its bound, and goes on at once.
    pub(crate) restless: bool,
    /// When inputs left in the store are looked for next.
    pub(crate) look_at: Instant,
}

impl Session {
    pub(crate) async fn run(mut self, mut steps: Vec<(Seq, Step)>) {
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
        let told = self.gate.settle().await;
        news.items.extend(told.into_iter().map(Arrival::known));
        self.record(news, false).await?;
        self.hands.cancel_all();
        let until = Instant::now() + CLOSING;
        while self.hands.are_busy() {
            // A room that has said its last word takes a moment to be gone.
            match tokio::time::timeout(LEAVING, self.reports.recv()).await {
                Ok(report) => report.into_iter().for_each(|report| news.take_in(report)),
                Err(_) if Instant::now() > until => break,
                Err(_) => {}
            }
            self.hands.reap_finished();
        }
        while let Ok(report) = self.reports.try_recv() {
            news.take_in(report);
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
            // A hook or a model that was called back has not said no.
            Event::Judged(judged) => return judged.review.as_ref().is_some_and(|review| review.allows.is_some()),
            Event::Asked { .. } => return false,
            _ => return true,
        };
        let plan = self.state.call(&finished.call).and_then(|call| call.plan.as_ref());
        let looked = plan.is_some_and(|plan| plan.on_crash != OnCrash::Unknown);
        finished.work == work && (finished.outcome != Outcome::Cancelled || !looked)
    }

    /// Applies what came in, decides if it is to, stores all of it in one append, and tells. Returns the steps to act on.
    pub(crate) async fn record(&mut self, news: &mut News, decide: bool) -> Result<Vec<(Seq, Step)>, StoreError> {
        let mut draft = Draft::new(self.fence, &self.state, self.setup.always_sync);
        draft.blobs.append(&mut news.blobs);
        let mut kept_rules = vec![];
        for arrival in news.items.drain(..) {
            match arrival {
                // Of a work gone by nobody wants to hear.
                Arrival::Delta(piece) if !self.state.in_flight().contains(&piece.work) => {}
                Arrival::Delta(piece) => draft.frames.extend(self.feed.hear(piece)),
                Arrival::Fact { work, event } => self.report(&mut draft, work, event),
                Arrival::Refused { input, reason } => {
                    self.taken_up(&mut draft, input, &Err(Rejected::Blocked { reason }));
                }
                Arrival::Wish(Wish { command, from_store, reply, told }) => {
                    let answer = self.wish(&mut draft, command, told, &mut kept_rules);
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
        self.setup.observe(&frames);
        for record in frames.iter().filter_map(Frame::record) {
            self.gate.began(&record.event);
            self.gate.notify(&record.event, self.fence.session, &self.state);
        }
        self.feed.tell(frames);
        for (reply, answer) in news.acks.drain(..) {
            let _ = reply.send(answer);
        }
        kept_rules.iter().for_each(|(rule, scope)| (self.setup.keep_rule)(rule, *scope));
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
                let broken = self.cache_break(work, &called);
                broken.into_iter().chain([Event::ModelCalled(Box::new(called))]).collect()
            }
            Step::Judge { call } => {
                let workspace = self.hands.workspace(&self.state);
                rooms::judge::judge(&self.setup, &workspace, &self.state, work, call).unwrap_or_default()
            }
            Step::RunTool { call } => rooms::tool::started(self.fence.session, &self.state, work, call),
            Step::Finish { end, checks } if !checks || !self.is_checked() => {
                vec![Event::TurnFinished { work, end: end.clone() }]
            }
            _ => vec![],
        }
    }

    /// Whether somebody looks at an answer before the turn ends with it.
    fn is_checked(&self) -> bool {
        let wants_schema = self.state.turn.as_ref().is_some_and(|turn| turn.output_schema.is_some());
        wants_schema || !self.setup.stop_checks.is_empty() || self.hands.wants_stop(&self.state)
    }

    fn cache_break(&self, work: Seq, called: &ModelCalled) -> Option<Event> {
        if called.role == ModelRole::Compaction {
            return None;
        }
        let cause = self.state.cache_break(called)?;
        let tokens = self.state.sent.as_ref().map_or(0, |sent| sent.tokens);
        Some(Event::CacheBroke(Box::new(CacheBroke { work, cause, tokens })))
    }

    /// What an answer's usage says of the provider's cache.
    fn cache_miss(&self, work: Seq, event: &Event) -> Option<Event> {
        let Event::ModelFinished { spent, .. } = event else { return None };
        // An answer whose tokens nobody counted says nothing of a cache.
        if spent.estimated {
            return None;
        }
        let missed = self.state.cache_miss(work, &spent.usage, (self.setup.world.now)())?;
        Some(Event::CacheBroke(Box::new(missed)))
    }

    fn report(&mut self, draft: &mut Draft, work: Seq, event: Event) {
        let broken = match &event {
            Event::ModelFailed { .. } | Event::ModelCancelled { .. } => self.feed.broken_off(work),
            _ => vec![],
        };
        if let Event::ToolFinished(finished) = &event {
            self.briefing.keep_media(&finished.blocks, &draft.blobs);
        }
        let missed = self.cache_miss(work, &event);
        // The verdict that it comes with did not count any more, and nobody must be asked for nothing.
        let is_stale = |call: &Call| call.phase != Phase::Asking { question: None };
        if matches!(&event, Event::Asked { call, .. } if self.state.call(call).is_none_or(is_stale)) {
            return;
        }
        for event in broken.into_iter().chain(missed).chain([event]) {
            draft.frames.extend(self.feed.settle(&event));
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

    fn wish(
        &mut self,
        draft: &mut Draft,
        command: Command,
        told: Option<String>,
        kept_rules: &mut Vec<(String, Scope)>,
    ) -> Result<Seq, Rejected> {
        let command = match command {
            Command::Answer(answer) => {
                let workspace = self.hands.workspace(&self.state);
                Command::Answer(answers::check(&self.setup, &workspace, &self.state, answer)?)
            }
            command => inbox::expand(&self.setup, command, told, &draft.blobs)?,
        };
        let event = self.state.accept(&command)?;
        let seq = draft.happened(&self.setup, &mut self.state, None, event);
        match command {
            Command::Prompt(prompt) => self.briefing.keep_media(&prompt.blocks, &draft.blobs),
            Command::Answer(answer) => {
                if matches!(answer.scope, Scope::Project | Scope::Always) {
                    kept_rules.extend(answer.rules().map(|rule| (rule.clone(), answer.scope)));
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
            Some(report) = self.reports.recv() => news.take_in(report),
            Some(passed) = self.gate.next() => self.passed(passed, news),
            _ = tokio::time::sleep_until(due) => {}
        }
        while let Ok(envelope) = self.inbox.try_recv() {
            self.open(Some(envelope), news);
        }
        for _ in 0..REPORTS_GATHERED {
            let Ok(report) = self.reports.try_recv() else { break };
            news.take_in(report);
        }
        // Looked at every time: a stream that never pauses must not keep the clock out.
        if due <= Instant::now() {
            self.look_around(news).await;
        }
        tokio::task::consume_budget().await;
    }

    /// Takes a wish in, or lets the hooks see it first.
    fn hear(&mut self, wish: Wish, news: &mut News) {
        if matches!(wish.command, Command::Interrupt { .. }) {
            self.gate.call_back();
        }
        match self.gate.wants(&wish.command) {
            true => self.gate.admit(wish, self.fence.session, &self.state),
            false => news.items.push(Arrival::Wish(wish)),
        }
    }

    /// A prompt that the hooks have seen goes on, or back to who sent it.
    fn passed(&self, passed: Passed, news: &mut News) {
        let Passed { wish, blocked, facts } = passed;
        news.items.extend(facts.into_iter().map(Arrival::known));
        let Some(reason) = blocked else { return news.items.push(Arrival::Wish(wish)) };
        match (wish.reply, wish.from_store) {
            (Some(reply), _) => news.acks.push((reply, Err(Rejected::Blocked { reason }))),
            (None, Some(input)) => news.items.push(Arrival::Refused { input, reason }),
            (None, None) => {}
        }
    }

    fn open(&mut self, envelope: Option<Envelope>, news: &mut News) {
        match envelope {
            Some(Envelope::Wish { command, blobs, reply }) => {
                news.blobs.extend(blobs);
                self.hear(Wish { command, from_store: None, reply: Some(reply), told: None }, news);
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
        let left = left.into_iter().filter(|input| !self.gate.holds(input.id)).collect::<Vec<_>>();
        for input in left {
            self.hear(Wish { command: input.command, from_store: Some(input.id), reply: None, told: None }, news);
        }
        news.items.extend(self.gate.heard().into_iter().map(Arrival::known));
        let seen = spending::news(&self.setup, self.fence.session, &self.state, self.state.profile.caps).await;
        // In front: the store was asked before what came in just now was known to it.
        news.items.splice(..0, seen.into_iter().map(Arrival::known));
    }
}
