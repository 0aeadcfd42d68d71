//! Every name that leaves the process, as the GenAI conventions have it.
//!
//! Source: github.com/open-telemetry/semantic-conventions-genai, branch `main` as of November 2026 (`client-inference`,
//! `gen-ai-agent-spans`, `execute-tool`, `gen-ai-token-metrics`, `migration`). Its status is "Development": names still
//! change, and this is the one place to change them.

// What is done.
pub const CHAT: &str = "chat";
pub const EXECUTE_TOOL: &str = "execute_tool";
pub const INVOKE_AGENT: &str = "invoke_agent";

// Attributes.
pub const OPERATION: &str = "gen_ai.operation.name";
pub const PROVIDER: &str = "gen_ai.provider.name";
pub const CONVERSATION: &str = "gen_ai.conversation.id";
pub const AGENT: &str = "gen_ai.agent.name";
pub const REQUEST_MODEL: &str = "gen_ai.request.model";
pub const REQUEST_MAX_TOKENS: &str = "gen_ai.request.max_tokens";
pub const REQUEST_TEMPERATURE: &str = "gen_ai.request.temperature";
pub const REQUEST_TOP_P: &str = "gen_ai.request.top_p";
pub const REQUEST_STREAM: &str = "gen_ai.request.stream";
pub const FINISH_REASONS: &str = "gen_ai.response.finish_reasons";
pub const TIME_TO_FIRST_CHUNK: &str = "gen_ai.response.time_to_first_chunk";
pub const INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
pub const OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
pub const CACHE_READ_TOKENS: &str = "gen_ai.usage.cache_read.input_tokens";
pub const CACHE_WRITE_TOKENS: &str = "gen_ai.usage.cache_write.input_tokens";
pub const REASONING_TOKENS: &str = "gen_ai.usage.reasoning.output_tokens";
pub const INPUT_MESSAGES: &str = "gen_ai.input.messages";
pub const OUTPUT_MESSAGES: &str = "gen_ai.output.messages";
pub const TOOL: &str = "gen_ai.tool.name";
pub const TOOL_TYPE: &str = "gen_ai.tool.type";
pub const TOOL_CALL: &str = "gen_ai.tool.call.id";
pub const TOOL_ARGUMENTS: &str = "gen_ai.tool.call.arguments";
pub const TOOL_RESULT: &str = "gen_ai.tool.call.result";
pub const TOKEN_TYPE: &str = "gen_ai.token.type";
pub const TOKEN_MODALITY: &str = "gen_ai.token.modality";
pub const ERROR: &str = "error.type";
pub const HTTP_STATUS: &str = "http.response.status_code";

// Attributes of our own.
/// Dollars, where a price is known.
pub const COST: &str = "windlass.cost_usd";
/// 1 for the first, counted anew after each whole answer.
pub const ATTEMPT: &str = "windlass.attempt";
/// What a model call was for: `main`, `compaction`, `subagent`.
pub const ROLE: &str = "windlass.role";
/// The turn began in another process, or before the session was taken up.
pub const TAKEN_UP: &str = "windlass.taken_up";

// Metrics.
pub const DURATION: &str = "gen_ai.client.inference.duration";
pub const FIRST_CHUNK: &str = "gen_ai.client.inference.time_to_first_chunk";
pub const USAGE_INPUT: &str = "gen_ai.client.inference.usage.input_tokens";
pub const USAGE_OUTPUT: &str = "gen_ai.client.inference.usage.output_tokens";
pub const USAGE_CACHE_READ: &str = "gen_ai.client.inference.usage.cache_read.input_tokens";
pub const USAGE_CACHE_WRITE: &str = "gen_ai.client.inference.usage.cache_write.input_tokens";
pub const USAGE_REASONING: &str = "gen_ai.client.inference.usage.reasoning.output_tokens";

// The same under the names of v1.41.0, the last published version, which today's dashboards look for.
pub const OLD_TOKEN_USAGE: &str = "gen_ai.client.token.usage";
pub const OLD_DURATION: &str = "gen_ai.client.operation.duration";
pub const OLD_FIRST_CHUNK: &str = "gen_ai.client.operation.time_to_first_chunk";

/// Bounds of the buckets of durations, in seconds.
pub const SECONDS: [f64; 14] = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
/// Bounds of the buckets of token counts: powers of four.
pub const TOKENS: [f64; 14] = [
    1.0, 4.0, 16.0, 64.0, 256.0, 1024.0, 4096.0, 16384.0, 65536.0, 262144.0, 1048576.0, 4194304.0, 16777216.0,
    67108864.0,
];

// What `error.type` says besides the kinds of model failures, the outcomes of calls and the ends of turns.
pub const CANCELLED: &str = "cancelled";
pub const TOOL_FAILED: &str = "tool_error";
pub const COMPACTION_FAILED: &str = "compaction_failed";
/// Nothing was heard of its end: the session was left, or taken up anew.
pub const LEFT: &str = "left";

/// A provider's name as the conventions have it, where they know it.
pub fn provider(ours: &str) -> &str {
    match ours {
        "mistral" => "mistral_ai",
        "moonshot" => "moonshot_ai",
        "xai" => "x_ai",
        "gemini" => "gcp.gemini",
        "vertex" => "gcp.vertex_ai",
        "bedrock" => "aws.bedrock",
        "azure" => "azure.ai.openai",
        other => other,
    }
}
