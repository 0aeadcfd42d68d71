//! The examples of SCRIPT.md are scripts, and its tables name every key there is.

use windlass_mock::Script;

const TEXT: &str = include_str!("../SCRIPT.md");

#[test]
fn every_example_parses() {
    let examples: Vec<&str> = TEXT.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert_eq!(examples.len(), 4);
    for example in examples {
        Script::parse(example).unwrap_or_else(|e| panic!("{e}\n{example}"));
    }
}

/// The keys that the parser names when it meets an unknown one in `script`.
fn keys(script: &str) -> Vec<String> {
    let error = Script::parse(script).unwrap_err().message;
    let (_, keys) = error.split_once(", expected ").unwrap_or_else(|| panic!("{error}"));
    keys.trim_start_matches("one of ")
        .replace(" or ", ", ")
        .split(", ")
        .map(|key| key.trim_matches('`').to_string())
        .collect()
}

#[test]
fn every_key_is_described() {
    let top = keys("odd = 1");
    let step = keys("[[step]]\nodd = 1");
    let condition = keys("[[step]]\nwhen = { odd = 1 }");
    let block = keys("[[step]]\nblocks = [{ odd = 1 }]");
    let place = keys("[[step]]\ncut = { odd = 1 }");
    let usage = keys("[[step]]\nusage = { odd = 1 }");
    let garble = keys("[[step]]\nblocks = []\ngarble = { odd = 1 }");
    let conversation = keys("[[conversation]]\nodd = 1");
    for key in [top, step, condition, block, place, usage, garble, conversation].into_iter().flatten() {
        let written =
            [format!("`{key}"), format!("[{key}]"), format!(".{key}"), format!(" {key} ="), format!("{{ {key}")];
        assert!(written.iter().any(|form| TEXT.contains(form)), "SCRIPT.md does not describe `{key}`");
    }
}
