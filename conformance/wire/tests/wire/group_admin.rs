//! Groups as administrators see them: DescribeGroups, ListGroups, DeleteGroups, OffsetDelete.

use krafka_protocol::api::delete_groups::DeleteGroupsRequest;
use krafka_protocol::api::describe_groups::{DescribeGroupsRequest, DescribedGroup};
use krafka_protocol::api::list_groups::{ListGroupsRequest, ListedGroup};
use krafka_protocol::api::offset_commit::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use krafka_protocol::api::offset_delete::{
    OffsetDeleteRequest, OffsetDeleteRequestPartition, OffsetDeleteRequestTopic, OffsetDeleteResponse,
};
use krafka_protocol::api::offset_fetch::{OffsetFetchRequest, OffsetFetchRequestGroup};
use krafka_protocol::{ErrorCode, Str};

use crate::member::{Member, TYPE, pair};
use crate::target::{Target, Topic, Wire, run};
use krafka_fake_broker::KafkaVersion;

/// The newest version of DescribeGroups in which a missing group is no error, and the first in which it is.
const DEAD_IS_FINE: i16 = 5;
const DEAD_IS_AN_ERROR: i16 = 6;

async fn describe(wire: &mut Wire, group: &Str, version: i16) -> DescribedGroup {
    let request = DescribeGroupsRequest { groups: vec![group.clone()], include_authorized_operations: version >= 3 };
    let mut groups = wire.call(request, version).await.groups;
    assert_eq!(groups.len(), 1);
    groups.remove(0)
}

async fn listed(wire: &mut Wire, group: &Str, states: &[&str], types: &[&str]) -> Option<ListedGroup> {
    let words = |words: &[&str]| words.iter().map(|word| Str::from(*word)).collect();
    let request = ListGroupsRequest { states_filter: words(states), types_filter: words(types) };
    let response = wire.call(request, 5).await;
    assert_eq!(response.error_code, 0);
    response.groups.into_iter().find(|listed| listed.group_id == *group)
}

async fn delete(wire: &mut Wire, group: &Str) -> ErrorCode {
    let request = DeleteGroupsRequest { groups_names: vec![group.clone(), group.clone()] };
    let results = wire.call(request, 2).await.results;
    assert_eq!(results.len(), 1, "named twice, deleted once");
    assert_eq!(results[0].group_id, *group);
    ErrorCode(results[0].error_code)
}

async fn commit(wire: &mut Wire, group: &Str, topic: &Topic, partitions: &[i32]) {
    let partitions = partitions.iter().map(|index| OffsetCommitRequestPartition {
        partition_index: *index,
        committed_offset: 7,
        ..OffsetCommitRequestPartition::default()
    });
    let topics = vec![OffsetCommitRequestTopic {
        name: topic.name.clone(),
        partitions: partitions.collect(),
        ..OffsetCommitRequestTopic::default()
    }];
    let request = OffsetCommitRequest {
        group_id: group.clone(),
        generation_id_or_member_epoch: -1,
        topics,
        ..OffsetCommitRequest::default()
    };
    let response = wire.call(request, 8).await;
    assert!(response.topics[0].partitions.iter().all(|partition| partition.error_code == 0), "{response:?}");
}

/// The offsets of a group, whatever their topics.
async fn offsets(wire: &mut Wire, group: &Str) -> Vec<(i32, i64)> {
    let group = OffsetFetchRequestGroup { group_id: group.clone(), topics: None, ..OffsetFetchRequestGroup::default() };
    let request = OffsetFetchRequest { groups: vec![group], ..OffsetFetchRequest::default() };
    let groups = wire.call(request, 8).await.groups;
    let partitions = groups[0].topics.iter().flat_map(|topic| &topic.partitions);
    partitions.map(|partition| (partition.partition_index, partition.committed_offset)).collect()
}

async fn offset_delete(wire: &mut Wire, group: &Str, topics: &[(&Str, &[i32])]) -> OffsetDeleteResponse {
    let topics = topics.iter().map(|(name, partitions)| OffsetDeleteRequestTopic {
        name: (*name).clone(),
        partitions: partitions.iter().map(|index| OffsetDeleteRequestPartition { partition_index: *index }).collect(),
    });
    let request = OffsetDeleteRequest { group_id: group.clone(), topics: topics.collect() };
    wire.call(request, 0).await
}

fn errors(response: &OffsetDeleteResponse) -> Vec<&'static str> {
    let partitions = response.topics.iter().flat_map(|topic| &topic.partitions);
    let mut names: Vec<_> = partitions.map(|partition| ErrorCode(partition.error_code).name()).collect();
    names.sort_unstable();
    names
}

#[test]
fn stable_group_is_described_with_what_its_members_say_and_get() {
    run(async |target| {
        let (leader, mut follower) = pair(&target).await;

        for version in 0..=DEAD_IS_FINE {
            let group = describe(&mut follower.wire, &leader.group, version).await;

            assert_eq!((group.error_code, &*group.group_state, &*group.protocol_type), (0, "Stable", TYPE));
            assert_eq!((&*group.protocol_data, group.members.len()), ("range", 2));
            let of_leader = group.members.iter().find(|member| member.member_id == leader.id).expect("a member");
            assert_eq!((&*of_leader.client_id, of_leader.client_host.starts_with('/')), ("wire", true));
            assert_eq!(
                (&of_leader.member_metadata[..], &of_leader.member_assignment[..]),
                (&b"about me"[..], &b"half"[..])
            );
            assert_eq!(of_leader.group_instance_id, None);
        }
    });
}

#[test]
fn group_that_rebalances_hides_what_its_members_say() {
    run(async |target| {
        let (mut leader, mut follower) = pair(&target).await;
        leader.send_join().await;
        while follower.heartbeat().await != ErrorCode::REBALANCE_IN_PROGRESS {}

        let preparing = describe(&mut follower.wire, &leader.group, DEAD_IS_FINE).await;
        assert_eq!((&*preparing.group_state, &*preparing.protocol_data), ("PreparingRebalance", ""));
        assert_eq!(preparing.members.len(), 2);
        assert!(preparing.members.iter().all(|member| member.member_metadata.is_empty()));

        follower.join().await;
        leader.joined().await;
        let completing = describe(&mut follower.wire, &leader.group, DEAD_IS_FINE).await;
        assert_eq!((&*completing.group_state, &*completing.protocol_data), ("CompletingRebalance", ""));
        assert!(completing.members.iter().all(|member| member.member_metadata.is_empty()));
        let states = listed(&mut follower.wire, &leader.group, &["completingrebalance", "Nonsense"], &[]).await;
        assert_eq!(&*states.expect("in that state").group_state, "CompletingRebalance");
    });
}

#[test]
fn static_members_are_described_with_their_names() {
    run(async |target| {
        let group = target.fresh("group");
        let mut member = Member::static_of(&target, &group, "one").await;
        member.join().await;
        member.sync(&[]).await;

        let described = describe(&mut member.wire, &group, 4).await;
        assert_eq!(described.members[0].group_instance_id.as_deref(), Some("one"));
        assert_eq!(describe(&mut member.wire, &group, 3).await.members[0].group_instance_id, None);
    });
}

#[test]
fn group_that_is_not_there_is_dead_and_later_an_error() {
    run(async |target| {
        let group = target.fresh("nowhere");
        let mut wire = target.coordinator(&group).await;

        let dead = describe(&mut wire, &group, DEAD_IS_FINE).await;
        assert_eq!((dead.error_code, &*dead.group_state, dead.members.len()), (0, "Dead", 0));

        target.since(KafkaVersion::V4_0, "DescribeGroups 6").await;
        let missing = describe(&mut wire, &group, DEAD_IS_AN_ERROR).await;
        assert_eq!((ErrorCode(missing.error_code), &*missing.group_state), (ErrorCode::GROUP_ID_NOT_FOUND, "Dead"));
        assert_eq!(missing.error_message.as_deref(), Some(&*format!("Group {group} not found.")));
    });
}

#[test]
fn operations_are_told_when_asked_for() {
    run(async |target| {
        let (leader, mut follower) = pair(&target).await;
        let asks =
            |asks| DescribeGroupsRequest { groups: vec![leader.group.clone()], include_authorized_operations: asks };

        let told = follower.wire.call(asks(true), DEAD_IS_FINE).await.groups.remove(0);
        let not_told = follower.wire.call(asks(false), DEAD_IS_FINE).await.groups.remove(0);

        // Read, delete, describe; and since there are group configs, to describe and to alter them.
        assert_eq!(
            (told.authorized_operations & 0b1_0100_1000, not_told.authorized_operations),
            (0b1_0100_1000, i32::MIN)
        );
    });
}

#[test]
fn groups_are_listed_with_state_and_type_and_filtered_by_both() {
    run(async |target| {
        let (leader, mut follower) = pair(&target).await;
        let (group, wire) = (&leader.group, &mut follower.wire);

        let found = listed(wire, group, &[], &[]).await.expect("in the list");
        assert_eq!((&*found.protocol_type, &*found.group_state, &*found.group_type), (TYPE, "Stable", "classic"));
        for (states, types, is_there) in [
            (&["Stable"][..], &[][..], true),
            (&["sTaBlE", "Empty"], &["Classic"], true),
            (&["Empty"], &[], false),
            (&["Stable"], &["consumer"], false),
            (&["nonsense"], &[], false),
            (&[], &["nonsense"], false),
            (&["nonsense", "Stable"], &["nonsense", "classic"], true),
            (&[" stable "], &[], true),
            (&[], &[" classic "], false),
            (&[""], &[], false),
            (&[], &[""], false),
            (&["PreparingRebalance", "CompletingRebalance", "Dead"], &[], false),
        ] {
            assert_eq!(listed(wire, group, states, types).await.is_some(), is_there, "{states:?} {types:?}");
        }
        for version in 0..=4 {
            let groups = wire.call(ListGroupsRequest::default(), version).await.groups;
            let found = groups.into_iter().find(|listed| listed.group_id == *group).expect("in the list");
            assert_eq!((&*found.protocol_type, &*found.group_type), (TYPE, ""));
        }
    });
}

#[test]
fn offsets_alone_make_a_group_without_a_type() {
    run(async |target| {
        let (group, topic) = (target.fresh("group"), target.topic(1).await);
        let mut wire = target.coordinator(&group).await;
        commit(&mut wire, &group, &topic, &[0]).await;

        let found = listed(&mut wire, &group, &[], &[]).await.expect("in the list");
        let described = describe(&mut wire, &group, DEAD_IS_FINE).await;

        assert_eq!((&*found.protocol_type, &*found.group_state, &*found.group_type), ("", "Empty", "classic"));
        assert_eq!((&*described.group_state, &*described.protocol_type), ("Empty", ""));
    });
}

#[test]
fn only_groups_without_members_are_deleted_and_their_offsets_with_them() {
    run(async |target| {
        let topic = target.topic(1).await;
        let (mut leader, mut follower) = pair(&target).await;
        let group = leader.group.clone();

        assert_eq!(delete(&mut leader.wire, &group).await, ErrorCode::NON_EMPTY_GROUP);
        leader.leave().await;
        follower.leave().await;
        commit(&mut leader.wire, &group, &topic, &[0]).await;
        assert_eq!(&*describe(&mut leader.wire, &group, DEAD_IS_FINE).await.group_state, "Empty");
        assert_eq!(delete(&mut leader.wire, &group).await, ErrorCode::NONE);

        assert_eq!(delete(&mut leader.wire, &group).await, ErrorCode::GROUP_ID_NOT_FOUND);
        assert_eq!(offsets(&mut leader.wire, &group).await, []);
        assert_eq!(&*describe(&mut leader.wire, &group, DEAD_IS_FINE).await.group_state, "Dead");
    });
}

#[test]
fn offsets_are_deleted_one_by_one() {
    run(async |target| {
        let (group, topic) = (target.fresh("group"), target.topic(3).await);
        let mut wire = target.coordinator(&group).await;
        let unknown = target.fresh("nowhere");
        commit(&mut wire, &group, &topic, &[0, 1]).await;

        let response = offset_delete(&mut wire, &group, &[(&topic.name, &[0, 2, 3]), (&unknown, &[0])]).await;

        assert_eq!(response.error_code, 0);
        assert_eq!(errors(&response), ["NONE", "NONE", "UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_TOPIC_OR_PARTITION"]);
        assert_eq!(offsets(&mut wire, &group).await, [(1, 7)]);
        let nobody = target.fresh("nobody");
        let mut wire = target.coordinator(&nobody).await;
        let response = offset_delete(&mut wire, &nobody, &[(&topic.name, &[0])]).await;
        assert_eq!((ErrorCode(response.error_code), response.topics.len()), (ErrorCode::GROUP_ID_NOT_FOUND, 0));
        let response = offset_delete(&mut wire, &nobody, &[(&unknown, &[0])]).await;
        assert_eq!(ErrorCode(response.error_code), ErrorCode::GROUP_ID_NOT_FOUND);
    });
}

/// A group without a name has no offsets, whoever is asked and whatever for.
#[test]
fn offsets_of_a_group_without_a_name_are_not_deleted() {
    run(async |target| {
        let (nameless, topic, unknown) = (Str::default(), target.topic(1).await, target.fresh("nowhere"));
        let mut wire = target.connect().await;

        let there = offset_delete(&mut wire, &nameless, &[(&topic.name, &[0])]).await;
        let elsewhere = offset_delete(&mut wire, &nameless, &[(&unknown, &[0])]).await;
        let nothing = offset_delete(&mut wire, &nameless, &[]).await;

        let told = |response: &OffsetDeleteResponse| (ErrorCode(response.error_code).name(), response.topics.len());
        assert_eq!([told(&there), told(&elsewhere), told(&nothing)], [("INVALID_GROUP_ID", 0); 3]);
    });
}

#[test]
fn offsets_of_topics_that_are_read_are_kept() {
    run(async |target| {
        let (group, read, other) = (target.fresh("group"), target.topic(1).await, target.topic(1).await);
        let mut wire = target.coordinator(&group).await;
        commit(&mut wire, &group, &read, &[0]).await;
        commit(&mut wire, &group, &other, &[0]).await;
        let mut consumer = Member::consumer(&target, &group, &[&read.name]).await;
        consumer.join().await;
        consumer.sync(&[]).await;

        let response = offset_delete(&mut wire, &group, &[(&read.name, &[0]), (&other.name, &[0])]).await;

        assert_eq!((response.error_code, errors(&response)), (0, vec!["GROUP_SUBSCRIBED_TO_TOPIC", "NONE"]));
        assert_eq!(offsets(&mut wire, &group).await, [(0, 7)]);
    });
}

#[test]
fn offsets_of_members_that_are_no_consumers_are_kept() {
    run(async |target| {
        let topic = target.topic(1).await;
        let (leader, mut follower) = pair(&target).await;

        let response = offset_delete(&mut follower.wire, &leader.group, &[(&topic.name, &[0])]).await;

        assert_eq!((ErrorCode(response.error_code), response.topics.len()), (ErrorCode::NON_EMPTY_GROUP, 0));
    });
}

/// Another node than the coordinator says so, group by group.
#[test]
fn another_node_is_asked_in_vain() {
    crate::target::run_on_three(async |target: Target| {
        let (group, topic) = (target.fresh("group"), target.topic(1).await);
        target.coordinator(&group).await;
        let found = {
            let mut wire = target.connect().await;
            let request =
                krafka_protocol::FindCoordinatorRequest { coordinator_keys: vec![group.clone()], ..Default::default() };
            wire.call(request, 4).await.coordinators.remove(0).node_id
        };
        let mut wire = target.node(if found == 1 { 2 } else { 1 }).await;

        let described = describe(&mut wire, &group, DEAD_IS_FINE).await;
        assert_eq!(ErrorCode(described.error_code), ErrorCode::NOT_COORDINATOR);
        assert_eq!(delete(&mut wire, &group).await, ErrorCode::NOT_COORDINATOR);
        let response = offset_delete(&mut wire, &group, &[(&topic.name, &[0])]).await;
        assert_eq!(ErrorCode(response.error_code), ErrorCode::NOT_COORDINATOR);
    });
}
