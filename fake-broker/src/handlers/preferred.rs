//! Which replica a consumer had better read from (KIP-392), as Kafka's `RackAwareReplicaSelector` chooses.

use crate::context::Context;
use crate::state::State;
use crate::topics::Partition;

/// The follower that a leader sends a consumer of this rack to: one in sync, in the same rack, that has the offset.
/// None if the leader is as near, or if nobody is near.
pub(super) fn replica(state: &State, cx: &Context, partition: &Partition, rack: &str, offset: i64) -> Option<i32> {
    if !state.config.rack_aware_replica_selector || rack.is_empty() || partition.leader != Some(cx.node) {
        return None;
    }
    let is_near = |id: i32| state.nodes.find(id).is_some_and(|node| node.up && node.rack.as_deref() == Some(rack));
    if is_near(cx.node) {
        return None;
    }
    let near = partition.isr.iter().copied().filter(|&node| node != cx.node && is_near(node));
    let views = near.filter_map(|node| partition.replica(node).map(|view| (view, node)));
    let able = views.filter(|(view, _)| (view.start_offset..=view.end_offset).contains(&offset));
    able.max_by_key(|(view, node)| (view.end_offset, *node)).map(|(_, node)| node)
}
