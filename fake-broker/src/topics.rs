//! The topics of a cluster: their ids, names, settings and partitions.

use std::collections::{BTreeMap, BTreeSet};

use krafka_protocol::compression::Compression;
use krafka_protocol::{Str, Uuid};

pub(crate) use crate::partition::Partition;

/// The longest topic name: Kafka makes a directory of it, with room for the partition.
const MAX_NAME_LENGTH: usize = 249;

/// All topics, by id and by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Topics {
    by_id: BTreeMap<Uuid, Topic>,
    ids: BTreeMap<Str, Uuid>,
}

/// A topic.
#[derive(Clone, Debug)]
pub(crate) struct Topic {
    pub(crate) id: Uuid,
    pub(crate) name: Str,
    pub(crate) internal: bool,
    pub(crate) settings: TopicSettings,
    pub(crate) partitions: Vec<Partition>,
}

/// The settings of a topic that change how the cluster behaves, and the others as they were given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TopicSettings {
    pub(crate) max_message_bytes: i32,
    pub(crate) min_insync_replicas: usize,
    pub(crate) log_append_time: bool,
    /// Whether `cleanup.policy` names `compact`.
    pub(crate) compacted: bool,
    /// Whether `cleanup.policy` names `delete`.
    pub(crate) deletes: bool,
    /// The codec that batches are stored in; none keeps what the producer took.
    pub(crate) compression: Option<Compression>,
    pub(crate) delete_retention_ms: i64,
    pub(crate) max_compaction_lag_ms: i64,
    pub(crate) min_compaction_lag_ms: i64,
    /// `min.cleanable.dirty.ratio` in millionths.
    pub(crate) min_dirty_ppm: u32,
    /// The most bytes that are kept, or -1.
    pub(crate) retention_bytes: i64,
    /// For how long records are kept, or -1.
    pub(crate) retention_ms: i64,
    pub(crate) segment_bytes: usize,
    pub(crate) segment_ms: i64,
    pub(crate) timestamp_after_max_ms: i64,
    pub(crate) timestamp_before_max_ms: i64,
    /// Whether a replica out of sync may lead.
    pub(crate) unclean_leader_election: bool,
    /// What was set by name at creation, to be echoed and described.
    pub(crate) given: BTreeMap<Str, Str>,
}

impl Topics {
    /// Adds a topic, whose name and id are new.
    pub(crate) fn insert(&mut self, topic: Topic) {
        let previous = self.ids.insert(topic.name.clone(), topic.id);
        assert!(previous.is_none(), "a topic is created once");
        self.by_id.insert(topic.id, topic);
    }

    /// Removes a topic with all that is in it.
    pub(crate) fn remove(&mut self, id: Uuid) -> Option<Topic> {
        let topic = self.by_id.remove(&id)?;
        self.ids.remove(&topic.name);
        Some(topic)
    }

    /// The topic of that name.
    pub(crate) fn by_name(&self, name: &str) -> Option<&Topic> {
        self.by_id.get(self.ids.get(name)?)
    }

    /// The topic with that id.
    pub(crate) fn by_id(&self, id: Uuid) -> Option<&Topic> {
        self.by_id.get(&id)
    }

    /// The topic with that id, to change it.
    pub(crate) fn by_id_mut(&mut self, id: Uuid) -> Option<&mut Topic> {
        self.by_id.get_mut(&id)
    }

    /// The topic that a request names: by id where its version has ids, else by name.
    pub(crate) fn named(&self, name: &str, id: Uuid) -> Option<&Topic> {
        if id.is_zero() { self.by_name(name) } else { self.by_id(id) }
    }

    /// The name of the topic with that id.
    pub(crate) fn name_of(&self, id: &Uuid) -> Option<Str> {
        self.by_id.get(id).map(|topic| topic.name.clone())
    }

    /// A partition of the topic of that name.
    pub(crate) fn partition(&self, name: &str, index: i32) -> Option<&Partition> {
        self.by_name(name)?.partition(index)
    }

    /// A partition of the topic of that name, to change it.
    pub(crate) fn partition_mut(&mut self, name: &str, index: i32) -> Option<&mut Partition> {
        self.by_id.get_mut(self.ids.get(name)?)?.partition_mut(index)
    }

    /// All topics in the order of their names.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Topic> {
        self.ids.values().filter_map(|id| self.by_id.get(id))
    }

    /// All topics, to change them, in the order of their ids.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Topic> {
        self.by_id.values_mut()
    }

    /// The topic whose name differs from `name` only in dots and underscores: Kafka's metrics take the two for one.
    pub(crate) fn colliding(&self, name: &str) -> Option<&Str> {
        let unify = |name: &str| name.replace('.', "_");
        let unified = unify(name);
        self.ids.keys().find(|other| other.contains(['.', '_']) && unify(other) == unified)
    }
}

impl Topic {
    /// The partition with that index.
    pub(crate) fn partition(&self, index: i32) -> Option<&Partition> {
        self.partitions.get(usize::try_from(index).ok()?)
    }

    /// The partition with that index, to change it.
    pub(crate) fn partition_mut(&mut self, index: i32) -> Option<&mut Partition> {
        self.partitions.get_mut(usize::try_from(index).ok()?)
    }

    /// Adds partitions on the replicas given, of which `live` are up.
    pub(crate) fn grow(&mut self, assignments: Vec<Vec<i32>>, live: &BTreeSet<i32>) {
        self.partitions.extend(assignments.into_iter().map(|replicas| Partition::new(replicas, live)));
    }

    /// The partitions with their indexes.
    pub(crate) fn indexed(&self) -> impl Iterator<Item = (i32, &Partition)> {
        (0_i32..).zip(&self.partitions)
    }
}

impl TopicSettings {
    /// Does what a setting says, if it is one that changes how the cluster behaves. The value was found valid.
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        let value = value.trim();
        let number = |default: i64| value.parse().unwrap_or(default);
        let default = Self::default();
        match name {
            "cleanup.policy" => {
                let has = |policy| value.split(',').any(|one| one.trim() == policy);
                (self.compacted, self.deletes) = (has("compact"), has("delete"));
            }
            "compression.type" => self.compression = codec(value),
            "delete.retention.ms" => self.delete_retention_ms = number(default.delete_retention_ms),
            "max.compaction.lag.ms" => self.max_compaction_lag_ms = number(default.max_compaction_lag_ms),
            "max.message.bytes" => self.max_message_bytes = value.parse().unwrap_or(default.max_message_bytes),
            "message.timestamp.after.max.ms" => self.timestamp_after_max_ms = number(default.timestamp_after_max_ms),
            "message.timestamp.before.max.ms" => self.timestamp_before_max_ms = number(default.timestamp_before_max_ms),
            "message.timestamp.type" => self.log_append_time = value == "LogAppendTime",
            "min.cleanable.dirty.ratio" => {
                let ratio = value.parse::<f64>().unwrap_or(0.5).clamp(0.0, 1.0);
                self.min_dirty_ppm = (ratio * 1_000_000.0).round() as u32;
            }
            "min.compaction.lag.ms" => self.min_compaction_lag_ms = number(default.min_compaction_lag_ms),
            "min.insync.replicas" => self.min_insync_replicas = value.parse().unwrap_or(default.min_insync_replicas),
            "retention.bytes" => self.retention_bytes = number(default.retention_bytes),
            "retention.ms" => self.retention_ms = number(default.retention_ms),
            "segment.bytes" => self.segment_bytes = value.parse().unwrap_or(default.segment_bytes),
            "segment.ms" => self.segment_ms = number(default.segment_ms),
            "unclean.leader.election.enable" => self.unclean_leader_election = value.eq_ignore_ascii_case("true"),
            _ => {}
        }
    }
}

/// The codec of that name in `compression.type`: none for `producer`.
fn codec(name: &str) -> Option<Compression> {
    match name {
        "uncompressed" => Some(Compression::None),
        "gzip" => Some(Compression::Gzip),
        "snappy" => Some(Compression::Snappy),
        "lz4" => Some(Compression::Lz4),
        "zstd" => Some(Compression::Zstd),
        _ => None,
    }
}

impl Default for TopicSettings {
    fn default() -> Self {
        Self {
            // Kafka's default: one mebibyte and the overhead of a batch.
            max_message_bytes: 1_048_588,
            min_insync_replicas: 1,
            log_append_time: false,
            compacted: false,
            deletes: true,
            compression: None,
            delete_retention_ms: 86_400_000,
            max_compaction_lag_ms: i64::MAX,
            min_compaction_lag_ms: 0,
            min_dirty_ppm: 500_000,
            retention_bytes: -1,
            retention_ms: 604_800_000,
            segment_bytes: 1 << 30,
            segment_ms: 604_800_000,
            timestamp_after_max_ms: 3_600_000,
            timestamp_before_max_ms: i64::MAX,
            unclean_leader_election: false,
            given: BTreeMap::new(),
        }
    }
}

/// Says what is wrong with a topic's name, in Kafka's words.
///
/// # Errors
///
/// If Kafka would refuse the name.
pub fn validate_name(name: &str) -> Result<(), String> {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    if name.is_empty() {
        return Err("Topic name is invalid: the empty string is not allowed".to_owned());
    }
    if name == "." || name == ".." {
        return Err(format!("Topic name is invalid: '{name}' is not allowed"));
    }
    if name.len() > MAX_NAME_LENGTH {
        return Err(format!(
            "Topic name is invalid: the length of '{name}' is longer than the max allowed length {MAX_NAME_LENGTH}"
        ));
    }
    if !name.bytes().all(legal) {
        return Err(format!(
            "Topic name is invalid: '{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' \
             and '-'"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_kafkas_rules() {
        assert!(validate_name("orders.eu-1_x").is_ok());
        for name in ["", ".", "..", "a b", "ü", &"x".repeat(250)] {
            assert!(validate_name(name).is_err(), "{name:?}");
        }
    }
}
