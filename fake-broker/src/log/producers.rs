//! What a partition remembers of its idempotent producers: enough to refuse a gap and to recognise a repetition.
//!
//! Per producer id the leader keeps the epoch and the sequences of the last five batches, as Kafka's
//! `ProducerStateManager` does. Five is why a client may have five requests in flight and no more: a batch that is
//! repeated after five others were written is not recognised, it is out of order.
//!
//! The state is part of the log: it survives a move of the leader, since every replica builds it from the same batches.

use std::collections::{BTreeMap, VecDeque};

use krafka_protocol::ErrorCode;
use krafka_protocol::records::BatchHeader;

/// How many batches of a producer are remembered per partition.
const REMEMBERED_BATCHES: usize = 5;

/// The producers of one partition, by producer id.
#[derive(Clone, Debug, Default)]
pub(crate) struct Producers {
    entries: BTreeMap<i64, Entry>,
    /// The first offset of each producer's open transaction.
    open: BTreeMap<i64, i64>,
}

/// What is to be done with a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Check {
    /// It is the next of its producer, or of nobody in particular: append it.
    Append,
    /// It is in the log already: the producer has not seen the answer, and gets the same one again.
    Duplicate {
        /// The offset that its first record has.
        base_offset: i64,
        /// The greatest timestamp in it.
        timestamp: i64,
    },
    /// It must not be appended.
    Refuse(ErrorCode),
}

/// The part of a batch's header that says who wrote it, and as which of his.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    producer_id: i64,
    /// Counts the incarnations of the producer; an older one is refused.
    producer_epoch: i16,
    /// The sequence of the batch's first record.
    base_sequence: i32,
    /// The distance from the first record to the last.
    last_offset_delta: i32,
}

#[derive(Clone, Debug)]
struct Entry {
    producer_epoch: i16,
    /// Oldest first.
    batches: VecDeque<Remembered>,
}

#[derive(Clone, Copy, Debug)]
struct Remembered {
    base_sequence: i32,
    last_sequence: i32,
    base_offset: i64,
    timestamp: i64,
}

impl Producers {
    /// Judges a batch before it is appended, and takes no note of it.
    ///
    /// An epoch before the newest is refused, so is a sequence that does not follow the last one, or that does not
    /// begin a new epoch with 0. A producer that the partition does not know may begin anywhere: its earlier batches
    /// may have been deleted (KIP-360).
    pub(crate) fn check(&self, header: &BatchHeader) -> Check {
        Stamp::of(header).map_or(Check::Append, |stamp| self.judge(&stamp))
    }

    /// Takes note of a batch that was appended at `base_offset`; `log_append_time` is the broker's time, or -1.
    pub(crate) fn appended(&mut self, header: &BatchHeader, base_offset: i64, log_append_time: i64) {
        let timestamp = if log_append_time >= 0 { log_append_time } else { header.max_timestamp };
        if header.attributes.is_control() {
            self.open.remove(&header.producer_id);
            return;
        }
        if header.attributes.is_transactional() {
            self.open.entry(header.producer_id).or_insert(base_offset);
        }
        if let Some(stamp) = Stamp::of(header) {
            self.remember(&stamp, base_offset, timestamp);
        }
    }

    /// The first offset of the oldest open transaction: from there on nobody knows what will be committed.
    pub(crate) fn first_unstable_offset(&self) -> Option<i64> {
        self.open.values().min().copied()
    }

    /// Forgets all producers, as a broker does after `producer.id.expiration.ms` without a batch of theirs.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.open.clear();
    }

    fn judge(&self, stamp: &Stamp) -> Check {
        let Some(entry) = self.entries.get(&stamp.producer_id) else {
            return Check::Append;
        };
        if stamp.producer_epoch < entry.producer_epoch {
            return Check::Refuse(ErrorCode::INVALID_PRODUCER_EPOCH);
        }
        if stamp.producer_epoch > entry.producer_epoch {
            return in_order(stamp.base_sequence == 0);
        }
        if let Some(known) = entry.batches.iter().find(|b| b.is(stamp)) {
            return Check::Duplicate { base_offset: known.base_offset, timestamp: known.timestamp };
        }
        let last = entry.batches.back().map_or(-1, |b| b.last_sequence);
        in_order(stamp.base_sequence == following(last, 1))
    }

    fn remember(&mut self, stamp: &Stamp, base_offset: i64, timestamp: i64) {
        let fresh = Entry { producer_epoch: stamp.producer_epoch, batches: VecDeque::new() };
        let entry = self.entries.entry(stamp.producer_id).or_insert_with(|| fresh.clone());
        if entry.producer_epoch != stamp.producer_epoch {
            *entry = fresh;
        }
        if entry.batches.len() == REMEMBERED_BATCHES {
            entry.batches.pop_front();
        }
        entry.batches.push_back(Remembered {
            base_sequence: stamp.base_sequence,
            last_sequence: stamp.last_sequence(),
            base_offset,
            timestamp,
        });
    }
}

impl Stamp {
    /// The stamp of a batch, if its producer is idempotent.
    fn of(header: &BatchHeader) -> Option<Self> {
        let BatchHeader { producer_id, producer_epoch, base_sequence, last_offset_delta, .. } = *header;
        (producer_id >= 0).then_some(Self { producer_id, producer_epoch, base_sequence, last_offset_delta })
    }

    /// The sequence of the batch's last record.
    fn last_sequence(&self) -> i32 {
        following(self.base_sequence, self.last_offset_delta)
    }
}

impl Remembered {
    fn is(&self, stamp: &Stamp) -> bool {
        self.base_sequence == stamp.base_sequence && self.last_sequence == stamp.last_sequence()
    }
}

fn in_order(holds: bool) -> Check {
    if holds { Check::Append } else { Check::Refuse(ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER) }
}

/// The sequence some places further on; after the largest number comes 0.
fn following(sequence: i32, places: i32) -> i32 {
    sequence.wrapping_add(places) & i32::MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUT_OF_ORDER: Check = Check::Refuse(ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER);
    const OLD_EPOCH: Check = Check::Refuse(ErrorCode::INVALID_PRODUCER_EPOCH);

    fn stamp(producer_epoch: i16, base_sequence: i32, count: i32) -> Stamp {
        Stamp { producer_id: 7, producer_epoch, base_sequence, last_offset_delta: count - 1 }
    }

    /// A partition that holds one-record batches of these sequences, at offsets 100 and up.
    fn holding(sequences: std::ops::Range<i32>) -> Producers {
        let mut producers = Producers::default();
        for (offset, sequence) in (100..).zip(sequences) {
            producers.remember(&stamp(0, sequence, 1), offset, 5_000 + offset);
        }
        producers
    }

    #[test]
    fn next_sequence_is_appended_and_a_gap_is_not() {
        let producers = holding(0..3);

        assert_eq!(producers.judge(&stamp(0, 3, 10)), Check::Append);
        assert_eq!(producers.judge(&stamp(0, 4, 1)), OUT_OF_ORDER);
    }

    #[test]
    fn last_five_batches_are_recognised_with_their_offsets() {
        let producers = holding(0..6);

        for sequence in 1..6 {
            let offset = 100 + i64::from(sequence);
            let known = Check::Duplicate { base_offset: offset, timestamp: 5_000 + offset };
            assert_eq!(producers.judge(&stamp(0, sequence, 1)), known);
        }
        assert_eq!(producers.judge(&stamp(0, 0, 1)), OUT_OF_ORDER, "the sixth from the end");
    }

    #[test]
    fn duplicate_must_match_as_a_whole() {
        let producers = holding(0..3);

        assert_eq!(producers.judge(&stamp(0, 2, 2)), OUT_OF_ORDER);
    }

    #[test]
    fn new_epoch_begins_at_zero_and_ends_the_old_one() {
        let mut producers = holding(0..3);

        assert_eq!(producers.judge(&stamp(1, 3, 1)), OUT_OF_ORDER);
        assert_eq!(producers.judge(&stamp(1, 0, 1)), Check::Append);
        producers.remember(&stamp(1, 0, 1), 200, 0);
        assert_eq!(producers.judge(&stamp(0, 3, 1)), OLD_EPOCH);
        assert_eq!(producers.judge(&stamp(0, 2, 1)), OLD_EPOCH, "though a duplicate");
    }

    #[test]
    fn unknown_producer_may_begin_anywhere() {
        let mut producers = holding(0..3);

        producers.clear();

        assert_eq!(producers.judge(&stamp(0, 42, 1)), Check::Append);
    }

    #[test]
    fn sequences_wrap_to_zero() {
        let mut producers = Producers::default();
        let last = stamp(0, i32::MAX - 1, 2);
        producers.remember(&last, 0, 0);

        assert_eq!(last.last_sequence(), i32::MAX);
        assert_eq!(producers.judge(&stamp(0, 0, 1)), Check::Append);
        assert_eq!(stamp(0, i32::MAX, 3).last_sequence(), 1);
    }
}
