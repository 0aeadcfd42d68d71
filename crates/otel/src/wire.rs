//! The HTTP client of the exporters: blocking, for they run on threads of their own, and with TLS by ring.

use crate::{Options, StartError};
use async_trait::async_trait;
use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use http::{Request, Response};
use opentelemetry_http::{HttpClient, HttpError};
use reqwest::{Proxy, Url, blocking::Client, redirect};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// How long a connection may take to stand.
const CONNECT: Duration = Duration::from_secs(5);

/// Sends what the exporters made, with the headers of the options and no others.
#[derive(Clone, Debug)]
pub(crate) struct Wire {
    client: Client,
    headers: HeaderMap,
}

impl Wire {
    pub fn new(options: &Options) -> Result<Wire, StartError> {
        let headers = headers(&options.headers)?;
        let proxy = options.proxy.as_deref().map(Proxy::all).transpose();
        let proxy = proxy.map_err(|error| StartError::Proxy(error.to_string()))?;
        let secure = [Some(&options.endpoint), options.proxy.as_ref()].into_iter().flatten();
        let secure = secure.into_iter().any(|address| address.starts_with("https:"));
        let timeout = Duration::from_millis(options.export_timeout_ms);
        // A blocking client is not to be made on a thread that runs async work.
        let made = thread::spawn(move || client(secure, timeout, proxy));
        let client = made.join().unwrap_or_else(|_| Err("its client broke as it was made".into()));
        Ok(Wire { client: client.map_err(StartError::Client)?, headers })
    }
}

#[async_trait]
impl HttpClient for Wire {
    async fn send_bytes(&self, mut request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        // The exporter adds headers of the environment: they were not given to us, so they do not leave.
        let given = std::mem::take(request.headers_mut());
        let own = request.headers_mut();
        for name in [CONTENT_TYPE, CONTENT_ENCODING] {
            own.extend(given.get(&name).map(|value| (name, value.clone())));
        }
        own.extend(self.headers.clone());
        self.client.send_bytes(request).await
    }
}

/// The address of a signal below the base.
pub(crate) fn address(base: &str, signal: &str) -> Result<String, StartError> {
    let wrong = || StartError::Endpoint(without_password(base));
    let url = Url::parse(base).map_err(|_| wrong())?;
    if !matches!(url.scheme(), "http" | "https") || url.query().is_some() || url.path().ends_with("/v1/traces") {
        return Err(wrong());
    }
    Ok(format!("{}/v1/{signal}", base.trim_end_matches('/')))
}

fn without_password(address: &str) -> String {
    match address.rsplit_once('@') {
        Some((_, host)) => format!("…@{host}"),
        None => address.to_owned(),
    }
}

fn headers(given: &[(String, String)]) -> Result<HeaderMap, StartError> {
    let mut headers = HeaderMap::new();
    headers.insert(USER_AGENT, HeaderValue::from_static(concat!("windlass/", env!("CARGO_PKG_VERSION"))));
    for (name, value) in given {
        let wrong = || StartError::Header(name.clone());
        let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?;
        let mut value = HeaderValue::from_str(value).map_err(|_| wrong())?;
        value.set_sensitive(true);
        headers.insert(key, value);
    }
    Ok(headers)
}

fn client(secure: bool, timeout: Duration, proxy: Option<Proxy>) -> Result<Client, String> {
    let builder = Client::builder()
        .timeout(timeout)
        .connect_timeout(CONNECT)
        // A key goes to the host it was given for.
        .redirect(redirect::Policy::none())
        .no_proxy();
    let builder = match proxy {
        Some(proxy) => builder.proxy(proxy),
        None => builder,
    };
    // Fails only if the process chose a provider already, which then serves as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = if secure { builder } else { builder.tls_backend_preconfigured(no_roots()?) };
    builder.build().map_err(|error| error.to_string())
}

/// For `http://`: the platform's root certificates are not loaded, which takes longer than a whole export.
fn no_roots() -> Result<rustls::ClientConfig, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(|error| error.to_string())?;
    Ok(config.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_lie_below_the_base() {
        assert_eq!(address("http://c:4318", "traces").unwrap(), "http://c:4318/v1/traces");
        assert_eq!(address("https://c/otlp/", "metrics").unwrap(), "https://c/otlp/v1/metrics");
        for wrong in ["c:4318", "ftp://c", "http://c/v1/traces", "http://c/?x=1", ""] {
            assert!(address(wrong, "traces").is_err(), "{wrong}");
        }
        let error = address("ftp://me:secret@c", "traces").unwrap_err().to_string();
        assert!(error.starts_with("telemetry can't go to `…@c`: give the collector's base address"), "{error}");
    }

    #[test]
    fn a_header_that_cannot_be_sent_is_named_without_its_value() {
        let error = headers(&[("x-key".into(), "a\nsecret".into())]).unwrap_err().to_string();
        assert!(error.contains("`x-key`") && !error.contains("secret"), "{error}");
    }
}
