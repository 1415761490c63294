//! How records are handed out to a member.
//!
//! In the mode that suits batches, whole batches of the log are handed out, so that a member may get more records than
//! it asked for; in the strict mode (KIP-1206), never more. What was handed out before and given back keeps its batch.
//! Records that were delivered often are handed out in ever smaller stretches, the last time alone: one that makes
//! members crash shall not take its neighbours along.

use krafka_protocol::Str;

use super::batch::{Batch, Lock, RecordState, Run};
use super::partition::{Limits, SharePartition};

/// A request for records.
#[derive(Clone, Debug)]
pub(crate) struct Wish {
    /// By whom, and until when it would have them.
    pub(crate) lock: Lock,
    /// How many records at most, or about so many.
    pub(crate) max_records: i64,
    /// How many records to a batch of the answer, about.
    pub(crate) batch_size: i64,
    /// Whether `max_records` is strict.
    pub(crate) is_strict: bool,
}

/// Where a batch of the log begins and ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) base: i64,
    pub(crate) last: i64,
}

/// Records that a member got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Acquired {
    pub(crate) first: i64,
    pub(crate) last: i64,
    pub(crate) delivery_count: i16,
}

impl Acquired {
    fn len(&self) -> i64 {
        self.last - self.first + 1
    }
}

impl SharePartition {
    /// Hands out records of the batches that were read from `fetch_offset` on.
    pub(crate) fn acquire(
        &mut self,
        wish: &Wish,
        fetch_offset: i64,
        read: &[Extent],
        limits: &Limits,
    ) -> Vec<Acquired> {
        let (Some(head), Some(tail)) = (read.first(), read.last()) else { return Vec::new() };
        let Some((last, max_records)) = self.room(wish.max_records, fetch_offset, tail.last, limits) else {
            return Vec::new();
        };
        // Between where it was read and what was found nothing is left of what the log had.
        if fetch_offset < head.base {
            self.archive_available(fetch_offset, head.base - 1);
        }
        // A leader that is new may know less than a whole batch of the log: the rest of it is done with.
        let begins = head.base.max(self.start_offset);
        let base = match self.batches.range(..=begins).next_back() {
            Some((&first, batch)) if batch.last() >= begins => first,
            _ => begins,
        };
        let wish = &Wish { max_records, ..wish.clone() };
        let known: Vec<i64> = self.batches.range(base..=last.max(base)).map(|(&first, _)| first).collect();
        let Some(last_known) = known.last().and_then(|first| self.batches.get(first)).map(Batch::last) else {
            return self.acquire_new(wish, read, begins, last, max_records);
        };

        let mut acquired = Vec::new();
        let mut left = max_records;
        for first in known {
            if left <= 0 {
                break;
            }
            let Some(batch) = self.batches.get_mut(&first) else { continue };
            let is_throttled = is_throttled(batch, head.base, last, limits);
            if is_throttled && left < max_records {
                return acquired;
            }
            let is_whole = batch.first() >= head.base && batch.last() <= last;
            let is_too_much = wish.is_strict && batch.last() - batch.first() + 1 > left;
            let got = if !is_whole || batch.as_one().is_none() || is_too_much || is_throttled {
                let most = if wish.is_strict { left } else { i64::MAX };
                acquire_part(batch, &wish.lock, most, (head.base, last), limits)
            } else {
                acquire_whole(batch, &wish.lock)
            };
            left -= got.iter().map(Acquired::len).sum::<i64>();
            let is_alone = is_throttled && !got.is_empty();
            acquired.extend(got);
            if is_alone {
                return acquired;
            }
        }
        if left > 0 && last_known < last {
            acquired.extend(self.acquire_new(wish, read, last_known + 1, last, left));
        }
        acquired
    }

    /// How far, and how many records, may be handed out.
    fn room(&self, max_records: i64, fetch_offset: i64, last: i64, limits: &Limits) -> Option<(i64, i64)> {
        if max_records <= 0 {
            return None;
        }
        let most = max_records.min(limits.max_record_locks - self.in_flight());
        if most > 0 {
            return Some((last, most));
        }
        // At the limit, only what was given back may be handed out again.
        let end = self.next_offset - 1;
        (fetch_offset <= end).then(|| (last.min(end), max_records.min(end - fetch_offset + 1)))
    }

    /// Hands out records for the first time.
    fn acquire_new(&mut self, wish: &Wish, read: &[Extent], first: i64, last: i64, most: i64) -> Vec<Acquired> {
        let first = if self.batches.is_empty() { first.max(self.next_offset) } else { first };
        if first > last {
            return Vec::new();
        }
        let is_first = self.batches.range(..first).next().is_none();
        let last = if most < last - first + 1 { end_of_batch(read, first + most - 1) } else { last };
        let run = |first, last| Run { first, last, state: RecordState::Available, delivery_count: 0, lock: None };
        if is_first {
            self.start_offset = first;
        }
        if wish.is_strict {
            self.add(run(first, last));
            let to = last.min(first + most - 1);
            let Some(batch) = self.batches.get_mut(&first) else { return Vec::new() };
            if to < last {
                batch.split_up();
            }
            batch.change(first, to, |run| {
                run.acquire(wish.lock.clone());
                true
            });
            return vec![Acquired { first, last: to, delivery_count: 1 }];
        }
        let mut ends: Vec<i64> = Vec::new();
        let mut begins = first;
        for batch in read.iter().filter(|batch| batch.base <= last) {
            if last - first + 1 > wish.batch_size && batch.base - begins >= wish.batch_size && batch.base > begins {
                ends.push(batch.base - 1);
                begins = batch.base;
            }
        }
        ends.push(last);
        let mut acquired = Vec::new();
        let mut begins = first;
        for end in ends {
            let mut run = run(begins, end);
            run.acquire(wish.lock.clone());
            self.add(run);
            acquired.push(Acquired { first: begins, last: end, delivery_count: 1 });
            begins = end + 1;
        }
        acquired
    }

    /// Takes the records of aborted transactions away from what was just acquired: a member of a group that reads
    /// committed records never sees them.
    pub(crate) fn archive_aborted(
        &mut self,
        member: &Str,
        acquired: Vec<Acquired>,
        aborted: &[Extent],
    ) -> Vec<Acquired> {
        let mut left = acquired;
        for gone in aborted {
            left = left.into_iter().flat_map(|got| without(got, *gone)).collect();
            for batch in self.batches.values_mut() {
                if batch.last() < gone.base || batch.first() > gone.last {
                    continue;
                }
                let is_whole = batch.first() >= gone.base && batch.last() <= gone.last;
                if !is_whole && batch.as_one().is_some() {
                    batch.split_up();
                }
                batch.change(gone.base, gone.last, |run| {
                    if run.is_held_by(member) {
                        run.finish(RecordState::Archived);
                    }
                    true
                });
            }
        }
        left
    }
}

/// What is left of acquired records when a stretch of them goes.
fn without(got: Acquired, gone: Extent) -> Vec<Acquired> {
    let before = Acquired { last: got.last.min(gone.base - 1), ..got };
    let after = Acquired { first: got.first.max(gone.last + 1), ..got };
    if gone.last < got.first || gone.base > got.last {
        return vec![got];
    }
    [before, after].into_iter().filter(|part| part.first <= part.last).collect()
}

/// The last offset of the batch in the log that has an offset, or the offset itself where there is none.
fn end_of_batch(read: &[Extent], offset: i64) -> i64 {
    let batch = read.iter().rev().find(|batch| batch.base <= offset);
    batch.map_or(offset, |batch| batch.last.max(offset))
}

/// From which delivery on a group hands records out in smaller stretches.
fn throttle_limit(limits: &Limits) -> i16 {
    ((limits.max_delivery_count + 1) / 2).max(2)
}

/// Whether records of a batch were delivered so often that it is handed out in parts.
fn is_throttled(batch: &Batch, first: i64, last: i64, limits: &Limits) -> bool {
    let delivered = match batch.as_one() {
        // What is done with, or with somebody, is nothing that could be handed out.
        Some(run) => {
            if run.state == RecordState::Available {
                run.delivery_count
            } else {
                0
            }
        }
        None => {
            let asked = batch.runs().iter().filter(|run| run.last >= first && run.first <= last);
            let free = asked.filter(|run| run.state == RecordState::Available);
            free.map(|run| run.delivery_count).max().unwrap_or(0)
        }
    };
    delivered >= throttle_limit(limits)
}

/// Hands out a batch that is known as one, if it is free.
fn acquire_whole(batch: &mut Batch, lock: &Lock) -> Vec<Acquired> {
    let mut acquired = Vec::new();
    batch.change(i64::MIN, i64::MAX, |run| {
        if run.state == RecordState::Available {
            run.acquire(lock.clone());
            acquired.push(Acquired { first: run.first, last: run.last, delivery_count: run.delivery_count });
        }
        true
    });
    acquired
}

/// Hands out the free records of a part of a batch.
fn acquire_part(
    batch: &mut Batch,
    lock: &Lock,
    mut most: i64,
    (first, last): (i64, i64),
    limits: &Limits,
) -> Vec<Acquired> {
    if batch.as_one().is_some_and(|run| run.state != RecordState::Available) {
        return Vec::new();
    }
    batch.split_up();
    let size = batch.last() - batch.first() + 1;
    let max_delivery_count = limits.max_delivery_count;
    let mut acquired: Vec<Acquired> = Vec::new();
    let mut is_throttled = false;
    let free: Vec<Run> = batch.runs().iter().filter(|run| run.state == RecordState::Available).cloned().collect();
    for run in free.iter().filter(|run| run.last >= first && run.first <= last) {
        let (from, to) = (run.first.max(first), run.last.min(last));
        let is_last_time = max_delivery_count > 2 && run.delivery_count == max_delivery_count - 1;
        if is_last_time && !acquired.is_empty() {
            break;
        }
        if !is_throttled && run.delivery_count >= throttle_limit(limits) {
            let halvings = u32::from((run.delivery_count - throttle_limit(limits) + 1).unsigned_abs());
            is_throttled = true;
            let so_far: i64 = acquired.iter().map(Acquired::len).sum();
            most = most.min(size.checked_shr(halvings).unwrap_or(0).max(1) - so_far);
        }
        let count = if is_last_time { 1 } else { (to - from + 1).min(most) };
        if count <= 0 {
            break;
        }
        let to = from + count - 1;
        batch.change(from, to, |run| {
            run.acquire(lock.clone());
            true
        });
        most -= count;
        let delivery_count = run.delivery_count.saturating_add(1);
        match acquired.last_mut() {
            Some(got) if got.last + 1 == from && got.delivery_count == delivery_count => got.last = to,
            _ => acquired.push(Acquired { first: from, last: to, delivery_count }),
        }
        if is_last_time || most <= 0 {
            break;
        }
    }
    acquired
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::super::persister::Kept;
    use super::*;

    const LIMITS: Limits =
        Limits { max_delivery_count: 5, lock_duration: Duration::from_secs(30), max_record_locks: 60 };

    #[expect(clippy::disallowed_methods, reason = "a test may begin at any time")]
    fn until() -> Instant {
        Instant::now() + LIMITS.lock_duration
    }

    /// FI-08c. `share.partition.max.record.locks`: whatever a member asks for, no more records are out than that, and
    /// the next one gets none before some are answered for.
    #[test]
    fn no_more_records_are_locked_than_a_partition_may_have() {
        let read: Vec<_> = (0..20).map(|batch| Extent { base: batch * 10, last: batch * 10 + 9 }).collect();
        for is_strict in [false, true] {
            let mut partition = SharePartition::load(&Kept::new(1, 0), 0, 0);
            let lock = Lock { member: Str::from("m"), until: until() };
            let wish = Wish { lock, max_records: 200, batch_size: 200, is_strict };

            let got = partition.acquire(&wish, 0, &read, &LIMITS);

            assert_eq!(got.iter().map(Acquired::len).sum::<i64>(), 60, "strict: {is_strict}");
            assert!(!partition.can_acquire(&LIMITS));
            assert_eq!(partition.acquire(&wish, 60, &read[6..], &LIMITS), [], "strict: {is_strict}");
        }
    }
}
