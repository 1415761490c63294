//! Describes a cluster before it runs: nodes, topics, settings; then builds it, with or without a shell.

mod check;
mod elsewhere;
mod groups;
mod properties;
mod security;

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use krafka_protocol::Str;

use crate::clock::{self, Clock, TokioClock, WallClock};
use crate::cluster::Cluster;
use crate::config::Config;
use crate::faults::{KafkaVersion, Profile};
use crate::handle::FakeCluster;
use crate::listeners::{Listeners, SecurityProtocol};
use crate::nodes::{Node, Nodes};
use crate::rng::Rng;
use crate::serve::tcp::Listener;
use crate::serve::{self, Shared};
use crate::state::State;
use crate::transactions;

/// Builds a [`FakeCluster`].
///
/// ```
/// use krafka_fake_broker::FakeCluster;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> std::io::Result<()> {
/// let fake = FakeCluster::builder().nodes(3).topic("orders", 3).start().await?;
/// println!("connect to {}", fake.bootstrap());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until it is started"]
pub struct FakeClusterBuilder {
    nodes: i32,
    racks: Vec<Str>,
    versions: BTreeMap<i32, KafkaVersion>,
    version: KafkaVersion,
    profile: Option<Profile>,
    profiles: BTreeMap<i32, Profile>,
    features: BTreeMap<Str, i16>,
    topics: Vec<(Str, i32)>,
    port_base: Option<u16>,
    start_ms: Option<i64>,
    clock: Arc<dyn Clock>,
    replication_factor: Option<i16>,
    listeners: Vec<SecurityProtocol>,
    /// Names and passwords of those who may log in by all mechanisms.
    users: Vec<(Str, Str)>,
    #[cfg(feature = "tls")]
    tls: Option<serve::tls::ServerTls>,
    config: Config,
}

impl Default for FakeClusterBuilder {
    fn default() -> Self {
        Self {
            nodes: 1,
            racks: Vec::new(),
            versions: BTreeMap::new(),
            version: KafkaVersion::default(),
            profile: None,
            profiles: BTreeMap::new(),
            features: BTreeMap::new(),
            topics: Vec::new(),
            port_base: None,
            start_ms: None,
            clock: Arc::new(TokioClock),
            replication_factor: None,
            listeners: Vec::new(),
            users: Vec::new(),
            #[cfg(feature = "tls")]
            tls: None,
            config: Config::default(),
        }
    }
}

impl FakeClusterBuilder {
    /// Sets the number of nodes, whose ids count from 1. The default is one.
    ///
    /// # Panics
    ///
    /// If there is none, or more than a thousand.
    #[track_caller]
    pub fn nodes(self, nodes: i32) -> Self {
        self.try_nodes(nodes).unwrap_or_else(|reason| panic!("{reason}"))
    }

    /// Adds a topic with so many partitions, there from the start. For a name that was given before, the later number
    /// counts.
    ///
    /// # Panics
    ///
    /// If the name is invalid, or collides with another one's (`a.b` with `a_b`), or there are no partitions or more
    /// than a hundred thousand.
    #[track_caller]
    pub fn topic(self, name: impl Into<Str>, partitions: i32) -> Self {
        self.try_topic(name, partitions).unwrap_or_else(|reason| panic!("{reason}"))
    }

    /// Sets the seed of the cluster's chance: the ids of topics, sessions and members. The default is 0.
    pub fn seed(mut self, seed: u64) -> Self {
        self.config.seed = seed;
        self
    }

    /// Makes the cluster strict: when its last handle is dropped, it panics if a rule never acted, or if a client asked
    /// for what Kafka refuses because the request itself is wrong. [`FakeCluster::complaints`] tells earlier.
    ///
    /// **Unstable:** may change in any release.
    pub fn strict(mut self) -> Self {
        self.config.strict = true;
        self
    }

    /// Sets which version of Kafka all nodes look like. The default is the newest.
    pub fn as_version(mut self, version: KafkaVersion) -> Self {
        self.version = version;
        self
    }

    /// Sets which version of Kafka one node looks like, as in a rolling upgrade.
    pub fn node_version(mut self, node: i32, version: KafkaVersion) -> Self {
        self.versions.insert(node, version);
        self
    }

    /// Makes all nodes advertise the APIs of a service that speaks Kafka's protocol and is not Kafka.
    ///
    /// **Unstable:** may change in any release.
    pub fn as_service(mut self, profile: Profile) -> Self {
        self.profile = Some(profile);
        self
    }

    /// Makes one node advertise the APIs of a service.
    ///
    /// **Unstable:** may change in any release.
    pub fn node_service(mut self, node: i32, profile: Profile) -> Self {
        self.profiles.insert(node, profile);
        self
    }

    /// Sets the level that a feature is at in the beginning, such as 0 of `group.version`, as `--feature` of Kafka's
    /// `kafka-storage format` does. The default is what the Kafka version that the nodes look like begins with.
    ///
    /// **Unstable:** may change in any release.
    pub fn feature(mut self, name: impl Into<Str>, level: i16) -> Self {
        self.features.insert(name.into(), level);
        self
    }

    /// Sets the racks of the nodes, given round robin. By default nodes have none.
    pub fn racks<S: Into<Str>>(mut self, racks: impl IntoIterator<Item = S>) -> Self {
        self.racks = racks.into_iter().map(Into::into).collect();
        self
    }

    /// Sets how many partitions a topic gets whose creator does not say: Kafka's `num.partitions`. The default is 1.
    ///
    /// # Panics
    ///
    /// If it is none.
    #[track_caller]
    pub fn default_partitions(self, partitions: i32) -> Self {
        self.with("num.partitions", partitions)
    }

    /// Sets how many replicas a topic gets whose creator does not say: Kafka's `default.replication.factor`. The
    /// default is 3, or the number of nodes if that is less, so that topics survive the crash of a node.
    ///
    /// # Panics
    ///
    /// If it is none.
    #[track_caller]
    pub fn replication_factor(self, replicas: i16) -> Self {
        self.with("default.replication.factor", replicas)
    }

    /// Sets whether asking for an unknown topic creates it: Kafka's `auto.create.topics.enable`. The default is no,
    /// other than Kafka's, so that a misspelt topic shows in a test.
    pub fn auto_create_topics(mut self, create: bool) -> Self {
        self.config.auto_create_topics = create;
        self
    }

    /// Sets whether the nodes advertise that they take metrics of clients (KIP-714), as those of Kafka do that have a
    /// plugin for it. The default is no: Java's clients push wherever they may.
    ///
    /// **Unstable:** may change in any release.
    pub fn client_telemetry(mut self, take: bool) -> Self {
        self.config.client_telemetry = take;
        self
    }

    /// Sets a config of all brokers by Kafka's name of it, as a broker's file does: such as `log.retention.hours`, or
    /// `group.share.record.lock.duration.ms`. It is told by DescribeConfigs, and topics and groups inherit it. What has
    /// a method of its own here goes through that.
    ///
    /// **Unstable:** may change in any release.
    ///
    /// # Panics
    ///
    /// If [`property`](Self::property) refuses it.
    #[track_caller]
    pub fn broker_config(self, name: impl Into<Str>, value: impl Into<Str>) -> Self {
        self.with(&name.into(), value.into())
    }

    /// Sets whether a leader sends consumers to the replica in their rack (KIP-392): Kafka's `replica.selector.class`
    /// with its `RackAwareReplicaSelector`. The default is no: the leader serves all.
    ///
    /// **Unstable:** may change in any release.
    pub fn rack_aware_replica_selector(mut self, is_rack_aware: bool) -> Self {
        self.config.rack_aware_replica_selector = is_rack_aware;
        self
    }

    /// Sets how many fetch sessions a node keeps: Kafka's `max.incremental.fetch.session.cache.slots`. The default is
    /// 1000. As in Kafka, eight parts of the cache have an eighth of the slots each and take turns: with fewer than
    /// eight there are no sessions.
    ///
    /// **Unstable:** may change in any release.
    ///
    /// # Panics
    ///
    /// If it is more than an `i32` has room for.
    #[track_caller]
    pub fn fetch_session_slots(self, slots: usize) -> Self {
        self.with("max.incremental.fetch.session.cache.slots", slots)
    }

    /// Makes the nodes speak the versions of requests that their Kafka calls unstable: Kafka's
    /// `unstable.api.versions.enable`, which is not set by default. From Kafka 4.1 on it is version 6 of InitProducerId
    /// that this adds, for [two-phase commits](Self::two_phase_commit); the unstable group protocols of Kafka 4.0 and
    /// 4.1 are not here.
    ///
    /// **Unstable:** may change in any release.
    pub fn unstable_api_versions(mut self, speak: bool) -> Self {
        self.config.unstable_api_versions = speak;
        self
    }

    /// Sets whether producers may take part in two-phase commits (KIP-939), so that no timeout aborts their
    /// transactions: Kafka's `transaction.two.phase.commit.enable`. The default is no. A client can ask for it only
    /// where [unstable versions](Self::unstable_api_versions) are spoken.
    ///
    /// **Unstable:** may change in any release.
    pub fn two_phase_commit(mut self, allow: bool) -> Self {
        self.config.two_phase_commit = allow;
        self
    }

    /// Sets the longest timeout that a producer may give its transactions: Kafka's `transaction.max.timeout.ms`. The
    /// default is 15 min.
    ///
    /// **Unstable:** may change in any release.
    ///
    /// # Panics
    ///
    /// If it is no time at all.
    #[track_caller]
    pub fn transaction_max_timeout(mut self, timeout: Duration) -> Self {
        some_time("transaction max timeout", timeout);
        self.config.transaction_max_timeout_ms = i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX);
        self
    }

    /// Sets how long it takes until the partitions of a transaction are told how it ends, counted from the answer to
    /// EndTxn. Meanwhile the next request of the producer is answered CONCURRENT_TRANSACTIONS, as Kafka answers it for
    /// some milliseconds behind each commit. The default is no time at all, so that a test that looks right behind a
    /// commit sees it. [`FakeCluster::delay_markers`] changes it later.
    ///
    /// **Unstable:** may change in any release.
    pub fn marker_delay(mut self, delay: Duration) -> Self {
        self.config.marker_delay = delay;
        self
    }

    /// Sets whether the coordinators' topics are yet to be made, as in a fresh Kafka: who asks for a coordinator first
    /// is answered COORDINATOR_NOT_AVAILABLE, and asks again after its backoff. By default they are there for whoever
    /// asks, so that a test does not wait.
    ///
    /// **Unstable:** may change in any release.
    pub fn fresh_coordinators(mut self, fresh: bool) -> Self {
        self.config.fresh_coordinators = fresh;
        self
    }

    /// Sets how often coordinators look for transactions that are open for too long: Kafka's
    /// `transaction.abort.timed.out.transaction.cleanup.interval.ms`. The default is 10 s.
    ///
    /// **Unstable:** may change in any release.
    ///
    /// # Panics
    ///
    /// If it is no time at all.
    #[track_caller]
    pub fn transaction_abort_interval(mut self, interval: Duration) -> Self {
        some_time("transaction abort interval", interval);
        self.config.transaction_abort_interval = interval;
        self
    }

    /// Sets after how long without a transaction a transactional id is forgotten: Kafka's
    /// `transactional.id.expiration.ms`. The default is 7 days. They are looked for once in an hour.
    ///
    /// **Unstable:** may change in any release.
    ///
    /// # Panics
    ///
    /// If it is no time at all.
    #[track_caller]
    pub fn transactional_id_expiration(mut self, expiration: Duration) -> Self {
        some_time("transactional id expiration", expiration);
        self.config.transactional_id_expiration_ms = i64::try_from(expiration.as_millis()).unwrap_or(i64::MAX);
        self
    }

    /// Sets after how long without a batch a partition forgets a producer: Kafka's `producer.id.expiration.ms`. The
    /// default is one day. They are looked for every ten minutes, and what counts is the timestamp of their batches.
    ///
    /// **Unstable:** may change in any release.
    ///
    /// # Panics
    ///
    /// If it is no time at all.
    #[track_caller]
    pub fn producer_id_expiration(mut self, expiration: Duration) -> Self {
        some_time("producer id expiration", expiration);
        self.config.producer_id_expiration_ms = i64::try_from(expiration.as_millis()).unwrap_or(i64::MAX);
        self
    }

    /// Sets how long a new transaction coordinator reads its partition: it answers COORDINATOR_LOAD_IN_PROGRESS for so
    /// long after each election. The default is not at all.
    ///
    /// **Unstable:** may change in any release.
    pub fn coordinator_load_time(mut self, time: Duration) -> Self {
        self.config.coordinator_load_time = time;
        self
    }

    /// Sets how many share sessions a node keeps: Kafka's `group.share.max.share.sessions`. The default is 2000.
    ///
    /// **Unstable:** may change in any release.
    ///
    /// # Panics
    ///
    /// If it is none.
    #[track_caller]
    pub fn share_session_slots(self, slots: usize) -> Self {
        self.with("group.share.max.share.sessions", slots)
    }

    /// Sets the first of the ports that [`start`](Self::start) listens on, one for each node. By default the system
    /// chooses.
    pub fn port_base(mut self, port: u16) -> Self {
        self.port_base = Some(port);
        self
    }

    /// Sets the time of day at which the cluster starts, in milliseconds since 1970. The default is now.
    ///
    /// Clients have their own clock. From Kafka 4.0 on a broker refuses records with INVALID_TIMESTAMP that are more
    /// than an hour ahead of its time: with a start in the past, either the records are given a time of theirs, or
    /// [`broker_config`](Self::broker_config) sets `log.message.timestamp.after.max.ms` to more.
    pub fn start_time_ms(mut self, start_ms: i64) -> Self {
        self.start_ms = Some(start_ms);
        self
    }

    /// Replaces the clock that [`FakeCluster::serve`] and [`FakeCluster::run_timers`] read.
    ///
    /// **Unstable:** may change in any release.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Starts the cluster on ports of 127.0.0.1.
    ///
    /// # Errors
    ///
    /// If a port cannot be listened on, or [`check`](Self::check) finds something wrong.
    ///
    /// # Cancel safety
    ///
    /// A dropped future leaves nothing behind.
    pub async fn start(self) -> io::Result<FakeCluster> {
        self.check().map_err(|reason| io::Error::new(io::ErrorKind::InvalidInput, reason))?;
        let listeners = serve::tcp::bind(&self.listeners(), self.nodes, self.port_base).await?;
        let ports = |node| listeners.iter().filter(|bound| bound.port.node == node).map(Listener::named).collect();
        let fake = self.into_cluster("127.0.0.1", ports)?;
        fake.spawn_tcp(listeners);
        Ok(fake)
    }

    /// Starts the cluster in memory: its nodes are reached through [`FakeCluster::pipes`]. The tasks run on the current
    /// tokio runtime, which may be paused.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime, or if [`check`](Self::check) finds something wrong.
    #[track_caller]
    pub fn start_on_pipes(self) -> FakeCluster {
        let fake = self.build();
        fake.spawn_timers();
        fake
    }

    /// Builds the cluster without any shell: a simulation gives it connections through [`FakeCluster::serve`], and time
    /// through [`FakeCluster::run_timers`]. Node 2 calls itself `broker-2`, port 9092; further listeners have the ports
    /// from 9093 on.
    ///
    /// **Unstable:** may change in any release.
    ///
    /// # Panics
    ///
    /// If [`check`](Self::check) finds something wrong, or the certificate of a TLS listener cannot be used.
    #[track_caller]
    pub fn build(self) -> FakeCluster {
        let ports = self.listeners().in_memory();
        self.into_cluster("broker", |_| ports.clone()).unwrap_or_else(|error| panic!("{error}"))
    }

    fn into_cluster(
        self,
        host: &str,
        ports: impl Fn(i32) -> BTreeMap<SecurityProtocol, u16>,
    ) -> io::Result<FakeCluster> {
        self.check().map_err(|reason| io::Error::new(io::ErrorKind::InvalidInput, reason))?;
        let clock = self.clock.clone();
        #[cfg(feature = "tls")]
        let serving = self.tls.clone().map(serve::tls::Serving::new).transpose()?;
        let fake = FakeCluster::new(Shared::new(self.into_machine(host, ports, clock.now()), clock));
        #[cfg(feature = "tls")]
        fake.serve_tls(serving);
        Ok(fake)
    }

    /// The listeners that were named, or what is there without a name.
    fn listeners(&self) -> Listeners {
        let has_keys = !self.config.logins.aws.keys.is_empty();
        let has_users = !self.users.is_empty() || !self.config.logins.plain.is_empty() || has_keys;
        if self.listeners.is_empty() && has_users {
            return Listeners::new(&[SecurityProtocol::SaslPlaintext]);
        }
        Listeners::new(&self.listeners)
    }

    /// Builds the machine alone, which starts at `now`: a value that is fed with inputs and polled for actions. Two
    /// that are built alike and fed alike do the same, byte for byte, if they are given a
    /// [`start_time_ms`](Self::start_time_ms).
    ///
    /// **Unstable:** may change in any release.
    ///
    /// # Panics
    ///
    /// If [`check`](Self::check) finds something wrong.
    #[track_caller]
    pub fn build_machine(self, now: Instant) -> Cluster {
        self.check().unwrap_or_else(|reason| panic!("{reason}"));
        let ports = self.listeners().in_memory();
        self.into_machine("broker", |_| ports.clone(), now)
    }

    fn into_machine(self, host: &str, ports: impl Fn(i32) -> BTreeMap<SecurityProtocol, u16>, now: Instant) -> Cluster {
        // Before all that takes time, as keys of passwords do: or the cluster's time of day is ahead of everybody's.
        let start_ms = self.start_ms.unwrap_or_else(clock::system_millis);
        let listeners = self.listeners();
        let oldest = self.oldest_version();
        let mut config = Config { listeners, ..self.config };
        let mut ids = Rng::stream(config.seed, "ids");
        config.logins.chance = Rng::stream(config.seed, "sasl");
        self.users.iter().for_each(|(user, password)| config.logins.set_password(user, password));
        config.logins.complete_mechanisms();
        config.acls.knows_ranges = oldest >= KafkaVersion::V4_4;
        config.cluster_id = Str::from(ids.uuid().to_string());
        let widest = i16::try_from(self.nodes).unwrap_or(i16::MAX);
        config.replication_factor = self.replication_factor.unwrap_or_else(|| widest.min(3));
        config.write_properties(oldest);
        let node = |id: i32| {
            let host = if host == "127.0.0.1" { Str::from(host) } else { Str::from(format!("{host}-{id}")) };
            let rack = (!self.racks.is_empty()).then(|| self.racks[(id as usize - 1) % self.racks.len()].clone());
            let version = self.versions.get(&id).copied().unwrap_or(self.version);
            let profile = self.profiles.get(&id).copied().or(self.profile);
            Node { profile, ..Node::new(host, ports(id), rack, version) }
        };
        let nodes = Nodes::new((1..=self.nodes).map(|id| (id, node(id))).collect());
        let mut state = State::new(Arc::new(config), WallClock::new(now, start_ms), nodes, ids);
        let marker_delay = state.config.marker_delay;
        transactions::delay_markers(&mut state, marker_delay);
        state.begin_with_features(&self.features);
        let replicas = state.config.replication_factor;
        for (name, partitions) in self.topics {
            state.add_topic(name, partitions, replicas);
        }
        state.spread_keys_anew(now);
        Cluster::new(state)
    }
}

/// Sees that a time is one.
#[track_caller]
fn some_time(what: &str, time: Duration) {
    assert!(!time.is_zero(), "the {what} is some time, not {time:?}");
}
