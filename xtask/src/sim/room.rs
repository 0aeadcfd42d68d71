//! A room as a script: what it will report, in which order, and what it does to the world on the way.

use super::habits::{Habits, StopChecks};
use super::random::Random;
use std::collections::VecDeque;
use windlass_kernel::*;

/// Chances that pass before the hands answer for a room that was called back and stays silent.
const GRACE: usize = 4;
/// Broken-off text ends so, to be told from whole text wherever it turns up.
pub const BROKEN_OFF: char = '~';

pub struct Room {
    pub work: Seq,
    pub kind: Kind,
    pub script: VecDeque<Act>,
    /// It does not hear that it is called back.
    pub deaf: bool,
    /// Once called back: chances left before it is answered for.
    pub grace: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Model,
    Judge,
    Tool { writes: bool },
    Compact,
    Finish,
}

#[derive(Clone, Debug)]
pub enum Act {
    /// Facts that arrive together.
    Report(Vec<Event>),
    /// The tool does what it was called for; a child that lives elsewhere is only taken up if it is there already.
    Effect { call: CallId, is_child: bool },
    /// Nothing more ever comes.
    Hang,
}

/// The tools of this world, as often as they are called.
const TOOLS: [&str; 12] =
    ["read", "read", "read", "read", "write", "write", "write", "fetch", "agent", "agent", "ask_user", "nothing"];

/// What a call of the tool `name` would touch.
pub fn plan(name: &str) -> CallPlan {
    let (access, on_crash) = match name {
        "read" | "ask_user" | "nothing" => (Access::Read, OnCrash::Repeat),
        // It only looks, but every look costs money.
        "fetch" => (Access::Read, OnCrash::Unknown),
        "agent" => (Access::Write, OnCrash::Rejoin),
        _ => (Access::Write, OnCrash::Unknown),
    };
    CallPlan { access, on_crash, ..CallPlan::default() }
}

impl Room {
    /// Whether it would say or do something next.
    pub fn can_move(&self) -> bool {
        !matches!(self.script.front(), None | Some(Act::Hang))
    }

    /// The room is called back. One in four finishes before it hears.
    pub fn call_back(&mut self, random: &mut Random) {
        self.grace = Some(GRACE);
        let will_finish = !self.script.iter().any(|act| matches!(act, Act::Hang));
        if self.deaf || (will_finish && random.one_in(4)) {
            return;
        }
        self.script = self.last_words(random).into();
    }

    fn last_words(&self, random: &mut Random) -> Vec<Act> {
        let mut words = Vec::new();
        if self.kind == Kind::Model && random.coin() {
            let block = ContentBlock::text(format!("w{}.heard{BROKEN_OFF}", self.work));
            words.push(Event::BlockFinished { work: self.work, index: 99, block, partial: true });
        }
        // A tool that acted before it heard still has its effect; what it reports is that it was called back.
        words.push(self.obedience(Outcome::Cancelled));
        if random.coin() {
            words.into_iter().map(|word| Act::Report(vec![word])).collect()
        } else {
            vec![Act::Report(words)]
        }
    }

    /// What the hands say for a room that stays silent.
    pub fn stand_in(&self) -> Event {
        let unsure = self.kind == Kind::Tool { writes: true };
        self.obedience(if unsure { Outcome::Unknown } else { Outcome::Cancelled })
    }

    fn obedience(&self, outcome: Outcome) -> Event {
        let work = self.work;
        match self.kind {
            Kind::Model => Event::ModelCancelled { work, spent: Spent::default() },
            Kind::Compact => Event::CompactionFailed { work, message: "called back".into(), error: None, spent: None },
            Kind::Finish => Event::TurnFinished { work, end: End::Interrupted },
            Kind::Tool { .. } | Kind::Judge => {
                let call = self.script.iter().rev().find_map(Act::call).cloned();
                let text = format!("w{work} called back, {outcome:?}");
                finished(work, call.unwrap_or_else(|| "?".into()), outcome, text, false)
            }
        }
    }
}

impl Act {
    /// The call a tool's act is about.
    fn call(&self) -> Option<&CallId> {
        match self {
            Act::Effect { call, .. } => Some(call),
            Act::Report(events) => events.iter().find_map(|event| match event {
                Event::ToolStarted(started) => Some(&started.call),
                Event::ToolFinished(done) => Some(&done.call),
                _ => None,
            }),
            Act::Hang => None,
        }
    }
}

/// What a model will say.
pub struct Speech<'a> {
    pub work: Seq,
    pub habits: &'a Habits,
    /// The number of the next fresh call id.
    pub next_call: &'a mut u64,
    pub used_ids: Vec<CallId>,
    /// The model that speaks.
    pub by: String,
    /// What the call takes.
    pub usage: Usage,
}

impl Speech<'_> {
    pub fn script(self, random: &mut Random) -> VecDeque<Act> {
        let Speech { work, habits, next_call, used_ids, by, usage } = self;
        let blocks = random.below(5);
        let calling = random.one_in(habits.calls_in);
        let mut says = Vec::new();
        for index in 0..blocks as u32 {
            let block = match random.below(8) {
                0 => {
                    let thinking = format!("w{work}.{index}");
                    ContentBlock::Thinking { thinking, signature: None, by: Some(by.clone()) }
                }
                1 if random.coin() => ContentBlock::text(""),
                _ if calling && random.below(4) > 0 => {
                    let id = match used_ids.len() {
                        0 => None,
                        many => random.one_in(habits.same_id_in).then(|| used_ids[random.below(many)].clone()),
                    };
                    let fresh = || {
                        *next_call += 1;
                        CallId(format!("c{next_call}"))
                    };
                    let id = id.unwrap_or_else(fresh);
                    let name = random.of(&TOOLS).into();
                    let input = serde_json::json!({ "of": work });
                    let signature = Some(Box::new(Signature { by: by.clone(), text: format!("w{work}") }));
                    ContentBlock::ToolUse(ToolUse { id, name, input, signature })
                }
                _ => ContentBlock::text(format!("w{work}.{index}")),
            };
            says.push(block);
        }
        let ending = Ending::draw(random, habits, says.len());
        let calls = says.iter().any(|block| matches!(block, ContentBlock::ToolUse(_)));
        let whole = whole(random, habits, work, calls, usage);
        ending.script(random, work, says, whole)
    }
}

/// How a message ends: whole, broken off after so many blocks, or never.
enum Ending {
    Whole,
    Broken(usize),
    Never(usize),
}

impl Ending {
    fn draw(random: &mut Random, habits: &Habits, blocks: usize) -> Ending {
        if random.one_in(habits.model_fails_in) {
            return Ending::Broken(random.below(blocks + 1));
        }
        if random.one_in(habits.hang_in) {
            return Ending::Never(random.below(blocks + 1));
        }
        Ending::Whole
    }

    fn script(self, random: &mut Random, work: Seq, mut says: Vec<ContentBlock>, whole: Event) -> VecDeque<Act> {
        if let Ending::Broken(heard) | Ending::Never(heard) = self {
            says.truncate(heard);
        }
        let block = |(index, block)| Event::BlockFinished { work, index: index as u32, block, partial: false };
        let mut script: VecDeque<_> =
            says.into_iter().enumerate().map(block).map(|event| Act::Report(vec![event])).collect();
        match self {
            Ending::Whole => script.push_back(Act::Report(vec![whole])),
            Ending::Broken(_) => {
                let mut last = Vec::new();
                if random.coin() {
                    let block = ContentBlock::text(format!("w{work}.cut{BROKEN_OFF}"));
                    last.push(Event::BlockFinished { work, index: 99, block, partial: true });
                }
                last.push(broken(random, work));
                script.push_back(Act::Report(last));
            }
            Ending::Never(_) => script.push_back(Act::Hang),
        }
        script
    }
}

fn whole(random: &mut Random, habits: &Habits, work: Seq, calls: bool, usage: Usage) -> Event {
    use StopReason::*;
    let stop = match calls {
        true => random.of(&[ToolUse, ToolUse, ToolUse, ToolUse, MaxTokens, EndTurn]),
        false => random.of(&[EndTurn, EndTurn, EndTurn, EndTurn, MaxTokens, Pause, Refusal, StopSequence, Other]),
    };
    let stop = if !calls && random.one_in(habits.cut_in) { MaxTokens } else { stop };
    let cost_micro_usd = random.of(&[None, Some(100), Some(700)]);
    Event::ModelFinished { work, stop, raw_stop: None, spent: Spent { usage, cost_micro_usd, ..Spent::default() } }
}

fn broken(random: &mut Random, work: Seq) -> Event {
    use FailureKind::*;
    let mended = random.of(&[Transient, Transient, Overloaded, Overloaded, Overloaded, Stalled, Stalled, Stalled]);
    let kind = if random.one_in(3) { random.of(&[TooLong, TooLong, TooLong, TooLong, Auth, Invalid]) } else { mended };
    let retry_after_ms = match kind {
        Overloaded => random.of(&[None, None, Some(1_000), Some(1_000_000)]),
        _ => None,
    };
    let error = ModelFailure { kind, message: format!("w{work} {kind:?}"), status: None, retry_after_ms };
    let usage = Usage { input: random.of(&[0, 30]), ..Usage::default() };
    Event::ModelFailed { work, error, spent: Spent { usage, estimated: true, ..Spent::default() } }
}

/// What the policy says of `call`: the verdict and, where somebody is to be asked, the question.
pub fn verdict(random: &mut Random, habits: &Habits, work: Seq, call: &Call) -> Vec<Event> {
    let (verdict, reason) = match call.name.as_str() {
        "nothing" => (Verdict::Invalid, "Unknown tool: nothing".into()),
        "ask_user" => (Verdict::Ask, String::new()),
        _ if random.one_in(habits.deny_in) => (Verdict::Deny, format!("w{work} denied")),
        _ if random.one_in(habits.ask_in) => (Verdict::Ask, String::new()),
        _ => (Verdict::Allow, String::new()),
    };
    let input = random.one_in(8).then(|| serde_json::json!({ "rewritten": work }));
    let (stage, plan) = ("rule".to_owned(), plan(&call.name));
    let (rule, context, review) = (None, None, None);
    let judged = Judged { work, call: call.id.clone(), verdict, stage, rule, reason, input, context, review, plan };
    let mut events = vec![Event::Judged(Box::new(judged))];
    if verdict == Verdict::Ask {
        let kind = if call.name == "ask_user" { QuestionKind::Words } else { QuestionKind::Approval };
        let question =
            Question { hash: format!("hash of w{work}"), kind, preview: call.name.clone(), ..Question::default() };
        events.push(Event::Asked { call: call.id.clone(), question: Box::new(question) });
    }
    events
}

/// What running `call` comes to.
pub fn tool(random: &mut Random, habits: &Habits, state: &State, work: Seq, call: &Call) -> VecDeque<Act> {
    let plan = call.plan.clone().unwrap_or_default();
    let is_child = plan.on_crash == OnCrash::Rejoin;
    let started = ToolStarted {
        work,
        call: call.id.clone(),
        plan,
        idempotency_key: format!("{work}"),
        process: Some(Process { pid: 7, started: work.0 }),
    };
    let outcome = if random.one_in(habits.tool_fails_in) { Outcome::Error } else { Outcome::Ok };
    let aborts = outcome == Outcome::Error && state.profile.tools.on_sibling_error == OnSiblingError::AbortSiblings;
    let mut text = format!("w{work} result");
    if random.coin() {
        text.push_str(&".".repeat(200 + random.below(800)));
    }
    let result = finished(work, call.id.clone(), outcome, text, aborts);
    let mut script = VecDeque::from([
        Act::Report(vec![Event::ToolStarted(Box::new(started))]),
        Act::Effect { call: call.id.clone(), is_child },
        Act::Report(vec![result]),
    ]);
    if random.one_in(habits.hang_in) {
        // It hangs before it has done anything, or after.
        script.insert(1 + random.below(2), Act::Hang);
    }
    script
}

fn finished(work: Seq, call: CallId, outcome: Outcome, text: String, aborts_siblings: bool) -> Event {
    Event::ToolFinished(Box::new(ToolFinished {
        work,
        call,
        outcome,
        blocks: vec![ContentBlock::text(text)],
        value: None,
        output: None,
        files: vec![],
        aborts_siblings,
        took_ms: 1,
    }))
}

/// What the stop checks say, and of an answer that is to fit a schema, whether it does.
pub fn checks(random: &mut Random, habits: &Habits, state: &State, work: Seq) -> VecDeque<Act> {
    if random.one_in(habits.hang_in) {
        return VecDeque::from([Act::Hang]);
    }
    let blocks = match habits.stop_checks {
        StopChecks::Pass => false,
        StopChecks::BlockSometimes => random.one_in(3),
        StopChecks::BlockAlways => true,
    };
    let wanting = state.turn.as_ref().filter(|turn| turn.output_schema.is_some());
    let text = format!("not done yet, says w{work}");
    let event = match wanting {
        Some(turn) if random.one_in(habits.unfit_in) => match turn.repairs {
            0 | 1 => Event::StopBlocked { work, text, repair: true },
            _ => Event::TurnFinished { work, end: End::InvalidAnswer { problem: text } },
        },
        // Asked for the schema's sake, when no objection is left.
        Some(turn) if turn.stop_blocks >= state.profile.max_stop_blocks => Event::TurnFinished { work, end: End::Done },
        _ if blocks => Event::StopBlocked { work, text, repair: false },
        _ => Event::TurnFinished { work, end: End::Done },
    };
    VecDeque::from([Act::Report(vec![event])])
}

/// What a compaction comes to.
pub fn compaction(random: &mut Random, habits: &Habits, state: &State, work: Seq) -> VecDeque<Act> {
    if random.one_in(habits.hang_in) {
        return VecDeque::from([Act::Hang]);
    }
    let spent = Spent { usage: Usage { input: 20, output: 5, ..Usage::default() }, ..Spent::default() };
    let event = match state.split() {
        Some(upto) if !random.one_in(habits.model_fails_in) => {
            Event::Compacted { work, upto, summary: format!("summary by w{work}"), spent }
        }
        _ => Event::CompactionFailed { work, message: "no place to cut".into(), error: None, spent: None },
    };
    VecDeque::from([Act::Report(vec![event])])
}
