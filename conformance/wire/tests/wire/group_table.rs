//! FI-06a: what a classic group answers in each of its states to members whose words are right, strange or old.

use krafka_protocol::api::offset_commit::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use krafka_protocol::{ErrorCode, Str};

use crate::member::{Member, SYNC, pair, rebalance};
use crate::target::{Topic, run};

/// Whose words they are: as the coordinator knows them, of nobody, of the last generation, of the next.
const WORDS: [&str; 4] = ["right", "strange", "past", "future"];

/// The answers to Heartbeat, SyncGroup, OffsetCommit and an outsider's OffsetCommit. SyncGroup with the right words
/// is left out where it would have to wait.
async fn answers(member: &mut Member, topic: &Topic, may_sync: bool) -> Vec<String> {
    let (id, generation) = (member.id.clone(), member.generation);
    let mut lines = Vec::new();
    for words in WORDS {
        member.id = if words == "strange" { Str::from("x") } else { id.clone() };
        member.generation = match words {
            "past" => generation - 1,
            "future" => generation + 1,
            _ => generation,
        };
        let heartbeat = member.heartbeat().await.name();
        let sync = if words == "right" && !may_sync {
            "-"
        } else {
            ErrorCode(member.wire.call(member.sync_request(&[]), SYNC).await.error_code).name()
        };
        let commit = commit(member, topic).await;
        lines.push(format!("{words}: {heartbeat} {sync} {commit}"));
    }
    (member.id, member.generation) = (Str::default(), -1);
    lines.push(format!("outsider: {}", commit(member, topic).await));
    (member.id, member.generation) = (id, generation);
    lines
}

async fn commit(member: &mut Member, topic: &Topic) -> &'static str {
    let partitions = vec![OffsetCommitRequestPartition { committed_offset: 1, ..Default::default() }];
    let topics = vec![OffsetCommitRequestTopic { name: topic.name.clone(), partitions, ..Default::default() }];
    let request = OffsetCommitRequest {
        group_id: member.group.clone(),
        member_id: member.id.clone(),
        generation_id_or_member_epoch: member.generation,
        topics,
        ..OffsetCommitRequest::default()
    };
    ErrorCode(member.wire.call(request, 8).await.topics[0].partitions[0].error_code).name()
}

#[test]
fn group_that_was_never_there() {
    run(async |target| {
        let topic = target.topic(1).await;
        let mut member = Member::new(&target, &target.fresh("group")).await;
        (member.id, member.generation) = (Str::from("m"), 1);

        assert_eq!(
            answers(&mut member, &topic, true).await,
            [
                "right: UNKNOWN_MEMBER_ID UNKNOWN_MEMBER_ID ILLEGAL_GENERATION",
                "strange: UNKNOWN_MEMBER_ID UNKNOWN_MEMBER_ID ILLEGAL_GENERATION",
                "past: UNKNOWN_MEMBER_ID UNKNOWN_MEMBER_ID ILLEGAL_GENERATION",
                "future: UNKNOWN_MEMBER_ID UNKNOWN_MEMBER_ID ILLEGAL_GENERATION",
                "outsider: NONE",
            ]
        );
    });
}

#[test]
fn group_that_everyone_has_left() {
    run(async |target| {
        let topic = target.topic(1).await;
        let mut member = Member::new(&target, &target.fresh("group")).await;
        member.join().await;
        member.leave().await;

        assert_eq!(
            answers(&mut member, &topic, true).await,
            [
                "right: UNKNOWN_MEMBER_ID UNKNOWN_MEMBER_ID UNKNOWN_MEMBER_ID",
                "strange: UNKNOWN_MEMBER_ID UNKNOWN_MEMBER_ID UNKNOWN_MEMBER_ID",
                "past: UNKNOWN_MEMBER_ID UNKNOWN_MEMBER_ID UNKNOWN_MEMBER_ID",
                "future: UNKNOWN_MEMBER_ID UNKNOWN_MEMBER_ID UNKNOWN_MEMBER_ID",
                "outsider: NONE",
            ]
        );
    });
}

#[test]
fn group_that_asks_its_members_to_join_again() {
    run(async |target| {
        let topic = target.topic(1).await;
        let (mut leader, mut follower) = pair(&target).await;
        leader.send_join().await;
        while follower.heartbeat().await != ErrorCode::REBALANCE_IN_PROGRESS {}

        assert_eq!(
            answers(&mut follower, &topic, true).await,
            [
                "right: REBALANCE_IN_PROGRESS REBALANCE_IN_PROGRESS NONE",
                "strange: UNKNOWN_MEMBER_ID UNKNOWN_MEMBER_ID UNKNOWN_MEMBER_ID",
                "past: ILLEGAL_GENERATION ILLEGAL_GENERATION ILLEGAL_GENERATION",
                "future: ILLEGAL_GENERATION ILLEGAL_GENERATION ILLEGAL_GENERATION",
                "outsider: UNKNOWN_MEMBER_ID",
            ]
        );
    });
}

#[test]
fn group_that_waits_for_its_assignment() {
    run(async |target| {
        let topic = target.topic(1).await;
        let (mut leader, mut follower) = pair(&target).await;
        rebalance(&mut leader, &mut follower).await;

        assert_eq!(
            answers(&mut follower, &topic, false).await,
            [
                "right: NONE - REBALANCE_IN_PROGRESS",
                "strange: UNKNOWN_MEMBER_ID UNKNOWN_MEMBER_ID UNKNOWN_MEMBER_ID",
                "past: ILLEGAL_GENERATION ILLEGAL_GENERATION ILLEGAL_GENERATION",
                "future: ILLEGAL_GENERATION ILLEGAL_GENERATION ILLEGAL_GENERATION",
                "outsider: UNKNOWN_MEMBER_ID",
            ]
        );
    });
}

#[test]
fn stable_group() {
    run(async |target| {
        let topic = target.topic(1).await;
        let (_leader, mut follower) = pair(&target).await;

        assert_eq!(
            answers(&mut follower, &topic, true).await,
            [
                "right: NONE NONE NONE",
                "strange: UNKNOWN_MEMBER_ID UNKNOWN_MEMBER_ID UNKNOWN_MEMBER_ID",
                "past: ILLEGAL_GENERATION ILLEGAL_GENERATION ILLEGAL_GENERATION",
                "future: ILLEGAL_GENERATION ILLEGAL_GENERATION ILLEGAL_GENERATION",
                "outsider: UNKNOWN_MEMBER_ID",
            ]
        );
    });
}

/// FI-06c. LeaveGroup with many names: each has its own answer, and one rebalance follows.
#[test]
fn many_leave_at_once_each_with_an_answer() {
    use krafka_protocol::api::leave_group::{LeaveGroupRequest, MemberIdentity};
    run(async |target| {
        let group = target.fresh("group");
        let mut fixed = Member::static_of(&target, &group, "one").await;
        fixed.join().await;
        fixed.sync(&[]).await;
        let pending = {
            let mut newcomer = Member::new(&target, &group).await;
            newcomer.wire.call(newcomer.join_request(), crate::member::JOIN).await.member_id
        };
        let identity = |id: &str, instance: Option<&str>| MemberIdentity {
            member_id: Str::from(id),
            group_instance_id: instance.map(Str::from),
            reason: Some(Str::from("the end of the test")),
        };
        let members = vec![
            identity("x", None),
            identity("", Some("two")),
            identity("x", Some("one")),
            identity(&pending, None),
            identity("", Some("one")),
            identity("", Some("one")),
        ];
        let request = LeaveGroupRequest { group_id: group.clone(), members, ..LeaveGroupRequest::default() };

        let response = fixed.wire.call(request, crate::member::LEAVE).await;

        assert_eq!(response.error_code, 0);
        let errors: Vec<_> = response.members.iter().map(|member| ErrorCode(member.error_code).name()).collect();
        let expected =
            ["UNKNOWN_MEMBER_ID", "UNKNOWN_MEMBER_ID", "FENCED_INSTANCE_ID", "NONE", "NONE", "UNKNOWN_MEMBER_ID"];
        assert_eq!(errors, expected);
        assert_eq!(response.members[4].member_id, "", "named as it was asked for");
    });
}
