//! A share partition: what a share group has made of one partition's records, as the partition's leader knows it.
//!
//! ```text
//!   start offset                            next offset
//!   │                                       │
//!   ├─ batch ─┼─ batch ─┼─ ... ─┼── batch ──┤
//!
//!   available ──acquire──▶ acquired ──accept──▶ acknowledged
//!       ▲                     │ ├────reject, gap──▶ archived (`dead_letters.rs`)
//!       └──release, lock over─┘ └────renew: locked anew
//! ```
//!
//! Everything before the start offset is done with; everything from the next offset on was never handed out. A record
//! that was delivered as often as the group allows is archived instead of given back. How records are handed out is in
//! `acquire.rs`, how members answer for them in `acknowledge.rs`.
//!
//! Where it differs from Kafka on purpose:
//!
//! * What is written to the share coordinator is kept at once: no record is ever in transition, and whoever waits sees
//!   a released record without waiting for its time to be up.
//! * After a change of leader, stretches of which the coordinator knows nothing are handed out again in batches of
//!   their own, whether or not there are records in all of them; Kafka learns that as it reads.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::batch::{Batch, RecordState, Run};
use super::dead_letters::{Cause, Dead};
use super::persister::{Kept, StateBatch};

/// What a group allows, at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// How often a record is delivered at most.
    pub(crate) max_delivery_count: i16,
    /// How long a member has a record.
    pub(crate) lock_duration: Duration,
    /// How many records may lie between start and next offset before no more are handed out.
    pub(crate) max_record_locks: i64,
}

/// A share partition: see the module's page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SharePartition {
    /// The leader epoch that it was loaded in.
    pub(super) leader_epoch: i32,
    pub(super) start_offset: i64,
    pub(super) next_offset: i64,
    /// By first offset.
    pub(super) batches: BTreeMap<i64, Batch>,
    /// What was given up since it was last asked for: there may be letters to write.
    pub(super) dead: Vec<Dead>,
}

impl SharePartition {
    /// Takes up what the share coordinator has kept; `start_offset` is where a group begins that has read nothing yet.
    pub(crate) fn load(kept: &Kept, leader_epoch: i32, start_offset: i64) -> Self {
        let start_offset = if kept.start_offset < 0 { start_offset } else { kept.start_offset };
        let (batches, dead) = (BTreeMap::new(), Vec::new());
        let mut partition = Self { leader_epoch, start_offset, next_offset: start_offset, batches, dead };
        for batch in kept.batches.iter().filter(|batch| batch.last >= start_offset) {
            let first = batch.first.max(start_offset);
            if partition.next_offset < first {
                partition.add(Run {
                    first: partition.next_offset,
                    last: first - 1,
                    state: RecordState::Available,
                    delivery_count: 0,
                    lock: None,
                });
            }
            partition.add(Run {
                first,
                last: batch.last,
                state: batch.state,
                delivery_count: batch.delivery_count,
                lock: None,
            });
        }
        partition.advance();
        partition
    }

    /// Adds records at the end that were not there yet.
    pub(super) fn add(&mut self, run: Run) {
        self.next_offset = self.next_offset.max(run.last + 1);
        self.batches.insert(run.first, Batch::new(run));
    }

    /// The leader epoch that it was loaded in: in another one it is stale.
    pub(crate) fn leader_epoch(&self) -> i32 {
        self.leader_epoch
    }

    /// The first offset that is not done with.
    pub(crate) fn start_offset(&self) -> i64 {
        self.start_offset
    }

    /// Where to read on: at the first record that was given back, or behind all that were handed out.
    pub(crate) fn next_fetch_offset(&self) -> i64 {
        let runs = self.batches.values().flat_map(Batch::runs);
        let mut free = runs.filter(|run| run.state == RecordState::Available && run.last >= self.start_offset);
        free.next().map_or(self.next_offset, |run| run.first.max(self.start_offset))
    }

    /// Whether more records may be handed out: some were given back, or the limit is not reached.
    pub(crate) fn can_acquire(&self, limits: &Limits) -> bool {
        self.next_fetch_offset() != self.next_offset || self.in_flight() < limits.max_record_locks
    }

    /// How many offsets lie between start and next offset.
    pub(super) fn in_flight(&self) -> i64 {
        if self.batches.is_empty() { 0 } else { self.next_offset - self.start_offset }
    }

    /// How many records between start and next offset are done with: what a group's lag is computed with (KIP-1226).
    pub(crate) fn delivery_complete_count(&self) -> i32 {
        let runs = self.batches.values().flat_map(Batch::runs);
        let done = runs.filter(|run| run.state.is_terminal() && run.last >= self.start_offset);
        let count: i64 = done.map(|run| run.last - run.first.max(self.start_offset) + 1).sum();
        i32::try_from(count).unwrap_or(i32::MAX)
    }

    /// When the first lock is over.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.batches.values().flat_map(Batch::runs).filter_map(|run| Some(run.lock.as_ref()?.until)).min()
    }

    /// Takes back all records whose lock is over. Returns what is to be kept.
    pub(crate) fn expire(&mut self, now: Instant, limits: &Limits) -> Vec<StateBatch> {
        self.take_back(limits, |run| run.lock.as_ref().is_some_and(|lock| lock.until <= now))
    }

    /// Takes back all records of a member whose session is over. Returns what is to be kept.
    pub(crate) fn release(&mut self, member: &str, limits: &Limits) -> Vec<StateBatch> {
        self.take_back(limits, |run| run.is_held_by(member))
    }

    fn take_back(&mut self, limits: &Limits, mut is_due: impl FnMut(&Run) -> bool) -> Vec<StateBatch> {
        let (start_offset, dead, mut changes) = (self.start_offset, &mut self.dead, Vec::new());
        for batch in self.batches.values_mut() {
            // What was deleted meanwhile is not given back.
            batch.change(i64::MIN, start_offset - 1, |run| {
                if is_due(run) {
                    run.finish(RecordState::Archived);
                    changes.push(StateBatch::of(run));
                }
                true
            });
            batch.change(start_offset, i64::MAX, |run| {
                if is_due(run) {
                    run.release(limits.max_delivery_count);
                    dead.extend(Dead::of(run, Cause::Spent));
                    changes.push(StateBatch::of(run));
                }
                true
            });
        }
        changes
    }

    /// Follows the log's start: what was deleted is not handed out any more. A member that has such a record keeps it
    /// until its lock is over.
    pub(crate) fn log_starts_at(&mut self, offset: i64) {
        if offset <= self.start_offset {
            return;
        }
        self.archive_available(self.start_offset, offset - 1);
        self.start_offset = offset;
        self.next_offset = self.next_offset.max(offset);
    }

    /// Archives the records of a stretch that nobody has.
    pub(super) fn archive_available(&mut self, first: i64, last: i64) {
        for batch in self.batches.values_mut() {
            let is_whole = batch.first() >= first && batch.last() <= last;
            if batch.last() < first || batch.first() > last {
                continue;
            }
            if !is_whole && batch.as_one().is_some_and(|run| run.state == RecordState::Available) {
                batch.split_up();
            }
            batch.change(first, last, |run| {
                if run.state == RecordState::Available {
                    run.finish(RecordState::Archived);
                }
                true
            });
        }
    }

    /// Moves the start offset past all records that are done with, and forgets whole batches of them.
    pub(crate) fn advance(&mut self) {
        let at_start = self.batches.values().flat_map(Batch::runs).find(|run| run.last >= self.start_offset);
        if !at_start.is_some_and(|run| run.first <= self.start_offset && run.state.is_terminal()) {
            return;
        }
        let waiting = self.batches.values().flat_map(Batch::runs).find(|run| !run.state.is_terminal());
        let Some(waiting) = waiting.map(|run| run.first) else {
            self.batches.clear();
            self.start_offset = self.next_offset;
            return;
        };
        self.start_offset = self.start_offset.max(waiting);
        self.batches.retain(|_, batch| batch.last() >= waiting);
    }
}
