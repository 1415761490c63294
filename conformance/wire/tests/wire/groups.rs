//! Classic groups on the wire. The state machine's own tests are in `src/groups/classic/tests.rs`; these are the rules
//! that a client can see, each as real Kafka has it.

use std::time::Duration;

use krafka_fake_broker::FakeCluster;
use krafka_protocol::api::find_coordinator::FindCoordinatorRequest;
use krafka_protocol::api::join_group::JoinGroupRequest;
use krafka_protocol::api::leave_group::{LeaveGroupRequest, MemberIdentity};
use krafka_protocol::api::offset_commit::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use krafka_protocol::api::offset_fetch::{OffsetFetchRequest, OffsetFetchRequestGroup};
use krafka_protocol::api::sync_group::SyncGroupRequest;
use krafka_protocol::{ErrorCode, Str};

use crate::member::{JOIN, LEAVE, Member, SYNC, TYPE, pair, rebalance};
use crate::target::{on_fake, run};

/// FI-06b, GC-01.
#[test]
fn first_join_gets_an_id_and_no_place() {
    run(async |target| {
        let group = target.fresh("group");
        let mut member = Member::new(&target, &group).await;

        let refused = member.wire.call(member.join_request(), JOIN).await;
        assert_eq!(ErrorCode(refused.error_code), ErrorCode::MEMBER_ID_REQUIRED);
        assert!(refused.member_id.starts_with("wire-"), "{}", refused.member_id);
        assert_eq!((refused.generation_id, refused.protocol_name, refused.protocol_type), (-1, None, None));

        member.id = refused.member_id;
        let joined = member.join().await;
        assert_eq!((joined.error_code, joined.generation_id), (0, 1));
        assert_eq!((joined.leader, joined.members.len()), (member.id.clone(), 1));
        assert_eq!(joined.protocol_name.as_deref(), Some("range"));
        assert_eq!(joined.protocol_type.as_deref(), Some(TYPE));
    });
}

#[test]
fn old_join_needs_no_id_and_its_answer_has_no_nulls() {
    run(async |target| {
        let group = target.fresh("group");
        let mut member = Member::new(&target, &group).await;

        let joined = member.wire.call(member.join_request(), 3).await;
        assert_eq!((joined.error_code, joined.generation_id), (0, 1));

        let refused = member.wire.call(JoinGroupRequest { session_timeout_ms: 1, ..member.join_request() }, 3).await;
        assert_eq!(ErrorCode(refused.error_code), ErrorCode::INVALID_SESSION_TIMEOUT);
        assert_eq!(refused.protocol_name.as_deref(), Some(""));
    });
}

/// FI-06b.
#[test]
fn joins_that_make_no_sense_are_refused() {
    run(async |target| {
        let group = target.fresh("group");
        let mut member = Member::new(&target, &group).await;
        let ask = member.join_request();
        let no_protocols = JoinGroupRequest { protocols: Vec::new(), ..ask.clone() };
        let no_type = JoinGroupRequest { protocol_type: Str::default(), ..ask.clone() };
        let no_group = JoinGroupRequest { group_id: Str::default(), ..ask.clone() };
        let stranger = JoinGroupRequest { member_id: Str::from("x"), ..ask.clone() };
        let nobody = JoinGroupRequest { group_instance_id: Some(Str::from("i")), ..stranger.clone() };
        let hasty = JoinGroupRequest { session_timeout_ms: 500, ..ask.clone() };
        let patient = JoinGroupRequest { session_timeout_ms: 1_800_001, ..ask };

        let mut table = Vec::new();
        for request in [no_protocols, no_type, no_group, stranger, nobody, hasty, patient] {
            table.push(ErrorCode(member.wire.call(request, JOIN).await.error_code).name());
        }

        let expected = [
            "INCONSISTENT_GROUP_PROTOCOL",
            "INCONSISTENT_GROUP_PROTOCOL",
            "INVALID_GROUP_ID",
            "UNKNOWN_MEMBER_ID",
            "UNKNOWN_MEMBER_ID",
            "INVALID_SESSION_TIMEOUT",
            "INVALID_SESSION_TIMEOUT",
        ];
        assert_eq!(table, expected);
    });
}

/// GC-02.
#[test]
fn join_waits_for_all_and_the_leader_alone_sees_them() {
    run(async |target| {
        let group = target.fresh("group");
        let mut leader = Member::new(&target, &group).await;
        let mut follower = Member::new(&target, &group).await;
        leader.join().await;
        leader.sync(&[]).await;

        follower.send_join().await;
        assert!(follower.wire.is_quiet().await, "parked");
        assert_eq!(leader.heartbeat().await, ErrorCode::REBALANCE_IN_PROGRESS);
        let of_leader = leader.join().await;
        let of_follower = follower.joined().await;

        assert_eq!((of_leader.generation_id, of_follower.generation_id), (2, 2));
        assert_eq!((&of_leader.leader, &of_follower.leader), (&leader.id, &leader.id));
        let listed: Vec<&Str> = of_leader.members.iter().map(|m| &m.member_id).collect();
        assert_eq!((listed.len(), of_follower.members.len()), (2, 0));
        assert!(listed.contains(&&follower.id) && of_leader.members.iter().all(|m| m.metadata == "about me"));
    });
}

#[test]
fn sync_waits_for_the_leader() {
    run(async |target| {
        let (mut leader, mut follower) = pair(&target).await;
        rebalance(&mut leader, &mut follower).await;

        follower.send_sync(&[]).await;
        assert!(follower.wire.is_quiet().await, "parked");
        let of_leader = leader.sync(&[(&leader.id.clone(), "everything")]).await;
        let of_follower = follower.synced().await;

        assert_eq!((of_leader.error_code, of_follower.error_code), (0, 0));
        assert_eq!((&of_leader.assignment[..], &of_follower.assignment[..]), (&b"everything"[..], &b""[..]));
        assert_eq!(of_leader.protocol_name.as_deref(), Some("range"));
        assert_eq!(follower.heartbeat().await, ErrorCode::NONE);
    });
}

/// GC-03.
#[test]
fn heartbeat_and_sync_are_checked() {
    run(async |target| {
        let (mut leader, _) = pair(&target).await;
        let ours = leader.generation;

        leader.generation = ours - 1;
        assert_eq!(leader.heartbeat().await, ErrorCode::ILLEGAL_GENERATION);
        assert_eq!(ErrorCode(leader.sync(&[]).await.error_code), ErrorCode::ILLEGAL_GENERATION);
        leader.generation = ours;
        let right = leader.sync_request(&[]);
        let other = SyncGroupRequest { protocol_name: Some(Str::from("sticky")), ..right.clone() };
        let error = leader.wire.call(other, SYNC).await.error_code;
        assert_eq!(ErrorCode(error), ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
        let silent = SyncGroupRequest { protocol_name: None, ..right };
        let error = leader.wire.call(silent.clone(), SYNC).await.error_code;
        assert_eq!(ErrorCode(error), ErrorCode::INCONSISTENT_GROUP_PROTOCOL, "mandatory since version 5");
        assert_eq!(leader.wire.call(SyncGroupRequest { protocol_type: None, ..silent }, 4).await.error_code, 0);

        leader.id = Str::from("x");
        assert_eq!(leader.heartbeat().await, ErrorCode::UNKNOWN_MEMBER_ID);
        assert_eq!(ErrorCode(leader.sync(&[]).await.error_code), ErrorCode::UNKNOWN_MEMBER_ID);
        leader.group = target.fresh("nowhere");
        let error = leader.heartbeat().await;
        assert!([ErrorCode::UNKNOWN_MEMBER_ID, ErrorCode::NOT_COORDINATOR].contains(&error), "{error:?}");
        leader.group = Str::default();
        assert_eq!(leader.heartbeat().await, ErrorCode::INVALID_GROUP_ID);
        assert_eq!(ErrorCode(leader.sync(&[]).await.error_code), ErrorCode::INVALID_GROUP_ID);
    });
}

/// FI-06b.
#[test]
fn unchanged_follower_goes_on_and_the_leader_calls_a_rebalance() {
    run(async |target| {
        let (mut leader, mut follower) = pair(&target).await;
        let generation = follower.generation;

        let answer = follower.join().await;
        assert_eq!((answer.generation_id, answer.members.len()), (generation, 0));
        assert_eq!(follower.sync(&[]).await.assignment, "other half");
        assert_eq!(leader.heartbeat().await, ErrorCode::NONE);

        leader.send_join().await;
        assert!(leader.wire.is_quiet().await, "parked");
        assert_eq!(follower.heartbeat().await, ErrorCode::REBALANCE_IN_PROGRESS);
        follower.join().await;
        assert_eq!(leader.joined().await.generation_id, generation + 1);
    });
}

/// FI-06b.
#[test]
fn rejoin_in_between_repeats_the_answer() {
    run(async |target| {
        let group = target.fresh("group");
        let mut member = Member::new(&target, &group).await;
        member.join().await;

        let again = member.join().await;

        assert_eq!((again.generation_id, again.members.len()), (1, 1));
        assert_eq!(member.heartbeat().await, ErrorCode::NONE);
    });
}

/// FI-06b.
#[test]
fn changed_member_calls_a_rebalance_and_ends_the_wait_for_the_assignment() {
    run(async |target| {
        let (mut leader, mut follower) = pair(&target).await;
        rebalance(&mut leader, &mut follower).await;
        follower.send_sync(&[]).await;

        leader.protocols = vec![("range", "somebody else")];
        leader.send_join().await;

        assert_eq!(ErrorCode(follower.synced().await.error_code), ErrorCode::REBALANCE_IN_PROGRESS);
        let early = follower.sync(&[]).await;
        assert_eq!(ErrorCode(early.error_code), ErrorCode::REBALANCE_IN_PROGRESS);
        follower.join().await;
        leader.joined().await;
    });
}

/// GC-02: the vote.
#[test]
fn majority_of_the_common_protocols_wins() {
    run(async |target| {
        let group = target.fresh("group");
        let mut members = Vec::new();
        for protocols in [vec![("range", ""), ("sticky", "")], vec![("sticky", ""), ("range", ""), ("own", "")]] {
            members.push(Member { protocols, ..Member::new(&target, &group).await });
        }
        members.push(Member { protocols: vec![("sticky", ""), ("range", "")], ..Member::new(&target, &group).await });
        members[0].join().await;
        let mut foreign = Member { protocols: vec![("own", "")], ..Member::new(&target, &group).await };
        let refused = foreign.wire.call(foreign.join_request(), JOIN).await;
        assert_eq!(ErrorCode(refused.error_code), ErrorCode::INCONSISTENT_GROUP_PROTOCOL);

        members[1].send_join().await;
        members[2].send_join().await;
        assert!(members[2].wire.is_quiet().await);
        let chosen = members[0].join().await.protocol_name;

        assert_eq!(chosen.as_deref(), Some("sticky"));
    });
}

#[test]
fn late_member_is_out_when_the_rebalance_is_over() {
    run(async |target| {
        let (mut leader, mut follower) = pair(&target).await;

        follower.send_join().await;
        follower.joined().await;
        leader.send_join().await;
        let alone = leader.joined().await;

        assert_eq!(alone.members.len(), 1, "the other had five seconds");
        assert_eq!(follower.heartbeat().await, ErrorCode::UNKNOWN_MEMBER_ID);
    });
}

#[test]
fn silent_member_is_lost_after_its_session_timeout() {
    run(async |target| {
        let group = target.fresh("group");
        let mut member = Member { session: Duration::from_secs(1), ..Member::new(&target, &group).await };
        member.join().await;
        member.sync(&[]).await;
        for _ in 0..4 {
            tokio::time::sleep(Duration::from_millis(500)).await;
            assert_eq!(member.heartbeat().await, ErrorCode::NONE);
        }

        tokio::time::sleep(Duration::from_millis(1_500)).await;

        assert_eq!(member.heartbeat().await, ErrorCode::UNKNOWN_MEMBER_ID);
    });
}

#[test]
fn pending_id_is_forgotten_after_the_session_timeout() {
    run(async |target| {
        let group = target.fresh("group");
        let mut member = Member { session: Duration::from_secs(1), ..Member::new(&target, &group).await };
        member.id = member.wire.call(member.join_request(), JOIN).await.member_id;

        tokio::time::sleep(Duration::from_millis(1_500)).await;

        let late = member.wire.call(member.join_request(), JOIN).await;
        assert_eq!(ErrorCode(late.error_code), ErrorCode::UNKNOWN_MEMBER_ID);
    });
}

/// FI-06c, GC-24.
#[test]
fn leaving_calls_a_rebalance_and_strangers_cannot_leave() {
    run(async |target| {
        let (mut leader, mut follower) = pair(&target).await;

        assert_eq!(leader.leave().await, ErrorCode::NONE);
        assert_eq!(leader.leave().await, ErrorCode::UNKNOWN_MEMBER_ID);
        assert_eq!(follower.heartbeat().await, ErrorCode::REBALANCE_IN_PROGRESS);
        let alone = follower.join().await;

        assert_eq!((alone.leader, alone.members.len()), (follower.id.clone(), 1));
    });
}

#[test]
fn old_leave_has_one_member_and_one_error() {
    run(async |target| {
        let (mut leader, _) = pair(&target).await;
        let request = |id: &Str| LeaveGroupRequest {
            group_id: leader.group.clone(),
            member_id: id.clone(),
            ..LeaveGroupRequest::default()
        };
        let (right, wrong) = (request(&leader.id), request(&Str::from("x")));

        assert_eq!(ErrorCode(leader.wire.call(wrong, 2).await.error_code), ErrorCode::UNKNOWN_MEMBER_ID);
        assert_eq!(leader.wire.call(right, 2).await.error_code, 0);
        assert_eq!(leader.heartbeat().await, ErrorCode::UNKNOWN_MEMBER_ID);
    });
}

/// GC-12, GC-14.
#[test]
fn static_member_comes_back_without_a_rebalance() {
    run(async |target| {
        let group = target.fresh("group");
        let mut first = Member::static_of(&target, &group, "one").await;
        first.join().await;
        first.sync(&[(&first.id.clone(), "share")]).await;

        let mut second = Member::static_of(&target, &group, "one").await;
        let back = second.join().await;

        assert!(second.id.starts_with("one-") && second.id != first.id, "{}", second.id);
        assert_eq!((back.generation_id, back.members.len()), (1, 1));
        assert_eq!((back.leader, back.skip_assignment), (second.id.clone(), true));
        assert_eq!(second.sync(&[]).await.assignment, "share");
        assert_eq!(first.heartbeat().await, ErrorCode::FENCED_INSTANCE_ID);
        assert_eq!(ErrorCode(first.sync(&[]).await.error_code), ErrorCode::FENCED_INSTANCE_ID);
        assert_eq!(ErrorCode(first.join().await.error_code), ErrorCode::FENCED_INSTANCE_ID);
    });
}

#[test]
fn older_static_leader_takes_itself_for_a_follower() {
    run(async |target| {
        let group = target.fresh("group");
        let mut first = Member::static_of(&target, &group, "one").await;
        first.join().await;
        first.sync(&[(&first.id.clone(), "share")]).await;

        let mut second = Member::static_of(&target, &group, "one").await;
        let back = second.wire.call(second.join_request(), 8).await;

        assert_eq!((back.leader, back.members.len()), (first.id.clone(), 0));
        assert_ne!(back.member_id, first.id);
    });
}

/// GC-13.
#[test]
fn static_twin_fences_the_one_that_waits() {
    run(async |target| {
        let (mut leader, _follower) = pair(&target).await;
        let mut first = Member::static_of(&target, &leader.group, "one").await;
        first.send_join().await;
        assert!(first.wire.is_quiet().await);

        let mut twin = Member::static_of(&target, &leader.group, "one").await;
        twin.send_join().await;

        assert_eq!(ErrorCode(first.joined().await.error_code), ErrorCode::FENCED_INSTANCE_ID);
        leader.send_join().await;
        assert_eq!(twin.joined().await.error_code, 0, "after the follower was given up");
    });
}

#[test]
fn administrator_removes_static_members_by_name() {
    run(async |target| {
        let group = target.fresh("group");
        let mut member = Member::static_of(&target, &group, "one").await;
        member.join().await;
        let identity = |id: &'static str, instance: &'static str| MemberIdentity {
            member_id: Str::from_static(id),
            group_instance_id: Some(Str::from_static(instance)),
            reason: None,
        };
        let members = vec![identity("", "two"), identity("other", "one"), identity("", "one"), identity("", "one")];

        let request = LeaveGroupRequest { group_id: group.clone(), members, ..LeaveGroupRequest::default() };
        let response = member.wire.call(request, LEAVE).await;

        let errors: Vec<&str> = response.members.iter().map(|m| ErrorCode(m.error_code).name()).collect();
        assert_eq!(errors, ["UNKNOWN_MEMBER_ID", "FENCED_INSTANCE_ID", "NONE", "UNKNOWN_MEMBER_ID"]);
        assert_eq!(member.heartbeat().await, ErrorCode::UNKNOWN_MEMBER_ID);
    });
}

/// GC-26.
#[test]
fn member_that_never_syncs_is_given_up() {
    run(async |target| {
        let (mut leader, mut follower) = pair(&target).await;
        rebalance(&mut leader, &mut follower).await;

        leader.sync(&[]).await;
        tokio::time::sleep(Duration::from_millis(5_500)).await;

        assert_eq!(follower.heartbeat().await, ErrorCode::UNKNOWN_MEMBER_ID);
        assert_eq!(leader.heartbeat().await, ErrorCode::REBALANCE_IN_PROGRESS);
    });
}

/// GC-04.
///
/// Fake only: a coordinator is moved by hand; `failovers` kills it.
#[test]
fn every_request_of_a_group_goes_to_its_coordinator() {
    on_fake(FakeCluster::builder().nodes(2).topic("orders", 1), async |target, fake| {
        let (mut leader, mut follower) = pair(&target).await;
        leader.send_join().await;
        assert!(leader.wire.is_quiet().await);

        let other = 3 - fake.coordinator(&leader.group);
        fake.move_coordinator(&leader.group, other);

        let code = ErrorCode::NOT_COORDINATOR;
        assert_eq!(ErrorCode(leader.joined().await.error_code), code, "the one that waited");
        assert_eq!(ErrorCode(follower.join().await.error_code), code);
        assert_eq!(ErrorCode(follower.sync(&[]).await.error_code), code);
        assert_eq!(follower.heartbeat().await, code);
        let leave = LeaveGroupRequest { group_id: leader.group.clone(), ..LeaveGroupRequest::default() };
        assert_eq!(ErrorCode(follower.wire.call(leave, LEAVE).await.error_code), code);
        let partitions = vec![OffsetCommitRequestPartition::default()];
        let topic = OffsetCommitRequestTopic { name: Str::from("orders"), partitions, ..Default::default() };
        let commit = OffsetCommitRequest {
            group_id: leader.group.clone(),
            topics: vec![topic],
            ..OffsetCommitRequest::default()
        };
        let answer = follower.wire.call(commit, 9).await;
        assert_eq!(ErrorCode(answer.topics[0].partitions[0].error_code), code);
        let asked = OffsetFetchRequestGroup { group_id: leader.group.clone(), ..OffsetFetchRequestGroup::default() };
        let fetch = OffsetFetchRequest { groups: vec![asked], ..OffsetFetchRequest::default() };
        assert_eq!(ErrorCode(follower.wire.call(fetch, 9).await.groups[0].error_code), code);

        let mut moved = target.coordinator(&leader.group).await;
        std::mem::swap(&mut moved, &mut follower.wire);
        assert_eq!(follower.heartbeat().await, ErrorCode::NONE, "the rebalance is forgotten, the members are not");
    });
}

/// Fake only: the offsets' topic has one replica; real clusters have three.
#[test]
fn dead_coordinator_without_an_heir_is_not_available() {
    on_fake(FakeCluster::builder().nodes(2).replication_factor(1), async |target, fake| {
        // Whichever group node 2 coordinates, since the test asks node 1.
        let group =
            (0..).map(|n| Str::from(format!("group-{n}"))).find(|g| fake.coordinator(g) == 2).expect("one of many");
        let find =
            FindCoordinatorRequest { coordinator_keys: vec![group.clone()], ..FindCoordinatorRequest::default() };
        let mut wire = target.connect().await;

        fake.crash(2);
        let lost = wire.call(find.clone(), 4).await.coordinators.remove(0);
        assert_eq!(ErrorCode(lost.error_code), ErrorCode::COORDINATOR_NOT_AVAILABLE);
        assert_eq!((lost.node_id, lost.port), (-1, -1));

        fake.restart(2);
        assert_eq!(wire.call(find, 4).await.coordinators.remove(0).node_id, 2);
    });
}

/// GC-16.
///
/// Fake only: `group.max.size` is set when a broker starts, for all groups.
#[test]
fn full_group_takes_nobody_else() {
    on_fake(FakeCluster::builder().group_max_size(2), async |target, _| {
        let (leader, mut follower) = pair(&target).await;
        let mut third = Member::new(&target, &leader.group).await;

        let refused = third.wire.call(third.join_request(), JOIN).await;

        assert_eq!(ErrorCode(refused.error_code), ErrorCode::GROUP_MAX_SIZE_REACHED);
        assert_eq!(follower.join().await.error_code, 0, "who is in stays in");
    });
}

/// Each newcomer earns the first members of a group another delay, but no more than their rebalance timeout of
/// five seconds in all.
///
/// Fake only: `group.initial.rebalance.delay.ms` is set when a broker starts.
#[test]
fn first_members_are_waited_for_no_longer_than_a_rebalance() {
    let builder = FakeCluster::builder().group_initial_rebalance_delay(Duration::from_secs(3));
    on_fake(builder, async |target, _| {
        let group = target.fresh("group");
        let mut first = Member::new(&target, &group).await;
        let (mut second, mut third) = (Member::new(&target, &group).await, Member::new(&target, &group).await);
        first.send_join().await;
        tokio::time::sleep(Duration::from_millis(2_500)).await;
        second.send_join().await;
        tokio::time::sleep(Duration::from_millis(2_000)).await;
        third.send_join().await;
        assert!(first.wire.is_quiet().await);

        let joined = tokio::time::timeout(Duration::from_millis(500), first.joined()).await.expect("time is up");

        assert_eq!(joined.members.len(), 3);
    });
}
