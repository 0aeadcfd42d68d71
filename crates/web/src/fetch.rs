//! A page, hop by hop: each is read, judged, looked up, judged again, and only then dialled.

use crate::body::{self, Media};
use crate::dial::{self, Answer, Dial};
use crate::error::{FetchError, Reason};
use crate::hosts::Reach;
use crate::markdown::{self, Read};
use crate::resolver::Resolver;
use crate::target::Target;
use reqwest::header::LOCATION;
use serde::Serialize;
use std::net::IpAddr;
use std::time::Duration;
use url::Host;

/// Bytes the head of an answer may have.
pub const MAX_HEADER_BYTES: usize = 64 * 1024;

/// What a fetch may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Milliseconds until a connection stands.
    pub connect_ms: u64,
    /// Milliseconds for all hops and the whole body.
    pub total_ms: u64,
    /// Bytes of the body that are read, counted after it is unpacked; what follows is left out.
    pub max_bytes: usize,
    /// Redirects that are followed.
    pub max_redirects: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { connect_ms: 10_000, total_ms: 30_000, max_bytes: 2 << 20, max_redirects: 5 }
    }
}

/// What is made of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// HTML as Markdown, other text as it is.
    Readable,
    /// Every text as it is.
    Source,
}

/// One request that was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Hop {
    pub url: String,
    /// The address that answered.
    pub address: IpAddr,
}

/// A page that was fetched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Page {
    /// As it was asked for.
    pub url: String,
    /// Where it was found after redirects.
    pub final_url: String,
    pub status: u16,
    pub hops: Vec<Hop>,
    /// As the server says; empty if it does not.
    pub content_type: String,
    pub title: Option<String>,
    pub text: String,
    /// Bytes of the body that were read.
    pub bytes: usize,
    /// Whether the body went on.
    pub truncated: bool,
}

/// Fetches pages within its reach.
#[derive(Debug)]
pub struct Fetcher {
    pub reach: Reach,
    pub resolver: Resolver,
    pub limits: Limits,
    pub user_agent: String,
}

impl Fetcher {
    /// The page at `url`. Dropping the future closes the connection.
    pub async fn fetch(&self, url: &str, form: Form) -> Result<Page, FetchError> {
        let limit = Duration::from_millis(self.limits.total_ms);
        let fetched = tokio::time::timeout(limit, self.page(url, form)).await;
        fetched.unwrap_or_else(|_| {
            let message = format!("{url}: it was not there after {} ms; try again later", self.limits.total_ms);
            Err(FetchError::new(Reason::Timeout, url, message))
        })
    }

    async fn page(&self, url: &str, form: Form) -> Result<Page, FetchError> {
        let mut hops = vec![];
        let (target, answer) = self.walk(Target::parse(url)?, &mut hops).await?;
        let status = answer.response.status().as_u16();
        let media = Media::of(&answer.response);
        let failed = |(reason, message)| FetchError {
            address: Some(answer.address),
            ..FetchError::new(reason, target.text(), message)
        };
        media.check(answer.response.content_length()).map_err(failed)?;
        let body = body::read(answer.response, self.limits.max_bytes).await.map_err(failed)?;
        let (bytes, truncated) = (body.bytes.len(), body.truncated);
        let Read { title, text } = markdown::read(body, &media, target.url(), form).await.map_err(failed)?;
        let final_url = target.text().to_owned();
        Ok(Page {
            url: url.trim().into(),
            final_url,
            status,
            hops,
            content_type: media.said,
            title,
            text,
            bytes,
            truncated,
        })
    }

    /// Follows redirects to the answer that is none.
    async fn walk(&self, first: Target, hops: &mut Vec<Hop>) -> Result<(Target, Answer), FetchError> {
        let mut target = first;
        loop {
            let addresses = self.judge(&target).await?;
            let dial = Dial { connect_ms: self.limits.connect_ms, user_agent: &self.user_agent };
            let answer = dial::get(&target, &addresses, dial).await?;
            hops.push(Hop { url: target.text().to_owned(), address: answer.address });
            let redirects = matches!(answer.response.status().as_u16(), 301 | 302 | 303 | 307 | 308);
            let Some(location) = answer.response.headers().get(LOCATION).filter(|_| redirects) else {
                return Ok((target, answer));
            };
            let next = target.join(location.as_bytes())?;
            self.check_redirect(&target, &next, hops)?;
            target = next;
        }
    }

    /// The addresses of the target's host, if it and all of them may be reached.
    async fn judge(&self, target: &Target) -> Result<Vec<IpAddr>, FetchError> {
        let (host, port) = (target.host(), target.port());
        self.reach.names(&host, port).map_err(|reason| unnamed(target, reason))?;
        let addresses = match host {
            Host::Ipv4(address) => vec![address.into()],
            Host::Ipv6(address) => vec![address.into()],
            Host::Domain(name) => self.look_up(target, name).await?,
        };
        for address in &addresses {
            if let Err(what) = self.reach.dials(&host, *address, port) {
                return Err(special(target, *address, what));
            }
        }
        Ok(addresses)
    }

    async fn look_up(&self, target: &Target, name: &str) -> Result<Vec<IpAddr>, FetchError> {
        let unknown = |why: String| {
            let message = format!("{name} can't be found: {why}; look whether the name is right");
            FetchError::new(Reason::Resolve, target.text(), message)
        };
        let found = self.resolver.look_up(name).await.map_err(|error| unknown(error.to_string()))?;
        if found.is_empty() { Err(unknown("it has no address".into())) } else { Ok(found) }
    }

    fn check_redirect(&self, from: &Target, to: &Target, hops: &[Hop]) -> Result<(), FetchError> {
        let refuse = |reason, message| Err(FetchError::new(reason, to.text(), message));
        if from.is_secure() && !to.is_secure() {
            return refuse(
                Reason::Downgrade,
                format!("{} leads from https to {}, which is not followed", from.text(), to.text()),
            );
        }
        if hops.len() > self.limits.max_redirects {
            let message = format!("more than {} redirects; the last leads to {}", self.limits.max_redirects, to.text());
            return refuse(Reason::Redirects, message);
        }
        if hops.iter().any(|hop| hop.url == to.text()) {
            return refuse(Reason::Redirects, format!("the redirects lead in a circle, back to {}", to.text()));
        }
        if self.reach == Reach::Asked && !from.is_same_site(to) {
            let message = format!(
                "{} leads to another host: {}; that was not asked for, so fetch it by itself if it is wanted",
                from.text(),
                to.text()
            );
            return refuse(Reason::Elsewhere, message);
        }
        Ok(())
    }
}

fn unnamed(target: &Target, reason: Reason) -> FetchError {
    let (host, port) = (target.host(), target.port());
    let message = match reason {
        Reason::Port => {
            format!("{host} may not be reached at port {port}; list it as {host}:{port} if a web server is there")
        }
        _ => format!("{host} is not an allowed host"),
    };
    FetchError::new(reason, target.text(), message)
}

fn special(target: &Target, address: IpAddr, what: &str) -> FetchError {
    let host = target.host().to_string();
    let place =
        if host.trim_matches(['[', ']']) == address.to_string() { host } else { format!("{host} is {address},") };
    let message = match place.strip_suffix(',') {
        Some(place) => format!("{place}, {what}; such addresses are reached only if they are listed themselves"),
        None => format!("{place} is {what}; such addresses are reached only if they are listed themselves"),
    };
    FetchError { address: Some(address), ..FetchError::new(Reason::Address, target.text(), message) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Hosts;

    fn fetcher(reach: Reach) -> Fetcher {
        Fetcher { reach, resolver: Resolver::default(), limits: Limits::default(), user_agent: "test".into() }
    }

    fn redirect(reach: Reach, from: &str, to: &str) -> Option<Reason> {
        let hop = Hop { url: from.to_owned(), address: [1, 1, 1, 1].into() };
        let (from, to) = (Target::parse(from).unwrap(), Target::parse(to).unwrap());
        fetcher(reach).check_redirect(&from, &to, &[hop]).err().map(|error| error.reason)
    }

    #[test]
    fn redirects_never_lead_from_https_to_http() {
        let any = || Reach::Listed(Hosts::parse(&["*".into()]).unwrap());
        assert_eq!(redirect(any(), "https://docs.rs/", "http://docs.rs/a"), Some(Reason::Downgrade));
        assert_eq!(redirect(any(), "http://docs.rs/", "https://docs.rs/"), None);
    }

    #[test]
    fn what_was_asked_for_one_host_is_not_taken_to_another() {
        assert_eq!(redirect(Reach::Asked, "http://docs.rs/", "https://www.docs.rs/a"), None);
        assert_eq!(redirect(Reach::Asked, "https://docs.rs/", "https://evil.example/"), Some(Reason::Elsewhere));
        let any = Reach::Listed(Hosts::parse(&["*".into()]).unwrap());
        assert_eq!(redirect(any, "https://docs.rs/", "https://other.example/"), None);
    }

    #[test]
    fn a_special_address_is_named_with_its_host() {
        let target = |text: &str| Target::parse(text).unwrap();
        let name = special(&target("http://pages.test/"), [127, 0, 0, 1].into(), "a loopback address");
        insta::assert_snapshot!(name, @"pages.test is 127.0.0.1, a loopback address; such addresses are reached only if they are listed themselves");
        let literal = special(&target("http://0x7f.1/"), [127, 0, 0, 1].into(), "a loopback address");
        insta::assert_snapshot!(literal, @"127.0.0.1 is a loopback address; such addresses are reached only if they are listed themselves");
    }
}
