//! The log on disk behind one [`Store`] trait: memory and SQLite.
//!
//! What is absent: no decision about what to append, no clock (times come in records), no environment.

mod store;

pub use store::*;
