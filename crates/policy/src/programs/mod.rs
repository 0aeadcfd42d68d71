//! What programs do with their words: wrappers seen through, options that write or run others, files they use.
//!
//! One file per family of programs, with tables where tables do; `act.rs` is what a family tells about one command,
//! `reader.rs` goes from commands to deeds.

mod act;
mod archives;
mod assign;
mod build;
mod build_tables;
mod builtins;
mod code;
mod containers;
mod files;
mod filters;
mod find;
mod git;
mod git_changes;
mod git_tables;
mod interpreters;
mod net;
mod options;
mod place;
mod reader;
mod runners;
mod system;
mod text;
mod wrappers;

#[cfg(test)]
mod tests;

pub use reader::{read, read_text};
