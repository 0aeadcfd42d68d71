//! The one way a model is spoken to.

use crate::Memo;
use bytes::Bytes;
use futures_util::stream::BoxStream;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;
use windlass_kernel::{ContentBlock, Message, ModelFailure, Parameters, StopReason, Usage};

/// A model of some provider. Every call is a stream; there is no second, blocking path.
pub trait Model: Send + Sync {
    /// The provider's name as in `PROVIDER/NAME`.
    fn provider(&self) -> &str;
    /// The model's name as the provider knows it.
    fn name(&self) -> &str;
    /// Starts a call. Nothing is sent before the stream is polled; dropping it closes its connection.
    fn call(&self, request: Request) -> ModelStream;
}

/// The events of one network read at a time. Ends after `Finished` or the first error.
pub type ModelStream = BoxStream<'static, Result<Vec<ModelEvent>, ModelFailure>>;

/// What a model is asked. Cheap to build: everything long-lived in it is shared.
#[derive(Clone)]
pub struct Request {
    /// The system prompt, in order.
    pub system: Arc<[SystemSection]>,
    pub messages: Vec<Arc<Message>>,
    /// Sorted by name.
    pub tools: Arc<[ToolSpec]>,
    pub parameters: Parameters,
    /// JSON Schema that the answer must satisfy, where one is wanted.
    pub output_schema: Option<Arc<Value>>,
    /// The same for all requests of a session: providers that route by it find what they have cached.
    pub cache_key: String,
    /// Bytes of the images and documents in `messages`, by hash.
    pub blobs: Arc<HashMap<String, Bytes>>,
    /// What was encoded for this session before; hand the same one in at every call.
    pub memo: Memo,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SystemSection {
    pub name: String,
    pub text: String,
    /// Before the dynamic boundary: the same bytes at every call of the session.
    pub fixed: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    pub name: String,
    pub description: String,
    /// JSON Schema of the arguments.
    pub schema: Value,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ModelEvent {
    /// The provider has taken the request, of so many bytes, and answers.
    Accepted {
        body_bytes: u64,
    },
    /// With what is known of the usage before the answer: the input, or nothing.
    Started {
        id: String,
        model: String,
        usage: Usage,
    },
    BlockStarted {
        index: u32,
        kind: BlockKind,
    },
    /// At most one per block and network read.
    Delta {
        index: u32,
        delta: Delta,
    },
    BlockFinished {
        index: u32,
        block: ContentBlock,
    },
    Finished {
        stop: StopReason,
        raw_stop: Option<String>,
        usage: Usage,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub enum BlockKind {
    Text,
    Thinking,
    ToolUse { id: String, name: String },
    Native,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Delta {
    Text(String),
    Thinking(String),
    /// A fragment of a call's arguments, as JSON text.
    Input(String),
}
