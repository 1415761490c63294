//! OffsetCommit (8): stores how far a group has read.
//!
//! Topics and partitions that do not exist are refused one by one. The group is asked about the others, and its error
//! stands for all of them. What is refused comes first in the answer. A commit need not move forward.

use std::time::Duration;

use krafka_protocol::api::offset_commit::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic, OffsetCommitResponse,
    OffsetCommitResponsePartition, OffsetCommitResponseTopic,
};
use krafka_protocol::{ErrorCode, Str, Uuid};

use super::{commits, parts};
use crate::context::{Context, Outcome};
use crate::coordinators::{self, log::Commit};
use crate::groups::{self, Committer};
use crate::offsets::Committed;
use crate::security::acls::Operation;
use crate::state::State;

pub(crate) fn handle(state: &mut State, cx: &Context, request: &OffsetCommitRequest) -> Outcome<OffsetCommitResponse> {
    if let Some(error) = cx.group_error(state, Operation::Read, &request.group_id) {
        return Outcome::Reply(whole(request, error));
    }
    if cx.version == 0 {
        // Kafka 3.9 knows it, but only with ZooKeeper to keep the offsets.
        return Outcome::Reply(whole(request, ErrorCode::UNSUPPORTED_VERSION));
    }
    let names: Vec<Option<Str>> = request.topics.iter().map(|topic| name_of(state, cx, topic)).collect();
    let refused = |topic: usize, partition: &OffsetCommitRequestPartition| match &names[topic] {
        None if cx.version >= 10 => Some(ErrorCode::UNKNOWN_TOPIC_ID),
        None => Some(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION),
        Some(name) => commits::refused(state, cx, name, partition.partition_index),
    };
    let mut errors: Vec<Vec<ErrorCode>> = Vec::with_capacity(request.topics.len());
    for (index, topic) in request.topics.iter().enumerate() {
        errors.push(topic.partitions.iter().map(|p| refused(index, p).unwrap_or(ErrorCode::NONE)).collect());
    }
    let is_refused = parts::refusals(&errors);
    // Kafka answers without its coordinator when nothing is left to commit.
    if errors.iter().flatten().any(|error| error.is_ok()) {
        let scope = match groups::not_coordinator(state, cx, &request.group_id) {
            Some(error) => Err(error),
            None => check(state, cx, request, &names, &errors),
        };
        groups::settle(state, &request.group_id, cx.now);
        match scope {
            Ok(()) => commit(state, cx, request, &names, &mut errors),
            Err(error) => errors.iter_mut().flatten().filter(|slot| slot.is_ok()).for_each(|slot| *slot = error),
        }
    }
    let is_unknown = |topic: usize| names[topic].as_ref().is_none_or(|name| commits::is_refused(state, cx, name));
    Outcome::Reply(respond(request, &is_refused, is_unknown, &errors))
}

/// Asks the group, whose error stands for the whole commit.
fn check(
    state: &mut State,
    cx: &Context,
    request: &OffsetCommitRequest,
    names: &[Option<Str>],
    errors: &[Vec<ErrorCode>],
) -> Result<(), ErrorCode> {
    let by = Committer {
        group_id: &request.group_id,
        member_id: &request.member_id,
        instance_id: request.group_instance_id.as_ref(),
        epoch: request.generation_id_or_member_epoch,
        version: cx.version,
        is_transactional: false,
    };
    let (groups, image) = groups::at(state, cx.node);
    let scope = groups.check_commit(&image, &by, cx.now).map_err(|refusal| refusal.error)?;
    for ((topic, name), errors) in request.topics.iter().zip(names).zip(errors) {
        let left = topic.partitions.iter().zip(errors).filter(|(_, error)| error.is_ok());
        commits::check(state, &scope, name.as_ref(), left.map(|(partition, _)| partition.partition_index))?;
    }
    Ok(())
}

/// Commits what has no error so far.
fn commit(
    state: &mut State,
    cx: &Context,
    request: &OffsetCommitRequest,
    names: &[Option<Str>],
    errors: &mut [Vec<ErrorCode>],
) {
    // Versions 2 to 4 say how long the offsets are to be kept; -1 leaves it to the broker.
    let keep = u64::try_from(request.retention_time_ms).ok().filter(|_| (2..=4).contains(&cx.version));
    let expires = keep.and_then(|ms| cx.now.checked_add(Duration::from_millis(ms)));
    let expires_ms = keep.and_then(|ms| i64::try_from(ms).ok()).map(|ms| cx.wall_ms.saturating_add(ms));
    let mut commits = Vec::new();
    for ((topic, name), errors) in request.topics.iter().zip(names).zip(errors) {
        let Some(name) = name else { continue };
        for (partition, error) in topic.partitions.iter().zip(errors).filter(|(_, error)| error.is_ok()) {
            let metadata = partition.committed_metadata.clone().unwrap_or_default();
            if commits::is_too_long(state, &metadata) {
                *error = ErrorCode::OFFSET_METADATA_TOO_LARGE;
                continue;
            }
            let committed = Committed {
                offset: partition.committed_offset,
                leader_epoch: partition.committed_leader_epoch,
                metadata,
            };
            let index = partition.partition_index;
            state.offsets.commit(cx.now, expires, &request.group_id, name, index, committed.clone());
            state.pending_offsets.overtaken(&request.group_id, name, index);
            commits.push(Commit { topic: name.clone(), partition: index, committed, expires_ms });
        }
    }
    coordinators::log::write_commits(state, &request.group_id, &commits, None, cx.now);
}

/// The topic's name, if there is such a topic.
fn name_of(state: &State, cx: &Context, topic: &OffsetCommitRequestTopic) -> Option<Str> {
    if cx.version >= 10 { state.topics.name_of(&topic.topic_id) } else { Some(topic.name.clone()) }
}

/// One error for all that was asked.
fn whole(request: &OffsetCommitRequest, error: ErrorCode) -> OffsetCommitResponse {
    let errors: Vec<_> = request.topics.iter().map(|topic| vec![error; topic.partitions.len()]).collect();
    respond(request, &parts::refusals(&errors), |_| true, &errors)
}

fn respond(
    request: &OffsetCommitRequest,
    is_refused: &[Vec<bool>],
    is_unknown: impl Fn(usize) -> bool,
    errors: &[Vec<ErrorCode>],
) -> OffsetCommitResponse {
    let answers = parts::refused_first(is_refused, is_unknown).map(|(t, p)| {
        let topic = &request.topics[t];
        let partition = p.map(|p| OffsetCommitResponsePartition {
            partition_index: topic.partitions[p].partition_index,
            error_code: errors[t][p].0,
        });
        ((topic.name.clone(), topic.topic_id), partition)
    });
    let begin = |(name, topic_id): &(Str, Uuid)| OffsetCommitResponseTopic {
        name: name.clone(),
        topic_id: *topic_id,
        partitions: Vec::new(),
    };
    let topics = parts::by_topic(answers, begin, |topic| &mut topic.partitions);
    OffsetCommitResponse { topics, ..OffsetCommitResponse::default() }
}
