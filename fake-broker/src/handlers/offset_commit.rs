//! OffsetCommit (8): stores how far a group has read.
//!
//! Topics and partitions that do not exist are refused one by one. The group is asked about the others, and its error
//! stands for all of them. A commit need not move forward.

use krafka_protocol::api::offset_commit::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic, OffsetCommitResponse,
    OffsetCommitResponsePartition, OffsetCommitResponseTopic,
};
use krafka_protocol::{ErrorCode, Str};

use crate::context::{Context, Outcome};
use crate::groups;
use crate::offsets::Committed;
use crate::security::acls::Operation;
use crate::state::State;

pub(crate) fn handle(state: &mut State, cx: &Context, request: &OffsetCommitRequest) -> Outcome<OffsetCommitResponse> {
    if let Some(error) = cx.group_error(state, Operation::Read, &request.group_id) {
        return Outcome::Reply(respond(request, |_, _| error));
    }
    let names: Vec<Option<Str>> = request.topics.iter().map(|topic| name_of(state, cx, topic)).collect();
    let refused = |topic: usize, partition: &OffsetCommitRequestPartition| match &names[topic] {
        None if cx.version >= 10 => Some(ErrorCode::UNKNOWN_TOPIC_ID),
        None => Some(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION),
        Some(name) => cx.partition_error(state, Operation::Read, name, partition.partition_index).or_else(|| {
            let exists = state.topics.partition(name, partition.partition_index).is_some();
            (!exists).then_some(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)
        }),
    };
    let mut errors: Vec<Vec<ErrorCode>> = Vec::with_capacity(request.topics.len());
    for (index, topic) in request.topics.iter().enumerate() {
        errors.push(topic.partitions.iter().map(|p| refused(index, p).unwrap_or(ErrorCode::NONE)).collect());
    }
    // Kafka answers without its coordinator when nothing is left to commit.
    if errors.iter().flatten().any(|error| error.is_ok()) {
        let error = match groups::not_coordinator(state, cx, &request.group_id) {
            Some(error) => error,
            None => state.groups.check_commit(&cx.into(), request, cx.now),
        };
        groups::settle(state, &request.group_id);
        if error.is_ok() {
            commit(state, request, &names, &mut errors);
        } else {
            errors.iter_mut().flatten().filter(|slot| slot.is_ok()).for_each(|slot| *slot = error);
        }
    }
    Outcome::Reply(respond(request, |topic, partition| errors[topic][partition]))
}

/// Commits what has no error so far.
fn commit(state: &mut State, request: &OffsetCommitRequest, names: &[Option<Str>], errors: &mut [Vec<ErrorCode>]) {
    let limit = state.config.offset_metadata_max_bytes;
    for ((topic, name), errors) in request.topics.iter().zip(names).zip(errors) {
        let Some(name) = name else { continue };
        for (partition, error) in topic.partitions.iter().zip(errors).filter(|(_, error)| error.is_ok()) {
            let metadata = partition.committed_metadata.clone().unwrap_or_default();
            // Kafka counts UTF-16 units, whatever the setting's name says.
            if metadata.encode_utf16().count() > limit {
                *error = ErrorCode::OFFSET_METADATA_TOO_LARGE;
                continue;
            }
            let committed = Committed {
                offset: partition.committed_offset,
                leader_epoch: partition.committed_leader_epoch,
                metadata,
            };
            state.offsets.commit(&request.group_id, name, partition.partition_index, committed);
        }
    }
}

/// The topic's name, if there is such a topic.
fn name_of(state: &State, cx: &Context, topic: &OffsetCommitRequestTopic) -> Option<Str> {
    if cx.version >= 10 { state.topics.name_of(&topic.topic_id) } else { Some(topic.name.clone()) }
}

fn respond(request: &OffsetCommitRequest, error: impl Fn(usize, usize) -> ErrorCode) -> OffsetCommitResponse {
    let topics = request.topics.iter().enumerate().map(|(t, topic)| OffsetCommitResponseTopic {
        name: topic.name.clone(),
        topic_id: topic.topic_id,
        partitions: topic
            .partitions
            .iter()
            .enumerate()
            .map(|(p, partition)| OffsetCommitResponsePartition {
                partition_index: partition.partition_index,
                error_code: error(t, p).0,
            })
            .collect(),
    });
    OffsetCommitResponse { topics: topics.collect(), ..OffsetCommitResponse::default() }
}
