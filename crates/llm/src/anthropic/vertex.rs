//! The Messages API behind Google Cloud's Vertex AI.

use super::decode::Decoder;
use super::{Dialect, beta_header, encode, segment};
use crate::Request;
use crate::body::Segments;
use crate::endpoint::Target;
use crate::protocol::Protocol;
use crate::sse::SseDecoder;
use std::borrow::Cow;

/// Where the publisher of the models stands in an address.
const PUBLISHER: &str = "/publishers/anthropic";

/// Vertex's `streamRawPredict`; the base URL ends with the location, or with the publisher behind it.
pub(crate) struct Vertex;

impl Protocol for Vertex {
    const HEADERS: &'static [(&'static str, &'static str)] = &[];
    type Frames = SseDecoder;
    type Decoder = Decoder;

    fn path(target: &Target) -> Cow<'static, str> {
        let publisher = match target.endpoint.base_url.trim_end_matches('/').ends_with(PUBLISHER) {
            true => "",
            false => PUBLISHER,
        };
        format!("{publisher}/models/{}:streamRawPredict", segment(&target.model, b"@")).into()
    }

    fn key_header(key: &str) -> (&'static str, String) {
        ("authorization", format!("Bearer {key}"))
    }

    fn quirk_header(target: &Target) -> Option<(&'static str, String)> {
        beta_header(target)
    }

    fn encode(target: &Target, request: &Request) -> Segments {
        encode::encode(target, request, Dialect::Vertex)
    }

    fn decoder(target: &Target, _: &Request) -> Decoder {
        Decoder::new(target.endpoint.provider.clone())
    }
}

/// The address with the host that serves several regions, where a name that stands for them was filled in.
pub(crate) fn multi_region(address: &str) -> String {
    let hosts = [
        ("https://global-aiplatform.googleapis.com/", "https://aiplatform.googleapis.com/"),
        ("https://us-aiplatform.googleapis.com/", "https://aiplatform.us.rep.googleapis.com/"),
        ("https://eu-aiplatform.googleapis.com/", "https://aiplatform.eu.rep.googleapis.com/"),
    ];
    let known = hosts.iter().find_map(|(made, host)| Some(format!("{host}{}", address.strip_prefix(made)?)));
    known.unwrap_or_else(|| address.to_owned())
}
