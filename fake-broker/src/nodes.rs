//! The nodes of a cluster: where each one listens, and whether it is up.

use std::collections::{BTreeMap, BTreeSet};

use krafka_protocol::Str;

use crate::faults::KafkaVersion;
use crate::listeners::SecurityProtocol;

/// A broker of the cluster.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) host: Str,
    /// The port of each listener.
    pub(crate) ports: BTreeMap<SecurityProtocol, u16>,
    pub(crate) rack: Option<Str>,
    pub(crate) up: bool,
    pub(crate) version: KafkaVersion,
}

impl Node {
    /// The port that clients of a listener are told, or -1 if the node has no such listener.
    pub(crate) fn port(&self, listener: SecurityProtocol) -> i32 {
        self.ports.get(&listener).map_or(-1, |&port| i32::from(port))
    }
}

/// All nodes by id, and which of them is the controller.
#[derive(Clone, Debug, Default)]
pub(crate) struct Nodes {
    nodes: BTreeMap<i32, Node>,
    controller: i32,
}

impl Nodes {
    pub(crate) fn new(nodes: BTreeMap<i32, Node>) -> Self {
        let controller = nodes.keys().next().copied().unwrap_or(-1);
        Self { nodes, controller }
    }

    /// The node with that id.
    pub(crate) fn find(&self, id: i32) -> Option<&Node> {
        self.nodes.get(&id)
    }

    /// Whether the node exists and is up.
    pub(crate) fn is_up(&self, id: i32) -> bool {
        self.nodes.get(&id).is_some_and(|node| node.up)
    }

    /// All ids, dead or alive.
    pub(crate) fn ids(&self) -> Vec<i32> {
        self.nodes.keys().copied().collect()
    }

    /// All nodes, dead or alive.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (i32, &Node)> {
        self.nodes.iter().map(|(&id, node)| (id, node))
    }

    /// The nodes that are up.
    pub(crate) fn live(&self) -> impl Iterator<Item = (i32, &Node)> {
        self.nodes.iter().filter(|(_, node)| node.up).map(|(&id, node)| (id, node))
    }

    /// The ids of the nodes that are up.
    pub(crate) fn live_ids(&self) -> BTreeSet<i32> {
        self.live().map(|(id, _)| id).collect()
    }

    /// The node that metadata calls the controller, or -1 when none is up.
    pub(crate) fn controller(&self) -> i32 {
        if self.is_up(self.controller) { self.controller } else { -1 }
    }

    /// Marks a node up or down; a controller that died is replaced by the next live node.
    pub(crate) fn set_up(&mut self, id: i32, up: bool) {
        if let Some(node) = self.nodes.get_mut(&id) {
            node.up = up;
        }
        if !self.is_up(self.controller) {
            let next = self.nodes.range(self.controller + 1..).chain(&self.nodes).find(|(_, node)| node.up);
            self.controller = next.map_or(self.controller, |(&id, _)| id);
        }
    }

    /// Makes a live node the controller.
    pub(crate) fn set_controller(&mut self, id: i32) {
        self.controller = id;
    }
}
