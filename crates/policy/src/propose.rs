//! The narrowest rules that "always" would add for a call, what else they would cover, and how a rule is written.

use crate::arguments::canonical;
use crate::ask::{Ask, Proposal};
use crate::call::Call;
use crate::deed::{Deed, Reach};
use crate::path;
use crate::predicate::Fit;
use crate::rule::{Choice, Rule, Source};
use crate::ruling::{Ruling, Subject};
use crate::shell::{Word, WordKind};
use windlass_kernel::Verdict;

/// Programs whose second word names what they do, so that the two together say enough for a rule.
const WITH_SUBCOMMAND: [&str; 23] = [
    "apt",
    "brew",
    "bun",
    "cargo",
    "docker",
    "dotnet",
    "gh",
    "git",
    "go",
    "gradle",
    "helm",
    "just",
    "kubectl",
    "make",
    "mvn",
    "npm",
    "pip",
    "pnpm",
    "poetry",
    "rustup",
    "terraform",
    "uv",
    "yarn",
];
/// Second words that run or set up whatever is given to them: no prefix.
const RUNS_ANYTHING: [&str; 15] = [
    "alias",
    "api",
    "bisect",
    "config",
    "dlx",
    "exec",
    "explore",
    "extension",
    "filter-branch",
    "install",
    "rebase",
    "run",
    "submodule",
    "tool",
    "x",
];
/// Characters of the arguments beyond which an exact rule is no use to anybody.
const EXACT_ARGUMENTS: usize = 200;

/// Rules that would allow this call from now on, narrowest first; none where no pattern could do so safely, or where it
/// would take more than one.
pub(crate) fn propose(call: &Call, rulings: &[Ruling]) -> Vec<Proposal> {
    let mut asking = rulings.iter().filter(|ruling| ruling.verdict == Verdict::Ask);
    let (Some(ruling), None) = (asking.next(), asking.next()) else { return vec![] };
    if ruling.doubtful {
        return vec![];
    }
    let wishes = match &ruling.subject {
        Subject::Deed(deed) => for_deed(call.ask, deed),
        Subject::File { path: Some(path), and_below: false, reads, .. } => vec![for_file(call.ask, path, *reads)],
        Subject::Whole if !call.ask.plan.paths.is_empty() && !call.ask.executes() => vec![for_paths(call.ask)],
        Subject::Whole if !call.ask.executes() => for_arguments(call),
        _ => vec![],
    };
    let allows = |proposal: &Proposal| {
        let rule = Rule::deciding(&proposal.rule, Choice::Allow, Source::Session);
        rule.is_ok_and(|rule| ruling.part().is_some_and(|part| rule.fit(call, part) == Fit::Sure))
    };
    wishes.into_iter().filter(allows).collect()
}

fn for_deed(ask: &Ask, deed: &Deed) -> Vec<Proposal> {
    if deed.argv.iter().any(|word| word.kind == WordKind::Unknown) {
        return vec![];
    }
    // Tools of other names take their command as arguments: only the capability's rules read commands.
    let tool = if ask.tool == "bash" { "bash" } else { "exec" };
    let words = written(&deed.argv);
    let has_glob = deed.argv.iter().any(|word| word.kind == WordKind::Glob);
    let exact = Proposal { rule: format!("{tool}({words})"), covers: "nothing but exactly this command".into() };
    let prefix = prefix(deed).map(|prefix| {
        let words = written(prefix);
        let limit = "not with options that write elsewhere or run other programs";
        Proposal {
            rule: format!("{tool}({words}:*)"),
            covers: format!("every `{words} …`, with any further words ({limit})"),
        }
    });
    match (prefix, has_glob) {
        (Some(prefix), _) => vec![prefix],
        (None, true) => vec![],
        (None, false) => vec![exact],
    }
}

/// The words that say what kind of command this is, where that is known: never of a wrapper or an interpreter.
fn prefix(deed: &Deed) -> Option<&[Word]> {
    if !deed.sharp.is_empty() {
        return None;
    }
    let words = &deed.argv;
    let text = |at: usize| words.get(at).and_then(Word::value).filter(|text| !text.starts_with('-'));
    let program = text(0)?;
    if deed.reach == Reach::Looks && !WITH_SUBCOMMAND.contains(&program) {
        return Some(&words[..1]);
    }
    let second = text(1)?;
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
        word => shell_word(word),
    }
}

fn for_file(ask: &Ask, path: &str, reads: bool) -> Proposal {
    let path = escaped(ask.workspace, path);
    let (rule, verb) = if reads { ("read", "reading") } else { ("edit", "writing") };
    Proposal { rule: format!("{rule}({path})"), covers: format!("{verb} this file by any tool") }
}

fn for_paths(ask: &Ask) -> Proposal {
    let paths: Vec<String> = ask.plan.paths.iter().map(|path| escaped(ask.workspace, path)).collect();
    let rule = match &paths[..] {
        [path] => format!("{}({path})", ask.tool),
        paths => format!("{}({{{}}})", ask.tool, paths.join(",")),
    };
    let covers = if ask.has_tag("fs.write") { "writing anything to it" } else { "every look at it" };
    Proposal { rule, covers: covers.into() }
}

fn escaped(workspace: &str, path: &str) -> String {
    let path = path::inside(workspace, path).unwrap_or_else(|| path::absolute(workspace, path));
    let escaped = globset::escape(&path);
    if escaped.starts_with('~') { format!("./{escaped}") } else { escaped }
}

fn for_arguments(call: &Call) -> Vec<Proposal> {
    let ask = call.ask;
    if let Some(host) = call.host().filter(|_| ask.tool == "web_fetch") {
        let covers = format!("every page of {host}");
        return vec![Proposal { rule: format!("{}(domain:{host})", ask.tool), covers }];
    }
    let arguments = canonical(ask.input);
    let exact = (arguments.len() <= EXACT_ARGUMENTS && !arguments.contains('*')).then(|| Proposal {
        rule: format!("{}({arguments})", ask.tool),
        covers: "nothing but exactly these arguments".into(),
    });
    let whole = Proposal { rule: ask.tool.into(), covers: format!("every call of {}", ask.tool) };
    exact.into_iter().chain([whole]).collect()
}

/// `text` as one word of a POSIX shell.
pub(crate) fn shell_word(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}
