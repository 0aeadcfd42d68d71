//! A log folded from its store.

use windlass_kernel::{Seq, SessionId, State};
use windlass_store::{Store, StoreError};

/// Records read from the store at a time.
const PAGE: usize = 1_000;

/// The state of `session` once event `upto` had happened, or as of the log's end.
pub async fn replay(store: &dyn Store, session: SessionId, upto: Option<Seq>) -> Result<State, StoreError> {
    let mut state = State::default();
    loop {
        let left = upto.map_or(PAGE, |upto| upto.0.saturating_sub(state.head.0).min(PAGE as u64) as usize);
        let records = if left == 0 { vec![] } else { store.read(session, state.head.next(), left).await? };
        records.iter().for_each(|record| state.apply(record));
        if records.len() < PAGE {
            return Ok(state);
        }
    }
}
