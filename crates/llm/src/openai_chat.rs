//! OpenAI Chat Completions, streamed: OpenAI itself and every server that speaks like it.
//!
//! What differs between the servers is told by [`crate::Quirk`]s. Effort and thinking tokens go where a quirk says how
//! they are written; elsewhere there is no word for them. That calls may come in parallel is the default everywhere and
//! not said.

mod decode;
mod details;
mod encode;
mod frame;
mod opening;
#[cfg(test)]
mod tests;

use crate::Request;
use crate::body::Segments;
use crate::call_ids::CallIds;
use crate::endpoint::Target;
use crate::protocol::Protocol;
use crate::sse::SseDecoder;
use std::borrow::Cow;

/// The base URL ends in `/v1`, or whatever stands before `/chat/completions`.
pub(crate) struct Chat;

impl Protocol for Chat {
    const HEADERS: &'static [(&'static str, &'static str)] = &[];
    type Frames = SseDecoder;
    type Decoder = decode::Decoder;

    fn path(_: &Target) -> Cow<'static, str> {
        "/chat/completions".into()
    }

    fn key_header(key: &str) -> (&'static str, String) {
        ("authorization", format!("Bearer {key}"))
    }

    fn encode(target: &Target, request: &Request) -> Segments {
        encode::encode(target, request)
    }

    fn decoder(target: &Target, request: &Request) -> decode::Decoder {
        decode::Decoder::new(&target.endpoint.provider, CallIds::behind(request.memo.calls(), &request.messages))
    }
}
