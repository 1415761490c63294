//! Which partitions failed a moment ago, and at which node: there they are left alone for a while.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::fetcher::Want;

/// What a partition has to wait for at one node.
#[derive(Debug)]
struct Penalty {
    leader_epoch: i32,
    failures: u32,
    until: Instant,
}

/// See the file's head. At most one for each slot and node that was fetched from.
#[derive(Debug, Default)]
pub(crate) struct Penalties(BTreeMap<(usize, i32), Penalty>);

impl Penalties {
    /// Until when a partition is left alone at a node; it is not if it has another leader since.
    pub(crate) fn until(&self, node: i32, want: &Want) -> Option<Instant> {
        self.of(node, want).map(|penalty| penalty.until)
    }

    /// Whether another replica of the partition failed, and is still left alone.
    pub(crate) fn is_another_shunned(&self, node: i32, want: &Want, now: Instant) -> bool {
        let slot = want.claim.slot;
        let mut all = self.0.range((slot, i32::MIN)..=(slot, i32::MAX));
        all.any(|(&(_, other), penalty)| {
            other != node && penalty.leader_epoch == want.leader_epoch && penalty.until > now
        })
    }

    /// The partition failed at a node once more; `delay` says for how long it is left alone after so many failures.
    pub(crate) fn failed(&mut self, node: i32, want: &Want, delay: impl FnOnce(u32) -> Duration, now: Instant) {
        let failures = self.of(node, want).map_or(0, |penalty| penalty.failures.saturating_add(1));
        let penalty = Penalty { leader_epoch: want.leader_epoch, failures, until: now + delay(failures) };
        self.0.insert((want.claim.slot, node), penalty);
    }

    /// The partition was fetched well from a node.
    pub(crate) fn succeeded(&mut self, node: i32, want: &Want) {
        self.0.remove(&(want.claim.slot, node));
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    fn of(&self, node: i32, want: &Want) -> Option<&Penalty> {
        self.0.get(&(want.claim.slot, node)).filter(|penalty| penalty.leader_epoch == want.leader_epoch)
    }
}
