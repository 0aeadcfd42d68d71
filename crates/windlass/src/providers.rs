//! Where models live: the catalog's providers and those of one's own, with the addresses and keys that hold here.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use windlass_llm::{
    ApiKey, Auth, AwsKeys, Catalog, Endpoint, KeySource, ModelInfo, ProviderInfo, Quirk, ToolCalls, WireProtocol,
};

/// Looks an environment variable up.
pub type Variable = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;
/// Makes a source of keys out of a command that prints one.
pub type KeyCommand = Arc<dyn Fn(&str) -> KeySource + Send + Sync>;

/// Where AWS is asked if nobody says; its own tools do the same.
const USUAL_REGION: &str = "us-east-1";

/// Where the key is kept that servers with OpenAI's protocols go by.
const OPENAI_KEY: &str = "OPENAI_API_KEY";

/// Providers by name, as in `PROVIDER/NAME`. Those of the catalog are read when they are asked for.
#[derive(Clone)]
pub struct Providers {
    catalog: Catalog,
    own: BTreeMap<String, Provider>,
    variable: Variable,
    key_command: Option<KeyCommand>,
    /// The sources made so far, by command: all sessions wait for one run of it, and not each for its own.
    sources: Arc<Mutex<BTreeMap<String, KeySource>>>,
}

/// Where and how one provider is spoken to.
#[derive(Clone)]
pub struct Provider {
    pub protocol: WireProtocol,
    /// What stands before the protocol's own path: for Anthropic Messages without `/v1`, for the others with what the
    /// catalog has.
    pub base_url: String,
    pub auth: Auth,
    /// It answers nobody without a key.
    pub needs_key: bool,
    /// Where its key is usually kept: an environment variable's name, or several; empty for nowhere.
    pub key_hint: String,
    /// Further headers of every request.
    pub headers: Vec<(String, String)>,
    pub quirks: Vec<Quirk>,
    /// How its models' tool calls arrive; none: as the catalog has it of each model.
    pub tool_calls: Option<ToolCalls>,
}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A header's value may be a key too.
        let headers: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("Provider")
            .field("protocol", &self.protocol)
            .field("base_url", &self.base_url)
            .field("auth", &self.auth)
            .field("needs_key", &self.needs_key)
            .field("key_hint", &self.key_hint)
            .field("headers", &headers)
            .field("quirks", &self.quirks)
            .field("tool_calls", &self.tool_calls)
            .finish()
    }
}

impl Default for Providers {
    /// The providers of the catalog, without keys: nothing is looked up.
    fn default() -> Providers {
        Providers::of(Catalog::default(), Arc::new(|_| None))
    }
}

impl fmt::Debug for Providers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Providers").field("own", &self.own).finish_non_exhaustive()
    }
}

impl Providers {
    /// The providers of `catalog`, with keys and addresses by `variable`.
    pub fn of(catalog: Catalog, variable: Variable) -> Providers {
        Providers { catalog, own: BTreeMap::new(), variable, key_command: None, sources: Arc::default() }
    }

    /// Lets keys be had from the commands that the catalog names.
    pub fn with_key_command(self, key_command: KeyCommand) -> Providers {
        Providers { key_command: Some(key_command), sources: Arc::default(), ..self }
    }

    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// Sets a provider of one's own, or in the place of the catalog's.
    pub fn set(&mut self, name: impl Into<String>, provider: Provider) {
        let name = name.into();
        let name = self.catalog.provider(&name).map_or(name, |info| info.name.clone());
        self.own.insert(name, provider);
    }

    /// The provider of this name or alias; the error says what its address lacks. A wire protocol's name is a provider
    /// of its own, at an address that is still to be given.
    pub fn get(&self, name: &str) -> Result<Option<Provider>, String> {
        if let Some(own) = self.own.get(name) {
            return Ok(Some(own.clone()));
        }
        let Some(info) = self.catalog.provider(name) else {
            let named = WireProtocol::ALL.into_iter().find(|protocol| protocol.name() == name);
            return Ok(named.map(|protocol| self.bare(protocol)));
        };
        match self.own.get(&info.name) {
            Some(own) => Ok(Some(own.clone())),
            None => self.resolved(&info).map(Some),
        }
    }

    /// The provider of this name or alias at another address, whose protocol and key stay; none if there is no such
    /// provider.
    pub fn moved(&self, name: &str, base_url: &str) -> Option<Provider> {
        let base_url = base_url.to_owned();
        if let Some(own) = self.own.get(&self.name_of(name)) {
            return Some(Provider { base_url, needs_key: false, ..own.clone() });
        }
        match self.catalog.provider(name) {
            Some(info) => Some(Provider { base_url, needs_key: false, ..self.at_home(&info, String::new()) }),
            None => self.get(name).ok()?.map(|bare| Provider { base_url, ..bare }),
        }
    }

    /// The name itself, of an alias.
    pub fn name_of(&self, name: &str) -> String {
        self.catalog.provider(name).map_or_else(|| name.to_owned(), |info| info.name.clone())
    }

    /// All names, in order.
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.catalog.names().into_iter().map(str::to_owned).collect();
        names.extend(self.own.keys().cloned());
        names.sort();
        names.dedup();
        names
    }

    /// What the catalog knows of `PROVIDER/NAME`.
    pub fn model(&self, name: &str) -> Option<ModelInfo> {
        self.catalog.model(name)
    }

    /// What the environment variable holds; a blank one is as good as none.
    fn value(&self, name: &str) -> Option<String> {
        (self.variable)(name).filter(|value| !value.trim().is_empty())
    }

    /// A protocol without an address of its own. Whoever speaks one of OpenAI's goes by its key, if there is one.
    fn bare(&self, protocol: WireProtocol) -> Provider {
        let provider = Provider::at(protocol, "");
        if !matches!(protocol, WireProtocol::Chat | WireProtocol::Responses) {
            return provider;
        }
        let auth = self.value(OPENAI_KEY).map_or(Auth::None, |key| Auth::Key(ApiKey::new(key)));
        Provider { auth, key_hint: OPENAI_KEY.to_owned(), ..provider }
    }

    fn resolved(&self, info: &ProviderInfo) -> Result<Provider, String> {
        let base_url = info.address(|name| self.value(name)).map_err(|error| error.to_string())?;
        Ok(self.at_home(info, base_url))
    }

    fn at_home(&self, info: &ProviderInfo, base_url: String) -> Provider {
        let needs_key = !info.key_variables.is_empty() || info.key_command.is_some();
        let auth = self.auth(info);
        let mut key_hint = info.key_variables.join(" or ");
        if info.protocol == WireProtocol::Bedrock {
            key_hint += ", or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY";
        }
        if let Some(command) = info.key_command.as_ref().filter(|_| key_hint.is_empty()) {
            key_hint = format!("what `{command}` prints");
        }
        let (protocol, quirks) = (info.protocol, info.quirks.iter().copied().collect());
        let provider =
            Provider { protocol, base_url, auth, needs_key, key_hint, headers: vec![], quirks, tool_calls: None };
        // What a file tells of a protocol's own name takes nothing from it.
        if provider.key_hint.is_empty() && info.name == protocol.name() {
            let Provider { auth, key_hint, .. } = self.bare(protocol);
            return Provider { auth, key_hint, ..provider };
        }
        provider
    }

    fn aws_keys(&self, info: &ProviderInfo) -> Option<AwsKeys> {
        let region = info.fill.get("region").into_iter().flatten().find_map(|name| self.value(name));
        Some(AwsKeys {
            access_key_id: self.value("AWS_ACCESS_KEY_ID")?,
            secret_access_key: self.value("AWS_SECRET_ACCESS_KEY")?,
            session_token: self.value("AWS_SESSION_TOKEN"),
            region: region.unwrap_or_else(|| USUAL_REGION.to_owned()),
        })
    }

    fn source(&self, command: &str, run: &KeyCommand) -> KeySource {
        let mut sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        sources.entry(command.to_owned()).or_insert_with(|| run(command)).clone()
    }

    fn auth(&self, info: &ProviderInfo) -> Auth {
        if let Some(key) = info.key_variables.iter().find_map(|name| self.value(name)) {
            return Auth::Key(ApiKey::new(key));
        }
        if info.protocol == WireProtocol::Bedrock {
            return self.aws_keys(info).map_or(Auth::None, Auth::Aws);
        }
        match (&info.key_command, &self.key_command) {
            (Some(command), Some(run)) => Auth::Source(self.source(command, run)),
            _ => Auth::None,
        }
    }
}

impl Provider {
    /// A provider at `base_url` that needs no key.
    pub fn at(protocol: WireProtocol, base_url: impl Into<String>) -> Provider {
        Provider {
            protocol,
            base_url: base_url.into(),
            auth: Auth::None,
            needs_key: false,
            key_hint: String::new(),
            headers: vec![],
            quirks: vec![],
            tool_calls: None,
        }
    }

    pub fn with_key(self, key: impl AsRef<str>) -> Provider {
        Provider { auth: Auth::Key(ApiKey::new(key)), ..self }
    }

    /// Where one of its models is reached, of which the catalog may know something; `name` is the provider's own.
    pub fn endpoint(&self, name: &str, model: Option<&ModelInfo>) -> Endpoint {
        let mut quirks = self.quirks.clone();
        quirks.extend(model.iter().flat_map(|info| info.quirks.iter().copied()));
        Endpoint {
            provider: name.to_owned(),
            base_url: self.base_url.clone(),
            auth: self.auth.clone(),
            key_hint: self.key_hint.clone(),
            headers: self.headers.clone(),
            quirks,
            efforts: model.map(|info| info.effort.clone()),
        }
    }

    pub fn has_key(&self) -> bool {
        !matches!(self.auth, Auth::None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn headers_are_printed_without_their_values() {
        let mut provider = Provider::at(WireProtocol::Chat, "http://127.0.0.1:1").with_key("sk-secret");
        provider.headers = vec![("x-gateway-key".into(), "secret-too".into())];
        let printed = format!("{provider:?}");
        assert!(printed.contains("x-gateway-key") && !printed.contains("secret"), "{printed}");
    }

    #[test]
    fn a_protocol_of_openai_goes_by_its_key() {
        let variable: Variable = Arc::new(|name| (name == "OPENAI_API_KEY").then(|| "sk-1".to_owned()));
        let providers = Providers::of(Catalog::default(), variable);
        for name in ["chat", "responses"] {
            let provider = providers.moved(name, "http://127.0.0.1:1/v1").unwrap();
            assert!(matches!(&provider.auth, Auth::Key(key) if *key == ApiKey::new("sk-1")), "{provider:?}");
            assert_eq!((provider.key_hint.as_str(), provider.needs_key), ("OPENAI_API_KEY", false));
        }
    }

    #[test]
    fn a_key_command_has_one_source_for_all_who_ask() {
        let made = Arc::new(AtomicUsize::new(0));
        let counted = made.clone();
        let run: KeyCommand = Arc::new(move |_| {
            counted.fetch_add(1, Ordering::SeqCst);
            KeySource(Arc::new(|| Box::pin(async { Err("never asked".into()) })))
        });
        let file = "protocol = \"chat\"\nbase_url = \"https://example.com/v1\"\nkey_command = \"print-key\"\n";
        let catalog = Catalog::default().with("example", file).unwrap();
        let providers = Providers::of(catalog, Arc::new(|_| None)).with_key_command(run);
        for providers in [&providers, &providers.clone()] {
            let provider = providers.get("example").unwrap().unwrap();
            assert!(matches!(provider.auth, Auth::Source(_)), "{provider:?}");
        }
        assert_eq!(made.load(Ordering::SeqCst), 1);
    }
}
