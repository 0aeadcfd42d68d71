//! What is written down: decision records, what libraries leave out, golden logs.

use super::{Finding, Tree};
use crate::scan;

/// Lines of a decision record: one page.
const PAGE_LINES: usize = 80;

pub fn decisions(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (at, (name, text)) in tree.decisions.iter().enumerate() {
        let place = format!("docs/adr/{name}");
        let mut wrong = |what: String| findings.push(Finding::new(&place, what));
        let number = name.split('-').next().unwrap_or_default();
        if number.len() != 4 || number.parse() != Ok(at + 1) {
            wrong(format!("its number is not {:04}: records are numbered without gaps, as 0001-title.md", at + 1));
        }
        if !text.starts_with(&format!("# {}. ", at + 1)) {
            wrong(format!("does not begin with `# {}. Title`", at + 1));
        }
        for part in ["**Context.**", "**Choice.**", "**Price.**"] {
            if !text.lines().any(|line| line.starts_with(part)) {
                wrong(format!("has no paragraph that begins with `{part}`"));
            }
        }
        let lines = text.lines().count();
        if lines > PAGE_LINES {
            wrong(format!("has {lines} lines: one page is {PAGE_LINES}"));
        }
    }
    findings
}

pub fn absences(tree: &Tree) -> Vec<Finding> {
    let libraries = tree.sources.iter().filter(|source| source.path.ends_with("src/lib.rs"));
    let silent = libraries.filter(|source| {
        let header = source.text.lines().take_while(|line| line.starts_with("//!"));
        !header.collect::<String>().to_lowercase().contains("absent")
    });
    silent
        .map(|source| Finding::at(source, 1, "the `//!` header does not say what is absent (`What is absent: …`)"))
        .collect()
}

pub fn golden(tree: &Tree) -> Vec<Finding> {
    let Some(events) = tree.sources.iter().find(|source| source.path.ends_with("kernel/src/event.rs")) else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    for (at, line) in tree.golden.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        match serde_json::from_str::<serde_json::Value>(line) {
            Ok(record) => seen.extend(record["event"]["type"].as_str().map(str::to_string)),
            Err(error) => findings.push(Finding::new("tests/logs", format!("line {} of all: {error}", at + 1))),
        }
    }
    let missing = scan::variants(&events.code, "Event").into_iter().filter(|variant| !seen.contains(&snake(variant)));
    findings.extend(missing.map(|variant| {
        let what = format!("`{variant}` stands in no golden log: add a session that has one to tests/logs");
        Finding::new(events.path.display().to_string(), what)
    }));
    findings
}

fn snake(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.extend(c.to_lowercase());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::tests::{places, tree};
    use super::*;

    #[test]
    fn a_decision_record_has_number_title_and_three_parts() {
        let mut tree = tree(&[]);
        let whole = "# 1. One log\n\n**Context.** a\n\n**Choice.** b\n\n**Price.** c\n".to_string();
        tree.decisions = vec![("0001-one-log.md".into(), whole.clone())];
        assert_eq!(decisions(&tree), []);
        tree.decisions.push(("0003-gap.md".into(), whole.replace("**Price.**", "**Cost.**")));
        let long = whole.replace("# 1.", "# 3.") + &"more\n".repeat(PAGE_LINES);
        tree.decisions.push(("0003-long.md".into(), long));
        let found: Vec<_> = decisions(&tree).into_iter().map(|finding| finding.what).collect();
        let expected = [
            "its number is not 0002: records are numbered without gaps, as 0001-title.md",
            "does not begin with `# 2. Title`",
            "has no paragraph that begins with `**Price.**`",
            "has 87 lines: one page is 80",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_library_says_what_is_absent() {
        let tree = tree(&[
            ("crates/a/src/lib.rs", "//! A.\n//! What is absent: a clock.\n"),
            ("crates/b/src/lib.rs", "//! B.\n\n// absent\n"),
        ]);
        assert_eq!(places(absences(&tree)), ["crates/b/src/lib.rs:1"]);
    }

    #[test]
    fn every_event_stands_in_a_golden_log() {
        let code = "pub enum Event {\n    Opened,\n    ToolsChanged { tools: u8 },\n}\n";
        let mut tree = tree(&[("crates/kernel/src/event.rs", code)]);
        tree.golden = "{\"event\":{\"type\":\"opened\",\"step\":{\"type\":\"tools_changed\"}}}\n".into();
        let found = golden(&tree);
        assert!(found[0].what.starts_with("`ToolsChanged` stands in no golden log"), "{found:?}");
        tree.golden.push_str("{\"event\":{\"type\":\"tools_changed\"}}\n");
        assert_eq!(golden(&tree), []);
        tree.golden.push_str("{\"event\n");
        assert_eq!(places(golden(&tree)), ["tests/logs"]);
    }
}
