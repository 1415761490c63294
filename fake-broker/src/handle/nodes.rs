//! Controls of nodes: where they are, which is the controller, who dies and returns.

use super::FakeCluster;

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
}
