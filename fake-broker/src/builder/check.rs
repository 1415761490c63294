//! What is wrong with a cluster before there is one: for the program, which says so and ends, and for tests, whose
//! builder panics.

use krafka_protocol::Str;

use super::FakeClusterBuilder;
use crate::faults::KafkaVersion;
use crate::features;
use crate::operations::MAX_PARTITIONS;
use crate::topics;

/// The most nodes that a cluster begins with.
const MAX_NODES: i32 = 1000;

impl FakeClusterBuilder {
    /// Sets the number of nodes as [`nodes`](Self::nodes) does.
    ///
    /// **Unstable:** may change in any release.
    ///
    /// # Errors
    ///
    /// In words, if there is none, or more than a thousand.
    pub fn try_nodes(mut self, nodes: i32) -> Result<Self, String> {
        if !(1..=MAX_NODES).contains(&nodes) {
            return Err(format!("a cluster has from 1 to {MAX_NODES} nodes, not {nodes}"));
        }
        self.nodes = nodes;
        Ok(self)
    }

    /// Adds a topic as [`topic`](Self::topic) does.
    ///
    /// **Unstable:** may change in any release.
    ///
    /// # Errors
    ///
    /// In words, if the name is invalid or collides with another one's, or there cannot be so many partitions.
    pub fn try_topic(mut self, name: impl Into<Str>, partitions: i32) -> Result<Self, String> {
        let name = name.into();
        topics::validate_name(&name)?;
        if !(1..=MAX_PARTITIONS).contains(&partitions) {
            return Err(format!("the topic {name} has from 1 to {MAX_PARTITIONS} partitions, not {partitions}"));
        }
        self.topics.retain(|(other, _)| *other != name);
        if let Some((other, _)) = self.topics.iter().find(|(other, _)| topics::collide(&name, other)) {
            return Err(topics::collision(&name, other));
        }
        self.topics.push((name, partitions));
        Ok(self)
    }

    /// Says what is wrong with all that was set together: the levels of features, nodes that are not there, listeners
    /// that need a certificate. Starting and building do so as well.
    ///
    /// **Unstable:** may change in any release.
    ///
    /// ```
    /// use krafka_fake_broker::FakeCluster;
    ///
    /// assert!(FakeCluster::builder().feature("group.version", 0).check().is_ok());
    /// assert!(FakeCluster::builder().feature("group.version", 7).check().is_err());
    /// ```
    ///
    /// # Errors
    ///
    /// In words, if there can be no such cluster.
    pub fn check(&self) -> Result<(), String> {
        let is_node = |node: &i32| (1..=self.nodes).contains(node);
        if let Some(node) = self.versions.keys().chain(self.profiles.keys()).find(|node| !is_node(node)) {
            return Err(format!("there is no node {node}: they are numbered from 1 to {}", self.nodes));
        }
        #[cfg(feature = "tls")]
        let has_certificate = self.tls.is_some();
        #[cfg(not(feature = "tls"))]
        let has_certificate = false;
        if let Some(listener) = self.listeners().iter().find(|listener| listener.is_tls() && !has_certificate) {
            return Err(format!("a listener of {listener} needs a certificate: give the builder one by `tls`"));
        }
        features::check_start(self.oldest_version(), &self.features)
    }

    /// The oldest Kafka that a node looks like: the features of the cluster are its.
    pub(super) fn oldest_version(&self) -> KafkaVersion {
        let versions = (1..=self.nodes).map(|id| self.versions.get(&id).copied().unwrap_or(self.version));
        versions.min().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::time::Duration;

    use super::*;
    use crate::handle::FakeCluster;

    /// What a panic says.
    fn panic_of(panics: impl FnOnce()) -> String {
        let panic = catch_unwind(AssertUnwindSafe(panics)).expect_err("it is refused");
        let plain = panic.downcast_ref::<&str>().map(|words| (*words).to_owned());
        plain.or_else(|| panic.downcast_ref::<String>().cloned()).expect("words")
    }

    /// What the program says and ends, the builder says and panics.
    #[test]
    fn builder_refuses_what_no_cluster_is_like() {
        let builder = FakeCluster::builder;
        let second = Duration::from_secs(1);
        let cases: [(&dyn Fn() -> FakeClusterBuilder, &str); 16] = [
            (&|| builder().nodes(0), "from 1 to 1000 nodes, not 0"),
            (&|| builder().nodes(1001), "from 1 to 1000 nodes, not 1001"),
            (&|| builder().topic("orders", 0), "the topic orders has from 1 to 100000 partitions, not 0"),
            (&|| builder().topic("a.b", 1).topic("a_b", 1), "Topic 'a_b' collides with existing topic: a.b"),
            (&|| builder().default_partitions(0), "Invalid value 0 for configuration num.partitions"),
            (&|| builder().replication_factor(0), "default.replication.factor cannot be '0'"),
            (&|| builder().replication_factor(-1), "default.replication.factor cannot be '-1'"),
            (&|| builder().broker_config("log.retention.our", "1"), "no broker has a config 'log.retention.our'"),
            (&|| builder().broker_config("log.retention.hours", "soon"), "Not a number of type INT"),
            (&|| builder().broker_config("node.id", "7"), "node.id acts on nothing here"),
            (&|| builder().group_session_timeouts(second * 2, second), "the least session timeout, 2s"),
            (&|| builder().group_max_size(0), "Invalid value 0 for configuration group.max.size"),
            (&|| builder().group_consumer_max_size(0), "Invalid value 0 for configuration group.consumer.max.size"),
            (&|| builder().group_consumer_session_timeout(Duration::ZERO), "is some time"),
            (&|| builder().share_session_slots(0), "Invalid value 0 for configuration group.share.max.share.sessions"),
            (&|| builder().transaction_max_timeout(Duration::ZERO), "is some time"),
        ];
        for (build, reason) in cases {
            let words = panic_of(|| drop(build()));
            assert!(words.contains(reason), "{reason}: {words}");
        }
    }

    /// A config that has a method goes through it.
    #[test]
    fn broker_config_acts_as_the_method_does() {
        let built = FakeCluster::builder().broker_config("num.partitions", "7");
        assert_eq!((built.config.default_partitions, built.config.properties.is_empty()), (7, true));
        assert!(FakeCluster::builder().broker_config("auto.create.topics.enable", "TRUE").config.auto_create_topics);
    }

    /// Levels are those that a Kafka has, and high enough for each other, in Kafka's words. `kafka-storage` of 4.4.0
    /// refuses the last one so, and takes the others.
    #[test]
    fn features_are_checked_against_each_other() {
        let eligible = "eligible.leader.replicas.version";
        let check = |levels: &[(&'static str, i16)]| {
            let with =
                |builder: FakeClusterBuilder, (name, level): &(&'static str, i16)| builder.feature(*name, *level);
            levels.iter().fold(FakeCluster::builder(), with).check()
        };
        assert_eq!(check(&[("metadata.version", 22)]), Ok(()));
        assert_eq!(check(&[("metadata.version", 23), (eligible, 1)]), Ok(()));
        assert_eq!(check(&[("metadata.version", 7), ("transaction.version", 2), ("share.version", 2)]), Ok(()));
        let high = check(&[("metadata.version", 99)]);
        assert_eq!(high, Err("metadata.version=99: Kafka 4.4 has levels from 7 to 33 of it".to_owned()));
        let low = check(&[("metadata.version", 22), (eligible, 1)]);
        let words = format!("{eligible} could not be set to 1 because it depends on metadata.version level 23");
        assert_eq!(low, Err(words));
        let old = FakeCluster::builder().node_version(1, KafkaVersion::V3_9).feature("share.version", 1).check();
        assert_eq!(old, Err("share.version=1: Kafka 3.9 has no such feature".to_owned()));
        assert!(
            FakeCluster::builder().node_version(2, KafkaVersion::V3_9).check().is_err_and(|e| e.contains("node 2"))
        );
    }

    /// A cluster with a `metadata.version` of the past begins with the features of that time, as `kafka-storage
    /// version-mapping` of 4.4.0 has them.
    #[test]
    fn features_are_those_of_the_metadata_version() {
        let names = ["group", "transaction", "eligible.leader.replicas", "share", "streams", "kraft"];
        let levels = |metadata| {
            let fake = FakeCluster::builder().feature("metadata.version", metadata).build();
            names.map(|name| fake.look(|state| state.feature_level(&format!("{name}.version"))))
        };
        let mapped = [
            (21, [0, 0, 0, 0, 0, 1]),
            (22, [1, 0, 0, 0, 0, 1]),
            (24, [1, 2, 0, 0, 0, 1]),
            (26, [1, 2, 1, 0, 0, 1]),
            (28, [1, 2, 1, 1, 0, 1]),
            (29, [1, 2, 1, 1, 1, 1]),
            (31, [1, 2, 1, 2, 1, 1]),
            (33, [1, 2, 1, 2, 1, 1]),
        ];
        for (metadata, expected) in mapped {
            assert_eq!(levels(metadata), expected, "{metadata}");
        }
        let given = FakeCluster::builder().feature("metadata.version", 22).feature("transaction.version", 1).build();
        assert_eq!(given.look(|state| state.feature_level("transaction.version")), 1);
    }

    /// What a test asks a running cluster for is there, or it is told so.
    #[test]
    fn controls_of_what_is_not_there_are_refused() {
        let fake = FakeCluster::builder().topic("orders", 1).build();
        let cases: [(&dyn Fn(), &str); 9] = [
            (&|| fake.commit("audit", "nope", 0, 1, ""), "there is no partition nope-0"),
            (&|| fake.commit("audit", "orders", 1, 1, ""), "there is no partition orders-1"),
            (&|| fake.commit("audit", "orders", -1, 1, ""), "there is no partition orders--1"),
            (&|| fake.commit("", "orders", 0, 1, ""), "a group has a name"),
            (&|| fake.delete_records("nope", 0, 1), "there is no partition nope-0"),
            (&|| fake.delete_records("orders", 3, 1), "there is no partition orders-3"),
            (&|| fake.forget_producers("nope", 0), "there is no partition nope-0"),
            (&|| fake.set_group_config("g", "retention.ms", Some("1")), "Unknown group config name: retention.ms"),
            (&|| fake.set_group_config("g", "share.session.timeout.ms", Some("x")), "Not a number of type INT"),
        ];
        for (control, reason) in cases {
            let words = panic_of(control);
            assert!(words.contains(reason), "{reason}: {words}");
        }
    }
}
