//! Whether a node may serve a partition, and the hints that an answer gives when it may not (KIP-951).

use krafka_protocol::{ErrorCode, Str};

use crate::context::Context;
use crate::state::State;
use crate::topics::{Partition, Topic};

/// Finds a partition that a request names.
pub(crate) fn find(topic: &Topic, index: i32) -> Result<&Partition, ErrorCode> {
    topic.partition(index).ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)
}

/// Checks the leader epoch that a client of `node` believes in; -1 means that it does not say.
///
/// Kafka checks the epoch before it checks who leads, so that a client that is behind learns that first. A node without
/// a replica has nothing to compare it with.
pub(crate) fn check_epoch(partition: &Partition, node: i32, current_leader_epoch: i32) -> Result<(), ErrorCode> {
    if !partition.replicas.contains(&node) {
        Err(ErrorCode::NOT_LEADER_OR_FOLLOWER)
    } else if current_leader_epoch < 0 || current_leader_epoch == partition.leader_epoch {
        Ok(())
    } else if current_leader_epoch < partition.leader_epoch {
        Err(ErrorCode::FENCED_LEADER_EPOCH)
    } else {
        Err(ErrorCode::UNKNOWN_LEADER_EPOCH)
    }
}

/// Checks that `node` leads.
pub(crate) fn check_leader(partition: &Partition, node: i32) -> Result<(), ErrorCode> {
    if partition.leader == Some(node) { Ok(()) } else { Err(ErrorCode::NOT_LEADER_OR_FOLLOWER) }
}

/// Who leads a partition: node and epoch, for the hint in an answer.
pub(crate) fn hint(partition: &Partition) -> (i32, i32) {
    (partition.leader.unwrap_or(-1), partition.leader_epoch)
}

/// Where the nodes that hints name can be reached by this client, each once.
pub(crate) fn endpoints(
    state: &State,
    cx: &Context,
    nodes: impl IntoIterator<Item = i32>,
) -> Vec<(i32, Str, i32, Option<Str>)> {
    let mut nodes: Vec<_> = nodes.into_iter().collect();
    nodes.sort_unstable();
    nodes.dedup();
    let live = nodes.into_iter().filter_map(|id| state.nodes.find(id).filter(|node| node.up).map(|node| (id, node)));
    let told = live.map(|(id, node)| (id, node.told(cx.listener), node.rack.clone()));
    told.map(|(id, (host, port), rack)| (id, host, port, rack)).collect()
}
