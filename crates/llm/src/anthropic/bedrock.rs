//! The Messages API behind AWS Bedrock.

use super::decode::Decoder;
use super::{Dialect, encode, segment};
use crate::Request;
use crate::body::Segments;
use crate::endpoint::Target;
use crate::eventstream::EventStream;
use crate::protocol::Protocol;
use std::borrow::Cow;

/// Bedrock's `invoke-with-response-stream`; the base URL is the region's. The model is a model's id, an inference
/// profile's, or the ARN of either.
pub(crate) struct Bedrock;

impl Protocol for Bedrock {
    const HEADERS: &'static [(&'static str, &'static str)] = &[];
    type Frames = EventStream;
    type Decoder = Decoder;

    fn path(target: &Target) -> Cow<'static, str> {
        format!("/model/{}/invoke-with-response-stream", segment(&target.model, b"")).into()
    }

    fn key_header(key: &str) -> (&'static str, String) {
        ("authorization", format!("Bearer {key}"))
    }

    fn encode(target: &Target, request: &Request) -> Segments {
        encode::encode(target, request, Dialect::Bedrock)
    }

    fn decoder(target: &Target, _: &Request) -> Decoder {
        Decoder::new(target.endpoint.provider.clone())
    }
}
