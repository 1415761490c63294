//! Topologies of streams groups: which are refused, over which Kafka trips, and what their members are told of topics
//! that are missing. FI-12g.
//!
//! Kafka trips where it says UNKNOWN_SERVER_ERROR without a word; what it looks at and finds wrong, it refuses with a
//! reason.

use std::time::Duration;

use krafka_fake_broker::KafkaVersion;
use krafka_protocol::api::streams_group_heartbeat::{
    CopartitionGroup, KeyValue, StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse, Subtopology, TaskIds,
    TopicInfo,
};
use krafka_protocol::{ErrorCode, Str};

use crate::share_dead_letters::configure;
use crate::streams_groups::{Member, describe, internal, part, statuses, topology};
use crate::target::{Target, run};

/// A member of a group of its own, that nobody is in.
async fn alone(target: &Target) -> Member {
    target.since(KafkaVersion::V4_4, "StreamsGroupHeartbeat 1").await;
    Member::new(target, &target.fresh("app"), "m1").await
}

/// The error, and the reason if there is one.
fn told(answer: &StreamsGroupHeartbeatResponse) -> (&'static str, Option<String>) {
    (ErrorCode(answer.error_code).name(), answer.error_message.as_ref().map(ToString::to_string))
}

/// What is said of a status of a group whose topology is not ready.
fn detail(answer: &StreamsGroupHeartbeatResponse, code: i8) -> Option<&str> {
    let told = answer.status.iter().flatten().find(|status| status.status_code == code);
    told.map(|status| &*status.status_detail)
}

fn named(names: &[&str]) -> Vec<TopicInfo> {
    names.iter().map(|&name| internal(&name.into(), 0)).collect()
}

fn config(key: &'static str, value: &'static str) -> KeyValue {
    KeyValue { key: key.into(), value: value.into() }
}

const INVALID: &str = "STREAMS_INVALID_TOPOLOGY";
const SOURCE_MISSING: i8 = 1;
const WRONG_COUNTS: i8 = 2;
const INTERNAL_MISSING: i8 = 3;

/// A topology that cannot be is refused, with the reason.
#[test]
fn topologies_that_make_no_sense_are_refused() {
    run(async |target| {
        let mut member = alone(&target).await;
        let topic = target.topic(1).await.name;
        let good = part("0", &[&topic]);
        let misnamed = Subtopology {
            repartition_sink_topics: vec!["s/k".into()],
            repartition_source_topics: named(&["r/p"]),
            state_changelog_topics: named(&["c/l"]),
            ..part("0", &[&"a/b".into(), &"a/b".into()])
        };
        let regex = Subtopology { source_topic_regex: vec!["a.*".into()], ..good.clone() };
        let nowhere = Subtopology { repartition_source_topics: named(&["between"]), ..good.clone() };
        let counted = Subtopology { state_changelog_topics: vec![internal(&"log".into(), 3)], ..good.clone() };
        let loops = Subtopology { repartition_sink_topics: vec!["between".into()], ..part("1", &[]) };
        let cases = [
            (
                vec![misnamed, part("1", &[&"d/e".into()])],
                INVALID,
                "Topic names a/b,s/k,r/p,c/l,d/e are not valid topic names.",
            ),
            (
                vec![part("0", &[&"a/b".into(), &"__transaction_state".into(), &"__consumer_offsets".into()])],
                INVALID,
                "Use of Kafka internal topics __transaction_state,__consumer_offsets in a Kafka Streams topology is \
                 prohibited.",
            ),
            (vec![regex], "INVALID_REQUEST", "Regular expressions for source topics are not supported yet."),
            (vec![counted], INVALID, "Changelog topic log must have an undefined partition count, but it is set to 3."),
            (
                vec![nowhere],
                INVALID,
                "Failed to compute number of partitions for all repartition topics, because a repartition source topic \
                 is never used as a sink topic.",
            ),
            (
                vec![good.clone(), loops],
                INVALID,
                "Failed to compute number of partitions for all repartition topics. There may be loops in the topology \
                 that cannot be resolved.",
            ),
            (vec![good, part("1", &[])], INVALID, "No source topics found for subtopology 1"),
        ];

        for (parts, code, reason) in cases {
            let answer = member.ask(member.joining(topology(0, parts))).await;
            assert_eq!(told(&answer), (code, Some(reason.to_owned())));
            assert_eq!(answer.status, Some(vec![]));
        }
    });
}

/// The same twice in one list, places that are not there and numbers below zero are more than Kafka looks at.
#[test]
fn kafka_trips_over_some_topologies() {
    run(async |target| {
        let mut member = alone(&target).await;
        let topic = target.topic(1).await.name;
        let good = part("0", &[&topic]);
        let log = |configs| TopicInfo { topic_configs: configs, ..internal(&"log".into(), 0) };
        let twice = vec![config("cleanup.policy", "compact"), config("cleanup.policy", "delete")];
        let group = |source_topics, repartition_source_topics| CopartitionGroup {
            source_topics,
            repartition_source_topics,
            ..CopartitionGroup::default()
        };
        let cases = [
            (0, vec![good.clone(), good.clone()]),
            (-1, vec![good.clone()]),
            (0, vec![Subtopology { state_changelog_topics: named(&["log", "log"]), ..good.clone() }]),
            (0, vec![Subtopology { state_changelog_topics: vec![log(twice)], ..good.clone() }]),
            (
                0,
                vec![Subtopology {
                    repartition_source_topics: vec![internal(&"a".into(), 4), internal(&"a".into(), 4)],
                    ..good.clone()
                }],
            ),
            (0, vec![Subtopology { repartition_source_topics: vec![internal(&"a".into(), -3)], ..good.clone() }]),
            (0, vec![Subtopology { copartition_groups: vec![group(vec![1], vec![])], ..good.clone() }]),
            (0, vec![Subtopology { copartition_groups: vec![group(vec![-1], vec![])], ..good.clone() }]),
            (0, vec![Subtopology { copartition_groups: vec![group(vec![], vec![0])], ..good.clone() }]),
        ];

        for (epoch, parts) in cases {
            let shown = format!("{parts:?}");
            let answer = member.ask(member.joining(topology(epoch, parts))).await;
            assert_eq!(told(&answer), ("UNKNOWN_SERVER_ERROR", None), "{shown}");
        }
        let client_tags = Some(vec![config("zone", "a"), config("zone", "b")]);
        let tagged = StreamsGroupHeartbeatRequest { client_tags, ..member.joining(topology(0, vec![good])) };
        assert_eq!(told(&member.ask(tagged).await), ("UNKNOWN_SERVER_ERROR", None));
        assert_eq!(told(&member.ask(member.heartbeat(1)).await).0, "GROUP_ID_NOT_FOUND", "nothing was taken up");
    });
}

/// What must be in a heartbeat is looked at in an order; blanks are nothing; tasks are told of all kinds or not at all.
#[test]
fn heartbeats_are_looked_at_in_an_order() {
    run(async |target| {
        let mut member = alone(&target).await;
        let topic = target.topic(1).await.name;
        let good = member.joining(topology(0, vec![part("0", &[&topic])]));
        let blank = || Str::from_static(" \t");
        let regex = Subtopology { source_topic_regex: vec!["a.*".into()], ..part("0", &[&topic]) };
        let nobody = StreamsGroupHeartbeatRequest { member_id: blank(), group_id: blank(), ..good.clone() };
        let cases = [
            (
                StreamsGroupHeartbeatRequest { topology: topology(0, vec![regex]), ..nobody.clone() },
                "Regular expressions for source topics are not supported yet.",
            ),
            (nobody, "MemberId can't be empty."),
            (StreamsGroupHeartbeatRequest { group_id: blank(), ..good.clone() }, "GroupId can't be empty."),
            (StreamsGroupHeartbeatRequest { instance_id: Some(blank()), ..good.clone() }, "InstanceId can't be empty."),
            (StreamsGroupHeartbeatRequest { rack_id: Some(blank()), ..good.clone() }, "RackId can't be empty."),
            (
                StreamsGroupHeartbeatRequest { active_tasks: None, topology: None, ..good.clone() },
                "ActiveTasks must be empty when (re-)joining.",
            ),
            (
                StreamsGroupHeartbeatRequest { active_tasks: Some(vec![]), ..member.heartbeat(1) },
                "If one task-type is non-null, all must be non-null.",
            ),
            (
                StreamsGroupHeartbeatRequest { member_epoch: -1, ..good },
                "Topology can only be provided when (re-)joining.",
            ),
        ];

        for (request, reason) in cases {
            let answer = member.ask(request).await;
            assert_eq!(told(&answer), ("INVALID_REQUEST", Some(reason.to_owned())));
        }
    });
}

/// A member names the lists of the topology in the order in which the first one did, or it has another topology. Who
/// describes the group sees them sorted.
#[test]
fn the_order_of_lists_is_part_of_a_topology() {
    run(async |target| {
        let mut member = alone(&target).await;
        let (a, b) = (target.topic(1).await.name, target.topic(1).await.name);
        let mut logs = vec![internal(&target.fresh("log"), 0), internal(&target.fresh("log"), 0)];
        logs[1].topic_configs = vec![config("segment.bytes", "1048576"), config("cleanup.policy", "compact")];
        logs.reverse();
        let both = Subtopology { state_changelog_topics: logs.clone(), ..part("1", &[&b, &a, &b]) };
        let turned = Subtopology { source_topics: vec![a.clone(), b.clone(), b.clone()], ..both.clone() };
        let first = || part("0", &[&a]);

        member.beat(member.joining(topology(0, vec![both.clone(), first()]))).await;
        let same = member.ask(member.joining(topology(0, vec![first(), both]))).await;
        let other = member.ask(member.joining(topology(0, vec![first(), turned]))).await;
        let described = describe(&mut member.wire, &member.group).await;

        assert_eq!(told(&same), ("NONE", None));
        assert_eq!(told(&other), ("INVALID_REQUEST", Some("Topology updates are not supported yet.".to_owned())));
        let shown = described.topology.and_then(|topology| topology.subtopologies).expect("a topology").remove(1);
        assert_eq!(shown.source_topics, [a, b.clone(), b]);
        let names: Vec<_> = shown.state_changelog_topics.iter().map(|topic| &topic.name).collect();
        assert_eq!(names, [&logs[1].name, &logs[0].name]);
        let keys: Vec<_> = shown.state_changelog_topics[1].topic_configs.iter().map(|config| &*config.key).collect();
        assert_eq!(keys, ["segment.bytes", "cleanup.policy"], "but for these");
    });
}

/// Numbers that follow from others are shown once all topics are there, and something was written of the group after
/// they were worked out.
#[test]
fn numbers_of_partitions_are_shown_when_the_group_changes() {
    run(async |target| {
        let mut member = alone(&target).await;
        let topic = target.topic(2).await.name;
        let log = target.topic(2).await.name;
        let part = Subtopology { state_changelog_topics: named(&[&log]), ..part("0", &[&topic]) };
        let count = async |member: &mut Member| {
            let shown = describe(&mut member.wire, &member.group).await.topology.and_then(|it| it.subtopologies);
            shown.expect("a topology")[0].state_changelog_topics[0].partitions
        };

        let again = topology(0, vec![part.clone()]);
        member.beat(member.joining(topology(0, vec![part]))).await;
        let first = count(&mut member).await;
        member.beat(member.heartbeat(member.epoch)).await;
        let second = count(&mut member).await;
        member.ask(StreamsGroupHeartbeatRequest { member_id: "m2".into(), ..member.joining(again) }).await;
        let third = count(&mut member).await;

        assert_eq!((first, second, third), (0, 0, 2));
    });
}

/// A loop that something flows into has a number of partitions, and so has one that only goes round in a part.
#[test]
fn loops_with_a_source_are_resolved() {
    run(async |target| {
        let mut member = alone(&target).await;
        let topic = target.topic(2).await.name;
        let (x, y) = (target.fresh("x"), target.fresh("y"));
        let first = Subtopology {
            repartition_source_topics: vec![internal(&x, 0)],
            repartition_sink_topics: vec![y.clone()],
            ..part("0", &[&topic])
        };
        let second = Subtopology {
            repartition_source_topics: vec![internal(&y, 0)],
            repartition_sink_topics: vec![x],
            ..part("1", &[])
        };

        let joined = member.beat(member.joining(topology(0, vec![first, second]))).await;

        assert_eq!(statuses(&joined), [5, INTERNAL_MISSING]);
    });
}

/// Of topics that have a number of partitions of their own, Kafka wants the same number in all of the application as
/// soon as some of them belong together.
#[test]
fn topics_with_numbers_of_their_own_must_agree() {
    run(async |target| {
        let mut member = alone(&target).await;
        let topic = target.topic(2).await.name;
        let together = CopartitionGroup { repartition_source_topics: vec![0, 1], ..CopartitionGroup::default() };
        let first = Subtopology {
            repartition_source_topics: vec![internal(&"five".into(), 5), internal(&"flows".into(), 0)],
            copartition_groups: vec![together],
            ..part("0", &[])
        };
        let second = Subtopology {
            repartition_source_topics: vec![internal(&"seven".into(), 7)],
            repartition_sink_topics: vec!["flows".into()],
            ..part("1", &[&topic])
        };

        let joined = member.beat(member.joining(topology(0, vec![first, second]))).await;

        let expected = "Following topics do not have the same number of partitions: [{five=5, flows=7}]";
        assert_eq!(detail(&joined, WRONG_COUNTS), Some(expected));
    });
}

/// A status names three topics: of those outside the first by name, of those inside the first of a Java hash table.
#[test]
fn of_many_missing_topics_three_are_named() {
    run(async |target| {
        let mut member = alone(&target).await;
        let mut other = Member::new(&target, &target.fresh("app"), "m1").await;
        let topic = target.topic(1).await.name;
        let missing: Vec<Str> = [4, 2, 1, 3].iter().map(|n| format!("never-there-{n}").into()).collect();
        let sources = Subtopology { source_topics: missing, ..part("0", &[]) };
        // They are never created, as one config is none.
        let mut logs = named(&["never-made-1", "never-made-2", "never-made-3", "never-made-4", "never-made-5"]);
        logs.iter_mut().for_each(|log| log.topic_configs = vec![config("no.such.config", "1")]);
        let logs = Subtopology { state_changelog_topics: logs, ..part("0", &[&topic]) };

        let sources = member.beat(member.joining(topology(0, vec![sources]))).await;
        let logs = other.beat(other.joining(topology(0, vec![logs]))).await;

        let expected = "Source topics never-there-1, never-there-2, never-there-3 and 1 additional topics are missing.";
        assert_eq!(detail(&sources, SOURCE_MISSING), Some(expected));
        let expected = "Internal topics are missing: never-made-5, never-made-3, never-made-4 and 2 additional topics";
        assert_eq!(detail(&logs, INTERNAL_MISSING), Some(expected));
    });
}

/// A topic inside the application that cannot be created is missing; from the next heartbeat on the reason is told.
#[test]
fn topics_that_cannot_be_created_are_told_with_the_reason() {
    run(async |target| {
        let mut member = alone(&target).await;
        let topic = target.topic(1).await.name;
        configure(&target, &member.group, &[("streams.initial.rebalance.delay.ms", "0")]).await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        let (log, other) = (target.fresh("log"), target.fresh("log"));
        let unknown = TopicInfo { topic_configs: vec![config("no.such.config", "1")], ..internal(&log, 0) };
        let none = TopicInfo { replication_factor: -5, ..internal(&other, 0) };
        let logs = Subtopology { state_changelog_topics: vec![unknown], ..part("0", &[&topic]) };
        let mut second = Member::new(&target, &target.fresh("app"), "m1").await;
        let copies = Subtopology { state_changelog_topics: vec![none], ..part("0", &[&topic]) };

        let first = member.beat(member.joining(topology(0, vec![logs]))).await;
        second.beat(second.joining(topology(0, vec![copies]))).await;
        tokio::time::sleep(Duration::from_millis(800)).await;
        let later = member.beat(member.heartbeat(member.epoch)).await;
        let copies = second.beat(second.heartbeat(second.epoch)).await;

        let missing = format!("Internal topics are missing: {log}");
        assert_eq!(detail(&first, INTERNAL_MISSING), Some(&*missing));
        let reason = format!("{missing}; Creation failed: {log} (Unknown topic config name: no.such.config).");
        assert_eq!(detail(&later, INTERNAL_MISSING), Some(&*reason));
        let reason = "Replication factor must be larger than 0, or -1 to use the default value.";
        let reason = format!("Internal topics are missing: {other}; Creation failed: {other} ({reason}).");
        assert_eq!(detail(&copies, INTERNAL_MISSING), Some(&*reason));
    });
}

/// There is always a list of statuses, be it an empty one.
#[test]
fn statuses_are_never_null() {
    run(async |target| {
        let mut member = alone(&target).await;
        let topic = target.topic(1).await.name;
        configure(&target, &member.group, &[("streams.initial.rebalance.delay.ms", "0")]).await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        let tasks = vec![TaskIds { subtopology_id: "9".into(), partitions: vec![0] }];

        let joined = member.beat(member.joining(topology(0, vec![part("0", &[&topic])]))).await;
        let stays = member.beat(member.heartbeat(member.epoch)).await;
        let refused = StreamsGroupHeartbeatRequest {
            active_tasks: Some(tasks),
            standby_tasks: Some(vec![]),
            warmup_tasks: Some(vec![]),
            ..member.heartbeat(member.epoch)
        };
        let refused = member.ask(refused).await;
        let left = member.ask(member.heartbeat(-1)).await;

        assert_eq!(
            told(&refused),
            ("INVALID_REQUEST", Some("Subtopology 9 does not exist in the topology.".to_owned()))
        );
        for answer in [joined, stays, refused, left] {
            assert_eq!(answer.status, Some(vec![]));
        }
    });
}
