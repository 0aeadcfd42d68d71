//! Settings as they may be shown: without what could be a key.

/// A header, written `NAME: VALUE` or `NAME=VALUE`, without its value.
pub fn header(header: &str) -> String {
    match header.split_once([':', '=']) {
        Some((name, _)) => format!("{name}{}…", &header[name.len()..=name.len()]),
        None => "…".to_owned(),
    }
}

/// An address without its user, its password and what stands behind its path.
pub fn address(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").map_or(("", url), |(scheme, rest)| (&url[..scheme.len() + 3], rest));
    let (rest, behind) = match rest.find(['?', '#']) {
        Some(at) => (&rest[..at], format!("{}…", &rest[at..=at])),
        None => (rest, String::new()),
    };
    let shown = rest.rsplit_once('@').map_or_else(|| rest.to_owned(), |(_, host)| format!("…@{host}"));
    // A password may hold what only looks like the end of an address.
    if behind.is_empty() || !url.contains('@') || rest.contains('@') {
        return format!("{scheme}{shown}{behind}");
    }
    format!("{scheme}…{behind}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_shown_without_its_value() {
        assert_eq!(header("x-key=se:cret"), "x-key=…");
        assert_eq!(header("Authorization: Bearer a=b"), "Authorization:…");
        assert_eq!(header("secret"), "…");
    }

    #[test]
    fn an_address_is_shown_without_its_password() {
        assert_eq!(address("http://h:1/v1"), "http://h:1/v1");
        assert_eq!(address("https://me:secret@h:1/v1?key=secret"), "https://…@h:1/v1?…");
        assert_eq!(address("https://me:se/cret@h/v1#x"), "https://…@h/v1#…");
        assert_eq!(address("https://me:se#cret@h/v1"), "https://…#…");
        assert_eq!(address("me:secret@h/v1"), "…@h/v1");
    }
}
