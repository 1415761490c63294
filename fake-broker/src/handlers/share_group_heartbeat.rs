//! ShareGroupHeartbeat (76): a member of a share group joins, stays and leaves. The rules are in
//! [`groups::share`](crate::groups::share).

use std::collections::{BTreeMap, BTreeSet};

use krafka_protocol::api::share_group_heartbeat::{
    Assignment, ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse, TopicPartitions,
};
use krafka_protocol::{ErrorCode, Str, Uuid};

use crate::context::{Context, Outcome};
use crate::features::SHARE_VERSION;
use crate::groups::share::{self, Beat, JOIN_EPOCH, LEAVE_EPOCH, Settings};
use crate::groups::{self, Refusal};
use crate::security::acls::Operation;
use crate::state::State;

/// The longest member id: members make up UUIDs, and nothing else fits.
pub(super) const MAX_MEMBER_ID: usize = 36;

pub(crate) fn handle(
    state: &mut State,
    cx: &Context,
    request: &ShareGroupHeartbeatRequest,
) -> Outcome<ShareGroupHeartbeatResponse> {
    Outcome::Reply(answer(state, cx, request).unwrap_or_else(|(code, message)| ShareGroupHeartbeatResponse {
        error_code: code.0,
        error_message: message.map(Str::from),
        ..ShareGroupHeartbeatResponse::default()
    }))
}

fn answer(
    state: &mut State,
    cx: &Context,
    request: &ShareGroupHeartbeatRequest,
) -> Result<ShareGroupHeartbeatResponse, (ErrorCode, Option<String>)> {
    if !state.is_on(SHARE_VERSION) {
        return Err((ErrorCode::UNSUPPORTED_VERSION, None));
    }
    let group = &request.group_id;
    if let Some(code) = cx.group_error(state, Operation::Read, group) {
        return Err((code, None));
    }
    // Kafka hides the group from who may not see one of the topics.
    for topic in request.subscribed_topic_names.iter().flatten() {
        if let Some(code) = cx.topic_error(state, Operation::Describe, topic) {
            return Err((code, None));
        }
    }
    if request.member_id.is_empty() || request.member_id.len() > MAX_MEMBER_ID {
        return Err((ErrorCode::INVALID_REQUEST, None));
    }
    if let Err(reason) = check(request) {
        return Err((ErrorCode::INVALID_REQUEST, Some(reason.to_owned())));
    }
    if let Some(code) = groups::not_coordinator(state, cx, group) {
        return Err((code, None));
    }

    let member_id = Some(request.member_id.clone());
    if request.member_epoch == LEAVE_EPOCH {
        share::leave(state, cx.node, group, &request.member_id, cx.now).map_err(in_words)?;
        return Ok(ShareGroupHeartbeatResponse { member_id, member_epoch: LEAVE_EPOCH, ..Default::default() });
    }
    let beat = Beat {
        member: &request.member_id,
        epoch: request.member_epoch,
        rack: request.rack_id.as_ref(),
        topics: request.subscribed_topic_names.as_deref(),
        client_id: cx.client_id.clone().unwrap_or_default(),
        client_host: cx.client_host.clone(),
    };
    let (member_epoch, assigned) = share::heartbeat(state, cx.node, group, &beat, cx.now).map_err(in_words)?;
    let interval = Settings::of(state, group).heartbeat_interval;
    Ok(ShareGroupHeartbeatResponse {
        member_id,
        member_epoch,
        heartbeat_interval_ms: i32::try_from(interval.as_millis()).unwrap_or(i32::MAX),
        assignment: assigned.map(assignment),
        ..ShareGroupHeartbeatResponse::default()
    })
}

/// What a heartbeat must have, in Kafka's words.
fn check(request: &ShareGroupHeartbeatRequest) -> Result<(), &'static str> {
    let is_blank = |text: &Str| text.trim().is_empty();
    if is_blank(&request.member_id) {
        return Err("MemberId can't be empty.");
    }
    if is_blank(&request.group_id) {
        return Err("GroupId can't be empty.");
    }
    if request.rack_id.as_ref().is_some_and(is_blank) {
        return Err("RackId can't be empty.");
    }
    if request.member_epoch == JOIN_EPOCH && request.subscribed_topic_names.as_ref().is_none_or(Vec::is_empty) {
        return Err("SubscribedTopicNames must be set in first request.");
    }
    if request.member_epoch < LEAVE_EPOCH {
        return Err("MemberEpoch is invalid.");
    }
    Ok(())
}

fn in_words(refusal: Refusal) -> (ErrorCode, Option<String>) {
    (refusal.error, Some(refusal.message))
}

fn assignment(assigned: BTreeSet<(Uuid, i32)>) -> Assignment {
    let mut topics: BTreeMap<Uuid, Vec<i32>> = BTreeMap::new();
    for (topic, partition) in assigned {
        topics.entry(topic).or_default().push(partition);
    }
    let topic_partitions = topics.into_iter().map(|(topic_id, partitions)| TopicPartitions { topic_id, partitions });
    Assignment { topic_partitions: topic_partitions.collect() }
}
