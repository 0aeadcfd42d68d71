//! What differs from call to call: it stands first, so that all behind it can be kept.

use crate::body::opened;
use crate::effort::{effort_of, word};
use crate::endpoint::Target;
use crate::wording::set_sampling;
use crate::{Quirk, Request, schema};
use serde_json::{Value, json};
use windlass_kernel::{Effort, Parameters, ToolChoice};

pub(super) fn opening(target: &Target, request: &Request) -> Vec<u8> {
    let parameters = &request.parameters;
    let mut body = json!({ "model": target.model, "stream": true });
    if !target.has(Quirk::NoStreamUsage) {
        body["stream_options"] = json!({ "include_usage": true });
    }
    let limit = if target.has(Quirk::MaxCompletionTokens) { "max_completion_tokens" } else { "max_tokens" };
    body[limit] = parameters.max_tokens.into();
    if !target.has(Quirk::NoTemperature) {
        set_sampling(&mut body, parameters);
    }
    set_thinking(&mut body, target, parameters);
    if target.has(Quirk::CacheKey) && !request.cache_key.is_empty() {
        body["prompt_cache_key"] = request.cache_key.as_str().into();
    }
    if let Some(schema) = &request.output_schema {
        body["response_format"] = match target.has(Quirk::SchemaAsJson) {
            true => json!({ "type": "json_object" }),
            false => json!({ "type": "json_schema", "json_schema": schema::named(schema) }),
        };
    }
    // Without tools the word is refused.
    if let Some(choice) = tool_choice(&parameters.tool_choice).filter(|_| !request.tools.is_empty()) {
        body["tool_choice"] = choice;
    }
    opened(&body)
}

/// How hard the model is to think, in the words that the server takes.
fn set_thinking(body: &mut Value, target: &Target, parameters: &Parameters) {
    let Some(effort) = effort_of(parameters) else { return };
    let thinks = effort != Effort::None;
    if target.has(Quirk::ThinkingSwitch) {
        body["thinking"] = json!({ "type": if thinks { "enabled" } else { "disabled" } });
    }
    if target.has(Quirk::EnableThinking) {
        body["enable_thinking"] = thinks.into();
        if let Some(budget) = parameters.thinking_tokens.filter(|_| thinks) {
            body["thinking_budget"] = budget.into();
        }
    }
    // Where there is a switch, it has said already that there is no effort.
    let has_switch = target.has(Quirk::ThinkingSwitch) || target.has(Quirk::EnableThinking);
    if target.has(Quirk::ReasoningEffort)
        && (thinks || !has_switch)
        && let Some(word) = word(effort, target.endpoint.efforts.as_deref())
    {
        body["reasoning_effort"] = word.into();
    }
}

/// None where the word is the usual one, which some servers do not know.
fn tool_choice(choice: &ToolChoice) -> Option<Value> {
    Some(match choice {
        ToolChoice::Auto => return None,
        ToolChoice::None => "none".into(),
        ToolChoice::Any => "required".into(),
        ToolChoice::Tool { name } => json!({ "type": "function", "function": { "name": name } }),
    })
}
