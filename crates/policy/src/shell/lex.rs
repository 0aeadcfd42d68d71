//! The text cut into words and operators, without its grammar.
//!
//! It is done beside the parser, by the rules of the shell's own reader: where words end, quotes close and
//! substitutions stop. The parser is believed only where it cuts the text at the same places.

mod nesting;
mod operators;

use super::heredoc::Heredoc;
use std::collections::VecDeque;

/// Substitutions, quotes and bodies within one another, counted in levels.
pub(super) const MAX_LEVELS: usize = 32;
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Token {
    pub start: usize,
    pub end: usize,
    pub kind: TokenKind,
    /// Which list of commands it stands in: the line itself, or one substitution.
    pub room: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TokenKind {
    Word,
    Operator,
    Newline,
    /// The lines of a here-document.
    Body {
        /// Its delimiter was quoted, so nothing in it is expanded.
        quoted: bool,
    },
    /// The line that ends a here-document.
    BodyEnd,
}

#[derive(Debug, Default)]
pub(super) struct Lexed {
    /// In the order of their starts; an outer word stands before what is in it.
    pub tokens: Vec<Token>,
    /// Where each substitution starts and ends, sorted.
    pub substitutions: Vec<(usize, usize)>,
    /// Why the rest could not be cut.
    pub failure: Option<String>,
    /// It is beyond limits, and the parser would take too long over it.
    pub endless: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Commands(Closer),
    Quotes,
    Parameter { quoted: bool },
    Arithmetic { expands: bool },
    Body { next: usize },
}

/// What ends a list of commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Closer {
    End,
    Paren,
    Backquote,
}

#[derive(Debug)]
struct Frame {
    place: Place,
    /// The first sign of what opened it.
    start: usize,
    /// It must be closed before this byte.
    bound: usize,
    room: u32,
    word: Option<usize>,
    parens: u32,
    cases: u32,
    /// A command may begin here.
    fresh: bool,
    /// The next word is what a redirection names.
    target: bool,
    /// An operator was read last, after which most others are wrong.
    after_operator: bool,
    /// The next word ends a here-document; its lines may be indented by tabs.
    delimiter: Option<bool>,
    heredocs: VecDeque<Heredoc>,
    bodies: bool,
}

struct Lexer<'t> {
    text: &'t str,
    bytes: &'t [u8],
    at: usize,
    frames: Vec<Frame>,
    rooms: u32,
    heredocs: usize,
    operators: usize,
    lexed: Lexed,
}

type Step = Result<(), String>;

/// Cuts `text`; stops where it cannot be cut for sure.
pub(super) fn lex(text: &str) -> Lexed {
    let (bytes, frames, lexed) = (text.as_bytes(), Vec::new(), Lexed::default());
    let mut lexer = Lexer { text, bytes, at: 0, frames, rooms: 0, heredocs: 0, operators: 0, lexed };
    lexer.lexed.failure = lexer.run().err();
    if lexer.lexed.failure.is_some() {
        lexer.abandon();
    }
    lexer.lexed.tokens.sort_unstable_by_key(|token| (token.start, std::cmp::Reverse(token.end)));
    lexer.lexed.substitutions.sort_unstable();
    lexer.lexed
}

impl Lexer<'_> {
    fn run(&mut self) -> Step {
        self.push(Place::Commands(Closer::End), 0, self.text.len())?;
        while let Some(frame) = self.frames.last() {
            match frame.place {
                Place::Commands(closer) => self.command(closer)?,
                Place::Quotes => self.quotes()?,
                Place::Parameter { quoted } => self.parameter(quoted)?,
                Place::Arithmetic { expands } => self.arithmetic(expands)?,
                Place::Body { next } => self.body(next)?,
            }
        }
        Ok(())
    }

    /// Words that were begun are kept for those who look for what must not run.
    fn abandon(&mut self) {
        for frame in std::mem::take(&mut self.frames) {
            if let Some(start) = frame.word.filter(|start| *start < self.text.len()) {
                let token = Token { start, end: self.text.len(), kind: TokenKind::Word, room: frame.room };
                self.lexed.tokens.push(token);
            }
        }
    }

    fn push(&mut self, place: Place, start: usize, bound: usize) -> Step {
        if self.frames.len() == MAX_LEVELS {
            self.lexed.endless = true;
            return Err(format!("nests deeper than {MAX_LEVELS} levels"));
        }
        if matches!(place, Place::Commands(_)) {
            self.rooms += 1;
        }
        let room = self.rooms;
        self.frames.push(Frame {
            place,
            start,
            bound,
            room,
            word: None,
            parens: 0,
            cases: 0,
            fresh: true,
            target: false,
            after_operator: false,
            delimiter: None,
            heredocs: VecDeque::new(),
            bodies: false,
        });
        Ok(())
    }

    fn top(&mut self) -> &mut Frame {
        self.frames.last_mut().expect("a step is taken in a frame")
    }

    /// Closes the frame; what it opened with to here is one substitution.
    fn close(&mut self, end: usize) {
        let frame = self.frames.pop().expect("a step is taken in a frame");
        self.lexed.substitutions.push((frame.start, end));
        self.at = end;
    }

    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    /// Nothing of it runs in a shell, so the parser need not look for what might.
    fn unclosed(&mut self, what: &str, start: usize) -> String {
        self.lexed.endless = true;
        let line = self.text[..start].matches('\n').count() + 1;
        format!("cannot be parsed: {what} at byte {start} (line {line}) is not closed")
    }

    fn emit(&mut self, start: usize, end: usize, kind: TokenKind) {
        let room = self.top().room;
        self.lexed.tokens.push(Token { start, end, kind, room });
    }

    /// One step where commands stand.
    fn command(&mut self, closer: Closer) -> Step {
        let bound = self.top().bound;
        if self.top().bodies {
            return self.next_body();
        }
        if self.at >= bound {
            return self.commands_end(closer);
        }
        let sign = self.bytes[self.at];
        match sign {
            b'\\' if self.peek(1) == b'\n' => self.at += 2,
            b' ' | b'\t' => {
                self.end_word()?;
                self.at += 1;
            }
            b'\n' => self.newline()?,
            b'#' if self.top().word.is_none() => {
                let rest = &self.text[self.at..bound];
                self.at += rest.find('\n').unwrap_or(rest.len());
            }
            b'<' | b'>' if self.peek(1) == b'(' => {
                self.begin_word();
                let start = self.at;
                self.at += 2;
                self.push(Place::Commands(Closer::Paren), start, bound)?;
            }
            b'(' => self.open_paren(bound)?,
            b')' => self.close_paren(closer)?,
            b';' | b'&' | b'|' | b'<' | b'>' => self.operator()?,
            _ => {
                self.begin_word();
                self.part(false)?;
            }
        }
        Ok(())
    }

    fn commands_end(&mut self, closer: Closer) -> Step {
        self.end_word()?;
        let (start, bound) = (self.top().start, self.top().bound);
        if !self.top().heredocs.is_empty() {
            return Err("cannot be parsed: a here-document has no lines".into());
        }
        match closer {
            Closer::End => drop(self.frames.pop()),
            Closer::Backquote => self.close(bound + 1),
            Closer::Paren => return Err(self.unclosed("a parenthesis", start)),
        }
        Ok(())
    }

    fn begin_word(&mut self) {
        let at = self.at;
        self.top().after_operator = false;
        self.top().word.get_or_insert(at);
    }

    fn newline(&mut self) -> Step {
        self.end_word()?;
        if self.top().delimiter.is_some() {
            return Err("cannot be parsed: `<<` names no end".into());
        }
        self.emit(self.at, self.at + 1, TokenKind::Newline);
        self.at += 1;
        let top = self.top();
        (top.fresh, top.after_operator) = (true, false);
        top.bodies = !top.heredocs.is_empty();
        Ok(())
    }

    /// The lines of the here-document that waited for this newline.
    fn next_body(&mut self) -> Step {
        let Some(heredoc) = self.top().heredocs.pop_front() else {
            self.top().bodies = false;
            return Ok(());
        };
        let (start, bound) = (self.at, self.top().bound);
        let (end, next) = heredoc.find_end(&self.text[..bound], start)?;
        if start < end {
            self.emit(start, end, TokenKind::Body { quoted: heredoc.quoted });
        }
        self.emit(end, next, TokenKind::BodyEnd);
        if heredoc.quoted {
            self.at = next;
            return Ok(());
        }
        self.push(Place::Body { next }, start, end)
    }

    fn end_word(&mut self) -> Step {
        let Some(start) = self.top().word.take() else { return Ok(()) };
        let mut end = self.at;
        while self.text[start..end].ends_with("\\\n") && !self.text[start..end].ends_with("\\\\\n") {
            end -= 2;
        }
        if start == end {
            return Ok(());
        }
        self.emit(start, end, TokenKind::Word);
        let word = &self.text[start..end];
        let top = self.frames.last_mut().expect("a step is taken in a frame");
        if let Some(strips) = top.delimiter.take() {
            let heredoc = Heredoc::ended_by(word, strips)?;
            top.heredocs.push_back(heredoc);
        } else if top.target {
            top.target = false;
        } else if word == "in" && top.cases > 0 {
            top.fresh = true;
        } else if top.fresh {
            top.fresh = opens_command(word);
            match word {
                "case" => top.cases += 1,
                "esac" => top.cases = top.cases.saturating_sub(1),
                _ => {}
            }
        }
        Ok(())
    }

    fn open_paren(&mut self, bound: usize) -> Step {
        let at = self.at;
        if let Some(word) = self.top().word
            && self.text[word..at].ends_with('=')
        {
            self.at += 1;
            return self.push(Place::Commands(Closer::Paren), at, bound);
        }
        self.end_word()?;
        if self.top().fresh && self.peek(1) == b'(' {
            self.emit(at, at + 2, TokenKind::Operator);
            self.at += 2;
            return self.push(Place::Arithmetic { expands: false }, at, bound);
        }
        self.emit(at, at + 1, TokenKind::Operator);
        let top = self.top();
        top.parens += 1;
        (top.fresh, top.after_operator) = (true, false);
        self.at += 1;
        Ok(())
    }

    fn close_paren(&mut self, closer: Closer) -> Step {
        self.end_word()?;
        let at = self.at;
        let top = self.top();
        if closer == Closer::Paren && top.parens == 0 && top.cases == 0 {
            if !top.heredocs.is_empty() {
                return Err("cannot be parsed: a here-document has no lines".into());
            }
            self.close(at + 1);
            return Ok(());
        }
        if closer == Closer::End && top.parens == 0 && top.cases == 0 {
            self.lexed.endless = true;
            return Err(format!("cannot be parsed: the `)` at byte {at} closes nothing"));
        }
        top.parens = top.parens.saturating_sub(1);
        (top.fresh, top.after_operator) = (true, false);
        self.emit(at, at + 1, TokenKind::Operator);
        self.at += 1;
        Ok(())
    }
}

/// Whether a command may begin after `word`, which stands where one may.
fn opens_command(word: &str) -> bool {
    let keyword =
        matches!(word, "if" | "then" | "elif" | "else" | "do" | "while" | "until" | "!" | "{" | "time" | "for");
    keyword || word.contains('=')
}
