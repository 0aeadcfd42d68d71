//! Which models a provider says it has, and what it tells of them.
//!
//! What is absent: Bedrock and Vertex, whose lists stand behind other hosts and other rights than their models.

use crate::anthropic::Messages;
use crate::auth::{authorize, with_key};
use crate::body::Segments;
use crate::call::headers;
use crate::endpoint::Target;
use crate::gemini::Gemini;
use crate::head::read_refusal;
use crate::openai_chat::Chat;
use crate::post::{address, answer, client, without_credentials};
use crate::protocol::Protocol;
use crate::{Endpoint, Http, Prices, WireProtocol};
use http::{HeaderValue, header};
use reqwest::Url;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use windlass_kernel::ModelFailure;

/// The most bytes of one page that are read.
const MAX_PAGE_BYTES: usize = 16 * 1024 * 1024;
/// The most pages that are asked for.
const MAX_PAGES: usize = 50;
/// Models asked for at once.
const PAGE_MODELS: &str = "1000";

/// A model as its provider lists it; what it does not tell is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listed {
    pub name: String,
    /// Most tokens of input and output together.
    pub window: Option<u64>,
    /// Most tokens of one answer.
    pub max_output: Option<u64>,
    pub prices: Option<Prices>,
}

/// The models at `endpoint`, by name. Asks for as many pages as there are, up to 50.
pub async fn list(http: &Http, protocol: WireProtocol, endpoint: Endpoint) -> Result<Vec<Listed>, ModelFailure> {
    let target = with_key(Arc::new(Target { http: http.clone(), endpoint, model: String::new() })).await?;
    let mut models = match protocol {
        WireProtocol::Anthropic => pages::<Messages>(&target, "/v1/models", &[("limit", PAGE_MODELS)]).await?,
        WireProtocol::Gemini => pages::<Gemini>(&target, "/models", &[("pageSize", PAGE_MODELS)]).await?,
        // Ollama lists what is pulled at a path of its own, beside the protocol's.
        WireProtocol::Chat if target.endpoint.provider == "ollama" => pages::<Chat>(&target, "/api/tags", &[]).await?,
        WireProtocol::Chat | WireProtocol::Responses => pages::<Chat>(&target, "/models", &[]).await?,
        WireProtocol::Bedrock | WireProtocol::Vertex => {
            let provider = &target.endpoint.provider;
            return Err(target.invalid(format!(
                "{provider} lists no models at the address that serves them: name those you may use in the catalog"
            )));
        }
    };
    let mut names = BTreeSet::new();
    models.retain(|model| names.insert(model.name.clone()));
    models.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(models)
}

async fn pages<P: Protocol>(target: &Target, path: &str, query: &[(&str, &str)]) -> Result<Vec<Listed>, ModelFailure> {
    let mut url = address(target, base_of(target, path), path)?;
    if !query.is_empty() {
        url.query_pairs_mut().extend_pairs(query);
    }
    let first = url.clone();
    let mut models = vec![];
    for _ in 0..MAX_PAGES {
        let page = page::<P>(target, url).await?;
        let Some(entries) = entries(&page) else {
            let shown = without_credentials(first);
            return Err(target.invalid(format!("{shown} answers with no list of models: check the base URL")));
        };
        models.extend(entries.iter().filter_map(listed));
        let Some((key, next)) = next(&page) else { break };
        url = first.clone();
        url.query_pairs_mut().append_pair(key, &next);
    }
    Ok(models)
}

fn base_of<'a>(target: &'a Target, path: &str) -> &'a str {
    let base = target.endpoint.base_url.trim_end_matches('/');
    if path == "/api/tags" { base.strip_suffix("/v1").unwrap_or(base) } else { base }
}

async fn page<P: Protocol>(target: &Target, url: Url) -> Result<Value, ModelFailure> {
    let shown = without_credentials(url.clone());
    let mut headers = headers::<P>(target)?;
    headers.remove(header::CONTENT_TYPE);
    headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    authorize::<P>(target, &url, &Segments::default().into_body(), &mut headers).await?;
    let asked = client(target, &url)?.get(url).headers(headers);
    let mut response = answer(target, &shown, asked).await?;
    let (status, headers) = (response.status(), response.headers().clone());
    if !status.is_success() {
        let body = read_refusal(response, vec![], target).await;
        return Err(target.refused(&shown, status, &headers, &body));
    }
    let mut body = Vec::new();
    let wait = Duration::from_millis(target.http.clocks().progress_ms);
    loop {
        match timeout(wait, response.chunk()).await {
            Ok(Ok(Some(chunk))) if body.len() + chunk.len() <= MAX_PAGE_BYTES => body.extend_from_slice(&chunk),
            Ok(Ok(None)) => break,
            Ok(Ok(Some(_))) => {
                return Err(
                    target.invalid(format!("the list of models at {shown} is longer than {MAX_PAGE_BYTES} bytes"))
                );
            }
            Ok(Err(error)) => return Err(target.cut(&shown, Some(&error))),
            Err(_) => return Err(target.silent(&shown, "the rest of its list", wait)),
        }
    }
    serde_json::from_slice(&body).map_err(|error| target.unreadable(&shown, &error.to_string()))
}

/// The list in a page: `data` of most, `models` of Gemini and Ollama, or the page itself.
fn entries(page: &Value) -> Option<&Vec<Value>> {
    page["data"].as_array().or_else(|| page["models"].as_array()).or_else(|| page.as_array())
}

/// What asks for the page behind this one.
fn next(page: &Value) -> Option<(&'static str, String)> {
    if let Some(token) = page["nextPageToken"].as_str().filter(|token| !token.is_empty()) {
        return Some(("pageToken", token.to_owned()));
    }
    let last = page["last_id"].as_str().filter(|_| page["has_more"] == Value::Bool(true))?;
    Some(("after_id", last.to_owned()))
}

/// One entry, in whichever of the vendors' words; none if it has no name or is no model that answers.
fn listed(entry: &Value) -> Option<Listed> {
    let name = entry["id"].as_str().or_else(|| entry["name"].as_str())?;
    let name = name.strip_prefix("models/").unwrap_or(name);
    let methods = entry["supportedGenerationMethods"].as_array();
    if name.trim().is_empty()
        || methods.is_some_and(|methods| !methods.iter().any(|method| method == "generateContent"))
    {
        return None;
    }
    let tokens = |keys: &[&str]| keys.iter().find_map(|key| entry[key].as_u64()).filter(|tokens| *tokens > 0);
    let output = entry["top_provider"]["max_completion_tokens"].as_u64().filter(|tokens| *tokens > 0);
    Some(Listed {
        name: name.to_owned(),
        window: tokens(&[
            "context_length",
            "context_window",
            "max_model_len",
            "max_context_length",
            "inputTokenLimit",
            "max_input_tokens",
        ]),
        max_output: output
            .or_else(|| tokens(&["max_completion_tokens", "max_output_tokens", "outputTokenLimit", "max_tokens"])),
        prices: prices(&entry["pricing"]),
    })
}

/// Prices as OpenRouter writes them: dollars for one token, as text. Negative ones stand for "it depends".
fn prices(told: &Value) -> Option<Prices> {
    let dollars = |key: &str| told[key].as_str()?.parse::<f64>().ok().map(|dollars| dollars * 1e6);
    let (input, output) = (dollars("prompt")?, dollars("completion")?);
    let (read, write) = (dollars("input_cache_read"), dollars("input_cache_write"));
    Prices::from_dollars(input, output, read.unwrap_or(input), write.unwrap_or(input)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(page: Value) -> String {
        let models = entries(&page).unwrap().iter().filter_map(listed);
        models
            .map(|model| {
                let Listed { name, window, max_output, prices } = model;
                format!(
                    "{name} {window:?} {max_output:?} {:?}\n",
                    prices.map(|prices| (prices.input, prices.output, prices.cache_read))
                )
            })
            .collect()
    }

    #[test]
    fn each_vendors_list_is_read() {
        let openai = json!({"object": "list", "data": [{"id": "gpt-x", "object": "model"}, {"object": "model"}]});
        let router = json!({"data": [{"id": "a/b", "name": "B", "context_length": 200_000,
            "top_provider": {"max_completion_tokens": 64_000}, "pricing":
            {"prompt": "0.000003", "completion": "0.000015", "input_cache_read": "0.0000003"}},
            {"id": "auto", "context_length": 0, "pricing": {"prompt": "-1", "completion": "-1"}}]});
        let gemini = json!({"models": [{"name": "models/g", "inputTokenLimit": 10, "outputTokenLimit": 5,
            "supportedGenerationMethods": ["generateContent"]},
            {"name": "models/e", "supportedGenerationMethods": ["embedContent"]}]});
        let ollama = json!({"models": [{"name": "qwen3:8b", "model": "qwen3:8b"}]});
        let bare = json!([{"id": "t", "context_length": 8}]);
        let all: Vec<String> = [openai, router, gemini, ollama, bare].into_iter().map(read).collect();
        insta::assert_snapshot!(all.concat(), @"
        gpt-x None None None
        a/b Some(200000) Some(64000) Some((3000000, 15000000, 300000))
        auto None None None
        g Some(10) Some(5) None
        qwen3:8b None None None
        t Some(8) None None
        ");
    }

    #[test]
    fn a_page_tells_of_the_next() {
        let next = |page: Value| next(&page);
        assert_eq!(next(json!({"has_more": true, "last_id": "m9"})), Some(("after_id", "m9".into())));
        assert_eq!(next(json!({"has_more": false, "last_id": "m9"})), None);
        assert_eq!(next(json!({"nextPageToken": "t"})), Some(("pageToken", "t".into())));
        assert_eq!(next(json!({"models": [], "nextPageToken": ""})), None);
    }
}
