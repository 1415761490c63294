//! Members of streams groups on their way: copies that they keep, endpoints that change, a shutdown, offsets. What
//! Kafka 4.4 was seen doing, heartbeat by heartbeat. FI-12g.

use std::time::Duration;

use krafka_fake_broker::KafkaVersion;
use krafka_protocol::api::offset_fetch::{OffsetFetchRequest, OffsetFetchRequestGroup};
use krafka_protocol::api::streams_group_heartbeat::{
    Endpoint, StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse, Subtopology, TaskIds, Topology,
};
use krafka_protocol::{ErrorCode, Str};

use crate::share_dead_letters::configure;
use crate::streams_groups::{Member, describe, internal, part, statuses, topology};
use crate::target::{Target, run};

/// A group without pauses, whose members keep so many copies of each other's states.
async fn group(target: &Target, copies: &str) -> Str {
    target.since(KafkaVersion::V4_4, "StreamsGroupHeartbeat 1").await;
    let group = target.fresh("app");
    let at_once = [("streams.initial.rebalance.delay.ms", "0"), ("streams.assignment.interval.ms", "0")];
    configure(target, &group, &at_once).await;
    configure(target, &group, &[("streams.num.standby.replicas", copies)]).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    group
}

/// A topology of one part, which reads a topic and keeps its states in another one.
async fn stateful(target: &Target, partitions: i32) -> Option<Topology> {
    let (reads, log) = (target.topic(partitions).await.name, target.topic(partitions).await.name);
    let part = Subtopology { state_changelog_topics: vec![internal(&log, 0)], ..part("0", &[&reads]) };
    topology(0, vec![part])
}

/// The partitions of the one part that a member works on, and keeps copies of, if it is told.
type Told = (Option<Vec<i32>>, Option<Vec<i32>>);

fn tasks(answer: &StreamsGroupHeartbeatResponse) -> Told {
    let flat = |told: &Option<Vec<TaskIds>>| -> Option<Vec<i32>> {
        let mut all: Vec<i32> = told.as_ref()?.iter().flat_map(|part| part.partitions.clone()).collect();
        all.sort_unstable();
        Some(all)
    };
    (flat(&answer.active_tasks), flat(&answer.standby_tasks))
}

/// A heartbeat that says what its member has.
fn having(member: &Member, active: &[i32], standby: &[i32]) -> StreamsGroupHeartbeatRequest {
    let ids = |partitions: &[i32]| {
        let all = TaskIds { subtopology_id: "0".into(), partitions: partitions.to_vec() };
        Some(if partitions.is_empty() { Vec::new() } else { vec![all] })
    };
    StreamsGroupHeartbeatRequest {
        active_tasks: ids(active),
        standby_tasks: ids(standby),
        warmup_tasks: Some(Vec::new()),
        ..member.heartbeat(member.epoch)
    }
}

/// Whoever gives up a task and shall keep a copy of it keeps the copy from then on, before it has said that it does not
/// work on it any more.
#[test]
fn what_is_given_up_is_kept_as_a_copy_at_once() {
    run(async |target| {
        let group = group(&target, "1").await;
        let reads = stateful(&target, 4).await;
        let mut first = Member::new(&target, &group, "m1").await;
        let mut second = Member::new(&target, &group, "m2").await;
        assert_eq!(tasks(&first.beat(first.joining(reads.clone())).await), (Some(vec![0, 1, 2, 3]), Some(vec![])));
        let epoch = first.epoch;

        let joined = second.beat(second.joining(reads)).await;
        let revoked = first.beat(having(&first, &[0, 1, 2, 3], &[])).await;
        let still = first.epoch;
        let quiet = first.beat(having(&first, &[0, 1], &[2, 3])).await;
        let taken = second.beat(having(&second, &[], &[0, 1])).await;

        assert_eq!(tasks(&joined), (Some(vec![]), Some(vec![0, 1])));
        assert_eq!((tasks(&revoked), still), ((Some(vec![0, 1]), Some(vec![2, 3])), epoch));
        assert_eq!((tasks(&quiet), first.epoch), ((None, None), epoch + 1));
        assert_eq!(tasks(&taken), (Some(vec![2, 3]), Some(vec![0, 1])));
    });
}

/// A copy that a member shall not keep has to be given up before anything else is told, as a task that it works on has.
#[test]
fn copies_are_given_up_as_tasks_are() {
    run(async |target| {
        let group = group(&target, "1").await;
        let reads = stateful(&target, 2).await;
        let mut first = Member::new(&target, &group, "m1").await;
        let mut second = Member::new(&target, &group, "m2").await;
        first.beat(first.joining(reads.clone())).await;
        second.beat(second.joining(reads)).await;
        first.beat(having(&first, &[0, 1], &[])).await;
        first.beat(having(&first, &[0], &[1])).await;
        assert_eq!(tasks(&second.beat(having(&second, &[], &[0])).await), (Some(vec![1]), Some(vec![0])));
        let epoch = second.epoch;

        configure(&target, &group, &[("streams.num.standby.replicas", "0")]).await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        let revoked = second.beat(having(&second, &[1], &[0])).await;
        let (told, still) = (tasks(&revoked), second.epoch);
        let insists = second.beat(having(&second, &[1], &[0])).await;
        let before = second.epoch;
        second.beat(having(&second, &[1], &[])).await;

        assert_eq!((told, still), ((Some(vec![1]), Some(vec![])), epoch));
        assert_eq!((tasks(&insists), before), ((None, None), epoch));
        assert_eq!(second.epoch, epoch + 1);
    });
}

/// A static member that is away for a while keeps the group from being stable.
#[test]
fn a_group_is_not_stable_without_its_static_member() {
    run(async |target| {
        let group = group(&target, "0").await;
        let reads = topology(0, vec![part("0", &[&target.topic(1).await.name])]);
        let mut member = Member::new(&target, &group, "m1").await;
        member.beat(named(member.joining(reads))).await;
        let stable = describe(&mut member.wire, &group).await.group_state;
        assert_eq!(member.ask(named(member.heartbeat(-2))).await.error_code, 0);
        let away = describe(&mut member.wire, &group).await.group_state;

        assert_eq!((&*stable, &*away), ("Stable", "Reconciling"));
    });
}

/// A request of the static member that the tests have.
fn named(request: StreamsGroupHeartbeatRequest) -> StreamsGroupHeartbeatRequest {
    StreamsGroupHeartbeatRequest { instance_id: Some("one".into()), ..request }
}

/// A static member does not join where it is, whatever else it says. Once it has left for a while it comes back, to the
/// tasks that it had.
#[test]
fn a_static_member_comes_back_only_after_it_has_left() {
    run(async |target| {
        let group = group(&target, "0").await;
        let reads = topology(0, vec![part("0", &[&target.topic(2).await.name])]);
        let other = reads.clone().map(|reads| Topology { epoch: 1, ..reads });
        let mut member = Member::new(&target, &group, "m1").await;
        let joined = member.beat(named(member.joining(reads.clone()))).await;

        for again in [reads.clone(), other] {
            let refused = member.ask(named(member.joining(again))).await;
            assert_eq!(ErrorCode(refused.error_code), ErrorCode::UNRELEASED_INSTANCE_ID);
            let words = "Static member m1 with instance id one cannot join the group because the instance id is owned \
                         by m1 member.";
            assert_eq!(refused.error_message.as_deref(), Some(words));
        }
        assert_eq!(member.ask(named(member.heartbeat(-2))).await.error_code, 0);
        let back = member.beat(named(member.joining(reads))).await;

        assert_eq!((tasks(&joined).0, tasks(&back).0), (Some(vec![0, 1]), Some(vec![0, 1])));
        assert_eq!(back.member_epoch, joined.member_epoch);
    });
}

/// What a static member was to give up, it has given up when it leaves for a while.
#[test]
fn a_static_member_that_leaves_holds_nothing_back() {
    run(async |target| {
        let group = group(&target, "0").await;
        let reads = topology(0, vec![part("0", &[&target.topic(4).await.name])]);
        let mut first = Member::new(&target, &group, "m1").await;
        let mut second = Member::new(&target, &group, "m2").await;
        first.beat(named(first.joining(reads.clone()))).await;
        let joined = second.beat(second.joining(reads)).await;
        let told = first.beat(named(having(&first, &[0, 1, 2, 3], &[]))).await;

        let waits = second.beat(having(&second, &[], &[])).await;
        assert_eq!(first.ask(named(first.heartbeat(-2))).await.error_code, 0);
        let gets = second.beat(having(&second, &[], &[])).await;

        assert_eq!((tasks(&joined).0, tasks(&told).0), (Some(vec![]), Some(vec![0, 1])));
        assert!(tasks(&waits).0.is_none_or(|waits| waits.is_empty()));
        assert_eq!(tasks(&gets).0, Some(vec![2, 3]));
    });
}

/// A member that has given up what it was to is an epoch further on, though there is more to give up by then.
#[test]
fn a_member_is_an_epoch_on_when_it_has_given_up_what_it_was_to() {
    run(async |target| {
        let group = group(&target, "0").await;
        let reads = topology(0, vec![part("0", &[&target.topic(6).await.name])]);
        let mut first = Member::new(&target, &group, "m1").await;
        let mut second = Member::new(&target, &group, "m2").await;
        let mut third = Member::new(&target, &group, "m3").await;
        first.beat(first.joining(reads.clone())).await;
        second.beat(second.joining(reads.clone())).await;
        let half = first.beat(first.heartbeat(first.epoch)).await;
        third.beat(third.joining(reads)).await;

        let third_part = first.beat(having(&first, &[0, 1, 2], &[])).await;

        assert_eq!((tasks(&half).0, tasks(&third_part).0), (Some(vec![0, 1, 2]), Some(vec![0, 1])));
        assert_eq!(third_part.member_epoch, half.member_epoch + 1);
    });
}

/// Another endpoint is news for all, whether or not tasks move.
#[test]
fn a_new_endpoint_is_told_to_all() {
    run(async |target| {
        let group = group(&target, "0").await;
        let reads = topology(0, vec![part("0", &[&target.topic(1).await.name])]);
        let mut member = Member::new(&target, &group, "m1").await;
        let at = |port| Some(Endpoint { host: "host".into(), port });

        let joined = member.beat(member.joining(reads)).await;
        let opened = StreamsGroupHeartbeatRequest { user_endpoint: at(7), ..member.heartbeat(member.epoch) };
        let opened = member.beat(opened).await;
        let again = StreamsGroupHeartbeatRequest { user_endpoint: at(7), ..member.heartbeat(member.epoch) };
        let again = member.beat(again).await;

        assert_eq!((joined.endpoint_information_epoch, joined.partitions_by_user_endpoint), (0, None));
        let told = opened.partitions_by_user_endpoint.expect("it is news");
        assert_eq!((opened.endpoint_information_epoch, told[0].user_endpoint.port), (1, 7));
        assert_eq!(again.endpoint_information_epoch, 1);
    });
}

const SHUTDOWN: i8 = 4;

/// Who is the first to ask for a shutdown is named to all, also when it has left, until the group is empty.
#[test]
fn a_shutdown_lasts_until_all_have_left() {
    run(async |target| {
        let group = group(&target, "0").await;
        let reads = topology(0, vec![part("0", &[&target.topic(1).await.name])]);
        let mut first = Member::new(&target, &group, "m1").await;
        let mut second = Member::new(&target, &group, "m2").await;
        let mut third = Member::new(&target, &group, "m3").await;
        for member in [&mut first, &mut second, &mut third] {
            member.beat(member.joining(reads.clone())).await;
        }
        let asks = |request| StreamsGroupHeartbeatRequest { shutdown_application: true, ..request };
        let named = |answer: &StreamsGroupHeartbeatResponse| {
            let told = answer.status.iter().flatten().find(|status| status.status_code == SHUTDOWN);
            told.map(|status| status.status_detail.split(' ').nth(3).unwrap_or_default().to_owned())
        };

        first.ask(asks(first.heartbeat(-1))).await;
        second.beat(asks(second.heartbeat(second.epoch))).await;
        let others = third.beat(third.heartbeat(third.epoch)).await;
        second.ask(second.heartbeat(-1)).await;
        third.ask(third.heartbeat(-1)).await;
        let anew = first.beat(first.joining(reads)).await;

        assert_eq!(named(&others).as_deref(), Some("m1"));
        assert!(statuses(&anew).is_empty());
    });
}

/// Offsets are told to members at their epoch, and to whoever says that it is none.
#[test]
fn offsets_are_told_to_members_at_their_epoch() {
    run(async |target| {
        let group = group(&target, "0").await;
        let reads = topology(0, vec![part("0", &[&target.topic(1).await.name])]);
        let mut member = Member::new(&target, &group, "m1").await;
        member.beat(member.joining(reads)).await;
        let ask = |member_id: Option<&'static str>, member_epoch| {
            let member_id = member_id.map(Str::from_static);
            let asked = OffsetFetchRequestGroup { group_id: group.clone(), member_id, member_epoch, topics: None };
            OffsetFetchRequest { groups: vec![asked], ..OffsetFetchRequest::default() }
        };
        let cases = [
            (Some("m1"), member.epoch, "NONE"),
            (Some("m1"), member.epoch - 1, "STALE_MEMBER_EPOCH"),
            (Some("m9"), member.epoch, "UNKNOWN_MEMBER_ID"),
            (None, -1, "NONE"),
            (None, 3, "UNKNOWN_SERVER_ERROR"),
        ];

        for (id, epoch, expected) in cases {
            let answer = member.wire.call(ask(id, epoch), 9).await.groups.remove(0);
            assert_eq!(ErrorCode(answer.error_code).name(), expected, "{id:?} {epoch}");
        }
    });
}
