//! The Anthropic Messages API, streamed.

mod decode;
mod encode;
#[cfg(test)]
mod tests;

use crate::body::Segments;
use crate::call::call;
use crate::endpoint::Target;
use crate::protocol::Protocol;
use crate::{Endpoint, Http, Model, ModelStream, Request};
use std::sync::Arc;

/// A model behind the Messages API; the base URL stands without `/v1`.
#[derive(Clone)]
pub struct Anthropic {
    target: Arc<Target>,
}

impl Anthropic {
    pub fn new(http: Http, endpoint: Endpoint, model: String) -> Anthropic {
        Anthropic { target: Arc::new(Target { http, endpoint, model }) }
    }
}

impl Model for Anthropic {
    fn provider(&self) -> &str {
        &self.target.endpoint.provider
    }

    fn name(&self) -> &str {
        &self.target.model
    }

    fn call(&self, request: Request) -> ModelStream {
        call::<Messages>(self.target.clone(), request)
    }
}

pub(crate) struct Messages;

impl Protocol for Messages {
    const PATH: &'static str = "/v1/messages";
    const HEADERS: &'static [(&'static str, &'static str)] = &[("anthropic-version", "2023-06-01")];
    type Decoder = decode::Decoder;

    fn key_header(key: &str) -> (&'static str, String) {
        ("x-api-key", key.to_owned())
    }

    fn encode(target: &Target, request: &Request) -> Segments {
        encode::encode(target, request)
    }

    fn decoder(target: &Target, _: &Request) -> decode::Decoder {
        decode::Decoder::new(target.endpoint.provider.clone())
    }
}
