//! [`Kafka`]: the handle that everything else is made from.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use krafka_protocol::Str;

use crate::admin::AdminClient;
use crate::bootstrap;
use crate::cluster::Cluster;
use crate::environment::Environment;
use crate::error::Result;
use crate::kafka_builder::KafkaBuilder;
use crate::metrics::{Metrics, Registry};
use crate::network::Network;
use crate::producer::ProducerBuilder;
use crate::properties::Properties;

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
    registry: Arc<Registry>,
    settings: Settings,
    next_owner: AtomicU64,
}

/// What everything that is made from a handle goes by.
pub(crate) struct Settings {
    pub(crate) client_id: Arc<str>,
    /// Empty if it is not known.
    pub(crate) client_rack: Str,
    pub(crate) request_timeout: Duration,
    pub(crate) metadata_max_age: Duration,
}

impl Kafka {
    /// Returns a builder for a client of the cluster that these servers belong to: `host:port`, several with commas
    /// between. One that is up is enough; the others of the cluster are learned from it.
    ///
    /// A URL will do as well: `kafka://user:password@host:port,host:port/?name=value`, or `kafka+tls://` for TLS, with
    /// settings by the names that [`from_properties`](Self::from_properties) knows, and percent signs where a URL needs
    /// them. A setting that is not known, is there twice, or contradicts the rest (a user, and a `security.protocol`
    /// without SASL) is an error. What is wrong with it is told by [`connect`](KafkaBuilder::connect).
    ///
    /// ```
    /// use krafka::Kafka;
    ///
    /// let builder = Kafka::builder("kafka-1:9092,kafka-2:9092");
    /// let builder = Kafka::builder("kafka://alice:secret@kafka-1:9092/?sasl.mechanism=SCRAM-SHA-512&client.id=shop");
    /// ```
    pub fn builder(bootstrap_servers: impl Into<String>) -> KafkaBuilder {
        KafkaBuilder::new(bootstrap_servers.into())
    }

    /// Returns a builder with the settings of a Java client: the text of its `client.properties`.
    ///
    /// Read are `bootstrap.servers`, `client.id`, `client.rack`, `security.protocol`, `sasl.mechanism`,
    /// `sasl.jaas.config` (PLAIN, SCRAM with `tokenauth`, OAUTHBEARER with unsecured tokens, and AWS_MSK_IAM with keys
    /// of the environment), `sasl.oauthbearer.*` for tokens of an endpoint (feature `oidc`), `ssl.truststore.*` and
    /// `ssl.keystore.*` (PEM, and JKS or PKCS #12 with the feature `keystores`, which is there by default: the file
    /// says which of the two it is), `ssl.key.password`, `ssl.enabled.protocols`, `ssl.cipher.suites`,
    /// `ssl.endpoint.identification.algorithm`,
    /// `request.timeout.ms`, `socket.connection.setup.timeout.ms`, `connections.max.idle.ms`, `metadata.max.age.ms`,
    /// `metadata.recovery.strategy`, `metadata.recovery.rebootstrap.trigger.ms` and `allow.auto.create.topics`. Others,
    /// such as those of producers and consumers, are passed over; the log warns of those about security (`security.*`,
    /// `sasl.*`, `ssl.*`), and of those that look misspelt, which is an error where security is at stake.
    /// `bootstrap.servers`, or `url`, may be a URL as for [`builder`](Self::builder).
    ///
    /// Without a truststore those issuers are trusted that `Tls::new` trusts: Mozilla's, where Java trusts the list of
    /// its own.
    ///
    /// ```
    /// let text = "bootstrap.servers=kafka-1:9092\n\
    ///             security.protocol=SASL_PLAINTEXT\n\
    ///             sasl.mechanism=SCRAM-SHA-512\n\
    ///             sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \
    ///               username=\"alice\" password=\"secret\";\n";
    /// let builder = krafka::Kafka::from_properties(text)?;
    /// # Ok::<_, krafka::KrafkaError>(())
    /// ```
    ///
    /// # Errors
    /// [`KrafkaError::Config`](crate::KrafkaError::Config) names the property that is missing or wrong. A key store of
    /// Java's own form is refused with the way to convert it.
    pub fn from_properties(text: &str) -> Result<KafkaBuilder> {
        Properties::from_text(text)?.builder()
    }

    /// Returns a builder with the settings of the process's environment: the properties of
    /// [`from_properties`](Self::from_properties), where `KRAFKA_BOOTSTRAP_SERVERS` is `bootstrap.servers`, and so on.
    /// `KRAFKA_URL` may hold a URL instead; what it leaves open, such as TLS or the mechanism, the others say, and what
    /// is in both must be the same.
    ///
    /// # Errors
    /// As for [`from_properties`](Self::from_properties), and the variable is named. One about security that is not
    /// known (`KRAFKA_SECURITY_…`, `KRAFKA_SASL_…`, `KRAFKA_SSL_…`), or one that looks misspelt, is an error, too;
    /// others that begin with `KRAFKA_` may be somebody else's, and are passed over.
    pub fn from_env() -> Result<KafkaBuilder> {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            // Names that are no text are not ours.
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        Properties::from_variables(std::env::vars_os().filter_map(text)).builder()
    }

    pub(crate) fn new(
        network: Network,
        cluster: Cluster,
        environment: Environment,
        registry: Arc<Registry>,
        settings: Settings,
    ) -> Self {
        let next_owner = AtomicU64::new(1);
        let inner = Inner { network, cluster, environment, registry, settings, next_owner };
        Self { inner: Arc::new(inner) }
    }

    /// Returns a builder for a producer. It shares this handle's connections and metadata.
    pub fn producer(&self) -> ProducerBuilder {
        ProducerBuilder::new(self.clone())
    }

    /// Returns a client for administration: topics and the cluster.
    pub fn admin(&self) -> AdminClient {
        AdminClient::new(self.clone())
    }

    /// Returns what the client did so far, in numbers: its connections, requests, producers and consumers.
    ///
    /// Meant for a page that Prometheus reads, or a line in a log: to read all of it takes some microseconds.
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        self.inner.registry.read(self.inner.network.fallbacks())
    }

    /// Drops what is known of the cluster's brokers, and learns it again from the bootstrap servers.
    ///
    /// Clients do this by themselves when no known broker can be reached (KIP-899) or a broker asks for it (KIP-1102);
    /// call it when you know better, for example after moving the cluster behind the same names. It works whatever the
    /// [`MetadataRecoveryStrategy`](crate::MetadataRecoveryStrategy). Requests in flight are not aborted.
    ///
    /// If the servers turn out to be of another cluster, that is logged as a warning, and the client goes on there:
    /// nothing that it knew of the former cluster's topics, leaders and coordinators is believed any more.
    pub fn rebootstrap(&self) {
        self.inner.cluster.rebootstrap();
    }

    /// Replaces the bootstrap servers, which are written as for [`builder`](Self::builder), but not as a URL.
    ///
    /// They are used the next time that the client begins again, or now, if it is trying to; call
    /// [`rebootstrap`](Self::rebootstrap) to make it. Call this when the list that the client was built with is out of
    /// date: after brokers were replaced, or when service discovery tells of others.
    ///
    /// ```no_run
    /// # async fn example(kafka: krafka::Kafka) -> krafka::Result<()> {
    /// kafka.update_seed_brokers("kafka-4:9092,kafka-5:9092")?;
    /// kafka.rebootstrap();
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`KrafkaError::Config`](crate::KrafkaError::Config) names the server that is not valid; then the former ones
    /// stay.
    pub fn update_seed_brokers(&self, servers: &str) -> Result<()> {
        self.inner.cluster.seed(bootstrap::parse(servers)?);
        Ok(())
    }

    /// Refuses all further requests, of everything made from this handle too, and closes the connections once the
    /// requests that were sent are answered, or after three seconds: who still waits for an answer then gets
    /// [`KrafkaError::Closed`](crate::KrafkaError::Closed). Returns at once. Close producers and consumers first.
    pub fn close(&self) {
        self.inner.network.close();
    }

    pub(crate) fn network(&self) -> &Network {
        &self.inner.network
    }

    pub(crate) fn cluster(&self) -> &Cluster {
        &self.inner.cluster
    }

    pub(crate) fn registry(&self) -> &Registry {
        &self.inner.registry
    }

    pub(crate) fn client_id(&self) -> &Arc<str> {
        &self.inner.settings.client_id
    }

    pub(crate) fn environment(&self) -> &Environment {
        &self.inner.environment
    }

    pub(crate) fn request_timeout(&self) -> Duration {
        self.inner.settings.request_timeout
    }

    pub(crate) fn client_rack(&self) -> &Str {
        &self.inner.settings.client_rack
    }

    pub(crate) fn metadata_max_age(&self) -> Duration {
        self.inner.settings.metadata_max_age
    }

    /// A number that no other client of this handle has: for lanes, watched topics and seeds.
    pub(crate) fn next_owner(&self) -> u64 {
        self.inner.next_owner.fetch_add(1, Ordering::Relaxed)
    }
}

impl fmt::Debug for Kafka {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kafka").field("client_id", &self.inner.settings.client_id).finish_non_exhaustive()
    }
}
