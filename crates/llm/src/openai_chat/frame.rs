//! A chunk of the stream as it is written; borrowed, so that a delta costs its own bytes and nothing else.

use super::details::DetailFrame;
use crate::protocol::Text;
use serde::de::{Deserializer, IgnoredAny, SeqAccess, Visitor, value::SeqAccessDeserializer};
use serde::{Deserialize, de};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;
use windlass_kernel::Usage;

#[derive(Deserialize)]
pub(super) struct Chunk<'a> {
    #[serde(borrow)]
    pub id: Option<Text<'a>>,
    #[serde(borrow)]
    pub model: Option<Text<'a>>,
    #[serde(borrow)]
    pub object: Option<Text<'a>>,
    #[serde(borrow)]
    pub choices: Option<First<'a>>,
    pub usage: Option<UsageFrame>,
    pub error: Option<IgnoredAny>,
}

/// The first of the choices; there is only ever one, and no list is built for it.
pub(super) struct First<'a>(pub Option<Choice<'a>>);

#[derive(Deserialize)]
pub(super) struct Choice<'a> {
    #[serde(borrow)]
    pub delta: Option<DeltaFrame<'a>>,
    #[serde(borrow)]
    pub finish_reason: Option<Text<'a>>,
    /// Where Moonshot has it.
    pub usage: Option<UsageFrame>,
}

#[derive(Deserialize)]
pub(super) struct DeltaFrame<'a> {
    #[serde(borrow)]
    pub content: Option<Words<'a>>,
    #[serde(borrow)]
    pub reasoning_content: Option<Text<'a>>,
    #[serde(borrow)]
    pub reasoning: Option<Text<'a>>,
    #[serde(borrow)]
    pub reasoning_details: Option<Vec<DetailFrame<'a>>>,
    #[serde(borrow)]
    pub refusal: Option<Text<'a>>,
    #[serde(borrow)]
    pub tool_calls: Option<Vec<CallFrame<'a>>>,
}

/// What is said: as a string, or as a list of parts.
pub(super) enum Words<'a> {
    Text(Text<'a>),
    Parts(Vec<PartFrame<'a>>),
}

#[derive(Deserialize)]
pub(super) struct PartFrame<'a> {
    #[serde(borrow)]
    pub text: Option<Text<'a>>,
    /// Thoughts, where Mistral has them.
    #[serde(borrow)]
    pub thinking: Option<Words<'a>>,
}

#[derive(Deserialize)]
pub(super) struct CallFrame<'a> {
    pub index: Option<u32>,
    #[serde(borrow)]
    pub id: Option<Text<'a>>,
    #[serde(borrow)]
    pub function: Option<FunctionFrame<'a>>,
    #[serde(borrow)]
    extra_content: Option<ExtraFrame<'a>>,
}

#[derive(Default, Deserialize)]
pub(super) struct FunctionFrame<'a> {
    #[serde(borrow)]
    pub name: Option<Text<'a>>,
    /// A fragment of JSON text, or from some servers the object itself.
    #[serde(borrow)]
    pub arguments: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ExtraFrame<'a> {
    #[serde(borrow)]
    google: Option<GoogleFrame<'a>>,
}

#[derive(Deserialize)]
struct GoogleFrame<'a> {
    #[serde(borrow)]
    thought_signature: Option<Text<'a>>,
}

#[derive(Deserialize)]
pub(super) struct UsageFrame {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    total_tokens: Option<u64>,
    prompt_tokens_details: Option<PromptDetails>,
    completion_tokens_details: Option<CompletionDetails>,
    /// DeepSeek's word for the cached part.
    prompt_cache_hit_tokens: Option<u64>,
}

#[derive(Default, Deserialize)]
struct PromptDetails {
    cached_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
    /// Alibaba's word for the same; gateways send both.
    cache_creation_input_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct CompletionDetails {
    reasoning_tokens: Option<u64>,
}

impl CallFrame<'_> {
    /// Google's seal on the call.
    pub(super) fn signature(&self) -> Option<&str> {
        let google = self.extra_content.as_ref()?.google.as_ref()?;
        google.thought_signature.as_ref().map(|text| text.0.as_ref()).filter(|text| !text.is_empty())
    }
}

impl UsageFrame {
    pub(super) fn counted(self) -> Usage {
        let prompt = self.prompt_tokens.unwrap_or(0);
        let details = self.prompt_tokens_details.unwrap_or_default();
        let cache_read = details.cached_tokens.or(self.prompt_cache_hit_tokens).unwrap_or(0).min(prompt);
        let written = details.cache_write_tokens.or(details.cache_creation_input_tokens).unwrap_or(0);
        let cache_write = written.min(prompt - cache_read);
        let completion = self.completion_tokens.unwrap_or(0);
        let reasoning = self.completion_tokens_details.and_then(|details| details.reasoning_tokens).unwrap_or(0);
        // Some servers count the reasoning beside the completion: the sum tells.
        let beside = self.total_tokens == Some(prompt.saturating_add(completion).saturating_add(reasoning));
        Usage {
            input: prompt - cache_read - cache_write,
            cache_read,
            cache_write,
            output: if beside { completion.saturating_add(reasoning) } else { completion },
            reasoning,
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for First<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<First<'a>, D::Error> {
        struct Seen;
        impl<'de> Visitor<'de> for Seen {
            type Value = First<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of choices")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<First<'de>, A::Error> {
                let first = list.next_element()?;
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok(First(first))
            }
        }
        deserializer.deserialize_seq(Seen)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Words<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Words<'a>, D::Error> {
        struct Heard;
        impl<'de> Visitor<'de> for Heard {
            type Value = Words<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or a list of parts")
            }

            fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Words<'de>, E> {
                Ok(Words::Text(Text(Cow::Borrowed(text))))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Words<'de>, E> {
                Ok(Words::Text(Text(Cow::Owned(text.to_owned()))))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Words<'de>, A::Error> {
                Deserialize::deserialize(SeqAccessDeserializer::new(list)).map(Words::Parts)
            }
        }
        deserializer.deserialize_any(Heard)
    }
}
