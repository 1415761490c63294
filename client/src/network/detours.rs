//! [`Detours`]: how often a connection to an address was made and came to nothing.
//!
//! A name may have several addresses, and the first of them may be a load balancer with no broker behind it: TCP sees
//! nothing wrong with it, and the resolver names it first each time. So it is counted what fails behind TCP, and the
//! next attempt begins that much further on (Java: `client.dns.lookup=use_all_dns_ips`). What has worked is begun with
//! again.

use std::collections::BTreeMap;

use krafka_protocol::Str;

/// Addresses that are remembered. A name that is asked for among ever new ones is not worth more.
const MAX_ADDRESSES: usize = 1_000;

/// The addresses, as the user or the cluster gave them, at which connections failed.
#[derive(Debug, Default)]
pub(super) struct Detours {
    dead: BTreeMap<(Str, u16), usize>,
}

impl Detours {
    /// How many connections to the address came to nothing.
    pub(super) fn dead(&self, host: &Str, port: u16) -> usize {
        self.dead.get(&(host.clone(), port)).copied().unwrap_or(0)
    }

    /// One more did.
    pub(super) fn failed(&mut self, host: &Str, port: u16) {
        let address = (host.clone(), port);
        if self.dead.len() >= MAX_ADDRESSES && !self.dead.contains_key(&address) {
            self.dead.clear();
        }
        let dead = self.dead.entry(address).or_default();
        *dead = dead.wrapping_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_an_address_s_own_and_bounded() {
        let mut detours = Detours::default();
        let host = Str::from_static("kafka");

        detours.failed(&host, 9092);
        detours.failed(&host, 9092);

        assert_eq!((detours.dead(&host, 9092), detours.dead(&host, 9093)), (2, 0));
        for number in 0..2 * MAX_ADDRESSES {
            detours.failed(&Str::from(format!("host-{number}")), 9092);
        }
        assert!(detours.dead.len() <= MAX_ADDRESSES);
    }
}
