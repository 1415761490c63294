//! OffsetDelete (47): single offsets of a group are forgotten, if nobody in it reads their topic; so are those that a
//! transaction is about to bring. What is refused comes first in the answer.

use krafka_protocol::api::offset_delete::{
    OffsetDeleteRequest, OffsetDeleteRequestTopic, OffsetDeleteResponse, OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
};
use krafka_protocol::{ErrorCode, Str};

use super::{commits, parts};
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
    let mut errors: Vec<Vec<ErrorCode>> = request.topics.iter().map(|topic| check(state, cx, topic)).collect();
    let is_refused = parts::refusals(&errors);
    let nameless = || group.is_empty().then_some(ErrorCode::INVALID_GROUP_ID);
    let refused = nameless().or_else(|| groups::not_coordinator(state, cx, group));
    let error = refused.unwrap_or_else(|| state.groups.check_offset_delete(group));
    if !error.is_ok() {
        return Outcome::Reply(whole(error));
    }
    for (topic, errors) in request.topics.iter().zip(&mut errors) {
        let is_read = state.groups.is_subscribed(group, &topic.name);
        for (partition, error) in topic.partitions.iter().zip(errors).filter(|(_, error)| error.is_ok()) {
            if is_read {
                *error = ErrorCode::GROUP_SUBSCRIBED_TO_TOPIC;
            } else {
                state.offsets.delete(group, &topic.name, partition.partition_index);
                state.pending_offsets.delete(group, &topic.name, partition.partition_index);
            }
        }
    }
    let is_unknown = |topic: usize| commits::is_refused(state, cx, &request.topics[topic].name);
    let answers = parts::refused_first(&is_refused, is_unknown).map(|(t, p)| {
        let topic = &request.topics[t];
        let partition = p.map(|p| OffsetDeleteResponsePartition {
            partition_index: topic.partitions[p].partition_index,
            error_code: errors[t][p].0,
        });
        (topic.name.clone(), partition)
    });
    let begin = |name: &Str| OffsetDeleteResponseTopic { name: name.clone(), partitions: Vec::new() };
    let topics = parts::by_topic(answers, begin, |topic| &mut topic.partitions);
    Outcome::Reply(OffsetDeleteResponse { topics, ..OffsetDeleteResponse::default() })
}

/// Why nothing is forgotten of each partition of a topic, as far as it can be told without the group.
fn check(state: &State, cx: &Context, topic: &OffsetDeleteRequestTopic) -> Vec<ErrorCode> {
    let partitions = topic.partitions.iter().map(|partition| {
        let index = partition.partition_index;
        let missing = || {
            let exists = state.topics.partition(&topic.name, index).is_some();
            (!exists).then_some(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)
        };
        let refused = cx.partition_error(state, Operation::Read, &topic.name, index).or_else(missing);
        refused.unwrap_or(ErrorCode::NONE)
    });
    partitions.collect()
}
