//! What the share coordinators keep: the state of each group's share partitions, as it would be found in
//! `__share_group_state`.
//!
//! The group's coordinator has a state begun when a topic is subscribed to; the partition's leader loads it, and writes
//! to it what changes. A leader that is replaced loses only what it has not written: who has which record.
//!
//! Where it differs from Kafka on purpose: a write is kept at once and never fails.

use std::collections::BTreeMap;

use krafka_protocol::{Str, Uuid};

use super::batch::{RecordState, Run};

/// Which group's, and of which partition.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ShareKey {
    pub(crate) group: Str,
    pub(crate) topic: Uuid,
    pub(crate) partition: i32,
}

impl ShareKey {
    /// The key by which its share coordinator is found.
    pub(crate) fn coordinator_key(&self) -> String {
        format!("{}:{}:{}", self.group, self.topic, self.partition)
    }
}

/// Records next to each other with one state, as they are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StateBatch {
    pub(crate) first: i64,
    pub(crate) last: i64,
    pub(crate) state: RecordState,
    pub(crate) delivery_count: i16,
}

impl StateBatch {
    /// What is kept of a run.
    pub(crate) fn of(run: &Run) -> Self {
        Self { first: run.first, last: run.last, state: run.state, delivery_count: run.delivery_count }
    }

    fn continues(&self, next: &Self) -> bool {
        self.last + 1 == next.first && (self.state, self.delivery_count) == (next.state, next.delivery_count)
    }
}

/// The state of one share partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) state_epoch: i32,
    /// The leader epoch of the leader that read or wrote last.
    pub(crate) leader_epoch: i32,
    /// -1 until somebody says where the group begins.
    pub(crate) start_offset: i64,
    /// How many records from the start offset on are done with; -1 if nobody said.
    pub(crate) delivery_complete_count: i32,
    /// In the order of their offsets, without overlaps.
    pub(crate) batches: Vec<StateBatch>,
}

impl Kept {
    /// A state that begins at an offset, or at one that the leader finds out.
    pub(crate) fn new(state_epoch: i32, start_offset: i64) -> Self {
        Self { state_epoch, leader_epoch: 0, start_offset, delivery_complete_count: -1, batches: Vec::new() }
    }

    /// Keeps what has changed. Without a start offset, the last one stays.
    pub(crate) fn write(&mut self, start_offset: i64, delivery_complete_count: i32, changes: &[StateBatch]) {
        if start_offset >= 0 {
            self.start_offset = start_offset;
        }
        self.delivery_complete_count = delivery_complete_count;
        for change in changes {
            self.overlay(*change);
        }
        let start_offset = self.start_offset;
        self.batches.retain(|batch| batch.last >= start_offset);
        if let Some(first) = self.batches.first_mut() {
            first.first = first.first.max(start_offset);
        }
    }

    /// Lays a change over what is kept. Of two states of a record, the one with more deliveries is the later one, and
    /// of those the one that is nearer to the end.
    fn overlay(&mut self, change: StateBatch) {
        let mut cuts: Vec<i64> = self.batches.iter().flat_map(|batch| [batch.first, batch.last + 1]).collect();
        cuts.extend([change.first, change.last + 1]);
        cuts.sort_unstable();
        cuts.dedup();
        let mut merged: Vec<StateBatch> = Vec::with_capacity(cuts.len());
        for cut in cuts.windows(2) {
            let known =
                self.batches.iter().chain([&change]).filter(|batch| (batch.first..=batch.last).contains(&cut[0]));
            let Some(newest) = known.max_by_key(|batch| (batch.delivery_count, batch.state as i8)) else { continue };
            let part = StateBatch { first: cut[0], last: cut[1] - 1, ..*newest };
            match merged.last_mut() {
                Some(last) if last.continues(&part) => last.last = part.last,
                _ => merged.push(part),
            }
        }
        self.batches = merged;
    }
}

/// All states, by share partition.
pub(crate) type Persister = BTreeMap<ShareKey, Kept>;

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(first: i64, last: i64, state: RecordState) -> StateBatch {
        StateBatch { first, last, state, delivery_count: 1 }
    }

    #[test]
    fn a_write_with_fewer_deliveries_came_too_late() {
        let mut kept = Kept::new(0, 0);
        let twice = StateBatch { delivery_count: 2, ..batch(0, 3, RecordState::Available) };

        kept.write(0, 0, &[twice]);
        kept.write(-1, 0, &[batch(1, 5, RecordState::Acknowledged)]);

        assert_eq!(kept.batches, [twice, batch(4, 5, RecordState::Acknowledged)]);
    }

    #[test]
    fn a_later_write_lies_over_an_earlier_one() {
        let (free, done) = (RecordState::Available, RecordState::Acknowledged);
        let mut kept = Kept::new(0, 0);

        kept.write(0, 0, &[batch(0, 9, free)]);
        kept.write(0, 3, &[batch(3, 5, done)]);
        let split = kept.batches.clone();
        kept.write(4, 2, &[batch(6, 6, done)]);

        assert_eq!(split, [batch(0, 2, free), batch(3, 5, done), batch(6, 9, free)]);
        assert_eq!(kept.batches, [batch(4, 6, done), batch(7, 9, free)]);
    }
}
