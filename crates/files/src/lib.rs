//! The tools `read`, `write` and `edit` as one WebAssembly component, made of the very sources of the built-in ones.
//!
//! One call is one run: what is wanted comes on stdin as JSON, the output goes to stdout the same way. The folders that
//! the host has opened are all there is; they bear the names they have outside, so every path means the same.
//!
//! What is absent: everything that asks a system for more than files. `root` is written anew, over the host's folders.
#![cfg(target_os = "wasi")]
#![allow(dead_code, unused_imports, reason = "of the shared sources, a component needs a part")]

mod answer;
mod blocking;
mod links;
mod output;
mod root;
mod sandbox;
mod schema;

#[path = "../../tools/src/args.rs"]
mod args;
#[path = "../../tools/src/change.rs"]
mod change;
#[path = "../../tools/src/cut.rs"]
mod cut;
#[path = "../../tools/src/diff.rs"]
mod diff;
#[path = "../../tools/src/edit.rs"]
mod edit;
#[path = "../../tools/src/file.rs"]
mod file;
#[path = "../../tools/src/lines.rs"]
mod lines;
#[path = "../../tools/src/place.rs"]
mod place;
#[path = "../../tools/src/read.rs"]
mod read;
#[path = "../../tools/src/splice.rs"]
mod splice;
#[path = "../../tools/src/tool.rs"]
mod tool;
#[path = "../../tools/src/write.rs"]
mod write;

pub use cut::OUTPUT_LIMIT_BYTES;
pub use root::{Root, Secrets};
pub use tool::*;

use std::io;
use std::process::ExitCode;

/// Reads the call from stdin and answers it on stdout.
pub fn run() -> ExitCode {
    let wanted = match serde_json::from_reader(io::stdin().lock()) {
        Ok(wanted) => wanted,
        Err(error) => {
            eprintln!("the call can't be read: {error}");
            return ExitCode::FAILURE;
        }
    };
    match serde_json::to_writer(io::stdout().lock(), &answer::answer(wanted)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("the output can't be told: {error}");
            ExitCode::FAILURE
        }
    }
}
