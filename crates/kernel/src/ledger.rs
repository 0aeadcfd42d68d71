//! What each model call took: a line a call, folded from the log, so that replaying gives the same lines.

use crate::*;
use serde::{Deserialize, Serialize};

/// Milliseconds of a day; days are those of UTC.
pub const DAY_MS: u64 = 86_400_000;
/// More of anything in one call is put down as this much: sums of lines stay far from what a store can count to.
const MOST: u64 = 1 << 50;

/// One attempt at a model call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LedgerLine {
    pub session: SessionId,
    /// The session at the root of the agent tree: itself, or that of its parent.
    pub root: SessionId,
    /// The `Began` of the call.
    pub work: Seq,
    /// When it was made, in milliseconds since the Unix epoch.
    pub at: u64,
    pub agent: String,
    pub provider: String,
    pub model: String,
    pub role: ModelRole,
    pub attempt: u32,
    pub outcome: CallOutcome,
    pub usage: Usage,
    /// Millionths of a US dollar; none where no price is known, or nothing was taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_micro_usd: Option<u64>,
    /// `usage` is reckoned, not counted by the provider.
    pub estimated: bool,
    /// It took something, and nobody knows at what price; so it is until the call ends.
    pub unpriced: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_token_ms: Option<u64>,
    /// Milliseconds from the call to its end, waits before a retry among them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took_ms: Option<u64>,
}

/// How a model call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallOutcome {
    /// It is under way.
    Open,
    Answered,
    Failed,
    Cancelled,
    /// Its process died or left before it ended: nobody knows what it took.
    Lost,
}

/// What a record changes among the lines of its session.
#[derive(Clone, Debug, PartialEq)]
pub enum LedgerEntry {
    /// A new line.
    Called(Box<LedgerLine>),
    /// The end of the line that is open under `work`; of any other it says nothing.
    Ended(LedgerEnd),
    /// The end of all lines that are open.
    Lost,
}

#[derive(Clone, Debug, PartialEq)]
pub struct LedgerEnd {
    pub work: Seq,
    pub at: u64,
    pub outcome: CallOutcome,
    pub spent: Spent,
    pub unpriced: bool,
}

/// Lines added up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LedgerSum {
    /// What the lines have in common: a day as `2026-11-21`, a `PROVIDER/NAME`, an agent.
    pub key: String,
    pub calls: u64,
    pub usage: Usage,
    /// Of the calls whose price is known.
    pub cost_micro_usd: u64,
    pub unpriced_calls: u64,
    pub estimated_calls: u64,
    /// The part of the cost that stands on estimates.
    pub estimated_micro_usd: u64,
}

impl CallOutcome {
    pub const ALL: [CallOutcome; 5] =
        [CallOutcome::Open, CallOutcome::Answered, CallOutcome::Failed, CallOutcome::Cancelled, CallOutcome::Lost];

    pub fn name(self) -> &'static str {
        match self {
            CallOutcome::Open => "open",
            CallOutcome::Answered => "answered",
            CallOutcome::Failed => "failed",
            CallOutcome::Cancelled => "cancelled",
            CallOutcome::Lost => "lost",
        }
    }
}

impl ModelRole {
    pub const ALL: [ModelRole; 4] = [ModelRole::Main, ModelRole::Compaction, ModelRole::Subagent, ModelRole::Review];

    pub fn name(self) -> &'static str {
        match self {
            ModelRole::Main => "main",
            ModelRole::Compaction => "compaction",
            ModelRole::Subagent => "subagent",
            ModelRole::Review => "review",
        }
    }
}

impl LedgerEntry {
    /// What `record` says to the ledger of a session whose agent is `agent` and whose tree begins at `root`.
    pub fn of(record: &Record, agent: &str, root: SessionId) -> Option<LedgerEntry> {
        use CallOutcome::*;
        let end =
            |work: Seq, outcome, spent: &Spent| LedgerEntry::Ended(LedgerEnd::new(work, record.at, outcome, spent));
        Some(match &record.event {
            Event::ModelCalled(called) => LedgerEntry::Called(Box::new(LedgerLine::open(record, called, agent, root))),
            Event::ModelFinished { work, spent, .. } | Event::Compacted { work, spent, .. } => {
                end(*work, Answered, spent)
            }
            Event::ModelFailed { work, spent, .. } => end(*work, Failed, spent),
            Event::ModelCancelled { work, spent } => end(*work, Cancelled, spent),
            Event::CompactionFailed { work, spent: Some(spent), .. } => end(*work, Failed, spent),
            Event::Judged(judged) => {
                let review = judged.review.as_ref()?;
                end(judged.work, if review.allows.is_some() { Answered } else { Failed }, &review.spent)
            }
            // Older logs do not tell what it took before it failed.
            Event::CompactionFailed { work, .. } => {
                let end = LedgerEnd::new(*work, record.at, Failed, &Spent::default());
                LedgerEntry::Ended(LedgerEnd { unpriced: true, ..end })
            }
            Event::Reopened { .. } => LedgerEntry::Lost,
            _ => return None,
        })
    }

    /// Makes `lines`, those of one session in order, say what happened.
    pub fn enter(self, lines: &mut Vec<LedgerLine>) {
        match self {
            LedgerEntry::Called(line) => lines.push(*line),
            LedgerEntry::Ended(end) => {
                let open = lines.iter_mut().rev().find(|line| line.work == end.work);
                if let Some(line) = open.filter(|line| line.outcome == CallOutcome::Open) {
                    line.end(&end);
                }
            }
            LedgerEntry::Lost => {
                for line in lines.iter_mut().filter(|line| line.outcome == CallOutcome::Open) {
                    line.outcome = CallOutcome::Lost;
                }
            }
        }
    }
}

impl LedgerEnd {
    fn new(work: Seq, at: u64, outcome: CallOutcome, spent: &Spent) -> LedgerEnd {
        let Usage { input, cache_read, cache_write, output, reasoning } = spent.usage;
        let usage = Usage {
            input: input.min(MOST),
            cache_read: cache_read.min(MOST),
            cache_write: cache_write.min(MOST),
            output: output.min(MOST),
            reasoning: reasoning.min(MOST),
        };
        let cost_micro_usd = spent.cost_micro_usd.map(|cost| cost.min(MOST));
        let unpriced = cost_micro_usd.is_none() && usage != Usage::default();
        LedgerEnd { work, at, outcome, spent: Spent { usage, cost_micro_usd, ..*spent }, unpriced }
    }
}

impl LedgerLine {
    fn open(record: &Record, called: &ModelCalled, agent: &str, root: SessionId) -> LedgerLine {
        LedgerLine {
            session: record.session,
            root,
            work: called.work,
            at: record.at,
            agent: agent.to_owned(),
            provider: called.provider.clone(),
            model: called.model.clone(),
            role: called.role,
            attempt: called.attempt,
            outcome: CallOutcome::Open,
            usage: Usage::default(),
            cost_micro_usd: None,
            estimated: false,
            unpriced: true,
            first_token_ms: None,
            took_ms: None,
        }
    }

    fn end(&mut self, end: &LedgerEnd) {
        self.outcome = end.outcome;
        self.usage = end.spent.usage;
        self.cost_micro_usd = end.spent.cost_micro_usd;
        self.estimated = end.spent.estimated;
        self.unpriced = end.unpriced;
        self.first_token_ms = end.spent.first_token_ms;
        self.took_ms = Some(end.at.saturating_sub(self.at));
    }

    pub fn spending(&self) -> Spending {
        Spending { micro_usd: self.cost_micro_usd.unwrap_or(0), tokens: self.usage.context() }
    }
}

impl LedgerSum {
    pub fn add(&mut self, line: &LedgerLine) {
        let cost = line.cost_micro_usd.unwrap_or(0);
        self.calls += 1;
        self.usage.add(&line.usage);
        self.cost_micro_usd += cost;
        self.unpriced_calls += u64::from(line.unpriced);
        if line.estimated {
            self.estimated_calls += 1;
            self.estimated_micro_usd += cost;
        }
    }
}

/// The lines of one session's log, whose tree begins at `root`.
pub fn ledger<'a>(records: impl IntoIterator<Item = &'a Record>, root: Option<SessionId>) -> Vec<LedgerLine> {
    let (mut agent, mut parent, mut lines) = (String::new(), None, vec![]);
    for record in records {
        if let Event::Opened { agent: name, parent: by, .. } = &record.event {
            agent.clone_from(name);
            parent = by.as_ref().map(|by| by.session);
        }
        let root = root.or(parent).unwrap_or(record.session);
        if let Some(entry) = LedgerEntry::of(record, &agent, root) {
            entry.enter(&mut lines);
        }
    }
    lines
}

/// The day of `at` in UTC, as `2026-11-21`.
pub fn utc_day(at: u64) -> String {
    // Counted in years that begin in March, so that the leap day is the last of its year.
    let days = at / DAY_MS + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let date = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    format!("{:04}-{month:02}-{date:02}", era * 400 + year + next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        let days = [0, 951_782_399_999, 951_782_400_000, 951_868_800_000, 1_735_689_599_000, 1_795_219_200_000];
        assert_eq!(
            days.map(utc_day),
            ["1970-01-01", "2000-02-28", "2000-02-29", "2000-03-01", "2024-12-31", "2026-11-21"]
        );
    }

    #[test]
    fn names_are_those_of_the_log() {
        for outcome in CallOutcome::ALL {
            assert_eq!(serde_json::to_value(outcome).unwrap(), outcome.name());
        }
        for role in ModelRole::ALL {
            assert_eq!(serde_json::to_value(role).unwrap(), role.name());
        }
    }
}
