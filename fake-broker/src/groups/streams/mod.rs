//! Streams groups (KIP-1071): the coordinator knows what a Kafka Streams application computes, creates the topics
//! inside it, and shares its tasks out among the members.
//!
//! What clients see of them is served: topologies (`topology.rs`), epochs and reconciliation (`group.rs`), the sticky
//! assignor (`assignor.rs`).
//!
//! Where it differs from Kafka on purpose: topics inside the application are there as soon as they are asked for; and
//! what could not be created is remembered for the group, not for all groups of the node.

mod assignor;
mod counts;
mod group;
mod reconcile;
mod topology;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use krafka_protocol::api::streams_group_heartbeat::{StreamsGroupHeartbeatRequest, TaskIds};
use krafka_protocol::{ErrorCode, Str};

pub(crate) use assignor::Tasks;
pub(crate) use group::{Delay, JOIN_EPOCH, LEAVE_STATIC_EPOCH, Member, Shown, StreamsGroup};
pub(crate) use topology::{InternalTopic, Task, Topology, topics};

use self::group::{About, Times, no_member};
use super::{Caller, Group, Image, Refusal, settle};
use crate::faults::KafkaVersion;
use crate::state::State;

/// What came of a heartbeat.
#[derive(Clone, Debug)]
pub(crate) struct Beaten {
    pub(crate) delay: Option<Delay>,
    /// Whether the member is told its tasks.
    pub(crate) tells_tasks: bool,
    /// Whether the group was made by this heartbeat: its endpoints have no epoch yet.
    pub(crate) is_new: bool,
    /// The topics that are to be created.
    pub(crate) missing: Vec<InternalTopic>,
    /// The group as it is now, for the answer: one that was refused was not taken up.
    pub(crate) endpoint_epoch: i32,
}

/// A streams group.
pub(crate) fn group<'a>(state: &'a State, id: &str) -> Option<&'a StreamsGroup> {
    match state.groups.groups.get(id)? {
        Group::Streams(group) => Some(group),
        _ => None,
    }
}

/// The answer about a group that is there, but is no streams group.
pub(crate) fn other_kind(state: &State, id: &str) -> Option<Refusal> {
    let is_other = state.groups.groups.contains_key(id) && group(state, id).is_none();
    is_other.then(|| Refusal::new(ErrorCode::GROUP_ID_NOT_FOUND, format!("Group {id} is not a streams group.")))
}

/// How long a member may be silent, and the like.
fn times(state: &State, group: &str, version: KafkaVersion) -> Times {
    let configs = state.group_settings(group);
    Times {
        session_timeout: configs.streams_session_timeout,
        initial_delay: configs.streams_initial_rebalance_delay,
        // There is no such pause before Kafka 4.3.
        assignment_interval: if version < KafkaVersion::V4_3 {
            Duration::ZERO
        } else {
            configs.streams_assignment_interval
        },
        standby_replicas: usize::try_from(configs.streams_num_standby_replicas).unwrap_or(0),
    }
}

/// How often a member is to send a heartbeat.
pub(crate) fn heartbeat_interval(state: &State, group: &str) -> Duration {
    state.group_settings(group).streams_heartbeat_interval
}

/// Takes up a heartbeat of a member that stays or joins.
pub(crate) fn heartbeat(
    state: &mut State,
    node: i32,
    caller: &Caller,
    request: &StreamsGroupHeartbeatRequest,
    now: Instant,
) -> Result<Beaten, Refusal> {
    let (group_id, id) = (&request.group_id, &request.member_id);
    if let Some(refusal) = other_kind(state, group_id) {
        return Err(refusal);
    }
    let is_joining = request.member_epoch == JOIN_EPOCH;
    let known = group(state, group_id);
    if known.is_none() && !is_joining {
        return Err(Refusal::new(ErrorCode::GROUP_ID_NOT_FOUND, format!("Streams group {group_id} not found.")));
    }
    let is_new = known.is_none();
    // What is refused half way leaves no trace.
    let mut group = known.cloned().unwrap_or_else(StreamsGroup::new);
    let written = group.written(id);
    let owned = owned(request);
    let max_size = state.config.streams_group_max_size();
    if is_joining && !group.members.contains_key(id) && group.members.len() >= max_size {
        let reason = format!("The streams group has reached its maximum capacity of {max_size} members.");
        return Err(Refusal::new(ErrorCode::GROUP_MAX_SIZE_REACHED, reason));
    }
    find_member(&mut group, request)?;
    group.check(group_id, id, request.member_epoch, owned.as_ref())?;
    if let Some(tags) = &request.client_tags {
        let keys: BTreeSet<&Str> = tags.iter().map(|tag| &tag.key).collect();
        if keys.len() < tags.len() {
            return Err(topology::trip());
        }
    }

    let times = times(state, group_id, state.version_of(node));
    let endpoint_before = group.members.get(id).and_then(|member| member.about.endpoint.clone());
    let about = about(group.members.get(id), caller, request);
    let members_changed = group.update_member(id, about, &times, now);
    let told = request.topology.as_ref().map(Topology::parse).transpose()?;
    match (&group.topology, told) {
        (None, told) => group.topology = told,
        // Who is behind is told so, and works on what the others do.
        (Some(known), Some(told)) if known.epoch > told.epoch => {}
        (Some(known), Some(told)) if *known != told => {
            return Err(Refusal::new(ErrorCode::INVALID_REQUEST, "Topology updates are not supported yet."));
        }
        _ => {}
    }
    let image = Image::of(&state.topics, &state.nodes, node);
    group.refresh(&image, &times, members_changed)?;
    if let Some(owned) = &owned {
        group.check_tasks(owned)?;
    }
    if let Some(member) = group.members.get_mut(id) {
        if let Some(offsets) = &request.task_offsets {
            member.task_offsets.clone_from(offsets);
        }
        if let Some(offsets) = &request.task_end_offsets {
            member.task_end_offsets.clone_from(offsets);
        }
    }
    let delay = group.assign(&times, now);
    let tells_tasks = group.reconcile(id, owned.as_ref(), state.version_of(node), now) || is_joining;
    if request.shutdown_application {
        group.shutdown_by.get_or_insert_with(|| id.clone());
    }
    let endpoint = group.members.get(id).and_then(|member| member.about.endpoint.clone());
    let is_news = endpoint.is_some() && (tells_tasks || endpoint != endpoint_before);
    let endpoint_epoch = group.endpoint_epoch + i32::from(is_news);
    if !is_new {
        group.endpoint_epoch = endpoint_epoch;
        if group.shows_configured == Shown::No {
            group.shows_configured = Shown::Soon;
        }
        if group.written(id) != written {
            group.shows_configured = Shown::Yes;
        }
    }
    let missing = group.configured.problem.as_ref().map(|problem| problem.missing.clone()).unwrap_or_default();
    state.groups.groups.insert(group_id.clone(), Group::Streams(Box::new(group)));
    settle(state, group_id, now);
    Ok(Beaten { delay, tells_tasks, is_new, missing, endpoint_epoch })
}

/// What a group's members are told of topics that could not be created.
pub(crate) fn told_failures(state: &mut State, group_id: &Str, now: Instant) -> Option<String> {
    let Some(Group::Streams(group)) = state.groups.groups.get_mut(group_id) else { return None };
    group.failures.retain(|_, (_, until)| now < *until);
    let failures = assignor::hash_order(group.failures.keys());
    let told: Vec<String> =
        failures.into_iter().filter_map(|name| Some(format!("{name} ({})", group.failures.get(name)?.0))).collect();
    (!told.is_empty()).then(|| format!("Creation failed: {}.", told.join(", ")))
}

/// A topic inside the application could not be created. That is told for as long as two heartbeats take.
pub(crate) fn creation_failed(state: &mut State, group_id: &Str, topic: &Str, reason: String, now: Instant) {
    let until = now + 2 * heartbeat_interval(state, group_id);
    if let Some(Group::Streams(group)) = state.groups.groups.get_mut(group_id) {
        group.failures.insert(topic.clone(), (reason, until));
    }
}

/// Takes a member out on its own wish, or lets a static one go for a while.
pub(crate) fn leave(
    state: &mut State,
    node: i32,
    request: &StreamsGroupHeartbeatRequest,
    now: Instant,
) -> Result<(), Refusal> {
    let version = state.version_of(node);
    let (group_id, id) = (&request.group_id, &request.member_id);
    if let Some(refusal) = other_kind(state, group_id) {
        return Err(refusal);
    }
    let Some(Group::Streams(group)) = state.groups.groups.get_mut(group_id) else {
        return Err(Refusal::new(ErrorCode::GROUP_ID_NOT_FOUND, format!("Group {group_id} not found.")));
    };
    if request.shutdown_application {
        group.shutdown_by.get_or_insert_with(|| id.clone());
    }
    if let Some(instance) = &request.instance_id {
        check_instance(group, instance, id)?;
    } else if !group.members.contains_key(id) {
        return Err(no_member(group_id, id));
    }
    if group.shows_configured == Shown::Soon {
        group.shows_configured = Shown::Yes;
    }
    if request.member_epoch == LEAVE_STATIC_EPOCH {
        group.suspend(id);
    } else {
        group.remove(id, version);
    }
    settle(state, group_id, now);
    Ok(())
}

/// Finds the static member that a request names; one that joins takes its place if it has left for a while, also when
/// it is the same.
fn find_member(group: &mut StreamsGroup, request: &StreamsGroupHeartbeatRequest) -> Result<(), Refusal> {
    let (Some(instance), id) = (&request.instance_id, &request.member_id) else { return Ok(()) };
    if request.member_epoch != JOIN_EPOCH {
        return check_instance(group, instance, id);
    }
    let Some(owner) = group.static_member(instance).cloned() else { return Ok(()) };
    if group.members.get(&owner).is_some_and(|member| member.epoch != LEAVE_STATIC_EPOCH) {
        let reason = format!(
            "Static member {id} with instance id {instance} cannot join the group because the instance id is owned by \
             {owner} member."
        );
        return Err(Refusal::new(ErrorCode::UNRELEASED_INSTANCE_ID, reason));
    }
    group.replace(&owner, id);
    Ok(())
}

fn check_instance(group: &StreamsGroup, instance: &Str, id: &Str) -> Result<(), Refusal> {
    let Some(owner) = group.static_member(instance) else {
        let reason = format!("Instance id {instance} is unknown.");
        return Err(Refusal::new(ErrorCode::UNKNOWN_MEMBER_ID, reason));
    };
    if owner == id {
        return Ok(());
    }
    let reason = format!("Static member {id} with instance id {instance} was fenced by member {owner}.");
    Err(Refusal::new(ErrorCode::FENCED_INSTANCE_ID, reason))
}

/// What is known of a member after a request that leaves out what did not change.
fn about(known: Option<&Member>, caller: &Caller, request: &StreamsGroupHeartbeatRequest) -> About {
    let known = known.map(|member| member.about.clone()).unwrap_or_default();
    About {
        instance_id: request.instance_id.clone().or(known.instance_id),
        rack: request.rack_id.clone().or(known.rack),
        rebalance_timeout_ms: match request.rebalance_timeout_ms {
            -1 => known.rebalance_timeout_ms,
            timeout => timeout,
        },
        topology_epoch: request.topology.as_ref().map_or(known.topology_epoch, |topology| topology.epoch),
        process_id: request.process_id.clone().unwrap_or(known.process_id),
        endpoint: request.user_endpoint.clone().or(known.endpoint),
        tags: request.client_tags.clone().unwrap_or(known.tags),
        client_id: caller.client_id.clone(),
        client_host: caller.client_host.clone(),
    }
}

/// The tasks that a member says it has, if it says so.
fn owned(request: &StreamsGroupHeartbeatRequest) -> Option<Tasks> {
    let tasks = |told: &[TaskIds]| -> BTreeSet<Task> {
        let flat =
            told.iter().flat_map(|part| part.partitions.iter().map(|&index| (part.subtopology_id.clone(), index)));
        flat.collect()
    };
    Some(Tasks {
        active: tasks(request.active_tasks.as_ref()?),
        standby: tasks(request.standby_tasks.as_ref()?),
        warmup: tasks(request.warmup_tasks.as_ref()?),
    })
}
