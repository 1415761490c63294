//! [`World`]: what a story sees of the place that it runs in.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use krafka::{Connect, Environment, Kafka, KafkaBuilder, NewTopic, WallClock};
use krafka_fake_broker::FakeCluster;
use tokio::time::Instant;

use crate::calls::Calls;
use crate::links::Links;
use crate::stories::{Doors, LOGIN};
use crate::workload::Sent;
use crate::{Failure, Result};

/// How long a call may take when the story has no tighter bound: past every default timeout of the client.
pub const PATIENCE: Duration = Duration::from_secs(180);

/// Which kind of world it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Pipes and a paused clock; only the faults that the story asks for.
    Scripted,
    /// turmoil; a seed draws faults on top of the story's, then all of them heal.
    Simulated,
    /// TCP and the machine's clock.
    Real,
}

impl Kind {
    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Scripted => "scripted",
            Self::Simulated => "simulated",
            Self::Real => "real",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Where a story runs: a cluster, the network to it, and a clock.
pub struct World {
    kind: Kind,
    seed: u64,
    bootstrap: String,
    connect: Arc<dyn Connect>,
    links: Links,
    fake: Option<Arc<FakeCluster>>,
    calls: Calls,
    topics: Mutex<Vec<Topic>>,
    sent: Arc<Mutex<Vec<Sent>>>,
    clients: AtomicU64,
    /// Sets the names of one run apart from those of the last one on the same real cluster.
    suffix: String,
    /// Whether clients log in.
    logs_in: bool,
    started: Instant,
}

impl World {
    /// A world around a cluster.
    ///
    /// `fake` is the cluster itself, where it is one that can be told to break.
    #[must_use]
    pub fn new(
        kind: Kind,
        seed: u64,
        bootstrap: String,
        connect: Arc<dyn Connect>,
        fake: Option<Arc<FakeCluster>>,
    ) -> Self {
        let suffix = match kind {
            Kind::Real => format!("-{seed:x}"),
            Kind::Scripted | Kind::Simulated => String::new(),
        };
        Self {
            kind,
            seed,
            bootstrap,
            connect,
            links: Links::default(),
            fake,
            calls: Calls::default(),
            topics: Mutex::default(),
            sent: Arc::default(),
            clients: AtomicU64::new(0),
            suffix,
            logs_in: false,
            started: now(),
        }
    }

    /// The same, whose cluster lets in only who these doors do.
    #[must_use]
    pub fn behind(mut self, doors: Doors) -> Self {
        self.logs_in = doors == Doors::Sessions;
        self
    }

    /// Which kind of world it is.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The seed of this run.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The bootstrap servers.
    #[must_use]
    pub fn bootstrap(&self) -> &str {
        &self.bootstrap
    }

    /// The network between this world's clients and its brokers.
    #[must_use]
    pub fn links(&self) -> &Links {
        &self.links
    }

    /// The calls that must answer.
    #[must_use]
    pub fn calls(&self) -> &Calls {
        &self.calls
    }

    /// How long this world has existed, on its own clock.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// The cluster, for a story that breaks it.
    ///
    /// # Errors
    /// In a world whose cluster is no fake: such a story must not be listed for it.
    pub fn fake(&self) -> Result<&FakeCluster> {
        self.fake.as_deref().ok_or_else(|| Failure::new("this story breaks the cluster, which only the fake allows"))
    }

    /// The cluster, if it is a fake.
    #[must_use]
    pub fn try_fake(&self) -> Option<&FakeCluster> {
        self.fake.as_deref()
    }

    /// The cluster, if it is a fake, for tasks that outlive a borrow.
    pub(crate) fn shared_fake(&self) -> Option<Arc<FakeCluster>> {
        self.fake.clone()
    }

    /// The address of a node of the fake, as its clients dial it.
    #[must_use]
    pub fn address(&self, node: i32) -> String {
        let address = self.try_fake().and_then(|fake| fake.address(node));
        address.map(|(host, port)| format!("{host}:{port}")).unwrap_or_default()
    }

    /// A client that is yet to be connected, over this world's network and clock, with a client id of its own.
    pub fn kafka_builder(&self) -> KafkaBuilder {
        self.kafka_builder_over(&self.links)
    }

    /// The same over links of its own, for a client whose network fails alone. They do not heal by themselves.
    pub fn kafka_builder_over(&self, links: &Links) -> KafkaBuilder {
        self.kafka_builder_from(&self.bootstrap, links)
    }

    /// The same, beginning at these bootstrap servers.
    pub fn kafka_builder_from(&self, bootstrap: &str, links: &Links) -> KafkaBuilder {
        let number = self.clients.fetch_add(1, Relaxed);
        let connect = links.over(self.connect.clone());
        let mut environment = Environment::new(connect, self.seed.wrapping_add(number.wrapping_mul(0x9e37_79b9)));
        if self.kind != Kind::Real {
            environment = environment.wall_clock(VirtualClock(self.started));
        }
        let builder = Kafka::builder(bootstrap).client_id(format!("client-{number}")).environment(environment);
        let (user, password) = LOGIN;
        if self.logs_in { builder.sasl_scram_sha512(user, password) } else { builder }
    }

    /// A connected client.
    ///
    /// # Errors
    /// If it cannot connect.
    pub async fn kafka(&self) -> Result<Kafka> {
        Ok(self.calls.within(PATIENCE, "connect", self.kafka_builder().connect()).await??)
    }

    /// A topic that is yet to be created.
    #[must_use]
    pub fn topic(&self, name: &str) -> NewWorldTopic<'_> {
        NewWorldTopic { world: self, name: format!("{name}{}", self.suffix), partitions: 1, configs: Vec::new() }
    }

    /// A name for a group or the like that no other run uses.
    #[must_use]
    pub fn name(&self, name: &str) -> String {
        format!("{name}{}", self.suffix)
    }

    /// The topics that the story has created.
    #[must_use]
    pub fn topics(&self) -> Vec<Topic> {
        self.topics.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes a topic off the list whose invariants are checked at the end: the story deletes it.
    pub fn forget(&self, topic: &Topic) {
        self.topics.lock().unwrap_or_else(PoisonError::into_inner).retain(|kept| kept != topic);
    }

    /// What senders have sent, once they are done.
    #[must_use]
    pub fn sent(&self) -> Vec<Sent> {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn sent_log(&self) -> Arc<Mutex<Vec<Sent>>> {
        self.sent.clone()
    }

    /// Lets the world's clock run on.
    pub async fn pass(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    /// Waits until the condition holds, looking every ten milliseconds.
    ///
    /// # Errors
    /// If it does not within [`PATIENCE`].
    pub async fn until(&self, what: &str, mut holds: impl FnMut() -> bool) -> Result<()> {
        let deadline = now() + PATIENCE;
        while !holds() {
            if now() > deadline {
                return Err(Failure::new(format!("after {PATIENCE:?} it is still not so that {what}")));
            }
            self.pass(Duration::from_millis(10)).await;
        }
        Ok(())
    }

    /// Asks every ten milliseconds until there is an answer.
    ///
    /// # Errors
    /// If there is none within [`PATIENCE`].
    pub async fn until_some<T>(&self, what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> Result<T> {
        let deadline = now() + PATIENCE;
        loop {
            if let Some(answer) = self.calls.within(PATIENCE, what, ask()).await? {
                return Ok(answer);
            }
            if now() > deadline {
                return Err(Failure::new(format!("after {PATIENCE:?} it is still not so that {what}")));
            }
            self.pass(Duration::from_millis(10)).await;
        }
    }
}

/// A topic that the story has created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topic {
    /// Its name.
    pub name: String,
    /// How many partitions it was created with.
    pub partitions: i32,
}

impl Topic {
    /// All of its partitions.
    #[must_use]
    pub fn all(&self) -> Vec<i32> {
        (0..self.partitions).collect()
    }
}

/// A topic to be.
pub struct NewWorldTopic<'a> {
    world: &'a World,
    name: String,
    partitions: i32,
    configs: Vec<(String, String)>,
}

impl NewWorldTopic<'_> {
    /// How many partitions it shall have; 1 unless set.
    #[must_use]
    pub fn partitions(mut self, partitions: i32) -> Self {
        self.partitions = partitions;
        self
    }

    /// A topic configuration, such as `max.message.bytes`.
    #[must_use]
    pub fn config(mut self, name: &str, value: &str) -> Self {
        self.configs.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Creates it, replicated on all nodes up to three.
    ///
    /// # Errors
    /// If the cluster does not.
    pub async fn create(self) -> Result<Topic> {
        let kafka = self.world.kafka().await?;
        let admin = kafka.admin();
        let nodes =
            self.world.calls.within(PATIENCE, "describe_cluster", admin.describe_cluster()).await??.brokers.len();
        let mut topic = NewTopic::new(&self.name, self.partitions).replication_factor(nodes.min(3) as i16);
        for (name, value) in &self.configs {
            topic = topic.config(name, value);
        }
        let created = self.world.calls.within(PATIENCE, "create_topics", admin.create_topics([topic])).await??;
        created.into_values().collect::<krafka::Result<()>>()?;
        let topic = Topic { name: self.name, partitions: self.partitions };
        self.world.topics.lock().unwrap_or_else(PoisonError::into_inner).push(topic.clone());
        Ok(topic)
    }
}

/// The time of day of a simulated world: noon of a fixed day, plus what has passed since.
struct VirtualClock(Instant);

impl WallClock for VirtualClock {
    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_millis(crate::worlds::NOON_MS) + self.0.elapsed()
    }
}

/// The world's own time.
#[expect(clippy::disallowed_methods, reason = "stories run on tokio's clock, which their world sets")]
pub(crate) fn now() -> Instant {
    Instant::now()
}
