//! The host of an access rule where it is a range of addresses (KIP-1276, from Kafka 4.4 on).

use std::net::IpAddr;

/// Whether an address is in the range that `host` is.
pub(crate) fn is_within(address: &str, host: &str) -> bool {
    Range::parse(host).is_some_and(|range| range.contains(address))
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
        assert!(is_within("127.0.0.1", "127.0.0.0/8") && is_within("127.0.0.1", "0.0.0.0/0"));
        assert!(is_within("127.0.0.1", "127.0.0.1/32") && !is_within("127.0.0.2", "127.0.0.1/32"));
        assert!(!is_within("128.0.0.1", "127.0.0.0/8") && !is_within("127.0.0.1", "::/0"));
        assert!(is_within("fe80::1", "fe80::/10") && !is_within("::1", "fe80::/10"));
    }

    #[test]
    fn ranges_need_an_address_and_so_many_bits() {
        for text in ["127.0.0.0/33", "127.0.0.0/", "127.0.0/8", "a/8", "*/8", "::/129", "127.0.0.0/+8", "1.2.3.4"] {
            assert!(!is_range(text), "{text}");
        }
    }
}
