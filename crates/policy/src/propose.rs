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
use crate::stock;
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
/// Programs, or programs with their second word, whose next word names what they do.
const NESTED: [(&str, &[&str]); 8] = [
    ("docker", &["builder", "compose", "container", "context", "image", "network", "system", "volume"]),
    (
        "gh",
        &[
            "auth",
            "cache",
            "codespace",
            "gist",
            "issue",
            "label",
            "pr",
            "project",
            "release",
            "repo",
            "run",
            "secret",
            "workflow",
        ],
    ),
    (
        "git",
        &["bisect", "bundle", "lfs", "notes", "reflog", "remote", "sparse-checkout", "stash", "submodule", "worktree"],
    ),
    ("go", &["mod", "tool", "work"]),
    ("helm", &["dependency", "plugin", "repo"]),
    ("kubectl", &["config", "rollout", "set"]),
    ("terraform", &["state", "workspace"]),
    ("uv", &["cache", "pip", "python"]),
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
/// Parts of a command line that one answer can stand for.
const MOST_TOGETHER: usize = 6;
/// Characters of the arguments beyond which an exact rule is no use to anybody.
const EXACT_ARGUMENTS: usize = 200;

/// Rules that would allow this call from now on: of one part that is asked about, to choose from, narrowest first; of
/// several, one for each. None where no pattern could do so safely.
pub(crate) fn propose(call: &Call, rulings: &[Ruling]) -> Vec<Proposal> {
    let asking: Vec<&Ruling> = rulings.iter().filter(|ruling| ruling.verdict == Verdict::Ask).collect();
    match &asking[..] {
        [] => vec![],
        [ruling] => for_ruling(call, ruling),
        many if many.len() > MOST_TOGETHER => vec![],
        many => together(call, many).unwrap_or_default(),
    }
}

fn together(call: &Call, asking: &[&Ruling]) -> Option<Vec<Proposal>> {
    let mut all: Vec<Proposal> = Vec::new();
    for ruling in asking {
        let proposal = for_ruling(call, ruling).into_iter().next()?;
        if !all.contains(&proposal) {
            all.push(proposal);
        }
    }
    Some(all)
}

fn for_ruling(call: &Call, ruling: &Ruling) -> Vec<Proposal> {
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
    // A program whose every plain use only looks; of any other this one use does.
    if deed.reach == Reach::Looks && stock::only_looks(program) {
        return Some(&words[..1]);
    }
    let second = text(1)?;
    let is_script = matches!(program, "npm" | "pnpm" | "yarn" | "bun") && second == "run";
    if is_script {
        return text(2).map(|_| &words[..3]);
    }
    if NESTED.iter().any(|(name, seconds)| *name == program && seconds.contains(&second)) {
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
    let from_root = |path: &String| globset::escape(path::absolute(ask.workspace, path).trim_start_matches('/'));
    let rule = match &paths[..] {
        [path] => format!("{}({path})", ask.tool),
        // A name and where it leads to: both from the root, where one of them lies outside.
        paths if paths.iter().any(|path| path.starts_with('/')) => {
            let paths: Vec<String> = ask.plan.paths.iter().map(from_root).collect();
            format!("{}(/{{{}}})", ask.tool, paths.join(","))
        }
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
