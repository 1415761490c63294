//! Controls of nodes: where they are, which is the controller, who dies and returns.

use std::io;
use std::sync::atomic::Ordering;

use krafka_protocol::Str;

use super::FakeCluster;
use crate::faults::KafkaVersion;
use crate::operations::{Durability, Operation};
use crate::serve::tcp;

impl FakeCluster {
    /// Returns the ids of all nodes, dead or alive.
    pub fn nodes(&self) -> Vec<i32> {
        self.look(|state| state.nodes.ids())
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

    /// Returns the ids of the nodes that are up, in ascending order.
    pub fn live_nodes(&self) -> Vec<i32> {
        self.look(|state| state.nodes.live_ids().into_iter().collect())
    }

    /// Takes a node down: its connections are cut, new ones are refused, and its partitions move to other replicas in
    /// sync. What was written stays: the replicas have it.
    #[track_caller]
    pub fn crash(&self, node: i32) {
        self.expect(Operation::Crash { node, durability: Durability::KeepAll });
    }

    /// Takes a node down, and with it what it had not saved.
    ///
    /// **Unstable:** may change in any release.
    ///
    /// # Panics
    ///
    /// If there is no such node.
    #[track_caller]
    pub fn crash_losing(&self, node: i32, durability: Durability) {
        self.expect(Operation::Crash { node, durability });
    }

    /// Brings a node back up. It follows the leaders that there are, and leads only what nobody else may lead.
    #[track_caller]
    pub fn restart(&self, node: i32) {
        self.expect(Operation::Restart { node });
    }

    /// Stops a node in its tracks, as SIGSTOP does: its connections stay open, and nothing is read or answered until
    /// [`resume`](Self::resume). What it follows it lags behind. It leads and coordinates what it did until
    /// `broker.session.timeout.ms` (9 s) is over: then the others go on without it.
    ///
    /// **Unstable:** may change in any release.
    ///
    /// # Panics
    ///
    /// If there is no such node.
    #[track_caller]
    pub fn pause(&self, node: i32) {
        self.expect(Operation::Pause { node });
    }

    /// Lets a paused node go on.
    ///
    /// **Unstable:** may change in any release.
    ///
    /// # Panics
    ///
    /// If there is no such node.
    #[track_caller]
    pub fn resume(&self, node: i32) {
        self.expect(Operation::Resume { node });
    }

    /// Cuts all connections of a node, which stays up.
    #[track_caller]
    pub fn disconnect(&self, node: i32) {
        self.expect(Operation::Disconnect { node });
    }

    /// Refuses new connections to a node, which stays up and keeps those that it has; or takes them again.
    ///
    /// **Unstable:** may change in any release.
    ///
    /// # Panics
    ///
    /// If there is no such node.
    #[track_caller]
    pub fn refuse_connections(&self, node: i32, refuse: bool) {
        self.expect(Operation::RefuseConnections { node, refuse });
    }

    /// Leaves a live node out of Metadata and DescribeCluster, or names it again. It serves all the same.
    ///
    /// **Unstable:** may change in any release.
    ///
    /// # Panics
    ///
    /// If there is no such node.
    #[track_caller]
    pub fn hide_node(&self, node: i32, hidden: bool) {
        self.expect(Operation::HideNode { node, hidden });
    }

    /// Changes where a node says it is. On TCP it listens there from now on, if the host is 127.0.0.1; connections that
    /// there are stay.
    ///
    /// **Unstable:** may change in any release.
    ///
    /// # Panics
    ///
    /// If there is no such node.
    #[track_caller]
    pub fn move_node(&self, node: i32, host: &str, port: u16) {
        self.expect(Operation::MoveNode { node, host: host.to_owned(), port });
    }

    /// Lets a node tell its clients that it is somewhere else than it is: at a name that does not resolve, such as
    /// `node-1.invalid`; at another node's address; at a port where nobody listens. `None` is the truth.
    ///
    /// **Unstable:** may change in any release.
    ///
    /// # Panics
    ///
    /// If there is no such node.
    #[track_caller]
    pub fn advertise(&self, node: i32, host: Option<&str>, port: Option<u16>) {
        self.expect(Operation::Advertise { node, host: host.map(str::to_owned), port });
    }

    /// Adds a node with the next id that none has had, and returns that. It listens like the others, looks like the
    /// first of them, and has no partitions yet. If no node was up, it is the controller.
    ///
    /// **Unstable:** may change in any release.
    ///
    /// # Errors
    ///
    /// If there is no port to listen on.
    ///
    /// # Cancel safety
    ///
    /// A dropped future leaves nothing behind.
    pub async fn add_node(&self) -> io::Result<i32> {
        self.add_node_that(None).await
    }

    /// Adds a node as [`add_node`](Self::add_node) does, which looks like another version of Kafka than the first of
    /// them does, as in a rolling upgrade.
    ///
    /// **Unstable:** may change in any release.
    ///
    /// # Errors
    ///
    /// If there is no port to listen on, or the cluster's features are at levels that the version does not have: Kafka
    /// registers no such node.
    ///
    /// # Cancel safety
    ///
    /// A dropped future leaves nothing behind.
    pub async fn add_node_as_version(&self, version: KafkaVersion) -> io::Result<i32> {
        self.add_node_that(Some(version)).await
    }

    async fn add_node_that(&self, version: Option<KafkaVersion>) -> io::Result<i32> {
        let can_join = self.look(|state| version.map_or(Ok(()), |version| state.check_newcomer(version)));
        can_join.map_err(|reason| io::Error::new(io::ErrorKind::InvalidInput, reason))?;
        let (node, listeners) = self.look(|state| (state.nodes.next_id(), state.config.listeners.clone()));
        let is_on_tcp = self.running.is_on_tcp.load(Ordering::Relaxed);
        let bound = if is_on_tcp { tcp::bind_node(&listeners, node).await? } else { Vec::new() };
        let ports = if is_on_tcp { bound.iter().map(tcp::Listener::named).collect() } else { listeners.in_memory() };
        let host = if is_on_tcp { "127.0.0.1".to_owned() } else { format!("broker-{node}") };
        self.control(|state, _| state.add_node(node, Str::from(host), ports, version));
        for listener in bound {
            self.listen(listener);
        }
        Ok(node)
    }

    /// Takes a node out of the cluster for good. Partitions keep it among their replicas, as in Kafka.
    ///
    /// **Unstable:** may change in any release.
    ///
    /// # Panics
    ///
    /// If there is no such node.
    #[track_caller]
    pub fn remove_node(&self, node: i32) {
        self.expect(Operation::RemoveNode { node });
    }

    /// Freezes what a node answers to Metadata, DescribeTopicPartitions, DescribeCluster and FindCoordinator: it knows
    /// the cluster as it is now, however it changes, until [`thaw_metadata`](Self::thaw_metadata).
    ///
    /// **Unstable:** may change in any release.
    ///
    /// # Panics
    ///
    /// If there is no such node.
    #[track_caller]
    pub fn freeze_metadata(&self, node: i32) {
        self.expect(Operation::FreezeMetadata { node });
    }

    /// Lets a node know the cluster as it is.
    ///
    /// **Unstable:** may change in any release.
    ///
    /// # Panics
    ///
    /// If there is no such node.
    #[track_caller]
    pub fn thaw_metadata(&self, node: i32) {
        self.expect(Operation::ThawMetadata { node });
    }

    /// Forgets all fetch sessions of a node, as when its cache is full of others.
    ///
    /// **Unstable:** may change in any release.
    ///
    /// # Panics
    ///
    /// If there is no such node.
    #[track_caller]
    pub fn evict_fetch_sessions(&self, node: i32) {
        self.expect(Operation::EvictFetchSessions { node });
    }

    /// Puts another cluster in the place of this one: its id changes, and clients that came before are told to
    /// rebootstrap (129) in Metadata from version 13 on, and in ApiVersions from version 5 on if they say whom they
    /// mean.
    ///
    /// **Unstable:** may change in any release.
    #[track_caller]
    pub fn swap_cluster_id(&self) {
        self.expect(Operation::SwapClusterId { cluster_id: None });
    }

    /// Moves the cluster's time of day, forward or back. Timers are not touched: they count time that passes.
    ///
    /// **Unstable:** may change in any release.
    #[track_caller]
    pub fn jump_clock(&self, by_ms: i64) {
        self.expect(Operation::JumpClock { by_ms });
    }

    /// Does something to the cluster that is given as data.
    ///
    /// **Unstable:** may change in any release.
    ///
    /// # Errors
    ///
    /// Why it cannot be done, in words. Nothing has changed then.
    pub fn change(&self, operation: &Operation) -> Result<(), String> {
        self.running.shared.step(|cluster, now| cluster.command(operation, now))
    }

    /// Does what is possible, and panics where the caller is, a test, if it is not.
    #[track_caller]
    pub(super) fn expect(&self, operation: Operation) {
        if let Err(reason) = self.change(&operation) {
            panic!("{reason}");
        }
    }

    /// Returns how many connections a node has.
    pub fn connections(&self, node: i32) -> usize {
        self.look(|state| state.connections.values().filter(|open| open.node == node).count())
    }
}
