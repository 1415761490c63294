//! StreamsGroupDescribe (89): streams groups, their topology and their members, for tools.
//!
//! Nobody keeps the topology in words here, as in a Kafka without a plugin for it.

use std::collections::BTreeMap;

use krafka_protocol::api::streams_group_describe::{
    Assignment, DescribedGroup, Endpoint, KeyValue, Member as DescribedMember, StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse, Subtopology, TaskIds, TaskOffset, TopicInfo, Topology,
};
use krafka_protocol::api::streams_group_heartbeat as told;
use krafka_protocol::{ErrorCode, Str};

use super::{described, operations};
use crate::context::{Context, Outcome};
use crate::features::STREAMS_VERSION;
use crate::groups::streams::{self, Member, Shown, StreamsGroup, Tasks};
use crate::state::State;

pub(crate) fn handle(
    state: &State,
    cx: &Context,
    request: &StreamsGroupDescribeRequest,
) -> Outcome<StreamsGroupDescribeResponse> {
    if !state.is_on(STREAMS_VERSION) {
        let groups = request.group_ids.iter().map(|id| refused(id, (ErrorCode::UNSUPPORTED_VERSION, None))).collect();
        return Outcome::Reply(StreamsGroupDescribeResponse { groups, ..Default::default() });
    }
    let ids = described::in_order(&request.group_ids);
    let groups = ids.map(|id| describe(state, cx, id, request.include_authorized_operations)).collect();
    Outcome::Reply(StreamsGroupDescribeResponse { groups, ..StreamsGroupDescribeResponse::default() })
}

fn refused(id: &Str, (code, message): (ErrorCode, Option<String>)) -> DescribedGroup {
    DescribedGroup {
        error_code: code.0,
        error_message: message.map(Str::from),
        group_id: id.clone(),
        ..DescribedGroup::default()
    }
}

fn describe(state: &State, cx: &Context, id: &Str, with_operations: bool) -> DescribedGroup {
    if let Some((code, _)) = described::refusal(state, cx, id) {
        return refused(id, (code, None));
    }
    let Some(group) = streams::group(state, id) else {
        return refused(id, described::missing(id, streams::other_kind(state, id)));
    };
    DescribedGroup {
        group_id: id.clone(),
        group_state: Str::from_static(group.state().name()),
        group_epoch: group.epoch,
        assignment_epoch: group.assignment_epoch,
        topology: topology(group),
        members: group.members.iter().map(|(id, member)| describe_member(group, id, member)).collect(),
        authorized_operations: if with_operations { operations::group(state, cx, id) } else { i32::MIN },
        assignor_name: Some(Str::from_static("sticky")),
        ..DescribedGroup::default()
    }
}

fn topology(group: &StreamsGroup) -> Option<Topology> {
    let topology = group.topology.as_ref()?;
    // Topics whose numbers of partitions follow from others are shown with them once all topics are there.
    let is_known = group.shows_configured == Shown::Yes && group.configured.is_ready();
    let known = |name: &Str| group.configured.internal.get(name).copied().filter(|_| is_known);
    let infos = |told: &[told::TopicInfo]| {
        let mut infos: Vec<TopicInfo> = told.iter().map(|topic| info(topic, known(&topic.name))).collect();
        infos.sort_by(|one, other| one.name.cmp(&other.name));
        infos
    };
    let parts = topology.subtopologies.iter().map(|(id, part)| Subtopology {
        subtopology_id: id.clone(),
        source_topics: sorted(part.sources()),
        repartition_sink_topics: sorted(part.sinks()),
        state_changelog_topics: infos(part.changelogs()),
        repartition_source_topics: infos(part.repartition()),
    });
    Some(Topology { epoch: topology.epoch, subtopologies: Some(parts.collect()) })
}

fn info(topic: &told::TopicInfo, partitions: Option<i32>) -> TopicInfo {
    let configs = topic.topic_configs.iter();
    TopicInfo {
        name: topic.name.clone(),
        partitions: partitions.unwrap_or(topic.partitions),
        replication_factor: topic.replication_factor,
        topic_configs: configs
            .map(|config| KeyValue { key: config.key.clone(), value: config.value.clone() })
            .collect(),
    }
}

fn sorted(names: &[Str]) -> Vec<Str> {
    let mut names = names.to_vec();
    names.sort_unstable();
    names
}

fn describe_member(group: &StreamsGroup, id: &Str, member: &Member) -> DescribedMember {
    let about = &member.about;
    let tags = about.tags.iter();
    DescribedMember {
        member_id: id.clone(),
        member_epoch: member.epoch,
        instance_id: about.instance_id.clone(),
        rack_id: about.rack.clone(),
        client_id: about.client_id.clone(),
        client_host: about.client_host.clone(),
        topology_epoch: about.topology_epoch,
        process_id: about.process_id.clone(),
        user_endpoint: about.endpoint.as_ref().map(|at| Endpoint { host: at.host.clone(), port: at.port }),
        client_tags: tags.map(|tag| KeyValue { key: tag.key.clone(), value: tag.value.clone() }).collect(),
        task_offsets: member.task_offsets.iter().map(offset).collect(),
        task_end_offsets: member.task_end_offsets.iter().map(offset).collect(),
        assignment: assignment(&member.tasks),
        target_assignment: group.target.get(id).map(assignment).unwrap_or_default(),
        is_classic: false,
    }
}

fn offset(told: &told::TaskOffset) -> TaskOffset {
    TaskOffset { subtopology_id: told.subtopology_id.clone(), partition: told.partition, offset: told.offset }
}

fn assignment(tasks: &Tasks) -> Assignment {
    let ids = |tasks: &std::collections::BTreeSet<streams::Task>| {
        let mut parts: BTreeMap<&Str, Vec<i32>> = BTreeMap::new();
        for (part, partition) in tasks {
            parts.entry(part).or_default().push(*partition);
        }
        let ids = parts.into_iter().map(|(part, partitions)| TaskIds { subtopology_id: part.clone(), partitions });
        ids.collect()
    };
    Assignment {
        active_tasks: ids(&tasks.active),
        standby_tasks: ids(&tasks.standby),
        warmup_tasks: ids(&tasks.warmup),
    }
}
