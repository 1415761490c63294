//! Fewer connections than brokers: they take turns, and nothing takes that for a fault of the brokers'.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use krafka::Record;
use krafka::consumer::AutoOffsetReset;
use krafka::testing::FakeCluster;
use krafka_protocol::ApiKey;
use tokio::time::{Instant, sleep};

use super::client;

const SECOND: Duration = Duration::from_secs(1);

/// CB-20: a producer that waits for each acknowledgement, beside a consumer whose long polls keep the connections busy.
#[tokio::test(start_paused = true)]
async fn brokers_take_short_turns_and_none_is_given_up_on() {
    for limit in [1, 2, 3] {
        let fake = FakeCluster::builder().nodes(3).topic("orders", 3).start_on_pipes();
        let kafka = client(&fake).max_connections(limit).connect().await.expect("it is up");
        let producer = kafka.producer().build().await.expect("valid");
        let consumer = kafka.consumer("g").auto_offset_reset(AutoOffsetReset::Earliest).build().await.expect("valid");
        consumer.subscribe(&["orders"]).await.expect("subscribed");
        let is_over = Arc::new(AtomicBool::new(false));
        let reading = tokio::spawn({
            let is_over = is_over.clone();
            async move {
                let mut read = 0;
                while !is_over.load(Ordering::Relaxed) || read == 0 {
                    read += consumer.poll(SECOND).await.expect("a cap is no error").len();
                }
                read
            }
        });
        // The group is there.
        sleep(10 * SECOND).await;
        let dialled = |fake: &FakeCluster| fake.history().count(ApiKey::ApiVersions);
        let (begun, before) = (Instant::now(), dialled(&fake));

        let mut acknowledged = 0;
        while begun.elapsed() < 10 * SECOND {
            producer.send(Record::new("orders", "tea").partition(acknowledged % 3)).await.expect("a cap is no error");
            acknowledged += 1;
            sleep(Duration::from_millis(10)).await;
        }
        let dials = dialled(&fake) - before;
        sleep(3 * SECOND).await;
        is_over.store(true, Ordering::Relaxed);
        let read = reading.await.expect("no panic");

        println!("limit {limit}: {acknowledged} acknowledged, {read} read, {dials} connections made in 10 s");
        assert!(acknowledged >= 40, "limit {limit}: {acknowledged} acknowledged in 10 s");
        assert_eq!(read, acknowledged as usize, "limit {limit}: the consumer has its turns, too");
        assert!(dials <= 210, "limit {limit}: {dials} connections made in 10 s");
        let metrics = kafka.metrics();
        assert_eq!(metrics.metadata.rebootstraps, 0, "limit {limit}: {:?}", metrics.metadata);
        assert_eq!(metrics.metadata.failures, 0, "limit {limit}: {:?}", metrics.metadata);
    }
}

/// CB-20: a consumer that has nothing to read leaves the connections alone for most of the time, and is there soon when
/// it has.
#[tokio::test(start_paused = true)]
async fn an_idle_consumer_makes_few_connections() {
    for limit in [1, 2] {
        let fake = FakeCluster::builder().nodes(3).topic("orders", 3).start_on_pipes();
        let kafka = client(&fake).max_connections(limit).connect().await.expect("it is up");
        let writer = client(&fake).connect().await.expect("it is up").producer().build().await.expect("valid");
        let consumer = kafka.consumer("g").auto_offset_reset(AutoOffsetReset::Earliest).build().await.expect("valid");
        consumer.subscribe(&["orders"]).await.expect("subscribed");
        consumer.poll(15 * SECOND).await.expect("a cap is no error");
        let opened = kafka.metrics().connections.opened;

        consumer.poll(20 * SECOND).await.expect("a cap is no error");
        let dials = kafka.metrics().connections.opened - opened;

        assert!(dials <= 140, "limit {limit}: {dials} connections made in 20 s");
        for number in 0..6 {
            writer.send(Record::new("orders", "tea").partition(number % 3)).await.expect("it is written");
            let written = Instant::now();
            let read = consumer.poll(5 * SECOND).await.expect("a cap is no error").len();
            let took = written.elapsed();
            assert!(read == 1 && took < SECOND, "limit {limit}: {read} read after {took:?}");
            sleep(10 * SECOND).await;
        }
    }
}

/// CB-20: a group that gathers keeps the only connection for longer than all brokers together are waited for. Metadata
/// wait for their turn, and nothing is taken for a fault.
#[tokio::test(start_paused = true)]
async fn metadata_wait_for_their_turn() {
    let fake = FakeCluster::builder().nodes(3).topic("orders", 3).topic("payments", 3);
    let fake = fake.group_initial_rebalance_delay(20 * SECOND).start_on_pipes();
    let kafka = client(&fake).max_connections(1).connect().await.expect("it is up");
    let consumer = kafka.consumer("g").build().await.expect("valid");
    consumer.subscribe(&["orders"]).await.expect("subscribed");
    let polling = tokio::spawn(async move { consumer.poll(40 * SECOND).await.map(|records| records.len()) });
    while fake.history().count(ApiKey::JoinGroup) == 0 {
        sleep(Duration::from_millis(10)).await;
    }
    let begun = Instant::now();

    let producer = kafka.producer().build().await.expect("valid");
    producer.send(Record::new("payments", "tea")).await.expect("it has its turn");

    assert!(begun.elapsed() > 17 * SECOND, "the connection was taken for {:?}", begun.elapsed());
    assert!(begun.elapsed() < 25 * SECOND, "it has waited for {:?}", begun.elapsed());
    let metadata = kafka.metrics().metadata;
    assert_eq!((metadata.rebootstraps, metadata.failures), (0, 0), "{metadata:?}");
    polling.await.expect("no panic").expect("a cap is no error");
}
