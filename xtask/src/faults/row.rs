//! The rows: faults as data, with what is expected of each.

use super::protocol::Protocol;
use crate::project;
use anyhow::{Context, Result, bail, ensure};
use regex::Regex;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use toml::{Table, Value};

/// Rows that a class has at least.
const MIN_ROWS: usize = 4;
/// The first prompt.
pub const PROMPT: &str = "How are things";
/// What the model says when all is well, after the fault and to the second prompt.
pub const GOOD: &str = "All is well.";

/// A file of rows.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Class {
    pub class: String,
    /// What its rows have in common.
    pub why: String,
    pub row: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    pub id: String,
    /// Where this is met in the field.
    pub why: String,
    /// Protocols that cannot say it, each with the reason.
    #[serde(default)]
    pub without: BTreeMap<String, String>,
    /// Steps of the mock's script; the good answer comes after them by itself. `for` lists the protocols that a step is
    /// for, if it is not for all.
    pub step: Vec<Table>,
    /// Settings for this row, over the usual ones of a case.
    #[serde(default)]
    pub config: BTreeMap<String, Value>,
    expect: Table,
    /// Where a protocol differs from `expect`.
    #[serde(default)]
    but: BTreeMap<String, Table>,
}

/// What must be seen of a case's first prompt.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    pub requests: usize,
    #[serde(default)]
    pub exit: i32,
    /// Found in what stderr says at the end; of a run that ends well, in the failures that are stored.
    #[serde(default, deserialize_with = "regex")]
    pub message: Option<Regex>,
    /// Kinds of the failed attempts, in order.
    #[serde(default)]
    pub failures: Vec<String>,
    /// Blocks that are stored as broken off; not looked at where chance decides.
    pub partial: Option<usize>,
    /// Calls that were answered.
    #[serde(default)]
    pub calls: usize,
    /// The final text; of a run that ends well the good answer, if nothing else is said.
    pub text: Option<String>,
    /// Bytes of the final text, where it is too long to be written here.
    pub text_bytes: Option<usize>,
    /// Milliseconds that lie at least between the first request and the last.
    #[serde(default)]
    pub waited_ms: u64,
    /// What stands in no request after the first.
    pub unsaid: Option<String>,
}

impl Row {
    pub fn protocols(&self) -> impl Iterator<Item = Protocol> {
        Protocol::ALL.into_iter().filter(|protocol| !self.without.contains_key(protocol.name()))
    }

    pub fn expect(&self, protocol: Protocol) -> Result<Expect> {
        let mut expect = self.expect.clone();
        expect.extend(self.but.get(protocol.name()).cloned().unwrap_or_default());
        let expect = expect.try_into().with_context(|| format!("row {}: what is expected", self.id))?;
        Ok(expect)
    }

    /// The mock's script in this protocol.
    pub fn script(&self, protocol: Protocol) -> Result<String> {
        let mut steps = Vec::new();
        for step in &self.step {
            let mut step = step.clone();
            if is_for(step.remove("for"), protocol).with_context(|| format!("row {}", self.id))? {
                steps.push(Value::Table(step));
            }
        }
        ensure!(!steps.is_empty(), "row {}: no step is for {}: name it in `without`", self.id, protocol.name());
        let good = Table::from_iter([("text".to_owned(), Value::from(GOOD))]);
        let good = Table::from_iter([
            ("name".to_owned(), Value::from("good")),
            ("blocks".to_owned(), Value::Array(vec![good.into()])),
        ]);
        steps.push(good.into());
        // Whatever is joined to the first prompt later on, it is the same conversation.
        let sid = format!("({PROMPT})");
        let script = Table::from_iter([
            ("repeat".to_owned(), Value::from(true)),
            ("sid".to_owned(), Value::from(sid)),
            ("step".to_owned(), Value::Array(steps)),
        ]);
        Ok(toml::to_string(&script)?)
    }
}

fn is_for(list: Option<Value>, protocol: Protocol) -> Result<bool> {
    let Some(list) = list else { return Ok(true) };
    let names: Vec<Protocol> = list.try_into().context("`for` lists protocols")?;
    Ok(names.contains(&protocol))
}

fn regex<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Regex>, D::Error> {
    let text = String::deserialize(from)?;
    Regex::new(&text).map(Some).map_err(serde::de::Error::custom)
}

/// All classes, in the order of their files' names.
pub fn read_all(folder: &Path) -> Result<Vec<Class>> {
    let mut classes = Vec::new();
    let mut ids = BTreeSet::new();
    for file in project::files(folder, &["toml"])? {
        let name = file.display();
        let class: Class = toml::from_str(&project::read(&file)?).with_context(|| format!("reading {name}"))?;
        check(&class).with_context(|| format!("in {name}"))?;
        for row in &class.row {
            ensure!(ids.insert(row.id.clone()), "{name}: the row {} stands twice", row.id);
        }
        classes.push(class);
    }
    if classes.is_empty() {
        bail!("{} holds no rows", folder.display());
    }
    Ok(classes)
}

fn check(class: &Class) -> Result<()> {
    ensure!(!class.why.is_empty(), "the class says no `why`");
    ensure!(class.row.len() >= MIN_ROWS, "{} has {} rows and wants {MIN_ROWS}", class.class, class.row.len());
    for row in &class.row {
        ensure!(!row.why.is_empty(), "row {} says no `why`", row.id);
        let mut named = row.without.keys().chain(row.but.keys());
        if let Some(name) = named.find(|name| Protocol::named(name).is_none()) {
            bail!("row {}: there is no protocol {name:?}: known are {}", row.id, Protocol::NAMES.join(", "));
        }
        if let Some((name, _)) = row.without.iter().find(|(_, why)| why.is_empty()) {
            bail!("row {}: it says no reason to be played without {name}", row.id);
        }
        for protocol in row.protocols() {
            row.expect(protocol)?;
            row.script(protocol)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLASS: &str = r#"
        id = "r"
        why = "it happens"
        without = { gemini = "has no such thing" }
        expect = { requests = 2, failures = ["transient"] }
        but = { chat = { requests = 1, failures = [] } }
        step = [{ times = 1, raw_stream = [] }, { for = ["chat"], times = 1, status = 500 }]
    "#;

    #[test]
    fn a_protocol_has_its_own_steps_and_expectations() {
        let row: Row = toml::from_str(CLASS).unwrap();
        assert!(!row.protocols().any(|protocol| protocol == Protocol::Gemini));
        assert_eq!(row.expect(Protocol::Bedrock).unwrap().failures, ["transient"]);
        assert_eq!(row.expect(Protocol::Chat).unwrap().requests, 1);
        assert!(!row.script(Protocol::Bedrock).unwrap().contains("500"));
        let script = row.script(Protocol::Chat).unwrap();
        assert!(script.contains("status = 500") && script.contains(GOOD) && !script.contains("for"), "{script}");
    }

    #[test]
    fn a_row_that_expects_what_nobody_reads_is_refused() {
        let row: Row = toml::from_str(&CLASS.replace("requests = 1", "request = 1")).unwrap();
        assert!(format!("{:#}", row.expect(Protocol::Chat).err().unwrap()).contains("request"));
    }

    #[test]
    fn every_row_of_the_project_can_be_read() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/faults");
        let classes = read_all(&folder).unwrap_or_else(|error| panic!("{error:#}"));
        let cases: usize = classes.iter().flat_map(|class| &class.row).map(|row| row.protocols().count()).sum();
        assert!(cases >= 6 * MIN_ROWS, "{cases}");
    }
}
