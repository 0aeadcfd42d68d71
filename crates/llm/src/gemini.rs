//! Gemini's `generateContent`, streamed.
//!
//! What is absent: the cache key (the API finds common beginnings on its own), stop sequences (no request of ours has
//! any), media by address, and tools that run at Google.

mod decode;
mod encode;
mod part;
mod schema;
#[cfg(test)]
mod tests;
mod thinking;

use crate::Request;
use crate::body::Segments;
use crate::call_ids::CallIds;
use crate::endpoint::Target;
use crate::protocol::Protocol;
use crate::sse::SseDecoder;
use std::borrow::Cow;

/// The Gemini API; the base URL ends in `/v1beta`.
pub(crate) struct Gemini;

impl Protocol for Gemini {
    const HEADERS: &'static [(&'static str, &'static str)] = &[];
    type Frames = SseDecoder;
    type Decoder = decode::Decoder;

    fn path(target: &Target) -> Cow<'static, str> {
        // Tuned models live in a folder of their own, which their names begin with.
        let folder = if target.model.contains('/') { "" } else { "models/" };
        format!("/{folder}{}:streamGenerateContent?alt=sse", target.model).into()
    }

    fn key_header(key: &str) -> (&'static str, String) {
        ("x-goog-api-key", key.to_owned())
    }

    fn encode(target: &Target, request: &Request) -> Segments {
        encode::encode(target, request)
    }

    fn decoder(target: &Target, request: &Request) -> decode::Decoder {
        decode::Decoder::new(&target.endpoint.provider, CallIds::behind(request.memo.calls(), &request.messages))
    }
}
