//! What is submitted to a session.

use bytes::Bytes;
use serde_json::Value;
use std::sync::Arc;
use windlass_kernel::{BlobRef, Command, ContentBlock, DataRef, InputId, Origin, Prompted};
use windlass_store::blob_ref;

/// A prompt: words, and what goes with them.
#[derive(Clone, Debug)]
pub struct Prompt {
    blocks: Vec<ContentBlock>,
    blobs: Vec<(BlobRef, Bytes)>,
    data: Option<Value>,
    intent: Option<String>,
    constraints: Vec<String>,
    output_schema: Option<Arc<Value>>,
    origin: Origin,
    input: Option<InputId>,
}

impl Prompt {
    pub fn new(text: impl Into<String>) -> Prompt {
        Prompt {
            blocks: vec![ContentBlock::text(text)],
            blobs: vec![],
            data: None,
            intent: None,
            constraints: vec![],
            output_schema: None,
            origin: Origin::Library,
            input: None,
        }
    }

    /// Structured data the prompt is about; the model sees it apart from the words.
    pub fn data(mut self, data: Value) -> Prompt {
        self.data = Some(data);
        self
    }

    /// What the user wants, in short; otherwise it is taken from the words.
    pub fn intent(mut self, intent: impl Into<String>) -> Prompt {
        self.intent = Some(intent.into());
        self
    }

    pub fn constraint(mut self, constraint: impl Into<String>) -> Prompt {
        self.constraints.push(constraint.into());
        self
    }

    /// JSON Schema that the final answer must satisfy: the turn ends with `InvalidAnswer` if it does not, also after the
    /// model was told once.
    pub fn output_schema(mut self, schema: Value) -> Prompt {
        self.output_schema = Some(Arc::new(schema));
        self
    }

    /// A picture (`image/png`, `image/jpeg`, `image/gif`, `image/webp`).
    pub fn image(mut self, media_type: impl Into<String>, bytes: impl Into<Bytes>) -> Prompt {
        let blob = self.attach(bytes.into());
        self.blocks.push(ContentBlock::Image { media_type: media_type.into(), blob });
        self
    }

    /// A document (`application/pdf`).
    pub fn document(mut self, media_type: impl Into<String>, title: Option<String>, bytes: impl Into<Bytes>) -> Prompt {
        let blob = self.attach(bytes.into());
        self.blocks.push(ContentBlock::Document { media_type: media_type.into(), blob, title });
        self
    }

    pub fn origin(mut self, origin: Origin) -> Prompt {
        self.origin = origin;
        self
    }

    /// The prompt's identity: the same one submitted twice enters the log once.
    pub fn input(mut self, input: InputId) -> Prompt {
        self.input = Some(input);
        self
    }

    fn attach(&mut self, bytes: Bytes) -> BlobRef {
        let blob = blob_ref(&bytes);
        self.blobs.push((blob.clone(), bytes));
        blob
    }

    /// The command, and the bytes its blocks and data refer to.
    pub fn into_command(mut self, new_id: impl FnOnce() -> InputId) -> (Command, Vec<(BlobRef, Bytes)>) {
        let data = self.data.take().map(|data| {
            let blob = self.attach(Bytes::from(data.to_string()));
            DataRef { blob, schema: windlass_prompt::shape(&data) }
        });
        let prompt = Prompted {
            input: self.input.unwrap_or_else(new_id),
            origin: self.origin,
            blocks: self.blocks,
            context: None,
            data,
            intent: self.intent,
            constraints: self.constraints,
            output_schema: self.output_schema,
        };
        (Command::Prompt(Box::new(prompt)), self.blobs)
    }
}

impl From<&str> for Prompt {
    fn from(text: &str) -> Prompt {
        Prompt::new(text)
    }
}

impl From<String> for Prompt {
    fn from(text: String) -> Prompt {
        Prompt::new(text)
    }
}
