//! How groups of KIP-848, share groups and streams groups are described by request: in which order, how often, and in
//! which words it is refused. FI-06 to FI-08.

use std::time::Duration;

use krafka_fake_broker::KafkaVersion;
use krafka_protocol::api::consumer_group_describe::ConsumerGroupDescribeRequest;
use krafka_protocol::api::consumer_group_heartbeat::ConsumerGroupHeartbeatRequest;
use krafka_protocol::api::share_group_describe::ShareGroupDescribeRequest;
use krafka_protocol::api::streams_group_describe::StreamsGroupDescribeRequest;
use krafka_protocol::{ErrorCode, Str};

use crate::consumer::{Consumer, WITH_REGEX};
use crate::share_member::{HEARTBEAT, ShareMember};
use crate::streams_groups::Member;
use crate::target::{Target, Wire, run, run_on_three};

/// What is told of a group: its id, the error, and the reason.
type Told = (Str, &'static str, Option<String>);

fn told(id: Str, code: i16, message: Option<Str>) -> Told {
    (id, ErrorCode(code).name(), message.map(|text| text.to_string()))
}

/// What is told of groups that are asked for as groups of KIP-848, share groups, and streams groups.
async fn describe(wire: &mut Wire, ids: &[&Str]) -> [Vec<Told>; 3] {
    let group_ids: Vec<Str> = ids.iter().map(|&id| id.clone()).collect();
    let consumer = ConsumerGroupDescribeRequest { group_ids: group_ids.clone(), ..Default::default() };
    let share = ShareGroupDescribeRequest { group_ids: group_ids.clone(), ..Default::default() };
    let streams = StreamsGroupDescribeRequest { group_ids, ..Default::default() };
    let consumer = wire.call(consumer, 0).await.groups.into_iter();
    let share = wire.call(share, 1).await.groups.into_iter();
    let streams = wire.call(streams, 0).await.groups.into_iter();
    [
        consumer.map(|group| told(group.group_id, group.error_code, group.error_message)).collect(),
        share.map(|group| told(group.group_id, group.error_code, group.error_message)).collect(),
        streams.map(|group| told(group.group_id, group.error_code, group.error_message)).collect(),
    ]
}

/// Who asks twice is answered twice; what is no id comes first.
#[test]
fn who_asks_twice_is_answered_twice() {
    run(async |target| {
        target.since(KafkaVersion::V4_2, "streams groups").await;
        let group = target.fresh("group");
        let mut wire = target.coordinator(&group).await;
        let empty = Str::default();

        let all = describe(&mut wire, &[&group, &empty, &group, &empty]).await;

        let nameless = || (empty.clone(), "INVALID_GROUP_ID", None);
        let missing = || (group.clone(), "GROUP_ID_NOT_FOUND", Some(format!("Group {group} not found.")));
        for told in all {
            assert_eq!(told, [nameless(), nameless(), missing(), missing()]);
        }
    });
}

/// Kafka 3.9 does not say why a group is not told.
#[test]
fn group_that_is_not_there_is_told_in_words_since_4_0() {
    run(async |target| {
        let group = target.fresh("group");
        let mut wire = target.coordinator(&group).await;

        let request = ConsumerGroupDescribeRequest { group_ids: vec![group.clone()], ..Default::default() };
        let described = wire.call(request, 0).await.groups.remove(0);

        let words = (target.version().await >= KafkaVersion::V4_0).then(|| format!("Group {group} not found."));
        let told = told(described.group_id, described.error_code, described.error_message);
        assert_eq!(told, (group, "GROUP_ID_NOT_FOUND", words));
    });
}

/// Two members vote for different assignors, as in a rolling change of a setting: whoever joined first, the one that
/// Kafka's map has in front is taken. It is what the group is said to have, and what assigns.
#[test]
fn assignors_with_as_many_votes_are_in_the_order_of_kafkas_map() {
    run(async |target| {
        for names in [["range", "uniform"], ["uniform", "range"]] {
            let (group, topic) = (target.fresh("group"), target.topic(2).await);
            let mut members = Vec::new();
            for name in names {
                let mut member = Consumer::new(&target, &group, &[&topic]).await;
                let request = member.full();
                let voting = ConsumerGroupHeartbeatRequest { server_assignor: Some(name.into()), ..request };
                assert_eq!(member.error(voting).await, "NONE");
                members.push(member);
            }

            assert_eq!(&*members[0].describe().await.assignor_name, "uniform", "{names:?}");
        }
    });
}

/// A member that only votes for another assignor has the group assign anew, since Kafka 4.4; before, with the next
/// change.
#[test]
fn another_vote_is_a_change_of_the_group() {
    run(async |target| {
        let (group, topic) = (target.fresh("group"), target.topic(2).await);
        let mut member = Consumer::new(&target, &group, &[&topic]).await;
        member.join().await;
        member.settle(2).await;
        let before = member.describe().await;
        let voting = ConsumerGroupHeartbeatRequest { server_assignor: Some("range".into()), ..member.full() };
        assert_eq!(member.error(voting).await, "NONE");

        let after = member.describe().await;

        assert_eq!((&*before.assignor_name, &*after.assignor_name), ("uniform", "range"));
        let is_change = target.version().await >= KafkaVersion::V4_4;
        assert_eq!(after.group_epoch, before.group_epoch + i32::from(is_change));
    });
}

/// Connects to a node that does not coordinate a group.
async fn elsewhere(target: &Target, group: &Str) -> Wire {
    for node in 1..=3 {
        let mut wire = target.node(node).await;
        let request = ConsumerGroupDescribeRequest { group_ids: vec![group.clone()], ..Default::default() };
        let code = ErrorCode(wire.call(request, 0).await.groups[0].error_code);
        if code == ErrorCode::NOT_COORDINATOR {
            return wire;
        }
    }
    panic!("nobody else");
}

/// That another node coordinates a group is told by a code. Only who describes share groups gets it in words.
#[test]
fn the_wrong_coordinator_says_so_without_a_word() {
    run_on_three(async |target| {
        target.since(KafkaVersion::V4_4, "StreamsGroupHeartbeat 1").await;
        let (group, topic) = (target.fresh("group"), target.topic(1).await);
        target.coordinator(&group).await;
        let consumer = Consumer::new(&target, &group, &[&topic]).await;
        let share = ShareMember::new(&target, &group, &topic, "m1").await;
        let streams = Member::new(&target, &group, "m1").await;
        let mut wire = elsewhere(&target, &group).await;

        let described = describe(&mut wire, &[&group]).await;
        let consumer = wire.call(consumer.full(), WITH_REGEX).await;
        let share = wire.call(share.heartbeat(1), HEARTBEAT).await;
        let streams = wire.call(streams.heartbeat(1), 1).await;

        let words = Some("This is not the correct coordinator.".to_owned());
        let expected = |message| vec![(group.clone(), "NOT_COORDINATOR", message)];
        assert_eq!(described, [expected(None), expected(words), expected(None)]);
        let code = ErrorCode::NOT_COORDINATOR.0;
        assert_eq!((consumer.error_code, consumer.error_message), (code, None));
        assert_eq!((share.error_code, share.error_message), (code, None));
        assert_eq!((streams.error_code, streams.error_message), (code, None));
    });
}

/// What a member has to give up, and has not given up, is shown as the member's since Kafka 4.3.
#[test]
fn partitions_to_give_up_are_shown() {
    run(async |target| {
        let (group, topic) = (target.fresh("group"), target.topic(2).await);
        let mut first = Consumer::new(&target, &group, &[&topic]).await;
        let mut second = Consumer::new(&target, &group, &[&topic]).await;
        first.join().await;
        first.settle(2).await;
        second.join().await;

        while first.size() == 2 {
            first.say(first.brief()).await;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let described = first.describe().await;

        let shown = described.members.iter().find(|member| member.member_id == first.id).expect("the first member");
        let partitions: Vec<i32> =
            shown.assignment.topic_partitions.iter().flat_map(|topic| topic.partitions.clone()).collect();
        let expected = if target.version().await >= KafkaVersion::V4_3 { 2 } else { 1 };
        assert_eq!((&*described.group_state, partitions.len()), ("Reconciling", expected));
    });
}
