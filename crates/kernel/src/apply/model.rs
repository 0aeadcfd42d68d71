//! What the model's reports come to. Each names its work; a report of any other work is of a round gone by.

use crate::*;
use std::sync::Arc;

/// Added after a reply that hit its output limit.
pub const CONTINUE_TEXT: &str = "Output token limit hit. Resume directly — no apology, no recap of what you were doing. \
     Pick up mid-thought if that is where the cut happened. Break remaining work into smaller pieces.";

impl State {
    /// Shows the model what came in since it last spoke, and opens the round.
    pub(super) fn round_began(&mut self, work: Seq) {
        let Some(turn) = &mut self.turn else { return };
        let broke_off = turn.last == Last::Said(StopReason::MaxTokens);
        // An input takes the place of the request to go on: two would contradict each other.
        if broke_off && self.pending.is_empty() {
            turn.continuations += 1;
            self.messages.push(Arc::new(Message::user(vec![ContentBlock::text(CONTINUE_TEXT)])));
        }
        for input in self.pending.drain(..) {
            self.messages.push(input.message);
            if input.output_schema.is_some() {
                (turn.output_schema, turn.repairs) = (input.output_schema, 0);
            }
        }
        turn.paused = None;
        turn.round =
            Some(Round { work, blocks: vec![], ended: None, cancelling: false, calls: vec![], aborted: false });
    }

    fn open_round(&mut self, work: Seq) -> Option<&mut Round> {
        let round = self.turn.as_mut()?.round.as_mut()?;
        (round.work == work && round.ended.is_none()).then_some(round)
    }

    pub(super) fn block_finished(&mut self, work: Seq, block: &ContentBlock, partial: bool) {
        if matches!(block, ContentBlock::ToolResult(_)) {
            return;
        }
        let known = matches!(block, ContentBlock::ToolUse(tool_use) if self.call_ids.contains(&tool_use.id));
        let Some(round) = self.open_round(work) else { return };
        if let ContentBlock::ToolUse(tool_use) = block {
            // Two uses under one id could not both have a result.
            if partial || known || round.calls.iter().any(|call| call.id == tool_use.id) {
                return;
            }
            round.calls.push(Call {
                id: tool_use.id.clone(),
                name: tool_use.name.clone(),
                input: tool_use.input.clone(),
                made: None,
                plan: None,
                context: None,
                phase: Phase::New,
            });
        }
        round.blocks.push(Block { block: block.clone(), partial });
    }

    pub(super) fn model_finished(&mut self, record: &Record, work: Seq, stop: StopReason, spent: &Spent) {
        let Some(round) = self.open_round(work) else { return };
        round.ended = Some(Ended::Whole(stop));
        self.spend(spent);
        self.totals.model_calls += 1;
        self.context_tokens = spent.usage.context();
        match spent.estimated {
            // The next answer has no count to be held against.
            true => self.rewrote_messages(),
            false => self.cached(&spent.usage, record.at),
        }
        self.reopens = 0;
        if let Some(turn) = &mut self.turn {
            turn.model_calls += 1;
            turn.model_errors = 0;
            turn.failure = None;
            turn.newest_failure = None;
            (turn.stalls, turn.overloads) = (0, 0);
            turn.retry_after_ms = None;
        }
        self.close_round();
    }

    pub(super) fn model_failed(&mut self, work: Seq, error: &ModelFailure, spent: &Spent) {
        if self.open_round(work).is_none() {
            return;
        }
        self.spend(spent);
        if let Some(turn) = &mut self.turn {
            turn.model_errors += 1;
            turn.newest_failure = Some(error.kind);
            turn.stalls += u32::from(error.kind == FailureKind::Stalled);
            turn.overloads = if error.kind == FailureKind::Overloaded { turn.overloads + 1 } else { 0 };
            turn.retry_after_ms = error.retry_after_ms;
            let first = turn.failure.get_or_insert_with(|| error.clone());
            // What no retry can mend is the true cause, whatever failed before it.
            if first.kind.is_worth_retrying() && !error.kind.is_worth_retrying() {
                *first = error.clone();
            }
        }
        self.broke_off();
        self.close_round();
    }

    pub(super) fn model_cancelled(&mut self, work: Seq, spent: &Spent) {
        let Some(round) = self.open_round(work) else { return };
        round.ended = Some(Ended::Cancelled);
        self.spend(spent);
        self.close_round();
    }

    /// The stream ended before the message was whole. If a call was made the message stands, cut there, for the
    /// call may have run; if not, the attempt never was.
    pub(super) fn broke_off(&mut self) {
        let Some(turn) = &mut self.turn else { return };
        match &mut turn.round {
            Some(round) if !round.calls.is_empty() => round.ended = Some(Ended::Cut),
            _ => {
                turn.round = None;
                turn.last = Last::Retry;
            }
        }
    }

    pub(super) fn spend(&mut self, spent: &Spent) {
        self.totals.usage.add(&spent.usage);
        match spent.cost_micro_usd {
            Some(cost) => self.totals.cost_micro_usd = self.totals.cost_micro_usd.saturating_add(cost),
            None => self.totals.unpriced_calls += u32::from(spent.usage != Usage::default()),
        }
    }
}
