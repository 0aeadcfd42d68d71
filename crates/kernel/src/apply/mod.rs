//! Event → state: the only mutation there is. Total (any event in any state folds to something), and without a
//! decision of its own: a rule hidden here would fold old logs differently once it changed.

mod calls;
mod model;
mod turn;
mod weather;

pub use model::CONTINUE_TEXT;

use crate::*;
use std::sync::Arc;

impl State {
    pub fn apply(&mut self, record: &Record) {
        self.head = record.seq;
        self.epoch = record.epoch;
        match &record.event {
            Event::Opened { parent, forked_from, cwd, agent, model, mode, profile } => {
                self.parent = parent.clone();
                self.forked_from = forked_from.clone();
                self.cwd = cwd.clone();
                self.agent = agent.clone();
                self.model = model.clone();
                self.mode = *mode;
                self.profile = (**profile).clone();
            }
            Event::Reopened { .. } => self.reopened(),
            Event::Configured(change) => self.configured(change),
            Event::ToolsChanged { change, tools } => self.tools_changed(*change, tools),

            Event::Prompted(prompt) => self.prompted(record, prompt),
            Event::Noted { input, text, wakes } => self.noted(record, *input, text, *wakes),
            Event::Cleared { input } => self.cleared(*input),
            Event::CompactionAsked { instructions } => {
                self.compaction_asked = Some(CompactionWish { instructions: instructions.clone() });
            }
            Event::Interrupted { .. } => self.interrupted(),
            Event::DeadlinePassed => self.halt_turn(End::Deadline),

            Event::Began { step } => self.began(record, step),

            Event::ModelCalled(called) => self.model_called(called),
            Event::CacheBroke(_) => {}
            Event::SpendingSeen { scope, spent } => {
                self.seen.insert(*scope, Seen { spent: *spent, own: self.totals.spending() });
            }
            Event::BlockFinished { work, block, partial, .. } => self.block_finished(*work, block, *partial),
            Event::ModelFinished { work, stop, spent, .. } => self.model_finished(record, *work, *stop, spent),
            Event::ModelFailed { work, error, spent } => self.model_failed(*work, error, spent),
            Event::ModelCancelled { work, spent } => self.model_cancelled(*work, spent),

            Event::HookRan(_) => {}
            Event::Judged(judged) => self.judged(judged),
            Event::Asked { call, question } => self.asked(call, question),
            Event::Answered(answer) => self.answered(answer),
            Event::ToolStarted(started) => self.tool_started(started),
            Event::ToolFinished(finished) => self.tool_finished(finished),

            Event::Compacted { work, upto, summary, spent } => self.compacted(*work, *upto, summary, spent),
            Event::CompactionFailed { work, error, spent, .. } => {
                self.compaction_failed(*work, error.as_deref(), spent.as_deref());
            }
            Event::StopBlocked { work, text, repair } => self.stop_blocked(*work, text, *repair),
            Event::TurnFinished { work, end } => self.turn_finished(record, *work, end),
        }
    }

    fn configured(&mut self, change: &Configured) {
        if let Some(model) = &change.model {
            self.model = model.clone();
            self.speaking = None;
        }
        if let Some(mode) = change.mode.filter(|mode| *mode != self.mode) {
            self.mode = mode;
            self.judge_anew();
        }
        if let Some(profile) = &change.profile {
            self.profile = (**profile).clone();
        }
        if let Some(caps) = change.caps {
            self.profile.caps = caps.over(&self.profile.caps);
        }
    }

    fn tools_changed(&mut self, change: ToolsChange, tools: &[String]) {
        for tool in tools {
            match change {
                ToolsChange::Enabled | ToolsChange::Registered => self.disabled_tools.remove(tool),
                ToolsChange::Disabled | ToolsChange::Unregistered => self.disabled_tools.insert(tool.clone()),
            };
        }
        self.judge_anew();
    }

    fn prompted(&mut self, record: &Record, prompt: &Prompted) {
        self.inputs.insert(prompt.input);
        self.totals.user_turns += 1;
        let context = prompt.context.iter().map(ContentBlock::text);
        let said = prompt.blocks.iter().filter(|block| block.is_input()).cloned();
        let message = Arc::new(Message::user(context.chain(said).collect()));
        if !message.content.is_empty() {
            let output_schema = prompt.output_schema.clone();
            self.pend(record, Pending { message, output_schema, wakes: true, by_person: true });
        }
    }

    fn noted(&mut self, record: &Record, input: InputId, text: &str, wakes: bool) {
        self.inputs.insert(input);
        let message = Arc::new(Message::user(vec![ContentBlock::text(text)]));
        self.pend(record, Pending { message, output_schema: None, wakes, by_person: false });
    }

    /// Every input waits in `pending`, and is shown to the model when it next speaks: one rule for all.
    fn pend(&mut self, record: &Record, input: Pending) {
        let wakes = input.wakes;
        self.pending.push(input);
        if wakes && self.turn.is_none() {
            self.open_turn(record);
        }
    }

    fn cleared(&mut self, input: InputId) {
        self.inputs.insert(input);
        self.boundary = self.messages.len();
        self.summary = None;
        self.context_tokens = 0;
        self.rewrote_messages();
        // What the model has forgotten it must read again before it may edit.
        self.files = Arc::default();
    }

    fn began(&mut self, record: &Record, step: &Step) {
        match step {
            Step::CallModel => self.round_began(record.seq),
            Step::Judge { call } => self.set_phase(call, Phase::Judging { work: record.seq }),
            Step::RunTool { call } => {
                self.totals.tool_runs += 1;
                let phase = Phase::Running { work: record.seq, cancelling: false, process: None };
                self.set_phase(call, phase);
            }
            Step::Close { calls, why } => self.closed(calls, *why),
            Step::Cancel { work } => self.cancelling(*work),
            Step::Compact => {
                self.compacting = Some(Task { work: record.seq, cancelling: false, halted: false });
                if let Some(turn) = self.turn.as_mut().filter(|_| self.compaction_asked.is_none()) {
                    turn.compactions += 1;
                }
            }
            Step::Snip { calls } => self.snipped(calls),
            Step::SwitchModel { model, .. } => self.switched_model(model),
            Step::Pause { cap } => {
                if let Some(turn) = &mut self.turn {
                    turn.paused = Some(*cap);
                }
            }
            Step::Finish { end, checks } => {
                if let Some(turn) = &mut self.turn {
                    let (end, checks) = (end.clone(), *checks);
                    turn.finishing = Some(Finishing { work: record.seq, end, checks, cancelling: false });
                }
            }
        }
    }

    fn cancelling(&mut self, work: Seq) {
        if let Some(task) = self.compacting.as_mut().filter(|task| task.work == work) {
            task.cancelling = true;
        }
        let Some(turn) = &mut self.turn else { return };
        if let Some(finishing) = turn.finishing.as_mut().filter(|finishing| finishing.work == work) {
            finishing.cancelling = true;
        }
        let Some(round) = &mut turn.round else { return };
        if round.work == work {
            round.cancelling = true;
        }
        for call in &mut round.calls {
            if let Phase::Running { work: running, cancelling, .. } = &mut call.phase
                && *running == work
            {
                *cancelling = true;
            }
        }
    }

    fn compacted(&mut self, work: Seq, upto: usize, summary: &str, spent: &Spent) {
        if self.compacting.is_none_or(|task| task.work != work) {
            return;
        }
        self.spend(spent);
        if upto > self.boundary && self.is_safe_split(upto) {
            self.boundary = upto;
            self.summary = Some(Arc::new(Message::user(vec![ContentBlock::text(summary)])));
            self.context_tokens = 0;
            self.rewrote_messages();
            // What did not fit before may now.
            if let Some(turn) = &mut self.turn {
                turn.continuations = 0;
            }
        }
        self.compaction_ended(work);
    }

    /// A failure that may pass is tried again by the ladder, as any model call is.
    fn compaction_failed(&mut self, work: Seq, error: Option<&ModelFailure>, spent: Option<&Spent>) {
        let Some(task) = self.compacting.filter(|task| task.work == work) else { return };
        if let Some(spent) = spent {
            self.spend(spent);
        }
        let retry = &self.profile.retry;
        let is_worth_it = error.is_some_and(|error| {
            error.kind.is_worth_retrying() && error.retry_after_ms.is_none_or(|asked| asked <= retry.max_wait_ms)
        });
        let is_wanted = !task.cancelling && !task.halted;
        if !is_worth_it || !is_wanted || self.compaction_errors + 1 >= self.profile.max_model_errors {
            return self.compaction_ended(work);
        }
        self.compacting = None;
        self.compaction_errors += 1;
        self.compaction_wait_ms = error.and_then(|error| error.retry_after_ms);
        // One that nobody asked for is wanted again by the ladder, as long as it does not count.
        if let Some(turn) = self.turn.as_mut().filter(|_| self.compaction_asked.is_none()) {
            turn.compactions = turn.compactions.saturating_sub(1);
        }
    }

    /// The wish is cleared only here, not when the work began: a crash in between must not lose it.
    fn compaction_ended(&mut self, work: Seq) {
        if self.compacting.is_some_and(|task| task.work == work) {
            self.compacting = None;
            self.compaction_asked = None;
            (self.compaction_errors, self.compaction_wait_ms) = (0, None);
            self.reopens = 0;
        }
    }
}
