//! OffsetDelete (47): single offsets of a group are forgotten, if nobody in it reads their topic; so are those that a
//! transaction is about to bring.

use krafka_protocol::ErrorCode;
use krafka_protocol::api::offset_delete::{
    OffsetDeleteRequest, OffsetDeleteRequestTopic, OffsetDeleteResponse, OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
};

use crate::context::{Context, Outcome};
use crate::groups;
use crate::security::acls::Operation;
use crate::state::State;

pub(crate) fn handle(state: &mut State, cx: &Context, request: &OffsetDeleteRequest) -> Outcome<OffsetDeleteResponse> {
    let whole = |error: ErrorCode| OffsetDeleteResponse { error_code: error.0, ..OffsetDeleteResponse::default() };
    let group = &request.group_id;
    if let Some(error) = cx.group_error(state, Operation::Delete, group) {
        return Outcome::Reply(whole(error));
    }
    let mut topics: Vec<_> = request.topics.iter().map(|topic| check(state, cx, topic)).collect();
    let nameless = || group.is_empty().then_some(ErrorCode::INVALID_GROUP_ID);
    let refused = nameless().or_else(|| groups::not_coordinator(state, cx, group));
    let error = refused.unwrap_or_else(|| state.groups.check_offset_delete(group));
    if !error.is_ok() {
        return Outcome::Reply(whole(error));
    }
    for topic in &mut topics {
        let is_read = state.groups.is_subscribed(group, &topic.name);
        for partition in topic.partitions.iter_mut().filter(|partition| partition.error_code == 0) {
            if is_read {
                partition.error_code = ErrorCode::GROUP_SUBSCRIBED_TO_TOPIC.0;
            } else {
                state.offsets.delete(group, &topic.name, partition.partition_index);
                state.pending_offsets.delete(group, &topic.name, partition.partition_index);
            }
        }
    }
    Outcome::Reply(OffsetDeleteResponse { topics, ..OffsetDeleteResponse::default() })
}

/// The answer for a topic as far as it can be told without the group.
fn check(state: &State, cx: &Context, topic: &OffsetDeleteRequestTopic) -> OffsetDeleteResponseTopic {
    let partitions = topic.partitions.iter().map(|partition| {
        let index = partition.partition_index;
        let missing = || {
            let exists = state.topics.partition(&topic.name, index).is_some();
            (!exists).then_some(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)
        };
        let refused = cx.partition_error(state, Operation::Read, &topic.name, index).or_else(missing);
        OffsetDeleteResponsePartition { partition_index: index, error_code: refused.unwrap_or(ErrorCode::NONE).0 }
    });
    OffsetDeleteResponseTopic { name: topic.name.clone(), partitions: partitions.collect() }
}
