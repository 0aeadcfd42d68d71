//! `windlass models list`: the providers that can be used here and their models.

use super::provider;
use crate::choose;
use crate::desk::Desk;
use crate::exit::{Code, Ended, Failure};
use crate::local::{self, Answering, CANDIDATES};
use crate::terminal::{harmless, one_line, print, print_json};
use crate::words::{count, grouped};
use serde::Serialize;
use windlass::Providers;
use windlass::llm::{Ability, ModelInfo, Prices, ToolCalls};

/// Characters of a model's name in its column.
const NAME_CHARS: usize = 44;

#[derive(Serialize)]
struct Shown {
    provider: String,
    title: String,
    protocol: &'static str,
    /// The variables its key is looked for in; empty: it needs none.
    key: String,
    has_key: bool,
    local: bool,
    /// A local server that answers now.
    answers: bool,
    /// What its address lacks.
    #[serde(skip_serializing_if = "Option::is_none")]
    lacks: Option<String>,
    models: Vec<Model>,
}

#[derive(Serialize)]
struct Model {
    name: String,
    window: Option<u64>,
    max_output: Option<u64>,
    /// US dollars per million tokens.
    input_usd: Option<f64>,
    output_usd: Option<f64>,
    can: Vec<Ability>,
    tool_calls: ToolCalls,
    /// It would be used now.
    used: bool,
}

pub fn list(desk: &Desk, only: Option<&str>, all: bool, json: bool) -> Ended {
    let (config, environment) = (&desk.settings.config, &desk.environment);
    let mut providers = choose::providers(config, environment)?;
    let used = choose::model(config, environment, &mut providers).ok();
    let answering = local::look(&CANDIDATES);
    let mut names = providers.names();
    if let Some(name) = only {
        choose::to_address(config, &mut providers, name)?;
        if providers.catalog().provider(name).is_none() {
            provider(&providers, name)?;
        }
        names = vec![providers.name_of(name)];
    }
    let own = config.names("providers");
    let mut shown: Vec<Shown> = names.iter().map(|name| look(&providers, name, &answering, used.as_deref())).collect();
    let is_here = |shown: &Shown| {
        shown.answers || shown.has_key && shown.lacks.is_none() || own.contains(&shown.provider.as_str())
    };
    let is_used = |shown: &Shown| shown.models.iter().any(|model| model.used);
    if !all && only.is_none() {
        shown.retain(|shown| is_here(shown) || is_used(shown));
    }
    shown.sort_by_key(|shown| !is_here(shown) && !is_used(shown));
    if json {
        let text = serde_json::to_string_pretty(&shown)
            .map_err(|error| Failure::new(Code::Failed, format!("the models can't be written as JSON: {error}")))?;
        print_json(&format!("{text}\n"));
        return Ok(Code::Done);
    }
    let mut text: String = shown.iter().map(told).collect();
    if shown.iter().any(|shown| !shown.models.is_empty()) {
        text += "window and longest answer in tokens, US dollars for a million tokens in / out; ? is not known\n";
    }
    if !all && only.is_none() {
        let hidden = names.len() - shown.len();
        text += &format!("{} without a key here: --all shows them\n", count(hidden as u64, "further provider"));
    }
    print(&harmless(&text));
    Ok(Code::Done)
}

fn look(providers: &Providers, name: &str, answering: &[Answering], used: Option<&str>) -> Shown {
    let info = providers.catalog().provider(name);
    let found = providers.get(name);
    let lacks = found.as_ref().err().cloned();
    let here = found.ok().flatten();
    let server = answering.iter().find(|one| one.provider == name);
    let used = used.and_then(|used| used.split_once('/')).filter(|(provider, _)| providers.name_of(provider) == name);
    let used = used.map(|(_, model)| model);
    let mut models: Vec<ModelInfo> = info.iter().flat_map(|info| info.models.iter().cloned()).collect();
    let further = server.iter().flat_map(|server| &server.models).map(String::as_str).chain(used);
    for model in further {
        if !models.iter().any(|known| known.name == model) {
            models.extend(
                info.iter()
                    .filter_map(|info| info.model(model))
                    .map(|known| named(known, model))
                    .next()
                    .or_else(|| Some(unknown(name, model))),
            );
        }
    }
    let protocol = here.as_ref().map(|here| here.protocol).or(info.as_ref().map(|info| info.protocol));
    let variables = info.as_ref().map(|info| info.key_variables.join(" or ")).unwrap_or_default();
    Shown {
        provider: name.to_owned(),
        title: info.as_ref().map_or_else(|| name.to_owned(), |info| info.title.clone()),
        protocol: protocol.map_or("", |protocol| protocol.name()),
        key: here.as_ref().map_or(variables, |here| here.key_hint.clone()),
        has_key: here.as_ref().is_some_and(|here| here.has_key()),
        local: info.as_ref().is_some_and(|info| info.local),
        answers: server.is_some(),
        lacks,
        models: models.into_iter().map(|model| Model::of(model, used)).collect(),
    }
}

fn named(known: &ModelInfo, name: &str) -> ModelInfo {
    ModelInfo { name: name.to_owned(), ..known.clone() }
}

/// A model of which nothing but its name is known.
pub(super) fn unknown(provider: &str, name: &str) -> ModelInfo {
    ModelInfo {
        provider: provider.to_owned(),
        name: name.to_owned(),
        window: None,
        max_output: None,
        prices: None,
        can: Default::default(),
        effort: vec![],
        tools: vec![],
        quirks: Default::default(),
        tool_calls: ToolCalls::Native,
    }
}

impl Model {
    fn of(info: ModelInfo, used: Option<&str>) -> Model {
        let dollars = |price: fn(&Prices) -> u64| info.prices.as_ref().map(|prices| price(prices) as f64 / 1e6);
        Model {
            used: used == Some(info.name.as_str()),
            window: info.window,
            max_output: info.max_output,
            input_usd: dollars(|prices| prices.input),
            output_usd: dollars(|prices| prices.output),
            can: info.can.into_iter().collect(),
            tool_calls: info.tool_calls,
            name: info.name,
        }
    }
}

/// A provider's lines: itself, then its models.
fn told(shown: &Shown) -> String {
    let state = match shown {
        Shown { lacks: Some(lacks), key, .. } if key.is_empty() => lacks.clone(),
        Shown { lacks: Some(lacks), key, .. } => format!("{lacks}; its key is looked for in {key}"),
        Shown { answers: true, .. } => "answers here".into(),
        Shown { has_key: true, key, .. } if !key.is_empty() => format!("{key} is set"),
        Shown { key, .. } if !key.is_empty() => format!("{key} is not set"),
        Shown { local: true, .. } => "does not answer here".into(),
        _ => "needs no key".into(),
    };
    let mut text = format!("{}  {}, {} ({state})\n", shown.provider, shown.title, shown.protocol);
    let width = shown.models.iter().map(|model| model.name.chars().count()).max().unwrap_or(0).min(NAME_CHARS);
    for model in &shown.models {
        text += &line(model, width);
    }
    if shown.models.is_empty() {
        text += "  no model is known: `windlass models refresh` asks for them\n";
    }
    text + "\n"
}

fn line(model: &Model, width: usize) -> String {
    let mark = if model.used { '*' } else { ' ' };
    let name = one_line(&model.name, NAME_CHARS);
    let tokens = |tokens: Option<u64>| tokens.map_or("?".to_owned(), grouped);
    let price = match (model.input_usd, model.output_usd) {
        (Some(input), Some(output)) => format!("${input:.2} / ${output:.2}"),
        _ => "?".into(),
    };
    let mut can: Vec<String> =
        model.can.iter().filter_map(|can| Some(serde_json::to_value(can).ok()?.as_str()?.to_owned())).collect();
    if model.tool_calls == ToolCalls::Text {
        can.push("calls as text".into());
    }
    let (window, output) = (tokens(model.window), tokens(model.max_output));
    format!("{mark} {name:<width$}  {window:>10} {output:>9}  {price:>17}  {}\n", can.join(" ")).replace(" \n", "\n")
}
