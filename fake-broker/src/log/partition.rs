//! One partition's log: batches in the order of their offsets, each as its producer encoded it.
//!
//! A broker changes little in a batch: its base offset and leader epoch, which lie outside the checksum, and on a topic
//! with `LogAppendTime` its timestamp. Everything else is read back byte for byte.
//!
//! ```text
//!   start_offset        last_stable_offset   high_watermark          end_offset
//!        │ readable by all      │ uncommitted       │ not everywhere      │
//!   ─────┴──────────────────────┴───────────────────┴─────────────────────┘
//! ```
//!
//! All replicas share this one log: a follower that lags has a shorter view of it (`crate::partition`).

use bytes::{Bytes, BytesMut};
use krafka_protocol::records::{self, AbortedTxn, Batch};

use super::aborted::AbortedTransactions;
use super::epochs::{EpochEnd, LeaderEpochs};
use super::producers::Producers;
use super::segments::Segments;
use crate::topics::TopicSettings;

/// The log of a partition.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log {
    pub(super) batches: Vec<Stored>,
    pub(super) segments: Segments,
    pub(super) start_offset: i64,
    pub(super) end_offset: i64,
    pub(super) high_watermark: i64,
    /// What lies below was compacted.
    pub(super) first_dirty_offset: i64,
    epochs: LeaderEpochs,
    pub(crate) producers: Producers,
    pub(super) aborted: AbortedTransactions,
}

/// A batch in the log, with its base offset set.
#[derive(Clone, Debug)]
pub(super) struct Stored {
    pub(super) base_offset: i64,
    pub(super) last_offset: i64,
    pub(super) max_timestamp: i64,
    /// When it came, by the broker's clock.
    pub(super) written_ms: i64,
    pub(super) bytes: Bytes,
}

/// What an append gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Appended {
    /// The offset of the batch's first record.
    pub(crate) base_offset: i64,
    /// The first offset after the batch: it is committed when the high watermark is there.
    pub(crate) next_offset: i64,
    /// The broker's time on a topic with `LogAppendTime`, else -1.
    pub(crate) log_append_time_ms: i64,
}

impl Log {
    /// The first offset that is still there.
    pub(crate) fn start_offset(&self) -> i64 {
        self.start_offset
    }

    /// The offset of the next record.
    pub(crate) fn end_offset(&self) -> i64 {
        self.end_offset
    }

    /// The first offset that a consumer does not see.
    pub(crate) fn high_watermark(&self) -> i64 {
        self.high_watermark
    }

    /// The first offset that a consumer of committed records does not see.
    pub(crate) fn last_stable_offset(&self) -> i64 {
        let end = self.high_watermark;
        let first = self.producers.first_undecided(end).map_or(end, |first| first.max(self.start_offset));
        first.min(end)
    }

    /// The aborted transactions that a reader of `from..end` must skip.
    pub(crate) fn aborted(&self, from: i64, end: i64) -> impl Iterator<Item = &AbortedTxn> {
        self.aborted.overlapping(from, end)
    }

    /// Takes note of how far all replicas in sync are. The high watermark never goes back. Says if it moved.
    pub(crate) fn raise_high_watermark(&mut self, offset: i64) -> bool {
        let raised = offset.min(self.end_offset) > self.high_watermark;
        if raised {
            self.high_watermark = offset.min(self.end_offset);
            self.producers.forget_decided(self.high_watermark);
        }
        raised
    }

    /// Starts a leader's epoch: what is written from now on is written in it.
    pub(crate) fn begin_epoch(&mut self, epoch: i32) {
        self.epochs.assign(epoch, self.end_offset);
    }

    /// Appends a batch that was found valid, under the newest leader epoch.
    pub(crate) fn append(&mut self, batch: &Batch, settings: &TopicSettings, now_ms: i64) -> Appended {
        const WHOLE: &str = "a batch that was read has a header";
        let header = batch.header();
        let base_offset = self.end_offset;
        let log_append_time_ms = if settings.log_append_time { now_ms } else { -1 };
        let mut bytes = BytesMut::from(&batch.bytes()[..]);
        records::assign_offsets(&mut bytes, base_offset, self.epochs.latest().unwrap_or(0)).expect(WHOLE);
        if settings.log_append_time {
            records::set_log_append_time(&mut bytes, now_ms).expect(WHOLE);
        }
        let last_offset = base_offset + i64::from(header.last_offset_delta);
        let max_timestamp = if settings.log_append_time { now_ms } else { header.max_timestamp };
        self.segments.add(base_offset, bytes.len(), max_timestamp, settings, now_ms);
        let bytes = bytes.freeze();
        self.batches.push(Stored { base_offset, last_offset, max_timestamp, written_ms: now_ms, bytes: bytes.clone() });
        self.end_offset = last_offset + 1;
        let written = Batch::new(bytes).expect(WHOLE);
        if let Some(aborted) = self.producers.appended(&written, log_append_time_ms) {
            self.aborted.push(aborted);
        }
        Appended { base_offset, next_offset: self.end_offset, log_append_time_ms }
    }

    /// Reads whole batches below `limit_offset` from the one that holds `from` on, at most `max_bytes` of them.
    ///
    /// Like Kafka, which sends a stretch of a file, it cuts the last batch where the bytes end. The first batch comes
    /// whole whatever its size when `at_least_one` is set, and not at all when it does not fit otherwise.
    pub(crate) fn read(&self, from: i64, limit_offset: i64, max_bytes: usize, at_least_one: bool) -> Bytes {
        let first = self.batches.partition_point(|batch| batch.last_offset < from);
        // Like Kafka, which reads one file: not beyond the segment that the first batch is in.
        let segment_end = self.batches.get(first).map_or(self.end_offset, |batch| self.segment_end(batch.base_offset));
        let limit_offset = limit_offset.min(segment_end);
        let end = self.batches.partition_point(|batch| batch.last_offset < limit_offset);
        let Some(batches) = self.batches.get(first..end).filter(|batches| !batches.is_empty()) else {
            return Bytes::new();
        };
        let head = batches[0].bytes.len();
        if head > max_bytes && !at_least_one {
            return Bytes::new();
        }
        let room = max_bytes.max(head);
        if batches.len() == 1 || room == head {
            return batches[0].bytes.clone();
        }
        let mut slice = BytesMut::with_capacity(room.min(head * batches.len()));
        for batch in batches {
            let left = room - slice.len();
            if left == 0 {
                break;
            }
            slice.extend_from_slice(&batch.bytes[..batch.bytes.len().min(left)]);
        }
        slice.freeze()
    }

    /// The offset after the last batch of which [`Log::read`] gave something, when it gave `len` bytes from `from` on.
    pub(crate) fn end_of_read(&self, from: i64, len: usize) -> i64 {
        let first = self.batches.partition_point(|batch| batch.last_offset < from);
        let mut end = from;
        let mut left = len;
        for batch in &self.batches[first..] {
            if left == 0 {
                break;
            }
            left = left.saturating_sub(batch.bytes.len());
            end = batch.last_offset + 1;
        }
        end
    }

    /// The batches from the one that holds `from` on, each with its base offset.
    pub(crate) fn batches_from(&self, from: i64) -> impl Iterator<Item = &Bytes> {
        let first = self.batches.partition_point(|batch| batch.last_offset < from);
        self.batches[first..].iter().map(|batch| &batch.bytes)
    }

    /// The batches that have a record at `timestamp` or later, of the first segment that has any: Kafka looks no
    /// further.
    pub(crate) fn batches_since(&self, timestamp: i64) -> impl Iterator<Item = &Bytes> {
        let since = move |batch: &&Stored| batch.max_timestamp >= timestamp;
        let segment_end = self.batches.iter().find(since).map_or(0, |batch| self.segment_end(batch.base_offset));
        let segment = self.batches.iter().take_while(move |batch| batch.base_offset < segment_end);
        segment.filter(since).map(|batch| &batch.bytes)
    }

    /// The highest timestamp of any record, and the batch that has it first.
    pub(crate) fn max_timestamp(&self) -> Option<(i64, &Bytes)> {
        // Of equals the first counts, and `max_by_key` would return the last.
        let newest = self.batches.iter().rev().max_by_key(|batch| batch.max_timestamp)?;
        Some((newest.max_timestamp, &newest.bytes))
    }

    /// The leader epoch that the record at `offset` was written in.
    pub(crate) fn epoch_of(&self, offset: i64) -> Option<i32> {
        self.epochs.of_offset(offset)
    }

    /// Where a leader epoch ends.
    pub(crate) fn end_of_epoch(&self, epoch: i32) -> EpochEnd {
        self.epochs.end_of(epoch, self.end_offset)
    }

    /// Where the newest leader epoch begins.
    pub(crate) fn epoch_start(&self) -> i64 {
        self.epochs.latest_start()
    }

    /// Deletes all records below `offset`, which is not beyond the high watermark: the start offset is exact, the bytes
    /// go by whole segments.
    pub(crate) fn delete_before(&mut self, offset: i64) {
        self.start_offset = offset.clamp(self.start_offset, self.high_watermark.max(self.start_offset));
        self.epochs.truncate_start(self.start_offset);
        self.segments.delete_before(self.start_offset);
        let first = self.segments.ranges(self.end_offset).next().map_or(self.end_offset, |(base, _)| base);
        let gone = self.batches.partition_point(|batch| batch.base_offset < first);
        self.batches.drain(..gone);
        self.aborted.delete_before(self.start_offset);
    }

    /// Loses all batches from the one that holds `offset` on. What is known of epochs and producers is what the batches
    /// that are left tell, as on a replica that never had the others.
    pub(crate) fn truncate(&mut self, offset: i64) {
        let kept = self.batches.partition_point(|batch| batch.last_offset < offset);
        self.batches.truncate(kept);
        // Batches below the start stay for as long as their segment does: it does not end before it begins.
        let end_offset = self.batches.last().map_or(0, |batch| batch.last_offset + 1);
        self.end_offset = end_offset.max(self.start_offset);
        self.high_watermark = self.high_watermark.min(self.end_offset);
        self.first_dirty_offset = self.first_dirty_offset.min(self.end_offset);
        self.epochs.truncate(self.end_offset);
        let batches = &self.batches;
        self.segments.truncate(self.end_offset, |base| {
            batches.iter().filter(|batch| batch.base_offset >= base).map(|batch| batch.bytes.len()).sum()
        });
        self.aborted.truncate(self.end_offset);
        self.producers.clear();
        for batch in self.batches.iter().filter_map(|batch| Batch::new(batch.bytes.clone()).ok()) {
            self.producers.appended(&batch, -1);
        }
    }

    /// Whether an offset lies in an older segment than `end`, which is behind it.
    pub(crate) fn is_in_older_segment(&self, offset: i64, end: i64) -> bool {
        let segment_end = self.segment_end(offset);
        (self.start_offset..end).contains(&offset) && segment_end <= end && segment_end <= self.segments.active_base()
    }

    /// Where the segments begin and when each was written last, for consumers of Kafka before 0.10.1: the oldest first,
    /// and at last the end of the log, at `now_ms`.
    pub(crate) fn segment_starts(&self, now_ms: i64) -> Vec<(i64, i64)> {
        let written = |range| self.segment(range).iter().map(|batch| batch.written_ms).max();
        let starts = self.segments.ranges(self.end_offset);
        let starts = starts.filter_map(|range| Some((range.0.max(self.start_offset), written(range)?)));
        starts.chain([(self.end_offset, now_ms)]).collect()
    }

    /// Whether nothing was ever written, or all of it is gone.
    pub(crate) fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    /// The batches of a segment.
    pub(super) fn segment(&self, (base, end): (i64, i64)) -> &[Stored] {
        let first = self.batches.partition_point(|batch| batch.base_offset < base);
        let after = self.batches.partition_point(|batch| batch.base_offset < end);
        &self.batches[first..after]
    }

    /// Where the segment that holds `offset` ends.
    fn segment_end(&self, offset: i64) -> i64 {
        self.segments.ranges(self.end_offset).find(|&(_, end)| offset < end).map_or(self.end_offset, |(_, end)| end)
    }
}

#[cfg(test)]
mod tests {
    use krafka_protocol::compression::Compressor;
    use krafka_protocol::records::BatchBuilder;

    use super::*;

    fn append(log: &mut Log) {
        let mut builder = BatchBuilder::new();
        builder.try_append::<&str, &str>(1, None, Some(b"v"), &[]).expect("there is room");
        let bytes = builder.seal(&mut Compressor::none()).expect("a batch").bytes();
        log.append(&Batch::new(bytes).expect("a batch"), &TopicSettings::default(), 1);
    }

    /// Found by the laws, when compactions came to them: a leader that had lost its end after its beginning was deleted
    /// ended before it began.
    #[test]
    fn log_does_not_end_before_it_begins() {
        let mut log = Log::default();
        log.begin_epoch(0);
        (0..4).for_each(|_| append(&mut log));
        log.raise_high_watermark(4);
        log.delete_before(3);

        log.truncate(1);

        assert_eq!((log.start_offset(), log.high_watermark(), log.end_offset()), (3, 3, 3));
        append(&mut log);
        assert_eq!(log.end_offset(), 4);
    }

    /// KIP-320: a client that read in an epoch of which nothing is left is not told that it is there.
    #[test]
    fn epochs_of_what_is_cut_off_are_forgotten() {
        let mut log = Log::default();
        for epoch in 0..3 {
            log.begin_epoch(epoch);
            append(&mut log);
        }

        log.truncate(1);

        assert_eq!(log.end_of_epoch(0), EpochEnd { epoch: 0, end_offset: 1 });
        for gone in [1, 2] {
            assert_eq!(log.end_of_epoch(gone), EpochEnd::UNDEFINED, "nothing is left of {gone}");
            assert_eq!(log.epoch_of(i64::from(gone)), Some(0), "what comes there is not of {gone}");
        }
    }
}
