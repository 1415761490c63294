//! AlterPartitionReassignments: moves partitions to other replicas, and cancels such moves.

use krafka_protocol::api::alter_partition_reassignments::{
    ReassignablePartition, ReassignablePartitionResponse, ReassignableTopicResponse,
};
use krafka_protocol::{AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse, ErrorCode, Str};

use super::assignment;
use crate::context::{Context, Outcome};
use crate::security::acls::Operation;
use crate::state::State;
use crate::words::words;

pub(crate) fn handle(
    state: &mut State,
    cx: &Context,
    request: &AlterPartitionReassignmentsRequest,
) -> Outcome<AlterPartitionReassignmentsResponse> {
    let allow_replication_factor_change = request.allow_replication_factor_change;
    let mut response = AlterPartitionReassignmentsResponse {
        allow_replication_factor_change,
        error_message: None,
        ..AlterPartitionReassignmentsResponse::default()
    };
    if let Some(code) = cx.cluster_error(state, Operation::Alter) {
        response.error_code = code.0;
        response.error_message = Some(Str::from(words(code)));
        return Outcome::Reply(response);
    }
    if request.topics.is_empty() {
        // Kafka has nothing to do, and leaves the answer as the schema has it.
        return Outcome::Reply(AlterPartitionReassignmentsResponse {
            allow_replication_factor_change: true,
            error_message: Some(Str::default()),
            ..response
        });
    }
    let is_late = cx.is_out_of_time(request.timeout_ms);
    if is_late {
        response.error_code = ErrorCode::REQUEST_TIMED_OUT.0;
    }
    for topic in &request.topics {
        let partitions = topic.partitions.iter().map(|partition| {
            let moved = if is_late {
                Err((ErrorCode::REQUEST_TIMED_OUT, None))
            } else {
                reassign(state, cx, &topic.name, partition, allow_replication_factor_change)
            };
            let (code, message) = moved.err().unwrap_or((ErrorCode::NONE, None));
            ReassignablePartitionResponse {
                partition_index: partition.partition_index,
                error_code: code.0,
                error_message: message.map(Str::from),
            }
        });
        let partitions = partitions.collect();
        response.responses.push(ReassignableTopicResponse { name: topic.name.clone(), partitions });
    }
    Outcome::Reply(response)
}

fn reassign(
    state: &mut State,
    cx: &Context,
    name: &str,
    asked: &ReassignablePartition,
    allow_replication_factor_change: bool,
) -> Result<(), (ErrorCode, Option<String>)> {
    let unknown = |text: String| (ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, Some(text));
    let index = asked.partition_index;
    let topic = state.topics.by_name(name).ok_or_else(|| unknown(format!("Unable to find a topic named {name}.")))?;
    let id = topic.id;
    let partition =
        topic.partition(index).ok_or_else(|| unknown(format!("Unable to find partition {name}:{index}.")))?;
    let Some(target) = &asked.replicas else {
        let cancelled = state.cancel_reassignment(id, index, cx.now);
        return if cancelled { Ok(()) } else { Err((ErrorCode::NO_REASSIGNMENT_IN_PROGRESS, None)) };
    };
    assignment::check_manual(state, target, None).map_err(|(code, text)| (code, Some(text)))?;
    // A move that is on its way has replicas that are to go; it counts what there will be.
    let gone = state.reassignments.find(id, index).map_or(0, |ongoing| ongoing.removing().len());
    let present = partition.replicas.len() - gone;
    if !allow_replication_factor_change && present != target.len() {
        let text = format!("The replication factor is changed from {present} to {}", target.len());
        return Err((ErrorCode::INVALID_REPLICATION_FACTOR, Some(text)));
    }
    state.reassign(id, index, target.clone(), cx.now);
    Ok(())
}
