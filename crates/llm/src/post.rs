//! One HTTP request on its way: its address, its client, and the wait for the head of the answer.

use crate::endpoint::Target;
use crate::http::without_password;
use reqwest::{Client, RequestBuilder, Response, Url};
use std::time::Duration;
use tokio::time::timeout;
use windlass_kernel::ModelFailure;

/// The address of `path` behind `base`.
pub(crate) fn address(target: &Target, base: &str, path: &str) -> Result<Url, ModelFailure> {
    let bad = |cause: String| {
        let base = without_password(base);
        target.invalid(format!("the base URL `{base}` cannot be used: {cause}; give one like https://host/path"))
    };
    let url = Url::parse(&format!("{}{path}", base.trim_end_matches('/'))).map_err(|error| bad(error.to_string()))?;
    match url.scheme() {
        "http" | "https" => Ok(url),
        scheme => Err(bad(format!("its scheme is `{scheme}`, not http or https"))),
    }
}

/// The address as messages show it.
pub(crate) fn without_credentials(mut url: Url) -> String {
    // These fail only for addresses without a host, which have no credentials either.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_query(None);
    url.into()
}

pub(crate) fn client<'a>(target: &'a Target, url: &Url) -> Result<&'a Client, ModelFailure> {
    target.http.client(url).map_err(|cause| {
        let shown = without_credentials(url.clone());
        target.invalid(format!("no TLS client for {shown} can be built: {cause}; check the root certificates"))
    })
}

/// Sends the request to the address shown as `url` and waits for the head of its answer.
pub(crate) async fn answer(target: &Target, url: &str, asked: RequestBuilder) -> Result<Response, ModelFailure> {
    let wait = Duration::from_millis(target.http.clocks().headers_ms);
    match timeout(wait, asked.send()).await {
        Ok(Ok(response)) => Ok(response),
        Ok(Err(error)) => Err(target.unreachable(url, &error)),
        Err(_) => Err(target.silent(url, "the head of its answer", wait)),
    }
}
