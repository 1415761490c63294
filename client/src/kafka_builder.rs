//! [`KafkaBuilder`]: the settings of a client, and how it connects.

mod security;

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use crate::auth::{Credentials, Login};
use crate::cluster::{Cluster, MetadataRecoveryStrategy, Node, Rules};
use crate::environment::Environment;
use crate::error::{KrafkaError, Result};
use crate::kafka::{Kafka, Settings};
use crate::limits::{MAX_RESPONSE_SIZE, MAX_STRING, finite};
use crate::metrics::Registry;
use crate::network::{Destination, Network, NetworkConfig};
use crate::properties::Properties;
#[cfg(feature = "tls")]
use crate::tls::{FreshTls, Tls};
use crate::{bootstrap, drive};

/// Settings of a [`Kafka`] handle. Made by [`Kafka::builder`].
#[must_use = "nothing happens until connect() is awaited"]
#[derive(Clone)]
pub struct KafkaBuilder {
    /// What was wrong with the URL.
    fault: Option<KrafkaError>,
    bootstrap_servers: String,
    environment: Option<Environment>,
    client_id: String,
    client_rack: String,
    login: Option<Login>,
    #[cfg(feature = "tls")]
    tls: Option<Tls>,
    request_timeout: Duration,
    connect_timeout: Duration,
    bootstrap_timeout: Duration,
    metadata_max_age: Duration,
    recovery: MetadataRecoveryStrategy,
    rebootstrap_trigger: Duration,
    allow_auto_create_topics: bool,
    max_response_size: usize,
    connections_max_idle: Duration,
    max_connections: Option<usize>,
}

impl KafkaBuilder {
    /// A builder for servers or a URL, which [`connect`](Self::connect) judges.
    pub(crate) fn new(servers_or_url: String) -> Self {
        match Properties::from_url(&servers_or_url).map(|read| read.and_then(|properties| properties.builder())) {
            None => Self::of_servers(servers_or_url),
            Some(Ok(builder)) => builder,
            // Its text may hold a password.
            Some(Err(fault)) => Self { fault: Some(fault), ..Self::of_servers(String::new()) },
        }
    }

    pub(crate) fn of_servers(bootstrap_servers: String) -> Self {
        Self {
            fault: None,
            bootstrap_servers,
            environment: None,
            client_id: "krafka".to_owned(),
            client_rack: String::new(),
            login: None,
            #[cfg(feature = "tls")]
            tls: None,
            request_timeout: Duration::from_secs(30),
            connect_timeout: Duration::from_secs(10),
            bootstrap_timeout: Duration::from_secs(15),
            metadata_max_age: Duration::from_secs(5 * 60),
            recovery: MetadataRecoveryStrategy::Rebootstrap,
            rebootstrap_trigger: Duration::from_secs(5 * 60),
            allow_auto_create_topics: false,
            max_response_size: MAX_RESPONSE_SIZE,
            connections_max_idle: Duration::from_secs(9 * 60),
            max_connections: None,
        }
    }

    /// Sets the name that brokers log, meter and throttle this client by.
    ///
    /// Give each application its own. Default: `krafka`. Java: `client.id`.
    pub fn client_id(mut self, client_id: impl Into<String>) -> Self {
        self.client_id = client_id.into();
        self
    }

    /// Sets the rack that this client stands in, or the availability zone: what `broker.rack` is for its brokers.
    ///
    /// Consumers then read from a replica in their rack where there is one, instead of the leader (KIP-392): that is
    /// near, and costs no traffic between zones. The leader decides which one: brokers need
    /// `replica.selector.class=org.apache.kafka.common.replica.RackAwareReplicaSelector`. What is written is seen when
    /// that replica has it, some milliseconds later. The leader is asked again after
    /// [`metadata_max_age`](Self::metadata_max_age), and at once when the replica fails or lags behind.
    ///
    /// Members of groups tell it to their leader, who gives them partitions with a replica there first, as far as all
    /// get as many as without (KIP-881).
    ///
    /// ```
    /// let builder = krafka::Kafka::builder("kafka-1:9092").client_rack("eu-central-1a");
    /// ```
    ///
    /// Default: none, and all is read from leaders. Java: `client.rack`.
    pub fn client_rack(mut self, rack: impl Into<String>) -> Self {
        self.client_rack = rack.into();
        self
    }

    /// Sets how long the answer to a request may take, from the moment when the request is written.
    ///
    /// When it passes, the connection is closed, because a broker answers in order. Raise it for brokers that are slow
    /// under load; lower it to notice dead ones sooner. Default: 30 s. Java: `request.timeout.ms`.
    pub fn request_timeout(mut self, timeout: Duration) -> Self {
        self.request_timeout = finite(timeout);
        self
    }

    /// Sets how long making one connection may take: the name, TCP, TLS, authentication and version negotiation
    /// together. So long, too, [`connect`](Self::connect) waits for files of certificates and keys.
    ///
    /// Lower it to go on to the next broker sooner. Default: 10 s. Java: `socket.connection.setup.timeout.ms`.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = finite(timeout);
        self
    }

    /// Sets how long [`connect`](Self::connect) keeps trying the bootstrap servers.
    ///
    /// Raise it where clients start before their cluster; lower it to fail fast. Default: 15 s. Java:
    /// `bootstrap.resolve.timeout.ms` is the nearest.
    pub fn bootstrap_timeout(mut self, timeout: Duration) -> Self {
        self.bootstrap_timeout = finite(timeout);
        self
    }

    /// Sets after how long what is known of the topics in use is fetched again, though no broker called it wrong.
    ///
    /// This is how new partitions are noticed. For so long, too, a consumer stays with a replica in its
    /// [rack](Self::client_rack). Default: 5 min. Java: `metadata.max.age.ms`.
    pub fn metadata_max_age(mut self, max_age: Duration) -> Self {
        self.metadata_max_age = finite(max_age);
        self
    }

    /// Sets what to do when no broker that is known can be reached (KIP-899).
    ///
    /// Default: begin again with the bootstrap servers. Java: `metadata.recovery.strategy`.
    pub fn metadata_recovery_strategy(mut self, strategy: MetadataRecoveryStrategy) -> Self {
        self.recovery = strategy;
        self
    }

    /// Sets after how long without a successful metadata fetch the client begins again with the bootstrap servers,
    /// though some connections are alive (KIP-1102).
    ///
    /// Default: 5 min. Java: `metadata.recovery.rebootstrap.trigger.ms`.
    pub fn metadata_recovery_rebootstrap_trigger(mut self, trigger: Duration) -> Self {
        self.rebootstrap_trigger = finite(trigger);
        self
    }

    /// Lets brokers create a topic that is asked about and does not exist, if they are set up to
    /// (`auto.create.topics.enable`).
    ///
    /// Handy in development; in production a misspelt name becomes a topic. Default: off. Java:
    /// `allow.auto.create.topics`, which is on by default.
    pub fn allow_auto_create_topics(mut self, allow: bool) -> Self {
        self.allow_auto_create_topics = allow;
        self
    }

    /// Sets the largest response that is read, in bytes. A larger one closes the connection before anything is
    /// allocated.
    ///
    /// Raise it for clusters whose metadata, or whose batches, are larger. Default: 100 MiB. Java has no such setting.
    pub fn max_response_size(mut self, bytes: usize) -> Self {
        self.max_response_size = bytes;
        self
    }

    /// Sets after how long without a request a connection is closed.
    ///
    /// Keep it below the brokers' (10 min by default), so that they never close one that is about to be used. Default:
    /// 9 min. Java: `connections.max.idle.ms`.
    pub fn connections_max_idle(mut self, max_idle: Duration) -> Self {
        self.connections_max_idle = finite(max_idle);
        self
    }

    /// Sets how many connections the handle may have in all.
    ///
    /// To each broker there is one for metadata and administration, one for producers, and one for each consumer's
    /// fetches; to the coordinator of a group two more for each member. At the limit the one that was idle for longest
    /// makes room. If none is idle, a request goes over another connection to the same broker, and may have to wait
    /// there behind a long poll, which is short then (50 ms); those of a rebalance do not, as all else would wait for
    /// the whole group then. If there is none to this broker, whoever has had a connection for 40 ms gives it up
    /// once its requests are answered, and the brokers take turns: with fewer connections than brokers everything
    /// works, slowly, and up to 20 connections are made in a second; the log warns of it. Consumers that find nothing
    /// new take fewer turns then, and may see a record half a second late. Who gets no turn within ten seconds fails
    /// with an error that can be retried, which producers and consumers do.
    ///
    /// Where all that there are wait for rebalances, as the handle has more members of groups than connections, the
    /// members take turns of half a second, and a rebalance takes as many turns as there are members, or more. Static
    /// members should not be as many as the connections: one that has no member id yet must wait for its own answer.
    ///
    /// Set it where brokers limit connections per address. Default: no limit. Java has no such setting.
    pub fn max_connections(mut self, limit: usize) -> Self {
        self.max_connections = Some(limit);
        self
    }

    /// Sets how the client meets the outside world: its network, its clock, its chance.
    ///
    /// For tests and simulations, and to connect through a tunnel. Default: TCP and the system's clock. Java has no
    /// such setting.
    pub fn environment(mut self, environment: Environment) -> Self {
        self.environment = Some(environment);
        self
    }

    /// Connects to the first bootstrap server that answers, and learns the brokers of the cluster. No topic is loaded
    /// before it is used.
    ///
    /// # Errors
    /// [`KrafkaError::Config`] for a setting that is wrong. What cannot be helped by waiting (credentials that are
    /// refused, or no server among them that is a Kafka broker) is returned at once; otherwise the servers are tried
    /// until the bootstrap timeout. The error names each of them and why it failed, and the last cause is its
    /// [source](std::error::Error::source).
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    ///
    /// # Cancel safety
    /// Dropping the future closes what was opened.
    pub async fn connect(self) -> Result<Kafka> {
        let bootstrap = self.validated()?;
        self.warn_of_bare_secrets();
        #[cfg(feature = "tls")]
        let tls = match self.tls {
            None => None,
            Some(tls) => {
                let fresh = FreshTls::new(tls, self.connect_timeout).await;
                Some(fresh.map_err(|fault| KrafkaError::config(format!("tls: {fault}")))?)
            }
        };
        let environment = self.environment.unwrap_or_default();
        let client_id: Arc<str> = self.client_id.into();
        let registry = Arc::new(Registry::new(client_id.clone()));
        let network = Network::new(NetworkConfig {
            connect: environment.connector(),
            #[cfg(feature = "tls")]
            tls,
            credentials: self.login.map(|login| Arc::new(Credentials::new(login, self.connect_timeout, &environment))),
            client_id: client_id.clone(),
            destination: Destination::default(),
            registry: registry.clone(),
            connect_timeout: self.connect_timeout,
            max_response_size: self.max_response_size,
            max_idle: self.connections_max_idle,
            max_connections: self.max_connections.unwrap_or(usize::MAX),
            seed: environment.seed(),
        });
        let rules = Rules {
            bootstrap,
            max_age: self.metadata_max_age,
            recovery: self.recovery,
            rebootstrap_trigger: self.rebootstrap_trigger,
            seed: environment.seed(),
        };
        let (allow_auto_create, timeout) = (self.allow_auto_create_topics, self.request_timeout);
        let cluster = Cluster::start(network.clone(), rules, registry.clone(), allow_auto_create, timeout);
        first_contact(&cluster, self.bootstrap_timeout).await?;
        let settings = Settings {
            client_id,
            client_rack: self.client_rack.into(),
            request_timeout: timeout,
            metadata_max_age: self.metadata_max_age,
        };
        Ok(Kafka::new(network, cluster, environment, registry, settings))
    }

    /// One line where a secret goes to and fro for everybody to read. Through a connector of the user's own nothing is
    /// known of that: it may be a tunnel.
    fn warn_of_bare_secrets(&self) {
        #[cfg(feature = "tls")]
        let is_readable = self.environment.is_none() && self.tls.is_none();
        #[cfg(not(feature = "tls"))]
        let is_readable = self.environment.is_none();
        if let Some(secret) = self.login.as_ref().and_then(Login::bare_secret).filter(|_| is_readable) {
            tracing::warn!(client_id = self.client_id, "{secret} goes to the brokers in plain text: use TLS with it");
        }
    }

    fn validated(&self) -> Result<Vec<Node>> {
        if let Some(fault) = &self.fault {
            return Err(fault.clone());
        }
        let positive = [
            ("request_timeout", self.request_timeout),
            ("connect_timeout", self.connect_timeout),
            ("bootstrap_timeout", self.bootstrap_timeout),
            ("metadata_max_age", self.metadata_max_age),
            ("connections_max_idle", self.connections_max_idle),
        ];
        if let Some((name, _)) = positive.iter().find(|(_, duration)| duration.is_zero()) {
            return Err(KrafkaError::config(format!("{name} is zero: give it at least some milliseconds")));
        }
        if self.max_response_size < 1024 {
            let given = self.max_response_size;
            return Err(KrafkaError::config(format!("max_response_size is {given} bytes: give at least 1024")));
        }
        if self.max_connections == Some(0) {
            return Err(KrafkaError::config("max_connections is 0: give at least 1, better 4 for each broker"));
        }
        for (name, text) in [("client_id", &self.client_id), ("client_rack", &self.client_rack)] {
            if text.len() > MAX_STRING {
                let given = text.len();
                return Err(KrafkaError::config(format!("{name} has {given} bytes: Kafka takes {MAX_STRING} at most")));
            }
        }
        if let Some(fault) = self.login.as_ref().and_then(Login::fault) {
            return Err(KrafkaError::config(fault));
        }
        bootstrap::parse(&self.bootstrap_servers)
    }
}

/// Tries until metadata came, or the time is over. The refresher keeps the attempts apart.
async fn first_contact(cluster: &Cluster, timeout: Duration) -> Result<()> {
    let deadline = drive::now() + timeout;
    while let Ok(loaded) = tokio::time::timeout_at(deadline.into(), cluster.load(&[])).await {
        match loaded {
            Ok(_) => return Ok(()),
            Err(error) if !error.is_retriable() => return Err(error),
            // The refresher remembers it.
            Err(_) => {}
        }
    }
    // A round may take longer than the time that there is: what it has met with so far is told.
    let Err(error) = cluster.give_up().await else { return Ok(()) };
    let message = format!("gave up after {timeout:?} (bootstrap_timeout): {error}");
    Err(match &error {
        KrafkaError::Network(_) => error.saying(message),
        other => KrafkaError::network_of(io::ErrorKind::TimedOut, message, other.cause()),
    })
}

/// Secrets are not shown.
impl fmt::Debug for KafkaBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("KafkaBuilder");
        shown
            .field("bootstrap_servers", &bootstrap::shown(&self.bootstrap_servers))
            .field("client_id", &self.client_id)
            .field("client_rack", &self.client_rack)
            .field("login", &self.login)
            .field("request_timeout", &self.request_timeout)
            .field("metadata_recovery_strategy", &self.recovery);
        #[cfg(feature = "tls")]
        shown.field("tls", &self.tls);
        shown.finish_non_exhaustive()
    }
}
