//! OffsetFetch (9): how far groups have read.
//!
//! A group or partition that nobody knows has no offsets, which is no error: -1. With `require_stable`, an offset that
//! a transaction may yet change is not told (KIP-447).

use krafka_protocol::api::offset_fetch::{
    OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchResponse, OffsetFetchResponseGroup,
    OffsetFetchResponsePartition, OffsetFetchResponsePartitions, OffsetFetchResponseTopic, OffsetFetchResponseTopics,
};
use krafka_protocol::{ErrorCode, Str};

use crate::context::{Context, Outcome};
use crate::groups;
use crate::offsets::Committed;
use crate::security::acls::{Operation, ResourceType};
use crate::state::State;

pub(crate) fn handle(state: &State, cx: &Context, request: &OffsetFetchRequest) -> Outcome<OffsetFetchResponse> {
    if cx.version < 8 {
        return Outcome::Reply(single(state, cx, request));
    }
    let groups = request.groups.iter().map(|group| fetch(state, cx, group, request.require_stable)).collect();
    Outcome::Reply(OffsetFetchResponse { groups, ..OffsetFetchResponse::default() })
}

/// The answer for one of many groups, from version 8 on.
fn fetch(state: &State, cx: &Context, group: &OffsetFetchRequestGroup, stable: bool) -> OffsetFetchResponseGroup {
    let mut answer = OffsetFetchResponseGroup { group_id: group.group_id.clone(), ..Default::default() };
    let is_member = || {
        // Members of KIP-848 say who they are, and must be up to date.
        let checked = state.groups.check_fetch(&group.group_id, group.member_id.as_ref(), group.member_epoch);
        checked.err().map(|refusal| refusal.error)
    };
    if let Some(error) = refusal(state, cx, &group.group_id).or_else(is_member) {
        answer.error_code = error.0;
        return answer;
    }
    let offsets = &state.offsets;
    let Some(topics) = &group.topics else {
        answer.topics = offsets
            .of_group(&group.group_id)
            .filter(|(name, _)| is_shown(state, cx, name))
            .map(|(name, partitions)| OffsetFetchResponseTopics {
                name: name.clone(),
                topic_id: state.topics.by_name(name).map(|topic| topic.id).unwrap_or_default(),
                partitions: partitions
                    .into_iter()
                    .map(|(index, c)| found(index, settled(state, stable, &group.group_id, name, index, Some(c))))
                    .collect(),
            })
            .collect();
        return answer;
    };
    answer.topics = topics
        .iter()
        .map(|topic| {
            let name = if cx.version >= 10 { state.topics.name_of(&topic.topic_id) } else { Some(topic.name.clone()) };
            let partition = |index: i32| match &name {
                None => found(index, Err(ErrorCode::UNKNOWN_TOPIC_ID)),
                Some(name) => found(index, look_up(state, cx, stable, &group.group_id, name, index)),
            };
            OffsetFetchResponseTopics {
                name: name.clone().unwrap_or_default(),
                topic_id: topic.topic_id,
                partitions: topic.partition_indexes.iter().map(|index| partition(*index)).collect(),
            }
        })
        .collect();
    answer
}

/// The answer for the one group of the versions before 8.
fn single(state: &State, cx: &Context, request: &OffsetFetchRequest) -> OffsetFetchResponse {
    // Kafka 3.9 knows version 0, but only with ZooKeeper to keep the offsets.
    let is_of_old = (cx.version == 0).then_some(ErrorCode::UNSUPPORTED_VERSION);
    let refused = is_of_old.or_else(|| refusal(state, cx, &request.group_id));
    let stable = request.require_stable;
    let mut response = OffsetFetchResponse::default();
    if let Some(error) = refused {
        response.error_code = error.0;
        if cx.version >= 2 {
            return response;
        }
    }
    let Some(topics) = &request.topics else {
        response.topics = state
            .offsets
            .of_group(&request.group_id)
            .filter(|(name, _)| is_shown(state, cx, name))
            .map(|(name, partitions)| OffsetFetchResponseTopic {
                name: name.clone(),
                partitions: partitions
                    .into_iter()
                    .map(|(index, c)| (index, settled(state, stable, &request.group_id, name, index, Some(c))))
                    .map(|(index, committed)| narrow(found(index, committed)))
                    .collect(),
            })
            .collect();
        return response;
    };
    response.topics = topics
        .iter()
        .map(|topic| {
            // Versions 0 and 1 have no room for the error of the whole, so each partition bears it.
            let partition = |index: i32| match refused {
                Some(error) => narrow(found(index, Err(error))),
                None => narrow(found(index, look_up(state, cx, stable, &request.group_id, &topic.name, index))),
            };
            OffsetFetchResponseTopic {
                name: topic.name.clone(),
                partitions: topic.partition_indexes.iter().map(|index| partition(*index)).collect(),
            }
        })
        .collect();
    response
}

fn refusal(state: &State, cx: &Context, group: &Str) -> Option<ErrorCode> {
    cx.group_error(state, Operation::Describe, group).or_else(|| groups::not_coordinator(state, cx, group))
}

/// Whether the client may know of a topic that it did not name.
fn is_shown(state: &State, cx: &Context, topic: &str) -> bool {
    cx.may(state, Operation::Describe, ResourceType::Topic, topic)
}

fn look_up<'a>(
    state: &'a State,
    cx: &Context,
    stable: bool,
    group: &Str,
    topic: &Str,
    partition: i32,
) -> Result<Option<&'a Committed>, ErrorCode> {
    match cx.partition_error(state, Operation::Describe, topic, partition) {
        Some(error) => Err(error),
        None => settled(state, stable, group, topic, partition, state.offsets.committed(group, topic, partition)),
    }
}

/// What was committed, unless an open transaction may change it and only what is `stable` was asked for.
fn settled<'a>(
    state: &State,
    stable: bool,
    group: &Str,
    topic: &Str,
    partition: i32,
    committed: Option<&'a Committed>,
) -> Result<Option<&'a Committed>, ErrorCode> {
    if stable && state.pending_offsets.is_unstable(group, topic, partition) {
        return Err(ErrorCode::UNSTABLE_OFFSET_COMMIT);
    }
    Ok(committed)
}

fn found(partition_index: i32, committed: Result<Option<&Committed>, ErrorCode>) -> OffsetFetchResponsePartitions {
    let none = OffsetFetchResponsePartitions {
        partition_index,
        committed_offset: -1,
        committed_leader_epoch: -1,
        metadata: Some(Str::default()),
        error_code: ErrorCode::NONE.0,
    };
    match committed {
        Ok(Some(committed)) => OffsetFetchResponsePartitions {
            committed_offset: committed.offset,
            committed_leader_epoch: committed.leader_epoch,
            metadata: Some(committed.metadata.clone()),
            ..none
        },
        Ok(None) => none,
        Err(error) => OffsetFetchResponsePartitions { error_code: error.0, ..none },
    }
}

/// The same in the layout of the versions before 8.
fn narrow(partition: OffsetFetchResponsePartitions) -> OffsetFetchResponsePartition {
    OffsetFetchResponsePartition {
        partition_index: partition.partition_index,
        committed_offset: partition.committed_offset,
        committed_leader_epoch: partition.committed_leader_epoch,
        metadata: partition.metadata,
        error_code: partition.error_code,
    }
}
