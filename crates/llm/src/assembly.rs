//! Blocks put together from fragments, and what is told of them meanwhile.

use crate::protocol::Progress;
use crate::{BlockKind, Delta, ModelEvent};
use serde_json::{Map, Value};
use windlass_kernel::{CallId, ContentBlock, Signature, ToolUse, Usage};

/// The blocks of a message that have begun and not ended, and the events to be told next.
pub(crate) struct Assembly {
    /// Whose thinking and calls these are.
    provider: String,
    events: Vec<ModelEvent>,
    open: Vec<Open>,
    pub progress: Progress,
    /// The provider's word for why the model stopped.
    pub raw_stop: Option<String>,
    pub usage: Usage,
}

/// A block being heard.
pub(crate) struct Open {
    pub index: u32,
    pub content: Content,
    /// The text, the thinking or the arguments so far.
    pub text: String,
    /// How many bytes of it were told.
    told: usize,
}

pub(crate) enum Content {
    Text,
    Thinking {
        signature: Option<String>,
    },
    Redacted {
        data: String,
    },
    ToolUse {
        id: String,
        name: String,
        /// What the provider wants back with the call.
        signature: Option<String>,
    },
    /// `text` gathers the arguments of a tool that runs at the provider.
    Native {
        provider: String,
        value: Value,
    },
}

impl Content {
    fn kind(&self) -> BlockKind {
        match self {
            Content::Text => BlockKind::Text,
            Content::Thinking { .. } | Content::Redacted { .. } => BlockKind::Thinking,
            Content::ToolUse { id, name, .. } => BlockKind::ToolUse { id: id.clone(), name: name.clone() },
            Content::Native { .. } => BlockKind::Native,
        }
    }
}

impl Assembly {
    pub(crate) fn new(provider: impl Into<String>) -> Assembly {
        Assembly {
            provider: provider.into(),
            events: vec![],
            open: vec![],
            progress: Progress::Going,
            raw_stop: None,
            usage: Usage::default(),
        }
    }

    pub(crate) fn tell(&mut self, event: ModelEvent) {
        self.events.push(event);
    }

    pub(crate) fn start(&mut self, index: u32, content: Content) {
        self.events.push(ModelEvent::BlockStarted { index, kind: content.kind() });
        self.open.push(Open { index, content, text: String::new(), told: 0 });
    }

    /// The open block at `index`.
    pub(crate) fn block(&mut self, index: u32) -> Option<&mut Open> {
        self.open.iter_mut().rev().find(|open| open.index == index)
    }

    /// The blocks that have not ended, in order.
    pub(crate) fn open(&self) -> &[Open] {
        &self.open
    }

    /// Ends the block at `index`; false if none is open there.
    pub(crate) fn finish(&mut self, index: u32) -> bool {
        let Some(place) = self.open.iter().position(|open| open.index == index) else { return false };
        let mut open = self.open.remove(place);
        self.events.extend(open.delta());
        self.events.push(ModelEvent::BlockFinished { index, block: open.into_block(&self.provider) });
        true
    }

    pub(crate) fn finish_all(&mut self) {
        while let Some(open) = self.open.first() {
            self.finish(open.index);
        }
    }

    /// The events since the last time.
    pub(crate) fn take(&mut self) -> Vec<ModelEvent> {
        for open in &mut self.open {
            self.events.extend(open.delta());
        }
        std::mem::take(&mut self.events)
    }
}

impl Open {
    /// What was heard and not told.
    fn delta(&mut self) -> Option<ModelEvent> {
        let fresh = &self.text[self.told..];
        let make = match &self.content {
            Content::Text => Delta::Text,
            Content::Thinking { .. } => Delta::Thinking,
            Content::ToolUse { .. } => Delta::Input,
            Content::Redacted { .. } | Content::Native { .. } => return None,
        };
        if fresh.is_empty() {
            return None;
        }
        let delta = make(fresh.to_owned());
        self.told = self.text.len();
        Some(ModelEvent::Delta { index: self.index, delta })
    }

    fn into_block(self, provider: &str) -> ContentBlock {
        let (text, by) = (self.text, Some(provider.to_owned()));
        match self.content {
            Content::Text => ContentBlock::Text { text },
            Content::Thinking { signature } => {
                ContentBlock::Thinking { thinking: text, by: by.filter(|_| signature.is_some()), signature }
            }
            Content::Redacted { data } => ContentBlock::RedactedThinking { data, by },
            Content::ToolUse { id, name, signature } => {
                let signature = signature.map(|text| Box::new(Signature { by: provider.to_owned(), text }));
                ContentBlock::ToolUse(ToolUse { id: CallId(id), name, input: arguments(text), signature })
            }
            Content::Native { provider, mut value } => {
                if !text.is_empty() {
                    value["input"] = arguments(text);
                }
                ContentBlock::Native { provider, value }
            }
        }
    }
}

/// A call's arguments; text that is no JSON object stays text, for the schema check to refuse.
fn arguments(text: String) -> Value {
    match serde_json::from_str(&text) {
        Ok(Value::Object(map)) => Value::Object(map),
        Ok(Value::Null) => Value::Object(Map::new()),
        _ if text.trim().is_empty() => Value::Object(Map::new()),
        _ => Value::String(text),
    }
}

/// Whether a call's arguments are all there.
pub(crate) fn is_whole(arguments: &str) -> bool {
    arguments.trim_end().ends_with('}') && serde_json::from_str::<serde::de::IgnoredAny>(arguments).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_an_object_or_the_text_itself() {
        let of = |text: &str| arguments(text.to_owned()).to_string();
        assert_eq!(of(r#"{"path": "a"}"#), r#"{"path":"a"}"#);
        assert_eq!(of(""), "{}");
        assert_eq!(of(" \n"), "{}");
        assert_eq!(of("null"), "{}");
        assert_eq!(of(r#"{"path": "#), r#""{\"path\": ""#);
        assert_eq!(of("[1]"), r#""[1]""#);
    }

    #[test]
    fn one_delta_per_block_however_many_fragments() {
        let mut assembly = Assembly::new("anthropic");
        assembly.start(0, Content::Text);
        for fragment in ["a", "b", "c"] {
            assembly.block(0).unwrap().text.push_str(fragment);
        }
        assert_eq!(assembly.take().len(), 2);
        assert_eq!(assembly.take(), []);
        assembly.block(0).unwrap().text.push('d');
        assembly.finish(0);
        insta::assert_debug_snapshot!(assembly.take(), @r#"
        [
            Delta {
                index: 0,
                delta: Text(
                    "d",
                ),
            },
            BlockFinished {
                index: 0,
                block: Text {
                    text: "abcd",
                },
            },
        ]
        "#);
    }
}
