//! What holds of every partition at any time, and from one moment to the next.

use std::collections::BTreeMap;
use std::fmt;

use krafka_protocol::compression::Decompressor;
use krafka_protocol::records::{AbortedTxn, Batch, BatchHeader};
use krafka_protocol::{Bytes, Uuid};

use super::Happening;
use crate::cluster::Cluster;
use crate::operations::{Durability, Operation};
use crate::partition::Partition;
use crate::state::State;

/// What was seen of the partitions a moment ago: of each by its topic's id and its index.
pub(super) struct Seen<'a> {
    partitions: BTreeMap<(Uuid, i32), Was>,
    sights: &'a mut Sights,
}

/// What the runs must have come across for the laws to be worth anything, and how often they did.
#[derive(Debug, Default)]
pub(super) struct Sights {
    open_transactions: u64,
    ended_transactions: u64,
    waiting_for_replicas: u64,
    truncations: u64,
    compactions: u64,
    compactions_held_back: u64,
}

/// Whether a partition was compacted because somebody asked for it.
fn is_compaction(happening: &Happening, what: &What<'_>) -> bool {
    let Happening::Change(Operation::Compact { topic, partition }) = happening else { return false };
    topic == what.topic && *partition == what.index
}

/// A partition in words, which are made only for who needs them.
struct What<'a> {
    topic: &'a str,
    index: i32,
    partition: &'a Partition,
}

impl fmt::Display for What<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}: {:?}", self.topic, self.index, self.partition)
    }
}

/// How a partition was.
struct Was {
    leader_epoch: i32,
    start_offset: i64,
    end_offset: i64,
    high_watermark: i64,
    stable_offset: i64,
    aborted: Vec<AbortedTxn>,
    /// Whether something that is committed is not stable.
    is_open: bool,
    /// The batches below the high watermark, by base offset.
    committed: BTreeMap<i64, Bytes>,
}

impl Sights {
    /// Says what the runs have not come across.
    pub(super) fn assert_all(&self) {
        let Self { open_transactions, ended_transactions, waiting_for_replicas, truncations, .. } = self;
        let all = [open_transactions, ended_transactions, waiting_for_replicas, truncations];
        let compactions = [&self.compactions, &self.compactions_held_back];
        assert!(all.into_iter().chain(compactions).all(|sight| *sight > 0), "the runs see too little: {self:?}");
    }
}

impl<'a> Seen<'a> {
    /// Nothing yet.
    pub(super) fn new(sights: &'a mut Sights) -> Self {
        Self { partitions: BTreeMap::new(), sights }
    }

    /// Forgets what it saw: the cluster goes back to what it was before.
    pub(super) fn forget(&mut self) {
        self.partitions.clear();
    }

    /// Checks every partition, alone and against what it was before this happened.
    pub(super) fn assert_sound(&mut self, cluster: &Cluster, happening: &Happening) {
        let state = cluster.state();
        let mut seen = BTreeMap::new();
        for topic in state.topics.iter() {
            let is_compacted = topic.settings.compacted;
            for (index, partition) in topic.indexed() {
                let what = What { topic: &topic.name, index, partition };
                assert_roles(state, partition, &what);
                assert_offsets(partition, &what);
                assert_log(partition, &what);
                if !is_compacted {
                    assert_producers(partition, &what);
                }
                let is = Was::of(partition);
                if let Some(was) = self.partitions.get(&(topic.id, index)) {
                    is.assert_follows(was, happening, is_compacted, &what);
                    self.sights.truncations += u64::from(is.end_offset < was.end_offset);
                    let is_compaction = is_compaction(happening, &what);
                    let is_less = is.committed.len() < was.committed.len();
                    self.sights.compactions += u64::from(is_compaction && is_less);
                    self.sights.compactions_held_back += u64::from(is_compaction && was.is_open);
                    self.sights.ended_transactions += u64::from(was.is_open && !is.is_open);
                }
                self.sights.open_transactions += u64::from(is.is_open);
                self.sights.waiting_for_replicas += u64::from(is.high_watermark < is.end_offset);
                seen.insert((topic.id, index), is);
            }
        }
        self.partitions = seen;
    }
}

/// Who leads is up and in sync; who is in sync holds a replica.
fn assert_roles(state: &State, partition: &Partition, what: &What<'_>) {
    assert!(partition.leader.is_none_or(|leader| state.nodes.is_up(leader)), "{what}");
    assert!(partition.leader.is_none_or(|leader| partition.isr.contains(&leader)), "{what}");
    assert!(partition.isr.iter().all(|node| partition.replicas.contains(node)), "{what}");
    assert!(!partition.isr.is_empty() || partition.leader.is_none() && partition.rules().knows_eligible, "{what}");
    assert!(partition.eligible.replicas.iter().all(|node| partition.replicas.contains(node)), "{what}");
    assert!(partition.eligible.replicas.iter().all(|node| !partition.isr.contains(node)), "{what}");
}

/// The offsets are in their order, and all who are in sync have what is committed.
fn assert_offsets(partition: &Partition, what: &What<'_>) {
    let log = &partition.log;
    let (start, stable) = (log.start_offset(), log.last_stable_offset());
    let (committed, end) = (log.high_watermark(), log.end_offset());
    assert!(start <= committed && stable <= committed && committed <= end, "{what}");
    for node in partition.isr.iter().chain(&partition.eligible.replicas) {
        let replica = partition.replica(*node).expect("who is in sync holds a replica");
        assert!(replica.end_offset >= committed, "node {node} may lead and lacks what is committed: {what}");
    }
}

/// Batches are whole, in order, written in epochs that rise, and nothing behind the beginning of a transaction that is
/// open is stable.
fn assert_log(partition: &Partition, what: &What<'_>) {
    let log = &partition.log;
    let (start, committed) = (log.start_offset(), log.high_watermark());
    let (mut next, mut epoch) = (i64::MIN, 0);
    let mut open = BTreeMap::new();
    for batch in log.batches_from(start) {
        let header = BatchHeader::peek(batch).expect("a batch in the log is whole");
        assert!(header.base_offset >= next, "{what}");
        next = header.base_offset + i64::from(header.last_offset_delta) + 1;
        assert!(next <= log.end_offset(), "{what}");
        assert!((epoch..=partition.leader_epoch).contains(&header.partition_leader_epoch), "{what}");
        epoch = header.partition_leader_epoch;
        let known = log.epoch_of(header.base_offset.max(start));
        assert_eq!(known, Some(epoch), "the epoch at {}: {what}", header.base_offset);
        if header.attributes.is_control() {
            // An end that is not committed is none yet.
            if header.base_offset < committed {
                open.remove(&header.producer_id);
            }
        } else if header.attributes.is_transactional() {
            open.entry(header.producer_id).or_insert(header.base_offset);
        }
    }
    let first = open.into_values().min().unwrap_or(i64::MAX).max(start);
    assert!(log.last_stable_offset() <= first, "{what}");
    // Of a log that has lost its beginning, the producers may know more than it tells.
    if start == 0 {
        assert_eq!(log.last_stable_offset(), first.min(committed), "{what}");
    }
}

/// What is known of producers is what their last batches tell, in a log that has lost nothing.
fn assert_producers(partition: &Partition, what: &What<'_>) {
    let log = &partition.log;
    if log.start_offset() > 0 {
        return;
    }
    let mut last = BTreeMap::new();
    for batch in log.batches_from(0) {
        let header = BatchHeader::peek(batch).expect("a batch in the log is whole");
        if header.has_producer_id() && !header.attributes.is_control() {
            last.insert(header.producer_id, header.base_sequence.wrapping_add(header.last_offset_delta));
        }
    }
    for producer in log.producers.active().filter(|producer| producer.last_sequence >= 0) {
        assert_eq!(last.get(&producer.producer_id), Some(&producer.last_sequence), "{producer:?}: {what}");
    }
}

impl Was {
    fn of(partition: &Partition) -> Self {
        let log = &partition.log;
        let header = |batch: &Bytes| BatchHeader::peek(batch).expect("a batch in the log is whole");
        let batches = log.batches_from(log.start_offset()).map(|batch| (header(batch), batch));
        let committed = batches.filter(|(header, _)| header.base_offset < log.high_watermark());
        Self {
            leader_epoch: partition.leader_epoch,
            start_offset: log.start_offset(),
            end_offset: log.end_offset(),
            high_watermark: log.high_watermark(),
            stable_offset: log.last_stable_offset(),
            aborted: log.aborted(log.start_offset(), log.end_offset()).copied().collect(),
            is_open: log.last_stable_offset() < log.high_watermark(),
            committed: committed.map(|(header, batch)| (header.base_offset, batch.clone())).collect(),
        }
    }

    /// Epochs and starts never go back. What is committed stays as it is, but for compaction, until it is deleted, or
    /// an unclean election or a test loses it.
    fn assert_follows(&self, was: &Self, happening: &Happening, is_compacted: bool, what: &What<'_>) {
        assert!(self.leader_epoch >= was.leader_epoch, "an epoch goes back, it was {}: {what}", was.leader_epoch);
        assert!(self.start_offset >= was.start_offset, "the start goes back: {what}");
        let is_loss = matches!(
            happening,
            Happening::Change(
                Operation::Truncate { .. } | Operation::Crash { durability: Durability::LoseTail(_), .. }
            )
        );
        if is_loss || self.leader_epoch > was.leader_epoch {
            return;
        }
        assert!(self.high_watermark >= was.high_watermark, "what was committed no longer is: {what}");
        // Compaction goes up to the last stable offset, and takes no more than what has been replaced.
        let is_compaction = is_compaction(happening, what);
        if is_compaction {
            self.assert_keeps_latest(was, what);
        }
        let changes_below = if is_compacted || is_compaction { self.stable_offset } else { i64::MIN };
        let untouched = self.committed.keys().next().into_iter().map(|first| changes_below.max(*first));
        let untouched = untouched.map(|from| from.max(self.start_offset));
        for (offset, batch) in untouched.flat_map(|from| was.committed.range(from..)) {
            assert_eq!(self.committed.get(offset), Some(batch), "what was committed changed at {offset}: {what}");
        }
    }

    /// The last record of each key that was not aborted, and is no tombstone, is where it was.
    fn assert_keeps_latest(&self, was: &Self, what: &What<'_>) {
        let is = self.latest();
        let was = was.latest().into_iter();
        for (key, (offset, _)) in was.filter(|(_, (offset, has_value))| *has_value && *offset >= self.start_offset) {
            // Or it has been replaced meanwhile.
            let is_there = is.get(&key).is_some_and(|(latest, _)| *latest >= offset);
            assert!(is_there, "the last record of {key:?}, at {offset}, is gone: {what}");
        }
    }

    /// The last record of each key that is stable and was not aborted: its offset, and whether it has a value.
    fn latest(&self) -> BTreeMap<Bytes, (i64, bool)> {
        let mut latest = BTreeMap::new();
        for bytes in self.committed.range(..self.stable_offset).map(|(_, bytes)| bytes) {
            let batch = Batch::new(bytes.clone()).expect("a batch in the log is whole");
            let header = *batch.header();
            let is_aborted = |txn: &AbortedTxn| {
                let range = txn.first_offset..=txn.last_offset;
                txn.producer_id == header.producer_id && range.contains(&header.base_offset)
            };
            let is_of_none = !header.attributes.is_transactional() || !self.aborted.iter().any(is_aborted);
            if header.attributes.is_control() || !is_of_none {
                continue;
            }
            let records = batch.records(&mut Decompressor::default()).and_then(|records| records.to_vec());
            for record in records.expect("records that were read when they came") {
                if let Some(key) = record.key {
                    latest.insert(key, (record.offset, record.value.is_some()));
                }
            }
        }
        latest
    }
}
