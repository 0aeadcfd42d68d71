//! State → step: the decision ladder. Read from the top; the first rung that holds wins. It only reads.

use crate::*;

impl State {
    /// What to do now; none: wait for reports or for somebody outside.
    pub fn next_step(&self) -> Option<Step> {
        let Some(turn) = &self.turn else { return self.idle_step() };
        if let Some(step) = lost(turn) {
            return Some(step);
        }
        if let Some(end) = self.halted(turn) {
            return self.wind_down(turn, end);
        }
        if let Some(round) = &turn.round {
            if let Some(step) = doomed(round) {
                return Some(step);
            }
            if let Some(call) = unjudged(round) {
                return Some(Step::Judge { call });
            }
            return schedule::startable(round, &self.profile.tools).map(|call| Step::RunTool { call });
        }
        if turn.finishing.is_some() || self.compacting.is_some() {
            return None;
        }
        if self.compaction_asked.is_some() {
            return Some(Step::Compact);
        }
        self.speak_or_finish(turn)
    }

    fn idle_step(&self) -> Option<Step> {
        match self.compacting {
            Some(task) if task.halted && !task.cancelling => Some(Step::Cancel { work: task.work }),
            Some(_) => None,
            None => self.compaction_asked.is_some().then_some(Step::Compact),
        }
    }

    fn halted(&self, turn: &Turn) -> Option<End> {
        if self.reopens > self.profile.max_reopens {
            return Some(End::CrashLoop { reopened: self.reopens });
        }
        turn.halt.clone()
    }

    /// Calls everything back, sees to it that every call has its result, then finishes.
    fn wind_down(&self, turn: &Turn, end: End) -> Option<Step> {
        if let Some(round) = &turn.round {
            if round.ended.is_none() && !round.cancelling {
                return Some(Step::Cancel { work: round.work });
            }
            let why = if end == End::Interrupted { CloseReason::Interrupted } else { CloseReason::Limit };
            return close_unbegun(round, why, |_| true).or_else(|| cancel_running(round));
        }
        if let Some(task) = self.compacting.filter(|task| !task.cancelling) {
            return Some(Step::Cancel { work: task.work });
        }
        match &turn.finishing {
            None => Some(Step::Finish { end, checks: false }),
            Some(finishing) if finishing.checks && !finishing.cancelling => Some(Step::Cancel { work: finishing.work }),
            Some(_) => None,
        }
    }

    fn speak_or_finish(&self, turn: &Turn) -> Option<Step> {
        // A note that wakes nobody waits until the model speaks anyway.
        let nothing_new = !self.pending.iter().any(|input| input.wakes);
        let end = match turn.last {
            Last::Said(StopReason::Pause) => None,
            Last::Said(StopReason::MaxTokens) if turn.continuations < self.profile.max_continuations => None,
            Last::Said(StopReason::MaxTokens) if nothing_new => {
                Some(End::OutputLimit { continuations: turn.continuations })
            }
            Last::Said(StopReason::Refusal) if nothing_new => Some(End::Refused),
            Last::Said(_) if nothing_new => Some(End::Done),
            _ => None,
        };
        if matches!(end, Some(End::OutputLimit { .. })) && turn.compactions == 0 && self.is_over_trigger() {
            return self.unless_capped(Step::Compact);
        }
        if end.is_none()
            && let Some(step) = self.way_around(turn)
        {
            return Some(step);
        }
        if let Some(end) = end.or_else(|| self.over_limit(turn)) {
            let is_checked = turn.stop_blocks < self.profile.max_stop_blocks || turn.output_schema.is_some();
            let checks = end == End::Done && is_checked;
            return Some(Step::Finish { end, checks });
        }
        self.unless_capped(Step::CallModel)
    }

    /// `step`, which costs something, or the pause until it may.
    fn unless_capped(&self, step: Step) -> Option<Step> {
        match self.reached_cap() {
            Some(_) if self.paused().is_some() => None,
            Some(cap) => Some(Step::Pause { cap }),
            None => Some(step),
        }
    }
}

/// A call that ran when the process died. One that lives on elsewhere is taken up again even in a halted turn, if
/// only to be called back; of any other nobody knows what it did.
fn lost(turn: &Turn) -> Option<Step> {
    let calls = &turn.round.as_ref()?.calls;
    let call = calls.iter().find(|call| matches!(call.phase, Phase::Lost { .. }))?;
    Some(match call.plan.as_ref().map(|plan| plan.on_crash) {
        Some(OnCrash::Rejoin) => Step::RunTool { call: call.id.clone() },
        _ => Step::Close { calls: vec![call.id.clone()], why: CloseReason::OutcomeUnknown },
    })
}

/// Calls that must not begin, or not go on: siblings of a failure; writers of a message that broke off.
fn doomed(round: &Round) -> Option<Step> {
    if round.aborted {
        return close_unbegun(round, CloseReason::SiblingFailed, |_| true).or_else(|| cancel_running(round));
    }
    if round.ended == Some(Ended::Cut) {
        return close_unbegun(round, CloseReason::MessageCut, |call| call.plan.is_some() && call.writes());
    }
    None
}

/// One at a time and in call order: what hooks and questions see is the order the model spoke in.
fn unjudged(round: &Round) -> Option<CallId> {
    if round.calls.iter().any(|call| matches!(call.phase, Phase::Judging { .. })) {
        return None;
    }
    round.calls.iter().find(|call| call.phase == Phase::New).map(|call| call.id.clone())
}

fn close_unbegun(round: &Round, why: CloseReason, doomed: impl Fn(&Call) -> bool) -> Option<Step> {
    let unbegun = round.calls.iter().filter(|call| call.is_unbegun() && doomed(call));
    let calls: Vec<_> = unbegun.map(|call| call.id.clone()).collect();
    (!calls.is_empty()).then_some(Step::Close { calls, why })
}

fn cancel_running(round: &Round) -> Option<Step> {
    round.calls.iter().find_map(|call| match call.phase {
        Phase::Running { work, cancelling: false, .. } => Some(Step::Cancel { work }),
        _ => None,
    })
}
