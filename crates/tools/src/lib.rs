//! The [`Tool`] trait, the registry, the run of one call, and the built-in tools, one file each.
//!
//! What is absent: no permission is decided here, no event is recorded, no environment, home or working folder of
//! this process is read, and no file is kept from being reached (the policy and the sandbox do that). Processes are
//! Unix processes; there is no Windows shell.

mod apply_patch;
mod args;
mod ask_user;
mod bash;
mod builtin;
mod change;
mod collector;
mod diff;
mod edit;
mod file;
mod glob;
mod grep;
mod hunk;
mod lines;
mod ls;
mod orphans;
mod output;
mod patch;
mod process;
mod read;
mod registry;
mod run;
mod schema;
mod splice;
mod together;
mod tool;
mod walk;
mod write;

#[cfg(test)]
mod stage;

pub use builtin::builtin;
pub use orphans::kill_leftovers;
pub use output::OUTPUT_LIMIT_BYTES;
pub use registry::{Entry, ToolSettings, Tools};
pub use run::{Finished, run};
pub use schema::Checker;
pub use tool::*;
