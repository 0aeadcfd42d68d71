//! A program's output as a model is to read it: without the sequences that paint and move on a terminal, and each line
//! as it stood last.

use memchr::{memchr3, memrchr};

/// Bytes of a line that may be taken back by a carriage return; of a longer one the rest.
const LINE_BYTES: usize = 8 << 10;
/// Bytes of one sequence; what is longer is no sequence.
const SEQUENCE_BYTES: usize = 4 << 10;

/// Takes output in as it comes, and gives it line by line.
#[derive(Default)]
pub(crate) struct Plain {
    /// The line that is not ended yet.
    line: Vec<u8>,
    /// A carriage return came: what comes next stands in the place of the line, unless it is the line's end.
    returned: bool,
    within: Within,
    /// Bytes of the sequence so far.
    length: usize,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Within {
    #[default]
    Text,
    /// Behind an escape character.
    Escape,
    /// Behind an escape that one more character belongs to.
    Escape2,
    /// `ESC [ … letter`
    Control,
    /// `ESC ] … BEL` and the like, which `ESC \` ends, too.
    String,
    StringEscape,
}

impl Plain {
    /// The whole lines that `bytes` made.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut lines = Vec::with_capacity(bytes.len());
        let mut rest = bytes;
        while let Some(first) = rest.first() {
            if self.within != Within::Text {
                self.sequence(*first, &mut lines);
                rest = &rest[1..];
                continue;
            }
            let special = memchr3(0x1b, b'\r', 0x08, rest).unwrap_or(rest.len());
            if special > 0 {
                self.text(&rest[..special], &mut lines);
                rest = &rest[special..];
                continue;
            }
            match first {
                b'\r' => self.returned = true,
                0x08 => self.back(),
                _ => (self.within, self.length) = (Within::Escape, 0),
            }
            rest = &rest[1..];
        }
        lines
    }

    /// The last line, that nothing ended.
    pub(crate) fn finish(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.line)
    }

    fn text(&mut self, text: &[u8], lines: &mut Vec<u8>) {
        if std::mem::take(&mut self.returned) && text[0] != b'\n' {
            self.line.clear();
        }
        let ended = memrchr(b'\n', text).map_or(0, |end| end + 1);
        if ended > 0 {
            lines.append(&mut self.line);
            lines.extend_from_slice(&text[..ended]);
        }
        self.line.extend_from_slice(&text[ended..]);
        if self.line.len() > LINE_BYTES {
            lines.append(&mut self.line);
        }
    }

    /// Takes the last character of the line back, as manual pages do to print it twice.
    fn back(&mut self) {
        while self.line.pop().is_some_and(|byte| (0x80..0xC0).contains(&byte)) {}
    }

    fn sequence(&mut self, byte: u8, lines: &mut Vec<u8>) {
        self.length += 1;
        self.within = match (self.within, byte) {
            (Within::Escape, b'[') => Within::Control,
            (Within::Escape, b']' | b'P' | b'X' | b'^' | b'_') => Within::String,
            (Within::Escape, b' '..=b'/') => Within::Escape2,
            (Within::Control, b' '..=b'?') => Within::Control,
            (Within::Control, b'K') => {
                // The line, or what is left of it, is wiped.
                if self.returned {
                    self.line.clear();
                }
                Within::Text
            }
            (Within::String, 0x07) | (Within::StringEscape, b'\\') => Within::Text,
            (Within::String, 0x1b) => Within::StringEscape,
            (Within::Control | Within::Escape | Within::Escape2, 0x1b) => Within::Escape,
            // It never ended: what follows is the program's own.
            (Within::String, b'\n') => {
                self.text(b"\n", lines);
                Within::Text
            }
            (Within::String, _) => Within::String,
            (Within::StringEscape, _) => {
                self.within = Within::Escape;
                return self.sequence(byte, lines);
            }
            (Within::Escape | Within::Escape2 | Within::Control, b'\n') => {
                self.text(b"\n", lines);
                Within::Text
            }
            _ => Within::Text,
        };
        if self.length > SEQUENCE_BYTES {
            self.within = Within::Text;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(chunks: &[&[u8]]) -> String {
        let mut plain = Plain::default();
        let mut text: Vec<u8> = chunks.iter().flat_map(|chunk| plain.push(chunk)).collect();
        text.extend(plain.finish());
        String::from_utf8_lossy(&text).into_owned()
    }

    #[test]
    fn sequences_go_and_each_line_is_as_it_stood_last() {
        let table = [
            ("plain\ntext", "plain\ntext"),
            ("\x1b[1;31merror\x1b[0m: no", "error: no"),
            ("\x1b[38;2;255;0;0mrgb\x1b[m", "rgb"),
            ("\x1b[01;31m\x1b[Kghp_\x1b[m\x1b[Kabc", "ghp_abc"),
            ("\x1b]0;title\x07text", "text"),
            ("\x1b]0;title\x1b\\text", "text"),
            ("\x1b]8;;https://a.example\x1b\\link\x1b]8;;\x1b\\", "link"),
            ("\x1bP+q544e\x1b\\after", "after"),
            ("\x1b_Gx\x1b\\after", "after"),
            ("\x1b(B\x1b)0text", "text"),
            ("\x1b7\x1b8\x1bMtext", "text"),
            ("\x1b[?25lhidden cursor\x1b[?25h", "hidden cursor"),
            ("\x1b\x1b[31mtwice", "twice"),
            ("\x1b]0;never ended\nmore", "\nmore"),
            ("\x1b[12\nmore", "\nmore"),
            ("10%\r20%\r100%\ndone\n", "100%\ndone\n"),
            ("10%\r20%", "20%"),
            ("10%\r\x1b[K20%\r\x1b[K", ""),
            ("kept\r", "kept"),
            ("a\r\nb\r\n", "a\nb\n"),
            ("a\r\r\nb", "a\nb"),
            ("N\x08NA\x08AM\x08ME\x08E", "NAME"),
            ("ä\x08b", "b"),
            ("line\n\x08x", "line\nx"),
            ("tab\tstays", "tab\tstays"),
        ];
        for (output, told) in table {
            assert_eq!(plain(&[output.as_bytes()]), told, "{output:?}");
            let bytes: Vec<&[u8]> = output.as_bytes().chunks(1).collect();
            assert_eq!(plain(&bytes), told, "byte by byte: {output:?}");
        }
    }

    #[test]
    fn nothing_is_held_without_bound() {
        let mut plain = Plain::default();
        let told: usize = (0..1_000).map(|_| plain.push(&[b'x'; 1_000]).len()).sum();
        assert!(told >= 1_000_000 - LINE_BYTES - 1_000, "{told}");
        let string = [&b"\x1b]"[..], &[b'x'; SEQUENCE_BYTES + 100]].concat();
        plain.push(&string);
        assert!(plain.finish().len() >= 90);
    }
}
