//! Members of share groups and their coordinator: FI-08, and what SH-01, SH-13 say of the broker.

use std::time::Duration;

use krafka_fake_broker::{FakeCluster, KafkaVersion};
use krafka_protocol::api::delete_groups::DeleteGroupsRequest;
use krafka_protocol::api::list_groups::ListGroupsRequest;
use krafka_protocol::api::share_group_describe::{DescribedGroup, ShareGroupDescribeRequest};
use krafka_protocol::api::share_group_heartbeat::{ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse};
use krafka_protocol::{ErrorCode, Str};

use crate::share_member::{HEARTBEAT, ShareMember};
use crate::target::{Target, Wire, on_fake, run};

async fn describe(wire: &mut Wire, group: &Str) -> DescribedGroup {
    let request = ShareGroupDescribeRequest { group_ids: vec![group.clone()], include_authorized_operations: true };
    wire.call(request, 1).await.groups.remove(0)
}

fn told(answer: &ShareGroupHeartbeatResponse) -> (&'static str, Option<&str>) {
    (ErrorCode(answer.error_code).name(), answer.error_message.as_deref())
}

/// SH-01: a heartbeat without a subscription is refused; one with it joins; the assignment comes once, when the state
/// of the partitions is kept; from then on nothing is repeated.
#[test]
fn a_member_joins_and_is_told_its_assignment_once() {
    run(async |target| {
        target.since(KafkaVersion::V4_1, "share groups").await;
        let (group, topic) = (target.fresh("share"), target.topic(2).await);
        let mut member = ShareMember::new(&target, &group, &topic, "m1").await;

        let refused = member.coordinator.call(member.heartbeat(0), HEARTBEAT).await;
        let joined = member.beat(Some(vec![topic.name.clone()])).await;
        member.join().await;
        let after = member.beat(None).await;
        let full = member.beat(Some(vec![topic.name.clone()])).await;

        assert_eq!(told(&refused), ("INVALID_REQUEST", Some("SubscribedTopicNames must be set in first request.")));
        assert_eq!((joined.member_id.as_deref(), joined.heartbeat_interval_ms), (Some("m1"), 5_000));
        assert_eq!(after.assignment, None);
        let assignment = full.assignment.expect("a full heartbeat is answered in full").topic_partitions;
        assert_eq!((assignment[0].topic_id, &assignment[0].partitions[..]), (topic.id, &[0, 1][..]));
    });
}

/// The assignment follows at a later heartbeat, a second apart from the last one.
#[test]
fn an_assignment_waits_for_its_interval() {
    run(async |target| {
        target.since(KafkaVersion::V4_4, "share.assignment.interval.ms").await;
        let (group, topic) = (target.fresh("share"), target.topic(1).await);
        let mut member = ShareMember::new(&target, &group, &topic, "m1").await;

        let joined = member.beat(Some(vec![topic.name.clone()])).await;
        let at_once = member.beat(None).await;
        tokio::time::sleep(Duration::from_millis(1_300)).await;
        let later = member.beat(None).await;

        assert_eq!((joined.member_epoch, joined.assignment.map(|a| a.topic_partitions.len())), (2, Some(0)));
        assert_eq!((at_once.member_epoch, at_once.assignment), (2, None));
        assert_eq!((later.member_epoch, later.assignment.map(|a| a.topic_partitions.len())), (3, Some(1)));
    });
}

/// FI-12g: what a heartbeat must have.
#[test]
fn heartbeats_that_make_no_sense_are_refused() {
    run(async |target| {
        target.since(KafkaVersion::V4_1, "share groups").await;
        let (group, topic) = (target.fresh("share"), target.topic(1).await);
        let mut member = ShareMember::new(&target, &group, &topic, "m1").await;
        let topics = Some(vec![topic.name.clone()]);
        let good = ShareGroupHeartbeatRequest { subscribed_topic_names: topics, ..member.heartbeat(0) };
        let (empty, long, blank) = (Str::default(), Str::from("x".repeat(37)), Str::from_static(" \t"));
        let cases = [
            (ShareGroupHeartbeatRequest { group_id: blank.clone(), ..good.clone() }, "INVALID_REQUEST"),
            (ShareGroupHeartbeatRequest { member_id: blank.clone(), ..good.clone() }, "INVALID_REQUEST"),
            (ShareGroupHeartbeatRequest { rack_id: Some(blank), ..good.clone() }, "INVALID_REQUEST"),
            (ShareGroupHeartbeatRequest { group_id: empty.clone(), ..good.clone() }, "INVALID_REQUEST"),
            (ShareGroupHeartbeatRequest { member_id: empty.clone(), ..good.clone() }, "INVALID_REQUEST"),
            (ShareGroupHeartbeatRequest { member_id: long, ..good.clone() }, "INVALID_REQUEST"),
            (ShareGroupHeartbeatRequest { rack_id: Some(empty), ..good.clone() }, "INVALID_REQUEST"),
            (ShareGroupHeartbeatRequest { subscribed_topic_names: Some(vec![]), ..good.clone() }, "INVALID_REQUEST"),
            (ShareGroupHeartbeatRequest { member_epoch: -2, ..good.clone() }, "INVALID_REQUEST"),
            (ShareGroupHeartbeatRequest { member_epoch: 1, ..good.clone() }, "GROUP_ID_NOT_FOUND"),
            (ShareGroupHeartbeatRequest { member_epoch: -1, ..good }, "GROUP_ID_NOT_FOUND"),
        ];

        for (request, expected) in cases {
            let shown = format!("{request:?}");
            let answer = member.coordinator.call(request, HEARTBEAT).await;
            assert_eq!(told(&answer).0, expected, "{shown}");
        }
    });
}

/// SH-13 among others: who is no member, or at another epoch, is told so.
#[test]
fn stale_and_unknown_members_are_fenced() {
    run(async |target| {
        target.since(KafkaVersion::V4_1, "share groups").await;
        let (group, topic) = (target.fresh("share"), target.topic(1).await);
        let mut member = ShareMember::joined(&target, &group, &topic, "m1").await;
        let epoch = member.epoch;
        let mut stranger = ShareMember::new(&target, &group, &topic, "m2").await;

        let ahead = member.coordinator.call(member.heartbeat(epoch + 1), HEARTBEAT).await;
        let previous = member.coordinator.call(member.heartbeat(epoch - 1), HEARTBEAT).await;
        let unknown = stranger.coordinator.call(stranger.heartbeat(epoch), HEARTBEAT).await;
        let not_there = stranger.coordinator.call(stranger.heartbeat(-1), HEARTBEAT).await;
        member.leave().await;
        let gone = member.coordinator.call(member.heartbeat(epoch), HEARTBEAT).await;

        assert_eq!(told(&ahead).0, "FENCED_MEMBER_EPOCH");
        assert_eq!((told(&previous).0, previous.member_epoch, previous.assignment), ("NONE", epoch, None));
        let reason = format!("Member m2 is not a member of group {group}.");
        assert_eq!(told(&unknown), ("UNKNOWN_MEMBER_ID", Some(&*reason)));
        assert_eq!(told(&not_there), ("UNKNOWN_MEMBER_ID", Some(&*reason)));
        assert_eq!(told(&gone).0, "UNKNOWN_MEMBER_ID");
    });
}

/// Two members share out partitions of a topic, and one of them gets all when the other leaves.
#[test]
fn partitions_are_shared_out_among_members() {
    run(async |target| {
        target.since(KafkaVersion::V4_1, "share groups").await;
        let (group, topic) = (target.fresh("share"), target.topic(2).await);
        let mut first = ShareMember::joined(&target, &group, &topic, "m1").await;
        let mut second = ShareMember::joined(&target, &group, &topic, "m2").await;
        first.beat(None).await;
        let shared = describe(&mut first.coordinator, &group).await;

        second.leave().await;
        tokio::time::sleep(Duration::from_millis(1_200)).await;
        first.beat(None).await;
        let alone = describe(&mut first.coordinator, &group).await;

        let counts = |group: &DescribedGroup| -> Vec<usize> {
            let topics = group.members.iter().flat_map(|member| &member.assignment.topic_partitions);
            topics.map(|topic| topic.partitions.len()).collect()
        };
        assert_eq!((counts(&shared), counts(&alone)), (vec![1, 1], vec![2]));
        assert_eq!(shared.group_epoch, shared.assignment_epoch);
    });
}

/// ShareGroupDescribe tells members, epochs and the assignor, and whom it cannot describe.
#[test]
fn a_group_is_described() {
    run(async |target| {
        target.since(KafkaVersion::V4_1, "share groups").await;
        let (group, topic) = (target.fresh("share"), target.topic(1).await);
        let mut member = ShareMember::joined(&target, &group, &topic, "m1").await;

        let described = describe(&mut member.coordinator, &group).await;
        let nameless = describe(&mut member.coordinator, &Str::default()).await;
        member.leave().await;
        let left = describe(&mut member.coordinator, &group).await;

        assert_eq!((&*described.group_state, &*described.assignor_name), ("Stable", "simple"));
        // Read, delete, describe, and the configs.
        assert_eq!(described.authorized_operations, 3400);
        let shown = &described.members[0];
        assert_eq!((&*shown.member_id, shown.member_epoch, &*shown.client_host), ("m1", member.epoch, "/127.0.0.1"));
        assert_eq!(shown.subscribed_topic_names, std::slice::from_ref(&topic.name));
        let assigned = &shown.assignment.topic_partitions[0];
        assert_eq!((assigned.topic_id, &assigned.topic_name), (topic.id, &topic.name));
        assert_eq!(ErrorCode(nameless.error_code), ErrorCode::INVALID_GROUP_ID);
        assert_eq!((&*left.group_state, left.members.len()), ("Empty", 0));
    });
}

/// Nobody is left to be assigned anything: the assignment is as new as the group.
#[test]
fn an_empty_group_has_the_newest_assignment() {
    run(async |target| {
        target.since(KafkaVersion::V4_4, "an assignment for nobody").await;
        let (group, topic) = (target.fresh("share"), target.topic(1).await);
        let mut member = ShareMember::joined(&target, &group, &topic, "m1").await;

        member.leave().await;
        let left = describe(&mut member.coordinator, &group).await;

        assert_eq!((left.group_epoch, left.assignment_epoch), (member.epoch + 1, member.epoch + 1));
    });
}

/// A share group is listed as one, is deleted only when it is empty, and is then not there.
#[test]
fn a_group_is_listed_and_deleted() {
    run(async |target| {
        target.since(KafkaVersion::V4_1, "share groups").await;
        let (group, topic) = (target.fresh("share"), target.topic(1).await);
        let mut member = ShareMember::joined(&target, &group, &topic, "m1").await;
        let listed = async |wire: &mut Wire| {
            let types_filter = vec![Str::from_static("share")];
            let all = wire.call(ListGroupsRequest { types_filter, ..Default::default() }, 5).await.groups;
            let mine = all.into_iter().find(|listed| listed.group_id == group);
            mine.map(|listed| format!("{} {} {}", listed.protocol_type, listed.group_type, listed.group_state))
        };
        let delete = async |wire: &mut Wire| {
            let request = DeleteGroupsRequest { groups_names: vec![group.clone()] };
            ErrorCode(wire.call(request, 2).await.results[0].error_code).name()
        };

        let with_member = listed(&mut member.coordinator).await;
        let refused = delete(&mut member.coordinator).await;
        member.leave().await;
        let empty = listed(&mut member.coordinator).await;
        let deleted = delete(&mut member.coordinator).await;
        let gone = describe(&mut member.coordinator, &group).await;

        assert_eq!(with_member.as_deref(), Some("share share Stable"));
        assert_eq!((refused, deleted), ("NON_EMPTY_GROUP", "NONE"));
        assert_eq!(empty.as_deref(), Some("share share Empty"));
        assert_eq!(ErrorCode(gone.error_code), ErrorCode::GROUP_ID_NOT_FOUND);
    });
}

/// A member that says nothing for the session timeout is out, and the group's epoch rises.
///
/// Fake only: Kafka's least session is 45 s, unless its brokers are started otherwise.
#[test]
fn a_silent_member_is_thrown_out() {
    on_fake(FakeCluster::builder().topic("orders", 1), async |target: Target, fake| {
        let group = Str::from_static("share");
        let topic = target.topic(1).await;
        let mut silent = ShareMember::joined(&target, &group, &topic, "m1").await;
        let mut lively = ShareMember::joined(&target, &group, &topic, "m2").await;

        for _ in 0..10 {
            tokio::time::sleep(Duration::from_secs(5)).await;
            lively.beat(None).await;
        }
        let answer = silent.coordinator.call(silent.heartbeat(silent.epoch), HEARTBEAT).await;

        assert_eq!(told(&answer).0, "UNKNOWN_MEMBER_ID");
        assert_eq!(fake.group(&group).map(|group| group.members.len()), Some(1));
    });
}
