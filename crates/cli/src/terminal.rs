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

/// Text of a model, a tool or a file with everything neutralised that could steer a terminal or deceive its reader:
/// control characters become visible pictures, marks that reverse the direction of writing become their numbers.
pub fn harmless(text: &str) -> Cow<'_, str> {
    let Some(first) = text.char_indices().find(|(_, c)| is_harmful(*c)).map(|(at, _)| at) else {
        return Cow::Borrowed(text);
    };
    let mut clean = String::with_capacity(text.len() + 16);
    clean.push_str(&text[..first]);
    let mut rest = text[first..].chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\r' if rest.peek() == Some(&'\n') => {}
            '\u{7f}' => clean.push('\u{2421}'),
            '\0'..='\x1f' if is_harmful(c) => clean.extend(char::from_u32(0x2400 + c as u32)),
            _ if is_harmful(c) => clean.push_str(&format!("<U+{:04X}>", c as u32)),
            _ => clean.push(c),
        }
    }
    Cow::Owned(clean)
}

fn is_harmful(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        '\0'..='\x1f' | '\u{7f}'..='\u{9f}' => true,
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{61c}' => true,
        '\u{2028}' | '\u{2029}' => true,
        _ => false,
    }
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
    let _ = writeln!(io::stderr().lock(), "{line}");
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
