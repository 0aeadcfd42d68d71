//! How a turn opens, is halted, and ends; what a new process makes of what an old one left.

use crate::*;
use std::sync::Arc;

impl State {
    pub(super) fn open_turn(&mut self, record: &Record) {
        self.turn = Some(Box::new(Turn {
            opened_by: record.seq,
            opened_at: record.at,
            round: None,
            last: Last::Input,
            halt: None,
            finishing: None,
            model_calls: 0,
            tool_rounds: 0,
            continuations: 0,
            model_errors: 0,
            failure: None,
            newest_failure: None,
            retry_after_ms: None,
            stalls: 0,
            overloads: 0,
            fell_back: None,
            snips: 0,
            compactions: 0,
            paused: None,
            denials: 0,
            tool_error_rounds: 0,
            stop_blocks: 0,
            output_schema: None,
            repairs: 0,
        }));
    }

    pub(super) fn interrupted(&mut self) {
        if let Some(turn) = &self.turn {
            // A prompt taken back before the model saw it is not asked again: it stays said, and waits.
            if turn.last == Last::Input && turn.round.is_none() {
                self.messages.extend(self.pending.drain(..).map(|input| input.message));
            }
            self.halt_turn(End::Interrupted);
        } else if let Some(task) = &mut self.compacting {
            task.halted = true;
        }
    }

    pub(super) fn halt_turn(&mut self, end: End) {
        if let Some(turn) = &mut self.turn {
            turn.halt.get_or_insert(end);
        }
    }

    /// The process died: nothing that was in flight is any more.
    pub(super) fn reopened(&mut self) {
        let only_waits = self.in_flight().is_empty() && (self.asking().next().is_some() || self.paused().is_some());
        // Waiting for a person is no work: a question may stay open over many restarts.
        if !only_waits && !self.is_idle() {
            self.reopens += 1;
        }
        self.compaction_died();
        let Some(turn) = &mut self.turn else { return };
        turn.finishing = None;
        let Some(round) = &mut turn.round else { return };
        round.cancelling = false;
        for call in &mut round.calls {
            match orphaned(call) {
                Phase::New => call.start_over(),
                phase => call.phase = phase,
            }
        }
        if round.ended.is_none() {
            self.broke_off();
        }
        self.close_round();
    }

    /// The wish outlives a crash, but not its own interrupt, and not crash after crash.
    fn compaction_died(&mut self) {
        let Some(task) = self.compacting.take() else { return };
        if task.halted || task.cancelling || self.reopens > self.profile.max_reopens {
            self.compaction_asked = None;
        } else if let Some(turn) = self.turn.as_mut().filter(|_| self.compaction_asked.is_none()) {
            // One that nobody asked for and that never came to its end does not count.
            turn.compactions = turn.compactions.saturating_sub(1);
        }
    }

    pub(super) fn stop_blocked(&mut self, work: Seq, text: &str, repair: bool) {
        let Some(turn) = &mut self.turn else { return };
        if turn.finishing.as_ref().is_none_or(|finishing| finishing.work != work) {
            return;
        }
        turn.finishing = None;
        match repair {
            true => turn.repairs += 1,
            false => turn.stop_blocks += 1,
        }
        turn.last = Last::StopBlocked;
        self.messages.push(Arc::new(Message::user(vec![ContentBlock::text(text)])));
    }

    pub(super) fn turn_finished(&mut self, record: &Record, work: Seq, end: &End) {
        let ours = |turn: &Turn| turn.finishing.as_ref().is_some_and(|finishing| finishing.work == work);
        if !self.turn.as_deref().is_some_and(ours) {
            return;
        }
        let Some(turn) = self.turn.take() else { return };
        // A limit that stood before the model was asked once would end the next turn as well: what was said is kept,
        // and waits for somebody to say more.
        if turn.last == Last::Input && turn.halt.is_none() {
            self.messages.extend(self.pending.drain(..).map(|input| input.message));
        }
        // A note must not undo an interrupt; a person's queued prompt is worth a turn all the same.
        let interrupted = turn.halt == Some(End::Interrupted) || *end == End::Interrupted;
        self.last_turn = Some(turn);
        self.last_end = Some(end.clone());
        self.reopens = 0;
        if self.pending.iter().any(|input| input.wakes && (input.by_person || !interrupted)) {
            self.open_turn(record);
        }
    }
}

/// Where a call stands once the process that worked on it is gone.
fn orphaned(call: &Call) -> Phase {
    match &call.phase {
        // Allowed under rules and a mode that may be others now: judged anew.
        Phase::Judging { .. } | Phase::Asking { question: None } | Phase::Allowed => Phase::New,
        Phase::Running { process, .. } => match call.plan.as_ref().map(|plan| plan.on_crash) {
            Some(OnCrash::Repeat) => Phase::New,
            _ => Phase::Lost { process: process.clone() },
        },
        other => other.clone(),
    }
}
