//! What steers a terminal, turns the direction of writing or can't be seen, made visible: the one list of such
//! characters, for what a model is told and for what a screen shows.

use std::borrow::Cow;
use std::fmt::Write;

/// Marks that may be piled on one letter; more of them cover the lines around it.
const PILED_MARKS: usize = 4;

/// `text` with control characters as pictures (`␛`) and characters that deceive as their numbers (`<U+202E>`). Line
/// ends and tabs stay; a carriage return before a line end goes.
pub fn visible(text: &str) -> Cow<'_, str> {
    let Some(first) = first_suspect(text) else { return Cow::Borrowed(text) };
    let mut clean = String::with_capacity(text.len() + 16);
    clean.push_str(&text[..first]);
    let mut before = text[..first].chars().next_back();
    let mut piled = 0;
    let mut rest = text[first..].chars().peekable();
    while let Some(c) = rest.next() {
        piled = if is_mark(c) { piled + 1 } else { 0 };
        match c {
            '\n' | '\t' | ' '..='~' => clean.push(c),
            '\r' if rest.peek() == Some(&'\n') => {}
            '\u{7f}' => clean.push('\u{2421}'),
            '\0'..='\x1f' => clean.extend(char::from_u32(0x2400 + c as u32)),
            _ if is_deceptive(c, before) || piled > PILED_MARKS => _ = write!(clean, "<U+{:04X}>", c as u32),
            _ => clean.push(c),
        }
        before = Some(c);
    }
    Cow::Owned(clean)
}

/// Where the first character is that may have to be shown in another way; most texts have none.
fn first_suspect(text: &str) -> Option<usize> {
    let is_control = |byte: &u8| (*byte < b' ' && !matches!(byte, b'\n' | b'\t')) || *byte == 0x7f;
    if text.is_ascii() {
        return text.bytes().position(|byte| is_control(&byte));
    }
    let is_suspect = |c: char| if c.is_ascii() { is_control(&(c as u8)) } else { is_mark(c) || is_deceptive(c, None) };
    text.char_indices().find(|(_, c)| is_suspect(*c)).map(|(at, _)| at)
}

/// Whether `c` behind `before` hides something: what can't be seen has a use only behind certain letters and pictures.
fn is_deceptive(c: char, before: Option<char>) -> bool {
    let joins = before.is_some_and(|before| !before.is_ascii() && !is_invisible(before));
    match c {
        // Letters of some scripts, and pictures made of several.
        '\u{200c}' | '\u{200d}' => !joins,
        // A picture's colours; also behind the figures of key caps.
        '\u{fe0e}' | '\u{fe0f}' => !joins && !before.is_some_and(|before| matches!(before, '0'..='9' | '#' | '*')),
        _ => is_invisible(c),
    }
}

/// Whether `c` is never seen itself: it turns the direction of writing, takes no room, or ends a line in secret.
pub fn is_invisible(c: char) -> bool {
    match c {
        // C1 controls, and lines that end without a line end.
        '\u{80}'..='\u{9f}' | '\u{2028}' | '\u{2029}' => true,
        // The direction of writing.
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        // No width, or not to be seen.
        '\u{ad}' | '\u{34f}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2065}' => true,
        '\u{206a}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}' => true,
        // Letters that are drawn as nothing.
        '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{3164}' | '\u{ffa0}' | '\u{2800}' => true,
        // Variants and tags: whole sentences can be written in them.
        '\u{fe00}'..='\u{fe0f}' | '\u{e0000}'..='\u{e0fff}' => true,
        _ => false,
    }
}

/// Marks that are drawn on the letter before them and can be piled without end.
fn is_mark(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{483}'..='\u{489}' | '\u{591}'..='\u{5bd}' | '\u{610}'..='\u{61a}')
        || matches!(c, '\u{64b}'..='\u{65f}' | '\u{6d6}'..='\u{6dc}' | '\u{e31}' | '\u{e34}'..='\u{e3a}')
        || matches!(c, '\u{e47}'..='\u{e4e}' | '\u{eb4}'..='\u{ebc}' | '\u{ec8}'..='\u{ecd}')
        || matches!(c, '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}' | '\u{20d0}'..='\u{20ff}' | '\u{fe20}'..='\u{fe2f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_text_is_not_copied() {
        let texts = ["naïve — 日本語\n\tindented", "हिन्दी क्ष", "می‌خواهم", "👩‍👩‍👧 ❤️ 1️⃣ e\u{301}", "สวัสดีครับ"];
        for text in texts {
            assert_eq!(visible(text), text);
        }
        assert!(matches!(visible("naïve — 日本語\n\tindented"), Cow::Borrowed(_)));
    }

    #[test]
    fn whatever_steers_turns_or_hides_is_seen() {
        let table = [
            // C0
            ("\0", "␀"),
            ("bell\x07", "bell␇"),
            ("a\x08b", "a␈b"),
            ("a\x0bb\x0cc", "a␋b␌c"),
            ("\x0e\x0f", "␎␏"),
            ("\x18\x1a", "␘␚"),
            ("\u{7f}", "␡"),
            // Lines
            ("line\r\nnext\n", "line\nnext\n"),
            ("safe\rrm -rf", "safe␍rm -rf"),
            ("twice\r\r\n", "twice␍\n"),
            ("end\r", "end␍"),
            ("a\u{2028}b\u{2029}c", "a<U+2028>b<U+2029>c"),
            ("a\u{85}b", "a<U+0085>b"),
            // Sequences
            ("\x1b[31mred\x1b[0m", "␛[31mred␛[0m"),
            ("\x1b[2J\x1b[H", "␛[2J␛[H"),
            ("\x1b[1A\x1b[2Kgone", "␛[1A␛[2Kgone"),
            ("\x1b[8mhidden\x1b[28m", "␛[8mhidden␛[28m"),
            ("\x1b[?1049h", "␛[?1049h"),
            ("\x1b[6n", "␛[6n"),
            ("\x1b[20t\x1b[21t", "␛[20t␛[21t"),
            ("\x1b]0;title\x07", "␛]0;title␇"),
            ("\x1b]8;;https://evil.example\x1b\\docs\x1b]8;;\x1b\\", "␛]8;;https://evil.example␛\\docs␛]8;;␛\\"),
            ("\x1b]52;c;cm0gLXJm\x07", "␛]52;c;cm0gLXJm␇"),
            ("\x1b]1337;File=:AAAA\x07", "␛]1337;File=:AAAA␇"),
            ("\x1bP+q544e\x1b\\", "␛P+q544e␛\\"),
            ("\x1b_Gf=100;AAAA\x1b\\", "␛_Gf=100;AAAA␛\\"),
            ("\x1b^private\x1b\\", "␛^private␛\\"),
            ("\x1bXstring\x1b\\", "␛Xstring␛\\"),
            ("\x1bc", "␛c"),
            ("\x1b(0lqk", "␛(0lqk"),
            ("\u{9b}2J", "<U+009B>2J"),
            ("\u{9d}0;title\u{9c}", "<U+009D>0;title<U+009C>"),
            ("\u{90}q\u{9c}", "<U+0090>q<U+009C>"),
            // Direction
            ("user\u{202e}txt.exe", "user<U+202E>txt.exe"),
            ("\u{202a}\u{202b}\u{202c}\u{202d}", "<U+202A><U+202B><U+202C><U+202D>"),
            ("\u{2066}a\u{2067}b\u{2068}c\u{2069}", "<U+2066>a<U+2067>b<U+2068>c<U+2069>"),
            ("a\u{200e}b\u{200f}c\u{61c}d", "a<U+200E>b<U+200F>c<U+061C>d"),
            // Nothing to be seen
            ("rm\u{200b} -rf", "rm<U+200B> -rf"),
            ("pay\u{200d}pal", "pay<U+200D>pal"),
            ("pay\u{200c}pal", "pay<U+200C>pal"),
            ("é\u{200b}\u{200d}", "é<U+200B><U+200D>"),
            ("a\u{2060}b\u{2063}c\u{feff}d", "a<U+2060>b<U+2063>c<U+FEFF>d"),
            ("soft\u{ad}hyphen", "soft<U+00AD>hyphen"),
            ("a\u{3164}b\u{115f}c\u{ffa0}d", "a<U+3164>b<U+115F>c<U+FFA0>d"),
            ("a\u{fff9}b\u{fffb}", "a<U+FFF9>b<U+FFFB>"),
            ("\u{180e}", "<U+180E>"),
            // Whole sentences in tags and variants
            ("\u{e0001}\u{e0072}\u{e006d}\u{e007f}", "<U+E0001><U+E0072><U+E006D><U+E007F>"),
            ("😀\u{e0101}\u{e01ef}", "😀<U+E0101><U+E01EF>"),
            ("a\u{fe01}\u{fe0f}b", "a<U+FE01><U+FE0F>b"),
            // Piles
            ("e\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}", "e\u{301}\u{301}\u{301}\u{301}<U+0301><U+0301>"),
        ];
        assert!(table.len() >= 40);
        for (text, shown) in table {
            assert_eq!(visible(text), shown, "{text:?}");
            assert_eq!(visible(shown), shown, "made visible twice: {text:?}");
        }
    }
}
