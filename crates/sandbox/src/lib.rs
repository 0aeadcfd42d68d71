//! A wall around processes: namespaces, Landlock, seccomp, limits, and an honest account of which of them stand.
//!
//! [`Wall::enclose`] turns a prepared command into the same command behind the wall: what is started is the program
//! named in [`Settings::program`], whose `main` begins with [`enter`] and which becomes the wall's keeper. The keeper
//! puts the wall up, tries it, starts the command, and ends everything when the command, its caller or the whole program
//! is gone. Behind a full wall a command writes in its workspace, in a `/tmp` of its own and in what was listed; it sees
//! its own processes only, reaches the listed hosts only, and leaves nothing running.
//!
//! What is absent: no decision about what may run (that is the policy's), no environment, home or working folder of this
//! process, no control groups (memory and processor time are not shared out), no images and no other root file system,
//! and no wall outside Linux.

mod account;
mod hosts;
mod settings;
mod stock;
mod wall;

#[cfg(target_os = "linux")]
mod bubblewrap;
#[cfg(target_os = "linux")]
mod fence;
#[cfg(target_os = "linux")]
mod filter;
#[cfg(target_os = "linux")]
mod guarded;
#[cfg(target_os = "linux")]
mod inside;
#[cfg(target_os = "linux")]
mod keeper;
#[cfg(target_os = "linux")]
mod mounts;
#[cfg(target_os = "linux")]
mod namespaces;
#[cfg(target_os = "linux")]
mod placeholder;
#[cfg(target_os = "linux")]
mod plan;
#[cfg(target_os = "linux")]
mod proxy;
#[cfg(target_os = "linux")]
mod raw;
#[cfg(target_os = "linux")]
mod relay;
#[cfg(target_os = "linux")]
mod snapshot;

pub use hosts::{BadHost, HostPattern};
#[cfg(target_os = "linux")]
pub use keeper::enter;
pub use settings::{Choice, Kind, Limits, Network, Settings, Spec};
pub use stock::{inherits, secrets};
pub use wall::{Found, Wall};

/// Does nothing: there are no walls outside Linux.
#[cfg(not(target_os = "linux"))]
pub fn enter(_arguments: impl Iterator<Item = std::ffi::OsString>) {}
