//! A cluster becomes what it was: all its nodes are stopped, their disks are put back, and they start again.

use std::time::Instant;

use super::Cluster;
use crate::purgatory::Purgatory;

impl Cluster {
    /// Puts the cluster back to what it was when the snapshot was taken: topics, records, groups, transactions,
    /// settings, nodes that were dead or alive.
    ///
    /// All connections end, as when nodes stop; fetch and share sessions are gone. Coordinators read what they had
    /// kept, so that members have their whole session timeouts before them. What is not the cluster's stays: rules and
    /// their hits, the history, complaints, and where nodes listen that it still has. Time does not go back either: a
    /// transaction that timed out meanwhile is aborted.
    pub(crate) fn restore(&mut self, snapshot: &Self, now: Instant) {
        self.advance(now);
        let open: Vec<_> = self.state.connections.keys().copied().collect();
        for connection in open {
            self.close(connection, now);
        }
        let mut copy = snapshot.clone();
        let open: Vec<_> = copy.state.connections.keys().copied().collect();
        for connection in open {
            copy.forget(connection);
        }
        let mut state = copy.state;
        state.answers.clear();
        state.purgatory = Purgatory::default();
        std::mem::swap(&mut state.faults, &mut self.state.faults);
        std::mem::swap(&mut state.history, &mut self.state.history);
        std::mem::swap(&mut state.complaints, &mut self.state.complaints);
        state.nodes.listen_where(&self.state.nodes);
        self.state = state;
        self.exchanges.clear();
        self.held.clear();
        self.ready.clear();
        self.next_request = self.next_request.max(copy.next_request);
        self.state.wake_up(now);
        self.network_changed(now);
        self.settle(now);
    }
}
