//! Why a page was not fetched.

use serde::Serialize;
use std::fmt;
use std::net::IpAddr;

/// What stood in the way; its word is part of the JSON form and stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The URL cannot be read.
    Url,
    /// Neither http nor https.
    Scheme,
    /// The URL holds a user name or password.
    Userinfo,
    /// The host is not allowed.
    Host,
    /// The host is allowed, but not at this port.
    Port,
    /// The host is at an address that is not public and was not listed.
    Address,
    /// A redirect from https to http.
    Downgrade,
    /// A redirect to another host, where only the first was asked for.
    Elsewhere,
    /// Too many redirects, or a loop.
    Redirects,
    /// The name has no address.
    Resolve,
    /// No connection came to stand.
    Connect,
    /// The time was over.
    Timeout,
    /// The answer broke off or is no HTTP.
    Broken,
    /// The answer's head is too long.
    Headers,
    /// The answer is nothing that can be read as text.
    ContentType,
}

impl Reason {
    /// Whether a rule stood in the way, not the network or the server.
    pub fn is_refusal(self) -> bool {
        use Reason::{Address, Downgrade, Elsewhere, Host, Port, Redirects, Scheme, Url, Userinfo};
        matches!(self, Url | Scheme | Userinfo | Host | Port | Address | Downgrade | Elsewhere | Redirects)
    }
}

/// A fetch that failed: why, in a word and in words, and where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FetchError {
    #[serde(rename = "kind")]
    pub reason: Reason,
    pub message: String,
    /// The URL of the hop that failed; as it was given if it could not be read.
    pub url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
}

impl FetchError {
    pub(crate) fn new(reason: Reason, url: impl Into<String>, message: impl Into<String>) -> FetchError {
        FetchError { reason, message: message.into(), url: url.into(), address: None }
    }
}

impl fmt::Display for FetchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for FetchError {}
