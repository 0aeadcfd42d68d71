//! What both stores read out of a batch: whether it is well formed, and the facts that a listing or the inbox needs.

use crate::{Batch, StoreError};
use std::sync::Arc;
use windlass_kernel::{ContentBlock, Event, InputId, LedgerEntry, Record, SessionId};

/// Characters of a session's title.
const TITLE_CHARS_MAX: usize = 80;

/// What the event `Opened` says of its session.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Opening {
    pub cwd: String,
    pub agent: String,
    pub created_at: u64,
    pub parent: Option<SessionId>,
}

/// Refuses a batch whose records do not follow each other or belong to another session, epoch or tenant.
pub(crate) fn check(batch: &Batch, path: &str) -> Result<(), StoreError> {
    let mut seq = batch.expected;
    for record in &batch.records {
        seq = seq.next();
        let wrong = if record.session != batch.fence.session {
            format!("belongs to session {}", record.session)
        } else if record.epoch != batch.fence.epoch {
            format!("has epoch {}, not {}", record.epoch, batch.fence.epoch)
        } else if record.seq != seq {
            format!("stands where event {seq} must")
        } else if record.tenant != batch.records[0].tenant {
            format!("has tenant `{}`, not `{}`", record.tenant, batch.records[0].tenant)
        } else {
            continue;
        };
        let message =
            format!("event {} in a batch for session {} {wrong}: nothing was written", record.seq, batch.fence.session);
        return Err(StoreError::Unavailable { path: path.to_owned(), message });
    }
    Ok(())
}

/// Refuses records of a tenant that the session is not of.
pub(crate) fn check_tenant(session: SessionId, has: &str, given: &str, path: &str) -> Result<(), StoreError> {
    if has == given {
        return Ok(());
    }
    let message = format!("session {session} is of tenant `{has}`, not `{given}`: nothing was written");
    Err(StoreError::Unavailable { path: path.to_owned(), message })
}

/// The session's opening, if it is among `records`.
pub(crate) fn opening(records: &[Arc<Record>]) -> Option<Opening> {
    records.iter().find_map(|record| match &record.event {
        Event::Opened { cwd, agent, parent, .. } => Some(Opening {
            cwd: cwd.clone(),
            agent: agent.clone(),
            created_at: record.at,
            parent: parent.as_ref().map(|parent| parent.session),
        }),
        _ => None,
    })
}

/// The first line with words in the prompts among `records`, cut to 80 characters.
pub(crate) fn title(records: &[Arc<Record>]) -> Option<String> {
    let prompts = records.iter().filter_map(|record| match &record.event {
        Event::Prompted(prompted) => Some(&prompted.blocks),
        _ => None,
    });
    let texts = prompts.flatten().filter_map(|block| match block {
        ContentBlock::Text { text } => Some(text.as_str()),
        _ => None,
    });
    texts.flat_map(str::lines).map(str::trim).find(|line| !line.is_empty()).map(shorten)
}

fn shorten(line: &str) -> String {
    match line.char_indices().nth(TITLE_CHARS_MAX) {
        None => line.to_owned(),
        Some(_) => line.chars().take(TITLE_CHARS_MAX - 1).chain(['…']).collect(),
    }
}

/// The inputs that are in the log once this batch is: those it consumes and those its events name.
pub(crate) fn inputs(batch: &Batch) -> Vec<InputId> {
    let named = batch.records.iter().filter_map(|record| match &record.event {
        Event::Prompted(prompted) => Some(prompted.input),
        Event::Noted { input, .. } | Event::Cleared { input } => Some(*input),
        _ => None,
    });
    batch.consumed.iter().copied().chain(named).collect()
}

/// What the batch says to the ledger. The agent and the root of its lines are the session's, which the store knows.
pub(crate) fn entries(records: &[Arc<Record>]) -> Vec<LedgerEntry> {
    records.iter().filter_map(|record| LedgerEntry::of(record, "", record.session)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_title_is_cut_between_characters() {
        assert_eq!(shorten("short"), "short");
        let eighty = "ü".repeat(80);
        assert_eq!(shorten(&eighty), eighty);
        let cut = shorten(&"ü".repeat(81));
        assert_eq!(cut.chars().count(), 80);
        assert!(cut.ends_with("ü…"), "{cut}");
    }
}
