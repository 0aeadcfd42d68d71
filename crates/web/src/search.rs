//! A search: one request to a backend that the configuration chose, and what it found.

use crate::backend::Backend;
use crate::{body, dial};
use futures_util::future::BoxFuture;
use reqwest::header::RETRY_AFTER;
use reqwest::{Client, Proxy, Response, redirect, retry};
use serde::Serialize;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use url::Url;

/// Bytes of an answer.
const MAX_ANSWER_BYTES: usize = 2 << 20;
/// Milliseconds until a connection stands.
const CONNECT_MS: u64 = 10_000;

/// Where a backend's key comes from.
#[derive(Clone)]
pub enum Key {
    None,
    /// One is needed and there is none; says where it was looked for.
    Missing(String),
    Text(String),
    /// Asked before every search.
    Source(Arc<dyn Fn() -> BoxFuture<'static, Result<String, String>> + Send + Sync>),
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Key::None | Key::Missing(_) => "no key",
            Key::Text(_) | Key::Source(_) => "Key(…)",
        })
    }
}

/// Searches through one backend.
#[derive(Clone, Debug)]
pub struct Search {
    pub backend: Backend,
    pub base_url: Url,
    pub key: Key,
    /// The proxy's address; none: no proxy.
    pub proxy: Option<String>,
    pub user_agent: String,
    /// Milliseconds for the whole search.
    pub total_ms: u64,
}

/// One thing that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Found {
    pub title: String,
    pub url: String,
    pub snippet: String,
}

/// A search that failed, by what can be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SearchError {
    /// There is no key, or it is not taken: the configuration must be mended.
    Key(String),
    /// Too many searches; after these milliseconds another may be tried, where that was said.
    Limited { retry_after_ms: Option<u64> },
    /// The backend is out of reach or out of order; later it may not be.
    Unavailable(String),
    /// The backend does not take this search, or answers what cannot be read: another try is no use.
    Refused(String),
}

impl fmt::Display for SearchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SearchError::Key(why) => {
                write!(f, "the search has no key that is taken: {why}; tell the user, only they can mend it")
            }
            SearchError::Limited { retry_after_ms: Some(ms) } => {
                write!(f, "too many searches; the next may be made in {} s", ms.div_ceil(1000))
            }
            SearchError::Limited { retry_after_ms: None } => write!(f, "too many searches; wait, or go on without"),
            SearchError::Unavailable(why) => {
                write!(f, "the search is out of reach: {why}; try again later, or go on without")
            }
            SearchError::Refused(why) => write!(f, "the search failed: {why}; another try is of no use, go on without"),
        }
    }
}

impl Search {
    /// The address of a backend, below which its paths lie; says what is wrong with it.
    pub fn base(text: &str) -> Result<Url, String> {
        let wrong =
            |why: String| format!("`{text}` is no address of a search: {why}; write one like http://127.0.0.1:8888");
        let url = Url::parse(text).map_err(|error| wrong(error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") || url.query().is_some() || url.fragment().is_some() {
            return Err(wrong("it must begin with http:// or https:// and have no `?` or `#`".into()));
        }
        Ok(url)
    }

    /// Finds `max_results` at most.
    pub async fn search(&self, query: &str, max_results: usize) -> Result<Vec<Found>, SearchError> {
        let limit = Duration::from_millis(self.total_ms);
        let late = || SearchError::Unavailable(format!("no answer after {} ms", self.total_ms));
        tokio::time::timeout(limit, self.ask(query, max_results)).await.unwrap_or_else(|_| Err(late()))
    }

    async fn ask(&self, query: &str, max_results: usize) -> Result<Vec<Found>, SearchError> {
        let key = match &self.key {
            Key::None => None,
            Key::Missing(why) => return Err(SearchError::Key(why.clone())),
            Key::Text(key) => Some(key.clone()),
            Key::Source(source) => Some(source().await.map_err(SearchError::Key)?),
        };
        let client = self.client().map_err(|error| SearchError::Refused(dial::cause(&error)))?;
        let request = self.backend.request(&client, &self.base_url, key.as_deref(), query, max_results);
        let response = request.send().await.map_err(|error| SearchError::Unavailable(dial::cause(&error)))?;
        self.check_status(&response)?;
        let body = body::read(response, MAX_ANSWER_BYTES).await.map_err(|(_, why)| SearchError::Unavailable(why))?;
        let mut found = self.backend.found(&body.bytes).map_err(SearchError::Refused)?;
        found.retain(|one| Url::parse(&one.url).is_ok_and(|url| matches!(url.scheme(), "http" | "https")));
        found.truncate(max_results);
        Ok(found)
    }

    fn client(&self) -> reqwest::Result<Client> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = Client::builder()
            .user_agent(&self.user_agent)
            .connect_timeout(Duration::from_millis(CONNECT_MS))
            .http1_only()
            // The key goes to the host it was given for.
            .redirect(redirect::Policy::none())
            .retry(retry::never())
            .no_proxy();
        match &self.proxy {
            Some(proxy) => builder.proxy(Proxy::all(proxy)?),
            None => builder,
        }
        .build()
    }

    fn check_status(&self, response: &Response) -> Result<(), SearchError> {
        let status = response.status();
        let retry_after = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
        Err(match status.as_u16() {
            200..=299 => return Ok(()),
            401 => SearchError::Key(format!("{} answers {status}", self.backend)),
            403 => SearchError::Key(format!("{} answers {status}{}", self.backend, self.backend.hint_when_forbidden())),
            429 => SearchError::Limited {
                retry_after_ms: retry_after.and_then(|text| text.trim().parse::<u64>().ok()?.checked_mul(1000)),
            },
            500.. => SearchError::Unavailable(format!("{} answers {status}", self.backend)),
            _ => SearchError::Refused(format!("{} answers {status}", self.backend)),
        })
    }
}
