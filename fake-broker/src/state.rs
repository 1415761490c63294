//! All that a cluster knows, as its handlers see and change it.
//!
//! [`Cluster`](crate::cluster::Cluster) moves requests through it; handlers are functions over it. What a handler
//! cannot do itself (write to another connection, look at a waiting request again) it leaves here as a note.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use krafka_protocol::{AnyResponse, Str, Uuid};

use crate::clock::WallClock;
use crate::config::Config;
use crate::configs::{Configs, Overrides};
use crate::connection::Connection;
use crate::context::{ConnectionId, RequestId};
use crate::coordinators::{self, CoordinatorKind, Spread};
use crate::faults::{Faults, KafkaVersion};
use crate::features::{ELIGIBLE_LEADER_REPLICAS_VERSION, Features};
use crate::groups::Groups;
use crate::groups::share::Share;
use crate::handlers::sessions::FetchSessions;
use crate::history::History;
use crate::links::Links;
use crate::listeners::SecurityProtocol;
use crate::log_dirs::LogDirs;
use crate::maintenance::Maintenance;
use crate::nodes::Nodes;
use crate::offsets::Offsets;
use crate::partition::Rules;
use crate::producer_ids::ProducerIds;
use crate::purgatory::{Purgatory, WaitKey};
use crate::quorum::Quorum;
use crate::quotas::Quotas;
use crate::reassignments::Reassignments;
use crate::rng::Rng;
use crate::security::acls::Acls;
use crate::security::logins::Logins;
use crate::telemetry::Telemetry;
use crate::timers::{Timer, TimerId, Timers};
use crate::topics::{Partition, Topic, Topics};
use crate::transactions::{PendingOffsets, Transactions};

/// How many complaints are kept: the first tell enough.
const MAX_COMPLAINTS: usize = 100;

/// The state of a cluster.
#[derive(Clone, Debug)]
pub(crate) struct State {
    pub(crate) config: Arc<Config>,
    /// What administrators set at run time.
    pub(crate) configs: Configs,
    pub(crate) clock: WallClock,
    pub(crate) nodes: Nodes,
    pub(crate) links: Links,
    pub(crate) features: Features,
    pub(crate) quorum: Quorum,
    pub(crate) reassignments: Reassignments,
    pub(crate) log_dirs: LogDirs,
    pub(crate) telemetry: Telemetry,
    pub(crate) topics: Topics,
    pub(crate) groups: Groups,
    pub(crate) share: Share,
    pub(crate) offsets: Offsets,
    /// The fetch sessions of each node: they live in a broker's memory, so a crash loses them.
    pub(crate) sessions: BTreeMap<i32, FetchSessions>,
    pub(crate) connections: BTreeMap<ConnectionId, Connection>,
    pub(crate) purgatory: Purgatory,
    pub(crate) timers: Timers,
    pub(crate) faults: Faults,
    /// What those nodes believe whose metadata is frozen.
    pub(crate) frozen: BTreeMap<i32, Box<Self>>,
    /// Whether this is no cluster, but what one of those nodes believes: what came to be here would be nowhere else.
    pub(crate) is_belief: bool,
    /// Over how many partitions of the coordinators' topics keys are spread.
    pub(crate) spread: Spread,
    /// Who coordinates what a test has pinned.
    pub(crate) pinned: BTreeMap<(CoordinatorKind, Str), i32>,
    /// What clients asked for that Kafka refuses, in words, if the cluster is strict.
    pub(crate) complaints: Vec<String>,
    pub(crate) history: History,
    pub(crate) maintenance: Maintenance,
    pub(crate) acls: Acls,
    pub(crate) logins: Logins,
    /// The certificate of the nodes, if a listener speaks TLS.
    #[cfg(feature = "tls")]
    pub(crate) tls: Option<crate::serve::tls::Serving>,
    pub(crate) quotas: Quotas,
    pub(crate) producer_ids: ProducerIds,
    pub(crate) transactions: Transactions,
    /// The offsets that groups commit inside of transactions that are open.
    pub(crate) pending_offsets: PendingOffsets,
    /// Chance for ids of topics, sessions and members.
    pub(crate) ids: Rng,
    /// Answers to requests that wait, made while something else was handled.
    pub(crate) answers: VecDeque<(RequestId, AnyResponse)>,
}

impl State {
    /// A cluster without topics, whose time of day follows `clock`. `ids` is the chance that the ids come from.
    pub(crate) fn new(config: Arc<Config>, clock: WallClock, nodes: Nodes, ids: Rng) -> Self {
        let version = nodes.oldest_version();
        let sessions =
            nodes.ids().into_iter().map(|node| (node, FetchSessions::new(config.fetch_session_slots))).collect();
        let spread = Spread::found_by(&config, &Topics::default());
        Self {
            groups: Groups::new(config.clone()),
            share: Share::new(nodes.ids(), config.share_session_slots),
            faults: Faults::new(config.seed),
            acls: config.acls.clone(),
            logins: config.logins.clone(),
            #[cfg(feature = "tls")]
            tls: None,
            quotas: Quotas::default(),
            configs: Configs::new(version, config.static_values()),
            config,
            clock,
            nodes,
            links: Links::default(),
            features: Features::default(),
            quorum: Quorum::default(),
            reassignments: Reassignments::default(),
            log_dirs: LogDirs::default(),
            telemetry: Telemetry::default(),
            topics: Topics::default(),
            offsets: Offsets::default(),
            sessions,
            connections: BTreeMap::new(),
            purgatory: Purgatory::default(),
            frozen: BTreeMap::new(),
            is_belief: false,
            spread,
            pinned: BTreeMap::new(),
            complaints: Vec::new(),
            timers: Timers::default(),
            history: History::default(),
            maintenance: Maintenance::default(),
            producer_ids: ProducerIds::default(),
            transactions: Transactions::default(),
            pending_offsets: PendingOffsets::default(),
            ids,
            answers: VecDeque::new(),
        }
    }

    /// Creates a topic whose name is new and valid, with its replicas spread over the nodes, and returns its id.
    ///
    /// Partition `p` is led by the `p`-th live node, counted round: a test can tell where things are.
    pub(crate) fn add_topic(&mut self, name: Str, partitions: i32, replication_factor: i16) -> Uuid {
        let assignments = (0..partitions).map(|index| self.place(index, replication_factor)).collect();
        self.add_topic_on(name, assignments, Overrides::new())
    }

    /// Creates a topic whose name is new and valid, with the replicas of each partition given, and what is set for it.
    pub(crate) fn add_topic_on(&mut self, name: Str, assignments: Vec<Vec<i32>>, given: Overrides) -> Uuid {
        let own_settings = self.own_topic_settings(&given);
        let settings = self.topic_settings(given);
        let id = self.ids.uuid();
        let live = self.nodes.live_ids();
        let rules = Rules {
            min_insync_replicas: settings.min_insync_replicas,
            knows_eligible: self.feature_level(ELIGIBLE_LEADER_REPLICAS_VERSION) > 0,
            orders_isr: self.cluster_version() >= KafkaVersion::V4_2,
        };
        let partitions = assignments.into_iter().map(|replicas| Partition::new(replicas, &live, rules)).collect();
        let internal = coordinators::is_internal(&name);
        self.topics.insert(Topic { id, name, internal, settings, own_settings, partitions });
        self.mind_followers(None);
        id
    }

    /// The replicas of a new partition: as many nodes as asked for in a row, live ones before dead ones.
    pub(crate) fn place(&self, index: i32, replication_factor: i16) -> Vec<i32> {
        let (mut nodes, dead): (Vec<_>, Vec<_>) =
            self.nodes.registered_ids().into_iter().partition(|&id| self.nodes.is_up(id));
        if !nodes.is_empty() {
            let live = nodes.len();
            nodes.rotate_left(usize::try_from(index).unwrap_or(0) % live);
        }
        nodes.extend(dead);
        nodes.truncate(usize::try_from(replication_factor).unwrap_or(1));
        nodes
    }

    /// Sees that there is a node to keep a new partition, up or down.
    ///
    /// # Errors
    ///
    /// All nodes were taken out of the cluster.
    pub(crate) fn has_room(&self) -> Result<(), String> {
        match self.nodes.registered_ids().is_empty() {
            true => Err("there is no node to keep a partition".to_owned()),
            false => Ok(()),
        }
    }

    /// The fetch sessions of a node that has none yet.
    pub(crate) fn new_sessions(&self) -> FetchSessions {
        FetchSessions::new(self.config.fetch_session_slots)
    }

    /// Lets a node know the cluster as it is now, however it changes.
    pub(crate) fn freeze(&mut self, node: i32) {
        let mut frozen = self.clone();
        frozen.forget_what_moves();
        self.frozen.insert(node, Box::new(frozen));
    }

    /// Forgets all but what a node's metadata is made of.
    pub(crate) fn forget_what_moves(&mut self) {
        self.history = History::default();
        self.connections.clear();
        self.purgatory = Purgatory::default();
        self.timers = Timers::default();
        self.frozen.clear();
        self.sessions.clear();
        self.is_belief = true;
        Arc::make_mut(&mut self.config).auto_create_topics = false;
    }

    /// Notes that a client asked for what Kafka refuses.
    pub(crate) fn complain(&mut self, words: impl FnOnce() -> String) {
        if self.config.strict {
            self.note(words());
        }
    }

    /// Notes what no test means to happen, whether the cluster is strict or not.
    pub(crate) fn note(&mut self, words: String) {
        if self.complaints.len() < MAX_COMPLAINTS {
            self.complaints.push(words);
        }
    }

    /// Answers a request that waits. A request that is gone with its connection needs no answer.
    pub(crate) fn answer(&mut self, request: RequestId, response: AnyResponse) {
        self.answers.push_back((request, response));
    }

    /// Sets a timer that is due `after` from `now`.
    pub(crate) fn set_timer(&mut self, now: Instant, after: Duration, timer: Timer) -> TimerId {
        self.timers.set(now + after, timer)
    }

    /// Lets the requests that watch a partition look again.
    pub(crate) fn wake_partition(&mut self, topic: Uuid, partition: i32) {
        self.purgatory.wake(WaitKey { topic, partition });
    }

    /// When brokers last looked for producers that are silent, in milliseconds since 1970: every ten minutes
    /// (`producer.id.expiration.check.interval.ms`). It shows only to those who ask, so that it is done when somebody
    /// does; long ago, if they have not yet.
    pub(crate) fn producers_swept_ms(&self, now: Instant) -> i64 {
        self.clock.last_multiple_ms(now, Duration::from_secs(10 * 60)).unwrap_or(i64::MIN)
    }

    /// What a node's id stands for, for the clients of a listener: host and port.
    pub(crate) fn endpoint(&self, node: i32, listener: SecurityProtocol) -> Option<(Str, i32)> {
        self.nodes.find(node).map(|node| node.told(listener))
    }
}
