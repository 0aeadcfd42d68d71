//! What differs from call to call: how the model is to think, choose and answer.

use super::{Dialect, betas, schema};
use crate::body::opened;
use crate::effort::{effort_of, word};
use crate::endpoint::Target;
use crate::protocol::wire_name;
use crate::{Quirk, Request};
use serde_json::{Map, Value, json};
use windlass_kernel::{ContentBlock, Effort, Parameters, Role, ToolChoice};

/// The fewest tokens that the API takes as a budget for thinking.
const MIN_BUDGET: u32 = 1_024;

/// Budgets for thinking in tokens, by effort.
const MINIMAL: u32 = MIN_BUDGET;
const LOW: u32 = 4_096;
const MEDIUM: u32 = 10_000;
const HIGH: u32 = 32_000;

/// The body's beginning, which all that is kept from call to call stands behind.
pub(super) fn opening(target: &Target, request: &Request, dialect: Dialect) -> Vec<u8> {
    let parameters = &request.parameters;
    let mut body = address(target, dialect);
    body.insert("max_tokens".into(), parameters.max_tokens.into());
    let thinking = thinking(target, request);
    let samples = thinking.as_ref().is_none_or(|thinking| thinking["type"] == "disabled");
    if samples && !target.has(Quirk::NoTemperature) {
        let settings = [("temperature", parameters.temperature), ("top_p", parameters.top_p)];
        body.extend(settings.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.into()))));
    }
    body.extend(thinking.map(|thinking| ("thinking".to_owned(), thinking)));
    body.extend(tool_choice(request).map(|choice| ("tool_choice".to_owned(), choice)));
    let output = output(target, request);
    if !output.is_empty() {
        body.insert("output_config".into(), output.into());
    }
    opened(&body)
}

fn address(target: &Target, dialect: Dialect) -> Map<String, Value> {
    let fields = match dialect {
        Dialect::Home => json!({ "model": target.model, "stream": true }),
        Dialect::Vertex => json!({ "anthropic_version": "vertex-2023-10-16", "stream": true }),
        Dialect::Bedrock => match betas(target) {
            betas if betas.is_empty() => json!({ "anthropic_version": "bedrock-2023-05-31" }),
            betas => json!({ "anthropic_version": "bedrock-2023-05-31", "anthropic_beta": betas }),
        },
    };
    match fields {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

fn is_forced(choice: &ToolChoice) -> bool {
    matches!(choice, ToolChoice::Any | ToolChoice::Tool { .. })
}

/// The field `thinking`; none if the model is left to itself.
fn thinking(target: &Target, request: &Request) -> Option<Value> {
    let parameters = &request.parameters;
    let is_forced = is_forced(&parameters.tool_choice);
    if !target.has(Quirk::AdaptiveThinking) {
        let budget = budget(parameters).filter(|_| !is_forced && !is_amid_unthought_calls(target, request))?;
        return Some(json!({ "type": "enabled", "budget_tokens": budget }));
    }
    let has_switch = target.has(Quirk::ThinkingSwitch);
    let is_bound = target.has(Quirk::BoundThinking);
    match effort_of(parameters) {
        // Without the switch, silence means thinking.
        Some(Effort::None) if has_switch => return Some(json!({ "type": "disabled" })),
        _ if is_forced => return None,
        None if has_switch && !is_bound => return None,
        _ => {}
    }
    let mut thinking = json!({ "type": "adaptive", "display": "summarized" });
    if is_bound {
        // What was left out or summed up since would make the API refuse the whole request.
        thinking["block_binding"] = json!({ "prefix_mismatch_behavior": "drop_block" });
    }
    Some(thinking)
}

/// Whether results answer calls that were made without thinking, by another model or by force: until the next say of a
/// person the API refuses a budget for it.
fn is_amid_unthought_calls(target: &Target, request: &Request) -> bool {
    let newest = request.messages.iter().rposition(|message| message.role == Role::Assistant);
    let Some((said, answers)) = newest.and_then(|newest| request.messages[newest..].split_first()) else {
        return false;
    };
    let mut answered = answers.iter().flat_map(|message| &message.content);
    let has_results = answered.any(|block| matches!(block, ContentBlock::ToolResult(_)));
    let is_thought = |block: &ContentBlock| match block {
        ContentBlock::Thinking { signature: Some(_), by, .. } | ContentBlock::RedactedThinking { by, .. } => {
            by.as_ref().is_none_or(|by| *by == target.endpoint.provider)
        }
        _ => false,
    };
    has_results && !said.content.iter().any(is_thought)
}

/// How many tokens to think with; less than `max_tokens`, which they are part of.
fn budget(parameters: &Parameters) -> Option<u32> {
    let room = parameters.max_tokens - parameters.max_tokens.div_ceil(4);
    let wanted = match parameters.effort {
        None => parameters.thinking_tokens.filter(|tokens| *tokens > 0)?.max(MIN_BUDGET),
        Some(Effort::None) => return None,
        Some(Effort::Minimal) => MINIMAL,
        Some(Effort::Low) => LOW,
        Some(Effort::Medium) => MEDIUM,
        Some(Effort::High) => HIGH,
        Some(Effort::Max) => room,
    };
    Some(wanted.min(room)).filter(|budget| *budget >= MIN_BUDGET)
}

/// The word for an adaptive model; none where it is left to itself, or does not think.
fn effort<'t>(target: &'t Target, parameters: &Parameters) -> Option<&'t str> {
    let wanted = match effort_of(parameters).filter(|_| target.has(Quirk::AdaptiveThinking))? {
        Effort::None if target.has(Quirk::ThinkingSwitch) => return None,
        Effort::None | Effort::Minimal => Effort::Low,
        wanted => wanted,
    };
    word(wanted, target.endpoint.efforts.as_deref())
}

fn tool_choice(request: &Request) -> Option<Value> {
    let choice = match &request.parameters.tool_choice {
        ToolChoice::Auto => return None,
        ToolChoice::None => json!({ "type": "none" }),
        ToolChoice::Any => json!({ "type": "any" }),
        ToolChoice::Tool { name } => json!({ "type": "tool", "name": wire_name(name) }),
    };
    Some(choice).filter(|_| !request.tools.is_empty())
}

/// The field `output_config`: effort, and the shape of the answer.
fn output(target: &Target, request: &Request) -> Map<String, Value> {
    let mut output = Map::new();
    if let Some(word) = effort(target, &request.parameters) {
        output.insert("effort".into(), word.into());
    }
    if let Some(wanted) = &request.output_schema {
        output.insert("format".into(), json!({ "type": "json_schema", "schema": schema::fit(wanted) }));
    }
    output
}
