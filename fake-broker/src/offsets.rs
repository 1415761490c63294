//! The offsets that groups have committed.

use std::collections::BTreeMap;
use std::time::Instant;

use krafka_protocol::Str;

/// Every group's committed offsets.
#[derive(Clone, Debug, Default)]
pub(crate) struct Offsets {
    groups: BTreeMap<Str, BTreeMap<Str, BTreeMap<i32, Kept>>>,
}

/// A position that a group has committed for a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    /// The next offset that the group wants.
    pub offset: i64,
    /// The epoch of the leader that the record before it was read from, or -1.
    pub leader_epoch: i32,
    /// What the client wished to keep with it.
    pub metadata: Str,
}

/// A position, and how long it is kept.
#[derive(Clone, Debug)]
struct Kept {
    committed: Committed,
    at: Instant,
    /// Set by a commit that brought a retention time of its own.
    expires: Option<Instant>,
}

impl Offsets {
    /// Stores a position in place of the last one, which may have been further on. It is forgotten at `expires`, if
    /// that is set, and else when nobody has used it for long.
    pub(crate) fn commit(
        &mut self,
        now: Instant,
        expires: Option<Instant>,
        group: &Str,
        topic: &Str,
        partition: i32,
        committed: Committed,
    ) {
        let topics = self.groups.entry(group.clone()).or_default();
        topics.entry(topic.clone()).or_default().insert(partition, Kept { committed, at: now, expires });
    }

    /// The position of a group in a partition.
    pub(crate) fn committed(&self, group: &str, topic: &str, partition: i32) -> Option<&Committed> {
        self.groups.get(group)?.get(topic)?.get(&partition).map(|kept| &kept.committed)
    }

    /// All positions of a group, topic by topic.
    pub(crate) fn of_group(&self, group: &str) -> impl Iterator<Item = (&Str, Vec<(i32, &Committed)>)> {
        self.groups.get(group).into_iter().flatten().map(|(topic, partitions)| {
            (topic, partitions.iter().map(|(index, kept)| (*index, &kept.committed)).collect())
        })
    }

    /// Forgets the positions in a topic that is gone, so that one of the same name starts without any.
    pub(crate) fn topic_deleted(&mut self, topic: &str) {
        for topics in self.groups.values_mut() {
            topics.remove(topic);
        }
    }

    /// Forgets all positions of a group that is gone.
    pub(crate) fn group_deleted(&mut self, group: &str) {
        self.groups.remove(group);
    }

    /// Forgets one position.
    pub(crate) fn delete(&mut self, group: &str, topic: &str, partition: i32) {
        let Some(topics) = self.groups.get_mut(group) else { return };
        if let Some(partitions) = topics.get_mut(topic) {
            partitions.remove(&partition);
            if partitions.is_empty() {
                topics.remove(topic);
            }
        }
    }

    /// Forgets the positions of a group that have expired, by their topic and partition, the time of their commit, and
    /// the end that they were given. Says whether any are left.
    pub(crate) fn expire(
        &mut self,
        group: &str,
        has_expired: impl Fn(&Str, i32, Instant, Option<Instant>) -> bool,
    ) -> bool {
        let Some(topics) = self.groups.get_mut(group) else { return false };
        topics.retain(|topic, partitions| {
            partitions.retain(|&index, kept| !has_expired(topic, index, kept.at, kept.expires));
            !partitions.is_empty()
        });
        let is_left = !topics.is_empty();
        if !is_left {
            self.groups.remove(group);
        }
        is_left
    }
}
