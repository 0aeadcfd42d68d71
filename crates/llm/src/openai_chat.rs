//! OpenAI Chat Completions, streamed: OpenAI itself and every server that speaks like it.

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

/// A model behind Chat Completions; the base URL ends in `/v1`, or whatever stands before `/chat/completions`.
#[derive(Clone)]
pub struct OpenAiChat {
    target: Arc<Target>,
}

impl OpenAiChat {
    pub fn new(http: Http, endpoint: Endpoint, model: String) -> OpenAiChat {
        OpenAiChat { target: Arc::new(Target { http, endpoint, model }) }
    }
}

impl Model for OpenAiChat {
    fn provider(&self) -> &str {
        &self.target.endpoint.provider
    }

    fn name(&self) -> &str {
        &self.target.model
    }

    fn call(&self, request: Request) -> ModelStream {
        call::<Chat>(self.target.clone(), request)
    }
}

pub(crate) struct Chat;

impl Protocol for Chat {
    const PATH: &'static str = "/chat/completions";
    const HEADERS: &'static [(&'static str, &'static str)] = &[];
    type Decoder = decode::Decoder;

    fn key_header(key: &str) -> (&'static str, String) {
        ("authorization", format!("Bearer {key}"))
    }

    fn encode(target: &Target, request: &Request) -> Segments {
        encode::encode(target, request)
    }

    fn decoder(_: &Target, request: &Request) -> decode::Decoder {
        decode::Decoder::new(decode::first_free_call(&request.messages))
    }
}
