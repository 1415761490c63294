//! Offsets that were committed inside of transactions, until these end.
//!
//! They are part of the group coordinator's log: whoever coordinates the group next knows them too. An offset that the
//! group commits without a transaction in the meantime wins, as it is the later one in the log.

use std::collections::BTreeMap;
use std::time::Instant;

use krafka_protocol::Str;

use crate::offsets::{Committed, Offsets};

/// The offsets in open transactions, by producer id.
#[derive(Clone, Debug, Default)]
pub(crate) struct PendingOffsets {
    by_producer: BTreeMap<i64, BTreeMap<Position, Pending>>,
}

/// A group's position in a partition.
type Position = (Str, Str, i32);

#[derive(Clone, Debug)]
struct Pending {
    committed: Committed,
    /// A later commit without a transaction has taken its place.
    is_overtaken: bool,
}

impl PendingOffsets {
    /// Keeps an offset until the transaction of a producer ends.
    pub(crate) fn add(&mut self, producer_id: i64, group: &Str, topic: &Str, partition: i32, committed: Committed) {
        let position = (group.clone(), topic.clone(), partition);
        let pending = Pending { committed, is_overtaken: false };
        self.by_producer.entry(producer_id).or_default().insert(position, pending);
    }

    /// Whether any transaction may yet change a group's position in a partition.
    pub(crate) fn is_unstable(&self, group: &Str, topic: &Str, partition: i32) -> bool {
        let position = (group.clone(), topic.clone(), partition);
        self.by_producer.values().any(|pending| pending.contains_key(&position))
    }

    /// Whether any transaction may yet change a position of a group.
    pub(crate) fn has_group(&self, group: &str) -> bool {
        self.by_producer.values().flat_map(BTreeMap::keys).any(|(of, ..)| of == group)
    }

    /// Takes note that a group has committed a position without a transaction.
    pub(crate) fn overtaken(&mut self, group: &Str, topic: &Str, partition: i32) {
        let position = (group.clone(), topic.clone(), partition);
        for pending in self.by_producer.values_mut().filter_map(|pending| pending.get_mut(&position)) {
            pending.is_overtaken = true;
        }
    }

    /// Ends the transaction of a producer for the groups that are meant: those on a partition of `__consumer_offsets`.
    pub(crate) fn end(
        &mut self,
        offsets: &mut Offsets,
        is_meant: impl Fn(&str) -> bool,
        producer_id: i64,
        commit: bool,
        now: Instant,
    ) {
        let Some(pending) = self.by_producer.get_mut(&producer_id) else { return };
        pending.retain(|(group, topic, partition), pending| {
            if !is_meant(group) {
                return true;
            }
            if commit && !pending.is_overtaken {
                offsets.commit(now, None, group, topic, *partition, pending.committed.clone());
            }
            false
        });
        if pending.is_empty() {
            self.by_producer.remove(&producer_id);
        }
    }

    /// Forgets the positions in a topic that is gone.
    pub(crate) fn topic_deleted(&mut self, topic: &str) {
        self.forget(|(_, of, _)| of == topic);
    }

    /// Forgets the positions of a group that is gone.
    pub(crate) fn group_deleted(&mut self, group: &str) {
        self.forget(|(of, ..)| of == group);
    }

    /// Forgets one position, which an administrator has deleted.
    pub(crate) fn delete(&mut self, group: &Str, topic: &Str, partition: i32) {
        self.forget(|(of, in_topic, index)| (of, in_topic, *index) == (group, topic, partition));
    }

    fn forget(&mut self, is_gone: impl Fn(&Position) -> bool) {
        self.by_producer.retain(|_, pending| {
            pending.retain(|position, _| !is_gone(position));
            !pending.is_empty()
        });
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the time must begin somewhere")]
mod tests {
    use super::*;

    /// All groups.
    fn all(_: &str) -> bool {
        true
    }

    fn with_pending(offset: i64) -> PendingOffsets {
        let mut pending = PendingOffsets::default();
        let committed = Committed { offset, leader_epoch: -1, metadata: Str::default() };
        pending.add(7, &"group".into(), &"topic".into(), 0, committed);
        pending
    }

    fn committed(offsets: &Offsets) -> Option<i64> {
        offsets.committed("group", "topic", 0).map(|committed| committed.offset)
    }

    #[test]
    fn offset_counts_when_its_transaction_is_committed() {
        let (mut pending, mut offsets) = (with_pending(5), Offsets::default());
        assert!(pending.is_unstable(&"group".into(), &"topic".into(), 0));

        pending.end(&mut offsets, |group| group != "group", 7, true, Instant::now());
        assert_eq!(committed(&offsets), None, "another coordinator's part of the transaction");
        pending.end(&mut offsets, all, 7, true, Instant::now());

        assert_eq!(committed(&offsets), Some(5));
        assert!(!pending.is_unstable(&"group".into(), &"topic".into(), 0));
    }

    #[test]
    fn offset_of_an_aborted_transaction_is_forgotten() {
        let (mut pending, mut offsets) = (with_pending(5), Offsets::default());

        pending.end(&mut offsets, all, 7, false, Instant::now());

        assert_eq!(committed(&offsets), None);
    }

    #[test]
    fn later_commit_wins() {
        let (mut pending, mut offsets) = (with_pending(5), Offsets::default());
        let later = Committed { offset: 9, leader_epoch: -1, metadata: Str::default() };
        offsets.commit(Instant::now(), None, &"group".into(), &"topic".into(), 0, later);
        pending.overtaken(&"group".into(), &"topic".into(), 0);
        assert!(pending.is_unstable(&"group".into(), &"topic".into(), 0));

        pending.end(&mut offsets, all, 7, true, Instant::now());

        assert_eq!(committed(&offsets), Some(9));
    }
}
