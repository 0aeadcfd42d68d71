//! One request to addresses that were judged before: nothing is looked up here, and no redirect is followed.

use crate::address::canonical;
use crate::error::{FetchError, Reason};
use crate::fetch::MAX_HEADER_BYTES;
use crate::target::Target;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{ACCEPT, CONTENT_ENCODING};
use reqwest::{Client, ClientBuilder, Response, redirect, retry};
use std::error::Error;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// Lines of an answer's head.
const MAX_HEADERS: usize = 200;
const ACCEPTED: &str = "text/markdown, text/html;q=0.9, text/plain;q=0.8, */*;q=0.5";

/// The head of an answer, and where it came from.
pub(crate) struct Answer {
    pub response: Response,
    pub address: IpAddr,
}

/// Asks for the target at one of `addresses`, which were all judged.
pub(crate) async fn get(target: &Target, addresses: &[IpAddr], limits: Dial<'_>) -> Result<Answer, FetchError> {
    let broken = |message: String| FetchError::new(Reason::Broken, target.text(), message);
    let client = client(target, addresses, limits).map_err(|error| broken(cause(&error)))?;
    let request = client.get(target.url().clone()).header(ACCEPT, ACCEPTED);
    let response = request.send().await.map_err(|error| failed(target, addresses, &error))?;
    let reached = response.remote_addr().map(|address| canonical(address.ip()));
    let address = reached.or_else(|| addresses.first().copied()).ok_or_else(|| broken("it has no address".into()))?;
    if !addresses.iter().any(|judged| canonical(*judged) == address) {
        let message = format!("{}: {address} was reached, which was not judged before", target.host());
        return Err(FetchError { address: Some(address), ..FetchError::new(Reason::Address, target.text(), message) });
    }
    check_head(target, &response)?;
    Ok(Answer { response, address })
}

/// What a connection needs to know.
#[derive(Clone, Copy)]
pub(crate) struct Dial<'a> {
    pub connect_ms: u64,
    pub user_agent: &'a str,
}

fn client(target: &Target, addresses: &[IpAddr], limits: Dial<'_>) -> reqwest::Result<Client> {
    let judged = Judged(addresses.iter().map(|address| SocketAddr::new(*address, target.port())).collect());
    let builder = Client::builder()
        .user_agent(limits.user_agent)
        .connect_timeout(Duration::from_millis(limits.connect_ms))
        .dns_resolver(Arc::new(judged))
        .http1_only()
        .http1_max_headers(MAX_HEADERS)
        // A client lives for one request: the next hop is judged anew.
        .pool_max_idle_per_host(0)
        .redirect(redirect::Policy::none())
        .retry(retry::never())
        .referer(false)
        .no_proxy();
    with_tls(builder, target).build()
}

/// Plain addresses load no certificates.
fn with_tls(builder: ClientBuilder, target: &Target) -> ClientBuilder {
    let provider = rustls::crypto::ring::default_provider();
    if target.is_secure() {
        // Fails only if the process chose a provider already, which then serves as well.
        let _ = provider.install_default();
        return builder;
    }
    let plain = rustls::ClientConfig::builder_with_provider(Arc::new(provider)).with_safe_default_protocol_versions();
    match plain {
        Ok(plain) => builder.tls_backend_preconfigured(
            plain.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth(),
        ),
        Err(_) => builder,
    }
}

/// The addresses that were judged, in the place of a second look-up.
struct Judged(Vec<SocketAddr>);

impl Resolve for Judged {
    fn resolve(&self, _: Name) -> Resolving {
        let addresses: Addrs = Box::new(self.0.clone().into_iter());
        Box::pin(std::future::ready(Ok(addresses)))
    }
}

fn check_head(target: &Target, response: &Response) -> Result<(), FetchError> {
    let bytes: usize = response.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
    if bytes > MAX_HEADER_BYTES {
        let message = format!("the head of the answer has {bytes} bytes; {MAX_HEADER_BYTES} are the most");
        return Err(FetchError::new(Reason::Headers, target.text(), message));
    }
    match response.headers().get(CONTENT_ENCODING).filter(|encoding| *encoding != "identity") {
        Some(encoding) => {
            let message = format!("the answer is encoded as {encoding:?}, which was not asked for and is not read");
            Err(FetchError::new(Reason::ContentType, target.text(), message))
        }
        None => Ok(()),
    }
}

/// What a failed request says, with the addresses that were tried.
fn failed(target: &Target, addresses: &[IpAddr], error: &reqwest::Error) -> FetchError {
    let cause = cause(error);
    let tried: Vec<String> = addresses.iter().map(IpAddr::to_string).collect();
    let at = format!("{} ({})", target.host(), tried.join(", "));
    let (reason, message) = if cause.contains("message head is too large") || cause.contains("too many headers") {
        let limit = format!("{MAX_HEADERS} lines and {MAX_HEADER_BYTES} bytes");
        (Reason::Headers, format!("{at}: the head of the answer is too long; {limit} are the most"))
    } else if error.is_timeout() {
        (Reason::Timeout, format!("{at}: no connection stood in time; try again later"))
    } else if error.is_connect() {
        (Reason::Connect, format!("{at} can't be reached: {cause}"))
    } else {
        (Reason::Broken, format!("{at} gave no answer that can be read: {cause}"))
    };
    FetchError { address: addresses.first().copied(), ..FetchError::new(reason, target.text(), message) }
}

/// The innermost words of an error, which tell the most.
pub(crate) fn cause(error: &dyn Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}
