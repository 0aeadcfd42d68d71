//! What a turn came to, counted from its records: the last line of the terminal, the JSON of a headless run.

use crate::*;
use serde::Serialize;

/// A running count; feed it every record in order.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Tally {
    pub model_calls: u32,
    /// Tool calls that ran.
    pub tool_runs: u32,
    pub usage: Usage,
    /// Millionths of a US dollar; none as soon as one call's price is unknown.
    pub cost_micro_usd: Option<u64>,
    /// What a part of the calls took is reckoned, not counted by the provider.
    pub estimated: bool,
    /// Milliseconds from the first record to the last.
    pub took_ms: u64,
    /// The text of the newest message: at the end of the turn, the answer.
    pub text: String,
    pub end: Option<End>,
    #[serde(skip)]
    began_at: Option<u64>,
    /// Bytes of `text` that stand when the model speaks again: a reply that hit its output limit goes on in the next,
    /// however many attempts that takes.
    #[serde(skip)]
    kept: usize,
    #[serde(skip)]
    unpriced: bool,
    #[serde(skip)]
    round: Option<Seq>,
}

impl Tally {
    pub fn add(&mut self, record: &Record) {
        let began = *self.began_at.get_or_insert(record.at);
        self.took_ms = record.at.saturating_sub(began);
        match &record.event {
            Event::Began { step: Step::RunTool { .. } } => {
                self.tool_runs += 1;
                self.kept = 0;
            }
            Event::Began { step: Step::CallModel } => {
                self.round = Some(record.seq);
                self.text.truncate(self.kept);
            }
            Event::BlockFinished { work, block: ContentBlock::Text { text }, .. } if self.round == Some(*work) => {
                self.text.push_str(text);
            }
            Event::ModelFinished { stop, spent, .. } => {
                self.model_calls += 1;
                self.kept = if *stop == StopReason::MaxTokens { self.text.len() } else { 0 };
                self.spend(spent);
            }
            Event::ModelFailed { spent, .. } | Event::ModelCancelled { spent, .. } | Event::Compacted { spent, .. } => {
                self.spend(spent)
            }
            Event::TurnFinished { end, .. } => self.end = Some(end.clone()),
            _ => {}
        }
    }

    fn spend(&mut self, spent: &Spent) {
        if spent.usage == Usage::default() && spent.cost_micro_usd.is_none() {
            return;
        }
        self.usage.add(&spent.usage);
        self.estimated |= spent.estimated;
        self.unpriced |= spent.cost_micro_usd.is_none();
        let so_far = self.cost_micro_usd.unwrap_or(0) + spent.cost_micro_usd.unwrap_or(0);
        self.cost_micro_usd = (!self.unpriced).then_some(so_far);
    }
}
