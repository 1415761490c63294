//! What is in the logs, and what makes records and the memory of producers go.

use krafka_protocol::Bytes;
use krafka_protocol::compression::Decompressor;
use krafka_protocol::records::{Batches, Record};

use super::FakeCluster;

impl FakeCluster {
    /// Returns all records of a partition that a consumer could read.
    ///
    /// # Panics
    ///
    /// If there is no such partition.
    pub fn records(&self, topic: &str, partition: i32) -> Vec<Record> {
        let batches: Option<Vec<Bytes>> = self.look(|state| {
            let log = &state.topics.partition(topic, partition)?.log;
            Some(log.batches_from(log.start_offset()).cloned().collect())
        });
        let batches = batches.unwrap_or_else(|| panic!("there is no partition {topic}-{partition}"));
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

    /// Returns the first offset of a partition that a consumer does not see: where the next record will be, or the
    /// first that a replica in sync does not have.
    pub fn high_watermark(&self, topic: &str, partition: i32) -> Option<i64> {
        self.look(|state| Some(state.topics.partition(topic, partition)?.log.high_watermark()))
    }

    /// Returns a partition's first offset.
    pub fn log_start_offset(&self, topic: &str, partition: i32) -> Option<i64> {
        self.look(|state| Some(state.topics.partition(topic, partition)?.log.start_offset()))
    }

    /// Deletes all records below an offset, as retention does: the partition begins there.
    pub fn delete_records(&self, topic: &str, partition: i32, before: i64) {
        self.control(|state, _| {
            if let Some(id) = state.topics.by_name(topic).map(|topic| topic.id) {
                state.delete_records(id, partition, before);
            }
        });
    }

    /// Deletes what the topics need not keep any longer (`retention.ms`, `retention.bytes`), which otherwise happens
    /// every five minutes.
    pub fn apply_retention(&self) {
        self.control(|state, now| state.apply_retention(now));
    }

    /// Compacts a partition now, up to its last stable offset: whatever its topic's `cleanup.policy` is, and however
    /// dirty it is. A tombstone stays for the topic's `delete.retention.ms` after the first compaction that meets it.
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
    pub fn forget_producers(&self, topic: &str, partition: i32) {
        self.control(|state, _| {
            if let Some(partition) = state.topics.partition_mut(topic, partition) {
                partition.log.producers.clear();
            }
        });
    }
}
