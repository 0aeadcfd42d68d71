//! The [`Tool`] trait, the registry, the run of one call, and the built-in tools, one file each.
//!
//! What is absent: no permission is decided here, no event is recorded, no environment, home or working folder of
//! this process is read. File tools open what was judged and nothing else, and nothing that ignore files hide; a command is
//! kept from files by the sandbox alone. Processes are Unix processes; there is no Windows shell.

mod ahead;
mod apply_patch;
mod args;
mod ask_user;
mod bash;
mod blocking;
mod builtin;
mod change;
mod collector;
mod cut;
mod diff;
mod edit;
mod file;
mod glob;
mod grep;
mod hidden;
mod hunk;
mod launch;
mod lines;
mod links;
mod ls;
mod orphans;
mod output;
mod patch;
mod place;
mod plain;
mod process;
mod read;
mod registry;
mod root;
mod run;
mod schema;
mod secret_forms;
mod secret_rules;
mod secrets;
mod splice;
mod together;
mod tool;
mod visible;
mod walk;
mod write;

#[cfg(test)]
mod stage;

pub use builtin::builtin;
pub use orphans::kill_leftovers;
pub use output::OUTPUT_LIMIT_BYTES;
pub use registry::{Entry, ToolSettings, Tools};
pub use root::Root;
pub use run::{Finished, run};
pub use schema::Checker;
pub use secret_forms::is_like_a_secret;
pub use secrets::{Patterns, SecretStream, Secrets, Source, Wish};
pub use tool::*;
pub use visible::{is_invisible, visible};
pub use windlass_sandbox as sandbox;
