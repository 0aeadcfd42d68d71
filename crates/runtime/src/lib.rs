//! The session loop and the rooms that do its steps.
//!
//! One [`Session`] folds one log, asks the kernel for the next step, and lets a room do it. Front ends hold a
//! [`Handle`]: they send commands and follow frames. What is absent: no environment, no home, no clock of its own,
//! no free task; everything comes in through [`Setup`].

mod answers;
mod briefing;
mod draft;
mod feed;
mod frame;
mod gate;
mod handle;
mod hands;
mod hooking;
mod inbox;
mod listening;
mod news;
mod opening;
mod plan;
mod question;
mod redact;
mod replay;
mod report;
mod review;
mod rooms;
mod session;
mod setup;
mod spending;

pub use frame::*;
pub use handle::*;
pub use hooking::Hooking;
pub use replay::replay;
pub use rooms::finish::json_part;
pub use session::*;
pub use setup::*;
