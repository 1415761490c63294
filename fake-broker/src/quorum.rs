//! The controllers: every node is one, and votes unless it was taken out of the voters.
//!
//! There is no metadata log. Its end is told as if it grew by a record every half second, as Kafka's does when nothing
//! happens, and all voters that are up have all of it.

use std::collections::BTreeSet;

use krafka_protocol::Uuid;

use crate::rng::Rng;
use crate::state::State;

/// How often a quiet controller writes a record, in milliseconds.
const NO_OP_INTERVAL_MS: i64 = 500;

/// The nodes that do not vote.
#[derive(Clone, Debug, Default)]
pub(crate) struct Quorum {
    pub(crate) observers: BTreeSet<i32>,
}

impl State {
    /// The nodes that vote for the controller.
    pub(crate) fn voters(&self) -> Vec<i32> {
        self.nodes.ids().into_iter().filter(|id| !self.quorum.observers.contains(id)).collect()
    }

    /// The id of the directory in which a node keeps the metadata log.
    pub(crate) fn metadata_directory(&self, node: i32) -> Uuid {
        Rng::stream(self.config.seed, &format!("metadata directory of node {node}")).uuid()
    }

    /// The end of the metadata log.
    pub(crate) fn metadata_end_offset(&self, wall_ms: i64) -> i64 {
        wall_ms.max(0) / NO_OP_INTERVAL_MS
    }

    /// The voters as Kafka prints them.
    pub(crate) fn voters_in_words(&self) -> String {
        let keys = self.voters().into_iter().map(|id| voter_in_words(id, self.metadata_directory(id)));
        format!("[{}]", keys.collect::<Vec<_>>().join(", "))
    }
}

/// A voter as Kafka prints it.
pub(crate) fn voter_in_words(id: i32, directory: Uuid) -> String {
    format!("ReplicaKey(id={id}, directoryId={directory})")
}
