//! A scripted model server: real HTTP/1.1, real streams with pacing, in the protocols of Anthropic Messages (also as
//! Bedrock and Vertex serve them), OpenAI Chat Completions, OpenAI Responses and Gemini.
//!
//! A [`Script`] says what to answer and what a request must contain; `SCRIPT.md` beside this crate describes it.
//! A client cannot tell the [`Server`] from a vendor's, but that it is quick and does as it was told.
//!
//! What is absent: no TLS, no HTTP/2, no compressed request bodies, no prompt cache figures of its own (a script may
//! state them), no check of a signature's value (a dump holds what it was made of), no other wire protocol, no
//! environment, home or working directory.

mod answer;
mod anthropic;
mod bedrock;
mod block_form;
mod capture;
mod check;
mod choose;
mod condition;
mod form;
mod gemini;
mod gemini_input;
mod key;
mod log;
mod models;
mod openai;
mod play;
mod player;
mod refusal;
mod request;
mod respond;
mod responses;
mod responses_input;
mod route;
mod script;
mod server;
mod socket;
mod template;

pub use route::Protocol;
pub use script::{Script, ScriptError};
pub use server::{Options, Seen, Server};
