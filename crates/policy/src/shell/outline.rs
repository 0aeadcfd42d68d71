//! A command line's parts as an indented text, for people.

use super::signs::{escaped, is_suspicious};
use super::{Input, RedirectKind, Word, WordKind, script};
use std::fmt::Write;

/// Lines of an outline.
const MAX_LINES: usize = 400;

/// What `text` was taken apart into: commands, their words and redirections; deeper is what runs in a subshell.
pub fn tree(text: &str) -> String {
    let script = script(text);
    let mut lines: Vec<String> = Vec::new();
    for command in &script.commands {
        let indent = "  ".repeat(command.depth.min(32) as usize);
        let source: String = text[command.span.clone()].chars().take(100).collect();
        lines.push(format!("{indent}command {}", plain(&source)));
        for (name, value) in &command.assignments {
            lines.push(format!("{indent}  sets {name} to {}", shown(value)));
        }
        lines.extend(command.words.iter().map(|word| format!("{indent}  word {}", shown(word))));
        for redirect in &command.redirects {
            let verb = if redirect.kind == RedirectKind::Read { "reads" } else { "writes" };
            lines.push(format!("{indent}  {verb} {}", shown(&redirect.target)));
        }
        match &command.input {
            Input::Inherited | Input::File => {}
            Input::Pipe => lines.push(format!("{indent}  input from a pipe")),
            Input::Text(Some(_)) => lines.push(format!("{indent}  input is a constant text")),
            Input::Text(None) => lines.push(format!("{indent}  input is a computed text")),
        }
        if lines.len() > MAX_LINES {
            lines.truncate(MAX_LINES);
            lines.push("…".into());
            break;
        }
    }
    lines.extend(script.doubts.iter().map(|doubt| format!("doubt: {doubt}")));
    lines.iter().fold(String::new(), |mut text, line| {
        let _ = writeln!(text, "{line}");
        text
    })
}

/// Without line ends and what cannot be seen.
fn plain(text: &str) -> String {
    let shown = |sign: char| match sign {
        '\n' | '\t' => sign.escape_debug().to_string(),
        sign if is_suspicious(sign) => format!("<{}>", escaped(sign)),
        sign => sign.to_string(),
    };
    text.chars().map(shown).collect()
}

fn shown(word: &Word) -> String {
    let kind = match word.kind {
        WordKind::Known if word.tilde => ", below a home",
        WordKind::Known => "",
        WordKind::Glob => ", a pattern",
        WordKind::Unknown => ", computed",
    };
    let text: String = word.text.chars().take(200).collect();
    format!("`{}`{kind}", plain(&text))
}
