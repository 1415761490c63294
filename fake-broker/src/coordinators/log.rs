//! What coordinators write into their topics, `__consumer_offsets` and `__transaction_state`, as Kafka writes it.
//!
//! Nothing here is ever read back: the coordinators' memory outlives their nodes (`transactions/`, `groups/`). But
//! tools read these topics, and what they find are the records of the version of Kafka that the node looks like: of
//! offsets that are committed, and of those that are forgotten; of classic groups, whenever a rebalance has ended; and
//! of transactional ids, whenever their state changes.
//!
//! Other than Kafka: groups of the newer protocols write nothing, and neither do the share coordinators. A record is in
//! the log at once, one batch for each request, where Kafka's group coordinator gathers some requests for a moment.
//! Transactional ids and offsets whose time is over are gone from the log when the fake takes note of it; offsets in
//! open transactions leave no tombstone when they are deleted.

use std::collections::BTreeMap;
use std::time::Instant;

use krafka_protocol::compression::Compressor;
use krafka_protocol::coordinator::group::{GroupMetadataKey, GroupRecord, OffsetCommitKey, OffsetCommitValue};
use krafka_protocol::coordinator::transaction::{TransactionLogKey, TransactionLogValue};
use krafka_protocol::coordinator::{Entry, TransactionRecord, Versioned};
use krafka_protocol::records::{Batch, BatchBuilder, NO_HEADERS, Stamp};
use krafka_protocol::{Bytes, Str, Uuid};

use super::{CoordinatorKind, find_on};
use crate::faults::KafkaVersion;
use crate::offsets::Committed;
use crate::producer_ids::IdAndEpoch;
use crate::state::State;

/// What batches say that no producer has written.
const NO_PRODUCER: IdAndEpoch = IdAndEpoch { producer_id: -1, producer_epoch: -1 };
/// What a batch may have before another one is begun, unless it is one record: Kafka's `max.message.bytes`.
const BATCH_BYTES: usize = 1 << 20;
const WRITABLE: &str = "what came in one request can be written";
/// The version of a committed offset's value, and of a classic group's.
const OFFSET_VERSION: i16 = 3;
/// The version that has the topic's id, which Kafka 4.4 writes.
const OFFSET_WITH_ID_VERSION: i16 = 4;
/// The version of an offset with an end of its own.
const OFFSET_WITH_END_VERSION: i16 = 1;

/// Key and value, as they lie in the log.
type Record = (Bytes, Option<Bytes>);

/// A position that a group commits.
#[derive(Clone, Debug)]
pub(crate) struct Commit {
    pub(crate) topic: Str,
    pub(crate) partition: i32,
    pub(crate) committed: Committed,
    /// When it is to be forgotten, in milliseconds since 1970, if the client said so.
    pub(crate) expires_ms: Option<i64>,
}

/// Writes positions that a group commits, as a part of a producer's transaction if there is one.
pub(crate) fn write_commits(
    state: &mut State,
    group: &Str,
    commits: &[Commit],
    producer: Option<IdAndEpoch>,
    now: Instant,
) {
    let index = state.spread.partition_for(CoordinatorKind::Group, group);
    let keeps_ids = version_of_leader(state, CoordinatorKind::Group, index) >= KafkaVersion::V4_4;
    let wall_ms = state.clock.millis(now);
    let record = |commit: &Commit| {
        let version = match commit.expires_ms {
            Some(_) => OFFSET_WITH_END_VERSION,
            None if keeps_ids => OFFSET_WITH_ID_VERSION,
            None => OFFSET_VERSION,
        };
        let message = OffsetCommitValue {
            offset: commit.committed.offset,
            leader_epoch: commit.committed.leader_epoch,
            metadata: commit.committed.metadata.clone(),
            commit_timestamp: wall_ms,
            expire_timestamp: commit.expires_ms.unwrap_or(-1),
            topic_id: state.topics.by_name(&commit.topic).map_or(Uuid::ZERO, |topic| topic.id),
        };
        offset_record(group, &commit.topic, commit.partition, Some(Versioned { version, message }))
    };
    let records: Vec<Record> = commits.iter().map(record).collect();
    append(state, CoordinatorKind::Group, index, &records, producer, now);
}

/// Writes a classic group whose rebalance has ended, if that is not in the log yet.
pub(crate) fn write_group(state: &mut State, group: &Str, now: Instant) {
    let State { groups, clock, .. } = state;
    let Some(message) = groups.take_record(group, |since| clock.millis(since)) else { return };
    let key = GroupMetadataKey { group: group.clone() };
    let value = Some(Versioned { version: OFFSET_VERSION, message });
    let record = GroupRecord::GroupMetadata(Entry { key, value }).encode().expect(WRITABLE);
    let index = state.spread.partition_for(CoordinatorKind::Group, group);
    append(state, CoordinatorKind::Group, index, &[record], None, now);
}

/// Writes how a transactional id stands, if that is not in the log yet.
pub(crate) fn write_transaction(state: &mut State, id: &Str, now: Instant) {
    let is_flexible = state.feature_level("transaction.version") > 0;
    let Some(message) = state.transactions.take_record(id, is_flexible) else { return };
    let value = Some(Versioned { version: i16::from(is_flexible), message });
    append_transaction(state, id, value, now);
}

/// Writes that a transactional id is forgotten.
pub(crate) fn forget_transaction(state: &mut State, id: &Str, now: Instant) {
    append_transaction(state, id, None, now);
}

/// Writes that offsets and groups are forgotten, those that were since the last time.
pub(crate) fn write_forgotten(state: &mut State, now: Instant) {
    let (offsets, groups) = (state.offsets.take_forgotten(), state.groups.take_forgotten());
    // The tombstones of a group, the offsets first, are a batch.
    let mut by_group: BTreeMap<Str, Vec<Record>> = BTreeMap::new();
    for (group, topic, partition) in offsets {
        by_group.entry(group.clone()).or_default().push(offset_record(&group, &topic, partition, None));
    }
    for group in groups {
        let key = GroupMetadataKey { group: group.clone() };
        let record = GroupRecord::GroupMetadata(Entry { key, value: None }).encode().expect(WRITABLE);
        by_group.entry(group).or_default().push(record);
    }
    for (group, records) in by_group {
        let index = state.spread.partition_for(CoordinatorKind::Group, &group);
        append(state, CoordinatorKind::Group, index, &records, None, now);
    }
}

fn append_transaction(state: &mut State, id: &Str, value: Option<Versioned<TransactionLogValue>>, now: Instant) {
    let key = TransactionLogKey { transactional_id: id.clone() };
    let record = TransactionRecord::TransactionLog(Entry { key, value }).encode().expect(WRITABLE);
    let index = state.spread.partition_for(CoordinatorKind::Transaction, id);
    append(state, CoordinatorKind::Transaction, index, &[record], None, now);
}

fn offset_record(group: &Str, topic: &Str, partition: i32, value: Option<Versioned<OffsetCommitValue>>) -> Record {
    let key = OffsetCommitKey { group: group.clone(), topic: topic.clone(), partition };
    GroupRecord::OffsetCommit(Entry { key, value }).encode().expect(WRITABLE)
}

/// Which Kafka the node looks like that leads a partition of a coordinators' topic.
fn version_of_leader(state: &State, kind: CoordinatorKind, index: i32) -> KafkaVersion {
    let leader = find_on(state, kind, index).and_then(|node| state.nodes.find(node));
    leader.map(|node| node.version).unwrap_or_default()
}

/// Appends records to a partition of a coordinators' topic, if there is such a topic: without it, nobody coordinates.
fn append(
    state: &mut State,
    kind: CoordinatorKind,
    index: i32,
    records: &[Record],
    producer: Option<IdAndEpoch>,
    now: Instant,
) {
    let Some(topic) = state.topics.by_name(kind.topic()).map(|topic| topic.id) else { return };
    let wall_ms = state.clock.millis(now);
    let mut records = records.iter().peekable();
    while records.peek().is_some() {
        let mut builder = BatchBuilder::new();
        while let Some((key, value)) = records.next_if(|(key, value)| {
            let len = builder.record_len(wall_ms, Some(key), value.as_deref(), NO_HEADERS);
            builder.is_empty() || builder.encoded_len() + len <= BATCH_BYTES
        }) {
            builder.try_append(wall_ms, Some(key), value.as_deref(), NO_HEADERS).expect(WRITABLE);
        }
        let mut sealed = builder.seal(&mut Compressor::none()).expect(WRITABLE);
        let IdAndEpoch { producer_id, producer_epoch } = producer.unwrap_or(NO_PRODUCER);
        // A group's coordinator does not count what it writes, for a producer or for itself: all of it is the first.
        let base_sequence = if kind == CoordinatorKind::Group { 0 } else { -1 };
        sealed.stamp(Stamp { producer_id, producer_epoch, base_sequence, transactional: producer.is_some() });
        let batch = Batch::new(sealed.bytes()).expect("a sealed batch is one");
        state.append(topic, index, &batch, now);
    }
}
