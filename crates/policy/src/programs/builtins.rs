//! What the shell does itself: folders, variables, text it runs.

use super::act::{Act, Inner, unknown};
use super::assign;
use super::interpreters::is_stream;
use crate::deed::{FileHow, Reach};
use crate::shell::{Word, WordKind};

/// They change nothing outside of the shell, whatever their words.
const HARMLESS: [&str; 24] = [
    ":", "bg", "break", "caller", "continue", "dirs", "disown", "echo", "exit", "false", "fg", "help", "jobs",
    "logout", "pwd", "return", "shift", "suspend", "times", "true", "type", "ulimit", "umask", "wait",
];

pub(super) fn judge(act: &mut Act, name: &str) -> bool {
    if HARMLESS.binary_search(&name).is_ok() {
        act.deed.reach = Reach::Looks;
        return true;
    }
    match name {
        "cd" | "chdir" => cd(act),
        "pushd" => {
            let word = operands(act).first().map(|at| act.deed.argv[*at].clone());
            act.place.push(word.as_ref());
            act.deed.reach = Reach::Looks;
        }
        "popd" => {
            act.place.pop();
            act.deed.reach = Reach::Looks;
        }
        "export" | "declare" | "typeset" | "local" | "readonly" => declare(act, name),
        "set" => set(act),
        "shopt" => shopt(act),
        "unset" | "read" | "mapfile" | "readarray" | "getopts" | "let" | "printf" => assigns(act, name),
        "test" | "[" | "[[" => test(act, name),
        "alias" => settles(act, |word| word.text.contains('='), "an alias changes what names mean later"),
        "hash" => settles(act, |word| word.text.starts_with("-p"), "`hash -p` changes what a name runs"),
        "enable" => settles(act, |word| word.text.starts_with('-'), "`enable` changes what names mean later"),
        "bind" => settles(act, |_| true, "`bind` may run commands later"),
        "complete" | "compgen" | "compopt" => {
            settles(
                act,
                |word| word.text.starts_with('-') && word.text.contains(['C', 'F', 'W']),
                "it may run a command",
            );
        }
        "history" => settles(act, |word| word.text.starts_with('-') && word.text != "-c", "it reads or writes a file"),
        "unalias" => act.deed.reach = Reach::Looks,
        "fc" => act.sharp(0, "`fc` runs earlier commands again"),
        "source" | "." => source(act),
        "trap" => trap(act),
        "eval" => eval(act),
        _ => return false,
    }
    true
}

/// Places of the words that are no options.
fn operands(act: &Act) -> Vec<usize> {
    (1..act.len()).filter(|at| !(act.text(*at).starts_with('-') && act.text(*at).len() > 1)).collect()
}

fn cd(act: &mut Act) {
    act.deed.reach = Reach::Looks;
    let words = act.deed.argv.clone();
    let at = operands(act).first().copied();
    if let Some(at) = at {
        act.file(FileHow::Read, &words[at]);
    }
    let is_physical = words.iter().any(|word| word.text.starts_with('-') && word.text.contains('P'));
    match at {
        Some(at) if is_physical && words[at].text.contains("..") => act.place.change(Some(&unknown("…"))),
        at => act.place.change(at.map(|at| &words[at])),
    }
}

/// Adds a doubt about the whole line where a word of the command is of this kind.
fn settles(act: &mut Act, is_meant: fn(&Word) -> bool, why: &str) {
    act.deed.reach = Reach::Looks;
    if act.deed.argv[1..].iter().any(|word| word.kind != WordKind::Known || is_meant(word)) {
        act.deed.reach = Reach::Anything;
        act.whole.push(why.into());
    }
}

/// The variable that `NAME=value` sets; none if it is computed.
fn variable(word: &Word) -> Option<(&str, &str)> {
    let (name, value) = word.text.split_once('=').unwrap_or((&word.text, ""));
    let is_name = name.trim_end_matches('+').bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    (is_name && !name.is_empty()).then_some((name, value))
}

fn declare(act: &mut Act, name: &str) {
    act.deed.reach = Reach::Looks;
    let words = act.deed.argv.clone();
    let options: String =
        words[1..].iter().filter(|word| word.text.starts_with('-')).map(|word| &word.text[1..]).collect();
    if options.contains(['n', 'i']) && name != "export" {
        act.whole.push(format!("`{name} -{options}` makes values names or sums that are computed later"));
    }
    if options.contains(['f', 'F', 'p']) && !words.iter().any(|word| word.text.contains('=')) {
        return;
    }
    for at in operands(act) {
        let word = &words[at];
        let doubt = match variable(word) {
            None => Some(format!("which variable `{}` sets, is only known when it runs", word.text)),
            Some((own, _)) if name == "export" || options.contains('x') => assign::exported(own),
            Some((own, value)) => assign::alone(own, &Word { text: value.into(), ..word.clone() }),
        };
        act.whole.extend(doubt);
    }
}

fn set(act: &mut Act) {
    act.deed.reach = Reach::Looks;
    let words = act.deed.argv.clone();
    let mut at = 1;
    while let Some(word) = words.get(at) {
        at += 1;
        let text = &word.text[..];
        if text == "--" || text == "-" || !text.starts_with(['-', '+']) {
            return;
        }
        if word.kind != WordKind::Known || !text[1..].bytes().all(|byte| b"eufxvnbCETmhBo".contains(&byte)) {
            act.whole.push(format!("`set {text}` changes how the commands after it are read"));
        }
        if text.ends_with('o') {
            let known = [
                "errexit",
                "nounset",
                "pipefail",
                "xtrace",
                "noglob",
                "noclobber",
                "verbose",
                "noexec",
                "errtrace",
                "functrace",
                "monitor",
                "braceexpand",
                "hashall",
                "nolog",
                "notify",
            ];
            match words.get(at) {
                Some(option) if !known.contains(&&option.text[..]) => {
                    act.whole.push(format!("`set -o {}` changes how the commands after it are read", option.text));
                }
                _ => {}
            }
            at += 1;
        }
    }
}

fn shopt(act: &mut Act) {
    act.deed.reach = Reach::Looks;
    let known =
        ["globstar", "nullglob", "dotglob", "failglob", "nocaseglob", "inherit_errexit", "pipefail", "globasciiranges"];
    let odd = act.deed.argv[1..].iter().find(|word| {
        !known.contains(&&word.text[..]) && !matches!(&word.text[..], "-s" | "-u" | "-q" | "-p" | "-o" | "-su" | "-qs")
    });
    let sets = act.deed.argv.iter().any(|word| matches!(&word.text[..], "-s" | "-u") || word.kind != WordKind::Known);
    if let Some(odd) = odd.filter(|_| sets) {
        act.whole.push(format!("`shopt {}` changes how the commands after it are read", odd.text));
    }
}

/// Builtins that set the variables they are told; an index in a name is computed, and may run a command.
fn assigns(act: &mut Act, name: &str) {
    act.deed.reach = Reach::Looks;
    let words = act.deed.argv.clone();
    let names: Vec<usize> = match name {
        "printf" => {
            let at = words.iter().position(|word| word.text == "-v").map(|at| at + 1);
            match words.get(1).filter(|word| word.text.starts_with("-v") && word.text.len() > 2) {
                Some(_) => vec![1],
                None => at.filter(|at| *at == 2 && *at < words.len()).into_iter().collect(),
            }
        }
        "getopts" => (2..words.len().min(3)).collect(),
        _ => operands(act),
    };
    if matches!(name, "mapfile" | "readarray") && words.iter().any(|word| word.text.starts_with("-C")) {
        act.whole.push(format!("`{name} -C` runs a command"));
    }
    for at in names {
        let word = &words[at];
        let text = word.text.strip_prefix("-v").filter(|_| name == "printf").unwrap_or(&word.text);
        let runs = text.contains('[') && (text.contains("$(") || text.contains('`'));
        if runs || word.kind == WordKind::Unknown && !matches!(name, "read" | "unset") {
            act.doubt(format!("`{text}` is computed, which may run commands"));
        }
        let own = text.split(['=', '[', '+']).next().unwrap_or(text);
        let doubt = assign::alone(own, &Word::known(""));
        act.whole.extend(doubt.filter(|_| !word.text.contains(' ')));
    }
}

fn test(act: &mut Act, name: &str) {
    act.deed.reach = Reach::Looks;
    let words = act.deed.argv.clone();
    let counts = words.iter().any(|word| matches!(&word.text[..], "-eq" | "-ne" | "-lt" | "-gt" | "-le" | "-ge"));
    for (at, word) in words.iter().enumerate().skip(1) {
        let runs = word.text.contains('[')
            && word.kind != WordKind::Unknown
            && (word.text.contains("$(") || word.text.contains('`'));
        let names_it = words[at - 1].text == "-v" || words[at - 1].text == "-R";
        let sums = counts && name == "[[" && !is_plain_operand(word);
        if runs || sums || word.kind == WordKind::Unknown && names_it {
            act.doubt(format!("`{}` is computed, which may run commands", word.text));
        }
    }
}

/// A number, an operator or the end: what bash reads in a sum without looking up or running anything.
fn is_plain_operand(word: &Word) -> bool {
    let text = &word.text[..];
    let number = text.strip_prefix('-').unwrap_or(text);
    let is_sign = matches!(text, "!" | "(" | ")" | "&&" | "||" | "]]" | "==" | "=" | "!=" | "<" | ">" | "=~");
    word.kind == WordKind::Known
        && (is_sign
            || text.starts_with('-') && text[1..].bytes().all(|byte| byte.is_ascii_lowercase())
            || !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

fn source(act: &mut Act) {
    let Some(word) = act.deed.argv.get(1).cloned() else { return };
    if word.value().is_some_and(is_stream) {
        act.doubt(format!("`{}` runs what it is fed as code", word.text));
    }
    act.file(FileHow::Read, &word);
    act.deed.reach = Reach::Anything;
}

fn trap(act: &mut Act) {
    act.deed.reach = Reach::Looks;
    let Some(at) = operands(act).first().copied() else { return };
    let word = act.deed.argv[at].clone();
    let only_shows = act.text(1) == "-p" || act.text(1) == "-l" || act.text(1) == "-P";
    if only_shows || act.text(1) == "-" || word.text.is_empty() && word.kind == WordKind::Known {
        return;
    }
    act.sharp(at, "its text runs later, when the shell ends or is signalled");
    match word.value() {
        Some(text) => act.inner.push(Inner::Text(text.into())),
        None => act.doubt("the text that `trap` runs is only known when it runs"),
    }
}

fn eval(act: &mut Act) {
    let from = 1 + usize::from(act.text(1) == "--");
    let text: Option<Vec<&str>> = act.deed.argv[from..].iter().map(Word::value).collect();
    match text {
        Some(text) => act.inner.push(Inner::Here(text.join(" "))),
        None => act.doubt("what `eval` runs is only known when it runs"),
    }
    act.seen_through = true;
    act.deed.reach = if act.len() == 1 { Reach::Looks } else { Reach::Anything };
}
