//! The log directories of the nodes: which replica is in which of them.
//!
//! Each node has two. A replica moves between them at once, where Kafka copies it first and shows the copy meanwhile;
//! the disks are always half full.

use std::collections::BTreeMap;

use krafka_protocol::Uuid;

use crate::configs::statics::LOG_DIRS;
use crate::state::State;

/// How many bytes a disk has, and how many are free.
pub(crate) const TOTAL_BYTES: i64 = 256 << 30;
pub(crate) const USABLE_BYTES: i64 = 128 << 30;

/// A replica: the node, the topic and the partition.
type Replica = (i32, Uuid, i32);

/// Where replicas are that were moved.
#[derive(Clone, Debug, Default)]
pub(crate) struct LogDirs {
    moved: BTreeMap<Replica, usize>,
}

impl LogDirs {
    /// The directory that a replica is in, by its place among [`LOG_DIRS`]. Unless it was moved, the partitions of a
    /// topic take turns.
    pub(crate) fn of(&self, replica: Replica) -> usize {
        let by_turns = || usize::try_from(replica.2).unwrap_or(0) % LOG_DIRS.len();
        self.moved.get(&replica).copied().unwrap_or_else(by_turns)
    }

    /// Moves a replica to a directory.
    pub(crate) fn set(&mut self, replica: Replica, dir: usize) {
        self.moved.insert(replica, dir);
    }

    /// Forgets a topic that is no more.
    pub(crate) fn topic_deleted(&mut self, topic: Uuid) {
        self.moved.retain(|(_, other, _), _| *other != topic);
    }
}

impl State {
    /// How many bytes a node has of a partition, and how many offsets it lacks.
    pub(crate) fn replica_size(&self, node: i32, topic: Uuid, index: i32) -> Option<(i64, i64)> {
        let partition = self.topics.by_id(topic)?.partition(index)?;
        let replica = partition.replica(node)?;
        let size: usize = partition.log.batches_from(replica.start_offset).map(bytes::Bytes::len).sum();
        let lag = (partition.log.high_watermark() - replica.end_offset).max(0);
        Some((i64::try_from(size).unwrap_or(i64::MAX), lag))
    }
}
