//! What a client did so far, in numbers: [`Metrics`], for logs and for Prometheus.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> krafka::Result<()> {
//! # let fake = krafka::testing::FakeCluster::builder().start().await.expect("ports are free");
//! # let kafka = krafka::Kafka::builder(fake.bootstrap()).connect().await?;
//! let metrics = kafka.metrics();
//! println!("{} connections, {} lost so far", metrics.connections.open, metrics.connections.lost);
//!
//! // What an endpoint for Prometheus would answer:
//! let page = metrics.to_prometheus();
//! assert!(page.contains("krafka_connections_open{client_id=\"krafka\"} 1"));
//! # Ok(())
//! # }
//! ```
//!
//! Everything is counted where it happens, by atomic additions: to count costs no allocation and no lock. Figures of
//! one snapshot may be of moments that are microseconds apart.

mod counters;
mod histogram;
mod prometheus;
mod registry;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

pub(crate) use self::counters::{Counter, counters};
pub use self::histogram::Histogram;
pub(crate) use self::histogram::Recorder;
pub(crate) use self::registry::{Broker, Registry};
use crate::consumer::ConsumerMetrics;
use crate::producer::ProducerMetrics;

/// What one client did, all since it was connected. Returned by [`Kafka::metrics`](crate::Kafka::metrics).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Metrics {
    /// The client's name.
    pub client_id: Arc<str>,
    /// Its connections.
    pub connections: ConnectionMetrics,
    /// What went to each broker, by id. The id -1 stands for bootstrap servers, whose ids are not known when they are
    /// connected to.
    pub brokers: BTreeMap<i32, BrokerMetrics>,
    /// Its requests, by the names of Kafka's APIs, such as `Produce`.
    pub requests: BTreeMap<&'static str, RequestMetrics>,
    /// Its view of the cluster.
    pub metadata: MetadataMetrics,
    /// What all producers of the handle did together, those that are closed among them.
    pub producers: ProducerMetrics,
    /// What all consumers of the handle did together, those that are closed among them.
    pub consumers: ConsumerMetrics,
}

/// The connections of a client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConnectionMetrics {
    /// Connections that are open now.
    pub open: u64,
    /// Connections that were made, with the handshake.
    pub opened: u64,
    /// Attempts that failed.
    pub failed: u64,
    /// Connections that ended otherwise than by the client's wish: closed by the broker, broken, or given up because an
    /// answer was late.
    pub lost: u64,
    /// Attempts that led to another broker than was meant (KIP-1242).
    pub misrouted: u64,
    /// Times that a request went over a connection that is meant for others, because `max_connections` left no room for
    /// one of its own: mostly what a group's member tells its coordinator.
    pub coordination_fallbacks: u64,
    /// How long it took to connect, with TLS, authentication and version negotiation.
    pub connect_time: Histogram,
}

/// What went to one broker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BrokerMetrics {
    /// Requests that were written.
    pub requests: u64,
    /// Their bytes, without those of TLS and of the handshake.
    pub bytes_sent: u64,
    /// The bytes of the answers, likewise.
    pub bytes_received: u64,
    /// How long the broker asked for silence, in all (KIP-219).
    pub throttled: Duration,
}

/// The requests of one API.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestMetrics {
    /// Requests without an answer: late, or lost with their connection.
    pub failed: u64,
    /// From the moment when the request could be written until its answer came. A Fetch waits at the broker for records
    /// to come, a JoinGroup for the other members.
    pub time: Histogram,
}

/// The view of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MetadataMetrics {
    /// Answers that were taken over.
    pub refreshes: u64,
    /// Rounds in which no broker gave one.
    pub failures: u64,
    /// Times that the client began again with its bootstrap servers.
    pub rebootstraps: u64,
    /// Times that another cluster answered than before.
    pub cluster_changes: u64,
    /// How old the last answer is; `None` before the first.
    pub age: Option<Duration>,
}

impl Metrics {
    /// Returns all figures in Prometheus' text format (version 0.0.4), each with the label `client_id`.
    ///
    /// It is a page of its own. Those of two clients, one behind the other, are none, because each says what its
    /// figures are: for more than one there is [`prometheus_page`].
    ///
    /// Times are in seconds. Histograms have a bucket for each power of two microseconds, from a quarter of a
    /// millisecond to a minute.
    #[must_use]
    pub fn to_prometheus(&self) -> String {
        prometheus_page([self])
    }
}

/// Returns the figures of several clients on one page in Prometheus' text format, as [`Metrics::to_prometheus`] does
/// for one.
///
/// A client is told from the others by the label `client_id`, which is to be set with
/// [`KafkaBuilder::client_id`](crate::KafkaBuilder::client_id). Where two have the same, the second has the label
/// `handle="2"` as well, and so on, in the order in which they are given here: give them in the same one each time.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> krafka::Result<()> {
/// # let fake = krafka::testing::FakeCluster::builder().start().await.expect("ports are free");
/// # let servers = fake.bootstrap();
/// let orders = krafka::Kafka::builder(&*servers).client_id("orders").connect().await?;
/// let audit = krafka::Kafka::builder(&*servers).client_id("audit").connect().await?;
///
/// let page = krafka::metrics::prometheus_page(&[orders.metrics(), audit.metrics()]);
///
/// assert_eq!(page.matches("# TYPE krafka_connections_open gauge").count(), 1);
/// assert!(page.contains("krafka_connections_open{client_id=\"audit\"} 1"));
/// # Ok(())
/// # }
/// ```
#[must_use]
pub fn prometheus_page<'a>(clients: impl IntoIterator<Item = &'a Metrics>) -> String {
    prometheus::text(clients)
}
