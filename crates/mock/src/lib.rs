//! A scripted model server: real HTTP/1.1, real SSE with pacing, Anthropic Messages and OpenAI Chat Completions.
//!
//! A [`Script`] says what to answer and what a request must contain; `SCRIPT.md` beside this crate describes it.
//! A client cannot tell the [`Server`] from a vendor's, but that it is quick and does as it was told.
//!
//! What is absent: no TLS, no HTTP/2, no compressed request bodies, no prompt cache figures of its own (a script may
//! state them), no other wire protocol, no environment, home or working directory.

mod answer;
mod anthropic;
mod capture;
mod check;
mod choose;
mod condition;
mod form;
mod log;
mod openai;
mod play;
mod refusal;
mod request;
mod respond;
mod script;
mod server;
mod socket;
mod template;

pub use request::Protocol;
pub use script::{Script, ScriptError};
pub use server::{Options, Seen, Server};
