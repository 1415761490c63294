//! ShareGroupDescribe (77): share groups and their members, for tools.

use std::collections::BTreeMap;

use krafka_protocol::api::share_group_describe::{
    Assignment, DescribedGroup, Member as DescribedMember, ShareGroupDescribeRequest, ShareGroupDescribeResponse,
    TopicPartitions,
};
use krafka_protocol::{ErrorCode, Str};

use super::{described, operations};
use crate::context::{Context, Outcome};
use crate::features::SHARE_VERSION;
use crate::groups::share::{self, Member};
use crate::state::State;

pub(crate) fn handle(
    state: &State,
    cx: &Context,
    request: &ShareGroupDescribeRequest,
) -> Outcome<ShareGroupDescribeResponse> {
    if !state.is_on(SHARE_VERSION) {
        let groups = request.group_ids.iter().map(|id| refused(id, (ErrorCode::UNSUPPORTED_VERSION, None))).collect();
        return Outcome::Reply(ShareGroupDescribeResponse { groups, ..Default::default() });
    }
    let ids = described::in_order(&request.group_ids);
    let groups = ids.map(|id| describe(state, cx, id, request.include_authorized_operations)).collect();
    Outcome::Reply(ShareGroupDescribeResponse { groups, ..ShareGroupDescribeResponse::default() })
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
    if let Some(refusal) = described::refusal(state, cx, id) {
        return refused(id, refusal);
    }
    let Some(group) = share::group(state, id) else {
        return refused(id, described::missing(id, share::other_kind(state, id)));
    };
    DescribedGroup {
        group_id: id.clone(),
        group_state: Str::from_static(group.state().name()),
        group_epoch: group.epoch,
        assignment_epoch: group.assignment_epoch,
        assignor_name: Str::from_static("simple"),
        members: group.members.iter().map(|(id, member)| describe_member(state, id, member)).collect(),
        authorized_operations: if with_operations { operations::group(state, cx, id) } else { i32::MIN },
        ..DescribedGroup::default()
    }
}

fn describe_member(state: &State, id: &Str, member: &Member) -> DescribedMember {
    let mut topics: BTreeMap<_, Vec<i32>> = BTreeMap::new();
    for (topic, partition) in &member.assigned {
        topics.entry(*topic).or_default().push(*partition);
    }
    let topic_partitions = topics.into_iter().filter_map(|(topic_id, partitions)| {
        Some(TopicPartitions { topic_id, topic_name: state.topics.name_of(&topic_id)?, partitions })
    });
    DescribedMember {
        member_id: id.clone(),
        rack_id: member.rack.clone(),
        member_epoch: member.epoch,
        client_id: member.client_id.clone(),
        client_host: member.client_host.clone(),
        subscribed_topic_names: member.topics.iter().cloned().collect(),
        assignment: Assignment { topic_partitions: topic_partitions.collect() },
    }
}
