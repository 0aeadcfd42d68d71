//! Text to [`Script`].

use super::lex::TokenKind;
use super::syntax::Syntax;
use super::{Script, Word, WordKind, agree, flat, heredoc, lex, signs, walk};
use std::borrow::Cow;

/// Bytes of a command line that are parsed; a longer one is a doubt.
pub const MAX_BYTES: usize = 64 * 1024;
/// Doubts that are told.
pub(super) const MAX_DOUBTS: usize = 16;

/// Takes `text` apart; never fails: what is not known is said in its doubts.
pub fn script(text: &str) -> Script {
    if text.len() > MAX_BYTES {
        let doubt =
            format!("it is {} bytes long, of which no more than {MAX_BYTES} are read; write a script file", text.len());
        return Script { commands: vec![], doubts: vec![doubt] };
    }
    let lexed = lex::lex(text);
    let mut script = parsed(text, &lexed).unwrap_or_else(|doubt| {
        let mut script = Script { doubts: vec![doubt], ..Script::default() };
        add_flat(text, &lexed, &mut script);
        script
    });
    script.doubts.splice(0..0, signs::doubts(text));
    script.doubts.iter_mut().for_each(|doubt| doubt.insert_str(0, "it "));
    script
}

fn parsed(text: &str, lexed: &lex::Lexed) -> Result<Script, String> {
    if let Some(failure) = lexed.failure.clone().filter(|_| lexed.endless) {
        return Err(failure);
    }
    let syntax = Syntax::of(&for_parser(text, lexed))?;
    let mut script = walk::walk(text, &syntax, lexed);
    for command in &mut script.commands {
        command.repeats = repeats(text, lexed, command.span.start);
    }
    if let Some(doubt) = lexed.failure.clone().or_else(|| misread(text, &syntax, lexed)) {
        script.doubts.insert(0, doubt);
        add_flat(text, lexed, &mut script);
    }
    Ok(script)
}

/// The text with a letter for each lone `-` that stands before a here-document: the parser would lose it. Words are
/// read from the text itself.
fn for_parser<'t>(text: &'t str, lexed: &lex::Lexed) -> Cow<'t, str> {
    let mut shown = Cow::Borrowed(text);
    for pair in lexed.tokens.windows(2) {
        let is_dash = pair[0].kind == TokenKind::Word && &text[pair[0].start..pair[0].end] == "-";
        let opens = pair[1].kind == TokenKind::Operator && text[pair[1].start..pair[1].end].starts_with("<<");
        if is_dash && opens {
            shown.to_mut().replace_range(pair[0].start..pair[0].end, "x");
        }
    }
    shown
}

/// Whether the command at `start` is the `cat` of a constant here-document that makes a quoted word.
fn repeats(text: &str, lexed: &lex::Lexed, start: usize) -> bool {
    let Some(at) = start.checked_sub(2) else { return false };
    let Ok(place) = lexed.substitutions.binary_search_by_key(&at, |(start, _)| *start) else { return false };
    heredoc::constant(&text[at..lexed.substitutions[place].1]).is_some()
}

/// Where the parser is wrong, or may be.
fn misread(text: &str, syntax: &Syntax, lexed: &lex::Lexed) -> Option<String> {
    let shown = |at: usize| {
        let rest: String = text[at..].chars().take_while(|sign| *sign != '\n').take(24).collect();
        format!("byte {at}, `{rest}`")
    };
    if let Some((at, _)) = syntax.errors.first() {
        return Some(format!("cannot be parsed at {}", shown(*at)));
    }
    let at = agree::disagreement(text, syntax, lexed)?;
    Some(format!("can be read in two ways at {}", shown(at)))
}

fn add_flat(text: &str, lexed: &lex::Lexed, script: &mut Script) {
    let room = walk::MAX_COMMANDS.saturating_sub(script.commands.len());
    for command in flat::commands(text, lexed, room) {
        if !script.commands.iter().any(|own| own.words == command.words && own.redirects == command.redirects) {
            script.commands.push(command);
        }
    }
}

/// The words of one simple command without assignments, redirections or anything to be computed; none if it is more. A
/// pattern is a word.
pub fn words(text: &str) -> Option<Vec<Word>> {
    let script = script(text);
    let [command] = &script.commands[..] else { return None };
    let bare = command.assignments.is_empty() && command.redirects.is_empty() && command.depth == 0;
    let plain = bare && script.doubts.is_empty() && command.input == super::Input::Inherited;
    let whole = text.trim_matches([' ', '\t', '\n']) == &text[command.span.clone()];
    let known = !command.words.is_empty() && command.words.iter().all(|word| word.kind != WordKind::Unknown);
    // The keyword is no word of the command.
    let timed = known && text.split_whitespace().next() == Some("time") && command.words[0].text != "time";
    (plain && whole && known && !timed).then(|| command.words.clone())
}
