//! Tools as WebAssembly components: found in folders, granted what their manifests name, run in a fresh store a call.
//!
//! A tool is a folder with `tool.toml` and a WASI 0.2 command: arguments come on stdin as JSON, stdout is the answer.
//!
//! What is absent: no network, no variable, no folder, no date that a manifest does not name; no state from call to
//! call; no opinion on whether a call may run (the policy's, as of every tool), and none on whom to trust (told by who
//! loads).

mod cache;
mod component;
mod confine;
mod files;
mod host;
mod install;
mod load;
mod manifest;
mod program;
mod sink;
mod template;

pub use component::Component;
pub use files::{BOXED, boxed};
pub use host::Host;
pub use install::Parcel;
pub use load::{Folder, Found, MANIFEST, Standing, load};
pub use manifest::Manifest;
pub use template::template;
