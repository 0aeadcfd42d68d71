//! `cargo xtask spec`: every numbered requirement with the tests named after it, and how they fare.

mod outcome;

use crate::flags::Flags;
use crate::project::{self, Project};
use crate::tidy;
use anyhow::{Result, bail};
use outcome::Outcomes;
use std::collections::BTreeMap;

/// Every requirement: its id and, in our own words, what it wants.
const IDS: &str = include_str!("ids.txt");

/// Number of the document, number within it.
type Id = (u32, u32);

/// A test named after requirements.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Test {
    name: String,
    file: String,
}

/// How a requirement stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Standing {
    Passed,
    Failed,
    Missing,
    /// It has tests, and they were not run.
    Listed,
}

pub fn run(args: &[String]) -> Result<()> {
    let mut flags = Flags::new("spec", args);
    let list = flags.has("--list");
    flags.end("--list")?;
    let project = Project::find()?;
    let tests = find(&project)?;
    let outcomes = if list { None } else { Some(outcome::run(&project)?) };
    let mut totals: BTreeMap<u32, BTreeMap<Standing, usize>> = BTreeMap::new();
    for (id, title) in requirements() {
        let named = tests.get(&id).map_or(&[][..], Vec::as_slice);
        let standing = standing(named, outcomes.as_ref());
        *totals.entry(id.0).or_default().entry(standing).or_default() += 1;
        println!("{} {} {title}", shown(id), word(standing));
        for test in named {
            println!("               {} ({})", test.name, test.file);
        }
    }
    println!();
    totals.iter().for_each(|(document, counts)| println!("{}", total(*document, counts)));
    let unknown: Vec<String> = unknown(&tests);
    if !unknown.is_empty() {
        bail!("no requirement has the number of {}", unknown.join(", "));
    }
    let failed: usize = totals.values().filter_map(|counts| counts.get(&Standing::Failed)).sum();
    if failed > 0 {
        bail!("spec: {failed} requirements have a test that fails");
    }
    Ok(())
}

fn requirements() -> impl Iterator<Item = (Id, &'static str)> {
    IDS.lines().filter_map(|line| {
        let (id, title) = line.split_once(' ')?;
        let (document, number) = id.strip_prefix('S')?.split_once('-')?;
        Some(((document.parse().ok()?, number.parse().ok()?), title))
    })
}

fn shown((document, number): Id) -> String {
    format!("S{document}-{number:02}")
}

/// All tests of the sources by the requirements in their names.
fn find(project: &Project) -> Result<BTreeMap<Id, Vec<Test>>> {
    let mut texts = Vec::new();
    for path in tidy::rust_files(project)? {
        texts.push((project.relative(&path).to_path_buf(), project::read(&path)?));
    }
    let mut found: BTreeMap<Id, Vec<Test>> = BTreeMap::new();
    for source in tidy::sources(texts) {
        for function in source.test_functions() {
            let test = Test { name: function.name, file: source.path.display().to_string() };
            for id in ids(&test.name) {
                found.entry(id).or_default().push(test.clone());
            }
        }
    }
    Ok(found)
}

/// The requirements a test's name begins with: `s2_07_…`, several as `s2_06_s2_07_…`, a range as `s1_01_to_05_…`.
fn ids(name: &str) -> Vec<Id> {
    let mut parts = name.split('_').peekable();
    let mut found = Vec::new();
    while let Some(document) = parts.peek().and_then(|part| document(part)) {
        parts.next();
        let Some(first) = parts.next_if(|part| number(part).is_some()).and_then(number) else { break };
        let mut last = first;
        if parts.next_if_eq(&"to").is_some() {
            last = parts.next().and_then(number).unwrap_or(first);
        }
        found.extend((first..=last).map(|number| (document, number)));
    }
    found
}

fn document(part: &str) -> Option<u32> {
    part.strip_prefix('s').filter(|digits| digits.len() == 1)?.parse().ok()
}

fn number(part: &str) -> Option<u32> {
    Some(part).filter(|digits| digits.len() == 2)?.parse().ok()
}

fn unknown(tests: &BTreeMap<Id, Vec<Test>>) -> Vec<String> {
    let known: Vec<Id> = requirements().map(|(id, _)| id).collect();
    let strays = tests.iter().filter(|(id, _)| !known.contains(id));
    strays.flat_map(|(_, tests)| tests.iter().map(|test| test.name.clone())).collect()
}

fn standing(tests: &[Test], outcomes: Option<&Outcomes>) -> Standing {
    let Some(outcomes) = outcomes.filter(|_| !tests.is_empty()) else {
        return if tests.is_empty() { Standing::Missing } else { Standing::Listed };
    };
    // A test that was not run shows nothing: it counts as failed.
    match tests.iter().all(|test| outcomes.get(&test.name) == Some(&true)) {
        true => Standing::Passed,
        false => Standing::Failed,
    }
}

fn word(standing: Standing) -> &'static str {
    match standing {
        Standing::Passed => "passed ",
        Standing::Failed => "FAILED ",
        Standing::Missing => "missing",
        Standing::Listed => "tested ",
    }
}

fn total(document: u32, counts: &BTreeMap<Standing, usize>) -> String {
    let parts: Vec<_> = counts.iter().map(|(standing, n)| format!("{n} {}", word(*standing).trim())).collect();
    format!("S{document}: {} requirements, {}", counts.values().sum::<usize>(), parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_requirement_is_listed_once() {
        let all: Vec<Id> = requirements().map(|(id, _)| id).collect();
        let expected = [39, 37, 26, 48, 38].into_iter().enumerate();
        let expected: Vec<Id> = expected.flat_map(|(at, last)| (1..=last).map(move |n| (at as u32, n))).collect();
        assert_eq!(all, expected);
        assert_eq!(all.len(), 188);
    }

    #[test]
    fn a_name_tells_its_requirements() {
        assert_eq!(ids("s2_07_results_come_in_order"), [(2, 7)]);
        assert_eq!(ids("s2_06_s3_30_five_at_once"), [(2, 6), (3, 30)]);
        assert_eq!(ids("s1_03_to_05_it_stays_in_control"), [(1, 3), (1, 4), (1, 5)]);
        assert_eq!(ids("sse_splits_anywhere"), []);
        assert_eq!(ids("s3_box_is_a_profile"), []);
    }

    #[test]
    fn a_requirement_without_a_passed_test_does_not_hold() {
        let test = |name: &str| Test { name: name.into(), file: "a.rs".into() };
        let outcomes: Outcomes = [("s2_07_a".to_string(), true), ("s2_08_b".to_string(), false)].into();
        assert_eq!(standing(&[], Some(&outcomes)), Standing::Missing);
        assert_eq!(standing(&[test("s2_07_a")], Some(&outcomes)), Standing::Passed);
        assert_eq!(standing(&[test("s2_07_a"), test("s2_08_b")], Some(&outcomes)), Standing::Failed);
        assert_eq!(standing(&[test("s2_09_never_ran")], Some(&outcomes)), Standing::Failed);
        assert_eq!(standing(&[test("s2_09_never_ran")], None), Standing::Listed);
    }

    #[test]
    fn a_number_that_no_requirement_has_is_told() {
        let test = Test { name: "s2_77_nothing".into(), file: "a.rs".into() };
        assert_eq!(unknown(&[((2, 77), vec![test])].into()), ["s2_77_nothing"]);
    }
}
