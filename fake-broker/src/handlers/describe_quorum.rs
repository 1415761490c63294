//! DescribeQuorum: the controllers, and how far each has got in the metadata log.

use krafka_protocol::api::describe_quorum::{Listener, Node, PartitionResponse, ReplicaState, TopicResponse};
use krafka_protocol::{DescribeQuorumRequest, DescribeQuorumResponse, ErrorCode, Str};

use crate::context::{Context, Outcome};
use crate::security::acls::Operation;
use crate::state::State;
use crate::words::words;

pub(super) const METADATA_TOPIC: &str = "__cluster_metadata";

pub(crate) fn handle(state: &State, cx: &Context, request: &DescribeQuorumRequest) -> Outcome<DescribeQuorumResponse> {
    if let Some(code) = cx.cluster_error(state, Operation::Describe) {
        return Outcome::Reply(DescribeQuorumResponse {
            error_code: code.0,
            error_message: Some(Str::from(words(code))),
            ..DescribeQuorumResponse::default()
        });
    }
    let is_metadata = |topic: &str, partitions: &[i32]| topic == METADATA_TOPIC && partitions == [0];
    let asked = |partitions: &[krafka_protocol::api::describe_quorum::PartitionData]| {
        partitions.iter().map(|partition| partition.partition_index).collect::<Vec<_>>()
    };
    let whole = request.topics.len() == 1
        && request.topics.iter().all(|topic| is_metadata(&topic.topic_name, &asked(&topic.partitions)));
    let topics = request.topics.iter().map(|topic| TopicResponse {
        topic_name: topic.topic_name.clone(),
        partitions: asked(&topic.partitions)
            .into_iter()
            .map(|index| if whole { describe(state, cx) } else { unknown(index) })
            .collect(),
    });
    let nodes = state.voters().into_iter().map(|node_id| Node { node_id, listeners: listeners(state, node_id) });
    Outcome::Reply(DescribeQuorumResponse {
        topics: topics.collect(),
        // Before version 2 there is no room for them.
        nodes: if whole && cx.version >= 2 { nodes.collect() } else { Vec::new() },
        ..DescribeQuorumResponse::default()
    })
}

fn describe(state: &State, cx: &Context) -> PartitionResponse {
    let end = state.metadata_end_offset(cx.now);
    let replica = |replica_id: i32| {
        let is_up = state.nodes.is_up(replica_id);
        ReplicaState {
            replica_id,
            replica_directory_id: if cx.version >= 2 {
                state.metadata_directory(replica_id)
            } else {
                Default::default()
            },
            log_end_offset: if is_up { end } else { -1 },
            last_fetch_timestamp: if is_up { cx.wall_ms } else { -1 },
            last_caught_up_timestamp: if is_up { cx.wall_ms } else { -1 },
        }
    };
    PartitionResponse {
        partition_index: 0,
        leader_id: state.nodes.controller(),
        leader_epoch: state.nodes.controller_epoch(),
        high_watermark: end,
        current_voters: state.voters().into_iter().map(replica).collect(),
        observers: state.quorum.observers.iter().map(|&id| replica(id)).collect(),
        ..PartitionResponse::default()
    }
}

fn unknown(partition_index: i32) -> PartitionResponse {
    let code = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
    PartitionResponse {
        partition_index,
        error_code: code.0,
        error_message: Some(Str::from(words(code))),
        ..PartitionResponse::default()
    }
}

/// Where a controller listens: one port above the broker's, as nobody connects to it.
fn listeners(state: &State, node: i32) -> Vec<Listener> {
    let Some(found) = state.nodes.find(node) else { return Vec::new() };
    let port = found.ports.values().max().map_or(0, |port| port.saturating_add(1));
    vec![Listener { name: Str::from_static("CONTROLLER"), host: found.host.clone(), port }]
}
