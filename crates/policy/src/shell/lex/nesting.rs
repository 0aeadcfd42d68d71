//! Quotes, substitutions and arithmetic, one step at a time.

use super::{Closer, Lexer, Place, Step, TokenKind};

impl Lexer<'_> {
    /// A sign, a quoted stretch or a substitution; `quoted` inside double quotes and what is read like them.
    pub(super) fn part(&mut self, quoted: bool) -> Step {
        let bound = self.top().bound;
        match self.bytes[self.at] {
            b'\\' => {
                let sign = self.text[self.at + 1..bound].chars().next();
                self.at += 1 + sign.ok_or("cannot be parsed: it ends with a backslash")?.len_utf8();
            }
            b'\'' if !quoted => self.skip_to_quote(self.at + 1, false)?,
            b'"' => {
                let start = self.at;
                self.at += 1;
                self.push(Place::Quotes, start, bound)?;
            }
            b'$' => self.dollar(quoted)?,
            b'`' => self.backquote()?,
            _ => self.at += 1,
        }
        Ok(())
    }

    fn skip_to_quote(&mut self, from: usize, escapes: bool) -> Step {
        let bound = self.top().bound;
        let mut at = from;
        while at < bound {
            match self.bytes[at] {
                b'\'' => {
                    self.at = at + 1;
                    return Ok(());
                }
                b'\\' if escapes => at += 2,
                _ => at += 1,
            }
        }
        Err(self.unclosed("a quote", from - 1))
    }

    fn dollar(&mut self, quoted: bool) -> Step {
        let (start, bound) = (self.at, self.top().bound);
        match self.peek(1) {
            b'(' if self.peek(2) == b'(' => {
                self.at += 3;
                self.push(Place::Arithmetic { expands: true }, start, bound)
            }
            b'(' => {
                self.at += 2;
                self.push(Place::Commands(Closer::Paren), start, bound)
            }
            b'{' => {
                self.at += 2;
                self.push(Place::Parameter { quoted }, start, bound)
            }
            b'\'' if !quoted => self.skip_to_quote(self.at + 2, true),
            b'[' => Err("has `$[`, an old form of arithmetic".into()),
            b'\\' if self.peek(2) == b'\n' => Err("breaks a line after `$`".into()),
            _ => {
                self.at += 1;
                Ok(())
            }
        }
    }

    fn backquote(&mut self) -> Step {
        let (start, bound) = (self.at, self.top().bound);
        let mut at = start + 1;
        while at < bound && self.bytes[at] != b'`' {
            if self.bytes[at] == b'\\' {
                if at + 1 < bound && matches!(self.bytes[at + 1], b'`' | b'\\' | b'$' | b'"') {
                    return Err("has a backslash in backquotes; write `$(…)`".into());
                }
                at += 1;
            }
            at += 1;
        }
        if at >= bound {
            return Err(self.unclosed("a backquote", start));
        }
        self.at = start + 1;
        self.push(Place::Commands(Closer::Backquote), start, at)
    }

    pub(super) fn quotes(&mut self) -> Step {
        let (start, bound) = (self.top().start, self.top().bound);
        if self.at >= bound {
            return Err(self.unclosed("a double quote", start));
        }
        if self.bytes[self.at] == b'"' {
            self.frames.pop();
            self.at += 1;
            return Ok(());
        }
        self.part(true)
    }

    pub(super) fn parameter(&mut self, quoted: bool) -> Step {
        let (start, bound) = (self.top().start, self.top().bound);
        if self.at >= bound {
            return Err(self.unclosed("`${`", start));
        }
        match self.bytes[self.at] {
            b'}' => self.close(self.at + 1),
            b'\'' if quoted => return Err("has a single quote in a quoted `${…}`, which is read in two ways".into()),
            b'<' | b'>' if !quoted && self.peek(1) == b'(' => {
                let start = self.at;
                self.at += 2;
                self.push(Place::Commands(Closer::Paren), start, bound)?;
            }
            _ => self.part(quoted)?,
        }
        Ok(())
    }

    pub(super) fn arithmetic(&mut self, expands: bool) -> Step {
        let (start, bound) = (self.top().start, self.top().bound);
        if self.at >= bound {
            return Err(self.unclosed("`((`", start));
        }
        let sign = self.bytes[self.at];
        match sign {
            b'(' => {
                self.top().parens += 1;
                self.at += 1;
            }
            b')' if self.top().parens > 0 => {
                self.top().parens -= 1;
                self.at += 1;
            }
            b')' if self.peek(1) != b')' => return Err("has a `((` that can be read in two ways".into()),
            b')' if expands => self.close(self.at + 2),
            b')' => {
                self.frames.pop();
                self.emit(self.at, self.at + 2, TokenKind::Operator);
                self.top().fresh = true;
                self.at += 2;
            }
            b'\'' => return Err("has a single quote in arithmetic".into()),
            _ => self.part(true)?,
        }
        Ok(())
    }

    pub(super) fn body(&mut self, next: usize) -> Step {
        let bound = self.top().bound;
        if self.at >= bound {
            self.frames.pop();
            self.at = next;
            return Ok(());
        }
        match self.bytes[self.at] {
            b'"' | b'\'' => {
                self.at += 1;
                Ok(())
            }
            _ => self.part(true),
        }
    }
}
