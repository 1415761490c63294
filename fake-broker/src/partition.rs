//! A partition: who holds it, who leads it, its log, and how far each replica has got.
//!
//! Leadership follows KRaft's rules: a leader that dies is replaced by the first live replica in sync, each change of
//! leader raises the leader epoch, and a partition whose last in-sync replica died has no leader until that replica is
//! back, or an unclean election takes another.
//!
//! ```text
//!   leader    ──────────────────────────▶ end_offset     a replica that is in step has what the leader has, at once
//!   in sync   ────────────────▶ held                     holds the high watermark back, until it is thrown out
//!   out       ────────▶                                  elected all the same, it makes everyone as short as itself
//! ```
//!
//! Other than in Kafka, eligible leader replicas (KIP-966) play no part in elections.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use krafka_protocol::records::Batch;

use crate::log::{Appended, Log};
use crate::topics::TopicSettings;

/// How long a replica may lag before it is out of sync: Kafka's default of `replica.lag.time.max.ms`.
pub(crate) const REPLICA_LAG_TIME_MAX: Duration = Duration::from_secs(30);

/// A partition: see the module's page.
#[derive(Clone, Debug)]
pub(crate) struct Partition {
    pub(crate) replicas: Vec<i32>,
    pub(crate) isr: Vec<i32>,
    pub(crate) leader: Option<i32>,
    pub(crate) leader_epoch: i32,
    pub(crate) log: Log,
    /// The topic's `min.insync.replicas`, as of the last append.
    min_insync_replicas: usize,
    /// When replicas that lag are looked at next.
    shrink_due: Option<Instant>,
    /// The replicas that are not in step: dead ones, and those that a test holds.
    behind: BTreeMap<i32, Replica>,
}

/// How far a replica had got when it stopped fetching.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Replica {
    pub(crate) start_offset: i64,
    pub(crate) end_offset: i64,
    pub(crate) high_watermark: i64,
    /// Whether it stays where it is although its node is up.
    held: bool,
    /// Since when the leader has more than it.
    behind_since: Option<Instant>,
}

impl Partition {
    /// A new partition on `replicas`, of which `live` are up; the first of those leads.
    pub(crate) fn new(replicas: Vec<i32>, live: &BTreeSet<i32>) -> Self {
        let isr: Vec<i32> = replicas.iter().copied().filter(|replica| live.contains(replica)).collect();
        let leader = isr.first().copied();
        let mut log = Log::default();
        log.begin_epoch(0);
        let isr = if isr.is_empty() { replicas.clone() } else { isr };
        let behind = BTreeMap::new();
        let mut partition =
            Self { isr, replicas, leader, leader_epoch: 0, log, min_insync_replicas: 1, shrink_due: None, behind };
        let dead: Vec<_> = partition.replicas.iter().copied().filter(|replica| !live.contains(replica)).collect();
        for node in dead {
            partition.leave_behind(node, false);
        }
        partition
    }

    /// Appends a batch that was found valid. It is committed when the high watermark has passed it.
    pub(crate) fn append(&mut self, batch: &Batch, settings: &TopicSettings, now_ms: i64, now: Instant) -> Appended {
        self.min_insync_replicas = settings.min_insync_replicas;
        let appended = self.log.append(batch, settings, now_ms);
        for replica in self.behind.values_mut() {
            replica.behind_since.get_or_insert(now);
        }
        self.commit();
        appended
    }

    /// Whether there are fewer replicas in sync than `min.insync.replicas`, of which no more count than there are.
    pub(crate) fn is_under_min_isr(&self, min_insync_replicas: usize) -> bool {
        self.isr.len() < min_insync_replicas.min(self.replicas.len())
    }

    /// What a node has of the partition, if it holds a replica.
    pub(crate) fn replica(&self, node: i32) -> Option<Replica> {
        let in_step = || Replica {
            start_offset: self.log.start_offset(),
            end_offset: self.log.end_offset(),
            high_watermark: self.log.high_watermark(),
            held: false,
            behind_since: None,
        };
        self.replicas.contains(&node).then(|| self.behind.get(&node).copied().unwrap_or_else(in_step))
    }

    /// The least first offset of the live replicas: no consumer is given anything below it.
    pub(crate) fn low_watermark(&self, is_up: impl Fn(i32) -> bool) -> i64 {
        let live = self.behind.iter().filter(|&(&node, _)| is_up(node));
        live.map(|(_, replica)| replica.start_offset).min().unwrap_or(i64::MAX).min(self.log.start_offset())
    }

    /// Whether a follower was made to stop.
    pub(crate) fn is_held(&self, node: i32) -> bool {
        self.behind.get(&node).is_some_and(|replica| replica.held)
    }

    /// Makes a follower stop fetching. It stays in sync until something is written and
    /// [`REPLICA_LAG_TIME_MAX`] has passed.
    pub(crate) fn hold(&mut self, node: i32) {
        self.leave_behind(node, true);
    }

    /// Lets a held follower, whose node `is_up` or not, catch up, and be in sync again.
    pub(crate) fn release(&mut self, node: i32, is_up: bool) {
        if let Some(replica) = self.behind.get_mut(&node) {
            replica.held = false;
            if is_up && self.leader.is_some() {
                self.catch_up(node);
            }
        }
    }

    /// Throws those out of the in-sync replicas that have lagged for too long. Says if there were any.
    pub(crate) fn shrink_isr(&mut self, now: Instant) -> bool {
        let is_late = |replica: &Replica| {
            replica.behind_since.is_some_and(|since| now.saturating_duration_since(since) >= REPLICA_LAG_TIME_MAX)
        };
        let late: Vec<_> = self.behind.iter().filter(|(_, replica)| is_late(replica)).map(|(&node, _)| node).collect();
        self.shrink_due = None;
        let before = self.isr.len();
        // Without a leader nobody is there to say who lags.
        let Some(leader) = self.leader else { return false };
        self.isr.retain(|node| *node == leader || !late.contains(node));
        self.commit();
        self.isr.len() < before
    }

    /// When the next replica may have to be thrown out of sync, if nobody asked for that moment yet.
    pub(crate) fn arm_shrink(&mut self) -> Option<Instant> {
        let lagging = self.behind.iter().filter(|(node, _)| self.isr.contains(node) && Some(**node) != self.leader);
        let due = lagging.filter_map(|(_, replica)| replica.behind_since).min().map(|it| it + REPLICA_LAG_TIME_MAX);
        let is_news = due != self.shrink_due;
        self.shrink_due = due;
        due.filter(|_| is_news)
    }

    /// Makes `node`, which is a live replica, the leader. Moving to the present leader changes nothing. One that is out
    /// of sync loses what it does not have for everybody: an unclean election.
    pub(crate) fn lead(&mut self, node: i32) -> bool {
        if self.leader == Some(node) {
            return false;
        }
        self.change_leader(Some(node));
        true
    }

    /// Forgets how far nodes are that are no replicas any more.
    pub(crate) fn forget_strangers(&mut self) {
        let replicas = &self.replicas;
        self.behind.retain(|node, _| replicas.contains(node));
    }

    /// Raises the leader epoch without a change of leader, as a controller does when it re-elects the same one.
    pub(crate) fn bump_epoch(&mut self) {
        self.change_leader(self.leader);
    }

    /// Has no leader, as if no replica in sync were up.
    pub(crate) fn lose_leader(&mut self) {
        if self.leader.is_some() {
            self.change_leader(None);
        }
    }

    /// Loses the records from `offset` on, as if no replica that is left had them.
    pub(crate) fn truncate(&mut self, offset: i64) {
        self.log.truncate(offset);
        self.cut_replicas();
        self.commit();
    }

    /// Takes a dead node out of the in-sync replicas and elects another leader if it led: from those in sync, or if
    /// `unclean` from `live` ones. Says if the leader changed.
    pub(crate) fn node_died(&mut self, node: i32, unclean: bool, live: &BTreeSet<i32>) -> bool {
        if !self.replicas.contains(&node) {
            return false;
        }
        self.leave_behind(node, self.behind.get(&node).is_some_and(|replica| replica.held));
        // The last in-sync replica stays in the set: only it has everything, so that only it may lead again.
        if self.isr.len() > 1 {
            self.isr.retain(|&replica| replica != node);
        }
        if self.leader != Some(node) {
            self.commit();
            return false;
        }
        let others = || self.replicas.iter().copied().filter(|replica| *replica != node);
        let in_sync = others().find(|replica| self.isr.contains(replica));
        let successor = in_sync.or_else(|| others().find(|replica| unclean && live.contains(replica)));
        self.change_leader(successor);
        true
    }

    /// Lets a node that is back catch up, and lead if nobody does. Says if the leader changed.
    pub(crate) fn node_returned(&mut self, node: i32, unclean: bool) -> bool {
        if !self.replicas.contains(&node) {
            return false;
        }
        if self.leader.is_none() {
            if !self.isr.contains(&node) && !unclean {
                return false;
            }
            self.change_leader(Some(node));
            return true;
        }
        if self.behind.get(&node).is_some_and(|replica| !replica.held) {
            self.catch_up(node);
        }
        false
    }

    /// Follows the leader up to its end, and is in sync again.
    fn catch_up(&mut self, node: i32) {
        self.behind.remove(&node);
        if !self.isr.contains(&node) {
            self.isr.push(node);
        }
        self.commit();
    }

    /// Notes how far a replica is that does not fetch any more.
    fn leave_behind(&mut self, node: i32, held: bool) {
        let Some(replica) = self.replica(node) else { return };
        self.behind.insert(node, Replica { held, ..replica });
    }

    fn change_leader(&mut self, leader: Option<i32>) {
        if let Some(node) = leader {
            if let Some(replica) = self.behind.remove(&node).filter(|it| it.end_offset < self.log.end_offset()) {
                self.log.truncate(replica.end_offset);
                self.cut_replicas();
            }
            if !self.isr.contains(&node) {
                // Nobody else is known to have the same; those that are up follow at once.
                let followers = |replica: &i32| self.isr.contains(replica) && !self.behind.contains_key(replica);
                let isr = self.replicas.iter().copied().filter(|replica| *replica == node || followers(replica));
                self.isr = isr.collect();
            }
        }
        self.leader = leader;
        self.leader_epoch += 1;
        self.log.begin_epoch(self.leader_epoch);
        self.commit();
    }

    /// No replica keeps what the leader does not have.
    fn cut_replicas(&mut self) {
        let (end, high_watermark) = (self.log.end_offset(), self.log.high_watermark());
        for replica in self.behind.values_mut() {
            replica.end_offset = replica.end_offset.min(end);
            replica.high_watermark = replica.high_watermark.min(high_watermark);
        }
    }

    /// Raises the high watermark to what all replicas in sync have, if those are enough (KIP-966).
    fn commit(&mut self) {
        if self.leader.is_none() || self.is_under_min_isr(self.min_insync_replicas) {
            return;
        }
        let in_sync = self.isr.iter().filter(|&&node| Some(node) != self.leader);
        let ends = in_sync.filter_map(|node| self.behind.get(node).map(|replica| replica.end_offset));
        self.log.raise_high_watermark(ends.min().unwrap_or_else(|| self.log.end_offset()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(ids: &[i32]) -> BTreeSet<i32> {
        ids.iter().copied().collect()
    }

    fn partition() -> Partition {
        Partition::new(vec![1, 2, 3], &nodes(&[1, 2, 3]))
    }

    #[test]
    fn the_next_live_replica_leads_at_a_higher_epoch() {
        let mut partition = partition();

        assert!(partition.node_died(1, false, &nodes(&[2, 3])));

        assert_eq!((partition.leader, partition.leader_epoch, partition.isr), (Some(2), 1, vec![2, 3]));
    }

    #[test]
    fn the_last_replica_in_sync_is_the_only_one_that_may_lead_again() {
        let mut partition = partition();
        for node in [1, 2, 3] {
            partition.node_died(node, false, &nodes(&[]));
        }
        assert_eq!((partition.leader, partition.isr.clone()), (None, vec![3]));

        assert!(!partition.node_returned(1, false));
        assert!(partition.node_returned(3, false));

        assert_eq!((partition.leader, partition.leader_epoch), (Some(3), 4));
    }

    #[test]
    fn a_follower_that_is_back_is_in_sync_but_does_not_lead() {
        let mut partition = partition();
        partition.node_died(1, false, &nodes(&[2, 3]));

        assert!(!partition.node_returned(1, false));

        assert_eq!((partition.leader, partition.isr), (Some(2), vec![2, 3, 1]));
    }
}
