//! The configs of one topic that change how the cluster behaves, ready to be used.

use std::collections::BTreeMap;

use krafka_protocol::Str;
use krafka_protocol::compression::Compression;

use super::{definition, topic_table};
use crate::java;

/// What a topic's configs say, together with the broker's where the topic says nothing. It is worked out anew whenever
/// either changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TopicSettings {
    /// Whether `cleanup.policy` has `compact`.
    pub(crate) compacted: bool,
    /// Whether `cleanup.policy` has `delete`.
    pub(crate) deletes: bool,
    /// The codec that batches are stored in; none keeps what the producer took.
    pub(crate) compression: Option<Compression>,
    pub(crate) delete_retention_ms: i64,
    /// Whether timestamps are the broker's.
    pub(crate) log_append_time: bool,
    pub(crate) max_compaction_lag_ms: i64,
    pub(crate) max_decompressed_message_bytes: i32,
    pub(crate) max_message_bytes: i32,
    pub(crate) min_compaction_lag_ms: i64,
    /// `min.cleanable.dirty.ratio` in millionths.
    pub(crate) min_dirty_ppm: u32,
    pub(crate) min_insync_replicas: usize,
    /// The most bytes that are kept, or -1.
    pub(crate) retention_bytes: i64,
    /// For how long records are kept, or -1.
    pub(crate) retention_ms: i64,
    pub(crate) segment_bytes: usize,
    pub(crate) segment_ms: i64,
    /// How far ahead of the broker's time a timestamp may be.
    pub(crate) timestamp_after_max_ms: i64,
    /// How far behind the broker's time a timestamp may be.
    pub(crate) timestamp_before_max_ms: i64,
    /// Whether share groups may use the topic for the records that they give up.
    pub(crate) takes_dead_letters: bool,
    /// Whether a replica out of sync may lead.
    pub(crate) unclean_leader_election: bool,
    /// What was set by name for this topic.
    pub(crate) given: BTreeMap<Str, Str>,
}

impl TopicSettings {
    /// Works out the settings of a topic for which `given` was set; `inherited` knows what the others are.
    pub(crate) fn new(given: BTreeMap<Str, Str>, inherited: impl Fn(&str) -> Option<Str>) -> Self {
        let text = |name: &str| given.get(name).cloned().or_else(|| inherited(name)).unwrap_or_default();
        // What is set was checked when it was set, so that it is a number of the right type.
        let number = |name: &str| text(name).trim().parse::<i64>().unwrap_or(0);
        let small = |name: &str| i32::try_from(number(name)).unwrap_or(i32::MAX);
        let size = |name: &str| usize::try_from(number(name)).unwrap_or(usize::MAX);
        let policies = text("cleanup.policy");
        let policies = definition::list(&policies);
        let ratio = java::parse_double(&text("min.cleanable.dirty.ratio")).unwrap_or(0.5);
        // Nothing is more than what is no number: such a log is never dirty enough.
        let min_dirty_ppm =
            if ratio.is_nan() { u32::MAX } else { (ratio.clamp(0.0, 1.0) * 1_000_000.0).round() as u32 };
        // Tests of Kafka's own give segments a size that nobody else may. Below 0 no batch fits.
        let segment_bytes = match given.contains_key(topic_table::HIDDEN) {
            true => usize::try_from(number(topic_table::HIDDEN)).unwrap_or(0),
            false => size("segment.bytes"),
        };
        Self {
            compacted: policies.contains(&"compact"),
            deletes: policies.contains(&"delete"),
            compression: codec(text("compression.type").trim()),
            delete_retention_ms: number("delete.retention.ms"),
            log_append_time: text("message.timestamp.type").trim() == "LogAppendTime",
            max_compaction_lag_ms: number("max.compaction.lag.ms"),
            max_decompressed_message_bytes: small("max.decompressed.message.bytes"),
            max_message_bytes: small("max.message.bytes"),
            min_compaction_lag_ms: number("min.compaction.lag.ms"),
            min_dirty_ppm,
            min_insync_replicas: size("min.insync.replicas"),
            retention_bytes: number("retention.bytes"),
            retention_ms: number("retention.ms"),
            segment_bytes,
            segment_ms: number("segment.ms"),
            takes_dead_letters: text("errors.deadletterqueue.group.enable").trim().eq_ignore_ascii_case("true"),
            timestamp_after_max_ms: number("message.timestamp.after.max.ms"),
            timestamp_before_max_ms: number("message.timestamp.before.max.ms"),
            unclean_leader_election: text("unclean.leader.election.enable").trim().eq_ignore_ascii_case("true"),
            given,
        }
    }
}

impl Default for TopicSettings {
    /// The settings of a topic for which nothing is set, on the newest Kafka as it comes.
    fn default() -> Self {
        let newest = |name: &str| topic_table::TOPIC.iter().rev().find(|config| config.name == name)?.default;
        Self::new(BTreeMap::new(), |name| newest(name).map(Str::from_static))
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
