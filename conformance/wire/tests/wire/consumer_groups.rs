//! Groups of KIP-848 on the wire: what a member is told, and how partitions go from one to the next.

use std::time::Duration;

use krafka_fake_broker::KafkaVersion;
use krafka_protocol::api::consumer_group_describe::ConsumerGroupDescribeRequest;
use krafka_protocol::api::consumer_group_heartbeat::{ConsumerGroupHeartbeatRequest, TopicPartitions};
use krafka_protocol::api::list_groups::ListGroupsRequest;
use krafka_protocol::{ErrorCode, Str, Uuid};

use crate::consumer::{Consumer, HEARTBEAT, WITH_REGEX, settle_all};
use crate::member::{JOIN, Member};
use crate::target::{Target, run};

type Request = ConsumerGroupHeartbeatRequest;

/// The epoch of a group's first member: the first change to what a new group subscribes to. Since 4.3 the group itself
/// begins with 1.
async fn first_epoch(target: &Target) -> i32 {
    if target.version().await >= KafkaVersion::V4_3 { 2 } else { 1 }
}

/// A member alone in its group, with all partitions of a topic.
async fn alone(target: &Target, partitions: i32) -> Consumer {
    let topic = target.topic(partitions).await;
    let mut member = Consumer::new(target, &target.fresh("group"), &[&topic]).await;
    member.join().await;
    member.settle(usize::try_from(partitions).expect("a number")).await;
    member
}

/// GN-01.
#[test]
fn first_heartbeat_joins_and_gets_everything() {
    run(async |target| {
        let topic = target.topic(3).await;
        let mut member = Consumer::new(&target, &target.fresh("group"), &[&topic]).await;

        let joined = member.join().await;

        let epoch = first_epoch(&target).await;
        assert_eq!((joined.member_id.as_ref(), joined.member_epoch), (Some(&member.id), epoch));
        assert_eq!((joined.heartbeat_interval_ms, joined.error_message), (5_000, None));
        assert_eq!(member.assigned, [(topic.id, vec![0, 1, 2])].into());
        let next = member.say(member.brief()).await;
        assert_eq!((next.member_epoch, next.assignment), (epoch, None), "nothing has changed");
        let full = member.say(member.full()).await;
        assert_eq!(full.member_epoch, epoch);
        assert!(full.assignment.is_some(), "whoever says everything is told everything");
    });
}

#[test]
fn member_without_an_id_is_given_one() {
    run(async |target| {
        let topic = target.topic(1).await;
        let mut member = Consumer::new(&target, &target.fresh("group"), &[&topic]).await;
        member.id = Str::default();

        member.join().await;

        assert_eq!(member.id.len(), 22, "a UUID in Kafka's text: {}", member.id);
    });
}

/// FI-12d: among others, of who joins and has partitions already.
#[test]
fn since_version_1_the_member_brings_its_id_and_may_want_nothing() {
    run(async |target| {
        target.since(KafkaVersion::V4_0, "ConsumerGroupHeartbeat 1").await;
        let topic = target.topic(1).await;
        let mut member = Consumer::new(&target, &target.fresh("group"), &[&topic]).await;
        let nameless = Request { member_id: Str::default(), ..member.full() };
        let wishless = Request { subscribed_topic_names: None, ..member.full() };

        let answer = member.wire.call(nameless, WITH_REGEX).await;
        assert_eq!(answer.error_message.as_deref(), Some("MemberId can't be empty."));
        let answer = member.wire.call(wishless, WITH_REGEX).await;
        assert_eq!(
            answer.error_message.as_deref(),
            Some("Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.")
        );
        let nothing = Request { subscribed_topic_names: Some(Vec::new()), ..member.full() };
        let answer = member.wire.call(nothing, WITH_REGEX).await;
        assert_eq!((answer.error_code, answer.member_epoch), (0, 1));
        assert_eq!(answer.assignment.map(|assignment| assignment.topic_partitions.len()), Some(0));
    });
}

/// GN-13.
#[test]
fn unknown_assignor_is_named_with_those_that_there_are() {
    run(async |target| {
        let topic = target.topic(1).await;
        let mut member = Consumer::new(&target, &target.fresh("group"), &[&topic]).await;

        let request = Request { server_assignor: Some(Str::from("bogus")), ..member.full() };
        let answer = member.say(request).await;

        assert_eq!(ErrorCode(answer.error_code), ErrorCode::UNSUPPORTED_ASSIGNOR);
        let expected = "ServerAssignor bogus is not supported. Supported assignors: uniform, range.";
        assert_eq!(answer.error_message.as_deref(), Some(expected));
    });
}

/// FI-07c, GN-04.
#[test]
fn epochs_that_are_not_the_members_are_fenced() {
    run(async |target| {
        let mut member = alone(&target, 2).await;
        let (epoch, group) = (member.epoch, member.group.clone());

        member.epoch = epoch + 1;
        let answer = member.say(member.brief()).await;
        assert_eq!(ErrorCode(answer.error_code), ErrorCode::FENCED_MEMBER_EPOCH);
        let expected = format!(
            "The consumer group member has a greater member epoch ({}) than the one known by the group coordinator \
             ({epoch}). The member must abandon all its partitions and rejoin.",
            epoch + 1
        );
        assert_eq!(answer.error_message.as_deref(), Some(&*expected));
        member.epoch = epoch;
        let stranger = Request { member_id: Str::from("x"), ..member.brief() };
        let answer = member.say(stranger).await;
        assert_eq!(ErrorCode(answer.error_code), ErrorCode::UNKNOWN_MEMBER_ID);
        assert_eq!(answer.error_message.as_deref(), Some(&*format!("Member x is not a member of group {group}.")));

        let nowhere = target.fresh("nowhere");
        let mut wire = target.coordinator(&nowhere).await;
        let answer = wire.call(Request { group_id: nowhere.clone(), ..member.brief() }, HEARTBEAT).await;
        assert_eq!(ErrorCode(answer.error_code), ErrorCode::GROUP_ID_NOT_FOUND);
        assert_eq!(answer.error_message.as_deref(), Some(&*format!("Consumer group {nowhere} not found.")));
        let leaves = Request { group_id: nowhere.clone(), member_epoch: -1, ..member.brief() };
        let answer = wire.call(leaves, HEARTBEAT).await;
        assert_eq!(ErrorCode(answer.error_code), ErrorCode::GROUP_ID_NOT_FOUND);
        assert_eq!(answer.error_message.as_deref(), Some(&*format!("Group {nowhere} not found.")));
    });
}

/// GN-03: the answer with the next epoch was lost. Whoever holds no more than it may is told again.
#[test]
fn member_one_epoch_behind_is_forgiven() {
    run(async |target| {
        let topic = target.topic(2).await;
        let group = target.fresh("group");
        let mut first = Consumer::new(&target, &group, &[&topic]).await;
        first.join().await;
        let other = target.topic(1).await;
        first.topics.push(other.name.clone());
        first.say(first.full()).await;
        first.settle(3).await;
        let (before, epoch) = (first.epoch - 1, first.epoch);

        let lost = Request { member_epoch: before, ..first.holding() };
        let again = first.say(lost).await;
        assert_eq!((again.error_code, again.member_epoch), (0, epoch));
        let silent = Request { member_epoch: before, ..first.brief() };
        assert_eq!(first.error(silent).await, "FENCED_MEMBER_EPOCH", "it does not say what it holds");
        let elsewhere = TopicPartitions { topic_id: Uuid([9; 16]), partitions: vec![0] };
        let wrong = Request { member_epoch: before, topic_partitions: Some(vec![elsewhere]), ..first.brief() };
        assert_eq!(first.error(wrong).await, "FENCED_MEMBER_EPOCH", "it holds what it must not");
    });
}

/// FI-07b: a member that says everything again is told everything again, and nothing else happens.
#[test]
fn full_heartbeat_may_come_twice() {
    run(async |target| {
        let mut member = alone(&target, 2).await;
        let epoch = member.epoch;
        let again = Request { member_epoch: epoch, topic_partitions: Some(member.owned()), ..member.full() };

        for _ in 0..2 {
            let answer = member.say(again.clone()).await;

            assert_eq!((ErrorCode(answer.error_code).name(), answer.member_epoch), ("NONE", epoch));
            let told = answer.assignment.expect("who says everything is told everything").topic_partitions;
            assert_eq!(told.iter().map(|topic| topic.partitions.len()).sum::<usize>(), 2);
        }
        let brief = member.say(member.brief()).await;
        assert_eq!((brief.member_epoch, brief.assignment), (epoch, None));
    });
}

#[test]
fn member_may_begin_anew_under_its_id() {
    run(async |target| {
        let mut member = alone(&target, 2).await;
        member.topics.push(target.topic(1).await.name);
        member.say(member.full()).await;
        member.settle(3).await;
        let epoch = member.epoch;
        target.differs_before(KafkaVersion::V4_2, "epoch 0 of a member that has come further is fenced").await;

        let anew = Request { member_epoch: 0, topic_partitions: Some(Vec::new()), ..member.full() };
        let answer = member.say(anew).await;

        assert_eq!((answer.error_code, answer.member_epoch), (0, epoch));
        assert_eq!(member.size(), 3, "and has what it had");
    });
}

/// FI-07a, GN-02.
#[test]
fn partitions_are_handed_over_only_when_they_are_given_up() {
    run(async |target| {
        let topic = target.topic(4).await;
        let group = target.fresh("group");
        let mut first = Consumer::new(&target, &group, &[&topic]).await;
        let mut second = Consumer::new(&target, &group, &[&topic]).await;
        first.join().await;
        first.settle(4).await;

        second.join().await;
        assert_eq!(second.size(), 0, "all are held");
        // The first learns that it must give two up, and keeps its epoch until it says that it has.
        let (held, epoch) = (first.holding(), first.epoch);
        let mut told = first.say(held.clone()).await;
        for _ in 0..100 {
            if told.assignment.is_some() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
            second.say(second.holding()).await;
            told = first.say(Request { member_epoch: first.epoch, ..held.clone() }).await;
        }
        assert_eq!((first.size(), first.epoch), (2, epoch));
        second.say(second.holding()).await;
        assert_eq!(second.size(), 0, "they are not given up yet");
        assert_eq!(&*second.state().await, "Reconciling");

        let given_up = first.say(first.holding()).await;
        assert_eq!(given_up.member_epoch, epoch + 1);
        second.settle(2).await;

        assert_eq!(second.epoch, epoch + 1);
        let all: Vec<i32> = first.assigned[&topic.id].iter().chain(&second.assigned[&topic.id]).copied().collect();
        assert_eq!(all.iter().sum::<i32>(), 6, "each is with one of them: {all:?}");
        assert_eq!(&*second.state().await, "Stable");
    });
}

#[test]
fn leaver_is_out_and_the_others_get_its_share() {
    run(async |target| {
        let topic = target.topic(4).await;
        let group = target.fresh("group");
        let mut first = Consumer::new(&target, &group, &[&topic]).await;
        let mut second = Consumer::new(&target, &group, &[&topic]).await;
        first.join().await;
        second.join().await;
        settle_all(&mut [&mut first, &mut second], &[2, 2]).await;

        let answer = second.leave().await;

        assert_eq!((answer.error_code, answer.member_id.as_ref()), (0, Some(&second.id)));
        assert_eq!((answer.member_epoch, answer.heartbeat_interval_ms, answer.assignment), (-1, 0, None));
        assert_eq!(second.error(second.brief()).await, "UNKNOWN_MEMBER_ID");
        assert_eq!(ErrorCode(second.leave().await.error_code), ErrorCode::UNKNOWN_MEMBER_ID);
        first.settle(4).await;
        first.leave().await;
        let empty = first.describe().await;
        assert_eq!((&*empty.group_state, empty.members.len()), ("Empty", 0));
    });
}

/// GN-14.
#[test]
fn member_that_is_too_slow_to_give_up_is_out() {
    run(async |target| {
        let topic = target.topic(2).await;
        let group = target.fresh("group");
        let mut slow = Consumer::new(&target, &group, &[&topic]).await;
        let mut other = Consumer::new(&target, &group, &[&topic]).await;
        let hasty = Request { rebalance_timeout_ms: 1_500, ..slow.full() };
        slow.say(hasty).await;
        slow.settle(2).await;
        other.join().await;
        let held = slow.owned();
        let mut told = false;
        for _ in 0..100 {
            let request = Request { topic_partitions: Some(held.clone()), ..slow.brief() };
            if slow.error(request).await == "UNKNOWN_MEMBER_ID" {
                assert!(told, "it was asked first");
                other.settle(2).await;
                return;
            }
            told |= slow.size() == 1;
            other.say(other.holding()).await;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("it is still in");
    });
}

/// What a static member was to give up, it has given up when it leaves for a while: the next heartbeat of another has
/// it, long before the time to give it up is over.
#[test]
fn static_member_that_is_away_holds_nothing_back() {
    run(async |target| {
        let (group, topic) = (target.fresh("group"), target.topic(2).await);
        let mut fixed = Consumer { instance: Some("one".into()), ..Consumer::new(&target, &group, &[&topic]).await };
        let mut other = Consumer::new(&target, &group, &[&topic]).await;
        fixed.join().await;
        fixed.settle(2).await;
        other.join().await;
        while fixed.size() == 2 {
            fixed.say(fixed.brief()).await;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert_eq!((other.error(other.holding()).await, other.size()), ("NONE", 0));

        let away = Request { member_epoch: -2, ..fixed.brief() };
        assert_eq!(fixed.wire.call(away, HEARTBEAT).await.error_code, 0);

        assert_eq!((other.error(other.holding()).await, other.size()), ("NONE", 1));
    });
}

/// FI-07d, GN-06, GN-16.
#[test]
fn static_member_keeps_its_share_while_it_is_away() {
    run(async |target| {
        let topic = target.topic(4).await;
        let group = target.fresh("group");
        let mut fixed = Consumer { instance: Some("one".into()), ..Consumer::new(&target, &group, &[&topic]).await };
        let mut other = Consumer::new(&target, &group, &[&topic]).await;
        fixed.join().await;
        other.join().await;
        settle_all(&mut [&mut fixed, &mut other], &[2, 2]).await;
        let (share, group_epoch) = (fixed.assigned.clone(), fixed.describe().await.group_epoch);

        let mut twin = Consumer { instance: Some("one".into()), ..Consumer::new(&target, &group, &[&topic]).await };
        let refused = twin.say(twin.full()).await;
        assert_eq!(ErrorCode(refused.error_code), ErrorCode::UNRELEASED_INSTANCE_ID);
        let expected = format!(
            "Static member {} with instance id one cannot join the group because the instance id is owned by {} \
             member.",
            twin.id, fixed.id
        );
        assert_eq!(refused.error_message.as_deref(), Some(&*expected));
        let stranger = Request { member_epoch: 1, ..twin.brief() };
        assert_eq!(twin.error(stranger).await, "FENCED_INSTANCE_ID");
        let unknown = Request { member_epoch: 1, instance_id: Some("two".into()), ..twin.brief() };
        let answer = twin.say(unknown).await;
        assert_eq!(ErrorCode(answer.error_code), ErrorCode::UNKNOWN_MEMBER_ID);
        assert_eq!(answer.error_message.as_deref(), Some("Instance id two is unknown."));

        let away = Request { member_epoch: -2, ..fixed.brief() };
        let answer = fixed.wire.call(away, HEARTBEAT).await;
        assert_eq!((answer.error_code, answer.member_epoch), (0, -2));
        let described = fixed.describe().await;
        let of_fixed = described.members.iter().find(|member| member.member_id == fixed.id).expect("still in");
        assert_eq!((of_fixed.member_epoch, described.group_epoch), (-2, group_epoch));

        twin.join().await;
        assert_eq!((twin.epoch, &twin.assigned), (group_epoch, &share), "as if nothing had been");
        assert_eq!(twin.describe().await.group_epoch, group_epoch);
        assert_eq!(fixed.error(fixed.brief()).await, "FENCED_INSTANCE_ID");
        let leaves = Request { member_epoch: -1, ..fixed.brief() };
        assert_eq!(fixed.error(leaves).await, "FENCED_INSTANCE_ID");
    });
}

#[test]
fn new_partitions_and_topics_are_assigned() {
    run(async |target| {
        let (one, two) = (target.topic(1).await, target.topic(2).await);
        let mut member = Consumer::new(&target, &target.fresh("group"), &[&one]).await;
        member.join().await;
        member.settle(1).await;

        member.topics.push(two.name.clone());
        member.say(member.full()).await;
        member.settle(3).await;
        member.topics.remove(0);
        let told = member.say(member.full()).await;
        assert!(told.assignment.is_some(), "what is not subscribed to any more goes at once");
        assert_eq!(member.assigned.get(&one.id), None);
        member.settle(2).await;
    });
}

#[test]
fn topic_that_is_not_there_yet_is_assigned_when_it_comes() {
    run(async |target| {
        let topic = target.topic(1).await;
        let mut member = Consumer::new(&target, &target.fresh("group"), &[&topic]).await;
        let late = target.fresh("late");
        member.topics = vec![late.clone()];
        member.join().await;
        let epoch = first_epoch(&target).await;
        assert_eq!((member.epoch, member.size()), (epoch, 0));

        let made = krafka_protocol::api::create_topics::CreatableTopic {
            name: late,
            num_partitions: 2,
            replication_factor: 1,
            ..Default::default()
        };
        let request =
            krafka_protocol::CreateTopicsRequest { topics: vec![made], timeout_ms: 5_000, ..Default::default() };
        assert_eq!(target.connect().await.call(request, 5).await.topics[0].error_code, 0);

        member.settle(2).await;
        assert_eq!(member.epoch, epoch + 1);
    });
}

#[test]
fn uniform_is_balanced_and_sticky() {
    run(async |target| {
        let topic = target.topic(6).await;
        let group = target.fresh("group");
        let mut first = Consumer::new(&target, &group, &[&topic]).await;
        let mut second = Consumer::new(&target, &group, &[&topic]).await;
        let mut third = Consumer::new(&target, &group, &[&topic]).await;
        first.join().await;
        second.join().await;
        settle_all(&mut [&mut first, &mut second], &[3, 3]).await;
        let before = [first.assigned[&topic.id].clone(), second.assigned[&topic.id].clone()];

        third.join().await;
        settle_all(&mut [&mut first, &mut second, &mut third], &[2, 2, 2]).await;

        let after = [first.assigned[&topic.id].clone(), second.assigned[&topic.id].clone()];
        for (old, new) in before.iter().zip(&after) {
            assert!(new.iter().all(|partition| old.contains(partition)), "{old:?} became {new:?}");
        }
    });
}

#[test]
fn range_gives_the_same_numbers_of_all_topics() {
    run(async |target| {
        let (one, two) = (target.topic(3).await, target.topic(3).await);
        let group = target.fresh("group");
        let mut members = Vec::new();
        for name in ["a", "b"] {
            let mut member = Consumer::new(&target, &group, &[&one, &two]).await;
            member.id = target.fresh(name);
            let request = Request { server_assignor: Some("range".into()), ..member.full() };
            assert_eq!(member.error(request).await, "NONE");
            members.push(member);
        }
        let [first, second] = &mut members[..] else { unreachable!() };
        settle_all(&mut [first, second], &[2, 4]).await;

        assert_eq!(&*first.describe().await.assignor_name, "range");
        assert_eq!(first.assigned, [(one.id, vec![0, 1]), (two.id, vec![0, 1])].into());
        assert_eq!(second.assigned, [(one.id, vec![2]), (two.id, vec![2])].into());
    });
}

#[test]
fn group_is_described_with_what_its_members_hold_and_shall_hold() {
    run(async |target| {
        let topic = target.topic(2).await;
        let group = target.fresh("group");
        let mut member = Consumer { instance: Some("one".into()), ..Consumer::new(&target, &group, &[&topic]).await };
        let request = Request { rack_id: Some("rack".into()), ..member.full() };
        member.say(request).await;
        member.settle(2).await;

        let (described, epoch) = (member.describe().await, first_epoch(&target).await);

        assert_eq!((described.error_code, described.error_message.as_deref()), (0, None));
        assert_eq!(
            (&*described.group_state, described.group_epoch, described.assignment_epoch),
            ("Stable", epoch, epoch)
        );
        assert_eq!(&*described.assignor_name, "uniform");
        assert_eq!(described.authorized_operations & 0b1_0100_1000, 0b1_0100_1000);
        let of_it = &described.members[0];
        assert_eq!((&of_it.member_id, of_it.member_epoch), (&member.id, epoch));
        assert_eq!((of_it.instance_id.as_deref(), of_it.rack_id.as_deref()), (Some("one"), Some("rack")));
        assert_eq!((&*of_it.client_id, of_it.client_host.starts_with('/')), ("wire", true));
        assert_eq!(of_it.subscribed_topic_regex.as_deref(), Some(""));
        assert_eq!(of_it.subscribed_topic_names, std::slice::from_ref(&topic.name));
        for assignment in [&of_it.assignment, &of_it.target_assignment] {
            let listed = &assignment.topic_partitions[0];
            assert_eq!((listed.topic_id, &listed.topic_name, listed.partitions.len()), (topic.id, &topic.name, 2));
        }
        let mut listed = member.wire.call(ListGroupsRequest::default(), 5).await.groups.into_iter();
        let found = listed.find(|listed| listed.group_id == group).expect("in the list");
        assert_eq!(
            (&*found.protocol_type, &*found.group_state, &*found.group_type),
            ("consumer", "Stable", "consumer")
        );
    });
}

#[test]
fn nameless_group_cannot_be_described() {
    run(async |target| {
        let mut wire = target.connect().await;
        let request = ConsumerGroupDescribeRequest { group_ids: vec![Str::default()], ..Default::default() };
        target.differs_before(KafkaVersion::V4_0, "the coordinator trips: UNKNOWN_SERVER_ERROR").await;

        let described = wire.call(request, 0).await.groups.remove(0);

        assert_eq!(ErrorCode(described.error_code), ErrorCode::INVALID_GROUP_ID);
    });
}

#[test]
fn member_type_is_told_since_version_1() {
    run(async |target| {
        target.since(KafkaVersion::V4_0, "ConsumerGroupDescribe 1").await;
        let mut member = alone(&target, 1).await;
        let request = ConsumerGroupDescribeRequest { group_ids: vec![member.group.clone()], ..Default::default() };

        let described = member.wire.call(request, 1).await.groups.remove(0);

        assert_eq!((described.members[0].member_type, described.authorized_operations), (1, i32::MIN));
    });
}

#[test]
fn groups_of_another_kind_are_not_there() {
    run(async |target| {
        let mut new = alone(&target, 1).await;
        let group = target.fresh("group");
        let mut old = Member::new(&target, &group).await;
        old.join().await;
        old.sync(&[]).await;

        let missing = |group_id: &Str| ConsumerGroupDescribeRequest {
            group_ids: vec![group_id.clone()],
            ..ConsumerGroupDescribeRequest::default()
        };
        let described = old.wire.call(missing(&group), 0).await.groups.remove(0);
        assert_eq!(ErrorCode(described.error_code), ErrorCode::GROUP_ID_NOT_FOUND);
        let request = krafka_protocol::api::describe_groups::DescribeGroupsRequest {
            groups: vec![new.group.clone()],
            ..Default::default()
        };
        let described = new.wire.call(request, 5).await.groups.remove(0);
        assert_eq!((described.error_code, &*described.group_state), (0, "Dead"));
        let mut lost = Consumer::new(&target, &group, &[]).await;
        lost.epoch = 1;
        let answer = lost.say(lost.brief()).await;
        assert_eq!(ErrorCode(answer.error_code), ErrorCode::GROUP_ID_NOT_FOUND);
        assert_eq!(answer.error_message.as_deref(), Some(&*format!("Group {group} is not a consumer group.")));
    });
}

/// A classic group that nobody is in any more becomes one of KIP-848, and the other way round.
#[test]
fn empty_groups_change_over() {
    run(async |target| {
        let topic = target.topic(1).await;
        let group = target.fresh("group");
        let mut old = Member::consumer(&target, &group, &[&topic.name]).await;
        old.join().await;
        old.leave().await;

        let mut new = Consumer::new(&target, &group, &[&topic]).await;
        new.join().await;
        assert_eq!(&*new.state().await, "Stable");
        new.leave().await;

        let mut old = Member::consumer(&target, &group, &[&topic.name]).await;
        let refused = old.wire.call(old.join_request(), JOIN).await;
        assert_eq!(ErrorCode(refused.error_code), ErrorCode::MEMBER_ID_REQUIRED);
        assert!(refused.member_id.starts_with("wire-"), "a classic group's: {}", refused.member_id);
    });
}
