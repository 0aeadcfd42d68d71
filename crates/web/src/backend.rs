//! The search backends: what each is asked, and what each answers.

use crate::markdown::plain;
use crate::search::Found;
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Client, RequestBuilder};
use serde::Deserialize;
use serde_json::json;
use std::fmt;
use url::Url;

/// The most results that any of them gives at once.
pub(crate) const MAX_RESULTS: usize = 20;

/// A kind of search API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// A SearXNG of one's own, whose `search.formats` hold `json`.
    Searxng,
    Brave,
    Tavily,
}

/// What all of them call their results, by one name or another.
#[derive(Deserialize)]
struct Row {
    #[serde(default)]
    title: String,
    url: String,
    #[serde(default, alias = "description")]
    content: String,
}

#[derive(Deserialize)]
struct Rows {
    results: Vec<Row>,
}

#[derive(Deserialize)]
struct BraveAnswer {
    /// Absent if nothing was found.
    web: Option<Rows>,
}

impl Backend {
    /// The words of the configuration.
    pub const NAMES: [&str; 3] = ["searxng", "brave", "tavily"];

    pub fn named(name: &str) -> Option<Backend> {
        Some(match name {
            "searxng" => Backend::Searxng,
            "brave" => Backend::Brave,
            "tavily" => Backend::Tavily,
            _ => return None,
        })
    }

    /// Where it is, unless it is one's own.
    pub fn usual_url(self) -> Option<&'static str> {
        match self {
            Backend::Searxng => None,
            Backend::Brave => Some("https://api.search.brave.com/res/v1"),
            Backend::Tavily => Some("https://api.tavily.com"),
        }
    }

    pub fn needs_key(self) -> bool {
        self != Backend::Searxng
    }

    pub(crate) fn hint_when_forbidden(self) -> &'static str {
        match self {
            Backend::Searxng => " (it does so, too, where its settings do not list json among search.formats)",
            Backend::Brave | Backend::Tavily => "",
        }
    }

    pub(crate) fn request(
        self,
        client: &Client,
        base: &Url,
        key: Option<&str>,
        query: &str,
        max_results: usize,
    ) -> RequestBuilder {
        let max_results = max_results.min(MAX_RESULTS);
        let key = key.unwrap_or_default();
        match self {
            Backend::Searxng => {
                let request = client.get(with(base, "search", &[("q", query), ("format", "json")]));
                if key.is_empty() { request } else { request.bearer_auth(key) }
            }
            Backend::Brave => {
                let url = with(base, "web/search", &[("q", query), ("count", &max_results.to_string())]);
                client.get(url).header("X-Subscription-Token", key).header(ACCEPT, "application/json")
            }
            Backend::Tavily => {
                let wish = json!({"query": query, "max_results": max_results});
                let request = client.post(with(base, "search", &[])).bearer_auth(key);
                request.header(CONTENT_TYPE, "application/json").body(wish.to_string())
            }
        }
    }

    /// What an answer holds; the error says why it cannot be read.
    pub(crate) fn found(self, answer: &[u8]) -> Result<Vec<Found>, String> {
        let rows = match self {
            Backend::Brave => serde_json::from_slice::<BraveAnswer>(answer).map(|answer| answer.web),
            Backend::Searxng | Backend::Tavily => serde_json::from_slice::<Rows>(answer).map(Some),
        };
        let rows = rows.map_err(|error| format!("the answer of {self} can't be read ({error})"))?;
        let rows = rows.map(|rows| rows.results).unwrap_or_default().into_iter();
        let found = |row: Row| Found { title: plain(&row.title), url: row.url, snippet: plain(&row.content) };
        Ok(rows.take(MAX_RESULTS).map(found).collect())
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Backend::Searxng => "SearXNG",
            Backend::Brave => "Brave",
            Backend::Tavily => "Tavily",
        })
    }
}

/// The path below `base`, whether or not that ends with a slash.
fn with(base: &Url, path: &str, query: &[(&str, &str)]) -> Url {
    let mut url = base.clone();
    url.set_path(&format!("{}/{path}", base.path().trim_end_matches('/')));
    if !query.is_empty() {
        url.query_pairs_mut().extend_pairs(query);
    }
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_in_results_are_taken_away() {
        let answer = br#"{"web": {"results": [{"title": "A &amp; B", "url": "https://a.example/", "description": "an <strong>a</strong>"}]}}"#;
        let found = Backend::Brave.found(answer).unwrap();
        assert_eq!((found[0].title.as_str(), found[0].snippet.as_str()), ("A & B", "an a"));
        assert_eq!(Backend::Brave.found(b"{}"), Ok(vec![]));
        assert!(Backend::Tavily.found(b"<html>").unwrap_err().starts_with("the answer of Tavily can't be read"));
        assert!(Backend::Searxng.found(br#"{"error": "no"}"#).is_err());
    }

    #[test]
    fn every_name_is_a_backend() {
        assert!(Backend::NAMES.iter().all(|name| Backend::named(name).is_some()));
        assert_eq!(Backend::named("other"), None);
    }
}
