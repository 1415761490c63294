//! WriteTxnMarkers (27): writes the markers that end transactions into partitions.
//!
//! Coordinators send it to the leaders of partitions, tools to abort a transaction that hangs (KIP-664). The fake's own
//! coordinators write their markers without it.

use krafka_protocol::ErrorCode;
use krafka_protocol::api::write_txn_markers::{
    WritableTxnMarker, WritableTxnMarkerPartitionResult, WritableTxnMarkerResult, WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest, WriteTxnMarkersResponse,
};

use crate::context::{Context, Outcome};
use crate::log::producers::Marker;
use crate::security::acls::Operation;
use crate::state::State;
use crate::transactions;

pub(crate) fn handle(
    state: &mut State,
    cx: &Context,
    request: &WriteTxnMarkersRequest,
) -> Outcome<WriteTxnMarkersResponse> {
    let may_alter = cx.cluster_error(state, Operation::Alter);
    let denied = may_alter.and_then(|_| cx.cluster_error(state, Operation::ClusterAction));
    let mut results: Vec<WritableTxnMarkerResult> = Vec::with_capacity(request.markers.len());
    for asked in &request.markers {
        let topics = asked.topics.iter().map(|topic| WritableTxnMarkerTopicResult {
            name: topic.name.clone(),
            partitions: topic
                .partition_indexes
                .iter()
                .map(|&partition_index| WritableTxnMarkerPartitionResult {
                    partition_index,
                    error_code: denied.unwrap_or_else(|| write(state, cx, asked, &topic.name, partition_index)).0,
                })
                .collect(),
        });
        let topics: Vec<_> = topics.collect();
        // Two markers of one producer are answered together.
        match results.iter_mut().find(|result| result.producer_id == asked.producer_id) {
            Some(result) => result.topics.extend(topics),
            None => results.push(WritableTxnMarkerResult { producer_id: asked.producer_id, topics }),
        }
    }
    Outcome::Reply(WriteTxnMarkersResponse { markers: results })
}

fn write(
    state: &mut State,
    cx: &Context,
    asked: &WritableTxnMarker,
    topic: &krafka_protocol::Str,
    index: i32,
) -> ErrorCode {
    let Some(partition) = state.topics.partition(topic, index) else { return ErrorCode::UNKNOWN_TOPIC_OR_PARTITION };
    if partition.leader != Some(cx.node) {
        let holds = partition.replicas.contains(&cx.node);
        return if holds { ErrorCode::NOT_LEADER_OR_FOLLOWER } else { ErrorCode::UNKNOWN_TOPIC_OR_PARTITION };
    }
    // Kafka makes no batch without an epoch, and does not expect to be asked for one.
    if asked.producer_epoch < 0 {
        return ErrorCode::UNKNOWN_SERVER_ERROR;
    }
    let marker = Marker {
        producer_id: asked.producer_id,
        producer_epoch: asked.producer_epoch,
        commit: asked.transaction_result,
        coordinator_epoch: asked.coordinator_epoch,
        version: i16::from(asked.transaction_version),
    };
    transactions::write_marker(state, &marker, topic, index, cx.now).err().unwrap_or(ErrorCode::NONE)
}
