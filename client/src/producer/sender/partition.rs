//! One partition's batches, from sealed to settled, and when the next one may go.
//!
//! ```text
//!     early ──in order──▶ queue ──sent──▶ in flight ──▶ settled
//!                           ▲                │
//!                           └──── retry ─────┘
//! ```
//!
//! Both the queue and what is in flight are in the order in which the records were appended. A batch that was sent
//! before goes alone, and only when nothing is in flight: then nothing can overtake it, and the broker sees the
//! sequence that it expects. Fresh batches go up to the limit at a time, once the partition has taken a first one.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use krafka_protocol::Uuid;

use crate::cluster::TopicView;
use crate::producer::batch::{Batch, Order};
use crate::producer::delivery::Destination;
use crate::producer::identity::{Identity, Sequences, Stamp};

/// The batch that callers append to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Open {
    pub(super) number: u64,
    pub(super) at: Instant,
    /// Whether it has lingered long enough: it is sealed as soon as it could be sent.
    pub(super) is_ripe: bool,
    /// Whether it is being sealed already.
    pub(super) is_sealing: bool,
}

/// A batch in a request that is not answered.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) batch: Batch,
    /// Which connection it went over. Two connections keep no order between them.
    pub(super) link: u64,
}

/// What a partition could do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Nothing, until something happens.
    Wait,
    /// Wait for the producer to get an identity.
    Identify,
    /// Seal the open batch: it can be sent.
    Seal(u64),
    /// Send the first of the queue, of so many bytes.
    Send(usize),
}

pub(super) struct Partition {
    pub(super) destination: Arc<Destination>,
    pub(super) open: Option<Open>,
    /// When a batch was opened last.
    pub(super) opened: Option<Instant>,
    /// Whether its topic rests.
    pub(super) rests: bool,
    /// The number of the next batch that comes into the queue.
    expected: u64,
    /// Batches that were sealed before an older one was: callers compress at their own pace. `None` stands for one that
    /// failed to compress.
    early: BTreeMap<u64, Option<Batch>>,
    pub(super) queue: VecDeque<Batch>,
    pub(super) in_flight: VecDeque<Flight>,

    pub(super) topic_id: Uuid,
    pub(super) leader: Option<i32>,
    pub(super) leader_epoch: i32,
    /// Failures in a row.
    pub(super) failures: u32,
    /// New leaders in a row that were named, with nothing written in between.
    pub(super) moves: u32,
    /// The end of the backoff.
    pub(super) not_before: Option<Instant>,

    pub(super) sequences: Sequences,
    /// Some stamped batch is gone, and nobody knows whether it was written: fresh ones wait until the stamped ones that
    /// are left have told.
    pub(super) is_unresolved: bool,
    /// The broker's sequence is broken: start a new one when nothing is in flight.
    pub(super) needs_restart: bool,

    /// The broker in whose queue it stands. Entries elsewhere are left over.
    pub(super) listed: Option<i32>,
    /// Whether a timer stands for its oldest batch.
    pub(super) is_timed: bool,
}

impl Partition {
    pub(super) fn new(destination: Arc<Destination>) -> Self {
        Self {
            destination,
            open: None,
            opened: None,
            rests: false,
            expected: 0,
            early: BTreeMap::new(),
            queue: VecDeque::new(),
            in_flight: VecDeque::new(),
            leader: None,
            leader_epoch: -1,
            failures: 0,
            moves: 0,
            not_before: None,
            sequences: Sequences::new(),
            is_unresolved: false,
            needs_restart: false,
            listed: None,
            topic_id: Uuid::ZERO,
            is_timed: false,
        }
    }

    /// Takes a sealed batch, and those that waited for it, into the queue.
    pub(super) fn seal(&mut self, number: u64, batch: Option<Batch>) {
        if self.open.is_some_and(|open| open.number == number) {
            self.open = None;
        }
        self.early.insert(number, batch);
        while let Some(batch) = self.early.remove(&self.expected) {
            self.expected += 1;
            self.queue.extend(batch);
        }
    }

    /// Puts a batch back where it belongs in the order.
    pub(super) fn requeue(&mut self, batch: Batch) {
        let at = self.queue.partition_point(|queued| queued.order < batch.order);
        self.queue.insert(at, batch);
    }

    /// Takes a batch out of what is in flight.
    pub(super) fn land(&mut self, order: Order) -> Option<Batch> {
        let at = self.in_flight.iter().position(|flight| flight.batch.order == order)?;
        self.in_flight.remove(at).map(|flight| flight.batch)
    }

    /// Whether a batch with an older stamp is not settled by the broker yet.
    pub(super) fn has_older(&self, order: Order) -> bool {
        self.in_flight.iter().any(|flight| flight.batch.order < order)
            || self.queue.front().is_some_and(|batch| batch.stamp.is_some() && batch.order < order)
    }

    /// Takes over what the metadata says, unless it is older than what is known. Returns whether the leader changed.
    pub(super) fn lead(&mut self, view: Option<&TopicView>, is_same_topic: bool) -> bool {
        if let Some(view) = view {
            self.topic_id = view.id;
        }
        let index = usize::try_from(self.destination.partition).unwrap_or(usize::MAX);
        let (leader, epoch) = match view.and_then(|view| view.partitions.get(index)) {
            Some(partition) => (partition.leader, partition.leader_epoch),
            None => (None, -1),
        };
        if is_same_topic && epoch >= 0 && epoch < self.leader_epoch {
            return false;
        }
        let changed = leader != self.leader;
        self.leader = leader;
        // A leaderless answer tells no epoch, and the last one known still is a bound for those to come.
        if epoch >= 0 || !is_same_topic {
            self.leader_epoch = epoch;
        }
        changed
    }

    /// Whether there is no batch of it anywhere.
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_none() && self.early.is_empty() && self.queue.is_empty() && self.in_flight.is_empty()
    }

    /// Whether something waits to be sent.
    pub(super) fn has_work(&self) -> bool {
        !self.queue.is_empty() || self.open.is_some_and(|open| open.is_ripe && !open.is_sealing)
    }

    /// When the oldest batch without an answer was created.
    pub(super) fn oldest(&self) -> Option<Instant> {
        let in_flight = self.in_flight.iter().map(|flight| &flight.batch).find(|batch| !batch.is_settled());
        [
            in_flight.map(|batch| batch.created),
            self.queue.front().map(|batch| batch.created),
            self.open.filter(|open| !open.is_sealing).map(|open| open.at),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Mends the sequence if it can be mended now. Returns whether the epoch was raised for it.
    pub(super) fn repair(&mut self, identity: &mut Identity) -> bool {
        if !self.in_flight.is_empty() {
            return false;
        }
        let has_stamped = self.queue.front().is_some_and(|batch| batch.stamp.is_some());
        if self.is_unresolved && !has_stamped {
            // All that was stamped has told: either the lost batch turned out to be written, or there is a gap.
            self.needs_restart |= !self.sequences.is_whole();
            self.is_unresolved = false;
        }
        let mut bumped = false;
        if self.needs_restart {
            if let (Some(current), Some(seen)) = (identity.current(), self.sequences.producer())
                && current == seen
            {
                identity.bump(seen);
                bumped = true;
            }
            if let Some(current) = identity.current() {
                self.sequences.restart(current);
                self.queue.iter_mut().for_each(|batch| batch.stamp = None);
                (self.needs_restart, self.is_unresolved) = (false, false);
            }
        } else if !has_stamped
            && let Some(current) = identity.current()
            && self.sequences.producer() != Some(current)
        {
            // Nothing of the old identity is on its way here: move on to the one that another partition made necessary.
            self.sequences.restart(current);
        }
        bumped
    }

    /// What to do now that the leader can be reached over `link`. `limit` is how many may be in flight.
    pub(super) fn next(&self, link: u64, limit: usize, now: Instant) -> Next {
        let limit = if self.sequences.is_guarded() { limit } else { 1 };
        if self.not_before.is_some_and(|at| at > now)
            || self.in_flight.len() >= limit
            || self.in_flight.front().is_some_and(|flight| flight.link != link)
            || self.needs_restart && !self.in_flight.is_empty()
        {
            return Next::Wait;
        }
        match self.queue.front() {
            // The sequence could not be mended, for want of an identity.
            _ if self.needs_restart => Next::Identify,
            Some(batch) if batch.stamp.is_some() => match self.in_flight.is_empty() {
                true => Next::Send(batch.len()),
                false => Next::Wait,
            },
            _ if self.is_unresolved => Next::Wait,
            _ if self.sequences.producer().is_none() => Next::Identify,
            Some(batch) => Next::Send(batch.len()),
            None => match self.open {
                Some(Open { number, is_ripe: true, is_sealing: false, .. }) if self.early.is_empty() => {
                    Next::Seal(number)
                }
                _ => Next::Wait,
            },
        }
    }

    /// Takes the first of the queue, stamped, to be sent over `link`.
    pub(super) fn send(&mut self, link: u64) -> Option<&mut Batch> {
        let mut batch = self.queue.pop_front()?;
        if batch.stamp.is_none() {
            let producer = self.sequences.producer()?;
            let stamp: Stamp = self.sequences.stamp(producer, batch.count());
            batch.stamp(stamp);
        }
        batch.attempts += 1;
        self.in_flight.push_back(Flight { batch, link });
        self.in_flight.back_mut().map(|flight| &mut flight.batch)
    }

    /// Takes the batches out of the queue that have had their time, oldest first.
    pub(super) fn expire(&mut self, timeout: Duration, now: Instant) -> Vec<Batch> {
        let expired = self.queue.iter().take_while(|batch| batch.created + timeout <= now).count();
        self.queue.drain(..expired).collect()
    }

    /// Notes a failure, and until when to wait for it. Failures within one backoff count once.
    pub(super) fn back_off(&mut self, now: Instant, delay: impl FnOnce(u32) -> Duration) {
        if self.not_before.is_none_or(|at| at <= now) {
            self.not_before = Some(now + delay(self.failures));
            self.failures += 1;
        }
    }
}
