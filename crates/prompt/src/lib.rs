//! What the model is told.
//!
//! [`system`] builds the system prompt in named sections, [`user_context`] what stands before a prompt,
//! [`summary_request`] and [`summary_message`] the two sides of a compaction; [`parse_slash`] and [`extract_intent`]
//! read what a person typed, [`shape`] the data that came with it.
//!
//! What is absent: no I/O, no clock, no environment; facts come in as values. No provider's cache marks: a section
//! says whether it is fixed, and where that ends is the boundary. No knowledge of single tools beyond their names.

mod chinese;
mod clip;
mod context;
mod english;
mod intent;
mod shape;
mod slash;
mod summary;
mod system;
mod words;

pub use context::{UserContext, user_context};
pub use intent::{INTENT_CHARS, extract_intent};
pub use shape::shape;
pub use slash::{Slash, parse_slash};
pub use summary::{summary_message, summary_request};
pub use system::{Facts, GIT_BYTES, OutputStyle, PROJECT_BYTES, ProjectFile, Section, system};
pub use words::Locale;
