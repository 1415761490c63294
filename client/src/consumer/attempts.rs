//! [`Attempts`]: which partitions are being asked about, and when the ones that failed are asked about again.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use super::subscription::Claim;
use crate::backoff::Backoff;
use crate::rng::Rng;

/// See the file's head. Entries live as long as their partition is wanted or in flight.
#[derive(Debug)]
pub(crate) struct Attempts {
    backoff: Backoff,
    rng: Rng,
    in_flight: BTreeSet<Claim>,
    failed: BTreeMap<Claim, (u32, Instant)>,
}

impl Attempts {
    pub(crate) fn new(backoff: Backoff, rng: Rng) -> Self {
        Self { backoff, rng, in_flight: BTreeSet::new(), failed: BTreeMap::new() }
    }

    /// Forgets the failures of partitions that are no longer wanted.
    pub(crate) fn keep(&mut self, wanted: &BTreeSet<Claim>) {
        self.failed.retain(|claim, _| wanted.contains(claim));
    }

    /// Whether to ask about it now.
    pub(crate) fn is_due(&self, claim: Claim, now: Instant) -> bool {
        !self.in_flight.contains(&claim) && self.failed.get(&claim).is_none_or(|(_, until)| *until <= now)
    }

    pub(crate) fn started(&mut self, claim: Claim) {
        self.in_flight.insert(claim);
    }

    pub(crate) fn succeeded(&mut self, claim: Claim) {
        self.in_flight.remove(&claim);
        self.failed.remove(&claim);
    }

    /// It is asked about again after a delay that grows with each failure in a row.
    pub(crate) fn failed(&mut self, claim: Claim, now: Instant) {
        self.in_flight.remove(&claim);
        let failures = self.failed.get(&claim).map_or(0, |(failures, _)| failures.saturating_add(1));
        self.failed.insert(claim, (failures, now + self.backoff.delay(failures, &mut self.rng)));
    }

    /// When the next of them is due.
    pub(crate) fn deadline(&self, now: Option<Instant>) -> Option<Instant> {
        let waiting = self.failed.iter().filter(|(claim, _)| !self.in_flight.contains(claim));
        waiting.map(|(_, (_, until))| *until).filter(|&until| now.is_none_or(|now| until > now)).min()
    }
}
