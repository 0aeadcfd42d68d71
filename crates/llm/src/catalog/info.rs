//! What the catalog knows of one provider and one model.

use crate::{CatalogError, Prices};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The wire protocol that a provider speaks, and where its `base_url` ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WireProtocol {
    /// The Messages API; without `/v1`.
    Anthropic,
    /// Chat Completions; before `/chat/completions`.
    Chat,
    /// OpenAI's Responses API; before `/responses`.
    Responses,
    /// Gemini's `streamGenerateContent`; before `/models/NAME`.
    Gemini,
    /// The Messages API behind AWS Bedrock's `invoke-with-response-stream`; the host alone.
    Bedrock,
    /// The Messages API behind Google Cloud's `streamRawPredict`; before `/models/NAME`.
    Vertex,
}

impl WireProtocol {
    pub const ALL: [WireProtocol; 6] = [
        WireProtocol::Anthropic,
        WireProtocol::Chat,
        WireProtocol::Responses,
        WireProtocol::Gemini,
        WireProtocol::Bedrock,
        WireProtocol::Vertex,
    ];

    /// Its name in the catalog and the configuration.
    pub fn name(self) -> &'static str {
        match self {
            WireProtocol::Anthropic => "anthropic",
            WireProtocol::Chat => "chat",
            WireProtocol::Responses => "responses",
            WireProtocol::Gemini => "gemini",
            WireProtocol::Bedrock => "bedrock",
            WireProtocol::Vertex => "vertex",
        }
    }
}

/// What a model can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ability {
    /// It calls tools.
    Tools,
    /// It calls several tools in one message.
    Parallel,
    Images,
    Pdfs,
    /// It thinks before it answers.
    Thinking,
    /// Its answer keeps to a JSON Schema.
    Schema,
    /// Its provider keeps the beginning of a request and charges less for it.
    Cache,
}

/// Where a provider or model parts from its protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Quirk {
    /// Chat: `max_completion_tokens` in place of `max_tokens`.
    MaxCompletionTokens,
    /// Chat: refuses `stream_options`.
    NoStreamUsage,
    /// Takes `prompt_cache_key`.
    CacheKey,
    /// Chat: takes Anthropic's `cache_control` marks.
    CacheMarks,
    /// Chat: takes `reasoning_effort`.
    ReasoningEffort,
    /// Chat: takes `enable_thinking` and `thinking_budget`.
    EnableThinking,
    /// Takes `thinking: {type: disabled}`, and in Chat `{type: enabled}`.
    ThinkingSwitch,
    /// Chat: `reasoning_content` must be sent back within a tool round.
    ReasoningBack,
    /// Of response formats it takes only `json_object`.
    SchemaAsJson,
    /// Ids of tool calls are exactly nine letters and digits.
    ShortIds,
    /// Refuses sampling settings.
    NoTemperature,
    /// Responses: refuses `reasoning`, for the model does not think.
    NoThinking,
    /// Messages API: `thinking: {type: adaptive}` with `output_config.effort` in place of a token budget.
    AdaptiveThinking,
    /// Messages API: refuses thinking that comes back behind anything but what it came from, unless told to drop it.
    BoundThinking,
    /// Takes no pictures. Set for every model that the catalog knows and does not say it of.
    NoImages,
    /// Takes no PDFs. Set likewise.
    NoPdfs,
}

/// How a model's tool calls arrive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolCalls {
    /// As the protocol has them.
    #[default]
    Native,
    /// Written out in the text of the answer.
    Text,
}

/// One provider of models.
#[derive(Clone, Debug, PartialEq)]
pub struct ProviderInfo {
    /// As in `PROVIDER/NAME`.
    pub name: String,
    pub title: String,
    pub aliases: Vec<String>,
    pub protocol: WireProtocol,
    /// Its address, with parts such as `{region}` where [`ProviderInfo::address`] fills them in.
    pub base_url: String,
    /// The environment variables of each such part; the first that is set wins.
    pub fill: BTreeMap<String, Vec<String>>,
    /// Environment variables that hold its key; the first that is set wins. Empty: it needs none.
    pub key_variables: Vec<String>,
    /// A command that prints a key.
    pub key_command: Option<String>,
    /// It runs on the user's own machine.
    pub local: bool,
    pub quirks: BTreeSet<Quirk>,
    /// The model taken where only the provider is named.
    pub usual: Option<String>,
    /// Where all this was read.
    pub source: Option<String>,
    /// When it was read, as `YYYY-MM`.
    pub checked: Option<String>,
    pub models: Vec<ModelInfo>,
}

/// One model of a provider.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelInfo {
    /// The provider's name as in `PROVIDER/NAME`.
    pub provider: String,
    /// As the provider knows it.
    pub name: String,
    /// Most tokens of input and output together.
    pub window: Option<u64>,
    /// Most tokens of one answer.
    pub max_output: Option<u64>,
    pub prices: Option<Prices>,
    pub can: BTreeSet<Ability>,
    /// The words of effort that it takes, weakest first; empty: none.
    pub effort: Vec<String>,
    /// Tools of its own habit, such as `apply_patch`.
    pub tools: Vec<String>,
    /// Its own and its provider's.
    pub quirks: BTreeSet<Quirk>,
    pub tool_calls: ToolCalls,
}

impl ProviderInfo {
    /// The model of this name: as it stands, or but for a date, a version or a region.
    pub fn model(&self, name: &str) -> Option<&ModelInfo> {
        let exact = self.models.iter().find(|model| model.name == name);
        exact.or_else(|| self.models.iter().find(|model| super::name::plain(&model.name) == super::name::plain(name)))
    }

    /// The address with its parts filled in from `variable`, which looks an environment variable up.
    pub fn address(&self, variable: impl Fn(&str) -> Option<String>) -> Result<String, CatalogError> {
        let mut address = self.base_url.clone();
        for (part, variables) in self.fill.iter().filter(|(part, _)| self.base_url.contains(&format!("{{{part}}}"))) {
            let value = variables.iter().find_map(|name| variable(name).filter(|value| !value.trim().is_empty()));
            let Some(value) = value else {
                let (provider, part) = (self.name.clone(), part.clone());
                return Err(CatalogError::Unfilled { provider, part, variables: variables.join(" or ") });
            };
            address = address.replace(&format!("{{{part}}}"), value.trim());
        }
        Ok(match self.protocol {
            WireProtocol::Vertex => crate::anthropic::multi_region(&address),
            _ => address,
        })
    }
}
