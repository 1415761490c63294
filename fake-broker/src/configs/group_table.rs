//! Every config that a group has in Kafka 4.0 to 4.4.
//!
//! Kafka checks some of them twice: first on their own, then against what the broker allows, which are configs too.

use super::definition::{Definition, Kind, Rule};
use crate::faults::KafkaVersion;
use Kind::{Boolean, Int, List, String};
use Rule::{Any, AtLeast, DeadLetterTopic, OneOf, ShareOffsetReset};

const fn row(
    name: &'static str,
    kind: Kind,
    default: &'static str,
    rule: Rule,
    synonym: &'static str,
    since: KafkaVersion,
    text: &'static str,
) -> Definition {
    let versions = (since, KafkaVersion::V4_4);
    Definition { name, kind, default: Some(default), rule, synonym: Some(synonym), versions, text }
}

/// The configs of groups, by name.
#[rustfmt::skip]
pub(crate) const GROUP: &[Definition] = &[
    row("consumer.assignment.interval.ms", Int, "1000", AtLeast(0), "group.consumer.assignment.interval.ms",
        KafkaVersion::V4_3, "How long a consumer group waits between two assignments."),
    row("consumer.heartbeat.interval.ms", Int, "5000", AtLeast(1), "group.consumer.heartbeat.interval.ms",
        KafkaVersion::V4_0, "How often members of a consumer group are told to send heartbeats."),
    row("consumer.session.timeout.ms", Int, "45000", AtLeast(1), "group.consumer.session.timeout.ms",
        KafkaVersion::V4_0, "How long a member of a consumer group may be silent."),
    row("errors.deadletterqueue.copy.record.enable", Boolean, "false", Any,
        "errors.deadletterqueue.copy.record.enable", KafkaVersion::V4_4,
        "Whether a record that is given up is copied with its contents."),
    row("errors.deadletterqueue.topic.name", String, "", DeadLetterTopic, "errors.deadletterqueue.topic.name",
        KafkaVersion::V4_4, "The topic for records that a share group gives up."),
    row("share.assignment.interval.ms", Int, "1000", AtLeast(0), "group.share.assignment.interval.ms",
        KafkaVersion::V4_3, "How long a share group waits between two assignments."),
    row("share.auto.offset.reset", String, "latest", ShareOffsetReset, "share.auto.offset.reset",
        KafkaVersion::V4_0, "Where a share group begins to read a partition that is new to it."),
    row("share.delivery.count.limit", Int, "5", AtLeast(2), "group.share.delivery.count.limit",
        KafkaVersion::V4_3, "How often a record is delivered before it is given up."),
    row("share.heartbeat.interval.ms", Int, "5000", AtLeast(1), "group.share.heartbeat.interval.ms",
        KafkaVersion::V4_0, "How often members of a share group are told to send heartbeats."),
    row("share.isolation.level", String, "read_uncommitted", OneOf(&["read_committed", "read_uncommitted"]),
        "share.isolation.level", KafkaVersion::V4_1, "Whether a share group sees records of open transactions."),
    row("share.partition.max.record.locks", Int, "2000", AtLeast(100), "group.share.partition.max.record.locks",
        KafkaVersion::V4_3, "How many records of a partition a share group holds at once."),
    row("share.record.lock.duration.ms", Int, "30000", AtLeast(1000), "group.share.record.lock.duration.ms",
        KafkaVersion::V4_0, "How long a member of a share group holds a record that it was given."),
    row("share.renew.acknowledge.enable", Boolean, "true", Any, "share.renew.acknowledge.enable",
        KafkaVersion::V4_3, "Whether a member of a share group may hold a record for longer."),
    row("share.session.timeout.ms", Int, "45000", AtLeast(1), "group.share.session.timeout.ms",
        KafkaVersion::V4_0, "How long a member of a share group may be silent."),
    row("streams.assignment.interval.ms", Int, "1000", AtLeast(0), "group.streams.assignment.interval.ms",
        KafkaVersion::V4_3, "How long a streams group waits between two assignments."),
    row("streams.assignor.name", String, "sticky", Any, "group.streams.assignors",
        KafkaVersion::V4_4, "What assigns the tasks of a streams group."),
    row("streams.heartbeat.interval.ms", Int, "5000", AtLeast(1), "group.streams.heartbeat.interval.ms",
        KafkaVersion::V4_1, "How often members of a streams group are told to send heartbeats."),
    row("streams.initial.rebalance.delay.ms", Int, "3000", AtLeast(0), "group.streams.initial.rebalance.delay.ms",
        KafkaVersion::V4_2, "How long an empty streams group waits for more members."),
    row("streams.num.standby.replicas", Int, "0", AtLeast(0), "group.streams.num.standby.replicas",
        KafkaVersion::V4_1, "How many standbys each stateful task of a streams group has."),
    row("streams.rack.aware.assignment.tags", List, "", Any, "group.streams.rack.aware.assignment.tags",
        KafkaVersion::V4_4, "The tags of clients over which a streams group spreads its standbys."),
    row("streams.session.timeout.ms", Int, "45000", AtLeast(1), "group.streams.session.timeout.ms",
        KafkaVersion::V4_1, "How long a member of a streams group may be silent."),
];

/// The broker's bounds of a group's config: the configs that hold the least and the most, where Kafka has them.
pub(crate) fn bounds(name: &str) -> Option<(&'static str, &'static str)> {
    Some(match name {
        "consumer.session.timeout.ms" => {
            ("group.consumer.min.session.timeout.ms", "group.consumer.max.session.timeout.ms")
        }
        "consumer.heartbeat.interval.ms" => {
            ("group.consumer.min.heartbeat.interval.ms", "group.consumer.max.heartbeat.interval.ms")
        }
        "consumer.assignment.interval.ms" => {
            ("group.consumer.min.assignment.interval.ms", "group.consumer.max.assignment.interval.ms")
        }
        "share.session.timeout.ms" => ("group.share.min.session.timeout.ms", "group.share.max.session.timeout.ms"),
        "share.heartbeat.interval.ms" => {
            ("group.share.min.heartbeat.interval.ms", "group.share.max.heartbeat.interval.ms")
        }
        "share.assignment.interval.ms" => {
            ("group.share.min.assignment.interval.ms", "group.share.max.assignment.interval.ms")
        }
        "share.record.lock.duration.ms" => {
            ("group.share.min.record.lock.duration.ms", "group.share.max.record.lock.duration.ms")
        }
        "share.delivery.count.limit" => {
            ("group.share.min.delivery.count.limit", "group.share.max.delivery.count.limit")
        }
        "share.partition.max.record.locks" => {
            ("group.share.min.partition.max.record.locks", "group.share.max.partition.max.record.locks")
        }
        "streams.session.timeout.ms" => {
            ("group.streams.min.session.timeout.ms", "group.streams.max.session.timeout.ms")
        }
        "streams.heartbeat.interval.ms" => {
            ("group.streams.min.heartbeat.interval.ms", "group.streams.max.heartbeat.interval.ms")
        }
        "streams.assignment.interval.ms" => {
            ("group.streams.min.assignment.interval.ms", "group.streams.max.assignment.interval.ms")
        }
        _ => return None,
    })
}
