//! The controllers: every node is one, and votes unless it was taken out of the voters.
//!
//! There is no metadata log. Its end is told as if it had begun when the cluster did, and grew by a record every half
//! second, as Kafka's does when nothing happens; what changes adds no more, but for the levels of features. All voters
//! that are up have all of it.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use krafka_protocol::Uuid;

use crate::rng::Rng;
use crate::state::State;

/// How often a quiet controller writes a record.
const NO_OP_INTERVAL: Duration = Duration::from_millis(500);

/// How many records there are about when the nodes of a young cluster have come up.
const FIRST_RECORDS: i64 = 50;

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

    /// The end of the metadata log. It never goes back, whatever the time of day does.
    pub(crate) fn metadata_end_offset(&self, now: Instant) -> i64 {
        let no_ops = self.clock.since_start(now).as_millis() / NO_OP_INTERVAL.as_millis();
        FIRST_RECORDS + self.features.changes + i64::try_from(no_ops).unwrap_or(i64::MAX / 2)
    }

    /// What brokers know the metadata, and so the levels of features, by: the last offset of its log.
    pub(crate) fn metadata_epoch(&self, now: Instant) -> i64 {
        self.metadata_end_offset(now) - 1
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
