//! What no line of the code may do, by crate.

use super::{Finding, Tree};
use crate::scan::{Source, has_word};

const PURE: [&str; 2] = ["kernel", "policy"];

/// Words of I/O, clocks, chance and waiting.
const ACTS: [&str; 18] = [
    "std::fs",
    "std::net",
    "std::env",
    "std::process",
    "std::thread",
    "std::io",
    "std::os",
    "SystemTime",
    "Instant",
    "tokio",
    "async fn",
    ".await",
    "rand",
    "new_v4",
    "now_v7",
    "println!",
    "eprintln!",
    "Command::new",
];

/// Packages that a person starts: they read what surrounds them and pass it in.
const OUTERMOST: [&str; 2] = ["cli", "xtask"];

/// What surrounds a process.
const AMBIENT: [&str; 12] = [
    "env::var",
    "env::var_os",
    "env::vars",
    "env::vars_os",
    "env::args",
    "env::args_os",
    "env::current_dir",
    "env::home_dir",
    "env::temp_dir",
    "env::current_exe",
    "env::set_var",
    "env::set_current_dir",
];

/// Files that may fold an event into state: the one door, and where a log is read again.
const APPLY_DOOR: [(&str, &str); 5] = [
    ("crates/kernel/src/apply/", "the fold itself"),
    ("crates/kernel/src/state.rs", "folds a whole log"),
    ("crates/runtime/src/draft.rs", "the batch that is being recorded"),
    ("crates/runtime/src/replay.rs", "replays a log"),
    ("xtask/src/sim/", "the simulated runtime"),
];

/// Files that may hold unsafe code, and why.
const UNSAFE: [(&str, &str); 3] = [
    ("crates/wasm/src/cache.rs", "takes compiled components back from the disk"),
    ("crates/sandbox/src/raw.rs", "system calls that have no safe form: forks, flags of mounts, blocked descriptors"),
    ("crates/tools/src/launch.rs", "arms the death signal of a child between fork and exec"),
];

/// Lines of `source` outside tests that hold one of `words`.
fn lines_with<'a>(source: &'a Source, words: &'a [&'a str]) -> impl Iterator<Item = (usize, &'a str)> {
    source.lines().filter_map(|(line, code)| Some((line, *words.iter().find(|word| has_word(code, word))?)))
}

fn is_under(source: &Source, places: &[(&str, &str)]) -> bool {
    let path = source.path.to_string_lossy();
    places.iter().any(|(place, _)| path.starts_with(place))
}

pub fn pure_crates(tree: &Tree) -> Vec<Finding> {
    let pure = tree.sources.iter().filter(|source| PURE.contains(&source.package().as_str()));
    pure.flat_map(|source| {
        lines_with(source, &ACTS).map(move |(line, word)| {
            let what = format!("`{word}` in a pure crate: let the value come in with an event or an argument");
            Finding::at(source, line, what)
        })
    })
    .collect()
}

pub fn ambient(tree: &Tree) -> Vec<Finding> {
    let libraries = tree.sources.iter().filter(|source| {
        let started = source.path.ends_with("src/main.rs") || source.path.ends_with("build.rs");
        !started && !OUTERMOST.contains(&source.package().as_str())
    });
    libraries
        .flat_map(|source| {
            lines_with(source, &AMBIENT).map(move |(line, word)| {
                Finding::at(source, line, format!("a library reads `{word}`: let its caller pass the value in"))
            })
        })
        .collect()
}

pub fn apply_door(tree: &Tree) -> Vec<Finding> {
    let outside = tree.sources.iter().filter(|source| !is_under(source, &APPLY_DOOR));
    let outside = outside.filter(|source| !source.path.ends_with("src/tidy/purity.rs"));
    outside
        .flat_map(|source| {
            let calls =
                source.lines().filter(|(_, code)| ["state.apply(", "State::apply("].iter().any(|c| code.contains(c)));
            calls.map(move |(line, _)| {
                let what = "applies an event to the state: record it instead, or replay with `State::fold`";
                Finding::at(source, line, what)
            })
        })
        .collect()
}

pub fn unsafe_code(tree: &Tree) -> Vec<Finding> {
    let sources = tree.sources.iter().filter(|source| !is_under(source, &UNSAFE));
    sources
        .flat_map(|source| {
            let lines = source.code.lines().enumerate().filter(|(_, code)| has_word(code, "unsafe"));
            lines.map(move |(line, _)| {
                Finding::at(source, line + 1, "unsafe code: find a safe way, or add the file to the list with a reason")
            })
        })
        .collect()
}

pub fn undone(tree: &Tree) -> Vec<Finding> {
    let in_code = ["todo!", "unimplemented!", "dbg!", "#[ignore"];
    // Put together, so that this line is not one of them.
    let in_prose = [concat!("FIX", "ME"), concat!("TO", "DO"), concat!("XX", "X")];
    let mut findings = Vec::new();
    for source in &tree.sources {
        for (line, (code, prose)) in source.code.lines().zip(source.prose.lines()).enumerate() {
            let left = in_code.iter().find(|word| code.contains(*word));
            let left = left.or_else(|| in_prose.iter().find(|word| has_word(prose, word)));
            findings
                .extend(left.map(|word| Finding::at(source, line + 1, format!("`{word}`: do it, or leave it out"))));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::tests::{places, tree};
    use super::*;

    #[test]
    fn a_pure_crate_reads_no_clock_and_no_file() {
        let tree = tree(&[
            ("crates/kernel/src/next.rs", "// std::fs in words\nfn now() { SystemTime::now() }\n"),
            ("crates/policy/src/lib.rs", "use std::fs;\n#[cfg(test)]\nmod tests {\n use std::fs;\n}\n"),
            ("crates/store/src/lib.rs", "use std::fs;\n"),
        ]);
        assert_eq!(places(pure_crates(&tree)), ["crates/kernel/src/next.rs:2", "crates/policy/src/lib.rs:1"]);
    }

    #[test]
    fn a_library_reads_no_environment() {
        let line = "let home = std::env::var(\"HOME\");\n";
        let tree = tree(&[
            ("crates/llm/src/http.rs", line),
            ("crates/tools/src/ls.rs", "let here = env::current_dir();\n"),
            (
                "crates/tools/src/launch.rs",
                "command.current_dir(folder).env(\"A\", \"B\");\nenv!(\"CARGO_PKG_VERSION\");\n",
            ),
            ("crates/cli/src/main.rs", line),
            ("crates/llm/tests/live.rs", line),
            ("crates/mock/src/main.rs", line),
        ]);
        assert_eq!(places(ambient(&tree)), ["crates/llm/src/http.rs:1", "crates/tools/src/ls.rs:1"]);
    }

    #[test]
    fn only_the_door_applies() {
        let line = "self.state.apply(&record);\n";
        let tree = tree(&[
            ("crates/runtime/src/draft.rs", line),
            ("crates/runtime/src/hands.rs", line),
            ("crates/runtime/src/patch.rs", "patch.apply(text);\n"),
        ]);
        assert_eq!(places(apply_door(&tree)), ["crates/runtime/src/hands.rs:1"]);
    }

    #[test]
    fn unsafe_code_is_found_in_tests_too() {
        let tree = tree(&[("crates/tools/tests/bash.rs", "fn a() {\n    unsafe { b() }\n}\n// unsafe in words\n")]);
        assert_eq!(places(unsafe_code(&tree)), ["crates/tools/tests/bash.rs:2"]);
    }

    #[test]
    fn what_is_left_undone_is_found() {
        let note = format!("// {}: later\n", concat!("FIX", "ME"));
        let text = format!("todo!();\nlet a = \"todo!\";\n{note}#[ignore]\nfn b() {{}}\n");
        let tree = tree(&[("crates/llm/src/sse.rs", &text)]);
        let place = "crates/llm/src/sse.rs";
        assert_eq!(places(undone(&tree)), [format!("{place}:1"), format!("{place}:3"), format!("{place}:4")]);
    }
}
