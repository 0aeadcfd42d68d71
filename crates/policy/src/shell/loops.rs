//! `for f in a b`: when the body is known to see just these items.

use super::{Word, WordKind};

/// Times that loops within one another are written out.
pub(super) const MAX_ROUNDS: usize = 32;

/// Programs and constructs that may give a variable another value by a name that is computed or not seen.
const ASSIGNERS: [&str; 15] = [
    "read",
    "mapfile",
    "readarray",
    "let",
    "getopts",
    "declare",
    "typeset",
    "local",
    "export",
    "readonly",
    "unset",
    "eval",
    "source",
    "((",
    "printf -v",
];

/// Whether `name` holds one of `items` all through `body`, and nothing before changed what its name means.
pub(super) fn is_bound(text: &str, body: &str, name: &str, items: &[Word]) -> bool {
    let constant = !items.is_empty() && items.iter().all(|item| item.kind != WordKind::Unknown);
    let renamed = ["declare", "typeset", "local", "readonly"].iter().any(|word| text.contains(word));
    constant && !renamed && !ASSIGNERS.iter().any(|word| holds_word(body, word)) && !is_named(body, name)
}

fn is_name_sign(sign: char) -> bool {
    sign.is_ascii_alphanumeric() || sign == '_'
}

fn holds_word(body: &str, word: &str) -> bool {
    body.match_indices(word).any(|(at, _)| {
        let before = body[..at].ends_with(|sign: char| is_name_sign(sign) || matches!(sign, '-' | '/' | '.'));
        let after =
            body[at + word.len()..].starts_with(|sign: char| is_name_sign(sign) || matches!(sign, '-' | '/' | '.'));
        word == "((" || !before && !after
    })
}

/// Whether `name` stands where it could be given a value: before `=`, after `for`, or in `${name:=…}`.
fn is_named(body: &str, name: &str) -> bool {
    body.match_indices(name).any(|(at, _)| {
        let (before, after) = (&body[..at], &body[at + name.len()..]);
        if before.ends_with(is_name_sign) || after.starts_with(is_name_sign) {
            return false;
        }
        let braced = before.ends_with("${") && !after.starts_with('}');
        let looped = before.trim_end().ends_with("for") || before.trim_end().ends_with("select");
        braced || looped || after.starts_with(['=', '+', '['])
    })
}
