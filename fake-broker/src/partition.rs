//! A partition: who holds it, who leads it, its log, and how far each replica has got.
//!
//! Leadership follows KRaft's rules: a leader that dies is replaced by the first live replica in sync, each change of
//! leader raises the leader epoch, and a partition whose last in-sync replica died has no leader until that replica is
//! back, or one that is eligible (KIP-966), or an unclean election takes another.
//!
//! ```text
//!   leader    ──────────────────────────▶ end_offset     a replica that is in step has what the leader has, at once
//!   in sync   ────────────────▶ held                     holds the high watermark back, until it is thrown out
//!   out       ────────▶                                  elected all the same, it makes everyone as short as itself
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use krafka_protocol::records::Batch;

use crate::eligible::Eligible;
use crate::log::{Appended, Log};
use crate::topics::TopicSettings;

/// A partition: see the module's page.
#[derive(Clone, Debug)]
pub(crate) struct Partition {
    pub(crate) replicas: Vec<i32>,
    pub(crate) isr: Vec<i32>,
    pub(crate) leader: Option<i32>,
    pub(crate) leader_epoch: i32,
    pub(crate) log: Log,
    /// Who may lead although it is not in sync.
    pub(crate) eligible: Eligible,
    rules: Rules,
    /// When replicas that lag are looked at next.
    shrink_due: Option<Instant>,
    /// The replicas that are not in step: dead ones, and those that a test holds.
    behind: BTreeMap<i32, Replica>,
}

/// What the cluster and the topic say about who is in sync and who may lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rules {
    /// The topic's `min.insync.replicas`.
    pub(crate) min_insync_replicas: usize,
    /// Whether there are eligible leader replicas (KIP-966), and may be none in sync.
    pub(crate) knows_eligible: bool,
    /// Whether a leader that takes a replica in orders them by their ids, as Kafka does since 4.2.
    pub(crate) orders_isr: bool,
}

/// How far a replica had got when it stopped fetching.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Replica {
    pub(crate) start_offset: i64,
    pub(crate) end_offset: i64,
    pub(crate) high_watermark: i64,
    /// Whether it stays where it is although its node is up.
    held: bool,
    /// When it was in step last, or its leader began to lead: it lags since then if it lacks anything. None until
    /// something is written, if it was not in step from the beginning.
    since: Option<Instant>,
}

impl Partition {
    /// A new partition on `replicas`, of which `live` are up; the first of those leads.
    pub(crate) fn new(replicas: Vec<i32>, live: &BTreeSet<i32>, rules: Rules) -> Self {
        let isr: Vec<i32> = replicas.iter().copied().filter(|replica| live.contains(replica)).collect();
        let leader = isr.first().copied();
        let mut log = Log::default();
        log.begin_epoch(0);
        let isr = if isr.is_empty() { replicas.clone() } else { isr };
        let (behind, eligible) = (BTreeMap::new(), Eligible::default());
        let mut partition =
            Self { isr, replicas, leader, leader_epoch: 0, log, eligible, rules, shrink_due: None, behind };
        let dead: Vec<_> = partition.replicas.iter().copied().filter(|replica| !live.contains(replica)).collect();
        for node in dead {
            partition.leave_behind(node, false, None);
        }
        partition
    }

    /// Appends a batch that was found valid. It is committed when the high watermark has passed it.
    pub(crate) fn append(&mut self, batch: &Batch, settings: &TopicSettings, now_ms: i64, now: Instant) -> Appended {
        let appended = self.log.append(batch, settings, now_ms);
        for replica in self.behind.values_mut() {
            replica.since.get_or_insert(now);
        }
        self.commit();
        appended
    }

    /// Whether there are fewer replicas in sync than `min.insync.replicas`, of which no more count than there are.
    pub(crate) fn is_under_min_isr(&self) -> bool {
        self.isr.len() < self.least_in_sync()
    }

    /// Whether a node may lead: it is in sync, or nobody is and it is eligible.
    pub(crate) fn may_lead(&self, node: i32) -> bool {
        self.isr.contains(&node) || self.isr.is_empty() && self.eligible.replicas.contains(&node)
    }

    /// Who is to lead of those that are up: the first replica that may, or the last leader, or if `unclean` anybody.
    pub(crate) fn successor(&self, is_up: impl Fn(i32) -> bool, unclean: bool) -> Option<i32> {
        let live = || self.replicas.iter().copied().filter(|&node| is_up(node));
        let last_leader = || self.eligible.last_leader().filter(|&node| self.isr.is_empty() && is_up(node));
        let anybody = || if unclean { live().next() } else { None };
        live().find(|&node| self.may_lead(node)).or_else(last_leader).or_else(anybody)
    }

    /// Takes new rules over.
    pub(crate) fn set_rules(&mut self, rules: Rules) {
        self.rules = rules;
        if rules.knows_eligible {
            self.set_isr(self.isr.clone());
        } else {
            self.eligible.clear();
        }
        self.commit();
    }

    /// The rules that it goes by.
    pub(crate) fn rules(&self) -> Rules {
        self.rules
    }

    /// Takes those out of sync that are no replicas any more.
    pub(crate) fn keep_replicas_in_sync(&mut self) {
        let isr = self.isr.iter().copied().filter(|node| self.replicas.contains(node)).collect();
        self.set_isr(isr);
        self.eligible.replicas.retain(|node| self.replicas.contains(node));
        self.eligible.last_known.retain(|node| self.replicas.contains(node));
    }

    /// What a node has of the partition, if it holds a replica.
    pub(crate) fn replica(&self, node: i32) -> Option<Replica> {
        let in_step = || Replica {
            start_offset: self.log.start_offset(),
            end_offset: self.log.end_offset(),
            high_watermark: self.log.high_watermark(),
            held: false,
            since: None,
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

    /// Makes a follower stop fetching. It stays in sync until it lacks something and has lagged for too long.
    pub(crate) fn hold(&mut self, node: i32, since: Option<Instant>) {
        self.leave_behind(node, true, since);
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

    /// Throws those out of the in-sync replicas that have lagged for longer than `limit`. Says if there were any.
    pub(crate) fn shrink_isr(&mut self, limit: Duration, now: Instant) -> bool {
        let end = self.log.end_offset();
        let is_late = |it: &Replica| it.end_offset < end && it.since.is_some_and(|since| since + limit <= now);
        let late: Vec<_> = self.behind.iter().filter(|(_, replica)| is_late(replica)).map(|(&node, _)| node).collect();
        self.shrink_due = None;
        let before = self.isr.len();
        // Without a leader nobody is there to say who lags.
        let Some(leader) = self.leader else { return false };
        self.set_isr(self.isr.iter().copied().filter(|node| *node == leader || !late.contains(node)).collect());
        self.commit();
        self.isr.len() < before
    }

    /// When the next replica may have to be thrown out of sync, if nobody asked for that moment yet. A leader looks
    /// twice in the time that a replica may lag, as Kafka's does.
    pub(crate) fn arm_shrink(&mut self, limit: Duration, now: Instant) -> Option<Instant> {
        // Without a leader nobody throws anybody out, however late it is: the moment would come again and again.
        let behind = self.behind.iter().filter(|_| self.leader.is_some());
        let lagging = behind.filter(|(node, _)| self.isr.contains(node) && Some(**node) != self.leader);
        let end = self.log.end_offset();
        let since =
            lagging.filter(|(_, replica)| replica.end_offset < end).filter_map(|(_, replica)| replica.since).min();
        let due = since.map(|since| {
            let (first, step) = (since + limit, limit / 2);
            let missed = now.saturating_duration_since(first).as_nanos() / step.as_nanos().max(1);
            if now < first { first } else { first + step * u32::try_from(missed + 1).unwrap_or(u32::MAX) }
        });
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

    /// Lets a leader that is new give its followers all the time that they may lag.
    pub(crate) fn forgive_lag(&mut self, now: Instant) {
        self.behind.values_mut().for_each(|replica| replica.since = Some(now));
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

    /// Takes a dead node out of the in-sync replicas and elects another leader of `live` ones if it led, if `unclean`
    /// from those out of sync, too. Says if the leader changed.
    pub(crate) fn node_died(&mut self, node: i32, unclean: bool, live: &BTreeSet<i32>, now: Instant) -> bool {
        if !self.replicas.contains(&node) {
            return false;
        }
        self.leave_behind(node, self.is_held(node), Some(now));
        let isr: Vec<i32> = self.isr.iter().copied().filter(|replica| *replica != node).collect();
        // Where nobody is eligible the last in-sync replica stays in the set: only it has everything.
        if !isr.is_empty() || self.rules.knows_eligible {
            self.set_isr(isr);
        }
        if self.leader != Some(node) {
            self.commit();
            return false;
        }
        let successor = self.successor(|replica| replica != node && live.contains(&replica), unclean);
        if successor.is_none() && self.isr.is_empty() {
            self.eligible.remember(self.leader);
        }
        self.change_leader(successor);
        true
    }

    /// Lets a node that is back, like the other `live` ones, catch up, and lead if nobody does. Says if the leader
    /// changed. What it had may be lost if it `died`.
    pub(crate) fn node_returned(&mut self, node: i32, died: bool, unclean: bool, live: &BTreeSet<i32>) -> bool {
        if !self.replicas.contains(&node) {
            return false;
        }
        if died {
            self.eligible.distrust(node, self.leader.is_some());
        }
        if self.leader.is_none() {
            let Some(successor) = self.successor(|replica| live.contains(&replica), unclean) else { return false };
            self.change_leader(Some(successor));
            let followers: Vec<_> = self.behind.keys().copied().filter(|follower| live.contains(follower)).collect();
            for follower in followers {
                self.follow(follower);
            }
            return true;
        }
        self.follow(node);
        false
    }

    /// A live follower catches up, unless it is held.
    fn follow(&mut self, node: i32) {
        if self.behind.get(&node).is_some_and(|replica| !replica.held) {
            self.catch_up(node);
        }
    }

    /// Follows the leader up to its end, and is in sync again.
    fn catch_up(&mut self, node: i32) {
        self.behind.remove(&node);
        if !self.isr.contains(&node) {
            let mut isr: Vec<i32> = self.isr.iter().copied().chain([node]).collect();
            if self.rules.orders_isr {
                isr.sort_unstable();
            }
            self.set_isr(isr);
        }
        self.commit();
    }

    /// Changes who is in sync, and with it who is eligible.
    fn set_isr(&mut self, isr: Vec<i32>) {
        if self.rules.knows_eligible {
            self.eligible.follow(&self.isr, &isr, self.least_in_sync());
        }
        self.isr = isr;
    }

    /// How many replicas must be in sync for anything to be committed: no more count than there are.
    fn least_in_sync(&self) -> usize {
        self.rules.min_insync_replicas.min(self.replicas.len())
    }

    /// Notes how far a replica is that does not fetch any more.
    fn leave_behind(&mut self, node: i32, held: bool, since: Option<Instant>) {
        let Some(replica) = self.replica(node) else { return };
        self.behind.insert(node, Replica { held, since: replica.since.or(since), ..replica });
    }

    fn change_leader(&mut self, leader: Option<i32>) {
        if let Some(node) = leader {
            if let Some(replica) = self.behind.remove(&node).filter(|it| it.end_offset < self.log.end_offset()) {
                self.log.truncate(replica.end_offset);
                self.cut_replicas();
            }
            if self.isr.is_empty() && self.eligible.replicas.contains(&node) {
                self.set_isr(vec![node]);
            } else if !self.isr.contains(&node) {
                // Nobody else is known to have the same; those that are up follow at once.
                let followers = |replica: &i32| self.isr.contains(replica) && !self.behind.contains_key(replica);
                let isr = self.replicas.iter().copied().filter(|replica| *replica == node || followers(replica));
                self.isr = isr.collect();
                self.eligible.clear();
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
        if self.leader.is_none() || self.is_under_min_isr() {
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
    use crate::clock::{Clock, TokioClock};

    fn nodes(ids: &[i32]) -> BTreeSet<i32> {
        ids.iter().copied().collect()
    }

    fn partition() -> Partition {
        let rules = Rules { min_insync_replicas: 1, knows_eligible: false, orders_isr: false };
        Partition::new(vec![1, 2, 3], &nodes(&[1, 2, 3]), rules)
    }

    /// The same, where replicas out of sync are eligible while fewer than two are in sync.
    fn with_eligible() -> Partition {
        let rules = Rules { min_insync_replicas: 2, knows_eligible: true, orders_isr: true };
        Partition::new(vec![1, 2, 3], &nodes(&[1, 2, 3]), rules)
    }

    #[test]
    fn the_next_live_replica_leads_at_a_higher_epoch() {
        let mut partition = partition();

        assert!(partition.node_died(1, false, &nodes(&[2, 3]), TokioClock.now()));

        assert_eq!((partition.leader, partition.leader_epoch, partition.isr), (Some(2), 1, vec![2, 3]));
    }

    #[test]
    fn the_last_replica_in_sync_is_the_only_one_that_may_lead_again() {
        let mut partition = partition();
        for (node, live) in [(1, &[2, 3][..]), (2, &[3]), (3, &[])] {
            partition.node_died(node, false, &nodes(live), TokioClock.now());
        }
        assert_eq!((partition.leader, partition.isr.clone()), (None, vec![3]));

        assert!(!partition.node_returned(1, true, false, &nodes(&[1])));
        assert!(partition.node_returned(3, true, false, &nodes(&[1, 3])));

        assert_eq!((partition.leader, partition.leader_epoch), (Some(3), 4));
        assert_eq!(partition.isr, [3, 1], "who came earlier follows as well");
    }

    #[test]
    fn a_follower_that_is_back_is_in_sync_but_does_not_lead() {
        let mut partition = partition();
        partition.node_died(1, false, &nodes(&[2, 3]), TokioClock.now());

        assert!(!partition.node_returned(1, true, false, &nodes(&[1, 2, 3])));

        assert_eq!((partition.leader, partition.isr), (Some(2), vec![2, 3, 1]));
    }

    /// As Kafka 4.4 was seen doing it, node by node.
    #[test]
    fn who_is_eligible_leads_where_nobody_is_in_sync() {
        let mut partition = with_eligible();
        partition.node_died(1, false, &nodes(&[2, 3]), TokioClock.now());
        assert_eq!((partition.isr.clone(), partition.eligible.replicas.clone()), (vec![2, 3], vec![]));
        partition.node_died(2, false, &nodes(&[3]), TokioClock.now());
        assert_eq!((partition.isr.clone(), partition.eligible.replicas.clone()), (vec![3], vec![2]));
        partition.node_died(3, false, &nodes(&[]), TokioClock.now());
        assert_eq!((partition.leader, partition.isr.clone()), (None, vec![]));
        assert_eq!((&partition.eligible.replicas[..], &partition.eligible.last_known[..]), (&[2, 3][..], &[3][..]));

        // It was cut off, and has all that it had.
        assert!(partition.node_returned(2, false, false, &nodes(&[2])));

        assert_eq!((partition.leader, partition.isr.clone()), (Some(2), vec![2]));
        assert_eq!((&partition.eligible.replicas[..], &partition.eligible.last_known[..]), (&[3][..], &[][..]));
        partition.node_returned(1, true, false, &nodes(&[1, 2]));
        assert_eq!((partition.isr.clone(), partition.eligible.replicas.clone()), (vec![1, 2], vec![]));
    }

    #[test]
    fn of_those_that_died_only_the_last_leader_leads_again() {
        let mut partition = with_eligible();
        for (node, live) in [(1, &[2, 3][..]), (2, &[3]), (3, &[])] {
            partition.node_died(node, false, &nodes(live), TokioClock.now());
        }

        assert!(!partition.node_returned(2, true, false, &nodes(&[2])));
        assert!(partition.node_returned(3, true, false, &nodes(&[2, 3])));

        assert_eq!((partition.leader, partition.isr.clone()), (Some(3), vec![2, 3]));
        assert!(partition.eligible.replicas.is_empty());
    }
}
