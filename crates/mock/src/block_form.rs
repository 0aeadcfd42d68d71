//! A block of an answer as it is written in a script.

use crate::script::{Block, Input};
use crate::template;
use serde::Deserialize;
use serde_json::Value;

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BlockForm {
    text: Option<String>,
    thinking: Option<String>,
    signature: Option<String>,
    redacted_thinking: Option<String>,
    pub tool: Option<String>,
    id: Option<String>,
    input: Option<toml::Table>,
    raw_input: Option<String>,
    native: Option<toml::Table>,
}

/// Checks one block; `known` are the names that it may quote.
pub fn block(form: BlockForm, known: &[&str]) -> Result<Block, String> {
    let BlockForm { text, thinking, signature, redacted_thinking, tool, id, input, raw_input, native } = form;
    let kinds = [text.is_some(), thinking.is_some(), redacted_thinking.is_some(), tool.is_some(), native.is_some()];
    if kinds.iter().filter(|given| **given).count() != 1 {
        return Err("a block has exactly one of `text`, `thinking`, `redacted_thinking`, `tool`, `native`".into());
    }
    if signature.is_some() && text.is_none() && thinking.is_none() && tool.is_none() {
        return Err("`signature` needs `thinking`, `text` or `tool`".into());
    }
    if tool.is_none() && (id.is_some() || input.is_some() || raw_input.is_some()) {
        return Err("`id`, `input` and `raw_input` need `tool`".into());
    }
    if let Some(name) = tool {
        return tool_block(name, id, arguments(input, raw_input, known)?, signature, known);
    }
    if let Some(native) = native {
        let native = json(toml::Value::Table(native))?;
        if !native["type"].is_string() {
            return Err("a `native` block needs a `type`, as the vendor's blocks have".into());
        }
        template::check_value(&native, known)?;
        return Ok(Block::Native(native));
    }
    for said in [&text, &thinking].into_iter().flatten() {
        template::check(said, known)?;
    }
    Ok(match (text, thinking) {
        (Some(text), _) => Block::Text { text, signature },
        (None, Some(text)) => Block::Thinking { text, signature },
        (None, None) => Block::Redacted(redacted_thinking.unwrap_or_default()),
    })
}

fn tool_block(
    name: String,
    id: Option<String>,
    input: Input,
    signature: Option<String>,
    known: &[&str],
) -> Result<Block, String> {
    if let Some(id) = &id {
        template::check(id, known)?;
    }
    Ok(Block::Tool { name, id, input, signature })
}

fn arguments(input: Option<toml::Table>, raw: Option<String>, known: &[&str]) -> Result<Input, String> {
    match (input, raw) {
        (Some(_), Some(_)) => Err("`input` and `raw_input` exclude each other".into()),
        (None, Some(raw)) => {
            template::check(&raw, known)?;
            Ok(Input::Raw(raw))
        }
        (input, None) => {
            let value = json(toml::Value::Table(input.unwrap_or_default()))?;
            template::check_value(&value, known)?;
            Ok(Input::Value(value))
        }
    }
}

/// A TOML value as JSON, which has no dates.
fn json(value: toml::Value) -> Result<Value, String> {
    Ok(match value {
        toml::Value::String(text) => Value::String(text),
        toml::Value::Integer(n) => n.into(),
        toml::Value::Boolean(b) => b.into(),
        toml::Value::Float(x) => {
            serde_json::Number::from_f64(x).map(Value::Number).ok_or_else(|| format!("JSON has no number `{x}`"))?
        }
        toml::Value::Datetime(date) => return Err(format!("JSON has no dates: write \"{date}\" in quotes")),
        toml::Value::Array(items) => Value::Array(items.into_iter().map(json).collect::<Result<_, _>>()?),
        toml::Value::Table(table) => {
            let entries = table.into_iter().map(|(key, value)| Ok((key, json(value)?)));
            Value::Object(entries.collect::<Result<_, String>>()?)
        }
    })
}
