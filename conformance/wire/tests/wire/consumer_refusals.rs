//! Heartbeats of KIP-848 that make no sense, and who refuses them.

use krafka_fake_broker::KafkaVersion;
use krafka_protocol::api::consumer_group_heartbeat::{ConsumerGroupHeartbeatRequest, TopicPartitions};
use krafka_protocol::{ErrorCode, HeartbeatRequest, Str};

use crate::consumer::{Consumer, HEARTBEAT};
use crate::java::partition_for;
use crate::target::{Target, run, run_on_three};

type Request = ConsumerGroupHeartbeatRequest;

/// The name of a group on the first partition of `__consumer_offsets`, as the empty name is: there are fifty
/// partitions, or five.
fn on_partition_0(target: &Target) -> Str {
    let mut names = std::iter::repeat_with(|| target.fresh("group"));
    names.find(|name| partition_for(name, 50) == 0).expect("one in fifty")
}

#[test]
fn heartbeats_that_make_no_sense_are_refused() {
    run(async |target| {
        let topic = target.topic(1).await;
        // Its coordinator is also that of the group without a name.
        let mut member = Consumer::new(&target, &on_partition_0(&target), &[&topic]).await;
        let full = member.full();
        let foreign = TopicPartitions { topic_id: topic.id, partitions: vec![0] };
        let table = [
            (Request { group_id: Str::default(), ..full.clone() }, "INVALID_REQUEST", "GroupId can't be empty."),
            (
                Request { instance_id: Some(Str::default()), ..full.clone() },
                "INVALID_REQUEST",
                "InstanceId can't be empty.",
            ),
            (Request { rack_id: Some(Str::default()), ..full.clone() }, "INVALID_REQUEST", "RackId can't be empty."),
            (
                Request { rebalance_timeout_ms: -1, ..full.clone() },
                "INVALID_REQUEST",
                "RebalanceTimeoutMs must be provided in first request.",
            ),
            (
                Request { topic_partitions: None, ..full.clone() },
                "INVALID_REQUEST",
                "TopicPartitions must be empty when (re-)joining.",
            ),
            (
                Request { topic_partitions: Some(vec![foreign]), ..full.clone() },
                "INVALID_REQUEST",
                "TopicPartitions must be empty when (re-)joining.",
            ),
            (Request { member_epoch: -3, ..full.clone() }, "INVALID_REQUEST", "MemberEpoch is invalid."),
            (Request { member_epoch: -2, ..full.clone() }, "INVALID_REQUEST", "InstanceId can't be null."),
            (
                Request { member_epoch: 1, member_id: Str::default(), ..full.clone() },
                "INVALID_REQUEST",
                "MemberId can't be empty.",
            ),
        ];
        for (request, error, message) in table {
            let answer = member.wire.call(request, HEARTBEAT).await;
            assert_eq!((ErrorCode(answer.error_code).name(), answer.error_message.as_deref()), (error, Some(message)));
            assert_eq!((answer.member_id, answer.member_epoch, answer.heartbeat_interval_ms), (None, 0, 0));
        }
    });
}

/// In version 0 a member is without an id until it is in the group. From a member without one that is in it, Kafka
/// hears of that first, and 3.9 hears of it last.
#[test]
fn member_without_an_id_is_refused_where_it_needs_one() {
    run(async |target| {
        let is_old = target.version().await < KafkaVersion::V4_0;
        let mut member = Consumer::new(&target, &on_partition_0(&target), &[]).await;
        let nobody = Request { member_id: Str::default(), ..member.full() };
        let empty = Some(Str::default());
        let nameless = "MemberId can't be empty.";
        for (epoch, alone) in [
            (1, nameless),
            (-1, nameless),
            (-2, if is_old { nameless } else { "InstanceId can't be null." }),
            (-3, "MemberEpoch is invalid."),
        ] {
            for (request, beside) in [
                (nobody.clone(), alone),
                (Request { group_id: Str::default(), ..nobody.clone() }, "GroupId can't be empty."),
                (Request { instance_id: empty.clone(), ..nobody.clone() }, "InstanceId can't be empty."),
                (Request { rack_id: empty.clone(), ..nobody.clone() }, "RackId can't be empty."),
            ] {
                let answer = member.wire.call(Request { member_epoch: epoch, ..request }, HEARTBEAT).await;
                let first = if epoch >= -1 && !is_old { nameless } else { beside };
                assert_eq!(answer.error_message.as_deref(), Some(first), "{epoch}");
            }
        }
    });
}

/// What makes no sense is refused by any node since 4.1; before, only the coordinator looks at a heartbeat.
#[test]
fn heartbeats_that_make_no_sense_are_refused_before_they_are_sent_elsewhere() {
    run_on_three(async |target| {
        let group = target.fresh("group");
        let mut member = Consumer::new(&target, &group, &[]).await;
        let mut elsewhere = Vec::new();
        for node in 1..=3 {
            let mut wire = target.node(node).await;
            let heartbeat = HeartbeatRequest { group_id: group.clone(), ..HeartbeatRequest::default() };
            if ErrorCode(wire.call(heartbeat, 4).await.error_code) == ErrorCode::NOT_COORDINATOR {
                elsewhere.push(wire);
            }
        }
        assert_eq!(elsewhere.len(), 2);
        let sound = member.full();
        let senseless = Request { rack_id: Some(Str::default()), ..sound.clone() };
        let nameless = Request { group_id: Str::default(), ..sound.clone() };
        let first = if target.version().await >= KafkaVersion::V4_1 { "INVALID_REQUEST" } else { "NOT_COORDINATOR" };

        for wire in &mut elsewhere {
            let mut error = async |request: Request| ErrorCode(wire.call(request, HEARTBEAT).await.error_code).name();
            assert_eq!(error(sound.clone()).await, "NOT_COORDINATOR");
            assert_eq!(error(senseless.clone()).await, first);
        }
        let mut errors = Vec::new();
        for node in 1..=3 {
            errors.push(ErrorCode(target.node(node).await.call(nameless.clone(), HEARTBEAT).await.error_code).name());
        }
        errors.sort_unstable();
        assert_eq!(errors, ["INVALID_REQUEST", first, first], "a group without a name has a coordinator, too");
        assert_eq!(member.error(senseless).await, "INVALID_REQUEST");
    });
}
