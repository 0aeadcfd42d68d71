//! Which hosts may be reached: the list that stands below whatever the policy says.

use crate::address::{canonical, not_public};
use crate::error::Reason;
use ipnet::IpNet;
use std::net::{IpAddr, Ipv6Addr};
use url::Host;

/// Ports of well-known protocols that are not HTTP: words meant for a web server must not reach them by accident.
const OTHER_PROTOCOLS: [u16; 44] = [
    0, 1, 7, 9, 13, 17, 19, 20, 21, 22, 23, 25, 42, 43, 53, 69, 79, 110, 111, 119, 123, 135, 137, 139, 143, 161, 179,
    389, 445, 465, 514, 515, 587, 631, 636, 873, 989, 990, 993, 995, 2049, 3306, 5432, 6379,
];

/// How far fetches may reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Any public host: nothing was listed, and whoever is asked decides. A redirect to another host is not followed,
    /// because that host was not asked about.
    Asked,
    /// What is listed, and nothing else.
    Listed(Hosts),
}

/// A list of hosts, addresses and ranges of addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hosts(Vec<Entry>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    pattern: Pattern,
    /// The only port; none: any but those of other protocols.
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Pattern {
    /// `*`: every name, and every address that is public.
    Any,
    Name(String),
    /// `*.NAME`: the names below it, not itself; kept with its leading dot.
    Below(String),
    Address(IpAddr),
    Range(IpNet),
}

impl Hosts {
    /// Reads entries like `docs.rs`, `*.rust-lang.org`, `pages.lan:8080`, `127.0.0.1`, `[::1]:80`, `10.0.0.0/8` or
    /// `*`; says which of them cannot be read and how one is written.
    pub fn parse(entries: &[String]) -> Result<Hosts, String> {
        entries.iter().map(|text| entry(text.trim())).collect::<Result<_, _>>().map(Hosts)
    }

    fn names(&self, host: &Host<&str>, port: u16) -> Result<(), Reason> {
        let mut reason = Reason::Host;
        for entry in self.0.iter().filter(|entry| entry.pattern.is(host)) {
            if allows_port(entry.port, port) {
                return Ok(());
            }
            reason = Reason::Port;
        }
        Err(reason)
    }

    /// Whether the address itself, or a range it lies in, is listed; or loopback, of a listed `localhost`.
    fn holds(&self, host: &Host<&str>, address: IpAddr, port: u16) -> bool {
        let consents = |entry: &Entry| match &entry.pattern {
            Pattern::Address(listed) => *listed == address,
            Pattern::Range(range) => range.contains(&address),
            Pattern::Name(name) => name == "localhost" && entry.pattern.is(host) && address.is_loopback(),
            Pattern::Any | Pattern::Below(_) => false,
        };
        self.0.iter().any(|entry| consents(entry) && entry.port.is_none_or(|only| only == port))
    }
}

impl Reach {
    /// Whether `host` may be asked for at `port` at all; the error is `Host` or `Port`.
    pub(crate) fn names(&self, host: &Host<&str>, port: u16) -> Result<(), Reason> {
        match self {
            Reach::Asked if allows_port(None, port) => Ok(()),
            Reach::Asked => Err(Reason::Port),
            Reach::Listed(hosts) => hosts.names(host, port),
        }
    }

    /// Whether `address`, at which `host` is found, may be dialled; the error says what is special about it.
    pub(crate) fn dials(&self, host: &Host<&str>, address: IpAddr, port: u16) -> Result<(), &'static str> {
        let Some(what) = not_public(address) else { return Ok(()) };
        match self {
            Reach::Listed(hosts) if hosts.holds(host, canonical(address), port) => Ok(()),
            _ => Err(what),
        }
    }
}

fn allows_port(only: Option<u16>, port: u16) -> bool {
    only.map_or(!OTHER_PROTOCOLS.contains(&port), |only| only == port)
}

impl Pattern {
    fn is(&self, host: &Host<&str>) -> bool {
        let address = match host {
            Host::Domain(name) => {
                return match self {
                    Pattern::Any => true,
                    Pattern::Name(listed) => listed == name,
                    Pattern::Below(above) => name.len() > above.len() && name.ends_with(above.as_str()),
                    Pattern::Address(_) | Pattern::Range(_) => false,
                };
            }
            Host::Ipv4(address) => IpAddr::V4(*address),
            Host::Ipv6(address) => canonical(IpAddr::V6(*address)),
        };
        match self {
            // Whether it is public is asked where every address is.
            Pattern::Any => true,
            Pattern::Address(listed) => *listed == address,
            Pattern::Range(range) => range.contains(&address),
            Pattern::Name(_) | Pattern::Below(_) => false,
        }
    }
}

fn entry(text: &str) -> Result<Entry, String> {
    let wrong = |why: &str| {
        format!(
            "`{text}` is no host: {why}; write a name (docs.rs, *.rust-lang.org), an address (127.0.0.1, ::1), a range \
             (10.0.0.0/8) or * for any public host; a name or address may end with a port (pages.lan:8080)"
        )
    };
    if text.contains('/') {
        let range = text.parse::<IpNet>().map_err(|_| wrong("what holds a `/` must be a range of addresses"))?;
        return Ok(Entry { pattern: Pattern::Range(range.trunc()), port: None });
    }
    if let Ok(address) = text.parse::<Ipv6Addr>() {
        return Ok(Entry { pattern: Pattern::Address(canonical(address.into())), port: None });
    }
    let (name, port) = match text.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => {
            let number = port.parse().ok().filter(|number| *number != 0);
            (name, Some(number.ok_or_else(|| wrong("its port is no number from 1 to 65535"))?))
        }
        _ => (text, None),
    };
    Ok(Entry { pattern: pattern(name).map_err(|why| wrong(&why))?, port })
}

fn pattern(name: &str) -> Result<Pattern, String> {
    if name == "*" {
        return Ok(Pattern::Any);
    }
    let (below, name) = name.strip_prefix("*.").map_or((false, name), |rest| (true, rest));
    if name.contains(['*', '@', '?', '#', '\\', ' ']) {
        return Err("it holds a character that no host has; `*` may only stand alone or for the first label".into());
    }
    match Host::parse(name).map_err(|error| error.to_string())? {
        Host::Domain(name) => {
            let name = name.strip_suffix('.').unwrap_or(&name).to_owned();
            Ok(if below { Pattern::Below(format!(".{name}")) } else { Pattern::Name(name) })
        }
        _ if below => Err("an address has nothing below it".into()),
        Host::Ipv4(address) => Ok(Pattern::Address(address.into())),
        Host::Ipv6(address) => Ok(Pattern::Address(canonical(address.into()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reach(entries: &[&str]) -> Reach {
        let entries: Vec<String> = entries.iter().map(|entry| (*entry).to_owned()).collect();
        Reach::Listed(Hosts::parse(&entries).unwrap())
    }

    fn named(entries: &[&str], host: &str, port: u16) -> Result<(), Reason> {
        let host = Host::parse(host).unwrap();
        let host = match &host {
            Host::Domain(name) => Host::Domain(name.as_str()),
            Host::Ipv4(address) => Host::Ipv4(*address),
            Host::Ipv6(address) => Host::Ipv6(*address),
        };
        reach(entries).names(&host, port)
    }

    #[test]
    fn names_are_matched_whole_and_stars_stand_for_what_is_below() {
        assert_eq!(named(&["docs.rs"], "docs.rs", 443), Ok(()));
        assert_eq!(named(&["DOCS.rs."], "docs.rs", 443), Ok(()));
        assert_eq!(named(&["docs.rs"], "evildocs.rs", 443), Err(Reason::Host));
        assert_eq!(named(&["docs.rs"], "docs.rs.evil.example", 443), Err(Reason::Host));
        assert_eq!(named(&["*.rust-lang.org"], "doc.rust-lang.org", 443), Ok(()));
        assert_eq!(named(&["*.rust-lang.org"], "a.b.rust-lang.org", 443), Ok(()));
        assert_eq!(named(&["*.rust-lang.org"], "rust-lang.org", 443), Err(Reason::Host));
        assert_eq!(named(&["*.rust-lang.org"], "evilrust-lang.org", 443), Err(Reason::Host));
        assert_eq!(named(&["bücher.example"], "xn--bcher-kva.example", 443), Ok(()));
        assert_eq!(named(&[], "docs.rs", 443), Err(Reason::Host));
        assert_eq!(named(&["*"], "docs.rs", 443), Ok(()));
    }

    #[test]
    fn a_port_that_is_named_is_the_only_one() {
        assert_eq!(named(&["pages.lan:8080"], "pages.lan", 8080), Ok(()));
        assert_eq!(named(&["pages.lan:8080"], "pages.lan", 80), Err(Reason::Port));
        assert_eq!(named(&["pages.lan"], "pages.lan", 8080), Ok(()));
        assert_eq!(named(&["pages.lan"], "pages.lan", 25), Err(Reason::Port));
        assert_eq!(named(&["pages.lan", "pages.lan:25"], "pages.lan", 25), Ok(()));
        assert_eq!(named(&["[::1]:80"], "[::1]", 80), Ok(()));
        assert_eq!(named(&["[::1]:80"], "[::1]", 81), Err(Reason::Port));
    }

    #[test]
    fn a_name_is_no_consent_to_a_private_address_behind_it() {
        let (name, loopback) = (Host::Domain("pages.lan"), "127.0.0.1".parse().unwrap());
        assert!(reach(&["pages.lan"]).dials(&name, loopback, 80).is_err());
        assert!(reach(&["*"]).dials(&name, loopback, 80).is_err());
        assert!(Reach::Asked.dials(&name, loopback, 80).is_err());
        assert!(reach(&["pages.lan", "127.0.0.1"]).dials(&name, loopback, 80).is_ok());
        assert!(reach(&["127.0.0.0/8"]).dials(&name, loopback, 80).is_ok());
        assert!(reach(&["127.0.0.1:81"]).dials(&name, loopback, 80).is_err());
        assert!(reach(&["localhost"]).dials(&name, loopback, 80).is_err());
        assert!(reach(&["localhost"]).dials(&Host::Domain("localhost"), loopback, 80).is_ok());
        assert!(reach(&["localhost"]).dials(&Host::Domain("localhost"), "10.0.0.1".parse().unwrap(), 80).is_err());
    }

    #[test]
    fn what_is_no_host_is_named_with_the_way_out() {
        let wrong = |text: &str| Hosts::parse(&[text.to_owned()]).unwrap_err();
        assert!(wrong("https://docs.rs").starts_with("`https://docs.rs` is no host: what holds a `/`"));
        assert!(wrong("a.*.b").contains("`*` may only stand alone"));
        assert!(wrong("docs.rs:http").contains("its port is no number"));
        assert!(wrong("*.127.0.0.1").contains("an address has nothing below it"));
        assert!(wrong("").contains("write a name"));
    }
}
