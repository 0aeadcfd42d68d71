//! OpenAI's Responses API, streamed: nothing is kept at the provider, so all that was said goes with each request.
//!
//! A budget of thinking tokens has no word here and is sent as the effort nearest to it. The phase of a text
//! (commentary or final answer) is not kept: text is text for everybody.

mod decode;
mod encode;
#[cfg(test)]
mod tests;

use crate::Request;
use crate::body::Segments;
use crate::endpoint::Target;
use crate::protocol::Protocol;
use crate::sse::SseDecoder;
use std::borrow::Cow;

/// The base URL ends in `/v1`, or whatever stands before `/responses`.
pub(crate) struct Responses;

impl Protocol for Responses {
    const HEADERS: &'static [(&'static str, &'static str)] = &[];
    type Frames = SseDecoder;
    type Decoder = decode::Decoder;

    fn path(_: &Target) -> Cow<'static, str> {
        "/responses".into()
    }

    fn key_header(key: &str) -> (&'static str, String) {
        ("authorization", format!("Bearer {key}"))
    }

    fn encode(target: &Target, request: &Request) -> Segments {
        encode::encode(target, request)
    }

    fn decoder(target: &Target, _: &Request) -> decode::Decoder {
        decode::Decoder::new(&target.endpoint.provider)
    }
}
