//! The narrowest rules that "always" would add for a call, and how a rule is written on a command line.

use crate::arguments::canonical;
use crate::ask::Ask;
use crate::path;
use crate::rule::{Call, Rule};
use crate::words::{Word, simple};

/// Programs whose second word names what they do, so that the two together say enough for a rule.
const WITH_SUBCOMMAND: [&str; 20] = [
    "cargo",
    "git",
    "npm",
    "pnpm",
    "yarn",
    "bun",
    "go",
    "pip",
    "uv",
    "poetry",
    "docker",
    "kubectl",
    "gh",
    "make",
    "just",
    "rustup",
    "dotnet",
    "gradle",
    "mvn",
    "terraform",
];
/// Second words that run or set up whatever is given to them: no prefix.
const RUNS_ANYTHING: [&str; 12] = [
    "run",
    "exec",
    "x",
    "dlx",
    "config",
    "submodule",
    "rebase",
    "bisect",
    "filter-branch",
    "alias",
    "api",
    "extension",
];
/// Characters of the arguments beyond which an exact rule is no use to anybody.
const EXACT_ARGUMENTS: usize = 200;

/// Rules that would allow this call from now on, narrowest first; none where no pattern could do so safely.
pub(crate) fn propose(ask: &Ask) -> Vec<String> {
    let wishes = match ask.command() {
        Some(command) => for_command(ask.tool, command),
        None if ask.executes() => Vec::new(),
        None if !ask.plan.paths.is_empty() => vec![for_paths(ask)],
        None => for_arguments(ask),
    };
    let call = Call::new(ask);
    wishes.into_iter().filter(|wish| Rule::parse(wish).is_ok_and(|rule| rule.allows(&call))).collect()
}

fn for_command(tool: &str, command: &str) -> Vec<String> {
    let Some(words) = simple(command) else { return Vec::new() };
    // Tools of other names take their command as arguments: only the capability's rules read commands.
    let tool = if tool == "bash" { "bash" } else { "exec" };
    vec![match prefix(&words) {
        Some(prefix) => format!("{tool}({}:*)", written(prefix)),
        None => format!("{tool}({})", written(&words)),
    }]
}

/// The words that say what kind of command this is, where that is known.
fn prefix(words: &[Word]) -> Option<&[Word]> {
    let text = |at: usize| words.get(at).map(|word| &word.text[..]).filter(|text| !text.starts_with('-'));
    let (program, second) = (text(0)?, text(1)?);
    let is_script = matches!(program, "npm" | "pnpm" | "yarn" | "bun") && second == "run";
    if is_script {
        return text(2).map(|_| &words[..3]);
    }
    (WITH_SUBCOMMAND.contains(&program) && !RUNS_ANYTHING.contains(&second)).then(|| &words[..2])
}

fn written(words: &[Word]) -> String {
    let words: Vec<String> = words.iter().map(|word| quoted(&word.text)).collect();
    words.join(" ")
}

/// A word as a shell and a rule read it back.
fn quoted(word: &str) -> String {
    let is_plain = |sign: char| {
        sign.is_alphanumeric() || matches!(sign, '_' | '-' | '.' | '/' | ':' | '=' | '@' | '%' | '+' | ',')
    };
    match word {
        word if !word.is_empty() && word.chars().all(is_plain) => word.into(),
        word if word.contains('\'') => format!("\"{word}\""),
        word => format!("'{word}'"),
    }
}

fn for_paths(ask: &Ask) -> String {
    let paths: Vec<String> = ask.plan.paths.iter().map(|path| escaped(ask.workspace, path)).collect();
    match &paths[..] {
        [path] => format!("{}({path})", ask.tool),
        paths => format!("{}({{{}}})", ask.tool, paths.join(",")),
    }
}

fn escaped(workspace: &str, path: &str) -> String {
    let path = path::inside(workspace, path).unwrap_or_else(|| path::absolute(workspace, path));
    let escaped = globset::escape(&path);
    if escaped.starts_with('~') { format!("./{escaped}") } else { escaped }
}

fn for_arguments(ask: &Ask) -> Vec<String> {
    let arguments = canonical(ask.input);
    let exact =
        (arguments.len() <= EXACT_ARGUMENTS && !arguments.contains('*')).then(|| format!("{}({arguments})", ask.tool));
    exact.into_iter().chain([ask.tool.to_string()]).collect()
}

/// `text` as one word of a POSIX shell.
pub(crate) fn shell_word(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}
