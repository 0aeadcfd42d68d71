//! Addresses of models and the headers that go with them: what cannot be one is refused before anything is sent.

use crate::exit::Failure;
use crate::mask;

/// That `url`, said at `source`, can be the base of a model's address.
pub fn check(url: &str, source: &str) -> Result<(), Failure> {
    match flaw(url) {
        None => Ok(()),
        Some(flaw) => Err(Failure::usage(format!(
            "{source}: `{}` is no address of a model{flaw}: write it like http://127.0.0.1:11434/v1",
            mask::address(url)
        ))),
    }
}

/// What keeps it from being one, in words that go on behind it.
fn flaw(url: &str) -> Option<&'static str> {
    let Some(rest) = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://")) else { return Some("") };
    if url.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Some(", for it holds a blank");
    }
    if url.contains(['?', '#']) {
        return Some(", for a path goes behind it, and so no `?` or `#` may stand in it");
    }
    let authority = rest.split('/').next().unwrap_or_default();
    let place = authority.rsplit_once('@').map_or(authority, |(_, place)| place);
    let (host, port) = match place.strip_prefix('[').and_then(|place| place.split_once(']')) {
        Some((host, port)) => (host, port.strip_prefix(':')),
        None => place.split_once(':').map_or((place, None), |(host, port)| (host, Some(port))),
    };
    if host.is_empty() {
        return Some(", for it names no host");
    }
    let is_port = |port: &str| port.parse::<u16>().is_ok_and(|port| port > 0);
    port.is_some_and(|port| !is_port(port)).then_some(", for a port is a number from 1 to 65535")
}

/// A header that a configuration has as `NAME: VALUE`.
pub fn header(header: &str, source: &str) -> Result<(String, String), Failure> {
    let refused = |why: &str| Failure::usage(format!("{source}: the header `{}` {why}", mask::header(header)));
    let Some((name, value)) = header.split_once(':') else {
        return Err(refused("is none: write \"NAME: VALUE\""));
    };
    let (name, value) = (name.trim(), value.trim());
    let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    if name.is_empty() || !name.chars().all(is_token) {
        return Err(refused("has a name that none may have: write letters, digits and `-` before the `:`"));
    }
    if value.chars().any(char::is_control) {
        return Err(refused("has a value with a line's end or the like in it: leave that away"));
    }
    Ok((name.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_an_address_is_told_with_the_reason_and_without_its_password() {
        for fine in ["http://h", "https://u:p@h:1/v1", "http://[::1]:8000/v1", "http://[::1]", "http://h:65535"] {
            assert_eq!(check(fine, "here"), Ok(()), "{fine}");
        }
        let told = |url: &str| check(url, "--base-url").unwrap_err().message;
        assert!(told("localhost:1").starts_with("--base-url: `localhost:1` is no address of a model: write it like"));
        assert!(told("http://h:99999/v1").contains("`http://h:99999/v1` is no address of a model, for a port is"));
        for port in ["http://h:0", "http://h:", "http://h:x", "http://[::1]:70000"] {
            assert!(told(port).contains("for a port is a number from 1 to 65535"), "{port}");
        }
        for host in ["http://", "http:///v1", "http://:80", "http://u@/v1"] {
            assert!(told(host).contains("names no host"), "{host}");
        }
        assert!(told("http://h /v1").contains("holds a blank"));
        let query = told("http://u:secret@h/v1?key=secret");
        assert!(query.contains("`http://…@h/v1?…`") && query.contains("no `?` or `#`"), "{query}");
        assert!(!query.contains("secret"), "{query}");
    }

    #[test]
    fn a_header_has_a_name_and_a_value() {
        assert_eq!(header("X-Team:  red ", "here"), Ok(("X-Team".into(), "red".into())));
        let told = |text: &str| header(text, "config.toml:3").unwrap_err().message;
        assert!(told("secret").contains("config.toml:3: the header `…` is none: write \"NAME: VALUE\""));
        assert!(told("X Team: secret").starts_with("config.toml:3: the header `X Team:…` has a name that none may"));
        assert!(told(": secret").contains("has a name that none may have"));
        assert!(told("X: a\nb").contains("has a value with a line's end"));
    }
}
