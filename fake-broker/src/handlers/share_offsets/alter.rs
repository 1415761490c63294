//! AlterShareGroupOffsets (91): lets a group read on somewhere else. A group that is not there is made.

use krafka_protocol::api::alter_share_group_offsets::{
    AlterShareGroupOffsetsRequest, AlterShareGroupOffsetsRequestTopic, AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition, AlterShareGroupOffsetsResponseTopic,
};
use krafka_protocol::{ErrorCode, Str, Uuid};

use super::admit;
use crate::context::{Context, Outcome};
use crate::groups::share::{self, Kept, ShareKey};
use crate::security::acls::Operation;
use crate::state::State;
use crate::words::words;

pub(crate) fn handle(
    state: &mut State,
    cx: &Context,
    request: &AlterShareGroupOffsetsRequest,
) -> Outcome<AlterShareGroupOffsetsResponse> {
    let group = &request.group_id;
    if let Err((code, message)) = admit(state, cx, Operation::Read, group) {
        return Outcome::Reply(AlterShareGroupOffsetsResponse {
            error_code: code.0,
            error_message: Some(message),
            ..AlterShareGroupOffsetsResponse::default()
        });
    }
    // A group is made only for a topic of which something could be kept.
    let is_there = |asked: &AlterShareGroupOffsetsRequestTopic| {
        let found = state.topics.by_name(&asked.topic_name);
        found.is_some_and(|found| cx.topic_error(state, Operation::Read, &found.name).is_none())
    };
    if request.topics.iter().any(is_there) && share::group_or_new(state, cx.node, group).is_none() {
        return Outcome::Close;
    }
    let state_epoch = share::group(state, group).map_or(0, |group| group.epoch);
    if let Some((topic, partition)) = below_zero(state, cx, request) {
        let reason = format!("Initialize share group parameters has invalid partitionId - {group} {topic} {partition}");
        return Outcome::Reply(AlterShareGroupOffsetsResponse {
            error_code: ErrorCode::UNKNOWN_SERVER_ERROR.0,
            error_message: Some(Str::from(reason)),
            ..AlterShareGroupOffsetsResponse::default()
        });
    }
    let mut responses: Vec<AlterShareGroupOffsetsResponseTopic> = Vec::new();
    for asked in &request.topics {
        let found = state.topics.by_name(&asked.topic_name).map(|topic| (topic.id, topic.partitions.len()));
        let denied = cx.topic_error(state, Operation::Read, &asked.topic_name);
        if asked.partitions.is_empty() && (found.is_none() || denied.is_some()) {
            continue;
        }
        let mut partitions = Vec::new();
        for partition in &asked.partitions {
            let index = partition.partition_index;
            let is_there = |&(_, count): &(Uuid, usize)| usize::try_from(index).is_ok_and(|index| index < count);
            let code = match (denied, found.filter(is_there)) {
                (Some(code), _) => code,
                (None, None) => ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
                (None, Some((topic, _))) => {
                    let key = ShareKey { group: group.clone(), topic, partition: index };
                    share::forget_partition(state, &key);
                    state.share.persister.insert(key, Kept::new(state_epoch, partition.start_offset));
                    ErrorCode::NONE
                }
            };
            partitions.push(AlterShareGroupOffsetsResponsePartition {
                partition_index: index,
                error_code: code.0,
                error_message: (!code.is_ok()).then(|| Str::from_static(words(code))),
            });
        }
        let topic_id = found.map_or(Uuid::ZERO, |(id, _)| id);
        // A topic that comes again is answered where it came first.
        if let Some(before) = responses.iter_mut().find(|it| found.is_some() && it.topic_id == topic_id) {
            before.partitions.extend(partitions);
            continue;
        }
        responses.push(AlterShareGroupOffsetsResponseTopic {
            topic_name: asked.topic_name.clone(),
            topic_id,
            partitions,
        });
    }
    // Topics that are not there are refused before anything is done.
    responses.sort_by_key(|topic| topic.topic_id != Uuid::ZERO);
    Outcome::Reply(AlterShareGroupOffsetsResponse {
        error_message: None,
        responses,
        ..AlterShareGroupOffsetsResponse::default()
    })
}

/// The first partition whose number is below zero, of a topic that is there: Kafka takes it for one, until the share
/// coordinator is to begin its state.
fn below_zero(state: &State, cx: &Context, request: &AlterShareGroupOffsetsRequest) -> Option<(Uuid, i32)> {
    let is_allowed = |name: &Str| cx.topic_error(state, Operation::Read, name).is_none();
    let allowed = request.topics.iter().filter(|asked| is_allowed(&asked.topic_name));
    let mut partitions = allowed.flat_map(|asked| {
        let topic = state.topics.by_name(&asked.topic_name).map(|topic| topic.id);
        asked.partitions.iter().filter_map(move |partition| Some((topic?, partition.partition_index)))
    });
    partitions.find(|(_, partition)| *partition < 0)
}
