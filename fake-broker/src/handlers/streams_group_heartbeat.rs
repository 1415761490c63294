//! StreamsGroupHeartbeat (88): a member of a streams group joins, stays and leaves (KIP-1071). The rules are in
//! [`groups::streams`](crate::groups::streams).

use std::collections::{BTreeMap, BTreeSet};

use krafka_protocol::api::create_topics::{CreatableTopic, CreatableTopicConfig};
use krafka_protocol::api::streams_group_heartbeat::{
    EndpointToPartitions, Status, StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse, TaskIds, TopicPartition,
};
use krafka_protocol::{ErrorCode, Str};

use super::create_topics;
use crate::context::{Context, Outcome};
use crate::coordinators;
use crate::features::STREAMS_VERSION;
use crate::groups::streams::{self, Beaten, Delay, InternalTopic, JOIN_EPOCH, LEAVE_STATIC_EPOCH, StreamsGroup, Task};
use crate::groups::{self, Caller, Image, Refusal};
use crate::security::acls::Operation;
use crate::state::State;
use crate::topics;

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
        error_message: (!refusal.message.is_empty()).then(|| Str::from(refusal.message)),
        ..StreamsGroupHeartbeatResponse::default()
    }))
}

fn answer(
    state: &mut State,
    cx: &Context,
    request: &StreamsGroupHeartbeatRequest,
) -> Result<StreamsGroupHeartbeatResponse, Refusal> {
    let of_code = |code: ErrorCode| Refusal::new(code, String::new());
    if let Some(code) = cx.group_error(state, Operation::Read, &request.group_id) {
        return Err(of_code(code));
    }
    check_topics(state, cx, request)?;
    check(request)?;
    if let Some(code) = groups::not_coordinator(state, cx, &request.group_id) {
        return Err(of_code(code));
    }
    if request.member_epoch < 0 {
        streams::leave(state, cx.node, request, cx.now)?;
        return Ok(StreamsGroupHeartbeatResponse {
            member_id: request.member_id.clone(),
            member_epoch: request.member_epoch,
            ..StreamsGroupHeartbeatResponse::default()
        });
    }
    let beaten = streams::heartbeat(state, cx.node, &Caller::from(cx), request, cx.now)?;
    let note = create(state, cx, &request.group_id, &beaten.missing);
    let interval = streams::heartbeat_interval(state, &request.group_id);
    let Some(group) = streams::group(state, &request.group_id) else {
        return Err(of_code(ErrorCode::GROUP_ID_NOT_FOUND));
    };
    let Some(member) = group.members.get(&request.member_id) else {
        return Err(of_code(ErrorCode::UNKNOWN_MEMBER_ID));
    };
    let tells = |tasks: &BTreeSet<Task>| beaten.tells_tasks.then(|| task_ids(tasks));
    let image = Image::of(&state.topics, &state.nodes, cx.node);
    Ok(StreamsGroupHeartbeatResponse {
        member_id: request.member_id.clone(),
        member_epoch: member.epoch,
        heartbeat_interval_ms: i32::try_from(interval.as_millis()).unwrap_or(i32::MAX),
        task_offset_interval_ms: TASK_OFFSET_INTERVAL_MS,
        acceptable_recovery_lag: ACCEPTABLE_RECOVERY_LAG,
        status: Some(statuses(group, member.about.topology_epoch, beaten.delay, note)),
        active_tasks: tells(&member.tasks.active),
        standby_tasks: tells(&member.tasks.standby),
        warmup_tasks: tells(&member.tasks.warmup),
        endpoint_information_epoch: if beaten.is_new { 0 } else { group.endpoint_epoch },
        partitions_by_user_endpoint: endpoints(group, &image, request, &beaten),
        error_message: None,
        ..StreamsGroupHeartbeatResponse::default()
    })
}

/// The topics of a topology come first of all: they must be the application's own, have names that can be, and be seen
/// by the client.
fn check_topics(state: &State, cx: &Context, request: &StreamsGroupHeartbeatRequest) -> Result<(), Refusal> {
    let mut seen = BTreeSet::new();
    let parts = request.topology.iter().flat_map(|topology| &topology.subtopologies);
    let names: Vec<&str> =
        parts.flat_map(streams::topics).filter(|name| seen.insert(*name)).map(|name| &**name).collect();
    let those = |is: &dyn Fn(&str) -> bool| -> Vec<&str> { names.iter().copied().filter(|name| is(name)).collect() };
    let internal = those(&coordinators::is_internal);
    if !internal.is_empty() {
        let topics = internal.join(",");
        let reason = format!("Use of Kafka internal topics {topics} in a Kafka Streams topology is prohibited.");
        return Err(Refusal::new(ErrorCode::STREAMS_INVALID_TOPOLOGY, reason));
    }
    let wrong = those(&|name| topics::validate_name(name).is_err());
    if !wrong.is_empty() {
        let reason = format!("Topic names {} are not valid topic names.", wrong.join(","));
        return Err(Refusal::new(ErrorCode::STREAMS_INVALID_TOPOLOGY, reason));
    }
    match names.into_iter().find_map(|name| cx.topic_error(state, Operation::Describe, name)) {
        Some(code) => Err(Refusal::new(code, String::new())),
        None => Ok(()),
    }
}

/// What a heartbeat must have, in Kafka's words and in its order.
fn check(request: &StreamsGroupHeartbeatRequest) -> Result<(), Refusal> {
    let invalid = |reason: &str| Err(Refusal::new(ErrorCode::INVALID_REQUEST, reason));
    let parts = || request.topology.iter().flat_map(|topology| &topology.subtopologies);
    if parts().any(|part| !part.source_topic_regex.is_empty()) {
        return invalid("Regular expressions for source topics are not supported yet.");
    }
    let texts = [
        ("MemberId", Some(&request.member_id)),
        ("GroupId", Some(&request.group_id)),
        ("InstanceId", request.instance_id.as_ref()),
        ("RackId", request.rack_id.as_ref()),
    ];
    if let Some((name, _)) = texts.iter().find(|(_, text)| text.is_some_and(|text| text.trim().is_empty())) {
        return invalid(&format!("{name} can't be empty."));
    }
    let tasks = [
        ("ActiveTasks", &request.active_tasks),
        ("StandbyTasks", &request.standby_tasks),
        ("WarmupTasks", &request.warmup_tasks),
    ];
    match request.member_epoch {
        JOIN_EPOCH => {
            if request.rebalance_timeout_ms == -1 {
                return invalid("RebalanceTimeoutMs must be provided in first request.");
            }
            if let Some((name, _)) = tasks.iter().find(|(_, tasks)| tasks.as_ref().is_none_or(|told| !told.is_empty()))
            {
                return invalid(&format!("{name} must be empty when (re-)joining."));
            }
            if request.topology.is_none() {
                return invalid("Topology must be non-null when (re-)joining.");
            }
            if let Some(topic) = parts().flat_map(|part| &part.state_changelog_topics).find(|it| it.partitions != 0) {
                let reason = format!(
                    "Changelog topic {} must have an undefined partition count, but it is set to {}.",
                    topic.name, topic.partitions
                );
                return Err(Refusal::new(ErrorCode::STREAMS_INVALID_TOPOLOGY, reason));
            }
        }
        LEAVE_STATIC_EPOCH if request.instance_id.is_none() => return invalid("InstanceId can't be null."),
        epoch if epoch < LEAVE_STATIC_EPOCH => {
            return invalid(&format!("MemberEpoch is {epoch}, but must be greater than or equal to -2."));
        }
        _ => {}
    }
    let told = tasks.iter().filter(|(_, tasks)| tasks.is_some()).count();
    if told > 0 && told < tasks.len() {
        return invalid("If one task-type is non-null, all must be non-null.");
    }
    if request.member_epoch != JOIN_EPOCH && request.topology.is_some() {
        return invalid("Topology can only be provided when (re-)joining.");
    }
    Ok(())
}

/// Creates topics inside the application, all or none, if the client may. Says why some of them are not there.
fn create(state: &mut State, cx: &Context, group: &Str, missing: &[InternalTopic]) -> Option<String> {
    let denied: Vec<&str> = missing
        .iter()
        .map(|topic| &*topic.name)
        .filter(|name| cx.topic_error(state, Operation::Create, name).is_some())
        .collect();
    if !denied.is_empty() {
        return Some(format!("Unauthorized to CREATE on topics {}.", denied.join(", ")));
    }
    // What fails now is told from the next heartbeat on.
    let failed_before = streams::told_failures(state, group, cx.now);
    for topic in missing {
        let configs = topic
            .configs
            .iter()
            .map(|(name, value)| CreatableTopicConfig { name: name.clone(), value: Some(value.clone()) });
        let asked = CreatableTopic {
            name: topic.name.clone(),
            num_partitions: topic.partitions,
            replication_factor: if topic.replication_factor == 0 { -1 } else { topic.replication_factor },
            configs: configs.collect(),
            ..CreatableTopic::default()
        };
        match create_topics::plan(state, &asked) {
            Ok((assignments, configs)) => {
                state.add_topic_on(topic.name.clone(), assignments, configs);
            }
            Err((_, reason)) => streams::creation_failed(state, group, &topic.name, reason, cx.now),
        }
    }
    failed_before.filter(|_| !missing.is_empty())
}

/// What the member is told of the group.
fn statuses(group: &StreamsGroup, topology_epoch: i32, delay: Option<Delay>, note: Option<String>) -> Vec<Status> {
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
        let note = note.map(|note| format!("; {note}")).unwrap_or_default();
        tell(problem.status, format!("{}{note}", problem.detail));
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
