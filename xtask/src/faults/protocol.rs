//! How a model is addressed in each wire protocol.

use serde::Deserialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    Anthropic,
    Chat,
    Responses,
    Gemini,
    Bedrock,
    Vertex,
}

/// What stands for a key: its last part must show up in no message.
pub const SECRET: &str = "sk-faults-0123456789-secret";

impl Protocol {
    pub const ALL: [Protocol; 6] = [
        Protocol::Anthropic,
        Protocol::Chat,
        Protocol::Responses,
        Protocol::Gemini,
        Protocol::Bedrock,
        Protocol::Vertex,
    ];
    pub const NAMES: [&str; 6] = ["anthropic", "chat", "responses", "gemini", "bedrock", "vertex"];

    pub fn name(self) -> &'static str {
        Protocol::NAMES[self as usize]
    }

    pub fn named(name: &str) -> Option<Protocol> {
        Protocol::ALL.into_iter().find(|protocol| protocol.name() == name)
    }

    /// `PROVIDER/NAME` for the command line.
    pub fn model(self) -> &'static str {
        match self {
            Protocol::Anthropic => "anthropic/m",
            Protocol::Chat => "chat/m",
            Protocol::Responses => "responses/m",
            Protocol::Gemini => "google/m",
            Protocol::Bedrock => "bedrock/m",
            Protocol::Vertex => "vertex/m",
        }
    }

    /// The base URL of a server at `url`.
    pub fn address(self, url: &str) -> String {
        let path = match self {
            Protocol::Anthropic | Protocol::Bedrock => "",
            Protocol::Chat | Protocol::Responses => "/v1",
            Protocol::Gemini => "/v1beta",
            Protocol::Vertex => "/v1/projects/p/locations/l",
        };
        format!("{url}{path}")
    }

    /// Variables that hold the key, and what else the protocol wants to know.
    pub fn variables(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Protocol::Anthropic => &[("ANTHROPIC_API_KEY", SECRET)],
            Protocol::Chat | Protocol::Responses => &[("FAULTS_KEY", SECRET)],
            Protocol::Gemini => &[("GEMINI_API_KEY", SECRET)],
            Protocol::Bedrock => &[
                ("AWS_ACCESS_KEY_ID", "AKIAFAULTS0000000000"),
                ("AWS_SECRET_ACCESS_KEY", SECRET),
                ("AWS_REGION", "eu-central-1"),
            ],
            Protocol::Vertex => &[("VERTEX_TOKEN", SECRET)],
        }
    }

    /// Settings as `KEY=VALUE` for `--config`: where a key is looked for that no catalog entry names.
    pub fn settings(self, address: &str) -> Vec<String> {
        let own = |name: &str, variable: &str| {
            let entry = |key: &str, value: &str| format!("providers.{name}.{key}={value}");
            vec![entry("base_url", address), entry("key_variable", variable)]
        };
        match self {
            Protocol::Chat | Protocol::Responses => own(self.name(), "FAULTS_KEY"),
            Protocol::Vertex => own(self.name(), "VERTEX_TOKEN"),
            _ => Vec::new(),
        }
    }
}
