//! What becomes of tool calls, and how a round closes over them.

use crate::*;
use std::sync::Arc;

impl State {
    fn call_mut(&mut self, id: &CallId) -> Option<&mut Call> {
        self.turn.as_mut()?.round.as_mut()?.calls.iter_mut().find(|call| call.id == *id)
    }

    pub(super) fn set_phase(&mut self, id: &CallId, phase: Phase) {
        if let Some(call) = self.call_mut(id).filter(|call| !call.is_done()) {
            call.phase = phase;
        }
    }

    /// Calls that have not begun were allowed under a mode or with tools that are others now: they are judged anew. A
    /// question stays open; what its answer may let run is looked at when it is given.
    pub(super) fn judge_anew(&mut self) {
        let round = self.turn.as_mut().and_then(|turn| turn.round.as_mut());
        for call in round.into_iter().flat_map(|round| &mut round.calls) {
            if matches!(call.phase, Phase::Judging { .. } | Phase::Allowed) {
                call.start_over();
            }
        }
    }

    pub(super) fn judged(&mut self, judged: &Judged) {
        // Spent is spent, whether the verdict still counts or not.
        if let Some(review) = &judged.review {
            self.spend(&review.spent);
        }
        let Some(call) = self.call_mut(&judged.call) else { return };
        if call.phase != (Phase::Judging { work: judged.work }) {
            return;
        }
        call.plan = Some(judged.plan.clone());
        call.context = judged.context.clone();
        if let Some(input) = &judged.input {
            call.made = Some(std::mem::replace(&mut call.input, input.clone()));
        }
        match judged.verdict {
            Verdict::Allow => call.phase = Phase::Allowed,
            Verdict::Ask => call.phase = Phase::Asking { question: None },
            Verdict::Deny => self.denied(&judged.call, &judged.reason),
            Verdict::Invalid => {
                let blocks = vec![ContentBlock::text(&judged.reason)];
                call.phase = Phase::Done { outcome: Outcome::Error, blocks };
                self.close_round();
            }
        }
    }

    pub(super) fn asked(&mut self, id: &CallId, question: &Question) {
        if let Some(Phase::Asking { question: open }) = self.call_mut(id).map(|call| &mut call.phase) {
            *open = Some(Box::new(question.clone()));
        }
    }

    pub(super) fn answered(&mut self, answer: &Answered) {
        let Some(call) = self.call_mut(&answer.call) else { return };
        if !matches!(call.phase, Phase::Asking { .. }) {
            return;
        }
        match &answer.decision {
            Decision::Allow => {
                if let Some(changed) = &answer.changed {
                    call.input = changed.input.clone();
                    // What a person made of it takes the place of the model's own.
                    call.made = None;
                    call.plan = Some(changed.plan.clone());
                }
                call.phase = Phase::Allowed;
            }
            Decision::Words { text } => {
                call.phase = Phase::Done { outcome: Outcome::Ok, blocks: vec![ContentBlock::text(text)] };
            }
            Decision::Deny { note } => {
                let reason = denial_text(note);
                self.denied(&answer.call, &reason);
            }
        }
        if answer.scope != Scope::Once {
            self.grants.extend(answer.rules().cloned());
        }
        self.close_round();
    }

    fn denied(&mut self, id: &CallId, reason: &str) {
        let blocks = vec![ContentBlock::text(reason)];
        let Some(call) = self.call_mut(id) else { return };
        call.phase = Phase::Done { outcome: Outcome::Denied, blocks };
        let tool = call.name.clone();
        if self.denials.len() == MAX_DENIALS_KEPT {
            self.denials.remove(0);
        }
        self.denials.push(Denial { call: id.clone(), tool, reason: reason.to_owned() });
        if let Some(turn) = &mut self.turn {
            turn.denials += 1;
        }
        self.close_round();
    }

    pub(super) fn tool_started(&mut self, started: &ToolStarted) {
        let Some(call) = self.call_mut(&started.call) else { return };
        if let Phase::Running { work, process, .. } = &mut call.phase
            && *work == started.work
        {
            *process = started.process.clone();
        }
    }

    pub(super) fn tool_finished(&mut self, finished: &ToolFinished) {
        let Some(call) = self.call_mut(&finished.call) else { return };
        if !matches!(call.phase, Phase::Running { work, .. } if work == finished.work) {
            return;
        }
        let outcome = finished.outcome;
        let context = call.context.iter().map(ContentBlock::text);
        let blocks = finished.blocks.iter().cloned().chain(context).collect();
        call.phase = Phase::Done { outcome, blocks };
        self.see(&finished.files);
        self.reopens = 0;
        if let Some(turn) = &mut self.turn {
            turn.denials = if outcome == Outcome::Ok { 0 } else { turn.denials };
            if let Some(round) = &mut turn.round {
                round.aborted |= finished.aborts_siblings;
            }
        }
        self.close_round();
    }

    fn see(&mut self, files: &[FileSeen]) {
        if files.is_empty() {
            return;
        }
        let known = Arc::make_mut(&mut self.files);
        for file in files {
            match &file.after {
                Some(hash) => known.insert(file.path.clone(), hash.clone()),
                None => known.remove(&file.path),
            };
        }
    }

    pub(super) fn closed(&mut self, calls: &[CallId], why: CloseReason) {
        for id in calls {
            if let Some(call) = self.call_mut(id).filter(|call| !call.is_done()) {
                call.phase = Phase::Done {
                    outcome: if why == CloseReason::OutcomeUnknown { Outcome::Unknown } else { Outcome::NotRun },
                    blocks: vec![ContentBlock::text(why.text())],
                };
            }
        }
        self.close_round();
    }

    /// Once the message has ended and every call has its result, both become messages.
    pub(super) fn close_round(&mut self) {
        let Some(turn) = &mut self.turn else { return };
        let Some(round) = turn.round.take_if(|round| round.ended.is_some() && round.calls.iter().all(Call::is_done))
        else {
            return;
        };
        if !round.calls.is_empty() {
            turn.tool_rounds += 1;
            self.totals.tool_rounds += 1;
            let any = |wanted| round.calls.iter().any(|call| call.outcome() == Some(wanted));
            // Siblings that a failure took with it neither failed nor got anything done.
            let failed = any(Outcome::Error) && !any(Outcome::Ok);
            turn.tool_error_rounds = if failed { turn.tool_error_rounds + 1 } else { 0 };
        }
        turn.last = match round.ended {
            _ if !round.calls.is_empty() => Last::ToolRound,
            Some(Ended::Whole(stop)) => Last::Said(stop),
            _ => Last::Said(StopReason::EndTurn),
        };
        self.call_ids.extend(round.calls.iter().map(|call| call.id.clone()));
        self.messages.extend(round.messages().map(Arc::new));
    }
}

impl Call {
    /// Back to where it is judged first, with the arguments it was made with: what a hook makes of them is made once.
    pub(super) fn start_over(&mut self) {
        self.phase = Phase::New;
        if let Some(made) = self.made.take() {
            self.input = made;
        }
    }
}

fn denial_text(note: &str) -> String {
    match note {
        "" => "The user does not allow this call. Do not try it again unchanged.".to_owned(),
        note => format!("The user does not allow this call, and says: {note}"),
    }
}

impl CloseReason {
    /// What the model is told of a call closed for this reason.
    pub fn text(self) -> &'static str {
        match self {
            CloseReason::Interrupted => "Not run: the user interrupted the turn.",
            CloseReason::SiblingFailed => "Not run: another call of the same message failed.",
            CloseReason::MessageCut => {
                "Not run: the message that made this call broke off before its end. Make the call again if it is still wanted."
            }
            CloseReason::OutcomeUnknown => {
                "Outcome unknown: the process died while this call ran. It may have had its effect, in whole or in part. \
                 Look at what is there before trying again."
            }
            CloseReason::Limit => "Not run: a limit of the turn was reached.",
        }
    }
}
