//! Redirections of the tree, given to the command they belong to.

use super::lex::TokenKind;
use super::syntax::Kind;
use super::walk::{Scene, Walk, is_redirect, is_statement};
use super::word::Spot;
use super::{Input, Redirect, RedirectKind, Simple, Word, WordKind};

impl<'s> Walk<'s> {
    /// Takes one redirection; gives the nodes after its target, which are words of the command.
    pub(super) fn redirect(&mut self, node: u32, command: &mut Simple, scene: &Scene) -> Vec<u32> {
        let children: Vec<u32> = self.syntax.children(node).collect();
        let descriptor = children.iter().find(|child| self.syntax.node(**child).kind == Kind::Descriptor);
        let descriptor = descriptor.map(|child| self.source(*child)).unwrap_or_default();
        let operator = children.iter().find(|child| !self.syntax.node(**child).named);
        let operator = operator.map(|child| self.source(*child)).unwrap_or_default();
        let named = children.iter().copied().filter(|child| self.syntax.node(*child).named);
        let mut named = named.filter(|child| self.syntax.node(*child).kind != Kind::Descriptor);
        let feeds = matches!(descriptor, "" | "0");
        match self.syntax.node(node).kind {
            Kind::HeredocRedirect => return self.heredoc(node, feeds, command, scene),
            Kind::Herestring => {
                let Some(word) = named.next() else { return vec![] };
                let at = self.syntax.node(word);
                let word = self.read_one(at.start, at.end, Spot::Value, scene);
                if feeds {
                    command.input = Input::Text(word.value().map(|text| format!("{text}\n")));
                }
                return named.collect();
            }
            _ if operator.ends_with('-') => return named.collect(),
            _ => {}
        }
        let Some(target) = named.next() else { return vec![] };
        let at = self.syntax.node(target);
        let target = self.read_one(at.start, at.end, Spot::Single, scene);
        if let Some(kind) = redirect_kind(operator, &target) {
            if kind == RedirectKind::Read && feeds {
                command.input = Input::File;
            }
            command.redirects.push(Redirect { kind, target });
        } else if operator == "<&" && feeds {
            command.input = Input::File;
        }
        named.collect()
    }

    fn heredoc(&mut self, node: u32, feeds: bool, command: &mut Simple, scene: &Scene) -> Vec<u32> {
        let mut sources = Vec::new();
        let children: Vec<u32> = self.syntax.children(node).filter(|child| self.syntax.node(*child).named).collect();
        let mut start_of_end = self.syntax.node(node).end;
        for child in children {
            match self.syntax.node(child).kind {
                Kind::HeredocEnd => start_of_end = self.syntax.node(child).end,
                kind if is_redirect(kind) => sources.extend(self.redirect(child, command, scene)),
                kind if is_heredoc_part(kind) || is_statement(kind) => {}
                _ => sources.push(child),
            }
        }
        if feeds {
            command.input = Input::Text(self.body_text(start_of_end, self.source(node).starts_with("<<-")));
        }
        sources
    }

    /// The lines of the here-document whose last line ends at `end`, if nothing in them is computed.
    fn body_text(&self, end: usize, strips: bool) -> Option<String> {
        let tokens = &self.lexed.tokens;
        let mut before = tokens[..tokens.partition_point(|token| token.start < end)].iter().rev();
        let last = before.find(|token| token.kind == TokenKind::BodyEnd && token.end == end)?;
        let body =
            tokens.iter().rev().skip_while(|token| token.start >= last.start).find(|token| token.end == last.start);
        let Some(body) = body.filter(|token| matches!(token.kind, TokenKind::Body { .. })) else {
            return Some(String::new());
        };
        let text = &self.text[body.start..body.end];
        if body.kind == (TokenKind::Body { quoted: false }) && text.contains(['$', '`', '\\']) {
            return None;
        }
        let strip = |line: &'s str| if strips { line.trim_start_matches('\t') } else { line };
        Some(self.text[body.start..body.end].split_inclusive('\n').map(strip).collect())
    }
}

fn redirect_kind(operator: &str, target: &Word) -> Option<RedirectKind> {
    let digits = target.text.strip_suffix('-').unwrap_or(&target.text);
    let copies = target.kind == WordKind::Known && digits.bytes().all(|sign| sign.is_ascii_digit());
    match operator {
        "<&" | ">&" if copies => None,
        "<" | "<&" => Some(RedirectKind::Read),
        _ => Some(RedirectKind::Write),
    }
}

fn is_heredoc_part(kind: Kind) -> bool {
    matches!(kind, Kind::Descriptor | Kind::HeredocStart | Kind::HeredocBody | Kind::Comment)
}
