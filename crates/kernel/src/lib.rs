//! The pure heart of Windlass.
//!
//! A session is an append-only log of [`Event`]s. [`State::apply`] folds an event into [`State`];
//! [`State::next_step`] reads the state and names the next [`Step`]; [`State::accept`] turns a [`Command`]
//! into an event or says why not. Nothing here does I/O, reads a clock or makes an id: those arrive inside
//! events. So resume, replay, fork and failover are one thing: fold the log, ask `next_step` again.

mod command;
mod event;
mod id;
mod message;
mod profile;
mod step;

pub use command::*;
pub use event::*;
pub use id::*;
pub use message::*;
pub use profile::*;
pub use step::*;
