//! Builders, package managers, test runners, linters, compilers, containers: anything may come of them, so their own
//! rules decide; what goes beyond the name (settings, plugins and programs given in the words) is listed.

use super::act::{Act, Inner};
use super::build_tables::TABLES;
use super::options::{Options, Taken};
use crate::deed::{FileHow, Reach};
use crate::shell::Word;

pub(super) fn judge(act: &mut Act, name: &str) -> bool {
    let words = act.deed.argv.clone();
    let Some(table) = TABLES.iter().find(|table| table.is_named(name)) else { return false };
    let options = act.judge(table, &words, 1);
    by_program(act, &words, &options, name);
    if words.len() == 2 && matches!(words[1].value(), Some("--version" | "-V" | "--help")) {
        act.deed.reach = Reach::Looks;
        act.deed.sharp.clear();
    }
    if !matches!(name, "cargo" | "cross" | "npx" | "bunx" | "uvx" | "pnpx") {
        own_settings(act, &words, &options);
    }
    elsewhere(act, &words);
    true
}

fn by_program(act: &mut Act, words: &[Word], options: &Options, name: &str) {
    runs_rest(act, words, options, name);
    match name {
        "make" | "gmake" | "bmake" => variables(act, words, options),
        "deno" | "bun" => scripts(act, words, options, name),
        "cargo" | "cross" => toolchain(act, words, options),
        "npm" | "pnpm" | "yarn" => packages(act, words, options, name),
        "cmake" | "gradle" | "gradlew" | "mvn" | "mvnw" => definitions(act, words),
        "pytest" | "py.test" => {
            let leaves_out = |taken: &&Taken| taken.value.as_ref().is_some_and(|value| value.text.starts_with("no:"));
            for taken in options.taken.iter().filter(|taken| taken.name == "p").filter(leaves_out) {
                act.deed.sharp.retain(|sharp| sharp.at != taken.at);
            }
            reports(act, words, options);
        }
        "rustc" => {
            linked(act, options, &["C", "--codegen"], &["link", "plugin", "profile"]);
            for (at, word) in words.iter().enumerate().filter(|(_, word)| word.text.starts_with('@')) {
                act.sharp(at, format!("`{}` brings options of its own", word.text));
            }
        }
        "rails" | "mix" | "rake" => {
            let runs =
                |at: &usize| matches!(&words[*at].text[..], "runner" | "r" | "eval" | "console" | "c" | "dbconsole");
            if let Some(at) = options.operands.first().copied().filter(runs) {
                act.sharp(at, format!("`{name} {}` runs code given in the words", words[at].text));
            }
            if let Some(at) = words.iter().position(|word| word.text == "-e" || word.text.starts_with("--eval")) {
                act.sharp(at, format!("`{}` runs code", words[at].text));
            }
        }
        "pip" | "pip3" => {
            if let Some(at) = words.iter().position(|word| word.text == "config") {
                act.sharp(at, "it sets what pip does later");
            }
        }
        "go" => go(act, words, options),
        "kubectl" | "oc" | "helm" => {
            for (at, word) in words.iter().enumerate().filter(|(_, word)| word.text.contains("://")) {
                act.sharp(at, format!("`{}` comes from elsewhere", word.text));
            }
        }
        "gcc" | "g++" | "cc" | "c++" | "clang" | "clang++" => compiler(act, words),
        _ => {}
    }
}

/// `uv run X`, `bundle exec X`: what `X` does with its words counts as if it stood there alone.
fn runs_rest(act: &mut Act, words: &[Word], options: &Options, name: &str) {
    let mut operands = options.operands.iter().copied();
    let (Some(first), Some(next)) = (operands.next(), operands.next()) else { return };
    let runs = match name {
        "uv" | "poetry" | "pdm" | "hatch" | "pipenv" | "rye" | "pipx" => "run",
        "bundle" | "npm" | "pnpm" | "yarn" => "exec",
        _ => return,
    };
    if words[first].text == runs && !words[first + 1..next].iter().any(|word| word.text.starts_with("-m")) {
        act.inner.push(Inner::Folded(next));
    }
}

/// Options of these names are sharp where their value may choose the linker.
fn linked(act: &mut Act, options: &Options, names: &[&str], dares: &[&str]) {
    for taken in options.taken.iter().filter(|taken| names.contains(&taken.name)) {
        if taken.value.as_ref().is_none_or(|value| dares.iter().any(|dare| value.text.contains(dare))) {
            act.sharp(taken.at, "it decides which linker runs, or with what");
        }
    }
}

fn go(act: &mut Act, words: &[Word], options: &Options) {
    linked(act, options, &["-ldflags", "-gcflags"], &["ext", "tool", "linkmode"]);
    let Some(first) = options.operands.first().copied() else { return };
    let sets = words.iter().position(|word| matches!(&word.text[..], "-w" | "-u" | "--w" | "--u"));
    match &words[first].text[..] {
        "version" | "list" | "doc" | "help" if act.deed.sharp.is_empty() => act.deed.reach = Reach::Looks,
        "env" => match sets {
            Some(at) => act.sharp(at, "it sets what go does later"),
            None => act.deed.reach = Reach::Looks,
        },
        _ => {}
    }
}

fn scripts(act: &mut Act, words: &[Word], options: &Options, name: &str) {
    let runs = |at: &usize| matches!(&words[*at].text[..], "eval" | "repl" | "x" | "install");
    if let Some(at) = options.operands.first().copied().filter(runs) {
        act.sharp(at, format!("`{name} {}` runs code that its words or others hold", words[at].text));
    }
    let inline = ["-e", "--eval", "-p", "--print", "-pe", "-r", "--preload"];
    for (at, word) in words.iter().enumerate().skip(1).take_while(|(_, word)| word.text != "--") {
        let name = word.text.split_once('=').map_or(&word.text[..], |(name, _)| name);
        if inline.contains(&name) {
            act.sharp(at, format!("`{name}` runs code"));
        }
    }
}

/// Settings that lie in the folder are as good as those it would find there by itself.
fn own_settings(act: &mut Act, words: &[Word], options: &Options) {
    let names = [
        "c",
        "--config",
        "--config-file",
        "--configfile",
        "--rcfile",
        "--configuration",
        "--settings-path",
        "--config-path",
    ];
    for taken in options.taken.iter().filter(|taken| names.contains(&taken.name)) {
        let is_own = match &taken.value {
            Some(value) => !value.text.contains(['=', '{', '"', ':']) && act.place.holds(value),
            None => words[taken.at].text.starts_with("-c"),
        };
        if is_own {
            act.deed.sharp.retain(|sharp| sharp.at != taken.at);
        }
    }
}

/// `-DNAME=value` of builders that run on a virtual machine, or on cmake's lists.
fn definitions(act: &mut Act, words: &[Word]) {
    let dares = [
        "exec",
        "argline",
        "agent",
        "repo",
        "jvm",
        "java",
        "ext",
        "script",
        "settings",
        "url",
        "plugin",
        "compiler",
        "launcher",
        "include",
        "toolchain",
        "command",
        "program",
        "linker",
        "path",
        "rule_",
    ];
    for (at, word) in words.iter().enumerate().skip(1) {
        let text = match word.text.strip_prefix("-D").or_else(|| word.text.strip_prefix("-P")) {
            Some("") => words.get(at + 1).map_or("", |next| &next.text[..]),
            Some(rest) => rest,
            None => continue,
        };
        let (name, value) = text.split_once('=').unwrap_or((text, ""));
        let is_switch =
            matches!(&value.to_ascii_uppercase()[..], "ON" | "OFF" | "TRUE" | "FALSE" | "YES" | "NO" | "1" | "0");
        let name = name.to_ascii_lowercase();
        if !is_switch && dares.iter().any(|dare| name.contains(dare)) || value.contains(['/', '`', '$', ';']) {
            act.sharp(at, format!("`{text}` may decide what it runs"));
        }
    }
}

/// Assignments among the targets of make decide what its recipes run.
fn variables(act: &mut Act, words: &[Word], options: &Options) {
    for at in &options.operands {
        let Some((name, _)) = words[*at].text.split_once('=') else { continue };
        let name = name.trim_end_matches([':', '+', '?', '!']);
        let harmless = [
            "V", "VERBOSE", "DEBUG", "PORT", "ARGS", "TEST", "TESTS", "TARGET", "VERSION", "ENV", "RELEASE",
            "NODE_ENV", "CI",
        ];
        if !harmless.contains(&name) || words[*at].text.contains(['`', '$', ';', '|', '&']) {
            act.sharp(*at, format!("`{name}` may decide what its recipes run"));
        }
    }
}

/// Reports that are written where they are told, and files of further options.
fn reports(act: &mut Act, words: &[Word], options: &Options) {
    for taken in options.taken.iter().filter(|taken| taken.name == "--cov-report") {
        let path = taken.value.as_ref().and_then(|value| value.text.split_once(':')).map(|(_, path)| path.to_string());
        if let Some(path) = path {
            act.file(FileHow::Edit, &Word { text: path, ..taken.value.clone().unwrap_or_default() });
        }
    }
    for (at, word) in words.iter().enumerate().filter(|(_, word)| word.text.starts_with('@')) {
        act.sharp(at, format!("`{}` brings options of its own", word.text));
    }
}

/// `cargo +toolchain` runs another one; `cargo install`, `cargo publish` have rules of their own.
fn toolchain(act: &mut Act, words: &[Word], options: &Options) {
    if let Some(at) = words.iter().position(|word| word.text.contains("linker=") || word.text.contains("link-arg")) {
        act.sharp(at, "it decides which linker runs, or with what");
    }
    if let Some(at) = words.iter().position(|word| word.text.starts_with("--logfile")) {
        act.sharp(at, "it writes a file");
    }
    let Some(first) = options.operands.first().copied() else { return };
    if matches!(&words[first].text[..], "new" | "init" | "vendor")
        && let Some(at) = options.operands.get(1).copied().filter(|at| !act.place.holds(&words[*at]))
    {
        act.sharp(at, format!("it makes `{}`, which leads outside of the folder", words[at].text));
    }
    if words[first].text.starts_with('+') {
        let known = matches!(&words[first].text[..], "+nightly" | "+stable" | "+beta");
        if !known {
            act.sharp(first, format!("`{}` is another toolchain", words[first].text));
        }
        act.deed.also.push([&words[..first], &words[first + 1..]].concat());
    }
    let looks = [
        "metadata",
        "tree",
        "search",
        "locate-project",
        "pkgid",
        "verify-project",
        "read-manifest",
        "help",
        "version",
        "info",
    ];
    if looks.contains(&&words[first].text[..]) && act.deed.sharp.is_empty() {
        act.deed.net = matches!(&words[first].text[..], "search" | "info" | "metadata" | "tree");
        act.deed.reach = Reach::Looks;
    }
    if let Some(at) = options.taken.iter().find(|taken| taken.name == "Z").map(|taken| taken.at) {
        act.sharp(at, "`-Z` turns on what is not stable");
    }
}

fn packages(act: &mut Act, words: &[Word], options: &Options, name: &str) {
    let Some(first) = options.operands.first().copied() else { return };
    let looks = [
        "ls", "list", "view", "info", "outdated", "why", "explain", "root", "prefix", "bin", "ping", "whoami",
        "search", "help", "licenses",
    ];
    if looks.contains(&&words[first].text[..]) && act.deed.sharp.is_empty() {
        act.deed.net = true;
        act.deed.reach = Reach::Looks;
    }
    let changes =
        matches!(&words[first].text[..], "install" | "i" | "add" | "link" | "ln" | "update" | "up" | "uninstall");
    let is_global = |word: &Word| matches!(&word.text[..], "-g" | "--global") || word.text == "--location=global";
    if let Some(at) = words.iter().position(is_global).filter(|_| changes) {
        act.sharp(at, "it changes what is installed for all projects");
    }
    if words[first].text == "global" {
        act.sharp(first, "it changes what is installed for all projects");
    }
    if matches!(&words[first].text[..], "pkg" | "set-script" | "explore" | "edit") {
        act.sharp(first, "it changes what scripts run, or runs a command");
    }
    if matches!(&words[first].text[..], "config" | "set" | "c") && options.operands.len() > 1 {
        let at = options.operands[1];
        if matches!(&words[at].text[..], "set" | "delete" | "edit") || words[first].text == "set" {
            act.sharp(at, format!("it sets what {name} does later"));
        }
    }
}

/// A compiler's words that write, or name its own programs.
fn compiler(act: &mut Act, words: &[Word]) {
    for (at, word) in words.iter().enumerate().skip(1) {
        let text = &word.text[..];
        if text.starts_with('@')
            || text.starts_with("-Wl,") && text.contains("plugin")
            || text.starts_with("-fplugin")
            || text.starts_with("-wrapper")
            || text.starts_with("-B")
        {
            act.sharp(at, format!("`{text}` brings options or programs of its own"));
        }
        if text == "-o"
            && let Some(out) = words.get(at + 1)
        {
            act.file(FileHow::Write, out);
        }
    }
    act.deed.reach = Reach::Anything;
}

/// A project that lies outside is not the one the rules are about.
fn elsewhere(act: &mut Act, words: &[Word]) {
    let names = [
        "--manifest-path",
        "--path",
        "--project",
        "--project-dir",
        "--prefix",
        "--cwd",
        "--dir",
        "-C",
        "-S",
        "-B",
        "--build",
        "-p",
        "--package-path",
        "--directory",
    ];
    for (at, word) in words.iter().enumerate().skip(1).take_while(|(_, word)| word.text != "--") {
        let (name, stuck) =
            word.text.split_once('=').map_or((&word.text[..], None), |(name, value)| (name, Some(value)));
        let stuck = stuck.or_else(|| word.text.strip_prefix("-C").filter(|rest| !rest.is_empty()));
        let name = if name.starts_with("-C") { "-C" } else { name };
        if !names.contains(&name) {
            continue;
        }
        let value = stuck.map(Word::known).or_else(|| words.get(at + 1).cloned());
        if value.is_some_and(|value| !act.place.holds(&value)) {
            act.sharp(at, format!("`{name}` leads outside of the folder"));
        }
    }
}
