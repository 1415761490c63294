//! What a handle counts.

use std::time::Duration;

use krafka::consumer::AutoOffsetReset;
use krafka::testing::FakeCluster;
use krafka::{ErrorCode, Record};
use krafka_protocol::ApiKey;
use tokio::time::sleep;

use super::client;

const SECOND: Duration = Duration::from_secs(1);

fn one_node() -> FakeCluster {
    FakeCluster::builder().nodes(1).topic("orders", 1).group_initial_rebalance_delay(Duration::ZERO).start_on_pipes()
}

#[tokio::test(start_paused = true)]
async fn records_are_counted_on_both_ways() {
    let fake = one_node();
    let kafka = client(&fake).client_id("shop").connect().await.expect("it is up");
    let producers = [kafka.producer().build().await, kafka.producer().build().await].map(|built| built.expect("valid"));
    let consumer = kafka.consumer("readers").auto_offset_reset(AutoOffsetReset::Earliest).build().await.expect("valid");
    consumer.subscribe(&["orders"]).await.expect("a topic's name");

    for n in 0..3 {
        producers[n % 2].send(Record::new("orders", "tea")).await.expect("written");
        consumer.recv().await.expect("it was written");
    }
    consumer.close().await.expect("it commits");

    let metrics = kafka.metrics();
    assert_eq!(&*metrics.client_id, "shop");
    assert_eq!((producers[0].metrics().records_acknowledged, metrics.producers.records_acknowledged), (2, 3));
    assert_eq!(metrics.producers.delivery_time.count(), 3);
    assert_eq!(metrics.consumers, consumer.metrics(), "there is but one");
    let consumers = metrics.consumers;
    assert_eq!((consumers.records, consumers.joins, consumers.commits_failed), (3, 2, 0), "it is given its id first");
    assert!(consumers.commits > 0 && consumers.fetches >= 3, "{consumers:?}");
    assert_eq!(consumers.bytes, metrics.producers.bytes_acknowledged);
    assert_eq!(metrics.requests["Produce"].time.count(), metrics.producers.requests);
    let written: u64 = metrics.brokers.values().map(|broker| broker.requests).sum();
    let asked = fake.history().iter().filter(|event| event.key != ApiKey::ApiVersions).count();
    assert_eq!(written, asked as u64, "the handshakes are not counted");
}

/// What is closed and dropped has been counted all the same.
#[tokio::test(start_paused = true)]
async fn what_is_gone_stays_counted() {
    let fake = one_node();
    let kafka = client(&fake).connect().await.expect("it is up");
    for _ in 0..2 {
        let producer = kafka.producer().build().await.expect("valid");
        producer.send(Record::new("orders", "tea")).await.expect("written");
        producer.close().await.expect("closed");
    }

    assert_eq!(kafka.metrics().producers.records_acknowledged, 2);
}

/// TH-09.
#[tokio::test(start_paused = true)]
async fn a_throttle_is_counted_for_its_broker() {
    let fake = FakeCluster::builder().nodes(3).topic("orders", 1).start_on_pipes();
    fake.move_leader("orders", 0, 2);
    let kafka = client(&fake).connect().await.expect("it is up");
    let producer = kafka.producer().build().await.expect("valid");
    fake.when(ApiKey::Produce).times(1).throttle(Duration::from_millis(700));

    for _ in 0..2 {
        producer.send(Record::new("orders", "tea")).await.expect("written");
    }

    let brokers = kafka.metrics().brokers;
    assert_eq!(brokers[&2].throttled, Duration::from_millis(700));
    assert!(brokers.iter().all(|(id, broker)| *id == 2 || broker.throttled.is_zero()), "{brokers:?}");
}

#[tokio::test(start_paused = true)]
async fn connections_and_late_answers_are_counted() {
    let fake = one_node();
    let kafka = client(&fake).request_timeout(5 * SECOND).connect().await.expect("it is up");
    fake.when(ApiKey::DescribeCluster).times(1).silence();
    fake.when(ApiKey::DescribeCluster).nth(2).times(1).delay(2 * SECOND);

    kafka.admin().describe_cluster().await.expect("the second attempt is answered");
    fake.disconnect(1);
    sleep(SECOND).await;
    fake.crash(1);
    kafka.admin().with_timeout(SECOND).describe_cluster().await.expect_err("it is down");

    let metrics = kafka.metrics();
    let connections = &metrics.connections;
    assert_eq!((connections.opened, connections.lost, connections.open), (3, 3, 0), "one to the bootstrap server");
    assert!(connections.failed > 0 && connections.connect_time.count() == 3, "{connections:?}");
    let requests = &metrics.requests["DescribeCluster"];
    assert_eq!((requests.failed, requests.time.count(), requests.time.max()), (1, 1, 2 * SECOND));
}

#[tokio::test(start_paused = true)]
async fn the_age_of_metadata_is_told() {
    let fake = one_node();
    let kafka = client(&fake).connect().await.expect("it is up");
    sleep(20 * SECOND).await;
    assert_eq!(kafka.metrics().metadata.age, Some(20 * SECOND));

    fake.swap_cluster_id();
    fake.disconnect(1);
    kafka.rebootstrap();
    sleep(SECOND).await;

    let metadata = kafka.metrics().metadata;
    assert_eq!((metadata.refreshes, metadata.rebootstraps, metadata.cluster_changes), (2, 1, 1));
    fake.when(ApiKey::Metadata).forever().reply_error(ErrorCode::UNKNOWN_SERVER_ERROR);
    kafka.rebootstrap();
    sleep(SECOND).await;
    assert!(kafka.metrics().metadata.failures > 0);
}
