//! What is known of one call, kept apart from the state.

use super::room;
use windlass_kernel::*;

/// One call, from its block on.
#[derive(Default)]
pub struct Watched {
    pub name: String,
    pub allowed: bool,
    pub denied: bool,
    pub closed: bool,
    pub runs: u32,
    /// Runs that a crash cut off.
    pub lost: bool,
    /// What the model must find as its result.
    pub result: Option<Vec<ContentBlock>>,
    /// Bytes of the result that was left out.
    pub left_out: Option<usize>,
}

/// What a call would touch.
pub fn plan_of(watched: &Watched) -> CallPlan {
    room::plan(&watched.name)
}
