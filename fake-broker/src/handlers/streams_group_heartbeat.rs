//! StreamsGroupHeartbeat (88): a member of a streams group joins, stays and leaves (KIP-1071). The rules are in
//! [`groups::streams`](crate::groups::streams).

use std::collections::{BTreeMap, BTreeSet};

use krafka_protocol::api::streams_group_heartbeat::{
    EndpointToPartitions, Status, StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse, TaskIds, TopicPartition,
};
use krafka_protocol::{ErrorCode, Str};

use crate::context::{Context, Outcome};
use crate::features::STREAMS_VERSION;
use crate::groups::streams::{
    self, Beaten, Delay, InternalTopic, JOIN_EPOCH, LEAVE_EPOCH, LEAVE_STATIC_EPOCH, StreamsGroup, Task,
};
use crate::groups::{self, Caller, Image, Refusal};
use crate::security::acls::Operation;
use crate::state::State;
use crate::words::words;

/// Kafka's default of `group.streams.task.offset.interval.ms`.
const TASK_OFFSET_INTERVAL_MS: i32 = 60_000;
/// Kafka's default of `group.streams.acceptable.recovery.lag`.
const ACCEPTABLE_RECOVERY_LAG: i64 = 10_000;

const STALE_TOPOLOGY: i8 = 0;
const SHUTDOWN_APPLICATION: i8 = 4;
const ASSIGNMENT_DELAYED: i8 = 5;

pub(crate) fn handle(
    state: &mut State,
    cx: &Context,
    request: &StreamsGroupHeartbeatRequest,
) -> Outcome<StreamsGroupHeartbeatResponse> {
    if !state.is_on(STREAMS_VERSION) {
        return Outcome::Reply(StreamsGroupHeartbeatResponse {
            error_code: ErrorCode::UNSUPPORTED_VERSION.0,
            error_message: None,
            ..StreamsGroupHeartbeatResponse::default()
        });
    }
    Outcome::Reply(answer(state, cx, request).unwrap_or_else(|refusal| StreamsGroupHeartbeatResponse {
        error_code: refusal.error.0,
        error_message: Some(Str::from(refusal.message)),
        status: None,
        ..StreamsGroupHeartbeatResponse::default()
    }))
}

fn answer(
    state: &mut State,
    cx: &Context,
    request: &StreamsGroupHeartbeatRequest,
) -> Result<StreamsGroupHeartbeatResponse, Refusal> {
    let of_code = |code: ErrorCode| Refusal::new(code, words(code));
    if let Some(code) = cx.group_error(state, Operation::Read, &request.group_id) {
        return Err(of_code(code));
    }
    let parts = request.topology.iter().flat_map(|topology| &topology.subtopologies);
    for topic in parts.flat_map(|part| &part.source_topics) {
        if let Some(code) = cx.topic_error(state, Operation::Describe, topic) {
            return Err(of_code(code));
        }
    }
    check(request).map_err(|reason| Refusal::new(ErrorCode::INVALID_REQUEST, reason))?;
    if let Some(code) = groups::not_coordinator(state, cx, &request.group_id) {
        return Err(of_code(code));
    }
    if request.member_epoch < 0 {
        streams::leave(state, cx.node, request, cx.now)?;
        return Ok(StreamsGroupHeartbeatResponse {
            member_id: request.member_id.clone(),
            member_epoch: request.member_epoch,
            status: None,
            ..StreamsGroupHeartbeatResponse::default()
        });
    }
    let beaten = streams::heartbeat(state, cx.node, &Caller::from(cx), request, cx.now)?;
    for (name, partitions, topic) in &beaten.missing {
        create(state, cx, name, *partitions, topic);
    }
    let interval = streams::heartbeat_interval(state, &request.group_id);
    let Some(group) = streams::group(state, &request.group_id) else {
        return Err(of_code(ErrorCode::GROUP_ID_NOT_FOUND));
    };
    let Some(member) = group.members.get(&request.member_id) else {
        return Err(of_code(ErrorCode::UNKNOWN_MEMBER_ID));
    };
    let status = statuses(group, member.about.topology_epoch, beaten.delay);
    let tells = |tasks: &BTreeSet<Task>| beaten.tells_tasks.then(|| task_ids(tasks));
    let image = Image::of(&state.topics, &state.nodes, cx.node);
    Ok(StreamsGroupHeartbeatResponse {
        member_id: request.member_id.clone(),
        member_epoch: member.epoch,
        heartbeat_interval_ms: i32::try_from(interval.as_millis()).unwrap_or(i32::MAX),
        task_offset_interval_ms: TASK_OFFSET_INTERVAL_MS,
        acceptable_recovery_lag: ACCEPTABLE_RECOVERY_LAG,
        status: (!status.is_empty()).then_some(status),
        active_tasks: tells(&member.tasks.active),
        standby_tasks: tells(&member.tasks.standby),
        warmup_tasks: tells(&member.tasks.warmup),
        endpoint_information_epoch: if beaten.is_new { 0 } else { group.endpoint_epoch },
        partitions_by_user_endpoint: endpoints(group, &image, request, &beaten),
        error_message: None,
        ..StreamsGroupHeartbeatResponse::default()
    })
}

/// What a heartbeat must have, in Kafka's words.
fn check(request: &StreamsGroupHeartbeatRequest) -> Result<(), String> {
    let is_empty = |text: &Option<Str>| text.as_ref().is_some_and(|text| text.is_empty());
    if request.group_id.is_empty() {
        return Err("GroupId can't be empty.".to_owned());
    }
    if request.member_id.is_empty() {
        return Err("MemberId can't be empty.".to_owned());
    }
    if is_empty(&request.instance_id) {
        return Err("InstanceId can't be empty.".to_owned());
    }
    if is_empty(&request.rack_id) {
        return Err("RackId can't be empty.".to_owned());
    }
    match request.member_epoch {
        JOIN_EPOCH => {
            if request.rebalance_timeout_ms == -1 {
                return Err("RebalanceTimeoutMs must be provided in first request.".to_owned());
            }
            if request.topology.is_none() {
                return Err("Topology must be non-null when (re-)joining.".to_owned());
            }
            let told = [
                ("ActiveTasks", &request.active_tasks),
                ("StandbyTasks", &request.standby_tasks),
                ("WarmupTasks", &request.warmup_tasks),
            ];
            for (name, tasks) in told {
                if tasks.as_ref().is_none_or(|tasks| !tasks.is_empty()) {
                    return Err(format!("{name} must be empty when (re-)joining."));
                }
            }
        }
        LEAVE_STATIC_EPOCH if request.instance_id.is_none() => return Err("InstanceId can't be null.".to_owned()),
        LEAVE_STATIC_EPOCH | LEAVE_EPOCH => {}
        epoch if epoch < LEAVE_STATIC_EPOCH => {
            return Err(format!("MemberEpoch is {epoch}, but must be greater than or equal to -2."));
        }
        _ if request.topology.is_some() => {
            return Err("Topology can only be provided when (re-)joining.".to_owned());
        }
        _ => {}
    }
    Ok(())
}

/// Creates a topic inside the application, if the client may.
fn create(state: &mut State, cx: &Context, name: &Str, partitions: i32, topic: &InternalTopic) {
    if state.topics.by_name(name).is_some() || cx.topic_error(state, Operation::Create, name).is_some() {
        return;
    }
    let replicas = match topic.replication_factor {
        ..=0 => state.config.replication_factor,
        replicas => replicas,
    };
    let assignments = (0..partitions).map(|index| state.place(index, replicas)).collect();
    if state.check_topic_configs(&topic.configs).is_ok() {
        state.add_topic_on(name.clone(), assignments, topic.configs.clone());
    }
}

/// What the member is told of the group.
fn statuses(group: &StreamsGroup, topology_epoch: i32, delay: Option<Delay>) -> Vec<Status> {
    let mut statuses = Vec::new();
    let mut tell = |status_code, detail: String| statuses.push(Status { status_code, status_detail: detail.into() });
    if let Some(topology) = group.topology.as_ref().filter(|topology| topology_epoch < topology.epoch) {
        tell(
            STALE_TOPOLOGY,
            format!(
                "The member's topology epoch {topology_epoch} is behind the group's topology epoch {}.",
                topology.epoch
            ),
        );
    }
    match delay {
        Some(Delay::Initial) => {
            let detail = "Assignment delayed due to the configured initial rebalance delay.";
            tell(ASSIGNMENT_DELAYED, detail.to_owned());
        }
        Some(Delay::Interval) => {
            tell(ASSIGNMENT_DELAYED, "Assignment delayed due to the configured assignment interval.".to_owned());
        }
        None => {}
    }
    if let Some(problem) = &group.configured.problem {
        tell(problem.status, problem.detail.clone());
    }
    if let Some(member) = &group.shutdown_by {
        let detail = format!(
            "Streams group member {member} encountered a fatal error and requested a shutdown for the entire \
             application."
        );
        tell(SHUTDOWN_APPLICATION, detail);
    }
    statuses
}

/// Who has which partitions, for whoever does not know it yet; the member itself comes last.
fn endpoints(
    group: &StreamsGroup,
    image: &Image<'_>,
    request: &StreamsGroupHeartbeatRequest,
    beaten: &Beaten,
) -> Option<Vec<EndpointToPartitions>> {
    if beaten.endpoint_epoch == request.endpoint_information_epoch {
        return None;
    }
    let (own, others): (Vec<_>, Vec<_>) = group.members.iter().partition(|(id, _)| **id == request.member_id);
    let all = others.into_iter().chain(own).filter_map(|(_, member)| {
        Some(EndpointToPartitions {
            user_endpoint: member.about.endpoint.clone()?,
            active_partitions: by_topic(group.partitions_of(image, &member.tasks.active)),
            standby_partitions: by_topic(group.partitions_of(image, &member.tasks.standby)),
        })
    });
    Some(all.collect())
}

fn by_topic(partitions: Vec<(Str, i32)>) -> Vec<TopicPartition> {
    let mut topics: BTreeMap<Str, Vec<i32>> = BTreeMap::new();
    for (topic, partition) in partitions {
        topics.entry(topic).or_default().push(partition);
    }
    topics.into_iter().map(|(topic, partitions)| TopicPartition { topic, partitions }).collect()
}

fn task_ids(tasks: &BTreeSet<Task>) -> Vec<TaskIds> {
    let mut parts: BTreeMap<&Str, Vec<i32>> = BTreeMap::new();
    for (part, partition) in tasks {
        parts.entry(part).or_default().push(*partition);
    }
    parts.into_iter().map(|(part, partitions)| TaskIds { subtopology_id: part.clone(), partitions }).collect()
}
