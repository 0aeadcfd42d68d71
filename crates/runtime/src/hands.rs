//! Who does what: one room per work, owned here, called back when its work is no longer wanted.

use crate::briefing::Briefing;
use crate::report::{Report, Reporter};
use crate::{Setup, rooms};
use futures_util::FutureExt;
use std::any::Any;
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use windlass_kernel::*;
use windlass_tools::{Root, Workspace};

/// Time a room has, once called back, before it is answered for. A tool's own way out takes at most half of it.
const GRACE: Duration = Duration::from_secs(5);

pub(crate) struct Hands {
    setup: Arc<Setup>,
    session: SessionId,
    reports: mpsc::Sender<Report>,
    workspace: Option<Arc<Workspace>>,
    works: BTreeMap<Seq, Hand>,
    /// Rooms whose report is in and who are tidying up.
    leaving: Vec<Hand>,
}

struct Hand {
    room: AbortOnDropHandle<()>,
    cancel: CancellationToken,
    /// When it will be answered for.
    overdue_at: Option<Instant>,
}

impl Hands {
    pub fn new(setup: Arc<Setup>, session: SessionId, reports: mpsc::Sender<Report>) -> Hands {
        Hands { setup, session, reports, workspace: None, works: BTreeMap::new(), leaving: vec![] }
    }

    /// Where the session works; the same for all its calls.
    pub fn workspace(&mut self, state: &State) -> Arc<Workspace> {
        let make = || {
            Arc::new(Workspace {
                session: self.session,
                cwd: state.cwd.clone().into(),
                root: Arc::new(Root::new(&state.cwd)),
                scratch: self.setup.scratch.join(self.session.to_string()),
                env: self.setup.env.clone(),
                wall: self.setup.wall.clone(),
                secrets: self.setup.secrets.clone(),
            })
        };
        self.workspace.get_or_insert_with(make).clone()
    }

    /// Lets a room do `step`, unless it was over the moment it began.
    pub fn begin(&mut self, work: Seq, step: &Step, state: &State, briefing: &mut Briefing) {
        if let Step::Cancel { work } = step {
            self.call_back(*work);
            return;
        }
        if !state.in_flight().contains(&work) {
            return;
        }
        let cancel = CancellationToken::new();
        let reporter = Reporter { work, to: self.reports.clone() };
        let room = match step {
            Step::CallModel => {
                let room = rooms::model::speak(briefing.speech(state), cancel.clone(), reporter.clone());
                tokio::spawn(attended(room, reporter, step.clone()))
            }
            Step::Compact => {
                let hooks = rooms::compact::Asked::of(&self.setup, self.session, state);
                let room = rooms::compact::compact(briefing.summary(state), hooks, cancel.clone(), reporter.clone());
                tokio::spawn(attended(room, reporter, step.clone()))
            }
            Step::RunTool { call } => {
                let workspace = self.workspace(state);
                let errand = rooms::tool::errand(&self.setup, workspace, state, call);
                let room = rooms::tool::run(errand, cancel.clone(), reporter.clone());
                tokio::spawn(attended(room, reporter, step.clone()))
            }
            Step::Finish { .. } => {
                let (setup, token, to) = (self.setup.clone(), cancel.clone(), reporter.clone());
                let room = rooms::finish::check(setup, self.session, state.clone(), token, to);
                tokio::spawn(attended(room, reporter, step.clone()))
            }
            // Most calls are judged in their own batch, and then they are not in flight.
            Step::Judge { call } => {
                let (workspace, reviewer) = (self.workspace(state), briefing.reviewer(state));
                let (setup, state, call) = (self.setup.clone(), state.clone(), call.clone());
                let case = rooms::judge::Case { setup, workspace, state, call, reviewer };
                let room = rooms::judge::deliberate(case, cancel.clone(), reporter.clone());
                tokio::spawn(attended(room, reporter, step.clone()))
            }
            // Closed and cancelled without a room.
            Step::Close { .. } | Step::Cancel { .. } => return,
            Step::Snip { .. } | Step::SwitchModel { .. } | Step::Pause { .. } => return,
        };
        self.works.insert(work, Hand::new(room, cancel));
    }

    /// Whether a hook wants to hear that a turn is about to end.
    pub fn wants_stop(&self, state: &State) -> bool {
        let event = rooms::finish::stop_event(state);
        self.setup.hooking.as_ref().is_some_and(|hooking| hooking.wants(event, &state.agent))
    }

    fn call_back(&mut self, work: Seq) {
        if let Some(hand) = self.works.get_mut(&work) {
            hand.cancel.cancel();
            hand.overdue_at = Some(Instant::now() + GRACE);
        }
    }

    /// Lets go of every room whose work is not wanted any more.
    pub fn reap(&mut self, state: &State) {
        self.leaving.retain(|hand| !hand.room.is_finished() && hand.overdue_at.is_some_and(|at| at > Instant::now()));
        if self.works.is_empty() {
            return;
        }
        let wanted = state.in_flight();
        let gone: Vec<_> = self.works.keys().filter(|work| !wanted.contains(work)).copied().collect();
        for work in gone {
            self.call_back(work);
            self.leaving.extend(self.works.remove(&work));
        }
    }

    /// Calls every room back, and leaves it to them to report.
    pub fn cancel_all(&mut self) {
        self.works.values().for_each(|hand| hand.cancel.cancel());
    }

    pub fn are_busy(&self) -> bool {
        !self.works.is_empty()
    }

    /// Lets go of rooms that have reported and left.
    pub fn reap_finished(&mut self) {
        self.works.retain(|_, hand| !hand.room.is_finished());
    }

    /// Calls every room back and waits until all are gone.
    pub async fn call_all_back(&mut self) {
        let hands = std::mem::take(&mut self.works).into_values().chain(self.leaving.drain(..));
        let hands: Vec<_> = hands.inspect(|hand| hand.cancel.cancel()).collect();
        let until = Instant::now() + GRACE;
        for hand in hands {
            let _ = tokio::time::timeout_at(until, hand.room).await;
        }
    }

    /// When something will be overdue: a room called back, or the turn itself.
    pub fn deadline(&self, state: &State) -> Option<Instant> {
        let rooms = self.works.values().filter_map(|hand| hand.overdue_at).min();
        let turn = self.turn_left_ms(state).map(|left| Instant::now() + Duration::from_millis(left));
        rooms.into_iter().chain(turn).min()
    }

    fn turn_left_ms(&self, state: &State) -> Option<u64> {
        let turn = state.turn.as_ref().filter(|turn| turn.halt.is_none())?;
        let until = turn.opened_at.saturating_add(state.profile.turn_timeout_ms?);
        Some(until.saturating_sub((self.setup.world.now)()))
    }

    /// What is to be said for rooms that do not answer, and for a turn whose time is over.
    pub fn overdue(&mut self, state: &State) -> Vec<(Seq, Event)> {
        let now = Instant::now();
        let mut events = vec![];
        if self.turn_left_ms(state) == Some(0) {
            events.push((Seq(0), Event::DeadlinePassed));
        }
        let silent = self.works.iter().filter(|(_, hand)| hand.overdue_at.is_some_and(|at| at <= now));
        events.extend(silent.filter_map(|(work, _)| Some((*work, stand_in(state, *work)?))));
        events
    }
}

impl Hand {
    fn new(room: JoinHandle<()>, cancel: CancellationToken) -> Hand {
        Hand { room: AbortOnDropHandle::new(room), cancel, overdue_at: None }
    }
}

/// The report of a room that was called back and stays silent.
fn stand_in(state: &State, work: Seq) -> Option<Event> {
    if state.compacting.is_some_and(|task| task.work == work) {
        return Some(Event::CompactionFailed {
            work,
            message: "called back, and did not answer".into(),
            error: None,
            spent: None,
        });
    }
    let turn = state.turn.as_ref()?;
    if turn.finishing.as_ref().is_some_and(|finishing| finishing.work == work) {
        return Some(Event::TurnFinished { work, end: End::Interrupted });
    }
    let round = turn.round.as_ref()?;
    if round.work == work {
        return Some(Event::ModelCancelled { work, spent: Spent::default() });
    }
    let running = |call: &&Call| matches!(call.phase, Phase::Running { work: running, .. } if running == work);
    let call = round.calls.iter().find(running)?;
    let (outcome, text) = match call.plan.as_ref().map(|plan| plan.on_crash) {
        Some(OnCrash::Repeat) => (Outcome::Cancelled, "Cancelled."),
        _ => (Outcome::Unknown, DEAF),
    };
    Some(rooms::tool::ended(work, call.id.clone(), outcome, text))
}

/// What the model is told of a call that may have done something and does not answer.
const DEAF: &str = "Outcome unknown: the call was cancelled and did not answer. It may have had its effect, in whole or \
     in part. Look at what is there before trying again.";

/// Does a room's work; if the room panics, reports that in its place. A panic is a bug of a library or of ours, and no
/// reason to leave a session waiting for ever.
async fn attended(room: impl Future<Output = ()>, reporter: Reporter, step: Step) {
    let Err(panic) = AssertUnwindSafe(room).catch_unwind().await else { return };
    let work = reporter.work;
    let message = format!("panicked: {}", panic_text(&*panic));
    let event = match step {
        Step::CallModel => {
            let message = format!("the model's client {message}");
            let error = ModelFailure { kind: FailureKind::Invalid, message, status: None, retry_after_ms: None };
            Event::ModelFailed { work, error, spent: Spent::default() }
        }
        Step::RunTool { call } => rooms::tool::ended(work, call, Outcome::Error, &format!("the tool {message}")),
        Step::Judge { call } => rooms::judge::invalid(work, &call, format!("judging the call {message}")),
        // A check that panics has no objection to make.
        Step::Finish { end, .. } => Event::TurnFinished { work, end },
        _ => Event::CompactionFailed { work, message, error: None, spent: None },
    };
    reporter.fact(event).await;
}

pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a word")
}
