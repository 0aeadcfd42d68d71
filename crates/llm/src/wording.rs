//! What OpenAI's two protocols write alike.

use crate::media::{Media, Shown};
use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use std::borrow::Cow;
use windlass_kernel::{ContentBlock, Parameters, ToolResult};

/// What a tool that said nothing is taken to have said: some servers refuse an empty message.
pub(crate) const NO_OUTPUT: &str = "(no output)";

/// A picture or document inside an address.
pub(crate) struct DataUrl<'a> {
    pub media_type: &'a str,
    pub bytes: &'a Bytes,
}

impl Serialize for DataUrl<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let data = Base64Display::new(self.bytes, &STANDARD);
        serializer.collect_str(&format_args!("data:{};base64,{data}", self.media_type))
    }
}

pub(crate) fn is_said(text: &str) -> bool {
    !text.trim().is_empty()
}

/// The texts of `blocks` that say something, and the words in the place of media that are not shown.
pub(crate) fn joined(blocks: &[ContentBlock], separator: &str, media: Media<'_>) -> String {
    let texts = blocks.iter().filter_map(|block| match (block, media.show(block)) {
        (ContentBlock::Text { text }, _) if is_said(text) => Some(Cow::Borrowed(text.as_str())),
        (_, Some(Shown::Words(words))) => Some(Cow::Owned(words)),
        _ => None,
    });
    texts.collect::<Vec<_>>().join(separator)
}

/// The words of a tool's result; `if_silent` if it has none. That it failed has no other place than the words.
pub(crate) fn result_words(result: &ToolResult, if_silent: &str, media: Media<'_>) -> String {
    let mut words = joined(&result.content, "\n", media);
    if words.is_empty() {
        words = if_silent.into();
    }
    if result.is_error && !words.trim_start().get(..5).is_some_and(|start| start.eq_ignore_ascii_case("error")) {
        words.insert_str(0, "error: ");
    }
    words
}

/// A call's arguments as text. Many servers parse it again, so what was no object goes back inside of one.
pub(crate) fn arguments(input: &Value) -> String {
    match input {
        Value::Object(_) => input.to_string(),
        other => json!({ "unparsed": other }).to_string(),
    }
}

/// Sets how answers are sampled.
pub(crate) fn set_sampling(body: &mut Value, parameters: &Parameters) {
    for (name, value) in [("temperature", parameters.temperature), ("top_p", parameters.top_p)] {
        if let Some(value) = value {
            body[name] = value.into();
        }
    }
}
