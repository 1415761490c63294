//! What brokers bound by configs of their files, where these have no field of their own in [`Config`].

use std::time::Duration;

use krafka_protocol::Str;

use crate::config::Config;
use crate::connection::Connection;
use crate::features::{GROUP_VERSION, STREAMS_VERSION};
use crate::groups::ASSIGNORS;
use crate::state::State;

/// The most that a request may have, unless the brokers' files say less: Kafka's default.
pub(crate) const MAX_REQUEST_BYTES: usize = 100 * 1024 * 1024;

impl Config {
    /// The most that a request may have on a connection.
    pub(crate) fn max_bytes_from(&self, connection: &Connection) -> usize {
        if connection.is_entered() {
            self.number("socket.request.max.bytes").unwrap_or(MAX_REQUEST_BYTES)
        } else {
            self.number("sasl.server.max.receive.size").unwrap_or(512 * 1024)
        }
    }

    /// How long nothing may come and go on a connection before it is closed; `None` for ever.
    pub(crate) fn idle_limit(&self) -> Option<Duration> {
        let millis: i64 = self.number("connections.max.idle.ms").unwrap_or(10 * 60 * 1000);
        u64::try_from(millis).ok().map(Duration::from_millis)
    }

    /// The most that one answer to Fetch has, the first batch aside.
    pub(crate) fn fetch_max_bytes(&self) -> i32 {
        self.number("fetch.max.bytes").unwrap_or(55 * 1024 * 1024)
    }

    /// The most that a push of metrics may have, as it is sent.
    pub(crate) fn telemetry_max_bytes(&self) -> i32 {
        self.number("telemetry.max.bytes").unwrap_or(1_048_576)
    }

    /// How many partitions one answer to DescribeTopicPartitions has at most.
    pub(crate) fn described_partitions(&self) -> i32 {
        self.number("max.request.partition.size.limit").unwrap_or(2_000)
    }

    /// How many members a share group may have.
    pub(crate) fn share_group_max_size(&self) -> usize {
        self.number("group.share.max.size").unwrap_or(200)
    }

    /// How many members a streams group may have.
    pub(crate) fn streams_group_max_size(&self) -> usize {
        self.number("group.streams.max.size").unwrap_or(i32::MAX as usize)
    }

    /// The assignors of KIP-848 that members may name, the default first.
    pub(crate) fn assignors(&self) -> Vec<&'static str> {
        let told = self.listed("group.consumer.assignors");
        let known = told.map(|names| names.filter_map(|name| assignor(&name)).collect());
        known.unwrap_or_else(|| ASSIGNORS.to_vec())
    }

    /// The assignor of groups whose members name none.
    pub(crate) fn default_assignor(&self) -> Str {
        Str::from_static(self.assignors().first().copied().unwrap_or(ASSIGNORS[0]))
    }

    /// Whether the protocol that a feature stands for was left out of those that groups may have.
    pub(crate) fn is_left_out(&self, feature: &str) -> bool {
        let protocol = match feature {
            GROUP_VERSION => "consumer",
            STREAMS_VERSION => "streams",
            // The feature alone decides, or it has nothing to do with groups.
            _ => return false,
        };
        let told = self.listed("group.coordinator.rebalance.protocols");
        told.is_some_and(|mut names| !names.any(|name| name.eq_ignore_ascii_case(protocol)))
    }

    /// What a list of names in the file has.
    fn listed(&self, name: &str) -> Option<impl Iterator<Item = Str>> {
        let value = self.properties.get(name)?;
        Some(value.split(',').map(|name| Str::from(name.trim())).collect::<Vec<_>>().into_iter())
    }
}

/// The assignor that a name in a broker's file means: its own name, or that of its class.
pub(crate) fn assignor(name: &str) -> Option<&'static str> {
    match name {
        "uniform" | "org.apache.kafka.coordinator.group.assignor.UniformAssignor" => Some("uniform"),
        "range" | "org.apache.kafka.coordinator.group.assignor.RangeAssignor" => Some("range"),
        _ => None,
    }
}

impl State {
    /// Whether a node may have one more connection of one address, which is that of all clients here.
    pub(crate) fn takes_connections(&self, node: i32) -> bool {
        let limit = self.broker_number("max.connections.per.ip").and_then(|limit| usize::try_from(limit).ok());
        let has = |limit| self.connections.values().filter(|open| open.node == node).take(limit).count() < limit;
        // That is no limit, which is not worth counting for.
        limit.filter(|&limit| limit < i32::MAX as usize).is_none_or(has)
    }
}
