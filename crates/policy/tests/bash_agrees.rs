//! Commands as taken apart here, held against the ones that a real bash runs.
//!
//! Bash is given no folder to find programs in, so each program it would start comes to a function that tells its words.

use proptest::prelude::*;
use std::io::Write;
use std::process::{Command, Stdio};
use windlass_policy::shell::{Script, Word, WordKind, script, words};

/// Tells each text's commands, as lists of words; a text ends with an empty list, and one that bash refuses tells `!`.
const TELL: &str = r#"
command_not_found_handle() { { printf '%s\0' "$#" "$@"; } >&9; }
exec 9>&1
PATH=/nowhere
while IFS= read -r -d '' text; do
    if (eval "f() { :
$text
}") 2>/dev/null; then
        ( eval "$text"; wait ) </dev/null >/dev/null 2>/dev/null
    else
        printf '%s\0' 1 '!' >&9
    fi
    wait
    printf '0\0' >&9
done
"#;

/// What bash runs for each of `texts`.
fn run_in_bash(texts: &[String]) -> Vec<Vec<Vec<String>>> {
    let folder = tempfile();
    let mut bash = Command::new("bash")
        .args(["--norc", "--noprofile", "-c", TELL])
        .env_clear()
        // Below a folder that is not there: a random line must not be able to write to it.
        .env("HOME", "/nowhere/home")
        .env("LC_ALL", "C.UTF-8")
        .current_dir(&folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("bash starts");
    let mut input = bash.stdin.take().expect("it is piped");
    let given: String = texts.iter().flat_map(|text| [text.as_str(), "\0"]).collect();
    let writer = std::thread::spawn(move || input.write_all(given.as_bytes()).expect("bash reads"));
    let output = bash.wait_with_output().expect("bash ends");
    writer.join().expect("the writer ends");
    std::fs::remove_dir_all(&folder).expect("the folder can be removed");
    told(&String::from_utf8_lossy(&output.stdout))
}

fn tempfile() -> std::path::PathBuf {
    static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let count = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("windlass-bash-{}-{count}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder can be made");
    folder
}

fn told(output: &str) -> Vec<Vec<Vec<String>>> {
    let mut parts = output.split('\0');
    let mut texts = vec![Vec::new()];
    while let Some(count) = parts.next().and_then(|count| count.parse::<usize>().ok()) {
        if count == 0 {
            texts.push(Vec::new());
            continue;
        }
        let words = parts.by_ref().take(count).map(str::to_owned).collect();
        texts.last_mut().expect("there is one at least").push(words);
    }
    texts.pop();
    texts
}

/// Whether `ran` may be the command `listed`: words that only bash knows may be anything.
fn may_be(listed: &[Word], ran: &[String]) -> bool {
    // Of a keyword that bash may not see either, as of `time`, nothing depends.
    if listed.first().is_some_and(|word| word.text == "time") && may_be(&listed[1..], ran) {
        return true;
    }
    let exact = |word: &Word| word.kind == WordKind::Known && !word.tilde;
    match listed.iter().position(|word| !exact(word)) {
        None => listed.len() == ran.len() && listed.iter().zip(ran).all(|(word, ran)| word.text == *ran),
        Some(at) => ran.len() >= at && listed[..at].iter().zip(ran).all(|(word, ran)| word.text == *ran),
    }
}

fn complaint(text: &str, script: &Script, ran: &[Vec<String>]) -> Option<String> {
    if !script.doubts.is_empty() {
        return None;
    }
    let mut ran = ran.iter().filter(|ran| *ran != &["!"]);
    let missed = ran.find(|ran| !script.commands.iter().any(|listed| may_be(&listed.words, ran)))?;
    Some(format!("bash runs {missed:?} for {text:?}; listed are {:?}", listed(script)))
}

fn listed(script: &Script) -> Vec<Vec<&str>> {
    script.commands.iter().map(|command| command.words.iter().map(|word| word.text.as_str()).collect()).collect()
}

/// All complaints about `texts`.
fn complaints(texts: &[String]) -> Vec<String> {
    let ran = run_in_bash(texts);
    assert_eq!(ran.len(), texts.len(), "bash answers for each text");
    let judged = texts.iter().zip(&ran).filter_map(|(text, ran)| complaint(text, &script(text), ran));
    judged.collect()
}

#[test]
fn what_bash_runs_is_what_was_listed() {
    let texts: Vec<String> = include_str!("bash_lines.txt").split("\n%\n").map(str::to_owned).collect();
    assert!(texts.len() >= 150, "{}", texts.len());
    assert_eq!(complaints(&texts), Vec::<String>::new());
    let ran = run_in_bash(&texts);
    let refused = |at: &usize| ran[*at] == [["!"]] && script(&texts[*at]).doubts.is_empty();
    assert_eq!((0..texts.len()).find(refused).map(|at| &texts[at]), None, "bash refuses it");
    for (text, ran) in texts.iter().zip(&ran) {
        let Some(words) = words(text).filter(|words| words.iter().all(|word| word.value().is_some())) else { continue };
        let words: Vec<String> = words.into_iter().map(|word| word.text).collect();
        let is_builtin = !matches!(&words[0][..], "aa" | "bb" | "rm");
        assert!(is_builtin || *ran == [words], "{text}: {ran:?}");
    }
}

#[test]
fn most_of_the_lines_are_known() {
    let texts: Vec<&str> = include_str!("bash_lines.txt").split("\n%\n").collect();
    let doubted: Vec<&str> = texts.iter().copied().filter(|text| !script(text).doubts.is_empty()).collect();
    assert!(doubted.len() * 5 < texts.len(), "{doubted:#?}");
}

fn nasty() -> impl Strategy<Value = String> {
    const PARTS: [&str; 74] = [
        "aa",
        "bb",
        "aa",
        "bb",
        "cc",
        " ",
        " ",
        " ",
        " ",
        "\n",
        ";",
        "&",
        "|",
        "(",
        ")",
        "{",
        "}",
        "<",
        ">",
        "'",
        "\"",
        "\\",
        "$",
        "`",
        "#",
        "=",
        "*",
        "~",
        "EOF",
        "\nEOF\n",
        "<<EOF\n",
        "<<'EOF'\n",
        "if ",
        ";then ",
        ";fi",
        "for x in ",
        ";do ",
        ";done",
        "case ",
        " in ",
        ";;",
        "esac",
        "[[ ",
        " ]]",
        "((",
        "))",
        "$(",
        "${",
        "}",
        "! ",
        "time ",
        "x",
        ",",
        "..",
        "1",
        "-",
        "\\\n",
        "$'",
        "$x",
        "\"$x\"",
        "${x}",
        "@",
        "?",
        "[",
        "]",
        "&&",
        "||",
        ">>",
        "<(",
        "é",
        "!",
        "{a,b}",
        "x=",
        "<<<",
    ];
    proptest::collection::vec(proptest::sample::select(PARTS.to_vec()), 1..14).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn nasty_lines_are_known_or_in_doubt(texts in proptest::collection::vec(nasty(), 64)) {
        // Only what is believed to be known is given to bash: the rest could be anything.
        let known: Vec<String> = texts.into_iter().filter(|text| script(text).doubts.is_empty()).collect();
        let complaints = complaints(&known);
        prop_assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    }
}

/// Rounds of 64 lines each; more on demand, for a long search.
fn cases() -> u32 {
    option_env!("WINDLASS_BASH_ROUNDS").and_then(|rounds| rounds.parse().ok()).unwrap_or(12)
}
