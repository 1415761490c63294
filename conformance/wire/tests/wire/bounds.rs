//! What a broker's file bounds: how long a connection may be idle, how large requests and answers are, how many
//! members groups have, how long tokens live; and which protocols and assignors there are. A real cluster must have
//! been started with [`SETTINGS`], and `KRAFKA_BOUNDS` name it.

use std::time::Duration;

use krafka_fake_broker::{FakeCluster, KafkaVersion};
use krafka_protocol::Str;
use krafka_protocol::api::consumer_group_heartbeat::ConsumerGroupHeartbeatRequest;
use krafka_protocol::api::create_delegation_token::CreateDelegationTokenRequest;
use krafka_protocol::api::describe_topic_partitions::{DescribeTopicPartitionsRequest, TopicRequest};
use krafka_protocol::api::fetch::FetchRequest;
use krafka_protocol::api::metadata::{MetadataRequest, MetadataRequestTopic};
use krafka_protocol::api::share_group_heartbeat::ShareGroupHeartbeatRequest;
use tokio::time::{sleep, timeout};

use crate::consumer::Consumer;
use crate::logins::plain;
use crate::records::{batch, error, fetch_request, only, written};
use crate::streams_groups;
use crate::target::{BOOTSTRAP_BRISK, Target, Wire, on_fake_as_asked, run_on};
use crate::telemetry::{get, push, pushed, subscribe, unsubscribe};

/// What all brokers are told here. `conformance/agreements` says the same to real ones.
const SETTINGS: [(&str, &str); 11] = [
    ("connections.max.idle.ms", "5000"),
    ("delegation.token.expiry.time.ms", "60000"),
    ("delegation.token.max.lifetime.ms", "3600000"),
    ("fetch.max.bytes", "2048"),
    ("group.consumer.assignors", "org.apache.kafka.coordinator.group.assignor.RangeAssignor"),
    ("group.coordinator.rebalance.protocols", "classic,consumer"),
    ("group.share.max.size", "10"),
    ("max.request.partition.size.limit", "3"),
    ("sasl.server.max.receive.size", "2000"),
    ("socket.request.max.bytes", "50000"),
    ("telemetry.max.bytes", "100"),
];

fn run(test: impl AsyncFnOnce(Target)) {
    run_at("KRAFKA_BOUNDS", test);
}

/// Runs a test at the listener that a variable names, or at that of a fake.
fn run_at(variable: &str, test: impl AsyncFnOnce(Target)) {
    match Target::named_by(variable) {
        Some(target) => run_on(target, test),
        None => {
            let mut builder = FakeCluster::builder().property("delegation.token.secret.key", "secret").expect("legal");
            for (name, value) in SETTINGS {
                builder = builder.property(name, value).expect("a setting of Kafka");
            }
            if variable == "KRAFKA_REAUTH" {
                builder = builder.user("alice", "alice-secret");
            }
            on_fake_as_asked(builder, async |target, _| test(target).await);
        }
    }
}

async fn ask(wire: &mut Wire) {
    let request = MetadataRequest { topics: Some(Vec::new()), ..MetadataRequest::default() };
    assert_eq!(wire.call(request, 12).await.brokers.len(), 1);
}

/// CB-12. One that is used now and then stays.
#[test]
fn idle_connections_are_closed() {
    run(async |target| {
        let (mut idle, mut used) = (target.connect().await, target.connect().await);
        ask(&mut idle).await;

        for _ in 0..4 {
            ask(&mut used).await;
            sleep(Duration::from_secs(2)).await;
        }

        let end = timeout(Duration::from_secs(1), idle.frame()).await;
        assert_eq!(end.expect("it was closed long ago"), None);
        ask(&mut used).await;
    });
}

#[test]
fn answers_to_fetch_are_bounded() {
    run(async |target| {
        let topic = target.topic(1).await;
        let mut wire = target.connect().await;
        for _ in 0..10 {
            written(&mut wire, &topic, batch(&["x".repeat(400).as_str()])).await;
        }

        let request = FetchRequest { max_bytes: i32::MAX, ..fetch_request(&topic, 0) };
        let data = only(wire.call(request, 17).await);

        let bytes = data.records.map_or(0, |records| records.len());
        assert!((1_400..=2_048).contains(&bytes), "{bytes} bytes");
    });
}

/// What is larger ends the connection, and is not answered.
#[test]
fn requests_are_bounded() {
    run(async |target| {
        let topic = target.topic(1).await;
        let mut wire = target.connect().await;
        written(&mut wire, &topic, batch(&["x".repeat(40_000).as_str()])).await;

        wire.send_raw(&50_001_i32.to_be_bytes()).await;
        // It may have been closed before all of it is written.
        let _ = wire.try_send(MetadataRequest::default(), 12).await;

        assert!(wire.is_closed().await);
    });
}

/// Who has not logged in is believed less. A real broker has other bytes for that than for the rest, too.
#[test]
fn requests_before_the_login_are_bounded() {
    run_at("KRAFKA_REAUTH", async |target| {
        let (mut stranger, mut alice) = (target.connect().await, target.connect().await);
        assert_eq!(plain(&mut alice, "alice", "alice-secret").await.error_code, 0);
        let names =
            (0..100).map(|n| MetadataRequestTopic { name: Some(format!("{n:0>30}").into()), ..Default::default() });
        let large = MetadataRequest { topics: Some(names.collect()), ..MetadataRequest::default() };
        assert_eq!(alice.call(large, 12).await.topics.len(), 100);

        stranger.send_raw(&2_001_i32.to_be_bytes()).await;
        let _ = stranger.try_send(MetadataRequest::default(), 12).await;

        assert!(stranger.is_closed().await);
    });
}

#[test]
fn pushes_of_metrics_are_bounded() {
    run(async |target| {
        let mut wire = target.connect().await;
        let (name, instance) = subscribe(&target, &mut wire).await;
        let told = get(&mut wire, instance).await;
        assert_eq!(told.telemetry_max_bytes, 100);
        let mut wire = target.connect().await;

        let refused = pushed(&mut wire, push(instance, told.subscription_id, &[0; 101])).await;

        assert_eq!(refused, "TELEMETRY_TOO_LARGE");
        unsubscribe(&mut wire, &name).await;
    });
}

#[test]
fn assignors_are_those_of_the_file() {
    run(async |target| {
        let topic = target.topic(1).await;
        let mut member = Consumer::new(&target, &target.fresh("group"), &[&topic]).await;
        let request = ConsumerGroupHeartbeatRequest { server_assignor: Some("uniform".into()), ..member.full() };

        let answer = member.say(request).await;

        assert_eq!(error(answer.error_code), "UNSUPPORTED_ASSIGNOR");
        let words = answer.error_message.as_deref();
        assert_eq!(words, Some("ServerAssignor uniform is not supported. Supported assignors: range."));
        member.join().await;
        assert_eq!(&*member.describe().await.assignor_name, "range", "the first is the default");
    });
}

#[test]
fn protocols_are_those_of_the_file() {
    run(async |target| {
        target.since(KafkaVersion::V4_1, "there are no streams groups").await;
        let group = target.fresh("group");
        let mut member = streams_groups::Member::new(&target, &group, "a").await;

        let answer = member.ask(member.joining(None)).await;

        assert_eq!(error(answer.error_code), "UNSUPPORTED_VERSION");
        let described = streams_groups::describe(&mut member.wire, &group).await;
        assert_eq!(error(described.error_code), "UNSUPPORTED_VERSION");
    });
}

#[test]
fn share_groups_have_as_many_members_as_the_file_says() {
    run(async |target| {
        target.since(KafkaVersion::V4_1, "there are no share groups").await;
        let (topic, group) = (target.topic(1).await, target.fresh("group"));
        let mut wire = target.coordinator(&group).await;
        let mut say = async |member: &str, member_epoch| {
            let request = ShareGroupHeartbeatRequest {
                group_id: group.clone(),
                member_id: member.into(),
                member_epoch,
                rack_id: None,
                subscribed_topic_names: Some(vec![topic.name.clone()]),
            };
            wire.call(request, 1).await
        };
        for member in ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"] {
            assert_eq!(error(say(member, 0).await.error_code), "NONE");
        }

        let answer = say("k", 0).await;

        assert_eq!(error(answer.error_code), "GROUP_MAX_SIZE_REACHED");
        let words = answer.error_message.as_deref();
        assert_eq!(words, Some("The share group has reached its maximum capacity of 10 members."));
        assert_eq!(error(say("a", 0).await.error_code), "NONE", "who is in may come again");
        assert_eq!(error(say("b", -1).await.error_code), "NONE");
        assert_eq!(error(say("k", 0).await.error_code), "NONE");
    });
}

#[test]
fn descriptions_of_partitions_are_bounded() {
    run(async |target| {
        let topic = target.topic(5).await;
        let request = DescribeTopicPartitionsRequest {
            topics: vec![TopicRequest { name: topic.name.clone() }],
            response_partition_limit: 2_000,
            cursor: None,
        };

        let answer = target.connect().await.call(request, 0).await;

        assert_eq!(answer.topics[0].partitions.len(), 3);
        assert_eq!(answer.next_cursor.map(|cursor| cursor.partition_index), Some(3));
    });
}

/// How long a token lives, and until when it is to be renewed.
#[test]
fn tokens_live_as_long_as_the_file_says() {
    run_at("KRAFKA_REAUTH", async |target| {
        let mut wire = target.connect().await;
        assert_eq!(plain(&mut wire, "alice", "alice-secret").await.error_code, 0);
        let request = CreateDelegationTokenRequest {
            owner_principal_type: None,
            owner_principal_name: None::<Str>,
            renewers: vec![],
            max_lifetime_ms: -1,
        };

        let made = wire.call(request, 3).await;

        assert_eq!(error(made.error_code), "NONE");
        assert_eq!(made.expiry_timestamp_ms - made.issue_timestamp_ms, 60_000);
        assert_eq!(made.max_timestamp_ms - made.issue_timestamp_ms, 3_600_000);
    });
}

#[test]
fn streams_groups_have_as_many_members_as_the_file_says() {
    let test = async |target: Target| {
        target.since(KafkaVersion::V4_1, "there are no streams groups").await;
        let (topic, group) = (target.topic(1).await, target.fresh("group"));
        let topology = || streams_groups::topology(0, vec![streams_groups::part("0", &[&topic.name])]);
        let mut first = streams_groups::Member::new(&target, &group, "a").await;
        first.beat(first.joining(topology())).await;
        let mut second = streams_groups::Member::new(&target, &group, "b").await;

        let answer = second.ask(second.joining(topology())).await;

        assert_eq!(error(answer.error_code), "GROUP_MAX_SIZE_REACHED");
        let words = answer.error_message.as_deref();
        assert_eq!(words, Some("The streams group has reached its maximum capacity of 1 members."));
        first.beat(first.joining(topology())).await;
    };
    match Target::named_by(BOOTSTRAP_BRISK) {
        Some(target) => run_on(target, test),
        None => {
            let builder = FakeCluster::builder().property("group.streams.max.size", "1").expect("a setting of Kafka");
            on_fake_as_asked(builder, async |target, _| test(target).await);
        }
    }
}

/// Fake only: a real cluster is one for all tests, and those beside this one would be shut out.
#[test]
fn connections_of_one_address_are_bounded() {
    let builder = FakeCluster::builder().property("max.connections.per.ip", "2").expect("a setting of Kafka");
    on_fake_as_asked(builder, async |target, fake| {
        let (mut first, mut second) = (target.connect().await, target.connect().await);
        ask(&mut first).await;
        ask(&mut second).await;

        let refused = fake.pipes().connect("broker-1", 9092).await.expect_err("there is no room");
        assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused, "a pipe that is closed at once");

        drop(second);
        sleep(Duration::from_millis(100)).await;
        ask(&mut target.connect().await).await;
        ask(&mut first).await;
    });
}
