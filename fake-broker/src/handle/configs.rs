//! Configs, as an administrator would set them.

use krafka_protocol::Str;

use super::FakeCluster;
use crate::configs::ResourceType;
use crate::configs::alter::{Change, DELETE, Doing, SET};

impl FakeCluster {
    /// Sets a config of a topic by Kafka's name of it, such as `retention.ms`; `None` lets the brokers' value
    /// hold again.
    ///
    /// **Unstable:** may change in any release.
    ///
    /// # Panics
    ///
    /// If Kafka would refuse it.
    pub fn set_topic_config(&self, topic: &str, name: &str, value: Option<&str>) {
        self.set_config(ResourceType::Topic, topic, name, value);
    }

    /// Sets a config of all brokers that can change at run time, such as `log.retention.ms`; `None` lets what they were
    /// built with hold again.
    ///
    /// **Unstable:** may change in any release.
    ///
    /// # Panics
    ///
    /// If Kafka would refuse it.
    pub fn set_broker_config(&self, name: &str, value: Option<&str>) {
        self.set_config(ResourceType::Broker, "", name, value);
    }

    /// Sets a config of a subscription to the metrics of clients: `metrics`, `interval.ms` or `match`. Clients push if
    /// the cluster was built with [`client_telemetry`](crate::FakeClusterBuilder::client_telemetry).
    ///
    /// **Unstable:** may change in any release.
    ///
    /// # Panics
    ///
    /// If Kafka would refuse it.
    pub fn set_client_metrics_config(&self, subscription: &str, name: &str, value: Option<&str>) {
        self.set_config(ResourceType::ClientMetrics, subscription, name, value);
    }

    fn set_config(&self, resource: ResourceType, resource_name: &str, name: &str, value: Option<&str>) {
        let operation = if value.is_some() { SET } else { DELETE };
        let change = Change { name: name.into(), operation, value: value.map(Str::from) };
        self.control(|state, _| {
            let node = state.nodes.ids().first().copied().unwrap_or(-1);
            let set = state.alter_configs(node, resource as i8, resource_name, &[change], Doing::CarryOut);
            if let Err(refusal) = set {
                panic!("{name} cannot be set: {} ({:?})", refusal.code.message(), refusal.message);
            }
        });
    }
}
