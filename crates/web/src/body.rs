//! The body of an answer: what it may be, how much of it is read, and which characters its bytes stand for.

use crate::dial::cause;
use crate::error::Reason;
use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};
use reqwest::Response;
use reqwest::header::CONTENT_TYPE;

/// Bytes at the start of a page in which it may name its charset.
const META_BYTES: usize = 1024;

/// What went wrong, before it is known to which URL.
pub(crate) type Fault = (Reason, String);

/// The kind of a body, as the server says it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Media {
    /// The header's value.
    pub said: String,
    /// Its first part, in lower case: `text/html`.
    pub essence: String,
    pub charset: Option<String>,
}

/// The bytes of a body, unpacked.
pub(crate) struct Body {
    pub bytes: Vec<u8>,
    /// Whether it went on.
    pub truncated: bool,
}

impl Media {
    pub(crate) fn of(response: &Response) -> Media {
        let said = response.headers().get(CONTENT_TYPE).map(|value| String::from_utf8_lossy(value.as_bytes()));
        Media::parse(&said.unwrap_or_default())
    }

    fn parse(said: &str) -> Media {
        let mut parts = said.split(';').map(str::trim);
        let essence = parts.next().unwrap_or_default().to_ascii_lowercase();
        let charset = parts.find_map(|part| {
            let (name, value) = part.split_once('=')?;
            name.trim().eq_ignore_ascii_case("charset").then(|| value.trim().trim_matches('"').to_owned())
        });
        Media { said: said.to_owned(), essence, charset }
    }

    /// That it can be read as text; the error says its type and size.
    pub(crate) fn check(&self, bytes: Option<u64>) -> Result<(), Fault> {
        if self.essence.is_empty() || self.is_text() {
            return Ok(());
        }
        let size = bytes.map_or_else(|| "of unknown size".to_owned(), |bytes| format!("of {bytes} bytes"));
        let message = format!("it is {} {size}, no text; only HTML, text, JSON and XML are read", self.essence);
        Err((Reason::ContentType, message))
    }

    fn is_text(&self) -> bool {
        let kind = self.essence.as_str();
        let application = [
            "application/json",
            "application/xml",
            "application/javascript",
            "application/x-javascript",
            "application/ecmascript",
            "application/x-ndjson",
            "application/jsonl",
            "application/yaml",
            "application/x-yaml",
            "application/toml",
            "application/x-sh",
        ];
        kind.starts_with("text/") || kind.ends_with("+json") || kind.ends_with("+xml") || application.contains(&kind)
    }

    /// Whether `text` is HTML: by the server's word, or, where it says nothing, by its looks.
    pub(crate) fn is_html(&self, text: &str) -> bool {
        match self.essence.as_str() {
            "text/html" | "application/xhtml+xml" => true,
            "" => {
                let start = text.trim_start().get(..14).unwrap_or_default().to_ascii_lowercase();
                start.starts_with("<!doctype html") || start.starts_with("<html")
            }
            _ => false,
        }
    }
}

/// Reads `max_bytes` at most, counted as they are unpacked: what is packed small may be large.
pub(crate) async fn read(mut response: Response, max_bytes: usize) -> Result<Body, Fault> {
    let broke = |error: reqwest::Error| (Reason::Broken, format!("the answer broke off: {}", cause(&error)));
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(broke)? {
        let room = max_bytes - bytes.len();
        bytes.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if chunk.len() > room {
            return Ok(Body { bytes, truncated: true });
        }
    }
    Ok(Body { bytes, truncated: false })
}

/// The body's characters: by its byte order mark, the server's word, the page's own, or else UTF-8 if it is.
pub(crate) fn decode(body: &Body, media: &Media) -> Result<String, Fault> {
    let bytes = &body.bytes;
    let said = media.charset.clone().or_else(|| said_within(bytes));
    let encoding = said.and_then(|label| Encoding::for_label(label.as_bytes())).unwrap_or_else(|| guess(body));
    let (text, _, _) = encoding.decode(bytes);
    if media.essence.is_empty() && text.contains('\0') {
        let message = "it does not say what it is, and is no text; only HTML, text, JSON and XML are read";
        return Err((Reason::ContentType, message.into()));
    }
    // The last character may have been cut.
    let whole = if body.truncated { text.trim_end_matches('\u{fffd}') } else { &text };
    Ok(whole.to_owned())
}

/// The charset that a `<meta>` near the start names.
fn said_within(bytes: &[u8]) -> Option<String> {
    let start = String::from_utf8_lossy(&bytes[..bytes.len().min(META_BYTES)]).to_ascii_lowercase();
    let (_, rest) = start.split_once("<meta")?.1.split_once("charset=")?;
    let label = rest.trim_start_matches(['"', '\'', ' ']);
    let end = label.find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '_' | ':')).unwrap_or(label.len());
    Some(label[..end].to_owned())
}

fn guess(body: &Body) -> &'static Encoding {
    match std::str::from_utf8(&body.bytes) {
        Ok(_) => UTF_8,
        Err(error) if error.error_len().is_none() && body.truncated => UTF_8,
        Err(_) => WINDOWS_1252,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &[u8], content_type: &str) -> String {
        decode(&Body { bytes: bytes.to_vec(), truncated: false }, &Media::parse(content_type)).unwrap()
    }

    #[test]
    fn bytes_are_read_in_the_charset_that_is_said_or_seen() {
        assert_eq!(text(b"caf\xe9", "text/html; charset=ISO-8859-1"), "café");
        assert_eq!(text(b"caf\xe9", "text/plain"), "café");
        assert_eq!(text("café".as_bytes(), "text/plain"), "café");
        assert_eq!(text(b"\xef\xbb\xbfcaf\xc3\xa9", "text/plain; charset=latin1"), "café");
        assert_eq!(text(b"<meta charset=\"koi8-r\">\xc1", "text/html"), "<meta charset=\"koi8-r\">а");
        assert_eq!(text(b"\xff\xfea\0", ""), "a");
        assert_eq!(text(b"a", "text/html; charset=nonsense"), "a");
    }

    #[test]
    fn a_character_cut_in_two_is_left_out() {
        let body = Body { bytes: b"caf\xc3".to_vec(), truncated: true };
        assert_eq!(decode(&body, &Media::parse("text/plain")).unwrap(), "caf");
    }

    #[test]
    fn only_what_is_text_is_read() {
        let check = |content_type: &str| Media::parse(content_type).check(Some(7)).is_ok();
        for text in
            ["text/html", "TEXT/Plain; charset=x", "application/json", "application/ld+json", "image/svg+xml", ""]
        {
            assert!(check(text), "{text}");
        }
        for other in ["image/png", "application/pdf", "application/octet-stream", "video/mp4", "nonsense"] {
            assert!(!check(other), "{other}");
        }
        let (_, message) = Media::parse("application/pdf").check(Some(7)).unwrap_err();
        assert_eq!(message, "it is application/pdf of 7 bytes, no text; only HTML, text, JSON and XML are read");
    }
}
