//! Faults of the network between clients and nodes: late, narrow, lossy, cut one way or both, and what a client is not
//! told. Only the fake has them.

use std::time::Duration;

use krafka_fake_broker::{FakeCluster, Towards};
use krafka_protocol::api::fetch::{FetchPartition, FetchRequest, FetchTopic};
use krafka_protocol::api::metadata::MetadataRequest;
use krafka_protocol::api::produce::{PartitionProduceData, ProduceRequest, TopicProduceData};
use krafka_protocol::{ApiKey, Bytes, ErrorCode, MetadataResponse};
use tokio::time::Instant;

use crate::producers::batch;
use crate::target::{Target, Wire, on_fake};

const TOPIC: &str = "orders";
const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

fn run(test: impl AsyncFnOnce(Target, FakeCluster)) {
    on_fake(FakeCluster::builder().nodes(3).topic(TOPIC, 1), test);
}

fn ask() -> MetadataRequest {
    MetadataRequest { topics: Some(Vec::new()), ..MetadataRequest::default() }
}

async fn metadata(wire: &mut Wire) -> MetadataResponse {
    wire.call(ask(), 13).await
}

fn produce(sequence: i32) -> ProduceRequest {
    let partition = PartitionProduceData { index: 0, records: Some(batch(7, 0, sequence, 1)) };
    let topic = TopicProduceData { name: TOPIC.into(), partition_data: vec![partition], ..TopicProduceData::default() };
    ProduceRequest { acks: 1, timeout_ms: 1_000, topic_data: vec![topic], ..ProduceRequest::default() }
}

async fn written(wire: &mut Wire) -> &'static str {
    let answer = wire.receive::<ProduceRequest>(9).await;
    ErrorCode(answer.responses[0].partition_responses[0].error_code).name()
}

#[expect(clippy::disallowed_methods, reason = "the time that passes is what the tests are about")]
fn now() -> Instant {
    Instant::now()
}

/// NET-07: what is on its way does not wait for what is before it to be answered.
#[test]
fn latency_is_paid_once_by_requests_that_are_sent_together() {
    run(async |target, fake| {
        let mut wire = target.node(1).await;
        let slow = fake.when_network().on(1).latency(100 * MS, Duration::ZERO);
        let start = now();

        for _ in 0..5 {
            wire.send(ask(), 13).await;
        }
        for _ in 0..5 {
            wire.receive::<MetadataRequest>(13).await;
        }

        let took = start.elapsed();
        assert!((200 * MS..260 * MS).contains(&took), "there and back: {took:?}");
        assert_eq!(slow.hits(), 10, "each request, and each answer");
        let start = now();
        metadata(&mut target.node(2).await).await;
        assert!(start.elapsed() < 10 * MS, "another node's link");
    });
}

/// NET-07: jitter never lets an answer overtake another.
#[test]
fn jitter_keeps_the_order() {
    run(async |target, fake| {
        let mut wire = target.node(1).await;
        fake.when_network().towards(Towards::Peer).latency(50 * MS, 50 * MS);

        for sequence in 0..20 {
            wire.send(produce(sequence), 9).await;
        }
        let mut times = Vec::new();
        for _ in 0..20 {
            assert_eq!(written(&mut wire).await, "NONE");
            times.push(now());
        }

        assert!(times.windows(2).any(|pair| pair[0] < pair[1]), "it varies");
        assert_eq!(fake.high_watermark(TOPIC, 0), Some(20));
    });
}

/// NET-18: an answer comes piece by piece, and another connection is not held up.
#[test]
fn bandwidth_spreads_an_answer_over_time() {
    run(async |target, fake| {
        let mut wire = target.node(1).await;
        wire.send(ask(), 13).await;
        let size = wire.frame().await.expect("an answer").len() as u64 + 4;
        fake.when_network().on(1).towards(Towards::Peer).client_id("wire").bandwidth(size);
        let start = now();

        wire.send(ask(), 13).await;
        wire.byte().await.expect("the first byte comes early");
        assert!(start.elapsed() < 100 * MS, "{:?}", start.elapsed());
        for _ in 1..size {
            wire.byte().await.expect("the rest");
        }

        let took = start.elapsed();
        assert!((950 * MS..1_100 * MS).contains(&took), "as many bytes as pass in a second: {took:?}");
    });
}

/// NET-08: TCP hides the loss; it shows as time.
#[test]
fn lost_packets_come_late_and_never_not_at_all() {
    run(async |target, fake| {
        let mut wire = target.node(1).await;
        let lossy = fake.when_network().lose(0.2);
        let start = now();

        for _ in 0..100 {
            metadata(&mut wire).await;
        }

        let took = start.elapsed();
        assert_eq!(lossy.hits(), 200);
        assert!((4 * SECOND..30 * SECOND).contains(&took), "a fifth of 200 frames, 200 ms or more each: {took:?}");
        lossy.remove();
        let start = now();
        metadata(&mut wire).await;
        assert!(start.elapsed() < 10 * MS);
    });
}

/// NET-02: the request arrives and has its effect, and the answer does not come until the link is whole again.
#[test]
fn answers_are_held_while_requests_arrive() {
    run(async |target, fake| {
        let mut wire = target.node(1).await;
        let cut = fake.when_network().on(1).towards(Towards::Peer).cut_off();

        wire.send(produce(0), 9).await;
        assert!(wire.is_quiet().await);
        assert_eq!((fake.high_watermark(TOPIC, 0), cut.hits()), (Some(1), 1));

        cut.remove();
        assert_eq!(written(&mut wire).await, "NONE");
        wire.send(produce(1), 9).await;
        assert_eq!(written(&mut wire).await, "NONE");
    });
}

/// NET-03: answers to what was asked before still come, and new requests do not arrive.
#[test]
fn requests_are_held_while_answers_come() {
    run(async |target, fake| {
        let mut wire = target.node(1).await;
        fake.when(ApiKey::Produce).after_handling().delay(SECOND);
        wire.send(produce(0), 9).await;
        tokio::time::sleep(MS).await;
        let cut = fake.when_network().on(1).towards(Towards::Node).until(10 * SECOND).cut_off();

        assert_eq!(written(&mut wire).await, "NONE");
        wire.send(produce(1), 9).await;
        assert!(wire.is_quiet().await);
        assert_eq!(fake.high_watermark(TOPIC, 0), Some(1));

        // The rule's own time is over without anybody doing anything.
        assert_eq!(written(&mut wire).await, "NONE");
        assert_eq!((fake.high_watermark(TOPIC, 0), cut.hits()), (Some(2), 1));
    });
}

/// NET-01, NET-15: nobody can connect across a cut link, in either direction, and who waits gets through in the end.
#[test]
fn connects_wait_while_the_link_is_cut() {
    for towards in [Towards::Node, Towards::Peer] {
        run(async |target, fake| {
            let cut = fake.when_network().on(2).towards(towards).cut_off();
            assert!(tokio::time::timeout(60 * SECOND, target.node(2)).await.is_err());
            metadata(&mut target.node(1).await).await;

            let (connected, ()) = tokio::join!(tokio::time::timeout(60 * SECOND, target.node(2)), async {
                tokio::time::sleep(SECOND).await;
                cut.remove();
            });
            metadata(&mut connected.expect("it is let through")).await;
        });
    }
}

/// NET-10: the power of a node fails while the cable is out: its clients are not told until they could be.
#[test]
fn end_of_a_connection_does_not_pass_a_cut_link() {
    run(async |target, fake| {
        let mut wire = target.node(1).await;
        metadata(&mut wire).await;
        let cut = fake.when_network().on(1).cut_off();

        fake.crash(1);
        assert!(wire.is_quiet().await);

        cut.remove();
        assert!(wire.is_closed().await);
    });
}

/// NET-01: nor does the client's end: the node keeps what it has of the client.
#[test]
fn node_is_not_told_that_its_client_is_gone() {
    run(async |target, fake| {
        let wire = target.node(1).await;
        let cut = fake.when_network().on(1).towards(Towards::Node).cut_off();

        drop(wire);
        tokio::time::sleep(SECOND).await;
        assert_eq!(fake.connections(1), 1);

        cut.remove();
        fake.wait_for("end", |fake| (fake.connections(1) == 0).then_some(())).await;
    });
}

/// A node works for a client whose answers do not get through only until what sockets hold is full.
#[test]
fn answers_that_cannot_be_sent_stop_the_connection() {
    run(async |target, fake| {
        let mut wire = target.node(1).await;
        let large = Bytes::from(vec![b'x'; 600 * 1024]);
        fake.append(TOPIC, 0, None, Some(&large));
        let cut = fake.when_network().towards(Towards::Peer).cut_off();
        let fetches = fake.when(ApiKey::Fetch).observe();

        for _ in 0..6 {
            wire.send(fetch(), 12).await;
        }
        tokio::time::sleep(SECOND).await;
        assert_eq!(fetches.hits(), 2, "two answers are more than a mebibyte");

        cut.remove();
        for _ in 0..6 {
            let answer = wire.receive::<FetchRequest>(12).await;
            assert!(answer.responses[0].partitions[0].records.as_ref().is_some_and(|it| it.len() > 600 * 1024));
        }
    });
}

fn fetch() -> FetchRequest {
    let partition = FetchPartition { partition_max_bytes: 1 << 20, ..FetchPartition::default() };
    let topic = FetchTopic { topic: TOPIC.into(), partitions: vec![partition], ..FetchTopic::default() };
    FetchRequest {
        max_bytes: 1 << 20,
        session_id: 0,
        session_epoch: -1,
        topics: vec![topic],
        ..FetchRequest::default()
    }
}

/// NET-17: a packet of an old connection arrives after the client went on: a sequence that is known is a duplicate,
/// and the log is as it was.
#[test]
fn recorded_request_is_delivered_twice() {
    run(async |target, fake| {
        let mut wire = target.node(1).await;
        let again = fake.when(ApiKey::Produce).redeliver(5 * SECOND);
        wire.send(produce(0), 9).await;
        assert_eq!(written(&mut wire).await, "NONE");
        for sequence in 1..=2 {
            wire.send(produce(sequence), 9).await;
            assert_eq!(written(&mut wire).await, "NONE");
        }

        let of_all = |fake: &FakeCluster| fake.history().count(ApiKey::Produce);
        assert_eq!(of_all(&fake), 3);
        fake.wait_for("second delivery", |fake| (of_all(fake) == 4).then_some(())).await;

        assert_eq!((fake.high_watermark(TOPIC, 0), again.hits(), fake.connections(1)), (Some(3), 1, 1));
        let history = fake.history();
        let events: Vec<_> = history.of(ApiKey::Produce).collect();
        assert_eq!(events[0].request, events[3].request);
        assert_ne!(events[0].connection, events[3].connection);
        assert!(wire.is_quiet().await, "its answer goes nowhere");
    });
}

/// Without a sequence, nothing protects the log.
#[test]
fn request_that_is_not_idempotent_counts_twice() {
    run(async |target, fake| {
        let mut wire = target.node(1).await;
        fake.when(ApiKey::Produce).redeliver(SECOND);
        let mut plain = produce(0);
        plain.topic_data[0].partition_data[0].records = Some(batch(-1, -1, -1, 1));
        wire.send(plain, 9).await;
        assert_eq!(written(&mut wire).await, "NONE");

        fake.wait_for("second", |fake| (fake.high_watermark(TOPIC, 0) == Some(2)).then_some(())).await;
    });
}

/// NET-09: the node forgot the connection: the client finds out when it sends again.
#[test]
fn half_open_connection_is_reset_when_it_is_used() {
    for after in [false, true] {
        run(async |target, fake| {
            let mut wire = target.node(1).await;
            metadata(&mut wire).await;
            let rule = fake.when(ApiKey::Produce);
            let rule = if after { rule.after_handling() } else { rule };
            rule.half_open();

            wire.send(produce(0), 9).await;
            assert!(wire.is_quiet().await);
            assert_eq!((fake.connections(1), fake.high_watermark(TOPIC, 0)), (0, Some(i64::from(after))));

            wire.send(ask(), 13).await;
            assert!(wire.is_closed().await);
        });
    }
}

/// CB-11, NET-16: the name that a node tells does not resolve, or leads to another node.
#[test]
fn node_that_tells_a_wrong_name_is_not_found_there() {
    run(async |target, fake| {
        let mut wire = target.node(1).await;
        let told = async |wire: &mut Wire| {
            let brokers = metadata(wire).await.brokers;
            let two = brokers.into_iter().find(|broker| broker.node_id == 2).expect("node 2");
            (two.host.to_string(), two.port)
        };
        let truth = told(&mut wire).await;

        fake.advertise(2, Some("node-2.invalid"), None);
        assert_eq!(told(&mut wire).await, ("node-2.invalid".to_owned(), truth.1));
        let unknown = fake.pipes().connect("node-2.invalid", 9092).await.expect_err("no such name");
        assert_eq!(unknown.kind(), std::io::ErrorKind::NotFound);
        metadata(&mut target.node(2).await).await;

        let (host, port) = fake.address(1).expect("a node");
        fake.advertise(2, Some(&*host), Some(port));
        assert_eq!(told(&mut wire).await, (host.to_string(), i32::from(port)), "node 1 is told for node 2");

        fake.advertise(2, None, None);
        assert_eq!(told(&mut wire).await, truth);
    });
}

/// What cannot be is refused in words, by the same check for Rust and for JSON.
#[test]
fn network_rules_that_make_no_sense_are_refused() {
    run(async |_, fake| {
        let cases = [
            (r#"{"when": {"event": "network"}, "do": "partition"}"#, "a partition lasts"),
            (r#"{"when": {"event": "network"}, "do": {"delay_ms": 1}}"#, "the network carries frames"),
            (r#"{"when": {"event": "network", "topic": "x"}, "do": {"latency": {"ms": 1}}}"#, "knows a frame by"),
            (r#"{"do": {"latency": {"ms": 1}}}"#, "whose event is \"network\""),
            (r#"{"when": {"towards": "node"}, "do": "observe"}"#, "whose event is \"network\""),
            (r#"{"when": {"event": "network"}, "do": {"loss": {"probability": 1.0}}}"#, "loses all is a partition"),
            (r#"{"when": {"event": "network"}, "do": {"bandwidth": {"bytes_per_second": 0}}}"#, "is a partition"),
            (
                r#"{"when": {"event": "network", "peer": 2}, "times": "forever", "do": "partition"}"#,
                "between two nodes",
            ),
            (
                r#"{"when": {"event": "network", "node": 1, "peer": 2}, "do": {"latency": {"ms": 1}}}"#,
                "between two nodes",
            ),
        ];
        for (rule, reason) in cases {
            let error = fake.install_json(rule).expect_err(rule);
            assert!(error.contains(reason), "{rule}: {error}");
        }
    });
}
