//! The details of reasoning that OpenRouter and its like want back as they came: a list whose entries come in fragments.

use crate::protocol::Text;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// A fragment of an entry.
#[derive(Deserialize)]
pub(super) struct DetailFrame<'a> {
    #[serde(rename = "type", borrow)]
    kind: Option<Text<'a>>,
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    format: Option<Text<'a>>,
    index: Option<u64>,
    #[serde(borrow)]
    text: Option<Text<'a>>,
    #[serde(borrow)]
    summary: Option<Text<'a>>,
    #[serde(borrow)]
    data: Option<Text<'a>>,
    #[serde(borrow)]
    signature: Option<Text<'a>>,
}

/// The entries so far.
#[derive(Default)]
pub(super) struct Details(Vec<Detail>);

#[derive(Default, Serialize)]
struct Detail {
    #[serde(rename = "type")]
    kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signature: Option<String>,
}

impl<'a> DetailFrame<'a> {
    /// What a person may read of it.
    pub(super) fn words(&self) -> Option<&Text<'a>> {
        self.text.as_ref().or(self.summary.as_ref())
    }
}

impl Details {
    /// Adds a fragment: to the last entry, if it is of its kind and number.
    pub(super) fn add(&mut self, frame: &DetailFrame<'_>) {
        let kind = Text::or_empty(&frame.kind);
        let goes_on = self.0.last().is_some_and(|last| {
            last.kind == kind && last.index == frame.index && last.data.is_none() && frame.data.is_none()
        });
        if !goes_on {
            self.0.push(Detail { kind: kind.to_owned(), index: frame.index, ..Detail::default() });
        }
        let Some(entry) = self.0.last_mut() else { return };
        append(&mut entry.text, &frame.text);
        append(&mut entry.summary, &frame.summary);
        for (had, fresh) in [
            (&mut entry.id, &frame.id),
            (&mut entry.format, &frame.format),
            (&mut entry.data, &frame.data),
            (&mut entry.signature, &frame.signature),
        ] {
            if let Some(fresh) = fresh {
                *had = Some(fresh.0.to_string());
            }
        }
    }

    /// The entries as JSON; none if there are none.
    pub(super) fn take(&mut self) -> Option<String> {
        let entries = std::mem::take(&mut self.0);
        if entries.is_empty() { None } else { serde_json::to_string(&entries).ok() }
    }
}

fn append(had: &mut Option<String>, fresh: &Option<Text<'_>>) {
    if let Some(fresh) = fresh {
        had.get_or_insert_default().push_str(&fresh.0);
    }
}

/// The entries that a signature holds; none if it is another protocol's.
pub(super) fn entries(signature: &str) -> Vec<&RawValue> {
    match signature.starts_with('[') {
        true => serde_json::from_str(signature).unwrap_or_default(),
        false => vec![],
    }
}
