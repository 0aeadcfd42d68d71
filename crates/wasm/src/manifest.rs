//! `tool.toml`: what a tool is called, what it takes, and all it may reach.

use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Component, Path};
use windlass_tools::Checker;

/// Bytes of linear memory in a megabyte of `memory_mb`.
const MEGABYTE: usize = 1 << 20;
/// Characters a name may have: what every provider takes.
const NAME_CHARS: usize = 64;
/// Bytes of a description, which every model call carries.
const DESCRIPTION_BYTES: usize = 4_000;
/// Megabytes a 32-bit component can have at all.
const MAX_MEMORY_MB: u32 = 4_096;
/// Milliseconds a call may be given.
const MAX_TIME_MS: u64 = 600_000;
/// Folders that are Windlass's or git's own: what lies in them runs or decides.
const OWN: [&str; 2] = [".git", ".windlass"];

/// A tool's manifest, checked.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    pub name: String,
    pub description: String,
    /// JSON Schema of the arguments: a table here, or the name of a file beside the manifest.
    #[serde(default = "no_arguments")]
    pub input_schema: Value,
    /// The file that the schema was read from.
    #[serde(skip)]
    pub(crate) schema_file: Option<String>,
    #[serde(default)]
    pub capabilities: Capabilities,
    #[serde(default)]
    pub limits: Limits,
}

/// What a tool may reach; nothing that is not here.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Capabilities {
    pub dirs: Vec<Dir>,
    /// Names of variables; those that hold providers' keys are never there to be given.
    pub env: Vec<String>,
    /// Whether the date and the time of day are told.
    pub clock: bool,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dir {
    /// Relative to the workspace; `.` is all of it.
    pub path: String,
    pub access: Access,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    Read,
    /// Reads, too.
    Write,
}

/// What a call may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    pub memory_mb: u32,
    /// About one per instruction.
    pub fuel: u64,
    /// Milliseconds.
    pub time_ms: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { memory_mb: 64, fuel: 10_000_000_000, time_ms: 30_000 }
    }
}

impl Limits {
    pub(crate) fn memory_bytes(&self) -> usize {
        self.memory_mb as usize * MEGABYTE
    }
}

fn no_arguments() -> Value {
    json!({"type": "object", "properties": {}})
}

impl Manifest {
    /// Reads a manifest; `beside` gives the text of a file next to it.
    pub fn parse(text: &str, beside: impl Fn(&str) -> Result<String, String>) -> Result<Manifest, String> {
        let mut manifest: Manifest = toml::from_str(text).map_err(|error| error.to_string().trim_end().to_owned())?;
        if let Value::String(file) = manifest.input_schema {
            let plain = Path::new(&file).components().eq([Component::Normal(file.as_ref())]);
            if !plain {
                return Err(format!("input_schema is {file:?}; name a file that lies beside the manifest"));
            }
            manifest.input_schema =
                serde_json::from_str(&beside(&file)?).map_err(|error| format!("{file}: {error}"))?;
            manifest.schema_file = Some(file);
        }
        manifest.check()?;
        Ok(manifest)
    }

    fn check(&self) -> Result<(), String> {
        check_name(&self.name)?;
        let description = self.description.trim();
        if description.is_empty() || description.len() > DESCRIPTION_BYTES {
            let bytes = description.len();
            return Err(format!("description has {bytes} bytes; say in 1 to {DESCRIPTION_BYTES} what the tool does"));
        }
        if self.input_schema["type"] != "object" {
            return Err("input_schema must describe an object: begin it with type = \"object\"".into());
        }
        Checker::compile(&self.input_schema).map_err(|error| format!("input_schema is no JSON Schema: {error}"))?;
        self.capabilities.check()?;
        let Limits { memory_mb, fuel, time_ms } = self.limits;
        within("limits.memory_mb", memory_mb.into(), MAX_MEMORY_MB.into())?;
        within("limits.fuel", fuel, u64::MAX)?;
        within("limits.time_ms", time_ms, MAX_TIME_MS)
    }

    /// What the tool may reach and take, a line each: what a person is shown before it is installed.
    pub fn grants(&self) -> Vec<String> {
        let Capabilities { dirs, env, clock } = &self.capabilities;
        let mut lines: Vec<String> = dirs.iter().map(Dir::told).collect();
        if !env.is_empty() {
            lines.push(format!("reads the variables {}", env.join(", ")));
        }
        if *clock {
            lines.push("reads the date and the time of day".into());
        }
        if lines.is_empty() {
            lines.push("reaches nothing: no files, no variables, no date".into());
        }
        lines.push("no network".into());
        let Limits { memory_mb, fuel, time_ms } = self.limits;
        lines.push(format!("up to {memory_mb} MB of memory, {fuel} units of fuel and {time_ms} ms a call"));
        lines
    }
}

impl Capabilities {
    fn check(&self) -> Result<(), String> {
        let mut paths = BTreeSet::new();
        for dir in &self.dirs {
            dir.check()?;
            if !paths.insert(dir.path.trim_start_matches("./").trim_end_matches('/')) {
                return Err(format!("capabilities.dirs names {:?} twice; name it once", dir.path));
            }
        }
        let bad = |name: &&String| {
            let letters = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
            name.is_empty() || !letters || name.as_bytes()[0].is_ascii_digit()
        };
        match self.env.iter().find(bad) {
            Some(name) => Err(format!("capabilities.env has {name:?}; a variable is letters, digits and _")),
            None => Ok(()),
        }
    }
}

impl Dir {
    fn check(&self) -> Result<(), String> {
        let path = &self.path;
        let parts: Vec<Component<'_>> = Path::new(path).components().collect();
        let inside = |part: &Component<'_>| matches!(part, Component::CurDir | Component::Normal(_));
        if parts.is_empty() || !parts.iter().all(inside) {
            return Err(format!(
                "capabilities.dirs has {path:?}; name a folder by its path below the workspace, or \".\""
            ));
        }
        let own = |part: &Component<'_>| OWN.iter().any(|own| part.as_os_str().eq_ignore_ascii_case(own));
        if parts.iter().any(own) {
            return Err(format!("capabilities.dirs has {path:?}; what is in .git and .windlass is not given to tools"));
        }
        if self.is_whole() && self.access == Access::Write {
            return Err(
                "capabilities.dirs wants to write in all of the workspace, where .git and .windlass lie; name \
                        the folders it writes in"
                    .into(),
            );
        }
        Ok(())
    }

    fn is_whole(&self) -> bool {
        Path::new(&self.path).components().all(|part| part == Component::CurDir)
    }

    fn told(&self) -> String {
        let verb = match self.access {
            Access::Read => "reads",
            Access::Write => "reads and writes",
        };
        match self.is_whole() {
            true => format!("{verb} all files of the workspace"),
            false => format!("{verb} files in {} of the workspace", self.path),
        }
    }
}

/// That `name` can be a tool's.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    let letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_' || byte == b'-';
    let good = name.bytes().all(letter) && name.starts_with(|first: char| first.is_ascii_lowercase());
    if good && name.len() <= NAME_CHARS {
        return Ok(());
    }
    Err(format!(
        "{name:?} can't be a tool's name: take a to z, 0 to 9, _ and -, beginning with a letter, up to {NAME_CHARS}"
    ))
}

fn within(key: &str, value: u64, most: u64) -> Result<(), String> {
    if (1..=most).contains(&value) {
        return Ok(());
    }
    Err(format!("{key} is {value}; give a number from 1 to {most}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(rest: &str) -> Result<Manifest, String> {
        let text = format!("name = \"count\"\ndescription = \"Counts.\"\n{rest}");
        Manifest::parse(&text, |file| match file {
            "schema.json" => Ok(r#"{"type": "object", "required": ["path"]}"#.into()),
            _ => Err(format!("{file} is not there")),
        })
    }

    #[test]
    fn a_manifest_that_names_nothing_grants_nothing() {
        insta::assert_snapshot!(parse("").unwrap().grants().join("\n"), @r"
        reaches nothing: no files, no variables, no date
        no network
        up to 64 MB of memory, 10000000000 units of fuel and 30000 ms a call
        ");
    }

    #[test]
    fn what_is_granted_is_told_in_words() {
        let manifest = parse(
            "input_schema = \"schema.json\"\n[capabilities]\nenv = [\"TZ\", \"LANG\"]\nclock = true\ndirs = [\
             {path = \".\", access = \"read\"}, {path = \"out/a\", access = \"write\"}]\n[limits]\nmemory_mb = 8",
        );
        let manifest = manifest.unwrap();
        assert_eq!(manifest.input_schema["required"], json!(["path"]));
        insta::assert_snapshot!(manifest.grants().join("\n"), @r"
        reads all files of the workspace
        reads and writes files in out/a of the workspace
        reads the variables TZ, LANG
        reads the date and the time of day
        no network
        up to 8 MB of memory, 10000000000 units of fuel and 30000 ms a call
        ");
    }

    #[test]
    fn what_is_wrong_is_named_with_the_way_out() {
        let dirs = |path: &str, access: &str| {
            parse(&format!("[capabilities]\ndirs = [{{path = {path:?}, access = {access:?}}}]")).unwrap_err()
        };
        for path in ["", "/etc", "../x", "a/../../b"] {
            assert!(dirs(path, "read").contains("name a folder by its path below the workspace"), "{path}");
        }
        for path in [".git", "sub/.Git/hooks", "./.windlass"] {
            assert!(dirs(path, "read").contains("is not given to tools"), "{path}");
        }
        assert!(dirs(".", "write").contains("name the folders it writes in"));
        assert!(dirs("./.", "write").contains("name the folders it writes in"));
        assert!(dirs("a", "all").contains("unknown variant `all`, expected `read` or `write`"));
        let wrong = |rest: &str| parse(rest).unwrap_err();
        assert!(wrong("[capabilities]\nhosts = [\"a.org\"]").contains("unknown field `hosts`"));
        assert!(wrong("[capabilities]\nenv = [\"A=B\"]").contains("a variable is letters, digits and _"));
        assert!(wrong("[limits]\nmemory_mb = 0").contains("limits.memory_mb is 0; give a number from 1 to 4096"));
        assert!(wrong("[limits]\ntime_ms = 600001").contains("from 1 to 600000"));
        assert!(wrong("input_schema = {type = \"string\"}").contains("must describe an object"));
        assert!(wrong("input_schema = {type = \"object\", required = 1}").contains("is no JSON Schema"));
        assert!(wrong("input_schema = \"../schema.json\"").contains("beside the manifest"));
        assert!(wrong("input_schema = \"lost.json\"").contains("lost.json is not there"));
    }

    #[test]
    fn names_are_such_as_every_provider_takes() {
        for name in ["", "Count", "1st", "a b", "../a", "naïve", &"a".repeat(65)] {
            assert!(check_name(name).is_err(), "{name}");
        }
        assert_eq!(check_name("word-count_2"), Ok(()));
    }
}
