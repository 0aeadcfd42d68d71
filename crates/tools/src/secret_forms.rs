//! The forms in which a known secret may turn up: as it is, and encoded.

use crate::secret_rules::varied;
use crate::secrets::HEAD_BYTES;
use base64::Engine;
use base64::alphabet::{Alphabet, STANDARD, URL_SAFE};
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};
use std::fmt::Write;

/// Bytes a secret may have; of a longer one the beginning is looked for.
const SECRET_BYTES: usize = 8 << 10;
/// Bytes below which a text of small letters or of figures alone is taken for a word or a number.
const PLAIN_BYTES: usize = 16;
/// Bytes a line of a secret has that is looked for by itself.
const LINE_BYTES: usize = 24;

/// One form of a known secret.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub name: String,
    pub form: Vec<u8>,
}

/// Whether `value` can be told from ordinary text: `true`, `production` and `/usr/bin` can't.
pub fn is_like_a_secret(value: &str) -> bool {
    let value = value.trim();
    let is_path = ["/", "./", "../", "~", "$"].iter().any(|start| value.starts_with(start)) && !value.contains('+');
    // Of an address only the password is a secret, and that is found by its place.
    let is_address = value.contains("://");
    let is_plain = value.bytes().all(|byte| byte.is_ascii_lowercase() || matches!(byte, b'-' | b'_' | b'.' | b' '));
    let is_number = value.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b',' | b':' | b'-'));
    let is_short = value.len() < if is_plain || is_number { PLAIN_BYTES } else { HEAD_BYTES };
    !is_short && !is_path && !is_address && varied(value.as_bytes())
}

/// The forms of `value`; none if it is no secret.
pub(crate) fn forms(name: &str, value: &str) -> Vec<Known> {
    let value = value.trim();
    if !is_like_a_secret(value) {
        return vec![];
    }
    let bytes = &value.as_bytes()[..value.floor_char_boundary(SECRET_BYTES)];
    let mut forms = vec![bytes.to_vec(), in_json(value), percent(bytes), hex(bytes)];
    forms.push(hex(bytes).to_ascii_uppercase());
    for alphabet in [STANDARD, URL_SAFE] {
        forms.extend((0..3).map(|offset| base64_inside(bytes, offset, &alphabet)));
    }
    // Shown with numbers, a text of several lines is in pieces.
    let lines = value.lines().map(str::trim).filter(|line| line.len() >= LINE_BYTES && !line.starts_with("-----"));
    forms.extend(lines.map(|line| line.as_bytes().to_vec()));
    forms.sort();
    forms.dedup();
    let long = forms.into_iter().filter(|form| form.len() >= HEAD_BYTES);
    long.map(|form| Known { name: name.to_owned(), form }).collect()
}

fn in_json(value: &str) -> Vec<u8> {
    let quoted = serde_json::Value::from(value).to_string();
    quoted.as_bytes()[1..quoted.len() - 1].to_vec()
}

fn percent(bytes: &[u8]) -> Vec<u8> {
    let mut text = String::new();
    for byte in bytes {
        match byte {
            b'-' | b'_' | b'.' | b'~' => text.push(char::from(*byte)),
            _ if byte.is_ascii_alphanumeric() => text.push(char::from(*byte)),
            _ => _ = write!(text, "%{byte:02X}"),
        }
    }
    text.into_bytes()
}

fn hex(bytes: &[u8]) -> Vec<u8> {
    let mut text = String::with_capacity(bytes.len() * 2);
    bytes.iter().for_each(|byte| _ = write!(text, "{byte:02x}"));
    text.into_bytes()
}

/// What of `bytes` is the same in base 64 whatever stands around them, where so many bytes (modulo 3) come before.
fn base64_inside(bytes: &[u8], offset: usize, alphabet: &Alphabet) -> Vec<u8> {
    let engine = GeneralPurpose::new(alphabet, GeneralPurposeConfig::new().with_encode_padding(false));
    let encoded = engine.encode([&vec![0; offset][..], bytes].concat()).into_bytes();
    let whole = (offset + bytes.len()) * 8 / 6;
    encoded[(offset * 8).div_ceil(6)..whole].to_vec()
}
