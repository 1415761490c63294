//! What the client knows of the cluster: how it notices that it is wrong, and finds the right one again.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use krafka::consumer::AutoOffsetReset;
use krafka::testing::{FakeCluster, Pipes};
use krafka::{Connect, Connecting, Environment, ErrorCode, Kafka, KrafkaError, MetadataRecoveryStrategy, Record};
use krafka_protocol::{ApiKey, ApiVersionsResponse};
use tokio::time::{Instant, sleep};

use super::{assert_says, client};

const SECOND: Duration = Duration::from_secs(1);

fn three_nodes() -> FakeCluster {
    FakeCluster::builder().nodes(3).topic("orders", 1).group_initial_rebalance_delay(Duration::ZERO).start_on_pipes()
}

/// A network in which node 1 is also known as `seed-a` and `seed-b`, and which counts who calls it so.
struct Seeds {
    pipes: Pipes,
    node: (String, u16),
    dials: Arc<[AtomicUsize; 2]>,
}

impl Seeds {
    fn new(fake: &FakeCluster) -> (Self, Arc<[AtomicUsize; 2]>) {
        let (host, port) = fake.address(1).expect("it is there");
        let dials = Arc::<[AtomicUsize; 2]>::default();
        (Self { pipes: fake.pipes(), node: (host.to_string(), port), dials: dials.clone() }, dials)
    }
}

impl Connect for Seeds {
    fn connect<'a>(&'a self, host: &'a str, port: u16) -> Connecting<'a> {
        let index = ["seed-a", "seed-b"].iter().position(|seed| *seed == host);
        let (host, port) = match index {
            Some(_) => (self.node.0.as_str(), self.node.1),
            None => (host, port),
        };
        if let Some(index) = index {
            self.dials[index].fetch_add(1, Ordering::Relaxed);
        }
        Connect::connect(&self.pipes, host, port)
    }
}

fn counted(dials: &[AtomicUsize; 2]) -> [usize; 2] {
    [0, 1].map(|index| dials[index].load(Ordering::Relaxed))
}

/// RB-05 (KIP-1242): node 2 says that it is where node 1 is.
#[tokio::test(start_paused = true)]
async fn a_broker_is_not_taken_for_another() {
    let fake = three_nodes();
    fake.move_leader("orders", 0, 2);
    let builder = client(&fake);
    let (host, port) = fake.address(1).expect("it is there");
    fake.advertise(2, Some(&host), Some(port));
    let kafka = builder.connect().await.expect("node 1 is where it says");
    let producer = kafka.producer().build().await.expect("the defaults are valid");

    let handle = producer.enqueue(Record::new("orders", "tea")).await.expect("there is room");
    sleep(10 * SECOND).await;
    let history = fake.history();
    assert_eq!(history.count(ApiKey::Produce), 0, "nothing was said to the wrong broker");
    let hellos = history.count(ApiKey::ApiVersions);
    assert!((5..=30).contains(&hellos), "{hellos} connections in ten seconds");

    fake.advertise(2, None, None);
    handle.await.expect("node 2 is where it says");
    assert!(fake.history().of(ApiKey::Produce).all(|event| event.node == 2));
}

/// RB-02: without the strategy nobody is asked who it is, as in Java.
#[tokio::test(start_paused = true)]
async fn without_recovery_a_broker_is_believed_to_be_itself() {
    let fake = three_nodes();
    let builder = client(&fake).metadata_recovery_strategy(MetadataRecoveryStrategy::None);
    let kafka = builder.connect().await.expect("it is up");
    fake.swap_cluster_id();

    kafka.admin().describe_cluster().await.expect("the new cluster answers");
}

/// RB-05, RB-07: another cluster in the place of the one that was connected to.
#[tokio::test(start_paused = true)]
async fn another_cluster_at_the_same_addresses_is_noticed() {
    let fake = three_nodes();
    let kafka = client(&fake).connect().await.expect("it is up");
    let before = kafka.admin().describe_cluster().await.expect("it is up").cluster_id;
    let producer = kafka.producer().build().await.expect("the defaults are valid");
    producer.send(Record::new("orders", "tea")).await.expect("written");

    fake.swap_cluster_id();
    (1..=3).for_each(|node| fake.disconnect(node));
    producer.send(Record::new("orders", "coffee")).await.expect("written, to the new one");

    let after = kafka.admin().describe_cluster().await.expect("it is up").cluster_id;
    assert_ne!(before, after);
    let history = fake.history();
    let refused = history.iter().filter(|event| {
        let answer = event.response::<ApiVersionsResponse>();
        answer.is_some_and(|answer| ErrorCode(answer.error_code) == ErrorCode::REBOOTSTRAP_REQUIRED)
    });
    assert!(refused.count() > 0, "a broker was asked whether it is of the former cluster");
}

/// MD-01: the second producer and consumer of a handle find the topic known.
#[tokio::test(start_paused = true)]
async fn who_comes_second_waits_for_no_metadata() {
    let fake = three_nodes();
    let kafka = client(&fake).connect().await.expect("it is up");
    let producer = kafka.producer().build().await.expect("the defaults are valid");
    producer.send(Record::new("orders", "0")).await.expect("written");
    let (asked, begin) = (fake.history().count(ApiKey::Metadata), Instant::now());

    let producer = kafka.producer().build().await.expect("the defaults are valid");
    producer.send(Record::new("orders", "1")).await.expect("written");
    let consumer = kafka.consumer_without_group().auto_offset_reset(AutoOffsetReset::Earliest);
    let consumer = consumer.build().await.expect("the settings are valid");
    consumer.assign("orders", vec![0]).await.expect("it is there");
    consumer.recv().await.expect("it was written");

    assert!(begin.elapsed() < Duration::from_millis(20), "{:?}, where linger alone takes 5 ms", begin.elapsed());
    assert_eq!(fake.history().count(ApiKey::Metadata), asked);
}

/// MD-12: what the handle knows already is not the last word on what the topic has.
#[tokio::test(start_paused = true)]
async fn who_comes_second_finds_added_partitions() {
    let fake = three_nodes();
    let kafka = client(&fake).connect().await.expect("it is up");
    let producer = kafka.producer().build().await.expect("the defaults are valid");
    producer.send(Record::new("orders", "0")).await.expect("written");
    fake.add_partitions("orders", 3);

    let producer = kafka.producer().build().await.expect("the defaults are valid");
    producer.send(Record::new("orders", "1").partition(2)).await.expect("the partition is new");
    fake.add_partitions("orders", 4);
    let consumer = kafka.consumer_without_group().build().await.expect("the settings are valid");
    consumer.assign("orders", vec![3]).await.expect("it is there");
}

/// RB-08.
#[tokio::test(start_paused = true)]
async fn other_seed_brokers_are_used_the_next_time() {
    let fake = three_nodes();
    let (seeds, dials) = Seeds::new(&fake);
    let kafka = Kafka::builder("seed-a:1").environment(Environment::new(seeds, 1)).connect().await.expect("it is up");
    assert_eq!(counted(&dials), [1, 0]);

    kafka.update_seed_brokers("seed-b:1").expect("a good list");
    sleep(SECOND).await;
    assert_eq!(counted(&dials), [1, 0], "nothing is wrong with the brokers that are known");

    kafka.rebootstrap();
    sleep(SECOND).await;
    assert_eq!(counted(&dials), [1, 1]);
}

#[tokio::test(start_paused = true)]
async fn seed_brokers_that_make_no_sense_are_refused() {
    let kafka = client(&three_nodes()).connect().await.expect("it is up");

    let error = kafka.update_seed_brokers("kafka").expect_err("there is no port");

    assert!(matches!(error, KrafkaError::Config { .. }), "{error:?}");
    assert_says(&error, &["'kafka' has no port"]);
}

/// RB-06: the others are there.
#[tokio::test(start_paused = true)]
async fn a_broker_that_comes_and_goes_is_no_reason_to_begin_again() {
    let fake = three_nodes();
    fake.move_leader("orders", 0, 2);
    let (seeds, dials) = Seeds::new(&fake);
    let kafka = Kafka::builder("seed-a:1").environment(Environment::new(seeds, 1)).connect().await.expect("it is up");
    let producer = kafka.producer().build().await.expect("the defaults are valid");

    for n in 0..10 {
        fake.crash(3);
        producer.send(Record::new("orders", format!("{n}"))).await.expect("node 2 is up");
        sleep(10 * SECOND).await;
        fake.restart(3);
        sleep(10 * SECOND).await;
    }

    assert_eq!(counted(&dials), [1, 0]);
}

/// RB-09: a member keeps its place, and a producer its sequences.
#[tokio::test(start_paused = true)]
async fn members_and_producers_outlive_a_rebootstrap() {
    let fake = three_nodes();
    let kafka = client(&fake).connect().await.expect("it is up");
    let producer = kafka.producer().build().await.expect("the defaults are valid");
    let builder = kafka.consumer("readers").auto_offset_reset(AutoOffsetReset::Earliest);
    let consumer = builder.build().await.expect("the settings are valid");
    consumer.subscribe(&["orders"]).await.expect("a topic's name");
    producer.send(Record::new("orders", "0")).await.expect("written");
    consumer.recv().await.expect("it was written");
    let (joins, identities) = (fake.history().count(ApiKey::JoinGroup), fake.history().count(ApiKey::InitProducerId));

    for n in 1..5 {
        kafka.rebootstrap();
        let receipt = producer.send(Record::new("orders", format!("{n}"))).await.expect("written");
        assert_eq!(receipt.offset, n);
        assert_eq!(consumer.recv().await.expect("it was written").offset, n);
        sleep(5 * SECOND).await;
    }

    let history = fake.history();
    assert_eq!((history.count(ApiKey::JoinGroup), history.count(ApiKey::InitProducerId)), (joins, identities));
}

/// MD-14: all brokers have just restarted, and say for a while that there is no such topic.
#[tokio::test(start_paused = true)]
async fn a_topic_that_is_missing_for_a_while_costs_nothing() {
    let fake = three_nodes();
    let kafka = client(&fake).connect().await.expect("it is up");
    let producer = kafka.producer().build().await.expect("the defaults are valid");
    let consumer = kafka.consumer_without_group().auto_offset_reset(AutoOffsetReset::Earliest);
    let consumer = consumer.build().await.expect("the settings are valid");
    consumer.assign("orders", vec![0]).await.expect("the topic exists");
    producer.send(Record::new("orders", "0")).await.expect("written");
    consumer.recv().await.expect("it was written");

    let unknown = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
    let rules =
        [ApiKey::Metadata, ApiKey::Produce].map(|key| fake.when(key).topic("orders").forever().reply_error(unknown));
    let handle = producer.enqueue(Record::new("orders", "1")).await.expect("there is room");
    sleep(3 * SECOND).await;
    for rule in rules {
        assert!(rule.hits() > 0);
        rule.remove();
    }

    assert_eq!(handle.await.expect("written once the topic is back").offset, 1);
    assert_eq!(consumer.recv().await.expect("it was written").offset, 1);
    assert_eq!(fake.history().count(ApiKey::InitProducerId), 1, "the sequence went on");
}

/// MD-21, MD-17: a leader that metadata do not name may finish what it was asked; new requests wait for it.
#[tokio::test(start_paused = true)]
async fn a_leader_that_is_hidden_is_waited_for() {
    let fake = three_nodes();
    let leader = fake.leader("orders", 0).expect("it has one");
    let kafka = client(&fake).connect().await.expect("it is up");
    let producer = kafka.producer().build().await.expect("the defaults are valid");
    producer.send(Record::new("orders", "0")).await.expect("written");
    fake.when(ApiKey::Produce).times(1).delay(SECOND);

    let in_flight = producer.enqueue(Record::new("orders", "1")).await.expect("there is room");
    sleep(Duration::from_millis(100)).await;
    fake.hide_node(leader, true);
    kafka.rebootstrap();
    in_flight.await.expect("what was sent is answered");
    let waiting = producer.enqueue(Record::new("orders", "2")).await.expect("there is room");
    sleep(5 * SECOND).await;
    assert_eq!(fake.history().count(ApiKey::Produce), 2, "nobody leads the partition, as far as anybody says");

    fake.hide_node(leader, false);
    assert_eq!(waiting.await.expect("written").offset, 2);
}

/// MD-22, CB-22: it is found at its new address, and nothing stays open to the former.
#[tokio::test(start_paused = true)]
async fn a_broker_that_moves_is_followed() {
    let fake = three_nodes();
    let leader = fake.leader("orders", 0).expect("it has one");
    let kafka = client(&fake).connect().await.expect("it is up");
    let producer = kafka.producer().build().await.expect("the defaults are valid");
    producer.send(Record::new("orders", "0")).await.expect("written");

    fake.move_node(leader, "elsewhere", 7);
    kafka.rebootstrap();
    sleep(SECOND).await;
    let connections = fake.connections(leader);
    producer.send(Record::new("orders", "1")).await.expect("written");

    assert_eq!(fake.connections(leader), connections + 1, "the former was closed before");
    let history = fake.history();
    let on: Vec<_> = history.of(ApiKey::Produce).map(|event| event.connection).collect();
    assert_ne!(on[0], on[1]);
}

/// MD-26: who may create topics is for both sides to say.
#[tokio::test(start_paused = true)]
async fn a_topic_is_created_on_demand_only_where_both_sides_want_that() {
    for (broker, allows) in [(true, true), (true, false), (false, true)] {
        let fake = FakeCluster::builder().nodes(1).auto_create_topics(broker).start_on_pipes();
        let kafka = client(&fake).allow_auto_create_topics(allows).connect().await.expect("it is up");
        let producer = kafka.producer().max_block(5 * SECOND).build().await.expect("valid");
        let consumer = kafka.consumer_without_group().build().await.expect("valid");

        let written = producer.send(Record::new("produced", "tea")).await;
        let assigned = consumer.assign("consumed", vec![0]).await;

        let is_created = broker && allows;
        assert_eq!((written.is_ok(), assigned.is_ok()), (is_created, is_created), "{written:?}, {assigned:?}");
        let created: Vec<_> = fake.topics().iter().map(ToString::to_string).collect();
        let expected: &[&str] = if is_created { &["consumed", "produced"] } else { &[] };
        assert_eq!(created, expected);
    }
}

/// MD-04: the brokers need not be asked.
#[tokio::test(start_paused = true)]
async fn a_name_that_no_topic_can_have_is_refused_at_once() {
    let fake = three_nodes();
    let kafka = client(&fake).connect().await.expect("it is up");
    let producer = kafka.producer().build().await.expect("the defaults are valid");
    let consumer = kafka.consumer("readers").build().await.expect("the settings are valid");
    let asked = fake.history().count(ApiKey::Metadata);

    for error in [
        producer.send(Record::new("a/b", "tea")).await.expect_err("no such name"),
        consumer.subscribe(&["a/b"]).await.expect_err("no such name"),
    ] {
        assert!(matches!(error, KrafkaError::Config { .. }) && !error.is_retriable(), "{error:?}");
        assert_says(&error, &["a/b"]);
    }
    assert_eq!(fake.history().count(ApiKey::Metadata), asked);
}
