//! `cargo xtask tidy`: the invariants of the house that a program can check, and where it gets crowded.

mod boundary;
mod names;
mod paper;
mod purity;
mod size;

use crate::project::{self, Project};
use crate::scan::Source;
use anyhow::{Result, bail};
use std::path::{Path, PathBuf};

/// What is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub place: String,
    pub what: String,
}

impl Finding {
    pub fn new(place: impl Into<String>, what: impl Into<String>) -> Finding {
        Finding { place: place.into(), what: what.into() }
    }

    pub fn at(source: &Source, line: usize, what: impl Into<String>) -> Finding {
        Finding::new(format!("{}:{line}", source.path.display()), what)
    }
}

/// The checkout as the checks see it.
pub struct Tree {
    pub sources: Vec<Source>,
    /// The lock file's text.
    pub lock: String,
    /// What `cargo metadata` says of each package of the workspace.
    pub packages: Vec<boundary::Package>,
    /// Decision records: file name and text.
    pub decisions: Vec<(String, String)>,
    /// Golden logs, whole.
    pub golden: String,
}

impl Tree {
    fn read(project: &Project) -> Result<Tree> {
        let mut texts = Vec::new();
        for path in rust_files(project)? {
            texts.push((project.relative(&path).to_path_buf(), project::read(&path)?));
        }
        let mut decisions = Vec::new();
        for path in project::files(&project.root.join("docs/adr"), &["md"])? {
            decisions.push((file_name(&path), project::read(&path)?));
        }
        let mut golden = String::new();
        for path in project::files(&project.root.join("tests/logs"), &["jsonl"])? {
            golden.push_str(&project::read(&path)?);
        }
        let lock = project::read(&project.root.join("Cargo.lock"))?;
        let packages = boundary::packages(project)?;
        Ok(Tree { sources: sources(texts), lock, packages, decisions, golden })
    }
}

/// All of the project's Rust files.
pub fn rust_files(project: &Project) -> Result<Vec<PathBuf>> {
    let mut found = project::files(&project.root.join("crates"), &["rs"])?;
    found.extend(project::files(&project.root.join("xtask"), &["rs"])?);
    Ok(found)
}

/// Reads sources and carries `#[cfg(test)] mod name;` over to the files it names.
pub fn sources(texts: Vec<(PathBuf, String)>) -> Vec<Source> {
    let mut sources: Vec<Source> = texts.into_iter().map(|(path, text)| Source::new(path, text)).collect();
    let mut marked = Vec::new();
    for source in &sources {
        let stem = source.path.file_stem().unwrap_or_default();
        let beside = source.path.parent().unwrap_or(Path::new(""));
        let own = ["lib", "main", "mod"].iter().any(|name| stem == *name);
        let folder = if own { beside.to_path_buf() } else { beside.join(stem) };
        marked.extend(source.test_modules().into_iter().map(|module| folder.join(module)));
    }
    for source in &mut sources {
        if marked.iter().any(|module| source.path.with_extension("") == *module || source.path.starts_with(module)) {
            source.mark_test();
        }
    }
    sources
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

type Check = (&'static str, fn(&Tree) -> Vec<Finding>);

const CHECKS: [Check; 13] = [
    ("dependencies point down, neighbours never meet", boundary::directions),
    ("no second TLS in Cargo.lock", boundary::banned_crates),
    ("kernel and policy are pure", purity::pure_crates),
    ("libraries read no environment, home or folder", purity::ambient),
    ("state is applied at its door only", purity::apply_door),
    ("no unsafe code", purity::unsafe_code),
    ("nothing left undone, no test switched off", purity::undone),
    ("no name that says nothing", names::banned),
    ("files and functions fit", size::limits),
    ("decision records have the form", paper::decisions),
    ("every library says what is absent", paper::absences),
    ("every event stands in a golden log", paper::golden),
    ("no allowance that nothing needs", size::allowances),
];

pub fn run(args: &[String]) -> Result<()> {
    crate::flags::Flags::new("tidy", args).end("no arguments")?;
    let tree = Tree::read(&Project::find()?)?;
    size::print(&tree);
    println!();
    let mut bad = 0;
    for (name, check) in CHECKS {
        let findings = check(&tree);
        println!("{} {name}", if findings.is_empty() { "ok  " } else { "FAIL" });
        for finding in &findings {
            println!("     {}: {}", finding.place, finding.what);
        }
        bad += usize::from(!findings.is_empty());
    }
    println!("{} of {} checks hold", CHECKS.len() - bad, CHECKS.len());
    if bad > 0 {
        bail!("tidy: {bad} of {} checks fail", CHECKS.len());
    }
    Ok(())
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A tree of the files given, and nothing else.
    pub fn tree(files: &[(&str, &str)]) -> Tree {
        let texts = files.iter().map(|(path, text)| (PathBuf::from(path), text.to_string())).collect();
        let (lock, golden) = (String::new(), String::new());
        Tree { sources: sources(texts), lock, packages: Vec::new(), decisions: Vec::new(), golden }
    }

    /// Where a check finds something.
    pub fn places(findings: Vec<Finding>) -> Vec<String> {
        findings.into_iter().map(|finding| finding.place).collect()
    }

    #[test]
    fn a_module_declared_for_tests_is_test_code_in_its_own_file() {
        let tree = tree(&[
            ("crates/x/src/a.rs", "#[cfg(test)]\nmod story;\n"),
            ("crates/x/src/a/story.rs", "fn told() {}"),
            ("crates/x/src/b.rs", "fn told() {}"),
        ]);
        let counts: Vec<_> = tree.sources.iter().map(|source| source.functions().len()).collect();
        assert_eq!(counts, [0, 0, 1]);
    }
}
