//! What is in the logs, and what makes records and the memory of producers go.

use std::ops::Deref;

use krafka_protocol::Bytes;
use krafka_protocol::compression::Decompressor;
use krafka_protocol::records::{Batches, Record};

use super::{FakeCluster, NewRecord};
use crate::operations::Operation;

/// A record in a topic, and the partition that it is in. It is used as the record.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredRecord {
    /// The partition.
    pub partition: i32,
    /// What was stored.
    pub record: Record,
}

impl Deref for StoredRecord {
    type Target = Record;

    fn deref(&self) -> &Record {
        &self.record
    }
}

impl FakeCluster {
    /// Returns all records of a topic that a consumer could read, one partition after the other.
    ///
    /// # Panics
    ///
    /// If there is no such topic.
    #[track_caller]
    pub fn records(&self, topic: &str) -> Vec<StoredRecord> {
        let partitions = self.look(|state| state.topics.by_name(topic).map(|topic| topic.partitions.len()));
        let Some(partitions) = partitions else { panic!("there is no topic {topic}") };
        let of_partition = |partition| {
            let records = self.partition_records(topic, partition).into_iter();
            records.map(move |record| StoredRecord { partition, record })
        };
        (0_i32..).take(partitions).flat_map(of_partition).collect()
    }

    /// Returns all records of a partition that a consumer could read.
    ///
    /// # Panics
    ///
    /// If there is no such partition.
    #[track_caller]
    pub fn partition_records(&self, topic: &str, partition: i32) -> Vec<Record> {
        let batches: Option<Vec<Bytes>> = self.look(|state| {
            let log = &state.topics.partition(topic, partition)?.log;
            Some(log.batches_from(log.start_offset()).cloned().collect())
        });
        let Some(batches) = batches else { panic!("there is no partition {topic}-{partition}") };
        let mut decompressor = Decompressor::default();
        let mut records = Vec::new();
        for batch in batches.into_iter().flat_map(Batches::new).flatten() {
            if batch.header().attributes.is_control() {
                continue;
            }
            let decoded = batch.records(&mut decompressor).expect("a batch was read through before it was appended");
            records.extend(decoded.into_iter().flatten());
        }
        records
    }

    /// Appends a record with the time of now, as if a producer had sent it, and returns its offset. So does a test
    /// give its consumer something to read, poison included.
    ///
    /// # Panics
    ///
    /// If there is no such partition, or nobody leads it.
    #[track_caller]
    pub fn append(&self, topic: &str, partition: i32, key: Option<&[u8]>, value: Option<&[u8]>) -> i64 {
        self.append_record(topic, partition, &NewRecord::of(key, value))
    }

    /// Appends a record with headers, or with another time than that of now, as if a producer had sent it, and returns
    /// its offset.
    ///
    /// **Unstable:** may change in any release.
    ///
    /// # Panics
    ///
    /// If there is no such partition, or nobody leads it.
    #[track_caller]
    pub fn append_record(&self, topic: &str, partition: i32, record: &NewRecord) -> i64 {
        self.try_append_record(topic, partition, record).unwrap_or_else(|reason| panic!("{reason}"))
    }

    /// Appends a record as [`append_record`](Self::append_record) does.
    ///
    /// # Errors
    ///
    /// Why it cannot be done, in words. Nothing has changed then.
    pub(crate) fn try_append_record(&self, topic: &str, partition: i32, record: &NewRecord) -> Result<i64, String> {
        let now_ms = self.control(|state, now| state.clock.millis(now));
        let mut sealed = record.to_batch(now_ms).map_err(|error| error.to_string())?;
        self.try_append_batch(topic, partition, sealed.bytes())
    }

    /// Appends a record batch as it is, and returns the offset of its first record. Nothing but its header is looked
    /// at: its checksum may be wrong, its records may be none. Bytes that are no batch at all are not stored by brokers
    /// either; poison for whoever reads a record's value is appended with [`append`](Self::append).
    ///
    /// # Panics
    ///
    /// If there is no such partition, nobody leads it, or the bytes are not one batch.
    #[track_caller]
    pub fn append_batch(&self, topic: &str, partition: i32, batch: Bytes) -> i64 {
        self.try_append_batch(topic, partition, batch).unwrap_or_else(|reason| panic!("{reason}"))
    }

    /// What no leader takes would be lost when one comes: it has never heard of it.
    fn try_append_batch(&self, topic: &str, partition: i32, batch: Bytes) -> Result<i64, String> {
        let length = batch.len();
        let none = |why: &str| format!("these {length} bytes are not a record batch: {why}");
        let batch = Batches::new(batch).next().ok_or_else(|| none("they end before it does"))?;
        let batch = batch.map_err(|error| none(&error.to_string()))?;
        if batch.bytes().len() < length {
            return Err(none("more bytes follow it, and one batch is appended at a time"));
        }
        let absent = || format!("there is no partition {topic}-{partition}");
        self.control(|state, now| {
            let id = state.topics.by_name(topic).ok_or_else(absent)?.id;
            if state.topics.partition(topic, partition).ok_or_else(absent)?.leader.is_none() {
                return Err(format!("the partition {topic}-{partition} has no leader"));
            }
            state.append(id, partition, &batch, now).map(|appended| appended.base_offset).ok_or_else(absent)
        })
    }

    /// Returns the first offset of a partition that a consumer does not see: where the next record will be, or the
    /// first that a replica in sync does not have.
    pub fn high_watermark(&self, topic: &str, partition: i32) -> Option<i64> {
        self.look(|state| Some(state.topics.partition(topic, partition)?.log.high_watermark()))
    }

    /// Returns a partition's first offset.
    pub fn log_start_offset(&self, topic: &str, partition: i32) -> Option<i64> {
        self.look(|state| Some(state.topics.partition(topic, partition)?.log.start_offset()))
    }

    /// Deletes all records below an offset, as retention does: the partition begins there. -1 is the high watermark,
    /// and an offset that is gone already changes nothing.
    ///
    /// # Panics
    ///
    /// If there is no such partition, or the offset is below -1 or above the high watermark.
    #[track_caller]
    pub fn delete_records(&self, topic: &str, partition: i32, before: i64) {
        self.expect(Operation::DeleteRecords { topic: topic.to_owned(), partition, before });
    }

    /// Deletes what the topics need not keep any longer (`retention.ms`, `retention.bytes`), which otherwise happens
    /// every five minutes.
    ///
    /// **Unstable:** may change in any release.
    pub fn apply_retention(&self) {
        self.control(|state, now| state.apply_retention(now));
    }

    /// Compacts a partition now, up to its last stable offset: whatever its topic's `cleanup.policy` is, and however
    /// dirty it is. A tombstone stays for the topic's `delete.retention.ms` after the first compaction that meets it.
    ///
    /// **Unstable:** may change in any release.
    ///
    /// # Panics
    ///
    /// If there is no such partition.
    pub fn compact(&self, topic: &str, partition: i32) {
        let found = self.control(|state, now| state.compact(topic, partition, now));
        assert!(found, "there is no partition {topic}-{partition}");
    }

    /// Forgets what a partition knows of its idempotent producers, as a broker does after `producer.id.expiration.ms`:
    /// it takes any sequence from each of them then, and recognises no repetition of what came before.
    ///
    /// **Unstable:** may change in any release.
    ///
    /// # Panics
    ///
    /// If there is no such partition.
    #[track_caller]
    pub fn forget_producers(&self, topic: &str, partition: i32) {
        self.expect(Operation::ForgetProducers { topic: topic.to_owned(), partition });
    }
}
