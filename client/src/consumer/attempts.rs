//! [`Attempts`]: which partitions are to be asked about, and when the ones that failed are asked about again.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use krafka_protocol::Str;

use super::subscription::Claim;
use crate::backoff::Backoff;
use crate::rng::Rng;

/// A partition to ask about.
pub(crate) trait Want: Clone {
    fn claim(&self) -> Claim;
}

/// A partition to ask its leader about.
pub(crate) trait WantOfLeader: Want {
    fn topic(&self) -> &Str;
    /// The leader's node, if there is one.
    fn leader(&self) -> Option<i32>;
}

/// See the file's head. Entries live as long as their partition is wanted or in flight.
#[derive(Debug)]
pub(crate) struct Attempts<W> {
    backoff: Backoff,
    rng: Rng,
    pub(super) wanted: Vec<W>,
    in_flight: BTreeSet<Claim>,
    failed: BTreeMap<Claim, (u32, Instant)>,
}

impl<W: Want> Attempts<W> {
    pub(crate) fn new(backoff: Backoff, rng: Rng) -> Self {
        Self { backoff, rng, wanted: Vec::new(), in_flight: BTreeSet::new(), failed: BTreeMap::new() }
    }

    /// Replaces what is wanted. The failures of partitions that are wanted no longer are forgotten.
    pub(crate) fn want(&mut self, wanted: Vec<W>) {
        let claims: BTreeSet<Claim> = wanted.iter().map(W::claim).collect();
        self.failed.retain(|claim, _| claims.contains(claim));
        self.wanted = wanted;
    }

    /// Takes what was answered off the list: who still wants it says so anew.
    pub(crate) fn answered(&mut self, asked: &[W]) {
        self.wanted.retain(|want| !asked.iter().any(|asked| asked.claim() == want.claim()));
    }

    /// What to ask about now; it counts as being asked from here on.
    pub(crate) fn take_due(&mut self, now: Instant) -> Vec<W> {
        let due: Vec<W> = self.wanted.iter().filter(|want| self.is_due(want.claim(), now)).cloned().collect();
        self.in_flight.extend(due.iter().map(W::claim));
        due
    }

    fn is_due(&self, claim: Claim, now: Instant) -> bool {
        !self.in_flight.contains(&claim) && self.failed.get(&claim).is_none_or(|(_, until)| *until <= now)
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

impl<W: WantOfLeader> Attempts<W> {
    /// What to ask about now, by the node to ask; and the topics of partitions without a leader, which count as failed.
    pub(crate) fn take_due_by_leader(&mut self, now: Instant) -> (BTreeMap<i32, Vec<W>>, BTreeSet<Str>) {
        let mut by_node: BTreeMap<i32, Vec<W>> = BTreeMap::new();
        let mut leaderless = BTreeSet::new();
        for want in self.take_due(now) {
            match want.leader() {
                Some(node) => by_node.entry(node).or_default().push(want),
                None => {
                    self.failed(want.claim(), now);
                    leaderless.insert(want.topic().clone());
                }
            }
        }
        (by_node, leaderless)
    }
}
