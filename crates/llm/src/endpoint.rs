//! Where a provider is reached, and with what key.

use crate::Http;
use std::fmt;

/// A provider's address and credentials.
#[derive(Clone)]
pub struct Endpoint {
    /// The provider's name as in `PROVIDER/NAME`.
    pub provider: String,
    /// For the Messages API without `/v1`, for Chat Completions with it.
    pub base_url: String,
    pub api_key: Option<ApiKey>,
    /// Further headers of every request; they win over the protocol's own.
    pub headers: Vec<(String, String)>,
}

/// A key that no log and no error message shows.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

/// One model at one endpoint.
pub(crate) struct Target {
    pub http: Http,
    pub endpoint: Endpoint,
    pub model: String,
}

impl ApiKey {
    /// Keys are often read from files: surrounding white space is not part of one.
    pub fn new(key: impl AsRef<str>) -> ApiKey {
        ApiKey(key.as_ref().trim().to_owned())
    }

    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(…)")
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A header's value may be a key too.
        let headers: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("Endpoint")
            .field("provider", &self.provider)
            .field("base_url", &self.base_url)
            .field("api_key", &self.api_key)
            .field("headers", &headers)
            .finish()
    }
}

impl Endpoint {
    /// The address of `path` at this endpoint.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base_url.trim_end_matches('/'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_never_printed() {
        let endpoint = Endpoint {
            provider: "anthropic".into(),
            base_url: "https://example.com/".into(),
            api_key: Some(ApiKey::new("sk-secret\n")),
            headers: vec![("x-gateway-key".into(), "secret-too".into())],
        };
        let printed = format!("{endpoint:?}");
        assert!(!printed.contains("secret"), "{printed}");
        assert!(printed.contains("x-gateway-key"), "{printed}");
        assert_eq!(endpoint.api_key.as_ref().unwrap().expose(), "sk-secret");
        assert_eq!(endpoint.url("/v1/messages"), "https://example.com/v1/messages");
    }
}
