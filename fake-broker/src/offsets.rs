//! The offsets that groups have committed.

use std::collections::BTreeMap;

use krafka_protocol::Str;

/// Every group's committed offsets.
#[derive(Clone, Debug, Default)]
pub(crate) struct Offsets {
    groups: BTreeMap<Str, BTreeMap<Str, BTreeMap<i32, Committed>>>,
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

impl Offsets {
    /// Stores a position in place of the last one, which may have been further on.
    pub(crate) fn commit(&mut self, group: &Str, topic: &Str, partition: i32, committed: Committed) {
        let topics = self.groups.entry(group.clone()).or_default();
        topics.entry(topic.clone()).or_default().insert(partition, committed);
    }

    /// The position of a group in a partition.
    pub(crate) fn committed(&self, group: &str, topic: &str, partition: i32) -> Option<&Committed> {
        self.groups.get(group)?.get(topic)?.get(&partition)
    }

    /// All positions of a group, by topic and partition.
    pub(crate) fn of_group(&self, group: &str) -> impl Iterator<Item = (&Str, &BTreeMap<i32, Committed>)> {
        self.groups.get(group).into_iter().flatten()
    }

    /// Forgets the positions in a topic that is gone, so that one of the same name starts without any.
    pub(crate) fn topic_deleted(&mut self, topic: &str) {
        for topics in self.groups.values_mut() {
            topics.remove(topic);
        }
    }
}
