//! The runtime as it must behave, with chance for a clock: batches, one append each, rooms, and a process that dies
//! at any instant. What tools did to the world outlives the process.

use super::cache::Provider;
use super::habits::{Habits, Judging, MODELS, profile};
use super::mutant::Brain;
use super::random::Random;
use super::request::{Outline, missed};
use super::room::{self, Act, Kind, Room, Speech};
use super::watch::Watch;
use std::collections::BTreeMap;
use uuid::Uuid;
use windlass_kernel::*;

/// Steps one batch may lead to: many calls and a new turn behind an old one, but no more.
const STEPS_PER_BATCH: usize = 60;
/// Moves until a calm world must be at rest.
const CALM_MOVES: usize = 3_000;
/// Prefixes of each log that are folded once more at the end.
const MARKS: usize = 2;

pub struct World {
    pub random: Random,
    pub habits: Habits,
    brain: Brain,
    /// What the process believes; thrown away with it.
    pub state: State,
    /// What is stored.
    pub log: Vec<Record>,
    pub watch: Watch,
    rooms: BTreeMap<Seq, Room>,
    /// Rooms nobody waits for any more, that go on all the same.
    ghosts: Vec<Room>,
    /// Times each writing call had its effect.
    effects: BTreeMap<CallId, u32>,
    provider: Provider,
    outline: Outline,
    marks: Vec<State>,
    epoch: u64,
    pub next_input: u64,
    next_call: u64,
}

/// What comes in for a batch.
pub enum News {
    Wish(Command),
    Fact(Event),
}

/// Nobody is sure of it until it is stored: a crash in between is told apart from a broken promise.
enum Stop {
    Broken(String),
    Died,
}

type Outcome<T = ()> = Result<T, Stop>;

impl From<String> for Stop {
    fn from(what: String) -> Stop {
        Stop::Broken(what)
    }
}

impl World {
    pub fn new(seed: u64, brain: Brain, named: Option<&str>) -> World {
        let mut random = Random::new(seed);
        let habits = Habits::draw(&mut random);
        World {
            random,
            habits,
            brain,
            state: State::default(),
            log: vec![],
            watch: Watch::new(brain),
            rooms: BTreeMap::new(),
            ghosts: vec![],
            effects: BTreeMap::new(),
            provider: Provider::default(),
            outline: Outline::default(),
            marks: vec![],
            epoch: 1,
            next_input: 0,
            next_call: 0,
        }
        .with_profile(named)
    }

    fn with_profile(mut self, named: Option<&str>) -> World {
        let mut profile = profile(&mut self.random, named);
        self.brain.bend(&mut profile);
        self.state.profile = profile;
        self
    }

    /// Lives through the whole story; the error is the promise that was broken, in words.
    pub fn live(&mut self) -> Result<(), String> {
        let opened = Event::Opened {
            parent: None,
            forked_from: None,
            cwd: "/w".into(),
            agent: "build".into(),
            model: MODELS[0].into(),
            mode: PermissionMode::Default,
            profile: Box::new(std::mem::take(&mut self.state.profile)),
        };
        self.record(vec![News::Fact(opened)])?;
        for _ in 0..self.habits.ticks {
            self.tick()?;
        }
        self.habits.calm();
        self.calm_down()?;
        let prompt = self.prompt();
        self.record(vec![News::Wish(prompt)])?;
        self.calm_down()?;
        if let Some(end @ (End::Interrupted | End::CrashLoop { .. } | End::ModelError { .. })) = &self.state.last_end {
            return Err(format!("a prompt in a calm world ends its turn with {end:?}"));
        }
        self.watch.at_rest()?;
        self.check_folds()?;
        self.check_effects()
    }

    fn tick(&mut self) -> Result<(), String> {
        let mut news = Vec::new();
        for _ in 0..1 + self.random.below(3) {
            match self.random.one_in(self.habits.outside_in) || !self.anything_moves() {
                true => news.push(News::Wish(self.wish())),
                false => self.overhear(&mut news),
            }
        }
        if self.state.turn.is_some() && self.random.one_in(self.habits.interrupt_in * 40) {
            news.push(News::Fact(Event::DeadlinePassed));
        }
        if self.state.turn.is_some() && self.random.one_in(30) {
            news.push(News::Fact(self.spending()));
        }
        self.outline.drift(&mut self.random, self.habits.drift_in);
        self.pass_time(&mut news);
        self.record(news)
    }

    /// One room, or a ghost, does what it does next.
    fn overhear(&mut self, news: &mut Vec<News>) {
        let movers: Vec<Seq> = self.rooms.values().filter(|room| room.can_move()).map(|room| room.work).collect();
        let at = self.random.below(movers.len() + self.ghosts.len());
        let room = match movers.get(at) {
            Some(work) => self.rooms.get_mut(work),
            None => self.ghosts.get_mut(at - movers.len()),
        };
        match room.and_then(|room| if room.can_move() { room.script.pop_front() } else { None }) {
            Some(Act::Report(events)) => news.extend(events.into_iter().map(News::Fact)),
            Some(Act::Effect { call, is_child }) => self.effect(&call, is_child),
            Some(Act::Hang) | None => {}
        }
        self.ghosts.retain(Room::can_move);
    }

    fn anything_moves(&self) -> bool {
        !self.ghosts.is_empty() || self.rooms.values().any(Room::can_move)
    }

    /// Rooms that were called back and stay silent are answered for, in time.
    fn pass_time(&mut self, news: &mut Vec<News>) {
        for room in self.rooms.values_mut() {
            room.grace = room.grace.map(|left| left.saturating_sub(1));
            if room.grace == Some(0) && self.brain.answers_for_the_deaf() {
                news.push(News::Fact(room.stand_in()));
            }
        }
    }

    fn effect(&mut self, call: &CallId, is_child: bool) {
        let times = self.effects.entry(call.clone()).or_default();
        *times = if is_child { 1 } else { *times + 1 };
    }

    pub fn record(&mut self, news: Vec<News>) -> Result<(), String> {
        let mut outcome = self.batch(news);
        while let Err(Stop::Died) = outcome {
            outcome = self.reopen();
        }
        match outcome {
            Err(Stop::Broken(what)) => Err(what),
            _ => Ok(()),
        }
    }

    /// Facts, and every step they lead to: one append; then told; then acted on.
    fn batch(&mut self, news: Vec<News>) -> Outcome {
        let mut batch = Vec::new();
        for news in news {
            let event = match news {
                News::Fact(event) => event,
                News::Wish(command) => match self.state.accept(&command) {
                    Ok(event) => event,
                    Err(_) => {
                        self.watch.counts.rejected += 1;
                        continue;
                    }
                },
            };
            if let Some(broke) = missed(&self.state, &event) {
                self.happened(&mut batch, Some(broke.work), Event::CacheBroke(Box::new(broke)));
            }
            self.happened(&mut batch, work_of(&event), event);
            if self.habits.eager {
                self.decide(&mut batch)?;
            }
        }
        self.decide(&mut batch)?;
        if batch.is_empty() {
            return Ok(());
        }
        self.maybe_die()?;
        self.commit(&batch)?;
        self.maybe_die()?;
        self.act(&batch)
    }

    fn happened(&mut self, batch: &mut Vec<Record>, cause: Option<Seq>, event: Event) -> Seq {
        let seq = self.state.head.next();
        let record = Record {
            v: SCHEMA_VERSION,
            tenant: "local".into(),
            session: SessionId(Uuid::nil()),
            seq,
            id: EventId(Uuid::from_u64_pair(self.epoch, seq.0)),
            epoch: self.epoch,
            at: 1_000 + seq.0,
            cause,
            event,
        };
        self.brain.apply(&mut self.state, &record);
        batch.push(record);
        seq
    }

    fn decide(&mut self, batch: &mut Vec<Record>) -> Outcome {
        for _ in 0..STEPS_PER_BATCH {
            let Some(step) = self.brain.next_step(&self.state) else { return Ok(()) };
            let cause = batch.last().map(|record| record.seq);
            let work = self.happened(batch, cause, Event::Began { step: step.clone() });
            for event in self.prelude(work, &step) {
                self.happened(batch, Some(work), event);
            }
        }
        // What was never stored is still worth seeing in the story.
        self.log.append(batch);
        Err(Stop::Broken(format!("the ladder does not come to rest within {STEPS_PER_BATCH} steps")))
    }

    /// What is known of a step the moment it begins.
    fn prelude(&mut self, work: Seq, step: &Step) -> Vec<Event> {
        let at_once = match self.habits.judging {
            Judging::AtOnce => true,
            Judging::InRoom => false,
            Judging::Either => self.random.coin(),
        };
        match step {
            Step::Judge { call } if at_once => match self.state.call(call) {
                Some(call) => room::verdict(&mut self.random, &self.habits, work, call),
                None => vec![],
            },
            Step::Finish { end, checks: false } => vec![Event::TurnFinished { work, end: end.clone() }],
            Step::CallModel => self.outline.goes_out(&self.state, &self.habits, work, ModelRole::Main),
            Step::Compact => self.outline.goes_out(&self.state, &self.habits, work, ModelRole::Compaction),
            _ => vec![],
        }
    }

    fn maybe_die(&mut self) -> Outcome {
        // A session that was never stored is made anew: there is nothing to take up.
        if self.log.is_empty() || self.habits.crashes_left == 0 || !self.random.one_in(self.habits.crash_in) {
            return Ok(());
        }
        self.habits.crashes_left -= 1;
        Err(Stop::Died)
    }

    fn commit(&mut self, batch: &[Record]) -> Outcome {
        for record in batch {
            self.log.push(record.clone());
            self.watch.see(record)?;
            self.check_not_run(&record.event)?;
        }
        if self.marks.len() < MARKS && self.random.one_in(20) {
            self.marks.push(self.watch.state.clone());
        }
        Ok(())
    }

    /// What the model is told never ran must not have changed anything.
    fn check_not_run(&self, event: &Event) -> Outcome {
        let Event::Began { step: Step::Close { calls, why } } = event else { return Ok(()) };
        let acted = calls.iter().find(|call| *why != CloseReason::OutcomeUnknown && self.effects.contains_key(*call));
        match acted {
            Some(call) if !reads(&self.state, call) => {
                Err(Stop::Broken(format!("call {call} is said not to have run, and it had its effect")))
            }
            _ => Ok(()),
        }
    }

    fn act(&mut self, batch: &[Record]) -> Outcome {
        for record in batch {
            if let Event::Began { step } = &record.event {
                self.begin(record.seq, step);
            }
        }
        self.reap();
        let wanted = self.state.in_flight();
        if let Some(work) = wanted.iter().find(|work| !self.rooms.contains_key(work)) {
            return Err(Stop::Broken(format!("work {work} is in flight and no room does it")));
        }
        let waits = self.state.asking().next().is_some() || self.state.paused().is_some();
        if wanted.is_empty() && !self.state.is_idle() && !waits {
            return Err(Stop::Broken("the session waits, and nothing and nobody is there to wait for".into()));
        }
        Ok(())
    }

    fn begin(&mut self, work: Seq, step: &Step) {
        if let Step::Cancel { work } = step {
            if let Some(room) = self.rooms.get_mut(work) {
                room.call_back(&mut self.random);
            }
            return;
        }
        if !self.state.in_flight().contains(&work) {
            return;
        }
        let (random, habits, state) = (&mut self.random, &self.habits, &self.state);
        let (kind, script) = match step {
            Step::CallModel => {
                let used_ids = state.call_ids.iter().cloned().collect();
                let by = state.speaking_model().into();
                let usage = self.provider.take(state, habits.scale, random.one_in(habits.forgets_in));
                let speech = Speech { work, habits, next_call: &mut self.next_call, used_ids, by, usage };
                (Kind::Model, speech.script(random))
            }
            Step::Judge { call } => {
                let Some(call) = state.call(call) else { return };
                let script = match random.one_in(habits.hang_in) {
                    true => Act::Hang,
                    false => Act::Report(room::verdict(random, habits, work, call)),
                };
                (Kind::Judge, [script].into())
            }
            Step::RunTool { call } => {
                let Some(call) = state.call(call) else { return };
                (Kind::Tool { writes: call.writes() }, room::tool(random, habits, state, work, call))
            }
            Step::Compact => (Kind::Compact, room::compaction(random, habits, state, work)),
            Step::Finish { .. } => (Kind::Finish, room::checks(random, habits, state, work)),
            Step::Close { .. } | Step::Cancel { .. } => return,
            Step::Snip { .. } | Step::SwitchModel { .. } | Step::Pause { .. } => return,
        };
        let deaf = random.one_in(habits.deaf_in);
        self.rooms.insert(work, Room { work, kind, script, deaf, grace: None });
    }

    /// Lets go of rooms nobody waits for; the deaf go on, unheard.
    fn reap(&mut self) {
        let wanted = self.state.in_flight();
        let gone: Vec<Seq> = self.rooms.keys().filter(|work| !wanted.contains(work)).copied().collect();
        for work in gone {
            self.ghosts.extend(self.rooms.remove(&work).filter(|room| room.deaf && room.can_move()));
        }
    }

    /// The process died: what is stored is all there is. Tools it had started may still act.
    fn reopen(&mut self) -> Outcome {
        let rooms = std::mem::take(&mut self.rooms).into_values().chain(self.ghosts.drain(..));
        let orphans: Vec<_> = rooms.flat_map(|room| room.script).collect();
        for act in orphans {
            if let Act::Effect { call, is_child } = act
                && self.random.one_in(3)
            {
                self.effect(&call, is_child);
            }
        }
        self.state = self.brain.fold(&self.log);
        if self.state != self.watch.state {
            return Err(Stop::Broken("the fold of the log is not the state it was".into()));
        }
        if self.random.one_in(10) {
            self.state = from_snapshot(&self.state)?;
        }
        self.epoch += 1;
        self.batch(vec![News::Fact(Event::Reopened { worker: "w".into() })])
    }

    /// Nothing breaks any more, questions are answered: everything must come to rest.
    fn calm_down(&mut self) -> Result<(), String> {
        for _ in 0..CALM_MOVES {
            let mut news = Vec::new();
            let question = self.state.asking().next().map(|(call, _)| call.id.clone());
            if let Some(call) = question {
                news.push(News::Wish(self.answer(&call)));
            } else if self.state.paused().is_some() {
                news.push(News::Wish(self.raise_caps()));
            } else if self.anything_moves() {
                self.overhear(&mut news);
            } else if self.rooms.is_empty() {
                break;
            } else if self.rooms.values().all(|room| room.grace.is_none()) {
                // Only what hangs is left: an interrupt must be enough to be rid of it.
                news.push(News::Wish(Command::Interrupt { by: "calm".into() }));
            }
            self.pass_time(&mut news);
            self.record(news)?;
        }
        if self.state.is_idle() {
            Ok(())
        } else {
            Err(format!("the session never comes to rest: {:?}", self.watch.open))
        }
    }

    fn check_folds(&self) -> Result<(), String> {
        for mark in self.marks.iter().chain([&self.watch.state]) {
            let prefix = self.log.iter().take_while(|record| record.seq <= mark.head);
            let mut folded = State::default();
            prefix.for_each(|record| self.brain.apply(&mut folded, record));
            if folded != *mark {
                return Err(format!("the fold of the log up to {} is not the state it was", mark.head));
            }
        }
        Ok(())
    }

    fn check_effects(&self) -> Result<(), String> {
        for (call, times) in self.effects.iter().filter(|(call, _)| !reads(&self.state, call)) {
            if *times > 1 {
                return Err(format!("call {call} had its effect {times} times"));
            }
            if self.watch.is_told_not_run(call) {
                return Err(format!("call {call} had its effect and the model is told that it did not run"));
            }
        }
        Ok(())
    }
}

/// The state as a snapshot would bring it back.
fn from_snapshot(state: &State) -> Result<State, String> {
    let told = serde_json::to_vec(state).map_err(|error| format!("the state cannot be written: {error}"))?;
    let back = serde_json::from_slice(&told).map_err(|error| format!("the state cannot be read back: {error}"))?;
    if back == *state { Ok(back) } else { Err("the state does not come back from a snapshot as it was".into()) }
}

/// A call that is known only to look.
fn reads(state: &State, id: &CallId) -> bool {
    let uses = state.messages.iter().flat_map(|message| &message.content);
    let mut told = uses.filter_map(|block| match block {
        ContentBlock::ToolUse(tool_use) if tool_use.id == *id => Some(tool_use.name.as_str()),
        _ => None,
    });
    let open = state.call(id).map(|call| call.name.as_str());
    open.or(told.next_back()).is_some_and(|name| room::plan(name).access == Access::Read)
}

/// The work a report is of.
pub fn work_of(event: &Event) -> Option<Seq> {
    match event {
        Event::BlockFinished { work, .. }
        | Event::ModelFinished { work, .. }
        | Event::ModelFailed { work, .. }
        | Event::ModelCancelled { work, .. }
        | Event::Compacted { work, .. }
        | Event::CompactionFailed { work, .. }
        | Event::StopBlocked { work, .. }
        | Event::TurnFinished { work, .. } => Some(*work),
        Event::ModelCalled(called) => Some(called.work),
        Event::Judged(judged) => Some(judged.work),
        Event::ToolStarted(started) => Some(started.work),
        Event::ToolFinished(done) => Some(done.work),
        _ => None,
    }
}
