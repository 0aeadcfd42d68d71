//! Which addresses are anybody's, and which belong to this machine, its network, a cloud's insides, or nobody.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

type Block4 = ([u8; 4], u32, &'static str);
type Block6 = ([u16; 8], u32, &'static str);

/// Not public: the special-purpose registry of IPv4, and one address that a cloud serves its machines' secrets at.
const BLOCKS_4: [Block4; 18] = [
    ([0, 0, 0, 0], 8, "an address of this network"),
    ([10, 0, 0, 0], 8, "a private address"),
    ([100, 64, 0, 0], 10, "a carrier's private address"),
    ([127, 0, 0, 0], 8, "a loopback address"),
    ([169, 254, 0, 0], 16, "a link-local address, where clouds serve their machines' secrets"),
    ([172, 16, 0, 0], 12, "a private address"),
    ([192, 0, 0, 0], 24, "an address for protocols"),
    ([192, 0, 2, 0], 24, "an address for documentation"),
    ([192, 31, 196, 0], 24, "an address for protocols"),
    ([192, 52, 193, 0], 24, "an address for protocols"),
    ([192, 88, 99, 0], 24, "a 6to4 relay's address"),
    ([192, 168, 0, 0], 16, "a private address"),
    ([192, 175, 48, 0], 24, "an address for protocols"),
    ([198, 18, 0, 0], 15, "an address for benchmarks"),
    ([198, 51, 100, 0], 24, "an address for documentation"),
    ([203, 0, 113, 0], 24, "an address for documentation"),
    ([168, 63, 129, 16], 32, "a cloud's inner address"),
    // Multicast, reserved and broadcast together.
    ([224, 0, 0, 0], 3, "a multicast or reserved address"),
];

/// Not public, though within the one block that is given out, 2000::/3.
const BLOCKS_6: [Block6; 4] = [
    ([0x2001, 0, 0, 0, 0, 0, 0, 0], 23, "an address for protocols, such as Teredo's"),
    ([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32, "an address for documentation"),
    ([0x2002, 0, 0, 0, 0, 0, 0, 0], 16, "a 6to4 address, which holds another within"),
    ([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20, "an address for documentation"),
];

/// NAT64: the IPv4 address at its end is the one that is reached.
const NAT64: [u16; 6] = [0x64, 0xff9b, 0, 0, 0, 0];

/// The address that is really meant: an IPv4 address mapped into IPv6 is that IPv4 address.
pub fn canonical(address: IpAddr) -> IpAddr {
    address.to_canonical()
}

/// What is special about an address that is not public, with its article; none: anybody may reach it.
pub fn not_public(address: IpAddr) -> Option<&'static str> {
    match canonical(address) {
        IpAddr::V4(address) => not_public_4(address),
        IpAddr::V6(address) => not_public_6(address),
    }
}

fn not_public_4(address: Ipv4Addr) -> Option<&'static str> {
    let within = |block: &&Block4| {
        let (start, bits, _) = block;
        (u32::from(address) ^ u32::from(Ipv4Addr::from(*start))) >> (32 - bits) == 0
    };
    BLOCKS_4.iter().find(within).map(|(_, _, what)| *what)
}

fn not_public_6(address: Ipv6Addr) -> Option<&'static str> {
    let segments = address.segments();
    if segments[..6] == NAT64 {
        let [high, low] = [segments[6].to_be_bytes(), segments[7].to_be_bytes()];
        return not_public_4(Ipv4Addr::new(high[0], high[1], low[0], low[1]));
    }
    if address.is_loopback() {
        return Some("a loopback address");
    }
    if address.is_unspecified() {
        return Some("an address of this network");
    }
    match segments[0] {
        0xfe80..=0xfebf => return Some("a link-local address"),
        0xfec0..=0xfeff => return Some("a site-local address"),
        0xfc00..=0xfdff => return Some("a private address"),
        0xff00..=0xffff => return Some("a multicast address"),
        0x2000..=0x3fff => {}
        _ => return Some("a reserved address"),
    }
    let within = |block: &&Block6| {
        let (start, bits, _) = block;
        (u128::from(address) ^ u128::from(Ipv6Addr::from(*start))) >> (128 - bits) == 0
    };
    BLOCKS_6.iter().find(within).map(|(_, _, what)| *what)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(addresses: &[&str]) -> Vec<bool> {
        addresses.iter().map(|text| not_public(text.parse().expect(text)).is_none()).collect()
    }

    #[test]
    fn public_addresses_are_public() {
        let public = [
            "1.1.1.1",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "169.253.255.255",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.0",
            "192.167.0.1",
            "192.169.0.1",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "2606:4700::1111",
            "2001:4860:4860::8888",
            "2a00::1",
            "::ffff:1.1.1.1",
            "64:ff9b::1.1.1.1",
        ];
        assert_eq!(judged(&public), [true; 21]);
    }

    #[test]
    fn special_addresses_are_not() {
        let special = [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.255.255",
            "168.63.129.16",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.192",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.7",
            "203.0.113.7",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "::127.0.0.1",
            "::ffff:0:127.0.0.1",
            "64:ff9b::127.0.0.1",
            "64:ff9b::10.0.0.1",
            "64:ff9b:1::1.1.1.1",
            "100::1",
            "2001::1",
            "2001:0:4136:e378:8000:63bf:3fff:fdd2",
            "2001:db8::1",
            "2002:7f00:1::",
            "2002:101:101::1",
            "3fff::1",
            "5f00::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ];
        assert_eq!(judged(&special), [false; 45]);
        assert_eq!(
            not_public("169.254.169.254".parse().unwrap()).unwrap().split(',').next(),
            Some("a link-local address")
        );
    }
}
