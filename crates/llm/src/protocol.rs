//! What a wire protocol is to the rest of the crate.

use crate::assembly::Assembly;
use crate::body::Segments;
use crate::endpoint::Target;
use crate::frames::Frames;
use crate::said::Said;
use crate::sse::SseEvent;
use crate::{ModelEvent, Request};
use serde::Deserialize;
use std::borrow::Cow;
use windlass_kernel::StopReason;

/// A wire protocol: how a request is written.
pub(crate) trait Protocol: Send + 'static {
    /// Headers every request carries.
    const HEADERS: &'static [(&'static str, &'static str)];
    type Frames: Frames;
    type Decoder: Decode;
    /// The path (and query) behind the base URL.
    fn path(target: &Target) -> Cow<'static, str>;
    /// The header that carries the key.
    fn key_header(key: &str) -> (&'static str, String);
    /// A header that the target's quirks ask for. It takes the place of the user's own, whose value it has to hold.
    fn quirk_header(_: &Target) -> Option<(&'static str, String)> {
        None
    }
    fn encode(target: &Target, request: &Request) -> Segments;
    fn decoder(target: &Target, request: &Request) -> Self::Decoder;
}

/// A wire protocol: how an answer is read.
pub(crate) trait Decode: Send + 'static {
    /// Takes one event of the stream in.
    fn event(&mut self, event: &SseEvent<'_>) -> Result<(), Unreadable>;
    fn assembly(&mut self) -> &mut Assembly;
    /// Why the model stopped, by the provider's word `raw`.
    fn stop_reason(&self, raw: Option<&str>) -> StopReason;

    fn progress(&mut self) -> Progress {
        self.assembly().progress
    }

    /// What was decoded since the last time, with at most one delta per block.
    fn take(&mut self) -> Vec<ModelEvent> {
        self.assembly().take()
    }

    /// Ends the message; false if it is not whole.
    fn end(&mut self) -> bool {
        if self.progress() == Progress::Going {
            return false;
        }
        let raw_stop = self.assembly().raw_stop.take();
        let stop = self.stop_reason(raw_stop.as_deref());
        let assembly = self.assembly();
        assembly.finish_all();
        let usage = assembly.usage;
        assembly.tell(ModelEvent::Finished { stop, raw_stop, usage });
        true
    }
}

/// How much of a message was heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    Going,
    /// All of its content; the rest of the stream may add the usage.
    Whole,
    /// The provider said that it is over.
    Ended,
}

/// Why an event could not be taken in.
#[derive(Debug)]
pub(crate) enum Unreadable {
    /// The provider reports an error of its own.
    Reported(Said),
    /// The event breaks the protocol.
    Broken(String),
}

impl Unreadable {
    pub(crate) fn broken(cause: impl Into<String>) -> Unreadable {
        Unreadable::Broken(cause.into())
    }
}

impl From<serde_json::Error> for Unreadable {
    fn from(error: serde_json::Error) -> Unreadable {
        Unreadable::Broken(error.to_string())
    }
}

/// A string of an event, borrowed from it where it holds no escapes. (A bare `Option<Cow<str>>` never borrows.)
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(transparent)]
pub(crate) struct Text<'a>(#[serde(borrow)] pub Cow<'a, str>);

impl Text<'_> {
    pub(crate) fn or_empty<'t>(text: &'t Option<Text<'_>>) -> &'t str {
        text.as_ref().map_or("", |text| &text.0)
    }
}

/// A tool's name as every vendor takes it. Some models call tools by names that no vendor takes back; sent as they were,
/// each later request of the session would be refused.
pub(crate) fn wire_name(name: &str) -> Cow<'_, str> {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-';
    if name.len() <= MAX_NAME && !name.is_empty() && name.chars().all(fits) {
        return Cow::Borrowed(name);
    }
    let mended: String = name.chars().take(MAX_NAME).map(|letter| if fits(letter) { letter } else { '_' }).collect();
    Cow::Owned(if mended.is_empty() { "_".into() } else { mended })
}

/// Characters of a tool's name that the vendors take.
const MAX_NAME: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_no_vendor_takes_is_mended() {
        assert_eq!(wire_name("read"), "read");
        assert_eq!(wire_name("functions.read<|x|>"), "functions_read__x__");
        assert_eq!(wire_name(""), "_");
        assert_eq!(wire_name(&"é".repeat(90)), "_".repeat(64));
    }
}
