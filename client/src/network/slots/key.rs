//! [`Key`]: what the pool has one connection of at most.

use krafka_protocol::Str;

use super::super::Lane;
use crate::cluster::Node;

/// Which slot: a broker at an address, and a lane. A broker that moves gets new slots; the old ones run dry.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(super) id: i32,
    pub(super) host: Str,
    pub(super) port: u16,
    pub(super) lane: Lane,
}

impl Key {
    pub(crate) fn new(node: &Node, lane: Lane) -> Self {
        Self { id: node.id, host: node.host.clone(), port: node.port, lane }
    }

    pub(crate) fn lane(&self) -> Lane {
        self.lane
    }

    /// The slot of another lane to the same broker.
    pub(super) fn with_lane(&self, lane: Lane) -> Self {
        Self { lane, ..self.clone() }
    }

    pub(super) fn address(&self) -> (Str, u16) {
        (self.host.clone(), self.port)
    }
}
