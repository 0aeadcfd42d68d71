//! Model providers behind one [`Model`] trait: one file per wire protocol.
//!
//! What is absent: no retry (the session's ladder decides that), no environment, no global client.

mod model;

pub use model::*;
