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
            retry_after_ms: None,
            denials: 0,
            tool_error_rounds: 0,
            stop_blocks: 0,
        }));
    }

    pub(super) fn interrupted(&mut self) {
        if self.turn.is_some() {
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
        self.compacting = None;
        let Some(turn) = &mut self.turn else { return };
        self.reopens += 1;
        turn.finishing = None;
        let Some(round) = &mut turn.round else { return };
        round.cancelling = false;
        for call in &mut round.calls {
            call.phase = orphaned(call);
        }
        if round.ended.is_none() {
            self.broke_off();
        }
        self.close_round();
    }

    pub(super) fn stop_blocked(&mut self, work: Seq, text: &str) {
        let Some(turn) = &mut self.turn else { return };
        if turn.finishing.as_ref().is_none_or(|finishing| finishing.work != work) {
            return;
        }
        turn.finishing = None;
        turn.stop_blocks += 1;
        turn.last = Last::StopBlocked;
        self.messages.push(Arc::new(Message::user(vec![ContentBlock::text(text)])));
    }

    pub(super) fn turn_finished(&mut self, record: &Record, work: Seq, end: &End) {
        let ours = |turn: &Turn| turn.finishing.as_ref().is_some_and(|finishing| finishing.work == work);
        if !self.turn.as_deref().is_some_and(ours) {
            return;
        }
        self.last_turn = self.turn.take();
        self.last_end = Some(end.clone());
        self.reopens = 0;
        // A note must not undo an interrupt; a person's queued prompt is worth a turn all the same.
        let interrupted = *end == End::Interrupted;
        if self.pending.iter().any(|input| input.wakes && (input.by_person || !interrupted)) {
            self.open_turn(record);
        }
    }
}

/// Where a call stands once the process that worked on it is gone.
fn orphaned(call: &Call) -> Phase {
    match &call.phase {
        Phase::Judging { .. } => Phase::New,
        Phase::Running { process, .. } => match call.plan.as_ref().map(|plan| plan.on_crash) {
            Some(OnCrash::Repeat) => Phase::Allowed,
            _ => Phase::Lost { process: process.clone() },
        },
        other => other.clone(),
    }
}
