//! The log on disk behind one [`Store`] trait: memory and SQLite.
//!
//! What is absent: no decision about what to append, no clock (times come in records), no environment, no task or
//! timer of its own; one thread per open SQLite store, which writes and ends with the store.

mod batch;
mod blob;
mod memory;
mod sqlite;
mod store;
mod upcast;

pub use blob::blob_ref;
pub use memory::MemoryStore;
pub use sqlite::{SqliteOptions, SqliteStore, StoreStats, Worker};
pub use store::*;
pub use upcast::{UpcastError, record_of_line, upcast};
