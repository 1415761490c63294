//! One partition's log: batches in the order of their offsets, each as its producer encoded it.
//!
//! A broker changes little in a batch: its base offset and leader epoch, which lie outside the checksum, and on a topic
//! with `LogAppendTime` its timestamp. Everything else is read back byte for byte.

use bytes::{Bytes, BytesMut};
use krafka_protocol::records::{self, Batch, BatchHeader};

use super::epochs::{EpochEnd, LeaderEpochs};
use super::producers::Producers;

/// The log of a partition. All of its replicas are in step, so that the high watermark is the end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log {
    batches: Vec<Stored>,
    start_offset: i64,
    end_offset: i64,
    epochs: LeaderEpochs,
    pub(crate) producers: Producers,
}

/// A batch in the log, with its base offset set.
#[derive(Clone, Debug)]
struct Stored {
    last_offset: i64,
    max_timestamp: i64,
    bytes: Bytes,
}

/// What an append gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Appended {
    /// The offset of the batch's first record.
    pub(crate) base_offset: i64,
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
        self.end_offset
    }

    /// The first offset that a consumer of committed records does not see.
    pub(crate) fn last_stable_offset(&self) -> i64 {
        self.end_offset
    }

    /// Starts a leader's epoch: what is written from now on is written in it.
    pub(crate) fn begin_epoch(&mut self, epoch: i32) {
        self.epochs.assign(epoch, self.end_offset);
    }

    /// Appends a batch that was found valid, under the newest leader epoch.
    pub(crate) fn append(&mut self, batch: &Batch, log_append_time_ms: Option<i64>) -> Appended {
        const WHOLE: &str = "a batch that was read has a header";
        let header = batch.header();
        let base_offset = self.end_offset;
        let mut stored = BytesMut::from(&batch.bytes()[..]);
        records::assign_offsets(&mut stored, base_offset, self.epochs.latest().unwrap_or(0)).expect(WHOLE);
        if let Some(time) = log_append_time_ms {
            records::set_log_append_time(&mut stored, time).expect(WHOLE);
        }
        let last_offset = base_offset + i64::from(header.last_offset_delta);
        self.batches.push(Stored {
            last_offset,
            max_timestamp: log_append_time_ms.unwrap_or(header.max_timestamp),
            bytes: stored.freeze(),
        });
        self.end_offset = last_offset + 1;
        let appended = Appended { base_offset, log_append_time_ms: log_append_time_ms.unwrap_or(-1) };
        self.producers.appended(header, base_offset, appended.log_append_time_ms);
        appended
    }

    /// Reads whole batches below `limit_offset` from the one that holds `from` on, at most `max_bytes` of them.
    ///
    /// Like Kafka, which sends a stretch of a file, it cuts the last batch where the bytes end. The first batch comes
    /// whole whatever its size when `at_least_one` is set, and not at all when it does not fit otherwise.
    pub(crate) fn read(&self, from: i64, limit_offset: i64, max_bytes: usize, at_least_one: bool) -> Bytes {
        let first = self.batches.partition_point(|batch| batch.last_offset < from);
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

    /// The batches from the one that holds `from` on, each with its base offset.
    pub(crate) fn batches_from(&self, from: i64) -> impl Iterator<Item = &Bytes> {
        let first = self.batches.partition_point(|batch| batch.last_offset < from);
        self.batches[first..].iter().map(|batch| &batch.bytes)
    }

    /// The first batch that has a record at `timestamp` or later.
    pub(crate) fn batches_since(&self, timestamp: i64) -> impl Iterator<Item = &Bytes> {
        self.batches.iter().filter(move |batch| batch.max_timestamp >= timestamp).map(|batch| &batch.bytes)
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

    /// Deletes all records below `offset`, as retention does: whole batches go, the start offset is exact.
    pub(crate) fn delete_before(&mut self, offset: i64) {
        self.start_offset = offset.clamp(self.start_offset, self.end_offset);
        let kept = self.batches.partition_point(|batch| batch.last_offset < self.start_offset);
        self.batches.drain(..kept);
    }

    /// Loses all batches from the one that holds `offset` on. What is known of epochs and producers is what the batches
    /// that are left tell, as on a replica that never had the others.
    pub(crate) fn truncate(&mut self, offset: i64) {
        let kept = self.batches.partition_point(|batch| batch.last_offset < offset);
        self.batches.truncate(kept);
        self.end_offset = self.batches.last().map_or(self.start_offset, |batch| batch.last_offset + 1);
        self.epochs.truncate(self.end_offset);
        self.producers.clear();
        for header in self.batches.iter().filter_map(|batch| BatchHeader::peek(&batch.bytes).ok()) {
            self.producers.appended(&header, header.base_offset, -1);
        }
    }
}
