//! Model providers behind one [`Model`] trait: one folder per wire protocol.
//!
//! A call's way: `encode` (what was said before comes from the [`Memo`]) → `body` (segments, sent as they are) →
//! `http` → `sse` → `decode` → `assembly` (blocks from fragments) → [`ModelEvent`]s, one batch per network read.
//!
//! What is absent: no retry (the session's ladder decides that), no environment, no global client, no clock but
//! for waits, no catalogue of models and no token counting.

mod anthropic;
mod assembly;
mod body;
mod call;
mod endpoint;
mod failure;
mod http;
mod memo;
mod model;
mod openai_chat;
mod price;
mod protocol;
pub mod sse;
#[cfg(test)]
mod testing;

pub use anthropic::Anthropic;
pub use endpoint::{ApiKey, Endpoint};
pub use http::{Http, HttpError, HttpOptions};
pub use memo::Memo;
pub use model::*;
pub use openai_chat::OpenAiChat;
pub use price::{PriceError, Prices};
