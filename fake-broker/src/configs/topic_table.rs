//! Every config that a topic has in Kafka 3.9 to 4.4.

use super::definition::{Definition, Kind, Rule};
use crate::faults::KafkaVersion;
use Kind::{Boolean, Double, Int, List, Long, String};
use Rule::{Any, AtLeast, Between, EachOf, GzipLevel, OneOf, ThrottledReplicas};

type Era = (KafkaVersion, KafkaVersion);
const ALL: Era = (KafkaVersion::V3_9, KafkaVersion::V4_4);
const V3: Era = (KafkaVersion::V3_9, KafkaVersion::V3_9);
const UNTIL_4_0: Era = (KafkaVersion::V3_9, KafkaVersion::V4_0);
const SINCE_4_1: Era = (KafkaVersion::V4_1, KafkaVersion::V4_4);
const V4_2: Era = (KafkaVersion::V4_2, KafkaVersion::V4_2);
const V4: Era = (KafkaVersion::V4_0, KafkaVersion::V4_4);
const NEWEST: Era = (KafkaVersion::V4_4, KafkaVersion::V4_4);

const FOR_EVER: &str = "9223372036854775807";
const CODECS: &[&str] = &["uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"];

/// What fits in an array of Java's.
const DECOMPRESSED: Rule = Between(1, 2_147_483_639);

/// The config that Kafka tells of only where it is set.
pub(crate) const HIDDEN: &str = "internal.segment.bytes";

const fn row(
    name: &'static str,
    kind: Kind,
    default: &'static str,
    rule: Rule,
    synonym: Option<&'static str>,
    versions: Era,
    text: &'static str,
) -> Definition {
    Definition { name, kind, default: Some(default), rule, synonym, versions, text }
}

/// The configs of topics, by name.
#[rustfmt::skip]
pub(crate) const TOPIC: &[Definition] = &[
    row("cleanup.policy", List, "delete", EachOf(&["compact", "delete"]), Some("log.cleanup.policy"), ALL,
        "What happens to old records: they are deleted, or superseded ones are compacted away, or both."),
    row("compression.gzip.level", Int, "-1", GzipLevel, Some("compression.gzip.level"), ALL,
        "The level at which the broker compresses with gzip."),
    row("compression.lz4.level", Int, "9", Between(1, 17), Some("compression.lz4.level"), ALL,
        "The level at which the broker compresses with lz4."),
    row("compression.type", String, "producer", OneOf(CODECS), Some("compression.type"), ALL,
        "The codec that batches are stored with; `producer` keeps the one that they came with."),
    row("compression.zstd.level", Int, "3", Between(-131_072, 22), Some("compression.zstd.level"), ALL,
        "The level at which the broker compresses with zstd."),
    row("delete.retention.ms", Long, "86400000", AtLeast(0), Some("log.cleaner.delete.retention.ms"), ALL,
        "How long compaction keeps a tombstone, so that readers see that its key is gone."),
    row("errors.deadletterqueue.group.enable", Boolean, "false", Any, None, NEWEST,
        "Whether share groups may use the topic for records that they gave up."),
    row("file.delete.delay.ms", Long, "60000", AtLeast(0), Some("log.segment.delete.delay.ms"), ALL,
        "How long a deleted file stays on disk."),
    row("flush.messages", Long, FOR_EVER, AtLeast(1), Some("log.flush.interval.messages"), ALL,
        "After how many records the log is forced to disk."),
    row("flush.ms", Long, FOR_EVER, AtLeast(0), Some("log.flush.interval.ms"), ALL,
        "After how long the log is forced to disk."),
    row("follower.replication.throttled.replicas", List, "", ThrottledReplicas, None, ALL,
        "The replicas whose following is held to the throttle of reassignments."),
    row("index.interval.bytes", Int, "4096", AtLeast(0), Some("log.index.interval.bytes"), ALL,
        "How many bytes of records lie between two entries of the offset index."),
    Definition {
        default: None,
        ..row(HIDDEN, Int, "", Any, None, SINCE_4_1, "How big a segment of the log becomes, in tests of Kafka's own.")
    },
    row("leader.replication.throttled.replicas", List, "", ThrottledReplicas, None, ALL,
        "The replicas whose leading is held to the throttle of reassignments."),
    row("local.retention.bytes", Long, "-2", AtLeast(-2), Some("log.local.retention.bytes"), ALL,
        "How much of a tiered log stays on the broker; -2 means as much as `retention.bytes`."),
    row("local.retention.ms", Long, "-2", AtLeast(-2), Some("log.local.retention.ms"), ALL,
        "How long a tiered log stays on the broker; -2 means as long as `retention.ms`."),
    row("max.compaction.lag.ms", Long, FOR_EVER, AtLeast(1), Some("log.cleaner.max.compaction.lag.ms"), ALL,
        "After how long at most a record is compacted."),
    row("max.decompressed.message.bytes", Int, "2147483639", DECOMPRESSED, Some("max.decompressed.message.bytes"),
        V4_2, "The most bytes that a batch may become when it is decompressed."),
    row("max.decompressed.message.bytes", Int, "2147483639", DECOMPRESSED, Some("max.decompressed.message.bytes"),
        NEWEST, "The most bytes that a batch may become when it is decompressed."),
    row("max.message.bytes", Int, "1048588", AtLeast(0), Some("message.max.bytes"), ALL,
        "The most bytes that a batch may have, as it is sent."),
    row("message.downconversion.enable", Boolean, "true", Any, Some("log.message.downconversion.enable"), V3,
        "Whether batches are rewritten for consumers that cannot read them."),
    row("message.format.version", String, "3.0-IV1", Any, Some("log.message.format.version"), V3,
        "The format of records on disk; ignored since Kafka 3."),
    row("message.timestamp.after.max.ms", Long, FOR_EVER, AtLeast(0), Some("log.message.timestamp.after.max.ms"), V3,
        "How far ahead of the broker's time a record's timestamp may be."),
    row("message.timestamp.after.max.ms", Long, "3600000", AtLeast(0), Some("log.message.timestamp.after.max.ms"), V4,
        "How far ahead of the broker's time a record's timestamp may be."),
    row("message.timestamp.before.max.ms", Long, FOR_EVER, AtLeast(0), Some("log.message.timestamp.before.max.ms"),
        ALL, "How far behind the broker's time a record's timestamp may be."),
    row("message.timestamp.difference.max.ms", Long, FOR_EVER, AtLeast(0),
        Some("log.message.timestamp.difference.max.ms"), V3,
        "How far from the broker's time a timestamp may be; replaced by the two configs for before and after."),
    row("message.timestamp.type", String, "CreateTime", OneOf(&["CreateTime", "LogAppendTime"]),
        Some("log.message.timestamp.type"), ALL,
        "Whose time a record has: its producer's, or the broker's when it is appended."),
    row("min.cleanable.dirty.ratio", Double, "0.5", Between(0, 1), Some("log.cleaner.min.cleanable.ratio"), ALL,
        "Which part of a log must be uncompacted before it is worth compacting."),
    row("min.compaction.lag.ms", Long, "0", AtLeast(0), Some("log.cleaner.min.compaction.lag.ms"), ALL,
        "How long a record is safe from compaction."),
    row("min.insync.replicas", Int, "1", AtLeast(1), Some("min.insync.replicas"), ALL,
        "How many replicas must be in sync for a write that asks for all of them."),
    row("preallocate", Boolean, "false", Any, Some("log.preallocate"), ALL,
        "Whether the file of a new segment is given its full size at once."),
    row("remote.copy.lag.bytes", Long, "-1", AtLeast(-1), Some("log.remote.copy.lag.bytes"), NEWEST,
        "How many bytes of a tiered log may wait to be copied away."),
    row("remote.copy.lag.ms", Long, "0", AtLeast(-1), Some("log.remote.copy.lag.ms"), NEWEST,
        "How long a segment of a tiered log may wait to be copied away."),
    row("remote.log.copy.disable", Boolean, "false", Any, None, ALL,
        "Whether a tiered topic has stopped to copy segments away."),
    row("remote.log.delete.on.disable", Boolean, "false", Any, None, ALL,
        "Whether what was copied away is deleted when tiered storage is switched off."),
    row("remote.storage.enable", Boolean, "false", Any, None, ALL,
        "Whether the topic is tiered."),
    row("retention.bytes", Long, "-1", Any, Some("log.retention.bytes"), ALL,
        "How big a partition may grow before its oldest segments are deleted; below 0 there is no limit."),
    row("retention.ms", Long, "604800000", AtLeast(-1), Some("log.retention.ms"), ALL,
        "How long records are kept; -1 is for ever."),
    row("segment.bytes", Int, "1073741824", AtLeast(14), Some("log.segment.bytes"), UNTIL_4_0,
        "How big a segment of the log becomes."),
    row("segment.bytes", Int, "1073741824", AtLeast(1_048_576), Some("log.segment.bytes"), SINCE_4_1,
        "How big a segment of the log becomes."),
    row("segment.index.bytes", Int, "10485760", AtLeast(4), Some("log.index.size.max.bytes"), ALL,
        "How big the index of a segment may become."),
    row("segment.jitter.ms", Long, "0", AtLeast(0), Some("log.roll.jitter.ms"), ALL,
        "How much earlier at random a segment is closed, so that not all are at once."),
    row("segment.ms", Long, "604800000", AtLeast(1), Some("log.roll.ms"), ALL,
        "After how long a segment is closed, even if it is not full."),
    row("unclean.leader.election.enable", Boolean, "false", Any, Some("unclean.leader.election.enable"), ALL,
        "Whether a replica that is not in sync may lead when no other can, at the price of lost records."),
];
