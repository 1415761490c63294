//! What a test holds of a running cluster: its controls, and views of what is in it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use krafka_protocol::compression::Decompressor;
use krafka_protocol::records::{Batches, Record};
use krafka_protocol::{Bytes, Str};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::AbortHandle;

use crate::builder::FakeClusterBuilder;
use crate::cluster::Cluster;
use crate::coordinators::{self, CoordinatorKind};
use crate::faults::{Apis, RuleBuilder};
use crate::groups::GroupView;
use crate::history::History;
use crate::serve::pipe::Pipes;
use crate::serve::{Shared, driver, tcp};
use crate::state::State;
use crate::topics;

/// A running Kafka cluster that is not real, but answers as a real one does.
///
/// Clones are handles of the same cluster; it ends when the last one is dropped. All controls act at once.
///
/// ```
/// use krafka_fake_broker::FakeCluster;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> std::io::Result<()> {
/// let fake = FakeCluster::builder().nodes(3).topic("orders", 3).start().await?;
/// assert_eq!(fake.leader("orders", 0), Some(1));
///
/// fake.crash(1);
/// assert_eq!(fake.leader("orders", 0), Some(2));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct FakeCluster {
    running: Arc<Running>,
}

/// A cluster and its tasks, which end with it.
struct Running {
    shared: Arc<Shared>,
    tasks: Mutex<Vec<AbortHandle>>,
}

impl FakeCluster {
    /// Returns a builder for a cluster of one node without topics.
    pub fn builder() -> FakeClusterBuilder {
        FakeClusterBuilder::default()
    }

    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { running: Arc::new(Running { shared, tasks: Mutex::new(Vec::new()) }) }
    }

    /// Returns the addresses of all nodes, dead or alive, as a client takes them: `host:port,host:port`.
    pub fn bootstrap(&self) -> String {
        self.look(|state| {
            let addresses = state.nodes.iter().map(|(_, node)| format!("{}:{}", node.host, node.port));
            addresses.collect::<Vec<_>>().join(",")
        })
    }

    /// Returns the ids of all nodes, dead or alive.
    pub fn nodes(&self) -> Vec<i32> {
        self.look(|state| state.nodes.ids())
    }

    /// Returns where a node listens: host and port.
    pub fn address(&self, node: i32) -> Option<(Str, u16)> {
        let (host, port) = self.look(|state| state.endpoint(node))?;
        Some((host, u16::try_from(port).ok()?))
    }

    /// Returns the node that metadata calls the controller, or -1 when none is up.
    pub fn controller(&self) -> i32 {
        self.look(|state| state.nodes.controller())
    }

    /// Makes a live node the controller.
    ///
    /// # Panics
    ///
    /// If the node is not up.
    pub fn move_controller(&self, node: i32) {
        self.control(|state, _| {
            assert!(state.nodes.is_up(node), "node {node} is not up");
            state.nodes.set_controller(node);
        });
    }

    // ---- Topics ----

    /// Creates a topic with the cluster's replication factor. Partition `p` is led by the `p`-th live node, counted
    /// round.
    ///
    /// # Panics
    ///
    /// If the name is invalid or taken, or there are no partitions.
    pub fn create_topic(&self, name: &str, partitions: i32) {
        self.control(|state, _| {
            if let Err(fault) = topics::validate_name(name) {
                panic!("{fault}");
            }
            assert!(partitions > 0, "the topic {name} needs at least one partition");
            assert!(state.topics.by_name(name).is_none(), "the topic {name} exists already");
            let replicas = state.config.replication_factor;
            state.add_topic(Str::from(name), partitions, replicas);
        });
    }

    /// Deletes a topic with all its records. Says if it was there.
    pub fn delete_topic(&self, name: &str) -> bool {
        self.control(|state, _| {
            let id = state.topics.by_name(name).map(|topic| topic.id);
            id.and_then(|id| state.delete_topic(id)).is_some()
        })
    }

    /// Gives a topic more partitions, so that it has `total` of them.
    ///
    /// # Panics
    ///
    /// If there is no such topic, or it has as many already.
    pub fn add_partitions(&self, name: &str, total: i32) {
        self.control(|state, _| {
            let topic = state.topics.by_name(name).unwrap_or_else(|| panic!("there is no topic {name}"));
            let (id, present) = (topic.id, topic.partitions.len() as i32);
            assert!(total > present, "the topic {name} has {present} partitions already");
            let replicas = state.config.replication_factor;
            let assignments = (present..total).map(|index| state.place(index, replicas)).collect();
            state.grow_topic(id, assignments);
        });
    }

    /// Returns the names of all topics but the internal ones.
    pub fn topics(&self) -> Vec<Str> {
        self.look(State::topic_names)
    }

    /// Deletes all records below an offset, as retention does: the partition begins there.
    pub fn delete_records(&self, topic: &str, partition: i32, before: i64) {
        self.control(|state, _| {
            let Some(id) = state.topics.by_name(topic).map(|topic| topic.id) else { return };
            if let Some(cut) = state.topics.partition_mut(topic, partition) {
                cut.log.delete_before(before);
                state.wake_partition(id, partition);
            }
        });
    }

    /// Forgets what a partition knows of its idempotent producers, as a broker does after `producer.id.expiration.ms`:
    /// it takes any sequence from each of them then, and recognises no repetition of what came before.
    pub fn forget_producers(&self, topic: &str, partition: i32) {
        self.control(|state, _| {
            if let Some(partition) = state.topics.partition_mut(topic, partition) {
                partition.log.producers.clear();
            }
        });
    }

    // ---- Leaders and nodes ----

    /// Returns the node that leads a partition, or `None` when there is no leader or no such partition.
    pub fn leader(&self, topic: &str, partition: i32) -> Option<i32> {
        self.look(|state| state.topics.partition(topic, partition)?.leader)
    }

    /// Returns a partition's leader epoch.
    pub fn leader_epoch(&self, topic: &str, partition: i32) -> Option<i32> {
        self.look(|state| Some(state.topics.partition(topic, partition)?.leader_epoch))
    }

    /// Makes a node the leader of a partition, at the next leader epoch; and one of its replicas, if it is not.
    ///
    /// # Panics
    ///
    /// If the node is not up or there is no such partition.
    pub fn move_leader(&self, topic: &str, partition: i32, node: i32) {
        self.control(|state, now| {
            assert!(state.nodes.is_up(node), "node {node} is not up");
            let moved = state.topics.partition_mut(topic, partition);
            let moved = moved.unwrap_or_else(|| panic!("there is no partition {topic}-{partition}"));
            if !moved.replicas.contains(&node) {
                moved.replicas.push(node);
            }
            state.move_leader(topic, partition, node, now);
        });
    }

    /// Raises a partition's leader epoch while its leader stays: clients that know the old epoch are fenced.
    ///
    /// # Panics
    ///
    /// If there is no such partition.
    pub fn bump_leader_epoch(&self, topic: &str, partition: i32) {
        assert!(self.leader_epoch(topic, partition).is_some(), "there is no partition {topic}-{partition}");
        self.control(|state, now| state.bump_leader_epoch(topic, partition, now));
    }

    /// Elects a replica that never got what was written from `offset` on, as an unclean election does: the records from
    /// there on are lost, acknowledged or not, and the leader epoch rises. The batch that holds `offset` goes as a
    /// whole.
    ///
    /// # Panics
    ///
    /// If there is no such partition.
    pub fn truncate(&self, topic: &str, partition: i32, offset: i64) {
        assert!(self.leader_epoch(topic, partition).is_some(), "there is no partition {topic}-{partition}");
        self.control(|state, now| state.truncate(topic, partition, offset, now));
    }

    /// Returns the ids of the nodes that are up, in ascending order.
    pub fn live_nodes(&self) -> Vec<i32> {
        self.look(|state| state.nodes.live_ids().into_iter().collect())
    }

    /// Takes a node down: its connections are cut, new ones are refused, and its partitions move to other replicas in
    /// sync. What was written stays: the replicas have it.
    pub fn crash(&self, node: i32) {
        self.running.shared.step(|cluster, now| {
            cluster.disconnect(node);
            cluster.control(now, |state| state.node_died(node, now));
        });
        self.running.shared.nodes_changed();
    }

    /// Brings a node back up. It follows the leaders that there are, and leads only what nobody else may lead.
    pub fn restart(&self, node: i32) {
        self.control(|state, now| state.node_returned(node, now));
        self.running.shared.nodes_changed();
    }

    /// Cuts all connections of a node, which stays up.
    pub fn disconnect(&self, node: i32) {
        self.running.shared.step(|cluster, _| cluster.disconnect(node));
    }

    /// Returns how many connections a node has.
    pub fn connections(&self, node: i32) -> usize {
        self.look(|state| state.connections.values().filter(|open| open.node == node).count())
    }

    // ---- What is in it ----

    /// Returns all records of a partition that a consumer could read.
    ///
    /// # Panics
    ///
    /// If there is no such partition.
    pub fn records(&self, topic: &str, partition: i32) -> Vec<Record> {
        let batches: Option<Vec<Bytes>> = self.look(|state| {
            let log = &state.topics.partition(topic, partition)?.log;
            Some(log.batches_from(log.start_offset()).cloned().collect())
        });
        let batches = batches.unwrap_or_else(|| panic!("there is no partition {topic}-{partition}"));
        let mut decompressor = Decompressor::default();
        let mut records = Vec::new();
        for batch in batches.into_iter().flat_map(Batches::new).flatten() {
            if batch.header().attributes.is_control() {
                continue;
            }
            let decoded = batch.records(&mut decompressor).expect("a batch was read through before it was appended");
            records.extend(decoded.into_iter().flatten());
        }
        records
    }

    /// Returns the offset that a partition's next record will have.
    pub fn high_watermark(&self, topic: &str, partition: i32) -> Option<i64> {
        self.look(|state| Some(state.topics.partition(topic, partition)?.log.high_watermark()))
    }

    /// Returns a partition's first offset.
    pub fn log_start_offset(&self, topic: &str, partition: i32) -> Option<i64> {
        self.look(|state| Some(state.topics.partition(topic, partition)?.log.start_offset()))
    }

    // ---- Groups ----

    /// Returns a group as it is now, or `None` if nobody ever joined it.
    pub fn group(&self, group: &str) -> Option<GroupView> {
        self.look(|state| state.groups.view(group))
    }

    /// Returns the offsets that a group committed, by topic and partition.
    pub fn committed(&self, group: &str) -> BTreeMap<(Str, i32), i64> {
        self.look(|state| {
            let topics = state.offsets.of_group(group);
            let flat = topics.flat_map(|(topic, partitions)| {
                partitions.iter().map(|(&partition, committed)| ((topic.clone(), partition), committed.offset))
            });
            flat.collect()
        })
    }

    /// Returns the node that coordinates a group, or -1 when nobody does: its partition of `__consumer_offsets` has no
    /// leader.
    pub fn coordinator(&self, group: &str) -> i32 {
        self.control(|state, _| {
            coordinators::ensure_topic(state, CoordinatorKind::Group);
            coordinators::find(state, CoordinatorKind::Group, group).unwrap_or(-1)
        })
    }

    /// Makes a node the coordinator of a group, and of all groups that share its partition of `__consumer_offsets`:
    /// that partition's leader moves.
    ///
    /// # Panics
    ///
    /// If the node is not up.
    pub fn move_coordinator(&self, group: &str, node: i32) {
        self.control(|state, _| coordinators::ensure_topic(state, CoordinatorKind::Group));
        self.move_leader(coordinators::OFFSETS_TOPIC, coordinators::partition_for(group), node);
    }

    // ---- Faults and history ----

    /// Begins a rule: what is to happen to requests of an API (or of several, or of [`Apis::ANY`]).
    ///
    /// ```
    /// use krafka_fake_broker::FakeCluster;
    /// use krafka_protocol::{ApiKey, ErrorCode};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let fake = FakeCluster::builder().topic("orders", 1).start_on_pipes();
    /// let produce = fake.when(ApiKey::Produce).partition("orders", 0).times(2);
    /// let refused = produce.reply_error(ErrorCode::NOT_LEADER_OR_FOLLOWER);
    /// // … produce …
    /// assert_eq!(refused.hits(), 0);
    /// # }
    /// ```
    pub fn when(&self, apis: impl Into<Apis>) -> RuleBuilder {
        RuleBuilder::new(self.look(|state| state.faults.clone()), apis.into())
    }

    /// Ends all rules.
    pub fn clear_faults(&self) {
        self.look(|state| state.faults.clear());
    }

    /// Returns the rules that have not acted yet, in words: a test that means its faults to happen asserts that there
    /// are none.
    pub fn unfired_rules(&self) -> Vec<String> {
        self.look(|state| state.faults.unfired())
    }

    /// Returns the requests and answers so far.
    pub fn history(&self) -> History {
        self.look(|state| state.history.clone())
    }

    // ---- Shells ----

    /// Returns what connects to the nodes in memory. Any client that can be given a stream can use it.
    pub fn pipes(&self) -> Pipes {
        Pipes::new(self.running.shared.clone())
    }

    /// Serves one connection of a node until either side closes it. This is what a simulation calls for each stream
    /// that it accepted.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the connection.
    pub async fn serve(&self, node: i32, stream: impl AsyncRead + AsyncWrite + Unpin) {
        driver::serve(self.running.shared.clone(), node, stream).await;
    }

    /// Wakes the cluster at its deadlines (long polls, session timeouts, delays), for as long as it is awaited. Only a
    /// cluster from [`FakeClusterBuilder::build`] needs it.
    ///
    /// # Cancel safety
    ///
    /// May be dropped and called again at any time.
    pub async fn run_timers(&self) {
        driver::run_timers(self.running.shared.clone()).await;
    }

    pub(crate) fn spawn_tcp(&self, listeners: Vec<tcp::Listener>) {
        for (node, listener) in (1..).zip(listeners) {
            self.keep(tokio::spawn(tcp::accept(self.running.shared.clone(), node, listener)).abort_handle());
        }
        self.spawn_timers();
    }

    pub(crate) fn spawn_timers(&self) {
        self.keep(tokio::spawn(driver::run_timers(self.running.shared.clone())).abort_handle());
    }

    fn keep(&self, task: AbortHandle) {
        self.running.tasks.lock().unwrap_or_else(PoisonError::into_inner).push(task);
    }

    /// Looks into the state.
    fn look<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        self.running.shared.look(|cluster: &Cluster| look(cluster.state()))
    }

    /// Changes the state, and lets waiting requests see it at once.
    fn control<T>(&self, change: impl FnOnce(&mut State, Instant) -> T) -> T {
        self.running.shared.step(|cluster, now| cluster.control(now, |state| change(state, now)))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.shared.end();
        for task in self.tasks.get_mut().unwrap_or_else(PoisonError::into_inner) {
            task.abort();
        }
    }
}

impl fmt::Debug for FakeCluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FakeCluster").field("bootstrap", &self.bootstrap()).finish_non_exhaustive()
    }
}
