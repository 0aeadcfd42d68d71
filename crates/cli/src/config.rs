//! Layers of settings: each knows where every value was written, and the later layer wins.

use crate::exit::Failure;
use crate::keys::{self, Found, Key, Value, Want};
use crate::near;
use std::collections::BTreeSet;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// One value, as it was written somewhere.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    pub path: Vec<String>,
    pub value: Value,
    /// Where it was written: a file and line, a flag, or `default`.
    pub source: String,
}

/// What was read from one place.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Layer {
    /// The file it was read from; none: there is no such file, or it is no file.
    pub file: Option<PathBuf>,
    pub entries: Vec<Entry>,
}

/// All layers, the weakest first.
#[derive(Clone, Debug, Default)]
pub struct Config {
    pub layers: Vec<Layer>,
}

/// Whose file it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    User,
    /// A repository's: it may tighten, never loosen.
    Project,
}

impl Config {
    /// The value at `path` (dotted, for keys without names) that wins.
    pub fn get(&self, path: &str) -> Option<&Entry> {
        let path: Vec<&str> = path.split('.').collect();
        self.at(&path)
    }

    pub fn at(&self, path: &[&str]) -> Option<&Entry> {
        let entries = self.layers.iter().rev().flat_map(|layer| layer.entries.iter().rev());
        entries.into_iter().find(|entry| entry.path == path)
    }

    /// The texts at `path` of all layers: lists add up, so that no layer takes a rule of another away.
    pub fn texts(&self, path: &str) -> Vec<(String, &str)> {
        let entries = self.layers.iter().flat_map(|layer| &layer.entries);
        let here = entries.filter(|entry| entry.path.iter().map(String::as_str).eq(path.split('.')));
        here.flat_map(|entry| match &entry.value {
            Value::Texts(texts) => texts.iter().map(|text| (text.clone(), entry.source.as_str())).collect(),
            _ => vec![],
        })
        .collect()
    }

    /// The names given below a table: tools, providers, models.
    pub fn names(&self, table: &str) -> BTreeSet<&str> {
        let entries = self.layers.iter().flat_map(|layer| &layer.entries);
        entries.filter(|entry| entry.path[0] == table && entry.path.len() == 3).map(|entry| &*entry.path[1]).collect()
    }

    pub fn text(&self, path: &str) -> Option<&str> {
        self.get(path).and_then(|entry| entry.value.as_text())
    }

    pub fn whole(&self, path: &str) -> Option<u64> {
        self.get(path).and_then(|entry| entry.value.as_whole())
    }
}

impl Value {
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    pub fn as_whole(&self) -> Option<u64> {
        match self {
            Value::Whole(number) => Some(*number),
            _ => None,
        }
    }

    pub fn as_number(&self) -> Option<f64> {
        match self {
            Value::Number(number) => Some(*number),
            _ => None,
        }
    }

    pub fn as_truth(&self) -> Option<bool> {
        match self {
            Value::Truth(truth) => Some(*truth),
            _ => None,
        }
    }
}

/// The layer in `file`; empty if there is no such file.
pub fn read(file: &Path, owner: Owner) -> Result<Layer, Failure> {
    // A pipe or a device in its place has no end to read to.
    if std::fs::metadata(file).is_ok_and(|found| !found.is_file()) {
        return Err(Failure::usage(format!("{} is no file: a configuration is one, take this away", file.display())));
    }
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(Layer::default());
        }
        Err(error) => {
            let file = file.display();
            return Err(Failure::usage(format!("{file} can't be read: {error}; mend it or move it away")));
        }
    };
    let entries = parse(&text, &file.display().to_string(), owner)?;
    Ok(Layer { file: Some(file.to_owned()), entries })
}

/// The layer that `--config KEY=VALUE` makes; a value that is no TOML is a text.
pub fn from_flags(flags: &[String]) -> Result<Layer, Failure> {
    let mut entries = vec![];
    for flag in flags {
        let Some((key, value)) = flag.split_once('=') else {
            return Err(Failure::usage(format!(
                "--config {flag}: there is no value; write KEY=VALUE, for example --config max_turns=20"
            )));
        };
        let (key, value) = (key.trim(), value.trim());
        let written = format!("{key} = {value}");
        let text = match DeTable::parse(&written) {
            Ok(_) => written,
            Err(_) => format!("{key} = {}", toml::Value::from(value)),
        };
        let layer = parse(&text, "--config", Owner::User)?;
        entries.extend(layer.into_iter().map(|entry| Entry { source: "--config".into(), ..entry }));
    }
    Ok(Layer { file: None, entries })
}

fn parse(text: &str, name: &str, owner: Owner) -> Result<Vec<Entry>, Failure> {
    let page = Page { text, name, owner };
    let table = DeTable::parse(text).map_err(|error| {
        let message = error.message().trim().replace('\n', "; ");
        page.mistake(error.span().unwrap_or(0..0), message)
    })?;
    let mut entries = vec![];
    page.walk(table.get_ref(), &mut vec![], &mut entries)?;
    Ok(entries)
}

/// A text in which mistakes are pointed at.
struct Page<'a> {
    text: &'a str,
    name: &'a str,
    owner: Owner,
}

impl Page<'_> {
    fn walk(&self, table: &DeTable<'_>, path: &mut Vec<String>, entries: &mut Vec<Entry>) -> Result<(), Failure> {
        for (name, value) in table {
            path.push(name.get_ref().to_string());
            let parts: Vec<&str> = path.iter().map(String::as_str).collect();
            match (keys::find(&parts), value.get_ref()) {
                (Found::Key(key), _) => entries.push(self.entry(key, path, name.span(), value)?),
                (Found::Table, DeValue::Table(below)) => {
                    self.check_tool(&parts, name.span())?;
                    self.walk(below, path, entries)?;
                }
                (Found::Table, _) => {
                    let message = format!("`{}` is a table: write [{0}]", shown(path));
                    return Err(self.mistake(name.span(), message));
                }
                (Found::Unknown(near), _) => {
                    let message = format!("unknown key `{}`{}", shown(path), near::hint(parts[parts.len() - 1], near));
                    return Err(self.mistake(name.span(), message));
                }
            }
            path.pop();
        }
        Ok(())
    }

    /// A tool's name that no tool has would be a setting without effect.
    fn check_tool(&self, parts: &[&str], span: Range<usize>) -> Result<(), Failure> {
        let ["tools", name] = parts else { return Ok(()) };
        let tools = windlass_tools::builtin();
        let names: Vec<&str> = tools.iter().map(|tool| tool.name()).collect();
        if names.contains(name) {
            return Ok(());
        }
        let hint = near::hint(name, names.iter().copied());
        Err(self.mistake(span, format!("there is no tool `{name}`{hint}; there are {}", names.join(", "))))
    }

    fn entry(
        &self,
        key: &Key,
        path: &[String],
        name: Range<usize>,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<Entry, Failure> {
        let Some(read) = value_of(value.get_ref(), key.want) else {
            let given = self.text.get(value.span()).unwrap_or_default();
            let message = format!("`{}` ({}) wants {}, not {given}", shown(path), key.says, key.want);
            return Err(self.mistake(value.span(), message));
        };
        if self.owner == Owner::Project {
            self.check_project(key, path, &read, name.clone())?;
        }
        let source = format!("{}:{}", self.name, self.line_of(name.start));
        Ok(Entry { path: path.to_vec(), value: read, source })
    }

    /// A repository's file is written by whoever made the repository.
    fn check_project(&self, key: &Key, path: &[String], value: &Value, span: Range<usize>) -> Result<(), Failure> {
        let loosens = key.path == "tools.*.enabled" && *value == Value::Truth(true);
        if key.in_project && !loosens {
            return Ok(());
        }
        let message = format!(
            "a project's file may not set `{}`{}: it may only tighten; put it into your own config.toml \
             (`windlass doctor` says where that is) or pass it with --config",
            shown(path),
            if loosens { " to true" } else { "" },
        );
        Err(self.mistake(span, message))
    }

    fn line_of(&self, at: usize) -> usize {
        self.text.as_bytes()[..at.min(self.text.len())].iter().filter(|byte| **byte == b'\n').count() + 1
    }

    /// The file, the line's number, what is wrong, and the line itself.
    fn mistake(&self, span: Range<usize>, message: String) -> Failure {
        let number = self.line_of(span.start);
        let line = self.text.lines().nth(number - 1).unwrap_or_default();
        if self.name == "--config" {
            return Failure::usage(format!("--config {}: {message}", line.replacen(" = ", "=", 1)));
        }
        Failure::usage(format!("{}:{number}: {message}\n{number:>5} | {line}", self.name))
    }
}

fn value_of(value: &DeValue<'_>, want: Want) -> Option<Value> {
    Some(match (want, value) {
        (Want::Text, DeValue::String(text)) => Value::Text(text.to_string()),
        (Want::OneOf(words), DeValue::String(text)) if words.contains(&&**text) => Value::Text(text.to_string()),
        (Want::Truth, DeValue::Boolean(truth)) => Value::Truth(*truth),
        (Want::Whole(least, most), DeValue::Integer(number)) => {
            let number = u64::from_str_radix(number.as_str(), number.radix()).ok()?;
            Value::Whole((least..=most).contains(&number).then_some(number)?)
        }
        (Want::Number(least, most), DeValue::Float(_) | DeValue::Integer(_)) => {
            let number: f64 = match value {
                DeValue::Float(number) => number.as_str().parse().ok()?,
                DeValue::Integer(number) => number.as_str().parse().ok()?,
                _ => return None,
            };
            Value::Number((least..=most).contains(&number).then_some(number)?)
        }
        (Want::Texts, DeValue::Array(items)) => {
            let text = |item: &Spanned<DeValue<'_>>| item.get_ref().as_str().map(str::to_owned);
            Value::Texts(items.iter().map(text).collect::<Option<_>>()?)
        }
        _ => return None,
    })
}

/// A path as it is written in TOML.
pub fn shown(path: &[String]) -> String {
    let bare = |part: &&String| part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    let parts = path.iter().map(|part| if bare(&part) { part.clone() } else { format!("\"{part}\"") });
    parts.collect::<Vec<_>>().join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(text: &str) -> Result<Vec<Entry>, Failure> {
        parse(text, "config.toml", Owner::User)
    }

    fn error(text: &str, owner: Owner) -> String {
        parse(text, "config.toml", owner).unwrap_err().message
    }

    #[test]
    fn a_mistyped_key_is_shown_with_its_line_and_the_nearest() {
        insta::assert_snapshot!(error("model = \"a/b\"\nmax_turn = 5\n", Owner::User), @r#"
        config.toml:2: unknown key `max_turn` (did you mean `max_turns`?)
            2 | max_turn = 5
        "#);
        insta::assert_snapshot!(error("[tools.bahs]\nenabled = false\n", Owner::User), @r#"
        config.toml:1: there is no tool `bahs` (did you mean `bash`?); there are apply_patch, ask_user, bash, edit, glob, grep, ls, read, write
            1 | [tools.bahs]
        "#);
    }

    #[test]
    fn a_wrong_value_is_named_with_what_is_wanted() {
        insta::assert_snapshot!(error("max_turns = \"many\"", Owner::User), @r#"
        config.toml:1: `max_turns` (model calls a turn may take) wants a whole number from 1 to 1000000, not "many"
            1 | max_turns = "many"
        "#);
        insta::assert_snapshot!(error("permission_mode = 'yolo'", Owner::User), @r#"
        config.toml:1: `permission_mode` (what may be done unasked) wants one of "default", "accept-edits", "plan", "bypass", not 'yolo'
            1 | permission_mode = 'yolo'
        "#);
        assert!(error("max_turns = 0", Owner::User).contains("from 1"));
        assert!(error("max_turns = 1\nmax_turns = 2", Owner::User).starts_with("config.toml:2:"));
        assert!(error("tools = 3", Owner::User).contains("`tools` is a table: write [tools]"));
    }

    #[test]
    fn a_projects_file_can_only_tighten() {
        let fine = "model = 'a/b'\nmax_turns = 3\n[rules]\ndeny = ['bash']\n[tools.bash]\nenabled = false\n";
        assert_eq!(parse(fine, "f", Owner::Project).unwrap().len(), 4);
        for loosens in ["base_url = 'http://evil'", "permission_mode = 'bypass'", "rules.allow = ['bash']"] {
            assert!(error(loosens, Owner::Project).contains("may only tighten"), "{loosens}");
        }
        assert!(error("tools.bash.enabled = true", Owner::Project).contains("`tools.bash.enabled` to true"));
    }

    #[test]
    fn flags_take_toml_or_a_bare_word() {
        let flags = ["max_turns=7".to_owned(), "locale=zh".into(), "rules.deny=['bash', 'write']".into()];
        let layer = from_flags(&flags).unwrap();
        let values: Vec<String> = layer.entries.iter().map(|entry| entry.value.to_string()).collect();
        assert_eq!(values, ["7", "\"zh\"", "[\"bash\", \"write\"]"]);
        let wrong = from_flags(&["max_turns=lots".to_owned()]).unwrap_err();
        assert_eq!(
            wrong.message,
            "--config max_turns=\"lots\": `max_turns` (model calls a turn may take) wants a whole number from 1 to 1000000, not \"lots\""
        );
        assert!(from_flags(&["locale".to_owned()]).unwrap_err().message.contains("KEY=VALUE"));
    }

    #[test]
    fn the_later_layer_wins_and_rules_add_up() {
        let layer = |text| Layer { file: None, entries: user(text).unwrap() };
        let config = Config {
            layers: vec![layer("max_turns = 1\nrules.deny = ['a']"), layer("max_turns = 2\nrules.deny = ['b']")],
        };
        assert_eq!(config.whole("max_turns"), Some(2));
        let rules: Vec<String> = config.texts("rules.deny").into_iter().map(|(rule, _)| rule).collect();
        assert_eq!(rules, ["a", "b"]);
        assert_eq!(config.text("model"), None);
    }

    #[test]
    fn names_with_slashes_are_quoted_again() {
        let entries = user("[prices.\"a/b\"]\ninput = 3\n").unwrap();
        assert_eq!(shown(&entries[0].path), "prices.\"a/b\".input");
        assert_eq!(entries[0].value, Value::Number(3.0));
        assert_eq!(entries[0].source, "config.toml:2");
    }
}
