//! The commands of a text that cannot be parsed for sure: found by cutting it at operators, for rules that deny.

use super::lex::{Lexed, Token, TokenKind};
use super::walk::{is_keyword, is_name};
use super::word::{Reader, Spot};
use super::{Redirect, RedirectKind, Simple, Word, WordKind};
use std::collections::BTreeMap;

/// What each list of commands is made of, cut at control operators.
pub(super) fn commands(text: &str, lexed: &Lexed, limit: usize) -> Vec<Simple> {
    let reader = Reader { text, substitutions: &lexed.substitutions, splits_oddly: true };
    let mut open: BTreeMap<u32, Line> = BTreeMap::new();
    let mut found: Vec<Simple> = Vec::new();
    for token in &lexed.tokens {
        if found.len() >= limit {
            break;
        }
        let line = open.entry(token.room).or_default();
        match token.kind {
            TokenKind::Word => line.word(text, &reader, *token),
            TokenKind::Operator if text[token.start..token.end].contains(['<', '>']) => {
                line.operator = Some(*token);
            }
            TokenKind::Operator | TokenKind::Newline => found.extend(line.finish(token.room)),
            TokenKind::Body { .. } | TokenKind::BodyEnd => {}
        }
    }
    found.extend(open.into_iter().filter_map(|(room, mut line)| line.finish(room)));
    found.sort_by_key(|command| command.span.start);
    found
}

#[derive(Default)]
struct Line {
    command: Simple,
    operator: Option<Token>,
}

impl Line {
    fn word(&mut self, text: &str, reader: &Reader, token: Token) {
        let source = &text[token.start..token.end];
        let words = reader.read(token.start, token.end, Spot::Argument, &[]);
        let words = words.unwrap_or_else(|| vec![Word { kind: WordKind::Unknown, ..Word::known(source) }]);
        if self.command.span == (0..0) {
            self.command.span.start = token.start;
        }
        self.command.span.end = token.end;
        if let Some(operator) = self.operator.take() {
            let sign = &text[operator.start..operator.end];
            let kind = if sign.contains('>') { RedirectKind::Write } else { RedirectKind::Read };
            let copies = source.bytes().all(|sign| sign.is_ascii_digit() || sign == b'-');
            if !sign.starts_with("<<") && !copies {
                self.command.redirects.extend(words.into_iter().map(|target| Redirect { kind, target }));
            }
            return;
        }
        let leads = self.command.words.is_empty();
        if leads && (is_keyword(source) || matches!(source, "time" | "coproc" | "in")) {
            return;
        }
        match source.split_once('=') {
            Some((name, _)) if leads && is_name(name) => {
                let value = Word { kind: WordKind::Unknown, ..Word::known(&source[name.len() + 1..]) };
                self.command.assignments.push((name.into(), value));
            }
            _ => self.command.words.extend(words),
        }
    }

    fn finish(&mut self, room: u32) -> Option<Simple> {
        let line = std::mem::take(self);
        let command = Simple { depth: room.saturating_sub(1), scope: vec![room], ..line.command };
        let empty = command.words.is_empty() && command.redirects.is_empty() && command.assignments.is_empty();
        (!empty).then_some(command)
    }
}
