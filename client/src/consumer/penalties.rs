//! Which partitions failed a moment ago, and at which node: there they are left alone for a while.
//!
//! A partition is known by its name and its topic's id, not by its slot, which is another's when it is given up. What
//! it has to wait for is forgotten some time later, be it read by then or not.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::fetcher::Want;
use super::session::SessionKey;

/// A failure whose pause ended so long ago is forgotten.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(60);

/// So many are not worth looking for those that are to be forgotten.
const FEW: usize = 64;

/// What a partition has to wait for at one node.
#[derive(Debug)]
struct Penalty {
    leader_epoch: i32,
    failures: u32,
    until: Instant,
}

/// See the file's head.
#[derive(Debug, Default)]
pub(crate) struct Penalties {
    all: BTreeMap<(SessionKey, i32), Penalty>,
    /// With so many of them, the old ones are looked for.
    sweep_at: usize,
}

impl Penalties {
    /// Until when a partition is left alone at a node; it is not if it has another leader since.
    pub(crate) fn until(&self, node: i32, want: &Want) -> Option<Instant> {
        self.of(node, want).map(|penalty| penalty.until)
    }

    /// Whether another replica of the partition failed, and is still left alone.
    pub(crate) fn is_another_shunned(&self, node: i32, want: &Want, now: Instant) -> bool {
        if self.all.is_empty() {
            return false;
        }
        let mut all = self.all.range((want.key(), i32::MIN)..=(want.key(), i32::MAX));
        all.any(|((_, other), penalty)| {
            *other != node && penalty.leader_epoch == want.leader_epoch && penalty.until > now
        })
    }

    /// The partition failed at a node once more; `delay` says for how long it is left alone after so many failures.
    pub(crate) fn failed(&mut self, node: i32, want: &Want, delay: impl FnOnce(u32) -> Duration, now: Instant) {
        let failures = self.of(node, want).map_or(0, |penalty| penalty.failures.saturating_add(1));
        let penalty = Penalty { leader_epoch: want.leader_epoch, failures, until: now + delay(failures) };
        if self.all.len() >= self.sweep_at.max(FEW) {
            self.all.retain(|_, penalty| now < penalty.until + FORGOTTEN_AFTER);
            self.sweep_at = 2 * self.all.len();
        }
        self.all.insert((want.key(), node), penalty);
    }

    /// The partition was fetched well from a node.
    pub(crate) fn succeeded(&mut self, node: i32, want: &Want) {
        if !self.all.is_empty() {
            self.all.remove(&(want.key(), node));
        }
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn clear(&mut self) {
        self.all.clear();
    }

    fn of(&self, node: i32, want: &Want) -> Option<&Penalty> {
        // Hardly ever is there any, and all that is wanted is asked about.
        if self.all.is_empty() {
            return None;
        }
        self.all.get(&(want.key(), node)).filter(|penalty| penalty.leader_epoch == want.leader_epoch)
    }
}
