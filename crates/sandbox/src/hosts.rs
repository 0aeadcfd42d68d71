//! The hosts that may be reached, and the addresses that count as private.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// Ports of a host that is listed without one.
const USUAL_PORTS: [u16; 2] = [80, 443];

/// A line of the list: `docs.rs`, `*.docs.rs`, `docs.rs:8443`, `10.1.2.3`, `10.0.0.0/8`, `localhost:3000`, `[::1]:80`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPattern {
    whom: Whom,
    /// None: the usual ports.
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Whom {
    Name(String),
    /// Every name below this one, not itself.
    Below(String),
    /// Addresses whose first bits are those of this one.
    Net(IpAddr, u8),
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no host: write a name (docs.rs), names below one (*.docs.rs), an address or a net (10.0.0.0/8), each with :PORT or for ports 80 and 443"
)]
pub struct BadHost(String);

impl FromStr for HostPattern {
    type Err = BadHost;

    fn from_str(text: &str) -> Result<HostPattern, BadHost> {
        let bad = || BadHost(text.to_owned());
        let (host, port) = split(text).ok_or_else(bad)?;
        let whom = match host.split_once('/') {
            Some((address, bits)) => {
                let address: IpAddr = address.parse().map_err(|_| bad())?;
                let bits: u8 = bits.parse().map_err(|_| bad())?;
                let most = if address.is_ipv4() { 32 } else { 128 };
                if bits > most {
                    return Err(bad());
                }
                Whom::Net(address, bits)
            }
            None => match host.parse::<IpAddr>() {
                Ok(address) => Whom::Net(address, if address.is_ipv4() { 32 } else { 128 }),
                Err(_) => match host.strip_prefix("*.") {
                    Some(rest) => Whom::Below(name(rest).ok_or_else(bad)?),
                    None => Whom::Name(name(host).ok_or_else(bad)?),
                },
            },
        };
        Ok(HostPattern { whom, port })
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.whom {
            Whom::Name(name) => f.write_str(name)?,
            Whom::Below(name) => write!(f, "*.{name}")?,
            Whom::Net(address, bits) => write!(f, "{address}/{bits}")?,
        }
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

/// Host and port of `host`, `host:port`, `[v6]`, `[v6]:port` or a bare v6 address.
pub(crate) fn split(text: &str) -> Option<(&str, Option<u16>)> {
    if let Some(rest) = text.strip_prefix('[') {
        let (host, port) = rest.split_once(']')?;
        return match port.strip_prefix(':') {
            Some(port) => Some((host, Some(port.parse().ok()?))),
            None if port.is_empty() => Some((host, None)),
            None => None,
        };
    }
    match text.split_once(':') {
        Some((_, rest)) if rest.contains(':') => Some((text, None)),
        Some((host, port)) => Some((host, Some(port.parse().ok()?))),
        None => Some((text, None)),
    }
}

/// A host's name as it is compared: lower case, without the dot of the root.
fn name(text: &str) -> Option<String> {
    let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
    let label = |label: &str| {
        let inner = label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
        !label.is_empty() && label.len() <= 63 && inner
    };
    (name.len() <= 253 && name.split('.').all(label)).then_some(name)
}

impl HostPattern {
    /// Whether `host`, as a client wrote it, is meant, at whichever port.
    pub(crate) fn means(&self, host: &str) -> bool {
        let address = host.parse::<IpAddr>().ok();
        let Some(name) = address.map_or_else(|| name(host), |address| Some(address.to_string())) else { return false };
        match (&self.whom, address) {
            (Whom::Net(net, bits), Some(address)) => within(address, *net, *bits),
            (Whom::Name(known), None) => *known == name,
            (Whom::Below(known), None) => {
                name.strip_suffix(known.as_str()).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
            }
            _ => false,
        }
    }
}

/// The list, as the proxy asks it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hosts(pub Vec<HostPattern>);

impl Hosts {
    /// Whether `host`, as a client wrote it, may be asked for at all.
    pub fn names(&self, host: &str, port: u16) -> bool {
        self.0.iter().any(|pattern| pattern.means(host) && reaches(pattern.port, port))
    }

    /// Whether a name that was listed may lead to `address`: any public one, a private one only if it is listed itself.
    pub fn leads_to(&self, host: &str, address: IpAddr, port: u16) -> bool {
        let address = address.to_canonical();
        let home = host.eq_ignore_ascii_case("localhost") && address.is_loopback();
        let listed = |pattern: &HostPattern| match pattern.whom {
            Whom::Net(net, bits) => within(address, net, bits) && reaches(pattern.port, port),
            _ => false,
        };
        !is_private(address) || home || self.0.iter().any(listed)
    }
}

fn reaches(listed: Option<u16>, port: u16) -> bool {
    listed.map_or(USUAL_PORTS.contains(&port), |listed| listed == port)
}

fn within(address: IpAddr, net: IpAddr, bits: u8) -> bool {
    let bits = u32::from(bits);
    match (address.to_canonical(), net.to_canonical()) {
        (IpAddr::V4(a), IpAddr::V4(b)) => {
            let shift = 32 - bits.min(32);
            u64::from(a.to_bits()) >> shift == u64::from(b.to_bits()) >> shift
        }
        (IpAddr::V6(a), IpAddr::V6(b)) => bits == 0 || a.to_bits() >> (128 - bits) == b.to_bits() >> (128 - bits),
        _ => false,
    }
}

/// Whether an address is this machine's, a neighbour's or nobody's: everything that is no public host.
pub(crate) fn is_private(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(v4) => is_private_v4(v4),
        IpAddr::V6(v6) => is_private_v6(v6),
    }
}

fn is_private_v4(v4: Ipv4Addr) -> bool {
    let [a, b, c, _] = v4.octets();
    v4.is_private()
        || v4.is_loopback()
        || v4.is_link_local()
        || v4.is_multicast()
        || a == 0
        || a >= 240
        || (a == 100 && (64..128).contains(&b))
        || (a == 198 && (b == 18 || b == 19))
        || (a == 192 && b == 0 && (c == 0 || c == 2))
        || (a == 198 && b == 51 && c == 100)
        || (a == 203 && b == 0 && c == 113)
}

fn is_private_v6(v6: Ipv6Addr) -> bool {
    let [a, b, ..] = v6.segments();
    let embedded = match v6.segments() {
        // Addresses that are translated to v4: 64:ff9b::/96 and 2002::/16; and those that only look like v6.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] | [0, 0, 0, 0, 0, 0, high, low] => {
            is_private_v4(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)))
        }
        _ => false,
    };
    // Only 2000::/3 and translated addresses are public at all.
    let global = a & 0xe000 == 0x2000 || (a == 0x64 && b == 0xff9b);
    !global || embedded || (a == 0x2001 && (b == 0 || b == 0xdb8))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(list: &[&str]) -> Hosts {
        Hosts(list.iter().map(|line| line.parse().unwrap()).collect())
    }

    #[test]
    fn names_are_listed_alone_or_below_another_with_their_ports() {
        let hosts = hosts(&["docs.rs", "*.crates.io", "build.example:8443"]);
        for (host, port) in [("docs.rs", 443), ("DOCS.rs.", 80), ("static.crates.io", 443), ("build.example", 8443)] {
            assert!(hosts.names(host, port), "{host}:{port}");
        }
        let others = [("docs.rs", 22), ("crates.io", 443), ("evilcrates.io", 443), ("docs.rs.evil.example", 443)];
        for (host, port) in others.into_iter().chain([("build.example", 443), ("1.1.1.1", 443), ("docs.rs@evil", 443)])
        {
            assert!(!hosts.names(host, port), "{host}:{port}");
        }
    }

    #[test]
    fn a_listed_name_does_not_lead_to_private_addresses() {
        let named = hosts(&["docs.rs"]);
        assert!(named.leads_to("docs.rs", "93.184.216.34".parse().unwrap(), 443));
        let private = ["127.0.0.1", "10.1.2.3", "169.254.169.254", "100.64.0.1", "::1", "fe80::1", "fd00::1"];
        for address in private.into_iter().chain(["::ffff:10.0.0.1", "64:ff9b::a00:1", "2002:a00:1::", "0.0.0.0"]) {
            assert!(!named.leads_to("docs.rs", address.parse().unwrap(), 443), "{address}");
        }
        let listed = hosts(&["docs.rs", "10.0.0.0/8", "localhost:3000"]);
        assert!(listed.leads_to("docs.rs", "10.9.9.9".parse().unwrap(), 443));
        assert!(!listed.leads_to("docs.rs", "127.0.0.1".parse().unwrap(), 3000));
        assert!(listed.leads_to("localhost", "127.0.0.1".parse().unwrap(), 3000));
        assert!(listed.names("10.0.0.5", 80) && !listed.names("11.0.0.5", 80));
    }

    #[test]
    fn what_is_no_host_is_refused_with_the_way_out() {
        for bad in ["", "*", "http://docs.rs", "a b", "docs.rs:99999", "10.0.0.0/33", "*.*.rs"] {
            let error = bad.parse::<HostPattern>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("`{bad}` is no host: write a name")), "{error}");
        }
        for (written, shown) in
            [("10.0.0.1", "10.0.0.1/32"), ("*.Docs.rs:81", "*.docs.rs:81"), ("[::1]:80", "::1/128:80")]
        {
            assert_eq!(written.parse::<HostPattern>().unwrap().to_string(), shown);
        }
    }
}
