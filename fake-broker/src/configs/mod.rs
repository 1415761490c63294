//! Configs: what can be set for topics, brokers, groups, client metrics and loggers, and what is.
//!
//! A value is looked for where Kafka looks for it, and the first that is found counts:
//!
//! ```text
//!   topic, group ──▶ this broker ──▶ all brokers ──▶ the broker's file ──▶ Kafka's default
//!     set by an administrator, at run time         │ set by the builder
//! ```
//!
//! What differs from Kafka on purpose: a partition has one log here, which goes by the values of its leader, where in
//! Kafka each replica's goes by its own broker's. What the controller decides by (`min.insync.replicas`,
//! `unclean.leader.election.enable`), and what groups inherit, is the same on all brokers. Configs act where something
//! here depends on them, the others are validated, kept and shown.

use std::collections::BTreeMap;
use std::time::Duration;

use krafka_protocol::{ErrorCode, Str};

use crate::faults::KafkaVersion;
use crate::state::State;
use crate::topics::OwnSettings;

pub(crate) mod alter;
pub(crate) mod broker;
pub(crate) mod client_metrics;
mod definition;
pub(crate) mod describe;
mod dynamic;
mod group_settings;
mod group_table;
mod loggers;
pub(crate) mod statics;
mod topic_settings;
mod topic_table;

use definition::Definition;
pub(crate) use group_settings::{GroupSettings, OffsetReset};
pub(crate) use topic_settings::TopicSettings;

/// Values by name, as they were set for one thing.
pub(crate) type Overrides = BTreeMap<Str, Str>;

/// What configs belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ResourceType {
    Topic = 2,
    Broker = 4,
    BrokerLogger = 8,
    ClientMetrics = 16,
    Group = 32,
}

/// Everything that was set, but for topics, which have theirs in their settings.
#[derive(Clone, Debug, Default)]
pub(crate) struct Configs {
    /// What was set for all brokers.
    pub(crate) cluster: Overrides,
    pub(crate) brokers: BTreeMap<i32, Overrides>,
    pub(crate) groups: BTreeMap<Str, Overrides>,
    pub(crate) client_metrics: BTreeMap<Str, Overrides>,
    /// The levels of loggers, by broker, that are not what they were at the start.
    pub(crate) loggers: BTreeMap<i32, Overrides>,
}

/// Why something is not described or changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) code: ErrorCode,
    /// Kafka has no message for some of its refusals.
    pub(crate) message: Option<String>,
}

impl Refusal {
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: Some(message.into()) }
    }
}

impl ResourceType {
    /// The type of Kafka's code, if it is one that has configs.
    pub(crate) fn from_code(code: i8) -> Option<Self> {
        [Self::Topic, Self::Broker, Self::BrokerLogger, Self::ClientMetrics, Self::Group]
            .into_iter()
            .find(|resource| *resource as i8 == code)
    }
}

impl Configs {
    /// The configs of a fresh cluster of that version, whose brokers have that in their files.
    pub(crate) fn new(version: KafkaVersion, given: &Overrides) -> Self {
        let mut configs = Self::default();
        if version >= KafkaVersion::V4_1 {
            // A cluster with eligible leader replicas keeps this one for all brokers alike (KIP-966). It begins with
            // what the controller has in its file.
            let least = given.get("min.insync.replicas").cloned().unwrap_or(Str::from_static("1"));
            configs.cluster.insert(Str::from_static("min.insync.replicas"), least);
        }
        configs
    }
}

/// The definition of a topic's config in a version of Kafka.
pub(crate) fn of_topic(name: &str, version: KafkaVersion) -> Option<&'static Definition> {
    topic_table::TOPIC.iter().find(|config| config.name == name && config.is_in(version))
}

/// The definition of a group's config in a version of Kafka.
pub(crate) fn of_group(name: &str, version: KafkaVersion) -> Option<&'static Definition> {
    group_table::GROUP.iter().find(|config| config.name == name && config.is_in(version))
}

impl State {
    /// The version of Kafka whose rules hold for the whole cluster: that of the oldest node.
    pub(crate) fn cluster_version(&self) -> KafkaVersion {
        self.nodes.oldest_version()
    }

    /// The version of Kafka that a node looks like.
    pub(crate) fn version_of(&self, node: i32) -> KafkaVersion {
        self.nodes.find(node).map(|node| node.version).unwrap_or_default()
    }

    /// What all brokers have for a config: set at run time, or when the cluster was built, or Kafka's default.
    pub(crate) fn broker_value(&self, name: &str) -> Option<Str> {
        let set = self.configs.cluster.get(name).cloned();
        set.or_else(|| self.config.static_values().get(name).cloned())
            .or_else(|| broker::find(name, self.cluster_version())?.definition.default.map(Str::from_static))
    }

    /// A number that all brokers have.
    pub(crate) fn broker_number(&self, name: &str) -> Option<i64> {
        self.broker_value(name)?.trim().parse().ok()
    }

    /// A time that all brokers have. Versions without the config have Kafka's default.
    pub(crate) fn broker_millis(&self, name: &str, default: u64) -> Duration {
        let set = self.broker_number(name).and_then(|millis| u64::try_from(millis).ok());
        Duration::from_millis(set.unwrap_or(default))
    }

    /// The settings of a topic for which `given` was set.
    pub(crate) fn topic_settings(&self, given: Overrides) -> TopicSettings {
        TopicSettings::new(given, |name| self.inherited_by_topics(name))
    }

    /// The settings of the same topic on the nodes that have values of their own.
    pub(crate) fn own_topic_settings(&self, given: &Overrides) -> OwnSettings {
        let nodes = self.configs.brokers.keys();
        nodes
            .map(|node| (*node, TopicSettings::new(given.clone(), |name| self.inherited_on(Some(*node), name))))
            .collect()
    }

    /// What a topic has where nothing was set for it.
    pub(crate) fn inherited_by_topics(&self, name: &str) -> Option<Str> {
        self.inherited_on(None, name)
    }

    /// What a topic has on a node, or on those without values of their own.
    fn inherited_on(&self, node: Option<i32>, name: &str) -> Option<Str> {
        let version = self.cluster_version();
        // What the cluster's version does not have acts as in the newest one that has it.
        let newest = || topic_table::TOPIC.iter().rev().find(|config| config.name == name);
        let config = of_topic(name, version).or_else(newest)?;
        let of_broker = config.synonym.and_then(|synonym| self.value_above_default(node, synonym));
        of_broker.or_else(|| config.default.map(Str::from_static))
    }

    /// What was set for a broker, or for all, at run time or when the cluster was built. Times have several names, with
    /// units of their own.
    fn value_above_default(&self, node: Option<i32>, name: &str) -> Option<Str> {
        let own = node.and_then(|node| self.configs.brokers.get(&node));
        broker::spellings(name).find_map(|(name, factor)| {
            let value = own.and_then(|own| own.get(name)).or_else(|| self.configs.cluster.get(name)).cloned();
            let value = value.or_else(|| self.config.static_values().get(name).cloned())?;
            match factor {
                1 => Some(value),
                factor => Some(Str::from(value.trim().parse::<i64>().ok()?.saturating_mul(factor).to_string())),
            }
        })
    }

    /// The settings of a group.
    #[allow(dead_code, reason = "the kinds of groups that read them are being written")]
    pub(crate) fn group_settings(&self, group: &str) -> GroupSettings {
        let given = self.configs.groups.get(group);
        GroupSettings::new(|name| {
            let set = given.and_then(|given| given.get(name).cloned());
            set.or_else(|| self.inherited_by_groups(name)).unwrap_or_default()
        })
    }

    /// What a group has where nothing was set for it.
    pub(crate) fn inherited_by_groups(&self, name: &str) -> Option<Str> {
        let config = group_table::GROUP.iter().find(|config| config.name == name)?;
        let of_broker = config.synonym.and_then(|synonym| self.value_above_default(None, synonym));
        of_broker.or_else(|| config.default.map(Str::from_static))
    }

    /// Lets all topics see what changed for brokers.
    pub(crate) fn broker_configs_changed(&mut self) {
        let ids: Vec<_> = self.topics.iter().map(|topic| topic.id).collect();
        for id in ids {
            let Some(given) = self.topics.by_id(id).map(|topic| topic.settings.given.clone()) else { continue };
            let own_settings = self.own_topic_settings(&given);
            let settings = self.topic_settings(given);
            if let Some(topic) = self.topics.by_id_mut(id) {
                topic.set_settings(settings, own_settings);
            }
        }
    }
}
