//! `find` and `fd`: where they look, and what they do with what they find.

use super::act::{Act, Inner, put_in, unknown};
use super::options::{Class, Operands, Options, STRICT, Table, may_be_option};
use crate::deed::{FileHow, Reach};
use crate::shell::Word;

/// Tests and actions without an argument.
const PLAIN: [&str; 37] = [
    "!",
    "(",
    ")",
    ",",
    "-a",
    "-and",
    "-d",
    "-daystart",
    "-depth",
    "-empty",
    "-executable",
    "-false",
    "-follow",
    "-help",
    "--help",
    "-ignore_readdir_race",
    "-ls",
    "-mount",
    "-nogroup",
    "-noignore_readdir_race",
    "-noleaf",
    "-not",
    "-nouser",
    "-nowarn",
    "-o",
    "-or",
    "-print",
    "-print0",
    "-prune",
    "-quit",
    "-readable",
    "-true",
    "-version",
    "--version",
    "-warn",
    "-writable",
    "-xdev",
];
/// Those with one.
const VALUED: [&str; 42] = [
    "-amin",
    "-anewer",
    "-atime",
    "-cmin",
    "-cnewer",
    "-context",
    "-ctime",
    "-fstype",
    "-gid",
    "-group",
    "-ilname",
    "-iname",
    "-inum",
    "-ipath",
    "-iregex",
    "-iwholename",
    "-links",
    "-lname",
    "-maxdepth",
    "-mindepth",
    "-mmin",
    "-mtime",
    "-name",
    "-newer",
    "-path",
    "-perm",
    "-printf",
    "-regex",
    "-regextype",
    "-samefile",
    "-size",
    "-type",
    "-uid",
    "-used",
    "-user",
    "-wholename",
    "-xtype",
    "-newermt",
    "-newerct",
    "-newerat",
    "-newerBt",
    "-newermm",
];

pub(super) fn judge(act: &mut Act, name: &str) -> bool {
    match name {
        "find" | "gfind" => find(act),
        "fd" | "fdfind" => fd(act),
        _ => return false,
    }
    true
}

fn find(act: &mut Act) {
    act.deed.reach = Reach::Looks;
    let words = act.deed.argv.clone();
    let mut at = 1;
    while let Some(word) = words.get(at) {
        match &word.text[..] {
            "-H" | "-L" | "-P" | "-O1" | "-O2" | "-O3" | "--" => at += 1,
            "-D" => at += 2,
            _ => break,
        }
    }
    let first = at;
    while words.get(at).is_some_and(|word| !word.text.starts_with(['-', '(', '!', ','])) {
        if may_be_option(&words[at]) {
            act.sharp(at, format!("`{}` may turn out to be an action", words[at].text));
        }
        at += 1;
    }
    let mut starts: Vec<Word> = words[first..at].to_vec();
    if starts.is_empty() {
        starts.push(Word::known("."));
    }
    for start in &starts {
        act.file(FileHow::Read, start);
    }
    while at < words.len() {
        at = expression(act, &words, at, &starts);
    }
}

/// Judges the part of the expression at `at`; the place of the next.
fn expression(act: &mut Act, words: &[Word], at: usize, starts: &[Word]) -> usize {
    let word = &words[at];
    let Some(text) = word.value() else {
        act.sharp(at, format!("`{}` may turn out to be an action", word.text));
        return at + 1;
    };
    if PLAIN.contains(&text) {
        return at + 1;
    }
    if VALUED.contains(&text) {
        return at + 2;
    }
    match text {
        "-delete" => {
            act.sharp(at, "`-delete` removes what is found");
            for start in starts {
                act.file(FileHow::Delete, start);
            }
            at + 1
        }
        "-fprint" | "-fprint0" | "-fls" | "-fprintf" => {
            act.sharp(at, format!("`{text}` writes a file"));
            if let Some(file) = words.get(at + 1) {
                act.file(FileHow::Edit, file);
            }
            at + if text == "-fprintf" { 3 } else { 2 }
        }
        "-files0-from" => {
            act.sharp(at, "`-files0-from` takes the folders from elsewhere");
            at + 2
        }
        "-exec" | "-execdir" | "-ok" | "-okdir" => {
            let end = end_of_command(words, at + 1);
            // What it runs where it stands is judged as a command of its own, and is all that `-exec` does.
            let is_known = end < words.len() && words.get(at + 1).is_some_and(|program| program.value().is_some());
            if text != "-exec" || !is_known || words[at + 1].text.contains('{') {
                act.sharp(at, format!("`{text}` runs another command"));
            }
            run_on_found(act, &words[at + 1..end]);
            end + 1
        }
        _ => {
            act.sharp(at, format!("`{text}` is not known here"));
            at + 1
        }
    }
}

/// The `;` or `{} +` that ends a command.
fn end_of_command(words: &[Word], from: usize) -> usize {
    (from..words.len())
        .find(|at| words[*at].text == ";" || words[*at].text == "+" && words[*at - 1].text == "{}")
        .unwrap_or(words.len())
}

fn run_on_found(act: &mut Act, words: &[Word]) {
    if words.is_empty() {
        return;
    }
    let found = words.iter().map(|word| match &word.text[..] {
        "{}" => put_in("{}"),
        text if text.contains('{') => unknown(text),
        _ => word.clone(),
    });
    act.inner.push(Inner::Own(found.collect()));
}

fn fd(act: &mut Act) {
    const FD: Table = Table {
        operands: Operands::PatternThenRead,
        flags: "-HIusigFaLp0l1qh --hidden --no-ignore --no-ignore-vcs --no-ignore-parent --unrestricted \
                --case-sensitive --ignore-case --glob --regex --fixed-strings --absolute-path \
                --relative-path --list-details --follow --full-path --print0 --prune --quiet --show-errors \
                --one-file-system --version -V --help --no-require-git --strip-cwd-prefix",
        values: "-dtecSEojCn --max-depth --min-depth --exact-depth --type --extension --size \
                --changed-within --changed-before --owner --color --threads --exclude --max-results \
                --batch-size --path-separator --search-path --base-directory --and --format --hyperlink \
                --newer --older --max-buffer-time",
        reads: "--ignore-file",
        runs: "-xX --exec --exec-batch",
        ..STRICT
    };
    let words = act.deed.argv.clone();
    let runs = Options::read(&FD, &words, 1).taken.iter().find(|taken| taken.class == Class::Run).map(|taken| taken.at);
    let end = runs.map_or(words.len(), |at| at + 1);
    act.judge(&FD, &words[..end], 1);
    let Some(at) = runs else { return };
    let mut from = at + 1;
    while from < words.len() {
        let end = (from..words.len()).find(|at| words[*at].text == ";").unwrap_or(words.len());
        let mut found: Vec<Word> = words[from..end].to_vec();
        if !found.iter().any(|word| word.text.contains('{')) {
            found.push(unknown("{}"));
        }
        run_on_found(act, &found);
        from = end + 1;
    }
}
