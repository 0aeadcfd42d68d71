//! Whether the parser and the lexer cut the text at the same places.

use super::lex::{Lexed, Token, TokenKind};
use super::syntax::{Kind, Syntax};

/// Where the parser and the lexer first part ways, in bytes.
pub(super) fn disagreement(text: &str, syntax: &Syntax, lexed: &Lexed) -> Option<usize> {
    let mut atoms = Atoms::default();
    atoms.collect(syntax, text);
    if let Some(line) = atoms.line_break(&lexed.tokens) {
        return Some(line);
    }
    atoms.spans.sort_unstable_by_key(|(start, end)| (*start, std::cmp::Reverse(*end)));
    let skipped = skipped(&lexed.tokens, &atoms.tests);
    let tokens = lexed.tokens.iter().zip(skipped).filter(|(token, skipped)| !skipped && matters(token));
    let mut spans: Vec<(usize, usize)> = tokens.map(|(token, _)| span(token)).collect();
    spans.sort_unstable_by_key(|(start, end)| (*start, std::cmp::Reverse(*end)));
    if spans == atoms.spans {
        return None;
    }
    let differs = spans.iter().zip(&atoms.spans).find(|(ours, theirs)| ours != theirs);
    let longer = spans.get(atoms.spans.len()).or(atoms.spans.get(spans.len()));
    differs.map(|(ours, theirs)| ours.0.min(theirs.0)).or(longer.map(|span| span.0))
}

fn matters(token: &Token) -> bool {
    !matches!(token.kind, TokenKind::Newline | TokenKind::Body { .. })
}

/// Of the line that ends a here-document only its end counts: what indents it belongs to either.
fn span(token: &Token) -> (usize, usize) {
    let start = if token.kind == TokenKind::BodyEnd { token.end } else { token.start };
    (start, token.end)
}

/// Tokens directly in `[[ … ]]`, where other signs part words.
fn skipped(tokens: &[Token], tests: &[(usize, usize)]) -> Vec<bool> {
    let mut skipped = vec![false; tokens.len()];
    for (start, end) in tests {
        let first = tokens.partition_point(|token| token.start < *start);
        let Some(room) = tokens.get(first).map(|token| token.room) else { continue };
        let within = tokens.iter().enumerate().skip(first).take_while(|(_, token)| token.start < *end);
        for (at, token) in within {
            skipped[at] |= token.room == room && token.start >= start + 2 && token.end + 2 <= *end;
        }
    }
    skipped
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Commands,
    /// Within a word: only what substitutions hold counts.
    Word,
}

/// The words and operators of the tree.
#[derive(Default)]
struct Atoms {
    spans: Vec<(usize, usize)>,
    tests: Vec<(usize, usize)>,
    /// Where commands end by the end of a line.
    line_ends: Vec<usize>,
    /// Where a line ends within a command.
    broken: Option<usize>,
}

impl Atoms {
    /// Where only one of the two sees the end of a command in the end of a line.
    fn line_break(&self, tokens: &[Token]) -> Option<usize> {
        let ends = |at: &usize| {
            let from = tokens.partition_point(|token| token.start < *at);
            tokens[from..].iter().take_while(|token| token.start == *at).any(|token| token.kind == TokenKind::Newline)
        };
        self.broken.or_else(|| self.line_ends.iter().copied().find(|at| !ends(at)))
    }

    fn collect(&mut self, syntax: &Syntax, text: &str) {
        let mut todo = vec![(0, Mode::Commands)];
        while let Some((at, mode)) = todo.pop() {
            match mode {
                Mode::Commands => {
                    self.see_lines(syntax, at, text);
                    self.visit(syntax, at, &mut todo);
                }
                Mode::Word => visit_in_word(syntax, at, &mut todo),
            }
        }
    }

    fn see_lines(&mut self, syntax: &Syntax, at: u32, text: &str) {
        let node = syntax.node(at);
        if node.kind == Kind::Newline && node.start < node.end {
            self.line_ends.push(node.end - 1);
        }
        if !node.named || !keeps_to_a_line(node.kind) {
            return;
        }
        let mut end = node.start;
        for child in syntax.children(at).map(|child| syntax.node(child)) {
            let gap = text.get(end..child.start).unwrap_or_default();
            let breaks = || gap.match_indices('\n').any(|(at, _)| !gap[..at].ends_with('\\'));
            if gap.contains('\n') && breaks() {
                self.broken = self.broken.or(Some(end));
            }
            end = child.end;
        }
    }

    fn visit(&mut self, syntax: &Syntax, at: u32, todo: &mut Vec<(u32, Mode)>) {
        let node = syntax.node(at);
        match node.kind {
            Kind::Comment | Kind::Newline => {}
            Kind::HeredocBody => todo.extend(syntax.children(at).map(|child| (child, Mode::Word))),
            Kind::HeredocEnd => self.spans.push((node.end, node.end)),
            kind if node.named && holds_commands(kind) => self.visit_children(syntax, at, todo),
            _ => {
                if node.start < node.end {
                    self.spans.push((node.start, node.end));
                }
                visit_in_word(syntax, at, todo);
            }
        }
    }

    fn visit_children(&mut self, syntax: &Syntax, at: u32, todo: &mut Vec<(u32, Mode)>) {
        let node = syntax.node(at);
        let mut mode = Mode::Commands;
        for child in syntax.children(at) {
            let own = syntax.node(child);
            match own.kind {
                Kind::OpenArithmetic | Kind::CloseArithmetic => {
                    self.spans.push((own.start, own.end));
                    mode = if own.kind == Kind::OpenArithmetic { Mode::Word } else { Mode::Commands };
                }
                Kind::DoubleBracket => {
                    self.tests.push((node.start, node.end));
                    self.spans.extend([(own.start, own.end), (node.end - 2, node.end)]);
                    mode = Mode::Word;
                }
                _ => todo.push((child, mode)),
            }
        }
    }
}

fn visit_in_word(syntax: &Syntax, at: u32, todo: &mut Vec<(u32, Mode)>) {
    let opens = matches!(syntax.node(at).kind, Kind::Substitution | Kind::Process | Kind::Array);
    if !opens {
        todo.extend(syntax.children(at).map(|child| (child, Mode::Word)));
        return;
    }
    // Its first and last sign are part of the word.
    let inner: Vec<u32> = syntax.children(at).skip(1).collect();
    let inner = inner.split_last().map(|(_, inner)| inner).unwrap_or_default();
    todo.extend(inner.iter().map(|child| (*child, Mode::Commands)));
}

/// Nodes whose parts no end of a line may part.
fn keeps_to_a_line(kind: Kind) -> bool {
    use Kind::*;
    matches!(kind, Command | Declaration | Unset | Assignments | Redirected | FileRedirect | Herestring | Negated)
}

/// Nodes that are made of words and operators.
fn holds_commands(kind: Kind) -> bool {
    use Kind::*;
    matches!(
        kind,
        Program
            | Command
            | CommandName
            | Redirected
            | Pipeline
            | List
            | Subshell
            | Compound
            | If
            | Elif
            | Else
            | While
            | DoGroup
            | For
            | CFor
            | Case
            | CaseItem
            | Function
            | Declaration
            | Unset
            | Test
            | Negated
            | Assignments
            | FileRedirect
            | HeredocRedirect
            | Herestring
            | Unary
            | Binary
            | Ternary
            | Postfix
            | Parenthesized
            | Error
    )
}
