//! What a broker's file would say: the settings that a cluster was built with, under Kafka's names.

use krafka_protocol::Str;

use super::{Overrides, broker};
use crate::config::Config;
use crate::faults::KafkaVersion;
use crate::state::State;

/// The log directories of each node, of which there are two, so that replicas can be moved between them.
pub(crate) const LOG_DIRS: [&str; 2] = ["/fake/disk-1", "/fake/disk-2"];

impl Config {
    /// The configs that all brokers have in their files, as far as they are not Kafka's defaults.
    pub(crate) fn write_properties(&mut self, version: KafkaVersion) {
        let known = [
            ("num.partitions", self.default_partitions.to_string()),
            ("default.replication.factor", self.replication_factor.to_string()),
            ("auto.create.topics.enable", self.auto_create_topics.to_string()),
            ("group.initial.rebalance.delay.ms", self.group_initial_rebalance_delay.as_millis().to_string()),
            ("group.min.session.timeout.ms", self.group_min_session_timeout.as_millis().to_string()),
            ("group.max.session.timeout.ms", self.group_max_session_timeout.as_millis().to_string()),
            ("group.consumer.session.timeout.ms", self.group_consumer_session_timeout.as_millis().to_string()),
            ("group.consumer.heartbeat.interval.ms", self.group_consumer_heartbeat_interval.as_millis().to_string()),
            ("group.consumer.assignment.interval.ms", self.group_consumer_assignment_interval.as_millis().to_string()),
            ("group.consumer.max.size", self.group_consumer_max_size.to_string()),
            ("offsets.retention.minutes", (self.offsets_retention.as_secs() / 60).to_string()),
            ("offsets.retention.check.interval.ms", self.offsets_retention_check_interval.as_millis().to_string()),
            ("group.max.size", self.group_max_size.to_string()),
            ("offset.metadata.max.bytes", self.offset_metadata_max_bytes.to_string()),
            ("max.incremental.fetch.session.cache.slots", self.fetch_session_slots.to_string()),
            ("delegation.token.max.lifetime.ms", self.logins.tokens.max_lifetime_ms.to_string()),
            ("delegation.token.expiry.time.ms", self.logins.tokens.renew_ms.to_string()),
            ("delegation.token.expiry.check.interval.ms", self.logins.tokens.sweep_ms.to_string()),
            ("transaction.two.phase.commit.enable", self.two_phase_commit.to_string()),
        ];
        self.write_authorizer();
        for (name, value) in known {
            let default = broker::find(name, version).and_then(|config| config.definition.default);
            // What that version does not have acts all the same, and is not told.
            let Some(default) = default else { continue };
            if default != value && !self.properties.contains_key(name) {
                self.properties.insert(Str::from_static(name), Str::from(value));
            }
        }
    }

    /// Which authorizer there is, and what it reads in the file for itself. Kafka does not know those names, and tells
    /// no values of theirs.
    fn write_authorizer(&mut self) {
        if !self.acls.enabled {
            return;
        }
        let mut write = |name: &'static str, value: String| {
            self.properties.entry(Str::from_static(name)).or_insert_with(|| Str::from(value));
        };
        write("authorizer.class.name", "org.apache.kafka.metadata.authorizer.StandardAuthorizer".to_owned());
        let users: Vec<_> = self.acls.super_users.iter().map(ToString::to_string).collect();
        if !users.is_empty() {
            write("super.users", users.join(";"));
        }
        if self.acls.allow_everyone_if_no_acl_found {
            write("allow.everyone.if.no.acl.found", "true".to_owned());
        }
    }

    /// A number that all brokers have in their files, if they have it and it is one.
    pub(crate) fn number<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        self.properties.get(name)?.trim().parse().ok()
    }

    /// What all brokers have in their files.
    pub(crate) fn static_values(&self) -> &Overrides {
        &self.properties
    }
}

impl State {
    /// What one broker has in its file.
    pub(crate) fn static_values_of(&self, node: i32) -> Overrides {
        let mut values = self.config.static_values().clone();
        let mut set = |name: &'static str, value: String| values.insert(Str::from_static(name), Str::from(value));
        set("node.id", node.to_string());
        set("broker.id", node.to_string());
        set("process.roles", "broker,controller".to_owned());
        set("controller.listener.names", "CONTROLLER".to_owned());
        set("inter.broker.listener.name", "PLAINTEXT".to_owned());
        set("log.dirs", LOG_DIRS.join(","));
        if let Some(found) = self.nodes.find(node) {
            let listeners = found.ports.iter().map(|(name, port)| format!("{name}://{}:{port}", found.host));
            let listeners = listeners.collect::<Vec<_>>().join(",");
            set("listeners", listeners);
            let told = found.ports.keys().map(|name| (name, found.told(*name)));
            let told = told.map(|(name, (host, port))| format!("{name}://{host}:{port}"));
            set("advertised.listeners", told.collect::<Vec<_>>().join(","));
            if let Some(rack) = &found.rack {
                set("broker.rack", rack.to_string());
            }
        }
        values
    }
}
