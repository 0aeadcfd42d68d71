//! Names that say nothing: of types, modules and files.

use super::{Finding, Tree};

const BANNED: [&str; 8] = ["manager", "service", "handler", "helper", "util", "engine", "orchestrator", "processor"];

/// What a name stands behind where it is given.
const GIVEN: [&str; 6] = ["struct ", "enum ", "trait ", "type ", "mod ", "union "];

pub fn banned(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in &tree.sources {
        for part in source.path.with_extension("").iter().map(|part| part.to_string_lossy()) {
            let what = banned_word(&part).map(|word| format!("the name says `{word}`: say what it does instead"));
            findings.extend(what.map(|what| Finding::new(source.path.display().to_string(), what)));
        }
        for (line, code) in source.code.lines().enumerate() {
            let Some(name) = given(code) else { continue };
            if name == "Context" && !code.trim_start().starts_with("mod ") {
                findings.push(Finding::at(source, line + 1, "`Context` alone: context of what?"));
            }
            let what = banned_word(name).map(|word| format!("`{name}` says `{word}`: say what it does instead"));
            findings.extend(what.map(|what| Finding::at(source, line + 1, what)));
        }
    }
    findings
}

/// The name that a line of code gives to a type or module.
fn given(code: &str) -> Option<&str> {
    let mut code = code.trim_start();
    if let Some(rest) = code.strip_prefix("pub") {
        code = match rest.strip_prefix('(') {
            Some(rest) => rest.split_once(')')?.1.trim_start(),
            None => rest.trim_start(),
        };
    }
    let name = GIVEN.iter().find_map(|word| code.strip_prefix(word))?;
    name.split(|c: char| !c.is_alphanumeric() && c != '_').next().filter(|name| !name.is_empty())
}

/// The banned word that a name in any case holds, alone or in the plural.
fn banned_word(name: &str) -> Option<&'static str> {
    let words = words(name);
    BANNED.into_iter().find(|banned| words.iter().any(|word| word.strip_suffix('s').unwrap_or(word) == *banned))
}

/// `ToolRun` and `tool_run` are made of `tool` and `run`.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for c in name.chars() {
        if c == '_' || c == '-' || c.is_uppercase() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| c.is_alphanumeric()) {
            word.extend(c.to_lowercase());
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::super::tests::{places, tree};
    use super::*;

    #[test]
    fn types_modules_and_files_are_named_for_what_they_do() {
        let tree = tree(&[
            ("crates/x/src/tool_utils.rs", ""),
            ("crates/x/src/a.rs", "pub(crate) struct SessionManager;\nmod helpers;\nstruct ServiceTier;\n"),
            ("crates/x/src/b.rs", "use hyper::service::service_fn;\nstruct Managed;\nenum Processing {}\n"),
            ("crates/x/src/c.rs", "struct Context<'a>(&'a str);\nstruct RunContext;\n"),
        ]);
        let a = "crates/x/src/a.rs";
        let expected = [
            "crates/x/src/tool_utils.rs".into(),
            format!("{a}:1"),
            format!("{a}:2"),
            format!("{a}:3"),
            "crates/x/src/c.rs:1".into(),
        ];
        assert_eq!(places(banned(&tree)), expected);
    }
}
