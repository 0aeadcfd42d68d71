//! The HTTP client: one pool of connections, and no TLS before the first https address.

use reqwest::{Client, ClientBuilder, Proxy, Url, redirect, retry};
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Idle connections kept per host; more sessions than this at once open new ones.
const MAX_IDLE_PER_HOST: usize = 1024;

/// How the client behaves.
#[derive(Clone, PartialEq, Eq)]
pub struct HttpOptions {
    pub clocks: Clocks,
    pub user_agent: String,
    /// The proxy's address; none: no proxy, whatever the environment says.
    pub proxy: Option<String>,
}

/// How long each part of a call may take, in milliseconds. A call that goes on is never cut off, however long it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clocks {
    /// Until the connection stands.
    pub connect_ms: u64,
    /// From the request to the head of the answer, the connection included.
    pub headers_ms: u64,
    /// From there to the first event of the stream.
    pub first_event_ms: u64,
    /// Between two events that bring the message on: pings and white space do not.
    pub progress_ms: u64,
}

impl Default for Clocks {
    fn default() -> Clocks {
        Clocks { connect_ms: 10_000, headers_ms: 120_000, first_event_ms: 180_000, progress_ms: 180_000 }
    }
}

/// A client whose clones share one pool of connections.
#[derive(Clone)]
pub struct Http(Arc<Clients>);

struct Clients {
    options: HttpOptions,
    /// For `http://`: it never loads the platform's root certificates, which takes longer than a whole call.
    plain: OnceLock<Result<Client, String>>,
    tls: OnceLock<Result<Client, String>>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HttpError {
    #[error("the proxy `{proxy}` cannot be used: {cause}; give an address like http://127.0.0.1:3128")]
    Proxy { proxy: String, cause: String },
    #[error("the user agent `{user_agent}` holds a character that no header may hold; use plain ASCII")]
    UserAgent { user_agent: String },
}

impl Default for HttpOptions {
    fn default() -> HttpOptions {
        HttpOptions {
            clocks: Clocks::default(),
            user_agent: concat!("windlass/", env!("CARGO_PKG_VERSION")).into(),
            proxy: None,
        }
    }
}

impl fmt::Debug for HttpOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpOptions")
            .field("clocks", &self.clocks)
            .field("user_agent", &self.user_agent)
            .field("proxy", &self.proxy.as_deref().map(without_password))
            .finish()
    }
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Http").field(&self.0.options).finish()
    }
}

impl Http {
    /// Checks the options. Clients are built when they are first needed.
    pub fn new(options: HttpOptions) -> Result<Http, HttpError> {
        if let Some(proxy) = &options.proxy {
            check_proxy(proxy)?;
        }
        if http::HeaderValue::from_str(&options.user_agent).is_err() {
            return Err(HttpError::UserAgent { user_agent: options.user_agent });
        }
        Ok(Http(Arc::new(Clients { options, plain: OnceLock::new(), tls: OnceLock::new() })))
    }

    /// The client for `url`; the error says why none could be built.
    pub(crate) fn client(&self, url: &Url) -> Result<&Client, String> {
        let Clients { options, plain, tls } = &*self.0;
        let is_secure = |address: &str| address.starts_with("https:");
        let client = match is_secure(url.as_str()) || options.proxy.as_deref().is_some_and(is_secure) {
            true => tls.get_or_init(|| secure_client(options)),
            false => plain.get_or_init(|| plain_client(options)),
        };
        client.as_ref().map_err(String::clone)
    }

    pub(crate) fn clocks(&self) -> &Clocks {
        &self.0.options.clocks
    }
}

fn check_proxy(proxy: &str) -> Result<(), HttpError> {
    let error = |cause: String| HttpError::Proxy { proxy: without_password(proxy), cause };
    let url = Url::parse(proxy).map_err(|cause| error(cause.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(error(format!("its scheme `{}` is not spoken", url.scheme())));
    }
    Proxy::all(proxy).map(drop).map_err(|cause| error(cause.to_string()))
}

/// `address` without what stands before its `@`.
pub(crate) fn without_password(address: &str) -> String {
    match address.rsplit_once('@') {
        Some((_, host)) => format!("…@{host}"),
        None => address.to_owned(),
    }
}

fn plain_client(options: &HttpOptions) -> Result<Client, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    build(builder(options)?.tls_backend_preconfigured(tls))
}

fn secure_client(options: &HttpOptions) -> Result<Client, String> {
    // Fails only if the process chose a provider already, which then serves as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    build(builder(options)?)
}

fn builder(options: &HttpOptions) -> Result<ClientBuilder, String> {
    let builder = Client::builder()
        .user_agent(&options.user_agent)
        .connect_timeout(Duration::from_millis(options.clocks.connect_ms))
        .pool_max_idle_per_host(MAX_IDLE_PER_HOST)
        .tcp_nodelay(true)
        // A call that is dropped closes its connection; over HTTP/2 it would share one with others.
        .http1_only()
        // A key goes to the host it was given for, and a paid request is sent once.
        .redirect(redirect::Policy::none())
        .retry(retry::never())
        .no_proxy();
    Ok(match &options.proxy {
        Some(proxy) => builder.proxy(Proxy::all(proxy).map_err(|error| error.to_string())?),
        None => builder,
    })
}

fn build(builder: ClientBuilder) -> Result<Client, String> {
    builder.build().map_err(|error| crate::failure::cause(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn tls_is_built_at_the_first_https_address_and_not_before() {
        let http = Http::new(HttpOptions::default()).unwrap();
        assert!(http.0.plain.get().is_none());
        http.client(&url("http://127.0.0.1:1/v1")).unwrap();
        assert!(http.0.plain.get().is_some());
        assert!(http.0.tls.get().is_none());
        // Whether roots are found depends on the machine; that they are looked for now does not.
        let _ = http.client(&url("https://127.0.0.1:1/v1"));
        assert!(http.0.tls.get().is_some());
    }

    #[test]
    fn a_bad_proxy_is_named_without_its_password() {
        let with = |proxy: &str| HttpOptions { proxy: Some(proxy.into()), ..HttpOptions::default() };
        let error = Http::new(with("socks9://me:secret@host:1")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the proxy `…@host:1` cannot be used: its scheme `socks9` is not spoken; \
             give an address like http://127.0.0.1:3128"
        );
        let http = Http::new(with("http://me:secret@127.0.0.1:3128")).unwrap();
        assert!(!format!("{http:?}").contains("secret"));
        assert!(Http::new(with("nonsense")).is_err());
        assert!(Http::new(with("http://127.0.0.1:3128")).is_ok());
    }

    #[test]
    fn a_user_agent_with_a_line_break_is_refused() {
        let options = HttpOptions { user_agent: "a\nb".into(), ..HttpOptions::default() };
        assert!(Http::new(options).unwrap_err().to_string().contains("use plain ASCII"));
    }
}
