//! The eye on the log: what every stored record must, and must not, come to. It keeps books of its own, from the
//! events alone, and holds the kernel's state against them.

use super::cache::CacheBooks;
use super::counts::Counts;
use super::mutant::Brain;
use super::purse::Purse;
use super::room::BROKEN_OFF;
use super::start::may_start;
use super::watched::{Watched, plan_of};
use super::weather::{Weather, only_left_out};
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
    weather: Weather,
    purse: Purse,
    cache: CacheBooks,
    /// Whether each input that the model has not been shown wants its answer by a schema.
    wants: Vec<bool>,
    pub counts: Counts,
}

#[derive(Default)]
struct TurnBooks {
    opened_by: Option<Seq>,
    halted: bool,
    completed: u32,
    stop_blocks: u32,
    repairs: u32,
    wants: bool,
}

/// The promise that was broken, in words.
pub type Seen = Result<(), String>;

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
            weather: Weather::default(),
            purse: Purse::default(),
            cache: CacheBooks::default(),
            wants: vec![],
            counts: Counts::default(),
        }
    }

    /// Takes the next stored record.
    pub fn see(&mut self, record: &Record) -> Seen {
        self.counts.events += 1;
        let told = self.state.messages.len();
        let boundary = self.state.boundary;
        let ended = self.before(record)?;
        let snipped = match &record.event {
            Event::Began { step: Step::Snip { calls } } => Some((self.state.messages.clone(), calls)),
            _ => None,
        };
        self.brain.apply(&mut self.state, record);
        if let Some((before, calls)) = &snipped {
            only_left_out(before, &self.state.messages, calls)?;
        }
        if snipped.is_some() || self.state.boundary != boundary {
            self.cache.messages_were_cut();
        }
        if self.state.boundary != boundary {
            self.weather.messages_were_cut();
        }
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
                self.wants.push(prompt.output_schema.is_some());
            }
            Event::Opened { model, .. } => self.weather.set_model(model),
            Event::Configured(change) => {
                change.model.iter().for_each(|model| self.weather.set_model(model));
                if change.mode.is_some_and(|mode| mode != self.state.mode) {
                    self.judgements_lapse();
                }
            }
            Event::ToolsChanged { .. } => self.judgements_lapse(),
            Event::SpendingSeen { scope, spent } => self.purse.seen(*scope, *spent),
            Event::Interrupted { .. } => {
                self.counts.interrupts += 1;
                self.turn.halted |= self.turn.opened_by.is_some();
                // What the model has not seen is not asked again.
                if self.weather.begun() == 0 {
                    self.wants.clear();
                }
            }
            Event::DeadlinePassed => self.turn.halted |= self.turn.opened_by.is_some(),
            Event::Began { step } => self.began(record.seq, step)?,
            Event::Judged(judged) => self.judged(judged),
            Event::Answered(answer) => self.answered(answer),
            Event::ToolFinished(done) if self.ends(done.work) => self.tool_finished(done),
            Event::StopBlocked { work, repair, .. } if self.ends(*work) => {
                self.turn.repairs += u32::from(*repair);
                self.turn.stop_blocks += u32::from(!*repair);
            }
            Event::Compacted { work, spent, .. } if self.ends(*work) => {
                self.purse.spend(spent);
                self.reopens = 0;
            }
            Event::CompactionFailed { work, .. } if self.ends(*work) => self.reopens = 0,
            Event::TurnFinished { work, .. } => return Ok(self.ends(*work)),
            event => self.heard(event)?,
        }
        Ok(false)
    }

    /// The work is over with this report; false if it was over before.
    fn ends(&mut self, work: Seq) -> bool {
        self.open.remove(&work).is_some()
    }

    fn heard(&mut self, event: &Event) -> Seen {
        match event {
            Event::ModelCalled(called) => {
                self.cache.called(called);
                self.weather.called(called)?;
            }
            Event::CacheBroke(broke) => {
                self.counts.cache_breaks += 1;
                self.cache.broke(broke)?;
            }
            Event::BlockFinished { work, block: ContentBlock::ToolUse(tool_use), partial: false, .. }
                if self.open.contains_key(work) && !self.calls.contains_key(&tool_use.id) =>
            {
                let watched = Watched { name: tool_use.name.clone(), ..Watched::default() };
                self.calls.insert(tool_use.id.clone(), watched);
            }
            Event::ModelFinished { work, stop, spent, .. } if self.ends(*work) => {
                self.counts.rounds += 1;
                self.turn.completed += 1;
                self.reopens = 0;
                self.weather.answered(*stop, &spent.usage);
                self.purse.spend(spent);
                self.cache.ended(*work, Some(&spent.usage))?;
            }
            Event::ModelFailed { work, error, spent } if self.ends(*work) => {
                self.weather.failed(error);
                self.purse.spend(spent);
                self.cache.ended(*work, None)?;
            }
            Event::ModelCancelled { work, spent } if self.ends(*work) => {
                self.round_cancelled = true;
                self.purse.spend(spent);
            }
            _ => {}
        }
        Ok(())
    }

    fn reopened(&mut self) {
        self.counts.crashes += 1;
        let waits = self.state.asking().next().is_some() || self.purse.waits(&self.state.profile.caps);
        let only_waits = self.open.is_empty() && waits;
        if !self.state.is_idle() && !only_waits {
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

    /// What was allowed under another mode, or with other tools, and has not begun is not allowed any more.
    fn judgements_lapse(&mut self) {
        self.open.retain(|_, step| !matches!(step, Step::Judge { .. }));
        for watched in self.calls.values_mut().filter(|watched| watched.runs == 0 || watched.lost) {
            watched.allowed = false;
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
            Step::Compact if self.state.compaction_asked.is_none() => self.weather.compacts(&self.state.profile)?,
            Step::Judge { .. } | Step::Compact => {}
            Step::Snip { .. } | Step::SwitchModel { .. } | Step::Pause { .. } => return self.goes_around(step),
        }
        if !matches!(step, Step::Close { .. } | Step::Cancel { .. }) {
            self.open.insert(work, step.clone());
        }
        Ok(())
    }

    /// A step that no room does.
    fn goes_around(&mut self, step: &Step) -> Seen {
        if self.turn.halted || !self.open.is_empty() {
            return Err(format!("{step:?} in a turn that was interrupted, or has work under way"));
        }
        match step {
            Step::SwitchModel { model, why } => {
                self.counts.switches += 1;
                self.weather.switches(model, *why, &self.state.profile)
            }
            Step::Pause { cap } => {
                self.counts.pauses += 1;
                self.purse.pauses(cap, &self.state.profile.caps)
            }
            Step::Snip { calls } => {
                self.counts.snips += 1;
                for (call, bytes) in calls.iter().zip(self.weather.snips(&self.state, calls)?) {
                    self.watched(call).left_out = Some(bytes);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn model_begins(&mut self, work: Seq) -> Seen {
        self.weather.may_call(&self.state.profile)?;
        self.purse.may_call(&self.state.profile.caps)?;
        if self.wants.drain(..).any(|wants| wants) {
            // Another schema is another answer: it may be mended once, too.
            (self.turn.wants, self.turn.repairs) = (true, 0);
        }
        let (turn, profile) = (&self.turn, &self.state.profile);
        if turn.halted {
            return Err("a model call begins in a turn that was interrupted".into());
        }
        if turn.completed >= profile.max_turns {
            return Err(format!("a model call begins after {} of {} in one turn", turn.completed, profile.max_turns));
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
        may_start(&self.state, id)
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
        if checks && !self.turn.wants && self.turn.stop_blocks >= self.state.profile.max_stop_blocks {
            return Err(format!("the stop checks are asked again after {} objections", self.turn.stop_blocks));
        }
        if *end == End::Done && self.turn.wants && !checks {
            return Err("an answer that is to fit a schema is not looked at".into());
        }
        if matches!(end, End::MaxTurns { turns } if *turns != self.turn.completed) {
            return Err(format!("the limit of turns is reached after {} answers: {end:?}", self.turn.completed));
        }
        let counted = self.state.turn.as_ref().map(|turn| (turn.stop_blocks, turn.repairs));
        if counted.is_some_and(|counted| counted != (self.turn.stop_blocks, self.turn.repairs)) {
            return Err(format!("objections and repairs are miscounted: {counted:?}"));
        }
        self.weather.may_end(end, &self.state)?;
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
        if ended && !halted && self.weather.begun() == 0 {
            self.wants.clear();
        }
        self.weather.turn_opens();
        self.purse.turn_opens();
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
            let left_out = watched.left_out.map(|bytes| format!("[This result of {bytes} bytes was left out"));
            if let Some(left_out) = left_out {
                if !text_of(&result.content).starts_with(&left_out) {
                    return Err(format!("call {id} was left out, and the model is told {:?}", result.content));
                }
            } else if watched.result.as_ref().is_some_and(|expected| *expected != result.content) {
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

fn interrupted(state: &State) -> bool {
    state.last_turn.as_ref().is_some_and(|turn| turn.halt == Some(End::Interrupted))
}
