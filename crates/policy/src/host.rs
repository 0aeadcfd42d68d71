//! Patterns over the host of a URL: `domain:docs.rs`, `domain:*.rust-lang.org`.

use serde_json::Value;
use url::{Host, Url};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HostPattern {
    host: String,
    /// Any host below it; the host itself is not meant.
    below: bool,
}

impl HostPattern {
    /// Reads what stands behind `domain:`; says what is wrong with it and the way out.
    pub fn parse(text: &str) -> Result<HostPattern, String> {
        let text = text.trim();
        let (name, below) = match text.strip_prefix("*.") {
            Some(name) => (name, true),
            None => (text, false),
        };
        if name.is_empty() || name.contains(['/', '*', '@', '?', '#']) || name.contains("://") {
            return Err(format!(
                "`{text}` is no host: write `domain:docs.rs`, or `domain:*.rust-lang.org` for those below"
            ));
        }
        let host = host_of(&format!("http://{name}/")).ok_or_else(|| format!("`{text}` is no host"))?;
        Ok(HostPattern { host, below })
    }

    pub fn matches(&self, host: &str) -> bool {
        if !self.below {
            return host == self.host;
        }
        host.strip_suffix(&self.host).is_some_and(|front| front.ends_with('.') && front.len() > 1)
    }
}

/// The host a call's `url` argument names, as a browser reads it: lower case, without a last dot, numbers as addresses.
pub(crate) fn host(input: &Value) -> Option<String> {
    host_of(input.get("url")?.as_str()?)
}

/// Whether every reader of the call's URL sees the same host: it is one of the web, without a backslash, white space or
/// control characters.
pub(crate) fn is_plain(input: &Value) -> bool {
    let Some(url) = input.get("url").and_then(Value::as_str) else { return false };
    let scheme = url.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
    let is_odd = |sign: char| sign == '\\' || sign.is_whitespace() || sign.is_control();
    scheme.is_some_and(|scheme| matches!(&*scheme, "http" | "https")) && !url.trim().contains(is_odd)
}

fn host_of(url: &str) -> Option<String> {
    let url = Url::parse(url.trim()).ok()?;
    Some(match url.host()? {
        Host::Domain(name) => name.trim_end_matches('.').to_lowercase(),
        address => address.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn hosts_are_compared_as_browsers_read_them() {
        for (pattern, url, expected) in [
            ("docs.rs", "https://docs.rs/serde", true),
            ("docs.rs", "HTTPS://DOCS.RS./x", true),
            ("docs.rs", "https://docs.rs.evil.org/", false),
            ("docs.rs", "https://docs.rs@evil.org/", false),
            ("docs.rs", "https://evil.org/docs.rs", false),
            ("docs.rs", "https://a.docs.rs/", false),
            ("*.rust-lang.org", "https://doc.rust-lang.org/", true),
            ("*.rust-lang.org", "https://rust-lang.org/", false),
            ("*.rust-lang.org", "https://evilrust-lang.org/", false),
            ("127.0.0.1", "http://2130706433/", true),
        ] {
            let host = host(&json!({ "url": url })).unwrap();
            assert_eq!(HostPattern::parse(pattern).unwrap().matches(&host), expected, "{pattern} on {url}");
        }
        for url in ["https://docs.rs\\.evil.org/", "https://docs.rs\t.evil.org/", "ftp://docs.rs/", "https:docs.rs", ""]
        {
            assert!(!is_plain(&json!({ "url": url })), "{url:?}");
        }
        assert!(is_plain(&json!({ "url": "https://docs.rs/x?y#z" })));
        assert!(HostPattern::parse("https://docs.rs").is_err());
        assert!(HostPattern::parse("").is_err());
    }
}
