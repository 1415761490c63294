//! FI-06b: what a classic group answers in each of its states to joins that it cannot take, and to static members of
//! whom there is another one by now.

use krafka_protocol::api::heartbeat::HeartbeatRequest;
use krafka_protocol::api::join_group::{JoinGroupRequest, JoinGroupRequestProtocol};
use krafka_protocol::api::leave_group::{LeaveGroupRequest, MemberIdentity};
use krafka_protocol::api::offset_commit::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use krafka_protocol::api::sync_group::SyncGroupRequest;
use krafka_protocol::{Bytes, ErrorCode, Str};

use crate::member::{HEARTBEAT, JOIN, LEAVE, Member, SYNC, pair, rebalance};
use crate::target::{Target, Topic, Wire, run};

/// How a group stands that a newcomer, or somebody from before, talks to.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Stands {
    Nowhere,
    Empty,
    Joining,
    Syncing,
    Stable,
}

const ALL: [Stands; 5] = [Stands::Nowhere, Stands::Empty, Stands::Joining, Stands::Syncing, Stands::Stable];

/// A group of dynamic members in a state, and its members, whose connections keep it there.
async fn group_that(target: &Target, stands: Stands) -> (Str, Vec<Member>) {
    if stands == Stands::Nowhere {
        return (target.fresh("group"), Vec::new());
    }
    if stands == Stands::Empty {
        let mut member = Member::new(target, &target.fresh("group")).await;
        member.join().await;
        member.leave().await;
        return (member.group.clone(), vec![member]);
    }
    let (mut leader, mut follower) = pair(target).await;
    match stands {
        Stands::Joining => {
            leader.send_join().await;
            while follower.heartbeat().await != ErrorCode::REBALANCE_IN_PROGRESS {}
        }
        Stands::Syncing => rebalance(&mut leader, &mut follower).await,
        _ => {}
    }
    (leader.group.clone(), vec![leader, follower])
}

async fn join(wire: &mut Wire, request: JoinGroupRequest) -> &'static str {
    ErrorCode(wire.call(request, JOIN).await.error_code).name()
}

/// Answers to joins of somebody new, in a row: as it should be, with an id that nobody gave it, of another type,
/// with no protocol in common, with none at all, without a type, with a session that is too short, too long.
async fn newcomers(wire: &mut Wire, proper: &JoinGroupRequest) -> Vec<&'static str> {
    let named = |name: &'static str| JoinGroupRequestProtocol { name: name.into(), metadata: Bytes::new() };
    let words = [
        proper.clone(),
        JoinGroupRequest { member_id: "x".into(), ..proper.clone() },
        JoinGroupRequest { protocol_type: "another".into(), ..proper.clone() },
        JoinGroupRequest { protocols: vec![named("nobody's")], ..proper.clone() },
        JoinGroupRequest { protocols: vec![], ..proper.clone() },
        JoinGroupRequest { protocol_type: "".into(), ..proper.clone() },
        JoinGroupRequest { session_timeout_ms: 1, ..proper.clone() },
        JoinGroupRequest { session_timeout_ms: i32::MAX, ..proper.clone() },
    ];
    let mut answers = Vec::new();
    for request in words {
        answers.push(join(wire, request).await);
    }
    answers
}

/// GC-02. Whether there is anybody in the group decides if it can be of another type.
#[test]
fn joins_that_cannot_be_taken() {
    run(async |target| {
        for stands in ALL {
            let (group, _members) = group_that(&target, stands).await;
            let newcomer = Member::new(&target, &group).await;
            let request = newcomer.join_request();
            let mut wire = newcomer.wire;
            let (required, strange, wrong) = ("MEMBER_ID_REQUIRED", "UNKNOWN_MEMBER_ID", "INCONSISTENT_GROUP_PROTOCOL");
            let session = "INVALID_SESSION_TIMEOUT";
            let expected = match stands {
                Stands::Nowhere | Stands::Empty => {
                    [required, strange, required, required, wrong, wrong, session, session]
                }
                _ => [required, strange, wrong, wrong, wrong, wrong, session, session],
            };

            assert_eq!(newcomers(&mut wire, &request).await, expected, "{stands:?}");
        }
    });
}

/// A member of a group of two, with a name of its own, that the group knows as `one`.
async fn named_in(target: &Target, stands: Stands) -> (Member, Option<Member>) {
    let group = target.fresh("group");
    let mut fixed = Member::static_of(target, &group, "one").await;
    if stands == Stands::Nowhere {
        (fixed.id, fixed.generation) = (Str::from("given"), 1);
        return (fixed, None);
    }
    fixed.join().await;
    fixed.sync(&[]).await;
    if stands == Stands::Empty {
        let members = vec![identity("", "one")];
        let request = LeaveGroupRequest { group_id: group.clone(), members, ..LeaveGroupRequest::default() };
        assert_eq!(fixed.wire.call(request, LEAVE).await.members[0].error_code, 0);
        return (fixed, None);
    }
    let mut other = Member::new(target, &group).await;
    other.send_join().await;
    while fixed.heartbeat().await != ErrorCode::REBALANCE_IN_PROGRESS {}
    if stands == Stands::Joining {
        return (fixed, Some(other));
    }
    fixed.join().await;
    other.joined().await;
    if stands == Stands::Stable {
        other.send_sync(&[]).await;
        fixed.sync(&[]).await;
        other.synced().await;
    }
    (fixed, Some(other))
}

fn identity(id: &str, instance: &str) -> MemberIdentity {
    MemberIdentity { member_id: id.into(), group_instance_id: Some(instance.into()), reason: None }
}

/// Heartbeat, SyncGroup, OffsetCommit, JoinGroup and LeaveGroup of a member with these names.
async fn words(wire: &mut Wire, member: &Member, topic: &Topic, id: &str, instance: &str) -> [&'static str; 5] {
    let instance_id = Some(Str::from(instance));
    let beat = HeartbeatRequest {
        group_id: member.group.clone(),
        generation_id: member.generation,
        member_id: id.into(),
        group_instance_id: instance_id.clone(),
    };
    let sync =
        SyncGroupRequest { member_id: id.into(), group_instance_id: instance_id.clone(), ..member.sync_request(&[]) };
    let partitions = vec![OffsetCommitRequestPartition { committed_offset: 1, ..Default::default() }];
    let commit = OffsetCommitRequest {
        group_id: member.group.clone(),
        member_id: id.into(),
        group_instance_id: instance_id.clone(),
        generation_id_or_member_epoch: member.generation,
        topics: vec![OffsetCommitRequestTopic { name: topic.name.clone(), partitions, ..Default::default() }],
        ..OffsetCommitRequest::default()
    };
    let request = JoinGroupRequest { member_id: id.into(), group_instance_id: instance_id, ..member.join_request() };
    let members = vec![identity(id, instance)];
    let leave = LeaveGroupRequest { group_id: member.group.clone(), members, ..LeaveGroupRequest::default() };
    [
        ErrorCode(wire.call(beat, HEARTBEAT).await.error_code).name(),
        ErrorCode(wire.call(sync, SYNC).await.error_code).name(),
        ErrorCode(wire.call(commit, 8).await.topics[0].partitions[0].error_code).name(),
        join(wire, request).await,
        ErrorCode(wire.call(leave, LEAVE).await.members[0].error_code).name(),
    ]
}

/// GC-13. Whoever has the name of another is fenced, in each state; who has a name that nobody has is unknown.
#[test]
fn static_members_whose_place_is_taken() {
    run(async |target| {
        let topic = target.topic(1).await;
        let unknown = "UNKNOWN_MEMBER_ID";
        for stands in ALL {
            let (member, _other) = named_in(&target, stands).await;
            let mut wire = target.coordinator(&member.group).await;

            let fenced = words(&mut wire, &member, &topic, "x", "one").await;
            let nobody = words(&mut wire, &member, &topic, &member.id, "two").await;

            let (taken, strange) = match stands {
                Stands::Nowhere => ([unknown, unknown, "ILLEGAL_GENERATION", unknown, unknown], unknown),
                Stands::Empty => ([unknown; 5], unknown),
                _ => (["FENCED_INSTANCE_ID"; 5], unknown),
            };
            assert_eq!(fenced, taken, "{stands:?}");
            let commit = if stands == Stands::Nowhere { "ILLEGAL_GENERATION" } else { strange };
            assert_eq!(nobody, [strange, strange, commit, strange, strange], "{stands:?}");
        }
    });
}

/// SyncGroup says which protocol it takes the group for, since version 5.
#[test]
fn syncs_that_mistake_the_protocol() {
    run(async |target| {
        for stands in ALL {
            let (group, members) = group_that(&target, stands).await;
            let mut wire = target.coordinator(&group).await;
            let member = match members.last() {
                Some(member) => member,
                None => &Member { id: "m".into(), generation: 1, ..Member::new(&target, &group).await },
            };
            let named = |kind: &'static str, name: &'static str| SyncGroupRequest {
                protocol_type: Some(kind.into()),
                protocol_name: Some(name.into()),
                ..member.sync_request(&[])
            };
            let kind = member.sync_request(&[]).protocol_type.expect("a type");

            let mut answers = Vec::new();
            for request in [
                named("another", "range"),
                SyncGroupRequest { protocol_type: Some(kind.clone()), ..named("", "nobody's") },
            ] {
                answers.push(ErrorCode(wire.call(request, SYNC).await.error_code).name());
            }

            let expected = match stands {
                Stands::Nowhere | Stands::Empty => "UNKNOWN_MEMBER_ID",
                _ => "INCONSISTENT_GROUP_PROTOCOL",
            };
            assert_eq!(answers, [expected; 2], "{stands:?}");
        }
    });
}
