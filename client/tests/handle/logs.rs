//! What a client writes to the log: little, and once.

use std::time::Duration;

use krafka::consumer::AutoOffsetReset;
use krafka::testing::FakeCluster;
use krafka::{Consumer, Kafka, Record};
use krafka_protocol::{AnyResponse, ApiKey};
use tokio::time::sleep;
use tracing::Level;

use super::client;
use super::observed::Observed;

const SECOND: Duration = Duration::from_secs(1);

fn three_nodes() -> FakeCluster {
    FakeCluster::builder().nodes(3).topic("orders", 3).group_initial_rebalance_delay(Duration::ZERO).start_on_pipes()
}

/// A group's member that has nothing to read.
async fn idle_reader(kafka: &Kafka) -> Consumer {
    let consumer = kafka.consumer("readers").build().await.expect("valid");
    consumer.subscribe(&["orders"]).await.expect("a topic's name");
    consumer.poll(10 * SECOND).await.expect("nothing yet");
    consumer
}

/// An hour of heartbeats, long polls and refreshes is not worth a line, not even for debugging.
#[tokio::test(start_paused = true)]
async fn what_goes_well_is_not_logged() {
    let (log, _guard) = Observed::start();
    let fake = three_nodes();
    let kafka = client(&fake).connect().await.expect("it is up");
    let consumer = idle_reader(&kafka).await;
    log.lines(Level::TRACE);
    let beats = fake.history().count(ApiKey::Heartbeat);

    for _ in 0..360 {
        consumer.poll(10 * SECOND).await.expect("nothing at all");
    }

    assert!(fake.history().count(ApiKey::Heartbeat) > beats + 1_000, "an hour has passed");
    let lines = log.lines(Level::TRACE);
    let closed = lines.iter().filter(|line| line.contains("connection closed")).count();
    let made = lines.iter().filter(|line| line.contains("connected")).count();
    assert_eq!(lines.len(), closed + made, "idle connections alone may be spoken of: {lines:?}");
    assert!(closed <= 6 && made <= 6, "{closed} closed, {made} made");
}

/// A warning where answers are lost with it. Others are lost whenever a broker stops.
#[tokio::test(start_paused = true)]
async fn a_lost_connection_is_one_line() {
    let (log, _guard) = Observed::start();
    let fake = three_nodes();
    let kafka = client(&fake).connect().await.expect("it is up");
    let producer = kafka.producer().build().await.expect("valid");
    for partition in 0..3 {
        producer.send(Record::new("orders", "tea").partition(partition)).await.expect("written");
    }
    fake.when(ApiKey::Produce).forever().delay(SECOND);
    let (node, _) = (fake.leader("orders", 0).expect("it has one"), log.lines(Level::TRACE));
    let mut waiting = Vec::new();
    for _ in 0..3 {
        waiting.push(producer.enqueue(Record::new("orders", "tea").partition(0)).await.expect("there is room"));
        sleep(Duration::from_millis(50)).await;
    }
    let connections = fake.connections(node);

    fake.disconnect(node);
    sleep(Duration::from_millis(20)).await;

    let mut lines = log.levelled();
    lines.retain(|(level, _)| *level <= Level::INFO);
    assert!(connections > 1 && lines.len() == connections, "{connections} connections: {lines:#?}");
    for (level, line) in lines {
        let expected = if line.contains("lane=Produce") { (Level::WARN, true) } else { (Level::INFO, false) };
        assert_eq!((level, line.contains("pending=3")), expected, "{line}");
        assert!(line.contains("connection lost") && line.contains("the broker closed it"), "{line}");
    }
    for handle in waiting {
        handle.await.expect("written all the same");
    }
}

/// However often it is tried.
#[tokio::test(start_paused = true)]
async fn a_broker_that_is_down_is_one_line_and_one_when_it_is_back() {
    let (log, _guard) = Observed::start();
    let fake = FakeCluster::builder().nodes(3).replication_factor(1).topic("orders", 3).start_on_pipes();
    let kafka = client(&fake).connect().await.expect("it is up");
    let producer = kafka.producer().delivery_timeout(3_600 * SECOND).build().await.expect("valid");
    let node = fake.leader("orders", 0).expect("it has one");
    log.lines(Level::TRACE);

    fake.refuse_connections(node, true);
    fake.disconnect(node);
    let handle = producer.enqueue(Record::new("orders", "tea").partition(0)).await.expect("there is room");
    sleep(600 * SECOND).await;
    let failed = kafka.metrics().connections.failed;
    let mut lines = log.lines(Level::INFO);
    assert!(failed > 100, "it was tried all the time: {failed}");
    lines.retain(|line| !line.contains("connection lost"));
    assert!(lines.len() == 1 && lines[0].contains("could not connect"), "{lines:#?}");

    fake.refuse_connections(node, false);
    handle.await.expect("written");
    let lines = log.lines(Level::INFO);
    assert!(lines.len() == 1 && lines[0].contains("connected again"), "{lines:#?}");
}

/// Nor is a cluster that is down.
#[tokio::test(start_paused = true)]
async fn a_cluster_that_is_down_is_a_few_lines() {
    let (log, _guard) = Observed::start();
    let fake = three_nodes();
    let kafka = client(&fake).connect().await.expect("it is up");
    let _reader = idle_reader(&kafka).await;
    log.lines(Level::TRACE);

    (1..=3).for_each(|node| fake.crash(node));
    sleep(600 * SECOND).await;

    let lines = log.lines(Level::INFO);
    let lost = lines.iter().filter(|line| line.contains("connection lost")).count();
    assert!(lines.len() - lost <= 10, "{lines:#?}");
}

/// Behind a gateway: the bootstrap server is reached, and the brokers advertise what leads nowhere.
#[tokio::test(start_paused = true)]
async fn brokers_that_advertise_nonsense_are_no_flood() {
    let (log, _guard) = Observed::start();
    let fake = three_nodes();
    let builder = client(&fake);
    (1..=3).for_each(|node| fake.advertise(node, Some("kafka-internal"), Some(9092)));
    let kafka = builder.connect().await.expect("the bootstrap servers are up");

    let error = kafka.admin().with_timeout(60 * SECOND).describe_cluster().await.expect_err("nobody is there");

    assert!(error.to_string().contains("advertised.listeners"), "{error}");
    let lines = log.lines(Level::INFO);
    let again = lines.iter().filter(|line| line.contains("beginning again")).count();
    assert!(again == 1 && lines.len() < 12, "{} lines in a minute: {lines:#?}", lines.len());
}

/// CB-20: a limit that is too tight slows everything down, and says so once.
#[tokio::test(start_paused = true)]
async fn too_few_connections_are_told_once() {
    let (log, _guard) = Observed::start();
    let fake = three_nodes();
    let kafka = client(&fake).max_connections(1).connect().await.expect("it is up");
    let consumer = kafka.consumer("readers").auto_offset_reset(AutoOffsetReset::Earliest).build().await;
    let consumer = consumer.expect("valid");
    consumer.subscribe(&["orders"]).await.expect("a topic's name");
    let producer = kafka.producer().build().await.expect("valid");

    for number in 0..9 {
        producer.send(Record::new("orders", "tea").partition(number % 3)).await.expect("written in the end");
    }
    for _ in 0..9 {
        consumer.recv().await.expect("read in the end");
    }

    let lines = log.lines(Level::WARN);
    let told: Vec<_> = lines.iter().filter(|line| line.contains("raise max_connections")).collect();
    assert!(told.len() == 1 && told[0].contains("fewer connections than brokers"), "{lines:?}");
}

/// The first question at a bank: who is spoken to, and how.
#[tokio::test(start_paused = true)]
async fn a_connection_that_is_made_is_a_line_for_debugging() {
    let (log, _guard) = Observed::start();
    let fake = FakeCluster::builder().nodes(1).user("alice", "hunter2").connections_max_reauth(60 * SECOND);
    let fake = fake.start_on_pipes();

    let _kafka = client(&fake).sasl_scram_sha256("alice", "hunter2").connect().await.expect("it is up");

    let lines = log.lines(Level::DEBUG);
    let made: Vec<_> = lines.iter().filter(|line| line.contains("connected")).collect();
    assert_eq!(made.len(), 1, "{lines:?}");
    for part in [&*fake.bootstrap(), "Control", "SCRAM-SHA-256", "session=Some(60s)", "apis="] {
        assert!(made[0].contains(part), "{} lacks {part}", made[0]);
    }
}

/// SCRAM sends proofs; PLAIN the password itself, which must not go through a network in the open without a word.
#[tokio::test]
async fn a_password_in_the_open_is_warned_of() {
    let (log, _guard) = Observed::start();
    let fake = FakeCluster::builder().nodes(1).user("alice", "hunter2").start().await.expect("a free port");
    let builder = || Kafka::builder(fake.bootstrap()).client_id("shop");

    builder().sasl_scram_sha512("alice", "hunter2").connect().await.expect("the password is right");
    assert_eq!(log.lines(Level::WARN), [""; 0]);
    builder().sasl_plain("alice", "hunter2").connect().await.expect("the password is right");

    let lines = log.lines(Level::WARN);
    assert!(lines.len() == 1 && lines[0].contains("the password goes to the brokers in plain text"), "{lines:?}");
    assert!(!lines[0].contains("hunter2"));
}

/// LE-10: as in Java, for information where the reset policy decides, as a warning where the application has to.
#[tokio::test(start_paused = true)]
async fn a_leader_that_knows_nothing_of_a_position_is_one_line() {
    for (policy, level) in [(AutoOffsetReset::Earliest, Level::INFO), (AutoOffsetReset::None, Level::WARN)] {
        let (log, _guard) = Observed::start();
        let fake = three_nodes();
        fake.append("orders", 0, None, Some(b"tea"));
        let kafka = client(&fake).connect().await.expect("it is up");
        let consumer = kafka.consumer_without_group().auto_offset_reset(policy).build().await.expect("valid");
        consumer.assign("orders", vec![0]).await.expect("assigned");
        consumer.seek("orders", 0, 0).await.expect("assigned");
        consumer.poll(SECOND).await.expect("a record");
        fake.when(ApiKey::OffsetForLeaderEpoch).edit(|response| {
            let AnyResponse::OffsetForLeaderEpoch(answer) = response else { return };
            let partitions = answer.topics.iter_mut().flat_map(|topic| &mut topic.partitions);
            partitions.for_each(|partition| (partition.leader_epoch, partition.end_offset) = (-1, -1));
        });
        log.lines(Level::TRACE);

        fake.move_leader("orders", 0, fake.leader("orders", 0).expect("a leader") % 3 + 1);
        let _ = consumer.poll(10 * SECOND).await;

        let lines = log.lines(level);
        let [line] = &lines[..] else { panic!("{policy:?}: {lines:?}") };
        assert!(line.contains("orders-0") && line.contains("position=1"), "{line}");
    }
}
