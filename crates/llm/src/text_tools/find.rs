//! Finds calls in text that comes in pieces, and passes on everything else as it comes.

use super::form::{Attempt, Call, Form, OPENINGS, Step};
use crate::ToolSpec;
use std::sync::Arc;

/// Between these some servers pass thinking on as text, at the start of a message.
const THOUGHT: (&str, &str) = ("<think>", "</think>");

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Text(String),
    Call(Call),
}

/// Holds text back only where a call may have begun. Each character is looked at a fixed number of times.
pub(super) struct Finder {
    tools: Arc<[ToolSpec]>,
    /// The beginning of an opening, or all of what the attempt has read.
    held: String,
    attempt: Option<Attempt>,
    /// In a thought: how many bytes of its end were just read.
    thought: Option<usize>,
    /// Something other than blanks and thoughts was found in this message.
    has_begun: bool,
    /// The line so far is blank.
    is_line_blank: bool,
    found: Vec<Piece>,
}

enum Opening {
    Of(Form),
    Thought,
    Maybe,
    No,
}

impl Finder {
    pub(super) fn new(tools: Arc<[ToolSpec]>) -> Finder {
        Finder {
            tools,
            held: String::new(),
            attempt: None,
            thought: None,
            has_begun: false,
            is_line_blank: true,
            found: vec![],
        }
    }

    /// What `text` brings to light.
    pub(super) fn push(&mut self, text: &str) -> Vec<Piece> {
        self.read(text);
        std::mem::take(&mut self.found)
    }

    /// The text block ends here: what is whole is a call, what is cut off is text.
    pub(super) fn end(&mut self) -> Vec<Piece> {
        match self.attempt.take().and_then(Attempt::whole) {
            Some(calls) => self.call(calls),
            None => self.release(self.held.len()),
        }
        self.is_line_blank = true;
        self.thought = None;
        std::mem::take(&mut self.found)
    }

    fn read(&mut self, mut rest: &str) {
        while !rest.is_empty() {
            if let Some(read) = self.thought {
                rest = self.think(rest, read);
                continue;
            }
            if self.held.is_empty() {
                let plain = self.plain(rest);
                self.text(&rest[..plain]);
                rest = &rest[plain..];
            }
            let Some(c) = rest.chars().next() else { return };
            let behind = &rest[c.len_utf8()..];
            self.held.push(c);
            if self.attempt.is_some() {
                self.attempted(c);
                rest = behind;
            } else if self.opened(c) {
                rest = behind;
            }
        }
    }

    /// Passes a thought on, up to its end; gives what lies behind it.
    fn think<'t>(&mut self, text: &'t str, mut read: usize) -> &'t str {
        let end = THOUGHT.1.as_bytes();
        for (place, byte) in text.bytes().enumerate() {
            read = if byte == end[read] { read + 1 } else { usize::from(byte == end[0]) };
            if read == end.len() {
                self.text(&text[..=place]);
                (self.thought, self.has_begun) = (None, false);
                return &text[place + 1..];
            }
        }
        self.text(text);
        self.thought = Some(read);
        ""
    }

    /// How many bytes of `text` are surely no beginning of a call.
    fn plain(&self, text: &str) -> usize {
        if self.tools.is_empty() {
            return text.len();
        }
        let start = if self.has_begun { 0 } else { text.len() - text.trim_start().len() };
        if !self.has_begun && text[start..].starts_with('{') {
            return start;
        }
        memchr::memchr3(b'<', b'[', b'`', &text.as_bytes()[start..]).map_or(text.len(), |place| start + place)
    }

    /// Looks for an opening that ends in `c`; false if `c` must be looked at again.
    fn opened(&mut self, c: char) -> bool {
        match self.opening() {
            Opening::Of(form) => self.attempt = Some(Attempt::new(form, &self.held)),
            Opening::Thought => {
                self.release(self.held.len());
                self.thought = Some(0);
            }
            Opening::Maybe => {}
            Opening::No if self.held.len() == c.len_utf8() => self.release(c.len_utf8()),
            Opening::No => {
                self.held.pop();
                self.release(self.held.len());
                return false;
            }
        }
        true
    }

    fn opening(&self) -> Opening {
        if self.held == "{" && !self.has_begun {
            return Opening::Of(Form::Bare);
        }
        if self.held == THOUGHT.0 && !self.has_begun {
            return Opening::Thought;
        }
        let may_think = THOUGHT.0.starts_with(&self.held) && !self.has_begun;
        let mut openings = OPENINGS.iter().filter(|(_, form)| *form != Form::Fenced || self.is_line_blank);
        match openings.find(|(word, _)| word.starts_with(&self.held)) {
            Some((word, form)) if *word == self.held => Opening::Of(*form),
            Some(_) => Opening::Maybe,
            None if may_think => Opening::Maybe,
            None => Opening::No,
        }
    }

    /// Gives `c` to the attempt.
    fn attempted(&mut self, c: char) {
        let Some(attempt) = &mut self.attempt else { return };
        match attempt.push(&self.held, c, &self.tools) {
            Step::More => {}
            Step::Done => {
                let calls = self.attempt.take().map(Attempt::into_calls);
                self.call(calls.unwrap_or_default());
            }
            Step::Text(upto) => {
                self.attempt = None;
                let again = self.held.split_off(upto);
                self.release(upto);
                // No longer than the longest word, so that no attempt can fail within.
                self.read(&again);
            }
        }
    }

    fn call(&mut self, calls: Vec<Call>) {
        self.held.clear();
        self.has_begun = true;
        self.found.extend(calls.into_iter().map(Piece::Call));
    }

    /// Lets the first bytes of what is held go as text.
    fn release(&mut self, bytes: usize) {
        let behind = self.held.split_off(bytes);
        let text = std::mem::replace(&mut self.held, behind);
        self.text(&text);
    }

    fn text(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        let line = text.rfind('\n').map_or(text, |end| &text[end..]);
        self.is_line_blank = line.trim().is_empty() && (self.is_line_blank || line.starts_with('\n'));
        self.has_begun |= !text.trim().is_empty();
        match self.found.last_mut() {
            Some(Piece::Text(last)) => last.push_str(text),
            _ => self.found.push(Piece::Text(text.to_owned())),
        }
    }
}
