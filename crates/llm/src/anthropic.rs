//! The Anthropic Messages API, streamed: at its home, behind AWS Bedrock and behind Google's Vertex.
//!
//! How a request's wishes are told to a model:
//!
//! | effort | budget for thinking, in tokens | with the quirk `adaptive-thinking` |
//! |---|---|---|
//! | none | no thinking | `disabled` with the quirk `thinking-switch`, else adaptive, `low` |
//! | minimal | 1,024 | adaptive, `low` |
//! | low | 4,096 | adaptive, `low` |
//! | medium | 10,000 | adaptive, `medium` |
//! | high | 32,000 | adaptive, `high` |
//! | max | all there is | adaptive, `max` |
//!
//! A budget (also one given as `thinking_tokens`, which counts where no effort is given) leaves a quarter of
//! `max_tokens` for the answer; where less than 1,024 tokens are left for thinking, there is none. An adaptive model is
//! told the nearest of the words it takes, also for such a number. Models that cannot but think are asked to do it all
//! the same, for thinking that can be read.
//!
//! A forced tool choice and thinking exclude each other: such a call does without thinking. Sampling settings are not
//! sent where the model thinks, nor to models that refuse them. The tool choice is not sent without tools. `cache_key`
//! is not sent: the provider finds what it has kept by the bytes.

mod bedrock;
#[cfg(test)]
mod cloud_tests;
mod decode;
mod encode;
mod parameters;
mod schema;
#[cfg(test)]
mod tests;
mod vertex;

pub(crate) use bedrock::Bedrock;
pub(crate) use vertex::{Vertex, multi_region};

use crate::body::Segments;
use crate::endpoint::Target;
use crate::protocol::Protocol;
use crate::sse::SseDecoder;
use crate::{Quirk, Request};
use std::borrow::Cow;
use windlass_kernel::ContentBlock;

/// The header that lists the features in trial that a request makes use of.
const BETA: &str = "anthropic-beta";
/// The one that lets thinking be dropped whose conversation changed.
const BINDING_BETA: &str = "thinking-binding-controls-2026-08-01";

/// The Messages API at its home; the base URL stands without `/v1`.
pub(crate) struct Messages;

/// Where the parts of the API that are not the conversation stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dialect {
    Home,
    /// The model is in the path, the version and the features in trial are in the body, and it always streams.
    Bedrock,
    /// The model is in the path and the version in the body.
    Vertex,
}

impl Protocol for Messages {
    const HEADERS: &'static [(&'static str, &'static str)] = &[("anthropic-version", "2023-06-01")];
    type Frames = SseDecoder;
    type Decoder = decode::Decoder;

    fn path(_: &Target) -> Cow<'static, str> {
        "/v1/messages".into()
    }

    fn key_header(key: &str) -> (&'static str, String) {
        ("x-api-key", key.to_owned())
    }

    fn quirk_header(target: &Target) -> Option<(&'static str, String)> {
        beta_header(target)
    }

    fn encode(target: &Target, request: &Request) -> Segments {
        encode::encode(target, request, Dialect::Home)
    }

    fn decoder(target: &Target, _: &Request) -> decode::Decoder {
        decode::Decoder::new(target.endpoint.provider.clone())
    }
}

/// The features in trial: those the user asks for by header, and ours.
fn betas(target: &Target) -> Vec<&str> {
    let given = target.endpoint.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case(BETA));
    let mut betas: Vec<&str> = given.flat_map(|(_, value)| value.split(',')).map(str::trim).collect();
    if target.has(Quirk::BoundThinking) && !betas.contains(&BINDING_BETA) {
        betas.push(BINDING_BETA);
    }
    betas.retain(|beta| !beta.is_empty());
    betas
}

fn beta_header(target: &Target) -> Option<(&'static str, String)> {
    let betas = betas(target);
    (!betas.is_empty()).then(|| (BETA, betas.join(",")))
}

/// Whether `next` is `block` with its citations, to be sent in its place.
fn is_cited(block: &ContentBlock, next: &ContentBlock, by: &str) -> bool {
    let (ContentBlock::Text { text }, ContentBlock::Native { provider, value }) = (block, next) else { return false };
    provider == by && value["type"] == "text" && value["text"] == text.as_str()
}

/// A model's name as one segment of a path; `kept` stands as it is.
fn segment(name: &str, kept: &[u8]) -> String {
    let mut out = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(char::from(byte)),
            _ if kept.contains(&byte) => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}
