//! A URL as it will be asked for: read the way browsers do, so that no other reading of it can be meant.

use crate::error::{FetchError, Reason};
use url::{Host, Url};

/// Bytes a URL may have.
const MAX_URL_BYTES: usize = 8 * 1024;

/// An http or https URL with a host, without a user and without a fragment; its name has no trailing dot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target(Url);

impl Target {
    pub(crate) fn parse(text: &str) -> Result<Target, FetchError> {
        let text = text.trim();
        check_text(text)?;
        match Url::parse(text) {
            Ok(url) => Target::of(url, text),
            Err(error) => Err(unreadable(text, &error.to_string())),
        }
    }

    /// Where `location`, the value of a redirect's header, leads from here.
    pub(crate) fn join(&self, location: &[u8]) -> Result<Target, FetchError> {
        let text = String::from_utf8_lossy(location);
        let text = text.trim();
        check_text(text)?;
        match self.0.join(text) {
            Ok(url) => Target::of(url, text),
            Err(error) => Err(unreadable(text, &error.to_string())),
        }
    }

    fn of(mut url: Url, text: &str) -> Result<Target, FetchError> {
        let refuse = |reason, message: String| Err(FetchError::new(reason, text, message));
        if !matches!(url.scheme(), "http" | "https") {
            let scheme = url.scheme();
            return refuse(Reason::Scheme, format!("{text}: `{scheme}` is not fetched; give a URL with https or http"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            let host = url.host_str().unwrap_or_default();
            let message = format!("the URL holds a user name or password; leave out what stands before @{host}");
            // The URL is left out of the error: a password may stand in it.
            return Err(FetchError::new(Reason::Userinfo, format!("{}://…@{host}", url.scheme()), message));
        }
        if let Some(name) = url.domain().and_then(|name| name.strip_suffix('.')).map(str::to_owned)
            && let Err(error) = url.set_host(Some(&name))
        {
            return Err(unreadable(text, &error.to_string()));
        }
        if url.domain().is_some_and(|name| name.split('.').any(str::is_empty)) {
            return Err(unreadable(text, "a part of the host's name is empty"));
        }
        url.set_fragment(None);
        Ok(Target(url))
    }

    pub(crate) fn url(&self) -> &Url {
        &self.0
    }

    pub(crate) fn text(&self) -> &str {
        self.0.as_str()
    }

    pub(crate) fn host(&self) -> Host<&str> {
        self.0.host().unwrap_or(Host::Domain(""))
    }

    pub(crate) fn port(&self) -> u16 {
        self.0.port_or_known_default().unwrap_or_default()
    }

    pub(crate) fn is_secure(&self) -> bool {
        self.0.scheme() == "https"
    }

    /// Whether who asked for `self` also asked for `other`: the same host at its port, be it with or without `www.`
    /// and by the secure scheme.
    pub(crate) fn is_same_site(&self, other: &Target) -> bool {
        let bare = |target: &Target| {
            let host = target.host().to_string();
            host.strip_prefix("www.").unwrap_or(&host).to_owned()
        };
        let usual = |target: &Target| target.0.port().is_none();
        bare(self) == bare(other) && (self.port() == other.port() || (usual(self) && usual(other)))
    }
}

/// White space and control characters within are dropped by browsers and shown by nobody: what is read is then not what
/// is fetched.
fn check_text(text: &str) -> Result<(), FetchError> {
    if text.len() > MAX_URL_BYTES {
        let start = &text[..text.floor_char_boundary(80)];
        let message = format!("{start}…: the URL has {} bytes; {MAX_URL_BYTES} are the most", text.len());
        return Err(FetchError::new(Reason::Url, start, message));
    }
    let is_hidden = |c: char| c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    match text.chars().find(|c| is_hidden(*c)) {
        Some(c) => Err(unreadable(&text.escape_debug().to_string(), &format!("it holds the control character {c:?}"))),
        None => Ok(()),
    }
}

fn unreadable(text: &str, why: &str) -> FetchError {
    let message = format!("`{text}` is no URL that can be fetched: {why}; write one like https://docs.rs/serde");
    FetchError::new(Reason::Url, text, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<String, Reason> {
        Target::parse(text).map(|target| target.text().to_owned()).map_err(|error| error.reason)
    }

    #[test]
    fn urls_are_read_as_browsers_do() {
        for (text, url) in [
            (" https://Docs.RS./a#b ", "https://docs.rs/a"),
            ("http://2130706433/", "http://127.0.0.1/"),
            ("http://0x7f.1/", "http://127.0.0.1/"),
            ("http://0177.0.0.01/", "http://127.0.0.1/"),
            ("http://①②⑦.⓪.⓪.①/", "http://127.0.0.1/"),
            ("http://１２７。０。０。１/", "http://127.0.0.1/"),
            ("http://%31%32%37.0.0.1/", "http://127.0.0.1/"),
            ("http:\\\\docs.rs\\a", "http://docs.rs/a"),
            ("http://docs.rs\\@evil.example/", "http://docs.rs/@evil.example/"),
            ("https://bücher.example/", "https://xn--bcher-kva.example/"),
            ("http://[::ffff:7f00:1]/", "http://[::ffff:7f00:1]/"),
        ] {
            assert_eq!(read(text).as_deref(), Ok(url), "{text}");
        }
    }

    #[test]
    fn what_could_be_read_twice_is_refused() {
        for (text, reason) in [
            ("docs.rs/serde", Reason::Url),
            ("file:///etc/passwd", Reason::Scheme),
            ("http://docs.rs@evil.example/", Reason::Userinfo),
            ("http://:secret@docs.rs/", Reason::Userinfo),
            ("http://docs\n.rs/", Reason::Url),
            ("http://a..b/", Reason::Url),
            ("http://[fe80::1%25eth0]/", Reason::Url),
            ("http://1.2.3.4.5/", Reason::Url),
            ("http:///", Reason::Url),
        ] {
            assert_eq!(read(text), Err(reason), "{text}");
        }
        let error = Target::parse("http://:hunter2@docs.rs/").unwrap_err();
        assert!(!format!("{error:?}").contains("hunter2"));
        assert_eq!(read(&format!("http://docs.rs/{}", "a".repeat(9000))), Err(Reason::Url));
    }

    #[test]
    fn a_site_is_its_host_with_or_without_www() {
        let same = |one: &str, other: &str| Target::parse(one).unwrap().is_same_site(&Target::parse(other).unwrap());
        assert!(same("http://docs.rs/a", "https://www.docs.rs/b"));
        assert!(!same("http://docs.rs/", "http://docs.rs:8080/"));
        assert!(!same("http://docs.rs/", "http://rs/"));
    }
}
