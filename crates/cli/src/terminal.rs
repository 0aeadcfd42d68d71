//! What is on the other side of stdout and stderr: colours, width, and the one place where text from outside is made
//! harmless before it is shown.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};

/// What may be shown on one stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// A person watches: a spinner makes sense.
    pub terminal: bool,
    pub colours: bool,
}

/// A shade of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shade {
    Plain,
    Dim,
    Bold,
    Red,
    Green,
    Yellow,
    Cyan,
}

impl Look {
    pub fn of(stream: &impl IsTerminal, no_color: bool) -> Look {
        let terminal = stream.is_terminal();
        Look { terminal, colours: terminal && !no_color }
    }

    /// `text` in `shade`, if colours are shown.
    pub fn paint<'a>(&self, shade: Shade, text: &'a str) -> Cow<'a, str> {
        let code = match shade {
            Shade::Plain => return Cow::Borrowed(text),
            _ if !self.colours => return Cow::Borrowed(text),
            Shade::Dim => "2",
            Shade::Bold => "1",
            Shade::Red => "31",
            Shade::Green => "32",
            Shade::Yellow => "33",
            Shade::Cyan => "36",
        };
        Cow::Owned(format!("\x1b[{code}m{text}\x1b[0m"))
    }
}

/// The beginning of what [`Look::paint`] writes, and the numbers it writes behind it.
const PAINT: &str = "\x1b[";
const PAINTS: [&str; 7] = ["0m", "1m", "2m", "31m", "32m", "33m", "36m"];

/// Text of a model, a tool or a file with everything neutralised that could steer a terminal or deceive its reader.
pub fn harmless(text: &str) -> Cow<'_, str> {
    windlass_tools::visible(text)
}

/// The same of a line that was painted here: nothing but the paint is left to steer the terminal. All that is printed
/// goes through this, whatever was done to its parts before.
pub fn shown(text: &str) -> Cow<'_, str> {
    if !text.contains(PAINT) {
        return harmless(text);
    }
    let mut clean = String::with_capacity(text.len());
    let mut parts = text.split(PAINT);
    clean += &harmless(parts.next().unwrap_or_default());
    for part in parts {
        match PAINTS.iter().find(|paint| part.starts_with(**paint)) {
            Some(paint) => {
                clean += PAINT;
                clean += paint;
                clean += &harmless(&part[paint.len()..]);
            }
            None => clean += &harmless(&format!("{PAINT}{part}")),
        }
    }
    Cow::Owned(clean)
}

/// JSON that says the same without a character that could deceive: such are written as escapes.
pub fn plain_json(json: &str) -> Cow<'_, str> {
    let is_told = |c: char| c == '\u{7f}' || windlass_tools::is_invisible(c);
    if json.is_ascii() && !json.contains('\u{7f}') || !json.contains(is_told) {
        return Cow::Borrowed(json);
    }
    let mut clean = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        if is_told(c) {
            let mut units = [0; 2];
            c.encode_utf16(&mut units).iter().for_each(|unit| clean += &format!("\\u{unit:04x}"));
        } else {
            clean.push(c);
        }
    }
    Cow::Owned(clean)
}

/// The first line of `text`, harmless and at most `width` characters wide.
pub fn one_line(text: &str, width: usize) -> String {
    let line = text.trim().lines().next().unwrap_or_default().trim_end();
    let clean = harmless(line).replace('\t', " ");
    let more = text.trim().lines().nth(1).is_some();
    match clean.char_indices().nth(width.max(2) - 1) {
        Some((at, _)) if clean[at..].chars().nth(1).is_some() || more => format!("{}…", &clean[..at]),
        _ if more => format!("{clean}…"),
        _ => clean,
    }
}

/// Writes a listing to stdout. That nobody reads on is no error: the program ends quietly.
pub fn print(text: &str) {
    put(&shown(text));
}

/// Writes JSON to stdout, in which nothing may be changed.
pub fn print_json(json: &str) {
    put(&plain_json(json));
}

fn put(text: &str) {
    let mut stdout = io::stdout().lock();
    if let Err(error) = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        leave_on_closed(&error);
    }
}

/// Ends the program if the reader of its output is gone.
fn leave_on_closed(error: &io::Error) {
    if error.kind() == io::ErrorKind::BrokenPipe {
        std::process::exit(0);
    }
    tell(&format!("stdout can't be written: {error}"));
    std::process::exit(1);
}

/// Writes a line to stderr; if nobody reads it, so be it.
pub fn tell(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", shown(line));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_text_is_not_copied() {
        let text = "naïve — 日本語\n\tindented";
        assert!(matches!(harmless(text), Cow::Borrowed(same) if same == text));
    }

    #[test]
    fn nothing_that_steers_a_terminal_gets_through() {
        assert_eq!(harmless("\x1b]0;title\x07"), "␛]0;title␇");
        assert_eq!(harmless("safe\rrm -rf"), "safe␍rm -rf");
        assert_eq!(harmless("line\r\nnext"), "line\nnext");
        assert_eq!(harmless("\u{9b}2J\u{7f}"), "<U+009B>2J␡");
        assert_eq!(harmless("user\u{202e}txt.exe"), "user<U+202E>txt.exe");
    }

    #[test]
    fn of_what_steers_a_terminal_only_the_paint_made_here_is_left() {
        let look = Look { terminal: true, colours: true };
        let painted = format!("{} and {}", look.paint(Shade::Red, "no"), look.paint(Shade::Dim, "yes"));
        assert_eq!(shown(&painted), painted);
        assert_eq!(shown("\x1b[31mred\x1b[8mhidden\x1b[0m\x1b]0;t\x07"), "\x1b[31mred␛[8mhidden\x1b[0m␛]0;t␇");
        assert_eq!(shown("\x1b[2J\x1b[H"), "␛[2J␛[H");
        for shade in [Shade::Dim, Shade::Bold, Shade::Red, Shade::Green, Shade::Yellow, Shade::Cyan] {
            let painted = look.paint(shade, "x");
            assert_eq!(shown(&painted), painted, "{shade:?}");
        }
    }

    #[test]
    fn json_says_the_same_and_hides_nothing() {
        let said = "a\u{202e}b\u{e0041}c\u{7f}d\x1be ❤\u{fe0f} ä";
        let json = serde_json::to_string(said).unwrap();
        let plain = plain_json(&json);
        assert_eq!(plain, "\"a\\u202eb\\udb40\\udc41c\\u007fd\\u001be ❤\\ufe0f ä\"");
        assert_eq!(serde_json::from_str::<String>(&plain).unwrap(), said);
        assert!(matches!(plain_json("[1, \"ä\"]"), Cow::Borrowed(_)));
    }

    #[test]
    fn a_line_is_cut_between_characters() {
        assert_eq!(one_line("äöü", 3), "äöü");
        assert_eq!(one_line("äöüß", 3), "äö…");
        assert_eq!(one_line("first\nsecond", 20), "first…");
        assert_eq!(one_line("a\tb\x1b", 20), "a b␛");
    }

    #[test]
    fn no_colours_where_none_are_wanted() {
        let plain = Look { terminal: true, colours: false };
        assert_eq!(plain.paint(Shade::Red, "x"), "x");
        assert_eq!(Look { terminal: true, colours: true }.paint(Shade::Red, "x"), "\x1b[31mx\x1b[0m");
    }
}
