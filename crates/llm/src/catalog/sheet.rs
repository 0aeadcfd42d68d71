//! A file of the catalog as it is written: any key may be absent, so that a user's file says only what differs.

use super::info::{Ability, ModelInfo, ProviderInfo, Quirk, ToolCalls, WireProtocol};
use crate::{CatalogError, PriceError, Prices};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// The vendors' words of effort, weakest first.
const EFFORTS: [&str; 7] = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];

/// Characters of a bad line that its error quotes.
const MAX_QUOTED: usize = 80;

/// Defines a sheet and how another of its kind lies over it: what the other gives, wins.
macro_rules! sheet {
    ($name:ident { $($key:ident: $kind:ty),* $(,)? } $(unmerged { $($own:ident: $own_kind:ty),* $(,)? })?) => {
        #[derive(Clone, Debug, Default, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(super) struct $name {
            $($key: Option<$kind>,)*
            $($(#[serde(default)] $own: $own_kind,)*)?
        }

        impl $name {
            fn take(&mut self, over: &$name) {
                $(if over.$key.is_some() { self.$key.clone_from(&over.$key); })*
            }
        }
    };
}

sheet!(Sheet {
    title: String,
    aliases: Vec<String>,
    protocol: WireProtocol,
    base_url: String,
    key_variables: Vec<String>,
    key_command: String,
    local: bool,
    quirks: BTreeSet<Quirk>,
    usual: String,
    source: String,
    checked: String,
} unmerged {
    fill: BTreeMap<String, Vec<String>>,
    model: Vec<ModelSheet>,
});

sheet!(ModelSheet {
    window: u64,
    max_output: u64,
    input: f64,
    output: f64,
    cache_read: f64,
    cache_write: f64,
    above: AboveSheet,
    can: BTreeSet<Ability>,
    effort: Vec<String>,
    tools: Vec<String>,
    quirks: BTreeSet<Quirk>,
    tool_calls: ToolCalls,
} unmerged {
    name: String,
});

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AboveSheet {
    tokens: u64,
    input: f64,
    output: f64,
    cache_read: Option<f64>,
    cache_write: Option<f64>,
}

impl Sheet {
    pub(super) fn read(file: &str, text: &str) -> Result<Sheet, CatalogError> {
        let sheet: Sheet = toml::from_str(text).map_err(|error| {
            let before = error.span().map_or(0, |span| span.start.min(text.len()));
            let line = text.as_bytes()[..before].iter().filter(|byte| **byte == b'\n').count();
            let says = text.lines().nth(line).unwrap_or_default().trim().chars().take(MAX_QUOTED).collect();
            let problem = error.message().replace('\n', " ");
            CatalogError::Unreadable { file: file.into(), line: line + 1, says, problem }
        })?;
        let mut names = BTreeSet::new();
        match sheet.model.iter().find(|model| !names.insert(&model.name)) {
            Some(ModelSheet { name, .. }) => Err(CatalogError::Refused {
                file: file.into(),
                what: format!("model `{name}` is there twice: write it once"),
            }),
            None => Ok(sheet),
        }
    }

    /// This sheet with `over` laid on it: its keys win, and its models add to ours or lie over those of their name.
    pub(super) fn under(mut self, over: &Sheet) -> Sheet {
        self.take(over);
        self.fill.extend(over.fill.clone());
        for model in &over.model {
            match self.model.iter_mut().find(|ours| ours.name == model.name) {
                Some(ours) => ours.take(model),
                None => self.model.push(model.clone()),
            }
        }
        self
    }

    /// What the sheet says of the provider `name`, if it says enough.
    pub(super) fn provider(&self, name: &str) -> Result<ProviderInfo, CatalogError> {
        let refused = |what: String| CatalogError::Refused { file: name.into(), what };
        let base_url = self.base_url.clone().ok_or_else(|| {
            refused("base_url is absent: a new provider needs one, such as \"https://api.example.com/v1\"".into())
        })?;
        let protocol = self.protocol.ok_or_else(|| {
            refused("protocol is absent: a new provider needs one, such as \"chat\" or \"anthropic\"".into())
        })?;
        self.check(&base_url).map_err(refused)?;
        let info = ProviderInfo {
            name: name.into(),
            title: self.title.clone().unwrap_or_else(|| name.into()),
            aliases: self.aliases.clone().unwrap_or_default(),
            protocol,
            base_url,
            fill: self.fill.clone(),
            key_variables: self.key_variables.clone().unwrap_or_default(),
            key_command: self.key_command.clone(),
            local: self.local.unwrap_or_default(),
            quirks: self.quirks.clone().unwrap_or_default(),
            usual: self.usual.clone(),
            source: self.source.clone(),
            checked: self.checked.clone(),
            models: Vec::new(),
        };
        let models = self.model.iter().map(|model| model.info(&info)).collect::<Result<_, _>>()?;
        Ok(ProviderInfo { models, ..info })
    }

    /// What contradicts itself, with the way out.
    fn check(&self, base_url: &str) -> Result<(), String> {
        if !base_url.starts_with("https://") && !base_url.starts_with("http://") {
            return Err(format!("base_url = \"{base_url}\" is no address: begin it with https:// or http://"));
        }
        for part in base_url.split('{').skip(1).filter_map(|rest| Some(rest.split_once('}')?.0)) {
            if !self.fill.contains_key(part) {
                return Err(format!(
                    "nothing fills {{{part}}} in base_url: write fill = {{ {part} = [\"VARIABLE\"] }}"
                ));
            }
        }
        if let Some((part, _)) = self.fill.iter().find(|(_, variables)| variables.is_empty()) {
            return Err(format!("fill.{part} names no environment variable: give one at least"));
        }
        Ok(())
    }
}

impl ModelSheet {
    fn info(&self, provider: &ProviderInfo) -> Result<ModelInfo, CatalogError> {
        let (file, model) = (provider.name.clone(), self.name.clone());
        self.check().map_err(|what| CatalogError::Model { file: file.clone(), model: model.clone(), what })?;
        let prices = self.prices().map_err(|error| CatalogError::Price { file, model, error })?;
        Ok(ModelInfo {
            provider: provider.name.clone(),
            name: self.name.clone(),
            window: self.window,
            max_output: self.max_output,
            prices,
            can: self.can.clone().unwrap_or_default(),
            effort: self.effort.clone().unwrap_or_default(),
            tools: self.tools.clone().unwrap_or_default(),
            quirks: self.quirks(provider),
            tool_calls: self.tool_calls.unwrap_or_default(),
        })
    }

    /// Its provider's quirks, its own, and what follows from what it can do; nothing follows where that is not said.
    fn quirks(&self, provider: &ProviderInfo) -> BTreeSet<Quirk> {
        let lacks = |ability| self.can.as_ref().is_some_and(|can| !can.contains(&ability));
        let told = provider.quirks.iter().chain(self.quirks.iter().flatten()).copied();
        // Where the protocol itself knows documents, a model that sees pictures reads them, whether the list says so or not.
        let reads_pdfs = provider.protocol != WireProtocol::Chat && !lacks(Ability::Images);
        let media = [(Quirk::NoImages, lacks(Ability::Images)), (Quirk::NoPdfs, lacks(Ability::Pdfs) && !reads_pdfs)];
        told.chain(media.into_iter().filter(|(_, lacks)| *lacks).map(|(quirk, _)| quirk)).collect()
    }

    fn check(&self) -> Result<(), String> {
        if self.name.trim().is_empty() {
            return Err("a model needs a name: write name = \"…\" under [[model]]".into());
        }
        let limits = [("window", self.window), ("max_output", self.max_output)];
        if let Some((key, _)) = limits.into_iter().find(|(_, limit)| *limit == Some(0)) {
            return Err(format!("{key} = 0 leaves no room: give its tokens, or leave the key out where unknown"));
        }
        if let Some(word) = self.effort.iter().flatten().find(|word| !EFFORTS.contains(&word.as_str())) {
            return Err(format!("\"{word}\" is no word of effort: known are {}", EFFORTS.join(", ")));
        }
        let priced = [self.cache_read, self.cache_write].iter().any(Option::is_some) || self.above.is_some();
        match (self.input, self.output) {
            (Some(_), None) => Err("input has a price and output has none: give both, or neither".into()),
            (None, Some(_)) => Err("output has a price and input has none: give both, or neither".into()),
            (None, None) if priced => Err("it has further prices but none for input and output: give these too".into()),
            _ => Ok(()),
        }
    }

    /// Cached tokens without a price cost what input costs: rather too much than too little.
    fn prices(&self) -> Result<Option<Prices>, PriceError> {
        let (Some(input), Some(output)) = (self.input, self.output) else { return Ok(None) };
        let whole = |input: f64, output, read: Option<f64>, write: Option<f64>| {
            Prices::from_dollars(input, output, read.unwrap_or(input), write.unwrap_or(input))
        };
        let prices = whole(input, output, self.cache_read, self.cache_write)?;
        let Some(above) = &self.above else { return Ok(Some(prices)) };
        let long = whole(above.input, above.output, above.cache_read, above.cache_write)?;
        Ok(Some(prices.with_above(above.tokens, long)))
    }
}
