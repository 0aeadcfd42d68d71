//! git: options before the subcommand, then each subcommand by its table and what its operands are.

use super::act::{Act, Inner};
use super::git_changes::{CHANGING, SHARP};
use super::git_tables::{GLOBAL, LOOKING};
use super::options::Options;
use crate::deed::{FileHow, Reach};
use crate::shell::Word;

pub(super) fn judge(act: &mut Act, name: &str) -> bool {
    if name != "git" {
        return false;
    }
    let Some(sub) = strip_globals(act) else { return true };
    let here = act.place.outside();
    let Stripped { sub, folder } = sub;
    let words = act.deed.argv.clone();
    let pair = words.get(sub + 1).map(|next| format!("{} {}", words[sub].text, next.text));
    let single = words[sub].text.clone();
    let known = pair.iter().find_map(|pair| subcommand(act, &words, sub, pair, 2));
    if known.or_else(|| subcommand(act, &words, sub, &single, 1)).is_none() {
        act.sharp(sub, format!("`git {single}` is not known here; it may be an alias for anything"));
    }
    for file in act.deed.files.iter_mut().filter(|_| !folder.is_empty()) {
        if !file.path.tilde && !file.path.text.starts_with('/') {
            file.path.text = format!("{folder}/{}", file.path.text);
        }
    }
    if let Some(folder) = here {
        act.sharp(sub, format!("a repository in `{folder}` may have settings that run commands"));
    }
    true
}

/// Where the subcommand stands, and the folder `-C` goes to first.
struct Stripped {
    sub: usize,
    folder: String,
}

/// Takes harmless options before the subcommand out of the words; the subcommand's place, if there is one.
fn strip_globals(act: &mut Act) -> Option<Stripped> {
    let words = act.deed.argv.clone();
    let options = act.judge_options(&GLOBAL, &words, 1);
    let mut elsewhere = Vec::new();
    for taken in options.taken.iter().filter(|taken| taken.name == "C" || taken.name == "--exec-path") {
        match &taken.value {
            Some(folder) if taken.name == "C" && act.place.holds(folder) => {}
            None if taken.name == "--exec-path" => {}
            _ => elsewhere.push(taken.at),
        }
    }
    for at in elsewhere {
        act.sharp(at, "a repository or programs elsewhere may have settings that run commands");
    }
    let folders = options.taken.iter().filter(|taken| taken.name == "C").filter_map(|taken| taken.value.as_ref());
    let folder = folders.map(|folder| &folder.text[..]).collect::<Vec<_>>().join("/");
    let Some(sub) = options.operands.first().copied() else {
        act.deed.reach = if act.deed.sharp.is_empty() { Reach::Looks } else { Reach::Anything };
        return None;
    };
    if words[sub].value().is_none() {
        act.sharp(sub, "which subcommand it is, is only known when it runs");
        return None;
    }
    if !act.deed.sharp.is_empty() || sub == 1 {
        let mut bare = vec![words[0].clone()];
        bare.extend(words[sub..].iter().cloned());
        if sub > 1 {
            act.deed.also.push(bare);
        }
        return Some(Stripped { sub, folder });
    }
    act.deed.also.push(words.clone());
    act.deed.written.push(words.clone());
    act.deed.argv.drain(1..sub);
    Some(Stripped { sub: 1, folder })
}

/// Judges by the table of `name`, whose words end `taken` behind `sub`; none if no table has it.
fn subcommand(act: &mut Act, words: &[Word], sub: usize, name: &str, taken: usize) -> Option<()> {
    let keeps = act.deed.sharp.clone();
    match name {
        "config" if reads_config(words, sub) => {
            act.deed.reach = Reach::Looks;
            return Some(());
        }
        "help" => {
            act.deed.reach = Reach::Looks;
            if words[sub..]
                .iter()
                .any(|word| matches!(&word.text[..], "-w" | "--web" | "-i" | "--info" | "-m" | "--man"))
            {
                act.sharp(sub, "it starts a viewer");
            }
            return Some(());
        }
        _ => {}
    }
    if let Some((_, why)) = SHARP.iter().find(|(own, _)| *own == name) {
        // What is set must be spelled, not just that something is.
        let at =
            if name == "config" { (sub + 1).min(words.len() - 1)..words.len() } else { sub + taken - 1..sub + taken };
        for at in at {
            act.sharp(at, *why);
        }
        if matches!(name, "bisect run" | "submodule foreach") && words.len() > sub + taken {
            runs_rest(act, &words[sub + taken..]);
        }
        return Some(());
    }
    let table = LOOKING.iter().chain(&CHANGING).find(|table| table.is_named(name))?;
    let options = act.judge(table, words, sub + taken);
    if !keeps.is_empty() {
        act.deed.reach = Reach::Anything;
    }
    by_operands(act, words, name, &options);
    Some(())
}

fn runs_rest(act: &mut Act, rest: &[Word]) {
    let start = rest.iter().position(|word| !word.text.starts_with('-')).unwrap_or(0);
    let rest = &rest[start..];
    if rest.len() == 1 && rest[0].text.contains(' ') {
        act.inner.push(Inner::Text(rest[0].text.clone()));
    } else {
        act.inner.push(Inner::Own(rest.to_vec()));
    }
}

/// `git config` with nothing that sets: one name, or a reading form.
fn reads_config(words: &[Word], sub: usize) -> bool {
    let mut reads = false;
    let mut operands = 0;
    for word in &words[sub + 1..] {
        let Some(text) = word.value() else { return false };
        match text {
            "-l" | "--list" | "--get" | "--get-all" | "--get-regexp" | "--get-urlmatch" | "get" | "list" => {
                reads = true
            }
            "--global" | "--local" | "--system" | "--worktree" | "--show-origin" | "--show-scope" | "--name-only"
            | "-z" | "--null" | "--bool" | "--int" | "--path" | "--includes" | "--no-includes" | "--all"
            | "--regexp" => {}
            text if text.starts_with('-') && !text.starts_with("--type=") && !text.starts_with("--default=") => {
                return false;
            }
            text if text.starts_with('-') => {}
            "set" | "unset" | "edit" | "rename-section" | "remove-section" => return false,
            _ => operands += 1,
        }
    }
    reads && operands <= 3 || operands == 1
}

fn by_operands(act: &mut Act, words: &[Word], name: &str, options: &Options) {
    let operands = &options.operands[..];
    let first = operands.first().map_or("", |at| &words[*at].text[..]);
    match name {
        "diff" if options.has(&["--no-index"]) || operands.len() == 2 && first.starts_with(['/', '.', '~']) => {
            act.files(FileHow::Read, operands);
        }
        "branch" | "tag" => names_branches(act, options),
        // A further word would be a subcommand that is not known.
        "stash" | "notes" | "bisect" | "remote" if !first.is_empty() => {
            act.sharp(operands[0], format!("`git {name} {first}` is not known here"));
        }
        "fetch" | "pull" | "push" | "clone" | "ls-remote" => addresses(act, words, name, options),
        "worktree add" | "worktree move" => {
            if let Some(at) = operands.first().copied() {
                act.file(FileHow::Write, &words[at]);
                if !act.place.holds(&words[at]) {
                    act.sharp(at, "the new tree lies outside of the folder");
                }
            }
        }
        "clean" => act.file(FileHow::Delete, &Word::known(".")),
        "mv" | "rm" => act.files(FileHow::Write, operands),
        "format-patch" if !options.has(&["--stdout", "o", "--output-directory"]) => {
            act.file(FileHow::Write, &Word::known("."));
        }
        "apply"
            if options.has(&["--check", "--stat", "--numstat", "--summary"])
                && !options.has(&["--apply"])
                && act.deed.sharp.is_empty()
                && act.deed.files.iter().all(|file| file.how == FileHow::Read) =>
        {
            act.deed.reach = Reach::Looks;
        }
        _ => {}
    }
    if name == "push" {
        also_forced(act, words, options);
    }
}

/// `git branch` and `git tag` without a name to make only list.
fn names_branches(act: &mut Act, options: &Options) {
    let listing = ["l", "a", "r", "n", "--list", "--all", "--remotes", "--show-current", "--contains", "--merged"];
    let changing = ["d", "D", "m", "M", "c", "C", "f", "u", "--delete", "--move", "--copy", "--force"];
    let settling = ["--set-upstream-to", "--unset-upstream", "--create-reflog"];
    let lists = options.operands.is_empty() || options.has(&listing) || options.has(&["--no-merged", "--points-at"]);
    if lists && !options.has(&changing) && !options.has(&settling) && act.deed.sharp.is_empty() {
        act.deed.reach = Reach::Looks;
    }
}

/// Where it fetches from or sends to: an address may itself be a command.
fn addresses(act: &mut Act, words: &[Word], name: &str, options: &Options) {
    for (index, at) in options.operands.iter().enumerate() {
        let text = &words[*at].text;
        if text.contains("::") || text.starts_with('-') || text.starts_with("ssh://-") {
            act.sharp(*at, format!("`{text}` may run a command instead of being an address"));
        }
        let is_address = index == 0
            && (text.contains("://") || text.contains('@') && text.contains(':') || text.starts_with(['/', '.', '~']));
        if is_address && matches!(name, "push" | "pull" | "fetch") {
            act.sharp(*at, format!("`{text}` is an address, not a remote that is set up"));
        }
    }
    if let Some(repo) = options.value(&["--repo"]).filter(|repo| repo.text.contains(':')).cloned() {
        act.doubt(format!("`{}` is an address, not a remote that is set up", repo.text));
    }
    if name == "clone" {
        let target = options.operands.get(1).map(|at| words[*at].clone());
        let from = options.operands.first().map(|at| words[*at].text.clone()).unwrap_or_default();
        let named = from.trim_end_matches('/').rsplit(['/', ':']).next().unwrap_or(".").trim_end_matches(".git");
        act.file(FileHow::Write, &target.unwrap_or_else(|| Word::known(if named.is_empty() { "." } else { named })));
    }
}

/// `git push -f`, `+branch`, as a rule that denies `git push --force` spells it.
fn also_forced(act: &mut Act, words: &[Word], options: &Options) {
    let is_plus = |at: &usize| words[*at].text.starts_with('+');
    let is_forced = options.has(&["f", "--force", "--mirror"]) || options.operands.iter().any(is_plus);
    if !is_forced {
        return;
    }
    let operands: Vec<Word> = options.operands.iter().map(|at| words[*at].clone()).collect();
    for option in ["--force", "-f"] {
        let start = [Word::known("git"), Word::known("push")];
        let option = [Word::known(option)];
        act.deed.also.push(start.iter().chain(&option).chain(&operands).cloned().collect());
        act.deed.also.push(start.iter().chain(&operands).chain(&option).cloned().collect());
    }
}
