//! What members say of records that they have: accept, release, reject, gap, renew.
//!
//! The acknowledgements of one partition in one request stand or fall together. Those for records before the start
//! offset succeed, and change nothing.

use std::time::Instant;

use krafka_protocol::{ErrorCode, Str};

use super::batch::{Batch, Lock, RecordState, Run};
use super::dead_letters::{Cause, Dead};
use super::partition::{Limits, SharePartition};
use super::persister::StateBatch;

/// What became of records, in a request.
#[derive(Clone, Debug)]
pub(crate) struct Acknowledgement {
    pub(crate) first: i64,
    pub(crate) last: i64,
    /// One for all, or one for each.
    pub(crate) types: Vec<i8>,
}

/// There is no such record: it lies in a gap.
const GAP: i8 = 0;
const ACCEPT: i8 = 1;
const RELEASE: i8 = 2;
const REJECT: i8 = 3;
/// The member needs more time (KIP-1222).
const RENEW: i8 = 4;

/// Why acknowledgements are refused: the code, and the reason in Kafka's words if it gives one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unacknowledged {
    pub(crate) code: ErrorCode,
    pub(crate) reason: Option<&'static str>,
}

impl Unacknowledged {
    /// A refusal without words.
    pub(crate) fn silent(code: ErrorCode) -> Self {
        Self { code, reason: None }
    }

    fn state(reason: &'static str) -> Self {
        Self { code: ErrorCode::INVALID_RECORD_STATE, reason: Some(reason) }
    }

    fn request(reason: &'static str) -> Self {
        Self { code: ErrorCode::INVALID_REQUEST, reason: Some(reason) }
    }
}

/// Whether acknowledgements make sense by themselves: in order, without overlaps, each with one type or one for each
/// record.
pub(crate) fn is_well_formed(acknowledgements: &[Acknowledgement], may_renew: bool) -> bool {
    let mut next = -1;
    acknowledgements.iter().all(|ack| {
        let count = ack.last.checked_sub(ack.first).and_then(|length| length.checked_add(1));
        let types = GAP..=if may_renew { RENEW } else { REJECT };
        let is_good = ack.first >= next
            && ack.first <= ack.last
            && (ack.types.len() == 1 || i64::try_from(ack.types.len()).ok() == count && count != Some(0))
            && ack.types.iter().all(|kind| types.contains(kind));
        next = ack.last;
        is_good
    })
}

impl SharePartition {
    /// Does what a member says of its records, all or nothing. Returns what is to be kept.
    pub(crate) fn acknowledge(
        &mut self,
        member: &Str,
        acknowledgements: &[Acknowledgement],
        limits: &Limits,
        now: Instant,
    ) -> Result<Vec<StateBatch>, Unacknowledged> {
        let before = self.batches.clone();
        let lock = Lock { member: member.clone(), until: now + limits.lock_duration };
        let (start_offset, mut changes, dead) = (self.start_offset, Vec::new(), self.dead.len());
        for ack in acknowledgements.iter().filter(|ack| ack.last >= start_offset) {
            if let Err(refusal) = self.acknowledge_one(ack, &lock, limits, &mut changes) {
                self.batches = before;
                self.dead.truncate(dead);
                return Err(refusal);
            }
        }
        Ok(changes)
    }

    fn acknowledge_one(
        &mut self,
        ack: &Acknowledgement,
        lock: &Lock,
        limits: &Limits,
        changes: &mut Vec<StateBatch>,
    ) -> Result<(), Unacknowledged> {
        let start_offset = self.start_offset;
        let from = self.floor(ack)?;
        let last = self.batches.range(from..=ack.last).next_back().map_or(i64::MIN, |(_, batch)| batch.last());
        if last < ack.first {
            return Err(Unacknowledged::request(
                "Batch record not found. The first offset in request is past acquired records.",
            ));
        }
        if last < ack.last {
            return Err(Unacknowledged::request(
                "Batch record not found. The last offset in request is past acquired records.",
            ));
        }
        for (_, batch) in self.batches.range_mut(from..=ack.last).filter(|(_, batch)| batch.last() >= start_offset) {
            check_owner(batch, &lock.member)?;
            let is_whole = batch.first() >= ack.first && batch.last() <= ack.last;
            let start_moved = batch.first() < start_offset;
            if !is_whole || ack.types.len() > 1 || start_moved {
                batch.split_up();
            }
            let (first, last) = (ack.first.max(start_offset), ack.last);
            check_records(batch, first, last, &lock.member)?;
            acknowledge_batch(batch, ack, first, lock, limits, (changes, &mut self.dead));
        }
        Ok(())
    }

    /// The first offset of the batch that acknowledgements begin in.
    fn floor(&self, ack: &Acknowledgement) -> Result<i64, Unacknowledged> {
        let before = |offset: i64| self.batches.range(..=offset).next_back().map(|(&first, _)| first);
        // The batch that it began in may be gone with the start offset.
        let found =
            before(ack.first).or_else(|| if ack.first < self.start_offset { before(self.start_offset) } else { None });
        let missing = "Batch record not found. The request batch offsets are not found in the cache.";
        found.ok_or_else(|| Unacknowledged::state(missing))
    }
}

/// A batch that was never split belongs to one member.
fn check_owner(batch: &Batch, member: &str) -> Result<(), Unacknowledged> {
    match batch.as_one() {
        Some(run) if run.lock.is_none() => {
            Err(Unacknowledged::state("The batch cannot be acknowledged. The batch is not in the acquired state."))
        }
        Some(run) if !run.is_held_by(member) => Err(Unacknowledged::state("Member is not the owner of batch record")),
        _ => Ok(()),
    }
}

fn check_records(batch: &Batch, first: i64, last: i64, member: &str) -> Result<(), Unacknowledged> {
    for run in batch.runs().iter().filter(|run| run.last >= first && run.first <= last) {
        if run.state != RecordState::Acquired {
            return Err(Unacknowledged::state("The offset cannot be acknowledged. The offset is not acquired."));
        }
        if !run.is_held_by(member) {
            return Err(Unacknowledged::state("Member is not the owner of offset"));
        }
    }
    Ok(())
}

fn acknowledge_batch(
    batch: &mut Batch,
    ack: &Acknowledgement,
    first: i64,
    lock: &Lock,
    limits: &Limits,
    (changes, dead): (&mut Vec<StateBatch>, &mut Vec<Dead>),
) {
    let mut apply = |run: &mut Run, kind: i8| {
        match kind {
            RENEW => {
                run.lock = Some(lock.clone());
                return;
            }
            ACCEPT => run.finish(RecordState::Acknowledged),
            RELEASE => {
                run.release(limits.max_delivery_count);
                dead.extend(Dead::of(run, Cause::Spent));
            }
            REJECT => {
                run.finish(RecordState::Archived);
                dead.extend(Dead::of(run, Cause::Rejected));
            }
            _ => run.finish(RecordState::Archived),
        }
        changes.push(StateBatch::of(run));
    };
    if let [kind] = ack.types[..] {
        batch.change(first, ack.last, |run| {
            apply(run, kind);
            true
        });
        return;
    }
    let (from, to) = (first.max(batch.first()), ack.last.min(batch.last()));
    for offset in from..=to {
        let kind = usize::try_from(offset - ack.first).ok().and_then(|at| ack.types.get(at)).copied();
        batch.change(offset, offset, |run| {
            apply(run, kind.unwrap_or(GAP));
            true
        });
    }
}
