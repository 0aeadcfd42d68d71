//! Which providers and models there are, where they are reached, what they can do and what they cost: data, not code.
//!
//! One file per provider, `crates/llm/catalog/NAME.toml`, compiled in and read when its provider is first asked for.
//! A user's file of the same form lies over ours ([`Catalog::with`]):
//!
//! ```toml
//! title = "Example"
//! aliases = ["ex"]                         # on one line
//! protocol = "chat"                        # anthropic, chat, responses, gemini, bedrock, vertex
//! base_url = "https://{region}.example.com/v1"
//! fill = { region = ["EXAMPLE_REGION"] }   # environment variables of each {part}; the first that is set wins
//! key_variables = ["EXAMPLE_API_KEY"]      # the first that is set wins; empty: no key is needed
//! key_command = "example print-key"        # a command that prints a key
//! local = false                            # on the user's own machine
//! quirks = ["cache-key"]                   # see Quirk
//! usual = "example-large"                  # the model taken where only the provider is named
//! source = "https://example.com/pricing"   # where this was read
//! checked = "2026-11"                      # and when
//!
//! [[model]]
//! name = "example-large"
//! window = 200_000                         # tokens of input and output
//! max_output = 64_000                      # tokens
//! input = 3.0                              # US dollars per million tokens; absent: unknown
//! output = 15.0
//! cache_read = 0.3                         # absent: as input
//! cache_write = 3.75                       # absent: as input
//! above = { tokens = 200_000, input = 6.0, output = 22.5 }   # prices of a request whose input is longer
//! can = ["tools", "thinking"]              # see Ability
//! effort = ["low", "high"]                 # words of effort that it takes
//! tools = ["apply_patch"]                  # tools of its own habit
//! quirks = ["no-temperature"]              # besides its provider's
//! tool_calls = "text"                      # its calls arrive as text; absent: native
//! ```
//!
//! A number that no page gives is left out, never guessed.

mod built_in;
mod error;
mod info;
mod name;
mod sheet;
#[cfg(test)]
mod tests;

pub use error::CatalogError;
pub use info::{Ability, ModelInfo, ProviderInfo, Quirk, ToolCalls, WireProtocol};

use sheet::Sheet;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// All providers that are known by name. Cheap to clone; the default one holds those that come with the crate.
#[derive(Clone)]
pub struct Catalog {
    entries: Arc<[Arc<Entry>]>,
}

/// One provider, read or still to be read.
struct Entry {
    name: String,
    /// Its file, if it comes with the crate; the user's are read at once.
    text: &'static str,
    read: OnceLock<Read>,
}

struct Read {
    /// Kept so that another file can lie over it.
    sheet: Sheet,
    info: Arc<ProviderInfo>,
}

impl Default for Catalog {
    fn default() -> Catalog {
        let entry =
            |(name, text): &(&str, &'static str)| Arc::new(Entry { name: (*name).into(), text, read: OnceLock::new() });
        Catalog { entries: built_in::FILES.iter().map(entry).collect() }
    }
}

impl Catalog {
    /// The provider of this name or alias; reads its file alone.
    pub fn provider(&self, name: &str) -> Option<Arc<ProviderInfo>> {
        self.entry(name).map(|entry| entry.read().info.clone())
    }

    /// All providers, by name; reads every file.
    pub fn providers(&self) -> Vec<Arc<ProviderInfo>> {
        self.entries.iter().map(|entry| entry.read().info.clone()).collect()
    }

    /// The names of all providers, in order; reads no file.
    pub fn names(&self) -> Vec<&str> {
        self.entries.iter().map(|entry| entry.name.as_str()).collect()
    }

    /// The model `PROVIDER/NAME`: as it stands, or but for a date, a version or a region.
    pub fn model(&self, name: &str) -> Option<ModelInfo> {
        let (provider, name) = name.split_once('/')?;
        self.provider(provider)?.model(name).cloned()
    }

    /// This catalog with a user's file: over the provider of that name or alias, or as a new provider.
    pub fn with(self, name: &str, text: &str) -> Result<Catalog, CatalogError> {
        let over = Sheet::read(name, text)?;
        let known = self.entry(name);
        let base = known.map(|entry| entry.read().sheet.clone()).unwrap_or_default();
        let name = known.map_or(name, |entry| &entry.name).to_owned();
        let sheet = base.under(&over);
        let info = Arc::new(sheet.provider(&name)?);
        self.check_names(&info)?;
        let entry = Arc::new(Entry { name, text: "", read: OnceLock::from(Read { sheet, info }) });
        let others = self.entries.iter().filter(|other| other.name != entry.name).cloned();
        let mut entries: Vec<Arc<Entry>> = others.chain([entry.clone()]).collect();
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Catalog { entries: entries.into() })
    }

    /// Whether some provider's key is kept in the environment variable `name`; reads no file.
    pub fn is_key_variable(&self, name: &str) -> bool {
        self.entries.iter().any(|entry| entry.keeps_key_in(name))
    }

    fn entry(&self, name: &str) -> Option<&Arc<Entry>> {
        let named = self.entries.iter().find(|entry| entry.name == name);
        named.or_else(|| self.entries.iter().find(|entry| entry.is_called(name)))
    }

    /// That each name leads to one provider, and can be written before the `/` of a model.
    fn check_names(&self, info: &ProviderInfo) -> Result<(), CatalogError> {
        let refused = |what| Err(CatalogError::Refused { file: info.name.clone(), what });
        for name in [&info.name].into_iter().chain(&info.aliases) {
            if name.is_empty() || name.contains(|c: char| c == '/' || c.is_whitespace()) {
                return refused(format!("\"{name}\" is no name of a provider: leave out slashes and spaces"));
            }
            if let Some(other) = self.entry(name).filter(|other| other.name != info.name) {
                return refused(format!("\"{name}\" already stands for `{}`: choose another alias", other.name));
            }
        }
        Ok(())
    }
}

impl Entry {
    fn keeps_key_in(&self, name: &str) -> bool {
        match self.read.get() {
            Some(read) => read.info.key_variables.iter().any(|variable| variable == name),
            None => {
                let mut lines = self.text.lines().filter(|line| line.starts_with("key_variables"));
                lines.any(|line| line.contains(&format!("\"{name}\"")))
            }
        }
    }

    fn read(&self) -> &Read {
        self.read.get_or_init(|| {
            let read = || -> Result<Read, CatalogError> {
                let sheet = Sheet::read(&self.name, self.text)?;
                let info = Arc::new(sheet.provider(&self.name)?);
                Ok(Read { sheet, info })
            };
            read().expect("a test reads each file that comes with the crate")
        })
    }

    fn is_called(&self, alias: &str) -> bool {
        self.may_be_called(alias) && self.read().info.aliases.iter().any(|own| own == alias)
    }

    /// Looks into the text alone, so that one alias does not have every file read.
    fn may_be_called(&self, alias: &str) -> bool {
        let mut lines = self.text.lines();
        self.read.get().is_some() || lines.any(|line| line.starts_with("aliases") && line.contains(alias))
    }
}

impl fmt::Debug for Catalog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Catalog").field(&self.names()).finish()
    }
}
