//! Characters that make a line look other than it is.

/// Doubts that name each kind of them, escaped.
pub(super) fn doubts(text: &str) -> Vec<String> {
    let mut found: Vec<char> = Vec::new();
    for sign in text.chars().filter(|sign| is_suspicious(*sign)) {
        if !found.contains(&sign) {
            found.push(sign);
        }
        if found.len() == MAX_NAMED {
            break;
        }
    }
    found.into_iter().map(|sign| format!("holds {}, {}", escaped(sign), name(sign))).collect()
}

/// Different characters that are named.
const MAX_NAMED: usize = 8;

/// As `U+202E`.
pub(super) fn escaped(sign: char) -> String {
    format!("U+{:04X}", u32::from(sign))
}

pub(super) fn is_suspicious(sign: char) -> bool {
    match sign {
        '\n' | '\t' => false,
        ' '..='~' => false,
        _ => sign.is_control() || is_hidden(sign) || is_odd_space(sign) || is_direction(sign),
    }
}

fn is_direction(sign: char) -> bool {
    matches!(sign, '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Zero-width, invisible or a tag; but not the sign that makes an emoji coloured.
fn is_hidden(sign: char) -> bool {
    matches!(
        sign,
        '\u{00ad}'
            | '\u{034f}'
            | '\u{115f}'
            | '\u{1160}'
            | '\u{17b4}'
            | '\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200d}'
            | '\u{2060}'..='\u{2065}'
            | '\u{206a}'..='\u{206f}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0e}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

/// Any white space but the plain blank, and the line separators.
fn is_odd_space(sign: char) -> bool {
    sign != ' ' && (sign.is_whitespace() || sign == '\u{2800}')
}

fn name(sign: char) -> &'static str {
    match sign {
        _ if is_direction(sign) => "which changes the direction of what is read",
        _ if is_odd_space(sign) && !sign.is_control() => "a space that is none to the shell",
        _ if sign.is_control() => "a control character",
        _ => "which cannot be seen",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_seen_is_shown_escaped() {
        for (text, shown) in [
            ("ls\u{202e}x", "U+202E"),
            ("ls\u{a0}x", "U+00A0"),
            ("ls\u{3000}x", "U+3000"),
            ("ls\u{2003}x", "U+2003"),
            ("ls\u{200b}x", "U+200B"),
            ("ls\u{e0041}x", "U+E0041"),
            ("ls\r", "U+000D"),
            ("ls\u{1b}[2K", "U+001B"),
            ("ls\0", "U+0000"),
            ("ls\u{7f}", "U+007F"),
            ("ls\u{85}", "U+0085"),
            ("ls\u{2028}", "U+2028"),
        ] {
            assert!(doubts(text).iter().any(|doubt| doubt.contains(shown)), "{text:?}: {:?}", doubts(text));
        }
    }

    #[test]
    fn letters_of_all_languages_are_no_doubt() {
        assert_eq!(doubts("git commit -m 'größer, 日本語, 🎉, “x” – é ✔️'\n\tls"), Vec::<String>::new());
    }
}
