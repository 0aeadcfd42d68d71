//! Secrets: whatever a tool gives, the environment holds or a provider says, none is stored, told or sent.

mod common;
use common::*;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

const KEY: &str = "Zq8-model-key-4711-xyz";
const DATABASE: &str = "cOrrect/horse+battery=42";
/// Put together here, so that this file holds none.
fn token() -> String {
    format!("{}_{}", "ghp", "aB3dE5gH7jK9mN1pQ2sT4vW6xY8zA0cF1234")
}

/// Reads a file, prints the environment and a long text, then says what it saw; its own key is in it.
fn script() -> String {
    format!(
        r#"
        [[step]]
        blocks = [
          {{ tool = "read", input = {{ path = "env.sh" }} }},
          {{ tool = "bash", input = {{ command = "env; cat env.sh; cat env.sh | base64 -w0; echo {KEY}" }} }},
          {{ tool = "bash", input = {{ command = "i=0; while [ $i -lt 500 ]; do cat env.sh; i=$((i+1)); done; exit 1" }} }},
        ]

        [[step]]
        blocks = [{{ text = "The key is {KEY}, I think." }}]
        fragment = 5
        "#
    )
}

fn files_below(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.path() {
            path if path.is_dir() => files_below(&path, found),
            path => found.push(path),
        }
    }
}

fn holds(bytes: &[u8], secret: &str) -> bool {
    bytes.windows(secret.len()).any(|at| at == secret.as_bytes())
}

fn run(stage: &Stage, arguments: &[&str]) -> Told {
    let mut command = stage.command(arguments);
    command.env("ANTHROPIC_API_KEY", KEY).env("DATABASE_PASSWORD", DATABASE).env("STAGE", "production");
    told(command.output().expect("the binary runs"))
}

fn prepared() -> Stage {
    let stage = Stage::new(&script());
    stage.write(
        "env.sh",
        &format!("export GITHUB={}\nexport MODEL={KEY}\nexport DB={DATABASE}\nexport STAGE=production\n", token()),
    );
    stage
}

#[test]
fn a_secret_is_neither_stored_nor_told_nor_sent() {
    for format in ["text", "json", "events"] {
        let stage = prepared();
        let told = run(&stage, &["-p", "look", "--yes", "--output-format", format]).code(0);
        let printed = [told.out.as_bytes(), told.err.as_bytes()].concat();
        let mut files = vec![];
        files_below(&stage.home(), &mut files);
        assert!(files.iter().any(|file| file.ends_with("windlass.db")), "{files:?}");
        let scratch: Vec<&PathBuf> = files.iter().filter(|file| file.to_string_lossy().contains("scratch")).collect();
        assert_eq!(scratch.len(), 1, "{files:?}");
        for secret in [&token(), KEY, DATABASE] {
            assert!(!holds(&printed, secret), "{format}: {secret} was printed:\n{}\n{}", told.out, told.err);
            for file in &files {
                let bytes = fs::read(file).expect("it can be read");
                assert!(!holds(&bytes, secret), "{format}: {secret} is in {}", file.display());
            }
            let asked = stage.asked();
            assert!(!asked.iter().any(|body| body.contains(secret)), "{format}: {secret} was sent to the model");
        }
        let asked = stage.asked();
        let last = asked.last().expect("the model was asked");
        for mark in ["[redacted: github token]", "[redacted: ANTHROPIC_API_KEY]", "[redacted: DATABASE_PASSWORD]"] {
            assert!(last.contains(mark), "{format}: the model is not told {mark}:\n{last}");
        }
        assert!(last.contains("STAGE=production"), "an ordinary value is no secret");
        let whole = fs::read_to_string(scratch[0]).expect("it is text");
        assert_eq!(whole.matches("[redacted: github token]").count(), 500);
        let mode = |path: &Path| fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
        assert_eq!((mode(scratch[0]), mode(scratch[0].parent().expect("it lies in a folder"))), (0o600, 0o700));
        assert!(told.out.contains("The key is [redacted: ANTHROPIC_API_KEY], I think."), "{}", told.out);
    }
}

#[test]
fn a_tool_run_by_hand_and_a_prompt_left_for_a_session_tell_no_secret() {
    let stage = prepared();
    let told = run(&stage, &["tool", "run", "read", r#"{"path": "env.sh"}"#, "--json"]).code(0);
    let object: Value = serde_json::from_str(&told.out).expect("it is JSON");
    assert!(object["text"].as_str().is_some_and(|text| text.contains("GITHUB=[redacted: github token]")), "{object}");
    assert!(!told.out.contains(KEY), "{}", told.out);

    run(&stage, &["-p", "look", "--yes"]).code(0);
    run(&stage, &["send", &stage.newest(), &format!("use {KEY}")]).code(0);
    let mut files = vec![];
    files_below(&stage.home(), &mut files);
    assert!(files.iter().all(|file| !holds(&fs::read(file).expect("it can be read"), KEY)), "{files:?}");
}

#[test]
fn an_error_tells_no_secret() {
    let stage = Stage::new(HELLO);
    let told = run(&stage, &["-p", "hi", "--config", &format!("{KEY}=1")]).code(2);
    assert!(!told.err.contains(KEY) && told.err.contains("[redacted: ANTHROPIC_API_KEY]"), "{}", told.err);
}

#[test]
fn what_counts_as_a_secret_can_be_said() {
    let stage = prepared();
    stage.write("own.txt", &format!("acme_live_0123456789ab {} Xy-plain-value-7 {DATABASE}", token()));
    let read = |config: &str| {
        stage.configure(config);
        let mut command = stage.command(&["tool", "run", "read", r#"{"path": "own.txt"}"#]);
        command.env("PLAIN_THING", "Xy-plain-value-7").env("DATABASE_PASSWORD", DATABASE);
        told(command.output().expect("the binary runs")).code(0).out
    };
    let marks = "[redacted: github token]";
    assert_eq!(read(""), format!("1\tacme_live_0123456789ab {marks} Xy-plain-value-7 [redacted: DATABASE_PASSWORD]\n"));
    let more = "secrets.prefixes = [\"acme_live_\"]\nsecrets.variables = [\"PLAIN_THING\"]\nsecrets.plain = [\"DATABASE_PASSWORD\"]";
    assert_eq!(read(more), format!("1\t[redacted: token] {marks} [redacted: PLAIN_THING] {DATABASE}\n"));
    let off = read("secrets.patterns = \"off\"");
    assert_eq!(off, format!("1\tacme_live_0123456789ab {} Xy-plain-value-7 [redacted: DATABASE_PASSWORD]\n", token()));
}

#[test]
fn nothing_a_tool_or_a_model_says_steers_the_terminal() {
    let stage = Stage::new(
        r#"
        [[step]]
        blocks = [
          { tool = "bash", input = { command = 'printf "\033]0;owned\007\033[31mred\033[0m\n1%%\r99%%\rdone\n"; printf "a\342\200\256b\n"' } },
          { tool = "read", input = { path = "evil.txt" } },
        ]

        [[step]]
        blocks = [{ text = "\u001b]52;c;cm0=\u0007 over\u202eturned \u001b[2J" }]
        "#,
    );
    stage.write("evil.txt", "\x1b[8mhidden\x1b[0m\u{e0069}\u{e0067}\n");
    for format in ["text", "json", "events"] {
        let told = stage.run(&["-p", "look", "--yes", "--output-format", format]).code(0);
        for text in [&told.out, &told.err] {
            let steers = |c: char| (c.is_control() && c != '\n') || matches!(c, '\u{202e}' | '\u{e0000}'..='\u{e007f}');
            assert!(!text.contains(steers), "{format}: {text:?}");
        }
    }
    let asked = stage.asked();
    let last = asked.last().expect("the model was asked");
    for told in ["red\\ndone", "a<U+202E>b", "␛[8mhidden␛[0m<U+E0069><U+E0067>"] {
        assert!(last.contains(told), "the model is not told {told}:\n{last}");
    }
    let results = last.split_once("tool_result").map_or("", |(_, results)| results);
    assert!(!results.contains("owned") && !results.contains("99%"), "{results}");
}
