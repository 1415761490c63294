//! Which partitions failed a moment ago, and at which node: there they are left alone for a while.
//!
//! One whose leader moves again and again is left alone everywhere: a broker that names another leader in each answer
//! (KIP-951) would be followed without end.
//!
//! A partition is known by its name and its topic's id, not by its slot, which is another's when it is given up. What
//! it has to wait for is forgotten some time later, be it read by then or not.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::fetcher::Want;
use super::session::SessionKey;

/// A failure whose pause ended so long ago is forgotten.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(60);

/// How many new leaders in a row are asked at once, though each before has failed: elections may come fast.
pub(crate) const HASTY_MOVES: u32 = 5;

/// Stands for all nodes.
const ANYWHERE: i32 = i32::MIN;

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
    /// Until when a partition is left alone at a node; it is not if it has another leader since, unless it moves all
    /// the time.
    pub(crate) fn until(&self, node: i32, want: &Want) -> Option<Instant> {
        // Hardly ever is there any, and all that is wanted is asked about.
        if self.all.is_empty() {
            return None;
        }
        let moves = self.all.get(&(want.key(), ANYWHERE)).filter(|moves| moves.failures >= HASTY_MOVES);
        self.of(node, want).into_iter().chain(moves).map(|penalty| penalty.until).max()
    }

    /// Whether another replica of the partition failed, and is still left alone.
    pub(crate) fn is_another_shunned(&self, node: i32, want: &Want, now: Instant) -> bool {
        if self.all.is_empty() {
            return false;
        }
        let mut all = self.all.range((want.key(), ANYWHERE + 1)..=(want.key(), i32::MAX));
        all.any(|((_, other), penalty)| {
            *other != node && penalty.leader_epoch == want.leader_epoch && penalty.until > now
        })
    }

    /// The partition failed at a node once more; `delay` says for how long it is left alone after so many failures.
    pub(crate) fn failed(&mut self, node: i32, want: &Want, mut delay: impl FnMut(u32) -> Duration, now: Instant) {
        if self.all.len() >= self.sweep_at.max(FEW) {
            self.all.retain(|_, penalty| now < penalty.until + FORGOTTEN_AFTER);
            self.sweep_at = 2 * self.all.len();
        }
        let failures = self.of(node, want).map_or(0, |penalty| penalty.failures.saturating_add(1));
        let penalty = Penalty { leader_epoch: want.leader_epoch, failures, until: now + delay(failures) };
        self.all.insert((want.key(), node), penalty);
        if node == want.leader {
            self.leader_failed(want, delay, now);
        }
    }

    /// Counts the leaders in a row that failed.
    fn leader_failed(&mut self, want: &Want, mut delay: impl FnMut(u32) -> Duration, now: Instant) {
        let moves = self.all.entry((want.key(), ANYWHERE)).or_insert(Penalty {
            leader_epoch: want.leader_epoch,
            failures: 0,
            until: now,
        });
        if moves.leader_epoch != want.leader_epoch {
            (moves.leader_epoch, moves.failures) = (want.leader_epoch, moves.failures.saturating_add(1));
        }
        let too_many = moves.failures.checked_sub(HASTY_MOVES);
        moves.until = too_many.map_or(now, |too_many| now + delay(too_many));
    }

    /// The partition was fetched well from a node.
    pub(crate) fn succeeded(&mut self, node: i32, want: &Want) {
        if !self.all.is_empty() {
            self.all.remove(&(want.key(), node));
            if node == want.leader {
                self.all.remove(&(want.key(), ANYWHERE));
            }
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
        self.all.get(&(want.key(), node)).filter(|penalty| penalty.leader_epoch == want.leader_epoch)
    }
}
