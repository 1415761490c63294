//! The host of an access rule: every one, one address, or a range of them (KIP-1276, from Kafka 4.4 on).
//!
//! An address is compared as it is written, so that two ways to write an IPv6 address are two addresses, as in Kafka.

use std::net::IpAddr;

use super::acls::WILDCARD;

/// Whether somebody who asks from `address` is meant by a rule for `host`.
pub(crate) fn is_meant_by(address: &str, host: &str) -> bool {
    host == WILDCARD || host == address || Range::parse(host).is_some_and(|range| range.contains(address))
}

/// Whether a host that has the form of a range is one.
pub(crate) fn is_range(host: &str) -> bool {
    Range::parse(host).is_some()
}

/// All addresses that begin with the same bits.
struct Range {
    network: IpAddr,
    bits: u32,
}

impl Range {
    /// Reads `address/bits`.
    fn parse(text: &str) -> Option<Self> {
        let (address, bits) = text.split_once('/')?;
        let network: IpAddr = address.parse().ok()?;
        let most = if network.is_ipv4() { 32 } else { 128 };
        let is_number = !bits.is_empty() && bits.bytes().all(|digit| digit.is_ascii_digit());
        let bits = bits.parse().ok().filter(|bits| is_number && *bits <= most)?;
        Some(Self { network, bits })
    }

    fn contains(&self, address: &str) -> bool {
        match (self.network, address.parse()) {
            (IpAddr::V4(network), Ok(IpAddr::V4(address))) => {
                let differing = u32::from(network) ^ u32::from(address);
                differing.leading_zeros() >= self.bits
            }
            (IpAddr::V6(network), Ok(IpAddr::V6(address))) => {
                let differing = u128::from(network) ^ u128::from(address);
                differing.leading_zeros() >= self.bits
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_contain_what_begins_alike() {
        assert!(is_meant_by("127.0.0.1", "127.0.0.0/8") && is_meant_by("127.0.0.1", "0.0.0.0/0"));
        assert!(is_meant_by("127.0.0.1", "127.0.0.1/32") && !is_meant_by("127.0.0.2", "127.0.0.1/32"));
        assert!(!is_meant_by("128.0.0.1", "127.0.0.0/8") && !is_meant_by("127.0.0.1", "::/0"));
        assert!(is_meant_by("fe80::1", "fe80::/10") && !is_meant_by("::1", "fe80::/10"));
    }

    #[test]
    fn addresses_are_compared_as_they_are_written() {
        assert!(is_meant_by("127.0.0.1", "127.0.0.1") && is_meant_by("127.0.0.1", "*"));
        assert!(!is_meant_by("127.0.0.1", "127.0.0.01") && !is_meant_by("127.0.0.1", "localhost"));
    }

    #[test]
    fn ranges_need_an_address_and_so_many_bits() {
        for text in ["127.0.0.0/33", "127.0.0.0/", "127.0.0/8", "a/8", "*/8", "::/129", "127.0.0.0/+8", "1.2.3.4"] {
            assert!(!is_range(text), "{text}");
        }
    }
}
