//! The eye on the log: what every stored record must, and must not, come to. It keeps books of its own, from the
//! events alone, and holds the kernel's state against them.

use super::mutant::Brain;
use super::room::BROKEN_OFF;
use std::collections::{BTreeMap, BTreeSet};
use windlass_kernel::*;

pub struct Watch {
    brain: Brain,
    /// The fold of everything stored so far.
    pub state: State,
    /// Works that began and have neither reported their end nor died with a process.
    pub open: BTreeMap<Seq, Step>,
    called_back: BTreeSet<Seq>,
    calls: BTreeMap<CallId, Watched>,
    /// Prompts that were accepted, and those of them the model has not been shown.
    prompts: Vec<String>,
    unseen_prompts: usize,
    turn: TurnBooks,
    /// The newest model call, and whether it was called back.
    round: Seq,
    round_cancelled: bool,
    reopens: u32,
    pub counts: Counts,
}

/// One call, from its block on.
#[derive(Default)]
struct Watched {
    name: String,
    allowed: bool,
    denied: bool,
    closed: bool,
    runs: u32,
    /// Runs that a crash cut off.
    lost: bool,
    /// What the model must find as its result.
    result: Option<Vec<ContentBlock>>,
}

#[derive(Default)]
struct TurnBooks {
    opened_by: Option<Seq>,
    halted: bool,
    completed: u32,
    errors: u32,
    fatal: bool,
    stop_blocks: u32,
}

#[derive(Clone, Copy, Default)]
pub struct Counts {
    pub events: u64,
    pub crashes: u64,
    pub rounds: u64,
    pub tool_runs: u64,
    pub turns: u64,
    pub interrupts: u64,
    pub rejected: u64,
}

impl Counts {
    pub fn add(&mut self, other: &Counts) {
        self.events += other.events;
        self.crashes += other.crashes;
        self.rounds += other.rounds;
        self.tool_runs += other.tool_runs;
        self.turns += other.turns;
        self.interrupts += other.interrupts;
        self.rejected += other.rejected;
    }
}

/// The promise that was broken, in words.
type Seen = Result<(), String>;

impl Watch {
    pub fn new(brain: Brain) -> Watch {
        Watch {
            brain,
            state: State::default(),
            open: BTreeMap::new(),
            called_back: BTreeSet::new(),
            calls: BTreeMap::new(),
            prompts: vec![],
            unseen_prompts: 0,
            turn: TurnBooks::default(),
            round: Seq(0),
            round_cancelled: false,
            reopens: 0,
            counts: Counts::default(),
        }
    }

    /// Takes the next stored record.
    pub fn see(&mut self, record: &Record) -> Seen {
        self.counts.events += 1;
        let told = self.state.messages.len();
        let boundary = self.state.boundary;
        let ended = self.before(record)?;
        self.brain.apply(&mut self.state, record);
        self.turns(record, ended)?;
        if self.state.messages.len() < told {
            return Err("a message that was told has gone".into());
        }
        if self.state.boundary < boundary {
            return Err("the boundary moved back".into());
        }
        for message in &self.state.messages[told..] {
            self.belongs(message)?;
        }
        self.state.check()
    }

    /// Looks at `record` before it is applied, and keeps the books. True if it ends the turn.
    fn before(&mut self, record: &Record) -> Result<bool, String> {
        match &record.event {
            Event::Reopened { .. } => self.reopened(),
            Event::Prompted(prompt) => {
                self.prompts.push(text_of(&prompt.blocks));
                self.unseen_prompts += 1;
            }
            Event::Interrupted { .. } => {
                self.counts.interrupts += 1;
                self.turn.halted |= self.turn.opened_by.is_some();
            }
            Event::DeadlinePassed => self.turn.halted |= self.turn.opened_by.is_some(),
            Event::Began { step } => self.began(record.seq, step)?,
            Event::Judged(judged) => self.judged(judged),
            Event::Answered(answer) => self.answered(answer),
            Event::ToolFinished(done) if self.ends(done.work) => self.tool_finished(done),
            Event::StopBlocked { work, .. } if self.ends(*work) => self.turn.stop_blocks += 1,
            Event::Compacted { work, .. } | Event::CompactionFailed { work, .. } if self.ends(*work) => {
                self.reopens = 0
            }
            Event::TurnFinished { work, .. } => return Ok(self.ends(*work)),
            event => self.heard(event),
        }
        Ok(false)
    }

    /// The work is over with this report; false if it was over before.
    fn ends(&mut self, work: Seq) -> bool {
        self.open.remove(&work).is_some()
    }

    fn heard(&mut self, event: &Event) {
        match event {
            Event::BlockFinished { work, block: ContentBlock::ToolUse(tool_use), partial: false, .. }
                if self.open.contains_key(work) && !self.calls.contains_key(&tool_use.id) =>
            {
                let watched = Watched { name: tool_use.name.clone(), ..Watched::default() };
                self.calls.insert(tool_use.id.clone(), watched);
            }
            Event::ModelFinished { work, .. } if self.ends(*work) => {
                self.counts.rounds += 1;
                self.turn.completed += 1;
                self.turn.errors = 0;
                self.reopens = 0;
            }
            Event::ModelFailed { work, error, .. } if self.ends(*work) => {
                self.turn.errors += 1;
                self.turn.fatal |= !error.kind.is_worth_retrying();
            }
            Event::ModelCancelled { work, .. } if self.ends(*work) => self.round_cancelled = true,
            _ => {}
        }
    }

    fn reopened(&mut self) {
        self.counts.crashes += 1;
        let only_asks = self.open.is_empty() && self.state.asking().next().is_some();
        if !self.state.is_idle() && !only_asks {
            self.reopens += 1;
        }
        for (_, step) in std::mem::take(&mut self.open) {
            if let Step::RunTool { call } = step {
                self.watched(&call).lost = true;
            }
        }
    }

    fn watched(&mut self, call: &CallId) -> &mut Watched {
        self.calls.entry(call.clone()).or_default()
    }

    fn judged(&mut self, judged: &Judged) {
        if !self.ends(judged.work) {
            return;
        }
        let watched = self.watched(&judged.call);
        watched.allowed = judged.verdict == Verdict::Allow;
        watched.denied = matches!(judged.verdict, Verdict::Deny | Verdict::Invalid);
        if watched.denied {
            watched.result = Some(vec![ContentBlock::text(&judged.reason)]);
        }
    }

    fn answered(&mut self, answer: &Answered) {
        let watched = self.watched(&answer.call);
        match &answer.decision {
            Decision::Allow => watched.allowed = true,
            Decision::Deny { .. } => watched.denied = true,
            Decision::Words { text } => watched.result = Some(vec![ContentBlock::text(text)]),
        }
    }

    fn tool_finished(&mut self, done: &ToolFinished) {
        self.reopens = 0;
        self.watched(&done.call).result = Some(done.blocks.clone());
    }

    fn began(&mut self, work: Seq, step: &Step) -> Seen {
        match step {
            Step::CallModel => self.model_begins(work)?,
            Step::RunTool { call } => self.tool_begins(call)?,
            Step::Close { calls, why } => self.closes(calls, *why)?,
            Step::Cancel { work } => {
                if !self.open.contains_key(work) {
                    return Err(format!("work {work} is called back and is not under way"));
                }
                if !self.called_back.insert(*work) {
                    return Err(format!("work {work} is called back twice"));
                }
            }
            Step::Finish { end, checks } => self.finish_begins(end, *checks)?,
            Step::Judge { .. } | Step::Compact => {}
        }
        if !matches!(step, Step::Close { .. } | Step::Cancel { .. }) {
            self.open.insert(work, step.clone());
        }
        Ok(())
    }

    fn model_begins(&mut self, work: Seq) -> Seen {
        let (turn, profile) = (&self.turn, &self.state.profile);
        if turn.halted {
            return Err("a model call begins in a turn that was interrupted".into());
        }
        if turn.completed >= profile.max_turns {
            return Err(format!("a model call begins after {} of {} in one turn", turn.completed, profile.max_turns));
        }
        if turn.fatal || turn.errors >= profile.max_model_errors {
            return Err(format!("a model call begins after {} failures (fatal: {})", turn.errors, turn.fatal));
        }
        if self.reopens > profile.max_reopens {
            return Err(format!("a model call begins after {} crashes without progress", self.reopens));
        }
        if let Some((other, step)) = self.open.iter().next() {
            return Err(format!("a model call begins while {step:?} is under way as {other}"));
        }
        (self.round, self.round_cancelled, self.unseen_prompts) = (work, false, 0);
        Ok(())
    }

    fn tool_begins(&mut self, id: &CallId) -> Seen {
        self.counts.tool_runs += 1;
        let halted = self.turn.halted;
        let watched = self.watched(id);
        let (first, lost) = (watched.runs == 0, watched.lost);
        if watched.denied || !watched.allowed || watched.closed || watched.result.is_some() {
            return Err(format!("call {id} begins and is not allowed to"));
        }
        watched.runs += 1;
        watched.lost = false;
        let plan = self.state.call(id).and_then(|call| call.plan.clone()).unwrap_or_default();
        match plan.on_crash {
            _ if first => {}
            OnCrash::Unknown => return Err(format!("call {id} must not be repeated and begins a second time")),
            _ if !lost => return Err(format!("call {id} begins twice in one life")),
            // What lives on elsewhere is taken up at once, in no order and in any turn.
            OnCrash::Rejoin => return Ok(()),
            OnCrash::Repeat => {}
        }
        if halted {
            return Err(format!("call {id} begins in a turn that was interrupted"));
        }
        self.may_start(id)
    }

    /// Holds the start of call `id` against the profile's promise.
    fn may_start(&self, id: &CallId) -> Seen {
        let tools = &self.state.profile.tools;
        let round = self.state.turn.as_ref().and_then(|turn| turn.round.as_ref());
        let Some(round) = round else { return Err(format!("call {id} begins outside a round")) };
        let Some(place) = round.calls.iter().position(|call| call.id == *id) else {
            return Err(format!("call {id} begins and is not of this round"));
        };
        let (call, before) = (&round.calls[place], &round.calls[..place]);
        let running: Vec<_> = round.calls.iter().filter(|call| matches!(call.phase, Phase::Running { .. })).collect();
        if running.len() >= tools.max_parallel.max(1) as usize {
            return Err(format!("call {id} begins as number {} of {}", running.len() + 1, tools.max_parallel));
        }
        if round.aborted {
            return Err(format!("call {id} begins although a sibling failed"));
        }
        if round.ended == Some(Ended::Cut) && call.writes() {
            return Err(format!("writer {id} begins although its message was cut"));
        }
        let early = match tools.start {
            _ if round.ended.is_some() => false,
            ToolStart::MessageEnd => true,
            ToolStart::ReadersAtBlockEnd => call.writes(),
            ToolStart::BlockEnd => false,
        };
        if early {
            return Err(format!("call {id} begins before its message ended"));
        }
        let out_of_turn = match tools.order {
            ToolOrder::All => false,
            ToolOrder::Serial => !running.is_empty() || !before.iter().all(Call::is_done),
            ToolOrder::Partition if call.writes() => !running.is_empty() || !before.iter().all(Call::is_done),
            ToolOrder::Partition => before.iter().any(|call| call.writes() && !call.is_done()),
        };
        if out_of_turn { Err(format!("call {id} begins before calls it must wait for")) } else { Ok(()) }
    }

    fn closes(&mut self, calls: &[CallId], why: CloseReason) -> Seen {
        for id in calls {
            if self.open.values().any(|step| *step == Step::RunTool { call: id.clone() }) {
                return Err(format!("call {id} is closed while it runs"));
            }
            self.open.retain(|_, step| *step != Step::Judge { call: id.clone() });
            let watched = self.watched(id);
            let unknown = why == CloseReason::OutcomeUnknown;
            if unknown && !watched.lost {
                return Err(format!("the outcome of call {id} is called unknown, and it never ran"));
            }
            if !unknown && watched.lost && plan_of(watched).on_crash != OnCrash::Repeat {
                return Err(format!("call {id} is said not to have run, and it did"));
            }
            watched.closed = true;
            watched.result = Some(vec![ContentBlock::text(why.text())]);
        }
        Ok(())
    }

    fn finish_begins(&mut self, end: &End, checks: bool) -> Seen {
        let busy = |step: &&Step| !matches!(step, Step::Compact);
        if let Some(step) = self.open.values().find(busy) {
            return Err(format!("the turn finishes while {step:?} is under way"));
        }
        if checks && self.turn.stop_blocks >= self.state.profile.max_stop_blocks {
            return Err(format!("the stop checks are asked again after {} objections", self.turn.stop_blocks));
        }
        if *end == End::Done && self.turn.halted {
            return Err("an interrupted turn finishes as if nothing had been".into());
        }
        if matches!(end, End::CrashLoop { .. }) && self.reopens <= self.state.profile.max_reopens {
            return Err(format!("a crash loop is seen after {} crashes without progress", self.reopens));
        }
        Ok(())
    }

    /// A turn opens for a reason, ends exactly once, and never just goes away.
    fn turns(&mut self, record: &Record, ended: bool) -> Seen {
        let now = self.state.turn.as_ref().map(|turn| turn.opened_by);
        let before = self.turn.opened_by;
        if now == before {
            return if ended { Err("the turn's end is told and the turn goes on".into()) } else { Ok(()) };
        }
        if before.is_some() && !ended {
            return Err("a turn went away without having ended".into());
        }
        let halted = ended && (self.turn.halted);
        if now.is_some() && halted && self.unseen_prompts == 0 && interrupted(&self.state) {
            return Err("a turn opens by itself although the user interrupted".into());
        }
        if now.is_some_and(|opened_by| opened_by != record.seq) {
            return Err("a turn opens and names another event as its cause".into());
        }
        self.counts.turns += u64::from(ended);
        self.reopens = if ended { 0 } else { self.reopens };
        self.turn = TurnBooks { opened_by: now, ..TurnBooks::default() };
        Ok(())
    }

    /// Holds a message that was just closed against the round it must come from.
    fn belongs(&self, message: &Message) -> Seen {
        let tag = format!("w{}.", self.round);
        let strange = message.content.iter().find(|block| match block {
            _ if message.role == Role::User => false,
            ContentBlock::Text { text } => !text.is_empty() && !text.starts_with(&tag),
            ContentBlock::Thinking { thinking, .. } => !thinking.starts_with(&tag),
            ContentBlock::ToolUse(tool_use) => tool_use.input != serde_json::json!({ "of": self.round }),
            _ => true,
        });
        if let Some(block) = strange {
            return Err(format!("the message of round {} holds what another said: {block:?}", self.round));
        }
        if message.role == Role::Assistant && message.text().ends_with(BROKEN_OFF) && !self.round_cancelled {
            return Err(format!("broken-off text stands in the message of round {}", self.round));
        }
        Ok(())
    }

    /// What must hold once everything has come to rest.
    pub fn at_rest(&self) -> Seen {
        if !self.state.is_idle() || !self.open.is_empty() {
            return Err(format!("the session never comes to rest: {:?} under way", self.open));
        }
        let told = |text: &str| self.state.messages.iter().filter(|message| message.text() == text).count();
        if let Some(prompt) = self.prompts.iter().find(|prompt| told(prompt) != 1) {
            return Err(format!("the prompt {prompt:?} is told {} times", told(prompt)));
        }
        let mut results: BTreeMap<&CallId, Vec<&ToolResult>> = BTreeMap::new();
        for message in &self.state.messages {
            for block in &message.content {
                if let ContentBlock::ToolResult(result) = block {
                    results.entry(&result.tool_use_id).or_default().push(result);
                }
            }
        }
        // Those that ran first: what ran and is told nowhere is the worst.
        let mut calls: Vec<_> = self.calls.iter().collect();
        calls.sort_by_key(|(_, watched)| std::cmp::Reverse(watched.runs));
        for (id, watched) in calls {
            let [result] = results.get(id).map_or(&[][..], |found| found) else {
                return Err(format!("call {id}, which ran {} times, is in no message", watched.runs));
            };
            if watched.result.as_ref().is_some_and(|expected| *expected != result.content) {
                return Err(format!(
                    "call {id} came to {:?}, and the model is told {:?}",
                    watched.result, result.content
                ));
            }
        }
        Ok(())
    }

    /// Whether the model has been told that call `id` did not run.
    pub fn is_told_not_run(&self, id: &CallId) -> bool {
        self.state.messages.iter().flat_map(|message| &message.content).any(|block| match block {
            ContentBlock::ToolResult(result) => {
                result.tool_use_id == *id && text_of(&result.content).starts_with("Not run")
            }
            _ => false,
        })
    }
}

fn plan_of(watched: &Watched) -> CallPlan {
    super::room::plan(&watched.name)
}

fn interrupted(state: &State) -> bool {
    state.last_turn.as_ref().is_some_and(|turn| turn.halt == Some(End::Interrupted))
}
