//! The parser's tree to simple commands: an explicit stack of nodes, each with the scene it runs in.

mod simple;

use super::lex::Lexed;
use super::syntax::{Kind, Syntax};
use super::word::{Binding, Reader, Spot};
use super::{Input, Script, Simple, Word, WordKind, loops};
use std::rc::Rc;

pub(super) use simple::{is_keyword, is_name};

/// Commands of one line that are judged.
pub(super) const MAX_COMMANDS: usize = 1024;

/// What surrounds a command.
#[derive(Clone, Debug, Default)]
pub(super) struct Scene {
    input: Input,
    scope: Vec<u32>,
    bound: Vec<Binding>,
    /// Times the loops around it are written out.
    rounds: usize,
}

struct Task {
    node: u32,
    scene: Rc<Scene>,
}

pub(super) struct Walk<'s> {
    pub(super) text: &'s str,
    pub(super) syntax: &'s Syntax,
    pub(super) lexed: &'s Lexed,
    reader: Reader<'s>,
    todo: Vec<Task>,
    /// Redirections that stand outside the node they belong to: (node, redirection).
    owed: Vec<(u32, u32)>,
    scopes: u32,
    script: Script,
}

/// The commands of a parsed text, and what about them is in doubt.
pub(super) fn walk(text: &str, syntax: &Syntax, lexed: &Lexed) -> Script {
    let reader = Reader { text, substitutions: &lexed.substitutions, splits_oddly: text.contains("IFS") };
    let (todo, owed, script) = (Vec::new(), Vec::new(), Script::default());
    let mut walk = Walk { text, syntax, lexed, reader, todo, owed, scopes: 0, script };
    walk.todo.push(Task { node: 0, scene: Rc::new(Scene { rounds: 1, ..Scene::default() }) });
    while let Some(task) = walk.todo.pop() {
        if walk.script.commands.len() >= MAX_COMMANDS {
            walk.doubt(format!("has more than {MAX_COMMANDS} commands; write a script file"));
            break;
        }
        walk.visit(task);
    }
    walk.script
}

impl<'s> Walk<'s> {
    fn visit(&mut self, task: Task) {
        let Task { node, scene } = task;
        match self.syntax.node(node).kind {
            Kind::Command | Kind::Declaration | Kind::Unset | Kind::Test | Kind::Assignment | Kind::Assignments => {
                self.simple(node, &scene);
            }
            Kind::Redirected => self.redirected(node, &scene),
            kind => {
                let scene = self.with_owed(node, scene);
                self.compound(node, kind, &scene);
            }
        }
    }

    fn compound(&mut self, node: u32, kind: Kind, scene: &Rc<Scene>) {
        let at = self.syntax.node(node);
        match kind {
            Kind::Comment => {}
            Kind::Pipeline => self.pipeline(node, scene),
            Kind::Subshell | Kind::Substitution => {
                let scene = self.inner(scene, None);
                self.push_children(node, &scene);
            }
            Kind::Process => {
                let fed = self.source(node).starts_with('>').then_some(Input::Pipe);
                let scene = self.inner(scene, fed);
                self.push_children(node, &scene);
            }
            Kind::For => self.loop_over(node, scene),
            Kind::Function => {
                let head = self.text[at.start..at.end].split(['(', '{', '\n']).next().unwrap_or_default();
                let name = head.trim().trim_start_matches("function").trim();
                self.doubt(format!("defines a function, `{name}`"));
                self.push_children(node, scene);
            }
            Kind::Compound if self.text[at.start..].starts_with("((") => {
                self.arithmetic(node, scene);
                self.push_children(node, scene);
            }
            _ => self.push_children(node, scene),
        }
    }

    fn doubt(&mut self, doubt: String) {
        if self.script.doubts.len() < super::parse::MAX_DOUBTS && !self.script.doubts.contains(&doubt) {
            self.script.doubts.push(doubt);
        }
    }

    /// The scene in a subshell of its own.
    fn inner(&mut self, scene: &Scene, input: Option<Input>) -> Rc<Scene> {
        self.scopes += 1;
        let mut scene = scene.clone();
        scene.scope.push(self.scopes);
        scene.input = input.unwrap_or(scene.input);
        Rc::new(scene)
    }

    fn push_all(&mut self, tasks: Vec<Task>) {
        self.todo.extend(tasks.into_iter().rev());
    }

    fn push_children(&mut self, node: u32, scene: &Rc<Scene>) {
        let case_ends = self.syntax.children(node).any(|child| self.syntax.node(child).kind == Kind::CaseEnd);
        if case_ends && self.syntax.node(node).kind != Kind::CaseItem {
            self.doubt("cannot be parsed: `;;` stands outside of `case`".into());
        }
        let children: Vec<u32> = self.syntax.children(node).filter(|child| self.syntax.node(*child).named).collect();
        let tasks = children.into_iter().map(|child| self.task(child, scene)).collect();
        self.push_all(tasks);
    }

    /// In the background, a command runs in a subshell.
    fn task(&mut self, node: u32, scene: &Rc<Scene>) -> Task {
        let behind = self.syntax.next(node).map(|next| self.syntax.node(next));
        let background = behind.is_some_and(|next| next.kind == Kind::Amp && !next.named);
        Task { node, scene: if background { self.inner(scene, None) } else { scene.clone() } }
    }

    fn pipeline(&mut self, node: u32, scene: &Rc<Scene>) {
        let mut tasks = Vec::new();
        // After a here-document the parser gives the pipe without what is before it.
        let mut piped = self.syntax.children(node).next().is_some_and(|first| !self.syntax.node(first).named);
        for child in self.syntax.children(node) {
            let own = self.syntax.node(child);
            if own.named && own.kind != Kind::Comment {
                let scene = self.inner(scene, piped.then_some(Input::Pipe));
                tasks.push(Task { node: child, scene });
                piped = true;
            }
        }
        self.push_all(tasks);
    }

    /// Hands a statement's redirections to the command they belong to: of `a && b > f`, to `b`.
    fn redirected(&mut self, node: u32, scene: &Rc<Scene>) {
        let children: Vec<u32> = self.syntax.children(node).filter(|child| self.syntax.node(*child).named).collect();
        let is_redirect = |at: u32| is_redirect(self.syntax.node(at).kind);
        let body = children.iter().copied().find(|child| !is_redirect(*child));
        let owner = body.map(|body| self.owner(body));
        let redirects: Vec<u32> = children.into_iter().filter(|child| is_redirect(*child)).collect();
        let Some((body, owner)) = body.zip(owner) else {
            self.owed.extend(redirects.iter().map(|redirect| (node, *redirect)));
            self.simple(node, scene);
            return;
        };
        let mut tasks = vec![Task { node: body, scene: scene.clone() }];
        for redirect in redirects {
            self.owed.push((owner, redirect));
            for child in self.syntax.children(redirect) {
                let own = self.syntax.node(child);
                if own.named && is_statement(own.kind) {
                    tasks.push(self.task(child, scene));
                }
            }
        }
        self.push_all(tasks);
    }

    fn owner(&self, body: u32) -> u32 {
        let mut at = body;
        while matches!(self.syntax.node(at).kind, Kind::List | Kind::Pipeline | Kind::Negated | Kind::Redirected) {
            let redirected = self.syntax.node(at).kind == Kind::Redirected;
            let mut statements = self.syntax.children(at).filter(|child| {
                let own = self.syntax.node(*child);
                own.named && own.kind != Kind::Comment && !is_redirect(own.kind)
            });
            match if redirected { statements.next() } else { statements.last() } {
                Some(inner) => at = inner,
                None => return at,
            }
        }
        at
    }

    /// A block with redirections: they are a command without words, and what is in it reads from them.
    fn with_owed(&mut self, node: u32, scene: Rc<Scene>) -> Rc<Scene> {
        if !self.owed.iter().any(|(owner, _)| *owner == node) {
            return scene;
        }
        let mut command = self.command_at(node, &scene);
        let arguments = self.take_redirects(node, &mut command, &scene);
        if !arguments.is_empty() {
            self.doubt("has words after the redirection of a block".into());
        }
        let input = command.input.clone();
        self.script.commands.push(command);
        Rc::new(Scene { input, ..Scene::clone(&scene) })
    }

    fn command_at(&self, node: u32, scene: &Scene) -> Simple {
        let at = self.syntax.node(node);
        Simple {
            span: at.start..at.end,
            input: scene.input.clone(),
            depth: u32::try_from(scene.scope.len()).unwrap_or(u32::MAX),
            scope: scene.scope.clone(),
            ..Simple::default()
        }
    }

    fn take_redirects(&mut self, node: u32, command: &mut Simple, scene: &Rc<Scene>) -> Vec<u32> {
        let mut sources = Vec::new();
        let mut at = 0;
        while at < self.owed.len() {
            if self.owed[at].0 != node {
                at += 1;
                continue;
            }
            let (_, redirect) = self.owed.remove(at);
            sources.extend(self.redirect(redirect, command, scene));
            let end = self.syntax.node(redirect).end;
            command.span.end = command.span.end.max(end);
            self.push_substitutions(redirect, scene);
        }
        sources
    }

    /// Tasks for what substitutions within `node`'s words run; statements that follow a here-document are not its words.
    fn push_substitutions(&mut self, node: u32, scene: &Rc<Scene>) {
        let mut tasks = Vec::new();
        let behind = self.syntax.node(node).kind == Kind::HeredocRedirect;
        let own = |child: &u32| !behind || !is_statement(self.syntax.node(*child).kind);
        let mut within: Vec<u32> = self.syntax.children(node).filter(own).collect();
        within.reverse();
        while let Some(at) = within.pop() {
            let own = self.syntax.node(at);
            match own.kind {
                Kind::Substitution | Kind::Process | Kind::Subshell => tasks.push(self.task(at, scene)),
                _ => {
                    let from = within.len();
                    within.extend(self.syntax.children(at));
                    within[from..].reverse();
                }
            }
        }
        self.push_all(tasks);
    }

    fn read(&mut self, start: usize, end: usize, spot: Spot, scene: &Scene) -> Vec<Word> {
        let words = self.reader.read(start, end, spot, &scene.bound);
        words.unwrap_or_else(|| {
            let text = self.text[start..end].to_owned();
            vec![Word { text, kind: WordKind::Unknown, ..Word::default() }]
        })
    }

    pub(super) fn read_one(&mut self, start: usize, end: usize, spot: Spot, scene: &Scene) -> Word {
        self.read(start, end, spot, scene).pop().unwrap_or_default()
    }

    pub(super) fn source(&self, node: u32) -> &'s str {
        let at = self.syntax.node(node);
        &self.text[at.start..at.end]
    }

    /// A loop over constant items is written out, so that its variable is known in the body.
    fn loop_over(&mut self, node: u32, scene: &Rc<Scene>) {
        let children: Vec<u32> = self.syntax.children(node).filter(|child| self.syntax.node(*child).named).collect();
        let Some((variable, rest)) = children.split_first() else { return };
        let name = self.source(*variable);
        let mut items: Vec<Word> = Vec::new();
        let mut bodies: Vec<u32> = Vec::new();
        for child in rest {
            let at = self.syntax.node(*child);
            match at.kind {
                Kind::DoGroup | Kind::Compound => bodies.push(*child),
                Kind::Comment => {}
                _ => {
                    let words = self.read(at.start, at.end, Spot::Argument, scene);
                    words.iter().for_each(|word| self.see_arithmetic(word));
                    items.extend(words);
                }
            }
        }
        let body = bodies.first().map(|body| self.source(*body)).unwrap_or_default();
        let selects = self.source(node).starts_with("select");
        let rounds = scene.rounds * items.len();
        let known = !selects && rounds <= loops::MAX_ROUNDS && loops::is_bound(self.text, body, name, &items);
        let values = if known { items } else { vec![Word { kind: WordKind::Unknown, ..Word::known("") }] };
        let mut tasks: Vec<Task> = Vec::new();
        for value in values {
            let mut inner = Scene::clone(scene);
            inner.bound.push((name.to_owned(), value));
            inner.rounds = if known { rounds } else { scene.rounds };
            let inner = Rc::new(inner);
            tasks.extend(bodies.iter().map(|body| Task { node: *body, scene: inner.clone() }));
        }
        self.push_all(tasks);
        for item in rest.iter().rev().filter(|child| !bodies.contains(child)) {
            self.todo.push(Task { node: *item, scene: scene.clone() });
        }
    }
}

pub(super) fn is_redirect(kind: Kind) -> bool {
    matches!(kind, Kind::FileRedirect | Kind::HeredocRedirect | Kind::Herestring)
}

pub(super) fn is_statement(kind: Kind) -> bool {
    use Kind::*;
    matches!(
        kind,
        Redirected
            | Assignment
            | Assignments
            | Command
            | Declaration
            | Unset
            | Test
            | Negated
            | For
            | CFor
            | While
            | If
            | Case
            | Pipeline
            | List
            | Compound
            | Function
            | Subshell
    )
}
