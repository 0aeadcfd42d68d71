//! What was learnt of a provider's models: a file of the catalog's form among the data, under the user's own.

use crate::catalog;
use crate::environment::Environment;
use crate::exit::Failure;
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use toml::{Table, Value};
use windlass::Provider;
use windlass::llm::{Ability, Catalog, Listed, ToolCalls};

const HEAD: &str = "# Learnt by `windlass models`; written anew by it. What you want otherwise goes into the folder\n\
                    # `catalog` of your configuration, which wins.\n\n";

/// One provider's file, to be changed and written back.
pub struct Learnt {
    file: PathBuf,
    table: Table,
}

impl Learnt {
    /// The file of the provider `name`, if there is one yet.
    pub fn read(environment: &Environment, name: &str) -> Result<Learnt, Failure> {
        if name.contains(['/', '\\']) || name.starts_with('.') {
            return Err(Failure::usage(format!("nothing can be remembered of `{name}`: its name is none of a file")));
        }
        let file = catalog::learnt(environment).join(format!("{name}.toml"));
        let bad = |error: String| Failure::usage(format!("{}: {error}; mend it or move it away", file.display()));
        let table = match fs::read_to_string(&file) {
            Ok(text) => text.parse().map_err(|error: toml::de::Error| bad(error.message().to_owned()))?,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                Table::new()
            }
            Err(error) => return Err(bad(error.to_string())),
        };
        Ok(Learnt { file, table })
    }

    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Says where a provider is that the catalog would not know otherwise.
    pub fn place(&mut self, catalog: &Catalog, name: &str, provider: &Provider) {
        if catalog.provider(name).is_none() || self.table.contains_key("base_url") {
            self.table.insert("protocol".into(), provider.protocol.name().into());
            self.table.insert("base_url".into(), provider.base_url.clone().into());
        }
    }

    /// Takes in what the provider told of a model.
    pub fn told(&mut self, model: &Listed) {
        let entry = self.model(&model.name);
        let tokens = [("window", model.window), ("max_output", model.max_output)];
        for (key, tokens) in tokens {
            if let Some(tokens) = tokens.and_then(|tokens| i64::try_from(tokens).ok()) {
                entry.insert(key.into(), tokens.into());
            }
        }
        let Some(prices) = model.prices else { return };
        let dollars = [
            ("input", prices.input),
            ("output", prices.output),
            ("cache_read", prices.cache_read),
            ("cache_write", prices.cache_write),
        ];
        for (key, micro) in dollars {
            entry.insert(key.into(), (micro as f64 / 1e6).into());
        }
    }

    /// Takes in what a model showed of itself.
    pub fn showed(&mut self, model: &str, can: &BTreeSet<Ability>, tool_calls: Option<ToolCalls>) {
        let entry = self.model(model);
        if let Ok(can) = Value::try_from(can) {
            entry.insert("can".into(), can);
        }
        if let Some(Ok(calls)) = tool_calls.map(Value::try_from) {
            entry.insert("tool_calls".into(), calls);
        }
    }

    /// Forgets the models that are not among `names`, but for those that were tried out: not every list is whole.
    pub fn keep(&mut self, names: &BTreeSet<&str>) {
        let is_there =
            |model: &Value| model.get("name").and_then(Value::as_str).is_some_and(|name| names.contains(name));
        self.models().retain(|model| is_there(model) || model.get("can").is_some());
    }

    /// Writes the file whole, or leaves it as it was.
    pub fn write(&self) -> Result<(), Failure> {
        let written = || -> io::Result<()> {
            let folder = self.file.parent().unwrap_or(Path::new("."));
            fs::create_dir_all(folder)?;
            let mut fresh = tempfile::NamedTempFile::new_in(folder)?;
            fresh.write_all(HEAD.as_bytes())?;
            fresh.write_all(toml::to_string(&self.table).map_err(io::Error::other)?.as_bytes())?;
            fresh.persist(&self.file).map(drop).map_err(|error| error.error)
        };
        written().map_err(|error| Failure::usage(format!("{} can't be written: {error}", self.file.display())))
    }

    fn models(&mut self) -> &mut Vec<Value> {
        let models = self.table.entry("model").or_insert_with(|| Value::Array(vec![]));
        if !models.is_array() {
            *models = Value::Array(vec![]);
        }
        match models {
            Value::Array(models) => models,
            _ => unreachable!("it was just made a list"),
        }
    }

    fn model(&mut self, name: &str) -> &mut Table {
        let models = self.models();
        let is_it = |model: &Value| model.is_table() && model.get("name").and_then(Value::as_str) == Some(name);
        let place = models.iter().position(is_it).unwrap_or_else(|| {
            models.push(Value::Table(Table::from_iter([("name".to_owned(), Value::from(name))])));
            models.len() - 1
        });
        match &mut models[place] {
            Value::Table(table) => table,
            _ => unreachable!("only tables are looked for and added"),
        }
    }
}
