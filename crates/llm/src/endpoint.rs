//! Where a provider is reached, and with what key.

use crate::{Http, Quirk};
use futures_util::future::BoxFuture;
use std::fmt;
use std::sync::Arc;

/// A provider's address, credentials and manners.
#[derive(Clone, Default)]
pub struct Endpoint {
    /// The provider's name as in `PROVIDER/NAME`.
    pub provider: String,
    /// What stands before the protocol's own path: see [`crate::WireProtocol`] and the catalog's files.
    pub base_url: String,
    pub auth: Auth,
    /// Where the user keeps the key, for messages: a variable's name, or a command; empty if there is no usual place.
    pub key_hint: String,
    /// Further headers of every request; they win over the protocol's own.
    pub headers: Vec<(String, String)>,
    pub quirks: Vec<Quirk>,
    /// The words of effort that the model takes, weakest first; none: not known.
    pub efforts: Option<Vec<String>>,
}

/// How a request says on whose behalf it comes.
#[derive(Clone, Debug, Default)]
pub enum Auth {
    /// It does not.
    #[default]
    None,
    /// By a key in the protocol's header.
    Key(ApiKey),
    /// By a key that is asked for before each call: a token that runs out.
    Source(KeySource),
    /// By a signature over the whole request.
    Aws(AwsKeys),
}

/// What requests to AWS are signed with.
#[derive(Clone, PartialEq, Eq)]
pub struct AwsKeys {
    pub access_key_id: String,
    pub secret_access_key: String,
    /// Of keys that run out.
    pub session_token: Option<String>,
    /// Such as `eu-central-1`; the one in the base URL.
    pub region: String,
}

/// Gives the key that holds now, or says why there is none.
#[derive(Clone)]
pub struct KeySource(pub Arc<dyn Fn() -> BoxFuture<'static, Result<ApiKey, String>> + Send + Sync>);

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

    /// The key itself, for who sends it or keeps it out of what others see.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(…)")
    }
}

impl fmt::Debug for AwsKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AwsKeys({}, {}, …)", self.access_key_id, self.region)
    }
}

impl fmt::Debug for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeySource(…)")
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A header's value may be a key too.
        let headers: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("Endpoint")
            .field("provider", &self.provider)
            .field("base_url", &self.base_url)
            .field("auth", &self.auth)
            .field("key_hint", &self.key_hint)
            .field("headers", &headers)
            .field("quirks", &self.quirks)
            .field("efforts", &self.efforts)
            .finish()
    }
}

impl Target {
    pub(crate) fn has(&self, quirk: Quirk) -> bool {
        self.endpoint.quirks.contains(&quirk)
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
            auth: Auth::Key(ApiKey::new("sk-secret\n")),
            headers: vec![("x-gateway-key".into(), "secret-too".into())],
            ..Endpoint::default()
        };
        let printed = format!("{endpoint:?}");
        assert!(!printed.contains("secret"), "{printed}");
        assert!(printed.contains("x-gateway-key"), "{printed}");
        let Auth::Key(key) = &endpoint.auth else { panic!("{printed}") };
        assert_eq!(key.expose(), "sk-secret");
    }

    #[test]
    fn of_keys_to_aws_only_the_public_part_is_printed() {
        let keys = AwsKeys {
            access_key_id: "AKID".into(),
            secret_access_key: "secret".into(),
            session_token: Some("secret".into()),
            region: "eu-central-1".into(),
        };
        assert_eq!(format!("{:?}", Auth::Aws(keys)), "Aws(AwsKeys(AKID, eu-central-1, …))");
    }
}
