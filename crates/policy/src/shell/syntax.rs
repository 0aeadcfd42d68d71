//! The parser's tree as a flat list of nodes, filled by a cursor.

use std::cell::{Cell, RefCell};
use std::ops::ControlFlow;
use std::sync::LazyLock;
use tree_sitter::{Language, ParseOptions, ParseState, Parser, Tree};

/// Nodes of a tree that are looked at.
const MAX_NODES: usize = 64 * 1024;
/// Times the parser reports progress (about every hundred of its operations) before it is stopped.
const MAX_PROGRESS: u32 = 8_000;
/// The same once it has met what fits no grammar: mending that takes ever longer the more text there is.
const MAX_PROGRESS_MENDING: u32 = 20;
/// Bytes the parser is given at once.
const CHUNK_BYTES: usize = 256;
/// Times it may read each of them again, when it looks ahead.
const MAX_READS: usize = 32;

macro_rules! kinds {
    ($($name:ident $text:literal),* $(,)?) => {
        /// The kinds of nodes that mean something here.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Kind { $($name,)* Other }

        fn kind_named(name: &str) -> Kind {
            match name { $($text => Kind::$name,)* _ => Kind::Other }
        }
    };
}

kinds! {
    Program "program", Command "command", CommandName "command_name", Redirected "redirected_statement",
    Pipeline "pipeline", List "list", Subshell "subshell", Compound "compound_statement", If "if_statement",
    Elif "elif_clause", Else "else_clause", While "while_statement", DoGroup "do_group", For "for_statement",
    CFor "c_style_for_statement", Case "case_statement", CaseItem "case_item", Function "function_definition",
    Declaration "declaration_command", Unset "unset_command", Test "test_command", Negated "negated_command",
    Assignment "variable_assignment", Assignments "variable_assignments", FileRedirect "file_redirect",
    HeredocRedirect "heredoc_redirect", Herestring "herestring_redirect", HeredocStart "heredoc_start",
    HeredocBody "heredoc_body", HeredocEnd "heredoc_end", HeredocContent "heredoc_content",
    Descriptor "file_descriptor", Comment "comment",
    Substitution "command_substitution", Process "process_substitution", Array "array", Word "word", Text "string",
    RawString "raw_string", AnsiString "ansi_c_string", Translated "translated_string",
    Concatenation "concatenation", Expansion "expansion", SimpleExpansion "simple_expansion",
    ArithmeticExpansion "arithmetic_expansion", Brace "brace_expression", Number "number",
    ExtGlob "extglob_pattern", Regex "regex", VariableName "variable_name", SpecialName "special_variable_name",
    Subscript "subscript", TestOperator "test_operator", Unary "unary_expression", Binary "binary_expression",
    Ternary "ternary_expression", Postfix "postfix_expression", Parenthesized "parenthesized_expression",
    Error "ERROR",
    OpenArithmetic "((", CloseArithmetic "))", Amp "&", PipeSign "|", PipeBoth "|&", Newline "\n",
    DoubleBracket "[[", CaseEnd ";;",
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    pub kind: Kind,
    pub start: usize,
    pub end: usize,
    pub named: bool,
    /// 0 is none: the root is nobody's child.
    first: u32,
    next: u32,
}

#[derive(Debug, Default)]
pub(super) struct Syntax {
    nodes: Vec<Node>,
    /// Where the parser found something that fits no grammar.
    pub errors: Vec<(usize, usize)>,
}

static LANGUAGE: LazyLock<Language> = LazyLock::new(|| tree_sitter_bash::LANGUAGE.into());
static KINDS: LazyLock<Vec<Kind>> = LazyLock::new(|| {
    let count = u16::try_from(LANGUAGE.node_kind_count()).unwrap_or(u16::MAX);
    (0..count).map(|id| kind_named(LANGUAGE.node_kind_for_id(id).unwrap_or_default())).collect()
});

thread_local! {
    static PARSER: RefCell<Option<Parser>> = const { RefCell::new(None) };
}

impl Syntax {
    /// Parses `text`; the reason if that cannot be done within limits.
    pub(super) fn of(text: &str) -> Result<Syntax, String> {
        let tree = PARSER.with_borrow_mut(|slot| parse(slot, text))?;
        let mut syntax = Syntax::default();
        syntax.fill(&tree)?;
        Ok(syntax)
    }

    fn fill(&mut self, tree: &Tree) -> Result<(), String> {
        let mut cursor = tree.walk();
        // The way down to the cursor: a node and its child that was seen last.
        let mut way: Vec<(u32, u32)> = Vec::new();
        loop {
            let node = cursor.node();
            let at = u32::try_from(self.nodes.len()).unwrap_or(u32::MAX);
            if self.nodes.len() == MAX_NODES {
                return Err(format!("has more than {MAX_NODES} parts; write a script file"));
            }
            let kind = if node.is_error() { Kind::Error } else { KINDS[usize::from(node.kind_id())] };
            let (start, end, named) = (node.start_byte(), node.end_byte(), node.is_named());
            if kind == Kind::Error || node.is_missing() {
                self.errors.push((start, end));
            }
            self.nodes.push(Node { kind, start, end, named, first: 0, next: 0 });
            if let Some((parent, last)) = way.last_mut() {
                match *last {
                    0 => self.nodes[*parent as usize].first = at,
                    last => self.nodes[last as usize].next = at,
                }
                *last = at;
            }
            if cursor.goto_first_child() {
                way.push((at, 0));
                continue;
            }
            while !cursor.goto_next_sibling() {
                if !cursor.goto_parent() {
                    return Ok(());
                }
                way.pop();
            }
        }
    }

    pub(super) fn node(&self, at: u32) -> Node {
        self.nodes[at as usize]
    }

    pub(super) fn children(&self, at: u32) -> impl Iterator<Item = u32> {
        let mut next = self.nodes[at as usize].first;
        std::iter::from_fn(move || {
            let at = next;
            next = if at == 0 { 0 } else { self.nodes[at as usize].next };
            (at != 0).then_some(at)
        })
    }

    pub(super) fn next(&self, at: u32) -> Option<u32> {
        Some(self.nodes[at as usize].next).filter(|next| *next != 0)
    }
}

fn parse(slot: &mut Option<Parser>, text: &str) -> Result<Tree, String> {
    let parser = match slot {
        Some(parser) => parser,
        None => {
            let mut parser = Parser::new();
            parser.set_language(&LANGUAGE).map_err(|error| format!("cannot be parsed: {error}"))?;
            slot.insert(parser)
        }
    };
    let mut progress = 0;
    let reads = Cell::new(0);
    let max_reads = MAX_READS * (2 + text.len() / CHUNK_BYTES);
    let mut stop = |state: &ParseState| {
        progress += 1;
        let limit = if state.has_error() { MAX_PROGRESS_MENDING } else { MAX_PROGRESS };
        let endless = progress > limit || reads.get() > max_reads;
        if endless { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    // The grammar's scanner hands what it sees to C's `isdigit`, which is undefined beyond a byte: other signs than ASCII
    // are letters to it, byte for byte, as they are to bash.
    let bytes: Vec<u8> = text.bytes().map(|byte| if byte.is_ascii() { byte } else { b'x' }).collect();
    let mut chunk = |at: usize, _| {
        reads.set(reads.get() + 1);
        let end = if reads.get() > max_reads { at } else { bytes.len().min(at + CHUNK_BYTES) };
        bytes.get(at..end).unwrap_or_default()
    };
    let options = ParseOptions::new().progress_callback(&mut stop);
    let tree = parser.parse_with_options(&mut chunk, None, Some(options)).filter(|_| reads.get() <= max_reads);
    if tree.is_none() {
        parser.reset();
    }
    tree.ok_or_else(|| "takes too long to parse; write a script file".into())
}
