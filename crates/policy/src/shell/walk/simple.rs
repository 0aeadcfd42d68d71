//! One simple command: its words and assignments.

use super::{Scene, Walk, is_redirect};
use crate::shell::lex::TokenKind;
use crate::shell::syntax::Kind;
use crate::shell::word::Spot;
use crate::shell::{Input, Simple, Word, WordKind};
use std::rc::Rc;

impl Walk<'_> {
    pub(super) fn simple(&mut self, node: u32, scene: &Rc<Scene>) {
        let mut command = self.command_at(node, scene);
        let mut sources: Vec<u32> = Vec::new();
        let kind = self.syntax.node(node).kind;
        match kind {
            Kind::Assignment if self.is_assignment(node) => self.assign(node, &mut command, scene),
            Kind::Assignment => sources.push(node),
            Kind::Test => self.test_words(node, &mut command, scene),
            Kind::Redirected => {}
            _ => sources = self.parts(node, &mut command, scene),
        }
        sources.extend(self.take_redirects(node, &mut command, scene));
        sources.sort_unstable();
        let declares = matches!(kind, Kind::Declaration | Kind::Unset);
        for source in sources {
            let at = self.syntax.node(source);
            let spot = if declares && at.kind == Kind::Assignment { Spot::Value } else { Spot::Argument };
            let words = self.read(at.start, at.end, spot, scene);
            if declares {
                words.iter().for_each(|word| self.see_arithmetic(word));
            }
            command.words.extend(words);
        }
        if kind == Kind::Command {
            self.see_keywords(&mut command);
        }
        self.script.commands.push(command);
        self.push_substitutions(node, scene);
    }

    /// Takes assignments and redirections of `node` into `command`; gives the nodes of its words.
    fn parts(&mut self, node: u32, command: &mut Simple, scene: &Rc<Scene>) -> Vec<u32> {
        let mut sources = Vec::new();
        let prefixed = matches!(self.syntax.node(node).kind, Kind::Command | Kind::Assignments);
        let children: Vec<u32> = self.syntax.children(node).collect();
        for child in children {
            let kind = self.syntax.node(child).kind;
            match kind {
                Kind::Comment => {}
                Kind::Assignment if prefixed && sources.is_empty() && self.is_assignment(child) => {
                    self.assign(child, command, scene)
                }
                Kind::Subshell => {}
                kind if is_redirect(kind) => sources.extend(self.redirect(child, command, scene)),
                _ => sources.push(child),
            }
        }
        sources
    }

    /// The parser takes more signs for a name than a shell does.
    fn is_assignment(&self, node: u32) -> bool {
        let name = self.source(node).split(['=', '+', '[']).next().unwrap_or_default();
        is_name(name)
    }

    fn assign(&mut self, node: u32, command: &mut Simple, scene: &Scene) {
        let at = self.syntax.node(node);
        let source = &self.text[at.start..at.end];
        let (left, _) = source.split_once('=').unwrap_or((source, ""));
        let name = left.trim_end_matches('+').split('[').next().unwrap_or_default();
        let start = (at.start + left.len() + 1).min(at.end);
        let mut value = self.read_one(start, at.end, Spot::Value, scene);
        // It is added to what the name holds, or is one part of it.
        if left != name {
            value.kind = WordKind::Unknown;
        }
        self.see_arithmetic(&value);
        command.assignments.push((name.into(), value));
    }

    /// Arithmetic runs what it finds in the values of variables.
    pub(super) fn see_arithmetic(&mut self, value: &Word) {
        let text = &value.text;
        if value.kind == WordKind::Known && text.contains('[') && (text.contains("$(") || text.contains('`')) {
            self.doubt(format!("sets a variable to `{text}`, which arithmetic would run"));
        }
    }

    /// The words of `[ … ]` and `[[ … ]]` as the lexer cut them.
    fn test_words(&mut self, node: u32, command: &mut Simple, scene: &Scene) {
        let at = self.syntax.node(node);
        let first = self.lexed.tokens.partition_point(|token| token.start < at.start);
        let Some(room) = self.lexed.tokens.get(first).map(|token| token.room) else { return };
        let within = self.lexed.tokens.iter().skip(first).take_while(|token| token.start < at.end);
        let tokens: Vec<_> = within.filter(|token| token.room == room && token.kind != TokenKind::Newline).collect();
        let spot = if self.text[at.start..].starts_with("[[") { Spot::Single } else { Spot::Argument };
        for token in tokens {
            match token.kind {
                TokenKind::Word if &self.text[token.start..token.end] != "=~" => {
                    let words = self.read(token.start, token.end, spot, scene);
                    command.words.extend(words);
                }
                _ => command.words.push(Word::known(&self.text[token.start..token.end])),
            }
        }
    }

    pub(super) fn arithmetic(&mut self, node: u32, scene: &Scene) {
        let mut command = self.command_at(node, scene);
        let inner = self.source(node).trim_start_matches("((").trim_end_matches("))").trim();
        let constant = !inner.contains(|sign: char| sign.is_alphabetic() || "$`_'\"".contains(sign));
        let kind = if constant { WordKind::Known } else { WordKind::Unknown };
        let inner = Word { kind, ..Word::known(inner) };
        command.words = vec![Word::known("(("), inner, Word::known("))")];
        self.script.commands.push(command);
    }

    /// `time` and `coproc` are keywords to a shell but words to the parser.
    fn see_keywords(&mut self, command: &mut Simple) {
        // After a pipe or an assignment `time` is a program.
        let starts = |word: &&str| self.text[command.span.start..].starts_with(*word);
        let leads = command.input != Input::Pipe && ["time", "coproc"].iter().any(starts);
        let first = |command: &Simple| command.words.first().filter(|word| !word.quoted).map(|word| word.text.clone());
        while let Some(name) = first(command).filter(|name| leads && matches!(&name[..], "time" | "coproc")) {
            command.words.remove(0);
            if name == "coproc" {
                self.doubt("starts a coprocess".into());
                break;
            }
            while first(command).is_some_and(|word| word == "-p" || word == "--") {
                command.words.remove(0);
            }
            if take_assignments(command) && self.text[command.span.clone()].contains(['{', '"', '\'', '\\']) {
                self.doubt("cannot be parsed: `time` stands before what may be an assignment".into());
            }
        }
        if let Some(name) = first(command).filter(|name| is_keyword(name)) {
            self.doubt(format!("cannot be parsed: `{name}` stands where a command begins"));
        }
    }
}

pub(in crate::shell) fn is_name(text: &str) -> bool {
    let leads = text.starts_with(|sign: char| sign.is_ascii_alphabetic() || sign == '_');
    leads && text.bytes().all(|sign| sign.is_ascii_alphanumeric() || sign == b'_')
}

/// Moves `NAME=value` before the program, which the parser took for words, to where they belong; whether there were any.
fn take_assignments(command: &mut Simple) -> bool {
    let mut found = false;
    while let Some(word) = command.words.first() {
        let Some((name, value)) = word.text.split_once('=').filter(|(name, _)| is_name(name)) else { break };
        let value = Word { text: value.into(), ..word.clone() };
        command.assignments.push((name.into(), value));
        command.words.remove(0);
        found = true;
    }
    found
}

pub(in crate::shell) fn is_keyword(word: &str) -> bool {
    const KEYWORDS: [&str; 20] = [
        "if", "then", "elif", "else", "fi", "do", "done", "case", "esac", "while", "until", "for", "select",
        "function", "{", "}", "!", "[[", "]]", "in",
    ];
    KEYWORDS.contains(&word)
}
