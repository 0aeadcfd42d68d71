//! A model behind HTTP, whatever protocol is spoken there.

use crate::anthropic::{Bedrock, Messages, Vertex};
use crate::call::call;
use crate::endpoint::Target;
use crate::gemini::Gemini;
use crate::openai_chat::Chat;
use crate::protocol::Protocol;
use crate::responses::Responses;
use crate::{Endpoint, Http, Model, ModelStream, Request, WireProtocol};
use std::marker::PhantomData;
use std::sync::Arc;

struct Remote<P> {
    target: Arc<Target>,
    protocol: PhantomData<fn() -> P>,
}

/// The model called `name` at `endpoint`. No connection is made before the first call.
pub fn connect(protocol: WireProtocol, http: Http, endpoint: Endpoint, name: impl Into<String>) -> Arc<dyn Model> {
    let target = Arc::new(Target { http, endpoint, model: name.into() });
    match protocol {
        WireProtocol::Anthropic => remote::<Messages>(target),
        WireProtocol::Bedrock => remote::<Bedrock>(target),
        WireProtocol::Vertex => remote::<Vertex>(target),
        WireProtocol::Responses => remote::<Responses>(target),
        WireProtocol::Gemini => remote::<Gemini>(target),
        WireProtocol::Chat => remote::<Chat>(target),
    }
}

fn remote<P: Protocol>(target: Arc<Target>) -> Arc<dyn Model> {
    Arc::new(Remote::<P> { target, protocol: PhantomData })
}

impl<P: Protocol> Model for Remote<P> {
    fn provider(&self) -> &str {
        &self.target.endpoint.provider
    }

    fn name(&self) -> &str {
        &self.target.model
    }

    fn call(&self, request: Request) -> ModelStream {
        call::<P>(self.target.clone(), request)
    }
}
