//! Connections on which nothing comes or goes: a node closes them after `connections.max.idle.ms`, ten minutes as a
//! rule.
//!
//! As in Kafka it does so too when it is the one that owes an answer.

use std::time::{Duration, Instant};

use super::Cluster;
use crate::context::ConnectionId;
use crate::timers::Timer;

impl Cluster {
    /// Something came or went on a connection.
    pub(super) fn note_traffic(&mut self, connection: ConnectionId, now: Instant) {
        if let Some(open) = self.state.connections.get_mut(&connection) {
            open.active = now;
        }
    }

    /// Looks after a connection from now on.
    pub(super) fn watch_traffic(&mut self, connection: ConnectionId, now: Instant) {
        if let Some(limit) = self.state.config.idle_limit() {
            self.look_again_after(limit, connection, now);
        }
    }

    /// Closes a connection if it was idle for too long, or looks at it later. A node that is paused closes nothing.
    pub(super) fn look_for_traffic(&mut self, connection: ConnectionId, now: Instant) {
        let Some(limit) = self.state.config.idle_limit() else { return };
        let Some(open) = self.state.connections.get(&connection) else { return };
        let idle = now.saturating_duration_since(open.active);
        if self.state.nodes.is_paused(open.node) {
            self.look_again_after(limit, connection, now);
        } else if idle < limit {
            self.look_again_after(limit - idle, connection, now);
        } else {
            self.close(connection, now);
        }
    }

    fn look_again_after(&mut self, pause: Duration, connection: ConnectionId, now: Instant) {
        let timer = self.state.set_timer(now, pause, Timer::Idle(connection));
        if let Some(open) = self.state.connections.get_mut(&connection) {
            open.idle_timer = Some(timer);
        }
    }
}
