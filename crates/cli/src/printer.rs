//! Pieces on their way to the screen: whole lines never run into streamed text, and a spinner never into either.

use crate::terminal::{Look, Shade, shown};
use crate::view::Piece;
use std::io::{self, Write};

/// The spinner's pictures.
const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// Writes the model's words to one stream and all the rest to another, which may be the same.
pub struct Printer {
    words: Box<dyn Write>,
    notes: Box<dyn Write>,
    look: Look,
    /// Streamed text stands in the line.
    mid_line: bool,
    spun: usize,
    /// A spinner stands in the line.
    spinning: bool,
}

/// Notes that nobody reads are no reason to stop the work.
struct Unheeded<W>(W);

impl<W: Write> Write for Unheeded<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _ = self.0.write_all(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let _ = self.0.flush();
        Ok(())
    }
}

impl Printer {
    /// Everything to stdout: a chat.
    pub fn chat(look: Look) -> Printer {
        Printer::new(Box::new(io::stdout()), Box::new(io::stdout()), look)
    }

    /// The model's words to stdout, the rest to stderr: a headless run.
    pub fn headless(look: Look) -> Printer {
        Printer::new(Box::new(io::stdout()), Box::new(Unheeded(io::stderr())), look)
    }

    fn new(words: Box<dyn Write>, notes: Box<dyn Write>, look: Look) -> Printer {
        Printer { words, notes, look, mid_line: false, spun: 0, spinning: false }
    }

    pub fn show(&mut self, pieces: &[Piece]) -> io::Result<()> {
        for piece in pieces {
            match piece {
                Piece::Text(text) => self.text(text, Shade::Plain)?,
                Piece::Thinking(text) => self.text(text, Shade::Dim)?,
                Piece::End => self.end_line()?,
                Piece::Line(line) => self.line(line)?,
            }
        }
        self.words.flush()
    }

    fn text(&mut self, text: &str, shade: Shade) -> io::Result<()> {
        self.erase()?;
        self.words.write_all(shown(&self.look.paint(shade, text)).as_bytes())?;
        self.mid_line = !text.ends_with('\n');
        Ok(())
    }

    /// A whole line; what is in the line now ends first.
    pub fn line(&mut self, line: &str) -> io::Result<()> {
        self.end_line()?;
        // One write: lines of several processes on one terminal do not mix.
        self.notes.write_all(format!("{}\n", shown(line)).as_bytes())?;
        self.notes.flush()
    }

    pub fn end_line(&mut self) -> io::Result<()> {
        self.erase()?;
        if std::mem::take(&mut self.mid_line) {
            self.words.write_all(b"\n")?;
            self.words.flush()?;
        }
        Ok(())
    }

    /// The words a person types behind.
    pub fn ask(&mut self, words: &str) -> io::Result<()> {
        self.end_line()?;
        self.notes.write_all(shown(words).as_bytes())?;
        self.notes.flush()
    }

    /// A sign of life, where somebody looks and nothing else moves.
    pub fn spin(&mut self, doing: &str) -> io::Result<()> {
        if !self.look.colours || self.mid_line {
            return Ok(());
        }
        self.spun += 1;
        self.spinning = true;
        let doing = shown(doing);
        write!(self.notes, "\r\x1b[K\x1b[2m{} {doing}\x1b[0m", FRAMES[self.spun % FRAMES.len()])?;
        self.notes.flush()
    }

    fn erase(&mut self) -> io::Result<()> {
        if !std::mem::take(&mut self.spinning) {
            return Ok(());
        }
        self.notes.write_all(b"\r\x1b[K")?;
        self.notes.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct Paper(Arc<Mutex<Vec<u8>>>);

    impl Write for Paper {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn printed(look: Look, write: impl Fn(&mut Printer) -> io::Result<()>) -> String {
        let paper = Paper::default();
        let mut printer = Printer::new(Box::new(paper.clone()), Box::new(paper.clone()), look);
        write(&mut printer).unwrap();
        let bytes = paper.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn lines_and_streamed_text_keep_apart() {
        let text = printed(Look::default(), |printer| {
            printer.show(&[Piece::Text("Hel".into()), Piece::Text("lo".into()), Piece::End])?;
            printer.show(&[Piece::Line("  ls".into()), Piece::Text("more".into()), Piece::Line("end".into())])
        });
        assert_eq!(text, "Hello\n  ls\nmore\nend\n");
    }

    #[test]
    fn a_spinner_turns_only_where_it_is_seen_and_is_erased_before_text() {
        let spinning = |printer: &mut Printer| {
            printer.spin("thinking")?;
            printer.show(&[Piece::Text("x".into())])?;
            printer.spin("thinking")
        };
        assert_eq!(printed(Look::default(), spinning), "x");
        let seen = Look { terminal: true, colours: true };
        assert_eq!(printed(seen, spinning), "\r\x1b[K\x1b[2m⠙ thinking\x1b[0m\r\x1b[Kx");
    }
}
