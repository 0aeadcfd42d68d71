//! Model providers behind one [`Model`] trait: one folder per wire protocol.
//!
//! A call's way: `encode` (what was said before comes from the [`Memo`]) → `body` (segments, sent as they are) →
//! `http` → `sse` → `decode` → `assembly` (blocks from fragments) → [`ModelEvent`]s, one batch per network read.
//!
//! What is absent: no retry (the session's ladder decides that), no environment, no global client, no token counting,
//! and no clock but for waits, for the date in a signature to AWS, and for a wait that a provider gives as a date.

mod anthropic;
mod assembly;
mod auth;
mod body;
mod call;
mod call_ids;
mod calls;
mod catalog;
mod effort;
mod endpoint;
mod eventstream;
mod failure;
mod frames;
mod gemini;
mod head;
mod http;
mod list;
mod media;
mod memo;
mod model;
mod openai_chat;
mod post;
mod price;
mod protocol;
mod remote;
mod responses;
mod said;
mod schema;
mod sigv4;
pub mod sse;
#[cfg(test)]
mod testing;
mod text_tools;
mod wording;

pub use catalog::*;
pub use endpoint::{ApiKey, Auth, AwsKeys, Endpoint, KeySource};
pub use http::{Clocks, Http, HttpError, HttpOptions};
pub use list::{Listed, list};
pub use memo::Memo;
pub use model::*;
pub use price::{Above, PriceError, Prices};
pub use remote::connect;
pub use text_tools::text_tools;
