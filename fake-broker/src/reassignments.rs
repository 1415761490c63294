//! Partitions that move to other replicas.
//!
//! ```text
//!   target + those that leave ──all that come have caught up──▶ target
//!        └── cancelled ──▶ as before
//! ```
//!
//! A reassignment is over as soon as the nodes that are new to the partition are up, and somebody who stays is in sync;
//! a test can hold all of them, to see and to cancel them on the way.

use std::collections::BTreeMap;
use std::time::Instant;

use krafka_protocol::Uuid;

use crate::state::State;

/// The reassignments that are not over, by topic and partition.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reassignments {
    ongoing: BTreeMap<(Uuid, i32), Reassignment>,
    /// Whether none is to end.
    pub(crate) held: bool,
}

/// A partition on its way to other replicas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reassignment {
    before: Vec<i32>,
    target: Vec<i32>,
}

impl Reassignment {
    /// The replicas that are new.
    pub(crate) fn adding(&self) -> Vec<i32> {
        self.target.iter().copied().filter(|node| !self.before.contains(node)).collect()
    }

    /// The replicas that are to go.
    pub(crate) fn removing(&self) -> Vec<i32> {
        self.before.iter().copied().filter(|node| !self.target.contains(node)).collect()
    }
}

impl Reassignments {
    /// The reassignment of a partition, if it has one.
    pub(crate) fn find(&self, topic: Uuid, partition: i32) -> Option<&Reassignment> {
        self.ongoing.get(&(topic, partition))
    }

    /// Forgets a topic that is no more.
    pub(crate) fn topic_deleted(&mut self, topic: Uuid) {
        self.ongoing.retain(|(other, _), _| *other != topic);
    }
}

impl State {
    /// Begins to move a partition, which exists, to these replicas, which do.
    pub(crate) fn reassign(&mut self, topic: Uuid, index: i32, target: Vec<i32>, now: Instant) {
        // A second reassignment starts from where the first one did.
        let earlier = self.reassignments.ongoing.remove(&(topic, index));
        if let Some(earlier) = &earlier {
            self.restore(topic, index, earlier);
        }
        let Some(partition) = self.topics.by_id_mut(topic).and_then(|topic| topic.partition_mut(index)) else { return };
        let reassignment = Reassignment { before: partition.replicas.clone(), target };
        partition.replicas.clone_from(&reassignment.target);
        partition.replicas.extend(reassignment.removing());
        for node in reassignment.adding() {
            partition.hold(node, Some(now));
        }
        self.reassignments.ongoing.insert((topic, index), reassignment);
        self.finish_reassignments(now);
    }

    /// Ends a reassignment with the replicas that there were before it. Says whether there was one.
    pub(crate) fn cancel_reassignment(&mut self, topic: Uuid, index: i32, now: Instant) -> bool {
        let Some(cancelled) = self.reassignments.ongoing.remove(&(topic, index)) else { return false };
        self.restore(topic, index, &cancelled);
        self.settle_leader(topic, index, now);
        true
    }

    /// Ends all reassignments whose new replicas have caught up.
    pub(crate) fn finish_reassignments(&mut self, now: Instant) {
        if self.reassignments.held {
            return;
        }
        let (nodes, topics) = (&self.nodes, &self.topics);
        let is_ready = |topic: Uuid, index: i32, reassignment: &Reassignment| {
            let adding = reassignment.adding();
            let isr = topics.by_id(topic).and_then(|topic| topic.partition(index)).map(|partition| &partition.isr);
            // Nobody but who lags would be left.
            let has_heir = isr.is_some_and(|isr| isr.iter().any(|node| reassignment.target.contains(node)));
            adding.iter().all(|&node| nodes.is_up(node)) && (has_heir || !adding.is_empty())
        };
        let ongoing = self.reassignments.ongoing.iter();
        let ready: Vec<_> = ongoing.filter(|(key, it)| is_ready(key.0, key.1, it)).map(|(key, _)| *key).collect();
        for (topic, index) in ready {
            let Some(done) = self.reassignments.ongoing.remove(&(topic, index)) else { continue };
            let found = self.topics.by_id_mut(topic).and_then(|topic| topic.partition_mut(index));
            let Some(partition) = found else { continue };
            for node in done.adding() {
                partition.release(node, true);
            }
            partition.replicas.clone_from(&done.target);
            self.settle_leader(topic, index, now);
        }
    }

    /// Gives a partition the replicas back that it had.
    fn restore(&mut self, topic: Uuid, index: i32, reassignment: &Reassignment) {
        if let Some(partition) = self.topics.by_id_mut(topic).and_then(|topic| topic.partition_mut(index)) {
            partition.replicas.clone_from(&reassignment.before);
            partition.forget_strangers();
        }
    }

    /// Takes those out of sync that are no replicas any more, and elects a leader anew if it or one of them went.
    fn settle_leader(&mut self, topic: Uuid, index: i32, now: Instant) {
        let live = self.nodes.live_ids();
        let Some(found) = self.topics.by_id_mut(topic) else { return };
        let name = found.name.clone();
        let Some(partition) = found.partition_mut(index) else { return };
        partition.forget_strangers();
        let before = partition.isr.len();
        let replicas = partition.replicas.clone();
        partition.keep_replicas_in_sync();
        let stays = partition.leader.is_none_or(|leader| replicas.contains(&leader));
        if stays && partition.isr.len() == before {
            return;
        }
        let successor = replicas.iter().copied().find(|node| live.contains(node) && partition.may_lead(*node));
        match successor {
            Some(successor) if !stays => {
                partition.lead(successor);
            }
            _ => partition.bump_epoch(),
        }
        self.leader_changed(&name, index, now);
    }
}
