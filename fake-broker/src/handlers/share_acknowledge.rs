//! ShareAcknowledge (79): a member says what became of its records, without fetching others.

use krafka_protocol::api::share_acknowledge::{
    AcknowledgementBatch, LeaderIdAndEpoch, NodeEndpoint, PartitionData, ShareAcknowledgeRequest,
    ShareAcknowledgeResponse, ShareAcknowledgeTopicResponse,
};
use krafka_protocol::{ErrorCode, Str};

use super::leadership;
use super::share_group_heartbeat::MAX_MEMBER_ID;
use crate::context::{Context, Outcome};
use crate::features::SHARE_VERSION;
use crate::groups::share::{
    self, Acknowledgement, FINAL_EPOCH, Holder, INITIAL_EPOCH, Settings, ShareKey, Unacknowledged, is_well_formed,
};
use crate::security::acls::Operation;
use crate::state::State;

/// Kafka's words for a partition that nobody has read here.
const NOT_HOSTED: &str = "This server does not host this topic-partition.";

pub(crate) fn handle(
    state: &mut State,
    cx: &Context,
    request: &ShareAcknowledgeRequest,
) -> Outcome<ShareAcknowledgeResponse> {
    let failed = |code: ErrorCode| {
        let error_message = None;
        Outcome::Reply(ShareAcknowledgeResponse { error_code: code.0, error_message, ..Default::default() })
    };
    if !state.is_on(SHARE_VERSION) {
        return failed(ErrorCode::UNSUPPORTED_VERSION);
    }
    let holder = match holder(state, cx, request.group_id.as_ref(), request.member_id.as_ref()) {
        Ok(holder) => holder,
        Err(code) => return failed(code),
    };
    if request.share_session_epoch == INITIAL_EPOCH {
        return failed(ErrorCode::INVALID_SHARE_SESSION_EPOCH);
    }
    let Some(sessions) = state.share.sessions.get_mut(&cx.node) else { return Outcome::Close };
    if let Err(code) = sessions.step(&holder, request.share_session_epoch) {
        return failed(code);
    }
    if request.topics.iter().any(|topic| state.topics.by_id(topic.topic_id).is_none()) {
        // Kafka 4.4 trips over an id without a name.
        return failed(ErrorCode::UNKNOWN_SERVER_ERROR);
    }

    let settings = Settings::of(state, &holder.group);
    let mut responses = Vec::new();
    for topic in &request.topics {
        let mut partitions = Vec::new();
        for asked in topic.partitions.iter().filter(|asked| !asked.acknowledgement_batches.is_empty()) {
            let key = ShareKey { group: holder.group.clone(), topic: topic.topic_id, partition: asked.partition_index };
            let acknowledgements = asked.acknowledgement_batches.iter().map(acknowledgement).collect::<Vec<_>>();
            let may_renew = request.is_renew_ack && settings.may_renew;
            let result = acknowledge(state, cx, &key, &holder.member, &acknowledgements, may_renew);
            partitions.push(answer(state, &key, result));
        }
        if !partitions.is_empty() {
            responses.push(ShareAcknowledgeTopicResponse { topic_id: topic.topic_id, partitions });
        }
    }
    if request.share_session_epoch == FINAL_EPOCH {
        share::close_session(state, cx.node, &holder);
    }
    let answers = responses.iter().flat_map(|topic| &topic.partitions);
    let hinted = answers.filter(|answer| is_hinted(ErrorCode(answer.error_code)));
    let leaders: Vec<i32> = hinted.map(|answer| answer.current_leader.leader_id).collect();
    let node_endpoints = leadership::endpoints(state, cx, leaders).into_iter();
    Outcome::Reply(ShareAcknowledgeResponse {
        error_message: None,
        acquisition_lock_timeout_ms: lock_millis(&settings),
        responses,
        node_endpoints: node_endpoints
            .map(|(node_id, host, port, rack)| NodeEndpoint { node_id, host, port, rack })
            .collect(),
        ..ShareAcknowledgeResponse::default()
    })
}

/// Who asks, if it may, and says so.
pub(super) fn holder(
    state: &State,
    cx: &Context,
    group: Option<&Str>,
    member: Option<&Str>,
) -> Result<Holder, ErrorCode> {
    let group = group.ok_or(ErrorCode::INVALID_REQUEST)?;
    if let Some(code) = cx.group_error(state, Operation::Read, group) {
        return Err(code);
    }
    let member = member.filter(|id| !id.is_empty() && id.len() <= MAX_MEMBER_ID).ok_or(ErrorCode::INVALID_REQUEST)?;
    Ok(Holder { group: group.clone(), member: member.clone() })
}

/// Does what a member says of its records on one partition, of a topic that exists.
pub(super) fn acknowledge(
    state: &mut State,
    cx: &Context,
    key: &ShareKey,
    member: &Str,
    acknowledgements: &[Acknowledgement],
    may_renew: bool,
) -> Result<(), Unacknowledged> {
    let Some(topic) = state.topics.by_id(key.topic) else {
        return Err(Unacknowledged::silent(ErrorCode::UNKNOWN_TOPIC_ID));
    };
    if let Some(code) = cx.partition_error(state, Operation::Read, &topic.name, key.partition) {
        return Err(Unacknowledged::silent(code));
    }
    let Some(partition) = topic.partition(key.partition) else {
        return Err(Unacknowledged::silent(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION));
    };
    if !is_well_formed(acknowledgements, may_renew) {
        return Err(Unacknowledged::silent(ErrorCode::INVALID_REQUEST));
    }
    // Only the leader has share partitions, and only those that somebody has read.
    let not_here = Unacknowledged { code: ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, reason: Some(NOT_HOSTED) };
    if partition.leader != Some(cx.node) {
        return Err(not_here);
    }
    share::acknowledge(state, key, member, acknowledgements, cx.now).unwrap_or(Err(not_here))
}

/// How long members have records, for an answer.
pub(super) fn lock_millis(settings: &Settings) -> i32 {
    i32::try_from(settings.limits.lock_duration.as_millis()).unwrap_or(i32::MAX)
}

fn answer(state: &State, key: &ShareKey, result: Result<(), Unacknowledged>) -> PartitionData {
    let refusal = result.err();
    let code = refusal.map_or(ErrorCode::NONE, |refusal| refusal.code);
    PartitionData {
        partition_index: key.partition,
        error_code: code.0,
        error_message: refusal.and_then(|refusal| refusal.reason).map(Str::from_static),
        current_leader: hint(state, key, code).map_or_else(LeaderIdAndEpoch::default, |(leader_id, leader_epoch)| {
            LeaderIdAndEpoch { leader_id, leader_epoch }
        }),
    }
}

/// Whether an answer with this error says who leads (KIP-951).
pub(super) fn is_hinted(code: ErrorCode) -> bool {
    code == ErrorCode::NOT_LEADER_OR_FOLLOWER || code == ErrorCode::FENCED_LEADER_EPOCH
}

/// Who leads a partition, for who asked the wrong node.
pub(super) fn hint(state: &State, key: &ShareKey, code: ErrorCode) -> Option<(i32, i32)> {
    if !is_hinted(code) {
        return None;
    }
    let partition = state.topics.by_id(key.topic)?.partition(key.partition)?;
    Some(leadership::hint(partition))
}

fn acknowledgement(batch: &AcknowledgementBatch) -> Acknowledgement {
    Acknowledgement { first: batch.first_offset, last: batch.last_offset, types: batch.acknowledge_types.clone() }
}
