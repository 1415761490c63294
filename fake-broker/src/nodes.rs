//! The nodes of a cluster: where each one listens, and whether it is up.

use std::collections::{BTreeMap, BTreeSet};

use krafka_protocol::{ApiKey, Str, Versions};

use crate::faults::{Feature, KafkaVersion, Profile};
use crate::listeners::SecurityProtocol;

/// Where a node says that it is.
#[derive(Clone, Debug)]
pub(crate) struct Advertised {
    pub(crate) host: Str,
    /// Its listeners' own ports, if none.
    pub(crate) port: Option<u16>,
}

/// A broker of the cluster.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) host: Str,
    /// Where it says that it is, if that is not where it is.
    pub(crate) advertised: Option<Advertised>,
    /// The port of each listener.
    pub(crate) ports: BTreeMap<SecurityProtocol, u16>,
    pub(crate) rack: Option<Str>,
    pub(crate) up: bool,
    pub(crate) version: KafkaVersion,
    /// The service whose APIs it advertises in place of its version's.
    pub(crate) profile: Option<Profile>,
    /// Whether the others go on without it although it runs: it is not up for them.
    pub(crate) fenced: bool,
    /// Whether it neither reads nor writes for now.
    pub(crate) paused: bool,
    /// Whether it takes no new connections.
    pub(crate) refusing: bool,
    /// Whether the others do not tell of it.
    pub(crate) hidden: bool,
    /// Whether the controller knows it: not if it was unregistered while it was down.
    pub(crate) registered: bool,
    /// The same of the controller on this node.
    pub(crate) controller_registered: bool,
}

impl Node {
    /// A node that is up.
    pub(crate) fn new(
        host: Str,
        ports: BTreeMap<SecurityProtocol, u16>,
        rack: Option<Str>,
        version: KafkaVersion,
    ) -> Self {
        let (up, registered, controller_registered) = (true, true, true);
        let (fenced, paused, refusing, hidden) = (false, false, false, false);
        Self {
            host,
            advertised: None,
            ports,
            rack,
            up,
            version,
            profile: None,
            fenced,
            paused,
            refusing,
            hidden,
            registered,
            controller_registered,
        }
    }

    /// The versions of an API that it advertises, if it has the API.
    pub(crate) fn advertises(&self, key: ApiKey) -> Option<Versions> {
        match self.profile {
            Some(profile) => profile.versions(key),
            None => self.version.versions(key),
        }
    }

    /// The features that a fresh cluster of such nodes has. The services have none.
    pub(crate) fn features(&self) -> impl Iterator<Item = Feature> {
        let has_features = self.profile.is_none();
        self.version.features().filter(move |_| has_features)
    }

    /// Where clients of a listener are told that it is: host and port, -1 if the node has no such listener.
    pub(crate) fn told(&self, listener: SecurityProtocol) -> (Str, i32) {
        let port = self.port(listener);
        match &self.advertised {
            Some(told) if port >= 0 => (told.host.clone(), told.port.map_or(port, i32::from)),
            _ => (self.host.clone(), port),
        }
    }

    /// The port of a listener, or -1 if the node has no such listener.
    pub(crate) fn port(&self, listener: SecurityProtocol) -> i32 {
        self.ports.get(&listener).map_or(-1, |&port| i32::from(port))
    }
}

/// All nodes by id, and which of them is the controller.
#[derive(Clone, Debug, Default)]
pub(crate) struct Nodes {
    nodes: BTreeMap<i32, Node>,
    controller: i32,
    /// Counts the changes of who listens where.
    changes: u64,
    /// How many controllers there have been.
    controller_epoch: i32,
    /// What the node looked like that was taken out last.
    look: (KafkaVersion, Option<Profile>),
    /// The highest id that was taken out.
    gone: i32,
}

impl Nodes {
    pub(crate) fn new(nodes: BTreeMap<i32, Node>) -> Self {
        let controller = nodes.keys().next().copied().unwrap_or(-1);
        Self { nodes, controller, changes: 0, controller_epoch: 1, look: Default::default(), gone: 0 }
    }

    /// How often it has changed which nodes there are, and who listens where.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    /// Lets the nodes that these have as well be where those are.
    pub(crate) fn listen_where(&mut self, present: &Self) {
        self.changes = present.changes + 1;
        for (id, node) in &mut self.nodes {
            if let Some(present) = present.nodes.get(id) {
                node.host.clone_from(&present.host);
                node.ports.clone_from(&present.ports);
            }
        }
    }

    /// Changes a node.
    pub(crate) fn change(&mut self, id: i32, change: impl FnOnce(&mut Node)) {
        self.changes += 1;
        if let Some(node) = self.nodes.get_mut(&id) {
            change(node);
        }
    }

    /// Adds a node, whose id is new. Where there is no controller, it is the one.
    pub(crate) fn insert(&mut self, id: i32, node: Node) {
        self.changes += 1;
        let is_up = node.up;
        self.nodes.insert(id, node);
        if is_up && !self.is_up(self.controller) {
            self.set_controller(id);
        }
    }

    /// Takes a node out that is down.
    pub(crate) fn remove(&mut self, id: i32) {
        self.changes += 1;
        self.look = self.look();
        self.gone = self.gone.max(id);
        self.nodes.remove(&id);
    }

    /// What a node that is added looks like: the first one there is, or the last one there was.
    pub(crate) fn look(&self) -> (KafkaVersion, Option<Profile>) {
        self.nodes.values().next().map_or(self.look, |node| (node.version, node.profile))
    }

    /// An id that no node has, or had: partitions remember those that are gone.
    pub(crate) fn next_id(&self) -> i32 {
        self.nodes.keys().next_back().copied().unwrap_or(0).max(self.gone) + 1
    }

    /// The oldest Kafka that a node looks like, or the last one there was.
    pub(crate) fn oldest_version(&self) -> KafkaVersion {
        self.nodes.values().map(|node| node.version).min().unwrap_or(self.look.0)
    }

    /// Whether a node takes new connections.
    pub(crate) fn is_listening(&self, id: i32) -> bool {
        self.nodes.get(&id).is_some_and(|node| (node.up || node.fenced) && !node.refusing)
    }

    /// Whether a node neither reads nor writes.
    pub(crate) fn is_paused(&self, id: i32) -> bool {
        self.nodes.get(&id).is_some_and(|node| node.paused)
    }

    /// Whether any node is paused.
    pub(crate) fn has_paused(&self) -> bool {
        self.nodes.values().any(|node| node.paused)
    }

    /// Whether the others do not tell of a node.
    pub(crate) fn is_hidden(&self, id: i32) -> bool {
        self.nodes.get(&id).is_some_and(|node| node.hidden)
    }

    /// Whether any node is hidden.
    pub(crate) fn has_hidden(&self) -> bool {
        self.nodes.values().any(|node| node.hidden)
    }

    /// The node with that id.
    pub(crate) fn find(&self, id: i32) -> Option<&Node> {
        self.nodes.get(&id)
    }

    /// Whether the node exists and is up.
    pub(crate) fn is_up(&self, id: i32) -> bool {
        self.nodes.get(&id).is_some_and(|node| node.up)
    }

    /// Whether the node exists and its process runs, whatever the others think.
    pub(crate) fn is_running(&self, id: i32) -> bool {
        self.nodes.get(&id).is_some_and(|node| node.up || node.fenced)
    }

    /// Whether the node runs and the others go on without it.
    pub(crate) fn is_fenced(&self, id: i32) -> bool {
        self.nodes.get(&id).is_some_and(|node| node.fenced)
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
        self.change(id, |node| {
            node.up = up;
            node.paused = false;
            node.fenced = false;
            // A node that comes up registers.
            node.registered |= up;
            node.controller_registered |= up;
        });
        if !self.is_up(self.controller) {
            let next = self.nodes.range(self.controller + 1..).chain(&self.nodes).find(|(_, node)| node.up);
            if let Some((&next, _)) = next {
                self.set_controller(next);
            }
        }
    }

    /// Makes a live node the controller.
    pub(crate) fn set_controller(&mut self, id: i32) {
        if self.controller != id {
            self.controller = id;
            self.controller_epoch += 1;
        }
    }

    /// The epoch of the controller, which rises with each change.
    pub(crate) fn controller_epoch(&self) -> i32 {
        self.controller_epoch
    }

    /// Whether the controller knows the node.
    pub(crate) fn is_registered(&self, id: i32) -> bool {
        self.nodes.get(&id).is_some_and(|node| node.registered)
    }

    /// The ids of the nodes that the controller knows, dead or alive.
    pub(crate) fn registered_ids(&self) -> Vec<i32> {
        self.nodes.iter().filter(|(_, node)| node.registered).map(|(&id, _)| id).collect()
    }

    /// Forgets a node until it comes up; one that is up stays.
    pub(crate) fn unregister(&mut self, id: i32) {
        if let Some(node) = self.nodes.get_mut(&id) {
            node.registered = node.up;
        }
    }

    /// Whether the controller on a node is known.
    pub(crate) fn is_registered_controller(&self, id: i32) -> bool {
        self.nodes.get(&id).is_some_and(|node| node.controller_registered)
    }

    /// Forgets the controller on a node until it comes up; one that is up stays.
    pub(crate) fn unregister_controller(&mut self, id: i32) {
        if let Some(node) = self.nodes.get_mut(&id) {
            node.controller_registered = node.up;
        }
    }
}
