//! TxnOffsetCommit (28): commits offsets of a group as a part of a transaction.
//!
//! Topics and partitions that do not exist are refused one by one. The group's coordinator first makes sure that its
//! partition is in the transaction, then asks the group about the member, and keeps the offsets until the transaction
//! ends (`transactions/pending_offsets.rs`). They are in its log as well, as records of the transaction.

use krafka_protocol::api::txn_offset_commit::{
    TxnOffsetCommitRequest, TxnOffsetCommitRequestPartition, TxnOffsetCommitRequestTopic, TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition, TxnOffsetCommitResponseTopic,
};
use krafka_protocol::{ErrorCode, Str, Uuid};

use super::{commits, parts};
use crate::context::{Context, Outcome};
use crate::coordinators::log::{self, Commit};
use crate::coordinators::{CoordinatorKind, OFFSETS_TOPIC};
use crate::groups::{self, Committer};
use crate::offsets::Committed;
use crate::producer_ids::IdAndEpoch;
use crate::security::acls::Operation;
use crate::state::State;
use crate::transactions::verification::{self, Client};

/// From this version on topics have ids instead of names.
const TOPIC_ID_VERSION: i16 = 6;
/// A coordinator writes for a producer without counting what it writes.
const NO_SEQUENCE: i32 = -1;

pub(crate) fn handle(
    state: &mut State,
    cx: &Context,
    request: &TxnOffsetCommitRequest,
) -> Outcome<TxnOffsetCommitResponse> {
    let denied = cx.transactional_id_error(state, Operation::Write, &request.transactional_id);
    if let Some(error) = denied.or_else(|| cx.group_error(state, Operation::Read, &request.group_id)) {
        return Outcome::Reply(whole(request, error));
    }
    let names: Vec<Option<Str>> = request.topics.iter().map(|topic| name_of(state, cx, topic)).collect();
    let refused = |topic: usize, partition: &TxnOffsetCommitRequestPartition| match &names[topic] {
        None => Some(ErrorCode::UNKNOWN_TOPIC_ID),
        Some(name) => commits::refused(state, cx, name, partition.partition_index),
    };
    let mut errors: Vec<Vec<ErrorCode>> = Vec::with_capacity(request.topics.len());
    for (index, topic) in request.topics.iter().enumerate() {
        errors.push(topic.partitions.iter().map(|p| refused(index, p).unwrap_or(ErrorCode::NONE)).collect());
    }
    let is_refused = parts::refusals(&errors);
    if errors.iter().flatten().any(|error| error.is_ok())
        && let Err(error) = commit(state, cx, request, &names, &mut errors)
    {
        // Clients that send the first versions do not survive the newer code.
        let error = match error {
            ErrorCode::COORDINATOR_LOAD_IN_PROGRESS if cx.version < 2 => ErrorCode::COORDINATOR_NOT_AVAILABLE,
            error => error,
        };
        errors.iter_mut().flatten().filter(|slot| slot.is_ok()).for_each(|slot| *slot = error);
    }
    let is_unknown = |topic: usize| names[topic].as_ref().is_none_or(|name| commits::is_refused(state, cx, name));
    Outcome::Reply(respond(request, &is_refused, is_unknown, &errors))
}

/// Commits what has no error so far.
fn commit(
    state: &mut State,
    cx: &Context,
    request: &TxnOffsetCommitRequest,
    names: &[Option<Str>],
    errors: &mut [Vec<ErrorCode>],
) -> Result<(), ErrorCode> {
    let group = &request.group_id;
    if group.is_empty() {
        return Err(ErrorCode::INVALID_GROUP_ID);
    }
    if let Some(error) = groups::not_coordinator(state, cx, group) {
        return Err(error);
    }
    let index = state.spread.partition_for(CoordinatorKind::Group, group);
    let offsets_topic = Str::from_static(OFFSETS_TOPIC);
    let client = Client::of_offset_commit(cx.version);
    let TxnOffsetCommitRequest { producer_id, producer_epoch, .. } = *request;
    let producer = IdAndEpoch { producer_id, producer_epoch };
    let id = &request.transactional_id;
    verification::admit(state, cx, id, producer, NO_SEQUENCE, (offsets_topic, index), client)?;
    check_member(state, cx, request, names, errors)?;

    let mut commits = Vec::new();
    for ((topic, name), errors) in request.topics.iter().zip(names).zip(errors) {
        let Some(name) = name else { continue };
        for (partition, error) in topic.partitions.iter().zip(errors).filter(|(_, error)| error.is_ok()) {
            let metadata = partition.committed_metadata.clone().unwrap_or_default();
            if commits::is_too_long(state, &metadata) {
                *error = ErrorCode::OFFSET_METADATA_TOO_LARGE;
                continue;
            }
            let (offset, leader_epoch) = (partition.committed_offset, partition.committed_leader_epoch);
            let committed = Committed { offset, leader_epoch, metadata };
            let (topic, partition) = (name.clone(), partition.partition_index);
            commits.push(Commit { topic, partition, committed, expires_ms: None });
        }
    }
    log::write_commits(state, group, &commits, Some(producer), cx.now);
    for Commit { topic, partition, committed, .. } in commits {
        state.pending_offsets.add(producer_id, group, &topic, partition, committed);
    }
    Ok(())
}

/// Asks the group about the member, whose error stands for the whole commit.
fn check_member(
    state: &mut State,
    cx: &Context,
    request: &TxnOffsetCommitRequest,
    names: &[Option<Str>],
    errors: &[Vec<ErrorCode>],
) -> Result<(), ErrorCode> {
    let by = Committer {
        group_id: &request.group_id,
        member_id: &request.member_id,
        instance_id: request.group_instance_id.as_ref(),
        epoch: request.generation_id_or_member_epoch,
        version: cx.version,
        is_transactional: true,
    };
    let (groups, image) = groups::at(state, cx.node);
    let scope = groups.check_commit(&image, &by, cx.now);
    groups::settle(state, &request.group_id, cx.now);
    let scope = scope.map_err(|refusal| refusal.error)?;
    for ((topic, name), errors) in request.topics.iter().zip(names).zip(errors) {
        let left = topic.partitions.iter().zip(errors).filter(|(_, error)| error.is_ok());
        commits::check(state, &scope, name.as_ref(), left.map(|(partition, _)| partition.partition_index))?;
    }
    Ok(())
}

/// The topic's name, if there is such a topic.
fn name_of(state: &State, cx: &Context, topic: &TxnOffsetCommitRequestTopic) -> Option<Str> {
    if cx.version >= TOPIC_ID_VERSION { state.topics.name_of(&topic.topic_id) } else { Some(topic.name.clone()) }
}

/// One error for all that was asked.
fn whole(request: &TxnOffsetCommitRequest, error: ErrorCode) -> TxnOffsetCommitResponse {
    let errors: Vec<_> = request.topics.iter().map(|topic| vec![error; topic.partitions.len()]).collect();
    respond(request, &parts::refusals(&errors), |_| true, &errors)
}

fn respond(
    request: &TxnOffsetCommitRequest,
    is_refused: &[Vec<bool>],
    is_unknown: impl Fn(usize) -> bool,
    errors: &[Vec<ErrorCode>],
) -> TxnOffsetCommitResponse {
    let answers = parts::refused_first(is_refused, is_unknown).map(|(t, p)| {
        let topic = &request.topics[t];
        let partition = p.map(|p| TxnOffsetCommitResponsePartition {
            partition_index: topic.partitions[p].partition_index,
            error_code: errors[t][p].0,
        });
        ((topic.name.clone(), topic.topic_id), partition)
    });
    let begin = |(name, topic_id): &(Str, Uuid)| TxnOffsetCommitResponseTopic {
        name: name.clone(),
        topic_id: *topic_id,
        partitions: Vec::new(),
    };
    let topics = parts::by_topic(answers, begin, |topic| &mut topic.partitions);
    TxnOffsetCommitResponse { topics, ..TxnOffsetCommitResponse::default() }
}
