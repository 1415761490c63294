//! [`Ladder`]: how to begin with an address that does not take our version of the question for its versions.
//!
//! A broker that does not know our version of ApiVersions says so, and names its own, which costs one more question
//! (KIP-511). So what it took is remembered, and the next connection begins with that, until the answer shows that the
//! broker knows more by now, or no such answer comes. Some peers that speak Kafka's protocol without being Kafka, and
//! proxies before brokers, close the connection instead. Then the next attempt begins with version 0, which all know,
//! and goes on with what that offers, because version 0 tells no features, and does not tell the broker who we are.
//!
//! ```text
//!   Highest ──closed──▶ Lowest ──closed, at what it offered──▶ LowestAlone
//!    ▲ ▲ │                │ │ closed at version 0                  │ closed
//!    │ └─│────────────────│─┴──────────────────────────────────────┘
//!    │   └──took a lower──┴──▶ Known
//!    └── took ours · closed · refused ─┘
//! ```
//!
//! A broker that closes connections because it is restarting is so never spoken to like an old one.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use krafka_protocol::Str;
use krafka_protocol::versions::API_VERSIONS_MAX;

/// How to ask for versions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Opening {
    /// At our highest version.
    #[default]
    Highest,
    /// At version 0, and then at the highest that the answer offers.
    Lowest,
    /// At version 0 and no other.
    LowestAlone,
    /// At the version that it took last, and then at a higher one, if the answer offers that by now.
    Known(i16),
}

/// After this time an address is begun with anew: there may be another broker by now.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(10 * 60);

/// Addresses that are remembered.
const MAX_ADDRESSES: usize = 1_000;

/// The addresses that do not take the highest version.
#[derive(Debug, Default)]
pub(crate) struct Ladder {
    /// How to begin, and since when that is known.
    openings: BTreeMap<(Str, u16), (Opening, Instant)>,
}

impl Ladder {
    /// How to begin.
    pub(crate) fn opening(&self, host: &Str, port: u16, now: Instant) -> Opening {
        match self.openings.get(&(host.clone(), port)) {
            Some((opening, since)) if now < *since + FORGOTTEN_AFTER => *opening,
            _ => Opening::Highest,
        }
    }

    /// Notes that the address closed the connection instead of answering at `version`, after it was begun with like
    /// this.
    pub(crate) fn closed(&mut self, host: &Str, port: u16, opening: Opening, version: i16, now: Instant) {
        let next = match opening {
            Opening::Highest => Opening::Lowest,
            Opening::Lowest if version > 0 => Opening::LowestAlone,
            Opening::Lowest | Opening::LowestAlone | Opening::Known(_) => Opening::Highest,
        };
        self.note(host, port, next, now);
    }

    /// Notes the version at which the address answered, after it was begun with like this.
    pub(crate) fn took(&mut self, host: &Str, port: u16, opening: Opening, version: i16, now: Instant) {
        let next = match opening {
            // It closes at what it offers: to know the version would not help.
            Opening::LowestAlone => return,
            _ if version >= API_VERSIONS_MAX => Opening::Highest,
            _ => Opening::Known(version),
        };
        self.note(host, port, next, now);
    }

    /// Notes that the address refused to answer at the version that it took before.
    pub(crate) fn forget(&mut self, host: &Str, port: u16) {
        self.openings.remove(&(host.clone(), port));
    }

    fn note(&mut self, host: &Str, port: u16, next: Opening, now: Instant) {
        self.openings.retain(|_, (_, since)| now < *since + FORGOTTEN_AFTER);
        let address = (host.clone(), port);
        self.openings.remove(&address);
        if next != Opening::Highest && self.openings.len() < MAX_ADDRESSES {
            self.openings.insert(address, (next, now));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: Str = Str::from_static("kafka");

    /// What is begun with next, after the address closed at these versions.
    fn after(closed: &[i16]) -> Opening {
        let (mut ladder, now) = (Ladder::default(), crate::drive::now());
        for version in closed {
            let opening = ladder.opening(&HOST, 9092, now);
            ladder.closed(&HOST, 9092, opening, *version, now);
        }
        ladder.opening(&HOST, 9092, now)
    }

    #[test]
    fn an_address_that_closes_at_a_version_is_asked_at_a_lower_one() {
        assert_eq!(after(&[]), Opening::Highest);
        assert_eq!(after(&[5]), Opening::Lowest);
        assert_eq!(after(&[5, 3]), Opening::LowestAlone);
    }

    /// It does not mind the version.
    #[test]
    fn an_address_that_always_closes_is_asked_like_any_other() {
        assert_eq!(after(&[5, 0]), Opening::Highest);
        assert_eq!(after(&[5, 0, 5]), Opening::Lowest);
        assert_eq!(after(&[5, 3, 0]), Opening::Highest);
    }

    #[test]
    fn what_an_address_took_is_begun_with_until_it_does_not() {
        let (mut ladder, now) = (Ladder::default(), crate::drive::now());
        let mut took = |opening, version| {
            ladder.took(&HOST, 9092, opening, version, now);
            ladder.opening(&HOST, 9092, now)
        };

        assert_eq!(took(Opening::Highest, 4), Opening::Known(4));
        assert_eq!(took(Opening::Known(4), 3), Opening::Known(3), "it was replaced by an older one");
        assert_eq!(took(Opening::Known(3), API_VERSIONS_MAX), Opening::Highest, "it was upgraded");
        assert_eq!(took(Opening::Lowest, 3), Opening::Known(3));
        assert_eq!(took(Opening::LowestAlone, 0), Opening::Known(3), "which says nothing of others");

        ladder.closed(&HOST, 9092, Opening::Known(3), 3, now);
        assert_eq!(ladder.opening(&HOST, 9092, now), Opening::Highest);
        ladder.took(&HOST, 9092, Opening::Highest, 4, now);
        ladder.forget(&HOST, 9092);
        assert_eq!(ladder.opening(&HOST, 9092, now), Opening::Highest);
    }

    #[test]
    fn an_opening_is_an_address_s_own_and_not_for_ever() {
        let (mut ladder, now) = (Ladder::default(), crate::drive::now());

        ladder.closed(&HOST, 9092, Opening::Highest, 5, now);

        let soon = now + FORGOTTEN_AFTER - Duration::from_millis(1);
        assert_eq!(ladder.opening(&HOST, 9092, soon), Opening::Lowest);
        assert_eq!(ladder.opening(&HOST, 9093, soon), Opening::Highest);
        assert_eq!(ladder.opening(&HOST, 9092, now + FORGOTTEN_AFTER), Opening::Highest);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let (mut ladder, now) = (Ladder::default(), crate::drive::now());

        for number in 0..MAX_ADDRESSES + 10 {
            ladder.closed(&Str::from(format!("host-{number}")), 9092, Opening::Highest, 5, now);
        }
        assert_eq!(ladder.openings.len(), MAX_ADDRESSES);
        ladder.closed(&HOST, 9092, Opening::Highest, 5, now + FORGOTTEN_AFTER);

        assert_eq!(ladder.openings.len(), 1, "what is over makes room");
    }
}
