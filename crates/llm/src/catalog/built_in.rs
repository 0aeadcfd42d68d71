//! The files that come with the crate.

macro_rules! files {
    ($($name:literal)*) => { &[$(($name, include_str!(concat!("../../catalog/", $name, ".toml")))),*] };
}

/// Name and text of each file, by name.
pub(super) const FILES: &[(&str, &str)] = files! {
    "anthropic"
    "azure"
    "baidu"
    "bedrock"
    "cerebras"
    "cohere"
    "deepinfra"
    "deepseek"
    "fireworks"
    "github-models"
    "google"
    "groq"
    "huggingface"
    "llamacpp"
    "lmstudio"
    "minimax"
    "mistral"
    "moonshot"
    "novita"
    "nvidia"
    "ollama"
    "openai"
    "openai-chat"
    "openrouter"
    "perplexity"
    "qwen"
    "qwen-intl"
    "sambanova"
    "siliconflow"
    "together"
    "vertex"
    "vllm"
    "volcengine"
    "xai"
    "zai"
    "zhipu"
};
