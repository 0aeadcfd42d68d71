//! Operators: which it is, and whether one may stand there.

use super::{Lexer, Step, TokenKind};

/// Here-documents and here-strings of one line.
const MAX_HEREDOCS: usize = 256;
/// Operators of one line; the parser takes too long over more.
const MAX_OPERATORS: usize = 2048;

/// The longer before what they begin with.
const OPERATORS: [&str; 22] = [
    "&>>", "<<<", "<<-", ";;&", "<&-", ">&-", "&&", "&>", "||", "|&", ";;", ";&", "<<", "<&", "<>", ">>", ">|", ">&",
    "&", "|", ";", "<",
];

impl Lexer<'_> {
    pub(super) fn operator(&mut self) -> Step {
        let rest = &self.text[self.at..self.top().bound];
        let sign = OPERATORS.into_iter().find(|operator| rest.starts_with(operator)).unwrap_or(">");
        self.descriptor(sign)?;
        self.end_word()?;
        self.may_follow(sign)?;
        self.emit(self.at, self.at + sign.len(), TokenKind::Operator);
        self.at += sign.len();
        let top = self.top();
        match sign {
            "<<" | "<<-" => top.delimiter = Some(sign == "<<-"),
            _ if sign.contains(['<', '>']) => top.target = !sign.ends_with('-'),
            _ => (top.fresh, top.target) = (true, false),
        }
        top.after_operator = !sign.ends_with('-') || sign == "<<-";
        Ok(())
    }

    /// The digits right before a redirection are a word of their own.
    fn descriptor(&mut self, sign: &str) -> Step {
        let redirects = sign.contains(['<', '>']) && !sign.starts_with('&');
        let Some(word) = self.top().word.filter(|_| redirects) else { return Ok(()) };
        let name = &self.text[word..self.at];
        if name.starts_with('{') && name.ends_with('}') || name.contains("\\\n") {
            return Err(format!("has `{name}{sign}`, a named descriptor"));
        }
        if name.bytes().all(|sign| sign.is_ascii_digit()) {
            self.top().word = None;
            self.emit(word, self.at, TokenKind::Word);
        }
        Ok(())
    }

    /// Whether the operator at hand may stand behind what was before it, and within limits.
    fn may_follow(&mut self, sign: &str) -> Step {
        let behind = self.text[self.at + sign.len()..].trim_start_matches("\\\n");
        let broken = self.text[self.at + sign.len()..].starts_with("\\\n");
        if broken && behind.starts_with(['&', '|', ';', '<', '>', '-', '(', ')']) {
            return Err(format!("breaks a line within `{sign}`"));
        }
        let redirects = sign.contains(['<', '>']) && !self.top().target;
        let ends_case = matches!(sign, ";;" | ";&" | ";;&");
        if self.top().after_operator && !redirects && !ends_case {
            self.lexed.endless = true;
            return Err(format!("cannot be parsed: `{sign}` at byte {} follows an operator", self.at));
        }
        self.heredocs += usize::from(sign.starts_with("<<"));
        self.operators += 1;
        if self.heredocs > MAX_HEREDOCS || self.operators > MAX_OPERATORS {
            self.lexed.endless = true;
            let limits = format!("{MAX_HEREDOCS} here-documents or {MAX_OPERATORS} operators");
            return Err(format!("has more than {limits}; write a script file"));
        }
        Ok(())
    }
}
