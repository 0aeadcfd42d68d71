//! The pure heart of Windlass.
//!
//! A session is an append-only log of [`Event`]s. [`State::apply`] folds an event into [`State`];
//! [`State::next_step`] reads the state and names the next [`Step`]; [`State::accept`] turns a [`Command`]
//! into an event or says why not. Resume, replay, fork and failover are one thing: fold the log, ask again.
//!
//! What is absent: no I/O, no clock, no random, no async. Times and ids arrive inside events. No hook, skill,
//! provider or sub-agent is named here.

mod accept;
mod apply;
mod around;
mod cache;
mod caps;
mod command;
mod compaction;
mod event;
mod id;
mod invariant;
mod ledger;
mod limits;
mod message;
mod model_call;
mod next;
mod profile;
mod schedule;
mod state;
mod step;
mod tally;
mod tool_call;
mod transcript;
mod view;

pub use apply::CONTINUE_TEXT;
pub use cache::Sent;
pub use caps::*;
pub use command::*;
pub use event::*;
pub use id::*;
pub use invariant::check_pairs;
pub use ledger::*;
pub use message::*;
pub use model_call::*;
pub use profile::*;
pub use state::*;
pub use step::*;
pub use tally::Tally;
pub use tool_call::*;
pub use view::*;
