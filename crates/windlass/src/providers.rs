//! Where models live: names for addresses, and the protocol spoken there.

use std::collections::BTreeMap;
use windlass_llm::ApiKey;

/// Providers by name, as in `PROVIDER/NAME`.
#[derive(Clone, Debug, Default)]
pub struct Providers(BTreeMap<String, Provider>);

#[derive(Clone, Debug)]
pub struct Provider {
    pub protocol: Protocol,
    /// For Anthropic Messages without `/v1`, for Chat Completions with it.
    pub base_url: String,
    pub key: Option<ApiKey>,
    /// It answers nobody without a key.
    pub needs_key: bool,
    /// The environment variable its key is usually kept in; empty for none.
    pub key_variable: String,
    /// Further headers of every request.
    pub headers: Vec<(String, String)>,
}

/// A wire protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Anthropic Messages.
    Anthropic,
    /// OpenAI Chat Completions.
    OpenAiChat,
}

const HOSTED: [(&str, Protocol, &str, &str); 10] = [
    ("anthropic", Protocol::Anthropic, "https://api.anthropic.com", "ANTHROPIC_API_KEY"),
    ("openai", Protocol::OpenAiChat, "https://api.openai.com/v1", "OPENAI_API_KEY"),
    ("openrouter", Protocol::OpenAiChat, "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    ("deepseek", Protocol::OpenAiChat, "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"),
    ("groq", Protocol::OpenAiChat, "https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    ("mistral", Protocol::OpenAiChat, "https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
    ("qwen", Protocol::OpenAiChat, "https://dashscope.aliyuncs.com/compatible-mode/v1", "DASHSCOPE_API_KEY"),
    ("moonshot", Protocol::OpenAiChat, "https://api.moonshot.ai/v1", "MOONSHOT_API_KEY"),
    ("together", Protocol::OpenAiChat, "https://api.together.xyz/v1", "TOGETHER_API_KEY"),
    ("xai", Protocol::OpenAiChat, "https://api.x.ai/v1", "XAI_API_KEY"),
];

const LOCAL: [(&str, &str); 4] = [
    ("ollama", "http://127.0.0.1:11434/v1"),
    ("lmstudio", "http://127.0.0.1:1234/v1"),
    ("llamacpp", "http://127.0.0.1:8080/v1"),
    ("vllm", "http://127.0.0.1:8000/v1"),
];

impl Providers {
    /// The hosted providers everybody knows and the usual local servers, without keys.
    pub fn known() -> Providers {
        let hosted = HOSTED.iter().map(|(name, protocol, url, variable)| {
            let provider =
                Provider { needs_key: true, key_variable: (*variable).into(), ..Provider::at(*protocol, *url) };
            ((*name).to_owned(), provider)
        });
        let local = LOCAL.iter().map(|(name, url)| ((*name).to_owned(), Provider::at(Protocol::OpenAiChat, *url)));
        Providers(hosted.chain(local).collect())
    }

    pub fn set(&mut self, name: impl Into<String>, provider: Provider) {
        self.0.insert(name.into(), provider);
    }

    pub fn get(&self, name: &str) -> Option<&Provider> {
        self.0.get(name)
    }

    pub fn get_mut(&mut self, name: &str) -> Option<&mut Provider> {
        self.0.get_mut(name)
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

impl Provider {
    /// A provider at `base_url` that needs no key.
    pub fn at(protocol: Protocol, base_url: impl Into<String>) -> Provider {
        Provider {
            protocol,
            base_url: base_url.into(),
            key: None,
            needs_key: false,
            key_variable: String::new(),
            headers: vec![],
        }
    }

    pub fn with_key(self, key: impl AsRef<str>) -> Provider {
        Provider { key: Some(ApiKey::new(key)), ..self }
    }
}
