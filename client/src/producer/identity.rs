//! Who the producer is to the brokers, and the numbers that make a repeated batch harmless.
//!
//! An idempotent producer stamps each batch with its id, its epoch, and the sequence number of the batch's first
//! record; a leader refuses what does not follow on the last batch that it took, and recognises the last five. A
//! stamp is kept across retries. Where a batch failed for good there is a gap that no retry can fill: then the
//! producer moves to the next epoch and numbers what is left from zero, as the Java client does since 2.5.
//!
//! The identity is the producer's, but each partition moves to a new one on its own, when nothing of the old one is
//! on its way to it any more: a batch that is sent again under another epoch is not recognised, and would be written
//! twice.

use std::time::Instant;

/// A producer id and its epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ProducerId {
    pub(super) id: i64,
    pub(super) epoch: i16,
}

impl ProducerId {
    /// What a producer that is not idempotent stamps.
    pub(super) const NONE: Self = Self { id: -1, epoch: -1 };
}

/// What a batch is sent under.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) producer: ProducerId,
    pub(super) base_sequence: i32,
}

/// The identity that a producer has, or is about to get.
#[derive(Debug)]
pub(super) enum Identity {
    /// The producer is not idempotent.
    Unneeded,
    /// A broker must be asked for one, not before the given time (if any).
    Missing { not_before: Option<Instant> },
    /// A broker is being asked.
    Asked,
    /// Present.
    Known(ProducerId),
}

impl Identity {
    pub(super) fn new(idempotent: bool) -> Self {
        if idempotent { Self::Missing { not_before: None } } else { Self::Unneeded }
    }

    /// The identity to stamp with, if there is one.
    pub(super) fn current(&self) -> Option<ProducerId> {
        match self {
            Self::Unneeded => Some(ProducerId::NONE),
            Self::Known(producer) => Some(*producer),
            Self::Missing { .. } | Self::Asked => None,
        }
    }

    /// Whether a broker should be asked now.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        matches!(self, Self::Missing { not_before } if not_before.is_none_or(|at| at <= now))
    }

    /// Moves past the epoch `seen`, unless another partition did already.
    ///
    /// A broker accepts any higher epoch from a producer without transactions, so that nobody need be asked, until
    /// the epochs of this id are used up.
    pub(super) fn bump(&mut self, seen: ProducerId) {
        if let Self::Known(producer) = self
            && *producer == seen
        {
            match producer.epoch.checked_add(1) {
                Some(epoch) if epoch < i16::MAX => producer.epoch = epoch,
                _ => *self = Self::Missing { not_before: None },
            }
        }
    }

    /// Gives up the id of `seen`: somebody else uses it with a newer epoch.
    pub(super) fn renew(&mut self, seen: ProducerId) {
        if matches!(self, Self::Known(producer) if producer.id == seen.id) {
            *self = Self::Missing { not_before: None };
        }
    }
}

/// The sequence numbers of one partition.
#[derive(Debug)]
pub(super) struct Sequences {
    /// The identity that they count under. Nothing is stamped yet if it is `None`.
    producer: Option<ProducerId>,
    /// The next batch's first.
    next: i32,
    /// The one behind the last record that is known to be written.
    acknowledged: i32,
    /// The partition has taken a batch of this producer id.
    is_known: bool,
}

impl Sequences {
    pub(super) fn new() -> Self {
        Self { producer: None, next: 0, acknowledged: 0, is_known: false }
    }

    pub(super) fn producer(&self) -> Option<ProducerId> {
        self.producer
    }

    /// Starts anew under an identity.
    pub(super) fn restart(&mut self, producer: ProducerId) {
        let is_known = self.is_known && self.producer.is_some_and(|before| before.id == producer.id);
        *self = Self { producer: Some(producer), next: 0, acknowledged: 0, is_known };
    }

    /// Whether the partition tells a gap from a beginning: it takes any sequence from a producer that it has never
    /// heard of (KIP-360), and would take the second batch though the first was refused. So the first one goes alone.
    pub(super) fn is_guarded(&self) -> bool {
        self.is_known || self.producer == Some(ProducerId::NONE)
    }

    /// The partition does not know the producer any more, or is another one.
    pub(super) fn forgotten(&mut self) {
        self.is_known = false;
    }

    /// Stamps the next `count` records.
    pub(super) fn stamp(&mut self, producer: ProducerId, count: u32) -> Stamp {
        debug_assert_eq!(self.producer, Some(producer), "a partition restarts before it stamps under another identity");
        if producer == ProducerId::NONE {
            return Stamp { producer, base_sequence: -1 };
        }
        let base_sequence = self.next;
        self.next = later(base_sequence, count);
        Stamp { producer, base_sequence }
    }

    /// `count` records under `stamp` are written.
    pub(super) fn acknowledge(&mut self, stamp: Stamp, count: u32) {
        self.is_known |= self.producer.is_some_and(|producer| producer.id == stamp.producer.id);
        if self.producer == Some(stamp.producer) {
            self.acknowledged = later(stamp.base_sequence, count);
        }
    }

    /// Whether every record that was ever stamped is written.
    pub(super) fn is_whole(&self) -> bool {
        self.acknowledged == self.next
    }
}

/// The sequence number `count` records behind `sequence`. They wrap from `i32::MAX` to 0.
pub(super) fn later(sequence: i32, count: u32) -> i32 {
    ((i64::from(sequence) + i64::from(count)) & i64::from(i32::MAX)) as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(id: i64, epoch: i16) -> (Identity, ProducerId) {
        let producer = ProducerId { id, epoch };
        (Identity::Known(producer), producer)
    }

    /// PR-21.
    #[test]
    fn sequences_wrap_to_zero() {
        assert_eq!(later(i32::MAX, 1), 0);
        assert_eq!(later(i32::MAX - 2, 5), 2, "BR-014: a batch of five at 2147483645 is followed by 2");
        assert_eq!(later(7, 0), 7);
    }

    #[test]
    fn sequences_count_records_and_notice_what_is_missing() {
        let (_, producer) = known(9, 0);
        let mut sequences = Sequences::new();
        sequences.restart(producer);
        let (one, two) = (sequences.stamp(producer, 10), sequences.stamp(producer, 5));
        assert_eq!((one.base_sequence, two.base_sequence), (0, 10));

        sequences.acknowledge(one, 10);
        assert!(!sequences.is_whole());
        sequences.acknowledge(two, 5);
        assert!(sequences.is_whole());
    }

    #[test]
    fn an_answer_to_an_older_epoch_says_nothing_about_the_new_one() {
        let (_, old) = known(9, 0);
        let new = ProducerId { id: 9, epoch: 1 };
        let mut sequences = Sequences::new();
        sequences.restart(old);
        let stamp = sequences.stamp(old, 3);
        sequences.restart(new);
        sequences.stamp(new, 3);

        sequences.acknowledge(stamp, 3);

        assert!(!sequences.is_whole());
    }

    #[test]
    fn partitions_that_fail_together_bump_once() {
        let (mut identity, seen) = known(9, 4);

        identity.bump(seen);
        identity.bump(seen);

        assert_eq!(identity.current(), Some(ProducerId { id: 9, epoch: 5 }));
    }

    /// PR-20.
    #[test]
    fn used_up_epochs_ask_for_a_new_id() {
        let (mut identity, seen) = known(9, i16::MAX - 1);

        identity.bump(seen);

        assert!(identity.current().is_none());
        assert!(matches!(identity, Identity::Missing { not_before: None }));
    }

    #[test]
    fn a_fenced_id_is_given_up_once() {
        let (mut identity, seen) = known(9, 4);
        identity.renew(seen);
        assert!(matches!(identity, Identity::Missing { .. }));

        let (mut identity, _) = known(10, 0);
        identity.renew(seen);

        assert_eq!(identity.current(), Some(ProducerId { id: 10, epoch: 0 }), "renewed already");
    }

    #[test]
    fn a_producer_without_idempotence_stamps_nothing() {
        let mut sequences = Sequences::new();
        sequences.restart(ProducerId::NONE);

        assert_eq!(sequences.stamp(ProducerId::NONE, 3).base_sequence, -1);
        assert_eq!(sequences.stamp(ProducerId::NONE, 3).base_sequence, -1);
        assert!(sequences.is_whole());
    }
}
