//! The parts that a turn consists of, as the API writes them.

use crate::body::Base64;
use crate::call_ids::is_made_here;
use crate::media::{Media, Shown};
use crate::protocol::wire_name;
use serde::Serialize;
use serde_json::Value;
use std::borrow::Cow;
use windlass_kernel::{ContentBlock, ToolUse};

/// A part as the API writes it; borrowed, so that it is written once and never built.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Part<'a> {
    #[serde(rename_all = "camelCase")]
    Text {
        text: Cow<'a, str>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        thought: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        thought_signature: Option<&'a str>,
    },
    #[serde(rename_all = "camelCase")]
    Data {
        inline_data: Blob<'a>,
    },
    #[serde(rename_all = "camelCase")]
    Call {
        function_call: Call<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        thought_signature: Option<&'a str>,
    },
    #[serde(rename_all = "camelCase")]
    Response {
        function_response: Response<'a>,
    },
    Native(&'a Value),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Blob<'a> {
    mime_type: &'a str,
    data: Base64<'a>,
}

#[derive(Serialize)]
pub(super) struct Call<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    name: Cow<'a, str>,
    args: Arguments<'a>,
}

/// Arguments. The API takes objects only, so text that was none goes back inside of one.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Arguments<'a> {
    Object(&'a Value),
    Unparsed { unparsed: &'a Value },
}

#[derive(Serialize)]
pub(super) struct Response<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<&'a str>,
    pub name: Cow<'a, str>,
    pub response: Outcome,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Outcome {
    Output(String),
    Error(String),
}

pub(super) fn function_call(call: &ToolUse) -> Call<'_> {
    let args = match &call.input {
        Value::Object(_) => Arguments::Object(&call.input),
        other => Arguments::Unparsed { unparsed: other },
    };
    Call { id: id(&call.id.0), name: wire_name(&call.name), args }
}

/// The call's id, where the provider gave it one.
pub(super) fn id(id: &str) -> Option<&str> {
    Some(id).filter(|id| !is_made_here(id))
}

/// Pictures and documents, these under their titles.
pub(super) fn plain<'b>(block: &'b ContentBlock, media: Media<'b>) -> Vec<Part<'b>> {
    let data = |mime_type, bytes| Part::Data { inline_data: Blob { mime_type, data: Base64(bytes) } };
    match media.show(block) {
        Some(Shown::Image { media_type, bytes }) => vec![data(media_type, bytes)],
        Some(Shown::Document { media_type, bytes, title }) => {
            title.iter().map(|title| text(format!("{title}:").into())).chain([data(media_type, bytes)]).collect()
        }
        Some(Shown::Words(words)) => vec![text(words.into())],
        None => vec![],
    }
}

pub(super) fn text(text: Cow<'_, str>) -> Part<'_> {
    Part::Text { text, thought: false, thought_signature: None }
}
