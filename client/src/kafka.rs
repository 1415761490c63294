//! [`Kafka`]: the handle that everything else is made from.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::admin::AdminClient;
use crate::cluster::Cluster;
use crate::environment::Environment;
use crate::kafka_builder::KafkaBuilder;
use crate::network::Network;
use crate::producer::ProducerBuilder;

/// A connected client: one set of connections and one view of the cluster, which all producers, consumers and admin
/// clients made from it share.
///
/// Cheap to clone. The connections close when the last clone, and everything made from it, is dropped. A second
/// identity is a second handle.
///
/// ```no_run
/// # async fn example() -> krafka::Result<()> {
/// let kafka = krafka::Kafka::builder("kafka-1:9092,kafka-2:9092").client_id("billing").connect().await?;
/// let topics = kafka.admin().list_topics().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Kafka {
    inner: Arc<Inner>,
}

struct Inner {
    network: Network,
    cluster: Cluster,
    environment: Environment,
    client_id: Arc<str>,
    request_timeout: Duration,
    next_owner: AtomicU64,
}

impl Kafka {
    /// Returns a builder for a client of the cluster that these servers belong to: `host:port`, several with commas
    /// between. One that is up is enough; the others of the cluster are learned from it.
    pub fn builder(bootstrap_servers: impl Into<String>) -> KafkaBuilder {
        KafkaBuilder::new(bootstrap_servers.into())
    }

    pub(crate) fn new(
        network: Network,
        cluster: Cluster,
        environment: Environment,
        client_id: Arc<str>,
        request_timeout: Duration,
    ) -> Self {
        let next_owner = AtomicU64::new(1);
        Self { inner: Arc::new(Inner { network, cluster, environment, client_id, request_timeout, next_owner }) }
    }

    /// Returns a builder for a producer. It shares this handle's connections and metadata.
    pub fn producer(&self) -> ProducerBuilder {
        ProducerBuilder::new(self.clone())
    }

    /// Returns a client for administration: topics and the cluster.
    pub fn admin(&self) -> AdminClient {
        AdminClient::new(self.clone())
    }

    /// Drops what is known of the cluster's brokers, and learns it again from the bootstrap servers.
    ///
    /// Clients do this by themselves when no known broker can be reached (KIP-899) or a broker asks for it (KIP-1102);
    /// call it when you know better, for example after moving the cluster behind the same names.
    pub fn rebootstrap(&self) {
        self.inner.cluster.rebootstrap();
    }

    /// Refuses all further requests, of everything made from this handle too, and closes the connections once the
    /// requests that were sent are answered. Close producers and consumers first.
    pub fn close(&self) {
        self.inner.network.close();
    }

    pub(crate) fn network(&self) -> &Network {
        &self.inner.network
    }

    pub(crate) fn cluster(&self) -> &Cluster {
        &self.inner.cluster
    }

    pub(crate) fn environment(&self) -> &Environment {
        &self.inner.environment
    }

    pub(crate) fn request_timeout(&self) -> Duration {
        self.inner.request_timeout
    }

    /// A number that no other client of this handle has: for lanes, watched topics and seeds.
    pub(crate) fn next_owner(&self) -> u64 {
        self.inner.next_owner.fetch_add(1, Ordering::Relaxed)
    }
}

impl fmt::Debug for Kafka {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kafka").field("client_id", &self.inner.client_id).finish_non_exhaustive()
    }
}
