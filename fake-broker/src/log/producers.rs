//! What a partition remembers of its idempotent producers: enough to refuse a gap, to recognise a repetition, and to
//! know which transactions are open.
//!
//! Per producer id the leader keeps the epoch, the sequences of the last five batches, and where the open transaction
//! begins, as Kafka's `ProducerStateManager` does. Five is why a client may have five requests in flight and no more: a
//! batch that is repeated after five others were written is not recognised, it is out of order.
//!
//! A batch of a transaction is taken only if the transaction has written here before, or if the coordinator was asked
//! about it ([`Producers::begin_verification`]).
//!
//! The state is part of the log: it survives a move of the leader, since every replica builds it from the same batches.

use std::collections::{BTreeMap, VecDeque};

use krafka_protocol::ErrorCode;
use krafka_protocol::compression::Decompressor;
use krafka_protocol::records::{AbortedTxn, Batch, BatchHeader, ControlRecord};

use crate::producer_ids::IdAndEpoch;

/// How many batches of a producer are remembered per partition.
const REMEMBERED_BATCHES: usize = 5;
/// The version of transactions from which on the marker of one has a higher epoch than its records (KIP-890).
const MARKERS_BUMP_EPOCHS: i16 = 2;

/// The producers of one partition, by producer id.
#[derive(Clone, Debug, Default)]
pub(crate) struct Producers {
    entries: BTreeMap<i64, Entry>,
    /// Producers whose next batch begins a transaction here, and was or is being asked about.
    verifications: BTreeMap<i64, Verification>,
    /// Where each transaction begins that is open, or was ended above the high watermark: with the offset of its end.
    undecided: BTreeMap<i64, Option<i64>>,
    /// When producers that had not been heard of were last forgotten.
    swept_ms: i64,
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

/// A mark that ends a transaction, about to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Marker {
    pub(crate) producer_id: i64,
    pub(crate) producer_epoch: i16,
    pub(crate) commit: bool,
    /// The leader epoch of the coordinator's partition: an older coordinator must not undo what a newer one decided.
    pub(crate) coordinator_epoch: i32,
    /// The version of the transaction.
    pub(crate) version: i16,
}

/// What a partition's leader tells of a producer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ActiveProducer {
    pub(crate) producer_id: i64,
    pub(crate) producer_epoch: i16,
    pub(crate) last_sequence: i32,
    pub(crate) last_timestamp: i64,
    pub(crate) coordinator_epoch: i32,
    /// Where the open transaction begins, or -1.
    pub(crate) open_since: i64,
}

/// The part of a batch's header that says who wrote it, and as which of his.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    producer_id: i64,
    /// Counts the incarnations of the producer; an older one is refused.
    producer_epoch: i16,
    /// The sequence of the batch's first record; a coordinator writes without.
    base_sequence: i32,
    /// The distance from the first record to the last.
    last_offset_delta: i32,
    is_transactional: bool,
}

#[derive(Clone, Debug)]
struct Entry {
    producer_epoch: i16,
    /// Oldest first.
    batches: VecDeque<Remembered>,
    /// The first offset of the open transaction.
    open_since: Option<i64>,
    /// The epoch of the coordinator that ended the last transaction, or -1.
    coordinator_epoch: i32,
    last_timestamp: i64,
}

#[derive(Clone, Copy, Debug)]
struct Remembered {
    base_sequence: i32,
    last_sequence: i32,
    base_offset: i64,
    timestamp: i64,
}

/// A batch that the coordinator was asked about. It outlives a refusal: whatever the producer sends next must not
/// begin after the batch that was refused (KAFKA-15591).
#[derive(Clone, Copy, Debug)]
struct Verification {
    producer_epoch: i16,
    lowest_sequence: i32,
    /// Whether each transaction of the producer has an epoch of its own, and so begins with sequence 0.
    bumps_epochs: bool,
    since_ms: i64,
}

impl Producers {
    /// Judges a client's batch before it is appended, and takes no note of it.
    ///
    /// An epoch before the newest is refused, so is a sequence that does not follow the last one, or that does not
    /// begin a new epoch with 0. A producer that the partition does not know may begin anywhere: its earlier batches
    /// may have been deleted (KIP-360).
    pub(crate) fn check(&self, header: &BatchHeader) -> Check {
        Stamp::of(header).map_or(Check::Append, |stamp| self.judge(&stamp))
    }

    /// Whether the coordinator must be asked if the transaction of a batch may write here: if so, the caller asks, and
    /// appends the batch only if the coordinator agrees.
    ///
    /// # Errors
    ///
    /// `INVALID_PRODUCER_EPOCH` for an epoch before the newest: nobody is asked about a producer that is fenced.
    pub(crate) fn begin_verification(
        &mut self,
        producer: IdAndEpoch,
        base_sequence: i32,
        bumps_epochs: bool,
        wall_ms: i64,
    ) -> Result<bool, ErrorCode> {
        let IdAndEpoch { producer_id, producer_epoch } = producer;
        if let Some(entry) = self.entries.get(&producer_id) {
            if producer_epoch < entry.producer_epoch {
                return Err(ErrorCode::INVALID_PRODUCER_EPOCH);
            }
            if producer_epoch == entry.producer_epoch && entry.open_since.is_some() {
                return Ok(false);
            }
        }
        let fresh = Verification { producer_epoch, lowest_sequence: base_sequence, bumps_epochs, since_ms: wall_ms };
        let known = self.verifications.entry(producer_id).or_insert(fresh);
        if producer_epoch > known.producer_epoch {
            *known = fresh;
        } else if producer_epoch == known.producer_epoch {
            known.lowest_sequence = known.lowest_sequence.min(base_sequence);
        }
        Ok(true)
    }

    /// Takes note of a batch that is in the log now; `log_append_time` is the broker's time, or -1. An aborted
    /// transaction that had records here, and that the batch ends, is returned.
    pub(crate) fn appended(&mut self, batch: &Batch, log_append_time: i64) -> Option<AbortedTxn> {
        let header = batch.header();
        let timestamp = if log_append_time >= 0 { log_append_time } else { header.max_timestamp };
        if !header.attributes.is_control() {
            if let Some(stamp) = Stamp::of(header) {
                self.remember(&stamp, header.base_offset, timestamp);
            }
            return None;
        }
        let records = batch.records(&mut Decompressor::default()).ok()?;
        let record = records.iter().next()?.ok()?;
        let (commit, coordinator_epoch) = match ControlRecord::parse(record.key, record.value).ok()? {
            ControlRecord::Abort { coordinator_epoch } => (false, coordinator_epoch),
            ControlRecord::Commit { coordinator_epoch } => (true, coordinator_epoch),
            _ => return None,
        };
        let BatchHeader { producer_id, producer_epoch, base_offset, .. } = *header;
        let marker = Marker { producer_id, producer_epoch, commit, coordinator_epoch, version: 0 };
        self.marked(&marker, base_offset, timestamp)
    }

    /// Judges a marker before it is appended.
    ///
    /// # Errors
    ///
    /// `INVALID_PRODUCER_EPOCH` and `TRANSACTION_COORDINATOR_FENCED` if a newer producer or coordinator was here.
    pub(crate) fn check_marker(&self, marker: &Marker) -> Result<(), ErrorCode> {
        let Some(entry) = self.entries.get(&marker.producer_id) else { return Ok(()) };
        let (epoch, last) = (marker.producer_epoch, entry.producer_epoch);
        // The epoch of such a marker is above that of the records, unless it is repeated, or there is none above.
        let bumps = marker.version >= MARKERS_BUMP_EPOCHS;
        let repeats = epoch == last && (entry.open_since.is_none() || epoch == i16::MAX);
        if epoch < last || (bumps && epoch == last && !repeats) {
            return Err(ErrorCode::INVALID_PRODUCER_EPOCH);
        }
        if marker.coordinator_epoch < entry.coordinator_epoch {
            return Err(ErrorCode::TRANSACTION_COORDINATOR_FENCED);
        }
        Ok(())
    }

    /// The first offset whose transaction is not decided below `high_watermark`.
    pub(crate) fn first_undecided(&self, high_watermark: i64) -> Option<i64> {
        let is_open = |end: &Option<i64>| end.is_none_or(|end| end >= high_watermark);
        self.undecided.iter().find(|(_, end)| is_open(end)).map(|(&first, _)| first)
    }

    /// Forgets where transactions began that are decided below `high_watermark`.
    pub(crate) fn forget_decided(&mut self, high_watermark: i64) {
        self.undecided.retain(|_, end| end.is_none_or(|end| end >= high_watermark));
    }

    /// All producers that are remembered, by their ids.
    pub(crate) fn active(&self) -> impl Iterator<Item = ActiveProducer> {
        self.entries.iter().map(|(&producer_id, entry)| ActiveProducer {
            producer_id,
            producer_epoch: entry.producer_epoch,
            last_sequence: entry.batches.back().map_or(-1, |batch| batch.last_sequence),
            last_timestamp: entry.last_timestamp,
            coordinator_epoch: entry.coordinator_epoch,
            open_since: entry.open_since.unwrap_or(-1),
        })
    }

    /// Forgets the producers that had been silent for `expiration_ms` at the time `sweep_ms`: no transaction of theirs
    /// is open, and their last batch has a timestamp that is as old. That is the time which the client gave it.
    pub(crate) fn expire(&mut self, sweep_ms: i64, expiration_ms: i64) {
        if sweep_ms <= self.swept_ms {
            return;
        }
        self.swept_ms = sweep_ms;
        let limit = sweep_ms.saturating_sub(expiration_ms);
        self.entries.retain(|_, entry| entry.open_since.is_some() || entry.last_timestamp > limit);
        self.verifications.retain(|_, verification| verification.since_ms > limit);
    }

    /// Forgets all producers, as a broker does after `producer.id.expiration.ms` without a batch of theirs. Those with
    /// an open transaction stay.
    pub(crate) fn forget_idle(&mut self) {
        self.entries.retain(|_, entry| entry.open_since.is_some());
        self.verifications.clear();
    }

    /// Forgets all producers and transactions: the log is about to be read anew.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.verifications.clear();
        self.undecided.clear();
    }

    fn judge(&self, stamp: &Stamp) -> Check {
        let entry = self.entries.get(&stamp.producer_id);
        let same_epoch = entry.filter(|entry| entry.producer_epoch == stamp.producer_epoch);
        if let Some(known) = same_epoch.and_then(|entry| entry.batches.iter().find(|batch| batch.is(stamp))) {
            return Check::Duplicate { base_offset: known.base_offset, timestamp: known.timestamp };
        }
        if entry.is_some_and(|entry| stamp.producer_epoch < entry.producer_epoch) {
            return Check::Refuse(ErrorCode::INVALID_PRODUCER_EPOCH);
        }
        let is_open = same_epoch.is_some_and(|entry| entry.open_since.is_some());
        let verification = self.verifications.get(&stamp.producer_id);
        if stamp.is_transactional && !is_open && verification.is_none() {
            return Check::Refuse(ErrorCode::INVALID_TXN_STATE);
        }
        if !self.is_in_order(stamp, verification) {
            return Check::Refuse(ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER);
        }
        if entry.is_some_and(|entry| entry.open_since.is_some()) && !stamp.is_transactional {
            return Check::Refuse(ErrorCode::INVALID_TXN_STATE);
        }
        Check::Append
    }

    fn is_in_order(&self, stamp: &Stamp, verification: Option<&Verification>) -> bool {
        let entry = self.entries.get(&stamp.producer_id);
        if let Some(verification) = verification {
            let is_blank = entry.is_none_or(|entry| entry.batches.is_empty());
            if verification.bumps_epochs && stamp.base_sequence != 0 && is_blank {
                return false;
            }
            if stamp.base_sequence > verification.lowest_sequence {
                return false;
            }
        }
        let Some(entry) = entry else { return true };
        if stamp.producer_epoch != entry.producer_epoch {
            return stamp.base_sequence == 0;
        }
        let last = entry.batches.back().map_or(-1, |batch| batch.last_sequence);
        stamp.base_sequence == following(last, 1)
    }

    fn marked(&mut self, marker: &Marker, offset: i64, timestamp: i64) -> Option<AbortedTxn> {
        let Marker { producer_id, producer_epoch, commit, coordinator_epoch, .. } = *marker;
        self.verifications.remove(&producer_id);
        let entry = self.entries.entry(producer_id).or_insert_with(|| Entry::new(producer_epoch));
        if entry.producer_epoch != producer_epoch {
            entry.producer_epoch = producer_epoch;
            entry.batches.clear();
        }
        entry.coordinator_epoch = coordinator_epoch;
        entry.last_timestamp = timestamp;
        let first_offset = entry.open_since.take()?;
        self.undecided.insert(first_offset, Some(offset));
        let open = self.undecided.iter().find(|(_, end)| end.is_none());
        let last_stable_offset = open.map_or(offset + 1, |(&first, _)| first);
        (!commit).then_some(AbortedTxn { producer_id, first_offset, last_offset: offset, last_stable_offset })
    }

    fn remember(&mut self, stamp: &Stamp, base_offset: i64, timestamp: i64) {
        let entry = self.entries.entry(stamp.producer_id).or_insert_with(|| Entry::new(stamp.producer_epoch));
        if entry.producer_epoch != stamp.producer_epoch {
            entry.producer_epoch = stamp.producer_epoch;
            entry.batches.clear();
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
        entry.last_timestamp = timestamp;
        if stamp.is_transactional {
            self.verifications.remove(&stamp.producer_id);
            if entry.open_since.is_none() {
                entry.open_since = Some(base_offset);
                self.undecided.insert(base_offset, None);
            }
        }
    }
}

impl Marker {
    /// The batch that a broker writes.
    pub(crate) fn to_batch(self, wall_ms: i64) -> Batch {
        const SMALL: &str = "a marker has a few bytes";
        let Self { producer_id, producer_epoch, coordinator_epoch, .. } = self;
        let record = if self.commit {
            ControlRecord::Commit { coordinator_epoch }
        } else {
            ControlRecord::Abort { coordinator_epoch }
        };
        let bytes = record.to_batch(producer_id, producer_epoch, wall_ms).expect(SMALL);
        Batch::new(bytes.freeze()).expect(SMALL)
    }
}

impl Entry {
    fn new(producer_epoch: i16) -> Self {
        let batches = VecDeque::new();
        Self { producer_epoch, batches, open_since: None, coordinator_epoch: -1, last_timestamp: -1 }
    }
}

impl Stamp {
    /// The stamp of a batch, if its producer is idempotent.
    fn of(header: &BatchHeader) -> Option<Self> {
        let BatchHeader { producer_id, producer_epoch, base_sequence, last_offset_delta, attributes, .. } = *header;
        let is_transactional = attributes.is_transactional();
        let stamp = Self { producer_id, producer_epoch, base_sequence, last_offset_delta, is_transactional };
        (producer_id >= 0).then_some(stamp)
    }

    /// The sequence of the batch's last record; that of no sequence is none.
    fn last_sequence(&self) -> i32 {
        if self.base_sequence < 0 { -1 } else { following(self.base_sequence, self.last_offset_delta) }
    }
}

impl Remembered {
    fn is(&self, stamp: &Stamp) -> bool {
        self.base_sequence == stamp.base_sequence && self.last_sequence == stamp.last_sequence()
    }
}

/// The sequence some places further on; after the largest number comes 0.
fn following(sequence: i32, places: i32) -> i32 {
    sequence.wrapping_add(places) & i32::MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUT_OF_ORDER: Check = Check::Refuse(ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER);
    const SEVEN: IdAndEpoch = IdAndEpoch { producer_id: 7, producer_epoch: 0 };
    const OLD_EPOCH: Check = Check::Refuse(ErrorCode::INVALID_PRODUCER_EPOCH);

    fn stamp(producer_epoch: i16, base_sequence: i32, count: i32) -> Stamp {
        Stamp { producer_id: 7, producer_epoch, base_sequence, last_offset_delta: count - 1, is_transactional: false }
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

    fn in_transaction(producer_epoch: i16, base_sequence: i32) -> Stamp {
        Stamp { is_transactional: true, ..stamp(producer_epoch, base_sequence, 1) }
    }

    fn marker(producer_epoch: i16, version: i16) -> Marker {
        Marker { producer_id: 7, producer_epoch, commit: false, coordinator_epoch: 3, version }
    }

    #[test]
    fn transaction_is_asked_about_once() {
        let mut producers = Producers::default();
        assert_eq!(producers.judge(&in_transaction(0, 0)), Check::Refuse(ErrorCode::INVALID_TXN_STATE));

        assert_eq!(producers.begin_verification(SEVEN, 0, false, 0), Ok(true));
        assert_eq!(producers.judge(&in_transaction(0, 0)), Check::Append);
        producers.remember(&in_transaction(0, 0), 5, 0);

        assert_eq!(producers.begin_verification(SEVEN, 1, false, 0), Ok(false));
        assert_eq!(producers.judge(&in_transaction(0, 1)), Check::Append);
        assert_eq!(producers.judge(&stamp(0, 1, 1)), Check::Refuse(ErrorCode::INVALID_TXN_STATE), "not in it");
        assert_eq!(producers.first_undecided(6), Some(5));
    }

    /// KAFKA-15591: what was refused first must come first.
    #[test]
    fn batch_must_not_begin_after_one_that_was_not_verified() {
        let mut producers = Producers::default();
        producers.begin_verification(SEVEN, 0, false, 0).expect("nobody is fenced");
        producers.begin_verification(SEVEN, 1, false, 0).expect("nobody is fenced");

        assert_eq!(producers.judge(&in_transaction(0, 1)), OUT_OF_ORDER);
        assert_eq!(producers.judge(&in_transaction(0, 0)), Check::Append);
    }

    /// KIP-890: with an epoch for each transaction, the first batch of an unknown producer has sequence 0.
    #[test]
    fn unknown_producer_of_version_2_begins_at_zero() {
        let mut producers = Producers::default();
        producers.begin_verification(SEVEN, 4, true, 0).expect("nobody is fenced");

        assert_eq!(producers.judge(&in_transaction(0, 4)), OUT_OF_ORDER);
    }

    #[test]
    fn marker_ends_the_transaction_and_tells_of_an_abort() {
        let mut producers = Producers::default();
        producers.remember(&in_transaction(0, 0), 5, 0);

        let aborted = producers.marked(&marker(0, 0), 6, 0);

        let told = aborted.map(|txn| (txn.first_offset, txn.last_offset, txn.last_stable_offset));
        assert_eq!(told, Some((5, 6, 7)));
        assert_eq!(producers.first_undecided(6), Some(5), "its end is not on all replicas");
        assert_eq!(producers.first_undecided(7), None);
        assert_eq!(producers.marked(&marker(0, 0), 7, 0), None, "there was nothing to abort");
        assert_eq!(producers.judge(&in_transaction(0, 1)), Check::Refuse(ErrorCode::INVALID_TXN_STATE));
    }

    /// Epochs and versions of markers at a producer with epoch 4 that has a transaction open, and at one that has not.
    #[test]
    fn markers_of_old_epochs_are_refused() {
        let mut open = Producers::default();
        open.remember(&in_transaction(4, 0), 0, 0);
        let mut idle = open.clone();
        idle.marked(&marker(4, 0), 1, 0);
        let fenced = Err(ErrorCode::INVALID_PRODUCER_EPOCH);

        for (epoch, version, at_open, at_idle) in [
            (3, 0, fenced, fenced),
            (4, 0, Ok(()), Ok(())),
            (5, 0, Ok(()), Ok(())),
            (3, 2, fenced, fenced),
            (4, 2, fenced, Ok(())),
            (5, 2, Ok(()), Ok(())),
        ] {
            assert_eq!(open.check_marker(&marker(epoch, version)), at_open, "{epoch} {version}");
            assert_eq!(idle.check_marker(&marker(epoch, version)), at_idle, "{epoch} {version}");
        }
        let old = Marker { coordinator_epoch: 2, ..marker(4, 0) };
        assert_eq!(idle.check_marker(&old), Err(ErrorCode::TRANSACTION_COORDINATOR_FENCED));
    }

    #[test]
    fn silent_producers_are_forgotten_but_not_in_a_transaction() {
        let mut producers = Producers::default();
        producers.remember(&in_transaction(0, 0), 0, 100);
        producers.remember(&Stamp { producer_id: 8, ..stamp(0, 0, 1) }, 1, 100);
        producers.remember(&Stamp { producer_id: 9, ..stamp(0, 0, 1) }, 2, 200);

        producers.expire(1_100, 1_000);

        assert_eq!(producers.active().map(|producer| producer.producer_id).collect::<Vec<_>>(), [7, 9]);
    }
}
