//! `$'…'`: the escapes that stand for other characters.

/// Decodes what stands between the quotes; none where the shell's answer depends on the locale or cannot be a text.
pub(super) fn decode(text: &str) -> Option<String> {
    let mut bytes: Vec<u8> = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        rest = escape(&rest[at + 1..], &mut bytes)?;
    }
    bytes.extend_from_slice(rest.as_bytes());
    String::from_utf8(bytes).ok()
}

/// One escape, after its backslash; what comes after it.
fn escape<'t>(text: &'t str, bytes: &mut Vec<u8>) -> Option<&'t str> {
    let sign = text.chars().next()?;
    let rest = &text[sign.len_utf8()..];
    let simple = match sign {
        'a' => 0x07,
        'b' => 0x08,
        'e' | 'E' => 0x1b,
        'f' => 0x0c,
        'n' => b'\n',
        'r' => b'\r',
        't' => b'\t',
        'v' => 0x0b,
        '\\' | '\'' | '"' | '?' => u8::try_from(sign).ok()?,
        '0'..='7' => return number(text, 8, 3, 0x1ff, bytes),
        'x' if rest.starts_with('{') => return None,
        'x' if !rest.starts_with(|sign: char| sign.is_ascii_hexdigit()) => return None,
        'x' => return number(rest, 16, 2, 0xff, bytes),
        'u' => return number(rest, 16, 4, 0x7f, bytes),
        'U' => return number(rest, 16, 8, 0x7f, bytes),
        'c' => return control(rest, bytes),
        _ => {
            bytes.push(b'\\');
            bytes.extend_from_slice(&text.as_bytes()[..sign.len_utf8()]);
            return Some(rest);
        }
    };
    bytes.push(simple);
    Some(rest)
}

/// Up to `width` digits; values that are no byte wrap as the shell's do, NUL and those above `limit` are not decoded.
fn number<'t>(text: &'t str, base: u32, width: usize, limit: u32, bytes: &mut Vec<u8>) -> Option<&'t str> {
    let digits = text.bytes().take(width).take_while(|sign| char::from(*sign).is_digit(base)).count();
    let value = u32::from_str_radix(&text[..digits], base).ok().filter(|value| *value <= limit)?;
    let byte = u8::try_from(value & 0xff).ok().filter(|byte| *byte != 0)?;
    bytes.push(byte);
    Some(&text[digits..])
}

fn control<'t>(text: &'t str, bytes: &mut Vec<u8>) -> Option<&'t str> {
    let sign = text.bytes().next().filter(|sign| sign.is_ascii_alphabetic())?;
    bytes.push(sign.to_ascii_uppercase() & 0x1f);
    Some(&text[1..])
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn escapes_are_decoded_or_not_at_all() {
        for (text, expected) in [
            ("rm", Some("rm")),
            (r"\x72\155", Some("rm")),
            (r"\x7", Some("\x07")),
            (r"\x72d", Some("rd")),
            (r"\u72m \U00000072", Some("rm r")),
            (r"\cA\n\t\e", Some("\x01\n\t\x1b")),
            (r"\q\'\\", Some(r"\q'\")),
            (r"\xc3\xa9", Some("é")),
            (r"\xff", None),
            (r"\0", None),
            (r"\x00", None),
            (r"\x{72}", None),
            (r"\u00e9", None),
            (r"\xg", None),
        ] {
            assert_eq!(decode(text).as_deref(), expected, "{text}");
        }
    }
}
