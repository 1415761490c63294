//! DescribeTopicPartitions: topics a page of partitions at a time, with their eligible leader replicas (KIP-966).

use std::collections::BTreeSet;

use krafka_protocol::api::describe_topic_partitions::{
    Cursor, DescribeTopicPartitionsResponsePartition, DescribeTopicPartitionsResponseTopic,
};
use krafka_protocol::{DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse, ErrorCode, Str, Uuid};

use super::operations;
use crate::context::{Context, Outcome};
use crate::security::acls::Operation;
use crate::state::State;
use crate::topics::{self, Partition, Topic};

pub(crate) fn handle(
    state: &State,
    cx: &Context,
    request: &DescribeTopicPartitionsRequest,
) -> Outcome<DescribeTopicPartitionsResponse> {
    if let Some(code) = cx.denied() {
        return Outcome::Reply(failed(request, code));
    }
    let cursor = request.cursor.as_ref();
    let first = cursor.map(|cursor| cursor.topic_name.clone()).unwrap_or_default();
    let all = request.topics.is_empty();
    let names: BTreeSet<Str> = if all {
        state.topics.iter().map(|topic| topic.name.clone()).filter(|name| *name >= first).collect()
    } else {
        request.topics.iter().map(|topic| topic.name.clone()).filter(|name| *name >= first).collect()
    };
    let is_lost = |cursor: &Cursor| cursor.partition_index < 0 || (!all && !names.contains(&cursor.topic_name));
    if cursor.is_some_and(is_lost) {
        return Outcome::Reply(failed(request, ErrorCode::INVALID_REQUEST));
    }
    if request.topics.iter().any(|topic| topic.name.is_empty()) {
        // Kafka trips over it.
        return Outcome::Reply(failed(request, ErrorCode::UNKNOWN_SERVER_ERROR));
    }

    let mut room =
        usize::try_from(request.response_partition_limit.clamp(1, state.config.described_partitions().max(1)))
            .unwrap_or(1);
    let mut response = DescribeTopicPartitionsResponse::default();
    for name in names {
        if let Some(code) = cx.topic_error(state, Operation::Describe, &name) {
            // Who asks for all topics is not told of those that it may not see.
            if !all {
                response.topics.push(refused(name, code, i32::MIN));
            }
            continue;
        }
        let operations = operations::topic(state, cx, &name);
        let Some(topic) = state.topics.by_name(&name) else {
            let code = match topics::validate_name(&name) {
                Ok(()) => ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
                Err(_) => ErrorCode::INVALID_TOPIC_EXCEPTION,
            };
            response.topics.push(refused(name, code, operations));
            continue;
        };
        let from = cursor.filter(|cursor| cursor.topic_name == name).map_or(0, |cursor| cursor.partition_index);
        if room == 0 {
            response.next_cursor = Some(Cursor { topic_name: name, partition_index: from });
            break;
        }
        let left = topic.indexed().skip(usize::try_from(from).unwrap_or(0));
        let mut described: Vec<_> = left.map(|(index, partition)| describe(state, index, partition)).collect();
        let next = described.get(room).map(|partition| partition.partition_index);
        described.truncate(room);
        room -= described.len();
        response.topics.push(told(topic, described, operations));
        if let Some(partition_index) = next {
            response.next_cursor = Some(Cursor { topic_name: name, partition_index });
            break;
        }
    }
    Outcome::Reply(response)
}

fn told(
    topic: &Topic,
    partitions: Vec<DescribeTopicPartitionsResponsePartition>,
    operations: i32,
) -> DescribeTopicPartitionsResponseTopic {
    DescribeTopicPartitionsResponseTopic {
        error_code: 0,
        name: Some(topic.name.clone()),
        topic_id: topic.id,
        is_internal: topic.internal,
        partitions,
        topic_authorized_operations: operations,
    }
}

fn describe(state: &State, index: i32, partition: &Partition) -> DescribeTopicPartitionsResponsePartition {
    let error = if partition.leader.is_none() { ErrorCode::LEADER_NOT_AVAILABLE } else { ErrorCode::NONE };
    DescribeTopicPartitionsResponsePartition {
        error_code: error.0,
        partition_index: index,
        leader_id: partition.leader.unwrap_or(-1),
        leader_epoch: partition.leader_epoch,
        replica_nodes: partition.replicas.clone(),
        isr_nodes: partition.isr.clone(),
        eligible_leader_replicas: Some(partition.eligible.replicas.clone()),
        last_known_elr: Some(partition.eligible.last_known.clone()),
        offline_replicas: partition.replicas.iter().copied().filter(|node| !state.nodes.is_up(*node)).collect(),
    }
}

fn refused(name: Str, code: ErrorCode, operations: i32) -> DescribeTopicPartitionsResponseTopic {
    DescribeTopicPartitionsResponseTopic {
        error_code: code.0,
        name: Some(name),
        topic_id: Uuid::ZERO,
        is_internal: false,
        partitions: Vec::new(),
        topic_authorized_operations: operations,
    }
}

/// The same error for each topic asked for: the answer has no room for one of its own.
fn failed(request: &DescribeTopicPartitionsRequest, code: ErrorCode) -> DescribeTopicPartitionsResponse {
    let topics = request.topics.iter().map(|topic| refused(topic.name.clone(), code, i32::MIN)).collect();
    DescribeTopicPartitionsResponse { topics, ..DescribeTopicPartitionsResponse::default() }
}
