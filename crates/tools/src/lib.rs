//! The [`Tool`] trait, the registry, and the built-in tools, one file each.
//!
//! What is absent: no permission is decided here, no event is recorded, no environment is read.

mod tool;

pub use tool::*;
