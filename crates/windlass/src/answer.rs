//! What a turn came to.

use windlass_kernel::{End, ReachedCap, Tally};
use windlass_runtime::SendError;
use windlass_store::StoreError;

/// The end of a turn: whatever the reason, what was said and spent is here.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    pub text: String,
    pub end: End,
    pub tally: Tally,
}

#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Send(#[from] SendError),
    #[error("the session was closed before the turn ended")]
    Closed,
    #[error("the turn waits, for {0}: raise the cap by `Command::Configure` and follow it with `rejoin`")]
    Paused(ReachedCap),
    #[error("the conversation was not compacted: {0}")]
    NotCompacted(String),
    #[error("no runtime could be started: {0}")]
    Runtime(#[from] std::io::Error),
}
